/*-------------------------------------------------------------------------
 *
 * ordering.c
 *		Collects the encoded keys of rows and sorts the rows by them.
 *
 * Keys are stored in chunks.  Thus adding a key never copies earlier ones, and
 * the chunks can be freed one by one while the rows are moved to another sort.
 * Along with each chunk we reserve the memory that sorting its rows will need, so
 * that the sort cannot exceed its budget once all rows have been added.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "service/fault.h"
#include "sort/memory/ordering.h"
#include "work.h"

/* Bytes that the radix sort processes between two callbacks. */
#define BLOCK_BYTES			32768

/* Bytes per row of the two arrays that sorting needs: entries and scratch. */
#define SORT_BYTES_PER_ROW	(2 * sizeof(uint64))

#define MIN_CHUNKS			16

struct GsOrdering
{
	GsBudget   *budget;
	unsigned	words;
	unsigned	chunk_shift;
	bool		nulls_first;

	uint32		nrows;
	uint32		capacity;		/* no chunk is added at this many rows */
	uint32		nchunks;
	uint32		max_chunks;		/* length of the arrays of chunks */
	uint64	  **chunks;
	uint8	  **null_keys;		/* for each chunk a bitmap of rows with NULL
								 * keys, or NULL if it has none */
	uint64	   *next_key;		/* of the next row, if before chunk_end */
	uint64	   *chunk_end;		/* of the last chunk */

	uint32		nnull_keys;		/* number of rows with NULL keys */

	uint64	   *scratch;		/* exists while sorting */
	uint64	   *entries;		/* exists after sorting */
};

static inline Size
chunk_rows(const GsOrdering *ordering)
{
	return (Size) 1 << ordering->chunk_shift;
}

static inline Size
chunk_bytes(const GsOrdering *ordering)
{
	return chunk_rows(ordering) * ordering->words * sizeof(uint64);
}

GsOrdering *
gpusort_ordering_create(GsBudget *budget, unsigned words,
						unsigned chunk_shift, bool nulls_first)
{
	GsOrdering *ordering = palloc0(sizeof(GsOrdering));

	ordering->budget = budget;
	ordering->words = words;
	ordering->chunk_shift = chunk_shift;
	ordering->nulls_first = nulls_first;
	ordering->capacity = PG_UINT32_MAX;
	return ordering;
}

/* Make sure that the arrays of chunks have space for one more. */
static bool
enlarge_arrays(GsOrdering *ordering)
{
	uint32		more = Max(MIN_CHUNKS, 2 * ordering->max_chunks);
	Size		old_bytes = ordering->max_chunks * sizeof(void *);
	void	   *chunks;
	void	   *null_keys;

	if (ordering->nchunks < ordering->max_chunks)
		return true;
	chunks = gpusort_budget_enlarge(ordering->budget, ordering->chunks,
									old_bytes, more * sizeof(void *));
	if (chunks == NULL)
		return false;
	ordering->chunks = chunks;
	null_keys = gpusort_budget_enlarge(ordering->budget, ordering->null_keys,
									   old_bytes, more * sizeof(void *));
	if (null_keys == NULL)
		return false;
	ordering->null_keys = null_keys;
	ordering->max_chunks = more;
	return true;
}

static bool
add_chunk(GsOrdering *ordering)
{
	Size		sort_bytes = chunk_rows(ordering) * SORT_BYTES_PER_ROW;
	uint64	   *chunk;

	/* Several processes may have to place the keys in ranges. */
	if (ordering->budget->shared != NULL)
		sort_bytes += chunk_bytes(ordering);
	if (!enlarge_arrays(ordering) ||
		!gpusort_budget_reserve(ordering->budget,
								chunk_bytes(ordering) + sort_bytes))
		return false;
	chunk = gpusort_budget_alloc(ordering->budget, chunk_bytes(ordering));
	if (chunk == NULL)
		return false;
	ordering->chunks[ordering->nchunks] = chunk;
	ordering->null_keys[ordering->nchunks] = NULL;
	ordering->nchunks++;
	ordering->next_key = chunk;
	ordering->chunk_end = chunk + chunk_rows(ordering) * ordering->words;
	return true;
}

