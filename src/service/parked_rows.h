/*-------------------------------------------------------------------------
 *
 * parked_rows.h
 *		Sorted rows of an idle session, in a temporary file.
 *
 * For the device process.  The functions that return false set errno.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARKED_ROWS_H
#define GPUSORT_PARKED_ROWS_H

#include "gpusort_device.h"

typedef struct GsParkedRows
{
	int			fd;
	uint64		bytes;			/* written */
} GsParkedRows;

/* Create a file, which has no name any more when this returns. */
extern bool gpusort_parked_rows_create(GsParkedRows *rows);

extern void gpusort_parked_rows_close(GsParkedRows *rows);

/*
 * Write a sorted chunk, which session_get() has filled with these options.  Each chunk has an
 * index, in any order.
 */
extern bool gpusort_parked_rows_write(GsParkedRows *rows, const GsSessionOptions * options,
									  uint64 index, const GsSortedChunk * chunk);

/* Read a chunk again, into the arrays of 'chunk', as session_get() would. */
extern bool gpusort_parked_rows_read(const GsParkedRows *rows, const GsSessionOptions * options,
									 uint64 index, GsSortedChunk * chunk);

#endif							/* GPUSORT_PARKED_ROWS_H */
