/*-------------------------------------------------------------------------
 *
 * preload.h
 *		What a server that preloads this library gives it: shared memory and background workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PRELOAD_H
#define GPUSORT_PRELOAD_H

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

/*
 * Register a background worker that is connected to shared memory and to no database,
 * and is restarted when it ends with another status than 0.  'function' is its main
 * function, which this library exports.  To be called while the server loads
 * shared_preload_libraries.  Returns false if max_worker_processes does not allow one more
 * worker, which PostgreSQL has logged then.
 */
extern bool gpusort_register_worker(const char *name, const char *function);

#endif							/* GPUSORT_PRELOAD_H */
