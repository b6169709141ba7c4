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

/* Begin to read a frozen run in the current memory context. */
extern GsRunCursor *gpusort_run_cursor_begin(const GsRowFormat *format,
											 GsRunFile *file, GsSortedRun *run);

/*
 * The row at a position, from 0, packed; valid until the next call.  The next
 * and the previous one are found at once; others are searched from the current
 * row, the first one or the marked one, whichever is nearest.
 */
extern char *gpusort_run_cursor_get(GsRunCursor *cursor, int64 position);

/* Mark the row that was read last. */
extern void gpusort_run_cursor_mark(GsRunCursor *cursor);

#endif							/* GPUSORT_RUN_CURSOR_H */
