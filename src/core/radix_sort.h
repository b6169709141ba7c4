/*-------------------------------------------------------------------------
 *
 * radix_sort.h
 *		Stable radix sort of row numbers by multi-word unsigned keys.
 *
 * This header knows nothing of PostgreSQL, so that it can be tested alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RADIX_SORT_H
#define GPUSORT_RADIX_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of 64 bits that one key can have. */
#define GPUSORT_CPU_MAX_KEY_WORDS	4

/* Rows that one sort can have: row numbers are 32 bits wide. */
#define GPUSORT_MAX_ROWS		UINT32_MAX

typedef enum GsSortStatus
{
	GS_SORT_DONE,
	GS_SORT_STOPPED				/* the stop callback asked for it */
} GsSortStatus;

/*
 * The keys of a set of rows.  The key of row r is the 'words' consecutive
 * words, most significant first, at
 *		chunks[r >> chunk_shift] + (r mod 2^chunk_shift) * words
 * so that rows can be collected in chunks of 2^chunk_shift rows.
 */
typedef struct GsKeyTable
{
	const uint64_t *const *chunks;
	unsigned	chunk_shift;	/* 0 to 32 */
	unsigned	words;			/* 1 to GPUSORT_CPU_MAX_KEY_WORDS */
} GsKeyTable;

/*
 * Asked every few ten thousand rows; true ends the sort at once.  It may as well not
 * return, but jump out of the sort, which holds nothing.
 */
typedef bool (*GsStopCallback) (void *arg);

static inline const uint64_t *
gpusort_key_of_row(const GsKeyTable *keys, uint32_t row)
{
	uint64_t	within = row & ((UINT64_C(1) << keys->chunk_shift) - 1);

	return keys->chunks[(uint64_t) row >> keys->chunk_shift] +
		within * keys->words;
}

/*
 * Sort 'count' entries by the keys of their rows, ascending and stable.
 *
 * The low 32 bits of an entry are its row number, any subset of the table's
 * rows in any order; the high 32 bits are ignored on input and undefined on
 * output.  'scratch' has room for 'count' entries; nothing else is allocated.
 * 'stop' may be NULL.
 *
 * After GS_SORT_STOPPED the entries hold no usable order and may repeat rows.
 */
extern GsSortStatus gpusort_radix_sort(const GsKeyTable *keys,
									   uint64_t *entries, uint64_t *scratch,
									   size_t count,
									   GsStopCallback stop, void *stop_arg);

/*
 * The same for the rows 0 to count - 1, all of them and in this order:
 * 'entries' need not be filled in.  This is the faster way, and it leaves most
 * of 'scratch' untouched unless the keys are skewed.
 */
extern GsSortStatus gpusort_radix_sort_all(const GsKeyTable *keys,
										   uint64_t *entries,
										   uint64_t *scratch, size_t count,
										   GsStopCallback stop,
										   void *stop_arg);

#endif							/* GPUSORT_RADIX_SORT_H */
