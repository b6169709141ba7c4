/*-------------------------------------------------------------------------
 *
 * row_store.c
 *		Stores the rows of a memory sort, to be read by row number.
 *
 * Each row of a chunk has a slot, and all slots of a chunk have the same size.
 * If all columns have a fixed width, the slot contains the row.  The address of
 * a row follows from its number, so that reading it takes one cache miss.
 *
 * If there are columns of variable length, the size of the slots is chosen from
 * the lengths of the rows before.  A row that is longer than its slot is stored
 * in a block, and the slot contains a pointer to it.  Whole tuples are always
 * stored in blocks, one after the other.
 *
 * A chunk gets NULL bitmaps for its rows when a row with a NULL is added to it,
 * because most sorted rows have none.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "utils/memutils.h"

#include "core/prefetch.h"
#include "sort/base/row_format.h"
#include "sort/memory/row_store.h"
#include "work.h"

/* Alignment of rows; enough for every type. */
#define ROW_ALIGN(size)		MAXALIGN(size)

/* Longer rows are not stored in slots, since one more cache miss matters little. */
#define MAX_SLOT_BYTES		256

/* The size of a cache line. */
#define LINE_BYTES			64

/*
 * Blocks are so large that little is left unused at their ends, and small compared
 * with the budget.
 */
#define MIN_BLOCK_BYTES		((Size) 8 * 1024)
#define MAX_BLOCK_BYTES		((Size) 32 * 1024 * 1024)
#define BLOCKS_PER_BUDGET	64

#define MIN_CHUNKS			16

/* How many rows ahead slots are prefetched. */
#define PREFETCH_ROWS		24

typedef struct GsRowBlock
{
	struct GsRowBlock *next;
} GsRowBlock;

#define BLOCK_HEADER_BYTES	ROW_ALIGN(sizeof(GsRowBlock))

typedef struct GsRowChunk
{
	char	   *slots;
	Size		slot_bytes;		/* size of a slot */
	uint8	   *nulls;			/* bitmap, or NULL if no row has a NULL */
	GsRowBlock *blocks;			/* with the rows that are not in their slots */
} GsRowChunk;

struct GsRowStore
{
	GsBudget   *budget;
	unsigned	chunk_shift;
	GsRowFormat *format;

	bool		whole_tuples;	/* is each slot a pointer to a tuple? */

	/*
	 * The slot of a whole tuple, or if there are columns of variable length,
	 * one whose offset of the first one is 0, has a pointer to the row, at
	 * pointer_offset.
	 */
	uint32		pointer_offset;
	Size		min_slot_bytes;
	Size		sum_row_bytes;	/* total length of all rows */
	Size		max_row_bytes;	/* length of the longest row */

	uint32		nrows;
	uint32		nchunks;
	uint32		max_chunks;		/* length of the chunks array */
	GsRowChunk *chunks;
	const uint32 *numbers;		/* gpusort_row_store_set_numbers(), or NULL */

	/* Free room in the newest block. */
	char	   *block_next;
	char	   *block_end;
};

/* Determine where in a slot the pointer to a row is, and the least size of a slot. */
static void
lay_out_slot(GsRowStore *store)
{
	uint32		first_offset = store->format->first_offset;

	if (store->whole_tuples)
		store->min_slot_bytes = sizeof(char *);
	if (!store->format->variable || store->whole_tuples)
		return;
	if (first_offset < sizeof(char *))
		store->pointer_offset = ROW_ALIGN(first_offset + sizeof(uint32));
	store->min_slot_bytes = ROW_ALIGN(Max(first_offset + sizeof(uint32),
										  store->pointer_offset + sizeof(char *)));
}

GsRowStore *
gpusort_row_store_create(GsBudget *budget, const GsSortSpec *spec,
						 unsigned chunk_shift)
{
	GsRowStore *store = palloc0(sizeof(GsRowStore));

	store->budget = budget;
	store->chunk_shift = chunk_shift;
	store->format = gpusort_row_format_create(spec);
	store->whole_tuples = spec->tuple_attno > 0;
	lay_out_slot(store);
	return store;
}

Size
gpusort_row_store_width(const GsSortSpec *spec)
{
	GsRowFormat *format = gpusort_row_format_create(spec);
	Size		bytes = format->fixed_bytes;

	if (spec->tuple_attno > 0)
		bytes += sizeof(char *) + spec->expected_width;

	gpusort_row_format_free(format);
	return bytes;
}

