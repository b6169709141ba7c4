/*-------------------------------------------------------------------------
 *
 * radix_sort.c
 *		Stable radix sort of row numbers by multi-word unsigned keys.
 *
 * A key can be several 64-bit words wide, but most of its bits are usually the
 * same in all rows (ids below 2^27 in an int8, flags for "not NULL"), or follow
 * from the highest one (those between the sign and the digits of a small
 * number).  So one pass finds the bits that tell keys apart, and the sort uses
 * only those, packed into windows of up to 32 bits.  An entry is 8 bytes: the
 * window's value above the row number.
 *
 * Sorting by a window moves entries by one digit of the value at a time.  In
 * main memory a digit has at most 256 bins, because the first-level cache and
 * the TLB cannot keep up with more write streams.  If the input is all rows in
 * the order of their numbers, they are first distributed to bins by the
 * window's most significant digit, directly from the keys.  A bin then fits
 * the second-level cache, and is sorted there, least significant digit first.
 * In this way only as much of the scratch memory is touched as the largest bin
 * needs: page faults of newly allocated memory cost as much as the sorting.
 * Rows that already have another order are sorted least significant digit
 * first throughout, which keeps that order among equal values.
 *
 * A key with one window is sorted after that.  With more windows, each group of
 * rows with equal values of the most significant one is then sorted on its own,
 * by the bits that vary in it.  If nearly all values differ, the other windows
 * are never used: random int8 keys take four digits instead of eight.
 *
 * This file does not allocate memory.  The callback is called between blocks
 * of rows, also when these are copied.
 *
 *-------------------------------------------------------------------------
 */
#include "core/radix_sort.h"

#include <string.h>

#include "core/prefetch.h"

/* Bits of a digit when entries are moved in main memory, and in the cache. */
#define DIGIT_BITS			8
#define DIGIT_BINS			(1 << DIGIT_BITS)
#define CACHE_DIGIT_BITS	12
#define CACHE_DIGIT_BINS	(1 << CACHE_DIGIT_BITS)

/* Maximum number of digits in a window, with the narrower kind of digits. */
#define MAX_DIGITS			(GPUSORT_WINDOW_BITS / DIGIT_BITS)

/* Minimum number of rows for distributing them to bins first. */
#define SPREAD_FROM_ROWS	65536

/*
 * Number of entries that fit the second-level cache together with their
 * scratch memory.
 */
#define CACHE_ENTRIES		65536

/* Counting more bins than entries takes longer than another digit. */
#define FEW_ENTRIES			1024

/* Maximum length of a range to sort by insertion. */
#define INSERTION_LIMIT		32

/* Rows between two calls of the callback. */
#define LOOK_INTERVAL		65536

#define HIGHEST_BIT			(UINT64_C(1) << 63)

/* The lowest bit of an entry's value. */
#define VALUE_SHIFT			32

/*
 * Number of rows to prefetch keys ahead of their use, if the rows are not in
 * the order of their numbers.
 */
#define PREFETCH_DISTANCE	32

/* Arguments that all steps of one sort share. */
typedef struct Sorter
{
	const GsKeyTable *keys;
	GsLookCallback look;		/* or NULL */
} Sorter;

/* Rows, from 'start' to 'end' - 1, between two calls of the callback. */
typedef struct Block
{
	size_t		start;
	size_t		end;
} Block;

/* Where a loop over blocks begins: next_block() goes to the first one. */
static const Block no_rows = {0, 0};

/* In it the values of all rows are 0. */
static const GsKeyWindow no_bits = {.bits = 0};

static void sort_range(const Sorter *sorter, const uint64_t *source,
					   uint64_t *entries, uint64_t *scratch,
					   size_t count);

/* Check for interrupts before a block of rows. */
static inline void
look(const Sorter *sorter)
{
	if (sorter->look != NULL)
		sorter->look();
}

/* Go to the next block of 'count' rows.  Returns false after the last one. */
static inline bool
next_block(const Sorter *sorter, Block *block, size_t count)
{
	if (block->end == count)
		return false;
	look(sorter);
	block->start = block->end;
	block->end = count - block->start > LOOK_INTERVAL ?
		block->start + LOOK_INTERVAL : count;
	return true;
}

