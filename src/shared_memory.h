/*-------------------------------------------------------------------------
 *
 * shared_memory.h
 *		Shared memory of the server in which this library keeps a structure.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_MEMORY_H
#define GPUSORT_SHARED_MEMORY_H

typedef struct GsSharedMemory
{
	const char *name;			/* in pg_shmem_allocations */
	const char *lock;			/* name of the tranche of an LWLock, or NULL */

	/*
	 * How many bytes; asked when all settings have their values.  With 0 no
	 * memory is requested.
	 */
	Size		(*bytes) (void);

	/*
	 * Gets the address.  'found' is false in the server's first process,
	 * which fills the memory, also once more after a crash.
	 */
	void		(*start) (void *memory, bool found);
} GsSharedMemory;

/*
 * Have the server allocate shared memory.  Does nothing unless the server loads
 * shared_preload_libraries, since no memory can be had later.
 */
extern void gpusort_shared_memory_add(const GsSharedMemory *memory);

#endif							/* GPUSORT_SHARED_MEMORY_H */
