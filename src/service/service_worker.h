/*-------------------------------------------------------------------------
 *
 * service_worker.h
 *		The background worker "pg_gpusort service": supervises the device process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_WORKER_H
#define GPUSORT_SERVICE_WORKER_H

/*
 * Register the worker if there should be a GPU service.  Called once by
 * _PG_init(), after gpusort_service_shmem_init().
 */
extern void gpusort_service_worker_init(void);

#endif							/* GPUSORT_SERVICE_WORKER_H */