static inline const uint64_t *
entry_key(const Sorter *sorter, uint64_t entry)
{
	return gpusort_key_of_row(sorter->keys, (uint32_t) entry);
}

/*
 * Returns the row at index i of the input: an array of entries, or, if
 * 'source' is NULL, all rows from 0 on in the order of their numbers.
 */
static inline uint32_t
source_row(const uint64_t *source, size_t i)
{
	return source != NULL ? (uint32_t) source[i] : (uint32_t) i;
}

static inline const uint64_t *
source_key(const Sorter *sorter, const uint64_t *source, size_t i)
{
	return gpusort_key_of_row(sorter->keys, source_row(source, i));
}

/* Prefetch the key of a later row, if the rows have an order of their own. */
static inline void
prefetch_key(const Sorter *sorter, const uint64_t *source, size_t i, size_t count)
{
	if (source != NULL && i + PREFETCH_DISTANCE < count)
		gpusort_prefetch(source_key(sorter, source, i + PREFETCH_DISTANCE));
}

/* Returns how many bits are set in the words. */
static unsigned
count_bits(const uint64_t *words, unsigned nwords)
{
	unsigned	count = 0;

	for (unsigned w = 0; w < nwords; w++)
		count += (unsigned) __builtin_popcountll(words[w]);
	return count;
}

void
gpusort_key_bits_begin(GsKeyBits *bits)
{
	memset(bits->any, 0, sizeof(bits->any));
	memset(bits->all, 0xff, sizeof(bits->all));
}

/* Add keys whose highest bit is 'half'. */
static void
add_bits(GsKeyBits *bits, unsigned half, const uint64_t *any, const uint64_t *all)
{
	for (unsigned w = 0; w < GPUSORT_CPU_MAX_KEY_WORDS; w++)
	{
		bits->any[half][w] |= any[w];
		bits->all[half][w] &= all[w];
	}
}

void
gpusort_key_bits_add(GsKeyBits *bits, const GsKeyBits *other)
{
	for (unsigned half = 0; half < 2; half++)
		add_bits(bits, half, other->any[half], other->all[half]);
}

void
gpusort_key_bits_varying(const GsKeyBits *bits, unsigned words, uint64_t *varying)
{
	for (unsigned w = 0; w < words; w++)
		varying[w] = (bits->any[0][w] & ~bits->all[0][w]) | (bits->any[1][w] & ~bits->all[1][w]);
	varying[0] |= ~bits->all[0][0] & bits->any[1][0] & HIGHEST_BIT;
}

/* Add the keys of a block that has some with either highest bit. */
static void
collect_halves(const Sorter *sorter, const uint64_t *source, Block block, GsKeyBits *bits)
{
	unsigned	words = sorter->keys->words;

	for (size_t i = block.start; i < block.end; i++)
	{
		const uint64_t *key = source_key(sorter, source, i);
		uint64_t	upper = 0 - (key[0] >> 63); /* all bits, or none */

		for (unsigned w = 0; w < words; w++)
		{
			bits->any[0][w] |= key[w] & ~upper;
			bits->all[0][w] &= key[w] | upper;
			bits->any[1][w] |= key[w] & upper;
			bits->all[1][w] &= key[w] | ~upper;
		}
	}
}

/* Does a block with these bits vary in no others than what was there before, and the highest? */
static bool
varies_as_before(const GsKeyBits *bits, unsigned words, const uint64_t *any, const uint64_t *all)
{
	uint64_t	varying[GPUSORT_CPU_MAX_KEY_WORDS];
	uint64_t	others = 0;

	gpusort_key_bits_varying(bits, words, varying);
	varying[0] |= HIGHEST_BIT;
	for (unsigned w = 0; w < words; w++)
		others |= any[w] & ~all[w] & ~varying[w];
	return others == 0;
}

