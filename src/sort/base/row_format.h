/*-------------------------------------------------------------------------
 *
 * row_format.h
 *		What a packed row looks like: writing values to it, reading them back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_FORMAT_H
#define GPUSORT_ROW_FORMAT_H

#include "access/attnum.h"
#include "access/tupdesc.h"

#include "sort/base/sort_spec.h"

/* Made once for a row type, and then only read. */
typedef struct GsRowFormat
{
	/*
	 * Rows are whole tuples if this is not 0: the index, from 0, of the
	 * column that is the tuple; see tuple_rows.h.  'tupdesc' is theirs.
	 */
	int			tuple_column;
	TupleDesc	tupdesc;

	int			ncolumns;
	struct GsRowColumn *columns;

	/* The fixed part: a multiple of what its columns' alignment asks for. */
	uint32		fixed_bytes;
	uint32		columns_bytes;	/* up to the end of its last column */
	uint32		first_gap;		/* the first byte that no column covers */
	uint32		null_bytes;		/* of a NULL bitmap */

	/*
	 * If there are columns of variable length: where in the fixed part the
	 * offset of the first one is.
	 */
	bool		variable;
	uint32		first_offset;

	/*
	 * Self-contained rows, which start at a multiple of packed_align: bytes
	 * of the fixed part and the NULL bitmap behind it, which is the whole
	 * row, a multiple of packed_align, unless it is variable.  Then it is as
	 * far from alignment as fixed_bytes, so that what follows can be copied.
	 */
	uint32		packed_bytes;
	uint32		packed_align;

	/* Are all columns passed by value in 8 bytes, and so in order? */
	bool		only_words;
} GsRowFormat;

/* Make the format of a sort's rows in the current memory context. */
extern GsRowFormat *gpusort_row_format_create(const GsSortSpec *spec);

extern void gpusort_row_format_free(GsRowFormat *format);

/*
 * Rows whose NULLs are noted elsewhere.  They start at a multiple of
 * MAXIMUM_ALIGNOF, or one of fixed_bytes from there on.
 */

/* Bytes of a row, which are fixed_bytes unless the format is variable. */
extern Size gpusort_row_format_size(const GsRowFormat *format,
									const Datum *values, const bool *isnull);

/*
 * Write a row to a place of as many bytes as gpusort_row_format_size() says,
 * and return whether it has a NULL.  Bytes of NULLs and gaps stay as they are,
 * but the offset of the first column of variable length is never 0.
 */
extern bool gpusort_row_format_write(const GsRowFormat *format,
									 const Datum *values, const bool *isnull,
									 char *row);

/* Set the bits of a row's NULLs in its bitmap of null_bytes zeros. */
extern void gpusort_row_format_mark_nulls(const GsRowFormat *format,
										  const bool *isnull, uint8 *bitmap);

/*
 * Read a row.  What is passed by reference points into it.  'bitmap' is NULL
 * if the row has no NULLs.  The sort keys of a whole tuple are not set.
 */
extern void gpusort_row_format_read(const GsRowFormat *format, char *row,
									const uint8 *bitmap, Datum *values,
									bool *isnull);

/* The same, without a call for what is common: words without NULLs. */
static inline void
gpusort_row_format_read_fast(const GsRowFormat *format, char *row,
							 const uint8 *bitmap, Datum *values, bool *isnull)
{
	if (unlikely(!format->only_words || bitmap != NULL))
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

/* Read n columns of a row alone: values[i] is that of column attnos[i]. */
extern void gpusort_row_format_read_columns(const GsRowFormat *format,
											char *row, const uint8 *bitmap,
											const AttrNumber *attnos, int n,
											Datum *values, bool *isnull);

/*
 * Self-contained rows: the fixed part, the NULL bitmap, and then the values of
 * variable length.  They are put one behind the other, the first at a multiple
 * of packed_align, and have no byte that is not written, so that they can
 * be shown to other processes.
 */

/* Bytes of a row, a multiple of packed_align. */
extern Size gpusort_row_format_packed_size(const GsRowFormat *format,
										   const Datum *values,
										   const bool *isnull);

/*
 * Write a row to a place of 'room' bytes, a multiple of packed_align; returns
 * the bytes it took.  Returns 0 if it does not fit; some of the bytes may have
 * been written then.
 */
extern Size gpusort_row_format_pack(const GsRowFormat *format,
									const Datum *values, const bool *isnull,
									char *row, Size room);

/* The same, without a call for what is common: words without NULLs. */
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

/*
 * A row whose NULLs are noted elsewhere, as a self-contained one: how long that
 * is, and writing it to a place of so many bytes.  Bytes of NULLs and gaps are
 * what they were: this is for files, and not for other processes.
 */
extern Size gpusort_row_format_converted_size(const GsRowFormat *format,
											  const char *row,
											  const uint8 *bitmap);
extern void gpusort_row_format_convert(const GsRowFormat *format,
									   const char *row, const uint8 *bitmap,
									   char *packed, Size bytes);

/* Read a row.  What is passed by reference points into it. */
extern void gpusort_row_format_unpack(const GsRowFormat *format, char *row,
									  Datum *values, bool *isnull);

/* The same, without a call for what is common: a few words without NULLs. */
static inline void
gpusort_row_format_unpack_fast(const GsRowFormat *format, char *row,
							   Datum *values, bool *isnull)
{
	if (unlikely(!format->only_words || format->null_bytes != 1 ||
				 row[format->columns_bytes] != 0))
	{
		gpusort_row_format_unpack(format, row, values, isnull);
		return;
	}
	for (int i = 0; i < format->ncolumns; i++)
	{
		memcpy(&values[i], row + i * sizeof(Datum), sizeof(Datum));
		isnull[i] = false;
	}
}

extern void gpusort_row_format_unpack_columns(const GsRowFormat *format,
											  char *row,
											  const AttrNumber *attnos, int n,
											  Datum *values, bool *isnull);

/* Bytes of a row that has been written: the next one may follow there. */
extern Size gpusort_row_format_packed_length(const GsRowFormat *format,
											 char *row);

#endif							/* GPUSORT_ROW_FORMAT_H */
