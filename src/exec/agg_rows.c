/*-------------------------------------------------------------------------
 *
 * agg_rows.c
 *		Sorts the rows of a group of an aggregate.
 *
 * Most groups may be small, so the first rows are kept in an array and sorted by
 * comparisons, which costs less than to begin a sort.  When a group has more rows, a
 * sort takes them and all that follow.  But as long as rows come in order, and are single
 * values that are passed by value, the array is enough, and continues in a temporary file.
 * The same holds for rows that are known to come in order, except that a sort takes those
 * passed by reference when memory is full.
 *
 * That sort has no GPU, because its rows could not be read again if they were lost.  It
 * is a nested sort: all groups of an aggregate together are counted as one sort.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_aggregate.h"
#include "commands/tablespace.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "storage/buffile.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"

#include "agg_context.h"
#include "exec/gpusort_node.h"
#include "exec/presorted_agg.h"
#include "key/distrust.h"
#include "key/key_comparison.h"
#include "sort/first_keys.h"
#include "sort/sort.h"
#include "work.h"

#define INITIAL_CAPACITY	8

struct GsAggRowOrder
{
	AggState   *agg;
	const PlanState *sorted;	/* below the Agg, if its rows come in order */
	MemoryContext context;		/* as long as the execution */
	GsSortSpec	template;		/* of the sort of a group, without key plan */
	GsSortSpec **specs;			/* for each grouping set; NULL before use */
	SortSupport comparisons;	/* of the sort keys; NULL before use */
	TupleTableSlot *slot;		/* for a row of a sort */
	NullableDatum *row;			/* for a row that is put there */
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

	/* Rows in memory: all, or those after the rows in the file. */
	int64		nrows;
	int64		capacity;
	NullableDatum *values;		/* row by row */
	Size		bytes;			/* of those that are passed by reference */
	bool		in_order;		/* have all rows come in order? */
	GsFewRow   *sorted;			/* otherwise: few rows in order */

	/* Rows of a single value that is passed by value, which come in order. */
	NullableDatum last;			/* the last one of all */
	BufFile    *file;			/* or NULL */
	int64		in_file;

	int64		next;			/* that is returned next, unless by 'sort' */
	GsSort	   *sort;			/* has the rows, or NULL */
	GsFirstKeys *keys;			/* to read them by their positions, or those
								 * that the node below withholds */
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
	for (int k = 0; k < keys->nkeys; k++)
		if (!OidIsValid(keys->operators[k]) ||
			gpusort_distrust_has(keys->operators[k], keys->collations[k]))
			return false;
	return gpusort_key_encoding_find(keys->operators[0], keys->collations[0],
									 NULL).kind != GS_ENCODE_NONE;
}

