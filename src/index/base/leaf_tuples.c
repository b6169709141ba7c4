/*-------------------------------------------------------------------------
 *
 * leaf_tuples.c
 *		Leaf tuples of an index, formed on their pages from the rows of a sort.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "storage/itemid.h"

#include "core/copy_bytes.h"
#include "core/prefetch.h"
#include "index/base/leaf_tuples.h"
#include "sort/base/row_format.h"
#include "sort/memory/shared_ranges.h"
#include "work.h"

/* ----------------------------------------------------------------
 *		values of a row
 * ----------------------------------------------------------------
 */

static inline Datum
word_of(const GsLeafColumn *column, const char *row)
{
	Datum		word;

	memcpy(&word, row + column->row_offset, sizeof(word));
	return word;
}

/* Where a value is that is passed by reference. */
static inline const char *
address_of(const GsLeafColumn *column, const char *row)
{
	uint32		offset = column->row_offset;

	if (column->tuple.length < 0)
		memcpy(&offset, row + offset, sizeof(offset));
	return row + offset;
}

static inline Datum
value_of(const GsLeafColumn *column, const char *row)
{
	return column->tuple.byval ? word_of(column, row) : PointerGetDatum(address_of(column, row));
}

void
gpusort_leaf_values(const GsLeafForm *form, const char *row, Datum *values)
{
	for (int i = 0; i < form->ncolumns; i++)
		values[i] = value_of(&form->columns[i], row);
	memcpy(&values[form->ncolumns], row + form->tid_offset, sizeof(Datum));
}

/* Has a value of variable length a header of one byte, and is not elsewhere? */
static inline bool
is_short(const char *value)
{
	return VARATT_IS_SHORT(value) && !VARATT_IS_EXTERNAL(value);
}

static inline GsHeapRow
heap_row_of(const GsLeafForm *form, const char *row)
{
	Datum		tid;

	memcpy(&tid, row + form->tid_offset, sizeof(tid));
	return gpusort_leaf_unpack_tid(tid);
}

ItemPointerData
gpusort_leaf_tid(const GsLeafForm *form, const char *row)
{
	return heap_row_of(form, row).tid;
}

/* Returns the size of a row's tuple, or 0 if it is not formed here. */
static inline Size
tuple_size(const GsLeafForm *form, const char *row)
{
	Size		size = MAXALIGN(sizeof(IndexTupleData));

	for (int i = 0; i < form->ncolumns; i++)
	{
		const GsLeafColumn *column = &form->columns[i];

		if (column->tuple.length < 0)
		{
			const char *value = address_of(column, row);

			if (!is_short(value))
				return 0;
			size += VARSIZE_SHORT(value);
		}
		else
			size = TYPEALIGN(column->tuple.align, size) + column->tuple.length;
	}
	size = MAXALIGN(size);
	return size <= GPUSORT_LEAF_TUPLE_BYTES ? size : 0;
}

static pg_attribute_always_inline Size
key_bytes_of(const GsLeafForm *form, const GsRowsInPlace *rows, GsRowPlace place)
{
	if (place.number >= rows->nrows || gpusort_place_has_null(rows, place) ||
		(form->unique && !heap_row_of(form, place.row).alive))
		return 0;
	return form->size > 0 ? form->size : tuple_size(form, place.row);
}

Size
gpusort_leaf_key_bytes(const GsLeafForm *form, const GsRowsInPlace *rows, GsRowPlace place)
{
	return key_bytes_of(form, rows, place);
}

/* Prefetch a row that will be looked at soon.  Another processor may just have written it. */
static inline void
fetch_ahead(const GsRowsInPlace *rows, GsRowPlace place)
{
	if (rows->addresses == NULL)
		gpusort_prefetch(place.row + GPUSORT_PLACE_BYTES_AHEAD);
	else if (place.number + GPUSORT_PLACE_ROWS_AHEAD < rows->nrows)
		gpusort_prefetch(rows->addresses[place.number + GPUSORT_PLACE_ROWS_AHEAD]);
}

/* Are so many bytes equal?  Mostly the first ones tell. */
static inline bool
bytes_are_equal(const char *a, const char *b, Size length)
{
	uint64		first_a;
	uint64		first_b;

	if (length < sizeof(uint64))
		return memcmp(a, b, length) == 0;
	memcpy(&first_a, a, sizeof(uint64));
	memcpy(&first_b, b, sizeof(uint64));
	return first_a == first_b && memcmp(a, b, length) == 0;
}

