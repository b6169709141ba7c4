/*-------------------------------------------------------------------------
 *
 * element_list.h
 *		Collects elements that come one by one, to be sorted as an array.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ELEMENT_LIST_H
#define GPUSORT_ELEMENT_LIST_H

#include "sqlfn/array_elements.h"

/* Elements of one type. */
typedef struct GsElementList
{
	MemoryContext context;		/* of 'data' and 'bitmap'; NULL if the list is
								 * a view */
	Oid			type;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	int			count;			/* elements, including NULLs */
	int			nulls;
	int			lbound;			/* lower bound as an array: 1 */
	char	   *data;			/* those that are not NULL, as in an array */
	Size		bytes;
	Size		capacity;		/* of 'data', in bytes */
	uint8	   *bitmap;			/* as in an array; NULL if none is NULL */
	int			bitmap_capacity;	/* in elements */
} GsElementList;

/* Begin an empty list, whose elements will be in this memory context. */
extern void gpusort_element_list_init(GsElementList *list, Oid type,
									  MemoryContext context);

/*
 * Add a copy of a value at the end.  Raises an error if the list becomes larger
 * than an array can be.
 */
extern void gpusort_element_list_add(GsElementList *list, Datum value,
									 bool isnull);

/* Add a copy of all elements of another list, which may be a view. */
extern void gpusort_element_list_add_list(GsElementList *list,
										  const GsElementList *other);

/*
 * Prepare to access the elements as those of an array of one dimension, until the
 * list changes.  There must be an element.
 */
extern void gpusort_element_list_open(GsElementList *list,
									  GsArrayElements *elements);

/* How many bytes a list takes when it is written. */
extern Size gpusort_element_list_size(const GsElementList *list);

/*
 * Write a list to so many bytes, for a process of the same parallel query.  Reading
 * them makes a view, whose elements are not aligned and can only be added to a list.
 * It is valid as long as the bytes are.
 */
extern void gpusort_element_list_write(const GsElementList *list, char *dest);
extern void gpusort_element_list_read(GsElementList *list, char *from);

#endif							/* GPUSORT_ELEMENT_LIST_H */
