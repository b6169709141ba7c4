/*-------------------------------------------------------------------------
 *
 * range_pieces.h
 *		Keeps merged rows in pieces of shared memory, which are used again and again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANGE_PIECES_H
#define GPUSORT_RANGE_PIECES_H

#include "sort/memory/sorted_ranges.h"

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

#endif							/* GPUSORT_RANGE_PIECES_H */
