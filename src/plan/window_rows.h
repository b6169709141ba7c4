/*-------------------------------------------------------------------------
 *
 * window_rows.h
 *		How many rows of each partition a window wants.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WINDOW_ROWS_H
#define GPUSORT_WINDOW_ROWS_H

#include "nodes/plannodes.h"

#include "key/key_plan.h"

/*
 * Returns how many of the first rows of each partition the window of a finished plan wants, whose
 * input is sorted by these keys; or 0 if it may want all.
 */
extern int	gpusort_window_rows_wanted(const WindowAgg *window, const GsSortKeys *keys);

#endif							/* GPUSORT_WINDOW_ROWS_H */
