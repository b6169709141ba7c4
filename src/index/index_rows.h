/*-------------------------------------------------------------------------
 *
 * index_rows.h
 *		The rows that an index build sorts, and the index tuples they become.
 *
 * A row has the columns of the index and, as one more column, its place: the TID,
 * and whether it is dead.  Rows are sorted by the key columns; they are read in the
 * order of TIDs, and sorts are stable.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_ROWS_H
#define GPUSORT_INDEX_ROWS_H

#include "access/itup.h"

#include "heap/heap_rows.h"
#include "sort/base/session_spec.h"

/*
 * Set the type and the sort keys of the rows in 'spec', allocated in the current
 * memory context.  The place is the last key if rows do not come in the order of
 * their TIDs.  Returns false if an operator class lacks an operator.
 */
extern bool gpusort_index_rows_describe(Relation index, bool by_place,
										GsSessionSpec *spec);

/* The place of a row as a Datum of eight bytes, and back. */
static inline Datum
gpusort_index_rows_place(const GsHeapRow *row)
{
	return UInt64GetDatum((uint64) ItemPointerGetBlockNumberNoCheck(&row->tid) << 17 |
						  (uint64) ItemPointerGetOffsetNumberNoCheck(&row->tid) << 1 |
						  (row->alive ? 0 : 1));
}

static inline void
gpusort_index_rows_from_place(Datum place, GsHeapRow *row)
{
	uint64		bits = DatumGetUInt64(place);

	ItemPointerSet(&row->tid, (BlockNumber) (bits >> 17),
				   (OffsetNumber) ((bits >> 1) & 0xFFFF));
	row->alive = (bits & 1) == 0;
}

/* Makes the index tuples of rows. */
typedef struct GsTupleFormer GsTupleFormer;

/* Prepare in the current memory context. */
extern GsTupleFormer *gpusort_tuple_former_create(Relation index);

/*
 * The tuple of a row, valid until the next call, of which memory is taken in the
 * context in which the former was made.  Raises an error if it is too long.
 */
extern IndexTuple gpusort_tuple_former_form(GsTupleFormer *former,
											const Datum *values,
											const bool *isnull,
											const ItemPointerData *tid);

#endif							/* GPUSORT_INDEX_ROWS_H */
