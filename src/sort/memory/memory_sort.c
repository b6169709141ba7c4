/*-------------------------------------------------------------------------
 *
 * memory_sort.c
 *		A sort session in the backend's own memory.
 *
 * Encoded keys and packed rows are kept apart: an ordering sorts row numbers
 * by the keys, and rows are read from a row store in that order.
 *
 * That reading goes all over the memory of the rows, and so rows are fetched
 * into the cache some time before their turn.  (Spreading rows over partitions
 * by key range as they come in, so that reading stays within one, was tried:
 * see docs/experiments.md.)
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "core/radix_sort.h"
#include "settings.h"
#include "sort/memory/memory_sort.h"
#include "sort/memory/ordering.h"
#include "sort/memory/row_store.h"
#include "sort/memory/stock_ties.h"
#include "sort/memory/tie_sorter.h"

/*
 * Rows per chunk: about a part of those expected, and of those that can fit,
 * so that neither a small sort nor a small budget meets a large chunk.
 */
#define CHUNKS_EXPECTED		8
#define CHUNKS_IN_BUDGET	16
#define MIN_CHUNK_SHIFT		6
#define MAX_CHUNK_SHIFT		20

/* How many rows ahead rows are fetched into the cache. */
#define PREFETCH_ROWS		24

/* What sorting takes per row in addition to the key: an entry and scratch. */
#define ENTRY_BYTES			(2 * sizeof(uint64))

struct GsMemorySort
{
	const GsSortSpec *spec;
	GsBudget   *budget;
	unsigned	chunk_shift;
	GsOrdering *ordering;
	GsRowStore *store;
	uint64	   *entries;		/* after sorting */
	uint32		next_to_take;	/* while rows are taken */
	uint8	   *kept;			/* a bit for each row to be taken, or NULL for
								 * all; in the memory of 'entries' */
};

static Size
bytes_per_row(const GsSortSpec *spec)
{
	return gpusort_row_store_width(spec->tupdesc) + ENTRY_BYTES +
		gpusort_key_plan_words(spec->key_plan) * sizeof(uint64);
}

static unsigned
choose_chunk_shift(const GsSortSpec *spec, Size limit)
{
	double		rows = Min(spec->expected_rows / CHUNKS_EXPECTED,
						   (double) limit / bytes_per_row(spec) / CHUNKS_IN_BUDGET);
	unsigned	shift = MIN_CHUNK_SHIFT;

	while (shift < MAX_CHUNK_SHIFT && (double) (UINT64CONST(2) << shift) <= rows)
		shift++;
	return shift;
}

GsMemorySort *
gpusort_memory_sort_create(const GsSortSpec *spec, GsBudget *budget)
{
	GsMemorySort *session = palloc0(sizeof(GsMemorySort));

	session->spec = spec;
	session->budget = budget;
	/* Rows that are not wanted are dropped before the budget ends. */
	if (spec->bound == 0)
		gpusort_budget_use_arena(budget);
	session->chunk_shift = choose_chunk_shift(spec, budget->limit);
	session->ordering =
		gpusort_ordering_create(budget,
								gpusort_key_plan_words(spec->key_plan),
								session->chunk_shift,
								gpusort_key_plan_nulls_first(spec->key_plan));
	session->store = gpusort_row_store_create(budget, spec->tupdesc,
											  session->chunk_shift);
	return session;
}

void
gpusort_memory_sort_set_capacity(GsMemorySort *session, double rows)
{
	if (rows < PG_UINT32_MAX)
		gpusort_ordering_set_capacity(session->ordering, (uint32) rows);
}

bool
gpusort_memory_sort_put(GsMemorySort *session, const Datum *values,
						const bool *isnull)
{
	uint64	   *key = gpusort_ordering_next_key(session->ordering);
	bool		null_key;

	if (key == NULL)
		return false;
	null_key = !gpusort_key_plan_encode(session->spec->key_plan, values, isnull,
										key);
	return gpusort_row_store_put(session->store, values, isnull) &&
		gpusort_ordering_add(session->ordering, null_key);
}

GsFallback
gpusort_memory_sort_refusal(const GsMemorySort *session)
{
	if (session->budget->out_of_memory)
		return GS_FALLBACK_OUT_OF_MEMORY;
	if (gpusort_ordering_is_full(session->ordering))
		return GS_FALLBACK_ROW_COUNT;
	return GS_FALLBACK_WORK_MEM;
}

