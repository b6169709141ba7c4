/*-------------------------------------------------------------------------
 *
 * sorted_run.c
 *		Writes and reads sorted runs of rows in a temporary file.
 *
 * Each run is one of PostgreSQL's logical tapes.  It consists of blocks of whole
 * rows, so that rows can be used where they were read.  All tapes share one file,
 * whose blocks are reused as soon as they have been read.  A merge of runs into
 * another run therefore needs hardly any additional disk space.
 *
 * A tape allocates its buffers when it first needs them.  We must be in the file's
 * memory context at that time.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/disk/sorted_run.h"
#include "work.h"

/*
 * Blocks are small enough to stay in the first-level cache, and smaller if there is
 * little memory.
 */
#define MAX_BLOCK_BYTES		((Size) 8 * 1024)
#define MIN_BLOCK_BYTES		((Size) 2 * 1024)
#define BLOCKS_PER_LIMIT	32

/*
 * Bytes read from disk at a time.  More would leave less memory for other runs, and
 * does not make reading from the system's cache any faster.
 */
#define MAX_READ_BYTES		((Size) 128 * 1024)
#define READS_PER_LIMIT		256

struct GsRunFile
{
	MemoryContext context;
	const GsRowFormat *format;
	const GsRunTarget *target;	/* run set of the file, or NULL */
	LogicalTapeSet *tapes;		/* NULL before the first run */
	Size		block_bytes;	/* size of a block, unless a row is longer */
	Size		read_bytes;		/* size of a tape's buffer */

	/* The run that is being written. */
	GsSortedRun *run;
	GsRunBlock *block;
	Size		room;			/* allocated size of 'block' */
	Size		end;			/* bytes of 'block' in use */
	uint32		bytes_before;	/* length of the previous block, or 0 */
};

static void
set_room(GsRunFile *file, Size room)
{
	if (file->block != NULL)
		pfree(file->block);
	file->block = MemoryContextAllocHuge(file->context, room);
	file->room = room;
	file->end = sizeof(GsRunBlock);
}

static Size
block_bytes(Size limit)
{
	Size		bytes = Min(Max(limit / BLOCKS_PER_LIMIT, MIN_BLOCK_BYTES),
							MAX_BLOCK_BYTES);

	return MAXALIGN_DOWN(bytes);
}

static Size
read_bytes(Size limit)
{
	return Min(Max(limit / READS_PER_LIMIT, BLCKSZ), MAX_READ_BYTES);
}

GsRunFile *
gpusort_run_file_create(const GsRowFormat *format, Size limit,
						const GsRunTarget *target)
{
	GsRunFile  *file = palloc0(sizeof(GsRunFile));

	StaticAssertStmt(sizeof(GsRunBlock) % MAXIMUM_ALIGNOF == 0,
					 "rows behind the header of a block are aligned");
	file->context = CurrentMemoryContext;
	file->format = format;
	file->target = target;
	file->block_bytes = block_bytes(limit);
	file->read_bytes = read_bytes(limit);
	set_room(file, file->block_bytes);
	return file;
}

/* Create the file itself.  This is delayed until there is a run. */
static void
make_tapes(GsRunFile *file)
{
	if (file->target != NULL)
		file->tapes = LogicalTapeSetCreate(false,
										   gpusort_run_target_files(file->target),
										   file->target->producer);
	else
		file->tapes = LogicalTapeSetCreate(false, NULL, -1);
}

Size
gpusort_run_file_reader_bytes(Size limit)
{
	return block_bytes(limit) + read_bytes(limit);
}

int64
gpusort_run_file_kb(const GsRunFile *file)
{
	if (file->tapes == NULL)
		return 0;
	return (int64) LogicalTapeSetBlocks(file->tapes) * (BLCKSZ / 1024);
}

void
gpusort_run_file_close(GsRunFile *file)
{
	if (file->tapes != NULL)
		LogicalTapeSetClose(file->tapes);
	pfree(file->block);
	pfree(file);
}

/* ----------------------------------------------------------------
 *		writing
 * ----------------------------------------------------------------
 */

void
gpusort_run_file_begin(GsRunFile *file)
{
	MemoryContext caller = MemoryContextSwitchTo(file->context);

	if (file->tapes == NULL)
		make_tapes(file);
	file->run = palloc0(sizeof(GsSortedRun));
	file->run->tape = LogicalTapeCreate(file->tapes);
	file->block->nrows = 0;
	file->end = sizeof(GsRunBlock);
	file->bytes_before = 0;
	MemoryContextSwitchTo(caller);
}

static void
write_block(GsRunFile *file)
{
	MemoryContext caller = MemoryContextSwitchTo(file->context);
	GsRunBlock *block = file->block;

	CHECK_FOR_INTERRUPTS();
	block->bytes = file->end;
	block->bytes_before = file->bytes_before;
	block->unused = 0;
	LogicalTapeWrite(file->run->tape, (void *) block, block->bytes);
	file->run->nrows += block->nrows;
	file->run->bytes += block->bytes;
	file->run->longest_block = Max(file->run->longest_block, block->bytes);
	file->bytes_before = block->bytes;
	if (file->room > file->block_bytes)
		set_room(file, file->block_bytes);
	file->block->nrows = 0;
	file->end = sizeof(GsRunBlock);
	MemoryContextSwitchTo(caller);
}