/* Add the keys of a block. */
static void
collect_block(const Sorter *sorter, const uint64_t *source, size_t count, Block block,
			  GsKeyBits *bits)
{
	unsigned	words = sorter->keys->words;
	uint64_t	any[GPUSORT_CPU_MAX_KEY_WORDS] = {0};
	uint64_t	all[GPUSORT_CPU_MAX_KEY_WORDS];

	memset(all, 0xff, sizeof(all));
	for (size_t i = block.start; i < block.end; i++)
	{
		const uint64_t *key = source_key(sorter, source, i);

		prefetch_key(sorter, source, i, count);
		for (unsigned w = 0; w < words; w++)
		{
			any[w] |= key[w];
			all[w] &= key[w];
		}
	}
	if (((any[0] ^ all[0]) & HIGHEST_BIT) == 0)
		add_bits(bits, all[0] >> 63, any, all);
	else if (!varies_as_before(bits, words, any, all))
		collect_halves(sorter, source, block, bits);
	else
	{
		/*
		 * What is the same in the block is so in both halves, the rest varies
		 * anyway.
		 */
		add_bits(bits, 0, any, all);
		add_bits(bits, 1, any, all);
	}
}

/* Find the bits by which the keys of some rows can be sorted. */
static void
find_varying_bits(const Sorter *sorter, const uint64_t *source, size_t count,
				  uint64_t *varying)
{
	GsKeyBits	bits;

	gpusort_key_bits_begin(&bits);
	for (Block block = no_rows; next_block(sorter, &block, count);)
		collect_block(sorter, source, count, block, &bits);
	gpusort_key_bits_varying(&bits, sorter->keys->words, varying);
}

bool
gpusort_key_window_make(const uint64_t *varying, unsigned words,
						GsKeyWindow *window)
{
	unsigned	count = count_bits(varying, words);
	unsigned	skip = count > GPUSORT_WINDOW_BITS ? count - GPUSORT_WINDOW_BITS : 0;
	unsigned	below = 0;

	window->bits = 0;
	window->nfields = 0;
	for (unsigned w = words; w-- > 0;)
	{
		GsBitField *field = NULL;	/* field of the previous bit, or NULL */

		for (unsigned bit = 0; bit < 64; bit++)
		{
			if (((varying[w] >> bit) & 1) == 0)
			{
				field = NULL;
				continue;
			}
			if (below++ < skip)
				continue;
			if (field == NULL)
			{
				field = &window->fields[window->nfields++];
				field->word = w;
				field->shift = bit;
				field->position = window->bits;
				field->mask = 0;
			}
			field->mask = (field->mask << 1) | 1;
			window->bits++;
		}
	}
	return skip > 0;
}

static inline uint64_t
make_entry(uint32_t value, uint32_t row)
{
	return (uint64_t) value << 32 | row;
}

/* Turn the sizes of bins into their start indexes. */
static void
start_bins(uint32_t *bins, unsigned nbins)
{
	uint32_t	next = 0;

	for (unsigned b = 0; b < nbins; b++)
	{
		uint32_t	size = bins[b];

		bins[b] = next;
		next += size;
	}
}

/*
 * Make entries of the rows, with their values.  Returns whether the values
 * ascend.  'loaded' may be 'source'.
 */
static bool
load_entries(const Sorter *sorter, const GsKeyWindow *window,
			 const uint64_t *source, uint64_t *loaded, size_t count)
{
	uint32_t	previous = 0;
	bool		ascending = true;

	for (Block block = no_rows; next_block(sorter, &block, count);)
		for (size_t i = block.start; i < block.end; i++)
		{
			uint32_t	row = source_row(source, i);
			uint32_t	value;

			prefetch_key(sorter, source, i, count);
			value = gpusort_key_window_value(window, gpusort_key_of_row(sorter->keys, row));
			loaded[i] = make_entry(value, row);
			ascending &= value >= previous;
			previous = value;
		}
	return ascending;
}

