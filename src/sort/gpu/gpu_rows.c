/*-------------------------------------------------------------------------
 *
 * gpu_rows.c
 *		The rows of a sort that are on a GPU: a session, and the order of its ties.
 *
 * A device knows nothing about comparators.  It returns ties, which are rows with
 * equal keys, in the order of arrival, and tells which rows are ties.  This file breaks
 * the ties as rows are read.  Nearly always a row has no ties, and is returned as it is.
 * A short group of ties within one chunk is sorted in place by comparisons.  Any
 * other group is copied to a sort of its own on the host, which can use further
 * words of the keys, and temporary files.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "core/radix_sort.h"
#include "key/key_comparison.h"
#include "sort/base/tuple_rows.h"
#include "sort/gpu/gpu_rows.h"
#include "work.h"

/* The maximum number of rows in a group that is sorted in its chunk. */
#define SHORT_GROUP		32

struct GsGpuTies
{
	const GsSortSpec *spec;
	GsGpuSession *gpu;
	MemoryContext context;
	int			first_open;		/* the first sort key to compare */
	GsKeyComparison *comparison;	/* NULL until it is needed */
	MemoryContext scratch;		/* for what comparators leak */
	Datum	   *values;			/* of a row of a group that is being sorted */
	bool	   *isnull;

	/*
	 * The group that is being read: positions start to end - 1.  Initially it
	 * is empty, before the first row.
	 */
	int64		start;
	int64		end;
	uint8		order[SHORT_GROUP]; /* sorted order of a short group */

	/* The sort of a long group. */
	int64		long_end;		/* position after the long group read last */
	MemoryContext nested_context;	/* NULL if it is short */
	GsSortSpec	nested_spec;
	GsCpuSort	nested;
	int64		next_position;	/* in it, after that of the row last read */
};

/*
 * Create a reader in the current memory context.  Its group must be closed before that context
 * is deleted, except after an error.  Returns NULL if the encoded keys are exact, so
 * that there are no ties to break and the session returns its rows in order.
 */
static GsGpuTies *
create_ties(const GsSortSpec *spec, GsGpuSession *gpu)
{
	GsGpuTies  *ties;
	int			first_open;

	if (gpusort_key_plan_is_exact(spec->key_plan, &first_open))
		return NULL;
	ties = palloc0(sizeof(GsGpuTies));
	ties->spec = spec;
	ties->gpu = gpu;
	ties->context = CurrentMemoryContext;
	ties->first_open = first_open;
	ties->scratch = AllocSetContextCreate(CurrentMemoryContext,
										  "pg_gpusort comparisons",
										  ALLOCSET_SMALL_SIZES);
	ties->values = palloc0(spec->tupdesc->natts * sizeof(Datum));
	ties->isnull = palloc0(spec->tupdesc->natts * sizeof(bool));
	return ties;
}

/* Read a row of a group, with its sort keys.  Returns false if the rows are lost. */
static bool
read_row(GsGpuTies *ties, int64 position)
{
	if (!gpusort_gpu_session_get(ties->gpu, position, ties->values, ties->isnull))
		return false;
	gpusort_tuple_row_get_keys(ties->spec, ties->values, ties->isnull);
	return true;
}

/* ----------------------------------------------------------------
 *		short groups
 * ----------------------------------------------------------------
 */

/* Read the sort keys of a row in the group.  Returns false if the rows are lost. */
static bool
read_sort_keys(GsGpuTies *ties, int64 position, Datum *values, bool *isnull)
{
	const GsSortKeys *keys = &ties->spec->keys;

	if (!read_row(ties, position))
		return false;
	for (int k = ties->first_open; k < keys->nkeys; k++)
	{
		values[k] = ties->values[keys->attnos[k] - 1];
		isnull[k] = ties->isnull[keys->attnos[k] - 1];
	}
	return true;
}

/* The sort keys of those rows of a short group that have been read. */
typedef struct GsShortGroup
{
	Datum	   *values;			/* nkeys of each */
	bool	   *isnull;
} GsShortGroup;

