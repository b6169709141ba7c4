/*-------------------------------------------------------------------------
 *
 * external_sort.h
 *		Rows of a sort on disk: sorted runs go in, and come out merged.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_SORT_H
#define GPUSORT_EXTERNAL_SORT_H

#include "sort/base/sort_spec.h"
#include "sort/disk/shared_run.h"
#include "sort/memory/memory_sort.h"

typedef struct GsExternalSort GsExternalSort;

/*
 * Begin in the current memory context, with so many bytes of memory for
 * merging.  What 'spec' points to must stay; the file is where spec->target says.
 */
extern GsExternalSort *gpusort_external_begin(const GsSortSpec *spec,
											  Size limit);

/*
 * Write a run: begin, put its rows in their order, and end.  Of rows with
 * equal keys, those of earlier runs come first: the new run goes to the place,
 * from 0, before which so many runs are to be; gpusort_external_runs() is the
 * last.  A row of so many bytes that is reserved has to be packed to the place
 * at once.  Checks for interrupts.
 */
extern void gpusort_external_begin_run(GsExternalSort *sort);
extern void gpusort_external_put(GsExternalSort *sort, const Datum *values,
								 const bool *isnull);
extern char *gpusort_external_reserve(GsExternalSort *sort, Size bytes);
extern void gpusort_external_end_run(GsExternalSort *sort, int index);

/* Runs that there are. */
extern int	gpusort_external_runs(const GsExternalSort *sort);

/*
 * To be called between runs, when the memory allowed is not used otherwise: if
 * there are too many runs, merge some, which may change their number.
 */
extern void gpusort_external_limit_runs(GsExternalSort *sort);

/*
 * For the leader of a set, after all other runs: add one that another process
 * has shared, and rows that a session has sorted and keeps.
 */
extern void gpusort_external_import(GsExternalSort *sort, GsRunSet *set,
									const GsSharedRun *shared);
extern void gpusort_external_hold(GsExternalSort *sort, GsMemorySort *rows);

/* Rows put. */
extern int64 gpusort_external_count(const GsExternalSort *sort);

/*
 * All runs are in: merge them, or all but the last pass, if the rows will be
 * read once and forward.
 */
extern void gpusort_external_perform(GsExternalSort *sort);

/*
 * With spec->target, instead: share the first rows of all runs, at least one, as a
 * single run; or, if there is none, the run that is being written.  What is left
 * to do then is to end the sort.
 */
extern void gpusort_external_share(GsExternalSort *sort, int64 nrows,
								   GsSharedRun *shared);
extern void gpusort_external_share_run(GsExternalSort *sort,
									   GsSharedRun *shared);

/*
 * The row at a position, from 0; without random_access, one behind that read
 * before.  What is passed by reference is valid until the next call.
 */
extern void gpusort_external_get(GsExternalSort *sort, int64 position,
								 Datum *values, bool *isnull);

/* The row read last may be asked for again. */
extern void gpusort_external_mark(GsExternalSort *sort);

/* What EXPLAIN calls the sort, and kB on disk. */
extern const char *gpusort_external_method(const GsExternalSort *sort);
extern int64 gpusort_external_kb(const GsExternalSort *sort);

/* Removes the file. */
extern void gpusort_external_end(GsExternalSort *sort);

#endif							/* GPUSORT_EXTERNAL_SORT_H */
