/*-------------------------------------------------------------------------
 *
 * sort_private.h
 *		The state of a sort.
 *
 * Only the files of the facade access members of the struct: sort_input.c, which adds rows,
 * sort_finish.c, which sorts them, sort_rows.c, which returns them, first_keys.c, producer.c, for
 * several processes, and sort_state.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_PRIVATE_H
#define GPUSORT_SORT_PRIVATE_H

#include "portability/instr_time.h"

#include "key/order_check.h"
#include "sort/base/progress.h"
#include "sort/base/sort_spec.h"
#include "sort/disk/cpu_sort.h"
#include "sort/gpu/gpu_rows.h"
#include "sort/sort.h"
#include "sort/team.h"

/*
 * States of a sort.  gpusort_sort_end_adding(), _finish() and _restart() move it between them
 * as follows:
 *
 *	      end_adding()        finish()
 *	ADDING ---------> SORTED ----------> READY
 *	 ^   |              |                  |
 *	 |   v              v                  v
 *	 |   +--------------+------------------+-----> LOST
 *	 |                                              |
 *	 +----------------------------------------------+
 *	                   restart()
 *
 * A sort becomes LOST when a function returns false.
 */
typedef enum GsSortState
{
	GS_SORT_ADDING,				/* rows are being added */
	GS_SORT_SORTED,				/* the rows of this process are in order */
	GS_SORT_READY,				/* all rows are in order and can be read */
	GS_SORT_LOST				/* the input has to be read again */
} GsSortState;

/*
 * Where the rows of a sort are.  They move between these locations as follows:
 *
 *	GPU -----> RUNS		overflow: the device takes no more rows.  Those that it has follow
 *						after the last row
 *	MEMORY --> RUNS		overflow, here or in another process
 *	MEMORY --> SHARED	all processes have sorted their rows together
 *	RUNS ----> SHARED	all processes are merging their runs together
 *
 * A sort begins in GPU or MEMORY, also after restart().
 */
typedef enum GsRowLocation
{
	GS_ROWS_ON_GPU,				/* a GPU session has all rows, also those of
								 * other processes.  They can still be lost */
	GS_ROWS_IN_MEMORY,			/* a memory sort has all rows */
	GS_ROWS_IN_RUNS,			/* runs have all rows, but for those that will
								 * be the next one */
	GS_ROWS_SHARED				/* ranges that processes share have all rows,
								 * also those of other processes */
} GsRowLocation;

/* The last row that a bound allows; see sort_input.c. */
typedef struct GsCutoff GsCutoff;

/* Rows after a mark of a cursor, and the first rows of partitions; see sort_rows.c. */
typedef struct GsMarkedRows GsMarkedRows;
typedef struct GsPartitionRows GsPartitionRows;

struct GsSort
{
	const GsSortSpec *spec;
	MemoryContext context;
	GsProgress *progress;
	GsSortState state;
	GsRowLocation location;

	/* The rows. */
	GsGpuRows	gpu;			/* also when there are rows in runs */
	GsCpuSort	cpu;
	GsParticipant *participant; /* in what processes sort together, or NULL */
	bool		together;		/* has this process taken part in that? */
	struct GsSort *second;		/* of a pair, of which this is the first; or
								 * NULL */
	GsRanges   *ranges;			/* that they share, in READ; or NULL */
	int64		gpu_offset;		/* if these are on a GPU: of positions there
								 * from those of the rows that this process
								 * returns */
	GsReason	gpu_reason;		/* why a GPU is not, or no longer, used */
	GsReason	failure;		/* why rows of other processes are missing */
	GsCutoff   *cutoff;			/* rows after it are not wanted; or NULL */
	int64		ndropped;		/* rows dropped by all processes */
	Size		most_bytes;		/* peak memory of memory sorts that were cut */
	int64		nrows;			/* rows kept; valid after finishing */
	int64		nrows_lost;		/* rows of the input that were lost after
								 * sorting; or -1 */

