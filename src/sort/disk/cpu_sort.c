/*-------------------------------------------------------------------------
 *
 * cpu_sort.c
 *		Sorts rows without a GPU, in memory or, if they do not fit, on disk.
 *
 * Runs are kept in the order in which their rows arrived, and only neighbours are merged, so that
 * the whole sort is stable.
 *
 * If the system has less memory than the sort may use, the runs get shorter.
 *
 * If the rows of runs are read only once and forward, the last merge returns them as it proceeds.
 * Otherwise it writes another run, and a cursor moves over that.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/base/budget.h"
#include "sort/base/sort_stats.h"
#include "sort/disk/cpu_sort.h"
#include "work.h"

/* The least limit of rows in memory, and the divisor by which a limit is reduced. */
#define MIN_LIMIT			((Size) 64 * 1024)
#define LIMIT_DIVISOR		8

/* At least this many runs are merged at a time, even with little memory. */
#define MIN_MERGE_ORDER		6

/* A run that waits to be merged takes this much memory; all take this fraction. */
#define WAITING_RUN_BYTES	256
#define WAITING_DIVISOR		8

/* There are more rows than expected, so chunks are not chosen by that number. */
#define MANY_ROWS		1e9

void
gpusort_cpu_sort_init(GsCpuSort *sort, const GsSortSpec *spec, MemoryContext context)
{
	memset(sort, 0, sizeof(*sort));
	sort->spec = spec;
	sort->context = context;
}

/* ----------------------------------------------------------------
 *		rows in memory
 * ----------------------------------------------------------------
 */

/* Create a context for rows and switch to it.  Returns the current context. */
static MemoryContext
enter_rows_context(GsCpuSort *sort)
{
	Assert(sort->rows_context == NULL);
	sort->rows_context = AllocSetContextCreate(sort->context, "pg_gpusort rows",
											   ALLOCSET_DEFAULT_SIZES);
	return MemoryContextSwitchTo(sort->rows_context);
}

void
gpusort_cpu_sort_begin_rows(GsCpuSort *sort, GsSharedMember *member)
{
	MemoryContext caller = enter_rows_context(sort);
	Size		limit = gpusort_sort_spec_memory(sort->spec);

	sort->rows = member != NULL ? gpusort_shared_member_begin_rows(member) :
		gpusort_memory_sort_create(sort->spec, gpusort_budget_create(limit), 0);
	MemoryContextSwitchTo(caller);
}

/* Begin rows in memory that become a run. */
static void
begin_run_rows(GsCpuSort *sort)
{
	MemoryContext caller = enter_rows_context(sort);

	sort->rows = gpusort_memory_sort_create(&sort->run_spec,
											gpusort_budget_create(sort->rows_limit), 0);
	MemoryContextSwitchTo(caller);
}

GsMemorySort *
gpusort_cpu_sort_detach_rows(GsCpuSort *sort, MemoryContext *context)
{
	GsMemorySort *rows = sort->rows;

	*context = sort->rows_context;
	sort->rows = NULL;
	sort->rows_context = NULL;
	return rows;
}

static void
end_rows(GsCpuSort *sort)
{
	if (sort->rows_context != NULL)
		MemoryContextDelete(sort->rows_context);
	sort->rows_context = NULL;
	sort->rows = NULL;
}

/* ----------------------------------------------------------------
 *		runs
 * ----------------------------------------------------------------
 */

static GsSortedRun *
run_at(const GsCpuSort *sort, int index)
{
	return list_nth(sort->runs, index);
}

/* Begin an empty list of runs, in a file. */
static void
begin_file(GsCpuSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	bool		together = sort->target != NULL;

	sort->format = gpusort_row_format_create(sort->spec);
	sort->file = gpusort_run_file_create(sort->spec, sort->format, sort->limit, sort->target);
	sort->reader_bytes = gpusort_run_file_reader_bytes(sort->limit, together);
	sort->merge_order = Max(sort->limit / sort->reader_bytes, MIN_MERGE_ORDER);
	sort->runs = NIL;
	sort->nrows = 0;
	MemoryContextSwitchTo(caller);
}

