/*-------------------------------------------------------------------------
 *
 * cpu_sort.c
 *		Sorts rows without a GPU, in memory or, if they do not fit, on disk.
 *
 * Runs are kept in the order in which their rows arrived, because among ties, the rows of
 * earlier runs are returned first.
 *
 * If the system has less memory than the sort may use, the runs get shorter.  Rows for which there
 * is not enough memory to sort them where they are move in portions to a smaller memory sort,
 * and their memory is freed on the way.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/base/budget.h"
#include "sort/base/sort_stats.h"
#include "sort/disk/cpu_sort.h"
#include "work.h"

/* The least limit to try, and the divisor by which a limit is reduced. */
#define MIN_LIMIT		((Size) 64 * 1024)
#define PORTION			8

/* There are more rows than expected, so chunks are not chosen by that number. */
#define MANY_ROWS		1e9

void
gpusort_cpu_sort_init(GsCpuSort *sort, const GsSortSpec *spec, MemoryContext context)
{
	memset(sort, 0, sizeof(*sort));
	sort->spec = spec;
	sort->context = context;
	sort->may_merge = true;
}

void
gpusort_cpu_sort_set_target(GsCpuSort *sort, const GsRunTarget *target)
{
	sort->target = target;
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
		gpusort_memory_sort_create(sort->spec, gpusort_budget_create(limit));
	MemoryContextSwitchTo(caller);
}

/* Begin rows in memory that become a run. */
static void
begin_run_rows(GsCpuSort *sort)
{
	MemoryContext caller = enter_rows_context(sort);

	sort->rows = gpusort_memory_sort_create(&sort->run_spec,
											gpusort_budget_create(sort->limit));
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

static void
begin_external(GsCpuSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	sort->external = gpusort_external_begin(sort->spec, gpusort_sort_spec_memory(sort->spec),
											sort->target);
	MemoryContextSwitchTo(caller);
}

static void
count_overflow(const GsCpuSort *sort)
{
	const GsSortSpec *spec = sort->spec;
	bool		is_part = spec->group_keys > 0 ? spec->nested : spec->team != NULL;

	/* One process counts the sort as a whole. */
	if (!is_part)
		gpusort_stats_count_fallback(sort->overflow);
}

void
gpusort_cpu_sort_begin_runs(GsCpuSort *sort, GsFallback reason)
{
	if (reason == GS_FALLBACK_WORK_MEM && sort->spec->index_build)
		reason = GS_FALLBACK_MAINTENANCE_MEM;
	if (reason != GS_FALLBACK_NONE)
	{
		sort->overflow = reason;
		count_overflow(sort);
	}
	sort->run_spec = *sort->spec;

	/*
	 * Without a bound, each run can use the same memory: see
	 * gpusort_budget_use_arena().
	 */
	sort->run_spec.bound = 0;
	sort->run_spec.expected_rows = Max(sort->spec->expected_rows, MANY_ROWS);
	sort->limit = gpusort_sort_spec_memory(sort->spec);
	begin_external(sort);
}

void
gpusort_cpu_sort_begin_anew(GsCpuSort *sort)
{
	gpusort_external_end(sort->external);
	sort->target = NULL;
	begin_external(sort);
}

void
gpusort_cpu_sort_note_overflow(GsCpuSort *sort, GsFallback reason)
{
	if (reason == GS_FALLBACK_NONE || sort->overflow != GS_FALLBACK_NONE)
		return;
	sort->overflow = reason;
	count_overflow(sort);
}

/* Append the run that is being written. */
static void
end_run(GsCpuSort *sort)
{
	gpusort_external_end_run(sort->external, gpusort_external_runs(sort->external));
}

/* Write the sorted rows as a run. */
static void
write_sorted(GsCpuSort *sort)
{
	int64		nrows = gpusort_memory_sort_count(sort->rows);

	gpusort_external_begin_run(sort->external);
	for (int64 row = 0; row < nrows; row++)
	{
		Size		bytes = gpusort_memory_sort_dense_size(sort->rows, row);

		CHECK_FOR_INTERRUPTS();
		gpusort_memory_sort_make_dense(sort->rows, row,
									   gpusort_external_reserve(sort->external, bytes), bytes);
	}
	end_run(sort);
}

/* Returns the limit to try next after the system ran out of memory. */
static Size
smaller_limit(Size limit)
{
	if (limit <= MIN_LIMIT)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed while sorting rows.")));
	return Max(limit / PORTION, MIN_LIMIT);
}

/* Write the rows as several runs, since there is no memory to sort all of them at once. */
static void
write_portions(GsCpuSort *sort)
{
	int			natts = sort->spec->tupdesc->natts;
	Size		limit = sort->limit;
	bool		may_merge = sort->may_merge;
	Datum	   *values = palloc(natts * sizeof(Datum));
	bool	   *isnull = palloc(natts * sizeof(bool));
	MemoryContext context;
	GsMemorySort *rows = gpusort_cpu_sort_detach_rows(sort, &context);

	sort->limit = smaller_limit(limit);
	sort->may_merge = false;	/* there is no memory for that either */
	while (gpusort_memory_sort_take(rows, values, isnull))
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_cpu_sort_add(sort, values, isnull);
	}
	gpusort_cpu_sort_write_rows(sort);
	sort->limit = limit;
	sort->may_merge = may_merge;
	MemoryContextDelete(context);
	pfree(values);
	pfree(isnull);
}

