/*-------------------------------------------------------------------------
 *
 * run_ranges.c
 *		Divides the rows of sorted runs into ranges that can be merged separately.
 *
 * Range r has the rows of all runs that sort before splitter r, and not before splitter
 * r - 1.  Splitters are rows, the first ones of blocks.  No two rows are equal: ties are in
 * the order of the runs, and within a run in its order.  So ranges have about the same
 * length whatever the keys are.  With spec->group_keys, only that number of leading keys is
 * compared, so that rows which agree in them are in one range: a splitter comes before its ties.
 *
 * Which blocks of a run have rows of a range is found by a binary search among the samples of the
 * run, which are the first rows of most of its blocks.  Which rows of these blocks belong to the
 * range is left to the merge, which encodes their keys in any case.
 *
 * Processes that merge together take ranges in turn (shared_merge.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "key/key_comparison.h"
#include "sort/base/row_format.h"
#include "sort/disk/run_merge.h"

/* How many samples each range should have, unless there would be very many of them. */
#define SAMPLES_PER_RANGE	24
#define FEWEST_PER_RANGE	2
#define MAX_SAMPLES			8192

struct GsRunRanges
{
	const GsSortKeys *keys;
	int			group_keys;		/* or 0; see GsSortSpec */
	GsRowFormat *key_format;	/* of samples */
	const GsSortedRun *runs;
	int			nruns;
	const GsKeyComparison *comparison;
	MemoryContext context;
	MemoryContext scratch;		/* for what comparators leak */

	int			nranges;
	GsRunSplitter *splitters;	/* one less than there are ranges */

	Datum	   *values;			/* of a sample */
	bool	   *isnull;
};

/* ----------------------------------------------------------------
 *		choosing splitters
 * ----------------------------------------------------------------
 */

static int
compare_keys(const GsRunRanges *ranges, Datum *values, bool *isnull,
			 const GsRunSplitter *splitter)
{
	MemoryContext caller = MemoryContextSwitchTo(ranges->scratch);
	int			order =
		gpusort_key_comparison_compare(ranges->comparison, 0,
									   ranges->group_keys > 0 ? ranges->group_keys :
									   ranges->keys->nkeys,
									   values, isnull,
									   splitter->values, splitter->isnull);

	MemoryContextSwitchTo(caller);
	return order;
}

/* qsort_arg comparator */
static int
compare_splitters(const void *a, const void *b, void *arg)
{
	const GsRunSplitter *left = a;
	const GsRunSplitter *right = b;
	int			order = compare_keys(arg, left->values, left->isnull, right);

	if (order != 0)
		return order;
	if (left->run != right->run)
		return left->run < right->run ? -1 : 1;
	return left->block < right->block ? -1 : 1;
}

static uint64
count_samples(const GsSortedRun *runs, int nruns)
{
	uint64		count = 0;

	for (int r = 0; r < nruns; r++)
		count += runs[r].index.nblocks;
	return count;
}

/* Returns how many of 'count' samples to read. */
static uint64
choose_samples(uint64 nranges, uint64 count)
{
	uint64		wanted = Max(FEWEST_PER_RANGE * nranges, MAX_SAMPLES);

	return Min(Min(wanted, SAMPLES_PER_RANGE * nranges), count);
}

/* Read a sample.  Values point into it. */
static void
read_sample(const GsRunRanges *ranges, int run, uint32 block, Datum *values, bool *isnull)
{
	const GsRunIndex *index = &ranges->runs[run].index;

	gpusort_row_format_unpack(ranges->key_format,
							  index->samples + index->blocks[block].sample,
							  values, isnull);
}

static GsRunSplitter
read_splitter(const GsRunRanges *ranges, int run, uint32 block)
{
	GsRunSplitter splitter = {.run = run,.block = block};

	splitter.values = palloc(ranges->keys->nkeys * sizeof(Datum));
	splitter.isnull = palloc(ranges->keys->nkeys * sizeof(bool));
	read_sample(ranges, run, block, splitter.values, splitter.isnull);
	return splitter;
}

/* Read 'wanted' of 'count' samples, at equal distances. */
static GsRunSplitter *
read_samples(const GsRunRanges *ranges, int nruns, uint64 count,
			 uint64 wanted)
{
	GsRunSplitter *samples = palloc_extended(Max(wanted, 1) * sizeof(GsRunSplitter),
											 MCXT_ALLOC_HUGE);
	uint64		seen = 0;
	uint64		taken = 0;

	for (int r = 0; r < nruns; r++)
	{
		const GsRunIndex *index = &ranges->runs[r].index;

		for (uint32 b = 0; b < index->nblocks; b++)
		{
			if (seen++ * wanted / count < taken)
				continue;
			CHECK_FOR_INTERRUPTS();
			samples[taken++] = read_splitter(ranges, r, b);
		}
	}
	Assert(taken == wanted);
	return samples;
}

/* Choose the splitters of about 'nranges' ranges. */
static void
choose_splitters(GsRunRanges *ranges, int nranges)
{
	uint64		count = count_samples(ranges->runs, ranges->nruns);
	uint64		wanted = choose_samples(nranges, count);
	GsRunSplitter *samples = read_samples(ranges, ranges->nruns, count, wanted);

	qsort_arg(samples, wanted, sizeof(GsRunSplitter), compare_splitters, ranges);
	MemoryContextReset(ranges->scratch);
	nranges = (int) Min((uint64) nranges, wanted + 1);
	ranges->nranges = nranges;
	ranges->splitters = palloc(nranges * sizeof(GsRunSplitter));
	for (int r = 1; r < nranges; r++)
	{
		GsRunSplitter *splitter = &ranges->splitters[r - 1];

		*splitter = samples[(uint64) r * wanted / nranges];
		if (ranges->group_keys > 0)
			splitter->run = GPUSORT_BEFORE_RUNS;
	}
	pfree(samples);
}

