/*-------------------------------------------------------------------------
 *
 * radix_sort.c
 *		Stable radix sort of row numbers by multi-word unsigned keys.
 *
 * A key can be several 64-bit words wide, but most of its bits are usually the
 * same in all rows (ids below 2^27 in an int8, flags for "not NULL").  So one
 * pass finds the bits that vary, and the sort uses only those, packed into
 * windows of up to 32 bits.  An entry is 8 bytes: the window's value above the
 * row number.
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
 * A key with one window is sorted after that.  With more windows there are two
 * ways:
 *
 * - Sort by the most significant window, then sort each group of equal values
 *	 on its own.  If nearly all values differ, the other windows are never
 *	 used: random int8 keys take four digits instead of eight.
 * - Sort by each window in turn, least significant window first; stability
 *	 makes the result correct.  The cost does not depend on the distribution.
 *
 * A sample of the most significant window decides.
 *
 * This file does not allocate memory.  The only early exit is the stop
 * callback, which is called between blocks of rows, also when these are
 * copied.
 *
 *-------------------------------------------------------------------------
 */
#include "core/radix_sort.h"

#include <string.h>

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

/* Maximum length of a range to sort by insertion. */
#define INSERTION_LIMIT		32

/* Number of rows in the sample, and minimum number of rows to take one. */
#define SAMPLE_ROWS			16384
#define SAMPLE_FROM_ROWS	(4 * SAMPLE_ROWS)

/* Rows between two calls of the stop callback. */
#define STOP_INTERVAL		65536

/*
 * Number of rows to prefetch keys ahead of their use, if the rows are not in
 * the order of their numbers.
 */
#define PREFETCH_DISTANCE	32

/*
 * Prefetch the key of a later row, if the rows have an order of their own.
 * This is a macro because gcc assumes that a function that only prefetches has
 * no effect, and removes its calls.
 */
#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH_KEY(sorter, source, i, count) \
	do { \
		if ((source) != NULL && (i) + PREFETCH_DISTANCE < (count)) \
			__builtin_prefetch(source_key(sorter, source, \
										  (i) + PREFETCH_DISTANCE)); \
	} while (0)
#else
#define PREFETCH_KEY(sorter, source, i, count)	((void) 0)
#endif

/* Arguments that all steps of one sort share. */
typedef struct Sorter
{
	const GsKeyTable *keys;
	GsStopCallback stop;
	void	   *stop_arg;
} Sorter;

/* The bits that vary within a range of rows. */
typedef struct VaryingBits
{
	uint64_t	mask[GPUSORT_CPU_MAX_KEY_WORDS];
	unsigned	count;
} VaryingBits;

static GsSortStatus sort_range(const Sorter *sorter, const uint64_t *source,
							   uint64_t *entries, uint64_t *scratch,
							   size_t count);

static inline bool
must_stop(const Sorter *sorter)
{
	return sorter->stop != NULL && sorter->stop(sorter->stop_arg);
}

static inline size_t
block_end(size_t start, size_t count)
{
	return count - start > STOP_INTERVAL ? start + STOP_INTERVAL : count;
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

static unsigned
count_ones(uint64_t word)
{
	unsigned	ones = 0;

	for (; word != 0; word &= word - 1)
		ones++;
	return ones;
}

/* Find the bits that differ between the keys of any rows of the range. */
static GsSortStatus
find_varying_bits(const Sorter *sorter, const uint64_t *source, size_t count,
				  VaryingBits *varying)
{
	unsigned	words = sorter->keys->words;
	uint64_t	first[GPUSORT_CPU_MAX_KEY_WORDS];

	memset(varying, 0, sizeof(*varying));
	memcpy(first, source_key(sorter, source, 0), words * sizeof(uint64_t));

	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (must_stop(sorter))
			return GS_SORT_STOPPED;
		for (size_t i = start; i < end; i++)
		{
			const uint64_t *key = source_key(sorter, source, i);

			PREFETCH_KEY(sorter, source, i, count);
			for (unsigned w = 0; w < words; w++)
				varying->mask[w] |= key[w] ^ first[w];
		}
		start = end;
	}
	for (unsigned w = 0; w < words; w++)
		varying->count += count_ones(varying->mask[w]);
	return GS_SORT_DONE;
}

