/*-------------------------------------------------------------------------
 *
 * extent_file.c
 *		Temporary files that are written and read in large pieces.
 *
 * PostgreSQL's own temporary files (buffile.c, and the logical tapes above them) are
 * written and read by calls of the system for 8 kB each.  For rows that stay in the
 * system's cache these calls take longer than sorting and merging the rows.  This
 * file is written and read from the caller's memory, an extent of up to 128 kB at a
 * time.  Extents that are freed are used again, so that a merge of runs into another
 * run takes hardly any additional disk space.
 *
 * The files are those of fd.c, and are divided into segments of 1 GB as buffile.c
 * does it.  Therefore temp_file_limit, log_temp_files, temp_tablespaces, the counters
 * of EXPLAIN and the removal of files work as for any temporary file.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/wait_event.h"

#include "sort/disk/extent_file.h"
#include "work.h"

/* A segment has the same size as in buffile.c, and is a multiple of an extent. */
#define SEGMENT_BYTES		((uint64) 1024 * 1024 * 1024)

/* Bytes between two checks for interrupts. */
#define MAX_TRANSFER		((Size) 1024 * 1024)

#define MAX_NAME			32

struct GsExtentFile
{
	MemoryContext context;
	ResourceOwner owner;		/* of the segments */
	Size		extent_bytes;
	bool		shared;			/* is the file in a run set? */
	bool		opened;			/* was it written by another process? */
	GsRunTarget target;			/* if shared */

	List	   *segments;		/* of File */
	uint64		bytes_on_disk;	/* up to the last byte written */

	GsExtent	next_unused;
	List	   *free_extents;	/* those freed last are used first */
};

GsExtentFile *
gpusort_extent_file_create(Size extent_bytes, const GsRunTarget *target)
{
	GsExtentFile *file = palloc0(sizeof(GsExtentFile));

	Assert(SEGMENT_BYTES % extent_bytes == 0);
	file->context = CurrentMemoryContext;
	file->owner = CurrentResourceOwner;
	file->extent_bytes = extent_bytes;
	file->shared = target != NULL;
	if (file->shared)
		file->target = *target;
	return file;
}

GsExtentFile *
gpusort_extent_file_open(Size extent_bytes, const GsRunTarget *target)
{
	GsExtentFile *file = gpusort_extent_file_create(extent_bytes, target);

	file->opened = true;
	return file;
}

void
gpusort_extent_file_close(GsExtentFile *file)
{
	ListCell   *lc;

	foreach(lc, file->segments)
		FileClose(lfirst_int(lc));
	list_free(file->segments);
	list_free(file->free_extents);
	pfree(file);
}

int64
gpusort_extent_file_kb(const GsExtentFile *file)
{
	return (file->bytes_on_disk + 1023) / 1024;
}

/* ----------------------------------------------------------------
 *		extents
 * ----------------------------------------------------------------
 */

Size
gpusort_extent_file_extent_bytes(const GsExtentFile *file)
{
	return file->extent_bytes;
}

uint32
gpusort_extent_file_count(const GsExtentFile *file, Size bytes)
{
	return (bytes + file->extent_bytes - 1) / file->extent_bytes;
}

GsExtent
gpusort_extent_file_alloc(GsExtentFile *file, Size bytes)
{
	GsExtent	first = file->next_unused;
	uint32		count = gpusort_extent_file_count(file, bytes);

	Assert(!file->opened);
	if (count == 1 && file->free_extents != NIL)
	{
		first = (GsExtent) llast_int(file->free_extents);
		file->free_extents = list_delete_last(file->free_extents);
		return first;
	}
	if (count >= GPUSORT_NO_EXTENT - first)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("temporary file of a sort exceeds %u extents",
						GPUSORT_NO_EXTENT)));
	file->next_unused += count;
	return first;
}

void
gpusort_extent_file_free(GsExtentFile *file, GsExtent first, Size bytes)
{
	MemoryContext caller = MemoryContextSwitchTo(file->context);
	uint32		count = gpusort_extent_file_count(file, bytes);

	while (!file->opened && count-- > 0)
		file->free_extents = lappend_int(file->free_extents, (int) (first + count));
	MemoryContextSwitchTo(caller);
}

/* ----------------------------------------------------------------
 *		writing and reading
 * ----------------------------------------------------------------
 */

/* Create the next segment, or open it if another process has written the file. */
static void
add_segment(GsExtentFile *file)
{
	ResourceOwner caller = CurrentResourceOwner;
	MemoryContext context;
	char		name[MAX_NAME];
	File		segment;

	CurrentResourceOwner = file->owner;
	snprintf(name, sizeof(name), "%d.%d", file->target.producer, list_length(file->segments));
	if (file->opened)
		segment = FileSetOpen(&file->target.files, name, O_RDONLY);
	else if (file->shared)
		segment = FileSetCreate(&file->target.files, name);
	else
	{
		/* This has no effect unless it is the transaction's first time. */
		PrepareTempTablespaces();
		segment = OpenTemporaryFile(false);
	}
	CurrentResourceOwner = caller;
	if (segment < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open temporary file \"%s\" of a sort: %m",
						name)));
	context = MemoryContextSwitchTo(file->context);
	file->segments = lappend_int(file->segments, segment);
	MemoryContextSwitchTo(context);
}

