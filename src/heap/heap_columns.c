/*-------------------------------------------------------------------------
 *
 * heap_columns.c
 *		Extracts columns from heap tuples.
 *
 * In a tuple without NULLs, the leading columns of fixed length are at
 * constant offsets.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tupmacs.h"

#include "heap/heap_columns.h"

/* A column of the result. */
typedef struct GsHeapColumn
{
	int			target;			/* index in the result, from 0 */
	int			attno;			/* attribute number in the table */
	bool		byval;
	int16		length;
	uint32		offset;			/* if it is constant */
} GsHeapColumn;

struct GsHeapColumns
{
	TupleDesc	table;
	int			max_attno;		/* the last requested attribute */
	bool		has_nulls;		/* did the last tuple have any? */

	/* Attributes that have no constant offset, from 'walk_attno' on. */
	int			walk_attno;
	uint32		walk_offset;	/* offset at which that one may begin, in a
								 * tuple without NULLs */
	Datum	   *values;
	bool	   *isnull;

	/* First the columns with constant offsets, then the others. */
	int			ncolumns;
	int			nfixed;
	GsHeapColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

/* Find the attributes at constant offsets in tuples without NULLs. */
static void
plan_walk(GsHeapColumns *columns, uint32 *offsets)
{
	int			attno;
	uint32		offset = 0;

	for (attno = 1; attno <= columns->max_attno; attno++)
	{
		Form_pg_attribute att = TupleDescAttr(columns->table, attno - 1);

		if (att->attlen < 0)
			break;
		offset = att_align_nominal(offset, att->attalign);
		offsets[attno - 1] = offset;
		offset += att->attlen;
	}
	columns->walk_attno = attno;
	columns->walk_offset = offset;
}

static void
add_columns(GsHeapColumns *columns, int n, const AttrNumber *attnos,
			const int *targets, const uint32 *offsets, bool fixed)
{
	for (int i = 0; i < n; i++)
	{
		int			attno = attnos[i];
		Form_pg_attribute att = TupleDescAttr(columns->table, attno - 1);

		if ((attno < columns->walk_attno) != fixed)
			continue;
		columns->columns[columns->ncolumns++] = (GsHeapColumn)
		{
			.target = targets != NULL ? targets[i] : i,
				.attno = attno,
				.byval = att->attbyval,
				.length = att->attlen,
				.offset = fixed ? offsets[attno - 1] : 0
		};
	}
}

GsHeapColumns *
gpusort_heap_columns_create(TupleDesc table, int n, const AttrNumber *attnos,
							const int *targets)
{
	GsHeapColumns *columns = palloc0(offsetof(GsHeapColumns, columns) +
									 n * sizeof(GsHeapColumn));
	uint32	   *offsets;

	columns->table = table;
	for (int i = 0; i < n; i++)
		columns->max_attno = Max(columns->max_attno, attnos[i]);
	columns->values = palloc(Max(columns->max_attno, 1) * sizeof(Datum));
	columns->isnull = palloc(Max(columns->max_attno, 1) * sizeof(bool));
	offsets = palloc(Max(columns->max_attno, 1) * sizeof(uint32));
	plan_walk(columns, offsets);
	add_columns(columns, n, attnos, targets, offsets, true);
	columns->nfixed = columns->ncolumns;
	add_columns(columns, n, attnos, targets, offsets, false);
	pfree(offsets);
	return columns;
}

/* Extract the columns at constant offsets. */
static inline void
extract_fixed(const GsHeapColumns *columns, char *data, Datum *values)
{
	for (int c = 0; c < columns->nfixed; c++)
	{
		const GsHeapColumn *column = &columns->columns[c];

		values[column->target] = fetch_att(data + column->offset, column->byval, column->length);
	}
}

/*
 * Extract a tuple's attributes one after the other, from 'first_attno' to the
 * last requested one.  The first one begins at 'offset', before alignment.
 */
static void
extract_by_walk(GsHeapColumns *columns, HeapTupleHeader tuple, int first_attno,
				uint32 offset)
{
	char	   *data = (char *) tuple + tuple->t_hoff;
	bool		has_nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	int			natts = Min(HeapTupleHeaderGetNatts(tuple), columns->max_attno);

	for (int i = first_attno - 1; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(columns->table, i);

		columns->isnull[i] = has_nulls && att_isnull(i, tuple->t_bits);
		columns->values[i] = (Datum) 0;
		if (columns->isnull[i])
			continue;
		offset = att_align_pointer(offset, att->attalign, att->attlen,
								   data + offset);
		columns->values[i] = fetchatt(att, data + offset);
		offset = att_addlength_pointer(offset, att->attlen, data + offset);
	}

	/* The tuple lacks columns that were added to the table later. */
	for (int i = Max(natts, first_attno - 1); i < columns->max_attno; i++)
		columns->values[i] = getmissingattr(columns->table, i + 1,
											&columns->isnull[i]);
}

/* Copy the columns from the c-th on to the result, after extract_by_walk(). */
static inline void
extract_walked(const GsHeapColumns *columns, int c, Datum *values, bool *isnull)
{
	for (; c < columns->ncolumns; c++)
	{
		const GsHeapColumn *column = &columns->columns[c];

		values[column->target] = columns->values[column->attno - 1];
		isnull[column->target] = columns->isnull[column->attno - 1];
	}
}

/* Has a tuple all attributes up to the last requested one, and no NULL among them? */
static inline bool
is_without_nulls(const GsHeapColumns *columns, HeapTupleHeader tuple)
{
	int			bytes = columns->max_attno / 8;
	int			bits = columns->max_attno % 8;

	if (HeapTupleHeaderGetNatts(tuple) < columns->max_attno)
		return false;
	if ((tuple->t_infomask & HEAP_HASNULL) == 0)
		return true;
	for (int i = 0; i < bytes; i++)
		if (tuple->t_bits[i] != 0xFF)
			return false;
	return bits == 0 || (~tuple->t_bits[bytes] & ((1 << bits) - 1)) == 0;
}

void
gpusort_heap_columns_extract(GsHeapColumns *columns, HeapTupleHeader tuple,
							 Datum *values, bool *isnull)
{
	if (likely(is_without_nulls(columns, tuple)))
	{
		if (unlikely(columns->has_nulls))
			for (int c = 0; c < columns->ncolumns; c++)
				isnull[columns->columns[c].target] = false;
		columns->has_nulls = false;
		extract_fixed(columns, (char *) tuple + tuple->t_hoff, values);
		if (columns->nfixed < columns->ncolumns)
		{
			extract_by_walk(columns, tuple, columns->walk_attno,
							columns->walk_offset);
			extract_walked(columns, columns->nfixed, values, isnull);
		}
	}
	else
	{
		columns->has_nulls = true;
		extract_by_walk(columns, tuple, 1, 0);
		extract_walked(columns, 0, values, isnull);
	}
}
