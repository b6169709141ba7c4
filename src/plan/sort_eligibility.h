/*-------------------------------------------------------------------------
 *
 * sort_eligibility.h
 *		Determines which sorts are taken over, and what a row of one costs.
 *
 * All costs are in units of cpu_operator_cost, one of which stands for 6 ns on
 * the machine where they were measured; see docs/design/planner.md.  They do
 * not include what the input costs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_ELIGIBILITY_H
#define GPUSORT_SORT_ELIGIBILITY_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "reason.h"
#include "key/key_plan.h"

/* What determines the cost of a sort. */
typedef struct GsSortCandidate
{
	double		rows;			/* estimated */
	int			width;			/* of a row in bytes, estimated */
	double		bound;			/* rows wanted; see exec/limit_bound.h */
	int			fixed_columns;	/* of a row */
	int			variable_columns;	/* those of variable length */
	bool		all_rows;		/* is the input of a Sort a scan of a table
								 * without a condition? */
	bool		stored_rows;	/* is the input a scan that returns all
								 * columns? */
	bool		gpu;			/* will a GPU do the sort? */
	bool		ties;			/* if not, do most rows tie in the words, with
								 * keys yet to come? */
	GsKeyShape	key;
} GsSortCandidate;

/*
 * Describe a sort of the rows of a path.  Returns false if no path is to be made of it: the Sort
 * that it becomes would not be taken over, except where PostgreSQL's own sort costs as little.
 */
extern bool gpusort_sort_candidate_of_path(const PlannerInfo *root, const Path *input,
										   List *pathkeys, double bound,
										   GsSortCandidate *candidate);

/* Will a GpuSort need no disk, as far as the estimates tell? */
extern bool gpusort_sort_candidate_fits(const GsSortCandidate *candidate);

/* The cost of a GpuSort whose rows stay in memory. */
typedef struct GsRowCost
{
	double		keep;			/* to take and sort a row */
	double		emit;			/* to return it */
} GsRowCost;

extern GsRowCost gpusort_row_cost(const GsSortCandidate *candidate, bool gpu);

/* A lower bound of 'keep', which is faster to compute. */
extern double gpusort_row_cost_minimum(int width);

/*
 * Is a Sort of a finished plan to be taken over?  Returns GS_REASON_NONE, or the
 * reason why not.  Reads the system catalogs.
 */
extern GsReason gpusort_eligibility_of_sort(const Sort *sort, double bound,
											const PlannedStmt *statement);

/* The same for an IncrementalSort. */
extern GsReason gpusort_eligibility_of_incremental_sort(const IncrementalSort * sort,
														double bound);

/*
 * Returns what the path of an IncrementalSort takes without its input: up to 1.6 times what the
 * planner charges, or four times by strings.
 */
extern Cost gpusort_incremental_sort_cost(const Path *path);

#endif							/* GPUSORT_SORT_ELIGIBILITY_H */
