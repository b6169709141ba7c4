/*-------------------------------------------------------------------------
 *
 * memory_sort.c
 *		Sorts rows in the backend's own memory.
 *
 * Encoded keys and packed rows are stored separately.  A key sort sorts row
 * numbers by the keys, and the rows are then read from a row store in that order.
 *
 * This accesses the memory of the rows at random, so we prefetch each row some
 * time before it is read.  (Distributing incoming rows over partitions by key
 * range, so that reading stays within one partition, was tried: see
 * docs/experiments.md.)
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "core/radix_sort.h"
#include "settings.h"
#include "sort/base/tuple_rows.h"
#include "sort/memory/memory_sort.h"
#include "sort/memory/tie_sorter.h"

/*
 * A chunk has a fraction of the rows expected, and of the rows that fit into the
 * budget, so that small sorts and small budgets do not get large chunks.
 */
#define CHUNKS_EXPECTED		8
#define CHUNKS_IN_BUDGET	16
#define MIN_CHUNK_SHIFT		6
#define MAX_CHUNK_SHIFT		20

/* Bytes per row that sorting needs besides the key: an entry and scratch space. */
#define ENTRY_BYTES			(2 * sizeof(uint64))

struct GsMemorySort
{
	const GsSortSpec *spec;
	GsBudget   *budget;
	unsigned	chunk_shift;
	GsKeySort  *key_sort;
	GsRowStore *store;
	uint64	   *entries;		/* after sorting, of so many rows */
	uint32		nsorted;
	uint32		next_to_take;	/* while rows are taken */
	uint8	   *kept;			/* a bit for each row that may be taken, or
								 * NULL for all; shares memory with 'entries' */
};

/*
 * With a bound, a memory sort is full when it has this many times the rows that are
 * wanted, and at least MIN_CUT_ROWS.  With a larger multiple, fewer rows are sorted
 * twice if the input comes in descending order; with a smaller one, the cutoff is known
 * earlier.  If N of M rows in random order are wanted, about N * (4 + ln(M / 4N)) are
 * kept at some time.
 */
#define CUT_MULTIPLE		4
#define MIN_CUT_ROWS		4096

double
gpusort_memory_sort_capacity(const GsSortSpec *spec)
{
	return spec->bound == 0 ? PG_UINT32_MAX :
		Min(Max((double) spec->bound * CUT_MULTIPLE, MIN_CUT_ROWS), PG_UINT32_MAX);
}

static Size
bytes_per_row(const GsSortSpec *spec)
{
	return gpusort_row_store_width(spec) + ENTRY_BYTES +
		gpusort_key_plan_words(spec->key_plan) * sizeof(uint64);
}

unsigned
gpusort_memory_sort_choose_shift(const GsSortSpec *spec, Size limit,
								 int processes)
{
	double		expected = Min(spec->expected_rows, gpusort_memory_sort_capacity(spec));
	double		rows = Min(expected / CHUNKS_EXPECTED,
						   (double) limit / bytes_per_row(spec) / CHUNKS_IN_BUDGET) /
		processes;
	unsigned	shift = MIN_CHUNK_SHIFT;

	while (shift < MAX_CHUNK_SHIFT && (double) (UINT64CONST(2) << shift) <= rows)
		shift++;
	return shift;
}

GsMemorySort *
gpusort_memory_sort_create(const GsSortSpec *spec, GsBudget *budget, unsigned chunk_shift)
{
	GsMemorySort *sort = palloc0(sizeof(GsMemorySort));
	double		capacity = gpusort_memory_sort_capacity(spec);

	sort->spec = spec;
	sort->budget = budget;
	sort->chunk_shift = chunk_shift > 0 ? chunk_shift :
		gpusort_memory_sort_choose_shift(spec, budget->limit, 1);
	sort->key_sort =
		gpusort_key_sort_create(budget,
								gpusort_key_plan_words(spec->key_plan),
								sort->chunk_shift,
								gpusort_key_plan_nulls_first(spec->key_plan),
								budget->shared == NULL ? (uint32) capacity : PG_UINT32_MAX);
	sort->store = gpusort_row_store_create(budget, spec,
										   sort->chunk_shift);
	return sort;
}

GsKeySort *
gpusort_memory_sort_keys(GsMemorySort *sort)
{
	return sort->key_sort;
}

GsRowStore *
gpusort_memory_sort_store(GsMemorySort *sort)
{
	return sort->store;
}

GsBudget *
gpusort_memory_sort_budget(GsMemorySort *sort)
{
	return sort->budget;
}

