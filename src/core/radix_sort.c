/*-------------------------------------------------------------------------
 *
 * radix_sort.c
 *		Stable radix sort of row numbers by multi-word unsigned keys.
 *
 * A key can be several 64-bit words wide, but most of its bits are usually
 * the same in all rows (ids below 2^27 in an int8, flags that say "not NULL").
 * So one pass finds the bits that vary, and the sort works on those alone,
 * squeezed together into windows of up to 32 bits.  An entry is 8 bytes, the
 * window's value above the row number, and a window is sorted by a
 * least-significant-digit-first radix sort whose digits are at most 8 bits
 * wide: 256 write streams stay within the first-level cache and the TLB.
 *
 * A key with one window is finished after it.  With more, there are two ways:
 *
 * - Sort by the most significant window, then finish each run of equal values
 *	 by itself.  Where nearly all values differ, the other windows are never
 *	 looked at: random int8 keys take four digits instead of eight.
 * - Sort by each window in turn, the least significant first; stability makes
 *	 the result right.  The cost does not depend on the distribution.
 *
 * A sample of the most significant window decides.
 *
 * Nothing in this file allocates, and the only way out early is the stop
 * callback.
 *
 *-------------------------------------------------------------------------
 */
#include "core/radix_sort.h"

#include <string.h>

#define DIGIT_BITS			8
#define DIGIT_BINS			(1 << DIGIT_BITS)
#define WINDOW_BITS			32
#define WINDOW_DIGITS		(WINDOW_BITS / DIGIT_BITS)

/* Ranges up to this length are sorted by insertion. */
#define INSERTION_LIMIT		32

/* Rows sampled to choose the way, and the rows from which it is worth it. */
#define SAMPLE_ROWS			16384
#define SAMPLE_FROM_ROWS	(4 * SAMPLE_ROWS)

/* Rows between two questions to the stop callback. */
#define STOP_INTERVAL		65536

/* How far ahead of its use a key of a row out of order is fetched. */
#define PREFETCH_DISTANCE	32

/*
 * Fetch the key of an entry to come.  A macro, since gcc takes a function
 * that only prefetches for one without effect, and drops its calls.
 */
#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH_KEY(sorter, entries, i, count) \
	do { \
		if ((i) + PREFETCH_DISTANCE < (count)) \
			__builtin_prefetch(entry_key(sorter, \
										 (entries)[(i) + PREFETCH_DISTANCE])); \
	} while (0)
#else
#define PREFETCH_KEY(sorter, entries, i, count)	((void) 0)
#endif

/* What all steps of one sort share. */
typedef struct Sorter
{
	const GsKeyTable *keys;
	GsStopCallback stop;
	void	   *stop_arg;
} Sorter;

/* Some adjacent bits of one key word, and where a window has them. */
typedef struct BitField
{
	unsigned	word;
	unsigned	shift;			/* of the lowest bit within the word */
	unsigned	position;		/* of the lowest bit within the window */
	uint32_t	mask;			/* as many low one bits as the field has */
} BitField;

/* Up to 32 varying bits of the key, as one number. */
typedef struct Window
{
	unsigned	bits;
	unsigned	nfields;
	BitField	fields[WINDOW_BITS];
} Window;

/* The bits that vary within a range of rows. */
typedef struct VaryingBits
{
	uint64_t	mask[GPUSORT_MAX_KEY_WORDS];
	unsigned	count;
} VaryingBits;

static GsSortStatus sort_range(const Sorter *sorter, uint64_t *entries,
							   uint64_t *scratch, size_t count);

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

static unsigned
count_ones(uint64_t word)
{
	unsigned	ones = 0;

	for (; word != 0; word &= word - 1)
		ones++;
	return ones;
}

