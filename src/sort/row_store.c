/*-------------------------------------------------------------------------
 *
 * row_store.c
 *		Keeps the rows of a sort, packed, to be read back by number.
 *
 * A row of fixed-width columns is stored as just their bytes, widest alignment
 * first: no tuple header, no padding, every column at a constant offset, and
 * the row itself at a place that its number gives.  Reading one back costs a
 * cache line and no walk over its columns.
 *
 * Columns of variable length follow behind that fixed part, which holds their
 * offsets from the start of the row.  All rows of a chunk have slots of one
 * size, made for the rows seen before; a row that is longer than its slot lies
 * in a block elsewhere, and its slot says where.  So most rows are at a place
 * that their number gives, too.  Values are stored as in a heap tuple: headers
 * shortened where the column's storage allows, TOAST pointers kept, expanded
 * objects flattened.
 *
 * NULLs are rare in sorted data.  A chunk gets a bitmap of 8 columns per byte
 * and row when its first NULL comes.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "sort/row_store.h"

/* Alignment of rows; enough for every type. */
#define ROW_ALIGN(size)		MAXALIGN(size)

/* Rows longer than this are not worth a slot: reading them is what costs. */
#define MAX_SLOT_BYTES		256

/* Bytes that the processor fetches at a time. */
#define LINE_BYTES			64

/*
 * Blocks are large enough that few rows meet an end, and small against the
 * budget.
 */
#define MIN_BLOCK_BYTES		((Size) 8 * 1024)
#define MAX_BLOCK_BYTES		((Size) 32 * 1024 * 1024)
#define BLOCKS_PER_BUDGET	64

typedef enum GsColumnKind
{
	GS_COLUMN_1,				/* passed by value, by size */
	GS_COLUMN_2,
	GS_COLUMN_4,
	GS_COLUMN_8,
	GS_COLUMN_FIXED,			/* passed by reference, fixed length */
	GS_COLUMN_VARLENA,
	GS_COLUMN_CSTRING
} GsColumnKind;

typedef struct GsColumn
{
	GsColumnKind kind;
	uint32		offset;			/* within the row's fixed part */
	uint32		length;			/* of GS_COLUMN_FIXED */
	uint32		align;			/* of a value of variable length, in bytes */
	bool		can_shorten;	/* may a varlena header become one byte? */
} GsColumn;

typedef struct GsRowBlock
{
	struct GsRowBlock *next;
} GsRowBlock;

#define BLOCK_HEADER_BYTES	ROW_ALIGN(sizeof(GsRowBlock))

typedef struct GsRowChunk
{
	char	   *slots;
	Size		slot_bytes;		/* of one of them */
	uint8	   *nulls;			/* bitmap, or NULL if no row has a NULL */
	GsRowBlock *blocks;			/* of the rows that did not fit their slots */
} GsRowChunk;

struct GsRowStore
{
	MemoryContext context;
	GsBudget   *budget;
	unsigned	chunk_shift;
	int			ncolumns;
	uint32		fixed_bytes;	/* of a row's fixed part */
	Size		null_bytes;		/* bytes per row of a null bitmap */

	/*
	 * If there are columns of variable length: where a slot has the offset of
	 * the first one, which is 0 if the row did not fit, and where the pointer
	 * to the row is then.
	 */
	bool		variable;
	uint32		first_offset;
	uint32		pointer_offset;
	Size		min_slot_bytes;
	Size		sum_row_bytes;	/* of all rows so far, and of the longest */
	Size		max_row_bytes;

	uint32		nrows;
	uint32		nchunks;
	uint32		max_chunks;		/* length of the chunks array */
	GsRowChunk *chunks;

	/* Free room in the newest block. */
	char	   *block_next;
	char	   *block_end;

	GsColumn	columns[FLEXIBLE_ARRAY_MEMBER];
};

