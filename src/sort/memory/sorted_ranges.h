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
 * Reads the rows of all ranges.  The struct is public because get(), which is called for
 * each row, is inline.
 */
typedef struct GsRangeReader GsRangeReader;

/* Goes to the range of a position: sets 'start' and 'range' of the reader. */
typedef void (*GsRangeSeek) (GsRangeReader *reader, int64 position);

/* Called before a range is read for the first time after another one. */
typedef void (*GsRangePrepare) (void *arg, int range);

struct GsRangeReader
{
	const GsRowFormat *format;
	int64		nrows;			/* of all ranges */
	GsRangeSeek seek;
	void	   *arg;			/* for callbacks */

	/* The range of the row last read, and the position of its first row. */
	int64		start;
	GsSortedRange range;

	/* If the ranges are those of an array. */
	const GsSortedRange *ranges;
	int			nranges;
	GsRangePrepare prepare;
	int64	   *starts;			/* position of the first row of each range,
								 * and at last the number of rows */
};

/* Create a reader of 'nrows' rows in the current memory context. */
extern GsRangeReader *gpusort_range_reader_create(const GsSortSpec *spec,
												  int64 nrows, GsRangeSeek seek,
												  void *arg);

/*
 * The same for an array of ranges.  Range r will have counts[r] rows when it has been
 * prepared.
 */
extern GsRangeReader *gpusort_range_reader_create_array(const GsSortSpec *spec,
														const GsSortedRange *ranges,
														const int64 *counts,
														int nranges,
														GsRangePrepare prepare,
														void *arg);

/*
 * Rows are read in sequence, but another processor has just written them, from whose cache
 * they come slowly.  How many bytes, or rows of different lengths, to prefetch ahead.
 */
#define GPUSORT_RANGE_BYTES_AHEAD	1024
#define GPUSORT_RANGE_ROWS_AHEAD	12

/*
 * Read the row at a position, counted from 0.  Values passed by reference point into the
 * range.
 */
static inline void
gpusort_range_reader_get(GsRangeReader *reader, int64 position, Datum *values,
						 bool *isnull)
{
	const GsRowFormat *format = reader->format;
	uint64		within = position - reader->start;
	const uint8 *bitmap = NULL;
	Size		slot_bytes;
	char	   *row;

	if (unlikely(within >= reader->range.nrows))
	{
		reader->seek(reader, position);
		within = position - reader->start;
	}
	if (reader->range.rows != NULL)
	{
		row = reader->range.rows[within];
		if (within + GPUSORT_RANGE_ROWS_AHEAD < reader->range.nrows)
			__builtin_prefetch(reader->range.rows[within +
												  GPUSORT_RANGE_ROWS_AHEAD]);
	}
	else
	{
		slot_bytes = reader->range.packed ? format->packed_bytes :
			format->fixed_bytes;
		row = reader->range.slots + within * slot_bytes;
		__builtin_prefetch(row + GPUSORT_RANGE_BYTES_AHEAD);
	}
	if (reader->range.packed)
	{
		gpusort_row_format_unpack_fast(format, row, values, isnull);
		return;
	}
	if (reader->range.nulls != NULL)
		bitmap = reader->range.nulls + within * format->null_bytes;
	gpusort_row_format_read_fast(format, row, bitmap, values, isnull);
}

/*
 * Sets *rows to the rows from a position on, to the end of the range that was read last.
 * They are valid until another range is read.  Returns false if they have to be read one by
 * one.
 */
extern bool gpusort_range_reader_in_place(const GsRangeReader *reader, int64 position,
										  GsRowsInPlace *rows);

/* ---- Ranges of merged rows: pieces of shared memory, which are used again and again ---- */

/* A piece of memory, with packed rows.  Lists of pieces are linked by 'next'. */
typedef struct GsRangePiece
{
	struct GsRangePiece *next;
	Size		bytes;			/* of the memory behind this header */
	GsSortedRange range;		/* no rows behind the last piece in use */
} GsRangePiece;

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
