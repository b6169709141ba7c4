/*-------------------------------------------------------------------------
 *
 * tie_comparisons.c
 *		Sorts ties by the comparators of their sort keys.
 *
 * This is a merge sort, which needs fewer comparisons than other algorithms, and
 * only one per row if the rows are in order already.  Rows that compare as equal
 * form a block, which later merges treat as a single row.  Thus few comparisons
 * are needed also if there are many duplicates of few values.  The high halves of
 * the first and the last entry of a block contain its length.
 *
 * Comparators detoast a value each time they are called with it, which can take
 * longer than everything else.  We therefore detoast the first sort key of a row
 * before merging the row, and use the copy for all comparisons of that merge.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "utils/memutils.h"

#include "key/key_comparison.h"
#include "sort/memory/tie_sorter.h"
#include "work.h"

/* Up to this many rows are sorted by insertion. */
#define INSERTION_ROWS		8

/* The memory that comparators leak is freed after this many comparisons. */
#define COMPARISONS_PER_RESET	256

/* The sort keys of a row. */
typedef struct GsTieRow
{
	uint32		number;
	bool		is_equal;		/* to the previous row, once inserted */
	Datum	   *values;			/* nkeys */
	bool	   *isnull;
	struct varlena *copy;		/* detoasted first value, or NULL */
} GsTieRow;

struct GsTieComparisons
{
	MemoryContext context;
	MemoryContext copies;		/* for detoasted values */
	MemoryContext scratch;		/* for what comparators leak */
	const GsSortKeys *keys;
	TupleDesc	tupdesc;
	const GsRowStore *store;
	GsKeyComparison *comparison;	/* NULL until it is needed */
	uint32		ncompared;
	GsTieRow	rows[INSERTION_ROWS];

	/* The sort in progress. */
	int			first;			/* range of sort keys */
	int			end;
	bool		copies_pay;		/* are values of the first key toasted? */
};

GsTieComparisons *
gpusort_tie_comparisons_create(const GsSortSpec *spec,
							   const GsRowStore *store)
{
	GsTieComparisons *comparisons = palloc0(sizeof(GsTieComparisons));
	int			nkeys = spec->keys.nkeys;

	comparisons->context = CurrentMemoryContext;
	comparisons->copies = AllocSetContextCreate(CurrentMemoryContext,
												"pg_gpusort values",
												ALLOCSET_SMALL_SIZES);
	comparisons->scratch = AllocSetContextCreate(CurrentMemoryContext,
												 "pg_gpusort comparisons",
												 ALLOCSET_SMALL_SIZES);
	comparisons->keys = &spec->keys;
	comparisons->tupdesc = spec->tupdesc;
	comparisons->store = store;
	for (int i = 0; i < INSERTION_ROWS; i++)
	{
		comparisons->rows[i].values = palloc(nkeys * sizeof(Datum));
		comparisons->rows[i].isnull = palloc(nkeys * sizeof(bool));
	}
	return comparisons;
}

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

/* Is the first sort key a varlena that is not NULL? */
static inline bool
is_varlena(const GsTieComparisons *comparisons, const GsTieRow *row)
{
	AttrNumber	attno = comparisons->keys->attnos[comparisons->first];

	return TupleDescAttr(comparisons->tupdesc, attno - 1)->attlen == -1 &&
		!row->isnull[comparisons->first];
}

/* Must it be decompressed or fetched before it can be compared? */
static inline bool
is_toasted(const GsTieComparisons *comparisons, const GsTieRow *row)
{
	Datum		value = row->values[comparisons->first];
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);

	return is_varlena(comparisons, row) &&
		(VARATT_IS_COMPRESSED(varlena) || VARATT_IS_EXTERNAL(varlena));
}

/* Returns how many bytes of it a comparison may read. */
static inline Size
bytes_to_compare(const GsTieComparisons *comparisons, const GsTieRow *row)
{
	return is_varlena(comparisons, row) ?
		toast_raw_datum_size(row->values[comparisons->first]) : 0;
}

/* Read those sort keys of an entry's row that will be compared. */
static inline void
read_row(const GsTieComparisons *comparisons, uint64 entry, GsTieRow *row)
{
	const GsSortKeys *keys = comparisons->keys;
	int			first = comparisons->first;

	row->number = (uint32) entry;
	gpusort_row_store_get_columns(comparisons->store, row->number,
								  keys->attnos + first,
								  comparisons->end - first,
								  row->values + first, row->isnull + first);
}

