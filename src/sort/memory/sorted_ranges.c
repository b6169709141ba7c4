/*-------------------------------------------------------------------------
 *
 * sorted_ranges.c
 *		Rows in sorted order, which several processes have written to shared memory.
 *
 * The process that writes a range reads its rows all over the memory and prefetches them,
 * so that the process that returns all rows reads them in sequence (shared_ranges.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "core/copy_bytes.h"
#include "sort/memory/shared_ranges.h"
#include "work.h"

/* Rows whose lengths differ are in blocks of at least this size. */
#define BLOCK_BYTES			((Size) 512 * 1024)

struct GsRangeWriter
{
	const GsRowStore *store;
	const GsRowFormat *format;
	GsBudget   *budget;
	bool		has_nulls;

	/* Free room in the newest block. */
	char	   *block_next;
	char	   *block_end;
};

GsRangeWriter *
gpusort_range_writer_create(const GsRowStore *store, GsBudget *budget,
							bool has_nulls)
{
	GsRangeWriter *writer = palloc0(sizeof(GsRangeWriter));

	writer->store = store;
	writer->format = gpusort_row_store_format(store);
	writer->budget = budget;
	writer->has_nulls = has_nulls;
	return writer;
}

/* Allocate a row whose length is its own.  Returns NULL if there is no memory. */
static char *
allocate_row(GsRangeWriter *writer, Size bytes)
{
	char	   *row;

	bytes = MAXALIGN(bytes);
	if (writer->block_end - writer->block_next < (ptrdiff_t) bytes)
	{
		Size		block_bytes = Max(bytes, BLOCK_BYTES);

		writer->block_next = gpusort_budget_alloc(writer->budget, block_bytes);
		if (writer->block_next == NULL)
		{
			writer->block_end = NULL;
			return NULL;
		}
		writer->block_end = writer->block_next + block_bytes;
	}
	row = writer->block_next;
	writer->block_next += bytes;
	return row;
}

/* Copy the NULL bitmap of a row, which may be NULL. */
static inline void
copy_bitmap(const GsRangeWriter *writer, GsRowsInPlace *range, uint32 i,
			const uint8 *bitmap)
{
	Size		bytes = writer->format->null_bytes;

	if (bitmap != NULL)
		memcpy(range->nulls + i * bytes, bitmap, bytes);
	else
		memset(range->nulls + i * bytes, 0, bytes);
}

/* Allocate the arrays of a range.  Returns false if there is no memory. */
static bool
allocate_range(GsRangeWriter *writer, uint32 count, GsRowsInPlace *range)
{
	const GsRowFormat *format = writer->format;
	Size		bytes = format->variable ? sizeof(char *) : format->fixed_bytes;
	void	   *array = gpusort_budget_alloc(writer->budget,
											 Max(count * bytes, 1));

	memset(range, 0, sizeof(*range));
	range->nrows = count;
	if (format->variable)
		range->addresses = array;
	else
	{
		range->first = array;
		range->row_bytes = format->fixed_bytes;
	}
	if (array == NULL || !writer->has_nulls)
		return array != NULL;
	range->nulls = gpusort_budget_alloc(writer->budget,
										count * format->null_bytes);
	return range->nulls != NULL;
}

/*
 * Copy the rows of entries, or note where they are.  Rows that are not copied are read later, when
 * they would have left the cache again.  Returns as write() does.
 */
static inline bool
collect_rows(GsRangeWriter *writer, const uint64 *entries, uint32 count,
			 GsRowsInPlace *range, bool copies)
{
	for (uint32 i = 0; i < count; i++)
	{
		const uint8 *bitmap;
		Size		bytes;
		char	   *row;
		char	   *copy;

		CHECK_FOR_INTERRUPTS();
		if (copies)
			gpusort_row_store_fetch_ahead(writer->store, entries + i, count - i);
		row = gpusort_row_store_find(writer->store, (uint32) entries[i],
									 &bitmap, copies ? &bytes : NULL);
		gpusort_work_add(copies ? bytes : sizeof(char *));
		if (copies)
		{
			copy = range->first != NULL ? range->first + i * bytes :
				allocate_row(writer, bytes);
			if (copy == NULL)
				return false;
			gpusort_copy_bytes(copy, row, bytes);
			row = copy;
		}
		if (range->addresses != NULL)
			range->addresses[i] = row;
		if (writer->has_nulls)
			copy_bitmap(writer, range, i, bitmap);
	}
	return true;
}

bool
gpusort_range_writer_write(GsRangeWriter *writer, const uint64 *entries,
						   uint32 count, GsRowsInPlace *range)
{
	return allocate_range(writer, count, range) &&
		collect_rows(writer, entries, count, range, true);
}

void
gpusort_range_writer_find(GsRangeWriter *writer, const uint64 *entries,
						  uint32 count, GsRowsInPlace *range)
{
	memset(range, 0, sizeof(*range));
	range->nrows = count;
	range->addresses = palloc_extended(count * sizeof(char *), MCXT_ALLOC_HUGE);
	if (writer->has_nulls)
		range->nulls = palloc_extended(count * writer->format->null_bytes, MCXT_ALLOC_HUGE);
	(void) collect_rows(writer, entries, count, range, false);
}

/* ----------------------------------------------------------------
 *		pieces for merged rows, which are used again and again
 *
 * Rows of different lengths are at the start of a piece, and their addresses at its end, the
 * last one first until the piece is complete.
 * ----------------------------------------------------------------
 */

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
	rows = piece->range.addresses = (char **) writer->end;
	n = piece->range.nrows;
	for (uint32 i = 0; i < n / 2; i++)
	{
		char	   *other = rows[i];

		rows[i] = rows[n - 1 - i];
		rows[n - 1 - i] = other;
	}
}

/* Insert a new piece with room for 'bytes' bytes.  Returns false if there is no memory. */
static bool
insert_piece(GsPieceWriter *writer, Size bytes)
{
	Size		size = MAXALIGN(sizeof(GsRangePiece)) +
		Max(writer->piece_bytes, bytes);
	GsRangePiece *piece;

	if (!gpusort_budget_reserve(writer->budget, size))
		return false;
	piece = gpusort_budget_alloc(writer->budget, size);
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
	piece->range.null_offset = writer->format->columns_bytes;
	if (!writer->format->variable)
	{
		piece->range.first = writer->next;
		piece->range.row_bytes = writer->format->packed_bytes;
	}
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
