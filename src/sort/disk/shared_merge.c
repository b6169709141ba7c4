/*-------------------------------------------------------------------------
 *
 * shared_merge.c
 *		Merges the runs of several processes, by all of these processes.
 *
 * shared_ranges.c decides who merges which range, and reads them.  There are a few slots for each
 * process.  If there was no memory for the rows of a range, the leader merges it again, and reads
 * the rows one by one.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "sort/disk/run_merge.h"
#include "sort/disk/shared_merge.h"

/*
 * Half of the memory of each process is for ranges, and half for a block of each run.  A
 * range that has several blocks of each run reads few rows of others.
 */
#define SLOTS_PER_PROCESS	2
#define RANGE_DIVISOR			4
#define BLOCKS_DIVISOR			2
#define BLOCKS_PER_RANGE	4
#define MIN_RANGE_BYTES		((Size) 64 * 1024)

/* Also, there are this many ranges for each process, so that all end at about the same time. */
#define RANGES_PER_PROCESS	8

/* The size of a piece: this part of its range, but at most MAX_PIECE_BYTES. */
#define PIECE_DIVISOR			4
#define MAX_PIECE_BYTES		((Size) 256 * 1024)

/* The runs of a process. */
typedef struct GsMergeShare
{
	int			nruns;
	GsSortedRun *runs;
	Size		extent_bytes;	/* of their file */
	int64		file_kb;
	GsReason	overflow;
} GsMergeShare;

struct GsSharedMerge
{
	GsSharedBudget *budget;
	GsSharedRanges *ranges;
	Size		memory;			/* of each process, as the leader has it: all
								 * must divide the rows alike */
	int			nshares;
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
	FileSet		set;			/* of all runs */
	MemoryContext context;

	/* All runs, the leader's first, and the file of each process, or NULL. */
	GsRowFormat *format;
	int			nruns;
	GsSortedRun *runs;
	GsExtentFile **files;
	int64		nrows;

	GsRunRanges *ranges;		/* NULL until all runs are published */
	GsBudget   *budget;
	Size		piece_bytes;
	GsRunWindows windows;		/* for one range after the other */
	GsRanges   *to_merge;
	GsOpenRange *left;			/* the range that this process reads without a
								 * copy */
	int64		nmerged;		/* rows of ranges that were merged here */
};

/* ----------------------------------------------------------------
 *		beginning
 * ----------------------------------------------------------------
 */

Size
gpusort_shared_merge_size(int processes)
{
	return MAXALIGN(sizeof(GsSharedMerge) + processes * sizeof(GsMergeShare));
}