bool
gpusort_cpu_sort_sort_rows(GsCpuSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->rows_context);
	bool		sorted = gpusort_memory_sort_sort(sort->rows);

	MemoryContextSwitchTo(caller);
	return sorted;
}

void
gpusort_cpu_sort_write_rows(GsCpuSort *sort)
{
	if (sort->rows == NULL)
		return;
	if (!gpusort_cpu_sort_sort_rows(sort))
	{
		write_portions(sort);
		return;
	}
	write_sorted(sort);
	end_rows(sort);
}

/* Do not let there be too many runs. */
static void
limit_runs(GsCpuSort *sort)
{
	if (sort->may_merge)
		gpusort_external_limit_runs(sort->external);
}

/* Memory is full: write the rows. */
static void
write_run(GsCpuSort *sort)
{
	bool		out_of_memory = gpusort_memory_sort_budget(sort->rows)->out_of_memory;

	gpusort_cpu_sort_write_rows(sort);
	if (out_of_memory)
		sort->limit = smaller_limit(sort->limit);
	limit_runs(sort);
}

/* Write a run of a single row, which does not fit into the memory allowed. */
static void
write_row(GsCpuSort *sort, const Datum *values, const bool *isnull)
{
	gpusort_external_begin_run(sort->external);
	gpusort_external_put(sort->external, values, isnull);
	end_run(sort);
	limit_runs(sort);
}

void
gpusort_cpu_sort_add(GsCpuSort *sort, const Datum *values, const bool *isnull)
{
	if (sort->rows == NULL)
		begin_run_rows(sort);
	while (!gpusort_memory_sort_put(sort->rows, values, isnull))
	{
		if (gpusort_memory_sort_count(sort->rows) == 0 &&
			!gpusort_memory_sort_budget(sort->rows)->out_of_memory)
		{
			write_row(sort, values, isnull);
			return;
		}
		write_run(sort);
		begin_run_rows(sort);
	}
}

void
gpusort_cpu_sort_overflow(GsCpuSort *sort, GsFallback reason)
{
	gpusort_cpu_sort_begin_runs(sort, reason);
	gpusort_cpu_sort_write_rows(sort);
	limit_runs(sort);
}

/* ----------------------------------------------------------------
 *		sorting and reading
 * ----------------------------------------------------------------
 */

void
gpusort_cpu_sort_sort(GsCpuSort *sort)
{
	if (sort->external != NULL)
		gpusort_cpu_sort_write_rows(sort);
	else if (!gpusort_cpu_sort_sort_rows(sort))
		gpusort_cpu_sort_overflow(sort, GS_FALLBACK_OUT_OF_MEMORY);
}

void
gpusort_cpu_sort_perform(GsCpuSort *sort)
{
	if (sort->external != NULL)
		gpusort_external_perform(sort->external);
}

int64
gpusort_cpu_sort_count(const GsCpuSort *sort)
{
	return sort->external != NULL ? gpusort_external_count(sort->external) :
		gpusort_memory_sort_count(sort->rows);
}

void
gpusort_cpu_sort_get(GsCpuSort *sort, int64 position, Datum *values, bool *isnull)
{
	if (sort->external != NULL)
		gpusort_external_get(sort->external, position, values, isnull);
	else
		gpusort_memory_sort_get(sort->rows, position, values, isnull);
}

void
gpusort_cpu_sort_end(GsCpuSort *sort)
{
	end_rows(sort);
	if (sort->external != NULL)
		gpusort_external_end(sort->external);
	sort->external = NULL;
	sort->overflow = GS_FALLBACK_NONE;
}
