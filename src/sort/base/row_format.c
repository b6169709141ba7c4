/*-------------------------------------------------------------------------
 *
 * row_format.c
 *		The format in which a sort stores rows.
 *
 * A row begins with a part of fixed size, which has the columns of fixed width,
 * those with the widest alignment first.  There is no tuple header and next to no
 * padding, and offsets do not depend on the row.  The values of variable length
 * follow in the order of the columns, and the fixed part has their offsets.  Their
 * headers are shortened as in heap tuples, TOAST pointers are copied as they are,
 * and expanded objects are flattened.
 *
 * Rows have three forms, which row_format.h describes.  Stored rows are aligned for
 * all columns.  Packed rows have a NULL bitmap after the fixed part, and no
 * undefined bytes, because other processes read them.  Since they are copied to
 * and from a device, they are aligned only for values that are read in place, and
 * values that are passed by value are loaded and stored by memcpy().
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "utils/expandeddatum.h"

#include "sort/base/row_format.h"

/* ----------------------------------------------------------------
 *		the format
 * ----------------------------------------------------------------
 */

/* Returns the description of a column, without its offset. */
static GsRowColumn
classify_column(Form_pg_attribute att)
{
	GsRowColumn column = {.align = att_align_nominal(1, att->attalign)};

	if (att->attlen == -1)
	{
		column.kind = GS_COLUMN_VARLENA;
		column.can_shorten = att->attstorage != TYPSTORAGE_PLAIN;
	}
	else if (att->attlen == -2)
		column.kind = GS_COLUMN_CSTRING;
	else if (!att->attbyval)
		column.kind = GS_COLUMN_FIXED;
	else if (att->attlen == 8)
		column.kind = GS_COLUMN_8;
	else if (att->attlen == 4)
		column.kind = GS_COLUMN_4;
	else if (att->attlen == 2)
		column.kind = GS_COLUMN_2;
	else
		column.kind = GS_COLUMN_1;
	column.bytes = gpusort_column_is_variable(&column) ? sizeof(uint32) :
		att->attlen;
	return column;
}

/* Returns the alignment of a column within the fixed part. */
static uint32
fixed_align(const GsRowColumn *column)
{
	return column->kind == GS_COLUMN_FIXED ? column->align : column->bytes;
}

/* Lay out the fixed part: columns of 8-byte alignment first, then 4, 2, 1. */
static void
lay_out_columns(GsRowFormat *format)
{
	uint32		offset = 0;
	bool		has_gap = false;

	for (uint32 align = 8; align > 0; align /= 2)
	{
		for (int i = 0; i < format->ncolumns; i++)
		{
			GsRowColumn *column = &format->columns[i];

			if (fixed_align(column) != align)
				continue;
			column->offset = TYPEALIGN(align, offset);
			if (column->offset != offset && !has_gap)
			{
				has_gap = true;
				format->first_gap = offset;
			}
			offset = column->offset + column->bytes;
		}
	}
	if (!has_gap)
		format->first_gap = offset;
	format->columns_bytes = offset;
}

/* The format of rows that are whole tuples. */
static void
lay_out_tuple(GsRowFormat *format, const GsSortSpec *spec)
{
	format->tuple_column = spec->tuple_attno - 1;
	format->tupdesc = spec->tupdesc;
	while (format->fixed_columns < spec->tupdesc->natts &&
		   TupleDescAttr(spec->tupdesc, format->fixed_columns)->attlen > 0)
		format->fixed_columns++;
	format->variable = true;
	format->fixed_bytes = MAXALIGN(SizeofMinimalTupleHeader);
	format->packed_bytes = format->fixed_bytes;
	format->packed_align = MAXIMUM_ALIGNOF;
}

