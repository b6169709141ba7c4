/*-------------------------------------------------------------------------
 *
 * gin_tuples.c
 *		Forms the tuples of keys in the entry tree of a GIN index.
 *
 * GinFormTuple() allocates memory, and looks at the key several times.  The tuples of most
 * indexes are simple: one column, a key that is passed by value or is a short string.  These
 * are formed here.  PostgreSQL's function forms all others.
 *
 *		header, key, padding to 8 bytes, posting list, padding to 8 bytes
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tupmacs.h"

#include "core/copy_bytes.h"
#include "index/gin/gin_tuples.h"

/* What the keys of the index's only column are. */
typedef enum GsGinTupleKind
{
	GS_GIN_TUPLE_OTHER,			/* or there are several columns */
	GS_GIN_TUPLE_BY_VALUE,
	GS_GIN_TUPLE_STRING			/* short ones get a header of one byte */
} GsGinTupleKind;

struct GsGinTupleForm
{
	GsGinOrder *order;
	GsGinTupleKind kind;
	int16		attlen;
	union
	{
		IndexTupleData header;
		char		bytes[MAXALIGN(GinMaxItemSize)];
	}			tuple;
};

GsGinTupleForm *
gpusort_gin_tuples_create(GsGinOrder *order)
{
	GsGinTupleForm *form = palloc0(sizeof(GsGinTupleForm));
	Form_pg_attribute att = TupleDescAttr(order->state.tupdesc[0], 0);

	form->order = order;
	if (!order->state.oneCol)
		form->kind = GS_GIN_TUPLE_OTHER;
	else if (att->attbyval)
		form->kind = GS_GIN_TUPLE_BY_VALUE;
	else if (att->attlen == -1 && att->attstorage != TYPSTORAGE_PLAIN)
		form->kind = GS_GIN_TUPLE_STRING;
	form->attlen = att->attlen;
	return form;
}

/* Put a string that can have a header of one byte.  Returns the number of bytes. */
static inline Size
put_short_string(char *bytes, const struct varlena *value)
{
	Size		size;

	if (VARATT_IS_SHORT(value))
	{
		size = VARSIZE_SHORT(value);
		gpusort_copy_bytes(bytes, value, size);
		return size;
	}
	size = VARATT_CONVERTED_SHORT_SIZE(value);
	SET_VARSIZE_SHORT(bytes, size);
	gpusort_copy_bytes(bytes + 1, VARDATA(value), size - 1);
	return size;
}

/* Put the key behind the header.  Returns its number of bytes, or 0 if it is not simple. */
static inline Size
put_key(GsGinTupleForm *form, const GsGinKey *key)
{
	char	   *bytes = form->tuple.bytes + sizeof(IndexTupleData);
	const struct varlena *value;

	if (key->category != GIN_CAT_NORM_KEY || form->kind == GS_GIN_TUPLE_OTHER)
		return 0;
	if (form->kind == GS_GIN_TUPLE_BY_VALUE)
	{
		store_att_byval(bytes, key->value, form->attlen);
		return form->attlen;
	}
	value = (const struct varlena *) DatumGetPointer(key->value);
	if (VARATT_IS_EXTERNAL(value) || (!VARATT_IS_SHORT(value) && !VARATT_CAN_MAKE_SHORT(value)))
		return 0;
	return put_short_string(bytes, value);
}

IndexTuple
gpusort_gin_tuple(GsGinTupleForm *form, const GsGinKey *key, const char *list, Size list_bytes,
				  uint32 ntids, bool error)
{
	IndexTuple	tuple = &form->tuple.header;
	Size		key_bytes = put_key(form, key);
	Size		offset = MAXALIGN(sizeof(IndexTupleData) + key_bytes);
	Size		size = MAXALIGN(offset + list_bytes);
	Size		used = sizeof(IndexTupleData) + key_bytes;

	if (key_bytes == 0)
		return GinFormTuple(&form->order->state, key->attnum, key->value, key->category,
							(Pointer) list, list_bytes, ntids, error);
	if (size > GinMaxItemSize)
		return NULL;			/* a list; no simple key is too long */
	memset(form->tuple.bytes + used, 0, offset - used);
	if (list_bytes > 0)
		memcpy(form->tuple.bytes + offset, list, list_bytes);
	memset(form->tuple.bytes + offset + list_bytes, 0, size - offset - list_bytes);
	tuple->t_info = size | (form->kind == GS_GIN_TUPLE_STRING ? INDEX_VAR_MASK : 0);
	GinSetPostingOffset(tuple, offset);
	GinSetNPosting(tuple, ntids);
	return tuple;
}
