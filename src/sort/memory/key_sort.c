/*-------------------------------------------------------------------------
 *
 * key_sort.c
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
#include "sort/memory/key_sort.h"
#include "work.h"

/* Bytes that the radix sort processes between two callbacks. */
#define BLOCK_BYTES			32768

/* Bytes per row of the two arrays that sorting needs: entries and scratch. */
#define SORT_BYTES_PER_ROW	(2 * sizeof(uint64))

#define MIN_CHUNKS			16

struct GsKeySort
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
chunk_rows(const GsKeySort *key_sort)
{
	return (Size) 1 << key_sort->chunk_shift;
}

static inline Size
chunk_bytes(const GsKeySort *key_sort)
{
	return chunk_rows(key_sort) * key_sort->words * sizeof(uint64);
}

GsKeySort *
gpusort_key_sort_create(GsBudget *budget, unsigned words,
						unsigned chunk_shift, bool nulls_first, uint32 capacity)
{
	GsKeySort  *key_sort = palloc0(sizeof(GsKeySort));

	key_sort->budget = budget;
	key_sort->words = words;
	key_sort->chunk_shift = chunk_shift;
	key_sort->nulls_first = nulls_first;
	key_sort->capacity = capacity;
	return key_sort;
}

/* Make sure that the arrays of chunks have space for one more. */
static bool
enlarge_arrays(GsKeySort *key_sort)
{
	uint32		more = Max(MIN_CHUNKS, 2 * key_sort->max_chunks);
	Size		old_bytes = key_sort->max_chunks * sizeof(void *);
	void	   *chunks;
	void	   *null_keys;

	if (key_sort->nchunks < key_sort->max_chunks)
		return true;
	chunks = gpusort_budget_enlarge(key_sort->budget, key_sort->chunks,
									old_bytes, more * sizeof(void *));
	if (chunks == NULL)
		return false;
	key_sort->chunks = chunks;
	null_keys = gpusort_budget_enlarge(key_sort->budget, key_sort->null_keys,
									   old_bytes, more * sizeof(void *));
	if (null_keys == NULL)
		return false;
	key_sort->null_keys = null_keys;
	key_sort->max_chunks = more;
	return true;
}

static bool
add_chunk(GsKeySort *key_sort)
{
	Size		sort_bytes = chunk_rows(key_sort) * SORT_BYTES_PER_ROW;
	uint64	   *chunk;

	/* Several processes may have to place the keys in ranges. */
	if (key_sort->budget->shared != NULL)
		sort_bytes += chunk_bytes(key_sort);
	if (!enlarge_arrays(key_sort) ||
		!gpusort_budget_reserve(key_sort->budget,
								chunk_bytes(key_sort) + sort_bytes))
		return false;
	chunk = gpusort_budget_alloc(key_sort->budget, chunk_bytes(key_sort));
	if (chunk == NULL)
		return false;
	key_sort->chunks[key_sort->nchunks] = chunk;
	key_sort->null_keys[key_sort->nchunks] = NULL;
	key_sort->nchunks++;
	key_sort->next_key = chunk;
	key_sort->chunk_end = chunk + chunk_rows(key_sort) * key_sort->words;
	return true;
}

uint64 *
gpusort_key_sort_next_key(GsKeySort *key_sort)
{
	if (unlikely(key_sort->next_key == key_sort->chunk_end) &&
		(key_sort->nrows >= key_sort->capacity ||
		 gpusort_key_sort_is_full(key_sort) || !add_chunk(key_sort)))
		return NULL;
	return key_sort->next_key;
}

/* Note that the next row has a NULL key. */
static bool
mark_null_key(GsKeySort *key_sort)
{
	Size		bytes = (chunk_rows(key_sort) + 7) / 8;
	Size		within = key_sort->nrows & (chunk_rows(key_sort) - 1);
	uint8	  **bits = &key_sort->null_keys[key_sort->nchunks - 1];

	if (*bits == NULL)
	{
		if (!gpusort_budget_reserve(key_sort->budget, bytes))
			return false;
		*bits = gpusort_budget_alloc(key_sort->budget, bytes);
		if (*bits == NULL)
			return false;
		memset(*bits, 0, bytes);
	}
	(*bits)[within / 8] |= 1 << within % 8;
	key_sort->nnull_keys++;
	return true;
}

bool
gpusort_key_sort_add(GsKeySort *key_sort, bool null_key)
{
	if (null_key && !mark_null_key(key_sort))
		return false;
	key_sort->nrows++;
	key_sort->next_key += key_sort->words;
	return true;
}

uint32
gpusort_key_sort_count(const GsKeySort *key_sort)
{
	return key_sort->nrows;
}

bool
gpusort_key_sort_is_full(const GsKeySort *key_sort)
{
	uint32		fault_rows = gpusort_fault_host("rows");

	return (uint64) key_sort->nrows + chunk_rows(key_sort) >
		(fault_rows > 0 ? fault_rows : GPUSORT_MAX_ROWS);
}