static uint32
align_bytes(char typalign)
{
	switch (typalign)
	{
		case TYPALIGN_CHAR:
			return 1;
		case TYPALIGN_SHORT:
			return ALIGNOF_SHORT;
		case TYPALIGN_INT:
			return ALIGNOF_INT;
		default:
			return ALIGNOF_DOUBLE;
	}
}

/* What is common to all rows about one column, but for its offset. */
static GsColumn
classify_column(Form_pg_attribute att)
{
	GsColumn	column = {0};

	column.align = align_bytes(att->attalign);
	if (att->attlen == -1)
	{
		column.kind = GS_COLUMN_VARLENA;
		column.can_shorten = att->attstorage != TYPSTORAGE_PLAIN;
	}
	else if (att->attlen == -2)
		column.kind = GS_COLUMN_CSTRING;
	else if (!att->attbyval)
	{
		column.kind = GS_COLUMN_FIXED;
		column.length = att->attlen;
	}
	else if (att->attlen == 8)
		column.kind = GS_COLUMN_8;
	else if (att->attlen == 4)
		column.kind = GS_COLUMN_4;
	else if (att->attlen == 2)
		column.kind = GS_COLUMN_2;
	else
		column.kind = GS_COLUMN_1;
	return column;
}

/* Bytes and alignment of a column within the fixed part. */
static uint32
fixed_size(const GsColumn *column, uint32 *align)
{
	switch (column->kind)
	{
		case GS_COLUMN_1:
			return *align = 1;
		case GS_COLUMN_2:
			return *align = 2;
		case GS_COLUMN_4:
			return *align = 4;
		case GS_COLUMN_8:
			return *align = 8;
		case GS_COLUMN_FIXED:
			*align = column->align;
			return column->length;
		case GS_COLUMN_VARLENA:
		case GS_COLUMN_CSTRING:
			return *align = sizeof(uint32);
	}
	pg_unreachable();
}

/*
 * Lay out the fixed part: columns of 8-byte alignment first, then 4, 2, 1.
 * Fills columns[] and returns its size, a multiple of its alignment.
 */
static uint32
lay_out_columns(TupleDesc tupdesc, GsColumn *columns)
{
	uint32		offset = 0;
	uint32		row_align = 1;

	for (int i = 0; i < tupdesc->natts; i++)
		columns[i] = classify_column(TupleDescAttr(tupdesc, i));
	for (uint32 wanted = 8; wanted > 0; wanted /= 2)
	{
		for (int i = 0; i < tupdesc->natts; i++)
		{
			uint32		align;
			uint32		size = fixed_size(&columns[i], &align);

			if (align != wanted)
				continue;
			offset = TYPEALIGN(align, offset);
			columns[i].offset = offset;
			offset += size;
			row_align = Max(row_align, align);
		}
	}
	return TYPEALIGN(row_align, offset);
}

static inline bool
is_variable(const GsColumn *column)
{
	return column->kind == GS_COLUMN_VARLENA ||
		column->kind == GS_COLUMN_CSTRING;
}

/* Decide what a slot says of a row that did not fit, and where. */
static void
lay_out_slot(GsRowStore *store)
{
	for (int i = 0; i < store->ncolumns && !store->variable; i++)
	{
		if (!is_variable(&store->columns[i]))
			continue;
		store->variable = true;
		store->first_offset = store->columns[i].offset;
	}
	if (!store->variable)
		return;
	if (store->first_offset < sizeof(char *))
		store->pointer_offset = ROW_ALIGN(store->first_offset + sizeof(uint32));
	store->min_slot_bytes = ROW_ALIGN(Max(store->first_offset + sizeof(uint32),
										  store->pointer_offset + sizeof(char *)));
}

GsRowStore *
gpusort_row_store_create(GsBudget *budget, TupleDesc tupdesc,
						 unsigned chunk_shift)
{
	GsRowStore *store;

	store = palloc0(offsetof(GsRowStore, columns) +
					tupdesc->natts * sizeof(GsColumn));
	store->context = CurrentMemoryContext;
	store->budget = budget;
	store->chunk_shift = chunk_shift;
	store->ncolumns = tupdesc->natts;
	store->fixed_bytes = lay_out_columns(tupdesc, store->columns);
	store->null_bytes = BITMAPLEN(tupdesc->natts);
	lay_out_slot(store);
	return store;
}

