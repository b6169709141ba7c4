/*-------------------------------------------------------------------------
 *
 * device_process.h
 *		The process that owns the GPUs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_PROCESS_H
#define GPUSORT_DEVICE_PROCESS_H

/* How the device process ends, if it ends by itself. */
#define GPUSORT_EXIT_ASKED		0	/* by SIGTERM */
#define GPUSORT_EXIT_NO_DEVICE	1	/* see GsService.message */
#define GPUSORT_EXIT_LOST		2	/* a device is lost, see lost_device;
									 * likewise */
#define GPUSORT_EXIT_AGAIN		3	/* to start again without a device that
									 * was lost when it was opened */

/*
 * Serve sessions until asked to end; does not return.  To be called in a child
 * of the supervisor that has no business of its own with the server.
 */
extern void gpusort_device_process_main(void);

/* Within the process: end it, since a device is lost. */
extern void gpusort_device_process_lose(int device, const char *message);

/*
 * Within the process: the free memory of a device, which is published.  Ends the
 * process if the device is lost.
 */
extern uint64 gpusort_device_process_memory(int device);

#endif							/* GPUSORT_DEVICE_PROCESS_H */