void
gpusort_ordering_set_capacity(GsOrdering *ordering, uint32 rows)
{
	ordering->capacity = rows;
}

uint64 *
gpusort_ordering_next_key(GsOrdering *ordering)
{
	if (unlikely(ordering->next_key == ordering->chunk_end) &&
		(ordering->nrows >= ordering->capacity ||
		 gpusort_ordering_is_full(ordering) || !add_chunk(ordering)))
		return NULL;
	return ordering->next_key;
}

/* Note that the next row has a NULL key. */
static bool
mark_null_key(GsOrdering *ordering)
{
	Size		bytes = (chunk_rows(ordering) + 7) / 8;
	Size		within = ordering->nrows & (chunk_rows(ordering) - 1);
	uint8	  **bits = &ordering->null_keys[ordering->nchunks - 1];

	if (*bits == NULL)
	{
		if (!gpusort_budget_reserve(ordering->budget, bytes))
			return false;
		*bits = gpusort_budget_alloc(ordering->budget, bytes);
		if (*bits == NULL)
			return false;
		memset(*bits, 0, bytes);
	}
	(*bits)[within / 8] |= 1 << within % 8;
	ordering->nnull_keys++;
	return true;
}

bool
gpusort_ordering_add(GsOrdering *ordering, bool null_key)
{
	if (null_key && !mark_null_key(ordering))
		return false;
	ordering->nrows++;
	ordering->next_key += ordering->words;
	return true;
}

uint32
gpusort_ordering_count(const GsOrdering *ordering)
{
	return ordering->nrows;
}

bool
gpusort_ordering_is_full(const GsOrdering *ordering)
{
	return (uint64) ordering->nrows + chunk_rows(ordering) >
		gpusort_fault_host_rows(GPUSORT_MAX_ROWS);
}

