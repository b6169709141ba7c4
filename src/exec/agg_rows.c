/*-------------------------------------------------------------------------
 *
 * agg_rows.c
 *		Sorts the rows of a group of an aggregate.
 *
 * Most groups may be small, so the first rows are kept in arrays and sorted by
 * comparisons, which costs less than to begin a sort.  When a group has more rows, a
 * sort takes them and all that follow.  But as long as rows come in order, and are single
 * values that are passed by value, a list of them is enough.
 *
 * That sort has no GPU, because its rows could not be read again if they were lost.  It
 * is a nested sort: all groups of an aggregate together are counted as one sort.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

#include "exec/agg_private.h"
#include "key/key_comparison.h"
#include "sort/sort.h"
#include "work.h"

/* A group of more rows than this is sorted by radix. */
#define FEW_ROWS			128

#define INITIAL_CAPACITY	8

struct GsAggRowOrder
{
	MemoryContext context;		/* as long as the execution */
	GsSortSpec	template;		/* of the sort of a group, without key plan */
	GsSortSpec **specs;			/* for each grouping set; NULL before use */
	SortSupport comparisons;	/* of the sort keys; NULL before use */
	TupleTableSlot *slot;		/* for a row of a sort */
	int			ngroups;		/* that share the memory */
	bool		by_value;		/* is there one column, passed by value? */
	bool		counted;		/* in the statistics? */
};

/* One of few rows. */
typedef struct GsFewRow
{
	NullableDatum key;			/* its first sort key, abbreviated if possible */
	int			number;			/* counted as they came */
} GsFewRow;

struct GsAggRows
{
	GsAggRowOrder *order;
	MemoryContext context;		/* of the group */
	int			set;
	int			ncolumns;

	/* The rows, while there are few of them. */
	int			nrows;
	int			capacity;
	NullableDatum *values;		/* row by row */
	Size		bytes;			/* of those that are passed by reference */
	GsFewRow   *sorted;			/* in order */

	/* Or all rows, none of which is NULL, if they have come in order so far. */
	GsSortedValues *in_order;
	NullableDatum last;			/* of them */

	int64		next;			/* that is returned next, unless by 'sort' */
	GsSort	   *sort;			/* has the rows, or NULL */
};

static GsSortKeys
keys_of(const Aggref *aggref)
{
	const List *clauses = gpusort_agg_order_clauses(aggref);
	int			count = list_length(clauses);
	GsSortKeys	keys = {
		.attnos = palloc(count * sizeof(AttrNumber)),
		.operators = palloc(count * sizeof(Oid)),
		.collations = palloc(count * sizeof(Oid)),
		.nulls_first = palloc(count * sizeof(bool))
	};
	ListCell   *lc;

	foreach(lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		TargetEntry *entry = get_sortgroupclause_tle(clause, aggref->args);

		keys.attnos[keys.nkeys] = entry->resno;
		keys.operators[keys.nkeys] = clause->sortop;
		keys.collations[keys.nkeys] = exprCollation((Node *) entry->expr);
		keys.nulls_first[keys.nkeys] = clause->nulls_first;
		keys.nkeys++;
	}
	return keys;
}

/* Has every sort key an order, no distrusted encoding, and the first one an encoding? */
static bool
can_sort_by(const GsSortKeys *keys)
{
	bool		descending;

	for (int k = 0; k < keys->nkeys; k++)
		if (!OidIsValid(keys->operators[k]) ||
			gpusort_key_encoding_is_distrusted(keys->operators[k], keys->collations[k]))
			return false;
	return gpusort_key_encoding_find(keys->operators[0], keys->collations[0],
									 &descending).kind != GS_ENCODE_NONE;
}

const List *
gpusort_agg_order_clauses(const Aggref *aggref)
{
	return aggref->aggdistinct != NIL ? aggref->aggdistinct : aggref->aggorder;
}

GsAggRowOrder *
gpusort_agg_row_order_create(const AggState *agg, const Aggref *aggref)
{
	GsSortKeys	keys = keys_of(aggref);
	GsAggRowOrder *order;

	if (!can_sort_by(&keys))
		return NULL;
	order = palloc0(sizeof(GsAggRowOrder));
	order->context = CurrentMemoryContext;
	order->template.tupdesc = ExecTypeFromTL(aggref->args);
	order->template.keys = keys;
	order->template.plan_node = agg->ss.ps.plan->plan_node_id;
	order->template.nested = true;
	order->specs = palloc0(Max(agg->maxsets, 1) * sizeof(GsSortSpec *));
	order->slot = MakeSingleTupleTableSlot(order->template.tupdesc,
										   &TTSOpsVirtual);
	order->by_value = order->template.tupdesc->natts == 1 &&
		TupleDescAttr(order->template.tupdesc, 0)->attbyval;
	order->ngroups = 1;
	return order;
}

