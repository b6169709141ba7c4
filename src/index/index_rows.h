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
#include "access/tupmacs.h"

#include "heap/heap_rows.h"
#include "sort/base/sort_spec.h"

/* Estimate the rows of a table, and say whether so many are enough for us. */
extern double gpusort_index_rows_estimate(Relation heap);
extern bool gpusort_index_rows_suffice(double rows);

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

/* The form of tuples whose columns are all passed by value, and not NULL. */
typedef struct GsWordTuple
{
	int			ncolumns;
	int			nkeys;
	Size		size;
	struct
	{
		uint16		offset;
		uint16		length;
		Datum		bits;		/* of a Datum that are part of the value */
	}			columns[INDEX_MAX_KEYS];
} GsWordTuple;

/* Forms a tuple of some values, in memory of zeros, but for its TID. */
static inline void
gpusort_word_tuple_form(const GsWordTuple *form, const Datum *row, IndexTuple tuple)
{
	tuple->t_info = (unsigned short) form->size;
	for (int i = 0; i < form->ncolumns; i++)
		store_att_byval((char *) tuple + form->columns[i].offset, row[i],
						form->columns[i].length);
}

/* Sets the TID of the tuple of a row of the sort. */
static inline void
gpusort_word_tuple_set_tid(const GsWordTuple *form, const Datum *row, IndexTuple tuple)
{
	GsHeapRow	heap_row;

	gpusort_index_rows_unpack_tid(row[form->ncolumns], &heap_row);
	tuple->t_tid = heap_row.tid;
}

/* Do the keys of two rows have equal bytes? */
static inline bool
gpusort_word_tuple_equal(const GsWordTuple *form, const Datum *a, const Datum *b)
{
	for (int i = 0; i < form->nkeys; i++)
		if (((a[i] ^ b[i]) & form->columns[i].bits) != 0)
			return false;
	return true;
}

/* Is a row dead? */
static inline bool
gpusort_word_tuple_is_dead(const GsWordTuple *form, const Datum *row)
{
	GsHeapRow	heap_row;

	gpusort_index_rows_unpack_tid(row[form->ncolumns], &heap_row);
	return !heap_row.alive;
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

/* Returns the form of tuples, or NULL if they have columns that are not passed by value. */
extern const GsWordTuple *gpusort_tuple_former_words(const GsTupleFormer *former);

#endif							/* GPUSORT_INDEX_ROWS_H */
