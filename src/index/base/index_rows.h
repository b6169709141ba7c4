/*-------------------------------------------------------------------------
 *
 * index_rows.h
 *		The rows that an index build sorts, and the index tuples they become.
 *
 * A row has the columns of the index and one more, the "tid": the row's TID
 * and whether the row is dead.  Rows are sorted by the key columns.  They are
 * read in TID order and sorts are stable, so ties stay in TID order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_ROWS_H
#define GPUSORT_INDEX_ROWS_H

#include "access/itup.h"

#include "core/copy_bytes.h"
#include "heap/heap_rows.h"
#include "sort/base/sort_spec.h"

/*
 * Set the row type and the sort keys in 'spec', allocated in the current
 * memory context.  'by_tid' makes the TID the last sort key, for rows that
 * do not arrive in TID order.  Returns false if an operator class lacks an
 * operator.
 */
extern bool gpusort_index_rows_describe(Relation index, bool by_tid,
										GsSortSpec *spec);

/* Convert between a row's TID and dead flag and a Datum of eight bytes. */
static inline Datum
gpusort_index_rows_pack_tid(const GsHeapRow *row)
{
	return UInt64GetDatum((uint64) ItemPointerGetBlockNumberNoCheck(&row->tid) << 17 |
						  (uint64) ItemPointerGetOffsetNumberNoCheck(&row->tid) << 1 |
						  (row->alive ? 0 : 1));
}

static inline void
gpusort_index_rows_unpack_tid(Datum tid, GsHeapRow *row)
{
	uint64		bits = DatumGetUInt64(tid);

	ItemPointerSet(&row->tid, (BlockNumber) (bits >> 17),
				   (OffsetNumber) ((bits >> 1) & 0xFFFF));
	row->alive = (bits & 1) == 0;
}

/*
 * Copy a value of variable length with a header of one byte, which it may get only if it is
 * 'packable'.  Returns the end of the copy, or NULL if it can have no such header.
 */
static inline char *
gpusort_put_short_value(char *dest, const struct varlena *value, bool packable)
{
	Size		length;

	if (VARATT_IS_EXTERNAL(value))
		return NULL;
	if (VARATT_IS_SHORT(value))
	{
		length = VARSIZE_SHORT(value);
		gpusort_copy_bytes(dest, value, length);
		return dest + length;
	}
	if (!packable || !VARATT_CAN_MAKE_SHORT(value))
		return NULL;
	length = VARATT_CONVERTED_SHORT_SIZE(value);
	SET_VARSIZE_SHORT(dest, length);
	gpusort_copy_bytes(dest + VARHDRSZ_SHORT, VARDATA(value), length - VARHDRSZ_SHORT);
	return dest + length;
}

/* Forms the index tuples of rows. */
typedef struct GsTupleFormer GsTupleFormer;

/* Create a former in the current memory context. */
extern GsTupleFormer *gpusort_tuple_former_create(Relation index);

/*
 * Form the index tuple of a row.  It is valid until the next call, and belongs
 * to the former.  Raises PostgreSQL's error if it is too large.
 */
extern IndexTuple gpusort_tuple_former_form(GsTupleFormer *former,
											const Datum *values,
											const bool *isnull,
											const ItemPointerData *tid);

#endif							/* GPUSORT_INDEX_ROWS_H */
