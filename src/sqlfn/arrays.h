/*-------------------------------------------------------------------------
 *
 * arrays.h
 *		What the files of this room that sort arrays call of each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ARRAYS_H
#define GPUSORT_ARRAYS_H

#include "access/tupmacs.h"
#include "fmgr.h"
#include "utils/array.h"

#include "work.h"

/* ---- Access to elements at random, without copying them: array_elements.c ---- */

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
 * Make an array with the same dimensions and lower bounds that has the
 * elements in another order, bit for bit, in the memory context 'target'.  The low
 * 32 bits of order[i] are the number of the element to store at index i.  Checks
 * for interrupts.
 */
extern ArrayType *gpusort_elements_rearrange(const GsArrayElements *elements,
											 const uint64 *order, MemoryContext target);

/*
 * Make an array with the same dimensions and lower bounds in the memory context
 * 'target'.  The caller must write its elements.  If there are NULLs, the array
 * has a null bitmap, which is cleared.
 */
extern ArrayType *gpusort_elements_make_array(const GsArrayElements *elements,
											  MemoryContext target);

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

/* ---- The sorted order of the elements: element_order.c ---- */

/*
 * The order of the elements of a type, in one direction and with NULLs at one
 * end.
 */
typedef struct GsElementOrder GsElementOrder;

/*
 * Create an order by the default btree operator class of 'type', in the
 * current memory context.  It can be used any number of times.  Raises an
 * error if the type has no such class.
 */
extern GsElementOrder *gpusort_element_order_create(Oid type, Oid collation,
													bool descending,
													bool nulls_first);

/*
 * Sort the elements.  The sort is stable.
 *
 * Returns an array of words in the current memory context.  The low 32 bits of
 * the i-th word are the number of the element that belongs at index i.
 */
extern uint64 *gpusort_element_order_apply(GsElementOrder *order,
										   const GsArrayElements *elements);

/*
 * Returns a sorted array or NULL, if the caller has to call gpusort_element_order_apply() instead.
 * It is made in the memory context 'target', or is 'own', the array of the elements if that may be
 * overwritten, and otherwise NULL.  The sort is stable.
 */
extern ArrayType *gpusort_element_order_sort(const GsElementOrder *order,
											 const GsArrayElements *elements,
											 ArrayType *own, MemoryContext target);

/* ---- What calls of the SQL functions have in common: array_sort.c ---- */

/* The direction of a sort, from the arguments of a call. */
typedef struct GsSortDirection
{
	bool		descending;
	bool		nulls_first;
} GsSortDirection;

/*
 * Read the argument 'descending', whose number is given, and the next one,
 * 'nulls_first'.  Arguments that the function does not have are the defaults.
 * Returns false if 'descending' is NULL.
 */
extern bool gpusort_sort_call_direction(FunctionCallInfo fcinfo, int argno,
										GsSortDirection *direction);

/*
 * Returns an array of the sorted elements of 'array', or of their positions in sorted order,
 * counted from 1.  Frees 'array' unless it is the first argument of the call.
 */
extern Datum gpusort_sort_call_return(FunctionCallInfo fcinfo, ArrayType *array,
									  const GsSortDirection *direction, bool positions);

#endif							/* GPUSORT_ARRAYS_H */
