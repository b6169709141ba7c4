/*-------------------------------------------------------------------------
 *
 * device_key.h
 *		Keys of rows that a GPU sorts, if those of a key plan are not exact.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_KEY_H
#define GPUSORT_DEVICE_KEY_H

#include "key/key_plan.h"

/* The words of a device key. */
#define GPUSORT_DEVICE_KEY_WORDS	8

/* The most levels of a device key. */
#define GPUSORT_DEVICE_KEY_LEVELS	8

/*
 * Rows may be ties, which the host has to order, on several levels.  On each, those rows are
 * a group that agree in the first 'bits' bits of their keys.  They are ties if 'always' is set, or
 * if the next bit of the last one of them is.
 */
typedef struct GsKeyLevel
{
	unsigned	bits;
	bool		always;
} GsKeyLevel;

typedef struct GsDeviceKey
{
	unsigned	words;			/* 1 to GPUSORT_DEVICE_KEY_WORDS */
	int			nlevels;
	GsKeyLevel	levels[GPUSORT_DEVICE_KEY_LEVELS];	/* by their bits,
													 * ascending */
	int			open;			/* the first sort key that the words do not
								 * encode exactly, or not at all */
	int			ncolumns;		/* sort keys that they encode */
	bool		complete;		/* are these all, and can words tell all of
								 * them? */
	struct GsDeviceColumn *columns;
} GsDeviceKey;

/*
 * Lay out the keys of rows with the sort keys of a plan, in the current memory context, which must
 * not live longer than the plan.  'alone' is as in GsSortKeys.
 */
extern GsDeviceKey *gpusort_device_key_create(const GsKeyPlan *plan, bool alone);

/*
 * Encode one row as gpusort_key_plan_encode() does.  Sets *told to whether the words tell all that
 * the sort keys do: if they do so of all rows, there are no ties.
 */
extern bool gpusort_device_key_encode(const GsDeviceKey *key, const Datum *values,
									  const bool *isnull, uint64 *words, bool *told);

/* Would the words tell all of this value, not NULL, of a sort key that they encode? */
extern bool gpusort_device_key_tells(const GsDeviceKey *key, int column, Datum value);

/*
 * Sets *encoding to that of a sort key, with the bits of its words.  Returns false if the key does
 * not have it.
 */
extern bool gpusort_device_key_encoding(const GsDeviceKey *key, int column,
										GsKeyEncoding *encoding);

#endif							/* GPUSORT_DEVICE_KEY_H */
