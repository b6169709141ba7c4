/*-------------------------------------------------------------------------
 *
 * run_builder.c
 *		Sorts rows into runs on disk, as many at a time as fit in memory.
 *
 * Rows are added to a memory sort until it is full.  It is then sorted, written to
 * disk, and replaced by a new one.
 *
 * If the system has less memory than the sort may use, the runs get shorter.  Rows
 * for which there is not enough memory to sort them where they are move in portions
 * to a smaller memory sort, and their memory is freed on the way.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/base/budget.h"
#include "sort/disk/run_builder.h"
#include "work.h"

/* The least limit to try, and the divisor by which a limit is reduced. */
#define MIN_LIMIT		((Size) 64 * 1024)
#define PORTION			8

struct GsRunBuilder
{
	MemoryContext context;
	GsSortSpec	spec;
	GsExternalSort *external;
	Size		limit;
	bool		may_merge;
	MemoryContext rows_context;
	GsBudget   *budget;
	GsMemorySort *rows;
};

static void
begin_rows(GsRunBuilder *builder)
{
	MemoryContext caller;

	builder->rows_context = AllocSetContextCreate(builder->context,
												  "pg_gpusort run",
												  ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(builder->rows_context);
	builder->budget = gpusort_budget_create(builder->limit);
	builder->rows = gpusort_memory_sort_create(&builder->spec,
											   builder->budget);
	MemoryContextSwitchTo(caller);
}

GsRunBuilder *
gpusort_run_builder_begin(const GsSortSpec *spec, GsExternalSort *external,
						  Size limit, bool may_merge)
{
	GsRunBuilder *builder = palloc0(sizeof(GsRunBuilder));

	builder->context = CurrentMemoryContext;
	builder->spec = *spec;

	/*
	 * Without a bound, each run can use the same memory: see
	 * gpusort_budget_use_arena().
	 */
	builder->spec.bound = 0;
	builder->external = external;
	builder->limit = limit;
	builder->may_merge = may_merge;

	/*
	 * There are more rows than expected, so do not choose chunks by that
	 * number.
	 */
	builder->spec.expected_rows = Max(spec->expected_rows, 1e9);
	begin_rows(builder);
	return builder;
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

/* Write the rows of a sorted memory sort as a run. */
static void
write_sorted(GsExternalSort *external, GsMemorySort *rows)
{
	int64		nrows = gpusort_memory_sort_count(rows);

	gpusort_external_begin_run(external);
	for (int64 row = 0; row < nrows; row++)
	{
		Size		bytes = gpusort_memory_sort_dense_size(rows, row);

		CHECK_FOR_INTERRUPTS();
		gpusort_memory_sort_make_dense(rows, row,
									   gpusort_external_reserve(external, bytes),
									   bytes);
	}
	gpusort_external_end_run(external, gpusort_external_runs(external));
}

/* Write rows as several runs, if there is no memory to sort all of them at once. */
static void
write_portions(const GsSortSpec *spec, GsExternalSort *external,
			   GsMemorySort *rows, Size limit)
{
	int			natts = spec->tupdesc->natts;
	GsRunBuilder *builder = gpusort_run_builder_begin(spec, external,
													  smaller_limit(limit),
													  false);
	Datum	   *values = palloc(natts * sizeof(Datum));
	bool	   *isnull = palloc(natts * sizeof(bool));

	while (gpusort_memory_sort_take(rows, values, isnull))
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_run_builder_put(builder, values, isnull);
	}
	gpusort_run_builder_end(builder);
	pfree(values);
	pfree(isnull);
}

void
gpusort_run_builder_write(const GsSortSpec *spec, GsExternalSort *external,
						  GsMemorySort *rows, Size limit)
{
	if (gpusort_memory_sort_sort(rows))
		write_sorted(external, rows);
	else
		write_portions(spec, external, rows, limit);
}

static void
end_rows(GsRunBuilder *builder)
{
	MemoryContext caller = MemoryContextSwitchTo(builder->rows_context);

	gpusort_run_builder_write(&builder->spec, builder->external,
							  builder->rows, builder->limit);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(builder->rows_context);
}

/* Write the rows that we have as a run, and prepare for more. */
static void
write_run(GsRunBuilder *builder)
{
	bool		out_of_memory = builder->budget->out_of_memory;

	end_rows(builder);
	if (out_of_memory)
		builder->limit = smaller_limit(builder->limit);
	if (builder->may_merge)
		gpusort_external_limit_runs(builder->external);
	begin_rows(builder);
}

/* Write a run of a single row, which does not fit into the memory allowed. */
static void
write_row(GsRunBuilder *builder, const Datum *values, const bool *isnull)
{
	gpusort_external_begin_run(builder->external);
	gpusort_external_put(builder->external, values, isnull);
	gpusort_external_end_run(builder->external,
							 gpusort_external_runs(builder->external));
	if (builder->may_merge)
		gpusort_external_limit_runs(builder->external);
}

void
gpusort_run_builder_put(GsRunBuilder *builder, const Datum *values,
						const bool *isnull)
{
	while (!gpusort_memory_sort_put(builder->rows, values, isnull))
	{
		if (gpusort_memory_sort_count(builder->rows) == 0 &&
			!builder->budget->out_of_memory)
		{
			write_row(builder, values, isnull);
			return;
		}
		write_run(builder);
	}
}

void
gpusort_run_builder_end(GsRunBuilder *builder)
{
	end_rows(builder);
	pfree(builder);
}
