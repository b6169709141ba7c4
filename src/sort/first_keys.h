/*-------------------------------------------------------------------------
 *
 * first_keys.h
 *		The first sort keys of the rows of a sort, for those who need no more of the rows.
 *
 * An aggregate of all rows may only want to know how many different keys there are, or which is the
 * most frequent one, or the key at a position.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FIRST_KEYS_H
#define GPUSORT_FIRST_KEYS_H

#include "sort/memory/shared_ranges.h"
#include "sort/sort.h"

/*
 * Add the rows that the cursor of a sort has not returned yet to *counts, which need not be all
 * rows if the sort has spec->group_keys.  Returns false if rows are lost.
 */
extern bool gpusort_first_keys_count(GsSort *sort, GsKeyCounts *counts);

/* Add what another process has counted of the same sort.  No key has rows in both. */
extern void gpusort_first_keys_add(const GsSort *sort, GsKeyCounts *counts,
								   const GsKeyCounts *other);

typedef struct GsFirstKeys GsFirstKeys;

/*
 * Prepare to read the keys that are not NULL of a finished sort, in the current memory context.
 * The sort must be one that gpusort_sort_can_rewind(), and remain.  If its rows are lost, that is
 * an error.
 */
extern GsFirstKeys *gpusort_first_keys_create(GsSort *sort);

/* Returns their number. */
extern int64 gpusort_first_keys_number(const GsFirstKeys *keys);

/*
 * Returns the key at a position of the sorted order, from 0.  It is valid until the next call if it
 * is passed by reference.
 */
extern Datum gpusort_first_keys_get(GsFirstKeys *keys, int64 position);

#endif							/* GPUSORT_FIRST_KEYS_H */
