/*-------------------------------------------------------------------------
 *
 * key_plan.h
 *		Lays out the sort keys of a query as words with the same order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_PLAN_H
#define GPUSORT_KEY_PLAN_H

#include "access/attnum.h"

#include "reason.h"
#include "key/key_encoding.h"

/* The sort keys as in the plan; arrays of nkeys elements. */
typedef struct GsSortKeys
{
	int			nkeys;
	AttrNumber *attnos;			/* columns of the row, from 1 */
	Oid		   *operators;		/* "<" or ">" of a btree operator family */
	Oid		   *collations;
	bool	   *nulls_first;
	Oid		   *functions;		/* NULL, or functions that compare values
								 * instead of the operators' comparators; if
								 * the operator is InvalidOid as well, the key
								 * is not encoded */
	int			enough;			/* the first ones, of this number, tell nearly
								 * all rows apart, so that keys encode no
								 * others; 0 if it takes all of them */
	bool		short_values;	/* do most rows agree in strings that mostly
								 * end in two words? */
	int			string_words;	/* words of a string that become part of the
								 * key; 0 is as 1 */
	bool		alone;			/* is a value that is not exact the last one
								 * in the words, so that rows of which it is
								 * equal have equal words? */
} GsSortKeys;

typedef struct GsKeyPlan GsKeyPlan;

/* Properties of a plan that determine the cost of a sort. */
typedef struct GsKeyShape
{
	unsigned	words;			/* per encoded key */
	bool		encoded;		/* has the first sort key an encoding? */
	int			open;			/* the sort key within which the words end, or
								 * the number of sort keys if none */
	bool		exact;			/* no ties to break */
	bool		first_exact;	/* likewise, by the first sort key alone */
	bool		collated;		/* does a sort key have a collation of ICU? */
	bool		nested;			/* does one consist of other values? */
	bool		compared;		/* has one no words, since ICU contradicts
								 * itself? */
	bool		has_weights;	/* has the first one weights of a locale? */
} GsKeyShape;

/*
 * Make a plan, in its own memory context below the current one.  If values are short, at least two
 * words of a string become part of the key, and unless keys->alone is set, other keys follow a
 * string that ends in these words.
 * Accesses the system catalogs, and so needs a transaction.
 *
 * Unless 'reason' is NULL, sets *reason to GS_REASON_TYPE if the first key has no encoding, to
 * GS_REASON_WRONG_ORDER if that of any key is distrusted (see distrust.h), and
 * otherwise to GS_REASON_NONE.  Without an encoding all rows are ties, and only
 * comparisons order them.  This is slow, but correct: it is for plans of
 * queries that were made while there was an encoding that was trusted.
 *
 * If 'reason' is NULL, the plan trusts an encoding that is distrusted: a worker that encodes rows
 * of its leader's sort must do it as the leader does, who began before.
 */
extern GsKeyPlan *gpusort_key_plan_create(const GsSortKeys *keys, GsReason *reason);

extern void gpusort_key_plan_free(GsKeyPlan *plan);

/* Does no column have an encoding, since that of one is distrusted? */
extern bool gpusort_key_plan_is_distrusted(const GsKeyPlan *plan);

/*
 * Let encodings keep what they have made of recent values, in 'limit' bytes, or some
 * kilobytes for each key if that is more.  The second function returns the maximum, in bytes.
 */
extern void gpusort_key_plan_set_memory(GsKeyPlan *plan, Size limit);
extern Size gpusort_key_plan_memory(const GsKeyPlan *plan);

/*
 * Returns the number of 64-bit words of an encoded key: 1 to
 * GPUSORT_CPU_MAX_KEY_WORDS.
 */
extern unsigned gpusort_key_plan_words(const GsKeyPlan *plan);

/* Returns what determines the cost of a sort by the plan. */
extern GsKeyShape gpusort_key_plan_shape(const GsKeyPlan *plan);

/* Returns the plan's sort keys, which have their first words in the order of the array. */
extern const struct GsKeyColumn *gpusort_key_plan_columns(const GsKeyPlan *plan, int *ncolumns);

/*
 * Are the words exact?  If not, ties are broken by comparing the sort keys
 * from number *first on with their sort operators' comparators.
 */
extern bool gpusort_key_plan_is_exact(const GsKeyPlan *plan, int *first);

/*
 * Returns true if plans of other processes with the same active snapshot would
 * give the same keys to all rows encoded so far.  Otherwise the keys must not
 * be compared with those of other processes.
 */
extern bool gpusort_key_plan_is_common(const GsKeyPlan *plan);

/*
 * Do the words encode nothing but the first bytes of a string, which is the first sort
 * key?  Then they can be relative to a pivot instead: a cursor that is initialized with
 * zeros stands at the words of whole strings.
 */
extern bool gpusort_key_plan_is_string(const GsKeyPlan *plan);

