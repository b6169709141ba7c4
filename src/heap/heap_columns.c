/*-------------------------------------------------------------------------
 *
 * heap_columns.c
 *		Extracts columns from heap tuples.
 *
 * In a tuple without NULLs, the leading columns of fixed length are at constant offsets.  Others
 * are found by going from one attribute to the next.  There, attributes of fixed length that nobody
 * wants are passed with the one before them, in a single step.
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

/* How to go from an attribute to the next one. */
typedef struct GsWalkStep
{
	bool		wanted;
	bool		byval;
	uint8		align;			/* bytes */
	int16		length;			/* as attlen */
	int16		passed;			/* without NULLs, attributes in this step: */
	uint32		bytes;			/* if of fixed length, it and unwanted ones */
} GsWalkStep;

struct GsHeapColumns
{
	TupleDesc	table;
	int			max_attno;		/* the last requested attribute */
	bool		has_nulls;		/* did the last tuple have any? */

	/* Attributes that have no constant offset, from 'walk_attno' on. */
	int			walk_attno;
	uint32		walk_offset;	/* offset at which that one may begin, in a
								 * tuple without NULLs */
	GsWalkStep *steps;			/* by attribute */
	Datum	   *values;			/* of wanted ones */
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

/* Let an attribute's step pass the next ones, if these are of fixed length and not wanted. */
static void
extend_step(const GsHeapColumns *columns, int attno)
{
	GsWalkStep *step = &columns->steps[attno - 1];

	for (int i = attno; i < columns->max_attno; i++)
	{
		const GsWalkStep *next = &columns->steps[i];

		if (next->wanted || next->length < 0 || next->align > step->align)
			break;
		step->bytes = TYPEALIGN(next->align, step->bytes) + next->length;
		step->passed++;
	}
}

static void
plan_steps(GsHeapColumns *columns, int n, const AttrNumber *attnos)
{
	columns->steps = palloc0(Max(columns->max_attno, 1) * sizeof(GsWalkStep));
	for (int i = 0; i < columns->max_attno; i++)
	{
		Form_pg_attribute att = TupleDescAttr(columns->table, i);

		columns->steps[i] = (GsWalkStep)
		{
			.byval = att->attbyval,
				.align = att_align_nominal(1, att->attalign),
				.length = att->attlen,
				.passed = 1,
				.bytes = Max(att->attlen, 0)
		};
	}
	for (int i = 0; i < n; i++)
		columns->steps[attnos[i] - 1].wanted = true;
	for (int attno = 1; attno <= columns->max_attno; attno++)
		if (columns->steps[attno - 1].length > 0)
			extend_step(columns, attno);
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
	plan_steps(columns, n, attnos);
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

/* Returns the offset after an attribute at 'offset', and after those that its step passes. */
static inline uint32
offset_after(const GsWalkStep *step, const char *data, uint32 offset, uint32 bytes)
{
	if (step->length > 0)
		return offset + bytes;
	return offset + (step->length == -1 ? VARSIZE_ANY(data + offset) :
					 strlen(data + offset) + 1);
}

/*
 * Extract the wanted ones of a tuple's attributes, from 'first_attno' to the last one that both
 * the tuple and the result have.  The first one begins at 'offset', before alignment.
 */
static pg_attribute_always_inline void
walk(GsHeapColumns *columns, HeapTupleHeader tuple, int first_attno, uint32 offset,
	 bool has_nulls)
{
	char	   *data = (char *) tuple + tuple->t_hoff;
	int			natts = Min(HeapTupleHeaderGetNatts(tuple), columns->max_attno);
	const GsWalkStep *step;

	for (int i = first_attno - 1; i < natts; i += has_nulls ? 1 : step->passed)
	{
		step = &columns->steps[i];
		if (has_nulls)
		{
			columns->isnull[i] = att_isnull(i, tuple->t_bits);
			columns->values[i] = (Datum) 0;
			if (columns->isnull[i])
				continue;
		}
		if (step->length != -1 || !VARATT_NOT_PAD_BYTE(data + offset))
			offset = TYPEALIGN(step->align, offset);
		if (step->wanted)
		{
			columns->values[i] = fetch_att(data + offset, step->byval, step->length);
			columns->isnull[i] = false;
		}
		offset = offset_after(step, data, offset, has_nulls ? step->length : step->bytes);
	}
}

/* Extract the wanted attributes of a tuple that has NULLs or lacks attributes. */
static void
extract_incomplete(GsHeapColumns *columns, HeapTupleHeader tuple)
{
	if (tuple->t_infomask & HEAP_HASNULL)
		walk(columns, tuple, 1, 0, true);
	else
		walk(columns, tuple, 1, 0, false);

	/* Columns that were added to the table later. */
	for (int i = HeapTupleHeaderGetNatts(tuple); i < columns->max_attno; i++)
		columns->values[i] = getmissingattr(columns->table, i + 1,
											&columns->isnull[i]);
}

/* Copy the columns from the c-th on to the result, after walk(). */
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
			walk(columns, tuple, columns->walk_attno, columns->walk_offset, false);
			extract_walked(columns, columns->nfixed, values, isnull);
		}
	}
	else
	{
		columns->has_nulls = true;
		extract_incomplete(columns, tuple);
		extract_walked(columns, 0, values, isnull);
	}
}
