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
 * offsets from the start of the row.  Such rows lie in blocks, one behind the
 * other, and a chunk holds the pointers to its rows instead of the rows.
 * Values are stored as in a heap tuple: headers shortened where the column's
 * storage allows, TOAST pointers kept, expanded objects flattened.
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

/*
 * Alignment of rows in blocks; enough for every type.  The size of a block is
 * at most a small part of the budget, and no more than its chunk may need:
 * chunks are small where few rows were expected.
 */
#define ROW_ALIGN(size)		MAXALIGN(size)
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
	char	   *rows;			/* rows, or pointers to them if indirect */
	uint8	   *nulls;			/* bitmap, or NULL if no row has a NULL */
	GsRowBlock *blocks;			/* that this chunk's rows are in, if indirect */
} GsRowChunk;

struct GsRowStore
{
	MemoryContext context;
	GsBudget   *budget;
	unsigned	chunk_shift;
	bool		indirect;		/* has columns of variable length */
	int			ncolumns;
	uint32		fixed_bytes;	/* of a row's fixed part */
	Size		stride;			/* bytes per row in a chunk */
	Size		null_bytes;		/* bytes per row of a null bitmap */

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
lay_out_columns(TupleDesc tupdesc, GsColumn *columns, bool *indirect)
{
	uint32		offset = 0;
	uint32		row_align = 1;

	*indirect = false;
	for (int i = 0; i < tupdesc->natts; i++)
	{
		columns[i] = classify_column(TupleDescAttr(tupdesc, i));
		if (columns[i].kind == GS_COLUMN_VARLENA ||
			columns[i].kind == GS_COLUMN_CSTRING)
			*indirect = true;
	}
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
	store->fixed_bytes = lay_out_columns(tupdesc, store->columns,
										 &store->indirect);
	store->stride = store->indirect ? sizeof(char *) : store->fixed_bytes;
	store->null_bytes = BITMAPLEN(tupdesc->natts);
	return store;
}

Size
gpusort_row_store_width(TupleDesc tupdesc)
{
	GsColumn   *columns = palloc(tupdesc->natts * sizeof(GsColumn));
	bool		indirect;
	Size		bytes = lay_out_columns(tupdesc, columns, &indirect);

	pfree(columns);
	return indirect ? bytes + sizeof(char *) : bytes;
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

static bool
add_chunk(GsRowStore *store)
{
	/* A row can have no columns at all, but palloc() wants bytes. */
	Size		size = Max(chunk_rows(store) * store->stride, 1);
	char	   *rows = reserve_and_alloc(store, size);

	if (rows == NULL)
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
	store->chunks[store->nchunks++] = (GsRowChunk) {.rows = rows};

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
	gpusort_budget_free(store->budget, chunk->rows);
	chunk->rows = NULL;
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

static inline void
write_variable(const GsColumn *column, Datum value, char *place, Size length)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);

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
}

static inline void
write_fixed(const GsColumn *column, Datum value, char *place)
{
	switch (column->kind)
	{
		case GS_COLUMN_1:
			*(uint8 *) place = DatumGetUInt8(value);
			break;
		case GS_COLUMN_2:
			*(uint16 *) place = DatumGetUInt16(value);
			break;
		case GS_COLUMN_4:
			*(uint32 *) place = DatumGetUInt32(value);
			break;
		case GS_COLUMN_8:
			*(uint64 *) place = DatumGetUInt64(value);
			break;
		case GS_COLUMN_FIXED:
			memcpy(place, DatumGetPointer(value), column->length);
			break;
		case GS_COLUMN_VARLENA:
		case GS_COLUMN_CSTRING:
			pg_unreachable();
	}
}

static inline bool
is_variable(const GsColumn *column)
{
	return column->kind == GS_COLUMN_VARLENA ||
		column->kind == GS_COLUMN_CSTRING;
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

bool
gpusort_row_store_put(GsRowStore *store, const Datum *values,
					  const bool *isnull)
{
	Size		within = store->nrows & (chunk_rows(store) - 1);
	Size		end = store->fixed_bytes;
	bool		has_null = false;
	GsRowChunk *chunk;
	char	   *row;

	if (store->nrows >> store->chunk_shift == store->nchunks &&
		!add_chunk(store))
		return false;
	chunk = &store->chunks[store->nchunks - 1];

	row = chunk->rows + within * store->stride;
	if (store->indirect)
	{
		char	   *place = block_alloc(store, chunk,
										variable_row_size(store, values, isnull));

		if (place == NULL)
			return false;
		*(char **) row = place;
		row = place;
	}

	for (int i = 0; i < store->ncolumns; i++)
	{
		const GsColumn *column = &store->columns[i];

		if (isnull[i])
			has_null = true;
		else if (is_variable(column))
		{
			Size		length;
			Size		start = variable_start(column, values[i], end, &length);

			*(uint32 *) (row + column->offset) = start;
			write_variable(column, values[i], row + start, length);
			end = start + length;
		}
		else
			write_fixed(column, values[i], row + column->offset);
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

/* The place of a row, or of the pointer to it if rows are indirect. */
static inline char *
row_place(const GsRowStore *store, uint32 row)
{
	Size		within = row & (chunk_rows(store) - 1);

	return store->chunks[row >> store->chunk_shift].rows +
		within * store->stride;
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
	char	   *row = row_place(store, number);

	if (store->indirect)
		row = *(char **) row;
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
	char	   *row = row_place(store, number);

	if (store->indirect)
		row = *(char **) row;
	__builtin_prefetch(row);
	if (store->fixed_bytes > 48 || store->indirect)
		__builtin_prefetch(row + 64);
#endif
}

void
gpusort_row_store_prefetch_far(const GsRowStore *store, uint32 number)
{
#ifdef __GNUC__
	__builtin_prefetch(row_place(store, number));
#endif
}

bool
gpusort_row_store_is_indirect(const GsRowStore *store)
{
	return store->indirect;
}
