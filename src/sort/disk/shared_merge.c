/*-------------------------------------------------------------------------
 *
 * shared_merge.c
 *		Merges the runs of several processes, by all of these processes.
 *
 * A range is merged into a slot, of which there are a few for each process.  When the leader
 * has read the rows of a slot, the slot is used again for a later range.  Range r is in slot
 * r modulo the number of slots.
 *
 * A process that has no memory for the rows of a range leaves the range to the leader, which
 * then reads the rows one by one as it merges them.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "port/atomics.h"
#include "portability/instr_time.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "sort/disk/run_merge.h"
#include "sort/disk/shared_merge.h"
#include "sort/memory/shared_sort.h"
#include "sort/memory/sorted_ranges.h"
#include "work.h"

/*
 * Half of the memory of each process is for ranges, and half for a block of each run.  A
 * range that has several blocks of each run reads few rows of others.
 */
#define SLOTS_PER_PROCESS	2
#define RANGE_PART			4
#define BLOCKS_PART			2
#define BLOCKS_PER_RANGE	4
#define MIN_RANGE_BYTES		((Size) 64 * 1024)

/* Also, there are this many ranges for each process, so that all end at about the same time. */
#define RANGES_PER_PROCESS	8

/* A range is in pieces of this part of it, but of no more than so many bytes. */
#define PIECE_PART			4
#define MAX_PIECE_BYTES		((Size) 256 * 1024)

/* Where a range is that has been merged. */
typedef struct GsMergeSlot
{
	int			ready;			/* the number of the range, plus 1; or 0 */
	bool		left;			/* to the leader, for want of memory */
	GsRangePiece *pieces;
} GsMergeSlot;

/* The runs of a process. */
typedef struct GsMergeShare
{
	int			nruns;
	GsSharedRun *runs;
	int64		file_kb;
	GsFallback	overflow;
} GsMergeShare;

struct GsSharedMerge
{
	GsSharedBudget *budget;
	Size		memory;			/* of each process, as the leader has it: all
								 * must divide the rows alike */
	int			nshares;
	pg_atomic_uint32 nranges;	/* as the first process has divided them; or 0 */

	slock_t		mutex;			/* for what follows */
	int			next_range;		/* that nobody has taken */
	int			nread;			/* ranges that the leader has read */
	bool		stopped;		/* do the other processes leave the remaining
								 * ranges to the leader? */
	int			nslots;
	ConditionVariable progress; /* any of this has changed */

	GsMergeSlot *slots;
	GsMergeShare shares[FLEXIBLE_ARRAY_MEMBER];
};

/* A range that is being merged. */
typedef struct GsOpenRange
{
	MemoryContext context;
	GsRunRange	range;
	GsRunMerge *merge;			/* NULL if there are no rows */
	char	   *row;			/* the last one */
} GsOpenRange;

struct GsMergeMember
{
	GsSharedMerge *merge;
	const GsSortSpec *spec;
	bool		is_leader;
	GsRunSetHandle set;			/* of all runs */
	MemoryContext context;

	/* All runs, the leader's first, and their files. */
	GsRowFormat *format;
	int			nruns;
	GsSharedRun *runs;
	GsSortedRun *files;			/* the first one of a process owns the file */
	int64		nrows;

	GsRunRanges *ranges;
	int			nranges;
	GsBudget   *budget;
	Size		piece_bytes;

	/* In the leader. */
	int			reading;		/* number of the range, or -1 */
	int64		nreturned;		/* rows of it, unless it was left, and of all
								 * ranges before */
	const GsRangePiece *piece;	/* of it, or if it was left: */
	GsOpenRange *left;
	int			nleft;			/* ranges that were left */
	int64		longest;		/* rows of the longest range that was not */

	int64		nmerged;		/* rows of ranges that were merged here */
	double		wait_ms;		/* for ranges that are read, or to merge them */
};

/* ----------------------------------------------------------------
 *		beginning
 * ----------------------------------------------------------------
 */

static Size
bytes_of_struct(int processes)
{
	return MAXALIGN(sizeof(GsSharedMerge) + processes * sizeof(GsMergeShare));
}

Size
gpusort_shared_merge_size(int processes)
{
	return bytes_of_struct(processes) +
		processes * SLOTS_PER_PROCESS * sizeof(GsMergeSlot);
}

