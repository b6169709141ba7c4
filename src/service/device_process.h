/*-------------------------------------------------------------------------
 *
 * device_process.h
 *		Main loop of the process that owns the GPUs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_PROCESS_H
#define GPUSORT_DEVICE_PROCESS_H

/*
 * Serve sessions until asked to exit; does not return.  Call this in a child
 * of the supervisor that is not connected to the server in any other way.
 */
extern void gpusort_device_process_main(void);

#endif							/* GPUSORT_DEVICE_PROCESS_H */
