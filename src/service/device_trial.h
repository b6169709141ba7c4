/*-------------------------------------------------------------------------
 *
 * device_trial.h
 *		Sorts made-up rows on a device that was just opened.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_TRIAL_H
#define GPUSORT_DEVICE_TRIAL_H

#include "gpusort_device.h"

/* Rows of one number each.  Their arrays are in one piece of memory of whole pages. */
typedef struct GsTrial
{
	uint32		rows;
	int			words;			/* of a key */
	uint32		chunk_rows;		/* of a chunk in either direction */
	uint64	   *keys[GPUSORT_MAX_KEY_WORDS];	/* of each row, word by word */
	uint64	   *numbers;
	uint64	   *sorted;			/* has room for one more chunk */
	void	   *memory;
	Size		bytes;
} GsTrial;

/* Allocate the arrays.  Returns false if there is no memory. */
extern bool gpusort_device_trial_make(GsTrial *trial, uint32 rows, int words,
									  uint32 chunk_rows);

extern void gpusort_device_trial_free(GsTrial *trial);

/*
 * Sort the first 'rows' rows in a session of their own, and fill 'sorted'.  Sets how many
 * rows have come back; there may be too many, unless the device is right.
 */
extern GsStatus gpusort_device_trial_sort(const GsDeviceApi * api, GsDevice * device,
										  const GsTrial *trial, uint32 rows,
										  uint32 *returned);

#endif							/* GPUSORT_DEVICE_TRIAL_H */
