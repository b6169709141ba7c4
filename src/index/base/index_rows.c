/*-------------------------------------------------------------------------
 *
 * index_rows.c
 *		The rows that an index build sorts, and the index tuples they become.
 *
 * Most tuples have short values and no NULLs.  They are formed here, in a
 * buffer that is reused.  Others are left to index_form_tuple().
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/stratnum.h"
#include "access/tupmacs.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "index/base/index_rows.h"

/* Longer tuples, and tuples with longer values, are not formed here. */
#define MAX_TUPLE_BYTES		1024
#define MAX_VALUE_BYTES		256

typedef struct GsTupleColumn
{
	int16		length;			/* as pg_attribute.attlen; -2 if not formed
								 * here */
	uint8		alignment;		/* bytes */
	bool		byval;
	bool		packable;		/* can its values have one-byte headers? */
} GsTupleColumn;

struct GsTupleFormer
{
	TupleDesc	tupdesc;
	int			ncolumns;
	GsTupleColumn columns[INDEX_MAX_KEYS];
	IndexTuple	tuple;			/* MAX_TUPLE_BYTES, for tuples formed here */
	MemoryContext context;		/* of a tuple formed by PostgreSQL */
};

/* Set a sort key.  Returns false if there is no operator for it. */
static bool
set_key(GsSortKeys *keys, int k, Oid opfamily, Oid type, Oid collation,
		int16 options)
{
	bool		descending = (options & INDOPTION_DESC) != 0;

	keys->attnos[k] = k + 1;
	keys->operators[k] = get_opfamily_member(opfamily, type, type,
											 descending ?
											 BTGreaterStrategyNumber :
											 BTLessStrategyNumber);
	keys->collations[k] = collation;
	keys->nulls_first[k] = (options & INDOPTION_NULLS_FIRST) != 0;
	return OidIsValid(keys->operators[k]);
}

static bool
set_keys(Relation index, bool by_tid, GsSortKeys *keys)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	int			size = nkeys + 1;

	keys->attnos = palloc(size * sizeof(AttrNumber));
	keys->operators = palloc(size * sizeof(Oid));
	keys->collations = palloc(size * sizeof(Oid));
	keys->nulls_first = palloc(size * sizeof(bool));
	for (int k = 0; k < nkeys; k++)
		if (!set_key(keys, k, index->rd_opfamily[k], index->rd_opcintype[k],
					 index->rd_indcollation[k], index->rd_indoption[k]))
			return false;
	keys->nkeys = nkeys;
	if (!by_tid)
		return true;
	keys->nkeys++;
	if (!set_key(keys, nkeys, INTEGER_BTREE_FAM_OID, INT8OID, InvalidOid, 0))
		return false;
	keys->attnos[nkeys] = RelationGetNumberOfAttributes(index) + 1;
	return true;
}

/*
 * Make the descriptor of the sort's rows.  All columns that are passed by
 * value become 8 bytes wide, because a sort reads and writes such rows
 * fastest.
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

bool
gpusort_index_rows_describe(Relation index, bool by_tid, GsSortSpec *spec)
{
	spec->tupdesc = make_tupdesc(index);
	return set_keys(index, by_tid, &spec->keys);
}

/* ----------------------------------------------------------------
 *		index tuples
 * ----------------------------------------------------------------
 */

GsTupleFormer *
gpusort_tuple_former_create(Relation index)
{
	GsTupleFormer *former = palloc0(sizeof(GsTupleFormer));

	former->tupdesc = RelationGetDescr(index);
	former->ncolumns = former->tupdesc->natts;
	for (int i = 0; i < former->ncolumns; i++)
	{
		Form_pg_attribute att = TupleDescAttr(former->tupdesc, i);

		former->columns[i] = (GsTupleColumn)
		{
			.length = att->attlen <= MAX_VALUE_BYTES ? att->attlen : -2,
				.alignment = att_align_nominal(1, att->attalign),
				.byval = att->attbyval,
				.packable = att->attstorage != TYPSTORAGE_PLAIN
		};
	}
	former->tuple = palloc0(MAX_TUPLE_BYTES);
	former->context = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort index tuple",
											ALLOCSET_DEFAULT_SIZES);
	return former;
}

/* Align a pointer into a tuple, and fill the gap with zeros. */
static inline char *
zero_pad(char *dest, Size alignment)
{
	char	   *aligned = (char *) TYPEALIGN(alignment, dest);

	while (dest < aligned)
		*dest++ = 0;
	return aligned;
}

/*
 * Append a value to a tuple that ends at 'dest'.  Returns the new end, or
 * NULL if the value is not supported here.
 */
static inline char *
put_value(const GsTupleColumn *column, char *dest, Datum value)
{
	if (column->length == -1)
		return gpusort_put_short_value(dest, (struct varlena *) DatumGetPointer(value),
									   column->packable);
	if (column->length < 0)
		return NULL;
	dest = zero_pad(dest, column->alignment);
	if (column->byval)
		store_att_byval(dest, value, column->length);
	else
		gpusort_copy_bytes(dest, DatumGetPointer(value), column->length);
	return dest + column->length;
}

/*
 * Form a tuple of short values without NULLs.  Returns NULL if the row has
 * other values.
 */
static inline IndexTuple
form_plainly(const GsTupleFormer *former, const Datum *values,
			 const bool *isnull)
{
	IndexTuple	tuple = former->tuple;
	char	   *dest = (char *) tuple + MAXALIGN(sizeof(IndexTupleData));
	const char *limit = (char *) tuple + MAX_TUPLE_BYTES - 2 * MAX_VALUE_BYTES;
	bool		variable = false;

	for (int i = 0; i < former->ncolumns; i++)
	{
		const GsTupleColumn *column = &former->columns[i];

		if (isnull[i] || dest > limit)
			return NULL;
		dest = put_value(column, dest, values[i]);
		if (dest == NULL)
			return NULL;
		variable |= column->length < 0;
	}
	dest = zero_pad(dest, MAXIMUM_ALIGNOF);
	tuple->t_info = (unsigned short) (dest - (char *) tuple) |
		(variable ? INDEX_VAR_MASK : 0);
	return tuple;
}

IndexTuple
gpusort_tuple_former_form(GsTupleFormer *former, const Datum *values,
						  const bool *isnull, const ItemPointerData *tid)
{
	IndexTuple	tuple = form_plainly(former, values, isnull);

	if (unlikely(tuple == NULL))
	{
		MemoryContext caller;

		MemoryContextReset(former->context);
		caller = MemoryContextSwitchTo(former->context);
		tuple = index_form_tuple(former->tupdesc, (Datum *) values,
								 (bool *) isnull);
		MemoryContextSwitchTo(caller);
	}
	tuple->t_tid = *tid;
	return tuple;
}
