/*-------------------------------------------------------------------------
 *
 * gpu_runs.c
 *		Reads a GPU session's rows if their keys do not say all.
 *
 * A device knows nothing of comparators.  It returns rows with equal keys, a
 * run, in the order of arrival, and here they are put into order as they are
 * read.  Nearly always a row is a run by itself: then all there is to do is to
 * look one row ahead.  A short run within a chunk is sorted by comparisons where
 * it lies.  Any other is copied to a sort of its own on the host, which has all
 * means to deal with it, words and temporary files among them.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "core/radix_sort.h"
#include "key/key_comparison.h"
#include "sort/disk/host_sort.h"
#include "sort/gpu/gpu_runs.h"
#include "work.h"

/* Rows up to which a run is sorted where it lies. */
#define SHORT_RUN		32

/* A row, its key, and where it is; the values point into the GPU session. */
typedef struct GsRunRow
{
	int64		position;		/* -1: none */
	Datum	   *values;			/* of all columns */
	bool	   *isnull;
	bool		apart;
	uint64		key[GPUSORT_CPU_MAX_KEY_WORDS];
} GsRunRow;

struct GsGpuRuns
{
	const GsSessionSpec *spec;
	GsGpuSession *gpu;
	MemoryContext context;
	unsigned	words;
	int			natts;
	int			first_open;		/* the first sort key to be compared */
	GsKeyComparison *comparison;	/* NULL until it is needed */
	MemoryContext scratch;		/* for what comparators leave behind */
	GsRunRow	ahead;			/* the row last looked at */

	/* The run that is being read: positions start to end - 1. */
	int64		start;
	int64		end;
	uint8		order[SHORT_RUN];	/* of a short one, from its start */

	/* Of a long one. */
	MemoryContext nested_context;	/* NULL if it is short */
	GsHostSort *nested;
	GsRunRow	member;			/* its first row: what others must be like */
};

static void
make_row(const GsGpuRuns *runs, GsRunRow *row)
{
	row->position = -1;
	row->values = palloc0(runs->natts * sizeof(Datum));
	row->isnull = palloc0(runs->natts * sizeof(bool));
}

GsGpuRuns *
gpusort_gpu_runs_create(const GsSessionSpec *spec, GsGpuSession *gpu)
{
	GsGpuRuns  *runs;
	int			first_open;

	if (gpusort_key_plan_is_exact(spec->key_plan, &first_open))
		return NULL;
	runs = palloc0(sizeof(GsGpuRuns));
	runs->spec = spec;
	runs->gpu = gpu;
	runs->context = CurrentMemoryContext;
	runs->words = gpusort_key_plan_words(spec->key_plan);
	runs->natts = spec->tupdesc->natts;
	runs->first_open = first_open;
	runs->scratch = AllocSetContextCreate(CurrentMemoryContext,
										  "pg_gpusort comparisons",
										  ALLOCSET_SMALL_SIZES);
	make_row(runs, &runs->ahead);
	make_row(runs, &runs->member);
	return runs;
}

/* ----------------------------------------------------------------
 *		rows and their keys
 * ----------------------------------------------------------------
 */

/* Read a row and encode its key; false if the rows are lost. */
static bool
read_row(GsGpuRuns *runs, int64 position, GsRunRow *row)
{
	row->position = -1;
	if (!gpusort_gpu_session_get(runs->gpu, position, row->values,
								 row->isnull))
		return false;
	row->apart = !gpusort_key_plan_encode(runs->spec->key_plan, row->values,
										  row->isnull, row->key);
	row->position = position;
	return true;
}

static void
copy_row(const GsGpuRuns *runs, const GsRunRow *from, GsRunRow *to)
{
	to->position = from->position;
	memcpy(to->values, from->values, runs->natts * sizeof(Datum));
	memcpy(to->isnull, from->isnull, runs->natts * sizeof(bool));
	to->apart = from->apart;
	memcpy(to->key, from->key, runs->words * sizeof(uint64));
}

