/*-------------------------------------------------------------------------
 *
 * sort_spec.h
 *		Describes what a sort has to do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SPEC_H
#define GPUSORT_SORT_SPEC_H

#include "executor/tuptable.h"

#include "fallback.h"
#include "key/key_plan.h"
#include "settings.h"

/* See sort/disk/shared_run.h. */
struct GsRunTarget;
struct GsSharedRun;

/*
 * Can the input be read a second time?  It has to be when a GPU is lost with
 * the rows that it held.
 */
typedef enum GsInputRepeat
{
	GS_INPUT_ONCE,				/* no, or it could give other rows */
	GS_INPUT_SAME_ROWS,			/* in any order */
	GS_INPUT_SAME_ORDER
} GsInputRepeat;

/* Where the rows come from. */
typedef struct GsInput
{
	TupleTableSlot *(*next) (void *arg);	/* NULL or empty at the end */
	void		(*rewind) (void *arg);	/* unless GS_INPUT_ONCE */

	/*
	 * Asked at the end: why rows are missing that other processes were to add
	 * to the session's GPU session, or GS_FALLBACK_NONE.  May be NULL.
	 */
	GsFallback	(*failure) (void *arg);

	/*
	 * Asked at the end, if other processes were to write runs: the next one,
	 * from 0 on, or NULL if there is none.  May be NULL.
	 */
	const struct GsSharedRun *(*run) (void *arg, int number);
	void	   *arg;
	GsInputRepeat repeat;
	bool		by_pages;		/* does it come from a page scan? */
} GsInput;

typedef struct GsSortSpec
{
	TupleDesc	tupdesc;		/* of the rows */
	GsSortKeys	keys;
	const GsKeyPlan *key_plan;	/* made from 'keys' */
	GsInput		input;
	double		expected_rows;	/* the planner's estimate */
	int			expected_width; /* bytes of a row, likewise */
	int64		bound;			/* rows wanted, the first ones; 0 for all */
	Size		memory;			/* bytes; 0 for pg_gpusort.work_mem */
	bool		random_access;	/* will the cursor move but forward? */
	const struct GsRunTarget *target;	/* where the rows go as a run, or NULL */
	bool		nested;			/* part of another sort: not counted, no GPU */
	bool		index_build;	/* rows have their place; is the caller's to
								 * sort again if rows are lost */
} GsSortSpec;

/* The memory that the sort may use, in bytes. */
static inline Size
gpusort_sort_spec_memory(const GsSortSpec *spec)
{
	if (spec->memory > 0)
		return spec->memory;
	return (Size) gpusort_settings_work_mem() * 1024;
}

#endif							/* GPUSORT_SORT_SPEC_H */
