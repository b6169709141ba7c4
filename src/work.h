/*-------------------------------------------------------------------------
 *
 * work.h
 *		Checks for interrupts, and measures the work between them.
 *
 * A query has to end soon after it is cancelled, however long its values are.
 * So loops over rows, and over the bytes of long values, check for interrupts.
 *
 * A test cannot measure that by time.  So in builds for tests (make
 * FAULTS=yes) code that processes many bytes or rows reports how many, and
 * each check for interrupts records the amount since the previous one: see
 * pg_gpusort.debug_work.  In other builds the compiler drops this code.
 *
 * Files include this header instead of miscadmin.h for CHECK_FOR_INTERRUPTS().
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORK_H
#define GPUSORT_WORK_H

#include "miscadmin.h"

/*
 * Rows between two checks for interrupts, in loops that take next to no time
 * per row.
 */
#define GPUSORT_ROWS_PER_LOOK	4096

/* Bytes counted for a row that is read somewhere in memory. */
#define GPUSORT_WORK_ROW	64

/* The same for a look at a plan node or an aggregate while a query is planned. */
#define GPUSORT_WORK_PLANNING	1024

/* Copy bytes, which may be many, and check for interrupts meanwhile. */
extern void gpusort_work_copy(void *to, const void *from, Size bytes);

#ifdef GPUSORT_FAULTS

/* All amounts are in bytes. */
typedef struct GsWork
{
	uint64		since_look;
	uint64		longest;		/* most between two checks */
	uint64		total;
} GsWork;

extern GsWork gpusort_work;

/* Count bytes that are read or written, or work that takes as long. */
static inline void
gpusort_work_add(uint64 bytes)
{
	gpusort_work.since_look += bytes;
	gpusort_work.total += bytes;
}

/* Record that the code checks for interrupts. */
static inline void
gpusort_work_check(void)
{
	gpusort_work.longest = Max(gpusort_work.longest, gpusort_work.since_look);
	gpusort_work.since_look = 0;
}

#undef CHECK_FOR_INTERRUPTS
#define CHECK_FOR_INTERRUPTS() \
	do { \
		gpusort_work_check(); \
		if (INTERRUPTS_PENDING_CONDITION()) \
			ProcessInterrupts(); \
	} while (0)

/* Show both numbers, and reset them, for the setting pg_gpusort.debug_work. */
extern const char *gpusort_work_show(void);
extern void gpusort_work_reset(const char *newval, void *extra);

#else

/*
 * Never evaluated, but the compiler sees that the variables in 'bytes' are
 * used.
 */
#define gpusort_work_add(bytes) \
	do { \
		if (false) \
			(void) (bytes); \
	} while (0)

#endif							/* GPUSORT_FAULTS */

#endif							/* GPUSORT_WORK_H */