/* Does the i-th row of a short group sort after the j-th, which arrived before it? */
static bool
comes_after(const GsGpuTies *ties, const GsShortGroup *group, int i, int j)
{
	int			nkeys = ties->spec->keys.nkeys;

	CHECK_FOR_INTERRUPTS();
	return gpusort_key_comparison_compare(ties->comparison, ties->first_open,
										  group->values + j * nkeys,
										  group->isnull + j * nkeys,
										  group->values + i * nkeys,
										  group->isnull + i * nkeys) <= 0;
}

/*
 * Returns the index at which to insert the i-th row into the rows before it, which are
 * sorted.  Usually it belongs at the end.  Otherwise we find the index by bisection.
 */
static int
find_index(const GsGpuTies *ties, const GsShortGroup *group, int i)
{
	int			low = 0;
	int			high = i - 1;

	if (i == 0 || comes_after(ties, group, i, ties->order[i - 1]))
		return i;
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (comes_after(ties, group, i, ties->order[middle]))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Sort a short group, which is in one chunk.  Returns false if the rows are lost. */
static bool
sort_short_group(GsGpuTies *ties)
{
	int			nkeys = ties->spec->keys.nkeys;
	int			count = ties->end - ties->start;
	MemoryContext caller = MemoryContextSwitchTo(ties->context);
	GsShortGroup group;

	if (ties->comparison == NULL)
		ties->comparison = gpusort_key_comparison_create(&ties->spec->keys);
	MemoryContextSwitchTo(ties->scratch);
	group.values = palloc(count * nkeys * sizeof(Datum));
	group.isnull = palloc(count * nkeys * sizeof(bool));
	for (int i = 0; i < count; i++)
	{
		int			index;

		if (!read_sort_keys(ties, ties->start + i, group.values + i * nkeys,
							group.isnull + i * nkeys))
			break;
		index = find_index(ties, &group, i);
		memmove(ties->order + index + 1, ties->order + index, i - index);
		ties->order[index] = i;
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(ties->scratch);
	return gpusort_gpu_session_failure(ties->gpu) == GS_FALLBACK_NONE;
}

/* ----------------------------------------------------------------
 *		long groups
 * ----------------------------------------------------------------
 */

/* Put the row that was read into the sort of a long group. */
static void
put_in_long_group(GsGpuTies *ties)
{
	GsCpuSort  *nested = &ties->nested;

	if (gpusort_cpu_sort_put(nested, ties->values, ties->isnull))
		return;
	if (nested->file == NULL)
		gpusort_cpu_sort_overflow(nested, gpusort_memory_sort_refusal(nested->rows));
	gpusort_cpu_sort_add(nested, ties->values, ties->isnull);
}

/*
 * Sort the group that begins at ties->start in a sort of its own, so that its rows
 * can be read.  Returns false if the rows are lost.
 */
static bool
sort_long_group(GsGpuTies *ties)
{
	GsSortSpec *spec = &ties->nested_spec;
	int			tie = 1;
	MemoryContext caller;

	*spec = *ties->spec;
	spec->bound = 0;
	spec->team = NULL;
	spec->group_keys = 0;
	spec->expected_rows = SHORT_GROUP;
	spec->memory = gpusort_sort_spec_memory(spec) - gpusort_sort_spec_marked_memory(spec);

	ties->nested_context = AllocSetContextCreate(ties->context,
												 "pg_gpusort ties",
												 ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(ties->nested_context);
	gpusort_cpu_sort_init(&ties->nested, spec, ties->nested_context);
	gpusort_cpu_sort_begin_rows(&ties->nested, NULL);
	ties->next_position = 0;
	for (ties->end = ties->start; tie > 0; ties->end++)
	{
		CHECK_FOR_INTERRUPTS();
		tie = read_row(ties, ties->end) ? gpusort_gpu_session_is_tie(ties->gpu, ties->end) : -1;
		if (tie >= 0)
			put_in_long_group(ties);
	}
	if (tie == 0)
	{
		gpusort_cpu_sort_sort(&ties->nested);
		gpusort_cpu_sort_perform(&ties->nested);
	}
	ties->long_end = ties->end;
	MemoryContextSwitchTo(caller);
	return tie == 0;
}

/* ----------------------------------------------------------------
 *		all groups
 * ----------------------------------------------------------------
 */

static inline void
close_group(GsGpuTies *ties)
{
	if (likely(ties->nested_context == NULL))
		return;
	gpusort_cpu_sort_end(&ties->nested);
	MemoryContextDelete(ties->nested_context);
	ties->nested_context = NULL;
}

/*
 * Find the start of the group that contains a position.  If that follows the group
 * read last, it is the start.  Returns false if the rows are lost.
 */
static bool
find_start(GsGpuTies *ties, int64 position)
{
	int64		start = position;
	int			tie = position == ties->end ? 0 : 1;

	while (start > 0 && tie > 0)
	{
		CHECK_FOR_INTERRUPTS();
		tie = gpusort_gpu_session_is_tie(ties->gpu, start - 1);
		if (tie > 0)
			start--;
	}
	ties->start = start;
	return tie >= 0;
}

/*
 * Find the end of the group that begins at ties->start, if the group is short and in one
 * chunk.  Returns 1 if the end was found, 0 if the group is another one, and -1 if the rows
 * are lost.
 */
static int
find_end(GsGpuTies *ties)
{
	int64		position = ties->start;
	int			tie = gpusort_gpu_session_is_tie(ties->gpu, position);
	int64		chunk_end = gpusort_gpu_session_chunk_end(ties->gpu);

	while (tie > 0)
	{
		position++;
		if (position == chunk_end || position - ties->start == SHORT_GROUP)
			return 0;
		tie = gpusort_gpu_session_is_tie(ties->gpu, position);
	}
	ties->end = position + 1;
	return tie < 0 ? -1 : 1;
}

/*
 * Find the group that contains a position, and sort it.  Returns false if the rows are
 * lost.
 */
static bool
open_group(GsGpuTies *ties, int64 position)
{
	int			found;

	close_group(ties);
	if (!find_start(ties, position))
		return false;
	found = find_end(ties);
	if (found < 0)
		return false;
	if (found == 0)
		return sort_long_group(ties);
	return ties->end - ties->start == 1 || sort_short_group(ties);
}

/* Is the position in the current group, but cannot be read again? */
static bool
has_passed(const GsGpuTies *ties, int64 position)
{
	return ties->nested_context != NULL && ties->nested.file != NULL &&
		!ties->spec->random_access && position - ties->start < ties->next_position;
}

/*
 * See gpusort_gpu_session_in_place(): false as well in a group of ties that has not been
 * returned as a whole.
 */
static bool
ties_in_place(const GsGpuTies *ties, int64 position, GsRowsInPlace *rows)
{
	return position == ties->end && gpusort_gpu_session_in_place(ties->gpu, position, rows);
}

/* See gpusort_gpu_session_is_near(): false as well if long groups would be sorted again. */
static bool
ties_are_near(const GsGpuTies *ties, int64 position)
{
	return position >= ties->long_end && gpusort_gpu_session_is_near(ties->gpu, position);
}

bool
gpusort_gpu_ties_get(GsGpuTies *ties, int64 position, Datum *values,
					 bool *isnull)
{
	if (likely(position == ties->end))
	{
		int			read = gpusort_gpu_session_get_untied(ties->gpu, position, values, isnull);

		if (likely(read > 0))
		{
			close_group(ties);
			ties->start = position;
			ties->end = position + 1;
		}
		if (read != 0)
			return read > 0;
	}
	if (position < ties->start || position >= ties->end ||
		has_passed(ties, position))
	{
		if (!open_group(ties, position))
		{
			ties->start = ties->end = 0;
			return false;
		}
	}
	if (ties->nested_context != NULL)
	{
		gpusort_cpu_sort_get(&ties->nested, position - ties->start, values, isnull);
		ties->next_position = position - ties->start + 1;
		return true;
	}
	if (ties->end - ties->start > 1)
		position = ties->start + ties->order[position - ties->start];
	return gpusort_gpu_session_get(ties->gpu, position, values, isnull);
}

/* ----------------------------------------------------------------
 *		the rows as a whole
 * ----------------------------------------------------------------
 */

/* Make and enter the context of rows.  Returns that of the caller. */
static MemoryContext
enter_context(GsGpuRows *rows)
{
	rows->context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort rows on a GPU",
										  ALLOCSET_DEFAULT_SIZES);
	return MemoryContextSwitchTo(rows->context);
}

bool
gpusort_gpu_rows_begin(GsGpuRows *rows, const GsSortSpec *spec, GsFallback *reason)
{
	MemoryContext caller = enter_context(rows);

	rows->session = gpusort_gpu_session_create(spec, reason);
	MemoryContextSwitchTo(caller);
	if (rows->session == NULL)
		gpusort_gpu_rows_end(rows);
	return rows->session != NULL;
}

void
gpusort_gpu_rows_attach(GsGpuRows *rows, const GsSortSpec *spec, const GsClientHandle *handle)
{
	MemoryContext caller = enter_context(rows);

	rows->session = gpusort_gpu_session_attach(spec, *handle);
	MemoryContextSwitchTo(caller);
}

/* Prepare to read rows, which sort() sorts, or has located if another process has sorted them. */
static bool
prepare(GsGpuRows *rows, const GsSortSpec *spec, bool (*sort) (GsGpuSession *session))
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);
	bool		sorted;

	rows->ties = create_ties(spec, rows->session);
	sorted = sort(rows->session);
	MemoryContextSwitchTo(caller);
	return sorted;
}

