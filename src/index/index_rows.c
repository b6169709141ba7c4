/*-------------------------------------------------------------------------
 *
 * index_rows.c
 *		The rows that an index build sorts, and the index tuples they become.
 *
 * The tuples of most indexes have one length and their columns at constant
 * offsets, as long as there are no NULLs: they are made in place, of which just the
 * columns change.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/stratnum.h"
#include "access/tupmacs.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "index/index_rows.h"

/* Columns of a tuple that is made in place. */
typedef struct GsTupleColumn
{
	uint32		offset;			/* in the tuple */
	int16		length;
	bool		byval;
} GsTupleColumn;

struct GsTupleFormer
{
	TupleDesc	tupdesc;
	MemoryContext context;		/* of a tuple that is not made in place */
	IndexTuple	fixed;			/* made in place, or NULL */
	GsTupleColumn columns[INDEX_MAX_KEYS];
};

bool
gpusort_index_rows_keys(Relation index, GsSortKeys *keys)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);

	keys->nkeys = nkeys;
	keys->attnos = palloc(nkeys * sizeof(AttrNumber));
	keys->operators = palloc(nkeys * sizeof(Oid));
	keys->collations = palloc(nkeys * sizeof(Oid));
	keys->nulls_first = palloc(nkeys * sizeof(bool));
	for (int k = 0; k < nkeys; k++)
	{
		bool		descending = (index->rd_indoption[k] & INDOPTION_DESC) != 0;
		Oid			type = index->rd_opcintype[k];

		keys->attnos[k] = k + 1;
		keys->operators[k] =
			get_opfamily_member(index->rd_opfamily[k], type, type,
								descending ? BTGreaterStrategyNumber :
								BTLessStrategyNumber);
		keys->collations[k] = index->rd_indcollation[k];
		keys->nulls_first[k] =
			(index->rd_indoption[k] & INDOPTION_NULLS_FIRST) != 0;
		if (!OidIsValid(keys->operators[k]))
			return false;
	}
	return true;
}

TupleDesc
gpusort_index_rows_tupdesc(Relation index)
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
	TupleDescInitEntry(rows, columns->natts + 1, "place", INT8OID, -1, 0);
	return rows;
}

/* ----------------------------------------------------------------
 *		index tuples
 * ----------------------------------------------------------------
 */

/*
 * Lay out the tuple that is made in place, and set its length; that is 0 if
 * columns vary in length, or the tuple would be too long for its header.
 */
static Size
lay_out(GsTupleFormer *former)
{
	Size		offset = 0;

	for (int i = 0; i < former->tupdesc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(former->tupdesc, i);

		if (att->attlen < 0)
			return 0;
		offset = att_align_nominal(offset, att->attalign);
		former->columns[i] = (GsTupleColumn)
		{
			.offset = MAXALIGN(sizeof(IndexTupleData)) + offset,
				.length = att->attlen,
				.byval = att->attbyval
		};
		offset += att->attlen;
	}
	offset = MAXALIGN(MAXALIGN(sizeof(IndexTupleData)) + offset);
	return (offset & INDEX_SIZE_MASK) == offset ? offset : 0;
}

GsTupleFormer *
gpusort_tuple_former_create(Relation index)
{
	GsTupleFormer *former = palloc0(sizeof(GsTupleFormer));
	Size		length;

	former->tupdesc = RelationGetDescr(index);
	former->context = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort index tuple",
											ALLOCSET_DEFAULT_SIZES);
	length = lay_out(former);
	if (length > 0)
	{
		former->fixed = palloc0(length);
		former->fixed->t_info = (unsigned short) length;
	}
	return former;
}

static bool
has_null(const bool *isnull, int n)
{
	for (int i = 0; i < n; i++)
		if (isnull[i])
			return true;
	return false;
}

/* Fill in the columns of the tuple that is made in place. */
static inline void
fill_in(const GsTupleFormer *former, const Datum *values)
{
	char	   *tuple = (char *) former->fixed;

	for (int i = 0; i < former->tupdesc->natts; i++)
	{
		const GsTupleColumn *column = &former->columns[i];

		if (column->byval)
			store_att_byval(tuple + column->offset, values[i], column->length);
		else
			memcpy(tuple + column->offset, DatumGetPointer(values[i]),
				   column->length);
	}
}

IndexTuple
gpusort_tuple_former_form(GsTupleFormer *former, const Datum *values,
						  const bool *isnull, const ItemPointerData *tid)
{
	IndexTuple	tuple = former->fixed;

	if (likely(tuple != NULL && !has_null(isnull, former->tupdesc->natts)))
		fill_in(former, values);
	else
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