static inline bool
have_equal_keys(const GsGpuRuns *runs, const GsRunRow *a, const GsRunRow *b)
{
	if (a->apart != b->apart)
		return false;
	for (unsigned w = 0; w < runs->words; w++)
		if (a->key[w] != b->key[w])
			return false;
	return true;
}

/* ----------------------------------------------------------------
 *		short runs
 * ----------------------------------------------------------------
 */

/* The sort keys of a row of the run, by number of the key. */
static bool
read_sort_keys(GsGpuRuns *runs, int64 position, Datum *values, bool *isnull)
{
	const GsSortKeys *keys = &runs->spec->keys;
	GsRunRow   *row = &runs->ahead;

	row->position = -1;
	if (!gpusort_gpu_session_get(runs->gpu, position, row->values,
								 row->isnull))
		return false;
	for (int k = runs->first_open; k < keys->nkeys; k++)
	{
		values[k] = row->values[keys->attnos[k] - 1];
		isnull[k] = row->isnull[keys->attnos[k] - 1];
	}
	return true;
}

/* The sort keys of the rows of a short run, read so far. */
typedef struct GsShortRun
{
	Datum	   *values;			/* nkeys of each */
	bool	   *isnull;
} GsShortRun;

/* Has the i-th row of a short run to come behind the j-th, which was before it? */
static bool
comes_behind(const GsGpuRuns *runs, const GsShortRun *run, int i, int j)
{
	int			nkeys = runs->spec->keys.nkeys;

	CHECK_FOR_INTERRUPTS();
	return gpusort_key_comparison_compare(runs->comparison, runs->first_open,
										  run->values + j * nkeys,
										  run->isnull + j * nkeys,
										  run->values + i * nkeys,
										  run->isnull + i * nkeys) <= 0;
}

/*
 * The place of the i-th row among those before it, which are in order: mostly the
 * last one, or else found by bisection.
 */
