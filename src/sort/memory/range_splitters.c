/*-------------------------------------------------------------------------
 *
 * range_splitters.c
 *		Divides sorted rows into ranges of about the same length before they are sorted.
 *
 * The range of most rows follows from a table of the values between the first splitter and the
 * last one, and a comparison or two with values of splitters.  Only if the value is that of a
 * splitter are the keys compared, and only if those are equal and not exact, the rows.
 *
 * If rows that agree in their first sort keys must be in one range, only these keys are compared,
 * and the words of a splitter are the least with which such a group of rows can begin.
 *
 * Strings that begin alike have equal keys.  They are compared by words relative to a pivot
 * first, one of the splitters, which are encoded once for each row.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "key/key_comparison.h"
#include "sort/memory/shared_view.h"
#include "sort/memory/tie_sorter.h"
#include "work.h"

#define TABLE_BITS		12
#define TABLE_LENGTH	(1 << TABLE_BITS)

/*
 * Values separate rows if there are at most this many pairs of equal ones per row.  As any two rows
 * have equal values with the same probability, d pairs among s rows of a sample stand for
 * d * (n / s)^2 among n rows.
 */
#define MOST_EQUAL_PAIRS	0.2

/* The memory that comparators leak is freed after this many comparisons. */
#define COMPARISONS_PER_RESET	256

/* The sort keys of a row, and if there is a pivot, its words. */
typedef struct GsKeyValues
{
	Datum	   *values;
	bool	   *isnull;
	uint64		words[GPUSORT_CPU_MAX_KEY_WORDS];
} GsKeyValues;

/* A row between two ranges. */
typedef struct GsSplitter
{
	uint32		row;
	int			end;			/* after the last one with the same value */
	uint64		words[GPUSORT_CPU_MAX_KEY_WORDS];
	GsKeyValues values;			/* unless words are exact */
} GsSplitter;

struct GsRangeSplitters
{
	const GsSortKeys *keys;
	const GsKeySort *key_sort;
	const GsRowStore *store;
	unsigned	words;

	uint32		sample_rows;
	uint32		equal_values;	/* neighbours in the sorted sample */

	int			nsplitters;		/* one less than there are ranges */
	uint32	   *window_values;
	GsSplitter *list;

	/*
	 * table[b]: how many splitters have a value below least_value + (b <<
	 * table_shift).
	 */
	uint32		least_value;	/* of any splitter */
	unsigned	table_shift;
	int			table[TABLE_LENGTH + 1];

	/*
	 * If words are not exact: the sort keys from 'first_compared' to before
	 * 'end_compared' decide.
	 */
	bool		exact;
	int			first_compared;
	int			end_compared;
	bool		by_groups;		/* are the rest of the keys, and row numbers,
								 * not compared at all? */
	const GsKeyComparison *comparison;
	bool		has_pivot;
	GsPivot		pivot;
	GsKeyValues row_values;
	bool		has_row;		/* are row_values those of 'row'? */
	uint32		row;
	uint32		ncompared;
	MemoryContext scratch;		/* for what comparators leak */
};

/* ----------------------------------------------------------------
 *		choosing splitters
 * ----------------------------------------------------------------
 */

static int
compare_words(const GsRangeSplitters *splitters, const uint64 *a, const uint64 *b)
{
	for (unsigned w = 0; w < splitters->words; w++)
		if (a[w] != b[w])
			return a[w] < b[w] ? -1 : 1;
	return 0;
}

static bool
have_equal_words(const GsRangeSplitters *splitters, uint64 a, uint64 b)
{
	return compare_words(splitters, gpusort_key_sort_key(splitters->key_sort, (uint32) a),
						 gpusort_key_sort_key(splitters->key_sort, (uint32) b)) == 0;
}

/*
 * Sort the rows of a sample with equal words by comparisons.  This does not change keys,
 * as the tie sorter does, since other processes are reading them.
 */
static void
sort_ties(GsRangeSplitters *splitters, const GsSortSpec *spec, uint64 *sample,
		  uint32 count, uint64 *scratch)
{
	GsTieComparisons *comparisons =
		gpusort_tie_comparisons_create(spec, splitters->store);
	uint32		end;

	for (uint32 start = 0; start < count; start = end)
	{
		end = start + 1;
		while (end < count &&
			   have_equal_words(splitters, sample[start], sample[end]))
			end++;
		if (end - start > 1)
			gpusort_tie_comparisons_sort(comparisons, sample + start,
										 end - start, scratch,
										 splitters->first_compared,
										 spec->keys.nkeys);
	}
}

