/*-------------------------------------------------------------------------
 *
 * element_list.c
 *		Collects elements that come one by one, to be sorted as an array.
 *
 * The elements are stored one after the other as in an array, so that they can be
 * sorted where they are.  array_agg() keeps an array of Datums and allocates each
 * value that is passed by reference, which takes more time and memory.
 *
 * There can be a list for each of very many groups.  So a list starts small and
 * has no memory context of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "sqlfn/element_list.h"
#include "work.h"

/* Room for the first elements. */
#define FIRST_BYTES			64
#define FIRST_NULLABLE		64	/* a multiple of 8 */

/* Bytes that are copied between two checks for interrupts. */
#define COPY_BYTES			32768

void
gpusort_element_list_init(GsElementList *list, Oid type,
						  MemoryContext context)
{
	memset(list, 0, sizeof(*list));
	list->context = context;
	list->type = type;
	list->lbound = 1;
	get_typlenbyvalalign(type, &list->typlen, &list->typbyval,
						 &list->typalign);
}

static void
report_too_large(Size limit)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("array size exceeds the maximum allowed (%d)",
					(int) limit)));
}

/* Copy bytes, which may be many. */
static void
copy_bytes(char *dest, const char *from, Size bytes)
{
	while (bytes > COPY_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(COPY_BYTES);
		memcpy(dest, from, COPY_BYTES);
		dest += COPY_BYTES;
		from += COPY_BYTES;
		bytes -= COPY_BYTES;
	}
	gpusort_work_add(bytes);
	memcpy(dest, from, bytes);
}

/* ----------------------------------------------------------------
 *		room for more elements
 * ----------------------------------------------------------------
 */

static void
enlarge_data(GsElementList *list, Size bytes)
{
	Size		needed = list->bytes + bytes;
	Size		capacity = Max(list->capacity * 2, FIRST_BYTES);

	/* The array has a header, too, which is checked when it is made. */
	if (!AllocSizeIsValid(needed))
		report_too_large(MaxAllocSize);
	while (capacity < needed)
		capacity *= 2;
	capacity = Min(capacity, MaxAllocSize);
	list->data = list->data == NULL ?
		MemoryContextAlloc(list->context, capacity) :
		repalloc(list->data, capacity);
	list->capacity = capacity;
}

/* Returns where so many bytes can be added. */
static inline char *
reserve(GsElementList *list, Size bytes)
{
	if (bytes > list->capacity - list->bytes)
		enlarge_data(list, bytes);
	return list->data + list->bytes;
}

static void
check_count(const GsElementList *list, int more)
{
	if (more > (int) GPUSORT_MAX_ARRAY_SIZE - list->count)
		report_too_large(GPUSORT_MAX_ARRAY_SIZE);
}

/*
 * Make room for the bits of 'more' elements.  If there was no bitmap, none of the
 * present elements is NULL.
 */
static void
enlarge_bitmap(GsElementList *list, int more)
{
	int64		needed = (int64) list->count + more;
	int64		capacity = Max(list->bitmap_capacity, FIRST_NULLABLE);

	while (capacity < needed)
		capacity *= 2;
	if (list->bitmap == NULL)
	{
		list->bitmap = MemoryContextAlloc(list->context, capacity / 8);
		memset(list->bitmap, 0xFF, (list->count + 7) / 8);
	}
	else if (capacity > list->bitmap_capacity)
		list->bitmap = repalloc(list->bitmap, capacity / 8);
	list->bitmap_capacity = (int) capacity;
}

static inline void
set_bit(GsElementList *list, int number, bool isnull)
{
	uint8		mask = 1 << (number % 8);

	if (isnull)
		list->bitmap[number / 8] &= ~mask;
	else
		list->bitmap[number / 8] |= mask;
}

/* ----------------------------------------------------------------
 *		adding elements
 * ----------------------------------------------------------------
 */

/*
 * Add a value of 'size' bytes and its padding.  'header' bytes of them are left to the
 * caller.  Returns where the value begins.
 */
static inline char *
add_bytes(GsElementList *list, const char *from, Size header, Size size)
{
	Size		padded = att_align_nominal(size, list->typalign);
	char	   *dest = reserve(list, padded);

	copy_bytes(dest + header, from, size - header);
	memset(dest + size, 0, padded - size);
	list->bytes += padded;
	return dest;
}