/*
 * Make a window of the varying bits that have at least 'skip' and fewer than
 * 'skip' + GPUSORT_WINDOW_BITS varying bits below them.
 */
static void
make_window(const VaryingBits *varying, unsigned words, unsigned skip,
			GsKeyWindow *window)
{
	unsigned	below = 0;

	window->bits = 0;
	window->nfields = 0;
	for (unsigned w = words; w-- > 0;)
	{
		GsBitField *field = NULL;	/* field of the previous bit, or NULL */

		for (unsigned bit = 0; bit < 64; bit++)
		{
			if (((varying->mask[w] >> bit) & 1) == 0)
			{
				field = NULL;
				continue;
			}
			if (below++ < skip)
				continue;
			if (window->bits == GPUSORT_WINDOW_BITS)
				return;
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
 * Make entries of the rows, with their values.  Sets *in_order to whether the
 * values ascend.  'loaded' may be 'source'.
 */
static GsSortStatus
load_entries(const Sorter *sorter, const GsKeyWindow *window,
			 const uint64_t *source, uint64_t *loaded, size_t count,
			 bool *in_order)
{
	uint32_t	previous = 0;
	bool		ascending = true;

	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (must_stop(sorter))
			return GS_SORT_STOPPED;
		for (size_t i = start; i < end; i++)
		{
			uint32_t	row = source_row(source, i);
			uint32_t	value;

			PREFETCH_KEY(sorter, source, i, count);
			value = gpusort_key_window_value(window, gpusort_key_of_row(sorter->keys, row));
			loaded[i] = make_entry(value, row);
			ascending &= value >= previous;
			previous = value;
		}
		start = end;
	}
	*in_order = ascending;
	return GS_SORT_DONE;
}

/* Count all digits of the entries' values in one pass. */
static GsSortStatus
count_digits(const Sorter *sorter, const uint64_t *entries, size_t count,
			 unsigned digits, unsigned digit_bits,
			 uint32_t bins[MAX_DIGITS][CACHE_DIGIT_BINS])
{
	const uint32_t digit_mask = (UINT32_C(1) << digit_bits) - 1;

	for (unsigned d = 0; d < digits; d++)
		memset(bins[d], 0, sizeof(uint32_t) << digit_bits);
	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (must_stop(sorter))
			return GS_SORT_STOPPED;
		for (size_t i = start; i < end; i++)
		{
			uint32_t	value = gpusort_entry_value(entries[i]);

			for (unsigned d = 0; d < digits; d++)
				bins[d][(value >> (d * digit_bits)) & digit_mask]++;
		}
		start = end;
	}
	return GS_SORT_DONE;
}

/* Move each entry to the next free index in the bin of its digit. */
static GsSortStatus
scatter_digit(const Sorter *sorter, const uint64_t *from, uint64_t *to,
			  size_t count, unsigned shift, unsigned digit_bits,
			  uint32_t *bins)
{
	const uint64_t digit_mask = (UINT64_C(1) << digit_bits) - 1;

	start_bins(bins, 1u << digit_bits);
	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (must_stop(sorter))
			return GS_SORT_STOPPED;
		for (size_t i = start; i < end; i++)
			to[bins[(from[i] >> shift) & digit_mask]++] = from[i];
		start = end;
	}
	return GS_SORT_DONE;
}

static GsSortStatus
copy_entries(const Sorter *sorter, uint64_t *to, const uint64_t *from,
			 size_t count)
{
	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (start > 0 && must_stop(sorter))
			return GS_SORT_STOPPED;
		memcpy(to + start, from + start, (end - start) * sizeof(uint64_t));
		start = end;
	}
	return GS_SORT_DONE;
}