static pg_attribute_always_inline bool
keys_are_equal(const GsLeafForm *form, const char *a, const char *b)
{
	for (int i = 0; i < form->nkeys; i++)
	{
		const GsLeafColumn *column = &form->columns[i];

		if (column->tuple.byval)
		{
			if (((word_of(column, a) ^ word_of(column, b)) & column->bits) != 0)
				return false;
		}
		else
		{
			const char *value = address_of(column, a);
			const char *other = address_of(column, b);
			Size		length = column->tuple.length >= 0 ? column->tuple.length :
				VARSIZE_SHORT(value);

			/* The first byte of a varlena has its length. */
			if (*value != *other || !bytes_are_equal(value, other, length))
				return false;
		}
	}
	return true;
}

/* Rows that become one tuple. */
typedef struct GsLeafGroup
{
	GsRowPlace	first;
	uint32		nrows;
	Size		key_bytes;		/* of the tuple without a posting list */
	Size		size;			/* of the tuple */
	bool		closed;			/* false if the row after them may belong to
								 * them, or equal them in a unique index */
	GsRowPlace	next;			/* the row after them */
	Size		next_key_bytes; /* of its tuple, as above */
} GsLeafGroup;

/* Returns the group that begins with a row, whose tuple has key_bytes bytes. */
static pg_attribute_always_inline GsLeafGroup
find_group(const GsLeafForm *form, const GsRowsInPlace *rows, GsRowPlace first,
		   Size key_bytes)
{
	GsRowPlace	next = gpusort_next_place(rows, first);
	Size		next_key_bytes = key_bytes_of(form, rows, next);
	uint32		n = 1;
	bool		closed = true;

	if (form->unique)
		closed = next_key_bytes > 0 && !keys_are_equal(form, first.row, next.row);
	else if (form->deduplicate)
		while (gpusort_posting_fits(key_bytes, n + 1))
		{
			closed = next_key_bytes > 0;
			if (!closed || !keys_are_equal(form, first.row, next.row))
				break;
			n++;
			next = gpusort_next_place(rows, next);
			next_key_bytes = key_bytes_of(form, rows, next);
		}
	return (GsLeafGroup)
	{
		.first = first,
			.nrows = n,
			.key_bytes = key_bytes,
			.size = n == 1 ? key_bytes : MAXALIGN(key_bytes + n * sizeof(ItemPointerData)),
			.closed = closed,
			.next = next,
			.next_key_bytes = next_key_bytes
	};
}

/* ----------------------------------------------------------------
 *		the form
 * ----------------------------------------------------------------
 */

static Datum
value_bits(Form_pg_attribute att)
{
	if (!att->attbyval)
		return 0;
	return att->attlen == sizeof(Datum) ? ~(Datum) 0 :
		((Datum) 1 << (8 * att->attlen)) - 1;
}

bool
gpusort_leaf_form_init(GsLeafForm *form, Relation index, const GsSortSpec *spec,
					   bool deduplicate, bool unique)
{
	TupleDesc	columns = RelationGetDescr(index);
	GsRowFormat *format = gpusort_row_format_create(spec);
	bool		varies = false;

	memset(form, 0, sizeof(*form));
	form->ncolumns = columns->natts;
	form->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	form->deduplicate = deduplicate;
	form->unique = unique;
	form->tid_offset = format->columns[columns->natts].offset;
	for (int i = 0; i < form->ncolumns; i++)
	{
		Form_pg_attribute att = TupleDescAttr(columns, i);

		form->columns[i] = (GsLeafColumn)
		{
			.tuple = gpusort_tuple_column(columns, i),
				.row_offset = format->columns[i].offset,
				.bits = value_bits(att)
		};
		if (form->columns[i].tuple.length < -1)
			return false;
		varies |= form->columns[i].tuple.length < 0;
	}
	gpusort_row_format_free(format);
	if (!varies)
		form->size = tuple_size(form, NULL);
	return varies || form->size > 0;
}

/* ----------------------------------------------------------------
 *		tuples
 * ----------------------------------------------------------------
 */