GsRowFormat *
gpusort_row_format_create(const GsSortSpec *spec)
{
	GsRowFormat *format = palloc0(sizeof(GsRowFormat));
	TupleDesc	tupdesc = spec->tupdesc;
	uint32		row_align = 1;

	format->ncolumns = tupdesc->natts;
	if (spec->tuple_attno > 0)
	{
		lay_out_tuple(format, spec);
		return format;
	}
	format->columns = palloc(tupdesc->natts * sizeof(GsRowColumn));
	format->null_bytes = BITMAPLEN(tupdesc->natts);
	format->packed_align = 1;
	for (int i = 0; i < tupdesc->natts; i++)
		format->columns[i] = classify_column(TupleDescAttr(tupdesc, i));
	lay_out_columns(format);

	for (int i = 0; i < tupdesc->natts; i++)
	{
		const GsRowColumn *column = &format->columns[i];

		row_align = Max(row_align, fixed_align(column));
		if (column->kind == GS_COLUMN_FIXED)
			format->packed_align = Max(format->packed_align, column->align);
		if (gpusort_column_is_variable(column) && !format->variable)
		{
			format->variable = true;
			format->first_offset = column->offset;
			format->packed_align = MAXIMUM_ALIGNOF;
		}
	}
	format->only_words = true;
	for (int i = 0; i < tupdesc->natts; i++)
		format->only_words &= format->columns[i].kind == GS_COLUMN_8;
	format->fixed_bytes = TYPEALIGN(row_align, format->columns_bytes);
	format->packed_bytes = format->columns_bytes + format->null_bytes;
	if (!format->variable)
		format->packed_bytes = TYPEALIGN(format->packed_align,
										 format->packed_bytes);
	else
		format->packed_bytes = format->fixed_bytes +
			MAXALIGN(Max(format->packed_bytes, format->fixed_bytes) -
					 format->fixed_bytes);
	return format;
}

GsRowFormat *
gpusort_row_format_create_keys(const GsSortSpec *spec)
{
	TupleDesc	tupdesc = CreateTemplateTupleDesc(spec->keys.nkeys);
	GsSortSpec	keys = {.tupdesc = tupdesc};

	for (int k = 0; k < spec->keys.nkeys; k++)
		TupleDescCopyEntry(tupdesc, k + 1, spec->tupdesc, spec->keys.attnos[k]);
	TupleDescFinalize(tupdesc);
	return gpusort_row_format_create(&keys);
}

void
gpusort_row_format_free(GsRowFormat *format)
{
	if (format->columns != NULL)
		pfree(format->columns);
	pfree(format);
}

/*
 * Set bytes to 0.  Mostly there are so few of them that a call of memset() would take
 * as long as writing the rest of the row.
 */
static inline void
zero_bytes(char *dest, Size count)
{
	if (count > 8)
		memset(dest, 0, count);
	else if (count >= 4)
	{
		memset(dest, 0, 4);
		memset(dest + count - 4, 0, 4);
	}
	else if (count > 0)
		dest[0] = dest[count / 2] = dest[count - 1] = 0;
}

/* ----------------------------------------------------------------
 *		values of variable length
 * ----------------------------------------------------------------
 */

/*
 * Returns the offset at which a value of variable length starts if the row so far ends
 * at 'offset', and sets *length to the length of the value in the row.
 */
static inline Size
variable_start(const GsRowColumn *column, Datum value, Size offset,
			   Size *length)
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
 * Write a value of variable length at *end, write its offset to the fixed part, and
 * advance *end.  Returns false if the value would end after 'limit'.
 */