GsSharedMerge *
gpusort_shared_merge_init(void *memory, GsSharedBudget *budget, const GsSortSpec *spec)
{
	GsSharedMerge *merge = memory;
	int			processes = spec->processes;

	memset(merge, 0, gpusort_shared_merge_size(processes));
	merge->budget = budget;
	merge->memory = gpusort_sort_spec_memory(spec);
	merge->nshares = processes;
	pg_atomic_init_u32(&merge->nranges, 0);
	SpinLockInit(&merge->mutex);
	merge->nslots = processes * SLOTS_PER_PROCESS;
	ConditionVariableInit(&merge->progress);
	merge->slots = (GsMergeSlot *) ((char *) memory + bytes_of_struct(processes));
	return merge;
}

GsMergeMember *
gpusort_merge_member_create(GsSharedMerge *merge, const GsSortSpec *spec, GsRunSetHandle set)
{
	GsMergeMember *member = palloc0(sizeof(GsMergeMember));

	Assert(spec->process < merge->nshares);
	member->merge = merge;
	member->spec = spec;
	member->is_leader = spec->team == NULL;
	member->set = set;
	member->context = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort shared merge",
											ALLOCSET_DEFAULT_SIZES);
	member->reading = -1;
	return member;
}

/* ----------------------------------------------------------------
 *		the runs of all processes
 * ----------------------------------------------------------------
 */

/*
 * Copy bytes to where all processes can read them.  They are a small part of the runs, and do not
 * count.
 */
static void *
publish_bytes(GsBudget *budget, const void *data, Size bytes)
{
	void	   *copy = gpusort_budget_alloc(budget, Max(bytes, 1));

	/* What earlier sorts have left may be in the way. */
	if (copy == NULL)
	{
		gpusort_budget_make_room(bytes);
		copy = gpusort_budget_alloc(budget, Max(bytes, 1));
	}
	if (copy == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("A sort by parallel processes has no memory for the indexes of its runs.")));
	return memcpy(copy, data, bytes);
}

/* Let other processes find the runs of this one. */
static void
publish_runs(GsMergeMember *member, GsExternalSort *external)
{
	GsMergeShare *share = &member->merge->shares[member->spec->process];
	int			nruns = gpusort_external_runs(external);
	GsSharedRun *runs = palloc0(Max(nruns, 1) * sizeof(GsSharedRun));

	for (int r = 0; r < nruns; r++)
	{
		GsRunIndex *index = &runs[r].index;

		gpusort_external_describe_run(external, r, &runs[r]);
		index->blocks = publish_bytes(member->budget, index->blocks,
									  index->nblocks * sizeof(GsBlockEntry));
		index->samples = publish_bytes(member->budget, index->samples,
									   index->sample_bytes);
	}
	share->runs = publish_bytes(member->budget, runs,
								nruns * sizeof(GsSharedRun));
	share->nruns = nruns;
	share->file_kb = gpusort_external_kb(external);
	pfree(runs);
}

/* Open the file of a process, to which several runs belong. */
static GsExtentFile *
open_file(const GsMergeMember *member, const GsSharedRun *run)
{
	return gpusort_extent_file_open(run->extent_bytes, member->set,
									run->producer);
}

/* After all processes have published their runs: collect and open them. */
static void
collect_runs(GsMergeMember *member)
{
	const GsSharedMerge *merge = member->merge;
	int			n = 0;

	for (int p = 0; p < merge->nshares; p++)
		n += merge->shares[p].nruns;
	member->nruns = n;
	member->runs = palloc0(Max(n, 1) * sizeof(GsSharedRun));
	member->files = palloc0(Max(n, 1) * sizeof(GsSortedRun));
	n = 0;
	for (int p = 0; p < merge->nshares; p++)
	{
		const GsMergeShare *share = &merge->shares[p];
		GsExtentFile *file = NULL;

		for (int r = 0; r < share->nruns; r++, n++)
		{
			member->runs[n] = share->runs[r];
			if (file == NULL)
				file = open_file(member, &share->runs[r]);
			member->files[n].file = file;
			member->files[n].owns_file = r == 0;
			member->files[n].frozen = true;
			member->files[n].longest_block = share->runs[r].longest_block;
			member->nrows += share->runs[r].nrows;
		}
	}
}

/* Returns how many bytes a range should have. */
static Size
choose_range_bytes(const GsMergeMember *member)
{
	Size		memory = member->merge->memory;
	Size		bytes = (Size) member->nruns * BLOCKS_PER_RANGE *
		gpusort_run_file_reader_bytes(memory, true);

	return Max(Min(bytes, memory / RANGE_PART), MIN_RANGE_BYTES);
}

