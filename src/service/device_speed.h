/*-------------------------------------------------------------------------
 *
 * device_speed.h
 *		Measures how many rows make a sort worth a GPU.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_SPEED_H
#define GPUSORT_DEVICE_SPEED_H

#include "gpusort_device.h"

/*
 * What sorting takes with rows that are in memory before and after it.  All of it is measured
 * with one key of 64 bits and 8 bytes of other columns.
 */
typedef struct GsDeviceSpeed
{
	double		session_us;		/* a session on the device, without the rows */
	double		gpu_row_ns;		/* and a row, both ways */
	double		cpu_row_ns;		/* a row on the CPU; 0 if nothing was measured */
} GsDeviceSpeed;

/* Measure a device that was just opened.  'speed' is set if that was possible. */
extern GsStatus gpusort_device_speed_measure(const GsDeviceApi * api, GsDevice * device,
											 GsDeviceSpeed *speed);

/*
 * From how many rows on a sort takes less time on the device, or infinity.
 */
extern double gpusort_device_speed_min_rows(const GsDeviceSpeed *speed);

#endif							/* GPUSORT_DEVICE_SPEED_H */