void
gpusort_agg_row_order_share(GsAggRowOrder *order, int ngroups)
{
	order->ngroups = ngroups;
}

/*
 * Prepare comparisons.  This is not done before there are rows, because it may raise
 * errors.
 */
static void
prepare_comparisons(GsAggRowOrder *order)
{
	MemoryContext caller = MemoryContextSwitchTo(order->context);
	const GsSortKeys *keys = &order->template.keys;
	SortSupport comparisons = palloc0(keys->nkeys * sizeof(SortSupportData));

	for (int k = 0; k < keys->nkeys; k++)
	{
		comparisons[k].abbreviate = k == 0;
		gpusort_key_comparison_prepare(keys, k, &comparisons[k]);
	}
	order->comparisons = comparisons;
	MemoryContextSwitchTo(caller);
}

GsAggRows *
gpusort_agg_rows_begin(GsAggRowOrder *order, int set)
{
	GsAggRows  *rows = palloc0(sizeof(GsAggRows));

	if (order->comparisons == NULL)
		prepare_comparisons(order);
	rows->order = order;
	rows->context = CurrentMemoryContext;
	rows->set = set;
	rows->ncolumns = order->template.tupdesc->natts;
	return rows;
}

/* ----------------------------------------------------------------
 *		many rows
 * ----------------------------------------------------------------
 */

/*
 * Returns the memory for the sort of a group: a share of pg_gpusort.work_mem, but no less
 * than PostgreSQL gives each of these sorts.
 */
static Size
memory_for_group(const GsAggRowOrder *order)
{
	return (Size) Max(gpusort_settings_work_mem() / order->ngroups,
					  work_mem) * 1024;
}

/* Returns the description of the sorts of a grouping set. */
static const GsSortSpec *
spec_for_set(GsAggRowOrder *order, int set)
{
	MemoryContext caller;
	GsSortSpec *spec = order->specs[set];

	if (spec != NULL)
		return spec;
	caller = MemoryContextSwitchTo(order->context);
	spec = palloc(sizeof(GsSortSpec));
	*spec = order->template;
	(void) gpusort_sort_plan_keys(spec);
	spec->memory = memory_for_group(order);
	spec->expected_rows = FEW_ROWS;
	order->specs[set] = spec;
	MemoryContextSwitchTo(caller);
	return spec;
}

static void
put_into_sort(GsAggRows *rows, const NullableDatum *row)
{
	TupleTableSlot *slot = rows->order->slot;

	ExecClearTuple(slot);
	for (int c = 0; c < rows->ncolumns; c++)
	{
		slot->tts_values[c] = row[c].value;
		slot->tts_isnull[c] = row[c].isnull;
	}
	ExecStoreVirtualTuple(slot);
	(void) gpusort_sort_add(rows->sort, slot);
}

/* Free the arrays. */
static void
free_arrays(GsAggRows *rows)
{
	TupleDesc	tupdesc = rows->order->template.tupdesc;

	if (rows->values == NULL)
		return;
	for (int c = 0; c < rows->ncolumns; c++)
	{
		if (TupleDescAttr(tupdesc, c)->attbyval)
			continue;
		for (int r = 0; r < rows->nrows; r++)
		{
			const NullableDatum *value = &rows->values[r * rows->ncolumns + c];

			if (!value->isnull)
				pfree(DatumGetPointer(value->value));
		}
	}
	pfree(rows->values);
	rows->values = NULL;
	rows->nrows = 0;
}

/* Put the rows that have come in order into the sort. */
static void
put_list_into_sort(GsAggRows *rows)
{
	int64		count = gpusort_sorted_values_count(rows->in_order);
	NullableDatum value = {.isnull = false};

	for (int64 i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(sizeof(Datum));
		value.value = gpusort_sorted_values_get(rows->in_order, i);
		put_into_sort(rows, &value);
	}
	gpusort_sorted_values_clear(rows->in_order);
	rows->in_order = NULL;
}

/*
 * At the end of a group, which comes early if the Agg is rescanned or no more of its rows
 * are wanted.  The end of the memory context alone would leave temporary files open.
 */
static void
end_sort(Datum arg)
{
	GsAggRows  *rows = (GsAggRows *) DatumGetPointer(arg);

	if (rows->sort != NULL)
		gpusort_sort_end(rows->sort);
	rows->sort = NULL;
}