/* Returns how many bytes the rows of all runs take in memory. */
static uint64
estimate_bytes(const GsMergeMember *member)
{
	const GsRowFormat *format = member->format;
	uint64		fixed = (uint64) member->nrows * format->packed_bytes;
	uint64		variable = member->nrows * sizeof(char *);

	for (int r = 0; r < member->nruns; r++)
		variable += member->runs[r].bytes;
	return format->variable ? fixed + variable : fixed;
}

/* All processes must come to the same ranges. */
static void
check_ranges(const GsMergeMember *member)
{
	uint32		first = 0;

	if (!pg_atomic_compare_exchange_u32(&member->merge->nranges, &first, member->nranges) &&
		first != (uint32) member->nranges)
		elog(ERROR, "processes have divided the rows of a sort into %u and %d ranges",
			 first, member->nranges);
}

/*
 * Divide the rows into ranges.  If rows are so long that there are few samples, ranges may not
 * fit in memory.
 */
static void
split_runs(GsMergeMember *member)
{
	uint64		bytes = estimate_bytes(member);
	Size		range_bytes = choose_range_bytes(member);
	uint64		nranges;

	nranges = Max(bytes / range_bytes,
				  Min((uint64) member->merge->nshares * RANGES_PER_PROCESS,
					  bytes / MIN_RANGE_BYTES));
	nranges = Min(nranges + 1, INT_MAX / 2);
	member->ranges = gpusort_run_ranges_create(member->spec, member->format,
											   member->runs, member->files,
											   member->nruns, (int) nranges);
	member->nranges = gpusort_run_ranges_count(member->ranges);
	check_ranges(member);
	member->piece_bytes = Min(range_bytes / PIECE_PART, MAX_PIECE_BYTES);
}

/* ----------------------------------------------------------------
 *		merging ranges
 * ----------------------------------------------------------------
 */