bool
gpusort_memory_sort_put(GsMemorySort *sort, const Datum *values,
						const bool *isnull)
{
	uint64	   *key = gpusort_key_sort_next_key(sort->key_sort);
	bool		null_key;

	if (key == NULL)
		return false;
	null_key = !gpusort_key_plan_encode(sort->spec->key_plan, values, isnull,
										key);
	return gpusort_row_store_put(sort->store, values, isnull) &&
		gpusort_key_sort_add(sort->key_sort, null_key);
}

GsReason
gpusort_memory_sort_refusal(const GsMemorySort *sort)
{
	if (sort->budget->out_of_memory)
		return GS_REASON_OUT_OF_MEMORY;
	if (gpusort_key_sort_is_full(sort->key_sort))
		return GS_REASON_ROW_COUNT;
	return GS_REASON_WORK_MEM;
}

Size
gpusort_memory_sort_bytes(const GsMemorySort *sort)
{
	return sort->budget->used;
}

int64
gpusort_memory_sort_count(const GsMemorySort *sort)
{
	return gpusort_key_sort_count(sort->key_sort);
}

bool
gpusort_memory_sort_sort(GsMemorySort *sort, uint32 first, uint32 least, uint32 *sorted)
{
	GsTieSorter *ties = gpusort_tie_sorter_create(sort->spec, sort->store);
	uint32		left = gpusort_key_sort_count(sort->key_sort) - first;

	for (uint32 count = left; count >= least; count /= 2)
	{
		if (gpusort_key_sort_range(sort->key_sort, first, count,
								   ties != NULL ? gpusort_tie_sorter_sort : NULL, ties))
		{
			sort->entries = gpusort_key_sort_entries(sort->key_sort);
			*sorted = sort->nsorted = count;
			return true;
		}
	}
	return false;
}

/* Prefetch rows at somewhat higher positions. */
static inline void
prefetch(const GsMemorySort *sort, int64 position)
{
	gpusort_row_store_fetch_ahead(sort->store, sort->entries + position,
								  sort->nsorted - position);
}

void
gpusort_memory_sort_get(GsMemorySort *sort, int64 position,
						Datum *values, bool *isnull)
{
	prefetch(sort, position);
	gpusort_row_store_get(sort->store, (uint32) sort->entries[position],
						  values, isnull);
}

char *
gpusort_memory_sort_find(GsMemorySort *sort, int64 position, const uint8 **bitmap)
{
	prefetch(sort, position);
	return gpusort_row_store_find(sort->store, (uint32) sort->entries[position], bitmap, NULL);
}

void
gpusort_memory_sort_keep_first(GsMemorySort *sort, uint32 count)
{
	uint32		nrows = gpusort_key_sort_count(sort->key_sort);

	/* The entries of the other rows provide the space for the bits. */
	Assert((Size) (nrows - count) * sizeof(uint64) >= nrows / 8 + 1);
	sort->kept = (uint8 *) (sort->entries + count);
	memset(sort->kept, 0, nrows / 8 + 1);
	for (uint32 i = 0; i < count; i++)
	{
		uint32		row = (uint32) sort->entries[i];

		sort->kept[row / 8] |= 1 << row % 8;
	}
}

/* Free a chunk's rows, and its keys unless sorting has freed them already. */
static void
free_chunk(GsMemorySort *sort, uint32 chunk)
{
	if (sort->kept == NULL)
		gpusort_key_sort_free_chunk(sort->key_sort, chunk);
	gpusort_row_store_free_chunk(sort->store, chunk);
}

bool
gpusort_memory_sort_take(GsMemorySort *sort, Datum *values, bool *isnull)
{
	uint32		chunk_rows = UINT32_C(1) << sort->chunk_shift;
	uint32		row;

	do
	{
		row = sort->next_to_take;

		/* If the previous row was the last one of its chunk, free that. */
		if (row > 0 && row % chunk_rows == 0)
			free_chunk(sort, row / chunk_rows - 1);
		if (row == gpusort_key_sort_count(sort->key_sort))
			return false;
		sort->next_to_take++;
	} while (sort->kept != NULL &&
			 (sort->kept[row / 8] & 1 << row % 8) == 0);
	gpusort_row_store_get(sort->store, row, values, isnull);
	gpusort_tuple_row_get_keys(sort->spec, values, isnull);
	return true;
}

double
gpusort_memory_sort_estimate(unsigned words, double rows, int row_width)
{
	return rows * (MAXALIGN(row_width) + ENTRY_BYTES + words * sizeof(uint64));
}
