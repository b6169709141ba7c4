/*-------------------------------------------------------------------------
 *
 * producer.h
 *		Adds the rows of one of several processes to a sort.
 *
 * The leader of a parallel query or index build has begun a sort, and opens it for other
 * processes.  Then each of them, the leader too, is a producer: it reads its share of the input.
 * The leader adds its rows to its sort, and a worker to a sort of its own.  All processes sort
 * these rows together (team.h), on a GPU if the leader's sort has opened a session there.
 *
 * If rows are lost with a GPU, the leader has the input read again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PRODUCER_H
#define GPUSORT_PRODUCER_H

#include "executor/tuptable.h"

#include "reason.h"
#include "service/service_client.h"
#include "sort/base/sort_spec.h"
#include "sort/base/sort_stats.h"
#include "sort/first_keys.h"
#include "sort/gpu/gpu_session.h"
#include "sort/sort.h"

/*
 * What producers know of the leader's sort, in memory that the processes share, or the leader's.
 * Only the leader changes it, before the others start.
 */
typedef struct GsParallelSort
{
	bool		gpu;			/* is there a GPU session? */
	GsClientHandle handle;		/* of it */
	struct GsTeam *team;		/* NULL if no other process must add rows */
	bool		repeatable;		/* see GsSortSpec */
	int64		bound;			/* rows wanted of each process; 0 for all */
	int			group_keys;		/* see GsSortSpec: then each process counts
								 * the first keys of the rows that it returns */
} GsParallelSort;

/* What a worker tells its leader. */
typedef struct GsProducerReport
{
	int64		nrows;			/* rows that it has added */
	bool		sorted;			/* has it sorted them itself?  If so: */
	GsSortReport sort;
	GsKeyCounts counts;			/* with group_keys */
} GsProducerReport;

/* Returns the next row of this process's share, or NULL after the last one. */
typedef TupleTableSlot *(*GsProducerNext) (void *arg);

typedef struct GsProducer
{
	/* Set by the caller. */
	GsSortSpec	spec;			/* of the leader's sort */
	GsSort	   *sort;			/* in the leader; in a worker set while it
								 * adds rows to one of its own */
	GsParallelSort *parallel;
	GsProducerNext next;
	void	   *arg;

	/* Afterwards. */
	bool		streaming;		/* in the leader: can it return rows while
								 * others are still sorting? */
	GsProducerReport report;	/* in the leader only the rows added */

	/* Private. */
	bool		input_ended;	/* have others read all rows? */
} GsProducer;

/*
 * In the leader, before its first row: open its sort for other processes.  Returns false if no
 * other process must add rows.
 */
extern bool gpusort_parallel_sort_open(GsParallelSort *parallel, GsSort *sort);

/*
 * In a worker: describe its part of that sort.  Sets what 'spec' says of processes that sort
 * together, and its key plan.
 */
extern void gpusort_parallel_sort_join(const GsParallelSort *parallel, GsSortSpec *spec);

/* Returns why rows are missing, or GS_REASON_NONE. */
extern GsReason gpusort_parallel_sort_failure(const GsParallelSort *parallel);

/* Read all rows, add them, and sort them together with those of the others. */
extern void gpusort_producer_run(GsProducer *producer);

/* In a leader that leaves all rows to the others, when these have started: call this instead. */
extern void gpusort_producer_attend(GsProducer *producer);

#endif							/* GPUSORT_PRODUCER_H */