/* ----------------------------------------------------------------
 *		memory
 * ----------------------------------------------------------------
 */

static inline Size
chunk_rows(const GsRowStore *store)
{
	return (Size) 1 << store->chunk_shift;
}

/*
 * Rows that several processes sort are copied once more, in sorted order, so they reserve
 * their memory twice.
 */
static void *
reserve_and_alloc(GsRowStore *store, Size size)
{
	Size		copies = store->budget->shared != NULL ? 2 : 1;

	if (!gpusort_budget_reserve(store->budget, copies * size))
		return NULL;
	return gpusort_budget_alloc(store->budget, size);
}

/*
 * Returns the size of the slots of a new chunk, whose first row has 'row_bytes'.
 * The slots have room for the longest row so far, unless that is much longer than
 * the average.  The size is rounded up to whole cache lines if that adds little.
 */
static Size
choose_slot_bytes(const GsRowStore *store, Size row_bytes)
{
	Size		average = row_bytes;
	Size		wanted = Max(row_bytes, store->max_row_bytes);
	Size		lines;

	if (!store->format->variable)
		return store->format->fixed_bytes;
	if (store->whole_tuples)
		return store->min_slot_bytes;
	if (store->nrows > 0)
		average = store->sum_row_bytes / store->nrows;
	if (wanted > average + average / 4)
		wanted = average + average / 8;
	wanted = Max(ROW_ALIGN(wanted), store->min_slot_bytes);
	if (wanted > MAX_SLOT_BYTES)
		return store->min_slot_bytes;
	lines = TYPEALIGN(LINE_BYTES, wanted);
	return lines <= wanted + wanted / 4 ? lines : wanted;
}

/* Make room in the array for one more chunk. */
static bool
enlarge_array(GsRowStore *store)
{
	uint32		more = Max(MIN_CHUNKS, 2 * store->max_chunks);
	GsRowChunk *chunks;

	if (store->nchunks < store->max_chunks)
		return true;
	chunks = gpusort_budget_enlarge(store->budget, store->chunks,
									store->max_chunks * sizeof(GsRowChunk),
									more * sizeof(GsRowChunk));
	if (chunks == NULL)
		return false;
	store->chunks = chunks;
	store->max_chunks = more;
	return true;
}

/* Add a chunk, whose first row will have 'row_bytes'. */
static bool
add_chunk(GsRowStore *store, Size row_bytes)
{
	Size		slot_bytes = choose_slot_bytes(store, row_bytes);
	char	   *slots;

	if (!enlarge_array(store))
		return false;

	/* Rows may have no columns, but the size of an allocation must not be 0. */
	slots = reserve_and_alloc(store, Max(chunk_rows(store) * slot_bytes, 1));
	if (slots == NULL)
		return false;
	store->chunks[store->nchunks++] = (GsRowChunk)
	{
		.slots = slots,
			.slot_bytes = slot_bytes
	};

	/* Each chunk has its own blocks, which are freed with it. */
	store->block_next = store->block_end = NULL;
	return true;
}

static bool
add_nulls(GsRowStore *store, GsRowChunk *chunk)
{
	Size		size = chunk_rows(store) * store->format->null_bytes;

	chunk->nulls = reserve_and_alloc(store, size);
	if (chunk->nulls == NULL)
		return false;
	memset(chunk->nulls, 0, size);
	return true;
}

/* Allocate 'size' bytes for a row in the chunk's blocks.  Returns NULL if that fails. */
static char *
block_alloc(GsRowStore *store, GsRowChunk *chunk, Size size)
{
	char	   *row;

	size = ROW_ALIGN(size);
	if (store->block_end - store->block_next < (ptrdiff_t) size)
	{
		Size		largest = Min(Max(store->budget->limit / BLOCKS_PER_BUDGET,
									  MIN_BLOCK_BYTES), MAX_BLOCK_BYTES);
		Size		rows_left = chunk_rows(store) -
			(store->nrows & (chunk_rows(store) - 1));

		/*
		 * Enough for the rest of the chunk, if all rows are as long as this
		 * one.
		 */
		Size		bytes = BLOCK_HEADER_BYTES +
			Max(size, Min(rows_left * size, largest));
		GsRowBlock *block = reserve_and_alloc(store, bytes);

		if (block == NULL)
			return NULL;
		block->next = chunk->blocks;
		chunk->blocks = block;
		store->block_next = (char *) block + BLOCK_HEADER_BYTES;
		store->block_end = (char *) block + bytes;
	}
	row = store->block_next;
	store->block_next += size;
	return row;
}

