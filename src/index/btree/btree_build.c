/*-------------------------------------------------------------------------
 *
 * btree_build.c
 *		Builds a btree index: its rows, their sort, and the order in which they are written.
 *
 * Rows of the table become rows of the sort as they are.  Each sorted row becomes an index tuple
 * and is given to the loader.  Rows of several processes come in no particular order, so the TID is
 * an additional sort key then.
 *
 * Rows of a unique index come in the order of the keys, so each live row is compared with the live
 * row before it, whose values are kept.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/stratnum.h"
#include "catalog/pg_index.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "index/btree/btree.h"
#include "key/key_statistics.h"
#include "sort/base/group_keys.h"
#include "sort/base/warm_memory.h"
#include "sort/gpu/gpu_session.h"
#include "sort/sort.h"
#include "work.h"

/* The number of rows between two reports of progress. */
#define ROWS_PER_REPORT		1024

/* If so few rows can be written where they are, so many are not tried. */
#define FEW_ROWS_IN_PLACE	64

/* ----------------------------------------------------------------
 *		rows and their sort
 * ----------------------------------------------------------------
 */

/*
 * Workers can put rows into a GPU session, or sort them in memory that all processes share.  A
 * leader that merged their runs alone would take as long as without them.
 */
static int
plan_workers(const GsIndexBuild *build)
{
	if (gpusort_warm_memory_shared_limit() == 0 &&
		gpusort_gpu_session_check(build->spec.expected_rows, false) != GS_REASON_NONE)
		return 0;
	return build->info->ii_ParallelWorkers;
}

/* Set a sort key.  Returns false if there is no operator for it. */
static bool
set_key(GsSortKeys *keys, int k, Relation index)
{
	int16		options = index->rd_indoption[k];
	bool		descending = (options & INDOPTION_DESC) != 0;

	keys->attnos[k] = k + 1;
	keys->operators[k] = get_opfamily_member(index->rd_opfamily[k], index->rd_opcintype[k],
											 index->rd_opcintype[k],
											 descending ? BTGreaterStrategyNumber :
											 BTLessStrategyNumber);
	keys->collations[k] = index->rd_indcollation[k];
	keys->nulls_first[k] = (options & INDOPTION_NULLS_FIRST) != 0;
	return OidIsValid(keys->operators[k]);
}

/*
 * Set the sort keys.  'by_tid' makes the TID the last one, for rows that do not arrive in TID
 * order.
 */
static bool
set_keys(GsSortKeys *keys, Relation index, bool by_tid)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	int			size = nkeys + 1;

	keys->attnos = palloc(size * sizeof(AttrNumber));
	keys->operators = palloc(size * sizeof(Oid));
	keys->collations = palloc0(size * sizeof(Oid));
	keys->nulls_first = palloc0(size * sizeof(bool));
	for (int k = 0; k < nkeys; k++)
		if (!set_key(keys, k, index))
			return false;
	keys->attnos[nkeys] = RelationGetNumberOfAttributes(index) + 1;
	keys->operators[nkeys] = Int8LessOperator;
	keys->nkeys = nkeys + (by_tid ? 1 : 0);
	return true;
}

/*
 * Make the descriptor of the sort's rows: the columns of the index and the "tid", which is the
 * row's TID and whether the row is dead.  All columns that are passed by value become 8 bytes
 * wide, because a sort reads and writes such rows fastest.
 */
static TupleDesc
make_tupdesc(Relation index)
{
	TupleDesc	columns = RelationGetDescr(index);
	TupleDesc	rows = CreateTemplateTupleDesc(columns->natts + 1);

	for (int i = 0; i < columns->natts; i++)
	{
		if (TupleDescAttr(columns, i)->attbyval)
			TupleDescInitEntry(rows, i + 1, NULL, INT8OID, -1, 0);
		else
			TupleDescCopyEntry(rows, i + 1, columns, i + 1);
	}
	TupleDescInitEntry(rows, columns->natts + 1, "tid", INT8OID, -1, 0);
	TupleDescFinalize(rows);
	return rows;
}

static bool
describe(GsIndexBuild *build)
{
	build->spec.by_pages = true;
	build->spec.tupdesc = make_tupdesc(build->index);
	return set_keys(&build->spec.keys, build->index, build->nworkers > 0);
}

