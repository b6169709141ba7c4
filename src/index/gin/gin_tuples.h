/*-------------------------------------------------------------------------
 *
 * gin_tuples.h
 *		Forms the tuples of keys in the entry tree of a GIN index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_TUPLES_H
#define GPUSORT_GIN_TUPLES_H

#include "access/itup.h"

#include "index/gin/gin_order.h"

typedef struct GsGinTupleForm GsGinTupleForm;

/* Prepare to form tuples of an index, in the current memory context. */
extern GsGinTupleForm *gpusort_gin_tuples_create(GsGinOrder *order);

/*
 * Returns the tuple of a key with a posting list of so many bytes and TIDs, byte for byte that
 * of GinFormTuple().  'list' is NULL if there is none.  If the tuple is too long, raises
 * PostgreSQL's error or, if 'error' is false, returns NULL.  The tuple belongs to the form until
 * the next call, or was allocated in the current memory context.
 */
extern IndexTuple gpusort_gin_tuple(GsGinTupleForm *form, const GsGinKey *key,
									const char *list, Size list_bytes, uint32 ntids,
									bool error);

#endif							/* GPUSORT_GIN_TUPLES_H */
