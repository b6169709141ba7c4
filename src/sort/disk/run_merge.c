/*-------------------------------------------------------------------------
 *
 * run_merge.c
 *		Merges sorted runs.
 *
 * One block of each run is in memory.  The key of a run's next row is encoded when
 * that row is reached.  Runs do not contain encoded keys, because encoding them again
 * takes less time than writing and reading them.
 *
 * Runs of an input that is nearly in order hardly overlap.  If a whole block was
 * returned without a row from another run in between, we compare the last row of that
 * run's next block with the next rows of the other runs.  If it comes before these,
 * all rows of its block are returned without looking at their keys.
 *
 * A range of the order begins and ends amid blocks.  Rows before it are left out when the merge
 * begins.  Where it ends is one more source of the loser tree, whose only row is the splitter.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "core/loser_tree.h"
#include "core/radix_sort.h"
#include "key/key_comparison.h"
#include "sort/base/row_format.h"
#include "settings.h"
#include "sort/disk/run_merge.h"
#include "work.h"

/*
 * The words of a string that are encoded for a merge.  They save calls of the comparator if strings
 * begin alike, and take a hundredth longer if they do not.
 */
#define STRING_WORDS	4

/* A pivot is a string of at most this many bytes, so that its words tell more. */
#define MAX_PIVOT_BYTES	1024

/* Ranks of rows in the tree, by which NULL keys sort before or after all others. */
#define RANK_NULL_FIRST	0
#define RANK_REGULAR		1
#define RANK_NULL_LAST		2

#define NO_SOURCE			PG_UINT32_MAX

typedef struct GsMergeSource
{
	int			end_compared;	/* of its sort keys, only those before this
								 * one are compared */
	uint32		place;			/* among the sources, for ties */
	bool		begins_before;	/* may it have rows that come before the
								 * range? */
	int64		rows_to_read;	/* rows after the block */
	GsRunReader reader;
	GsRunBlock *block;
	uint32		rows_left;		/* in the block, including 'row' */
	bool		is_before_others;	/* do all rows of the block come before
									 * the rows of other sources? */
	uint32		block_rows;		/* in the block, and in the one before */
	uint32		rows_before;
	char	   *dense;			/* the current row, in the block, */
	Size		row_bytes;		/* its size there */
	char	   *row;			/* and its packed form, in the buffer */
	GsRowBuffer buffer;
	uint64		key[GPUSORT_CPU_MAX_KEY_WORDS];

	/* The sort keys of 'row'. */
	Datum	   *values;
	bool	   *isnull;
} GsMergeSource;

struct GsRunMerge
{
	MemoryContext context;
	const GsSortSpec *spec;
	const GsRowFormat *format;
	const GsKeyPlan *plan;		/* see plan_of_merge() */
	bool		has_pivot;		/* are the words relative to 'pivot'? */
	GsPivot		pivot;
	unsigned	words;			/* of the keys */
	bool		exact;			/* is the encoding of all keys exact? */
	int			first_inexact;	/* number of the sort key */
	GsKeyComparison *comparison;	/* unless exact */
	MemoryContext scratch;		/* for what comparators leak; unless exact */
	GsLoserTree tree;
	GsMergeSource *sources;		/* in the order of the runs, and one for rows
								 * that are only compared */
	const GsRunRange *range;
	uint32		start_place;	/* of ties of its start */
	uint32		end;			/* the source that ends it, or NO_SOURCE */
	bool		started;
	uint32		latest;			/* the source of the latest row, and how */
	uint64		streak;			/* many latest rows came from there */

	/* Sort keys of a row, by column. */
	Datum	   *row_values;
	bool	   *row_isnull;
};

/*
 * Compare the rows of two sources that have equal first words of the keys, which a loser tree
 * compares by itself: by the other words, and then, if these are not exact, by the comparators.
 * Returns 0 if they are ties.
 */
