/*-------------------------------------------------------------------------
 *
 * index_rows.h
 *		TIDs of rows as numbers, and values of rows as index tuples have them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_ROWS_H
#define GPUSORT_INDEX_ROWS_H

#include "access/tupdesc.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "storage/itemptr.h"

#include "core/copy_bytes.h"

/*
 * A TID is a number that has the offset number in its lowest bits, and above it the block
 * number.  The posting lists of GIN indexes have the differences of such numbers.
 */
#define GPUSORT_TID_OFFSET_BITS	11

static inline uint64
gpusort_tid_number(const ItemPointerData *tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << GPUSORT_TID_OFFSET_BITS |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static inline void
gpusort_tid_set(ItemPointerData *tid, uint64 number)
{
	ItemPointerSet(tid, (BlockNumber) (number >> GPUSORT_TID_OFFSET_BITS),
				   (OffsetNumber) (number & ((1 << GPUSORT_TID_OFFSET_BITS) - 1)));
}

/* A longer value of fixed length is left to index_form_tuple(). */
#define GPUSORT_TUPLE_VALUE_BYTES	256

/* A column of an index. */
typedef struct GsTupleColumn
{
	int16		length;			/* bytes, -1 for a varlena, or -2 for what is
								 * left to index_form_tuple() */
	uint8		align;			/* bytes */
	bool		byval;
	bool		packable;		/* can its values have one-byte headers? */
} GsTupleColumn;

/* Returns column i, from 0. */
static inline GsTupleColumn
gpusort_tuple_column(TupleDesc index, int i)
{
	Form_pg_attribute att = TupleDescAttr(index, i);

	return (GsTupleColumn)
	{
		.length = att->attlen <= GPUSORT_TUPLE_VALUE_BYTES ? att->attlen : -2,
			.align = att_align_nominal(1, att->attalign),
			.byval = att->attbyval,
			.packable = att->attstorage != TYPSTORAGE_PLAIN
	};
}

/* Align a pointer into a tuple, and fill the gap with zeros. */
static inline char *
gpusort_zero_pad(char *dest, Size align)
{
	char	   *aligned = (char *) TYPEALIGN(align, dest);

	while (dest < aligned)
		*dest++ = 0;
	return aligned;
}

/*
 * Append a value to a tuple that ends at 'dest', as index_form_tuple() does.  Returns the new end,
 * or NULL if the value is left to that function: a string that is not short is.
 */
static inline char *
gpusort_put_value(const GsTupleColumn *column, char *dest, Datum value)
{
	const struct varlena *string = (const struct varlena *) DatumGetPointer(value);
	Size		length = column->length;

	if (column->length >= 0)
	{
		dest = gpusort_zero_pad(dest, column->align);
		if (column->byval)
			store_att_byval(dest, value, column->length);
		else
			gpusort_copy_bytes(dest, DatumGetPointer(value), length);
		return dest + length;
	}
	if (column->length != -1 || VARATT_IS_EXTERNAL(string))
		return NULL;
	if (VARATT_IS_SHORT(string))
	{
		length = VARSIZE_SHORT(string);
		gpusort_copy_bytes(dest, string, length);
		return dest + length;
	}
	if (!column->packable || !VARATT_CAN_MAKE_SHORT(string))
		return NULL;
	length = VARATT_CONVERTED_SHORT_SIZE(string);
	SET_VARSIZE_SHORT(dest, length);
	gpusort_copy_bytes(dest + VARHDRSZ_SHORT, VARDATA(string), length - VARHDRSZ_SHORT);
	return dest + length;
}

#endif							/* GPUSORT_INDEX_ROWS_H */