/* Which bits differ between the keys of some rows of the range? */
static GsSortStatus
find_varying_bits(const Sorter *sorter, const uint64_t *entries, size_t count,
				  VaryingBits *varying)
{
	unsigned	words = sorter->keys->words;
	uint64_t	first[GPUSORT_MAX_KEY_WORDS];

	memset(varying, 0, sizeof(*varying));
	memcpy(first, entry_key(sorter, entries[0]), words * sizeof(uint64_t));

	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (must_stop(sorter))
			return GS_SORT_STOPPED;
		if (words == 1)
		{
			uint64_t	mask = 0;

			for (size_t i = start; i < end; i++)
			{
				PREFETCH_KEY(sorter, entries, i, count);
				mask |= entry_key(sorter, entries[i])[0] ^ first[0];
			}
			varying->mask[0] |= mask;
		}
		else
			for (size_t i = start; i < end; i++)
			{
				const uint64_t *key = entry_key(sorter, entries[i]);

				PREFETCH_KEY(sorter, entries, i, count);
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
 * 'skip' + WINDOW_BITS varying bits below them.
 */
static void
make_window(const VaryingBits *varying, unsigned words, unsigned skip,
			Window *window)
{
	unsigned	below = 0;

	window->bits = 0;
	window->nfields = 0;
	for (unsigned w = words; w-- > 0;)
	{
		BitField   *field = NULL;	/* that the previous bit went to */

		for (unsigned bit = 0; bit < 64; bit++)
		{
			if (((varying->mask[w] >> bit) & 1) == 0)
			{
				field = NULL;
				continue;
			}
			if (below++ < skip)
				continue;
			if (window->bits == WINDOW_BITS)
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

static inline uint32_t
window_value(const Window *window, const uint64_t *key)
{
	uint32_t	value = 0;

	for (unsigned f = 0; f < window->nfields; f++)
	{
		const BitField *field = &window->fields[f];

		value |= ((uint32_t) (key[field->word] >> field->shift) & field->mask)
			<< field->position;
	}
	return value;
}

/*
 * Put the window's value into each entry, from 'entries' to 'loaded' (which
 * may be the same array), and count all digits on the way.  *in_order tells
 * whether the values already ascend.
 */
static GsSortStatus
load_window(const Sorter *sorter, const Window *window, unsigned digit_bits,
			const uint64_t *entries, uint64_t *loaded, size_t count,
			uint32_t bins[WINDOW_DIGITS][DIGIT_BINS], bool *in_order)
{
	const uint32_t digit_mask = (UINT32_C(1) << digit_bits) - 1;
	uint32_t	previous = 0;
	bool		ascending = true;

	memset(bins, 0, WINDOW_DIGITS * sizeof(bins[0]));
	for (size_t start = 0; start < count;)
	{
		size_t		end = block_end(start, count);

		if (must_stop(sorter))
			return GS_SORT_STOPPED;
		for (size_t i = start; i < end; i++)
		{
			uint32_t	row = (uint32_t) entries[i];
			uint32_t	value;

			PREFETCH_KEY(sorter, entries, i, count);
			value = window_value(window, gpusort_key_of_row(sorter->keys, row));
			loaded[i] = (uint64_t) value << 32 | row;
			ascending &= value >= previous;
			previous = value;

			/* Digits above the window's last one are all zero. */
			bins[0][value & digit_mask]++;
			bins[1][(value >> digit_bits) & digit_mask]++;
			bins[2][((uint64_t) value >> (2 * digit_bits)) & digit_mask]++;
			bins[3][((uint64_t) value >> (3 * digit_bits)) & digit_mask]++;
		}
		start = end;
	}
	*in_order = ascending;
	return GS_SORT_DONE;
}

/* Move entries to where their digit's bin has its next free place. */
static GsSortStatus
scatter_digit(const Sorter *sorter, const uint64_t *from, uint64_t *to,
			  size_t count, unsigned shift, unsigned digit_bits,
			  uint32_t *bins)
{
	const uint64_t digit_mask = (UINT64_C(1) << digit_bits) - 1;
	uint32_t	next = 0;

	for (unsigned b = 0; b <= digit_mask; b++)
	{
		uint32_t	size = bins[b];

		bins[b] = next;
		next += size;
	}
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

/*
 * Sort a range by one window; afterwards the high half of each entry is the
 * window's value.
 */
static GsSortStatus
sort_by_window(const Sorter *sorter, const Window *window,
			   uint64_t *entries, uint64_t *scratch, size_t count)
{
	uint32_t	bins[WINDOW_DIGITS][DIGIT_BINS];
	unsigned	digits = (window->bits + DIGIT_BITS - 1) / DIGIT_BITS;
	unsigned	digit_bits = (window->bits + digits - 1) / digits;
	uint64_t   *from = digits % 2 == 0 ? entries : scratch;
	uint64_t   *to = digits % 2 == 0 ? scratch : entries;
	bool		in_order;

	if (load_window(sorter, window, digit_bits, entries, from, count, bins,
					&in_order) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	if (in_order)
	{
		if (from != entries)
			memcpy(entries, from, count * sizeof(uint64_t));
		return GS_SORT_DONE;
	}
	for (unsigned d = 0; d < digits; d++)
	{
		uint64_t   *swap = from;

		if (scatter_digit(sorter, from, to, count, 32 + d * digit_bits,
						  digit_bits, bins[d]) != GS_SORT_DONE)
			return GS_SORT_STOPPED;
		from = to;
		to = swap;
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

/* Finish each run of entries that share the most significant window. */
static GsSortStatus
finish_runs(const Sorter *sorter, uint64_t *entries, uint64_t *scratch,
			size_t count)
{
	for (size_t start = 0; start < count;)
	{
		uint32_t	value = (uint32_t) (entries[start] >> 32);
		size_t		end = start + 1;

		if (start % STOP_INTERVAL == 0 && must_stop(sorter))
			return GS_SORT_STOPPED;
		while (end < count && (uint32_t) (entries[end] >> 32) == value)
			end++;
		if (end - start > 1 &&
			sort_range(sorter, entries + start, scratch + start,
					   end - start) != GS_SORT_DONE)
			return GS_SORT_STOPPED;
		start = end;
	}
	return GS_SORT_DONE;
}

/*
 * Will the most significant window tell nearly all rows apart?
 *
 * Of s sampled rows, a pair is equal as often as a pair of all n rows, so d
 * equal neighbours in the sorted sample stand for about d * (n / s)^2 pairs.
 * With a fifth of n or fewer, finishing runs is cheaper than sorting by the
 * windows below.
 */
static GsSortStatus
window_separates(const Sorter *sorter, const Window *window,
				 const uint64_t *entries, uint64_t *scratch, size_t count,
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
		sample[i] = entries[i * stride];
	if (sort_by_window(sorter, window, sample, scratch + SAMPLE_ROWS,
					   SAMPLE_ROWS) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	for (size_t i = 1; i < SAMPLE_ROWS; i++)
		equal += sample[i] >> 32 == sample[i - 1] >> 32;
	*separates = equal * ratio * ratio <= 0.2 * (double) count;
	return GS_SORT_DONE;
}

static GsSortStatus
sort_range(const Sorter *sorter, uint64_t *entries, uint64_t *scratch,
		   size_t count)
{
	unsigned	words = sorter->keys->words;
	VaryingBits varying;
	Window		window;
	bool		separates;

	if (count <= INSERTION_LIMIT)
	{
		insertion_sort(sorter, entries, count);
		return GS_SORT_DONE;
	}
	if (find_varying_bits(sorter, entries, count, &varying) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	if (varying.count == 0)
		return GS_SORT_DONE;
	if (varying.count <= WINDOW_BITS)
	{
		make_window(&varying, words, 0, &window);
		return sort_by_window(sorter, &window, entries, scratch, count);
	}

	make_window(&varying, words, varying.count - WINDOW_BITS, &window);
	if (window_separates(sorter, &window, entries, scratch, count,
						 &separates) != GS_SORT_DONE)
		return GS_SORT_STOPPED;
	if (separates)
	{
		if (sort_by_window(sorter, &window, entries, scratch,
						   count) != GS_SORT_DONE)
			return GS_SORT_STOPPED;
		return finish_runs(sorter, entries, scratch, count);
	}
	for (unsigned skip = 0; skip < varying.count; skip += WINDOW_BITS)
	{
		make_window(&varying, words, skip, &window);
		if (sort_by_window(sorter, &window, entries, scratch,
						   count) != GS_SORT_DONE)
			return GS_SORT_STOPPED;
	}
	return GS_SORT_DONE;
}

GsSortStatus
gpusort_radix_sort(const GsKeyTable *keys, uint64_t *entries,
				   uint64_t *scratch, size_t count,
				   GsStopCallback stop, void *stop_arg)
{
	Sorter		sorter = {keys, stop, stop_arg};

	if (count < 2)
		return GS_SORT_DONE;
	return sort_range(&sorter, entries, scratch, count);
}