static int
compare_rest(const GsRunMerge *merge, const GsMergeSource *left,
			 const GsMergeSource *right)
{
	MemoryContext caller;
	int			cmp;

	for (unsigned w = 1; w < merge->words; w++)
		if (left->key[w] != right->key[w])
			return left->key[w] < right->key[w] ? -1 : 1;
	if (merge->exact)
		return 0;
	gpusort_work_add(left->row_bytes + right->row_bytes);
	caller = MemoryContextSwitchTo(merge->scratch);
	cmp = gpusort_key_comparison_compare(merge->comparison, merge->first_inexact,
										 Min(left->end_compared, right->end_compared),
										 left->values, left->isnull,
										 right->values, right->isnull);
	MemoryContextSwitchTo(caller);
	return cmp;
}

/* GsTieCallback, called if the first words of the keys are equal. */
static bool
is_before(void *arg, uint32 a, uint32 b)
{
	const GsRunMerge *merge = arg;
	int			cmp = compare_rest(merge, &merge->sources[a],
								   &merge->sources[b]);

	return cmp != 0 ? cmp < 0 : merge->sources[a].place < merge->sources[b].place;
}

/* Encode the sort keys of a source's row, and pass them to the tree. */
static pg_attribute_always_inline void
show_values(GsRunMerge *merge, uint32 number)
{
	GsMergeSource *source = &merge->sources[number];
	const Datum *values = source->values;
	const bool *isnull = source->isnull;
	GsPlayer   *player = &merge->tree.players[number];
	const GsSortKeys *keys = &merge->spec->keys;
	const GsKeyPlan *plan = merge->plan;

	for (int k = 0; k < keys->nkeys; k++)
	{
		merge->row_values[keys->attnos[k] - 1] = values[k];
		merge->row_isnull[keys->attnos[k] - 1] = isnull[k];
	}
	player->rank = RANK_REGULAR;
	if (merge->has_pivot && !isnull[0])
		gpusort_pivot_encode(&merge->pivot, values[0], source->key);
	else if (!gpusort_key_plan_encode(plan, merge->row_values, merge->row_isnull,
									  source->key))
		player->rank = gpusort_key_plan_nulls_first(plan) ? RANK_NULL_FIRST :
			RANK_NULL_LAST;
	player->word = source->key[0];
}

/* The same for a source's next row. */
static pg_attribute_always_inline void
show_key(GsRunMerge *merge, uint32 number)
{
	GsMergeSource *source = &merge->sources[number];
	const GsSortKeys *keys = &merge->spec->keys;

	gpusort_work_add(GPUSORT_WORK_ROW);
	gpusort_row_format_unpack_columns(merge->format, source->row, keys->attnos,
									  keys->nkeys, source->values, source->isnull);
	show_values(merge, number);
}

/* A splitter is in front of all rows that agree with it in the first keys. */
static void
keep_group_words(GsRunMerge *merge, uint32 number)
{
	GsMergeSource *source = &merge->sources[number];
	uint64		mask[GPUSORT_CPU_MAX_KEY_WORDS];

	source->end_compared = merge->spec->group_keys;
	gpusort_key_plan_mask(merge->plan, source->end_compared, mask);
	for (unsigned w = 0; w < merge->words; w++)
		source->key[w] &= mask[w];
	merge->tree.players[number].word = source->key[0];
}

/* Make a splitter the row of a source. */
static void
show_splitter(GsRunMerge *merge, uint32 number, const GsRunSplitter *splitter)
{
	GsMergeSource *source = &merge->sources[number];
	int			nkeys = merge->spec->keys.nkeys;

	memcpy(source->values, splitter->values, nkeys * sizeof(Datum));
	memcpy(source->isnull, splitter->isnull, nkeys * sizeof(bool));
	source->row_bytes = 0;
	show_values(merge, number);
	if (splitter->run == GPUSORT_BEFORE_RUNS)
		keep_group_words(merge, number);
}

/* Go to the first row of a source's next block.  Returns false if there is none. */
static bool
read_block(GsRunMerge *merge, GsMergeSource *source)
{
	if (source->rows_to_read == 0)
		return false;
	source->block = gpusort_run_reader_next(&source->reader);
	source->dense = (char *) (source->block + 1);
	source->rows_left = Min(source->block->nrows, source->rows_to_read);
	if (merge->scratch != NULL)
		MemoryContextReset(merge->scratch);
	source->block_rows = source->rows_left;
	source->rows_to_read -= source->rows_left;
	source->is_before_others = false;
	return true;
}