/* Estimates the width of an index column in bytes. */
static int
estimate_column(const GsIndexBuild *build, int i)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(build->index), i);
	AttrNumber	attno = build->info->ii_IndexAttrNumbers[i];
	int			width = 0;

	if (att->attbyval)
		return sizeof(Datum);
	if (AttributeNumberIsValid(attno))
		width = get_attavgwidth(RelationGetRelid(build->heap), attno);
	return width > 0 ? width :
		get_typavgwidth(att->atttypid, att->atttypmod);
}

/* Estimates the width of a row, with its TID, in bytes. */
static int
estimate_width(const GsIndexBuild *build)
{
	int			width = sizeof(uint64);

	for (int i = 0; i < build->info->ii_NumIndexAttrs; i++)
		width += estimate_column(build, i);
	return width;
}

/* Find out from statistics what the words of the keys tell apart. */
static void
judge_keys(GsIndexBuild *build)
{
	GsSortSpec *spec = &build->spec;
	GsSortKeys	keys = spec->keys;
	GsTableColumn columns[INDEX_MAX_KEYS];
	GsStringWords words = {0};

	/*
	 * After the keys of the index there may be the TID, by which a GPU leaves
	 * no ties.
	 */
	keys.nkeys = build->info->ii_NumIndexKeyAttrs;
	for (int k = 0; k < keys.nkeys; k++)
	{
		columns[k].table = RelationGetRelid(build->heap);
		columns[k].attno = build->info->ii_IndexAttrNumbers[k];
	}
	if (gpusort_gpu_session_check(spec->expected_rows, false) == GS_REASON_NONE)
		spec->expected_ties = gpusort_key_statistics_expect_ties(&keys, columns,
																 spec->expected_rows);
	if (gpusort_gpu_session_check(spec->expected_rows, spec->expected_ties) != GS_REASON_NONE)
		spec->keys.string_words = gpusort_key_statistics_string_words(&keys, columns,
																	  spec->expected_rows,
																	  &words);
}

static GsReason
plan_keys(GsIndexBuild *build)
{
	GsReason	reason;

	judge_keys(build);
	reason = gpusort_sort_plan_keys(&build->spec);
	if (reason == GS_REASON_NONE)
		build->spec.expected_width = estimate_width(build);
	return reason;
}

/* Read the next row of the table. */
static TupleTableSlot *
next_row(GsIndexBuild *build)
{
	TupleTableSlot *slot = build->slot;
	GsHeapRow	row;

	if (!gpusort_heap_rows_next(build->rows, &row, slot->tts_values, slot->tts_isnull))
		return NULL;
	slot->tts_values[build->info->ii_NumIndexAttrs] = gpusort_leaf_pack_tid(&row);
	return slot;
}

/* ----------------------------------------------------------------
 *		no two live rows of a unique index are equal
 * ----------------------------------------------------------------
 */

typedef struct GsUniqueCheck
{
	Relation	heap;
	Relation	index;
	int			nkeys;
	bool		nulls_are_equal;
	GsGroupKeys *previous;		/* the keys of the previous live row */
	bool		has_previous;
} GsUniqueCheck;

static GsUniqueCheck *
create_check(const GsIndexBuild *build)
{
	GsUniqueCheck *check = palloc0(sizeof(GsUniqueCheck));

	check->heap = build->heap;
	check->index = build->index;
	/* Leave out the TID. */
	check->nkeys = IndexRelationGetNumberOfKeyAttributes(build->index);
	check->nulls_are_equal = build->info->ii_NullsNotDistinct;
	check->previous = gpusort_group_keys_create(&build->spec, check->nkeys);
	return check;
}

/*
 * Raise the error of a duplicate.  Like PostgreSQL, we name the first of the
 * two rows.
 */
pg_noreturn static void
raise_duplicate(GsUniqueCheck *check)
{
	Datum	   *values;
	bool	   *isnull;
	char	   *key;

	gpusort_group_keys_get(check->previous, &values, &isnull);
	key = BuildIndexValueDescription(check->index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(check->index)),
			 key != NULL ? errdetail("Key %s is duplicated.", key) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(check->heap,
								RelationGetRelationName(check->index))));
}

/*
 * Check the key columns of the next live row in index order.  Raises stock PostgreSQL's error if
 * they are equal to those of the previous live row.
 */
