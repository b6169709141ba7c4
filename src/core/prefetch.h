/*-------------------------------------------------------------------------
 *
 * prefetch.h
 *		Asks the processor for memory that will be needed soon.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PREFETCH_H
#define GPUSORT_PREFETCH_H

/*
 * Prefetch the cache line of an address, which need not be valid.  The empty assembly keeps gcc
 * from removing calls of functions that do nothing else: for it, they have no effect.
 */
static inline void
gpusort_prefetch(const void *address)
{
	__builtin_prefetch(address);
	__asm__ volatile (""::"r" (address));
}

#endif							/* GPUSORT_PREFETCH_H */
