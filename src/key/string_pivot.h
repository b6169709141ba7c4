/*-------------------------------------------------------------------------
 *
 * string_pivot.h
 *		Strings as words that tell how they relate to one of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STRING_PIVOT_H
#define GPUSORT_STRING_PIVOT_H

#include "key/key_encoding.h"
#include "key/string_bytes.h"

/*
 * What the words of some strings are made of, and read back with: bytes that all
 * of them have in common, how long the pivot is behind these, and the words that
 * a key has.
 */
typedef struct GsPivotFrame
{
	const GsKeyEncoding *encoding;
	bool		descending;		/* words are inverted */
	unsigned	words;
	Size		start;
	Size		rest;
} GsPivotFrame;

/* A frame and the pivot's bytes.  Open for callers to allocate. */
typedef struct GsPivot
{
	GsPivotFrame frame;
	GsBytes		bytes;			/* from the frame's start */
	Size		window;			/* bytes to ask for of a value elsewhere */
} GsPivot;

/* Bytes that strings have in common whose first 'nwords' words are equal. */
extern Size gpusort_pivot_bytes_in_words(const GsKeyEncoding *encoding,
										 uint32 nwords);

/*
 * Take a string, of those that have the frame's start in common, for their pivot,
 * and set the frame's rest.  Takes memory for it, in the current context, if it is
 * compressed or stored elsewhere; to be dropped.
 */
extern void gpusort_pivot_take(GsPivot *pivot, const GsPivotFrame *frame,
							   Datum value);
extern void gpusort_pivot_drop(GsPivot *pivot);

/*
 * Write the words of a string.  They order strings as their bytes do, as far as
 * they tell them apart.  Looks for interrupts as it goes through long strings.
 */
extern void gpusort_pivot_encode(GsPivot *pivot, Datum value, uint64 *key);

/*
 * What strings with equal words have in common: returns false if they are equal,
 * or else sets *start to how many of their first bytes are.
 */
extern bool gpusort_pivot_leaves_open(const GsPivotFrame *frame,
									  const uint64 *key, Size *start);

#endif							/* GPUSORT_STRING_PIVOT_H */
