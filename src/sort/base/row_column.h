/*-------------------------------------------------------------------------
 *
 * row_column.h
 *		The columns of a row format, for the files that read and write rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_COLUMN_H
#define GPUSORT_ROW_COLUMN_H

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

#endif							/* GPUSORT_ROW_COLUMN_H */