static inline bool
write_variable(const GsRowColumn *column, Datum value, char *row, Size *end,
			   Size limit, bool zero_gaps)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);
	Size		length;
	Size		start = variable_start(column, value, *end, &length);
	char	   *dest = row + start;
	uint32		offset = start;

	if (unlikely(start + length > limit))
		return false;
	if (zero_gaps)
		zero_bytes(row + *end, start - *end);
	memcpy(row + column->offset, &offset, sizeof(offset));
	if (column->kind == GS_COLUMN_CSTRING)
		memcpy(dest, DatumGetCString(value), length);
	else if (VARATT_IS_EXTERNAL_EXPANDED(varlena))
		EOH_flatten_into(DatumGetEOHP(value), dest, length);
	else if (column->can_shorten && VARATT_CAN_MAKE_SHORT(varlena))
	{
		SET_VARSIZE_SHORT(dest, length);
		memcpy(dest + VARHDRSZ_SHORT, VARDATA(varlena),
			   length - VARHDRSZ_SHORT);
	}
	else
		memcpy(dest, varlena, length);
	*end = start + length;
	return true;
}

/* Returns the end of a row whose values of variable length begin at 'end'. */
static inline Size
end_of_values(const GsRowFormat *format, const Datum *values,
			  const bool *isnull, Size end)
{
	for (int i = 0; i < format->ncolumns; i++)
	{
		Size		length;

		if (!gpusort_column_is_variable(&format->columns[i]) || isnull[i])
			continue;
		end = variable_start(&format->columns[i], values[i], end, &length);
		end += length;
	}
	return end;
}

/* ----------------------------------------------------------------
 *		columns, in rows of both forms
 * ----------------------------------------------------------------
 */

/*
 * Write the columns of a row, with the values of variable length from *end on, and
 * advance *end.  Sets *has_null if there is a NULL.  Returns false if the row would
 * end after 'limit'.
 */
static pg_attribute_always_inline bool
write_columns(const GsRowFormat *format, const Datum *values,
			  const bool *isnull, char *row, Size *end, Size limit,
			  bool *has_null, bool zero_gaps)
{

	for (int i = 0; i < format->ncolumns; i++)
	{
		const GsRowColumn *column = &format->columns[i];
		char	   *dest = row + column->offset;

		if (unlikely(isnull[i]))
		{
			*has_null = true;
			if (zero_gaps)
				zero_bytes(dest, column->bytes);
			continue;
		}
		switch (column->kind)
		{
			case GS_COLUMN_1:
				*(uint8 *) dest = DatumGetUInt8(values[i]);
				break;
			case GS_COLUMN_2:
				{
					uint16		value = DatumGetUInt16(values[i]);

					memcpy(dest, &value, sizeof(value));
					break;
				}
			case GS_COLUMN_4:
				{
					uint32		value = DatumGetUInt32(values[i]);

					memcpy(dest, &value, sizeof(value));
					break;
				}
			case GS_COLUMN_8:
				memcpy(dest, &values[i], sizeof(Datum));
				break;
			case GS_COLUMN_FIXED:
				memcpy(dest, DatumGetPointer(values[i]), column->bytes);
				break;
			case GS_COLUMN_VARLENA:
			case GS_COLUMN_CSTRING:
				if (!write_variable(column, values[i], row, end, limit,
									zero_gaps))
					return false;
				break;
		}
	}
	return true;
}

/* Returns the Datum that fetch_att() would return, so that no bit of it differs. */
static inline Datum
read_column(const GsRowColumn *column, char *row)
{
	char	   *ptr = row + column->offset;

	switch (column->kind)
	{
		case GS_COLUMN_1:
			return CharGetDatum(*ptr);
		case GS_COLUMN_2:
			{
				int16		value;

				memcpy(&value, ptr, sizeof(value));
				return Int16GetDatum(value);
			}
		case GS_COLUMN_4:
			{
				int32		value;

				memcpy(&value, ptr, sizeof(value));
				return Int32GetDatum(value);
			}
		case GS_COLUMN_8:
			{
				Datum		value;

				memcpy(&value, ptr, sizeof(value));
				return value;
			}
		case GS_COLUMN_FIXED:
			return PointerGetDatum(ptr);
		case GS_COLUMN_VARLENA:
		case GS_COLUMN_CSTRING:
			return PointerGetDatum(row + gpusort_column_offset_of_value(column, row));
	}
	pg_unreachable();
}