uint32
gpusort_ordering_fill_entries(const GsOrdering *ordering, uint32 first, uint32 count,
							  uint64 *regular, uint64 *null_keys)
{
	uint64	   *start = regular;

	for (uint32 i = 0; i < count; i++)
	{
		uint32		row = first + i;
		const uint8 *bits = ordering->null_keys[row >> ordering->chunk_shift];
		Size		within = row & (chunk_rows(ordering) - 1);

		if (i % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
		gpusort_work_add(sizeof(uint64));
		if (bits != NULL && (bits[within / 8] & 1 << within % 8) != 0)
			*null_keys++ = row;
		else
			*regular++ = row;
	}
	return regular - start;
}

void
gpusort_ordering_check_interrupts(void)
{
	gpusort_work_add(BLOCK_BYTES);
	CHECK_FOR_INTERRUPTS();
}

GsKeyTable
gpusort_ordering_key_table(const GsOrdering *ordering)
{
	return (GsKeyTable)
	{
		.chunks = (const uint64_t *const *) ordering->chunks,
			.chunk_shift = ordering->chunk_shift,
			.words = ordering->words
	};
}

uint64 *
gpusort_ordering_key(const GsOrdering *ordering, uint32 row)
{
	return ordering->chunks[row >> ordering->chunk_shift] +
		(row & (chunk_rows(ordering) - 1)) * ordering->words;
}

void
gpusort_ordering_sort_some(GsOrdering *ordering, uint64 *entries, uint32 count)
{
	GsKeyTable	keys = gpusort_ordering_key_table(ordering);

	gpusort_radix_sort(&keys, (uint64_t *) entries, (uint64_t *) ordering->scratch,
					   count, gpusort_ordering_check_interrupts);
}

uint64 *
gpusort_ordering_scratch(const GsOrdering *ordering)
{
	return ordering->scratch;
}

/* Sort rows by their regular keys.  All rows need no entries before. */
static void
sort_all_rows(GsOrdering *ordering)
{
	GsKeyTable	keys = gpusort_ordering_key_table(ordering);

	gpusort_radix_sort_all(&keys, (uint64_t *) ordering->entries,
						   (uint64_t *) ordering->scratch, ordering->nrows,
						   gpusort_ordering_check_interrupts);
}

/* Sort the entries of rows with NULL keys, and those of the others. */
static void
sort_entries(GsOrdering *ordering, uint32 first, uint32 count, GsTiesCallback ties,
			 void *arg)
{
	uint64	   *regular = ordering->entries;
	uint64	   *null_keys = ordering->entries;
	uint32		nregular = count;

	if (ordering->nnull_keys == 0 && count == ordering->nrows)
		sort_all_rows(ordering);
	else
	{
		nregular = gpusort_ordering_fill_entries(ordering, first, count, ordering->entries,
												 ordering->scratch);
		if (ordering->nulls_first)
		{
			regular += count - nregular;
			memmove(regular, ordering->entries, nregular * sizeof(uint64));
		}
		else
			null_keys += nregular;
		memcpy(null_keys, ordering->scratch, (count - nregular) * sizeof(uint64));
		gpusort_ordering_sort_some(ordering, regular, nregular);
		gpusort_ordering_sort_some(ordering, null_keys, count - nregular);
	}
	if (ties != NULL)
	{
		ties(ordering, regular, nregular, arg);
		ties(ordering, null_keys, count - nregular, arg);
	}
}

/* Allocate the entries of rows, and scratch space.  Returns false if there is no memory. */
static bool
allocate_entries(GsOrdering *ordering, Size bytes)
{
	/* Those of the rows before are no longer needed. */
	if (ordering->entries != NULL)
		gpusort_budget_free(ordering->budget, ordering->entries);
	ordering->entries = gpusort_budget_alloc(ordering->budget, bytes);
	if (ordering->entries == NULL)
		return false;
	ordering->scratch = gpusort_budget_alloc(ordering->budget, bytes);
	if (ordering->scratch != NULL)
		return true;
	gpusort_budget_free(ordering->budget, ordering->entries);
	ordering->entries = NULL;
	return false;
}

bool
gpusort_ordering_sort(GsOrdering *ordering, uint32 first, uint32 count,
					  GsTiesCallback ties, void *arg)
{
	if (count == 0)
		return true;
	if (!allocate_entries(ordering, count * sizeof(uint64)))
		return false;
	sort_entries(ordering, first, count, ties, arg);
	gpusort_budget_free(ordering->budget, ordering->scratch);
	ordering->scratch = NULL;
	if (first + count == ordering->nrows)
		for (uint32 chunk = 0; chunk < ordering->nchunks; chunk++)
			gpusort_ordering_free_chunk(ordering, chunk);
	return true;
}

uint64 *
gpusort_ordering_entries(GsOrdering *ordering)
{
	return ordering->entries;
}

void
gpusort_ordering_free_chunk(GsOrdering *ordering, uint32 chunk)
{
	gpusort_budget_free(ordering->budget, ordering->chunks[chunk]);
	ordering->chunks[chunk] = NULL;
	if (ordering->null_keys[chunk] != NULL)
		gpusort_budget_free(ordering->budget, ordering->null_keys[chunk]);
	ordering->null_keys[chunk] = NULL;
}

/* ----------------------------------------------------------------
 *		keys of several processes
 * ----------------------------------------------------------------
 */

GsSharedKeys
gpusort_ordering_share(const GsOrdering *ordering)
{
	return (GsSharedKeys)
	{
		.chunks = ordering->chunks,
			.nchunks = ordering->nchunks,
			.nrows = ordering->nrows,
			.nnull_keys = ordering->nnull_keys
	};
}

GsOrdering *
gpusort_ordering_create_view(const GsSharedKeys *keys, int n, unsigned words,
							 unsigned chunk_shift)
{
	GsOrdering *view = palloc0(sizeof(GsOrdering));

	view->words = words;
	view->chunk_shift = chunk_shift;
	for (int p = 0; p < n; p++)
		view->max_chunks += keys[p].nchunks;
	view->chunks = palloc(Max(view->max_chunks, 1) * sizeof(uint64 *));
	for (int p = 0; p < n; p++)
	{
		if (keys[p].nchunks > 0)
			memcpy(view->chunks + view->nchunks, keys[p].chunks,
				   keys[p].nchunks * sizeof(uint64 *));
		view->nchunks += keys[p].nchunks;
	}
	return view;
}

void
gpusort_ordering_set_scratch(GsOrdering *ordering, uint64 *scratch)
{
	ordering->scratch = scratch;
}