/* Expand the row at source->dense. */
static inline void
expand_row(const GsRunMerge *merge, GsMergeSource *source)
{
	source->row = gpusort_dense_row_expand_fast(merge->format, source->dense,
												&source->buffer,
												&source->row_bytes);
}

/*
 * Go to the next row of a source, or take the source out of the tree.  The key of the
 * row is not needed if it comes before the rows of other sources.
 */
static inline void
advance(GsRunMerge *merge, uint32 number)
{
	GsMergeSource *source = &merge->sources[number];

	CHECK_FOR_INTERRUPTS();
	if (likely(source->rows_left > 1))
	{
		source->rows_left--;
		source->dense += source->row_bytes;
	}
	else if (!read_block(merge, source))
	{
		source->is_before_others = false;
		merge->tree.players[number].rank = GPUSORT_RANK_OUT;
		return;
	}
	expand_row(merge, source);
	if (!source->is_before_others)
		show_key(merge, number);
}

/*
 * Returns whether all rows of the winner's block come before the rows of other sources.
 * The winner is at the first row of the block.
 */
static bool
block_is_before_others(GsRunMerge *merge)
{
	GsLoserTree *tree = &merge->tree;
	GsMergeSource *source = &merge->sources[tree->winner];
	uint32		second = gpusort_loser_tree_second(tree);
	uint32		spare = tree->count;
	GsMergeSource *last = &merge->sources[spare];

	if (tree->count == 1 || tree->players[second].rank == GPUSORT_RANK_OUT)
		return true;
	last->dense = (char *) source->block + source->block->last_row;
	expand_row(merge, last);
	show_key(merge, spare);
	last->place = source->place;
	return gpusort_loser_tree_is_before(tree, spare, second);
}

/*
 * Count the rows that come from one source without interruption.  If the winner is at
 * the start of a block, and the block before was returned as a whole, find out whether
 * this one can be, too.  Which source wins cannot be predicted, so that it must not
 * decide a branch.
 */
static inline void
note_winner(GsRunMerge *merge)
{
	uint32		winner = merge->tree.winner;
	GsMergeSource *source = &merge->sources[winner];

	merge->streak &= -(uint64) (winner == merge->latest);
	merge->latest = winner;
	if (unlikely(source->rows_left == source->block_rows))
	{
		if (merge->streak >= source->rows_before &&
			block_is_before_others(merge))
		{
			source->is_before_others = true;
			merge->streak += source->block_rows;
		}
		source->rows_before = source->block_rows;
	}
	merge->streak++;
}

/* ----------------------------------------------------------------
 *		strings that begin alike
 * ----------------------------------------------------------------
 */

/*
 * Returns a source whose current row can be the pivot, one in the middle, if the strings
 * of all sources begin with the same word.  Otherwise returns NULL.
 */
static const GsMergeSource *
choose_pivot(const GsRunMerge *merge)
{
	uint32		nsources = merge->tree.count;
	const GsMergeSource *found = NULL;

	for (uint32 i = 0; i < nsources; i++)
	{
		if (merge->tree.players[i].rank != RANK_REGULAR)
			continue;
		if (found != NULL && found->key[0] != merge->sources[i].key[0])
			return NULL;
		if (found == NULL || i <= nsources / 2)
			found = &merge->sources[i];
	}
	return found;
}

/* Copy the string of a source's row.  Returns false if it is too long for a pivot. */
static bool
copy_string(const GsRunMerge *merge, const GsMergeSource *source, Datum *copy)
{
	AttrNumber	attno = merge->spec->keys.attnos[0];
	Form_pg_attribute att = TupleDescAttr(merge->spec->tupdesc, attno - 1);
	Datum		value = source->values[0];

	if (att->attlen != -1)
	{
		*copy = datumCopy(value, att->attbyval, att->attlen);
		return true;
	}
	if (toast_raw_datum_size(value) > MAX_PIVOT_BYTES)
		return false;
	*copy = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
	return true;
}

/*
 * If the first rows of all sources have strings that begin alike, most others do, too.
 * Encode the strings relative to one of them from now on.
 */
