/*-------------------------------------------------------------------------
 *
 * gin_reader.h
 *		Reads the keys of a GIN index and their TIDs from a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_READER_H
#define GPUSORT_GIN_READER_H

#include "index/gin/gin_order.h"
#include "sort/sort.h"

/* The most TIDs that are read at a time. */
#define GPUSORT_GIN_READER_TIDS	2048

typedef struct GsGinReader GsGinReader;

/* Begin to read a sort that is finished, in the current memory context. */
extern GsGinReader *gpusort_gin_reader_begin(GsGinOrder *order, GsSort *sort, TupleDesc tupdesc);

/*
 * Get the next key in the order of the index.  Of equal keys with other bytes it is the one with
 * the first TID.  It is valid until the next call, before which all of its TIDs have to be read.
 * Returns false at the end, or if the keys are not in order.
 */
extern bool gpusort_gin_reader_next(GsGinReader *reader, GsGinKey *key);

/*
 * Get up to GPUSORT_GIN_READER_TIDS of the key's TIDs in ascending order, each once.  They are
 * valid until the next call.  Returns their number, which is 0 at the end.
 */
extern uint32 gpusort_gin_reader_tids(GsGinReader *reader, const uint64 **tids);

/*
 * If keys are not in order, distrust their encoding.  Returns a text that describes it, in the
 * current memory context, or NULL if keys are in order.
 */
extern char *gpusort_gin_reader_wrong_encoding(const GsGinReader *reader);

#endif							/* GPUSORT_GIN_READER_H */
