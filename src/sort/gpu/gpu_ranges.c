/*-------------------------------------------------------------------------
 *
 * gpu_ranges.c
 *		Ranges of the sorted rows of a GPU session, each of which one process reads.
 *
 * A range is a number of neighbouring chunks, or if there are few chunks, a fraction of one.  Its
 * rows are those from the first group on that begins there, to the end of the last group that does.
 * So who reads a range skips the rows of a group that begins before it, and reads on past its end
 * as long as the last group goes on.  All processes find the same beginnings of groups, so each row
 * is read by one of them.  Rows are in one group if they agree in the first spec->group_keys keys.
 *
 * If the words of keys decide these, the comparators find where a group ends.  Otherwise rows
 * that agree in all words are not in the order of the comparators, so the rows of a range end only
 * where words differ.  Then the rows are of different groups, too, because there are no words of
 * keys after one whose words do not decide.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/base/group_keys.h"
#include "sort/gpu/gpu_rows.h"
#include "work.h"

/*
 * How many chunks a range has.  More chunks would leave less for other processes; with fewer, the
 * two chunks that are read to find out where a range begins and ends would count more.  A range has
 * fewer chunks, or a fraction of one, if each process would otherwise have less than
 * RANGES_PER_PROCESS ranges.  Who reads a fraction reads the whole chunk, so there are at most
 * MOST_FRACTIONS of it.
 */
#define CHUNKS_PER_RANGE	10
#define RANGES_PER_PROCESS	4
#define MOST_FRACTIONS		8

typedef struct GsGpuRanges
{
	const GsGpuRows *rows;
	const GsSortSpec *spec;
	int64		nchunks;
	int64		chunks_per_range;
	int			fractions;		/* of a chunk, each of which is a range; 1 if
								 * ranges are of whole chunks */

	/* The range that is read. */
	int			fraction;		/* number of it */
	int64		chunk;			/* of the next row */
	int64		end_chunk;		/* after the last one of the range */
	int64		next;			/* of the next row */
	bool		ended;
	bool		lost;			/* the rows */

	/* Does the group of the row before the next one go on? */
	bool		by_words;		/* as long as its words do */
	bool		tie;			/* then: do they? */
	GsGroupKeys *group;			/* else: the first keys of that row */
	Datum	   *values;			/* of a row */
	bool	   *isnull;
} GsGpuRanges;

/* ----------------------------------------------------------------
 *		groups
 * ----------------------------------------------------------------
 */

/* Read a row.  Returns false if the rows are lost. */
static bool
read_row(GsGpuRanges *ranges, int64 position)
{
	return gpusort_gpu_session_get(ranges->rows->session, position, ranges->values,
								   ranges->isnull);
}

/* Note in which group the row before the next one is.  Returns false if the rows are lost. */
static bool
note_group(GsGpuRanges *ranges)
{
	int			tie;

	if (ranges->by_words)
	{
		tie = gpusort_gpu_session_is_tie(ranges->rows->session, ranges->next - 1);
		ranges->tie = tie > 0;
		return tie >= 0;
	}
	if (!read_row(ranges, ranges->next - 1))
		return false;
	gpusort_group_keys_keep(ranges->group, ranges->values, ranges->isnull);
	return true;
}

/* Is a row of the chunk that is read in that group?  Rows of others come after it. */
static bool
is_in_group(GsGpuRanges *ranges, int64 position)
{
	return read_row(ranges, position) &&
		gpusort_group_keys_match(ranges->group, ranges->values, ranges->isnull);
}

/*
 * Returns the position after the rows of that group in the chunk of the next row, which is read,
 * and has its last row before 'end'.
 */
static int64
find_end_of_group(GsGpuRanges *ranges, int64 end)
{
	int64		low = ranges->next;

	while (ranges->by_words && ranges->tie && low < end)
		ranges->tie = gpusort_gpu_session_is_tie(ranges->rows->session, low++) > 0;
	while (!ranges->by_words && low < end)
	{
		int64		middle = low + (end - low) / 2;

		CHECK_FOR_INTERRUPTS();
		if (is_in_group(ranges, middle))
			low = middle + 1;
		else
			end = middle;
	}
	return low;
}

/* ----------------------------------------------------------------
 *		ranges
 * ----------------------------------------------------------------
 */

/* Returns where a fraction of the chunk that was read last begins, and the one before it ends. */
static int64
start_of_fraction(const GsGpuRanges *ranges, int fraction)
{
	int64		first = gpusort_gpu_session_chunk_start(ranges->rows->session);
	int64		rows = gpusort_gpu_session_chunk_end(ranges->rows->session) - first;

	/*
	 * Rounded up: only the first fraction begins with the first row of the
	 * chunk.
	 */
	return first + (rows * fraction + ranges->fractions - 1) / ranges->fractions;
}

/*
 * Skip the rows of a group that begins before the range, which may be all rows of the range.
 * Returns false if the rows are lost.
 */
static bool
skip_group(GsGpuRanges *ranges)
{
	while (ranges->chunk < ranges->end_chunk)
	{
		int64		end = gpusort_gpu_session_enter(ranges->rows->session, ranges->next);

		if (end < 0)
			return false;
		ranges->next = find_end_of_group(ranges, end);
		if (ranges->next < start_of_fraction(ranges, ranges->fraction + 1))
			return true;
		ranges->chunk++;
	}
	ranges->ended = true;
	return true;
}