Size
gpusort_memory_sort_bytes(const GsMemorySort *session)
{
	return session->budget->used;
}

void
gpusort_memory_sort_reserve(GsMemorySort *session, Size bytes)
{
	(void) gpusort_budget_reserve(session->budget, bytes);
}

int64
gpusort_memory_sort_count(const GsMemorySort *session)
{
	return gpusort_ordering_count(session->ordering);
}

bool
gpusort_memory_sort_sort(GsMemorySort *session)
{
	GsTieSorter *ties = gpusort_tie_sorter_create(session->spec,
												  session->store);

	if (!gpusort_ordering_sort(session->ordering,
							   ties != NULL ? gpusort_tie_sorter_sort : NULL,
							   ties))
		return false;
	session->entries = gpusort_ordering_entries(session->ordering);
	return true;
}

void
gpusort_memory_sort_apply_stock_ties(GsMemorySort *session)
{
	gpusort_stock_ties_apply(session->ordering, session->store,
							 session->spec->tupdesc, &session->spec->keys);
}

/* Fetch rows into the cache that come some positions later. */
static inline void
prefetch(const GsMemorySort *session, int64 position)
{
	const uint64 *entry = session->entries + position;
	int64		left = gpusort_ordering_count(session->ordering) - position;

	if (left > PREFETCH_ROWS)
	{
		gpusort_row_store_prefetch(session->store,
								   (uint32) entry[PREFETCH_ROWS]);
		gpusort_row_store_prefetch_elsewhere(session->store,
											 (uint32) entry[PREFETCH_ROWS / 2]);
	}
}

void
gpusort_memory_sort_get(GsMemorySort *session, int64 position,
						Datum *values, bool *isnull)
{
	prefetch(session, position);
	gpusort_row_store_get(session->store, (uint32) session->entries[position],
						  values, isnull);
}

Size
gpusort_memory_sort_packed_size(GsMemorySort *session, int64 position)
{
	prefetch(session, position);
	return gpusort_row_store_packed_size(session->store,
										 (uint32) session->entries[position]);
}

void
gpusort_memory_sort_pack(GsMemorySort *session, int64 position, char *packed,
						 Size bytes)
{
	gpusort_row_store_pack(session->store, (uint32) session->entries[position],
						   packed, bytes);
}

void
gpusort_memory_sort_keep_first(GsMemorySort *session, uint32 count)
{
	uint32		nrows = gpusort_ordering_count(session->ordering);

	/* The entries of the other rows have room for the bits of all. */
	Assert((Size) (nrows - count) * sizeof(uint64) >= nrows / 8 + 1);
	session->kept = (uint8 *) (session->entries + count);
	memset(session->kept, 0, nrows / 8 + 1);
	for (uint32 i = 0; i < count; i++)
	{
		uint32		row = (uint32) session->entries[i];

		session->kept[row / 8] |= 1 << row % 8;
	}
}

/* Free what the session has of a chunk; sorting has freed the keys. */
static void
free_chunk(GsMemorySort *session, uint32 chunk)
{
	if (session->kept == NULL)
		gpusort_ordering_free_chunk(session->ordering, chunk);
	gpusort_row_store_free_chunk(session->store, chunk);
}

bool
gpusort_memory_sort_take(GsMemorySort *session, Datum *values, bool *isnull)
{
	uint32		chunk_rows = UINT32_C(1) << session->chunk_shift;
	uint32		row;

	do
	{
		row = session->next_to_take;

		/* The row before was the last of its chunk, which is done with. */
		if (row > 0 && row % chunk_rows == 0)
			free_chunk(session, row / chunk_rows - 1);
		if (row == gpusort_ordering_count(session->ordering))
			return false;
		session->next_to_take++;
	} while (session->kept != NULL &&
			 (session->kept[row / 8] & 1 << row % 8) == 0);
	gpusort_row_store_get(session->store, row, values, isnull);
	return true;
}

double
gpusort_memory_sort_estimate(unsigned words, double rows, int row_width)
{
	return rows * (MAXALIGN(row_width) + ENTRY_BYTES + words * sizeof(uint64));
}