GsSharedMerge *
gpusort_shared_merge_init(void *memory, GsSharedBudget *budget, GsSharedRanges *ranges,
						  const GsSortSpec *spec)
{
	GsSharedMerge *merge = memory;

	memset(merge, 0, gpusort_shared_merge_size(spec->processes));
	merge->budget = budget;
	merge->ranges = ranges;
	merge->memory = gpusort_sort_spec_memory(spec);
	merge->nshares = spec->processes;
	return merge;
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
publish_runs(GsMergeMember *member, const GsCpuSort *sort)
{
	GsMergeShare *share = &member->merge->shares[member->spec->process];
	int			nruns = list_length(sort->runs);
	GsSortedRun *runs = palloc0(Max(nruns, 1) * sizeof(GsSortedRun));

	for (int r = 0; r < nruns; r++)
	{
		GsRunIndex *index = &runs[r].index;

		runs[r] = *(const GsSortedRun *) list_nth(sort->runs, r);
		index->blocks = publish_bytes(member->budget, index->blocks,
									  index->nblocks * sizeof(GsBlockEntry));
		index->samples = publish_bytes(member->budget, index->samples,
									   index->sample_bytes);
	}
	share->runs = publish_bytes(member->budget, runs,
								nruns * sizeof(GsSortedRun));
	share->nruns = nruns;
	share->extent_bytes = sort->reader_bytes;
	share->file_kb = gpusort_run_file_kb(sort->file);
	pfree(runs);
}

/* Add the runs of a process, and open their file. */
static void
collect_runs_of(GsMergeMember *member, int process)
{
	const GsMergeShare *share = &member->merge->shares[process];
	GsRunTarget target = {.files = member->set,.producer = process};

	if (share->nruns > 0)
		member->files[process] = gpusort_extent_file_open(share->extent_bytes, &target);
	for (int r = 0; r < share->nruns; r++)
	{
		GsSortedRun *run = &member->runs[member->nruns++];

		*run = share->runs[r];
		run->file = member->files[process];
		run->frozen = true;
		member->nrows += run->nrows;
	}
}

/* After all processes have published their runs: collect and open them. */
static void
collect_runs(GsMergeMember *member)
{
	const GsSharedMerge *merge = member->merge;
	int			n = 0;

	for (int p = 0; p < merge->nshares; p++)
		n += merge->shares[p].nruns;
	member->runs = palloc(Max(n, 1) * sizeof(GsSortedRun));
	member->files = palloc0(merge->nshares * sizeof(GsExtentFile *));
	for (int p = 0; p < merge->nshares; p++)
		collect_runs_of(member, p);
}

/* Returns how many bytes a range should have. */
static Size
choose_range_bytes(const GsMergeMember *member)
{
	Size		memory = member->merge->memory;
	Size		bytes = (Size) member->nruns * BLOCKS_PER_RANGE *
		gpusort_run_file_reader_bytes(memory, true);

	return Max(Min(bytes, memory / RANGE_DIVISOR), MIN_RANGE_BYTES);
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
	member->ranges = gpusort_run_ranges_create(member->spec,
											   member->runs, member->nruns, (int) nranges);
	member->piece_bytes = Min(range_bytes / PIECE_DIVISOR, MAX_PIECE_BYTES);
	member->windows = gpusort_run_windows_alloc(member->nruns,
												member->merge->memory / BLOCKS_DIVISOR);
}

/* ----------------------------------------------------------------
 *		merging ranges
 * ----------------------------------------------------------------
 */

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
	open->range.windows = member->windows;
	if (open->range.nslices > 0)
		open->merge = gpusort_run_merge_begin(member->spec, member->format, &open->range);
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

/* GsRangeSource.make: merge a range into pieces. */
static bool
merge_range(void *arg, int range, GsRangePiece **pieces)
{
	GsMergeMember *member = arg;
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

/* GsRangeSource.open */
static void
open_range(void *arg, int range)
{
	GsMergeMember *member = arg;

	member->left = begin_open_range(member, range);
}

/* GsRangeSource.next: get the next row. */
static bool
next_row(void *arg, GsRowsInPlace *rows)
{
	GsMergeMember *member = arg;
	GsOpenRange *open = member->left;

	if (!read_open_range(open))
	{
		finish_open_range(open);
		member->left = NULL;
		return false;
	}
	member->nmerged++;
	memset(rows, 0, sizeof(*rows));
	rows->nrows = 1;
	rows->null_offset = member->format->columns_bytes;
	rows->addresses = &open->row;
	return true;
}

static const GsRangeSource range_source = {
	.make = merge_range,
	.open = open_range,
	.next = next_row
};

int
gpusort_shared_merge_most_runs(Size memory, int processes)
{
	Size		blocks = memory / BLOCKS_DIVISOR / gpusort_run_file_reader_bytes(memory, true);

	return (int) Max(Min(blocks, INT_MAX) / processes, 1);
}

void
gpusort_merge_reduce_runs(const GsSharedMerge *merge, GsCpuSort *sort)
{
	int			most = gpusort_shared_merge_most_runs(merge->memory, merge->nshares);

	gpusort_cpu_sort_reduce_runs(sort, most);
}

GsMergeMember *
gpusort_merge_member_create(GsSharedMerge *merge, const GsSortSpec *spec, FileSet set)
{
	GsMergeMember *member = palloc0(sizeof(GsMergeMember));
	MemoryContext caller;

	Assert(spec->process < merge->nshares);
	member->merge = merge;
	member->spec = spec;
	member->set = set;
	member->context = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort shared merge",
											ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(member->context);
	member->format = gpusort_row_format_create(spec);
	member->budget = gpusort_budget_create_shared(merge->budget);
	member->budget->published = true;
	MemoryContextSwitchTo(caller);
	return member;
}

void
gpusort_merge_member_publish(GsMergeMember *member, const GsCpuSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	member->merge->shares[member->spec->process].overflow = sort->overflow;
	publish_runs(member, sort);
	MemoryContextSwitchTo(caller);
}

/* Find all runs, and divide them into ranges. */
static void
divide_runs(GsMergeMember *member)
{
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	collect_runs(member);
	split_runs(member);
	MemoryContextSwitchTo(caller);
}

/* Divide the runs of this merge, and if it is one of a pair, those of the other merge. */
static void
make_ranges(GsMergeMember *member, GsMergeMember *second)
{
	if (member->ranges != NULL)
		return;
	divide_runs(member);
	if (second == NULL)
		return;
	divide_runs(second);
	gpusort_run_ranges_unite(member->ranges, second->ranges);
}

GsRanges *
gpusort_merge_member_open(GsMergeMember *member, GsMergeMember *second)
{
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	make_ranges(member, second);
	member->to_merge =
		gpusort_ranges_create(member->merge->ranges, member->spec, &range_source, member,
							  gpusort_run_ranges_count(member->ranges),
							  member->merge->nshares * SLOTS_PER_PROCESS, member->nrows);
	MemoryContextSwitchTo(caller);
	return member->to_merge;
}

void
gpusort_merge_member_end(GsMergeMember *member)
{
	const GsRanges *ranges = member->to_merge;

	for (int p = 0; member->nruns > 0 && p < member->merge->nshares; p++)
		if (member->files[p] != NULL)
			gpusort_extent_file_close(member->files[p]);
	if (member->spec->team == NULL && member->nruns > 0)
		elog(DEBUG1, "merged %d runs in %d ranges of " INT64_FORMAT " rows, the longest of "
			 INT64_FORMAT "; %d found no shared memory",
			 member->nruns, ranges->nranges, member->nrows / Max(ranges->nranges, 1),
			 ranges->longest, ranges->nleft);
	member->nruns = 0;
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
	report->space_kb = spec->team != NULL ? member->merge->shares[spec->process].file_kb :
		kb_of_all(member->merge);
	report->range_rows = member->nmerged;
	snprintf(report->method, sizeof(report->method), "%s, shared",
			 tuplesort_method_name(SORT_TYPE_EXTERNAL_MERGE));
}

GsReason
gpusort_shared_merge_overflow(const GsSharedMerge *merge)
{
	for (int p = 0; p < merge->nshares; p++)
		if (merge->shares[p].overflow != GS_REASON_NONE)
			return merge->shares[p].overflow;
	return GS_REASON_NONE;
}
