/*-------------------------------------------------------------------------
 *
 * work.h
 *		Looking for interrupts, and how much is done in between.
 *
 * A query has to end soon after it is cancelled, however long its values are, so
 * that loops over rows, and over bytes of long values, look for interrupts.  No
 * test can time that.  So in builds for tests (make FAULTS=yes) what goes through
 * many bytes or rows says how many, and each look notes how many there were since
 * the last one: see pg_gpusort.debug_work.  Otherwise compilers leave this out.
 *
 * For CHECK_FOR_INTERRUPTS(), files include this in the place of miscadmin.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORK_H
#define GPUSORT_WORK_H

#include "miscadmin.h"

/* Rows between two looks in loops where each takes next to no time. */
#define GPUSORT_ROWS_PER_LOOK	4096

/* What a row takes, in bytes, that is looked at somewhere in memory. */
#define GPUSORT_WORK_ROW	64

#ifdef GPUSORT_FAULTS

/* In bytes. */
typedef struct GsWork
{
	uint64		since_look;
	uint64		longest;		/* between two looks */
	uint64		total;
} GsWork;

extern GsWork gpusort_work;

/* So many bytes are read or written, or take as long. */
static inline void
gpusort_work_add(uint64 bytes)
{
	gpusort_work.since_look += bytes;
	gpusort_work.total += bytes;
}

/* Interrupts are looked for. */
static inline void
gpusort_work_look(void)
{
	gpusort_work.longest = Max(gpusort_work.longest, gpusort_work.since_look);
	gpusort_work.since_look = 0;
}

#undef CHECK_FOR_INTERRUPTS
#define CHECK_FOR_INTERRUPTS() \
	do { \
		gpusort_work_look(); \
		if (INTERRUPTS_PENDING_CONDITION()) \
			ProcessInterrupts(); \
	} while (0)

/* For the setting: show both numbers, and begin anew. */
extern const char *gpusort_work_show(void);
extern void gpusort_work_reset(const char *newval, void *extra);

#else

/* Never evaluated, but compilers see that what is in there is used. */
#define gpusort_work_add(bytes) \
	do { \
		if (false) \
			(void) (bytes); \
	} while (0)

#endif							/* GPUSORT_FAULTS */

#endif							/* GPUSORT_WORK_H */