/* Returns the segment with a byte of the file, and sets *offset to its offset there. */
static File
find_segment(GsExtentFile *file, uint64 position, off_t * offset)
{
	int			number = position / SEGMENT_BYTES;

	while (list_length(file->segments) <= number)
		add_segment(file);
	*offset = position % SEGMENT_BYTES;
	return list_nth_int(file->segments, number);
}

/* How many of the bytes from a position on can be transferred at once? */
static Size
transfer_bytes(uint64 position, Size bytes)
{
	return Min(Min(bytes, MAX_TRANSFER),
			   SEGMENT_BYTES - position % SEGMENT_BYTES);
}

/* Count blocks of PostgreSQL's size for EXPLAIN (BUFFERS). */
static int64
blocks_of(Size bytes)
{
	return (bytes + BLCKSZ - 1) / BLCKSZ;
}

/* Returns how many bytes were written or read, or -1. */
static int
transfer_timed(File segment, bool write, char *data, Size bytes, off_t offset)
{
	instr_time *total = write ? &pgBufferUsage.temp_blk_write_time :
		&pgBufferUsage.temp_blk_read_time;
	instr_time	start;
	instr_time	end;
	int			done;

	if (track_io_timing)
		INSTR_TIME_SET_CURRENT(start);
	done = write ? FileWrite(segment, data, bytes, offset, WAIT_EVENT_BUFFILE_WRITE) :
		FileRead(segment, data, bytes, offset, WAIT_EVENT_BUFFILE_READ);
	if (track_io_timing)
	{
		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_ACCUM_DIFF(*total, end, start);
	}
	return done;
}

/* Write or read bytes.  Returns how many there were: fewer only if the file ends before. */
static Size
transfer(GsExtentFile *file, bool write, uint64 position, char *data, Size bytes)
{
	Size		total = 0;

	while (total < bytes)
	{
		off_t		within;
		File		segment = find_segment(file, position + total, &within);
		int			done;

		CHECK_FOR_INTERRUPTS();
		done = transfer_timed(segment, write, data + total,
							  transfer_bytes(position + total, bytes - total), within);
		if (done < 0 || (write && done == 0))
			ereport(ERROR,
					(errcode_for_file_access(),
					 write ?
					 errmsg("could not write to file \"%s\": %m", FilePathName(segment)) :
					 errmsg("could not read file \"%s\": %m", FilePathName(segment))));
		if (done == 0)
			break;
		total += done;
	}
	return total;
}

void
gpusort_extent_file_write(GsExtentFile *file, GsExtent extent, const char *data, Size bytes)
{
	uint64		position = (uint64) extent * file->extent_bytes;

	pgBufferUsage.temp_blks_written += blocks_of(bytes);
	(void) transfer(file, true, position, (char *) data, bytes);
	file->bytes_on_disk = Max(file->bytes_on_disk, position + bytes);
}

Size
gpusort_extent_file_read(GsExtentFile *file, GsExtent extent, Size offset,
						 char *data, Size bytes)
{
	uint64		position = (uint64) extent * file->extent_bytes + offset;
	Size		total = transfer(file, false, position, data, bytes);

	pgBufferUsage.temp_blks_read += blocks_of(total);
	return total;
}

/* ----------------------------------------------------------------
 *		files to which several processes write sorted runs
 *
 * Each process has a file of its own in a set of files that the leader creates.
 * PostgreSQL's shared file sets live as long as a segment of dynamic shared memory.
 * This one belongs to the leader's sort instead, because rows may be read, and read
 * again, after a Limit has ended the Gather and its segment.
 * ----------------------------------------------------------------
 */

/* Bytes of a row in a run besides its columns. */
#define ROW_OVERHEAD	8

/* Memory context callback */
static void
remove_files(void *arg)
{
	/*
	 * An interrupt while files are being removed would leave the others
	 * behind.
	 */
	HOLD_INTERRUPTS();
	FileSetDeleteAll(arg);
	RESUME_INTERRUPTS();
}

FileSet
gpusort_run_set_create(void)
{
	FileSet    *files = palloc0(sizeof(FileSet));
	MemoryContextCallback *callback = palloc(sizeof(MemoryContextCallback));

	FileSetInit(files);
	callback->func = remove_files;
	callback->arg = files;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	return *files;
}

bool
gpusort_shared_runs_allowed(double rows, int width)
{
	return temp_file_limit < 0 ||
		rows * (width + ROW_OVERHEAD) <= (double) temp_file_limit * 1024;
}
