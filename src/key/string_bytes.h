/*-------------------------------------------------------------------------
 *
 * string_bytes.h
 *		Access to the bytes of string values, including toasted ones.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STRING_BYTES_H
#define GPUSORT_STRING_BYTES_H

#include "access/detoast.h"
#include "utils/memutils.h"

/* The bytes of a value, and a copy that must be freed afterwards, or NULL. */
typedef struct GsBytes
{
	const unsigned char *data;
	Size		length;
	void	   *copy;
} GsBytes;

static inline GsBytes
gpusort_bytes_skip(GsBytes bytes, Size count)
{
	count = Min(count, bytes.length);
	bytes.data += count;
	bytes.length -= count;
	return bytes;
}

/*
 * Get the bytes of a value of variable length from offset 'start' on.  Of a
 * value that is compressed or stored out of line, only the first 'count' of
 * these bytes are valid, although 'length' counts all of them; the copy is in
 * the current memory context.
 */
static inline GsBytes
gpusort_bytes_get(Datum value, Size start, Size count)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);
	GsBytes		bytes = {0};

	if (likely(!VARATT_IS_COMPRESSED(varlena) && !VARATT_IS_EXTERNAL(varlena)))
	{
		bytes.data = (unsigned char *) VARDATA_ANY(varlena);
		bytes.length = VARSIZE_ANY_EXHDR(varlena);
		return gpusort_bytes_skip(bytes, start);
	}
	bytes.length = toast_raw_datum_size(value) - VARHDRSZ;
	bytes.length -= Min(start, bytes.length);
	if (bytes.length > 0)
	{
		bytes.copy = detoast_attr_slice(varlena, start,
										Min(count, bytes.length));
		bytes.data = (unsigned char *) VARDATA_ANY(bytes.copy);
	}
	return bytes;
}

/* The same for a character(n), without trailing blanks. */
static inline GsBytes
gpusort_bytes_get_trimmed(Datum value)
{
	GsBytes		bytes = gpusort_bytes_get(value, 0, MaxAllocSize);

	while (bytes.length > 0 && bytes.data[bytes.length - 1] == ' ')
		bytes.length--;
	return bytes;
}

/* The same for a name. */
static inline GsBytes
gpusort_bytes_get_name(Datum value)
{
	const char *name = NameStr(*DatumGetName(value));

	return (GsBytes)
	{
		.data = (const unsigned char *) name,
			.length = strnlen(name, NAMEDATALEN)
	};
}

static inline void
gpusort_bytes_free(const GsBytes *bytes)
{
	if (unlikely(bytes->copy != NULL))
		pfree(bytes->copy);
}

/*
 * Bytes that are written one after the other, at first to memory of the caller, if it gives
 * any, and then to a copy in the current memory context.  The writer may end when it has
 * written as many as are wanted.
 */
typedef struct GsByteBuffer
{
	unsigned char *data;
	Size		length;
	Size		room;
	Size		wanted;
	void	   *copy;
} GsByteBuffer;

static inline void
gpusort_byte_buffer_add(GsByteBuffer *buffer, const void *bytes, Size count)
{
	if (unlikely(buffer->length + count > buffer->room))
	{
		unsigned char *old = buffer->data;

		buffer->room = 2 * (buffer->length + count) + 64;
		if (buffer->copy != NULL)
			buffer->copy = repalloc_huge(buffer->copy, buffer->room);
		else
		{
			buffer->copy = MemoryContextAllocHuge(CurrentMemoryContext, buffer->room);
			if (buffer->length > 0)
				memcpy(buffer->copy, old, buffer->length);
		}
		buffer->data = buffer->copy;
	}
	memcpy(buffer->data + buffer->length, bytes, count);
	buffer->length += count;
}

/* Returns how many of the first 'count' bytes are the same. */
static inline Size
gpusort_common_bytes(const unsigned char *a, const unsigned char *b, Size count)
{
	Size		i = 0;

	for (; i + sizeof(uint64) <= count; i += sizeof(uint64))
	{
		uint64		left;
		uint64		right;

		memcpy(&left, a + i, sizeof(left));
		memcpy(&right, b + i, sizeof(right));
		if (left != right)
			break;
	}
	while (i < count && a[i] == b[i])
		i++;
	return i;
}

#endif							/* GPUSORT_STRING_BYTES_H */
