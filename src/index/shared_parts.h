/*-------------------------------------------------------------------------
 *
 * shared_parts.h
 *		Parts of the memory that the leader of an index build shares with its workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_PARTS_H
#define GPUSORT_SHARED_PARTS_H

#include "access/parallel.h"
#include "tcop/tcopprot.h"

/* Before the memory is made: count a part of so many bytes. */
static inline void
gpusort_shared_part_estimate(ParallelContext *context, Size size)
{
	shm_toc_estimate_chunk(&context->estimator, size);
	shm_toc_estimate_keys(&context->estimator, 1);
}

/* Returns a new part, which workers find by its key. */
static inline void *
gpusort_shared_part_make(ParallelContext *context, uint64 key, Size size)
{
	void	   *part = shm_toc_allocate(context->toc, size);

	shm_toc_insert(context->toc, key, part);
	return part;
}

/* Returns the query text that pg_stat_activity shows for workers. */
static inline const char *
gpusort_shared_query_text(void)
{
	return debug_query_string != NULL ? debug_query_string : "";
}

#endif							/* GPUSORT_SHARED_PARTS_H */
