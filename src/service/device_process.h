/*-------------------------------------------------------------------------
 *
 * device_process.h
 *		The process that owns the GPUs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_PROCESS_H
#define GPUSORT_DEVICE_PROCESS_H

/*
 * Serve sessions until asked to end; does not return.  To be called in a child
 * of the supervisor that has no business of its own with the server.
 */
extern void gpusort_device_process_main(void);

#endif							/* GPUSORT_DEVICE_PROCESS_H */