/* Add a varlena.  In an array it has a header of four bytes and is not toasted. */
static void
add_varlena(GsElementList *list, struct varlena *value)
{
	if (VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value))
	{
		struct varlena *plain = pg_detoast_datum(value);

		add_bytes(list, (char *) plain, 0, VARSIZE(plain));
		pfree(plain);
	}
	else if (VARATT_IS_SHORT(value))
	{
		Size		size = VARSIZE_SHORT(value) - VARHDRSZ_SHORT + VARHDRSZ;
		char	   *dest = add_bytes(list, VARDATA_SHORT(value), VARHDRSZ, size);

		SET_VARSIZE(dest, size);
	}
	else
		add_bytes(list, (char *) value, 0, VARSIZE(value));
}

static void
add_value(GsElementList *list, Datum value)
{
	if (list->typbyval)
	{
		Size		padded = att_align_nominal(list->typlen, list->typalign);
		char	   *dest = reserve(list, padded);

		store_att_byval(dest, value, list->typlen);
		memset(dest + list->typlen, 0, padded - list->typlen);
		list->bytes += padded;
	}
	else if (list->typlen == -1)
		add_varlena(list, (struct varlena *) DatumGetPointer(value));
	else
		add_bytes(list, DatumGetPointer(value), 0,
				  att_addlength_datum(0, list->typlen, value));
}

void
gpusort_element_list_add(GsElementList *list, Datum value, bool isnull)
{
	CHECK_FOR_INTERRUPTS();
	check_count(list, 1);
	if (isnull || list->bitmap != NULL)
	{
		if (list->count >= list->bitmap_capacity)
			enlarge_bitmap(list, 1);
		set_bit(list, list->count, isnull);
	}
	if (isnull)
		list->nulls++;
	else
		add_value(list, value);
	list->count++;
}

void
gpusort_element_list_add_list(GsElementList *list,
							  const GsElementList *other)
{
	check_count(list, other->count);
	if (list->bitmap != NULL || other->bitmap != NULL)
	{
		enlarge_bitmap(list, other->count);
		for (int i = 0; i < other->count; i++)
		{
			if (i % GPUSORT_ROWS_PER_LOOK == 0)
				CHECK_FOR_INTERRUPTS();
			gpusort_work_add(1);
			set_bit(list, list->count + i, other->bitmap != NULL &&
					(other->bitmap[i / 8] & (1 << (i % 8))) == 0);
		}
	}
	if (other->bytes > 0)
	{
		char	   *dest = reserve(list, other->bytes);

		copy_bytes(dest, other->data, other->bytes);
	}
	list->bytes += other->bytes;
	list->count += other->count;
	list->nulls += other->nulls;
}

void
gpusort_element_list_open(GsElementList *list, GsArrayElements *elements)
{
	gpusort_elements_open_data(elements, list->type, 1, &list->count,
							   &list->lbound, list->data, list->bitmap);
}

/* ----------------------------------------------------------------
 *		lists of other processes
 * ----------------------------------------------------------------
 */

/* What precedes the elements and then the bitmap. */
typedef struct WrittenList
{
	Oid			type;
	int			count;
	int			nulls;
	Size		bytes;
} WrittenList;

static Size
bitmap_bytes(const GsElementList *list)
{
	return list->bitmap != NULL ? (list->count + 7) / 8 : 0;
}

Size
gpusort_element_list_size(const GsElementList *list)
{
	return sizeof(WrittenList) + list->bytes + bitmap_bytes(list);
}

void
gpusort_element_list_write(const GsElementList *list, char *dest)
{
	WrittenList written = {
		.type = list->type,
		.count = list->count,
		.nulls = list->nulls,
		.bytes = list->bytes
	};

	memcpy(dest, &written, sizeof(written));
	dest += sizeof(written);
	if (list->bytes > 0)
		copy_bytes(dest, list->data, list->bytes);
	dest += list->bytes;
	if (list->bitmap != NULL)
		copy_bytes(dest, (char *) list->bitmap, bitmap_bytes(list));
}

void
gpusort_element_list_read(GsElementList *list, char *from)
{
	WrittenList written;

	memcpy(&written, from, sizeof(written));
	gpusort_element_list_init(list, written.type, NULL);
	list->count = written.count;
	list->nulls = written.nulls;
	list->data = from + sizeof(written);
	list->bytes = written.bytes;
	if (written.nulls > 0)
		list->bitmap = (uint8 *) list->data + list->bytes;
}