/* Count all digits of the entries' bits from 'shift' up in one pass. */
static void
count_digits(const Sorter *sorter, const uint64_t *entries, size_t count,
			 unsigned shift, unsigned digits, unsigned digit_bits,
			 uint32_t bins[MAX_DIGITS][CACHE_DIGIT_BINS])
{
	const uint32_t digit_mask = (UINT32_C(1) << digit_bits) - 1;

	for (unsigned d = 0; d < digits; d++)
		memset(bins[d], 0, sizeof(uint32_t) << digit_bits);
	for (Block block = no_rows; next_block(sorter, &block, count);)
		for (size_t i = block.start; i < block.end; i++)
		{
			uint32_t	value = (uint32_t) (entries[i] >> shift);

			for (unsigned d = 0; d < digits; d++)
				bins[d][(value >> (d * digit_bits)) & digit_mask]++;
		}
}

/* Move each entry to the next free index in the bin of its digit. */
static void
scatter_digit(const Sorter *sorter, const uint64_t *from, uint64_t *to,
			  size_t count, unsigned shift, unsigned digit_bits,
			  uint32_t *bins)
{
	const uint64_t digit_mask = (UINT64_C(1) << digit_bits) - 1;

	start_bins(bins, 1u << digit_bits);
	for (Block block = no_rows; next_block(sorter, &block, count);)
		for (size_t i = block.start; i < block.end; i++)
			to[bins[(from[i] >> shift) & digit_mask]++] = from[i];
}

static void
copy_entries(const Sorter *sorter, uint64_t *to, const uint64_t *from,
			 size_t count)
{
	for (Block block = no_rows; next_block(sorter, &block, count);)
		memcpy(to + block.start, from + block.start,
			   (block.end - block.start) * sizeof(uint64_t));
}

/* Sort entries by 'bits' of their bits, from 'shift' up, stably. */
static void
sort_entries(const Sorter *sorter, uint64_t *entries, uint64_t *scratch,
			 size_t count, unsigned shift, unsigned bits)
{
	uint32_t	bins[MAX_DIGITS][CACHE_DIGIT_BINS];
	bool		is_narrow = count < FEW_ENTRIES || count > CACHE_ENTRIES;
	unsigned	widest = is_narrow ? DIGIT_BITS : CACHE_DIGIT_BITS;
	unsigned	digits = (bits + widest - 1) / widest;
	unsigned	digit_bits;
	uint64_t   *from = entries;
	uint64_t   *to = scratch;

	if (bits == 0)
		return;
	digit_bits = (bits + digits - 1) / digits;
	count_digits(sorter, entries, count, shift, digits, digit_bits, bins);
	for (unsigned d = 0; d < digits; d++)
	{
		uint64_t   *swap = from;

		scatter_digit(sorter, from, to, count, shift + d * digit_bits,
					  digit_bits, bins[d]);
		from = to;
		to = swap;
	}
	if (from != entries)
		copy_entries(sorter, entries, from, count);
}

/*
 * Sort entries by their values and row numbers.  This is stable because the
 * row numbers differ, and ascend among equal values.
 */
static void
insertion_sort_entries(uint64_t *entries, size_t count)
{
	for (size_t i = 1; i < count; i++)
	{
		uint64_t	entry = entries[i];
		size_t		j = i;

		for (; j > 0 && entries[j - 1] > entry; j--)
			entries[j] = entries[j - 1];
		entries[j] = entry;
	}
}

/*
 * Count how many of the rows from 0 on have each value of the bits from
 * 'shift' up.  Returns whether the values ascend.
 */
static bool
count_rows(const Sorter *sorter, const GsKeyWindow *window, size_t count,
		   unsigned shift, uint32_t bins[DIGIT_BINS])
{
	uint32_t	previous = 0;
	bool		ascending = true;

	memset(bins, 0, DIGIT_BINS * sizeof(uint32_t));
	for (Block block = no_rows; next_block(sorter, &block, count);)
		for (size_t i = block.start; i < block.end; i++)
		{
			uint32_t	value = gpusort_key_window_value(window, source_key(sorter, NULL, i));

			bins[value >> shift]++;
			ascending &= value >= previous;
			previous = value;
		}
	return ascending;
}

