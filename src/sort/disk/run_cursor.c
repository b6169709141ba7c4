/*-------------------------------------------------------------------------
 *
 * run_cursor.c
 *		Reads a sorted run in both directions.
 *
 * One block of the run is in memory.  Each block has the length of the previous one,
 * so that the cursor can move from block to block in both directions.  The cursor
 * remembers the addresses of the first block and of the marked one.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/disk/run_cursor.h"

/* Where a block of the run is. */
typedef struct GsBlockAddress
{
	int64		first_row;		/* position of its first row */
	GsTapeBlock tape_block;
	int			tape_offset;
} GsBlockAddress;

struct GsRunCursor
{
	const GsRowFormat *format;
	GsRunFile  *file;
	GsSortedRun *run;
	GsBlockAddress address;		/* of the block in memory */
	GsBlockAddress start;		/* of the run's first block */
	GsBlockAddress marked;
	GsRunBlock *block;

	/* Offsets of the rows in the block, if their length varies. */
	uint32	   *offsets;
	uint32		max_offsets;
};

/* Compute the offsets of the rows in the block. */
static void
find_rows(GsRunCursor *cursor)
{
	GsRunBlock *block = cursor->block;
	uint32		offset = sizeof(GsRunBlock);

	if (block->nrows > cursor->max_offsets)
	{
		cursor->max_offsets = Max(block->nrows, 2 * cursor->max_offsets);
		cursor->offsets = repalloc_huge(cursor->offsets, cursor->max_offsets *
										sizeof(uint32));
	}
	for (uint32 i = 0; i < block->nrows; i++)
	{
		cursor->offsets[i] = offset;
		offset += gpusort_row_format_packed_length(cursor->format,
												   (char *) block + offset);
	}
}

/* Read the next block of the tape.  Its first row has the position 'first_row'. */
static void
read_block(GsRunCursor *cursor, int64 first_row)
{
	cursor->address.first_row = first_row;
	LogicalTapeTell(cursor->run->tape, &cursor->address.tape_block,
					&cursor->address.tape_offset);
	gpusort_run_file_read(cursor->file, cursor->run, cursor->block);
	if (cursor->format->variable)
		find_rows(cursor);
}

static void
go_to_block(GsRunCursor *cursor, GsBlockAddress address)
{
	if (address.first_row == cursor->address.first_row)
		return;
	LogicalTapeSeek(cursor->run->tape, address.tape_block, address.tape_offset);
	read_block(cursor, address.first_row);
}

static void
go_to_next_block(GsRunCursor *cursor)
{
	read_block(cursor, cursor->address.first_row + cursor->block->nrows);
}

static void
go_to_previous_block(GsRunCursor *cursor)
{
	Size		back = (Size) cursor->block->bytes + cursor->block->bytes_before;
	int64		behind = cursor->address.first_row;

	if (cursor->block->bytes_before == 0 ||
		LogicalTapeBackspace(cursor->run->tape, back) != back)
		elog(ERROR, "a sorted run has no block before row " INT64_FORMAT,
			 behind);
	read_block(cursor, 0);
	cursor->address.first_row = behind - cursor->block->nrows;
}

GsRunCursor *
gpusort_run_cursor_begin(const GsRowFormat *format, GsRunFile *file,
						 GsSortedRun *run)
{
	GsRunCursor *cursor = palloc0(sizeof(GsRunCursor));

	cursor->format = format;
	cursor->file = file;
	cursor->run = run;
	cursor->block = MemoryContextAllocHuge(CurrentMemoryContext,
										   run->longest_block);
	cursor->max_offsets = 64;
	cursor->offsets = palloc(cursor->max_offsets * sizeof(uint32));
	read_block(cursor, 0);
	cursor->start = cursor->marked = cursor->address;
	return cursor;
}

static inline int64
distance_to(const GsBlockAddress *address, int64 position)
{
	return position < address->first_row ? address->first_row - position :
		position - address->first_row;
}

/* Go to the first or the marked block if it is nearer than the current one. */
static void
jump(GsRunCursor *cursor, int64 position)
{
	if (distance_to(&cursor->marked, position) <
		distance_to(&cursor->address, position))
		go_to_block(cursor, cursor->marked);
	if (position < distance_to(&cursor->address, position))
		go_to_block(cursor, cursor->start);
}

char *
gpusort_run_cursor_get(GsRunCursor *cursor, int64 position)
{
	int64		index = position - cursor->address.first_row;

	if (index < 0 || index >= cursor->block->nrows)
	{
		Assert(position >= 0 && position < cursor->run->nrows);
		jump(cursor, position);
		while (position < cursor->address.first_row)
			go_to_previous_block(cursor);
		while (position - cursor->address.first_row >= cursor->block->nrows)
			go_to_next_block(cursor);
		index = position - cursor->address.first_row;
	}
	if (cursor->format->variable)
		return (char *) cursor->block + cursor->offsets[index];
	return (char *) (cursor->block + 1) + index * cursor->format->packed_bytes;
}

void
gpusort_run_cursor_mark(GsRunCursor *cursor)
{
	cursor->marked = cursor->address;
}