/* Sort entries by the low 'bits' bits of their values, stably. */
static GsSortStatus
sort_entries(const Sorter *sorter, uint64_t *entries, uint64_t *scratch,
			 size_t count, unsigned bits)
{
	uint32_t	bins[MAX_DIGITS][CACHE_DIGIT_BINS];
	unsigned	widest = count <= CACHE_ENTRIES ? CACHE_DIGIT_BITS : DIGIT_BITS;
	unsigned	digits = (bits + widest - 1) / widest;
	unsigned	digit_bits;
	uint64_t   *from = entries;
	uint64_t   *to = scratch;

	if (bits == 0)
		return GS_SORT_DONE;
	digit_bits = (bits + digits - 1) / digits;
	if (count_digits(sorter, entries, count, digits, digit_bits,
					 bins) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	for (unsigned d = 0; d < digits; d++)
	{
		uint64_t   *swap = from;

		if (scatter_digit(sorter, from, to, count, 32 + d * digit_bits,
						  digit_bits, bins[d]) != GS_SORT_DONE)
			return GS_SORT_STOPPED;
		from = to;
		to = swap;
	}
	return from != entries ? copy_entries(sorter, entries, from, count) :
		GS_SORT_DONE;
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
 * 'shift' up.
 */
static GsSortStatus
count_rows(const Sorter *sorter, const GsKeyWindow *window, size_t count,
		   unsigned shift, uint32_t bins[DIGIT_BINS], bool *in_order)
{
	uint32_t	previous = 0;
	bool		ascending = true;

	memset(bins, 0, DIGIT_BINS * sizeof(uint32_t));
	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (must_stop(sorter))
			return GS_SORT_STOPPED;
		for (size_t i = start; i < end; i++)
		{
			uint32_t	value = gpusort_key_window_value(window, source_key(sorter, NULL, i));

			bins[value >> shift]++;
			ascending &= value >= previous;
			previous = value;
		}
		start = end;
	}
	*in_order = ascending;
	return GS_SORT_DONE;
}

/* Make entries of the rows from 0 on, each in its bin. */
static GsSortStatus
spread_rows(const Sorter *sorter, const GsKeyWindow *window, uint64_t *entries,
			size_t count, unsigned shift, uint32_t bins[DIGIT_BINS])
{
	start_bins(bins, DIGIT_BINS);
	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (must_stop(sorter))
			return GS_SORT_STOPPED;
		for (size_t i = start; i < end; i++)
		{
			uint32_t	value = gpusort_key_window_value(window, source_key(sorter, NULL, i));

			entries[bins[value >> shift]++] = make_entry(value, (uint32_t) i);
		}
		start = end;
	}
	return GS_SORT_DONE;
}

/*
 * sort_by_window() for all rows from 0 on: distribute them to bins, then sort
 * each bin.
 */
