/*-------------------------------------------------------------------------
 *
 * gpu_run_merge.c
 *		Merges sorted runs by sorting one range of their rows after another on a GPU.
 *
 * A sort of more rows than a GPU has memory for has written batches of them as sorted runs.  A
 * merge on the CPU compares each row with those of other runs, which takes longer than sending
 * it to the GPU and back:
 *
 *		runs on disk		a b|d e f|g h	a c|d|g g i		b|d e|h i
 *		ranges				a b a c b		d e f d d e		g h g g i h i
 *		sorted on the GPU	a a b b c		d d d e e f		g g g h h i i
 *
 * So each range of the sorted order (run_ranges.h) has the rows of all runs between two rows,
 * and fits on the device.  Its rows are put in the order of the runs, and the sort is stable.
 * Therefore ties are returned in the same order as by a merge.
 *
 * Nothing can be lost, since all rows are on disk until the end.  If there is no GPU for a range
 * any more, the CPU merges it, and skips the rows that have been returned already.
 *
 * row_runs.c calls this when all batches have been written.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "fallback.h"
#include "sort/base/dense_row.h"
#include "sort/base/sort_stats.h"
#include "sort/base/tuple_rows.h"
#include "sort/disk/run_merge.h"
#include "sort/disk/run_ranges.h"
#include "sort/gpu/gpu_run_merge.h"
#include "sort/gpu/gpu_spread.h"

/*
 * A range should have this part of the rows that fit on the device.  Ranges have different
 * lengths, since they are chosen by samples.
 */
#define PART_OF_BATCH	2

struct GsGpuRunMerge
{
	const GsSortSpec *spec;
	GsSortSpec	range_spec;		/* of a sort of the range */
	MemoryContext context;
	GsRowFormat *format;

	/* All runs. */
	int64		batch_rows;		/* that fit on the device */
	int			nruns;
	GsIndexedRun *runs;
	GsSortedRun *files;
	GsRunRanges *ranges;
	int			next_range;
	int			nsorted;		/* ranges that a GPU has sorted */
	bool		counted;		/* is the want of a GPU in statistics? */

	/* The range that is being read. */
	MemoryContext range_context;	/* of 'spread' or 'merge' */
	int			nslices;
	GsSortedRun *slices;
	int64		first;			/* position of its first row */
	int64		nrows;
	GsGpuSpread *spread;		/* NULL if it is merged on the CPU */
	GsRunMerge *merge;
	int64		merged;			/* rows that 'merge' has returned */

	/* Rows that are read from a run. */
	GsRunBlock *block;			/* with a byte behind it */
	GsRowBuffer buffer;
};

/* ----------------------------------------------------------------
 *		beginning
 * ----------------------------------------------------------------
 */

/* Describe and open the runs.  Returns the number of their rows. */
static int64
open_runs(GsGpuRunMerge *merge, const GsExternalSort *external)
{
	Size		longest = 0;
	int64		nrows = 0;

	merge->nruns = gpusort_external_runs(external);
	merge->runs = palloc(merge->nruns * sizeof(GsIndexedRun));
	merge->files = palloc(merge->nruns * sizeof(GsSortedRun));
	merge->slices = palloc(merge->nruns * sizeof(GsSortedRun));
	for (int r = 0; r < merge->nruns; r++)
	{
		const GsSharedRun *run = &merge->runs[r].run;

		gpusort_external_describe_run(external, r, &merge->runs[r]);
		merge->files[r] = gpusort_external_open_run(external, r);
		longest = Max(longest, Max(run->longest_block, run->extent_bytes));
		nrows += run->nrows;
	}
	merge->block = MemoryContextAllocHuge(merge->context, longest + 1);
	return nrows;
}

GsGpuRunMerge *
gpusort_gpu_run_merge_begin(const GsSortSpec *spec, const GsExternalSort *external,
							int64 batch_rows)
{
	GsGpuRunMerge *merge = palloc0(sizeof(GsGpuRunMerge));
	int64		range_rows = Max(batch_rows / PART_OF_BATCH, 1);
	int64		nranges;

	merge->spec = spec;
	merge->range_spec = *spec;
	merge->range_spec.processes = 0;
	merge->context = CurrentMemoryContext;
	merge->batch_rows = batch_rows;
	merge->format = gpusort_row_format_create(spec);
	merge->buffer.context = merge->context;
	nranges = Min(open_runs(merge, external) / range_rows + 1, INT_MAX / 2);
	merge->ranges = gpusort_run_ranges_create(spec, merge->format, merge->runs,
											  merge->files, merge->nruns, (int) nranges);
	return merge;
}