/* Begin to merge a range. */
static GsOpenRange *
begin_open_range(GsMergeMember *member, int range)
{
	MemoryContext context = AllocSetContextCreate(member->context,
												  "pg_gpusort range",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsOpenRange *open = palloc0(sizeof(GsOpenRange));

	open->context = context;
	gpusort_run_ranges_get(member->ranges, range, &open->range);
	if (open->range.nslices > 0)
		open->merge = gpusort_run_merge_begin_range(member->spec, member->format,
													&open->range);
	MemoryContextSwitchTo(caller);
	return open;
}

/* Go to the next row of it, in the packed form.  Returns false if there is none. */
static bool
read_open_range(GsOpenRange *open)
{
	MemoryContext caller;
	bool		has_row;

	if (open->merge == NULL)
		return false;
	caller = MemoryContextSwitchTo(open->context);
	has_row = gpusort_run_merge_next(open->merge);
	if (has_row)
		open->row = gpusort_run_merge_packed_row(open->merge);
	MemoryContextSwitchTo(caller);
	return has_row;
}

static void
finish_open_range(GsOpenRange *open)
{
	MemoryContextDelete(open->context);
}

/* Merge a range into pieces.  Returns false if there is no memory for its rows. */
static bool
merge_range(GsMergeMember *member, int range, GsRangePiece **pieces)
{
	GsOpenRange *open = begin_open_range(member, range);
	GsPieceWriter writer;
	bool		fits = true;
	int64		nrows = 0;

	gpusort_piece_writer_begin(&writer, member->format, member->budget,
							   member->piece_bytes, pieces);
	while (fits && read_open_range(open))
	{
		fits = gpusort_piece_writer_put(&writer, open->row);
		nrows++;
	}
	gpusort_piece_writer_end(&writer);
	if (fits)
		member->nmerged += nrows;
	finish_open_range(open);
	return fits;
}

/*
 * Take the next range.  Returns -1 if there is none now, and sets *end to whether there will
 * be none later.  The leader takes ranges also after the others have been stopped.
 */
static int
take_range(GsMergeMember *member, bool *end)
{
	GsSharedMerge *merge = member->merge;
	int			range = -1;

	SpinLockAcquire(&merge->mutex);
	*end = merge->next_range >= member->nranges ||
		(merge->stopped && !member->is_leader);
	if (!*end && merge->next_range < merge->nread + merge->nslots)
		range = merge->next_range++;
	SpinLockRelease(&merge->mutex);
	return range;
}

/* Merge a range that this process has taken into its slot. */
static void
fill_slot(GsMergeMember *member, int range)
{
	GsSharedMerge *merge = member->merge;
	GsMergeSlot *slot = &merge->slots[range % merge->nslots];
	bool		fits = merge_range(member, range, &slot->pieces);

	SpinLockAcquire(&merge->mutex);
	slot->left = !fits;
	slot->ready = range + 1;
	SpinLockRelease(&merge->mutex);
	ConditionVariableBroadcast(&merge->progress);
}

/* Merge ranges until there are none left. */
static void
merge_ranges(GsMergeMember *member)
{
	bool		end = false;

	while (!end)
	{
		int			range = take_range(member, &end);

		if (range >= 0)
		{
			ConditionVariableCancelSleep();
			fill_slot(member, range);
		}
		else if (!end)
			ConditionVariableSleep(&member->merge->progress, gpusort_shared_wait_event());
	}
	ConditionVariableCancelSleep();
}

/* Returns how many runs each process may have, so that a merge has memory for all blocks. */
static int
runs_of_process(const GsSharedMerge *merge)
{
	Size		blocks = merge->memory / BLOCKS_PART /
		gpusort_run_file_reader_bytes(merge->memory, true);

	return (int) Max(Min(blocks, INT_MAX) / merge->nshares, 1);
}

void
gpusort_merge_reduce_runs(const GsSharedMerge *merge, GsExternalSort *external)
{
	gpusort_external_reduce_runs(external, runs_of_process(merge));
}

void
gpusort_merge_member_publish(GsMergeMember *member, GsExternalSort *external,
							 GsFallback overflow)
{
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	member->merge->shares[member->spec->process].overflow = overflow;
	member->format = gpusort_row_format_create(member->spec);
	member->budget = gpusort_budget_create_shared(member->merge->budget);
	gpusort_budget_set_published(member->budget, true);
	publish_runs(member, external);
	MemoryContextSwitchTo(caller);
}

void
gpusort_merge_member_open(GsMergeMember *member)
{
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	collect_runs(member);
	if (member->nrows > 0)
		split_runs(member);
	MemoryContextSwitchTo(caller);
}

void
gpusort_merge_member_merge(GsMergeMember *member)
{
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	if (!member->is_leader)
		merge_ranges(member);
	MemoryContextSwitchTo(caller);
}

/* ----------------------------------------------------------------
 *		reading, in the leader
 * ----------------------------------------------------------------
 */

static bool
is_ready(GsSharedMerge *merge, int range)
{
	bool		ready;

	SpinLockAcquire(&merge->mutex);
	ready = merge->slots[range % merge->nslots].ready == range + 1;
	SpinLockRelease(&merge->mutex);
	return ready;
}

/* Merge other ranges until this one is ready, or wait for the process that merges it. */
static void
wait_for_range(GsMergeMember *member, int range)
{
	GsSharedMerge *merge = member->merge;

	while (!is_ready(merge, range))
	{
		bool		end;
		int			other = take_range(member, &end);

		if (other >= 0)
		{
			ConditionVariableCancelSleep();
			fill_slot(member, other);
		}
		else
			ConditionVariableSleep(&merge->progress, gpusort_shared_wait_event());
	}
	ConditionVariableCancelSleep();
}

/* All rows of the range that is read have been read. */
static void
end_range(GsMergeMember *member)
{
	GsSharedMerge *merge = member->merge;

	SpinLockAcquire(&merge->mutex);
	merge->nread++;
	SpinLockRelease(&merge->mutex);
	ConditionVariableBroadcast(&merge->progress);
}

/* Returns the number of rows in the pieces of a range. */
static int64
count_rows(const GsRangePiece *piece)
{
	int64		nrows = 0;

	for (; piece != NULL && piece->range.nrows > 0; piece = piece->next)
		nrows += piece->range.nrows;
	return nrows;
}

/*
 * Count the rows of the range that is read.  Where it ends, one process has found out, and where
 * the next one begins, another: no row must be in both or in neither.
 */
static void
add_rows(GsMergeMember *member, int64 nrows)
{
	member->longest = Max(member->longest, nrows);
	member->nreturned += nrows;
	if (member->reading == member->nranges - 1 && member->nreturned != member->nrows)
		elog(ERROR, "merged runs have " INT64_FORMAT " instead of " INT64_FORMAT " rows",
			 member->nreturned, member->nrows);
}

/* Go to the next range. */
static void
begin_next_range(GsMergeMember *member)
{
	GsSharedMerge *merge = member->merge;
	MemoryContext caller = MemoryContextSwitchTo(member->context);
	const GsMergeSlot *slot;
	instr_time	start;
	instr_time	end;

	if (member->reading >= 0)
		end_range(member);
	if (++member->reading >= member->nranges)
		elog(ERROR, "merged runs have fewer rows than they should");
	INSTR_TIME_SET_CURRENT(start);
	wait_for_range(member, member->reading);
	slot = &merge->slots[member->reading % merge->nslots];
	if (slot->left)
	{
		member->left = begin_open_range(member, member->reading);
		member->nleft++;
	}
	else
	{
		member->piece = slot->pieces;
		add_rows(member, count_rows(member->piece));
	}
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	member->wait_ms += INSTR_TIME_GET_MILLISEC(end);
	MemoryContextSwitchTo(caller);
}

/* Sets *rows to the next row of a range that was left.  Returns false if there is none. */
static bool
next_row_left(GsMergeMember *member, GsSortedRange *rows)
{
	GsOpenRange *open = member->left;

	if (!read_open_range(open))
	{
		finish_open_range(open);
		member->left = NULL;
		return false;
	}
	member->nmerged++;
	member->nreturned++;
	memset(rows, 0, sizeof(*rows));
	rows->nrows = 1;
	rows->packed = true;
	if (member->format->variable)
		rows->rows = &open->row;
	else
		rows->slots = open->row;
	return true;
}

/* Sets *rows to the next rows of the range that is read.  Returns false if there are none. */
static bool
next_rows(GsMergeMember *member, GsSortedRange *rows)
{
	const GsRangePiece *piece = member->piece;

	if (member->left != NULL)
		return next_row_left(member, rows);
	if (piece == NULL || piece->range.nrows == 0)
		return false;
	*rows = piece->range;
	member->piece = piece->next;
	return true;
}

/* GsRangeSeek: positions ascend. */
static void
seek_forward(GsRangeReader *reader, int64 position)
{
	GsMergeMember *member = reader->arg;

	Assert(position >= reader->start);
	while (position - reader->start >= reader->range.nrows)
	{
		reader->start += reader->range.nrows;
		while (!next_rows(member, &reader->range))
			begin_next_range(member);
	}
}

GsRangeReader *
gpusort_merge_member_read(GsMergeMember *member)
{
	return gpusort_range_reader_create(member->spec, member->nrows, seek_forward,
									   member);
}

void
gpusort_merge_member_end(GsMergeMember *member)
{
	for (int r = 0; r < member->nruns; r++)
		if (member->files[r].owns_file)
			gpusort_extent_file_close(member->files[r].file);
	if (member->is_leader && member->nruns > 0)
		elog(DEBUG1, "merged %d runs in %d ranges of " INT64_FORMAT " rows, the longest of "
			 INT64_FORMAT "; %d found no shared memory",
			 member->nruns, member->nranges, member->nrows / Max(member->nranges, 1),
			 member->longest, member->nleft);
	member->nruns = 0;
}

void
gpusort_shared_merge_stop(GsSharedMerge *merge)
{
	SpinLockAcquire(&merge->mutex);
	merge->stopped = true;
	SpinLockRelease(&merge->mutex);
	ConditionVariableBroadcast(&merge->progress);
}

/* ----------------------------------------------------------------
 *		reports
 * ----------------------------------------------------------------
 */

/* The kB that all processes have on disk. */
static int64
kb_of_all(const GsSharedMerge *merge)
{
	int64		kb = 0;

	for (int p = 0; p < merge->nshares; p++)
		kb += merge->shares[p].file_kb;
	return kb;
}

void
gpusort_merge_member_report(const GsMergeMember *member, GsSortReport *report)
{
	const GsSortSpec *spec = member->spec;

	report->kind = GS_KIND_EXTERNAL;
	report->space = GS_SPACE_DISK;
	report->space_kb = spec->team != NULL ? member->merge->shares[spec->process].file_kb :
		kb_of_all(member->merge);
	report->range_rows = member->nmerged;
	report->fetch_ms = member->wait_ms;
	snprintf(report->method, sizeof(report->method), "%s, shared",
			 tuplesort_method_name(SORT_TYPE_EXTERNAL_MERGE));
}

GsFallback
gpusort_shared_merge_overflow(const GsSharedMerge *merge)
{
	for (int p = 0; p < merge->nshares; p++)
		if (merge->shares[p].overflow != GS_FALLBACK_NONE)
			return merge->shares[p].overflow;
	return GS_FALLBACK_NONE;
}
