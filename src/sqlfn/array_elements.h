/*-------------------------------------------------------------------------
 *
 * array_elements.h
 *		Accesses the elements of an array at random, without copying them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ARRAY_ELEMENTS_H
#define GPUSORT_ARRAY_ELEMENTS_H

#include "access/tupmacs.h"
#include "utils/array.h"

#include "work.h"

/*
 * The elements of an array.  They are numbered from 0 in storage order.  The
 * offset of an element is its number times 'stride' or, if elements vary in
 * length or some are NULL, is looked up in 'offsets'.
 */
typedef struct GsArrayElements
{
	int			ndim;
	const int  *dims;
	const int  *lbounds;
	int			count;
	int			nulls;			/* number of NULLs among them */

	Oid			type;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	char	   *data;
	Size		data_bytes;		/* including each element's padding */
	Size		stride;
	uint32	   *offsets;		/* NULL if 'stride' is used */
} GsArrayElements;

/*
 * The value in 'offsets' for a NULL.  No offset is as large, since arrays are
 * smaller than 1 GB.
 */
#define GPUSORT_NULL_ELEMENT	PG_UINT32_MAX

/*
 * Prepare to access an array, which must not be moved or freed.  The array of
 * offsets, if needed, is allocated in the current memory context.
 */
extern void gpusort_elements_open(GsArrayElements *elements, ArrayType *array);

/*
 * The same for an array in parts.  'data' has the elements that are not NULL as an array
 * has them.  'bitmap' says which these are, or is NULL if all are.
 */
extern void gpusort_elements_open_data(GsArrayElements *elements, Oid type,
									   int ndim, const int *dims,
									   const int *lbounds, char *data,
									   const uint8 *bitmap);

/*
 * Make an array with the same dimensions and lower bounds that has the
 * elements in another order, bit for bit.  The low 32 bits of order[i] are the
 * number of the element to store at index i.  The result is allocated in the
 * current memory context.  Checks for interrupts.
 */
extern ArrayType *gpusort_elements_rearrange(const GsArrayElements *elements,
											 const uint64 *order);

/*
 * Make an array with the same dimensions and lower bounds in the current
 * memory context.  The caller must write its elements.  If there are NULLs,
 * the array has a null bitmap, which is cleared.
 */
extern ArrayType *gpusort_elements_make_array(const GsArrayElements *elements);

/* Get an element.  Returns false if it is NULL. */
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