/* ----------------------------------------------------------------
 *		a range on the GPU
 * ----------------------------------------------------------------
 */

/*
 * After a row was refused: go on in a session on another device.  Returns false if there is
 * none, or rows are lost.
 */
static bool
use_another_gpu(GsGpuRunMerge *merge)
{
	return gpusort_gpu_spread_failure(merge->spread) == GS_FALLBACK_DEVICE_MEMORY &&
		gpusort_gpu_spread_grow(merge->spread);
}

/*
 * Returns how many of the first 'n' dense rows are packed rows as well, from their columns on:
 * see gpusort_dense_rows_are_packed().  The bitmap of a packed row is that of the next dense
 * one, so both must be 0.  There is a 0 behind the last row of a block.
 */
static uint32
count_plain_rows(const GsGpuRunMerge *merge, const char *dense, uint32 n)
{
	Size		row_bytes = merge->format->packed_bytes;
	uint32		count = 0;

	if (!gpusort_dense_rows_are_packed(merge->format) || dense[0] != 0)
		return 0;
	while (count < n && dense[(count + 1) * row_bytes] == 0)
		count++;
	return count;
}

/* Add so many plain rows.  Returns false if no device has room for them, or rows are lost. */
static bool
put_plain_rows(GsGpuRunMerge *merge, const char *dense, uint32 n)
{
	GsRowsInPlace rows = {
		.nrows = n,
		.first = dense + merge->format->null_bytes,
		.row_bytes = merge->format->packed_bytes
	};

	for (;;)
	{
		GsGpuSession *session = gpusort_gpu_spread_session(merge->spread);
		uint32		put = gpusort_gpu_session_put_in_place(session, &rows);

		if (put == rows.nrows)
			return true;
		if (!use_another_gpu(merge))
			return false;
		rows.first += put * rows.row_bytes;
		rows.nrows -= put;
	}
}

/* Add a row.  Sets *bytes to the size of its dense form.  Returns false likewise. */
static bool
put_row(GsGpuRunMerge *merge, const char *dense, Size *bytes)
{
	char	   *row = gpusort_dense_row_expand_fast(merge->format, dense, &merge->buffer,
													bytes);
	Size		packed_bytes = gpusort_row_format_packed_length(merge->format, row);

	while (!gpusort_gpu_session_put_packed(gpusort_gpu_spread_session(merge->spread), row,
										   packed_bytes))
		if (!use_another_gpu(merge))
			return false;
	return true;
}

/* Add the rows of a slice.  Returns false likewise. */
static bool
put_slice(GsGpuRunMerge *merge, GsSortedRun slice)
{
	int64		left = slice.nrows;

	while (left > 0)
	{
		char	   *dense;
		uint32		n = gpusort_sorted_run_read_rows(&slice, merge->block, left, &dense);

		left -= n;
		((char *) merge->block)[merge->block->bytes] = 0;
		while (n > 0)
		{
			uint32		count = count_plain_rows(merge, dense, n);
			Size		bytes = count * merge->format->packed_bytes;

			if (count > 0 ? !put_plain_rows(merge, dense, count) :
				!put_row(merge, dense, &bytes))
				return false;
			dense += bytes;
			n -= Max(count, 1);
		}
	}
	return true;
}

/* Sort the range on a GPU.  Returns false if that is not possible. */
static bool
sort_on_gpu(GsGpuRunMerge *merge, GsFallback *reason)
{
	/*
	 * Rows can be so long that there are too few samples for ranges of the
	 * right length.
	 */
	*reason = GS_FALLBACK_DEVICE_MEMORY;
	if (merge->nrows > merge->batch_rows)
		return false;
	merge->range_spec.expected_rows = merge->nrows;
	merge->spread = gpusort_gpu_spread_create(&merge->range_spec, reason);
	if (merge->spread == NULL)
		return false;
	for (int s = 0; s < merge->nslices; s++)
		if (!put_slice(merge, merge->slices[s]))
			break;
	if (gpusort_gpu_spread_failure(merge->spread) == GS_FALLBACK_NONE &&
		gpusort_gpu_spread_sort(merge->spread) &&
		gpusort_gpu_spread_count(merge->spread) == merge->nrows)
		return true;
	*reason = gpusort_gpu_spread_failure(merge->spread);
	return false;
}