static void
use_pivot(GsRunMerge *merge)
{
	GsKeyCursor cursor = {0};
	const GsMergeSource *source;
	MemoryContext caller;
	Datum		value;

	if (!gpusort_key_plan_is_string(merge->spec->key_plan))
		return;
	source = choose_pivot(merge);
	if (source == NULL)
		return;
	caller = MemoryContextSwitchTo(merge->context);
	merge->has_pivot = copy_string(merge, source, &value);
	if (merge->has_pivot)
		gpusort_key_plan_set_pivot(merge->plan, &cursor, value,
								   &merge->pivot);
	MemoryContextSwitchTo(caller);
	if (!merge->has_pivot)
		return;
	for (uint32 i = 0; i < merge->tree.count; i++)
		if (i == merge->end)
			show_splitter(merge, i, merge->range->end);
		else if (merge->tree.players[i].rank != GPUSORT_RANK_OUT)
			show_key(merge, i);
}

/* ----------------------------------------------------------------
 *		the merge
 * ----------------------------------------------------------------
 */

/* Prepare a source for having a row, and its sort keys. */
static void
prepare_row(const GsRunMerge *merge, GsMergeSource *source)
{
	int			nkeys = merge->spec->keys.nkeys;

	source->buffer.context = merge->context;
	source->end_compared = nkeys;
	source->values = palloc(nkeys * sizeof(Datum));
	source->isnull = palloc(nkeys * sizeof(bool));
}

static void
begin_source(GsRunMerge *merge, uint32 number, GsSortedRun *run, char *window, Size bytes)
{
	GsMergeSource *source = &merge->sources[number];

	source->rows_to_read = run->nrows;
	source->reader = gpusort_run_reader_create(run, window, bytes);
	source->rows_before = PG_UINT32_MAX;
	prepare_row(merge, source);
}

/*
 * Returns the plan by which rows are encoded for a merge.  The plan of the sort has
 * one word of a string, because a sort breaks ties by further words of all strings
 * with equal words.  A merge can only call the comparator, and would do so again and
 * again for strings that begin alike, so it encodes more.
 *
 * This is done only if the string is the first sort key.  A new plan might encode
 * sort keys before it in another way, such as an enum with new labels.  Its words are those of
 * the string alone, since words relative to a pivot may take their place.
 */
static const GsKeyPlan *
plan_of_merge(const GsSortSpec *spec)
{
	GsSortKeys	keys = spec->keys;
	GsReason	reason;
	int			first;

	if (gpusort_key_plan_is_exact(spec->key_plan, &first) || first > 0)
		return spec->key_plan;
	keys.alone = true;
	keys.string_words = STRING_WORDS;
	return gpusort_key_plan_create(&keys, &reason);
}

/* Prepare the order of the rows, whose keys are encoded by merge->plan. */
static void
init_order(GsRunMerge *merge)
{
	merge->words = gpusort_key_plan_words(merge->plan);
	merge->exact = gpusort_key_plan_is_exact(merge->plan, &merge->first_inexact);
	if (merge->exact)
		return;
	merge->comparison = gpusort_key_comparison_create(&merge->spec->keys);
	merge->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort comparisons",
										   ALLOCSET_SMALL_SIZES);
}

/* Make a merge whose sources are to be begun. */
static GsRunMerge *
create_merge(const GsSortSpec *spec, const GsRowFormat *format, uint32 nsources)
{
	GsRunMerge *merge = palloc0(sizeof(GsRunMerge));

	merge->context = CurrentMemoryContext;
	merge->spec = spec;
	merge->format = format;
	merge->plan = plan_of_merge(spec);
	init_order(merge);
	merge->row_values = palloc0(format->ncolumns * sizeof(Datum));
	merge->row_isnull = palloc0(format->ncolumns * sizeof(bool));

	merge->sources = palloc0((nsources + 1) * sizeof(GsMergeSource));
	merge->end = NO_SOURCE;
	merge->tree.count = nsources;
	merge->tree.players = palloc0((nsources + 1) * sizeof(GsPlayer));
	merge->tree.losers = palloc(nsources * sizeof(uint32));
	merge->tree.tie = is_before;
	merge->tree.tie_arg = merge;
	for (uint32 i = 0; i < nsources; i++)
		merge->sources[i].place = i;
	prepare_row(merge, &merge->sources[nsources]);
	return merge;
}

