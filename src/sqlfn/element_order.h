/*-------------------------------------------------------------------------
 *
 * element_order.h
 *		Determines the sorted order of the elements of an array.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ELEMENT_ORDER_H
#define GPUSORT_ELEMENT_ORDER_H

#include "sqlfn/array_elements.h"

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
extern uint64 *gpusort_element_order_apply(const GsElementOrder *order,
										   const GsArrayElements *elements);

/*
 * Returns a sorted copy of the array, made in the memory context 'target', or
 * NULL if the caller has to call gpusort_element_order_apply() instead.  The
 * sort is stable.
 */
extern ArrayType *gpusort_element_order_sort(const GsElementOrder *order,
											 const GsArrayElements *elements,
											 MemoryContext target);

#endif							/* GPUSORT_ELEMENT_ORDER_H */
