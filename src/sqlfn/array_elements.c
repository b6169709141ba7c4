/*-------------------------------------------------------------------------
 *
 * array_elements.c
 *		Accesses the elements of an array at random, without copying them.
 *
 * Deconstructing a large array into Datums would cost more than sorting it.
 * An array of a fixed-length type without NULLs needs no preparation.  Any
 * other array is walked through once to record the offsets of its elements.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "core/prefetch.h"
#include "sqlfn/arrays.h"

/*
 * How many elements ahead elements are prefetched when they are read out of
 * order.
 */
#define PREFETCH_DISTANCE	32

/* Record where each element begins.  'bitmap' is NULL if none is NULL. */
static void
find_offsets(GsArrayElements *elements, const uint8 *bitmap)
{
	Size		offset = 0;

	elements->offsets =
		MemoryContextAllocHuge(CurrentMemoryContext,
							   Max(elements->count, 1) * sizeof(uint32));
	for (int i = 0; i < elements->count; i++)
	{
		char	   *dest = elements->data + offset;

		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(GPUSORT_WORK_ROW);
		if (bitmap != NULL && (bitmap[i / 8] & (1 << (i % 8))) == 0)
		{
			elements->offsets[i] = GPUSORT_NULL_ELEMENT;
			elements->nulls++;
			continue;
		}
		elements->offsets[i] = (uint32) offset;
		offset = att_addlength_pointer(offset, elements->typlen, dest);
		offset = att_align_nominal(offset, elements->typalign);
	}
	elements->data_bytes = offset;
}

void
gpusort_elements_open(GsArrayElements *elements, ArrayType *array)
{
	const uint8 *bitmap = ARR_NULLBITMAP(array);

	memset(elements, 0, sizeof(*elements));
	elements->ndim = ARR_NDIM(array);
	elements->dims = ARR_DIMS(array);
	elements->lbounds = ARR_LBOUND(array);
	elements->count = ArrayGetNItems(elements->ndim, elements->dims);
	elements->type = ARR_ELEMTYPE(array);
	get_typlenbyvalalign(elements->type, &elements->typlen, &elements->typbyval,
						 &elements->typalign);
	elements->data = ARR_DATA_PTR(array);

	if (elements->typlen > 0 && bitmap == NULL)
	{
		elements->stride = att_align_nominal(elements->typlen,
											 elements->typalign);
		elements->data_bytes = elements->count * elements->stride;
	}
	else
		find_offsets(elements, bitmap);
}

/* ----------------------------------------------------------------
 *		making an array of the elements in another order
 * ----------------------------------------------------------------
 */

ArrayType *
gpusort_elements_make_array(const GsArrayElements *elements, MemoryContext target)
{
	int			ndim = elements->ndim;
	Size		header;
	Size		size;
	ArrayType  *result;

	header = elements->nulls > 0 ?
		ARR_OVERHEAD_WITHNULLS(ndim, elements->count) :
		ARR_OVERHEAD_NONULLS(ndim);
	size = header + elements->data_bytes;

	/*
	 * The result may be larger than the array, which need not have padding
	 * after its last element.
	 */
	if (!AllocSizeIsValid(size))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("array size exceeds the maximum allowed (%d)",
						(int) MaxAllocSize)));
	result = MemoryContextAllocExtended(target, size, MCXT_ALLOC_NO_OOM);
	if (result == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("An array of %zu bytes could not be allocated.",
						   size)));

	memset(result, 0, header);
	SET_VARSIZE(result, size);
	result->ndim = ndim;
	result->dataoffset = elements->nulls > 0 ? header : 0;
	result->elemtype = elements->type;
	memcpy(ARR_DIMS(result), elements->dims, ndim * sizeof(int));
	memcpy(ARR_LBOUND(result), elements->lbounds, ndim * sizeof(int));
	return result;
}

/*
 * Copy elements that have a fixed length and no offsets.  Inlined for each of the common lengths.
 */
static pg_attribute_always_inline void
gather_length(const GsArrayElements *elements, const uint64 *order, char *dest, Size length)
{
	int			count = elements->count;

	for (int start = 0; start < count; start += GPUSORT_ROWS_PER_LOOK)
	{
		int			end = Min(count - start, GPUSORT_ROWS_PER_LOOK) + start;

		CHECK_FOR_INTERRUPTS();
		for (int i = start; i < end; i++)
		{
			if (i + PREFETCH_DISTANCE < count)
				gpusort_prefetch(elements->data +
								 (uint32) order[i + PREFETCH_DISTANCE] * length);
			gpusort_work_add(length);
			memcpy(dest + i * length, elements->data + (uint32) order[i] * length, length);
		}
	}
}

static void
gather_fixed(const GsArrayElements *elements, const uint64 *order, char *dest)
{
	switch (elements->stride)
	{
		case 1:
			gather_length(elements, order, dest, 1);
			break;
		case 2:
			gather_length(elements, order, dest, 2);
			break;
		case 4:
			gather_length(elements, order, dest, 4);
			break;
		case 8:
			gather_length(elements, order, dest, 8);
			break;
		default:
			gather_length(elements, order, dest, elements->stride);
	}
}

/*
 * Copy elements that have offsets, being of variable length or including
 * NULLs.
 */
static void
gather_variable(const GsArrayElements *elements, const uint64 *order,
				char *dest, uint8 *bitmap)
{
	const uint32 *offsets = elements->offsets;
	int			count = elements->count;

	for (int i = 0; i < count; i++)
	{
		uint32		offset = offsets[(uint32) order[i]];
		char	   *from = elements->data + offset;
		Size		length;
		Size		padded;

		CHECK_FOR_INTERRUPTS();
		if (i + 2 * PREFETCH_DISTANCE < count)
			gpusort_prefetch(&offsets[(uint32) order[i + 2 * PREFETCH_DISTANCE]]);
		if (i + PREFETCH_DISTANCE < count)
		{
			uint32		ahead = offsets[(uint32) order[i + PREFETCH_DISTANCE]];

			if (ahead != GPUSORT_NULL_ELEMENT)
				gpusort_prefetch(elements->data + ahead);
		}

		if (offset == GPUSORT_NULL_ELEMENT)
			continue;
		if (bitmap != NULL)
			bitmap[i / 8] |= 1 << (i % 8);
		length = att_addlength_pointer(0, elements->typlen, from);
		padded = att_align_nominal(length, elements->typalign);
		gpusort_work_add(GPUSORT_WORK_ROW + length);
		memcpy(dest, from, length);
		memset(dest + length, 0, padded - length);
		dest += padded;
	}
}

ArrayType *
gpusort_elements_rearrange(const GsArrayElements *elements, const uint64 *order,
						   MemoryContext target)
{
	ArrayType  *result = gpusort_elements_make_array(elements, target);

	if (elements->offsets == NULL)
		gather_fixed(elements, order, ARR_DATA_PTR(result));
	else
		gather_variable(elements, order, ARR_DATA_PTR(result),
						ARR_NULLBITMAP(result));
	return result;
}
