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
 * If several processes put chunks, each of them has a file of its own.  A chunk's position in
 * the ring is stored with its rows.  The device has taken the chunks in this order, so the
 * leader, which takes pieces in the same order, gives ties the order that they had there.
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

/* Rows that are added one by one are written when they have this many bytes. */
#define PENDING_BYTES		((Size) 64 * 1024)

/* Comes after all numbers of pieces. */
#define NO_NUMBER			PG_UINT64_MAX

/* The header of packed rows, which follow it. */
typedef struct GsCopyPiece
{
	uint64		number;			/* pieces are taken in the order of these */
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

/* Pieces that follow each other in a file. */
typedef struct GsCopySource
{
	GsExtentFile *file;
	GsExtent	next;			/* of the next piece */
	GsExtent	end;
	bool		has_header;		/* has the header of the next piece been read? */
	GsCopyPiece header;
} GsCopySource;

struct GsRowCopy
{
	const GsSortSpec *spec;
	MemoryContext context;
	GsRowFormat *format;
	GsRowBuffer pending;		/* rows that were added one by one */
	Size		pending_bytes;
	uint32		pending_rows;

	/* The first rows. */
	MemoryContext memory_context;	/* of the blocks */
	GsBudget   *budget;
	GsCopyBlock *first;			/* or NULL */
	GsCopyBlock *last;
	Size		memory;			/* bytes of all blocks */
	bool		memory_is_full; /* do all further rows go to the file? */

	/* The rows that follow. */
	bool		shared;			/* are all rows in a file of the target? */
	GsRunTarget target;			/* if so */
	GsExtentFile *file;			/* written by this process, or NULL */
	GsExtent	file_end;		/* first extent not in use */
	bool		needs_header;	/* has its last piece no header yet? */
	GsExtent	last_extent;	/* if so: where it is, and the header */
	GsCopyPiece last_header;

	/*
	 * Where rows are in files.  Of pieces with the same number, those of the
	 * first source come first.
	 */
	int			nsources;
	int			max_sources;	/* allocated length */
	GsCopySource *sources;
	int64		imported_kb;	/* size of the files of other processes */

	/* Taking rows. */
	Size		next_piece;		/* offset in the first block */
	GsRowBuffer read;			/* a piece from a file */
	char	   *row;			/* the next one of the current piece */
	uint32		rows_left;		/* of that piece */
};

bool
gpusort_row_copy_allowed(const GsSortSpec *spec, bool shared)
{
	double		bytes = spec->expected_rows * spec->expected_width;

	return (!shared && bytes <= gpusort_sort_spec_memory(spec)) ||
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
	copy->budget = gpusort_budget_create(gpusort_sort_spec_memory(copy->spec) -
										 gpusort_sort_spec_marked_memory(copy->spec));
	MemoryContextSwitchTo(caller);
	copy->first = NULL;
	copy->last = NULL;
	copy->memory = 0;
	copy->memory_is_full = copy->shared;
	copy->pending_bytes = 0;
	copy->pending_rows = 0;
	copy->file = NULL;
	copy->file_end = 0;
	copy->nsources = 0;
	copy->next_piece = MAXALIGN(sizeof(GsCopyBlock));
	copy->row = NULL;
	copy->rows_left = 0;
}

static void
close_files(GsRowCopy *copy)
{
	for (int i = 0; i < copy->nsources; i++)
		if (copy->sources[i].file != copy->file)
			gpusort_extent_file_close(copy->sources[i].file);
	if (copy->file != NULL)
		gpusort_extent_file_close(copy->file);
}

GsRowCopy *
gpusort_row_copy_create(const GsSortSpec *spec, const GsRunTarget *target)
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
	copy->pending.context = context;
	copy->read.context = context;
	copy->max_sources = 4;
	copy->sources = palloc(copy->max_sources * sizeof(GsCopySource));
	copy->shared = target != NULL;
	if (copy->shared)
		copy->target = *target;
	begin_rows(copy);
	MemoryContextSwitchTo(caller);
	return copy;
}

void
gpusort_row_copy_clear(GsRowCopy *copy)
{
	close_files(copy);
	MemoryContextDelete(copy->memory_context);
	begin_rows(copy);
}

void
gpusort_row_copy_end(GsRowCopy *copy)
{
	close_files(copy);
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
	return copy->imported_kb +
		(copy->file == NULL ? 0 : gpusort_extent_file_kb(copy->file));
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
		copy->file = gpusort_extent_file_create(EXTENT_BYTES,
												copy->shared ? &copy->target : NULL);
		MemoryContextSwitchTo(caller);
	}
	count = gpusort_extent_file_count(copy->file, piece_bytes);
	first = gpusort_extent_file_alloc(copy->file, count);
	copy->file_end = first + count;
	return first;
}

/* Insert a source with that index. */
static void
insert_source(GsRowCopy *copy, int index, GsExtentFile *file, GsExtent first,
			  GsExtent end)
{
	GsCopySource *source;

	if (copy->nsources == copy->max_sources)
	{
		copy->max_sources *= 2;
		copy->sources = repalloc(copy->sources, copy->max_sources *
								 sizeof(GsCopySource));
	}
	source = &copy->sources[index];
	memmove(source + 1, source, (copy->nsources - index) * sizeof(GsCopySource));
	copy->nsources++;
	source->file = file;
	source->next = first;
	source->end = end;
	source->has_header = false;
}

/* Write the header of the last piece, if it has none yet. */
static void
write_header(GsRowCopy *copy)
{
	if (!copy->needs_header)
		return;
	copy->needs_header = false;
	gpusort_extent_file_write(copy->file, copy->last_extent, 0,
							  (const char *) &copy->last_header,
							  sizeof(GsCopyPiece));
}