static void
check_row(GsUniqueCheck *check, Datum *values, bool *isnull)
{
	bool		has_null = false;

	for (int k = 0; k < check->nkeys; k++)
		has_null |= isnull[k];

	/* A row with a NULL equals no other row, unless NULLs are equal. */
	if (has_null && !check->nulls_are_equal)
		return;
	if (check->has_previous && gpusort_group_keys_match(check->previous, values, isnull))
		raise_duplicate(check);
	gpusort_group_keys_keep(check->previous, values, isnull);
	check->has_previous = true;
}

/* ----------------------------------------------------------------
 *		index tuples of rows that are not in place
 *
 * Most tuples have short values and no NULLs.  They are formed here, in a buffer that is reused.
 * Others are left to index_form_tuple().
 * ----------------------------------------------------------------
 */

typedef struct GsTupleFormer
{
	TupleDesc	tupdesc;
	GsTupleColumn columns[INDEX_MAX_KEYS];
	IndexTuple	tuple;			/* GPUSORT_LEAF_TUPLE_BYTES */
	MemoryContext context;		/* of a tuple formed by PostgreSQL */
} GsTupleFormer;

static GsTupleFormer *
create_former(Relation index)
{
	GsTupleFormer *former = palloc(sizeof(GsTupleFormer));

	former->tupdesc = RelationGetDescr(index);
	for (int i = 0; i < former->tupdesc->natts; i++)
		former->columns[i] = gpusort_tuple_column(former->tupdesc, i);
	former->tuple = palloc0(GPUSORT_LEAF_TUPLE_BYTES);
	former->context = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort index tuple",
											ALLOCSET_DEFAULT_SIZES);
	return former;
}

/* Form a tuple of short values without NULLs.  Returns NULL if the row has other values. */
static inline IndexTuple
form_plainly(const GsTupleFormer *former, const Datum *values, const bool *isnull)
{
	IndexTuple	tuple = former->tuple;
	char	   *dest = (char *) tuple + MAXALIGN(sizeof(IndexTupleData));
	const char *limit = (char *) tuple + GPUSORT_LEAF_TUPLE_BYTES -
		2 * GPUSORT_TUPLE_VALUE_BYTES;
	bool		variable = false;

	for (int i = 0; i < former->tupdesc->natts; i++)
	{
		const GsTupleColumn *column = &former->columns[i];

		if (isnull[i] || dest > limit)
			return NULL;
		dest = gpusort_put_value(column, dest, values[i]);
		if (dest == NULL)
			return NULL;
		variable |= column->length < 0;
	}
	dest = gpusort_zero_pad(dest, MAXIMUM_ALIGNOF);
	tuple->t_info = (unsigned short) (dest - (char *) tuple) |
		(variable ? INDEX_VAR_MASK : 0);
	return tuple;
}

/* Returns the tuple of a row, which is valid until the next call. */
static IndexTuple
form_tuple(GsTupleFormer *former, Datum *values, bool *isnull, const ItemPointerData *tid)
{
	IndexTuple	tuple = form_plainly(former, values, isnull);

	if (unlikely(tuple == NULL))
	{
		MemoryContext caller;

		MemoryContextReset(former->context);
		caller = MemoryContextSwitchTo(former->context);
		tuple = index_form_tuple(former->tupdesc, values, isnull);
		MemoryContextSwitchTo(caller);
	}
	tuple->t_tid = *tid;
	return tuple;
}

/* ----------------------------------------------------------------
 *		writing pages
 * ----------------------------------------------------------------
 */

/* Where rows go. */
typedef struct GsBtreeWriter
{
	GsBtreeLoader *loader;
	GsTupleFormer *former;
	const GsLeafForm *form;		/* of rows in place, or NULL */
	GsUniqueCheck *check;		/* or NULL */
	int64		nrows;			/* so far */
	int64		next_in_place;	/* number of rows when to try those in place
								 * again */
} GsBtreeWriter;

/* GsRecallRows */
static void
recall_rows(void *arg, int64 position)
{
	GsBtreeWriter *writer = arg;

	gpusort_btree_loader_recall(writer->loader, position);
}

static void
begin_writing(GsIndexBuild *build, GsBtreeWriter *writer)
{
	memset(writer, 0, sizeof(*writer));
	writer->loader = gpusort_btree_loader_begin(build);
	writer->former = create_former(build->index);
	writer->form = gpusort_btree_loader_form(writer->loader);
	if (writer->form != NULL && gpusort_index_build_pages(build) != NULL)
		gpusort_sort_lend(build->producer.sort, recall_rows, writer);
	if (build->info->ii_Unique)
		writer->check = create_check(build);
}

