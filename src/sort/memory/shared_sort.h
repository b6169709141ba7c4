/*-------------------------------------------------------------------------
 *
 * shared_sort.h
 *		Sorts the rows of several processes in memory that they have in common.
 *
 * Each process has added rows to a memory sort of its own.  It publishes them, and then places
 * them in ranges.  Ranges follow each other in sorted order, and have about the same number of
 * rows.  Then each process sorts ranges and copies their rows in order, while the leader reads
 * them.
 *
 * team.h has the processes wait for each other between these steps.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_SORT_H
#define GPUSORT_SHARED_SORT_H

#include "sort/base/sort_spec.h"
#include "sort/base/sort_stats.h"
#include "sort/memory/memory_sort.h"
#include "sort/memory/shared_ranges.h"

/* In the memory that the processes share, at the same address in all of them. */
typedef struct GsSharedSort GsSharedSort;

/* What a process knows of it. */
typedef struct GsSharedMember GsSharedMember;

/*
 * In the leader: make a shared sort of spec->processes processes.  size() returns how many bytes of
 * shared memory it takes.  For rows, each process has gpusort_sort_spec_memory() from 'budget'.
 * Later the processes sort 'ranges'.
 */
extern Size gpusort_shared_sort_size(int processes);
extern GsSharedSort *gpusort_shared_sort_init(void *memory, GsSharedBudget *budget,
											  GsSharedRanges *ranges,
											  const GsSortSpec *spec);

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

/* Create an empty memory sort for the rows, in the current memory context. */
extern GsMemorySort *gpusort_shared_member_begin_rows(GsSharedMember *member);

/*
 * Let the others access the rows of this process, which must remain until the leader has read
 * all of them.  Returns false if there is no memory to sort them together.
 */
extern bool gpusort_shared_member_publish(GsSharedMember *member, GsMemorySort *rows);

/*
 * After all have published their rows: place those of this process in ranges.  Returns false if
 * there is no memory for that.
 *
 * 'second' is a sort with spec->group_keys whose keys are encoded alike, and which is divided into
 * the same ranges; or NULL.  It is the next one that is placed.
 */
extern bool gpusort_shared_member_place(GsSharedMember *member, GsSharedMember *second,
										GsMemorySort *rows);

/* After all have placed their rows: prepare to sort ranges, or to read them. */
extern GsRanges *gpusort_shared_member_prepare(GsSharedMember *member, GsSharedMember *second,
											   GsMemorySort *rows);

/* After sorting: report what this process has done.  The leader reports the memory of all. */
extern void gpusort_shared_member_report(const GsSharedMember *member, const GsMemorySort *rows,
										 GsSortReport *report);

#endif							/* GPUSORT_SHARED_SORT_H */
