/*-------------------------------------------------------------------------
 *
 * gpusort_node.h
 *		The GpuSort executor node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_NODE_H
#define GPUSORT_GPUSORT_NODE_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#include "exec/row_source.h"
#include "exec/sink_node.h"
#include "exec/worker_reports.h"
#include "sort/first_keys.h"
#include "sort/producer.h"
#include "sort/sort.h"

/* In the dynamic shared memory of the query, of a node that is divided. */
typedef struct GsDividedShared
{
	GsParallelSort parallel;	/* the sort of all; without a team, one
								 * process sorts all rows */
	pg_atomic_uint32 claimed;	/* has a process begun to execute the node? It
								 * counts the sort, or does it alone */
} GsDividedShared;

/*
 * Stored in the dynamic shared memory of a parallel query, followed by
 * reports.  The leader sets it before workers are launched.
 */
typedef struct GsNodeShared
{
	int64		bound;			/* rows wanted of each process, or -1 */
	GsDividedShared divided;	/* see divided_sort.c */
} GsNodeShared;

/* What the node above wants of the sorted rows. */
typedef enum GsWanted
{
	GS_WANTS_ROWS,
	GS_WANTS_COUNTS,			/* of first keys */
	GS_WANTS_KEYS				/* first keys, by their positions */
} GsWanted;

typedef struct GsNodeState GsNodeState;
struct GsNodeState
{
	CustomScanState css;		/* must be first */
	GsSortSpec	spec;
	GsRowSource *source;		/* reads and returns rows */
	GsSinkState *sink;			/* below the input, or NULL */
	LimitState *limit;			/* bounds the rows wanted, or NULL */
	GsSort	   *sort;			/* NULL until the first row is requested; in
								 * the leader of a divided sort, until there
								 * is shared memory */
	bool		sorted;			/* has this process sorted its rows? */
	int			divided;		/* see GsSortTraits */
	bool		paired;			/* likewise */
	PlanState  *above;			/* then: the Merge Join of the pair, */
	GsNodeState *pair[2];		/* and its outer and inner sort */
	int64		bound;			/* rows wanted when they were sorted, or -1
								 * for all */
	GsWanted	wanted;
	bool		plain;			/* are they returned as the sort has them? */
	bool		withheld;		/* are the sorted rows not returned? then: */
	bool		answered;		/* has the row been returned that stands for
								 * them? */
	GsKeyCounts counts;			/* if these are wanted */

	bool		has_report;		/* is there a report of this process's last
								 * sort? */
	GsSortReport report;
	GsNodeShared *shared;		/* NULL unless the query is parallel */
	GsWorkerReports *worker_reports;	/* the leader's copy, or NULL */
	Plan	   *own_plan;		/* see ask_for_shared_memory() */
};

/*
 * CreateCustomScanState of the GpuSort, the GpuIncrementalSort (incremental_node.c), and the
 * GpuSortPack and GpuSortUnpack (packed_rows.c).
 */
extern Node *gpusort_node_create_state(CustomScan *plan);
extern Node *gpusort_incremental_create_state(CustomScan *plan);
extern Node *gpusort_pack_create_state(CustomScan *plan);
extern Node *gpusort_unpack_create_state(CustomScan *plan);

/*
 * If the state is a GpuSort, set the Limit that bounds the rows wanted from
 * it; NULL means none.
 */
extern void gpusort_node_set_limit(PlanState *state, LimitState *limit);

/* If the state is a Merge Join of two sorts that are divided alike, connect them. */
extern void gpusort_node_connect_pair(PlanState *state);

/*
 * In a parallel worker, if the state is a GpuSort, get the number of rows that
 * the leader wants from it, or -1 for all.  Returns false if it is another
 * node, or if its Limit is in the worker's own plan.
 */
extern bool gpusort_node_leaders_bound(PlanState *state, int64 *bound);

/* If the state is a GpuSort, get its sort keys.  Otherwise return false. */
extern bool gpusort_node_keys(PlanState *state, GsSortKeys *keys);

/*
 * Before the execution: if the state is a GpuSort, have it withhold its rows, since the node above
 * wants only counts of their first keys, or these keys by position.  If it has any rows, it returns
 * one row of NULLs instead.  If keys cannot be read by position, it returns its rows nevertheless.
 * Otherwise returns false.
 */
extern bool gpusort_node_withhold(PlanState *state, GsWanted wanted);

/*
 * From the first row on: returns these counts; or the sort with these keys, or NULL if the state is
 * another node or has returned rows.
 */
extern const GsKeyCounts *gpusort_node_counts(const PlanState *state);
extern GsSort *gpusort_node_withheld_sort(const PlanState *state);

/* Called once by _PG_init(). */
extern void gpusort_node_init(void);

/* ---- A node that is divided: divided_sort.c ---- */

/*
 * In the leader, before workers are launched, in the current memory context: begin the sort of the
 * node, after that of its pair also that.  Leaves node->sort NULL if one process will have to sort
 * all rows.
 */
extern void gpusort_divided_begin(GsNodeState *node, int nworkers);

/*
 * In each process, in the current memory context: add the rows of a node, or of both of a pair, and
 * have them sorted.  Sets node->sort to the sort whose rows this process returns, or leaves it NULL
 * if it returns none.
 */
extern void gpusort_divided_sort(GsNodeState *const *nodes, int n);

#endif							/* GPUSORT_GPUSORT_NODE_H */