Size
gpusort_row_store_width(TupleDesc tupdesc)
{
	GsColumn   *columns = palloc(tupdesc->natts * sizeof(GsColumn));
	Size		bytes = lay_out_columns(tupdesc, columns);

	pfree(columns);
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

static void *
reserve_and_alloc(GsRowStore *store, Size size)
{
	if (!gpusort_budget_reserve(store->budget, size))
		return NULL;
	return gpusort_budget_alloc(store->budget, size);
}

/*
 * Bytes for each slot of a chunk whose first row has 'row_bytes': enough for
 * the longest row so far, unless that is far from the average; and whole cache
 * lines if that takes little more.
 */
static Size
choose_slot_bytes(const GsRowStore *store, Size row_bytes)
{
	Size		average = row_bytes;
	Size		wanted = Max(row_bytes, store->max_row_bytes);
	Size		lines;

	if (!store->variable)
		return store->fixed_bytes;
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

/* Add a chunk, whose first row will have 'row_bytes'. */
static bool
add_chunk(GsRowStore *store, Size row_bytes)
{
	Size		slot_bytes = choose_slot_bytes(store, row_bytes);
	char	   *slots;

	/* A row can have no columns at all, but there is no block of no bytes. */
	slots = reserve_and_alloc(store, Max(chunk_rows(store) * slot_bytes, 1));
	if (slots == NULL)
		return false;
	if (store->nchunks == store->max_chunks)
	{
		Size		bytes;

		store->max_chunks = Max(16, 2 * store->max_chunks);
		bytes = store->max_chunks * sizeof(GsRowChunk);
		if (store->chunks == NULL)
			store->chunks = MemoryContextAllocHuge(store->context, bytes);
		else
			store->chunks = repalloc_huge(store->chunks, bytes);
	}
	store->chunks[store->nchunks++] = (GsRowChunk)
	{
		.slots = slots,
			.slot_bytes = slot_bytes
	};

	/* Each chunk has blocks of its own, to be freed with it. */
	store->block_next = store->block_end = NULL;
	return true;
}

static bool
add_nulls(GsRowStore *store, GsRowChunk *chunk)
{
	Size		size = chunk_rows(store) * store->null_bytes;

	chunk->nulls = reserve_and_alloc(store, size);
	if (chunk->nulls == NULL)
		return false;
	memset(chunk->nulls, 0, size);
	return true;
}

/* Room for a row of 'size' bytes in the chunk's blocks, or NULL. */
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

		/* The chunk's rows to come, if they all are as long as this one. */
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

/*
 * Where a value of variable length starts that is to follow 'offset', and how
 * long it gets to be.
 */
static inline Size
variable_start(const GsColumn *column, Datum value, Size offset, Size *length)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);

	if (column->kind == GS_COLUMN_CSTRING)
	{
		*length = strlen(DatumGetCString(value)) + 1;
		return offset;
	}
	if (VARATT_IS_EXTERNAL_EXPANDED(varlena))
	{
		*length = EOH_get_flat_size(DatumGetEOHP(value));
		return TYPEALIGN(column->align, offset);
	}
	if (VARATT_IS_EXTERNAL(varlena) || VARATT_IS_SHORT(varlena))
	{
		*length = VARSIZE_ANY(varlena);
		return offset;
	}
	if (column->can_shorten && VARATT_CAN_MAKE_SHORT(varlena))
	{
		*length = VARATT_CONVERTED_SHORT_SIZE(varlena);
		return offset;
	}
	*length = VARSIZE(varlena);
	return TYPEALIGN(column->align, offset);
}

/*
 * Write a value of variable length behind what the row has up to 'end', and
 * its offset into the fixed part.  Returns the new end.
 */