static inline void
drop_copy(GsTieRow *row)
{
	if (row->copy != NULL)
		pfree(row->copy);
	row->copy = NULL;
}

/*
 * The same, but replace a toasted first value by a detoasted copy.  The caller must
 * call drop_copy() later.
 */
static inline void
read_and_copy(const GsTieComparisons *comparisons, uint64 entry,
			  GsTieRow *row)
{
	int			first = comparisons->first;
	MemoryContext caller;

	read_row(comparisons, entry, row);
	if (likely(!comparisons->copies_pay))
		return;
	drop_copy(row);
	if (!is_toasted(comparisons, row))
		return;
	gpusort_work_add(bytes_to_compare(comparisons, row));
	caller = MemoryContextSwitchTo(comparisons->copies);
	row->copy = detoast_attr((struct varlena *) DatumGetPointer(row->values[first]));
	row->values[first] = PointerGetDatum(row->copy);
	MemoryContextSwitchTo(caller);
}

static inline int
compare_rows(GsTieComparisons *comparisons, const GsTieRow *a,
			 const GsTieRow *b)
{
	CHECK_FOR_INTERRUPTS();
	if (++comparisons->ncompared % COMPARISONS_PER_RESET == 0)
		MemoryContextReset(comparisons->scratch);
	gpusort_work_add(bytes_to_compare(comparisons, a) +
					 bytes_to_compare(comparisons, b));
	return gpusort_key_comparison_compare(comparisons->comparison,
										  comparisons->first,
										  comparisons->end,
										  a->values, a->isnull,
										  b->values, b->isnull);
}

/* ----------------------------------------------------------------
 *		blocks of equal rows
 * ----------------------------------------------------------------
 */

/* Turn entries into a block. */
static inline void
make_block(uint64 *entries, uint32 length)
{
	uint64	   *last = &entries[length - 1];

	entries[0] = (uint64) length << 32 | (uint32) entries[0];
	*last = (uint64) length << 32 | (uint32) *last;
}

static inline uint32
block_length(uint64 entry)
{
	return gpusort_tie_comparisons_equal(entry);
}