static void
allocate_splitters(GsRangeSplitters *splitters, int count)
{
	splitters->window_values = palloc(count * sizeof(uint32));
	splitters->list = palloc(count * sizeof(GsSplitter));
}

static GsKeyValues
make_values(const GsSortKeys *keys)
{
	GsKeyValues row = {
		.values = palloc(keys->nkeys * sizeof(Datum)),
		.isnull = palloc(keys->nkeys * sizeof(bool))
	};

	return row;
}

/* If there is a pivot, encode the words relative to it. */
static void
encode_values(GsRangeSplitters *splitters, GsKeyValues *values)
{
	if (splitters->has_pivot && !values->isnull[0])
		gpusort_pivot_encode(&splitters->pivot, values->values[0],
							 values->words);
}

static void
read_values(GsRangeSplitters *splitters, uint32 row, GsKeyValues *values)
{
	gpusort_row_store_get_columns(splitters->store, row,
								  splitters->keys->attnos,
								  splitters->keys->nkeys,
								  values->values, values->isnull);
	encode_values(splitters, values);
}

/* Add a row.  Of its words, only the bits of 'mask' count. */
static void
add_splitter(GsRangeSplitters *splitters, const GsKeyWindow *window, const uint64 *mask,
			 uint32 row)
{
	int			n = splitters->nsplitters++;
	const uint64 *ours = gpusort_key_sort_key(splitters->key_sort, row);
	GsSplitter *splitter = &splitters->list[n];

	for (unsigned w = 0; w < splitters->words; w++)
		splitter->words[w] = ours[w] & mask[w];
	splitters->window_values[n] =
		gpusort_key_window_value(window, (const uint64_t *) splitter->words);
	splitter->row = row;
	if (splitters->exact)
		return;
	splitter->values = make_values(splitters->keys);
	read_values(splitters, row, &splitter->values);
}

/*
 * If most splitters have equal words since their strings begin alike, make one of them the
 * pivot.
 */
static void
use_pivot(GsRangeSplitters *splitters, const GsKeyPlan *plan)
{
	GsSplitter *list = splitters->list;
	int			n = splitters->nsplitters;
	const GsSplitter *middle = &list[n / 2];
	GsKeyCursor cursor = {0};
	int			alike = 0;

	for (int s = 0; s < n; s++)
		alike += compare_words(splitters, list[s].words, middle->words) == 0;
	if (alike <= n / 2 || alike < 2 || !gpusort_key_plan_is_string(plan) ||
		middle->values.isnull[0])
		return;
	gpusort_key_plan_set_pivot(plan, &cursor, middle->values.values[0], &splitters->pivot);
	splitters->has_pivot = true;
	for (int s = 0; s < n; s++)
		encode_values(splitters, &list[s].values);
}

/* Count neighbours of the sorted sample that have the same value. */
static void
count_equal_values(GsRangeSplitters *splitters, const GsKeyWindow *window,
				   const uint64 *sample, uint32 count)
{
	uint32		previous = 0;

	splitters->sample_rows = count;
	for (uint32 i = 0; i < count; i++)
	{
		uint32		value =
			gpusort_key_window_value(window, (const uint64_t *)
									 gpusort_key_sort_key(splitters->key_sort,
														  (uint32) sample[i]));

		splitters->equal_values += i > 0 && value == previous;
		previous = value;
	}
}

bool
gpusort_range_splitters_separate(const GsRangeSplitters *splitters, uint32 rows)
{
	double		ratio = (double) rows / Max(splitters->sample_rows, 1);

	return splitters->equal_values * ratio * ratio <= MOST_EQUAL_PAIRS * rows;
}

/* Compare two splitters, without the numbers of their rows. */
static int
compare_splitters(const GsRangeSplitters *splitters, const GsSplitter *a, const GsSplitter *b)
{
	int			order = compare_words(splitters, a->words, b->words);

	if (order != 0 || splitters->exact)
		return order;
	return gpusort_key_comparison_compare(splitters->comparison,
										  splitters->first_compared,
										  splitters->end_compared,
										  a->values.values, a->values.isnull,
										  b->values.values, b->values.isnull);
}

