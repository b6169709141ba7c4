/*-------------------------------------------------------------------------
 *
 * gin_order.h
 *		The order of the keys of a GIN index, and the rows that are sorted.
 *
 * Keys are ordered by the index column, then by their category (a value, NULL, or what
 * stands for an item without keys or a NULL item), and then by the comparison function of
 * the operator class.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_ORDER_H
#define GPUSORT_GIN_ORDER_H

#include "access/gin_private.h"
#include "executor/tuptable.h"

#include "sort/base/sort_spec.h"

/* A key of a GIN index. */
typedef struct GsGinKey
{
	OffsetNumber attnum;
	GinNullCategory category;
	Datum		value;			/* if the category is GIN_CAT_NORM_KEY */
} GsGinKey;

/* A row of the sort: a key and some of its TIDs. */
typedef struct GsGinRow
{
	GsGinKey	key;
	uint64		first;			/* a TID; none of the row is on a heap page
								 * before */
	bytea	   *others;			/* the differences of the other TIDs */
} GsGinRow;

typedef struct GsGinColumn
{
	int16		attlen;
	bool		attbyval;
	bool		bytes_tell_keys;	/* have equal keys always equal bytes? */
	Oid			operator;		/* "<" in the order of keys, or InvalidOid */
	Oid			collation;
} GsGinColumn;

typedef struct GsGinOrder
{
	GinState	state;			/* of the server's functions */
	GsGinColumn columns[INDEX_MAX_KEYS];
} GsGinOrder;

/* Create the order of an index in the current memory context. */
extern GsGinOrder *gpusort_gin_order_create(Relation index);

/* Set the rows of the sort and its keys, in the current memory context. */
extern void gpusort_gin_order_describe(const GsGinOrder *order, GsSortSpec *spec);

/* Returns the number of bytes of a key that is not passed by value. */
static inline Size
gpusort_gin_order_key_bytes(const GsGinColumn *column, Datum value)
{
	const char *bytes = DatumGetPointer(value);

	if (column->attlen > 0)
		return column->attlen;
	return column->attlen == -1 ? VARSIZE_ANY(bytes) : strlen(bytes) + 1;
}

/* Store a row in a virtual slot, or get it from there.  Values are not copied. */
extern void gpusort_gin_order_store(const GsGinOrder *order, const GsGinRow *row,
									TupleTableSlot *slot);
extern void gpusort_gin_order_load(const GsGinOrder *order, const TupleTableSlot *slot,
								   GsGinRow *row);

/* Compare two keys of the same column and category by the operator class's function. */
extern int	gpusort_gin_order_compare(GsGinOrder *order, const GsGinKey *a,
									  const GsGinKey *b);

#endif							/* GPUSORT_GIN_ORDER_H */