GsAggRowOrder *
gpusort_agg_row_order_create(AggState *agg, const Aggref *aggref, int nsorts,
							 const PlanState *sorted)
{
	GsSortKeys	keys = keys_of(aggref);
	GsAggRowOrder *order;

	if (sorted == NULL && !can_sort_by(&keys))
		return NULL;
	order = palloc0(sizeof(GsAggRowOrder));
	order->agg = agg;
	order->sorted = sorted;
	order->context = CurrentMemoryContext;
	order->template.tupdesc = ExecTypeFromTL(aggref->args);
	order->template.keys = keys;
	order->template.plan_node = agg->ss.ps.plan->plan_node_id;
	order->template.nested = true;
	order->template.random_access = AGGKIND_IS_ORDERED_SET(aggref->aggkind);
	order->specs = palloc0(Max(agg->maxsets, 1) * sizeof(GsSortSpec *));
	order->slot = MakeSingleTupleTableSlot(order->template.tupdesc,
										   &TTSOpsVirtual);
	order->by_value = order->template.tupdesc->natts == 1 &&
		TupleDescAttr(order->template.tupdesc, 0)->attbyval;
	order->row = palloc0(order->template.tupdesc->natts * sizeof(NullableDatum));
	order->ngroups = nsorts * Max(agg->maxsets, 1);
	return order;
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
gpusort_agg_rows_begin(FunctionCallInfo fcinfo, GsAggRowOrder *order)
{
	MemoryContext group = gpusort_agg_context(fcinfo);
	MemoryContext caller = MemoryContextSwitchTo(group);
	GsAggRows  *rows = palloc0(sizeof(GsAggRows));
	GsSort	   *withheld = order->sorted == NULL ? NULL :
		gpusort_node_withheld_sort(order->sorted);

	if (order->comparisons == NULL && order->sorted == NULL)
		prepare_comparisons(order);
	rows->order = order;
	rows->context = group;
	rows->set = order->agg->current_set;
	rows->ncolumns = order->template.tupdesc->natts;
	rows->in_order = order->sorted != NULL;
	if (withheld != NULL)
		rows->keys = gpusort_first_keys_create(withheld);
	MemoryContextSwitchTo(caller);
	return rows;
}

/*
 * Returns the memory for a group: a share of pg_gpusort.work_mem, but no less than PostgreSQL gives
 * each of these sorts.
 */
static Size
memory_for_group(const GsAggRowOrder *order)
{
	return (Size) Max(gpusort_settings_work_mem() / order->ngroups,
					  work_mem) * 1024;
}

/*
 * At the end of a group, which comes early if the Agg is rescanned or no more of its rows
 * are wanted.  The end of the memory context alone would leave temporary files open.
 */
static void
release(Datum arg)
{
	GsAggRows  *rows = (GsAggRows *) DatumGetPointer(arg);

	if (rows->file != NULL)
		BufFileClose(rows->file);
	if (rows->sort != NULL)
		gpusort_sort_end(rows->sort);
	rows->file = NULL;
	rows->sort = NULL;
}

/* ----------------------------------------------------------------
 *		rows in memory and in a file
 * ----------------------------------------------------------------
 */

/* Is there memory for another row? */
static bool
has_room(GsAggRows *rows)
{
	Size		limit = memory_for_group(rows->order);
	Size		row_bytes = rows->ncolumns * sizeof(NullableDatum);
	int64		capacity = Max(2 * rows->capacity, INITIAL_CAPACITY);

	if (rows->nrows * row_bytes + rows->bytes > limit)
		return false;
	if (rows->nrows < rows->capacity)
		return true;
	if (capacity * row_bytes > limit)
		return false;
	rows->values = rows->values == NULL ?
		MemoryContextAlloc(rows->context, capacity * row_bytes) :
		repalloc_huge(rows->values, capacity * row_bytes);
	rows->capacity = capacity;
	return true;
}

static void
keep_row(GsAggRows *rows, const NullableDatum *row)
{
	TupleDesc	tupdesc = rows->order->template.tupdesc;
	MemoryContext caller = MemoryContextSwitchTo(rows->context);
	NullableDatum *copy = &rows->values[rows->nrows++ * rows->ncolumns];

	for (int c = 0; c < rows->ncolumns; c++)
	{
		Form_pg_attribute column = TupleDescAttr(tupdesc, c);

		copy[c] = row[c];
		if (!column->attbyval && !row[c].isnull)
		{
			copy[c].value = datumCopy(row[c].value, false, column->attlen);
			rows->bytes += GetMemoryChunkSpace(DatumGetPointer(copy[c].value));
		}
	}
	rows->last = row[0];
	MemoryContextSwitchTo(caller);
}

/* Move the rows in memory to the end of the file. */
static void
spill(FunctionCallInfo fcinfo, GsAggRows *rows)
{
	if (rows->file == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(rows->context);

		PrepareTempTablespaces();
		rows->file = BufFileCreateTemp(false);
		AggRegisterCallback(fcinfo, release, PointerGetDatum(rows));
		MemoryContextSwitchTo(caller);
	}
	BufFileWrite(rows->file, rows->values, rows->nrows * sizeof(NullableDatum));
	rows->in_file += rows->nrows;
	rows->nrows = 0;
}

static void
read_file(const GsAggRows *rows, int64 position, NullableDatum *row)
{
	if (BufFileSeek(rows->file, 0, position * sizeof(NullableDatum), SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file: %m")));
	if (BufFileRead(rows->file, row, sizeof(NullableDatum)) != sizeof(NullableDatum))
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from temporary file: %m")));
}

static const NullableDatum *
row_in_memory(const GsAggRows *rows, int64 number)
{
	return &rows->values[number * rows->ncolumns];
}

/* Get the row with a number, in the order in which they came unless they are sorted. */
static void
get_row(const GsAggRows *rows, int64 number, NullableDatum *row)
{
	if (rows->sorted != NULL)
		number = rows->sorted[number].number;
	if (number < rows->in_file)
		read_file(rows, number, row);
	else
		memcpy(row, row_in_memory(rows, number - rows->in_file),
			   rows->ncolumns * sizeof(NullableDatum));
}

static void
free_rows(GsAggRows *rows)
{
	TupleDesc	tupdesc = rows->order->template.tupdesc;

	for (int c = 0; c < rows->ncolumns; c++)
	{
		if (TupleDescAttr(tupdesc, c)->attbyval)
			continue;
		for (int64 r = 0; r < rows->nrows; r++)
		{
			const NullableDatum *value = &row_in_memory(rows, r)[c];

			if (!value->isnull)
				pfree(DatumGetPointer(value->value));
		}
	}
	if (rows->values != NULL)
		pfree(rows->values);
	if (rows->file != NULL)
		BufFileClose(rows->file);
	rows->values = NULL;
	rows->file = NULL;
	rows->nrows = 0;
	rows->in_file = 0;
}

/* ----------------------------------------------------------------
 *		many rows
 * ----------------------------------------------------------------
 */

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
	spec->expected_rows = GPUSORT_FEW_ROWS;
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

/* Let a sort have the rows, and all that follow. */
static void
begin_sort(FunctionCallInfo fcinfo, GsAggRows *rows)
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);
	int64		count = rows->in_file + rows->nrows;

	AggRegisterCallback(fcinfo, release, PointerGetDatum(rows));
	rows->sort = gpusort_sort_begin(spec_for_set(rows->order, rows->set));
	for (int64 r = 0; r < count; r++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(rows->ncolumns * sizeof(Datum));
		get_row(rows, r, rows->order->row);
		put_into_sort(rows, rows->order->row);
	}
	free_rows(rows);
	rows->in_order = false;
	MemoryContextSwitchTo(caller);
}

static void
perform_sort(GsAggRows *rows)
{
	GsAggRowOrder *order = rows->order;
	MemoryContext caller = MemoryContextSwitchTo(rows->context);

	(void) gpusort_sort_finish(rows->sort);

	/* debug_require says nothing of it, since it is not a sort of the plan. */
	gpusort_sort_count_part(rows->sort, !order->counted);
	order->counted = true;
	if (order->template.random_access)
		rows->keys = gpusort_first_keys_create(rows->sort);
	MemoryContextSwitchTo(caller);
}

static bool
next_of_sort(GsAggRows *rows, NullableDatum *row)
{
	TupleTableSlot *slot = rows->order->slot;

	if (!gpusort_sort_next(rows->sort, true, slot))
	{
		release(PointerGetDatum(rows));
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
							  row_in_memory(rows, one->number),
							  row_in_memory(rows, two->number));
	}
	return result != 0 ? result : one->number - two->number;
}