/* Make entries of the rows from 0 on, each in its bin. */
static void
spread_rows(const Sorter *sorter, const GsKeyWindow *window, uint64_t *entries,
			size_t count, unsigned shift, uint32_t bins[DIGIT_BINS])
{
	start_bins(bins, DIGIT_BINS);
	for (Block block = no_rows; next_block(sorter, &block, count);)
		for (size_t i = block.start; i < block.end; i++)
		{
			uint32_t	value = gpusort_key_window_value(window, source_key(sorter, NULL, i));

			entries[bins[value >> shift]++] = make_entry(value, (uint32_t) i);
		}
}

/*
 * sort_by_window() for all rows from 0 on: distribute them to bins, then sort
 * each bin.
 */
static void
sort_rows_by_window(const Sorter *sorter, const GsKeyWindow *window,
					uint64_t *entries, uint64_t *scratch, size_t count)
{
	unsigned	shift = window->bits > DIGIT_BITS ? window->bits - DIGIT_BITS : 0;
	uint32_t	bins[DIGIT_BINS];
	size_t		start = 0;

	if (count_rows(sorter, window, count, shift, bins))
	{
		(void) load_entries(sorter, window, NULL, entries, count);
		return;
	}
	spread_rows(sorter, window, entries, count, shift, bins);

	/* spread_rows() has advanced each bin's start index to its end. */
	for (unsigned b = 0; b < DIGIT_BINS; b++)
	{
		size_t		size = bins[b] - start;

		if (size <= INSERTION_LIMIT)
			insertion_sort_entries(entries + start, size);
		else
			sort_entries(sorter, entries + start, scratch, size, VALUE_SHIFT, shift);
		start = bins[b];
	}
}

/*
 * Sort rows by one window, stably, into entries with its values.  'source' is
 * NULL or 'entries'.
 */
static void
sort_by_window(const Sorter *sorter, const GsKeyWindow *window,
			   const uint64_t *source, uint64_t *entries, uint64_t *scratch,
			   size_t count)
{
	if (source == NULL && count >= SPREAD_FROM_ROWS)
		sort_rows_by_window(sorter, window, entries, scratch, count);
	else if (!load_entries(sorter, window, source, entries, count))
		sort_entries(sorter, entries, scratch, count, VALUE_SHIFT, window->bits);
}

static inline int
compare_keys(const uint64_t *a, const uint64_t *b, unsigned words)
{
	for (unsigned w = 0; w < words; w++)
		if (a[w] != b[w])
			return a[w] < b[w] ? -1 : 1;
	return 0;
}

static void
insertion_sort(const Sorter *sorter, uint64_t *entries, size_t count)
{
	unsigned	words = sorter->keys->words;

	for (size_t i = 1; i < count; i++)
	{
		uint64_t	entry = entries[i];
		const uint64_t *key = entry_key(sorter, entry);
		size_t		j = i;

		for (; j > 0; j--)
		{
			if (compare_keys(entry_key(sorter, entries[j - 1]), key, words) <= 0)
				break;
			entries[j] = entries[j - 1];
		}
		entries[j] = entry;
	}
}

/* Has the next entry the same value? */
static inline bool
in_same_run(const uint64_t *entry)
{
	return gpusort_entry_value(entry[0]) == gpusort_entry_value(entry[1]);
}

/*
 * Sort each group of entries with equal values of the most significant window.
 */
static void
finish_runs(const Sorter *sorter, uint64_t *entries, uint64_t *scratch,
			size_t count)
{
	size_t		start = 0;

	for (size_t i = 0; i < count; i++)
	{
		size_t		later = i + PREFETCH_DISTANCE;

		if (i % LOOK_INTERVAL == 0)
			look(sorter);
		if (later + 1 < count && in_same_run(entries + later))
		{
			gpusort_prefetch(entry_key(sorter, entries[later]));
			gpusort_prefetch(entry_key(sorter, entries[later + 1]));
		}
		if (i + 1 < count && in_same_run(entries + i))
			continue;
		if (i > start)
			sort_range(sorter, entries + start, entries + start, scratch,
					   i + 1 - start);
		start = i + 1;
	}
}

