/*-------------------------------------------------------------------------
 *
 * sorted_ranges.h
 *		Rows in sorted order, which several processes have written to shared memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORTED_RANGES_H
#define GPUSORT_SORTED_RANGES_H

#include "sort/base/budget.h"
#include "sort/base/row_format.h"
#include "sort/base/rows_in_place.h"
#include "sort/memory/row_store.h"

/*
 * Consecutive rows in sorted order, in shared memory.  They are stored or packed rows, one
 * behind the other.
 */
typedef struct GsSortedRange
{
	uint32		nrows;
	bool		packed;
	char	   *slots;			/* rows of fixed_bytes or packed_bytes each,
								 * or NULL */
	char	  **rows;			/* their addresses, if their lengths differ */
	uint8	   *nulls;			/* a NULL bitmap for each stored row, or NULL */
} GsSortedRange;

/* Some rows of a range.  Lists of pieces are linked by 'next'. */
typedef struct GsRangePiece
{
	struct GsRangePiece *next;
	Size		bytes;			/* of the memory behind this header */
	GsSortedRange range;		/* no rows behind the last piece in use */
} GsRangePiece;

/* Writes ranges.  Belongs to one process. */
typedef struct GsRangeWriter GsRangeWriter;

/*
 * Create a writer for rows in 'store', in the current memory context.  The ranges are
 * allocated from 'budget', where the memory has been reserved.  'has_nulls' tells whether
 * any row has a NULL.
 */
extern GsRangeWriter *gpusort_range_writer_create(const GsRowStore *store,
												  GsBudget *budget,
												  bool has_nulls);

/*
 * Write the rows of 'count' entries, whose low 32 bits are row numbers, in this order.
 * Returns false if there is no memory.
 */
extern bool gpusort_range_writer_write(GsRangeWriter *writer,
									   const uint64 *entries, uint32 count,
									   GsSortedRange *range);

/*
 * Instead, find these rows where they are in the store.  Their addresses are in the current memory
 * context.
 */
extern void gpusort_range_writer_find(GsRangeWriter *writer, const uint64 *entries,
									  uint32 count, GsSortedRange *range);

/* ---- Ranges of merged rows: pieces of shared memory, which are used again and again ---- */

/* Writes rows to lists of pieces.  Belongs to one process. */
typedef struct GsPieceWriter
{
	const GsRowFormat *format;
	GsBudget   *budget;
	Size		piece_bytes;
	GsRangePiece **link;		/* to the piece after the current one */
	GsRangePiece *piece;		/* the current one, or NULL */
	char	   *next;			/* its free memory */
	char	   *end;
} GsPieceWriter;

/*
 * Begin to write a list, whose pieces are used, and to which the budget adds others.  Pieces have
 * 'piece_bytes' bytes, or those of one row.
 */
extern void gpusort_piece_writer_begin(GsPieceWriter *writer,
									   const GsRowFormat *format,
									   GsBudget *budget, Size piece_bytes,
									   GsRangePiece **list);

/* Add a packed row.  Returns false if the budget has no memory. */
extern bool gpusort_piece_writer_put(GsPieceWriter *writer, char *row);

/* End the list after the last row, also if there was no memory for one. */
extern void gpusort_piece_writer_end(GsPieceWriter *writer);

#endif							/* GPUSORT_SORTED_RANGES_H */
