/*-------------------------------------------------------------------------
 *
 * key_plan.h
 *		How the sort keys of a query become words that order the same way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_PLAN_H
#define GPUSORT_KEY_PLAN_H

#include "access/attnum.h"

#include "fallback.h"

/* The sort keys as the planner has them; arrays of nkeys each. */
typedef struct GsSortKeys
{
	int			nkeys;
	AttrNumber *attnos;			/* columns of the row, from 1 */
	Oid		   *operators;		/* "<" or ">" of a btree operator family */
	Oid		   *collations;
	bool	   *nulls_first;
} GsSortKeys;

typedef struct GsKeyPlan GsKeyPlan;

/*
 * Make the plan, in the current memory context, or return NULL and set
 * *reason (GS_FALLBACK_TYPE or GS_FALLBACK_KEY_WIDTH) and *culprit (the index
 * of the key that is refused).  Looks at the system catalogs, and so needs a
 * transaction.
 */
extern GsKeyPlan *gpusort_key_plan_create(const GsSortKeys *keys,
										  GsFallback *reason, int *culprit);

/* 64-bit words of one encoded key: 1 to GPUSORT_CPU_MAX_KEY_WORDS. */
extern unsigned gpusort_key_plan_words(const GsKeyPlan *plan);

/*
 * Do the words say all?  If not, rows with equal words are in the order of the
 * sort operators' comparators, from sort key number *first on.
 */
extern bool gpusort_key_plan_is_exact(const GsKeyPlan *plan, int *first);

/* Do rows whose first key is NULL come before the others? */
extern bool gpusort_key_plan_nulls_first(const GsKeyPlan *plan);

/*
 * Encode one row, whose columns are values[attno - 1] and isnull[attno - 1],
 * into all words of 'key'.  Returns false if the first sort key is NULL: such
 * rows are to be kept apart, ordered among themselves by 'key'.
 *
 * Keys compare as unsigned words, the first word being the most significant.
 * They are equal exactly when all sort operators call the rows' keys equal.
 */
extern bool gpusort_key_plan_encode(const GsKeyPlan *plan,
									const Datum *values, const bool *isnull,
									uint64 *key);

#endif							/* GPUSORT_KEY_PLAN_H */
