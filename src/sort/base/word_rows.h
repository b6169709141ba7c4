/*-------------------------------------------------------------------------
 *
 * word_rows.h
 *		Sorted rows that lie in memory one behind the other, as words.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORD_ROWS_H
#define GPUSORT_WORD_ROWS_H

/*
 * Column i of row r, which is passed by value, is the Datum at
 * first + r * bytes + i * sizeof(Datum).
 */
typedef struct GsWordRows
{
	const char *first;
	Size		bytes;			/* of a row */
	uint32		nrows;

	/*
	 * Where a row has a byte that is 0 if none of its columns is NULL; 0 if
	 * no row has a NULL.
	 */
	Size		nulls;
} GsWordRows;

static inline const Datum *
gpusort_word_row(const GsWordRows *rows, uint32 r)
{
	return (const Datum *) (rows->first + r * rows->bytes);
}

static inline bool
gpusort_word_row_has_null(const GsWordRows *rows, uint32 r)
{
	return rows->nulls > 0 && rows->first[r * rows->bytes + rows->nulls] != 0;
}

#endif							/* GPUSORT_WORD_ROWS_H */