/* Sort rows into entries, stably.  'source' is NULL or 'entries'. */
static void
sort_range(const Sorter *sorter, const uint64_t *source, uint64_t *entries,
		   uint64_t *scratch, size_t count)
{
	uint64_t	varying[GPUSORT_CPU_MAX_KEY_WORDS];
	GsKeyWindow window;
	bool		more;

	if (count <= INSERTION_LIMIT)
	{
		if (source == NULL)
			(void) load_entries(sorter, &no_bits, NULL, entries, count);
		insertion_sort(sorter, entries, count);
		return;
	}
	find_varying_bits(sorter, source, count, varying);
	more = gpusort_key_window_make(varying, sorter->keys->words, &window);
	if (window.bits == 0 && source != NULL)
		return;					/* all keys are equal */
	sort_by_window(sorter, &window, source, entries, scratch, count);
	if (more)
		finish_runs(sorter, entries, scratch, count);
}

void
gpusort_radix_sort(const GsKeyTable *keys, const uint64_t *source, uint64_t *entries,
				   uint64_t *scratch, size_t count, GsLookCallback look)
{
	Sorter		sorter = {keys, look};

	sort_range(&sorter, source, entries, scratch, count);
}

/* ----------------------------------------------------------------
 *		entries that have their values
 * ----------------------------------------------------------------
 */

void
gpusort_key_bits_collect(GsKeyBits *bits, const GsKeyTable *keys, size_t count,
						 GsLookCallback look)
{
	Sorter		sorter = {keys, look};

	for (Block block = no_rows; next_block(&sorter, &block, count);)
		collect_block(&sorter, NULL, count, block, bits);
}

/* Returns the bits in which words vary, or 0 if they ascend. */
static uint64_t
find_disorder(const Sorter *sorter, const uint64_t *words, size_t count)
{
	uint64_t	any = 0;
	uint64_t	all = UINT64_MAX;
	bool		ascending = true;

	for (Block block = no_rows; next_block(sorter, &block, count);)
		for (size_t i = block.start; i < block.end; i++)
		{
			any |= words[i];
			all &= words[i];
			ascending &= i == 0 || words[i] >= words[i - 1];
		}
	return ascending ? 0 : any ^ all;
}

void
gpusort_radix_sort_by_values(uint64_t *entries, uint64_t *scratch, size_t count,
							 GsLookCallback look)
{
	Sorter		sorter = {NULL, look};
	uint32_t	varying = gpusort_entry_value(find_disorder(&sorter, entries, count));

	if (varying == 0)
		return;
	if (count > INSERTION_LIMIT)
		sort_entries(&sorter, entries, scratch, count, VALUE_SHIFT,
					 32 - (unsigned) __builtin_clz(varying));
	else
		insertion_sort_entries(entries, count);
}

/* ----------------------------------------------------------------
 *		words without rows
 * ----------------------------------------------------------------
 */

/*
 * Sort words by the highest bits in which they vary: few that many words are distributed by, and
 * otherwise as many as tell most words apart.  Then sort each group by the bits below.
 */
static void
sort_words(const Sorter *sorter, uint64_t *words, uint64_t *scratch, size_t count)
{
	uint64_t	varying = count > INSERTION_LIMIT ? find_disorder(sorter, words, count) : 0;
	unsigned	bits;
	unsigned	first = DIGIT_BITS;
	unsigned	shift;

	if (count <= INSERTION_LIMIT)
		insertion_sort_entries(words, count);
	if (varying == 0)
		return;
	bits = 64 - (unsigned) __builtin_clzll(varying);
	if (count <= CACHE_ENTRIES)
		first += 64 - (unsigned) __builtin_clzll(count);
	shift = bits > first ? bits - first : 0;
	sort_entries(sorter, words, scratch, count, shift, bits - shift);
	for (size_t start = 0, end = 1; shift > 0 && start < count; end++)
		if (end == count || words[end] >> shift != words[start] >> shift)
		{
			if (end - start > 1)
				sort_words(sorter, words + start, scratch, end - start);
			start = end;
		}
}

void
gpusort_radix_sort_words(uint64_t *words, uint64_t *scratch, size_t count, GsLookCallback look)
{
	Sorter		sorter = {NULL, look};

	sort_words(&sorter, words, scratch, count);
}