void
gpusort_leaf_form_tuple(const GsLeafForm *form, const char *row, IndexTuple tuple)
{
	char	   *end = (char *) tuple + MAXALIGN(sizeof(IndexTupleData));
	unsigned short variable = 0;

	for (int i = 0; i < form->ncolumns; i++)
	{
		const GsLeafColumn *column = &form->columns[i];

		end = gpusort_put_value(&column->tuple, end, value_of(column, row));
		if (column->tuple.length < 0)
			variable = INDEX_VAR_MASK;
	}
	tuple->t_info = (unsigned short) MAXALIGN(end - (char *) tuple) | variable;
	tuple->t_tid = gpusort_leaf_tid(form, row);
}

void
gpusort_posting_finish(IndexTuple tuple, Size key_bytes, uint32 ntids)
{
	Size		bytes = key_bytes + ntids * sizeof(ItemPointerData);
	Size		size = MAXALIGN(bytes);

	memset((char *) tuple + bytes, 0, size - bytes);
	tuple->t_info = (tuple->t_info & ~INDEX_SIZE_MASK) | size;
	BTreeTupleSetPosting(tuple, ntids, key_bytes);
}

/* ----------------------------------------------------------------
 *		pages
 * ----------------------------------------------------------------
 */

/* Form the tuple of a group at an offset of the page, and set its line pointer. */
static inline void
form_group(const GsLeafForm *form, const GsRowsInPlace *rows, const GsLeafGroup *group,
		   Page page, ItemId item, unsigned offset)
{
	IndexTuple	tuple = (IndexTuple) ((char *) page + offset);
	GsRowPlace	place = group->first;

	ItemIdSetNormal(item, offset, group->size);
	gpusort_leaf_form_tuple(form, place.row, tuple);
	if (group->nrows > 1)
	{
		ItemPointer tids = (ItemPointer) ((char *) tuple + group->key_bytes);

		for (uint32 i = 0; i < group->nrows; i++)
		{
			tids[i] = gpusort_leaf_tid(form, place.row);
			place = gpusort_next_place(rows, place);
		}
		gpusort_posting_finish(tuple, group->key_bytes, group->nrows);
	}
}

void
gpusort_page_fill(const GsLeafForm *form, GsLeafFill *fill, Page page)
{
	const GsRowsInPlace *rows = &fill->rows;
	GsRowPlace	place = gpusort_first_place(rows);
	ItemId		item = &((PageHeader) page)->pd_linp[fill->item];
	unsigned	upper = fill->upper;
	Size		key_bytes;

	if (rows->nrows == 0)
		return;
	key_bytes = key_bytes_of(form, rows, place);
	while (place.number < rows->nrows)
	{
		GsLeafGroup group = find_group(form, rows, place, key_bytes);

		upper -= group.size;
		form_group(form, rows, &group, page, item++, upper);
		place = group.next;
		key_bytes = group.next_key_bytes;
	}
	gpusort_work_add(rows->nrows * GPUSORT_WORK_ROW);
	fill->rows.nrows = 0;
}

/* Returns the n-th row after one, of rows of the same length. */
static inline GsRowPlace
place_after(const GsRowsInPlace *rows, GsRowPlace place, uint32 n)
{
	return (GsRowPlace)
	{
		place.row + n * rows->row_bytes, place.number + n
	};
}

/*
 * For speed: of rows of the same length, whose tuples have the same length as well, returns how
 * many from one on become a tuple each, up to 'most'.
 */
static uint32
count_singles(const GsLeafForm *form, const GsRowsInPlace *rows, GsRowPlace place, uint32 most)
{
	const GsLeafColumn *column = &form->columns[0];
	Size		row_bytes = rows->row_bytes;
	uint32		null_offset = rows->null_offset;
	const char *row = place.row;
	Datum		value;
	uint32		n = 0;

	/* One key is compared, and the row after the last one must be there. */
	if (form->size == 0 || row_bytes == 0 || rows->nulls != NULL || form->nkeys != 1 ||
		!column->tuple.byval || place.number + 1 >= rows->nrows)
		return 0;
	most = Min(most, rows->nrows - 1 - place.number);
	value = word_of(column, row);
	while (n < most)
	{
		const char *next_row = row + row_bytes;
		Datum		next = word_of(column, next_row);

		if ((null_offset > 0 && (row[null_offset] | next_row[null_offset]) != 0) ||
			((value ^ next) & column->bits) == 0 ||
			(form->unique && !heap_row_of(form, row).alive))
			break;
		gpusort_prefetch(row + GPUSORT_PLACE_BYTES_AHEAD);
		row = next_row;
		value = next;
		n++;
	}
	return n;
}