void
gpusort_row_store_free_chunk(GsRowStore *store, uint32 number)
{
	GsRowChunk *chunk = &store->chunks[number];

	while (chunk->blocks != NULL)
	{
		GsRowBlock *next = chunk->blocks->next;

		gpusort_budget_free(store->budget, chunk->blocks);
		chunk->blocks = next;
	}
	if (chunk->nulls != NULL)
		gpusort_budget_free(store->budget, chunk->nulls);
	chunk->nulls = NULL;
	gpusort_budget_free(store->budget, chunk->slots);
	chunk->slots = NULL;
}

/* ----------------------------------------------------------------
 *		writing rows
 * ----------------------------------------------------------------
 */

static bool
mark_nulls(GsRowStore *store, GsRowChunk *chunk, Size within,
		   const bool *isnull)
{
	if (chunk->nulls == NULL && !add_nulls(store, chunk))
		return false;
	gpusort_row_format_mark_nulls(store->format, isnull,
								  chunk->nulls +
								  within * store->format->null_bytes);
	return true;
}

/*
 * Returns the memory for a row: its slot, or a part of a block, to which the slot then
 * points.  Returns NULL if there is no memory.
 */
static char *
allocate_row(GsRowStore *store, GsRowChunk *chunk, char *slot, Size row_bytes)
{
	char	   *row = slot;

	if (store->whole_tuples || row_bytes > chunk->slot_bytes)
	{
		row = block_alloc(store, chunk, row_bytes);
		if (row == NULL)
			return NULL;
		if (!store->whole_tuples)
			*(uint32 *) (slot + store->format->first_offset) = 0;
		*(char **) (slot + store->pointer_offset) = row;
	}
	store->sum_row_bytes += row_bytes;
	store->max_row_bytes = Max(store->max_row_bytes, row_bytes);
	return row;
}

bool
gpusort_row_store_put(GsRowStore *store, const Datum *values,
					  const bool *isnull)
{
	const GsRowFormat *format = store->format;
	Size		within = store->nrows & (chunk_rows(store) - 1);
	Size		row_bytes = format->fixed_bytes;
	GsRowChunk *chunk;
	char	   *row;

	if (format->variable)
	{
		row_bytes = gpusort_row_format_size(format, values, isnull);

		/* No tuple can be that long.  The stock sort will raise the error. */
		if (row_bytes > MaxAllocSize)
			return false;
	}
	if (store->nrows >> store->chunk_shift == store->nchunks &&
		!add_chunk(store, row_bytes))
		return false;
	chunk = &store->chunks[store->nchunks - 1];

	gpusort_work_add(GPUSORT_WORK_ROW + row_bytes);
	row = chunk->slots + within * chunk->slot_bytes;
	if (format->variable)
	{
		row = allocate_row(store, chunk, row, row_bytes);
		if (row == NULL)
			return false;
	}
	if (gpusort_row_format_write(format, values, isnull, row) &&
		!mark_nulls(store, chunk, within, isnull))
		return false;
	store->nrows++;
	return true;
}

/* ----------------------------------------------------------------
 *		reading rows
 * ----------------------------------------------------------------
 */

/* Returns the chunk of a row, and sets *within to its number there. */
static inline const GsRowChunk *
chunk_of_row(const GsRowStore *store, uint32 number, Size *within)
{
	if (unlikely(store->numbers != NULL))
		number = store->numbers[number];
	*within = number & (chunk_rows(store) - 1);
	return &store->chunks[number >> store->chunk_shift];
}

static inline bool
is_elsewhere(const GsRowStore *store, const char *slot)
{
	return store->whole_tuples ||
		(store->format->variable &&
		 *(const uint32 *) (slot + store->format->first_offset) == 0);
}

/* Returns the address of a row, and sets *bitmap to its NULL bitmap or to NULL. */
static inline char *
find_row(const GsRowStore *store, uint32 number, const uint8 **bitmap)
{
	Size		within;
	const GsRowChunk *chunk = chunk_of_row(store, number, &within);
	char	   *row = chunk->slots + within * chunk->slot_bytes;

	gpusort_work_add(GPUSORT_WORK_ROW);
	if (is_elsewhere(store, row))
		row = *(char **) (row + store->pointer_offset);
	*bitmap = NULL;
	if (chunk->nulls != NULL)
		*bitmap = chunk->nulls + within * store->format->null_bytes;
	return row;
}