	/* The cursor. */
	int64		position;		/* of the row last returned, from 1; or 0 */
	int64		mark;
	bool		returned;		/* has any row been returned? */
	GsRowsInPlace span;			/* rows after it that are read from where they
								 * are; may be none */
	int64		no_span;		/* look for others after this position */
	GsMarkedRows *marked;		/* rows on a GPU after a mark, or NULL */
	GsPartitionRows *partition_rows;	/* or NULL */

	/* Are the rows in order? */
	GsCheckedRows checked;
	char	   *wrong_encoding; /* no, because of that; or NULL */

	/* What is counted. */
	bool		counted;		/* in statistics? not if part of another sort */
	bool		sorted;			/* has it ever been finished? */
	instr_time	lap_start;
	double		drain_ms;
	double		sort_ms;
};

/* Go to another state. */
extern void gpusort_sort_enter(GsSort *sort, GsSortState state);

/* The rows have moved. */
extern void gpusort_sort_set_location(GsSort *sort, GsRowLocation location);

/*
 * Returns 'kept', which says whether the rows are still there.  If they are not, the sort
 * is lost, and other processes do not wait for it.
 */
extern bool gpusort_sort_lost_unless(GsSort *sort, bool kept);

/* Raise an error, unless rows that were lost can be added again. */
extern void gpusort_sort_check_restart(GsSort *sort);

/* Returns the milliseconds of the lap that ends now.  The next one begins. */
extern double gpusort_sort_lap_ms(GsSort *sort);

/* Show in sort->progress the memory, GPU and files that the sort has now. */
extern void gpusort_sort_show_space(GsSort *sort);

/* The same, and the phase that begins. */
extern void gpusort_sort_show_phase(GsSort *sort, GsProgressPhase phase);

/* The sort is finished: begin to return its rows, and to check their order. */
extern void gpusort_sort_begin_reading(GsSort *sort);

/* ---- From adding rows to sorting them ---- */

/* End what this process has in common with others. */
extern void gpusort_sort_end_participant(GsSort *sort);

/*
 * After the last row: have the rows that are wanted where all processes can sort them, if they
 * are in memory.  May write them to disk instead.
 */
extern void gpusort_sort_share_rows(GsSort *sort);

/*
 * May rows of a GPU be written?  Not if there are more than temp_file_limit allows, and the sort
 * can start over: they may fit in memory then.
 */
extern bool gpusort_sort_may_write_session(const GsSort *sort);

/* Let the rows in memory, and those that follow, go to disk for that reason. */
extern void gpusort_sort_write_memory(GsSort *sort, GsReason reason);

/*
 * Put the last rows of this process into the GPU session, or write them to disk if it is full.
 * Returns false if rows are lost.
 */
extern bool gpusort_sort_flush_session(GsSort *sort);

/* ---- For those who need no more than first keys: first_keys.c ---- */

/* Do values that are passed by reference stay where they are until the sort ends? */
extern bool gpusort_sort_is_lasting(const GsSort *sort);

/*
 * Move the cursor of a sort that can be rewound before the row at a position, counted from 0.  Rows
 * that are lost from now on are an error.
 */
extern void gpusort_sort_go_to(GsSort *sort, int64 position);

/* ---- For producers: producer.c ---- */

/* Set spec->key_plan to the plan by which a worker encodes rows of its leader's sort. */
extern void gpusort_sort_plan_leader_keys(GsSortSpec *spec);

/*
 * Let other processes sort rows of the input together with this one.  They pass the team of
 * sort->participant in spec->team, and the GPU session, if there is one, in spec->session.  Returns
 * false if they must not do that.
 */
extern bool gpusort_sort_open(GsSort *sort);

/*
 * After the last row of this process: sort its rows.  Returns false if they are lost.  If they are
 * then GS_ROWS_SHARED, the leader can return the first rows while others are still sorting.
 * Otherwise it must wait for them before it calls gpusort_sort_finish().
 */
extern bool gpusort_sort_end_adding(GsSort *sort);

/* After rows were lost: returns why. */
extern GsReason gpusort_sort_loss(const GsSort *sort);

#endif							/* GPUSORT_SORT_PRIVATE_H */
