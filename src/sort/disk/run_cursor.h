/*-------------------------------------------------------------------------
 *
 * run_cursor.h
 *		Reads a sorted run in both directions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_CURSOR_H
#define GPUSORT_RUN_CURSOR_H

#include "sort/disk/sorted_run.h"

typedef struct GsRunCursor GsRunCursor;

/* Open a cursor, in the current memory context, over a run that is frozen. */
extern GsRunCursor *gpusort_run_cursor_begin(const GsRowFormat *format,
											 GsSortedRun *run);

/*
 * Return the row at a position, counted from 0, in the packed form.  It is valid
 * until the next call.  Moving to the next or the previous row is fast.  To get to another row, the
 * cursor reads all blocks from the current, the first or the marked row, whichever
 * is nearest.
 */
extern char *gpusort_run_cursor_get(GsRunCursor *cursor, int64 position);

/* Mark the row that was read last. */
extern void gpusort_run_cursor_mark(GsRunCursor *cursor);

#endif							/* GPUSORT_RUN_CURSOR_H */
