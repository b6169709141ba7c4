/*-------------------------------------------------------------------------
 *
 * shared_merge.h
 *		Merges the runs of several processes, by all of these processes.
 *
 * Each process has written sorted runs to files of a run set.  Splitters divide the rows of all
 * runs into ranges.  Each process merges ranges into shared memory, from which the leader reads
 * them.  There is memory for a few ranges that the leader has not read yet; when it is full, the
 * others wait.  So they end when it does, or soon before.
 *
 * team.h has the processes wait for each other before that.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_MERGE_H
#define GPUSORT_SHARED_MERGE_H

#include "sort/base/budget.h"
#include "sort/base/sort_spec.h"
#include "sort/base/sort_stats.h"
#include "sort/disk/cpu_sort.h"
#include "sort/memory/shared_ranges.h"

/* In the memory that the processes share, at the same address in all of them. */
typedef struct GsSharedMerge GsSharedMerge;

/* What a process knows of it. */
typedef struct GsMergeMember GsMergeMember;

/*
 * In the leader: make a merge by spec->processes processes.  size() returns how many bytes of
 * shared memory it takes; everything else that the processes share comes from 'budget'.  They merge
 * 'ranges'.
 */
extern Size gpusort_shared_merge_size(int processes);
extern GsSharedMerge *gpusort_shared_merge_init(void *memory, GsSharedBudget *budget,
												GsSharedRanges *ranges,
												const GsSortSpec *spec);

/*
 * Returns how many runs each process may have, so that a merge has memory for a block of each run.
 * If a process has more, it merges some of them first.
 */
extern int	gpusort_shared_merge_most_runs(Size memory, int processes);

/* Merge runs of this process until there is memory to read all processes' runs at the same time. */
extern void gpusort_merge_reduce_runs(const GsSharedMerge *merge, GsCpuSort *sort);

/*
 * When no process has rows in memory any more: become a member, in the current memory context.
 * spec->process is 0 for the leader, and different for all others.  The runs of all processes are
 * in 'set'.
 */
extern GsMergeMember *gpusort_merge_member_create(GsSharedMerge *merge, const GsSortSpec *spec,
												  FileSet set);

/* Let the others find the runs of this process. */
extern void gpusort_merge_member_publish(GsMergeMember *member, const GsCpuSort *sort);

/*
 * After all have published their runs: open these, and prepare to merge ranges, or to read them
 * once and forward.  'second' is a merge with spec->group_keys and the same keys, which is opened
 * next and divided into the same ranges; or NULL.
 */
extern GsRanges *gpusort_merge_member_open(GsMergeMember *member, GsMergeMember *second);

/* End: close the files, which are not removed. */
extern void gpusort_merge_member_end(GsMergeMember *member);

/*
 * After merging: report what this process has done.  The leader reports the space of all.
 */
extern void gpusort_merge_member_report(const GsMergeMember *member, GsSortReport *report);

/* Returns why the rows are on disk. */
extern GsReason gpusort_shared_merge_overflow(const GsSharedMerge *merge);

#endif							/* GPUSORT_SHARED_MERGE_H */