void
gpusort_row_store_get(const GsRowStore *store, uint32 number, Datum *values,
					  bool *isnull)
{
	const uint8 *bitmap;
	char	   *row = find_row(store, number, &bitmap);

	gpusort_row_format_read_fast(store->format, row, bitmap, values, isnull);
}

void
gpusort_row_store_get_columns(const GsRowStore *store, uint32 number,
							  const AttrNumber *attnos, int n,
							  Datum *values, bool *isnull)
{
	const uint8 *bitmap;
	char	   *row = find_row(store, number, &bitmap);

	gpusort_row_format_read_columns(store->format, row, bitmap, attnos, n,
									values, isnull);
}

bool
gpusort_row_store_are_same_tuples(const GsRowStore *store, uint32 a, uint32 b)
{
	const uint8 *bitmap;
	MinimalTuple one;
	MinimalTuple other;

	if (store->format->tuple_column == 0)
		return false;
	one = (MinimalTuple) find_row(store, a, &bitmap);
	other = (MinimalTuple) find_row(store, b, &bitmap);
	return one->t_len == other->t_len &&
		memcmp(&one->t_infomask2, &other->t_infomask2,
			   one->t_len - MINIMAL_TUPLE_DATA_OFFSET) == 0;
}

void
gpusort_row_store_fetch_ahead(const GsRowStore *store, const uint64 *entries,
							  int64 left)
{
	Size		within;
	const GsRowChunk *chunk;
	char	   *slot;
	char	   *end;
	char	   *row;

	if (left <= PREFETCH_ROWS)
		return;
	chunk = chunk_of_row(store, (uint32) entries[PREFETCH_ROWS], &within);
	slot = chunk->slots + within * chunk->slot_bytes;
	end = slot + chunk->slot_bytes;
	for (char *line = slot - (uintptr_t) slot % LINE_BYTES; line < end;
		 line += LINE_BYTES)
		gpusort_prefetch(line);
	if (!store->format->variable)
		return;

	/* By now, the slot of this row is in the cache. */
	chunk = chunk_of_row(store, (uint32) entries[PREFETCH_ROWS / 2], &within);
	slot = chunk->slots + within * chunk->slot_bytes;
	if (!is_elsewhere(store, slot))
		return;
	row = *(char **) (slot + store->pointer_offset);
	gpusort_prefetch(row);
	gpusort_prefetch(row + LINE_BYTES);
	if (store->whole_tuples)
		gpusort_prefetch(row + 2 * LINE_BYTES);
}

/* ----------------------------------------------------------------
 *		rows of several processes
 * ----------------------------------------------------------------
 */

GsSharedRows
gpusort_row_store_share(const GsRowStore *store)
{
	GsSharedRows rows = {.chunks = store->chunks,.nchunks = store->nchunks};

	for (uint32 c = 0; c < store->nchunks; c++)
		rows.has_nulls |= store->chunks[c].nulls != NULL;
	return rows;
}

GsRowStore *
gpusort_row_store_create_view(const GsSharedRows *rows, int n,
							  const GsSortSpec *spec, unsigned chunk_shift)
{
	GsRowStore *view = gpusort_row_store_create(NULL, spec, chunk_shift);

	for (int p = 0; p < n; p++)
		view->max_chunks += rows[p].nchunks;
	view->chunks = palloc(Max(view->max_chunks, 1) * sizeof(GsRowChunk));
	for (int p = 0; p < n; p++)
	{
		if (rows[p].nchunks > 0)
			memcpy(view->chunks + view->nchunks, rows[p].chunks,
				   rows[p].nchunks * sizeof(GsRowChunk));
		view->nchunks += rows[p].nchunks;
	}
	return view;
}

void
gpusort_row_store_set_numbers(GsRowStore *store, const uint32 *numbers)
{
	store->numbers = numbers;
}

const GsRowFormat *
gpusort_row_store_format(const GsRowStore *store)
{
	return store->format;
}

char *
gpusort_row_store_find(const GsRowStore *store, uint32 number,
					   const uint8 **bitmap, Size *bytes)
{
	char	   *row = find_row(store, number, bitmap);

	if (bytes == NULL)
		return row;
	if (store->whole_tuples)
		*bytes = ((MinimalTuple) row)->t_len;
	else if (store->format->variable)
		*bytes = gpusort_row_format_end(store->format, row, *bitmap,
										store->format->fixed_bytes);
	else
		*bytes = store->format->fixed_bytes;
	return row;
}
