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
 * Values separate rows if there are at most this many pairs of equal ones per row.  As in
 * radix_sort.c, d pairs among s rows of a sample stand for d * (n / s)^2 among n rows.
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

struct GsRangeSplitters
{
	const GsSortKeys *keys;
	const GsOrdering *ordering;
	const GsRowStore *store;
	unsigned	words;

	uint32		sample_rows;
	uint32		equal_values;	/* neighbours in the sorted sample */

	int			nsplitters;		/* one less than there are ranges */
	uint32	   *window_values;
	uint64	   *key_words;		/* 'words' for each splitter */
	uint32	   *rows;

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
	GsKeyValues *splitter_values;
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

static bool
have_equal_words(const GsRangeSplitters *splitters, uint64 a, uint64 b)
{
	return memcmp(gpusort_ordering_key(splitters->ordering, (uint32) a),
				  gpusort_ordering_key(splitters->ordering, (uint32) b),
				  splitters->words * sizeof(uint64)) == 0;
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
	splitters->rows = palloc(count * sizeof(uint32));
	splitters->key_words = palloc(count * splitters->words * sizeof(uint64));
	if (!splitters->exact)
		splitters->splitter_values = palloc(count * sizeof(GsKeyValues));
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
	const uint64 *ours = gpusort_ordering_key(splitters->ordering, row);
	uint64	   *key = splitters->key_words + n * splitters->words;

	for (unsigned w = 0; w < splitters->words; w++)
		key[w] = ours[w] & mask[w];
	splitters->window_values[n] =
		gpusort_key_window_value(window, (const uint64_t *) key);
	splitters->rows[n] = row;
	if (splitters->exact)
		return;
	splitters->splitter_values[n] = make_values(splitters->keys);
	read_values(splitters, row, &splitters->splitter_values[n]);
}

/*
 * If most splitters have equal words since their strings begin alike, make one of them the
 * pivot.
 */
static void
use_pivot(GsRangeSplitters *splitters, const GsKeyPlan *plan)
{
	Size		bytes = splitters->words * sizeof(uint64);
	int			middle = splitters->nsplitters / 2;
	const uint64 *words = splitters->key_words + middle * splitters->words;
	GsKeyCursor cursor = {0};
	int			alike = 0;

	for (int s = 0; s < splitters->nsplitters; s++)
		alike += memcmp(splitters->key_words + s * splitters->words, words,
						bytes) == 0;
	if (alike <= splitters->nsplitters / 2 || alike < 2 ||
		!gpusort_key_plan_is_string(plan) ||
		splitters->splitter_values[middle].isnull[0])
		return;
	gpusort_key_plan_set_pivot(plan, &cursor,
							   splitters->splitter_values[middle].values[0],
							   &splitters->pivot);
	splitters->has_pivot = true;
	for (int s = 0; s < splitters->nsplitters; s++)
		encode_values(splitters, &splitters->splitter_values[s]);
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
									 gpusort_ordering_key(splitters->ordering,
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

/* Is there no row between two splitters, since they have the same keys? */
static bool
is_same_splitter(const GsRangeSplitters *splitters, int a, int b)
{
	const GsKeyValues *one = &splitters->splitter_values[a];
	const GsKeyValues *two = &splitters->splitter_values[b];

	if (memcmp(splitters->key_words + a * splitters->words,
			   splitters->key_words + b * splitters->words,
			   splitters->words * sizeof(uint64)) != 0)
		return false;
	return splitters->exact ||
		gpusort_key_comparison_compare_some(splitters->comparison,
											splitters->first_compared,
											splitters->end_compared,
											one->values, one->isnull,
											two->values, two->isnull) == 0;
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
		here = is_same_splitter(splitters, s - 1, s) ? here + 1 : 1;
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
}

GsRangeSplitters *
gpusort_range_splitters_create(const GsSortSpec *spec, GsOrdering *ordering,
							   const GsRowStore *store,
							   const GsKeyWindow *window, uint64 *sample,
							   uint32 count, int nranges)
{
	GsRangeSplitters *splitters = palloc0(sizeof(GsRangeSplitters));
	uint64	   *scratch = palloc(count * sizeof(uint64));
	uint64		mask[GPUSORT_CPU_MAX_KEY_WORDS];

	splitters->keys = &spec->keys;
	splitters->ordering = ordering;
	splitters->store = store;
	splitters->words = gpusort_key_plan_words(spec->key_plan);
	splitters->exact = gpusort_key_plan_is_exact(spec->key_plan,
												 &splitters->first_compared);
	splitters->by_groups = spec->group_keys > 0;
	splitters->end_compared = splitters->by_groups ? spec->group_keys : spec->keys.nkeys;
	gpusort_key_plan_mask(spec->key_plan, splitters->end_compared, mask);
	allocate_splitters(splitters, nranges);

	gpusort_ordering_set_scratch(ordering, scratch);
	gpusort_ordering_sort_some(ordering, sample, count);
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

/* Does a splitter sort before one of the other sort? */
static bool
sorts_before(const GsRangeSplitters *splitters, int s,
			 const GsRangeSplitters *others, int o)
{
	const uint64 *ours = splitters->key_words + s * splitters->words;
	const uint64 *theirs = others->key_words + o * others->words;

	for (unsigned w = 0; w < splitters->words; w++)
		if (ours[w] != theirs[w])
			return ours[w] < theirs[w];
	return !splitters->exact &&
		gpusort_key_comparison_compare_some(splitters->comparison,
											splitters->first_compared,
											splitters->end_compared,
											splitters->splitter_values[s].values,
											splitters->splitter_values[s].isnull,
											others->splitter_values[o].values,
											others->splitter_values[o].isnull) < 0;
}

/* Add splitter 's' of 'from', which may be of the other sort. */
static void
copy_splitter(GsRangeSplitters *splitters, const GsRangeSplitters *from, int s)
{
	int			n = splitters->nsplitters++;

	memcpy(splitters->key_words + n * splitters->words, from->key_words + s * from->words,
		   from->words * sizeof(uint64));
	splitters->window_values[n] = from->window_values[s];
	splitters->rows[n] = from->rows[s];
	if (!splitters->exact)
		splitters->splitter_values[n] = from->splitter_values[s];
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
		while (o < others->nsplitters && sorts_before(others, o, ours, s))
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

/* Compare two rows by their words relative to the pivot.  Returns 0 if these are equal. */
static int
compare_words(const GsRangeSplitters *splitters, const GsKeyValues *a,
			  const GsKeyValues *b)
{
	if (a->isnull[0] || b->isnull[0])
		return 0;
	for (unsigned w = 0; w < splitters->words; w++)
		if (a->words[w] != b->words[w])
			return a->words[w] < b->words[w] ? -1 : 1;
	return 0;
}

/* Compare a row with a splitter by the sort keys that words do not decide. */
static int
compare_values(GsRangeSplitters *splitters, uint32 row, int splitter)
{
	GsKeyValues *ours = &splitters->row_values;
	const GsKeyValues *other = &splitters->splitter_values[splitter];
	MemoryContext caller = MemoryContextSwitchTo(splitters->scratch);
	int			order = 0;

	/* A row is compared with several splitters. */
	if (!splitters->has_row || splitters->row != row)
	{
		read_values(splitters, row, ours);
		splitters->has_row = true;
		splitters->row = row;
	}
	if (splitters->has_pivot)
		order = compare_words(splitters, ours, other);
	if (order == 0)
		order = gpusort_key_comparison_compare_some(splitters->comparison,
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
	const uint64 *ours = gpusort_ordering_key(splitters->ordering, row);
	const uint64 *other = splitters->key_words + splitter * splitters->words;
	int			order = 0;

	for (unsigned w = 0; w < splitters->words; w++)
		if (ours[w] != other[w])
			return ours[w] < other[w];
	if (!splitters->exact)
		order = compare_values(splitters, row, splitter);
	if (order == 0 && !splitters->by_groups)
		return row < splitters->rows[splitter];
	return order < 0;
}

int
gpusort_range_splitters_find(GsRangeSplitters *splitters, uint32 value,
							 uint32 row)
{
	uint32		above = value - Min(value, splitters->least_value);
	uint32		b = Min(above >> splitters->table_shift, TABLE_LENGTH - 1);
	int			low = splitters->table[b];
	int			high = splitters->table[b + 1];

	/* 'low' splitters do not sort after the row, and 'high' may not. */
	while (low < high)
	{
		int			middle = (low + high) / 2;
		uint32		other = splitters->window_values[middle];

		if (value < other ||
			(value == other && is_before(splitters, row, middle)))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
