/*-------------------------------------------------------------------------
 *
 * sorted_run.c
 *		Writes and reads sorted runs of rows in a temporary file.
 *
 * A run is a chain of blocks of whole rows.  Blocks that follow each other in the file are written
 * by a single call of the system, and read likewise as far as there is memory.  All runs of a
 * process share one file, whose extents are reused as soon as they have been read.  A merge of runs
 * into another run therefore needs hardly any additional disk space.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "common/pg_prng.h"
#include "utils/memdebug.h"
#include "utils/memutils.h"

#include "core/copy_bytes.h"
#include "sort/base/row_format.h"
#include "sort/disk/sorted_run.h"
#include "work.h"

/*
 * A block is this part of the memory allowed.  Larger blocks take fewer calls of the
 * system, and smaller ones allow more runs to be merged at a time.  Where processes merge
 * together, each of them reads short slices of all runs, which begin and end amid a block.
 */
#define BLOCKS_PER_LIMIT	128
#define BLOCKS_TOGETHER		512

/*
 * Blocks that follow each other in the file are written together, as many as take this part of the
 * memory allowed.
 */
#define WINDOWS_PER_LIMIT	32

/*
 * Runs that other processes merge have about the same size and the same distribution of
 * keys.  If the blocks of all runs had samples at the same distances, these would be nearly
 * the same rows in all runs, and splitters chosen among them would make ranges of very
 * different lengths.  Therefore the first block has only a part of its bytes, and the first
 * sample comes earlier by a part of the distance.  These parts are random.  The first block has
 * at least this part.
 */
#define SMALLEST_FIRST_DIVISOR	16

/* The samples of a run are at most this part of its bytes. */
#define SAMPLE_DIVISOR			256

/* For how many blocks, and bytes of samples, an index has room at first. */
#define INDEX_BLOCKS		64
#define INDEX_SAMPLE_BYTES	4096

struct GsRunFile
{
	MemoryContext context;
	const GsRowFormat *format;
	const GsRunTarget *target;	/* run set of the file, or NULL */
	GsExtentFile *extents;
	Size		block_bytes;	/* size of a block, unless a row is longer */
	Size		window_bytes;	/* of blocks that are written at once */
	GsRowBuffer packed;			/* for the row that is put */

	/* For samples. */
	const GsSortKeys *keys;
	GsRowFormat *key_format;
	GsRowBuffer first_row;
	Datum	   *key_values;
	bool	   *key_isnull;

	/* The run that is being written. */
	GsSortedRun *run;
	char	   *window;			/* blocks in neighbouring extents */
	GsExtent	window_extent;	/* of the first one */
	GsRunBlock *block;			/* the last one */
	Size		room;			/* bytes of 'block' that can be used */
	Size		end;			/* bytes of 'block' in use */
	GsExtent	extent;			/* of the block, unless it is the first one */

	/* How much earlier the samples in its index begin; allocated lengths. */
	double		earlier;
	uint32		index_blocks;
	Size		index_sample_bytes;
};