/* Find the first row of a range that begins within a chunk. */
static bool
find_first_row_within(GsGpuRanges *ranges)
{
	if (gpusort_gpu_session_seek(ranges->rows->session, ranges->chunk) < 0)
		return false;
	ranges->next = start_of_fraction(ranges, ranges->fraction);
	ranges->ended = ranges->next == start_of_fraction(ranges, ranges->fraction + 1);
	return ranges->ended || (note_group(ranges) && skip_group(ranges));
}

/* Find the first row of a range.  Returns false if the rows are lost. */
static bool
find_first_row(GsGpuRanges *ranges)
{
	if (ranges->fraction > 0)
		return find_first_row_within(ranges);
	ranges->next = 0;
	if (ranges->chunk == 0)
		return true;
	ranges->next = gpusort_gpu_session_seek(ranges->rows->session, ranges->chunk - 1);
	return ranges->next >= 0 && note_group(ranges) && skip_group(ranges);
}

/* GsRangeSource.open */
static void
open_range(void *arg, int range)
{
	GsGpuRanges *ranges = arg;

	ranges->fraction = range % ranges->fractions;
	ranges->chunk = range / ranges->fractions * ranges->chunks_per_range;
	ranges->end_chunk = Min(ranges->chunk + ranges->chunks_per_range, ranges->nchunks);
	ranges->ended = false;
	ranges->lost = !find_first_row(ranges);
	gpusort_gpu_rows_seek(ranges->rows, ranges->next);
}

/* Does the range end within a chunk, which is its only one? */
static bool
ends_within(const GsGpuRanges *ranges)
{
	return ranges->fraction < ranges->fractions - 1;
}

/* The same as below for that chunk, which was read last and ends at 'end'. */
static int64
find_end_within(GsGpuRanges *ranges, int64 end)
{
	int64		next = ranges->next;

	ranges->next = start_of_fraction(ranges, ranges->fraction + 1);
	end = note_group(ranges) ? find_end_of_group(ranges, end) : -1;
	ranges->next = next;
	return end;
}

/*
 * Returns the position after the rows of the range that are in the chunk of the next row, or -1 if
 * the rows are lost.
 */
static int64
find_end_in_chunk(GsGpuRanges *ranges)
{
	int64		end;

	if (ranges->chunk == ranges->end_chunk && !note_group(ranges))
		return -1;
	end = gpusort_gpu_session_enter(ranges->rows->session, ranges->next);
	if (end < 0)
		return -1;
	if (ranges->chunk >= ranges->end_chunk)
		return find_end_of_group(ranges, end);
	return ends_within(ranges) ? find_end_within(ranges, end) : end;
}

/* GsRangeSource.next: tell of the rows of the next chunk. */
static bool
next_rows(void *arg, GsRowsInPlace *rows)
{
	GsGpuRanges *ranges = arg;
	int64		end = ranges->next;

	memset(rows, 0, sizeof(*rows));
	rows->position = ranges->next;
	if (!ranges->lost && !ranges->ended && ranges->chunk < ranges->nchunks)
		end = find_end_in_chunk(ranges);

	/* If rows are lost, whoever reads the next one will learn why. */
	ranges->lost |= end < 0;
	rows->nrows = ranges->lost ? 1 : (uint32) (end - ranges->next);
	ranges->ended = (ranges->chunk >= ranges->end_chunk || ends_within(ranges)) &&
		end < gpusort_gpu_session_chunk_end(ranges->rows->session);
	ranges->next = end;
	ranges->chunk++;
	return rows->nrows > 0;
}

static const GsRangeSource range_source = {
	.open = open_range,
	.next = next_rows
};

/* ----------------------------------------------------------------
 *		beginning
 * ----------------------------------------------------------------
 */

/* Prepare to find out where groups end. */
static void
prepare_groups(GsGpuRanges *ranges)
{
	const GsSortSpec *spec = ranges->spec;
	int			natts = spec->tupdesc->natts;

	ranges->by_words =
		spec->group_keys > gpusort_gpu_session_first_open(ranges->rows->session);
	ranges->group = gpusort_group_keys_create(spec, spec->group_keys);
	ranges->values = palloc0(natts * sizeof(Datum));
	ranges->isnull = palloc0(natts * sizeof(bool));
}

GsRanges *
gpusort_gpu_ranges_create(const GsGpuRows *rows, const GsSortSpec *spec, GsSharedRanges *shared,
						  int processes)
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);
	GsGpuRanges *ranges = palloc0(sizeof(GsGpuRanges));
	GsRanges   *to_read;
	int64		wanted = processes * RANGES_PER_PROCESS;
	int64		nranges;

	ranges->rows = rows;
	ranges->spec = spec;
	ranges->nchunks = gpusort_gpu_session_chunks(rows->session);
	ranges->chunks_per_range = Max(Min(ranges->nchunks / wanted, CHUNKS_PER_RANGE), 1);
	nranges = (ranges->nchunks + ranges->chunks_per_range - 1) / ranges->chunks_per_range;
	ranges->fractions = Max(Min(wanted / Max(nranges, 1), MOST_FRACTIONS), 1);
	nranges *= ranges->fractions;
	prepare_groups(ranges);
	gpusort_gpu_session_copy_chunks(rows->session);
	to_read = gpusort_ranges_create(shared, spec, &range_source, ranges, (int) nranges, 1,
									gpusort_gpu_session_count(rows->session));
	MemoryContextSwitchTo(caller);
	return to_read;
}
