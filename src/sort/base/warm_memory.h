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
	Size		huge;			/* those of them that are in huge pages */
	Size		in_use;			/* bytes that sessions have taken */
	const char *reason;			/* why there is none, or NULL */
} GsWarmMemoryStatus;

/* To be called by _PG_init(). */
extern void gpusort_warm_memory_init(void);

/*
 * Return what has been taken.  The end of the process returns what it has not.
 */
extern void gpusort_warm_memory_return(char *memory, Size size);

/* Returns how much warm memory there can be, in bytes. */
extern Size gpusort_warm_memory_limit(void);

/*
 * Memory of several processes of a query, with the same addresses in all of them.  The
 * process that creates a group also ends it, when the others no longer access it; the end
 * of that process does so at the latest.
 */
typedef struct GsWarmGroup
{
	int			pid;
	uint32		number;
} GsWarmGroup;

/* Returns false if the library is not preloaded.  end_group() is a memory context callback. */
extern bool gpusort_warm_memory_create_group(GsWarmGroup *group);
extern void gpusort_warm_memory_end_group(void *group);

/*
 * Take 'size' bytes, a multiple of GPUSORT_WARM_BLOCK_BYTES.  The address is a multiple of it as
 * well; the contents are undefined.  Returns NULL if there is no warm memory, or not as much in one
 * stretch.  For a group, in any of its processes, the memory may have ordinary pages, and is only
 * missing if there are not as many free addresses in one stretch.
 */
extern char *gpusort_warm_memory_take(const GsWarmGroup *group, Size size);

/* Returns how much memory groups can have, in bytes, if nothing else is in use. */
extern Size gpusort_warm_memory_shared_limit(void);

extern void gpusort_warm_memory_status(GsWarmMemoryStatus *status);

/*
 * Map new memory, at an address that is a multiple of GPUSORT_WARM_BLOCK_BYTES as 'bytes' is.
 * Returns NULL if that fails.
 */
extern char *gpusort_warm_memory_map(Size bytes, bool shared);

#endif							/* GPUSORT_WARM_MEMORY_H */