/* ----------------------------------------------------------------
 *		whole tuples
 * ----------------------------------------------------------------
 */

static inline Size
tuple_bytes(const GsRowFormat *format, const Datum *values)
{
	return (Size) values[format->tuple_column + 1];
}

static inline void
write_tuple(const GsRowFormat *format, const Datum *values, char *row)
{
	Size		bytes = tuple_bytes(format, values);
	MinimalTuple tuple = (MinimalTuple) row;

	tuple->t_len = bytes;
	memset(tuple->mt_padding, 0, sizeof(tuple->mt_padding));
	memcpy(row + MINIMAL_TUPLE_DATA_OFFSET,
		   (char *) DatumGetPointer(values[format->tuple_column]) +
		   MINIMAL_TUPLE_DATA_OFFSET,
		   bytes - MINIMAL_TUPLE_DATA_OFFSET);
}

/*
 * Do columns that heap_getattr() has to walk to have more columns before them, in sum, than a tuple
 * has?
 */
static inline bool
is_walked_often(const GsRowFormat *format, const AttrNumber *attnos, int n)
{
	int			sum = 0;

	for (int i = 0; i < n; i++)
		if (attnos[i] > format->fixed_columns)
			sum += attnos[i] - 1;
	return sum > format->tupdesc->natts;
}

static void
read_columns_by_deforming(const GsRowFormat *format, HeapTuple tuple, const AttrNumber *attnos,
						  int n, Datum *values, bool *isnull)
{
	Datum		all_values[MaxTupleAttributeNumber];
	bool		all_isnull[MaxTupleAttributeNumber];

	heap_deform_tuple(tuple, format->tupdesc, all_values, all_isnull);
	for (int i = 0; i < n; i++)
	{
		values[i] = all_values[attnos[i] - 1];
		isnull[i] = all_isnull[attnos[i] - 1];
	}
}

static void
read_columns_of_tuple(const GsRowFormat *format, char *row,
					  const AttrNumber *attnos, int n,
					  Datum *values, bool *isnull)
{
	HeapTupleData tuple;

	tuple.t_len = ((MinimalTuple) row)->t_len + MINIMAL_TUPLE_OFFSET;
	tuple.t_data = (HeapTupleHeader) (row - MINIMAL_TUPLE_OFFSET);
	if (is_walked_often(format, attnos, n))
	{
		read_columns_by_deforming(format, &tuple, attnos, n, values, isnull);
		return;
	}
	for (int i = 0; i < n; i++)
		values[i] = heap_getattr(&tuple, attnos[i], format->tupdesc,
								 &isnull[i]);
}

/* ----------------------------------------------------------------
 *		stored rows
 * ----------------------------------------------------------------
 */

Size
gpusort_row_format_size(const GsRowFormat *format, const Datum *values,
						const bool *isnull)
{
	if (!format->variable)
		return format->fixed_bytes;
	if (format->tuple_column > 0)
		return tuple_bytes(format, values);
	return end_of_values(format, values, isnull, format->fixed_bytes);
}

bool
gpusort_row_format_write(const GsRowFormat *format, const Datum *values,
						 const bool *isnull, char *row)
{
	Size		end = format->fixed_bytes;
	bool		has_null = false;

	if (format->tuple_column > 0)
	{
		write_tuple(format, values, row);
		return false;
	}
	if (format->variable)
		*(uint32 *) (row + format->first_offset) = end;
	(void) write_columns(format, values, isnull, row, &end, SIZE_MAX, &has_null,
						 false);
	return has_null;
}

void
gpusort_row_format_mark_nulls(const GsRowFormat *format, const bool *isnull,
							  uint8 *bitmap)
{
	for (int i = 0; i < format->ncolumns; i++)
		if (isnull[i])
			bitmap[i / 8] |= 1 << (i % 8);
}

