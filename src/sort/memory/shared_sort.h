/*-------------------------------------------------------------------------
 *
 * shared_sort.h
 *		Sorts the rows of several processes in memory that they have in common.
 *
 * The processes of a parallel query, its members, each add rows to a memory sort of their
 * own.  Then they sort the rows of all of them together:
 *
 *		add rows | place rows in ranges | sort ranges, and copy their rows in order
 *
 * At each bar they wait for each other.  Ranges follow each other in sorted order, and have
 * about the same number of rows.  In the last phase each process takes the next range that
 * nobody has taken, until none is left.  The leader can read the first rows meanwhile.
 *
 * Ties come in the order of the processes, the leader first and then by worker number, and
 * in the order of arrival for each process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_SORT_H
#define GPUSORT_SHARED_SORT_H

#include "sort/base/sort_spec.h"
#include "sort/memory/memory_sort.h"
#include "sort/memory/sorted_ranges.h"

/* In the memory that the processes share, at the same address in all of them. */
typedef struct GsSharedSort GsSharedSort;

/* What a process knows of it. */
typedef struct GsSharedMember GsSharedMember;

/*
 * In the leader: create a shared sort, for up to 'processes' processes, each of which has
 * gpusort_sort_spec_memory().  It ends with the current memory context; the other processes
 * must not access it any more at that time.  Returns NULL if the library is not preloaded,
 * or has no memory.  The caller can use 'extra' bytes of the memory itself.
 */
extern GsSharedSort *gpusort_shared_sort_create(const GsSortSpec *spec,
												int processes, Size extra);
extern void *gpusort_shared_sort_extra(GsSharedSort *shared);
extern GsSharedBudget *gpusort_shared_sort_budget(GsSharedSort *shared);

/* Returns the 'string_words' with which all processes must make their key plans. */
extern unsigned gpusort_shared_sort_string_words(const GsSharedSort *shared);

/*
 * For the planner: will rows of this width, whose keys have 'words' words, fit in the memory
 * of the processes, each of which has 'memory' bytes?
 */
extern bool gpusort_shared_sort_fits(unsigned words, double rows, int width,
									 Size memory, int processes);

/*
 * In any process: become a member, in the current memory context.  spec->process is 0 for
 * the leader, and different for all others.
 */
extern GsSharedMember *gpusort_shared_member_create(GsSharedSort *shared,
													const GsSortSpec *spec);

/*
 * Take part, before the process adds its first row.  Returns false if the others have gone
 * on without this process; then all rows of the input have been added.
 */
extern bool gpusort_shared_member_attach(GsSharedMember *member);

/* Create an empty memory sort for the rows, in the current memory context. */
extern GsMemorySort *gpusort_shared_member_begin_rows(GsSharedMember *member);

/* In the leader, before the others start: the processes will not sort together. */
extern void gpusort_shared_sort_refuse(GsSharedSort *shared);

/*
 * The rows of this process do not fit in memory, so the processes cannot sort together.
 */
extern void gpusort_shared_member_refuse(GsSharedMember *member);

/*
 * After the last row, and in a leader that takes no part, after all other processes: sort
 * together.  'rows' has the rows of this process; they must remain until the leader has
 * read all of them.  NULL if they did not fit in memory.  Returns false if the processes
 * cannot sort together, and each still has its own rows.  Checks for interrupts.
 *
 * In the leader, returns as soon as ranges can be read: the leader sorts those of them that
 * no other process has taken when it reads them.
 */
extern bool gpusort_shared_member_sort(GsSharedMember *member, GsMemorySort *rows);

/*
 * After that returned false: was the sort refused while rows were being added, so that no
 * process holds memory for it?  The same in all processes.
 */
extern bool gpusort_shared_sort_refused_early(const GsSharedSort *shared);

/*
 * In the leader: no more rows are wanted, so the others need not sort further ranges.  If
 * rows are read nevertheless, the leader sorts their ranges.
 */
extern void gpusort_shared_sort_stop(GsSharedSort *shared);

/* In the leader, after sorting: create a reader of all rows in the current memory context. */
extern GsRangeReader *gpusort_shared_member_read(GsSharedMember *member);

/* The number of rows in ranges that this process has sorted. */
extern int64 gpusort_shared_member_rows(const GsSharedMember *member);

/* Milliseconds for which the reader has waited for ranges, or has sorted them. */
extern double gpusort_shared_member_wait_ms(const GsSharedMember *member);

/* The wait event of processes that wait for others with which they sort. */
extern uint32 gpusort_shared_wait_event(void);

/* The memory that all processes have used, in bytes. */
extern Size gpusort_shared_sort_bytes(const GsSharedSort *shared);

#endif							/* GPUSORT_SHARED_SORT_H */