/* End all runs, and remove their file. */
static void
end_file(GsCpuSort *sort)
{
	for (int i = 0; i < list_length(sort->runs); i++)
		gpusort_sorted_run_free(run_at(sort, i));
	list_free(sort->runs);
	gpusort_run_file_close(sort->file);
	if (sort->merge_context != NULL)
		MemoryContextDelete(sort->merge_context);
	sort->merge_context = NULL;
	sort->merge = NULL;
	sort->cursor = NULL;
	sort->file = NULL;
	sort->runs = NIL;
}

void
gpusort_cpu_sort_note_overflow(GsCpuSort *sort, GsReason reason)
{
	const GsSortSpec *spec = sort->spec;
	bool		is_part = spec->group_keys > 0 ? spec->nested : spec->team != NULL;

	if (reason == GS_REASON_NONE || sort->overflow != GS_REASON_NONE)
		return;
	sort->overflow = reason;
	/* One process counts the sort as a whole. */
	if (!is_part)
		gpusort_stats_count_reason(reason);
}

void
gpusort_cpu_sort_begin_runs(GsCpuSort *sort, GsReason reason)
{
	if (reason == GS_REASON_WORK_MEM && sort->spec->index_build)
		reason = GS_REASON_MAINTENANCE_MEM;
	gpusort_cpu_sort_note_overflow(sort, reason);
	sort->run_spec = *sort->spec;
	sort->run_spec.bound = 0;
	sort->run_spec.expected_rows = Max(sort->spec->expected_rows, MANY_ROWS);
	sort->limit = sort->rows_limit = gpusort_sort_spec_memory(sort->spec);
	begin_file(sort);
}

void
gpusort_cpu_sort_begin_anew(GsCpuSort *sort)
{
	end_file(sort);
	sort->target = NULL;
	begin_file(sort);
}

static void
insert_run(GsCpuSort *sort, GsSortedRun *run, int index)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	sort->runs = list_insert_nth(sort->runs, index, run);
	MemoryContextSwitchTo(caller);
}

