/*-------------------------------------------------------------------------
 *
 * range_pieces.c
 *		Keeps merged rows in pieces of shared memory, which are used again and again.
 *
 * Rows of different lengths are at the start of a piece, and their addresses at its end, the
 * last one first until the piece is complete.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "core/copy_bytes.h"
#include "sort/disk/range_pieces.h"
#include "work.h"

void
gpusort_piece_writer_begin(GsPieceWriter *writer, const GsRowFormat *format,
						   GsBudget *budget, Size piece_bytes,
						   GsRangePiece **list)
{
	writer->format = format;
	writer->budget = budget;
	writer->piece_bytes = MAXALIGN(piece_bytes);
	writer->link = list;
	writer->piece = NULL;
	writer->next = NULL;
	writer->end = NULL;
}

/* The current piece gets no more rows. */
static void
complete_piece(GsPieceWriter *writer)
{
	GsRangePiece *piece = writer->piece;
	char	  **rows;
	uint32		n;

	writer->piece = NULL;
	if (piece == NULL || !writer->format->variable)
		return;
	rows = piece->range.rows = (char **) writer->end;
	n = piece->range.nrows;
	for (uint32 i = 0; i < n / 2; i++)
	{
		char	   *other = rows[i];

		rows[i] = rows[n - 1 - i];
		rows[n - 1 - i] = other;
	}
}

/* Returns NULL if the budget has no memory. */
static GsRangePiece *
allocate_piece(GsPieceWriter *writer, Size size)
{
	if (!gpusort_budget_reserve(writer->budget, size))
		return NULL;
	return gpusort_budget_alloc(writer->budget, size);
}

/* Insert a new piece with room for 'bytes' bytes.  Returns false if there is no memory. */
static bool
insert_piece(GsPieceWriter *writer, Size bytes)
{
	Size		size = MAXALIGN(sizeof(GsRangePiece)) +
		Max(writer->piece_bytes, bytes);
	GsRangePiece *piece = allocate_piece(writer, size);

	if (piece == NULL)
		return false;
	piece->bytes = Max(writer->piece_bytes, bytes);
	piece->next = *writer->link;
	*writer->link = piece;
	return true;
}

/* Go to a piece with room for 'bytes' bytes.  Returns false if there is no memory. */
static bool
begin_piece(GsPieceWriter *writer, Size bytes)
{
	GsRangePiece *piece;

	complete_piece(writer);
	if ((*writer->link == NULL || (*writer->link)->bytes < bytes) &&
		!insert_piece(writer, bytes))
		return false;
	piece = writer->piece = *writer->link;
	writer->link = &piece->next;
	writer->next = (char *) piece + MAXALIGN(sizeof(GsRangePiece));
	writer->end = writer->next + piece->bytes;
	memset(&piece->range, 0, sizeof(piece->range));
	piece->range.packed = true;
	if (!writer->format->variable)
		piece->range.slots = writer->next;
	return true;
}

bool
gpusort_piece_writer_put(GsPieceWriter *writer, char *row)
{
	const GsRowFormat *format = writer->format;
	Size		length = gpusort_row_format_packed_length(format, row);
	Size		bytes = length + (format->variable ? sizeof(char *) : 0);

	if (unlikely(writer->end - writer->next < (ptrdiff_t) bytes) &&
		!begin_piece(writer, bytes))
		return false;
	gpusort_work_add(length);
	gpusort_copy_bytes(writer->next, row, length);
	if (format->variable)
	{
		writer->end -= sizeof(char *);
		*(char **) writer->end = writer->next;
	}
	writer->next += length;
	writer->piece->range.nrows++;
	return true;
}

void
gpusort_piece_writer_end(GsPieceWriter *writer)
{
	complete_piece(writer);
	if (*writer->link != NULL)
		(*writer->link)->range.nrows = 0;
}
