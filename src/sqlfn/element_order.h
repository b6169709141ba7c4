/*-------------------------------------------------------------------------
 *
 * element_order.h
 *		The order of the elements of an array.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ELEMENT_ORDER_H
#define GPUSORT_ELEMENT_ORDER_H

#include "sqlfn/array_elements.h"

/* How elements of one type are ordered: in one direction, NULLs at one end. */
typedef struct GsElementOrder GsElementOrder;

/*
 * Find out, with the default btree operator class of 'type'.  The result is
 * allocated in the current memory context and can be used any number of times.
 * Raises an error for a type that has no such class.
 */
extern GsElementOrder *gpusort_element_order_create(Oid type, Oid collation,
													bool descending,
													bool nulls_first);

/*
 * Order the 'nslices' slices that the elements make, all of one length, or the
 * single elements where that is 1.  Slices compare as arrays do, whatever was
 * said about NULLs.  Stable.
 *
 * Returns an array, in the current memory context, whose i-th word has in its
 * low 32 bits the number of the slice that comes to place i.
 */
extern uint64 *gpusort_element_order_apply(const GsElementOrder *order,
										   const GsArrayElements *elements,
										   int nslices);

/*
 * The array with its elements in order, made in the memory context 'target';
 * or NULL if that is to be done by way of their order.  Stable.
 */
extern ArrayType *gpusort_element_order_sort(const GsElementOrder *order,
											 const GsArrayElements *elements,
											 MemoryContext target);

#endif							/* GPUSORT_ELEMENT_ORDER_H */
