/*-------------------------------------------------------------------------
 *
 * run_ranges.c
 *		Divides the rows of sorted runs into ranges that can be merged separately.
 *
 * Range r has the rows of all runs that sort before splitter r, and not before splitter
 * r - 1.  Splitters are rows, the first ones of blocks.  No two rows are equal: ties are in
 * the order of the runs, and within a run in its order.  So ranges have about the same
 * length whatever the keys are.
 *
 * Where a range begins in a run is its cut.  It is found by a binary search among the first rows
 * of the run's blocks, of which nearly all are in memory, and by another one in a single block.
 * A range ends in each run where the next one begins.  So if ranges are read one after the
 * other, only one cut of each run has to be found for a range.
 *
 * Processes that merge together take ranges in turn (shared_merge.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "key/key_comparison.h"
#include "sort/base/dense_row.h"
#include "sort/disk/run_ranges.h"

/* How many samples each range should have, unless there would be very many of them. */
#define SAMPLES_PER_RANGE	24
#define FEWEST_PER_RANGE	2
#define MAX_SAMPLES			8192

/* The sort keys of a row, which point into its packed form. */
typedef struct GsKeyRow
{
	GsRowBuffer buffer;
	Datum	   *values;
	bool	   *isnull;
} GsKeyRow;

/* The first row of a block. */
typedef struct GsSample
{
	int			run;
	uint32		block;
	GsKeyRow	row;
} GsSample;

/* Where a range begins in a run.  If that is the end of the run, there is no such block. */
typedef struct GsRunCut
{
	int64		row;			/* number of the first row behind it */
	uint32		block;			/* in which that row is */
	uint32		offset;			/* of the row in the block, in bytes */
} GsRunCut;

struct GsRunRanges
{
	const GsSortKeys *keys;
	const GsRowFormat *format;
	const GsSharedRun *runs;
	GsSortedRun *files;
	int			nruns;
	const GsKeyComparison *comparison;
	MemoryContext context;
	MemoryContext scratch;		/* for what comparators leak */

	int			nranges;
	GsSample   *splitters;		/* one less than there are ranges */

	/* For cuts. */
	GsKeyRow	row;
	GsRunBlock *block;
	Size		block_room;
	GsBlockRows block_rows;
	GsRunCut   *cuts;			/* where range 'cuts_of' begins in each run, */
	GsRunCut   *next_cuts;		/* and where it ends */
	int			cuts_of;		/* or -1 */
};

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

static void
begin_row(const GsRunRanges *ranges, GsKeyRow *row)
{
	memset(row, 0, sizeof(*row));
	row->buffer.context = ranges->context;
	row->values = palloc(ranges->keys->nkeys * sizeof(Datum));
	row->isnull = palloc(ranges->keys->nkeys * sizeof(bool));
}

/* Read the sort keys of a dense row, and return its size. */
static Size
read_row(const GsRunRanges *ranges, const char *dense, GsKeyRow *row)
{
	Size		bytes;
	char	   *packed = gpusort_dense_row_expand(ranges->format, dense,
												  &row->buffer, &bytes);

	gpusort_row_format_unpack_columns(ranges->format, packed,
									  ranges->keys->attnos,
									  ranges->keys->nkeys,
									  row->values, row->isnull);
	return bytes;
}

static int
compare_rows(const GsRunRanges *ranges, const GsKeyRow *a, const GsKeyRow *b)
{
	MemoryContext caller = MemoryContextSwitchTo(ranges->scratch);
	int			order =
		gpusort_key_comparison_compare(ranges->comparison, 0, a->values,
									   a->isnull, b->values, b->isnull);

	MemoryContextSwitchTo(caller);
	return order;
}

/* ----------------------------------------------------------------
 *		choosing splitters
 * ----------------------------------------------------------------
 */

/* qsort_arg comparator */
static int
compare_samples(const void *a, const void *b, void *arg)
{
	const GsSample *left = a;
	const GsSample *right = b;
	int			order = compare_rows(arg, &left->row, &right->row);

	if (order != 0)
		return order;
	if (left->run != right->run)
		return left->run < right->run ? -1 : 1;
	return left->block < right->block ? -1 : 1;
}

static uint64
count_samples(const GsSharedRun *runs, int nruns)
{
	uint64		count = 0;

	for (int r = 0; r < nruns; r++)
		for (uint32 b = 0; b < runs[r].index.nblocks; b++)
			count += runs[r].index.blocks[b].sample >= 0;
	return count;
}