void
gpusort_cpu_sort_end_run(GsCpuSort *sort, int index)
{
	GsSortedRun *run = gpusort_run_file_end(sort->file);

	Assert(index <= list_length(sort->runs));
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
begin_merge(GsCpuSort *sort, int first, int nruns)
{
	MemoryContext caller;
	GsRunRange *all;

	gpusort_budget_make_room(Min(sort->limit, nruns * GPUSORT_MAX_EXTENT_BYTES));
	sort->merge_context = AllocSetContextCreate(sort->context,
												"pg_gpusort merge",
												ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(sort->merge_context);
	all = palloc0(sizeof(GsRunRange));
	all->nslices = nruns;
	all->windows = gpusort_run_windows_alloc(nruns, sort->limit);
	all->slices = palloc0(nruns * sizeof(GsRunSlice));
	for (int i = 0; i < nruns; i++)
		all->slices[i].run = *run_at(sort, first + i);
	sort->merge = gpusort_run_merge_begin(sort->spec, sort->format, all);
	MemoryContextSwitchTo(caller);
}

/* End the merge, and replace the runs by the one merged from them. */
static void
end_merge(GsCpuSort *sort, int first, int nruns, GsSortedRun *merged)
{
	MemoryContextDelete(sort->merge_context);
	sort->merge_context = NULL;
	sort->merge = NULL;
	for (int i = 0; i < nruns; i++)
	{
		GsSortedRun *run = run_at(sort, first);

		merged->level = Max(merged->level, run->level + 1);
		gpusort_sorted_run_free(run);
		sort->runs = list_delete_nth_cell(sort->runs, first);
	}
	insert_run(sort, merged, first);
}

/* Replace some runs by a single one.  If it is to 'freeze', it can be read any number of times. */
static void
merge_runs(GsCpuSort *sort, int first, int nruns, bool freeze)
{
	begin_merge(sort, first, nruns);
	gpusort_run_file_begin(sort->file, freeze);
	while (gpusort_run_merge_next(sort->merge))
	{
		Size		bytes;
		const char *row = gpusort_run_merge_dense_row(sort->merge, &bytes);

		gpusort_run_file_put_dense(sort->file, row, bytes);
	}
	end_merge(sort, first, nruns, gpusort_run_file_end(sort->file));
}

/* Returns the index of the first of the 'nruns' neighbours with the fewest bytes. */
static int
find_smallest(const GsCpuSort *sort, int nruns)
{
	uint64		bytes = 0;
	uint64		fewest = PG_UINT64_MAX;
	int			smallest = 0;

	for (int i = 0; i < list_length(sort->runs); i++)
	{
		bytes += run_at(sort, i)->bytes;
		if (i >= nruns)
			bytes -= run_at(sort, i - nruns)->bytes;
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
find_level(const GsCpuSort *sort)
{
	int			found = -1;
	int			alike = 0;

	for (int i = 0; i < list_length(sort->runs); i++)
	{
		int			level = run_at(sort, i)->level;

		alike = i > 0 && run_at(sort, i - 1)->level == level ? alike + 1 : 1;
		if (alike == sort->merge_order &&
			(found < 0 || level < run_at(sort, found)->level))
			found = i - sort->merge_order + 1;
	}
	return found >= 0 ? found : find_smallest(sort, sort->merge_order);
}

void
gpusort_cpu_sort_reduce_runs(GsCpuSort *sort, int most)
{
	while (list_length(sort->runs) > most)
	{
		int			nruns = Min(sort->merge_order, list_length(sort->runs) - most + 1);

		merge_runs(sort, find_smallest(sort, nruns), nruns, false);
	}
}

void
gpusort_cpu_sort_limit_runs(GsCpuSort *sort)
{
	Size		most = Max(sort->limit / WAITING_DIVISOR / WAITING_RUN_BYTES,
						   2 * sort->merge_order);

	if (list_length(sort->runs) >= most)
		merge_runs(sort, find_level(sort), sort->merge_order, false);
}

/* ----------------------------------------------------------------
 *		writing rows
 * ----------------------------------------------------------------
 */

bool
gpusort_cpu_sort_sort_rows(GsCpuSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->rows_context);
	uint32		nrows = gpusort_memory_sort_count(sort->rows);
	uint32		sorted;
	bool		done = gpusort_memory_sort_sort(sort->rows, 0, nrows, &sorted);

	MemoryContextSwitchTo(caller);
	return done;
}

/* Write the first rows in sorted order as a run. */
static void
write_sorted(GsCpuSort *sort, uint32 nrows)
{
	gpusort_run_file_begin(sort->file, false);
	for (uint32 i = 0; i < nrows; i++)
	{
		const uint8 *bitmap;
		char	   *row = gpusort_memory_sort_find(sort->rows, i, &bitmap);

		CHECK_FOR_INTERRUPTS();
		gpusort_run_file_put_row(sort->file, row, bitmap, sort->format->fixed_bytes);
	}
	gpusort_cpu_sort_end_run(sort, list_length(sort->runs));
}

static void
raise_out_of_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed while sorting rows.")));
}

void
gpusort_cpu_sort_write_rows(GsCpuSort *sort)
{
	uint32		nrows;
	uint32		sorted;
	MemoryContext caller;

	if (sort->rows == NULL)
		return;
	nrows = gpusort_memory_sort_count(sort->rows);
	caller = MemoryContextSwitchTo(sort->rows_context);
	for (uint32 first = 0; first < nrows; first += sorted)
	{
		if (!gpusort_memory_sort_sort(sort->rows, first, 1, &sorted))
			raise_out_of_memory();
		write_sorted(sort, sorted);
	}
	MemoryContextSwitchTo(caller);
	end_rows(sort);
}

/* Write a run of a single row, which does not fit into the memory allowed. */
static void
write_row(GsCpuSort *sort, const Datum *values, const bool *isnull)
{
	gpusort_run_file_begin(sort->file, false);
	gpusort_run_file_put(sort->file, values, isnull);
	gpusort_cpu_sort_end_run(sort, list_length(sort->runs));
	gpusort_cpu_sort_limit_runs(sort);
}

/* The system has no memory for a single row within the limit: try a smaller one. */
static void
reduce_limit(GsCpuSort *sort)
{
	if (sort->rows_limit <= MIN_LIMIT)
		raise_out_of_memory();
	sort->rows_limit = Max(sort->rows_limit / LIMIT_DIVISOR, MIN_LIMIT);
}

void
gpusort_cpu_sort_overflow(GsCpuSort *sort, GsReason reason)
{
	gpusort_cpu_sort_begin_runs(sort, reason);
	gpusort_cpu_sort_write_rows(sort);
	gpusort_cpu_sort_limit_runs(sort);
}

void
gpusort_cpu_sort_add(GsCpuSort *sort, const Datum *values, const bool *isnull)
{
	if (sort->rows == NULL)
		begin_run_rows(sort);
	while (!gpusort_memory_sort_put(sort->rows, values, isnull))
	{
		bool		out_of_memory = gpusort_memory_sort_budget(sort->rows)->out_of_memory;

		if (gpusort_memory_sort_count(sort->rows) == 0)
		{
			if (!out_of_memory)
			{
				write_row(sort, values, isnull);
				return;
			}
			reduce_limit(sort);
		}
		gpusort_cpu_sort_write_rows(sort);
		gpusort_cpu_sort_limit_runs(sort);
		begin_run_rows(sort);
	}
}

/* ----------------------------------------------------------------
 *		sorting and reading
 * ----------------------------------------------------------------
 */

void
gpusort_cpu_sort_sort(GsCpuSort *sort)
{
	if (sort->file != NULL)
		gpusort_cpu_sort_write_rows(sort);
	else if (!gpusort_cpu_sort_sort_rows(sort))
		gpusort_cpu_sort_overflow(sort, GS_REASON_OUT_OF_MEMORY);
}

/* Open a cursor over the only run, which is frozen. */
static void
open_cursor(GsCpuSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	sort->cursor = gpusort_run_cursor_create(sort->format, run_at(sort, 0));
	MemoryContextSwitchTo(caller);
}

/* Begin the last merge.  Nothing more is written, so extents need not be used again. */
static void
begin_last_merge(GsCpuSort *sort)
{
	for (int i = 0; i < list_length(sort->runs); i++)
		run_at(sort, i)->frozen = true;
	begin_merge(sort, 0, list_length(sort->runs));
}

void
gpusort_cpu_sort_perform(GsCpuSort *sort)
{
	if (sort->file == NULL)
		return;
	gpusort_cpu_sort_reduce_runs(sort, sort->merge_order);
	if (sort->runs == NIL)
		return;
	if (!sort->spec->random_access)
	{
		begin_last_merge(sort);
		return;
	}
	if (list_length(sort->runs) > 1 || !run_at(sort, 0)->frozen)
		merge_runs(sort, 0, list_length(sort->runs), true);
	open_cursor(sort);
}

int64
gpusort_cpu_sort_count(const GsCpuSort *sort)
{
	return sort->file != NULL ? sort->nrows : gpusort_memory_sort_count(sort->rows);
}

static char *
get_merged(GsCpuSort *sort, int64 position)
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

/* Read a row of the runs. */
static void
get_from_runs(GsCpuSort *sort, int64 position, Datum *values, bool *isnull)
{
	char	   *row = sort->cursor != NULL ? gpusort_run_cursor_get(sort->cursor, position) :
		get_merged(sort, position);

	gpusort_row_format_unpack(sort->format, row, values, isnull);
}

void
gpusort_cpu_sort_get(GsCpuSort *sort, int64 position, Datum *values, bool *isnull)
{
	if (sort->file != NULL)
		get_from_runs(sort, position, values, isnull);
	else
		gpusort_memory_sort_get(sort->rows, position, values, isnull);
}

void
gpusort_cpu_sort_end(GsCpuSort *sort)
{
	end_rows(sort);
	if (sort->file != NULL)
		end_file(sort);
	sort->overflow = GS_REASON_NONE;
}
