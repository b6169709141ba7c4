/*-------------------------------------------------------------------------
 *
 * index_hook.h
 *		Directs PostgreSQL's index builds to gpusort_index_build().
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_HOOK_H
#define GPUSORT_INDEX_HOOK_H

/* Called once by _PG_init(). */
extern void gpusort_index_hook_init(void);

#endif							/* GPUSORT_INDEX_HOOK_H */
