/*-------------------------------------------------------------------------
 *
 * sort_candidate.h
 *		Describes a sort that the planner considers or has chosen.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_CANDIDATE_H
#define GPUSORT_SORT_CANDIDATE_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "sort/base/sort_spec.h"

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

/* Describe a Sort of a finished plan. */
extern GsSortCandidate gpusort_sort_candidate_of_plan(const Sort *sort,
													  double bound,
													  const PlannedStmt *statement);

/*
 * Will a GpuSort with keys of 'words' words need no disk, as far as the
 * estimates tell?
 */
extern bool gpusort_sort_candidate_fits(const GsSortCandidate *candidate,
										unsigned words);

#endif							/* GPUSORT_SORT_CANDIDATE_H */
