/*-------------------------------------------------------------------------
 *
 * sink_rows.h
 *		Reads a process's share of the rows below a Gather, and puts them into a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SINK_ROWS_H
#define GPUSORT_SINK_ROWS_H

#include "executor/tuptable.h"
#include "port/atomics.h"

#include "exec/row_source.h"
#include "exec/worker_reports.h"
#include "fallback.h"
#include "key/key_plan.h"
#include "service/service_client.h"
#include "sort/base/sort_spec.h"
#include "sort/disk/shared_run.h"
#include "sort/gpu/gpu_session.h"
#include "sort/sort.h"

/* Where the sink puts rows. */
typedef enum GsSinkMode
{
	GS_SINK_CLOSED,				/* returns them to the Gather */
	GS_SINK_GPU,
	GS_SINK_CPU					/* a shared sort, or runs */
} GsSinkMode;

/*
 * Stored in the query's dynamic shared memory, or in the leader's sink.  Only
 * the leader changes it, except for 'failure', which any process may set.
 */
typedef struct GsSinkShared
{
	GsSinkMode	mode;
	GsClientHandle handle;		/* of the GPU session, for GS_SINK_GPU */
	bool		may_overflow;	/* for GS_SINK_GPU: may rows become runs? */

	/* For GS_SINK_CPU, and for GS_SINK_GPU with 'may_overflow'. */
	struct GsTeam *team;		/* or NULL */
	GsRunSetHandle runs;
	int64		bound;			/* rows wanted of each process; 0 for all */
	bool		whole_tuples;	/* how the sort keeps rows */
	pg_atomic_uint32 failure;	/* GsFallback */
} GsSinkShared;

/* The rows of a process, and where it puts them. */
typedef struct GsSinkRows
{
	GsSortSpec	spec;
	GsRowSource *source;		/* NULL before the first row is requested */
	bool		input_ended;	/* has the source returned its last row? */
	int64		nrows;			/* rows that this process has added */
	GsSort	   *sort;			/* the leader's sort */
	bool		ahead;			/* see gpusort_sink_is_ahead() */
	GsSinkShared *shared;		/* the settings in force: in shared memory if
								 * there are workers, else the leader's */
	GsWorkerReports *reports;	/* reports of workers, in shared memory */

	GsFallback	failure;		/* why rows of this process are lost, or
								 * GS_FALLBACK_NONE */

	/* For GS_SINK_GPU, when it has no room for more rows. */
	TupleTableSlot *refused;	/* row for which the GPU had no room, or NULL */
	GsGpuSession *full;			/* where others are that go to runs, or NULL */
	TupleTableSlot *left;		/* the last of these */
} GsSinkRows;

/*
 * Read all rows, and put them where rows->shared says.  'context' is for memory that is needed
 * until the function returns.
 */
extern void gpusort_sink_rows_put(GsSinkRows *rows, MemoryContext context);

#endif							/* GPUSORT_SINK_ROWS_H */
