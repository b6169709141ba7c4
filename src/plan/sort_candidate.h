/*-------------------------------------------------------------------------
 *
 * sort_candidate.h
 *		Describes a sort that the planner considers or has chosen, and what it costs.
 *
 * All costs are in units of cpu_operator_cost, one of which stands for 6 ns on
 * the machine where they were measured; see docs/design/planner.md.  They do
 * not include what the input costs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_CANDIDATE_H
#define GPUSORT_SORT_CANDIDATE_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "key/key_plan.h"

typedef struct GsSortCandidate
{
	double		rows;			/* estimated */
	int			width;			/* of a row in bytes, estimated */
	double		bound;			/* rows wanted; see exec/limit_bound.h */
	int			fixed_columns;	/* of a row */
	int			variable_columns;	/* those of variable length */
	bool		all_rows;		/* is the input a scan of a table without a
								 * condition? */
	bool		stored_rows;	/* or a scan that returns all columns? */
} GsSortCandidate;

/* Describe a sort of the rows of a path. */
extern GsSortCandidate gpusort_sort_candidate_of_path(const Path *input,
													  double bound);

/* Describe a Sort of a finished plan, whose input is a scan of a table. */
extern GsSortCandidate gpusort_sort_candidate_of_plan(const Sort *sort,
													  double bound,
													  const PlannedStmt *statement);

/*
 * Will a GpuSort with keys of 'words' words need no disk, as far as the
 * estimates tell?
 */
extern bool gpusort_sort_candidate_fits(const GsSortCandidate *candidate,
										unsigned words);

/*
 * Does PostgreSQL's sort take so long that the time to begin a GpuSort does not matter?  With
 * fewer rows than these it does not, whatever the keys are.
 */
#define GPUSORT_FEWEST_LONG_ROWS	2000
extern bool gpusort_sort_candidate_is_long(double rows, double bound, const GsKeyShape *key);

/* The cost of a GpuSort whose rows stay in memory. */
typedef struct GsRowCost
{
	double		keep;			/* to take and sort a row */
	double		emit;			/* to return it */
} GsRowCost;

extern GsRowCost gpusort_row_cost(const GsSortCandidate *candidate,
								  const GsKeyShape *key, bool gpu);

/* A lower bound of 'keep', which is faster to compute. */
extern double gpusort_row_cost_minimum(int width);

/* What a row costs in addition if the rows do not stay in memory. */
#define GPUSORT_DISK_ROW_COST	5.0

typedef enum GsRowOrder
{
	GS_ROWS_UNORDERED,			/* or it is not known */
	GS_ROWS_IN_ORDER,
	GS_ROWS_REVERSED
} GsRowOrder;

/*
 * Is a GpuSort at least a tenth faster than PostgreSQL's sort, if rows come in
 * this order?  It always is if they are unordered.
 */
extern bool gpusort_row_cost_gains(const GsSortCandidate *candidate,
								   const GsKeyShape *key, GsRowOrder order);

#endif							/* GPUSORT_SORT_CANDIDATE_H */
