/*-------------------------------------------------------------------------
 *
 * marked_rows.h
 *		Rows after a mark of a cursor, kept where reading them again is slow.
 *
 * A merge join reads the rows of a group again for each of its outer rows.  If the group
 * crosses a chunk of a GPU session, or has many ties, that would fetch chunks or sort ties
 * each time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MARKED_ROWS_H
#define GPUSORT_MARKED_ROWS_H

#include "sort/base/sort_spec.h"

typedef struct GsMarkedRows GsMarkedRows;

/* Keep no rows yet.  The memory is that of the current memory context. */
extern GsMarkedRows *gpusort_marked_rows_create(const GsSortSpec *spec);

/*
 * The cursor returns to a mark: keep the rows that are read from there on.  Nobody may use the
 * values of a row returned before.
 */
extern void gpusort_marked_rows_restore(GsMarkedRows *marked, int64 position);

/* The cursor is marked elsewhere: keep no further rows. */
extern void gpusort_marked_rows_stop(GsMarkedRows *marked);

/*
 * Read the row at a position.  Returns false if it is not kept.  Values that are passed by
 * reference are valid until gpusort_marked_rows_restore() is called.
 */
extern bool gpusort_marked_rows_get(const GsMarkedRows *marked, int64 position,
									Datum *values, bool *isnull);

/* Keep the row at a position, if it is the next one to be kept, and there is memory. */
extern void gpusort_marked_rows_add(GsMarkedRows *marked, int64 position,
									const Datum *values, const bool *isnull);

#endif							/* GPUSORT_MARKED_ROWS_H */
