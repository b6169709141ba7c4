/*-------------------------------------------------------------------------
 *
 * run_cursor.c
 *		Reads a sorted run in both directions.
 *
 * One block of the run is in memory.  Each block has the addresses of its neighbours,
 * so that the cursor can move from block to block in both directions.  The cursor
 * remembers the address of the marked block.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/base/dense_row.h"
#include "sort/disk/run_cursor.h"

/* Where a block of the run is. */
typedef struct GsBlockAddress
{
	int64		first_row;		/* position of its first row */
	GsExtent	extent;
} GsBlockAddress;

struct GsRunCursor
{
	const GsRowFormat *format;
	GsSortedRun *run;
	GsBlockAddress address;		/* of the block in memory */
	GsBlockAddress start;		/* of the run's first block */
	GsBlockAddress marked;
	GsRunBlock *block;
	GsRowBuffer buffer;			/* for the row that was read last */

	/* Offsets of the rows in the block. */
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
		Size		bytes;

		cursor->offsets[i] = offset;
		gpusort_dense_row_expand_fast(cursor->format, (char *) block + offset,
									  &cursor->buffer, &bytes);
		offset += bytes;
	}
}

/* Read the block in 'extent'.  Its first row has the position 'first_row'. */
static void
read_block(GsRunCursor *cursor, GsExtent extent, int64 first_row)
{
	if (extent == GPUSORT_NO_EXTENT)
		elog(ERROR, "a sorted run has no block next to row " INT64_FORMAT,
			 cursor->address.first_row);
	cursor->address.first_row = first_row;
	cursor->address.extent = extent;
	gpusort_sorted_run_seek(cursor->run, extent);
	gpusort_sorted_run_read(cursor->run, cursor->block);
	find_rows(cursor);
}

static void
go_to_block(GsRunCursor *cursor, GsBlockAddress address)
{
	if (address.first_row != cursor->address.first_row)
		read_block(cursor, address.extent, address.first_row);
}

static void
go_to_next_block(GsRunCursor *cursor)
{
	read_block(cursor, cursor->block->next,
			   cursor->address.first_row + cursor->block->nrows);
}

static void
go_to_previous_block(GsRunCursor *cursor)
{
	int64		behind = cursor->address.first_row;

	read_block(cursor, cursor->block->previous, behind);
	cursor->address.first_row = behind - cursor->block->nrows;
}

GsRunCursor *
gpusort_run_cursor_begin(const GsRowFormat *format, GsSortedRun *run)
{
	GsRunCursor *cursor = palloc0(sizeof(GsRunCursor));

	cursor->buffer.context = CurrentMemoryContext;
	cursor->format = format;
	cursor->run = run;
	cursor->block = gpusort_sorted_run_alloc_block(run);
	cursor->max_offsets = 64;
	cursor->offsets = palloc(cursor->max_offsets * sizeof(uint32));
	read_block(cursor, run->first, 0);
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
	Size		bytes;

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
	return gpusort_dense_row_expand_fast(cursor->format,
										 (char *) cursor->block +
										 cursor->offsets[index],
										 &cursor->buffer, &bytes);
}

void
gpusort_run_cursor_mark(GsRunCursor *cursor)
{
	cursor->marked = cursor->address;
}
