/*-------------------------------------------------------------------------
 *
 * row_format.h
 *		The format in which a sort stores rows.
 *
 * A row has one of three forms.  A stored row, which only the row store uses, does
 * not contain its NULL bitmap: the row store keeps that, because NULLs are rare.
 * A packed row is self-contained.  Pool chunks consist of packed rows.  A dense row,
 * in a run on disk, has fewer bytes, and becomes a packed row again before it is used
 * (sort/disk/sorted_run.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_FORMAT_H
#define GPUSORT_ROW_FORMAT_H

#include "access/attnum.h"
#include "access/htup_details.h"
#include "access/tupdesc.h"

#include "sort/base/sort_spec.h"

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

typedef struct GsRowColumn
{
	GsColumnKind kind;
	uint32		offset;			/* within the row's fixed part */
	uint32		bytes;			/* its size there */
	uint32		align;			/* alignment of the type */
	bool		can_shorten;	/* may a varlena header become one byte? */
} GsRowColumn;

static inline bool
gpusort_column_is_variable(const GsRowColumn *column)
{
	return column->kind == GS_COLUMN_VARLENA ||
		column->kind == GS_COLUMN_CSTRING;
}

/* Returns the offset in the row of a value of variable length. */
static inline uint32
gpusort_column_offset_of_value(const GsRowColumn *column, const char *row)
{
	uint32		offset;

	memcpy(&offset, row + column->offset, sizeof(offset));
	return offset;
}

static inline bool
gpusort_bitmap_is_null(const uint8 *bitmap, int column)
{
	return (bitmap[column / 8] >> (column % 8)) & 1;
}

static inline bool
gpusort_bitmap_has_null(const uint8 *bitmap, uint32 bytes)
{
	for (uint32 i = 0; i < bytes; i++)
		if (bitmap[i] != 0)
			return true;
	return false;
}

/* Made once for a row type, and then only read. */
typedef struct GsRowFormat
{
	/*
	 * If rows are whole tuples (see tuple_rows.h), this is the index, from 0,
	 * of the column with the tuple, and 'tupdesc' describes the columns.
	 * Otherwise it is 0.
	 */
	int			tuple_column;
	TupleDesc	tupdesc;
	int			fixed_columns;	/* how many have a fixed length, before the
								 * first one that has not */

	int			ncolumns;
	GsRowColumn *columns;

	/* The fixed part of a stored row, padded to the alignment of its columns. */
	uint32		fixed_bytes;
	uint32		columns_bytes;	/* without the padding */
	uint32		first_gap;		/* offset of the first padding byte */
	uint32		null_bytes;		/* size of a NULL bitmap */

	/*
	 * Are there columns of variable length?  If so, the fixed part contains
	 * the offset of the first one, at first_offset.
	 */
	bool		variable;
	uint32		first_offset;

	/*
	 * The size of the fixed part and the NULL bitmap of a packed row, which
	 * starts at a multiple of packed_align.  Without columns of variable
	 * length this is the whole row, and a multiple of packed_align. Otherwise
	 * packed_bytes and fixed_bytes are equal modulo MAXIMUM_ALIGNOF, so that
	 * the values of variable length need the same padding in both forms and
	 * can be copied as a whole.
	 */
	uint32		packed_bytes;
	uint32		packed_align;

	/* Are all columns passed by value, with 8 bytes each? */
	bool		only_words;
} GsRowFormat;

/* Make the format of a sort's rows in the current memory context. */
extern GsRowFormat *gpusort_row_format_create(const GsSortSpec *spec);

/* The same for rows that have the sort keys alone, in their order. */
extern GsRowFormat *gpusort_row_format_create_keys(const GsSortSpec *spec);

extern void gpusort_row_format_free(GsRowFormat *format);

/*
 * Stored rows.  They start at a multiple of MAXIMUM_ALIGNOF, or follow each other
 * at a distance of fixed_bytes.
 */

/* Returns the size of a row, which is fixed_bytes unless the format is variable. */
extern Size gpusort_row_format_size(const GsRowFormat *format,
									const Datum *values, const bool *isnull);

/*
 * Write a row to memory of the size that gpusort_row_format_size() returns, and
 * return whether it has a NULL.  The bytes of NULLs and padding are not written.
 * The offset of the first column of variable length is never 0.
 */
extern bool gpusort_row_format_write(const GsRowFormat *format,
									 const Datum *values, const bool *isnull,
									 char *row);

/* Set the bits of a row's NULLs in its bitmap of null_bytes zeros. */
extern void gpusort_row_format_mark_nulls(const GsRowFormat *format,
										  const bool *isnull, uint8 *bitmap);

/*
 * Read a row that is no whole tuple.  Values that are passed by reference point into it.
 * 'bitmap' is NULL if the row has no NULLs.
 */