double
gpusort_range_splitters_longest(const GsRangeSplitters *splitters)
{
	int			most = 1;
	int			here = 1;

	if (!splitters->by_groups)
		return 1.0 / (splitters->nsplitters + 1);
	for (int s = 1; s < splitters->nsplitters; s++)
	{
		/* Between two that are equal there are no rows. */
		here = compare_splitters(splitters, &splitters->list[s - 1],
								 &splitters->list[s]) == 0 ? here + 1 : 1;
		most = Max(most, here);
	}
	return (double) (most + (most > 1)) / (splitters->nsplitters + 1);
}

/*
 * Make the table.  Integers of both signs vary in all bits, although they may be few: so it divides
 * the values that there are, and not the bits.
 */
static void
make_table(GsRangeSplitters *splitters)
{
	int			n = splitters->nsplitters;
	uint32		least = n == 0 ? 0 : splitters->window_values[0];
	uint32		span = n == 0 ? 0 : splitters->window_values[n - 1] - least;
	unsigned	shift = 0;
	int			below = 0;

	while (span >> shift >= TABLE_LENGTH)
		shift++;
	for (int b = 0; b <= TABLE_LENGTH; b++)
	{
		while (below < n && (splitters->window_values[below] - least) >> shift < (uint32) b)
			below++;
		splitters->table[b] = below;
	}
	splitters->least_value = least;
	splitters->table_shift = shift;
	for (int s = n - 1; s >= 0; s--)
		splitters->list[s].end = s < n - 1 && splitters->window_values[s + 1] ==
			splitters->window_values[s] ? splitters->list[s + 1].end : s + 1;
}

GsRangeSplitters *
gpusort_range_splitters_create(const GsSortSpec *spec, GsKeySort *key_sort,
							   const GsRowStore *store,
							   const GsKeyWindow *window, uint64 *sample,
							   uint32 count, int nranges)
{
	GsRangeSplitters *splitters = palloc0(sizeof(GsRangeSplitters));
	uint64	   *scratch = palloc(count * sizeof(uint64));
	uint64		mask[GPUSORT_CPU_MAX_KEY_WORDS];

	splitters->keys = &spec->keys;
	splitters->key_sort = key_sort;
	splitters->store = store;
	splitters->words = gpusort_key_plan_words(spec->key_plan);
	splitters->exact = gpusort_key_plan_is_exact(spec->key_plan,
												 &splitters->first_compared);
	splitters->by_groups = spec->group_keys > 0;
	splitters->end_compared = splitters->by_groups ? spec->group_keys : spec->keys.nkeys;
	gpusort_key_plan_mask(spec->key_plan, splitters->end_compared, mask);
	allocate_splitters(splitters, nranges);

	gpusort_key_sort_set_scratch(key_sort, scratch);
	gpusort_key_sort_some(key_sort, sample, count);
	if (!splitters->exact)
	{
		splitters->comparison = gpusort_key_comparison_create(&spec->keys);
		splitters->row_values = make_values(&spec->keys);
		splitters->scratch = AllocSetContextCreate(CurrentMemoryContext,
												   "pg_gpusort splitters",
												   ALLOCSET_SMALL_SIZES);
		sort_ties(splitters, spec, sample, count, scratch);
	}
	count_equal_values(splitters, window, sample, count);
	for (int r = 1; r < nranges; r++)
		add_splitter(splitters, window, mask,
					 (uint32) sample[(uint64) r * count / nranges]);
	if (!splitters->exact)
		use_pivot(splitters, spec->key_plan);
	make_table(splitters);
	pfree(scratch);
	return splitters;
}

/* ----------------------------------------------------------------
 *		the splitters of two sorts
 * ----------------------------------------------------------------
 */

int
gpusort_range_splitters_count(const GsRangeSplitters *splitters)
{
	return splitters->nsplitters;
}

/* Add splitter 's' of 'from', which may be of the other sort. */
static void
copy_splitter(GsRangeSplitters *splitters, const GsRangeSplitters *from, int s)
{
	int			n = splitters->nsplitters++;

	splitters->list[n] = from->list[s];
	splitters->window_values[n] = from->window_values[s];
}

