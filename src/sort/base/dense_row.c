/*-------------------------------------------------------------------------
 *
 * dense_row.c
 *		The form of rows in files: with as few bytes as possible.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "utils/memdebug.h"
#include "utils/memutils.h"

#include "sort/base/row_format.h"

/* ----------------------------------------------------------------
 *		whole tuples
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

static char *
expand_tuple(const char *dense, GsRowBuffer *buffer, Size *bytes)
{
	uint32		body;
	char	   *row;

	memcpy(&body, dense, sizeof(body));
	/* The bytes in between remain 0. */
	row = gpusort_row_buffer_reserve(buffer, MINIMAL_TUPLE_DATA_OFFSET + body);
	((MinimalTuple) row)->t_len = MINIMAL_TUPLE_DATA_OFFSET + body;
	memcpy(row + MINIMAL_TUPLE_DATA_OFFSET, dense + sizeof(body), body);
	*bytes = sizeof(body) + body;
	return row;
}

/* ----------------------------------------------------------------
 *		rows of columns
 *
 * Offsets of values of variable length count from the first of these values, because
 * that is at different places in a stored and in a packed row.
 * ----------------------------------------------------------------
 */

/* Returns the bytes of the columns in the fixed part that are not NULL. */
static Size
bytes_of_columns(const GsRowFormat *format, const uint8 *bitmap)
{
	Size		bytes = 0;

	for (int i = 0; i < format->ncolumns; i++)
		if (!gpusort_bitmap_is_null(bitmap, i))
			bytes += format->columns[i].bytes;
	return bytes;
}

/* 'bitmap' is NULL if the row has no NULLs, and 'start' where the values begin. */
static Size
size_of_columns(const GsRowFormat *format, const char *row,
				const uint8 *bitmap, Size start)
{
	Size		bytes = format->null_bytes;

	bytes += bitmap == NULL ? format->columns_bytes :
		bytes_of_columns(format, bitmap);
	if (format->variable)
		bytes += gpusort_row_format_end(format, row, bitmap, start) - start;
	return bytes;
}

/* Make offsets count from the values, in the dense form of a row without NULLs. */
static void
shift_offsets(const GsRowFormat *format, const char *row, char *columns,
			  Size start)
{
	for (int i = 0; i < format->ncolumns; i++)
	{
		const GsRowColumn *column = &format->columns[i];
		uint32		offset;

		if (!gpusort_column_is_variable(column))
			continue;
		offset = gpusort_column_offset_of_value(column, row) - start;
		memcpy(columns + column->offset, &offset, sizeof(offset));
	}
}

/* Write the columns that are not NULL, and return where they end. */
static char *
write_present_columns(const GsRowFormat *format, const char *row,
					  const uint8 *bitmap, Size start, char *dest)
{
	for (int i = 0; i < format->ncolumns; i++)
	{
		const GsRowColumn *column = &format->columns[i];

		if (gpusort_bitmap_is_null(bitmap, i))
			continue;
		if (gpusort_column_is_variable(column))
		{
			uint32		offset = gpusort_column_offset_of_value(column, row) -
				start;

			memcpy(dest, &offset, sizeof(offset));
		}
		else
			memcpy(dest, row + column->offset, column->bytes);
		dest += column->bytes;
	}
	return dest;
}

