/*-------------------------------------------------------------------------
 *
 * gin_writer.h
 *		Writes the pages of a new GIN index from its keys in index order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_WRITER_H
#define GPUSORT_GIN_WRITER_H

#include "access/gin.h"

#include "index/base/page_writer.h"
#include "index/gin/gin_order.h"

typedef struct GsGinWriter GsGinWriter;

/* Create the metapage and an empty root, in the buffer pool, of an index without blocks. */
extern void gpusort_gin_writer_create_pages(Relation index);

/* Have rows been inserted since then?  A writer would overwrite them. */
extern bool gpusort_gin_writer_has_rows(Relation index);

/* Set the statistics of the metapage, and log the first 'nblocks' blocks if needed. */
extern void gpusort_gin_writer_end_index(Relation index, const GinStatsData *stats,
										 BlockNumber nblocks);

/*
 * Begin to write an index that has no blocks but those.  'queue' is an empty one that workers
 * write as well, or NULL.  The writer is allocated in the current memory context.  After an
 * error, freeing that context is all that is needed.
 */
extern GsGinWriter *gpusort_gin_writer_begin(Relation index, GsGinOrder *order, GsPageQueue *queue);

/*
 * Write a key: begin it, add its TIDs in ascending order, of which there is at least one, and
 * end it.  The key must be valid until its end.  Raises PostgreSQL's error if it is too long.
 */
extern void gpusort_gin_writer_begin_key(GsGinWriter *writer, const GsGinKey *key);
extern void gpusort_gin_writer_add(GsGinWriter *writer, const uint64 *tids, uint32 count);
extern void gpusort_gin_writer_end_key(GsGinWriter *writer);

/* Write no more pages, and forget those that are not written yet. */
extern void gpusort_gin_writer_abandon(GsGinWriter *writer);

/* Write the remaining pages and the statistics, and make the file durable if needed. */
extern void gpusort_gin_writer_end(GsGinWriter *writer);

#endif							/* GPUSORT_GIN_WRITER_H */