bool
gpusort_gpu_rows_sort(GsGpuRows *rows, const GsSortSpec *spec)
{
	return prepare(rows, spec, gpusort_gpu_session_sort);
}

bool
gpusort_gpu_rows_join(GsGpuRows *rows, const GsSortSpec *spec)
{
	return prepare(rows, spec, gpusort_gpu_session_join);
}

void
gpusort_gpu_rows_seek(const GsGpuRows *rows, int64 position)
{
	if (rows->ties == NULL)
		return;
	close_group(rows->ties);
	rows->ties->start = rows->ties->end = position;
}

/* Write the rows that the device has refused, in the order of arrival. */
static void
write_rest(const GsGpuRows *rows, GsCpuSort *sort, TupleTableSlot *slot)
{
	while (gpusort_gpu_session_take_rest(rows->session, slot->tts_values, slot->tts_isnull))
		gpusort_cpu_sort_add(sort, slot->tts_values, slot->tts_isnull);
	gpusort_cpu_sort_write_rows(sort);
}

/* Write the rows on the device as the first run.  Returns false if rows are lost. */
static bool
write_run(const GsGpuRows *rows, GsCpuSort *sort, TupleTableSlot *slot)
{
	int64		nrows = gpusort_gpu_session_count(rows->session);

	gpusort_run_file_begin(sort->file, false);
	for (int64 i = 0; i < nrows; i++)
	{
		if (!gpusort_gpu_rows_get(rows, i, slot->tts_values, slot->tts_isnull))
			return false;
		gpusort_run_file_put(sort->file, slot->tts_values, slot->tts_isnull);
	}
	gpusort_cpu_sort_end_run(sort, 0);
	return true;
}