/* ----------------------------------------------------------------
 *		a range on the CPU
 * ----------------------------------------------------------------
 */

/* Free what the range needs. */
static void
leave_range(GsGpuRunMerge *merge)
{
	if (merge->spread != NULL)
		gpusort_gpu_spread_end(merge->spread);
	merge->spread = NULL;
	merge->merge = NULL;
	MemoryContextReset(merge->range_context);
}

/* Merge the range on the CPU, since there is no GPU for it. */
static void
begin_merge(GsGpuRunMerge *merge, GsFallback reason)
{
	MemoryContext caller;
	GsSortedRun **runs;

	/* Want of memory is no news. */
	if (!merge->counted && reason != GS_FALLBACK_DEVICE_MEMORY &&
		gpusort_fallback_is_want_of_gpu(reason))
	{
		gpusort_stats_count_fallback(reason);
		merge->counted = true;
	}
	leave_range(merge);
	caller = MemoryContextSwitchTo(merge->range_context);
	runs = palloc(merge->nslices * sizeof(GsSortedRun *));
	for (int s = 0; s < merge->nslices; s++)
		runs[s] = &merge->slices[s];
	merge->merge = gpusort_run_merge_begin(merge->spec, merge->format, runs,
										   merge->nslices, NULL);
	merge->merged = 0;
	MemoryContextSwitchTo(caller);
}

/* Returns the packed row at an index of the range. */
static char *
get_merged(GsGpuRunMerge *merge, int64 index)
{
	while (merge->merged <= index)
	{
		if (!gpusort_run_merge_next(merge->merge))
			elog(ERROR, "a range of sorted runs has no row " INT64_FORMAT, merge->merged);
		merge->merged++;
	}
	return gpusort_run_merge_packed_row(merge->merge);
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

/* Go to the next range.  It may be empty. */
static void
next_range(GsGpuRunMerge *merge)
{
	GsFallback	reason;
	MemoryContext caller;
	bool		sorted;

	if (merge->next_range == gpusort_run_ranges_count(merge->ranges))
		elog(ERROR, "sorted runs have no row " INT64_FORMAT, merge->first + merge->nrows);
	if (merge->range_context == NULL)
		merge->range_context = AllocSetContextCreate(merge->context, "pg_gpusort range",
													 ALLOCSET_DEFAULT_SIZES);
	leave_range(merge);
	merge->first += merge->nrows;
	merge->nrows = 0;
	merge->nslices = gpusort_run_ranges_slices(merge->ranges, merge->next_range++,
											   merge->slices);
	for (int s = 0; s < merge->nslices; s++)
		merge->nrows += merge->slices[s].nrows;
	if (merge->nrows == 0)
		return;
	caller = MemoryContextSwitchTo(merge->range_context);
	sorted = sort_on_gpu(merge, &reason);
	MemoryContextSwitchTo(caller);
	if (sorted)
		merge->nsorted++;
	else
		begin_merge(merge, reason);
}

void
gpusort_gpu_run_merge_get(GsGpuRunMerge *merge, int64 position, Datum *values,
						  bool *isnull)
{
	int64		index;

	while (unlikely(position >= merge->first + merge->nrows))
		next_range(merge);
	index = position - merge->first;
	if (likely(merge->spread != NULL))
	{
		if (likely(gpusort_gpu_spread_get(merge->spread, index, values, isnull)))
			return;
		begin_merge(merge, gpusort_gpu_spread_failure(merge->spread));
	}
	gpusort_row_format_unpack(merge->format, get_merged(merge, index), values, isnull);
}

int
gpusort_gpu_run_merge_ranges(const GsGpuRunMerge *merge)
{
	return merge->nsorted;
}

void
gpusort_gpu_run_merge_end(GsGpuRunMerge *merge)
{
	if (merge->range_context != NULL)
		leave_range(merge);
}
