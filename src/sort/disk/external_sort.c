/*-------------------------------------------------------------------------
 *
 * external_sort.c
 *		Keeps the rows of a sort on disk as sorted runs, and merges the runs.
 *
 * We keep the runs in the order in which their rows arrived and merge only
 * neighbours, so that the whole sort is stable.
 *
 * If the rows are read only once and forward, the last merge returns them as it
 * proceeds.  Otherwise it writes another run, and a cursor moves over that.  Each block has the
 * addresses of its neighbours, so that the cursor can move from block to block in both directions.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "sort/base/budget.h"
#include "sort/base/dense_row.h"
#include "sort/disk/external_sort.h"
#include "sort/disk/run_merge.h"
#include "sort/disk/sorted_run.h"

/* At least this many runs are merged at a time, even with little memory. */
#define MIN_MERGE_ORDER		6

/* A run that waits to be merged takes this much memory; all take this fraction. */
#define WAITING_RUN_BYTES	256
#define WAITING_PART		8

/* Where a block of the run is. */
typedef struct GsBlockAddress
{
	int64		first_row;		/* position of its first row */
	GsExtent	extent;
} GsBlockAddress;

/* A cursor that moves over a run in both directions.  One block of the run is in memory. */
typedef struct GsRunCursor
{
	const GsRowFormat *format;
	GsSortedRun *run;
	GsBlockAddress address;		/* of the block in memory */
	GsBlockAddress start;		/* of the run's first block */
	GsBlockAddress marked;
	GsRunBlock *block;
	GsBlockRows rows;
	GsRowBuffer buffer;			/* for the row that was read last */
} GsRunCursor;

struct GsExternalSort
{
	MemoryContext context;
	const GsSortSpec *spec;
	GsRowFormat *format;
	GsRunFile  *file;
	Size		reader_bytes;	/* memory to read a run */
	int			merge_order;	/* number of runs merged at a time */
	int			max_runs;		/* number that may wait */
	GsSortedRun **runs;
	int			nruns;
	int			size_of_runs;	/* allocated length of 'runs' */
	int64		nrows;

	/* After performing, there is either a merge or a cursor. */
	MemoryContext merge_context;
	GsRunMerge *merge;
	int64		next_position;	/* of the next row of the merge */
	GsRunCursor *cursor;
};

GsExternalSort *
gpusort_external_begin(const GsSortSpec *spec, Size limit,
					   const GsRunTarget *target)
{
	GsExternalSort *sort = palloc0(sizeof(GsExternalSort));
	Size		order;

	sort->context = CurrentMemoryContext;
	sort->spec = spec;
	sort->format = gpusort_row_format_create(spec);
	sort->file = gpusort_run_file_create(spec, sort->format, limit, target);
	sort->reader_bytes = gpusort_run_file_reader_bytes(limit, target != NULL);
	order = limit / sort->reader_bytes;
	sort->merge_order = Max(order, MIN_MERGE_ORDER);
	sort->max_runs = Max(limit / WAITING_PART / WAITING_RUN_BYTES,
						 2 * sort->merge_order);
	sort->size_of_runs = 16;
	sort->runs = palloc(sort->size_of_runs * sizeof(GsSortedRun *));
	return sort;
}

int
gpusort_external_runs(const GsExternalSort *sort)
{
	return sort->nruns;
}

void
gpusort_external_describe_run(const GsExternalSort *sort, int index,
							  GsSharedRun *run)
{
	gpusort_sorted_run_share(sort->runs[index], sort->file, run);
}

int64
gpusort_external_count(const GsExternalSort *sort)
{
	return sort->nrows;
}

void
gpusort_external_begin_run(GsExternalSort *sort)
{
	gpusort_run_file_begin(sort->file);
}

void
gpusort_external_put(GsExternalSort *sort, const Datum *values,
					 const bool *isnull)
{
	gpusort_run_file_put(sort->file, values, isnull);
}

char *
gpusort_external_reserve(GsExternalSort *sort, Size bytes)
{
	return gpusort_run_file_reserve(sort->file, bytes);
}

static void
insert_run(GsExternalSort *sort, GsSortedRun *run, int index)
{
	if (sort->nruns == sort->size_of_runs)
	{
		sort->size_of_runs *= 2;
		sort->runs = repalloc_huge(sort->runs, sort->size_of_runs *
								   sizeof(GsSortedRun *));
	}
	memmove(&sort->runs[index + 1], &sort->runs[index],
			(sort->nruns - index) * sizeof(GsSortedRun *));
	sort->runs[index] = run;
	sort->nruns++;
}

void
gpusort_external_end_run(GsExternalSort *sort, int index)
{
	GsSortedRun *run = gpusort_run_file_end(sort->file, false);

	Assert(index <= sort->nruns);
	if (run == NULL)
		return;
	sort->nrows += run->nrows;
	insert_run(sort, run, index);
}

/* ----------------------------------------------------------------
 *		merging
 * ----------------------------------------------------------------
 */