static void
write_columns(const GsRowFormat *format, const char *row, const uint8 *bitmap,
			  Size start, char *dense)
{
	char	   *dest = dense + format->null_bytes;

	if (bitmap == NULL)
	{
		memset(dense, 0, format->null_bytes);
		memcpy(dest, row, format->columns_bytes);
		if (format->variable)
			shift_offsets(format, row, dest, start);
		dest += format->columns_bytes;
	}
	else
	{
		memcpy(dense, bitmap, format->null_bytes);
		dest = write_present_columns(format, row, bitmap, start, dest);
	}
	if (format->variable)
	{
		Size		values = gpusort_row_format_end(format, row, bitmap, start) -
			start;

		memcpy(dest, row + start, values);
		dest += values;
	}

	/* Padding bytes are undefined, which is harmless in a file. */
	VALGRIND_MAKE_MEM_DEFINED(dense, dest - dense);
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
expand_present_columns(const GsRowFormat *format, const uint8 *bitmap,
					   const char *columns, char *row)
{
	for (int i = 0; i < format->ncolumns; i++)
	{
		const GsRowColumn *column = &format->columns[i];

		if (gpusort_bitmap_is_null(bitmap, i))
			continue;
		memcpy(row + column->offset, columns, column->bytes);
		columns += column->bytes;
	}
	return columns;
}

/*
 * Make the offsets in the fixed part count from the start of the row, and return the
 * length of all values of variable length, which are in the order of the columns.
 */
static Size
measure_values(const GsRowFormat *format, const uint8 *bitmap,
			   const char *values, char *row)
{
	const GsRowColumn *last = NULL;
	uint32		last_offset = 0;

	for (int i = 0; i < format->ncolumns; i++)
	{
		const GsRowColumn *column = &format->columns[i];
		uint32		offset;

		if (!gpusort_column_is_variable(column) ||
			gpusort_bitmap_is_null(bitmap, i))
			continue;
		last = column;
		last_offset = gpusort_column_offset_of_value(column, row);
		offset = last_offset + format->packed_bytes;
		memcpy(row + column->offset, &offset, sizeof(offset));
	}
	return last == NULL ? 0 :
		last_offset + length_of_value(last, values + last_offset);
}

static char *
expand_columns(const GsRowFormat *format, const char *dense,
			   GsRowBuffer *buffer, Size *bytes)
{
	const uint8 *bitmap = (const uint8 *) dense;
	const char *values = dense + format->null_bytes;
	char	   *row = gpusort_row_buffer_reserve(buffer, format->packed_bytes);
	Size		length;

	if (likely(!gpusort_bitmap_has_null(bitmap, format->null_bytes)))
	{
		memcpy(row, values, format->columns_bytes);
		values += format->columns_bytes;
	}
	else
		values = expand_present_columns(format, bitmap, values, row);
	memcpy(gpusort_row_format_bitmap(format, row), bitmap, format->null_bytes);
	if (format->variable)
	{
		length = measure_values(format, bitmap, values, row);
		row = gpusort_row_buffer_reserve(buffer,
										 format->packed_bytes + length);
		memcpy(row + format->packed_bytes, values, length);
		values += length;
	}
	*bytes = values - dense;
	return row;
}

/* ----------------------------------------------------------------
 *		dense rows
 * ----------------------------------------------------------------
 */

static inline const uint8 *
bitmap_with_nulls(const GsRowFormat *format, const uint8 *bitmap)
{
	return bitmap != NULL && gpusort_bitmap_has_null(bitmap, format->null_bytes) ?
		bitmap : NULL;
}

Size
gpusort_dense_row_size(const GsRowFormat *format, char *row,
					   const uint8 *bitmap, Size start)
{
	if (format->tuple_column > 0)
		return sizeof(uint32) + body_bytes(row);
	return size_of_columns(format, row, bitmap_with_nulls(format, bitmap), start);
}

void
gpusort_dense_row_write(const GsRowFormat *format, char *row,
						const uint8 *bitmap, Size start, char *dense)
{
	if (format->tuple_column > 0)
		write_tuple(row, dense);
	else
		write_columns(format, row, bitmap_with_nulls(format, bitmap), start,
					  dense);
}

char *
gpusort_row_buffer_reserve(GsRowBuffer *buffer, Size bytes)
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

char *
gpusort_dense_row_expand(const GsRowFormat *format, const char *dense,
						 GsRowBuffer *buffer, Size *bytes)
{
	if (format->tuple_column > 0)
		return expand_tuple(dense, buffer, bytes);
	return expand_columns(format, dense, buffer, bytes);
}