uint32
gpusort_key_sort_fill_entries(const GsKeySort *key_sort, uint32 first, uint32 count,
							  uint64 *regular, uint64 *null_keys)
{
	uint64	   *start = regular;

	for (uint32 i = 0; i < count; i++)
	{
		uint32		row = first + i;
		const uint8 *bits = key_sort->null_keys[row >> key_sort->chunk_shift];
		Size		within = row & (chunk_rows(key_sort) - 1);

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
gpusort_key_sort_check_interrupts(void)
{
	gpusort_work_add(BLOCK_BYTES);
	CHECK_FOR_INTERRUPTS();
}

GsKeyTable
gpusort_key_sort_key_table(const GsKeySort *key_sort)
{
	return (GsKeyTable)
	{
		.chunks = (const uint64_t *const *) key_sort->chunks,
			.chunk_shift = key_sort->chunk_shift,
			.words = key_sort->words
	};
}

uint64 *
gpusort_key_sort_key(const GsKeySort *key_sort, uint32 row)
{
	return key_sort->chunks[row >> key_sort->chunk_shift] +
		(row & (chunk_rows(key_sort) - 1)) * key_sort->words;
}

void
gpusort_key_sort_some(GsKeySort *key_sort, uint64 *entries, uint32 count)
{
	GsKeyTable	keys = gpusort_key_sort_key_table(key_sort);

	gpusort_radix_sort(&keys, (uint64_t *) entries, (uint64_t *) entries,
					   (uint64_t *) key_sort->scratch, count, gpusort_key_sort_check_interrupts);
}

uint64 *
gpusort_key_sort_scratch(const GsKeySort *key_sort)
{
	return key_sort->scratch;
}

/* Sort rows by their regular keys.  All rows need no entries before. */
static void
sort_all_rows(GsKeySort *key_sort)
{
	GsKeyTable	keys = gpusort_key_sort_key_table(key_sort);

	gpusort_radix_sort(&keys, NULL, (uint64_t *) key_sort->entries,
					   (uint64_t *) key_sort->scratch, key_sort->nrows,
					   gpusort_key_sort_check_interrupts);
}

/* Sort the entries of rows with NULL keys, and those of the others. */
static void
sort_entries(GsKeySort *key_sort, uint32 first, uint32 count, GsTiesCallback ties,
			 void *arg)
{
	uint64	   *regular = key_sort->entries;
	uint64	   *null_keys = key_sort->entries;
	uint32		nregular = count;

	if (key_sort->nnull_keys == 0 && count == key_sort->nrows)
		sort_all_rows(key_sort);
	else
	{
		nregular = gpusort_key_sort_fill_entries(key_sort, first, count, key_sort->entries,
												 key_sort->scratch);
		if (key_sort->nulls_first)
		{
			regular += count - nregular;
			memmove(regular, key_sort->entries, nregular * sizeof(uint64));
		}
		else
			null_keys += nregular;
		memcpy(null_keys, key_sort->scratch, (count - nregular) * sizeof(uint64));
		gpusort_key_sort_some(key_sort, regular, nregular);
		gpusort_key_sort_some(key_sort, null_keys, count - nregular);
	}
	if (ties != NULL)
	{
		ties(key_sort, regular, nregular, arg);
		ties(key_sort, null_keys, count - nregular, arg);
	}
}

/* Allocate the entries of rows, and scratch space.  Returns false if there is no memory. */
static bool
allocate_entries(GsKeySort *key_sort, Size bytes)
{
	/* Those of the rows before are no longer needed. */
	if (key_sort->entries != NULL)
		gpusort_budget_free(key_sort->budget, key_sort->entries);
	key_sort->entries = gpusort_budget_alloc(key_sort->budget, bytes);
	if (key_sort->entries == NULL)
		return false;
	key_sort->scratch = gpusort_budget_alloc(key_sort->budget, bytes);
	if (key_sort->scratch != NULL)
		return true;
	gpusort_budget_free(key_sort->budget, key_sort->entries);
	key_sort->entries = NULL;
	return false;
}

bool
gpusort_key_sort_range(GsKeySort *key_sort, uint32 first, uint32 count,
					   GsTiesCallback ties, void *arg)
{
	if (count == 0)
		return true;
	if (!allocate_entries(key_sort, count * sizeof(uint64)))
		return false;
	sort_entries(key_sort, first, count, ties, arg);
	gpusort_budget_free(key_sort->budget, key_sort->scratch);
	key_sort->scratch = NULL;
	if (first + count == key_sort->nrows)
		for (uint32 chunk = 0; chunk < key_sort->nchunks; chunk++)
			gpusort_key_sort_free_chunk(key_sort, chunk);
	return true;
}

uint64 *
gpusort_key_sort_entries(GsKeySort *key_sort)
{
	return key_sort->entries;
}

void
gpusort_key_sort_free_chunk(GsKeySort *key_sort, uint32 chunk)
{
	gpusort_budget_free(key_sort->budget, key_sort->chunks[chunk]);
	key_sort->chunks[chunk] = NULL;
	if (key_sort->null_keys[chunk] != NULL)
		gpusort_budget_free(key_sort->budget, key_sort->null_keys[chunk]);
	key_sort->null_keys[chunk] = NULL;
}

/* ----------------------------------------------------------------
 *		keys of several processes
 * ----------------------------------------------------------------
 */

GsSharedKeys
gpusort_key_sort_share(const GsKeySort *key_sort)
{
	return (GsSharedKeys)
	{
		.chunks = key_sort->chunks,
			.nchunks = key_sort->nchunks,
			.nrows = key_sort->nrows,
			.nnull_keys = key_sort->nnull_keys
	};
}

GsKeySort *
gpusort_key_sort_create_view(const GsSharedKeys *keys, int n, unsigned words,
							 unsigned chunk_shift)
{
	GsKeySort  *view = palloc0(sizeof(GsKeySort));

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
gpusort_key_sort_set_scratch(GsKeySort *key_sort, uint64 *scratch)
{
	key_sort->scratch = scratch;
}