bool
gpusort_gpu_rows_write(const GsGpuRows *rows, GsCpuSort *sort)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
	bool		written;

	/*
	 * Refused rows occupy pool chunks that reading needs, so write them
	 * first.
	 */
	write_rest(rows, sort, slot);
	written = write_run(rows, sort, slot);
	ExecDropSingleTupleTableSlot(slot);
	return written;
}

bool
gpusort_gpu_rows_is_near(const GsGpuRows *rows, int64 position)
{
	return rows->ties != NULL ? ties_are_near(rows->ties, position) :
		gpusort_gpu_session_is_near(rows->session, position);
}

bool
gpusort_gpu_rows_in_place(const GsGpuRows *rows, int64 position, GsRowsInPlace *in_place)
{
	return rows->ties != NULL ? ties_in_place(rows->ties, position, in_place) :
		gpusort_gpu_session_in_place(rows->session, position, in_place);
}

void
gpusort_gpu_rows_close(const GsGpuRows *rows)
{
	if (rows->ties != NULL)
		close_group(rows->ties);
}

void
gpusort_gpu_rows_end(GsGpuRows *rows)
{
	gpusort_gpu_rows_close(rows);
	if (rows->context != NULL)
		MemoryContextDelete(rows->context);
	memset(rows, 0, sizeof(*rows));
}
