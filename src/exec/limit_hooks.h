/*-------------------------------------------------------------------------
 *
 * limit_hooks.h
 *		Tells each GpuSort of a plan which Limit bounds it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIMIT_HOOKS_H
#define GPUSORT_LIMIT_HOOKS_H

/* Called once by _PG_init(). */
extern void gpusort_limit_hooks_init(void);

#endif							/* GPUSORT_LIMIT_HOOKS_H */