/* Write the row in the slot. */
static inline void
write_row(GsIndexBuild *build, GsBtreeWriter *writer)
{
	Datum	   *values = build->slot->tts_values;
	bool	   *isnull = build->slot->tts_isnull;
	GsHeapRow	row;

	row = gpusort_leaf_unpack_tid(values[build->info->ii_NumIndexAttrs]);
	if (writer->check != NULL && row.alive)
		check_row(writer->check, values, isnull);
	gpusort_btree_loader_add(writer->loader,
							 form_tuple(writer->former, values, isnull, &row.tid));
	writer->nrows++;
}

/* Compare a row in place that has been written with the live row before it. */
static void
check_row_in_place(const GsBtreeWriter *writer, const char *row)
{
	Datum		values[INDEX_MAX_KEYS + 1];
	bool		isnull[INDEX_MAX_KEYS + 1] = {false};

	gpusort_leaf_values(writer->form, row, values);
	check_row(writer->check, values, isnull);
}

/* Are the first n rows in place in order, as far as that is checked? */
static bool
are_in_order(GsIndexBuild *build, const GsBtreeWriter *writer, const GsRowsInPlace *rows,
			 uint32 n)
{
	Datum		values[INDEX_MAX_KEYS + 1];
	bool		isnull[INDEX_MAX_KEYS + 1] = {false};
	GsRowPlace	place = gpusort_first_place(rows);

	while (place.number < n)
	{
		if (place.number % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
		gpusort_leaf_values(writer->form, place.row, values);
		if (!gpusort_sort_check_in_place(build->producer.sort, values, isnull))
			return false;
		gpusort_work_add(sizeof(Datum));
		place = gpusort_next_place(rows, place);
	}
	return true;
}

/*
 * Write rows where they are in memory, if that is possible.  Returns false if they are not in
 * order.
 */
static inline bool
write_rows_in_place(GsIndexBuild *build, GsBtreeWriter *writer)
{
	GsRowsInPlace rows;
	const char *last = NULL;
	uint32		n;

	if (writer->form == NULL || writer->nrows < writer->next_in_place ||
		!gpusort_sort_in_place(build->producer.sort, &rows))
		return true;
	n = gpusort_btree_loader_add_rows(writer->loader, &rows, writer->nrows, &last);
	if (writer->check != NULL && n > 0)
	{
		/* Each row is known to differ from the next one. */
		check_row_in_place(writer, rows.first);
		if (last != rows.first)
			check_row_in_place(writer, last);
	}
	if (!are_in_order(build, writer, &rows, n))
		return false;
	gpusort_sort_skip(build->producer.sort, n);
	writer->nrows += n;
	if (n < FEW_ROWS_IN_PLACE)
		writer->next_in_place = writer->nrows + FEW_ROWS_IN_PLACE;
	return true;
}

static bool
write_index(GsIndexBuild *build)
{
	GsSort	   *sort = build->producer.sort;
	GsBtreeWriter writer;
	int64		reported = 0;

	begin_writing(build, &writer);
	while (gpusort_sort_next(sort, true, build->slot))
	{
		CHECK_FOR_INTERRUPTS();
		write_row(build, &writer);
		if (!write_rows_in_place(build, &writer))
			break;
		if (writer.nrows >= reported + ROWS_PER_REPORT)
		{
			reported = writer.nrows;
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, reported);
		}
	}
	build->wrong_encoding = gpusort_sort_wrong_encoding(sort);
	if (gpusort_sort_is_lost(sort) || build->wrong_encoding != NULL)
	{
		gpusort_btree_loader_abandon(writer.loader);
		return false;
	}
	gpusort_btree_loader_end(writer.loader);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, writer.nrows);
	build->ntuples = (double) writer.nrows;
	return true;
}

/* ----------------------------------------------------------------
 *		the kind of index
 * ----------------------------------------------------------------
 */

const GsIndexKind gpusort_btree_kind = {
	.stock_build = btbuild,
	.by_phases = true,
	.fetch = true,
	.plan_workers = plan_workers,
	.describe = describe,
	.plan = plan_keys,
	.next = next_row,
	.write = write_index
};
