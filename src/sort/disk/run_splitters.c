/*-------------------------------------------------------------------------
 *
 * run_splitters.c
 *		Divides the rows of many sorted runs into ranges that can be merged separately.
 *
 * A cut is found by a binary search among the first rows of the run's blocks, of which
 * nearly all are in memory, and by another one in a single block.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "key/key_comparison.h"
#include "sort/base/dense_row.h"
#include "sort/disk/run_splitters.h"

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

struct GsRunSplitters
{
	const GsSortKeys *keys;
	const GsRowFormat *format;
	const GsIndexedRun *runs;
	const GsKeyComparison *comparison;
	MemoryContext context;
	MemoryContext scratch;		/* for what comparators leak */

	int			nranges;
	GsSample   *splitters;		/* one less than there are ranges */

	/* For cuts. */
	GsKeyRow	row;
	GsRunBlock *block;
	Size		block_room;
	uint32	   *offsets;		/* of the rows in the block */
	uint32		max_offsets;
};

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

static void
begin_row(const GsRunSplitters *splitters, GsKeyRow *row)
{
	memset(row, 0, sizeof(*row));
	row->buffer.context = splitters->context;
	row->values = palloc(splitters->keys->nkeys * sizeof(Datum));
	row->isnull = palloc(splitters->keys->nkeys * sizeof(bool));
}

/* Read the sort keys of a dense row, and return its size. */
static Size
read_row(const GsRunSplitters *splitters, const char *dense, GsKeyRow *row)
{
	Size		bytes;
	char	   *packed = gpusort_dense_row_expand(splitters->format, dense,
												  &row->buffer, &bytes);

	gpusort_row_format_unpack_columns(splitters->format, packed,
									  splitters->keys->attnos,
									  splitters->keys->nkeys,
									  row->values, row->isnull);
	return bytes;
}