/* Let a sort have the rows, and all that follow. */
static void
begin_sort(GsAggRows *rows, FunctionCallInfo fcinfo)
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);

	AggRegisterCallback(fcinfo, end_sort, PointerGetDatum(rows));
	rows->sort = gpusort_sort_begin(spec_for_set(rows->order, rows->set));
	for (int r = 0; r < rows->nrows; r++)
		put_into_sort(rows, &rows->values[r * rows->ncolumns]);
	free_arrays(rows);
	if (rows->in_order != NULL)
		put_list_into_sort(rows);
	MemoryContextSwitchTo(caller);
}

/*
 * Count a sort.  pg_gpusort.debug_require says nothing of it, since it is not a sort of the
 * plan.
 */
static void
count_sort(GsAggRowOrder *order, GsSort *sort)
{
	GsSortReport report;
	GsSortCounts counts = {.sorts = !order->counted};

	gpusort_sort_report(sort, &report);
	counts.rows = gpusort_sort_count(sort);
	counts.bytes = (uint64) report.space_kb * 1024;
	counts.drain_us = (uint64) (report.drain_ms * 1000);
	counts.sort_us = (uint64) (report.sort_ms * 1000);
	gpusort_stats_count_sort(report.kind, &counts);
	order->counted = true;
}

static void
perform_sort(GsAggRows *rows)
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);

	(void) gpusort_sort_finish(rows->sort);
	count_sort(rows->order, rows->sort);
	MemoryContextSwitchTo(caller);
}

static bool
next_of_sort(GsAggRows *rows, NullableDatum *row)
{
	TupleTableSlot *slot = rows->order->slot;

	if (!gpusort_sort_next(rows->sort, true, slot))
	{
		end_sort(PointerGetDatum(rows));
		return false;
	}
	for (int c = 0; c < rows->ncolumns; c++)
	{
		row[c].value = slot->tts_values[c];
		row[c].isnull = slot->tts_isnull[c];
	}
	return true;
}

/* ----------------------------------------------------------------
 *		few rows
 * ----------------------------------------------------------------
 */

static void
make_room(GsAggRows *rows)
{
	Size		row_bytes = rows->ncolumns * sizeof(NullableDatum);

	if (rows->capacity == 0)
	{
		rows->capacity = INITIAL_CAPACITY;
		rows->values = MemoryContextAlloc(rows->context,
										  INITIAL_CAPACITY * row_bytes);
		return;
	}
	rows->capacity *= 2;
	rows->values = repalloc(rows->values, rows->capacity * row_bytes);
}

static void
copy_into_arrays(GsAggRows *rows, const NullableDatum *row)
{
	TupleDesc	tupdesc = rows->order->template.tupdesc;
	MemoryContext caller;
	NullableDatum *copy;

	if (rows->nrows == rows->capacity)
		make_room(rows);
	copy = &rows->values[rows->nrows++ * rows->ncolumns];
	caller = MemoryContextSwitchTo(rows->context);
	for (int c = 0; c < rows->ncolumns; c++)
	{
		Form_pg_attribute column = TupleDescAttr(tupdesc, c);

		copy[c] = row[c];
		if (!column->attbyval && !row[c].isnull)
		{
			copy[c].value = datumCopy(row[c].value, false, column->attlen);
			rows->bytes += datumGetSize(copy[c].value, false, column->attlen);
		}
	}
	MemoryContextSwitchTo(caller);
}

static const NullableDatum *
row_in_arrays(const GsAggRows *rows, int number)
{
	return &rows->values[number * rows->ncolumns];
}

/* Compare two rows by one of the sort keys.  The first one may have been abbreviated. */
static int
compare_key(const SortSupport comparison, const NullableDatum *one,
			const NullableDatum *two)
{
	int			column = comparison->ssup_attno - 1;

	if (comparison->abbrev_converter != NULL)
		return ApplySortAbbrevFullComparator(one[column].value, one[column].isnull,
											 two[column].value, two[column].isnull,
											 comparison);
	return ApplySortComparator(one[column].value, one[column].isnull,
							   two[column].value, two[column].isnull,
							   comparison);
}

/* Compare two rows by the sort keys from number 'first' on. */
static int
compare_from(const GsAggRowOrder *order, int first, const NullableDatum *one,
			 const NullableDatum *two)
{
	int			result = 0;

	for (int k = first; k < order->template.keys.nkeys && result == 0; k++)
		result = compare_key(&order->comparisons[k], one, two);
	return result;
}

/* A qsort_arg_comparator of rows. */
static int
compare_rows(const void *a, const void *b, void *arg)
{
	const GsAggRows *rows = arg;
	const GsFewRow *one = a;
	const GsFewRow *two = b;
	int			result = ApplySortComparator(one->key.value, one->key.isnull,
											 two->key.value, two->key.isnull,
											 &rows->order->comparisons[0]);

	if (result == 0)
	{
		bool		is_whole = rows->order->comparisons[0].abbrev_converter == NULL;

		result = compare_from(rows->order, is_whole ? 1 : 0,
							  row_in_arrays(rows, one->number),
							  row_in_arrays(rows, two->number));
	}
	return result != 0 ? result : one->number - two->number;
}

