/*-------------------------------------------------------------------------
 *
 * rows_in_place.h
 *		Rows of a sort, in sorted order, where they are in memory.
 *
 * So a reader need not ask for each where it is.  They are stored or packed rows (row_format.h).
 * Processes tell each other of their rows in this way, if these are in shared memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROWS_IN_PLACE_H
#define GPUSORT_ROWS_IN_PLACE_H

#include "c.h"

/* Some rows, number 0 to nrows - 1. */
typedef struct GsRowsInPlace
{
	const struct GsRowFormat *format;	/* set by who reads them */
	uint32		nrows;
	char	   *first;			/* row 0 */

	/* Where the others are.  One of these is set. */
	Size		row_bytes;		/* one behind the other, of this length */
	const uint32 *lengths;		/* one behind the other, of these lengths */
	char	  **addresses;		/* anywhere */

	/* Where the NULL bitmaps are: one of these, or none if no row has a NULL. */
	uint32		null_offset;	/* in each row */
	uint8	   *nulls;			/* one after the other */

	/*
	 * Can other processes read them, at the same addresses, and do they stay
	 * after the cursor has moved on?  See gpusort_sort_lend().
	 */
	bool		lasting;

	/*
	 * Of rows that only the chunks of a GPU session have, the position of row
	 * 0 there.
	 */
	int64		position;
} GsRowsInPlace;

/*
 * They are read in sequence, but another processor or a device has just written them, so they come
 * slowly.  How many bytes, or rows at addresses, to prefetch ahead.
 */
#define GPUSORT_PLACE_BYTES_AHEAD	1024
#define GPUSORT_PLACE_ROWS_AHEAD	12

/*
 * The memory of rows before a position of the sort will be used for others.  Returns when
 * nobody reads them any more.
 */
typedef void (*GsRecallRows) (void *arg, int64 position);

/* One of the rows.  Behind the last one, 'row' is undefined. */
typedef struct GsRowPlace
{
	const char *row;
	uint32		number;
} GsRowPlace;

static inline GsRowPlace
gpusort_first_place(const GsRowsInPlace *rows)
{
	return (GsRowPlace)
	{
		rows->first, 0
	};
}

/* Returns the row after one. */
static inline GsRowPlace
gpusort_next_place(const GsRowsInPlace *rows, GsRowPlace place)
{
	GsRowPlace	next = {place.row, place.number + 1};

	if (rows->addresses != NULL)
		next.row = next.number < rows->nrows ? rows->addresses[next.number] : NULL;
	else
		next.row += rows->row_bytes > 0 ? rows->row_bytes : rows->lengths[place.number];
	return next;
}

/* Has a row a NULL?  The NULL bitmap must have one byte. */
static inline bool
gpusort_place_has_null(const GsRowsInPlace *rows, GsRowPlace place)
{
	if (rows->null_offset > 0)
		return place.row[rows->null_offset] != 0;
	return rows->nulls != NULL && rows->nulls[place.number] != 0;
}

/* Returns n of the rows, beginning with one of them. */
static inline GsRowsInPlace
gpusort_rows_from_place(const GsRowsInPlace *rows, GsRowPlace place, uint32 n)
{
	GsRowsInPlace some = *rows;

	some.nrows = n;
	some.first = unconstify(char *, place.row);
	if (some.lengths != NULL)
		some.lengths += place.number;
	if (some.addresses != NULL)
		some.addresses += place.number;
	if (some.nulls != NULL)
		some.nulls += place.number;
	return some;
}

#endif							/* GPUSORT_ROWS_IN_PLACE_H */