static inline Size
write_variable(const GsColumn *column, Datum value, char *row, Size end)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);
	Size		length;
	Size		start = variable_start(column, value, end, &length);
	char	   *place = row + start;

	*(uint32 *) (row + column->offset) = start;
	if (column->kind == GS_COLUMN_CSTRING)
		memcpy(place, DatumGetCString(value), length);
	else if (VARATT_IS_EXTERNAL_EXPANDED(varlena))
		EOH_flatten_into(DatumGetEOHP(value), place, length);
	else if (column->can_shorten && VARATT_CAN_MAKE_SHORT(varlena))
	{
		SET_VARSIZE_SHORT(place, length);
		memcpy(place + VARHDRSZ_SHORT, VARDATA(varlena),
			   length - VARHDRSZ_SHORT);
	}
	else
		memcpy(place, varlena, length);
	return start + length;
}

/* Bytes of a row that has columns of variable length. */
static Size
variable_row_size(const GsRowStore *store, const Datum *values,
				  const bool *isnull)
{
	Size		size = store->fixed_bytes;

	for (int i = 0; i < store->ncolumns; i++)
	{
		Size		length;

		if (!is_variable(&store->columns[i]) || isnull[i])
			continue;
		size = variable_start(&store->columns[i], values[i], size, &length);
		size += length;
	}
	return size;
}

static bool
mark_nulls(GsRowStore *store, GsRowChunk *chunk, Size within,
		   const bool *isnull)
{
	uint8	   *bitmap;

	if (chunk->nulls == NULL && !add_nulls(store, chunk))
		return false;
	bitmap = chunk->nulls + within * store->null_bytes;
	for (int i = 0; i < store->ncolumns; i++)
		if (isnull[i])
			bitmap[i / 8] |= 1 << (i % 8);
	return true;
}

/* The place for a row in its slot, or elsewhere if it does not fit. */
static char *
place_row(GsRowStore *store, GsRowChunk *chunk, char *slot, Size row_bytes)
{
	char	   *place = slot;

	if (row_bytes > chunk->slot_bytes)
	{
		place = block_alloc(store, chunk, row_bytes);
		if (place == NULL)
			return NULL;
		*(uint32 *) (slot + store->first_offset) = 0;
		*(char **) (slot + store->pointer_offset) = place;
	}
	store->sum_row_bytes += row_bytes;
	store->max_row_bytes = Max(store->max_row_bytes, row_bytes);
	return place;
}

bool
gpusort_row_store_put(GsRowStore *store, const Datum *values,
					  const bool *isnull)
{
	Size		within = store->nrows & (chunk_rows(store) - 1);
	Size		end = store->fixed_bytes;
	Size		row_bytes = store->fixed_bytes;
	bool		has_null = false;
	GsRowChunk *chunk;
	char	   *row;

	if (store->variable)
		row_bytes = variable_row_size(store, values, isnull);
	if (store->nrows >> store->chunk_shift == store->nchunks &&
		!add_chunk(store, row_bytes))
		return false;
	chunk = &store->chunks[store->nchunks - 1];

	row = chunk->slots + within * chunk->slot_bytes;
	if (store->variable)
	{
		row = place_row(store, chunk, row, row_bytes);
		if (row == NULL)
			return false;

		/* Not 0, even if that column is NULL. */
		*(uint32 *) (row + store->first_offset) = end;
	}

	for (int i = 0; i < store->ncolumns; i++)
	{
		const GsColumn *column = &store->columns[i];
		char	   *place = row + column->offset;

		if (unlikely(isnull[i]))
		{
			has_null = true;
			continue;
		}
		switch (column->kind)
		{
			case GS_COLUMN_1:
				*(uint8 *) place = DatumGetUInt8(values[i]);
				break;
			case GS_COLUMN_2:
				*(uint16 *) place = DatumGetUInt16(values[i]);
				break;
			case GS_COLUMN_4:
				*(uint32 *) place = DatumGetUInt32(values[i]);
				break;
			case GS_COLUMN_8:
				*(uint64 *) place = DatumGetUInt64(values[i]);
				break;
			case GS_COLUMN_FIXED:
				memcpy(place, DatumGetPointer(values[i]), column->length);
				break;
			case GS_COLUMN_VARLENA:
			case GS_COLUMN_CSTRING:
				end = write_variable(column, values[i], row, end);
				break;
		}
	}
	if (has_null && !mark_nulls(store, chunk, within, isnull))
		return false;
	store->nrows++;
	return true;
}