/* Begin to collect tuples that are formed later. */
static void
open_leaf(GsLeafPage *leaf, Page page, const GsRowsInPlace *rows, int64 position,
		  GsRowPlace place)
{
	PageHeader	header = (PageHeader) page;

	leaf->rows = *rows;
	leaf->open.rows = gpusort_rows_from_place(rows, place, 0);
	leaf->open.position = position + place.number;
	leaf->open.item = (header->pd_lower - SizeOfPageHeaderData) / sizeof(ItemIdData);
	leaf->open.upper = header->pd_upper;
}

bool
gpusort_leaf_page_add(GsLeafPage *leaf, Page page, GsPageRoom *room, const GsLeafForm *form,
					  const GsRowsInPlace *rows, int64 position, GsRowPlace *place)
{
	PageHeader	header = (PageHeader) page;
	GsRowPlace	next = *place;
	GsRowPlace	last = leaf->last;
	GsRowPlace	before = leaf->before;
	Size		key_bytes = key_bytes_of(form, rows, next);
	int			lower = header->pd_lower;
	int			upper = header->pd_upper;
	bool		full = false;

	if (leaf->ngroups == 0)
		open_leaf(leaf, page, rows, position, next);
	while (key_bytes > 0)
	{
		uint32		fitting = gpusort_page_count_fitting(room, lower, upper, key_bytes);
		uint32		n = count_singles(form, rows, next, fitting);
		GsLeafGroup group;

		if (n > 0)
		{
			room->last_posting = 0;
			lower += n * sizeof(ItemIdData);
			upper -= n * key_bytes;
			leaf->ngroups += n;
			before = n > 1 ? place_after(rows, next, n - 2) : last;
			last = place_after(rows, next, n - 1);
			next = place_after(rows, next, n);
			key_bytes = key_bytes_of(form, rows, next);
			continue;
		}
		group = find_group(form, rows, next, key_bytes);
		fetch_ahead(rows, next);
		full = !gpusort_page_has_room(room, lower, upper, group.size);
		if (full || !group.closed)
			break;
		room->last_posting = group.size - key_bytes;
		lower += sizeof(ItemIdData);
		upper -= group.size;
		leaf->ngroups++;
		before = last;
		last = next;
		next = group.next;
		key_bytes = group.next_key_bytes;
	}
	leaf->open.rows.nrows += next.number - place->number;
	leaf->last = last;
	leaf->before = before;
	header->pd_lower = lower;
	header->pd_upper = upper;
	gpusort_work_add((next.number - place->number) * GPUSORT_WORK_ROW);
	*place = next;
	return full;
}

/* Form the last tuple of the open ones, which is at an offset.  Returns its end. */
static unsigned
form_last(GsLeafPage *leaf, Page page, const GsLeafForm *form, GsRowPlace place,
		  unsigned offset)
{
	const GsRowsInPlace *rows = &leaf->rows;
	ItemId		item = &((PageHeader) page)->pd_linp[leaf->open.item + --leaf->ngroups];
	GsLeafGroup group = find_group(form, rows, place, key_bytes_of(form, rows, place));

	form_group(form, rows, &group, page, item, offset);
	leaf->open.rows.nrows -= group.nrows;
	return offset + group.size;
}

void
gpusort_leaf_page_close(GsLeafPage *leaf, Page page, const GsLeafForm *form, bool defer)
{
	unsigned	offset = ((PageHeader) page)->pd_upper;

	if (leaf->ngroups > 0)
		offset = form_last(leaf, page, form, leaf->last, offset);
	if (leaf->ngroups > 0)
		form_last(leaf, page, form, leaf->before, offset);
	if (leaf->ngroups > 0)
	{
		/* Few pages have a second stretch of rows. */
		gpusort_page_fill(form, &leaf->later, page);
		leaf->later = leaf->open;
		leaf->ngroups = 0;
	}
	if (!defer)
		gpusort_page_fill(form, &leaf->later, page);
}
