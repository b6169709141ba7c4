/*-------------------------------------------------------------------------
 *
 * register_worker.h
 *		Registers the background workers of this library.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REGISTER_WORKER_H
#define GPUSORT_REGISTER_WORKER_H

/*
 * Register a background worker that is connected to shared memory and to no database,
 * and is restarted when it ends with another status than 0.  'function' is its main
 * function, which this library exports.  To be called while the server loads
 * shared_preload_libraries.  Returns false if max_worker_processes does not allow one more
 * worker, which PostgreSQL has logged then.
 */
extern bool gpusort_register_worker(const char *name, const char *function);

#endif							/* GPUSORT_REGISTER_WORKER_H */