/* Move a block, possibly to an overlapping address.  Returns the end of the copy. */
static inline uint64 *
move_block(uint64 *dest, const uint64 *block, uint32 length)
{
	if (length == 1)
		*dest = *block;
	else
		memmove(dest, block, length * sizeof(uint64));
	return dest + length;
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/* As those of SELECT DISTINCT over all columns are, if it has anything to do. */
static bool
are_same_rows(const GsTieComparisons *comparisons, const uint64 *entries, uint32 count)
{
	for (uint32 i = 1; i < count; i++)
		if (!gpusort_row_store_are_same_tuples(comparisons->store, (uint32) entries[0],
											   (uint32) entries[i]))
			return false;
	return true;
}

/* 'left' are the entries up to the end of the whole sort, whose rows are prefetched. */
static void
insertion_sort(GsTieComparisons *comparisons, uint64 *entries, uint32 count,
			   uint32 left)
{
	GsTieRow   *rows = comparisons->rows;
	uint32		length;

	if (are_same_rows(comparisons, entries, count))
	{
		make_block(entries, count);
		return;
	}
	for (uint32 i = 0; i < count; i++)
	{
		GsTieRow	row = rows[i];
		uint32		j = i;
		int			cmp = -1;

		gpusort_row_store_fetch_ahead(comparisons->store, entries + i, left - i);
		read_row(comparisons, entries[i], &row);
		while (j > 0 &&
			   (cmp = compare_rows(comparisons, &rows[j - 1], &row)) > 0)
		{
			rows[j] = rows[j - 1];
			j--;
		}
		row.is_equal = cmp == 0;
		rows[j] = row;
	}
	for (uint32 i = 0; i < count; i += length)
	{
		entries[i] = rows[i].number;
		for (length = 1; i + length < count && rows[i + length].is_equal;
			 length++)
			entries[i + length] = rows[i + length].number;
		make_block(entries + i, length);
	}
}

/*
 * Merge two sorted halves, of which the second one begins at 'middle'.  Its first
 * row has been read into rows[1].
 */
static void
merge_entries(GsTieComparisons *comparisons, uint64 *entries, uint32 middle,
			  uint32 count, uint64 *scratch)
{
	GsTieRow   *left = &comparisons->rows[0];
	GsTieRow   *right = &comparisons->rows[1];
	const uint64 *l = scratch;
	const uint64 *l_end = scratch + middle;
	const uint64 *r = entries + middle;
	const uint64 *r_end = entries + count;
	uint64	   *out = entries;

	memcpy(scratch, entries, middle * sizeof(uint64));
	read_and_copy(comparisons, *l, left);
	for (;;)
	{
		uint32		l_length = block_length(*l);
		uint32		r_length = block_length(*r);
		int			cmp = compare_rows(comparisons, left, right);
		uint64	   *block = out;

		if (cmp <= 0)
		{
			out = move_block(out, l, l_length);
			l += l_length;
		}
		if (cmp >= 0)
		{
			out = move_block(out, r, r_length);
			r += r_length;
		}
		if (cmp == 0)
			make_block(block, l_length + r_length);
		if (l == l_end || r == r_end)
			break;
		if (cmp <= 0)
			read_and_copy(comparisons, *l, left);
		if (cmp >= 0)
			read_and_copy(comparisons, *r, right);
	}
	/* Any remaining entries on the right are in place already. */
	memcpy(out, l, (l_end - l) * sizeof(uint64));
}

/* Join the last block before the middle with the first one after it. */
static void
join_blocks(uint64 *entries, uint32 middle)
{
	uint32		before = block_length(entries[middle - 1]);

	make_block(entries + middle - before,
			   before + block_length(entries[middle]));
}

static void
merge_sort(GsTieComparisons *comparisons, uint64 *entries, uint32 count,
		   uint32 left_in_all, uint64 *scratch)
{
	GsTieRow   *left = &comparisons->rows[0];
	GsTieRow   *right = &comparisons->rows[1];
	uint32		middle = count / 2;
	int			cmp;

	if (count == 1)
	{
		make_block(entries, 1);
		return;
	}
	/* An insertion sort would need too much memory for detoasted copies. */
	if (count <= INSERTION_ROWS && !comparisons->copies_pay)
	{
		insertion_sort(comparisons, entries, count, left_in_all);
		return;
	}
	merge_sort(comparisons, entries, middle, left_in_all, scratch);
	merge_sort(comparisons, entries + middle, count - middle,
			   left_in_all - middle, scratch);
	read_and_copy(comparisons, entries[middle - 1], left);
	read_and_copy(comparisons, entries[middle], right);
	cmp = compare_rows(comparisons, left, right);
	if (cmp == 0)
		join_blocks(entries, middle);
	else if (cmp > 0)
		merge_entries(comparisons, entries, middle, count, scratch);
	drop_copy(left);
	drop_copy(right);
}

/* Prepare to compare entries.  Returns the caller's memory context. */
static MemoryContext
begin(GsTieComparisons *comparisons, const uint64 *entries, int first, int end)
{
	MemoryContext caller = MemoryContextSwitchTo(comparisons->context);

	if (comparisons->comparison == NULL)
		comparisons->comparison =
			gpusort_key_comparison_create(comparisons->keys);
	comparisons->first = first;
	comparisons->end = end;
	read_row(comparisons, entries[0], &comparisons->rows[0]);
	comparisons->copies_pay = is_toasted(comparisons, &comparisons->rows[0]);
	MemoryContextSwitchTo(comparisons->scratch);
	return caller;
}

static void
end_comparisons(GsTieComparisons *comparisons, MemoryContext caller)
{
	MemoryContextSwitchTo(caller);
	MemoryContextReset(comparisons->scratch);
}

void
gpusort_tie_comparisons_sort(GsTieComparisons *comparisons, uint64 *entries,
							 uint32 count, uint64 *scratch, int first, int end)
{
	MemoryContext caller = begin(comparisons, entries, first, end);

	merge_sort(comparisons, entries, count, count, scratch);
	end_comparisons(comparisons, caller);
}

bool
gpusort_tie_comparisons_in_order(GsTieComparisons *comparisons,
								 const uint64 *entries, uint32 count,
								 int first)
{
	MemoryContext caller = begin(comparisons, entries, first,
								 comparisons->keys->nkeys);
	GsTieRow   *before = &comparisons->rows[0];
	GsTieRow   *row = &comparisons->rows[1];
	uint32		i;

	read_and_copy(comparisons, entries[0], before);
	for (i = 1; i < count; i++)
	{
		GsTieRow   *swap = before;

		read_and_copy(comparisons, entries[i], row);
		if (compare_rows(comparisons, before, row) > 0)
			break;
		before = row;
		row = swap;
	}
	drop_copy(before);
	drop_copy(row);
	end_comparisons(comparisons, caller);
	return i == count;
}
