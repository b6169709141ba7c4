/*-------------------------------------------------------------------------
 *
 * dense_row.h
 *		The form of rows in files: with as few bytes as possible.
 *
 * A dense row has no alignment, and follows the one before it without a gap.  It has
 *
 *	* the NULL bitmap, the columns of the fixed part that are not NULL, and the values
 *	  of variable length; or
 *	* for a whole tuple its length, in 2 bytes or, if it is long, in 4, and what a
 *	  MinimalTuple has from t_infomask2 on.
 *
 * Before it can be used, it is expanded to a packed row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DENSE_ROW_H
#define GPUSORT_DENSE_ROW_H

#include "sort/base/row_format.h"

/*
 * Returns the size of the dense form of a row, and writes it, which takes that many bytes.
 * The row is stored or packed: its values of variable length begin at 'start', which is
 * fixed_bytes or packed_bytes.  'bitmap' is as in gpusort_row_format_read().  Padding bytes
 * may be undefined, so the result may go to a file, but not to other processes.
 */
extern Size gpusort_dense_row_size(const GsRowFormat *format, char *row,
								   const uint8 *bitmap, Size start);
extern void gpusort_dense_row_write(const GsRowFormat *format, char *row,
									const uint8 *bitmap, Size start,
									char *dense);

/* Memory for a packed row, a multiple of MAXIMUM_ALIGNOF.  All bytes are 0 at first. */
typedef struct GsRowBuffer
{
	MemoryContext context;		/* set by its owner */
	char	   *row;			/* NULL at first */
	Size		room;
} GsRowBuffer;

/* Make room for a row of 'bytes' bytes, and return where it is.  Keeps what is there. */
extern char *gpusort_row_buffer_reserve(GsRowBuffer *buffer, Size bytes);

/*
 * Expand a dense row to a packed row in the buffer, whose address is returned, and set
 * *bytes to the size of the dense row.
 */
extern char *gpusort_dense_row_expand(const GsRowFormat *format,
									  const char *dense, GsRowBuffer *buffer,
									  Size *bytes);

/* The same, inline for the most common rows: a few words without NULLs. */
static inline char *
gpusort_dense_row_expand_fast(const GsRowFormat *format, const char *dense,
							  GsRowBuffer *buffer, Size *bytes)
{
	if (unlikely(!format->only_words || format->null_bytes != 1 ||
				 dense[0] != 0 || buffer->row == NULL))
		return gpusort_dense_row_expand(format, dense, buffer, bytes);
	for (int i = 0; i < format->ncolumns; i++)
		memcpy(buffer->row + i * sizeof(Datum),
			   dense + 1 + i * sizeof(Datum), sizeof(Datum));
	buffer->row[format->columns_bytes] = 0;
	*bytes = 1 + format->columns_bytes;
	return buffer->row;
}

#endif							/* GPUSORT_DENSE_ROW_H */
