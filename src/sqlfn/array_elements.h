/*-------------------------------------------------------------------------
 *
 * array_elements.h
 *		Random access to the elements of an array, where they lie.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ARRAY_ELEMENTS_H
#define GPUSORT_ARRAY_ELEMENTS_H

#include "access/tupmacs.h"
#include "utils/array.h"

#include "work.h"

/*
 * Elements are numbered from 0 in storage order.  Where an element lies is
 * its number times 'stride', or looked up in 'offsets' when elements vary in
 * length or some are NULL.
 */
typedef struct GsArrayElements
{
	ArrayType  *array;
	int			count;
	int			nulls;			/* how many of them are NULL */

	Oid			type;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	char	   *data;
	Size		data_bytes;		/* with the padding of each element */
	Size		stride;
	uint32	   *offsets;		/* NULL if 'stride' is all that is needed */
} GsArrayElements;

/* What 'offsets' has for a NULL; arrays are smaller than 1 GB. */
#define GPUSORT_NULL_ELEMENT	PG_UINT32_MAX

/*
 * Look at an array, which must stay where it is.  An array of offsets, where
 * it takes one, is allocated in the current memory context.
 */
extern void gpusort_elements_open(GsArrayElements *elements, ArrayType *array);

/*
 * Make an array of the same dimensions and lower bounds that has the elements
 * in another order, bit for bit: the low 32 bits of order[i] are the number of
 * the element that comes to place i.  It is allocated in the current memory
 * context.  Checks for interrupts.
 */
extern ArrayType *gpusort_elements_rearrange(const GsArrayElements *elements,
											 const uint64 *order);

/*
 * Make an array of the same dimensions and lower bounds in the current memory
 * context, whose elements are to be written.  If there are NULLs, it has a
 * bitmap, which is clear.
 */
extern ArrayType *gpusort_elements_make_array(const GsArrayElements *elements);

/* Get an element; returns false if it is NULL. */
static inline bool
gpusort_elements_get(const GsArrayElements *elements, uint32 number,
					 Datum *value)
{
	Size		offset = number * elements->stride;

	gpusort_work_add(GPUSORT_WORK_ROW);
	if (elements->offsets != NULL)
	{
		if (elements->offsets[number] == GPUSORT_NULL_ELEMENT)
			return false;
		offset = elements->offsets[number];
	}
	*value = fetch_att(elements->data + offset, elements->typbyval,
					   elements->typlen);
	return true;
}

#endif							/* GPUSORT_ARRAY_ELEMENTS_H */