/* Make the end of the range, whose ties come from the runs before it, a source. */
static void
begin_end(GsRunMerge *merge, uint32 number)
{
	merge->end = number;
	prepare_row(merge, &merge->sources[number]);
}

GsRunWindows
gpusort_run_windows_alloc(int n, Size limit)
{
	GsRunWindows windows;

	windows.bytes = MAXALIGN_DOWN(Min(limit / Max(n, 1), GPUSORT_MAX_EXTENT_BYTES));
	windows.memory = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * windows.bytes);
	return windows;
}

GsRunMerge *
gpusort_run_merge_begin(const GsSortSpec *spec, const GsRowFormat *format, const GsRunRange *range)
{
	const GsRunSplitter *start = range->start;
	const GsRunSplitter *end = range->end;
	const GsRunWindows *windows = &range->windows;
	GsRunMerge *merge = create_merge(spec, format, range->nslices + (end != NULL ? 1 : 0));
	uint32		n = 0;

	merge->range = range;
	for (int s = 0; s < range->nslices; s++)
	{
		GsRunSlice *slice = &range->slices[s];

		if (end != NULL && merge->end == NO_SOURCE && slice->number > end->run)
			begin_end(merge, n++);
		merge->sources[n].begins_before = slice->begins_before;
		begin_source(merge, n++, &slice->run, windows->memory + s * windows->bytes,
					 windows->bytes);
		if (start != NULL && slice->number < start->run)
			merge->start_place = n;
	}
	if (end != NULL && merge->end == NO_SOURCE)
		begin_end(merge, n);
	return merge;
}

/* Leave out the rows that come before the range. */
static void
skip_rows_before(GsRunMerge *merge)
{
	uint32		spare = merge->tree.count;

	show_splitter(merge, spare, merge->range->start);
	merge->sources[spare].place = merge->start_place;
	for (uint32 i = 0; i < merge->tree.count; i++)
		if (merge->sources[i].begins_before)
			while (merge->tree.players[i].rank != GPUSORT_RANK_OUT &&
				   gpusort_loser_tree_is_before(&merge->tree, i, spare))
				advance(merge, i);
	merge->sources[spare].end_compared = merge->spec->keys.nkeys;
}

/* Go to the first row of each source. */
static void
start_sources(GsRunMerge *merge)
{
	for (uint32 i = 0; i < merge->tree.count; i++)
		if (i == merge->end)
			show_splitter(merge, i, merge->range->end);
		else
			advance(merge, i);
	if (merge->range->start != NULL)
		skip_rows_before(merge);
	use_pivot(merge);
}

/* Have all rows been returned? */
static inline bool
is_at_end(const GsRunMerge *merge)
{
	uint32		winner = merge->tree.winner;

	return merge->tree.players[winner].rank == GPUSORT_RANK_OUT || winner == merge->end;
}

bool
gpusort_run_merge_next(GsRunMerge *merge)
{
	GsLoserTree *tree = &merge->tree;

	if (likely(merge->started))
	{
		if (is_at_end(merge))
			return false;
		advance(merge, tree->winner);
		if (merge->sources[tree->winner].is_before_others)
			return true;
		if (GPUSORT_IS_WRONG(GS_WRONG_MERGE) &&
			tree->players[tree->winner].rank != GPUSORT_RANK_OUT &&
			tree->players[tree->winner].word % 97 == 3)
			return true;
		gpusort_loser_tree_replay(tree);
	}
	else
	{
		start_sources(merge);
		gpusort_loser_tree_start(tree);
		merge->started = true;
	}
	if (is_at_end(merge))
		return false;
	note_winner(merge);
	return true;
}

char *
gpusort_run_merge_packed_row(const GsRunMerge *merge)
{
	return merge->sources[merge->tree.winner].row;
}

char *
gpusort_run_merge_dense_row(const GsRunMerge *merge, Size *bytes)
{
	const GsMergeSource *source = &merge->sources[merge->tree.winner];

	*bytes = source->row_bytes;
	return source->dense;
}