static int
compare_rows(const GsRunSplitters *splitters, const GsKeyRow *a, const GsKeyRow *b)
{
	MemoryContext caller = MemoryContextSwitchTo(splitters->scratch);
	int			order =
		gpusort_key_comparison_compare(splitters->comparison, 0, a->values,
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
count_samples(const GsIndexedRun *runs, int nruns)
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
read_samples(const GsRunSplitters *splitters, int nruns, uint64 count,
			 uint64 wanted)
{
	GsSample   *samples = palloc_extended(Max(wanted, 1) * sizeof(GsSample),
										  MCXT_ALLOC_HUGE);
	uint64		seen = 0;
	uint64		taken = 0;

	for (int r = 0; r < nruns; r++)
	{
		const GsRunIndex *index = &splitters->runs[r].index;

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
			begin_row(splitters, &sample->row);
			(void) read_row(splitters,
							index->samples + index->blocks[b].sample,
							&sample->row);
		}
	}
	Assert(taken == wanted);
	return samples;
}

GsRunSplitters *
gpusort_run_splitters_create(const GsSortSpec *spec, const GsRowFormat *format,
							 const GsIndexedRun *runs, int nruns, int nranges)
{
	GsRunSplitters *splitters = palloc0(sizeof(GsRunSplitters));
	uint64		count = count_samples(runs, nruns);
	uint64		wanted = choose_samples(nranges, count);
	GsSample   *samples;

	splitters->keys = &spec->keys;
	splitters->format = format;
	splitters->runs = runs;
	splitters->context = CurrentMemoryContext;
	splitters->comparison = gpusort_key_comparison_create(&spec->keys);
	splitters->scratch = AllocSetContextCreate(CurrentMemoryContext,
											   "pg_gpusort splitters",
											   ALLOCSET_SMALL_SIZES);
	begin_row(splitters, &splitters->row);

	samples = read_samples(splitters, nruns, count, wanted);
	qsort_arg(samples, wanted, sizeof(GsSample), compare_samples, splitters);
	MemoryContextReset(splitters->scratch);
	nranges = (int) Min((uint64) nranges, wanted + 1);
	splitters->nranges = nranges;
	splitters->splitters = palloc(nranges * sizeof(GsSample));
	for (int r = 1; r < nranges; r++)
		splitters->splitters[r - 1] = samples[(uint64) r * wanted / nranges];
	pfree(samples);
	return splitters;
}

int
gpusort_run_splitters_ranges(const GsRunSplitters *splitters)
{
	return splitters->nranges;
}

/* ----------------------------------------------------------------
 *		cuts
 * ----------------------------------------------------------------
 */

/* Read a block of a run. */
static void
read_block(GsRunSplitters *splitters, int run, GsSortedRun *file, uint32 block)
{
	const GsIndexedRun *indexed = &splitters->runs[run];
	Size		room = Max(indexed->run.longest_block, indexed->run.extent_bytes);

	if (room > splitters->block_room)
	{
		if (splitters->block != NULL)
			pfree(splitters->block);
		splitters->block = MemoryContextAllocHuge(splitters->context, room);
		splitters->block_room = room;
	}
	gpusort_sorted_run_seek(file, indexed->index.blocks[block].extent);
	gpusort_sorted_run_read(file, splitters->block);
}

/* Does a row of a run, which is not that of the splitter, sort before it? */
static bool
is_before(const GsRunSplitters *splitters, int run, const GsSample *splitter)
{
	int			order = compare_rows(splitters, &splitters->row, &splitter->row);

	return order < 0 || (order == 0 && run < splitter->run);
}

/* Does the first row of a block sort before a splitter? */
static bool
begins_before(GsRunSplitters *splitters, int run, GsSortedRun *file,
			  uint32 block, const GsSample *splitter)
{
	const GsRunIndex *index = &splitters->runs[run].index;
	const char *row;

	if (index->blocks[block].sample >= 0)
		row = index->samples + index->blocks[block].sample;
	else
	{
		read_block(splitters, run, file, block);
		row = (char *) (splitters->block + 1);
	}
	(void) read_row(splitters, row, &splitters->row);
	return is_before(splitters, run, splitter);
}

/* Note where the rows of the block begin. */
static void
find_rows(GsRunSplitters *splitters)
{
	const GsRunBlock *block = splitters->block;
	uint32		offset = sizeof(GsRunBlock);

	if (block->nrows > splitters->max_offsets)
	{
		if (splitters->offsets != NULL)
			pfree(splitters->offsets);
		splitters->max_offsets = block->nrows;
		splitters->offsets = MemoryContextAllocHuge(splitters->context,
													block->nrows * sizeof(uint32));
	}
	for (uint32 i = 0; i < block->nrows; i++)
	{
		Size		bytes;

		splitters->offsets[i] = offset;
		gpusort_dense_row_expand_fast(splitters->format, (char *) block + offset,
									  &splitters->row.buffer, &bytes);
		offset += bytes;
	}
}

/* Returns how many rows of the block sort before a splitter.  The first one does. */
static uint32
count_before(GsRunSplitters *splitters, int run, const GsSample *splitter)
{
	uint32		low = 1;
	uint32		high = splitters->block->nrows;

	while (low < high)
	{
		uint32		middle = (low + high) / 2;

		(void) read_row(splitters, (char *) splitters->block +
						splitters->offsets[middle], &splitters->row);
		if (is_before(splitters, run, splitter))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the cut at the start of a block, or at the end of the run. */
static GsRunCut
cut_at(const GsRunSplitters *splitters, int run, uint32 block)
{
	const GsIndexedRun *indexed = &splitters->runs[run];
	GsRunCut	cut = {
		.row = block < indexed->index.nblocks ?
		indexed->index.blocks[block].first_row : indexed->run.nrows,
		.block = block,
		.offset = sizeof(GsRunBlock)
	};

	return cut;
}

/* Returns the cut in front of the first row that does not sort before a splitter. */
static GsRunCut
find_cut(GsRunSplitters *splitters, int run, GsSortedRun *file,
		 const GsSample *splitter)
{
	uint32		low = 0;
	uint32		high = splitters->runs[run].index.nblocks;
	uint32		nrows;
	GsRunCut	cut;

	/* Blocks before 'low' begin before the splitter, those from 'high' not. */
	while (low < high)
	{
		uint32		middle = (low + high) / 2;

		if (begins_before(splitters, run, file, middle, splitter))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return cut_at(splitters, run, 0);
	read_block(splitters, run, file, low - 1);
	find_rows(splitters);
	nrows = count_before(splitters, run, splitter);
	if (nrows == splitters->block->nrows)
		return cut_at(splitters, run, low);
	cut = cut_at(splitters, run, low - 1);
	cut.row += nrows;
	cut.offset = splitters->offsets[nrows];
	return cut;
}

GsRunCut
gpusort_run_splitters_cut(GsRunSplitters *splitters, int range, int run,
						  GsSortedRun *file)
{
	const GsSample *splitter;
	GsRunCut	cut;

	if (range == 0)
		return cut_at(splitters, run, 0);
	if (range == splitters->nranges)
		return cut_at(splitters, run, splitters->runs[run].index.nblocks);
	splitter = &splitters->splitters[range - 1];
	if (splitter->run == run)
		return cut_at(splitters, run, splitter->block);
	cut = find_cut(splitters, run, file, splitter);
	MemoryContextReset(splitters->scratch);
	return cut;
}

GsSortedRun
gpusort_run_slice(const GsIndexedRun *run, const GsSortedRun *file,
				  const GsRunCut *start, const GsRunCut *end)
{
	const GsBlockEntry *block = &run->index.blocks[start->block];
	GsSortedRun slice = {
		.file = file->file,
		.frozen = true,
		.first = block->extent,
		.next = block->extent,
		.nrows = end->row - start->row,
		.longest_block = run->run.longest_block,
		.skip_rows = (uint32) (start->row - block->first_row),
		.skip_bytes = start->offset
	};

	return slice;
}
