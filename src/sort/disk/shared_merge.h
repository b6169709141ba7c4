/*-------------------------------------------------------------------------
 *
 * shared_merge.h
 *		Merges the runs of several processes, by all of these processes.
 *
 * The processes of a parallel query, its members, have each written sorted runs to files of
 * a run set.  Splitters divide the rows of all runs into ranges.  Each process takes the next
 * range that nobody has taken, and merges it into memory that all of them share:
 *
 *		write runs | merge ranges, which the leader reads in order
 *
 * At the bar they wait for each other.  Only so many ranges may be ahead of the leader as
 * there is memory for, so the other processes end at about the same time as it does.
 *
 * Ties come in the order of the processes, the leader first and then by worker number, and
 * in the order of arrival for each process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_MERGE_H
#define GPUSORT_SHARED_MERGE_H

#include "sort/base/budget.h"
#include "sort/base/sort_spec.h"
#include "sort/disk/external_sort.h"
#include "sort/memory/sorted_ranges.h"

/* In the memory that the processes share, at the same address in all of them. */
typedef struct GsSharedMerge GsSharedMerge;

/* What a process knows of it. */
typedef struct GsMergeMember GsMergeMember;

/* The bytes that a merge by so many processes needs in that memory, besides 'budget'. */
extern Size gpusort_shared_merge_bytes(int processes);

/*
 * In the leader, before the other processes start: allow them to merge.  'memory' is for
 * gpusort_shared_merge_bytes() bytes, and 'budget' for everything else.
 */
extern GsSharedMerge *gpusort_shared_merge_init(void *memory, GsSharedBudget *budget,
												const GsSortSpec *spec,
												GsRunSetHandle set);

/* Returns the merge in such memory, or NULL if the processes may not merge. */
extern GsSharedMerge *gpusort_shared_merge_find(void *memory);

/*
 * In a process that may have runs later: keep the others from merging until it becomes a
 * member, or leaves.  'lost' if they must not merge at all, since rows are missing.  Returns
 * false if the others have written their runs already.
 */
extern bool gpusort_shared_merge_enter(GsSharedMerge *merge);
extern void gpusort_shared_merge_leave(GsSharedMerge *merge, bool lost);

/*
 * In any process, before it adds its first row: become a member, in the current memory
 * context.  spec->process is 0 for the leader, and different for all others.  Returns NULL
 * if the others have written their runs already; then all rows of the input have been
 * added.  That cannot be if the process has entered, see spec->entered.
 */
extern GsMergeMember *gpusort_merge_member_create(GsSharedMerge *merge,
												  const GsSortSpec *spec);

/* Let the others go on without this process, which has no runs. */
extern void gpusort_merge_member_leave(GsMergeMember *member);

/* The same, and do not merge: rows of this process are missing. */
extern void gpusort_merge_member_give_up(GsMergeMember *member);

/* Is any other process a member at present? */
extern bool gpusort_merge_member_has_others(const GsMergeMember *member);

/*
 * After the last row: merge the runs of this process, which were written to the run set,
 * with those of the others.  'overflow' says why they are on disk.  Returns false if each
 * process must do that for itself.
 *
 * In the leader, returns as soon as ranges can be read.  In other processes, returns when
 * all ranges are merged, or gpusort_shared_merge_stop() was called.
 */
extern bool gpusort_merge_member_merge(GsMergeMember *member,
									   GsExternalSort *external,
									   GsFallback overflow);

/* In the leader, after that: create a reader of all rows, from the first to the last one. */
extern GsRangeReader *gpusort_merge_member_read(GsMergeMember *member);

/* End: close the files, which are not removed. */
extern void gpusort_merge_member_end(GsMergeMember *member);

/* In the leader: no more rows are wanted, so the others need not merge further ranges. */
extern void gpusort_shared_merge_stop(GsSharedMerge *merge);

/* After merging, as for shared_sort.h. */
extern int64 gpusort_merge_member_rows(const GsMergeMember *member);
extern double gpusort_merge_member_wait_ms(const GsMergeMember *member);

/* The kB that this process, or all of them, have on disk; and why. */
extern int64 gpusort_merge_member_kb(const GsMergeMember *member);
extern int64 gpusort_shared_merge_kb(const GsSharedMerge *merge);
extern GsFallback gpusort_shared_merge_overflow(const GsSharedMerge *merge);

#endif							/* GPUSORT_SHARED_MERGE_H */