static void
sort_few_rows(GsAggRows *rows)
{
	SortSupport first = &rows->order->comparisons[0];

	rows->sorted = MemoryContextAlloc(rows->context,
									  Max(rows->nrows, 1) * sizeof(GsFewRow));
	for (int r = 0; r < rows->nrows; r++)
	{
		GsFewRow   *row = &rows->sorted[r];

		row->number = r;
		row->key = row_in_memory(rows, r)[first->ssup_attno - 1];
		if (first->abbrev_converter != NULL && !row->key.isnull)
			row->key.value = first->abbrev_converter(row->key.value, first);
	}
	qsort_arg(rows->sorted, rows->nrows, sizeof(GsFewRow), compare_rows, rows);
}

/* ----------------------------------------------------------------
 *		all rows
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
	for (int64 r = 1; r < rows->nrows; r++)
		if (!follows(rows, &rows->values[r], &rows->values[r - 1]))
			return false;
	return true;
}

/* After the first rows: do rows still come in order, with one more row? */
static bool
comes_in_order(GsAggRows *rows, const NullableDatum *row)
{
	if (rows->order->sorted != NULL)
		return true;
	if (rows->nrows == GPUSORT_FEW_ROWS && rows->in_file == 0)
		rows->in_order = rows->order->by_value && came_in_order(rows);
	return rows->in_order && follows(rows, row, &rows->last);
}

/* Can one more row be kept without a sort?  Then there is room for it. */
static bool
can_keep(FunctionCallInfo fcinfo, GsAggRows *rows, const NullableDatum *row)
{
	if (gpusort_agg_rows_count(rows) >= GPUSORT_FEW_ROWS && !comes_in_order(rows, row))
		return false;
	if (has_room(rows))
		return true;
	if (!rows->in_order || !rows->order->by_value)
		return false;
	spill(fcinfo, rows);
	return true;
}

void
gpusort_agg_rows_add(FunctionCallInfo fcinfo, GsAggRows *rows)
{
	const NullableDatum *row = &fcinfo->args[1];

	CHECK_FOR_INTERRUPTS();
	if (rows->sort == NULL && can_keep(fcinfo, rows, row))
	{
		keep_row(rows, row);
		return;
	}
	if (rows->sort == NULL)
		begin_sort(fcinfo, rows);
	put_into_sort(rows, row);
}

void
gpusort_agg_rows_sort(GsAggRows *rows)
{
	if (rows->in_order || rows->sorted != NULL || rows->keys != NULL)
		return;
	if (rows->sort != NULL)
		perform_sort(rows);
	else
		sort_few_rows(rows);
}

bool
gpusort_agg_rows_next(GsAggRows *rows, NullableDatum *row)
{
	if (rows->sort != NULL)
		return next_of_sort(rows, row);
	if (rows->next >= gpusort_agg_rows_count(rows))
		return false;
	get_row(rows, rows->next++, row);
	return true;
}

int64
gpusort_agg_rows_count(const GsAggRows *rows)
{
	if (rows->keys != NULL)
		return gpusort_first_keys_number(rows->keys);
	return rows->in_file + rows->nrows;
}

Datum
gpusort_agg_rows_get(GsAggRows *rows, int64 position)
{
	NullableDatum row;

	if (rows->keys != NULL)
		return gpusort_first_keys_get(rows->keys, position);
	get_row(rows, position, &row);
	return row.value;
}

Datum
gpusort_agg_rows_copy(GsAggRows *rows, int64 position)
{
	Form_pg_attribute column = TupleDescAttr(rows->order->template.tupdesc, 0);

	return datumCopy(gpusort_agg_rows_get(rows, position), column->attbyval, column->attlen);
}