/* Write a piece whose rows are elsewhere to the file. */
static void
write_piece(GsRowCopy *copy, const GsCopyPiece *piece, const char *rows)
{
	GsCopySource *last;
	GsExtent	first;

	write_header(copy);
	first = reserve_file(copy, sizeof(GsCopyPiece) + piece->bytes);
	last = copy->nsources > 0 ? &copy->sources[copy->nsources - 1] : NULL;
	gpusort_extent_file_write(copy->file, first, sizeof(GsCopyPiece), rows,
							  piece->bytes);
	copy->needs_header = true;
	copy->last_extent = first;
	copy->last_header = *piece;
	if (!copy->shared)
		write_header(copy);
	if (last != NULL && last->end == first)
		last->end = copy->file_end;
	else
		insert_source(copy, copy->nsources, copy->file, first, copy->file_end);
}

static void
add_piece(GsRowCopy *copy, const char *rows, Size bytes, uint32 nrows)
{
	GsCopyPiece piece = {
		.number = copy->shared ? NO_NUMBER : 0,
		.bytes = bytes,
		.nrows = nrows
	};
	GsCopyPiece *dest = reserve_memory(copy, sizeof(GsCopyPiece) + MAXALIGN(bytes));

	if (dest == NULL)
	{
		write_piece(copy, &piece, rows);
		return;
	}
	*dest = piece;
	memcpy(dest + 1, rows, bytes);
}

/* Add the rows that were added one by one. */
static void
add_pending(GsRowCopy *copy)
{
	if (copy->pending_rows > 0)
		add_piece(copy, copy->pending.row, copy->pending_bytes,
				  copy->pending_rows);
	copy->pending_rows = 0;
	copy->pending_bytes = 0;
}

void
gpusort_row_copy_add(GsRowCopy *copy, const char *rows, Size bytes,
					 uint32 nrows)
{
	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(bytes);
	add_pending(copy);
	if (nrows > 0)
		add_piece(copy, rows, bytes, nrows);
}

void
gpusort_row_copy_set_number(GsRowCopy *copy, uint64 number)
{
	copy->last_header.number = number;
	write_header(copy);
}

void
gpusort_row_copy_add_row(GsRowCopy *copy, const Datum *values,
						 const bool *isnull)
{
	Size		bytes = gpusort_row_format_packed_size(copy->format, values,
													   isnull);
	char	   *rows;

	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(GPUSORT_WORK_ROW + bytes);
	if (copy->pending_bytes + bytes > PENDING_BYTES)
		add_pending(copy);
	rows = gpusort_row_buffer_reserve(&copy->pending, copy->pending_bytes + bytes);
	(void) gpusort_row_format_pack(copy->format, values, isnull,
								   rows + copy->pending_bytes, bytes);
	copy->pending_bytes += bytes;
	copy->pending_rows++;
}

void
gpusort_row_copy_share(GsRowCopy *copy, GsSharedCopy *shared)
{
	add_pending(copy);
	write_header(copy);
	shared->producer = copy->target.producer;
	shared->extents = copy->file_end;
}

void
gpusort_row_copy_import(GsRowCopy *copy, GsRunSetHandle set,
						const GsSharedCopy *shared)
{
	MemoryContext caller = MemoryContextSwitchTo(copy->context);
	GsExtentFile *file = gpusort_extent_file_open(EXTENT_BYTES, set, shared->producer);

	insert_source(copy, copy->nsources, file, 0, shared->extents);
	copy->imported_kb += (int64) shared->extents * (EXTENT_BYTES / 1024);
	MemoryContextSwitchTo(caller);
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

	if (current == NULL)
		add_pending(copy);
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
	insert_source(copy, 0, copy->file, first, copy->file_end);
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

/* Read bytes of the next piece of a source, which must be there. */
static void
read_bytes(const GsCopySource *source, Size offset, char *dest, Size bytes)
{
	if (gpusort_extent_file_read(source->file, source->next, offset, dest,
								 bytes) != bytes)
		elog(ERROR, "the copy of a sort's rows is damaged");
}

/* Returns the source with the next piece, or NULL. */
static GsCopySource *
next_source(GsRowCopy *copy)
{
	GsCopySource *first = NULL;

	for (int i = 0; i < copy->nsources; i++)
	{
		GsCopySource *source = &copy->sources[i];

		if (source->next == source->end)
			continue;
		if (!source->has_header)
			read_bytes(source, 0, (char *) &source->header, sizeof(GsCopyPiece));
		source->has_header = true;
		if (first == NULL || source->header.number < first->header.number)
			first = source;
	}
	return first;
}

/* The same for files. */
static bool
next_in_file(GsRowCopy *copy)
{
	GsCopySource *source = next_source(copy);
	Size		bytes;
	char	   *piece;

	if (source == NULL)
		return false;
	bytes = sizeof(GsCopyPiece) + source->header.bytes;
	piece = gpusort_row_buffer_reserve(&copy->read, bytes);
	memcpy(piece, &source->header, sizeof(GsCopyPiece));
	read_bytes(source, sizeof(GsCopyPiece), piece + sizeof(GsCopyPiece),
			   source->header.bytes);
	source->next += gpusort_extent_file_count(source->file, bytes);
	source->has_header = false;
	begin_piece(copy, (GsCopyPiece *) piece);
	return true;
}

bool
gpusort_row_copy_take(GsRowCopy *copy, Datum *values, bool *isnull)
{
	add_pending(copy);
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
