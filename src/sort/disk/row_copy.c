/*-------------------------------------------------------------------------
 *
 * row_copy.c
 *		Keeps a copy of the rows that a GPU has, in the order of arrival.
 *
 * Nearly always the copy is thrown away, so making it must cost little.  Rows are copied
 * as they are packed for the device, a chunk of the pool at a time.  Such a piece goes to
 * a block of memory or, once the memory allowed is in use, to the end of a temporary file.
 * Nothing is looked up in it before the rows are lost.
 *
 * Rows with NULL keys are in other chunks than the rows around them.  Their order among
 * themselves is that of their arrival, and so is the order of all other rows.  This is all
 * that ties depend on.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/base/budget.h"
#include "sort/base/dense_row.h"
#include "sort/base/row_format.h"
#include "sort/base/tuple_rows.h"
#include "sort/disk/extent_file.h"
#include "sort/disk/row_copy.h"
#include "work.h"

/*
 * A block has as many bytes as all blocks before it, but not less or more than these.  The
 * largest ones are huge pages.
 */
#define MIN_BLOCK_BYTES		((Size) 64 * 1024)
#define MAX_BLOCK_BYTES		GPUSORT_WARM_BLOCK_BYTES

/* A piece begins at an extent, so extents are small. */
#define EXTENT_BYTES		GPUSORT_MIN_EXTENT_BYTES

/* The header of packed rows, which follow it. */
typedef struct GsCopyPiece
{
	uint64		bytes;			/* of the rows */
	uint32		nrows;
	uint32		unused;			/* for alignment */
} GsCopyPiece;

/* A block of memory.  Its pieces follow this header. */
typedef struct GsCopyBlock
{
	struct GsCopyBlock *next;
	Size		bytes;			/* including this header */
	Size		end;			/* offset after the last piece */
} GsCopyBlock;

/* Pieces that follow each other in the file. */
typedef struct GsCopyRange
{
	GsExtent	first;
	GsExtent	end;
} GsCopyRange;

/*
 * Rows are moved from memory to the file at most once.  They come first, then those that
 * were written before, and then those that are written later.
 */
#define MAX_RANGES	3

struct GsRowCopy
{
	const GsSortSpec *spec;
	MemoryContext context;
	GsRowFormat *format;
	GsRowBuffer packed;			/* for a row that is added by itself */

	/* The first rows. */
	MemoryContext memory_context;	/* of the blocks */
	GsBudget   *budget;
	GsCopyBlock *first;			/* or NULL */
	GsCopyBlock *last;
	Size		memory;			/* bytes of all blocks */
	bool		memory_is_full; /* do all further rows go to the file? */

	/* The rows that follow. */
	GsExtentFile *file;			/* NULL if there are none */
	GsExtent	file_end;		/* first extent not in use */
	int			nranges;		/* in the order of their rows */
	GsCopyRange ranges[MAX_RANGES];

	/* Taking rows. */
	Size		next_piece;		/* offset in the first block */
	int			range;			/* number of the current range */
	GsExtent	next_extent;	/* of the next piece in it */
	GsRowBuffer read;			/* a piece from the file */
	char	   *row;			/* the next one of the current piece */
	uint32		rows_left;		/* of that piece */
};

bool
gpusort_row_copy_allowed(const GsSortSpec *spec)
{
	double		bytes = spec->expected_rows * spec->expected_width;

	return bytes <= gpusort_sort_spec_memory(spec) ||
		gpusort_shared_runs_allowed(spec->expected_rows, spec->expected_width);
}

/* Begin with an empty copy. */
static void
begin_rows(GsRowCopy *copy)
{
	MemoryContext caller;

	copy->memory_context = AllocSetContextCreate(copy->context,
												 "pg_gpusort copied rows",
												 ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(copy->memory_context);
	copy->budget = gpusort_budget_create(gpusort_sort_spec_memory(copy->spec));
	MemoryContextSwitchTo(caller);
	copy->first = NULL;
	copy->last = NULL;
	copy->memory = 0;
	copy->memory_is_full = false;
	copy->file = NULL;
	copy->file_end = 0;
	copy->nranges = 0;
	copy->next_piece = MAXALIGN(sizeof(GsCopyBlock));
	copy->range = -1;
	copy->row = NULL;
	copy->rows_left = 0;
}

static void
end_rows(GsRowCopy *copy)
{
	MemoryContextDelete(copy->memory_context);
	if (copy->file != NULL)
		gpusort_extent_file_close(copy->file);
}

GsRowCopy *
gpusort_row_copy_create(const GsSortSpec *spec)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort copy",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsRowCopy  *copy = palloc0(sizeof(GsRowCopy));

	StaticAssertStmt(sizeof(GsCopyPiece) % MAXIMUM_ALIGNOF == 0,
					 "rows behind the header of a piece are aligned");
	copy->spec = spec;
	copy->context = context;
	copy->format = gpusort_row_format_create(spec);
	copy->packed.context = context;
	copy->read.context = context;
	begin_rows(copy);
	MemoryContextSwitchTo(caller);
	return copy;
}