/* Returns how many of 'count' samples to read. */
static uint64
choose_samples(uint64 nranges, uint64 count)
{
	uint64		wanted = Max(FEWEST_PER_RANGE * nranges, MAX_SAMPLES);

	return Min(Min(wanted, SAMPLES_PER_RANGE * nranges), count);
}

/* Read 'wanted' of 'count' samples, at equal distances. */
static GsSample *
read_samples(const GsRunRanges *ranges, int nruns, uint64 count,
			 uint64 wanted)
{
	GsSample   *samples = palloc_extended(Max(wanted, 1) * sizeof(GsSample),
										  MCXT_ALLOC_HUGE);
	uint64		seen = 0;
	uint64		taken = 0;

	for (int r = 0; r < nruns; r++)
	{
		const GsRunIndex *index = &ranges->runs[r].index;

		for (uint32 b = 0; b < index->nblocks; b++)
		{
			GsSample   *sample = &samples[taken];

			if (index->blocks[b].sample < 0 ||
				seen++ * wanted / count < taken)
				continue;
			CHECK_FOR_INTERRUPTS();
			taken++;
			sample->run = r;
			sample->block = b;
			begin_row(ranges, &sample->row);
			(void) read_row(ranges, index->samples + index->blocks[b].sample, &sample->row);
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
	GsSample   *samples = read_samples(ranges, ranges->nruns, count, wanted);

	qsort_arg(samples, wanted, sizeof(GsSample), compare_samples, ranges);
	MemoryContextReset(ranges->scratch);
	nranges = (int) Min((uint64) nranges, wanted + 1);
	ranges->nranges = nranges;
	ranges->splitters = palloc(nranges * sizeof(GsSample));
	for (int r = 1; r < nranges; r++)
		ranges->splitters[r - 1] = samples[(uint64) r * wanted / nranges];
	pfree(samples);
}

GsRunRanges *
gpusort_run_ranges_create(const GsSortSpec *spec, const GsRowFormat *format,
						  const GsSharedRun *runs, GsSortedRun *files,
						  int nruns, int nranges)
{
	GsRunRanges *ranges = palloc0(sizeof(GsRunRanges));

	ranges->keys = &spec->keys;
	ranges->format = format;
	ranges->runs = runs;
	ranges->files = files;
	ranges->nruns = nruns;
	ranges->context = CurrentMemoryContext;
	ranges->comparison = gpusort_key_comparison_create(&spec->keys);
	ranges->scratch = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort splitters",
											ALLOCSET_SMALL_SIZES);
	begin_row(ranges, &ranges->row);
	choose_splitters(ranges, nranges);
	ranges->cuts = palloc(nruns * sizeof(GsRunCut));
	ranges->next_cuts = palloc(nruns * sizeof(GsRunCut));
	ranges->cuts_of = -1;
	return ranges;
}

int
gpusort_run_ranges_count(const GsRunRanges *ranges)
{
	return ranges->nranges;
}

/* ----------------------------------------------------------------
 *		cuts
 * ----------------------------------------------------------------
 */

/* Read a block of a run. */
static void
read_block(GsRunRanges *ranges, int run, GsSortedRun *file, uint32 block)
{
	const GsSharedRun *shared = &ranges->runs[run];
	Size		room = Max(shared->longest_block, shared->extent_bytes);

	if (room > ranges->block_room)
	{
		if (ranges->block != NULL)
			pfree(ranges->block);
		ranges->block = MemoryContextAllocHuge(ranges->context, room);
		ranges->block_room = room;
	}
	gpusort_sorted_run_seek(file, shared->index.blocks[block].extent);
	gpusort_sorted_run_read(file, ranges->block);
}

/* Does a row of a run, which is not that of the splitter, sort before it? */
static bool
is_before(const GsRunRanges *ranges, int run, const GsSample *splitter)
{
	int			order = compare_rows(ranges, &ranges->row, &splitter->row);

	return order < 0 || (order == 0 && run < splitter->run);
}

/* Does the first row of a block sort before a splitter? */
static bool
begins_before(GsRunRanges *ranges, int run, GsSortedRun *file,
			  uint32 block, const GsSample *splitter)
{
	const GsRunIndex *index = &ranges->runs[run].index;
	const char *row;

	if (index->blocks[block].sample >= 0)
		row = index->samples + index->blocks[block].sample;
	else
	{
		read_block(ranges, run, file, block);
		row = (char *) (ranges->block + 1);
	}
	(void) read_row(ranges, row, &ranges->row);
	return is_before(ranges, run, splitter);
}

/* Returns how many rows of the block sort before a splitter.  The first one does. */
static uint32
count_before(GsRunRanges *ranges, int run, const GsSample *splitter)
{
	uint32		low = 1;
	uint32		high = ranges->block->nrows;

	while (low < high)
	{
		uint32		middle = (low + high) / 2;

		(void) read_row(ranges, (char *) ranges->block +
						ranges->block_rows.offsets[middle], &ranges->row);
		if (is_before(ranges, run, splitter))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the cut at the start of a block, or at the end of the run. */
static GsRunCut
cut_at(const GsRunRanges *ranges, int run, uint32 block)
{
	const GsSharedRun *shared = &ranges->runs[run];
	GsRunCut	cut = {
		.row = block < shared->index.nblocks ?
		shared->index.blocks[block].first_row : shared->nrows,
		.block = block,
		.offset = sizeof(GsRunBlock)
	};

	return cut;
}

/* Returns the cut in front of the first row that does not sort before a splitter. */
static GsRunCut
find_cut(GsRunRanges *ranges, int run, GsSortedRun *file,
		 const GsSample *splitter)
{
	uint32		low = 0;
	uint32		high = ranges->runs[run].index.nblocks;
	uint32		nrows;
	GsRunCut	cut;

	/* Blocks before 'low' begin before the splitter, those from 'high' not. */
	while (low < high)
	{
		uint32		middle = (low + high) / 2;

		if (begins_before(ranges, run, file, middle, splitter))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return cut_at(ranges, run, 0);
	read_block(ranges, run, file, low - 1);
	gpusort_block_rows_find(&ranges->block_rows, ranges->block, ranges->format,
							&ranges->row.buffer);
	nrows = count_before(ranges, run, splitter);
	if (nrows == ranges->block->nrows)
		return cut_at(ranges, run, low);
	cut = cut_at(ranges, run, low - 1);
	cut.row += nrows;
	cut.offset = ranges->block_rows.offsets[nrows];
	return cut;
}

/*
 * Returns where a range begins in a run, which is opened as 'file'; for the number of
 * ranges, where the run ends.
 */
static GsRunCut
cut_of_range(GsRunRanges *ranges, int range, int run, GsSortedRun *file)
{
	const GsSample *splitter;
	GsRunCut	cut;

	if (range == 0)
		return cut_at(ranges, run, 0);
	if (range == ranges->nranges)
		return cut_at(ranges, run, ranges->runs[run].index.nblocks);
	splitter = &ranges->splitters[range - 1];
	if (splitter->run == run)
		return cut_at(ranges, run, splitter->block);
	cut = find_cut(ranges, run, file, splitter);
	MemoryContextReset(ranges->scratch);
	return cut;
}

/* Returns a run that has only the rows between two cuts.  Its file is that of 'file'. */
static GsSortedRun
slice_run(const GsSharedRun *run, const GsSortedRun *file,
		  const GsRunCut *start, const GsRunCut *end)
{
	const GsBlockEntry *block = &run->index.blocks[start->block];
	GsSortedRun slice = {
		.file = file->file,
		.frozen = true,
		.first = block->extent,
		.next = block->extent,
		.nrows = end->row - start->row,
		.longest_block = run->longest_block,
		.skip_rows = (uint32) (start->row - block->first_row),
		.skip_bytes = start->offset
	};

	return slice;
}

static void
find_cuts(GsRunRanges *ranges, int range, GsRunCut *cuts)
{
	for (int r = 0; r < ranges->nruns; r++)
	{
		CHECK_FOR_INTERRUPTS();
		cuts[r] = cut_of_range(ranges, range, r, &ranges->files[r]);
	}
}

/* Find where a range begins and ends in all runs. */
static void
find_range(GsRunRanges *ranges, int range)
{
	if (ranges->cuts_of >= 0 && ranges->cuts_of == range - 1)
	{
		GsRunCut   *cuts = ranges->cuts;

		ranges->cuts = ranges->next_cuts;
		ranges->next_cuts = cuts;
	}
	else
		find_cuts(ranges, range, ranges->cuts);
	ranges->cuts_of = -1;		/* in case of an error */
	find_cuts(ranges, range + 1, ranges->next_cuts);
	ranges->cuts_of = range;
}

int
gpusort_run_ranges_slices(GsRunRanges *ranges, int range, GsSortedRun *slices)
{
	MemoryContext caller = MemoryContextSwitchTo(ranges->context);
	int			n = 0;

	find_range(ranges, range);
	MemoryContextSwitchTo(caller);
	for (int r = 0; r < ranges->nruns; r++)
		if (ranges->cuts[r].row < ranges->next_cuts[r].row)
			slices[n++] = slice_run(&ranges->runs[r], &ranges->files[r],
									&ranges->cuts[r], &ranges->next_cuts[r]);
	return n;
}