/* Take the splitters of 'others' as well, in order. */
static void
merge_splitters(GsRangeSplitters *splitters, const GsRangeSplitters *ours,
				const GsRangeSplitters *others)
{
	int			o = 0;

	allocate_splitters(splitters, ours->nsplitters + others->nsplitters);
	splitters->nsplitters = 0;
	splitters->has_pivot = false;
	for (int s = 0; s < ours->nsplitters; s++)
	{
		while (o < others->nsplitters &&
			   compare_splitters(ours, &others->list[o], &ours->list[s]) < 0)
			copy_splitter(splitters, others, o++);
		copy_splitter(splitters, ours, s);
	}
	while (o < others->nsplitters)
		copy_splitter(splitters, others, o++);
}

void
gpusort_range_splitters_unite(GsRangeSplitters *a, GsRangeSplitters *b,
							  const GsKeyPlan *plan)
{
	GsRangeSplitters *const both[2] = {a, b};
	const GsRangeSplitters own[2] = {*a, *b};

	for (int i = 0; i < 2; i++)
	{
		merge_splitters(both[i], &own[i], &own[1 - i]);
		if (!both[i]->exact)
			use_pivot(both[i], plan);
		make_table(both[i]);
	}
}

/* ----------------------------------------------------------------
 *		finding ranges
 * ----------------------------------------------------------------
 */

/* Compare a row with a splitter by the sort keys that words do not decide. */
static int
compare_values(GsRangeSplitters *splitters, uint32 row, const GsKeyValues *other)
{
	GsKeyValues *ours = &splitters->row_values;
	MemoryContext caller = MemoryContextSwitchTo(splitters->scratch);
	int			order = 0;

	/* A row is compared with several splitters. */
	if (!splitters->has_row || splitters->row != row)
	{
		read_values(splitters, row, ours);
		splitters->has_row = true;
		splitters->row = row;
	}
	if (splitters->has_pivot && !ours->isnull[0] && !other->isnull[0])
		order = compare_words(splitters, ours->words, other->words);
	if (order == 0)
		order = gpusort_key_comparison_compare(splitters->comparison,
											   splitters->first_compared,
											   splitters->end_compared,
											   ours->values, ours->isnull,
											   other->values, other->isnull);
	MemoryContextSwitchTo(caller);
	if (++splitters->ncompared % COMPARISONS_PER_RESET == 0)
		MemoryContextReset(splitters->scratch);
	return order;
}

/* Does a row whose value is that of a splitter sort before it? */
static bool
is_before(GsRangeSplitters *splitters, uint32 row, int splitter)
{
	const GsSplitter *other = &splitters->list[splitter];
	int			order = compare_words(splitters, gpusort_key_sort_key(splitters->key_sort, row),
									  other->words);

	if (order == 0 && !splitters->exact)
		order = compare_values(splitters, row, &other->values);
	if (order == 0 && !splitters->by_groups)
		return row < other->row;
	return order < 0;
}

/*
 * Returns how many of 'n' splitters, at least one, have a value below this one.  The steps of the
 * search have no branch, so that a processor goes on with the next row meanwhile: floating-point
 * numbers are in few entries of the table.
 */
static inline int
count_below(const uint32 *window_values, uint32 n, uint32 value)
{
	const uint32 *first = window_values;

	while (n > 1)
	{
		uint32		half = n / 2;

		first += half & -(uint32) (first[half - 1] < value);
		n -= half;
	}
	return first - window_values + (*first < value);
}

int
gpusort_range_splitters_find(GsRangeSplitters *splitters, uint32 value,
							 uint32 row)
{
	uint32		above = value - Min(value, splitters->least_value);
	uint32		b = Min(above >> splitters->table_shift, TABLE_LENGTH - 1);
	int			low = splitters->table[b];
	int			high = splitters->table[b + 1];

	if (low == high)
		return low;
	low += count_below(splitters->window_values + low, high - low, value);
	if (low == splitters->nsplitters || splitters->window_values[low] != value)
		return low;

	/* 'low' splitters do not sort after the row, and 'high' may not. */
	high = splitters->list[low].end;
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (is_before(splitters, row, middle))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