extern void gpusort_row_format_read(const GsRowFormat *format, char *row,
									const uint8 *bitmap, Datum *values,
									bool *isnull);

/*
 * Read any row, inline for the most common ones: words without NULLs, and whole tuples, whose
 * columns are not extracted.
 */
static inline void
gpusort_row_format_read_fast(const GsRowFormat *format, char *row,
							 const uint8 *bitmap, Datum *values, bool *isnull)
{
	int			tuple = format->tuple_column;

	if (tuple > 0)
	{
		values[tuple] = PointerGetDatum(row);
		values[tuple + 1] = (Datum) ((MinimalTuple) row)->t_len;
		isnull[tuple] = isnull[tuple + 1] = false;
		return;
	}
	if (!format->only_words || unlikely(bitmap != NULL))
	{
		gpusort_row_format_read(format, row, bitmap, values, isnull);
		return;
	}
	for (int i = 0; i < format->ncolumns; i++)
	{
		memcpy(&values[i], row + i * sizeof(Datum), sizeof(Datum));
		isnull[i] = false;
	}
}

/* Read only n columns of a row: values[i] is set to column attnos[i]. */
extern void gpusort_row_format_read_columns(const GsRowFormat *format,
											char *row, const uint8 *bitmap,
											const AttrNumber *attnos, int n,
											Datum *values, bool *isnull);

/*
 * Packed rows: the fixed part, the NULL bitmap, and then the values of variable
 * length.  The first row starts at a multiple of packed_align, and the others
 * follow it without gaps.
 */

static inline uint8 *
gpusort_row_format_bitmap(const GsRowFormat *format, char *row)
{
	return (uint8 *) row + format->columns_bytes;
}

/* Returns the bitmap, or NULL if it has no NULLs. */
static inline const uint8 *
gpusort_row_format_nulls(const GsRowFormat *format, char *row)
{
	const uint8 *bitmap = gpusort_row_format_bitmap(format, row);

	return gpusort_bitmap_has_null(bitmap, format->null_bytes) ? bitmap : NULL;
}

/* Returns the size of a row, a multiple of packed_align. */
extern Size gpusort_row_format_packed_size(const GsRowFormat *format,
										   const Datum *values,
										   const bool *isnull);

/*
 * Write a row to memory of 'room' bytes, which is a multiple of packed_align, and
 * return the size of the row.  All of its bytes are written, because other
 * processes may read them.  Returns 0 if the row does not fit; some bytes may have
 * been written nevertheless.
 */
extern Size gpusort_row_format_pack(const GsRowFormat *format,
									const Datum *values, const bool *isnull,
									char *row, Size room);

/* The same, inline for the most common rows: words without NULLs. */
static inline Size
gpusort_row_format_pack_fast(const GsRowFormat *format, const Datum *values,
							 const bool *isnull, char *row, Size room)
{
	bool		has_null = false;

	if (!format->only_words || format->packed_bytes > room)
		return gpusort_row_format_pack(format, values, isnull, row, room);
	for (int i = 0; i < format->ncolumns; i++)
	{
		has_null |= isnull[i];
		memcpy(row + i * sizeof(Datum), &values[i], sizeof(Datum));
	}
	if (unlikely(has_null))
		return gpusort_row_format_pack(format, values, isnull, row, room);
	for (Size end = format->columns_bytes; end < format->packed_bytes; end++)
		row[end] = 0;
	return format->packed_bytes;
}

/* Read a row, or some of its columns, as a stored one; inline for words without NULLs. */
static inline void
gpusort_row_format_unpack(const GsRowFormat *format, char *row, Datum *values, bool *isnull)
{
	gpusort_row_format_read_fast(format, row, gpusort_row_format_nulls(format, row), values,
								 isnull);
}

static inline void
gpusort_row_format_unpack_columns(const GsRowFormat *format, char *row,
								  const AttrNumber *attnos, int n, Datum *values, bool *isnull)
{
	const uint8 *bitmap = gpusort_row_format_nulls(format, row);

	if (unlikely(!format->only_words || bitmap != NULL))
	{
		gpusort_row_format_read_columns(format, row, bitmap, attnos, n, values, isnull);
		return;
	}
	for (int i = 0; i < n; i++)
	{
		memcpy(&values[i], row + (attnos[i] - 1) * sizeof(Datum), sizeof(Datum));
		isnull[i] = false;
	}
}

/*
 * Returns the offset at which a stored or a packed row ends, whose values of variable
 * length begin at 'end'.  'bitmap' is as in gpusort_row_format_read().
 */
extern Size gpusort_row_format_end(const GsRowFormat *format, const char *row,
								   const uint8 *bitmap, Size end);

/* Returns the size of a row that has been written, at whose end the next one starts. */
extern Size gpusort_row_format_packed_length(const GsRowFormat *format,
											 char *row);

#endif							/* GPUSORT_ROW_FORMAT_H */
