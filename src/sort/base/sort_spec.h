/*-------------------------------------------------------------------------
 *
 * sort_spec.h
 *		Describes what a sort has to do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SPEC_H
#define GPUSORT_SORT_SPEC_H

#include "access/attnum.h"
#include "executor/tuptable.h"

#include "reason.h"
#include "key/key_plan.h"
#include "key/order_check.h"
#include "settings.h"


/* See sort/team.h and service/service_client.h. */
struct GsTeam;
struct GsClientHandle;

typedef struct GsSortSpec
{
	TupleDesc	tupdesc;		/* of the rows */
	AttrNumber	tuple_attno;	/* the column with the whole tuple, or 0; see
								 * tuple_rows.h */
	GsSortKeys	keys;
	const GsKeyPlan *key_plan;	/* made from 'keys' */
	GsOrderCheck *check;		/* of the rows returned; likewise, or NULL */

	/*
	 * Can the input be read a second time, and returns the same rows then, in
	 * any order?  This is necessary if a GPU is lost together with the rows
	 * in its memory.
	 */
	bool		repeatable;
	bool		by_pages;		/* is it read by a page scan? */
	double		expected_rows;	/* the planner's estimate */
	bool		expected_ties;	/* will most rows tie in the words that a GPU
								 * sorts by? */
	int			expected_width; /* bytes of a row, estimated likewise */
	int64		bound;			/* how many of the first rows are wanted; 0
								 * for all */
	Size		memory;			/* bytes; 0 for pg_gpusort.work_mem */
	bool		random_access;	/* will rows be read again, or backward? */
	int			processes;		/* that can add rows to the leader's sort, or
								 * 0 */
	struct GsTeam *team;		/* in a worker: the leader's; else NULL */
	const struct GsClientHandle *session;	/* likewise: the leader's GPU
											 * session, or NULL */
	int			process;		/* number of the worker in it */
	int			group_keys;		/* if not 0, each process of the team returns
								 * rows, and rows that agree in this number of
								 * leading sort keys come from one process */
	int			partition_keys; /* if not 0, only the first partition_rows
								 * rows are wanted of those that agree in this
								 * number of leading sort keys */
	int			partition_rows;
	bool		nested;			/* not counted, since it is part of another
								 * sort or its caller does; no GPU */
	bool		unseen;			/* does the caller show progress itself? */
	int			plan_node;		/* number of the node in its plan; not of an
								 * index build */
	bool		index_build;	/* rows have TIDs; the caller sorts again if
								 * rows are lost */
} GsSortSpec;

/*
 * Can the sort begin again if its rows are lost?  Not if each process returns rows: what others
 * have read of a parallel scan does not come again.
 */
static inline bool
gpusort_sort_spec_can_restart(const GsSortSpec *spec)
{
	return spec->repeatable && spec->group_keys == 0;
}

/* The part of a sort's memory for what the encodings of its keys keep of recent values. */
#define GPUSORT_ENCODING_DIVISOR	8

/* The memory of the sort together with that of encodings, in bytes. */
static inline Size
gpusort_sort_spec_all_memory(const GsSortSpec *spec)
{
	if (spec->memory > 0)
		return spec->memory;
	return (Size) gpusort_settings_work_mem() * 1024;
}

/* The memory that the sort may use, in bytes, without that of encodings. */
static inline Size
gpusort_sort_spec_memory(const GsSortSpec *spec)
{
	Size		memory = gpusort_sort_spec_all_memory(spec);

	if (spec->key_plan == NULL)
		return memory;
	return memory - Min(memory / 4, gpusort_key_plan_memory(spec->key_plan));
}

/* The part of it for rows on a GPU that are kept after a mark, in bytes. */
static inline Size
gpusort_sort_spec_marked_memory(const GsSortSpec *spec)
{
	return spec->random_access ? gpusort_sort_spec_memory(spec) / 4 : 0;
}

#endif							/* GPUSORT_SORT_SPEC_H */