void
gpusort_row_format_read(const GsRowFormat *format, char *row,
						const uint8 *bitmap, Datum *values, bool *isnull)
{
	if (bitmap == NULL)
	{
		for (int i = 0; i < format->ncolumns; i++)
		{
			values[i] = read_column(&format->columns[i], row);
			isnull[i] = false;
		}
	}
	else
	{
		for (int i = 0; i < format->ncolumns; i++)
		{
			isnull[i] = gpusort_bitmap_is_null(bitmap, i);
			values[i] = isnull[i] ? (Datum) 0 :
				read_column(&format->columns[i], row);
		}
	}
}

void
gpusort_row_format_read_columns(const GsRowFormat *format, char *row,
								const uint8 *bitmap, const AttrNumber *attnos,
								int n, Datum *values, bool *isnull)
{
	if (format->tuple_column > 0)
	{
		read_columns_of_tuple(format, row, attnos, n, values, isnull);
		return;
	}
	for (int i = 0; i < n; i++)
	{
		int			c = attnos[i] - 1;

		isnull[i] = bitmap != NULL && gpusort_bitmap_is_null(bitmap, c);
		values[i] = isnull[i] ? (Datum) 0 :
			read_column(&format->columns[c], row);
	}
}

/* ----------------------------------------------------------------
 *		packed rows
 * ----------------------------------------------------------------
 */

Size
gpusort_row_format_packed_size(const GsRowFormat *format, const Datum *values,
							   const bool *isnull)
{
	if (!format->variable)
		return format->packed_bytes;
	if (format->tuple_column > 0)
		return MAXALIGN(tuple_bytes(format, values));
	return MAXALIGN(end_of_values(format, values, isnull,
								  format->packed_bytes));
}

Size
gpusort_row_format_pack(const GsRowFormat *format, const Datum *values,
						const bool *isnull, char *row, Size room)
{
	Size		end = format->packed_bytes;
	Size		next;
	bool		has_null = false;

	if (format->tuple_column > 0)
	{
		end = tuple_bytes(format, values);
		next = MAXALIGN(end);
		if (unlikely(next > room))
			return 0;
		write_tuple(format, values, row);
		zero_bytes(row + end, next - end);
		return next;
	}
	if (unlikely(end > room))
		return 0;
	zero_bytes(row + format->first_gap, end - format->first_gap);
	if (!write_columns(format, values, isnull, row, &end, room, &has_null,
					   true))
		return 0;
	if (has_null)
		gpusort_row_format_mark_nulls(format, isnull,
									  gpusort_row_format_bitmap(format, row));
	if (!format->variable)
		return end;
	next = MAXALIGN(end);
	zero_bytes(row + end, next - end);
	return next;
}

/* Returns the end of the last value of variable length, or 'end' if there is none. */
Size
gpusort_row_format_end(const GsRowFormat *format, const char *row,
					   const uint8 *bitmap, Size end)
{
	/* The values are in the order of the columns. */
	for (int i = format->ncolumns - 1; i >= 0; i--)
	{
		const GsRowColumn *column = &format->columns[i];
		uint32		start;

		if (!gpusort_column_is_variable(column) ||
			(bitmap != NULL && gpusort_bitmap_is_null(bitmap, i)))
			continue;
		start = gpusort_column_offset_of_value(column, row);
		if (column->kind == GS_COLUMN_CSTRING)
			return start + strlen(row + start) + 1;
		return start + VARSIZE_ANY(row + start);
	}
	return end;
}

Size
gpusort_row_format_packed_length(const GsRowFormat *format, char *row)
{
	if (!format->variable)
		return format->packed_bytes;
	if (format->tuple_column > 0)
		return MAXALIGN(((MinimalTuple) row)->t_len);
	return MAXALIGN(gpusort_row_format_end(format, row,
										   gpusort_row_format_bitmap(format, row),
										   format->packed_bytes));
}
