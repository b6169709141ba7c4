/*-------------------------------------------------------------------------
 *
 * string_pivot.h
 *		Encodes strings as words relative to one of them, the pivot.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STRING_PIVOT_H
#define GPUSORT_STRING_PIVOT_H

#include "key/key_encoding.h"
#include "key/string_bytes.h"

/*
 * What is needed to encode a set of strings and to interpret their words: how
 * many bytes all of them have in common, how long the pivot is behind these,
 * and how many words a key has.
 */
typedef struct GsPivotFrame
{
	const GsKeyEncoding *encoding;
	bool		descending;		/* are words inverted? */
	unsigned	words;
	Size		start;
	Size		rest;
} GsPivotFrame;

/* A frame and the pivot's bytes.  Callers allocate it. */
typedef struct GsPivot
{
	GsPivotFrame frame;
	GsNestedReference *reference;	/* of nested values, or NULL */
	GsBytes		bytes;			/* from the frame's start */
	Size		window;			/* bytes to read of a toasted value */
} GsPivot;

/*
 * Make a string the pivot, and set the frame's rest.  All strings have the
 * first 'start' bytes of the frame in common.  If the string is compressed or
 * stored out of line, its copy is allocated in the current memory context;
 * call gpusort_pivot_drop() to free it.
 */
extern void gpusort_pivot_init(GsPivot *pivot, const GsPivotFrame *frame,
							   Datum value);
extern void gpusort_pivot_drop(GsPivot *pivot);

/*
 * Write the words of a string.  If the words of two strings differ, they have
 * the same order as the strings.  Checks for interrupts within long strings.
 */
extern void gpusort_pivot_encode(GsPivot *pivot, Datum value, uint64 *key);

/*
 * Returns false if strings with these equal words have no other bytes.  Otherwise sets *start to
 * the number of first bytes that they have in common.  Nested values whose bytes end have others
 * relative to one of them, unless they are like this pivot.
 */
extern bool gpusort_pivot_leaves_open(const GsPivotFrame *frame,
									  const uint64 *key, Size *start);

#endif							/* GPUSORT_STRING_PIVOT_H */