/* Make the window, which is empty, large enough for a block of 'room' bytes. */
static void
set_room(GsRunFile *file, Size room)
{
	if (file->window != NULL)
		pfree(file->window);
	file->window = MemoryContextAllocExtended(file->context, Max(room, file->window_bytes),
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	file->block = (GsRunBlock *) file->window;
	file->room = room;
}

static void
begin_block(GsRunFile *file)
{
	file->block->nrows = 0;
	file->end = sizeof(GsRunBlock);
}

Size
gpusort_run_file_reader_bytes(Size limit, bool together)
{
	Size		wanted = limit / (together ? BLOCKS_TOGETHER : BLOCKS_PER_LIMIT);
	Size		bytes = GPUSORT_MIN_EXTENT_BYTES;

	while (bytes < GPUSORT_MAX_EXTENT_BYTES && 2 * bytes <= wanted)
		bytes *= 2;
	return bytes;
}

static void
prepare_samples(GsRunFile *file, const GsSortSpec *spec)
{
	file->keys = &spec->keys;
	file->key_format = gpusort_row_format_create_keys(spec);
	file->first_row.context = file->context;
	file->key_values = palloc(spec->keys.nkeys * sizeof(Datum));
	file->key_isnull = palloc(spec->keys.nkeys * sizeof(bool));
}

GsRunFile *
gpusort_run_file_create(const GsSortSpec *spec, const GsRowFormat *format, Size limit,
						const GsRunTarget *target)
{
	GsRunFile  *file = palloc0(sizeof(GsRunFile));

	StaticAssertStmt(sizeof(GsRunBlock) % MAXIMUM_ALIGNOF == 0,
					 "rows behind the header of a block are aligned");
	file->context = CurrentMemoryContext;
	file->packed.context = CurrentMemoryContext;
	file->format = format;
	file->target = target;
	file->block_bytes = gpusort_run_file_reader_bytes(limit, target != NULL);
	if (target != NULL)
		prepare_samples(file, spec);
	file->window_bytes = Max(Min(limit / WINDOWS_PER_LIMIT, GPUSORT_MAX_EXTENT_BYTES),
							 file->block_bytes);
	file->extents = gpusort_extent_file_create(file->block_bytes, target);
	set_room(file, file->block_bytes);
	return file;
}

int64
gpusort_run_file_kb(const GsRunFile *file)
{
	return gpusort_extent_file_kb(file->extents);
}

void
gpusort_run_file_close(GsRunFile *file)
{
	gpusort_extent_file_close(file->extents);
	pfree(file->window);
	if (file->packed.row != NULL)
		pfree(file->packed.row);
	if (file->first_row.row != NULL)
		pfree(file->first_row.row);
	pfree(file);
}

/* ----------------------------------------------------------------
 *		dense rows
 *
 * Rows in files have as few bytes as possible.  They have no alignment, and follow each other
 * without a gap.  A dense row has
 *
 *	* the NULL bitmap, the fixed part, or if there are NULLs its other columns without padding,
 *	  and the values of variable length; or
 *	* for a whole tuple what a MinimalTuple has from t_infomask2 on, and before that the
 *	  length of this.
 *
 * Offsets of values of variable length are those of the packed row.
 * ----------------------------------------------------------------
 */

/* Returns the size of a tuple from t_infomask2 on. */
static inline uint32
body_bytes(const char *row)
{
	return ((const MinimalTupleData *) row)->t_len - MINIMAL_TUPLE_DATA_OFFSET;
}

static inline void
write_tuple(const char *row, char *dense)
{
	uint32		body = body_bytes(row);

	memcpy(dense, &body, sizeof(body));
	memcpy(dense + sizeof(body), row + MINIMAL_TUPLE_DATA_OFFSET, body);
}

/* Make room for a row of 'bytes' bytes, and return where it is.  Keeps what is there. */
static char *
reserve_buffer(GsRowBuffer *buffer, Size bytes)
{
	if (likely(bytes <= buffer->room))
		return buffer->row;
	bytes = MAXALIGN(bytes);
	if (buffer->row == NULL)
		buffer->row = MemoryContextAllocHuge(buffer->context, bytes);
	else
	{
		bytes = Max(bytes, 2 * buffer->room);
		buffer->row = repalloc_huge(buffer->row, bytes);
	}
	memset(buffer->row + buffer->room, 0, bytes - buffer->room);
	buffer->room = bytes;
	return buffer->row;
}

static char *
expand_tuple(const char *dense, GsRowBuffer *buffer, Size *bytes)
{
	uint32		body;
	char	   *row;

	memcpy(&body, dense, sizeof(body));
	/* The bytes in between remain 0. */
	row = reserve_buffer(buffer, MINIMAL_TUPLE_DATA_OFFSET + body);
	((MinimalTuple) row)->t_len = MINIMAL_TUPLE_DATA_OFFSET + body;
	memcpy(row + MINIMAL_TUPLE_DATA_OFFSET, dense + sizeof(body), body);
	*bytes = sizeof(body) + body;
	return row;
}

/* Returns the bytes of the columns in the fixed part of a dense row. */
static Size
bytes_of_columns(const GsRowFormat *format, const uint8 *nulls)
{
	Size		bytes = 0;

	if (nulls == NULL)
		return format->columns_bytes;
	for (int i = 0; i < format->ncolumns; i++)
		if (!gpusort_bitmap_is_null(nulls, i))
			bytes += format->columns[i].bytes;
	return bytes;
}

/* Write the offset of a value, in a row whose values begin at 'start'. */
static inline void
write_offset(const GsRowFormat *format, const GsRowColumn *column, const char *row, Size start,
			 char *dest)
{
	uint32		offset = gpusort_column_offset_of_value(column, row) - start +
		format->packed_bytes;

	memcpy(dest, &offset, sizeof(offset));
}

/* Write the fixed part of a row without NULLs. */
static void
write_fixed_part(const GsRowFormat *format, const char *row, Size start, char *dest)
{
	memcpy(dest, row, format->columns_bytes);
	if (!format->variable || start == format->packed_bytes)
		return;
	for (int i = 0; i < format->ncolumns; i++)
		if (gpusort_column_is_variable(&format->columns[i]))
			write_offset(format, &format->columns[i], row, start,
						 dest + format->columns[i].offset);
}

/* Write the columns that are not NULL. */
static void
write_columns(const GsRowFormat *format, const char *row, const uint8 *nulls, Size start,
			  char *dest)
{
	for (int i = 0; i < format->ncolumns; i++)
	{
		const GsRowColumn *column = &format->columns[i];

		if (gpusort_bitmap_is_null(nulls, i))
			continue;
		if (gpusort_column_is_variable(column))
			write_offset(format, column, row, start, dest);
		else
			gpusort_copy_bytes(dest, row + column->offset, column->bytes);
		dest += column->bytes;
	}
}

/* Returns the length of a value of variable length that is not aligned. */
static inline Size
length_of_value(const GsRowColumn *column, const char *value)
{
	struct varlena header;

	if (column->kind == GS_COLUMN_CSTRING)
		return strlen(value) + 1;
	if (VARATT_IS_1B_E(value))
		return VARSIZE_EXTERNAL(value);
	if (VARATT_IS_1B(value))
		return VARSIZE_1B(value);
	memcpy(&header, value, VARHDRSZ);
	return VARSIZE_4B(&header);
}

/* Copy the columns that are not NULL to the fixed part of a row; returns their end. */
static const char *
expand_columns(const GsRowFormat *format, const uint8 *nulls, const char *columns, char *row)
{
	for (int i = 0; i < format->ncolumns; i++)
	{
		const GsRowColumn *column = &format->columns[i];

		if (gpusort_bitmap_is_null(nulls, i))
			continue;
		gpusort_copy_bytes(row + column->offset, columns, column->bytes);
		columns += column->bytes;
	}
	return columns;
}

/*
 * Returns the length of all 'values' of variable length, which are in the order of the columns.
 * 'row' has the fixed part.
 */
static Size
length_of_values(const GsRowFormat *format, const uint8 *nulls, const char *row,
				 const char *values)
{
	for (int i = format->ncolumns - 1; i >= 0; i--)
	{
		const GsRowColumn *column = &format->columns[i];
		Size		start;

		if (!gpusort_column_is_variable(column) ||
			(nulls != NULL && gpusort_bitmap_is_null(nulls, i)))
			continue;
		start = gpusort_column_offset_of_value(column, row) - format->packed_bytes;
		return start + length_of_value(column, values + start);
	}
	return 0;
}

char *
gpusort_dense_row_expand(const GsRowFormat *format, const char *dense, GsRowBuffer *buffer,
						 Size *bytes)
{
	const uint8 *nulls;
	const char *values = dense + format->null_bytes;
	char	   *row;
	Size		length = 0;

	if (format->tuple_column > 0)
		return expand_tuple(dense, buffer, bytes);
	row = reserve_buffer(buffer, format->packed_bytes);
	memcpy(gpusort_row_format_bitmap(format, row), dense, format->null_bytes);
	nulls = gpusort_row_format_nulls(format, row);
	if (nulls == NULL)
	{
		memcpy(row, values, format->columns_bytes);
		values += format->columns_bytes;
	}
	else
		values = expand_columns(format, nulls, values, row);
	if (format->variable)
	{
		length = length_of_values(format, nulls, row, values);
		row = reserve_buffer(buffer, format->packed_bytes + length);
		memcpy(row + format->packed_bytes, values, length);
	}
	*bytes = values + length - dense;
	return row;
}

/* ----------------------------------------------------------------
 *		indexes
 * ----------------------------------------------------------------
 */

static void
begin_index(GsRunFile *file)
{
	GsRunIndex *index = &file->run->index;

	file->index_blocks = INDEX_BLOCKS;
	file->index_sample_bytes = INDEX_SAMPLE_BYTES;
	index->blocks = MemoryContextAlloc(file->context, file->index_blocks *
									   sizeof(GsBlockEntry));
	index->samples = MemoryContextAlloc(file->context, file->index_sample_bytes);
}

/* Read the sort keys of the first row of the block, and return their size as a sample. */
static Size
read_first_keys(GsRunFile *file)
{
	Size		bytes;
	char	   *row = gpusort_dense_row_expand(file->format, (char *) (file->block + 1),
											   &file->first_row, &bytes);

	gpusort_row_format_unpack_columns(file->format, row, file->keys->attnos,
									  file->keys->nkeys, file->key_values,
									  file->key_isnull);
	return MAXALIGN(gpusort_row_format_packed_size(file->key_format, file->key_values,
												   file->key_isnull));
}

/*
 * Are there so many samples already that a sample of 'bytes' bytes at the start of the block would
 * be more than their part of the run?
 */
static bool
has_enough_samples(const GsRunFile *file, Size bytes)
{
	Size		earlier = Min(bytes, file->block_bytes / SMALLEST_FIRST_DIVISOR) * file->earlier;

	return file->run->index.sample_bytes + bytes >
		(file->run->bytes + file->end) / SAMPLE_DIVISOR + earlier;
}

/* Make room in the index for a block and a sample of 'bytes' bytes. */
static void
enlarge_index(GsRunFile *file, Size bytes)
{
	GsRunIndex *index = &file->run->index;

	if (index->nblocks == file->index_blocks)
	{
		file->index_blocks *= 2;
		index->blocks = repalloc_huge(index->blocks, file->index_blocks *
									  sizeof(GsBlockEntry));
	}
	if (index->sample_bytes + bytes > file->index_sample_bytes)
	{
		file->index_sample_bytes = 2 * (index->sample_bytes + bytes);
		index->samples = repalloc_huge(index->samples, file->index_sample_bytes);
	}
}

/*
 * Add the block, which is in file->extent, to the index of the run, in a run set only if it is to
 * have a sample.
 */
static void
index_block(GsRunFile *file)
{
	GsRunIndex *index = &file->run->index;
	bool		sampled = file->target != NULL;
	Size		bytes = sampled ? read_first_keys(file) : 0;

	if (index->blocks == NULL || (sampled && has_enough_samples(file, bytes)))
		return;
	enlarge_index(file, bytes);
	index->blocks[index->nblocks++] = (GsBlockEntry)
	{
		.first_row = file->run->nrows,
			.sample = index->sample_bytes,
			.extent = file->extent
	};
	if (!sampled)
		return;
	(void) gpusort_row_format_pack(file->key_format, file->key_values, file->key_isnull,
								   index->samples + index->sample_bytes, bytes);
	index->sample_bytes += bytes;
}

/* ----------------------------------------------------------------
 *		writing
 * ----------------------------------------------------------------
 */

void
gpusort_run_file_begin(GsRunFile *file, bool freeze)
{
	file->run = MemoryContextAllocZero(file->context, sizeof(GsSortedRun));
	file->run->file = file->extents;
	file->run->frozen = freeze;
	if (freeze || file->target != NULL)
		begin_index(file);
	if (file->target != NULL)
	{
		Size		least = file->block_bytes / SMALLEST_FIRST_DIVISOR;

		file->room = least + (file->block_bytes - least) * pg_prng_double(&pg_global_prng_state);
		file->earlier = pg_prng_double(&pg_global_prng_state);
	}
	begin_block(file);
}

/*
 * Go to where the next block, of 'next_bytes' bytes, will be in the window.  If it does not follow
 * the others, these are written.
 */
static void
go_to_next_block(GsRunFile *file, Size next_bytes)
{
	GsRunBlock *block = file->block;
	Size		offset = (char *) block - file->window;

	if (block->next == file->extent + 1 && Max(file->room, next_bytes) <= file->block_bytes &&
		offset + 2 * file->block_bytes <= file->window_bytes)
	{
		file->block = (GsRunBlock *) ((char *) block + file->block_bytes);
		return;
	}
	gpusort_extent_file_write(file->extents, file->window_extent, file->window,
							  offset + block->bytes);
	file->block = (GsRunBlock *) file->window;
	file->window_extent = block->next;
}

/* Write the block.  The next one will need 'next_bytes' bytes, or 0 if it is the last. */
static void
write_block(GsRunFile *file, Size next_bytes)
{
	GsRunBlock *block = file->block;
	GsSortedRun *run = file->run;

	if (run->nrows == 0)
	{
		file->extent = gpusort_extent_file_alloc(file->extents, file->room);
		run->first = run->next = file->window_extent = file->extent;
	}
	block->bytes = file->end;
	block->next = GPUSORT_NO_EXTENT;
	if (next_bytes > 0)
		block->next = gpusort_extent_file_alloc(file->extents, next_bytes);
	index_block(file);
	go_to_next_block(file, next_bytes);
	run->nrows += block->nrows;
	run->bytes += block->bytes;
	run->longest_block = Max(run->longest_block, block->bytes);
	if (next_bytes == 0)
		run->end = file->extent + gpusort_extent_file_count(file->extents, block->bytes);
	file->extent = block->next;
	if (file->room > file->block_bytes)
		set_room(file, file->block_bytes);
	file->room = file->block_bytes;
	begin_block(file);
}

/* Make space in the block for a row that does not fit. */
static void
make_room(GsRunFile *file, Size bytes)
{
	Size		room = Max(sizeof(GsRunBlock) + bytes, file->block_bytes);

	/* Tuples have the same limit. */
	if (!AllocSizeIsValid(bytes))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row of %zu bytes is too long to sort", bytes)));
	if (file->block->nrows > 0)
		write_block(file, room);
	if (room > file->room)
		set_room(file, room);
	begin_block(file);
}

/* Note that the next row has 'bytes' bytes. */
static inline void
add_row(GsRunFile *file, Size bytes)
{
	gpusort_work_add(GPUSORT_WORK_ROW + bytes);
	file->block->nrows++;
	file->block->last_row = file->end;
	file->end += bytes;
}

/* Add a row of 'bytes' bytes, and return where to write it. */
static inline char *
reserve(GsRunFile *file, Size bytes)
{
	char	   *dest;

	if (unlikely(file->room - file->end < bytes))
		make_room(file, bytes);
	dest = (char *) file->block + file->end;
	add_row(file, bytes);
	return dest;
}

void
gpusort_run_file_put_dense(GsRunFile *file, const char *row, Size bytes)
{
	memcpy(reserve(file, bytes), row, bytes);
}

/* Write a row of columns.  'nulls' is NULL if it has no NULLs. */
static void
put_columns(GsRunFile *file, const char *row, const uint8 *nulls, Size start)
{
	const GsRowFormat *format = file->format;
	Size		columns = bytes_of_columns(format, nulls);
	Size		length = format->variable ?
		gpusort_row_format_end(format, row, nulls, start) - start : 0;
	char	   *dense = reserve(file, format->null_bytes + columns + length);
	char	   *dest = dense + format->null_bytes;

	if (nulls == NULL)
	{
		memset(dense, 0, format->null_bytes);
		write_fixed_part(format, row, start, dest);
	}
	else
	{
		memcpy(dense, nulls, format->null_bytes);
		write_columns(format, row, nulls, start, dest);
	}
	memcpy(dest + columns, row + start, length);

	/* Padding bytes are undefined, which is harmless in a file. */
	VALGRIND_MAKE_MEM_DEFINED(dense, format->null_bytes + columns + length);
}

void
gpusort_run_file_put_row(GsRunFile *file, char *row, const uint8 *bitmap, Size start)
{
	const GsRowFormat *format = file->format;

	if (format->tuple_column > 0)
		write_tuple(row, reserve(file, sizeof(uint32) + body_bytes(row)));
	else if (bitmap != NULL && gpusort_bitmap_has_null(bitmap, format->null_bytes))
		put_columns(file, row, bitmap, start);
	else
		put_columns(file, row, NULL, start);
}

void
gpusort_run_file_put(GsRunFile *file, const Datum *values, const bool *isnull)
{
	const GsRowFormat *format = file->format;
	Size		bytes = gpusort_row_format_packed_size(format, values, isnull);
	char	   *row = reserve_buffer(&file->packed, bytes);

	(void) gpusort_row_format_pack(format, values, isnull, row, bytes);
	gpusort_run_file_put_row(file, row, gpusort_row_format_bitmap(format, row),
							 format->packed_bytes);
}

GsSortedRun *
gpusort_run_file_end(GsRunFile *file)
{
	GsSortedRun *run = file->run;

	if (file->block->nrows > 0)
		write_block(file, 0);
	file->run = NULL;
	if (run->nrows == 0)
	{
		gpusort_sorted_run_free(run);
		return NULL;
	}
	return run;
}

/* ----------------------------------------------------------------
 *		reading
 * ----------------------------------------------------------------
 */

GsRunReader
gpusort_run_reader_create(GsSortedRun *run, char *window, Size bytes)
{
	Size		least = Max(gpusort_extent_file_extent_bytes(run->file), run->longest_block);
	GsRunReader reader = {.run = run,.window = window,.room = bytes};

	if (window == NULL || bytes < least)
	{
		reader.room = least;
		reader.window = MemoryContextAllocHuge(CurrentMemoryContext, reader.room);
	}
	return reader;
}

/* Read from 'extent' on, as many extents as there is room for, but none after the run. */
static void
fill_window(GsRunReader *reader, GsExtent extent)
{
	const GsSortedRun *run = reader->run;
	Size		extent_bytes = gpusort_extent_file_extent_bytes(run->file);
	Size		extents = Min(reader->room, GPUSORT_MAX_EXTENT_BYTES) / extent_bytes;

	extents = run->end > extent ? Min(extents, run->end - extent) : 1;
	reader->first = extent;
	reader->bytes = gpusort_extent_file_read(run->file, extent, 0, reader->window,
											 extents * extent_bytes);
}

/* Returns the block in the window that begins at 'extent', or NULL if not all of it is there. */
static GsRunBlock *
find_in_window(const GsRunReader *reader, GsExtent extent)
{
	const GsSortedRun *run = reader->run;
	Size		offset = (Size) (extent - reader->first) *
		gpusort_extent_file_extent_bytes(run->file);
	GsRunBlock *block = (GsRunBlock *) (reader->window + offset);

	if (extent < reader->first || offset + sizeof(GsRunBlock) > reader->bytes)
		return NULL;
	if (block->bytes > run->longest_block)
		elog(ERROR, "a sorted run has a damaged block");
	return offset + block->bytes <= reader->bytes ? block : NULL;
}

/* Read the rest of a block that is longer than what is read at once. */
static GsRunBlock *
read_long_block(GsRunReader *reader, GsExtent extent)
{
	GsRunBlock *block = (GsRunBlock *) reader->window;

	if (reader->bytes < sizeof(GsRunBlock))
		elog(ERROR, "a sorted run has a damaged block");
	reader->bytes += gpusort_extent_file_read(reader->run->file, extent, reader->bytes,
											  reader->window + reader->bytes,
											  block->bytes - reader->bytes);
	if (reader->bytes != block->bytes)
		elog(ERROR, "a sorted run ends within a block");
	return block;
}

GsRunBlock *
gpusort_run_reader_next(GsRunReader *reader)
{
	GsSortedRun *run = reader->run;
	GsExtent	extent = run->next;
	GsRunBlock *block = find_in_window(reader, extent);

	if (block == NULL)
	{
		fill_window(reader, extent);
		block = find_in_window(reader, extent);
	}
	if (block == NULL)
		block = read_long_block(reader, extent);
	run->next = block->next;
	if (!run->frozen)
		gpusort_extent_file_free(run->file, extent, block->bytes);
	return block;
}

void
gpusort_sorted_run_free(GsSortedRun *run)
{
	if (run->index.blocks != NULL)
	{
		pfree(run->index.blocks);
		pfree(run->index.samples);
	}
	pfree(run);
}

/* ----------------------------------------------------------------
 *		cursor
 * ----------------------------------------------------------------
 */

/* One block of the run is in memory. */
struct GsRunCursor
{
	const GsRowFormat *format;
	GsRunReader reader;
	GsRunBlock *block;
	int64		first_row;		/* position of its first row */
	uint32	   *offsets;		/* of its rows, in bytes from its start */
	uint32		noffsets;		/* allocated length of 'offsets' */
	GsRowBuffer buffer;			/* for the row that was read last */
};

/* Find where the rows of the block begin. */
static void
find_rows(GsRunCursor *cursor)
{
	const GsRunBlock *block = cursor->block;
	uint32		offset = sizeof(GsRunBlock);

	if (block->nrows > cursor->noffsets)
	{
		if (cursor->offsets != NULL)
			pfree(cursor->offsets);
		cursor->noffsets = Max(block->nrows, 2 * cursor->noffsets);
		cursor->offsets = MemoryContextAllocHuge(cursor->buffer.context,
												 cursor->noffsets * sizeof(uint32));
	}
	for (uint32 i = 0; i < block->nrows; i++)
	{
		Size		bytes;

		cursor->offsets[i] = offset;
		gpusort_dense_row_expand_fast(cursor->format, (char *) block + offset, &cursor->buffer,
									  &bytes);
		offset += bytes;
	}
}

/* Read the block in 'extent'.  Its first row has the position 'first_row'. */
static void
read_block(GsRunCursor *cursor, GsExtent extent, int64 first_row)
{
	if (extent == GPUSORT_NO_EXTENT)
		elog(ERROR, "a sorted run has no row " INT64_FORMAT, first_row);
	cursor->first_row = first_row;
	cursor->reader.run->next = extent;
	cursor->block = gpusort_run_reader_next(&cursor->reader);
	find_rows(cursor);
}

GsRunCursor *
gpusort_run_cursor_create(const GsRowFormat *format, GsSortedRun *run)
{
	GsRunCursor *cursor = palloc0(sizeof(GsRunCursor));

	cursor->buffer.context = CurrentMemoryContext;
	cursor->format = format;
	cursor->reader = gpusort_run_reader_create(run, NULL, 0);
	read_block(cursor, run->first, 0);
	return cursor;
}

/* Returns the last block in the index that begins at or before a position. */
static GsBlockEntry
find_block(const GsSortedRun *run, int64 position)
{
	GsBlockEntry found = {.extent = run->first};
	uint32		low = 0;
	uint32		high = run->index.nblocks;

	while (low < high)
	{
		uint32		middle = (low + high) / 2;

		if (run->index.blocks[middle].first_row <= position)
		{
			found = run->index.blocks[middle];
			low = middle + 1;
		}
		else
			high = middle;
	}
	return found;
}

/* Read the block with a position. */
static void
go_to(GsRunCursor *cursor, int64 position)
{
	GsBlockEntry entry = find_block(cursor->reader.run, position);

	Assert(position >= 0 && position < cursor->reader.run->nrows);
	if (position < cursor->first_row || entry.first_row > cursor->first_row)
		read_block(cursor, entry.extent, entry.first_row);
	while (position - cursor->first_row >= cursor->block->nrows)
		read_block(cursor, cursor->block->next, cursor->first_row + cursor->block->nrows);
}

char *
gpusort_run_cursor_get(GsRunCursor *cursor, int64 position)
{
	Size		bytes;

	if (position < cursor->first_row ||
		position - cursor->first_row >= cursor->block->nrows)
		go_to(cursor, position);
	return gpusort_dense_row_expand_fast(cursor->format,
										 (char *) cursor->block +
										 cursor->offsets[position - cursor->first_row],
										 &cursor->buffer, &bytes);
}
