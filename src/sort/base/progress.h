/*-------------------------------------------------------------------------
 *
 * progress.h
 *		Shows the sorts and index builds that run, for pg_stat_progress_gpusort.
 *
 * A sort owns a slot from its begin to its end, and only its process writes to it, by
 * plain stores.  That is cheap enough for each row.  In a build of a GIN index, whose sort has
 * other rows than the table, the build owns the slot in the same way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PROGRESS_H
#define GPUSORT_PROGRESS_H

typedef enum GsProgressPhase
{
	GS_PHASE_READING,			/* the input */
	GS_PHASE_WRITING_RUN,		/* sorting and writing rows that did not fit,
								 * while the input is read */
	GS_PHASE_SORTING,
	GS_PHASE_MERGING,			/* runs, or preparing to merge them while rows
								 * are returned */
	GS_PHASE_RETURNING,
	GS_PROGRESS_PHASES
} GsProgressPhase;

typedef struct GsProgress
{
	/*
	 * Odd while the slot begins a sort.  A reader whose copy was made in the
	 * meantime discards it.  Other fields change at any time, each by one
	 * store.
	 */
	uint32		generation;
	int			pid;			/* 0 if the slot is free */
	int			leader_pid;		/* in a parallel worker; otherwise 0 */
	Oid			database;
	Oid			role;			/* of the session */
	int			plan_node;		/* -1 for an index build */
	int			workers;		/* that can add rows, as planned */
	uint32		devices;		/* a bit for each GPU that has rows of the
								 * sort, by index in GsService.devices */
	GsProgressPhase phase;
	int64		rows_expected;
	int64		rows_read;		/* by this process */
	int64		rows_sorted;	/* 0 until all are */
	int64		rows_returned;	/* position of the row returned last, from 1;
								 * for a GIN index, pairs of key and TID
								 * written */
	int64		memory_bytes;
	int64		device_bytes;
	int64		file_bytes;
} GsProgress;

/* The space that a sort takes is shown each time it has read so many rows: a power of 2. */
#define GPUSORT_ROWS_PER_REPORT	16384

/* Names of the phases in pg_stat_progress_gpusort. */
extern const char *const gpusort_progress_phase_names[];

/*
 * Get a slot for a sort that begins, or one that nobody sees if this process has too
 * many sorts.  It is free again when the memory context is reset or deleted.  'plan_node' is
 * -1 for an index build; 'workers' is how many can add rows, as planned.
 */
extern GsProgress *gpusort_progress_begin(MemoryContext context, int plan_node,
										  int workers, double rows_expected);

/*
 * Copies the slot with a number, from 0 to gpusort_progress_slots() - 1.  Returns false if
 * it has no sort.
 */
extern int	gpusort_progress_slots(void);
extern bool gpusort_progress_read(int number, GsProgress *copy);

/*
 * Returns how many other processes are busy with sorts or index builds, workers of parallel
 * plans included.  Those that return the rows of a query do not count, since they may wait
 * for the client.
 */
extern int	gpusort_progress_busy_others(void);

/* Called once by _PG_init(). */
extern void gpusort_progress_init(void);

#endif							/* GPUSORT_PROGRESS_H */