void
gpusort_row_copy_clear(GsRowCopy *copy)
{
	end_rows(copy);
	begin_rows(copy);
}

void
gpusort_row_copy_end(GsRowCopy *copy)
{
	if (copy->file != NULL)
		gpusort_extent_file_close(copy->file);
	MemoryContextDelete(copy->context);
}

Size
gpusort_row_copy_memory(const GsRowCopy *copy)
{
	return copy->memory;
}

int64
gpusort_row_copy_file_kb(const GsRowCopy *copy)
{
	return copy->file == NULL ? 0 : gpusort_extent_file_kb(copy->file);
}

/* ----------------------------------------------------------------
 *		adding rows
 * ----------------------------------------------------------------
 */

/* Allocate a block of that many bytes.  Returns NULL if there is no memory for it. */
static GsCopyBlock *
alloc_block(GsRowCopy *copy, Size bytes)
{
	GsCopyBlock *block;

	if (!gpusort_budget_reserve(copy->budget, bytes))
		return NULL;
	block = gpusort_budget_alloc(copy->budget, bytes);
	if (block == NULL)
		return NULL;
	block->next = NULL;
	block->bytes = bytes;
	block->end = MAXALIGN(sizeof(GsCopyBlock));
	return block;
}

/* Add a block with room for a piece.  Returns false if there is no memory for it. */
static bool
add_block(GsRowCopy *copy, Size piece_bytes)
{
	Size		least = MAXALIGN(sizeof(GsCopyBlock)) + piece_bytes;
	Size		bytes = Min(Max(copy->memory, MIN_BLOCK_BYTES), MAX_BLOCK_BYTES);
	GsCopyBlock *block = alloc_block(copy, Max(bytes, least));

	if (block == NULL && least < bytes)
		block = alloc_block(copy, least);
	if (block == NULL)
		return false;
	if (copy->last != NULL)
		copy->last->next = block;
	else
		copy->first = block;
	copy->last = block;
	copy->memory += block->bytes;
	return true;
}

/* Returns memory for a piece, or NULL if there is not enough. */
static GsCopyPiece *
reserve_memory(GsRowCopy *copy, Size piece_bytes)
{
	GsCopyBlock *block = copy->last;
	GsCopyPiece *piece;

	if (copy->memory_is_full)
		return NULL;
	if (block == NULL || block->bytes - block->end < piece_bytes)
	{
		copy->memory_is_full = !add_block(copy, piece_bytes);
		if (copy->memory_is_full)
			return NULL;
		block = copy->last;
	}
	piece = (GsCopyPiece *) ((char *) block + block->end);
	block->end += piece_bytes;
	return piece;
}

/* Returns the first extent of a piece at the end of the file. */
static GsExtent
reserve_file(GsRowCopy *copy, Size piece_bytes)
{
	MemoryContext caller;
	GsExtent	first;
	uint32		count;

	if (copy->file == NULL)
	{
		caller = MemoryContextSwitchTo(copy->context);
		copy->file = gpusort_extent_file_create(EXTENT_BYTES, NULL);
		MemoryContextSwitchTo(caller);
	}
	count = gpusort_extent_file_count(copy->file, piece_bytes);
	first = gpusort_extent_file_alloc(copy->file, count);
	copy->file_end = first + count;
	return first;
}

/* Add the end of the file, from an extent on, to the range with that number. */
static void
extend_range(GsRowCopy *copy, int number, GsExtent first)
{
	GsCopyRange *range = &copy->ranges[number];

	if (number == copy->nranges)
	{
		Assert(copy->nranges < MAX_RANGES);
		copy->nranges++;
		range->first = first;
	}
	range->end = copy->file_end;
}

/* Write a piece whose rows are elsewhere to the file. */
static void
write_piece(GsRowCopy *copy, const GsCopyPiece *piece, const char *rows)
{
	GsExtent	first = reserve_file(copy, sizeof(GsCopyPiece) + piece->bytes);
	int			last = copy->nranges - 1;

	gpusort_extent_file_write(copy->file, first, sizeof(GsCopyPiece), rows,
							  piece->bytes);
	gpusort_extent_file_write(copy->file, first, 0, (const char *) piece,
							  sizeof(GsCopyPiece));
	if (last >= 0 && copy->ranges[last].end == first)
		extend_range(copy, last, first);
	else
		extend_range(copy, copy->nranges, first);
}

void
gpusort_row_copy_add(GsRowCopy *copy, const char *rows, Size bytes,
					 uint32 nrows)
{
	GsCopyPiece piece = {.bytes = bytes,.nrows = nrows};
	GsCopyPiece *dest;

	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(bytes);
	if (nrows == 0)
		return;
	dest = reserve_memory(copy, sizeof(GsCopyPiece) + MAXALIGN(bytes));
	if (dest == NULL)
	{
		write_piece(copy, &piece, rows);
		return;
	}
	*dest = piece;
	memcpy(dest + 1, rows, bytes);
}

void
gpusort_row_copy_add_row(GsRowCopy *copy, const Datum *values,
						 const bool *isnull)
{
	Size		bytes = gpusort_row_format_packed_size(copy->format, values,
													   isnull);
	char	   *row = gpusort_row_buffer_reserve(&copy->packed, bytes);

	(void) gpusort_row_format_pack(copy->format, values, isnull, row, bytes);
	gpusort_row_copy_add(copy, row, bytes, 1);
}