GsRunRanges *
gpusort_run_ranges_create(const GsSortSpec *spec, const GsSortedRun *runs, int nruns,
						  int nranges)
{
	GsRunRanges *ranges = palloc0(sizeof(GsRunRanges));

	ranges->keys = &spec->keys;
	ranges->group_keys = spec->group_keys;
	ranges->key_format = gpusort_row_format_create_keys(spec);
	ranges->runs = runs;
	ranges->nruns = nruns;
	ranges->context = CurrentMemoryContext;
	ranges->comparison = gpusort_key_comparison_create(&spec->keys);
	ranges->scratch = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort splitters",
											ALLOCSET_SMALL_SIZES);
	ranges->values = palloc(spec->keys.nkeys * sizeof(Datum));
	ranges->isnull = palloc(spec->keys.nkeys * sizeof(bool));
	choose_splitters(ranges, nranges);
	return ranges;
}

void
gpusort_run_ranges_unite(GsRunRanges *a, GsRunRanges *b)
{
	int			n = a->nranges + b->nranges - 1;
	GsRunSplitter *splitters = palloc(n * sizeof(GsRunSplitter));
	int			i = 0;
	int			j = 0;

	while (i + j < n - 1)
	{
		bool		from_b = i == a->nranges - 1 ||
			(j < b->nranges - 1 && compare_keys(a, b->splitters[j].values, b->splitters[j].isnull,
												&a->splitters[i]) < 0);

		splitters[i + j] = from_b ? b->splitters[j] : a->splitters[i];
		i += !from_b;
		j += from_b;
	}
	MemoryContextReset(a->scratch);
	a->splitters = b->splitters = splitters;
	a->nranges = b->nranges = n;
}

int
gpusort_run_ranges_count(const GsRunRanges *ranges)
{
	return ranges->nranges;
}

/* ----------------------------------------------------------------
 *		ranges
 * ----------------------------------------------------------------
 */

/* Does a sample sort before a splitter, which is in another run? */
static bool
is_before(GsRunRanges *ranges, int run, uint32 block, const GsRunSplitter *splitter)
{
	int			order;

	read_sample(ranges, run, block, ranges->values, ranges->isnull);
	order = compare_keys(ranges, ranges->values, ranges->isnull, splitter);
	return order < 0 || (order == 0 && run < splitter->run);
}

/* Returns how many samples of a run sort before a splitter. */
static uint32
count_samples_before(GsRunRanges *ranges, int run, const GsRunSplitter *splitter)
{
	uint32		low = 0;
	uint32		high = ranges->runs[run].index.nblocks;

	if (splitter->run == run)
		return splitter->block;
	while (low < high)
	{
		uint32		middle = (low + high) / 2;

		if (is_before(ranges, run, middle, splitter))
			low = middle + 1;
		else
			high = middle;
	}
	MemoryContextReset(ranges->scratch);
	return low;
}

/* Returns how many rows of a run are before the block of a sample. */
static int64
rows_before_sample(const GsSortedRun *run, uint32 sample)
{
	return sample < run->index.nblocks ? run->index.blocks[sample].first_row : run->nrows;
}

/*
 * Set the slice of a run that is in a range.  The rows after the last sample before the range, or
 * after the start of the run, may come before the range or be in it.  Returns false if no rows are
 * left.
 */
static bool
find_slice(GsRunRanges *ranges, const GsRunRange *range, int run, GsRunSlice *slice)
{
	const GsSortedRun *whole = &ranges->runs[run];
	const GsRunIndex *index = &whole->index;
	uint32		first = 0;
	uint32		end = index->nblocks;
	int64		first_row = 0;

	*slice = (GsRunSlice)
	{
		.run = *whole,.number = run
	};
	if (range->start != NULL)
	{
		/* The splitter is a sample of its own run, which begins the range. */
		first = count_samples_before(ranges, run, range->start) + (range->start->run == run);
		slice->begins_before = range->start->run != run;
	}
	if (range->end != NULL)
		end = count_samples_before(ranges, run, range->end);
	if (first > 0)
	{
		first_row = index->blocks[first - 1].first_row;
		slice->run.next = index->blocks[first - 1].extent;
	}
	if (end < index->nblocks)
		slice->run.end = index->blocks[end].extent;
	slice->run.nrows = rows_before_sample(whole, end) - first_row;
	return slice->run.nrows > 0;
}

void
gpusort_run_ranges_get(GsRunRanges *ranges, int number, GsRunRange *range)
{
	MemoryContext caller;

	range->start = number > 0 ? &ranges->splitters[number - 1] : NULL;
	range->end = number < ranges->nranges - 1 ? &ranges->splitters[number] : NULL;
	range->slices = palloc(ranges->nruns * sizeof(GsRunSlice));
	range->nslices = 0;
	caller = MemoryContextSwitchTo(ranges->context);
	for (int r = 0; r < ranges->nruns; r++)
	{
		CHECK_FOR_INTERRUPTS();
		range->nslices += find_slice(ranges, range, r, &range->slices[range->nslices]);
	}
	MemoryContextSwitchTo(caller);
}