/* Begin to merge some runs. */
static void
begin_merge(GsExternalSort *sort, int first, int nruns)
{
	MemoryContext caller;

	gpusort_budget_make_room(nruns * sort->reader_bytes);
	sort->merge_context = AllocSetContextCreate(sort->context,
												"pg_gpusort merge",
												ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(sort->merge_context);
	sort->merge = gpusort_run_merge_begin(sort->spec, sort->format,
										  &sort->runs[first], nruns);
	MemoryContextSwitchTo(caller);
}

/* End the merge, and replace the runs by the one merged from them. */
static void
end_merge(GsExternalSort *sort, int first, int nruns, GsSortedRun *merged)
{
	MemoryContextDelete(sort->merge_context);
	sort->merge_context = NULL;
	sort->merge = NULL;
	for (int i = first; i < first + nruns; i++)
	{
		merged->level = Max(merged->level, sort->runs[i]->level + 1);
		gpusort_sorted_run_free(sort->runs[i]);
	}
	memmove(&sort->runs[first], &sort->runs[first + nruns],
			(sort->nruns - first - nruns) * sizeof(GsSortedRun *));
	sort->nruns -= nruns;
	insert_run(sort, merged, first);
}

/* Replace some runs by a single one.  If it is to 'freeze', it can be read any number of times. */
static void
merge_runs(GsExternalSort *sort, int first, int nruns, bool freeze)
{
	begin_merge(sort, first, nruns);
	gpusort_run_file_begin(sort->file);
	while (gpusort_run_merge_next(sort->merge))
	{
		Size		bytes;
		const char *row = gpusort_run_merge_dense_row(sort->merge, &bytes);

		gpusort_run_file_put_dense(sort->file, row, bytes);
	}
	end_merge(sort, first, nruns, gpusort_run_file_end(sort->file, freeze));
}

/* Returns the index of the first of the 'nruns' neighbours with the fewest bytes. */
static int
find_smallest(const GsExternalSort *sort, int nruns)
{
	uint64		bytes = 0;
	uint64		fewest = PG_UINT64_MAX;
	int			smallest = 0;

	for (int i = 0; i < sort->nruns; i++)
	{
		bytes += sort->runs[i]->bytes;
		if (i >= nruns)
			bytes -= sort->runs[i - nruns]->bytes;
		if (i >= nruns - 1 && bytes < fewest)
		{
			fewest = bytes;
			smallest = i - nruns + 1;
		}
	}
	return smallest;
}

/*
 * Choose merge_order neighbours to merge, and return the index of the first one.
 * They must have been merged equally often, and less often than others of which this
 * is true.  This ensures that no row takes part in many more merges than others.  If
 * there are no such neighbours, choose those with the fewest bytes.
 */
static int
find_level(const GsExternalSort *sort)
{
	int			found = -1;
	int			alike = 0;

	for (int i = 0; i < sort->nruns; i++)
	{
		int			level = sort->runs[i]->level;

		alike = i > 0 && sort->runs[i - 1]->level == level ? alike + 1 : 1;
		if (alike == sort->merge_order &&
			(found < 0 || level < sort->runs[found]->level))
			found = i - sort->merge_order + 1;
	}
	return found >= 0 ? found : find_smallest(sort, sort->merge_order);
}

void
gpusort_external_reduce_runs(GsExternalSort *sort, int most)
{
	while (sort->nruns > most)
	{
		int			nruns = Min(sort->merge_order, sort->nruns - most + 1);

		merge_runs(sort, find_smallest(sort, nruns), nruns, false);
	}
}

void
gpusort_external_limit_runs(GsExternalSort *sort)
{
	if (sort->nruns >= sort->max_runs)
		merge_runs(sort, find_level(sort), sort->merge_order, false);
}

/* ----------------------------------------------------------------
 *		cursor
 * ----------------------------------------------------------------
 */

/* Read the block in 'extent'.  Its first row has the position 'first_row'. */
static void
read_block(GsRunCursor *cursor, GsExtent extent, int64 first_row)
{
	if (extent == GPUSORT_NO_EXTENT)
		elog(ERROR, "a sorted run has no block next to row " INT64_FORMAT,
			 cursor->address.first_row);
	cursor->address.first_row = first_row;
	cursor->address.extent = extent;
	gpusort_sorted_run_seek(cursor->run, extent);
	gpusort_sorted_run_read(cursor->run, cursor->block);
	gpusort_block_rows_find(&cursor->rows, cursor->block, cursor->format, &cursor->buffer);
}

static void
go_to_block(GsRunCursor *cursor, GsBlockAddress address)
{
	if (address.first_row != cursor->address.first_row)
		read_block(cursor, address.extent, address.first_row);
}

static void
go_to_next_block(GsRunCursor *cursor)
{
	read_block(cursor, cursor->block->next,
			   cursor->address.first_row + cursor->block->nrows);
}

static void
go_to_previous_block(GsRunCursor *cursor)
{
	int64		behind = cursor->address.first_row;

	read_block(cursor, cursor->block->previous, behind);
	cursor->address.first_row = behind - cursor->block->nrows;
}

/* Open a cursor, in the current memory context, over a run that is frozen. */
static GsRunCursor *
make_cursor(const GsRowFormat *format, GsSortedRun *run)
{
	GsRunCursor *cursor = palloc0(sizeof(GsRunCursor));

	cursor->buffer.context = CurrentMemoryContext;
	cursor->format = format;
	cursor->run = run;
	cursor->block = gpusort_sorted_run_alloc_block(run);
	read_block(cursor, run->first, 0);
	cursor->start = cursor->marked = cursor->address;
	return cursor;
}

static inline int64
distance_to(const GsBlockAddress *address, int64 position)
{
	return position < address->first_row ? address->first_row - position :
		position - address->first_row;
}

/* Go to the first or the marked block if it is nearer than the current one. */
static void
jump(GsRunCursor *cursor, int64 position)
{
	if (distance_to(&cursor->marked, position) <
		distance_to(&cursor->address, position))
		go_to_block(cursor, cursor->marked);
	if (position < distance_to(&cursor->address, position))
		go_to_block(cursor, cursor->start);
}

/*
 * Return the row at a position, counted from 0, in the packed form.  It is valid until the next
 * call.  Moving to the next or the previous row is fast.  To get to another row, the cursor reads
 * all blocks from the current, the first or the marked row, whichever is nearest.
 */
static char *
get_by_cursor(GsRunCursor *cursor, int64 position)
{
	int64		index = position - cursor->address.first_row;
	Size		bytes;

	if (index < 0 || index >= cursor->block->nrows)
	{
		Assert(position >= 0 && position < cursor->run->nrows);
		jump(cursor, position);
		while (position < cursor->address.first_row)
			go_to_previous_block(cursor);
		while (position - cursor->address.first_row >= cursor->block->nrows)
			go_to_next_block(cursor);
		index = position - cursor->address.first_row;
	}
	return gpusort_dense_row_expand_fast(cursor->format,
										 (char *) cursor->block +
										 cursor->rows.offsets[index],
										 &cursor->buffer, &bytes);
}

/* ----------------------------------------------------------------
 *		performing
 * ----------------------------------------------------------------
 */

/* Open a cursor over the only run, which is frozen. */
static void
open_cursor(GsExternalSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	sort->cursor = make_cursor(sort->format, sort->runs[0]);
	MemoryContextSwitchTo(caller);
}

/* Merge everything into a single run, and open a cursor over it. */
static void
begin_cursor(GsExternalSort *sort)
{
	merge_runs(sort, 0, sort->nruns, true);
	open_cursor(sort);
}

void
gpusort_external_read_run(GsExternalSort *sort)
{
	GsSortedRun *run = gpusort_run_file_end(sort->file, true);

	if (run == NULL)
		return;
	sort->nrows = run->nrows;
	insert_run(sort, run, 0);
	open_cursor(sort);
}

void
gpusort_external_perform(GsExternalSort *sort)
{
	gpusort_external_reduce_runs(sort, sort->merge_order);
	if (sort->nruns == 0)
		return;
	if (sort->spec->random_access)
		begin_cursor(sort);
	else
	{
		gpusort_run_file_forget_room(sort->file);
		begin_merge(sort, 0, sort->nruns);
	}
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

static char *
get_merged(GsExternalSort *sort, int64 position)
{
	Assert(position >= sort->next_position);
	do
	{
		if (!gpusort_run_merge_next(sort->merge))
			elog(ERROR, "sorted runs have no row " INT64_FORMAT,
				 sort->next_position);
	} while (sort->next_position++ < position);
	return gpusort_run_merge_packed_row(sort->merge);
}

void
gpusort_external_get(GsExternalSort *sort, int64 position, Datum *values,
					 bool *isnull)
{
	char	   *row = sort->cursor != NULL ?
		get_by_cursor(sort->cursor, position) :
		get_merged(sort, position);

	gpusort_row_format_unpack(sort->format, row, values, isnull);
}

void
gpusort_external_mark(GsExternalSort *sort)
{
	if (sort->cursor != NULL)
		sort->cursor->marked = sort->cursor->address;
}

/* ----------------------------------------------------------------
 *		report and end
 * ----------------------------------------------------------------
 */

const char *
gpusort_external_method(const GsExternalSort *sort)
{
	return tuplesort_method_name(sort->cursor != NULL ?
								 SORT_TYPE_EXTERNAL_SORT :
								 SORT_TYPE_EXTERNAL_MERGE);
}

int64
gpusort_external_kb(const GsExternalSort *sort)
{
	return gpusort_run_file_kb(sort->file);
}

void
gpusort_external_end(GsExternalSort *sort)
{
	for (int i = 0; i < sort->nruns; i++)
		gpusort_sorted_run_free(sort->runs[i]);
	gpusort_run_file_close(sort->file);
	if (sort->merge_context != NULL)
		MemoryContextDelete(sort->merge_context);
}