static int
find_place(const GsGpuRuns *runs, const GsShortRun *run, int i)
{
	int			low = 0;
	int			high = i - 1;

	if (i == 0 || comes_behind(runs, run, i, runs->order[i - 1]))
		return i;
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (comes_behind(runs, run, i, runs->order[middle]))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Put a short run in order, which lies in one chunk; false if it is lost. */
static bool
sort_short_run(GsGpuRuns *runs)
{
	int			nkeys = runs->spec->keys.nkeys;
	int			count = runs->end - runs->start;
	MemoryContext caller = MemoryContextSwitchTo(runs->context);
	GsShortRun	run;

	if (runs->comparison == NULL)
		runs->comparison = gpusort_key_comparison_create(&runs->spec->keys);
	MemoryContextSwitchTo(runs->scratch);
	run.values = palloc(count * nkeys * sizeof(Datum));
	run.isnull = palloc(count * nkeys * sizeof(bool));
	for (int i = 0; i < count; i++)
	{
		int			place;

		if (!read_sort_keys(runs, runs->start + i, run.values + i * nkeys,
							run.isnull + i * nkeys))
			break;
		place = find_place(runs, &run, i);
		memmove(runs->order + place + 1, runs->order + place, i - place);
		runs->order[place] = i;
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(runs->scratch);
	return gpusort_gpu_session_failure(runs->gpu) == GS_FALLBACK_NONE;
}

/* ----------------------------------------------------------------
 *		long runs
 * ----------------------------------------------------------------
 */

/* Sort the run that begins at runs->start in a sort of its own; false if it is lost. */
static bool
sort_long_run(GsGpuRuns *runs)
{
	int64		nrows = gpusort_gpu_session_count(runs->gpu);
	GsRunRow   *row = &runs->ahead;
	int64		position = runs->start;
	GsSessionSpec spec = *runs->spec;
	MemoryContext caller;

	runs->nested_context = AllocSetContextCreate(runs->context,
												 "pg_gpusort run",
												 ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(runs->nested_context);
	spec.expected_rows = SHORT_RUN;
	if (spec.bound > 0)
		spec.bound = Max(spec.bound - runs->start, 1);
	runs->nested = gpusort_host_sort_begin(&spec);
	for (; position < nrows; position++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!read_row(runs, position, row))
			break;
		if (position == runs->start)
			copy_row(runs, row, &runs->member);
		else if (!have_equal_keys(runs, row, &runs->member))
			break;
		gpusort_host_sort_put(runs->nested, row->values, row->isnull);
	}
	runs->end = position;
	if (row->position >= 0)
		gpusort_host_sort_perform(runs->nested);
	MemoryContextSwitchTo(caller);
	return row->position >= 0;
}

/* ----------------------------------------------------------------
 *		all runs
 * ----------------------------------------------------------------
 */

static void
close_run(GsGpuRuns *runs)
{
	if (runs->nested_context == NULL)
		return;
	gpusort_host_sort_end(runs->nested);
	MemoryContextDelete(runs->nested_context);
	runs->nested_context = NULL;
}

/*
 * Find the start of the run that a position is in, given the one that was read
 * last, which begins and ends where runs do.  False if the rows are lost.
 */
static bool
find_start(GsGpuRuns *runs, int64 position)
{
	int64		start = position;

	if (position == runs->end)
	{
		runs->start = start;
		return true;
	}
	if (!read_row(runs, position, &runs->member))
		return false;
	while (start > 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (!read_row(runs, start - 1, &runs->ahead))
			return false;
		if (!have_equal_keys(runs, &runs->ahead, &runs->member))
			break;
		start--;
	}
	runs->start = start;
	return true;
}

/*
 * Find the end of the run that begins at runs->start, as far as rows of the same
 * chunk tell.  Returns 0 if they do not, or if the run is long; -1 if the rows
 * are lost.
 */
static int
find_end(GsGpuRuns *runs)
{
	int64		position = runs->start;
	int64		nrows = gpusort_gpu_session_count(runs->gpu);
	int64		chunk_end;

	if (runs->ahead.position != position &&
		!read_row(runs, position, &runs->ahead))
		return -1;
	copy_row(runs, &runs->ahead, &runs->member);
	chunk_end = gpusort_gpu_session_chunk_end(runs->gpu);
	for (;;)
	{
		position++;
		if (position == nrows)
			break;
		if (position >= chunk_end || position - runs->start == SHORT_RUN)
			return 0;
		if (!read_row(runs, position, &runs->ahead))
			return -1;
		if (!have_equal_keys(runs, &runs->ahead, &runs->member))
			break;
	}
	runs->end = position;
	return 1;
}

/* Get the run that a position is in, in order; false if the rows are lost. */
static bool
open_run(GsGpuRuns *runs, int64 position)
{
	int			found;

	close_run(runs);
	if (!find_start(runs, position))
		return false;
	found = find_end(runs);
	if (found < 0)
		return false;
	if (found == 0)
		return sort_long_run(runs);
	return runs->end - runs->start == 1 || sort_short_run(runs);
}

/* Is a row of the open run to be read that cannot be read again? */
static bool
has_passed(const GsGpuRuns *runs, int64 position)
{
	return runs->nested_context != NULL &&
		!gpusort_host_sort_can_get(runs->nested, position - runs->start);
}

void
gpusort_gpu_runs_end(GsGpuRuns *runs)
{
	close_run(runs);
}

bool
gpusort_gpu_runs_get(GsGpuRuns *runs, int64 position, Datum *values,
					 bool *isnull)
{
	if (position < runs->start || position >= runs->end ||
		has_passed(runs, position))
	{
		if (!open_run(runs, position))
		{
			runs->start = runs->end = 0;
			return false;
		}
		if (runs->end - runs->start == 1 && runs->nested_context == NULL)
		{
			memcpy(values, runs->member.values, runs->natts * sizeof(Datum));
			memcpy(isnull, runs->member.isnull, runs->natts * sizeof(bool));
			return true;
		}
	}
	if (runs->nested_context != NULL)
	{
		gpusort_host_sort_get(runs->nested, position - runs->start, values,
							  isnull);
		return true;
	}
	if (runs->end - runs->start > 1)
		position = runs->start + runs->order[position - runs->start];
	return gpusort_gpu_session_get(runs->gpu, position, values, isnull);
}
