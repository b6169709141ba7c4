/*-------------------------------------------------------------------------
 *
 * row_sharing.h
 *		What the processes of a parallel query sort together.
 *
 * If the rows of all processes fit in memory that they share, they sort them there.
 * Otherwise each writes its rows as runs, and they merge the runs of all processes.  In
 * both cases, the leader reads the rows in sorted order while the others are still sorting
 * or merging.
 *
 * The struct is public because each row is read through 'ranges'.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_SHARING_H
#define GPUSORT_ROW_SHARING_H

#include "sort/base/sort_report.h"
#include "sort/base/sort_spec.h"
#include "sort/disk/shared_merge.h"
#include "sort/memory/shared_sort.h"

typedef struct GsRowSharing
{
	const GsSortSpec *spec;
	MemoryContext context;		/* NULL if nothing is shared */
	GsSharedSort *sort;			/* NULL likewise */
	GsSharedMember *member;
	GsSharedMerge *merge;		/* NULL if the processes may not merge */
	GsMergeMember *merger;		/* of it, or NULL */
	bool		merged;			/* have they merged? */
	GsRangeReader *ranges;		/* in the leader, once rows can be read */
} GsRowSharing;

/*
 * Begin, with memory contexts below 'parent'.  In the leader, shares nothing if there is no
 * shared memory, or no other process.
 */
extern void gpusort_row_sharing_begin(GsRowSharing *sharing,
									  const GsSortSpec *spec,
									  MemoryContext parent);

/* End.  No other process may use what the leader shares any more. */
extern void gpusort_row_sharing_end(GsRowSharing *sharing);

static inline bool
gpusort_row_sharing_is_on(const GsRowSharing *sharing)
{
	return sharing->sort != NULL;
}

/* In the leader, before the others start: allow merging runs of that set. */
extern void gpusort_row_sharing_allow_merge(GsRowSharing *sharing,
											GsRunSetHandle set);

/* In the leader, before the others start: rows will not be sorted together, only merged. */
extern void gpusort_row_sharing_only_merge(GsRowSharing *sharing);

/* In the leader, which has taken part: it has no rows. */
extern void gpusort_row_sharing_leave(GsRowSharing *sharing);

/* Before the first row: take part.  Returns false if all rows have been added. */
extern bool gpusort_row_sharing_attach(GsRowSharing *sharing);

/* The rows of this process do not fit in memory. */
extern void gpusort_row_sharing_refuse(GsRowSharing *sharing);

/* Rows of this process are lost, and all processes will begin anew: let the others go on. */
extern void gpusort_row_sharing_give_up(GsRowSharing *sharing);

/*
 * After the last row: sort the rows together with the others, see
 * gpusort_shared_member_sort().
 */
extern bool gpusort_row_sharing_sort(GsRowSharing *sharing, GsMemorySort *rows);

/*
 * After that returned false for rows that are in memory: should they be written as runs,
 * since all processes will merge them?  If not, the others will go on without this process,
 * and each has runs of its own.
 */
extern bool gpusort_row_sharing_wants_runs(GsRowSharing *sharing);

/* Merge the runs of this process with those of others, see gpusort_merge_member_merge(). */
extern bool gpusort_row_sharing_merge(GsRowSharing *sharing,
									  GsExternalSort *external,
									  GsFallback overflow);

/* In the leader, after sorting or merging: create sharing->ranges. */
extern void gpusort_row_sharing_read(GsRowSharing *sharing);

/* In the leader: no more rows are wanted, so the others need not sort further ones. */
extern void gpusort_row_sharing_stop(GsRowSharing *sharing);

/*
 * After sorting or merging: report it.  'rows' are those of this process, if they are in
 * memory.
 */
extern void gpusort_row_sharing_report(const GsRowSharing *sharing,
									   const GsMemorySort *rows,
									   GsSortReport *report);

#endif							/* GPUSORT_ROW_SHARING_H */