/* ----------------------------------------------------------------
 *		reading rows
 * ----------------------------------------------------------------
 */

static inline char *
slot_of_row(const GsRowStore *store, uint32 row)
{
	const GsRowChunk *chunk = &store->chunks[row >> store->chunk_shift];
	Size		within = row & (chunk_rows(store) - 1);

	return chunk->slots + within * chunk->slot_bytes;
}

static inline bool
is_elsewhere(const GsRowStore *store, const char *slot)
{
	return store->variable &&
		*(const uint32 *) (slot + store->first_offset) == 0;
}

static inline Datum
read_column(const GsColumn *column, char *row)
{
	char	   *place = row + column->offset;

	/* As fetch_att() makes them, so that Datums are alike bit for bit. */
	switch (column->kind)
	{
		case GS_COLUMN_1:
			return CharGetDatum(*place);
		case GS_COLUMN_2:
			return Int16GetDatum(*(int16 *) place);
		case GS_COLUMN_4:
			return Int32GetDatum(*(int32 *) place);
		case GS_COLUMN_8:
			return *(Datum *) place;
		case GS_COLUMN_FIXED:
			return PointerGetDatum(place);
		case GS_COLUMN_VARLENA:
		case GS_COLUMN_CSTRING:
			return PointerGetDatum(row + *(uint32 *) place);
	}
	pg_unreachable();
}

void
gpusort_row_store_get(const GsRowStore *store, uint32 number, Datum *values,
					  bool *isnull)
{
	const GsRowChunk *chunk = &store->chunks[number >> store->chunk_shift];
	char	   *row = slot_of_row(store, number);

	if (is_elsewhere(store, row))
		row = *(char **) (row + store->pointer_offset);
	if (chunk->nulls == NULL)
	{
		for (int i = 0; i < store->ncolumns; i++)
		{
			values[i] = read_column(&store->columns[i], row);
			isnull[i] = false;
		}
	}
	else
	{
		Size		within = number & (chunk_rows(store) - 1);
		const uint8 *bitmap = chunk->nulls + within * store->null_bytes;

		for (int i = 0; i < store->ncolumns; i++)
		{
			isnull[i] = (bitmap[i / 8] >> (i % 8)) & 1;
			values[i] = isnull[i] ? (Datum) 0 :
				read_column(&store->columns[i], row);
		}
	}
}

/*
 * gcc takes a function that does nothing but prefetch for one without effect;
 * these are called across files, which hides that from it.
 */
void
gpusort_row_store_prefetch(const GsRowStore *store, uint32 number)
{
#ifdef __GNUC__
	const GsRowChunk *chunk = &store->chunks[number >> store->chunk_shift];
	char	   *slot = slot_of_row(store, number);

	__builtin_prefetch(slot);
	if ((uintptr_t) slot % LINE_BYTES + chunk->slot_bytes > LINE_BYTES)
		__builtin_prefetch(slot + LINE_BYTES);
#endif
}

void
gpusort_row_store_prefetch_elsewhere(const GsRowStore *store, uint32 number)
{
#ifdef __GNUC__
	char	   *slot = slot_of_row(store, number);

	if (is_elsewhere(store, slot))
	{
		char	   *row = *(char **) (slot + store->pointer_offset);

		__builtin_prefetch(row);
		__builtin_prefetch(row + LINE_BYTES);
	}
#endif
}
