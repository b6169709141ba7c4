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
#include "key/key_encoding.h"
#include "key/string_pivot.h"

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

/* What the costs of a sort depend on. */
typedef struct GsKeyShape
{
	unsigned	words;			/* of an encoded key */
	bool		exact;			/* no ties to break */
} GsKeyShape;

/*
 * Make the plan, in a memory context of its own below the current one.  Of a
 * string up to 'string_words' words, 1 at least, become part of the key.  Looks at
 * the system catalogs, and so needs a transaction.
 *
 * Sets *reason to GS_FALLBACK_TYPE if the first key has no encoding, otherwise to
 * GS_FALLBACK_NONE.  Without it all keys are equal, and comparisons tell the
 * order.  That is no way to sort rows, but it works, for plans of queries that were
 * made when there was an encoding.
 */
extern GsKeyPlan *gpusort_key_plan_create(const GsSortKeys *keys,
										  unsigned string_words,
										  GsFallback *reason);
extern void gpusort_key_plan_free(GsKeyPlan *plan);

/*
 * The shape of a plan for sort keys with these encodings, with one word of a
 * string.  There are 1 to GPUSORT_KEY_SHAPE_COLUMNS of them.  Of more keys, pass
 * the first ones: a column takes two bits at least, so that these exceed a key.
 */
#define GPUSORT_KEY_SHAPE_COLUMNS	129

extern GsKeyShape gpusort_key_plan_shape(const GsKeyEncoding *encodings,
										 int nkeys);

/* 64-bit words of one encoded key: 1 to GPUSORT_CPU_MAX_KEY_WORDS. */
extern unsigned gpusort_key_plan_words(const GsKeyPlan *plan);

/* What the plan was made with: with another number, keys may look different. */
extern unsigned gpusort_key_plan_string_words(const GsKeyPlan *plan);

/*
 * Do the words say all?  If not, rows with equal words are in the order of the
 * sort operators' comparators, from sort key number *first on.
 */
extern bool gpusort_key_plan_is_exact(const GsKeyPlan *plan, int *first);

/*
 * Have all keys so far been those that plans of other processes with the active
 * snapshot of this one give the same rows?  Otherwise they must not be compared
 * with keys of others.
 */
extern bool gpusort_key_plan_is_common(const GsKeyPlan *plan);

/* Do rows whose first key is NULL come before the others? */
extern bool gpusort_key_plan_nulls_first(const GsKeyPlan *plan);

/*
 * Encode one row, whose columns are values[attno - 1] and isnull[attno - 1],
 * into all words of 'key'.  Returns false if the first sort key is NULL: such
 * rows are to be kept apart, ordered among themselves by 'key'.
 *
 * Keys compare as unsigned words, the first word being the most significant.
 * If the plan is exact, they are equal exactly when all sort operators call the
 * rows' keys equal.
 */
extern bool gpusort_key_plan_encode(const GsKeyPlan *plan,
									const Datum *values, const bool *isnull,
									uint64 *key);

/*
 * If it is not exact, more words can tell rows apart whose words so far are
 * equal.  A cursor, all zeros at first, stands at the words last looked at, as
 * many as a key has.  Values here are those of sort keys: values[k] is that of
 * sort key k.
 */
typedef struct GsKeyCursor
{
	uint32		stage;
	uint32		slice;

	/* At words that relate strings to one of them: see string_pivot.h. */
	uint32		start;			/* bytes that all have in common */
	uint32		rest;			/* of the pivot, behind these */
} GsKeyCursor;

typedef enum GsKeyRest
{
	GS_KEY_EQUAL,				/* the rows' keys are equal */
	GS_KEY_WORDS,				/* more words may differ */
	GS_KEY_STRINGS,				/* the same: words that relate them to a pivot */
	GS_KEY_COMPARE				/* only comparisons can tell */
} GsKeyRest;

/*
 * What is there behind the words at the cursor?  'values' are those of any of the
 * rows whose words, 'key', are equal up to and with these.  Moves the cursor to the
 * next words if there are any, and sets *first to the first sort key that is not
 * known to be equal: the one to compare from.
 */
extern GsKeyRest gpusort_key_plan_go_on(const GsKeyPlan *plan,
										const Datum *values,
										const bool *isnull,
										const uint64 *key,
										GsKeyCursor *cursor, int *first);

/*
 * After that, if rows turn out to have equal values of sort key *first, and it is
 * words or comparisons of that one alone that may differ: pass it.
 */
extern GsKeyRest gpusort_key_plan_pass(const GsKeyPlan *plan,
									   GsKeyCursor *cursor, int *first);

/* How many times have words of one sort key been looked at, with those at the cursor? */
extern uint32 gpusort_key_plan_rounds(const GsKeyPlan *plan,
									  const GsKeyCursor *cursor);

/* The words at the cursor are made of sort keys *from to *to - 1. */
extern void gpusort_key_plan_span(const GsKeyPlan *plan,
								  const GsKeyCursor *cursor,
								  int *from, int *to);

/* Encode the words at the cursor. */
extern void gpusort_key_plan_encode_at(const GsKeyPlan *plan,
									   const GsKeyCursor *cursor,
									   const Datum *values,
									   const bool *isnull, uint64 *key);

/*
 * After GS_KEY_STRINGS: take a pivot, any of the strings, with which all of them are
 * to be encoded, and which is to be dropped.
 */
extern void gpusort_key_plan_take_pivot(const GsKeyPlan *plan,
										GsKeyCursor *cursor, Datum value,
										GsPivot *pivot);

#endif							/* GPUSORT_KEY_PLAN_H */
