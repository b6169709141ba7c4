/*-------------------------------------------------------------------------
 *
 * gin_order.h
 *		The order of the keys of a GIN index.
 *
 * Keys are ordered by the index column, then by their category (a value, NULL, or what
 * stands for an item without keys or a NULL item), and then by the comparison function of
 * the operator class.  The first word of a value's encoding decides most comparisons.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_ORDER_H
#define GPUSORT_GIN_ORDER_H

#include "access/gin_private.h"

#include "key/key_encoding.h"
#include "settings.h"

/* A key of a GIN index. */
typedef struct GsGinKey
{
	OffsetNumber attnum;
	GinNullCategory category;
	Datum		value;			/* if the category is GIN_CAT_NORM_KEY */
	uint64		word;			/* set by gpusort_gin_order_word() */
} GsGinKey;

typedef struct GsGinColumn
{
	int16		attlen;
	bool		attbyval;
	bool		bytes_tell_keys;	/* have equal keys always equal bytes? */
	bool		exact;			/* are keys with equal words equal? */
	Oid			operator;		/* that has the encoding, unless that is
								 * GS_ENCODE_NONE */
	Oid			collation;
	GsKeyEncoding encoding;
} GsGinColumn;

typedef struct GsGinOrder
{
	GinState	state;			/* of the server's functions */
	GsGinColumn columns[INDEX_MAX_KEYS];
} GsGinOrder;

/* Create the order of an index in the current memory context. */
extern GsGinOrder *gpusort_gin_order_create(Relation index);

/* Returns the first word of a value's encoding. */
static inline uint64
gpusort_gin_order_word(const GsGinOrder *order, OffsetNumber attnum, Datum value)
{
	const GsKeyEncoding *encoding = &order->columns[attnum - 1].encoding;

	uint64		word = encoding->kind == GS_ENCODE_NONE ? 0 :
		gpusort_key_encoding_word(encoding, value, 0);

	/* One value of many, always the same. */
	if (GPUSORT_IS_WRONG(GS_WRONG_ENCODING) && word % 97 == 3)
		word = ~word;
	return word;
}

/* Is the encoding of a column distrusted (see key/distrust.h)? */
extern bool gpusort_gin_order_is_distrusted(const GsGinOrder *order);

/* Compare two keys, including their words. */
extern int	gpusort_gin_order_compare(GsGinOrder *order, const GsGinKey *a,
									  const GsGinKey *b);

#endif							/* GPUSORT_GIN_ORDER_H */