/*
 * Set 'mask', as many words as a key has, to the bits that encode the first 'nkeys' sort keys, or
 * as much of these as there is.  A key whose other bits are cleared comes before the keys of all
 * rows with the same values of these sort keys, or is equal to them.
 */
extern void gpusort_key_plan_mask(const GsKeyPlan *plan, int nkeys, uint64 *mask);

/* Do rows whose first sort key is NULL come before the others? */
extern bool gpusort_key_plan_nulls_first(const GsKeyPlan *plan);

/*
 * Encode one row, whose columns are values[attno - 1] and isnull[attno - 1],
 * into all words of 'key'.  Returns false if the first sort key is NULL.  Such rows
 * have a NULL key; the caller must sort them separately, by 'key'.
 *
 * Keys are compared as unsigned words, the first word being the most
 * significant.  If the plan is exact, two keys are equal if and only if all
 * sort operators call the rows' values equal.
 */
extern bool gpusort_key_plan_encode(const GsKeyPlan *plan,
									const Datum *values, const bool *isnull,
									uint64 *key);

/*
 * Encode values of the only sort key, none of them NULL, which follow each other and have 'length'
 * bytes each, into keys of one word.  Returns false, and the words are undefined, if the values
 * cannot be told from the words: they are -0, NaN, or not numbers that are passed by value.
 * Otherwise decode() returns the values of such words.
 */
extern bool gpusort_key_plan_encode_numbers(const GsKeyPlan *plan, const char *values,
											Size length, uint32 count, uint64 *words);
extern void gpusort_key_plan_decode_numbers(const GsKeyPlan *plan, const uint64 *words,
											Size length, uint32 count, char *values);

/*
 * If a plan is not exact, further words can break ties.  A cursor stands at
 * the words that were encoded last, as many as a key has; initialize it with
 * zeros.  In all functions with a cursor, values[k] is the value of sort key
 * k.
 */
typedef struct GsKeyCursor
{
	uint32		stage;			/* the sort key with which it begins */
	uint32		slice;
	uint32		column;			/* the sort key that further slices are of */
	bool		nulls;			/* set this before words at slice 0 are
								 * encoded of rows of which any has NULL for
								 * the first sort key of
								 * gpusort_key_plan_span() */

	/*
	 * For words that encode strings relative to a pivot, see GsPivotFrame.
	 */
	uint32		start;			/* bytes that all strings have in common */
	uint32		rest;			/* bytes of the pivot behind these */
} GsKeyCursor;

typedef enum GsKeyRest
{
	GS_KEY_EQUAL,				/* the rows' sort keys are equal */
	GS_KEY_WORDS,				/* the next words may differ */
	GS_KEY_STRINGS,				/* likewise; they are relative to a pivot */
	GS_KEY_COMPARE				/* only comparisons can break the ties */
} GsKeyRest;

/*
 * Returns how to break ties of the words at the cursor.  'values' are those of
 * any row of a group of ties, and 'key' are their words at the cursor; their
 * earlier words are equal, too.  Moves the cursor to the next words if there
 * are any, and sets *first to the first sort key that may differ: comparisons
 * start with it.
 */
extern GsKeyRest gpusort_key_plan_next_words(const GsKeyPlan *plan,
											 const Datum *values,
											 const bool *isnull,
											 const uint64 *key,
											 GsKeyCursor *cursor, int *first);

/*
 * Skip the rest of sort key *first.  Call this after gpusort_key_plan_next_words()
 * if rows have equal values of that sort key, and only the words or
 * comparisons of that key were left.
 */
extern GsKeyRest gpusort_key_plan_skip_key(const GsKeyPlan *plan,
										   GsKeyCursor *cursor, int *first);

/*
 * Returns how many slices of a single sort key have been encoded, including
 * the one at the cursor.
 */
extern uint32 gpusort_key_plan_rounds(const GsKeyPlan *plan,
									  const GsKeyCursor *cursor);

/* The words at the cursor encode the sort keys from *from to before *to. */
extern void gpusort_key_plan_span(const GsKeyPlan *plan,
								  const GsKeyCursor *cursor,
								  int *from, int *to);

/* Encode the words at the cursor, unless they are relative to a pivot. */
extern void gpusort_key_plan_encode_at(const GsKeyPlan *plan,
									   const GsKeyCursor *cursor,
									   const Datum *values,
									   const bool *isnull, uint64 *key);

/*
 * After GS_KEY_STRINGS, make any of the strings the pivot.  Encode all of them
 * with it, and then call gpusort_pivot_drop().
 */
extern void gpusort_key_plan_set_pivot(const GsKeyPlan *plan,
									   GsKeyCursor *cursor, Datum value,
									   GsPivot *pivot);

#endif							/* GPUSORT_KEY_PLAN_H */