/* Make space in the block for a row that does not fit. */
static void
make_room(GsRunFile *file, Size bytes)
{
	if (file->block->nrows > 0)
		write_block(file);
	if (file->room - file->end >= bytes)
		return;

	/* Tuples have the same limit. */
	if (!AllocSizeIsValid(bytes))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row of %zu bytes is too long to sort", bytes)));
	set_room(file, sizeof(GsRunBlock) + bytes);
	file->block->nrows = 0;
}

static inline char *
next_free(GsRunFile *file)
{
	return (char *) file->block + file->end;
}

void
gpusort_run_file_put(GsRunFile *file, const Datum *values, const bool *isnull)
{
	Size		bytes;

	bytes = gpusort_row_format_pack_fast(file->format, values, isnull,
										 next_free(file),
										 file->room - file->end);
	if (unlikely(bytes == 0))
	{
		make_room(file, gpusort_row_format_packed_size(file->format, values,
													   isnull));
		bytes = gpusort_row_format_pack(file->format, values, isnull,
										next_free(file),
										file->room - file->end);
	}
	gpusort_work_add(GPUSORT_WORK_ROW + bytes);
	file->end += bytes;
	file->block->nrows++;
}

char *
gpusort_run_file_reserve(GsRunFile *file, Size bytes)
{
	char	   *dest;

	if (unlikely(file->room - file->end < bytes))
		make_room(file, bytes);
	gpusort_work_add(GPUSORT_WORK_ROW + bytes);
	dest = next_free(file);
	file->end += bytes;
	file->block->nrows++;
	return dest;
}

void
gpusort_run_file_put_packed(GsRunFile *file, const char *row, Size bytes)
{
	memcpy(gpusort_run_file_reserve(file, bytes), row, bytes);
}

GsSortedRun *
gpusort_run_file_end(GsRunFile *file, bool freeze)
{
	MemoryContext caller = MemoryContextSwitchTo(file->context);
	GsSortedRun *run = file->run;

	if (file->block->nrows > 0)
		write_block(file);
	file->run = NULL;
	if (run->nrows == 0)
	{
		LogicalTapeClose(run->tape);
		pfree(run);
		run = NULL;
	}
	else if (freeze)
		LogicalTapeFreeze(run->tape, NULL);
	else
		LogicalTapeRewindForRead(run->tape, file->read_bytes);
	MemoryContextSwitchTo(caller);
	return run;
}

void
gpusort_run_file_share(GsRunFile *file, GsSharedRun *shared)
{
	MemoryContext caller = MemoryContextSwitchTo(file->context);
	GsSortedRun *run = file->run;
	TapeShare	share;

	if (file->block->nrows > 0)
		write_block(file);
	file->run = NULL;
	LogicalTapeFreeze(run->tape, &share);
	shared->producer = file->target->producer;
	shared->first_block = share.firstblocknumber;
	shared->nrows = run->nrows;
	shared->bytes = run->bytes;
	shared->longest_block = run->longest_block;
	LogicalTapeClose(run->tape);
	pfree(run);
	MemoryContextSwitchTo(caller);
}

/* ----------------------------------------------------------------
 *		reading
 * ----------------------------------------------------------------
 */

void
gpusort_run_file_read(GsRunFile *file, GsSortedRun *run, GsRunBlock *block)
{
	MemoryContext caller = MemoryContextSwitchTo(file->context);
	Size		rest;

	CHECK_FOR_INTERRUPTS();
	if (LogicalTapeRead(run->tape, block, sizeof(*block)) != sizeof(*block) ||
		block->bytes > run->longest_block)
		elog(ERROR, "a sorted run has a damaged block");
	rest = block->bytes - sizeof(*block);
	if (LogicalTapeRead(run->tape, block + 1, rest) != rest)
		elog(ERROR, "a sorted run ends within a block");
	MemoryContextSwitchTo(caller);
}

void
gpusort_run_file_forget_room(GsRunFile *file)
{
	if (file->tapes != NULL)
		LogicalTapeSetForgetFreeSpace(file->tapes);
}

GsSortedRun *
gpusort_run_file_import(GsRunFile *file, GsRunSet *set,
						const GsSharedRun *shared)
{
	MemoryContext caller = MemoryContextSwitchTo(file->context);
	GsSortedRun *run = palloc0(sizeof(GsSortedRun));
	TapeShare	share = {.firstblocknumber = shared->first_block};

	/*
	 * Imported tapes need a tape set of their own, to which nothing is
	 * written.
	 */
	if (file->tapes == NULL)
		file->tapes = LogicalTapeSetCreate(false, gpusort_run_set_files(set),
										   -1);
	run->tape = LogicalTapeImport(file->tapes, shared->producer, &share);
	LogicalTapeRewindForRead(run->tape, file->read_bytes);
	LogicalTapeSetForgetFreeSpace(file->tapes);
	run->nrows = shared->nrows;
	run->bytes = shared->bytes;
	run->longest_block = shared->longest_block;
	MemoryContextSwitchTo(caller);
	return run;
}

void
gpusort_run_file_free(GsRunFile *file, GsSortedRun *run)
{
	LogicalTapeClose(run->tape);
	pfree(run);
}