static void
sort_arrays(GsAggRows *rows)
{
	SortSupport first = &rows->order->comparisons[0];

	rows->sorted = MemoryContextAlloc(rows->context,
									  Max(rows->nrows, 1) * sizeof(GsFewRow));
	for (int r = 0; r < rows->nrows; r++)
	{
		GsFewRow   *row = &rows->sorted[r];

		row->number = r;
		row->key = row_in_arrays(rows, r)[first->ssup_attno - 1];
		if (first->abbrev_converter != NULL && !row->key.isnull)
			row->key.value = first->abbrev_converter(row->key.value, first);
	}
	qsort_arg(rows->sorted, rows->nrows, sizeof(GsFewRow), compare_rows, rows);
}

static bool
next_of_arrays(GsAggRows *rows, NullableDatum *row)
{
	if (rows->next >= rows->nrows)
		return false;
	memcpy(row, row_in_arrays(rows, rows->sorted[rows->next++].number),
		   rows->ncolumns * sizeof(NullableDatum));
	return true;
}

/* ----------------------------------------------------------------
 *		rows that come in order
 * ----------------------------------------------------------------
 */

/* Does a value follow another one? */
static bool
follows(const GsAggRows *rows, const NullableDatum *value,
		const NullableDatum *before)
{
	return !value->isnull && !before->isnull &&
		compare_from(rows->order, 0, before, value) <= 0;
}

/* Have the few rows come in order? */
static bool
came_in_order(const GsAggRows *rows)
{
	for (int r = 1; r < rows->nrows; r++)
		if (!follows(rows, &rows->values[r], &rows->values[r - 1]))
			return false;
	return true;
}

static void
add_to_list(GsAggRows *rows, FunctionCallInfo fcinfo, const NullableDatum *value)
{
	gpusort_sorted_values_add(fcinfo, rows->in_order, value->value);
	rows->last = *value;
}

/* Move the few rows to a list. */
static void
begin_list(GsAggRows *rows, FunctionCallInfo fcinfo)
{
	Oid			type = TupleDescAttr(rows->order->template.tupdesc, 0)->atttypid;

	rows->in_order = gpusort_sorted_values_create(fcinfo, type);
	for (int r = 0; r < rows->nrows; r++)
		add_to_list(rows, fcinfo, &rows->values[r]);
	free_arrays(rows);
}

static bool
next_of_list(GsAggRows *rows, NullableDatum *row)
{
	if (rows->next >= gpusort_sorted_values_count(rows->in_order))
		return false;
	row->value = gpusort_sorted_values_get(rows->in_order, rows->next++);
	row->isnull = false;
	return true;
}

/* ----------------------------------------------------------------
 *		all rows
 * ----------------------------------------------------------------
 */

/* After the first rows: is a list still enough, with one more row? */
static bool
is_list(GsAggRows *rows, FunctionCallInfo fcinfo, const NullableDatum *row)
{
	if (rows->in_order != NULL)
		return follows(rows, row, &rows->last);
	if (rows->order->by_value && came_in_order(rows) &&
		follows(rows, row, &rows->values[rows->nrows - 1]))
		begin_list(rows, fcinfo);
	return rows->in_order != NULL;
}

/* Is one row more still one of few? */
static bool
is_one_of_few(const GsAggRows *rows)
{
	return rows->in_order == NULL && rows->nrows < FEW_ROWS &&
		rows->bytes <= memory_for_group(rows->order);
}

void
gpusort_agg_rows_add(GsAggRows *rows, FunctionCallInfo fcinfo)
{
	const NullableDatum *row = &fcinfo->args[1];

	CHECK_FOR_INTERRUPTS();
	if (rows->sort != NULL)
		put_into_sort(rows, row);
	else if (is_one_of_few(rows))
		copy_into_arrays(rows, row);
	else if (is_list(rows, fcinfo, row))
		add_to_list(rows, fcinfo, row);
	else
	{
		begin_sort(rows, fcinfo);
		put_into_sort(rows, row);
	}
}

void
gpusort_agg_rows_sort(GsAggRows *rows)
{
	if (rows->sort != NULL)
		perform_sort(rows);
	else if (rows->in_order == NULL)
		sort_arrays(rows);
}

bool
gpusort_agg_rows_next(GsAggRows *rows, NullableDatum *row)
{
	if (rows->sort != NULL)
		return next_of_sort(rows, row);
	if (rows->in_order != NULL)
		return next_of_list(rows, row);
	return next_of_arrays(rows, row);
}
