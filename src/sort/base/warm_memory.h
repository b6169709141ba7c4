/*-------------------------------------------------------------------------
 *
 * warm_memory.h
 *		Host memory in huge pages that the server keeps between sorts.
 *
 * A session takes a stretch of it for a sort and returns it when the sort ends.  The
 * memory is shared, so that what one session has returned the next one takes, without
 * the page faults of memory that is new.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WARM_MEMORY_H
#define GPUSORT_WARM_MEMORY_H

/* The unit of warm memory, and the size of a huge page. */
#define GPUSORT_WARM_BLOCK_BYTES	((Size) 2 * 1024 * 1024)

typedef struct GsWarmMemoryStatus
{
	Size		limit;			/* bytes, or 0 if there is no warm memory */
	Size		present;		/* bytes that the system has given for it */
	Size		in_use;			/* bytes that sessions have taken */
	const char *reason;			/* why there is none, or NULL */
} GsWarmMemoryStatus;

/* To be called by _PG_init(). */
extern void gpusort_warm_memory_init(void);

/*
 * Take 'size' bytes, a multiple of GPUSORT_WARM_BLOCK_BYTES.  The address is a multiple
 * of it as well; the contents are undefined.  Returns NULL if there is no warm memory, or
 * not as much in one stretch.
 */
extern char *gpusort_warm_memory_take(Size size);

/*
 * Return what has been taken.  The end of the process returns what it has not.
 */
extern void gpusort_warm_memory_return(char *memory, Size size);

/* Returns how much warm memory there can be, in bytes. */
extern Size gpusort_warm_memory_limit(void);

extern void gpusort_warm_memory_status(GsWarmMemoryStatus *status);

#endif							/* GPUSORT_WARM_MEMORY_H */