/* ----------------------------------------------------------------
 *		from memory to the file
 * ----------------------------------------------------------------
 */

static GsCopyPiece *
piece_at(GsCopyBlock *block, Size offset)
{
	return (GsCopyPiece *) ((char *) block + offset);
}

static Size
piece_bytes(const GsCopyPiece *piece)
{
	return sizeof(GsCopyPiece) + MAXALIGN(piece->bytes);
}

static void
write_block(GsRowCopy *copy, GsCopyBlock *block, Size offset)
{
	while (offset < block->end)
	{
		GsCopyPiece *piece = piece_at(block, offset);
		GsExtent	first = reserve_file(copy, sizeof(GsCopyPiece) + piece->bytes);

		gpusort_extent_file_write(copy->file, first, 0, (const char *) piece,
								  sizeof(GsCopyPiece) + piece->bytes);
		offset += piece_bytes(piece);
	}
}

static void
free_block(GsRowCopy *copy, GsCopyBlock *block)
{
	copy->memory -= block->bytes;
	gpusort_budget_free(copy->budget, block);
}

void
gpusort_row_copy_leave_memory(GsRowCopy *copy)
{
	GsExtent	first = copy->file_end;
	GsCopyBlock *block = copy->first;
	GsCopyBlock *current = copy->row != NULL ? block : NULL;	/* with that row */

	copy->memory_is_full = true;
	if (block == NULL)
		return;
	write_block(copy, block, copy->next_piece);
	block->end = copy->next_piece;
	for (GsCopyBlock *other = block->next; other != NULL; other = other->next)
		write_block(copy, other, MAXALIGN(sizeof(GsCopyBlock)));
	while (block != NULL)
	{
		GsCopyBlock *next = block->next;

		if (block != current)
			free_block(copy, block);
		block = next;
	}
	copy->first = copy->last = current;
	if (current != NULL)
		current->next = NULL;
	if (copy->file_end == first)
		return;

	/* These rows come before those that are in the file already. */
	Assert(copy->nranges < MAX_RANGES);
	memmove(copy->ranges + 1, copy->ranges, copy->nranges * sizeof(GsCopyRange));
	copy->nranges++;
	copy->ranges[0].first = first;
	copy->ranges[0].end = copy->file_end;
}

/* ----------------------------------------------------------------
 *		taking rows
 * ----------------------------------------------------------------
 */

static void
begin_piece(GsRowCopy *copy, GsCopyPiece *piece)
{
	copy->row = (char *) (piece + 1);
	copy->rows_left = piece->nrows;
}

/* Go on to the next piece in memory.  Returns false after the last one. */
static bool
next_in_memory(GsRowCopy *copy)
{
	while (copy->first != NULL)
	{
		GsCopyBlock *block = copy->first;

		if (copy->next_piece < block->end)
		{
			GsCopyPiece *piece = piece_at(block, copy->next_piece);

			copy->next_piece += piece_bytes(piece);
			begin_piece(copy, piece);
			return true;
		}
		copy->first = block->next;
		copy->next_piece = MAXALIGN(sizeof(GsCopyBlock));
		free_block(copy, block);
	}
	copy->last = NULL;
	return false;
}

/* Read bytes of a piece, which must be there. */
static void
read_bytes(GsRowCopy *copy, Size offset, char *dest, Size bytes)
{
	if (gpusort_extent_file_read(copy->file, copy->next_extent, offset, dest,
								 bytes) != bytes)
		elog(ERROR, "the copy of a sort's rows is damaged");
}

/* The same for the file. */
static bool
next_in_file(GsRowCopy *copy)
{
	GsCopyPiece header;
	char	   *piece;

	if (copy->range < 0 || copy->next_extent == copy->ranges[copy->range].end)
	{
		if (copy->range + 1 >= copy->nranges)
			return false;
		copy->next_extent = copy->ranges[++copy->range].first;
	}
	read_bytes(copy, 0, (char *) &header, sizeof(header));
	piece = gpusort_row_buffer_reserve(&copy->read, sizeof(header) + header.bytes);
	memcpy(piece, &header, sizeof(header));
	read_bytes(copy, sizeof(header), piece + sizeof(header), header.bytes);
	copy->next_extent += gpusort_extent_file_count(copy->file,
												   sizeof(header) + header.bytes);
	begin_piece(copy, (GsCopyPiece *) piece);
	return true;
}

bool
gpusort_row_copy_take(GsRowCopy *copy, Datum *values, bool *isnull)
{
	if (copy->rows_left == 0 && !next_in_memory(copy) && !next_in_file(copy))
	{
		copy->row = NULL;
		return false;
	}
	gpusort_row_format_unpack(copy->format, copy->row, values, isnull);
	gpusort_tuple_row_get_keys(copy->spec, values, isnull);
	copy->row += gpusort_row_format_packed_length(copy->format, copy->row);
	copy->rows_left--;
	return true;
}