static GsSortStatus
sort_rows_by_window(const Sorter *sorter, const GsKeyWindow *window,
					uint64_t *entries, uint64_t *scratch, size_t count)
{
	unsigned	shift = window->bits > DIGIT_BITS ? window->bits - DIGIT_BITS : 0;
	uint32_t	bins[DIGIT_BINS];
	size_t		start = 0;
	bool		in_order;

	if (count_rows(sorter, window, count, shift, bins,
				   &in_order) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	if (in_order)
		return load_entries(sorter, window, NULL, entries, count, &in_order);
	if (spread_rows(sorter, window, entries, count, shift,
					bins) != GS_SORT_DONE)
		return GS_SORT_STOPPED;

	/* spread_rows() has advanced each bin's start index to its end. */
	for (unsigned b = 0; b < DIGIT_BINS; b++)
	{
		size_t		size = bins[b] - start;

		if (size <= INSERTION_LIMIT)
			insertion_sort_entries(entries + start, size);
		else if (sort_entries(sorter, entries + start, scratch, size,
							  shift) != GS_SORT_DONE)
			return GS_SORT_STOPPED;
		start = bins[b];
	}
	return GS_SORT_DONE;
}

/*
 * Sort rows by one window, stably, into entries with its values.  'source' is
 * NULL or 'entries'.
 */
static GsSortStatus
sort_by_window(const Sorter *sorter, const GsKeyWindow *window,
			   const uint64_t *source, uint64_t *entries, uint64_t *scratch,
			   size_t count)
{
	bool		in_order;

	if (source == NULL && count >= SPREAD_FROM_ROWS)
		return sort_rows_by_window(sorter, window, entries, scratch, count);
	if (load_entries(sorter, window, source, entries, count,
					 &in_order) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	if (in_order)
		return GS_SORT_DONE;
	return sort_entries(sorter, entries, scratch, count, window->bits);
}

/* Make entries of the rows from 0 on, without values. */
static GsSortStatus
number_entries(const Sorter *sorter, uint64_t *entries, size_t count)
{
	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (start > 0 && must_stop(sorter))
			return GS_SORT_STOPPED;
		for (size_t i = start; i < end; i++)
			entries[i] = i;
		start = end;
	}
	return GS_SORT_DONE;
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

/*
 * Sort each group of entries with equal values of the most significant window.
 */
static GsSortStatus
finish_runs(const Sorter *sorter, uint64_t *entries, uint64_t *scratch,
			size_t count)
{
	size_t		next_question = 0;

	for (size_t start = 0; start < count;)
	{
		uint32_t	value = gpusort_entry_value(entries[start]);
		size_t		end = start + 1;

		if (start >= next_question)
		{
			if (must_stop(sorter))
				return GS_SORT_STOPPED;
			next_question = start + STOP_INTERVAL;
		}
		while (end < count && gpusort_entry_value(entries[end]) == value)
			end++;
		if (end - start > 1 &&
			sort_range(sorter, entries + start, entries + start, scratch,
					   end - start) != GS_SORT_DONE)
			return GS_SORT_STOPPED;
		start = end;
	}
	return GS_SORT_DONE;
}

/*
 * Does the most significant window have different values in nearly all rows?
 *
 * Any two of the s sampled rows have equal values with the same probability as
 * any two of all n rows.  So d equal neighbours in the sorted sample stand for
 * about d * (n / s)^2 pairs.  If there are at most n / 5 pairs, sorting the
 * groups of equal values is cheaper than sorting by the lower windows.
 */
static GsSortStatus
window_separates(const Sorter *sorter, const GsKeyWindow *window,
				 const uint64_t *source, uint64_t *scratch, size_t count,
				 bool *separates)
{
	uint64_t   *sample = scratch;
	size_t		stride = count / SAMPLE_ROWS;
	double		equal = 0;
	double		ratio = (double) count / SAMPLE_ROWS;

	*separates = true;
	if (count < SAMPLE_FROM_ROWS)
		return GS_SORT_DONE;
	for (size_t i = 0; i < SAMPLE_ROWS; i++)
		sample[i] = source_row(source, i * stride);
	if (sort_by_window(sorter, window, sample, sample, scratch + SAMPLE_ROWS,
					   SAMPLE_ROWS) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	for (size_t i = 1; i < SAMPLE_ROWS; i++)
		equal += gpusort_entry_value(sample[i]) == gpusort_entry_value(sample[i - 1]);
	*separates = equal * ratio * ratio <= 0.2 * (double) count;
	return GS_SORT_DONE;
}

/* Sort rows into entries, stably.  'source' is NULL or 'entries'. */
static GsSortStatus
sort_range(const Sorter *sorter, const uint64_t *source, uint64_t *entries,
		   uint64_t *scratch, size_t count)
{
	unsigned	words = sorter->keys->words;
	VaryingBits varying;
	GsKeyWindow window;
	bool		separates;

	if (count <= INSERTION_LIMIT)
	{
		if (source == NULL)
			(void) number_entries(sorter, entries, count);
		insertion_sort(sorter, entries, count);
		return GS_SORT_DONE;
	}
	if (find_varying_bits(sorter, source, count, &varying) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	if (varying.count == 0)
		return source == NULL ? number_entries(sorter, entries, count) :
			GS_SORT_DONE;
	if (varying.count <= GPUSORT_WINDOW_BITS)
	{
		make_window(&varying, words, 0, &window);
		return sort_by_window(sorter, &window, source, entries, scratch,
							  count);
	}

	make_window(&varying, words, varying.count - GPUSORT_WINDOW_BITS, &window);
	if (window_separates(sorter, &window, source, scratch, count,
						 &separates) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	if (separates)
	{
		if (sort_by_window(sorter, &window, source, entries, scratch,
						   count) != GS_SORT_DONE)
			return GS_SORT_STOPPED;
		return finish_runs(sorter, entries, scratch, count);
	}
	for (unsigned skip = 0; skip < varying.count; skip += GPUSORT_WINDOW_BITS)
	{
		make_window(&varying, words, skip, &window);
		if (sort_by_window(sorter, &window, source, entries, scratch,
						   count) != GS_SORT_DONE)
			return GS_SORT_STOPPED;
		source = entries;
	}
	return GS_SORT_DONE;
}

GsSortStatus
gpusort_radix_sort(const GsKeyTable *keys, uint64_t *entries,
				   uint64_t *scratch, size_t count,
				   GsStopCallback stop, void *stop_arg)
{
	Sorter		sorter = {keys, stop, stop_arg};

	return sort_range(&sorter, entries, entries, scratch, count);
}

GsSortStatus
gpusort_radix_sort_all(const GsKeyTable *keys, uint64_t *entries,
					   uint64_t *scratch, size_t count,
					   GsStopCallback stop, void *stop_arg)
{
	Sorter		sorter = {keys, stop, stop_arg};

	return sort_range(&sorter, NULL, entries, scratch, count);
}

/* ----------------------------------------------------------------
 *		entries that have their values
 * ----------------------------------------------------------------
 */

bool
gpusort_key_window_make(const uint64_t *varying, unsigned words,
						GsKeyWindow *window)
{
	VaryingBits bits = {.count = 0};
	unsigned	below;

	for (unsigned w = 0; w < words; w++)
	{
		bits.mask[w] = varying[w];
		bits.count += count_ones(varying[w]);
	}
	below = bits.count > GPUSORT_WINDOW_BITS ? bits.count - GPUSORT_WINDOW_BITS : 0;
	make_window(&bits, words, below, window);
	return below > 0;
}

/*
 * Find the number of low bits in which values differ, and whether they ascend.
 */
static GsSortStatus
compare_values(const Sorter *sorter, const uint64_t *entries, size_t count,
			   unsigned *bits, bool *in_order)
{
	uint32_t	first = gpusort_entry_value(entries[0]);
	uint32_t	previous = first;
	uint32_t	varying = 0;
	bool		ascending = true;

	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (must_stop(sorter))
			return GS_SORT_STOPPED;
		for (size_t i = start; i < end; i++)
		{
			uint32_t	value = gpusort_entry_value(entries[i]);

			varying |= value ^ first;
			ascending &= value >= previous;
			previous = value;
		}
		start = end;
	}
	for (*bits = 0; varying != 0; varying >>= 1)
		(*bits)++;
	*in_order = ascending;
	return GS_SORT_DONE;
}

GsSortStatus
gpusort_radix_sort_by_values(uint64_t *entries, uint64_t *scratch, size_t count,
							 GsStopCallback stop, void *stop_arg)
{
	Sorter		sorter = {NULL, stop, stop_arg};
	unsigned	bits;
	bool		in_order;

	if (count < 2)
		return GS_SORT_DONE;
	if (compare_values(&sorter, entries, count, &bits,
					   &in_order) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	if (in_order)
		return GS_SORT_DONE;
	if (count > INSERTION_LIMIT)
		return sort_entries(&sorter, entries, scratch, count, bits);
	insertion_sort_entries(entries, count);
	return GS_SORT_DONE;
}
