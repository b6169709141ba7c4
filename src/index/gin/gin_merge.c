/*-------------------------------------------------------------------------
 *
 * gin_merge.c
 *		Merges the keys of a GIN index that are in memory with those in runs.
 *
 * Each source has its next key, and a loser tree finds the least of them.  The sources with
 * equal keys have their lists of TIDs merged, too.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "core/loser_tree.h"
#include "index/gin/gin_merge.h"
#include "work.h"

#define MAX_BUFFER_BYTES	((Size) 256 * 1024)

/* ----------------------------------------------------------------
 *		merging lists of TIDs
 * ----------------------------------------------------------------
 */

/* Several streams that are read together. */
typedef struct GsTidStreams
{
	GsTidStream **streams;		/* in the order of their next TIDs */
	uint32		count;			/* of those that are not at their ends */
	uint64		last;			/* TID that was returned; 0 at the beginning */
} GsTidStreams;

/* Has the stream a TID left? */
static inline bool
has_tid(GsTidStream *stream)
{
	if (stream->next < stream->count)
		return true;
	if (stream->count == 0)
		return false;
	gpusort_tid_stream_start(stream);
	return stream->count > 0;
}

static inline uint64
next_tid(const GsTidStream *stream)
{
	return stream->tids[stream->next];
}

/* Move the stream at the end of a part of the array to its place in the order there. */
static void
insert_last(GsTidStream **array, uint32 count)
{
	GsTidStream *stream = array[count - 1];
	uint32		k = count - 1;

	for (; k > 0 && next_tid(array[k - 1]) > next_tid(stream); k--)
		array[k] = array[k - 1];
	array[k] = stream;
}

/* Begin to read streams that have been started.  Changes their order in the array. */
static void
start_streams(GsTidStreams *streams, GsTidStream **array, uint32 count)
{
	streams->streams = array;
	streams->count = 0;
	streams->last = 0;
	for (uint32 i = 0; i < count; i++)
	{
		GsTidStream *stream = array[i];

		if (!has_tid(stream))
			continue;
		array[streams->count++] = stream;
		insert_last(array, streams->count);
	}
}

/* The first stream has been read: move it to its place. */
static void
move_first(GsTidStreams *streams)
{
	GsTidStream **array = streams->streams;
	GsTidStream *first = array[0];

	if (has_tid(first) && (streams->count == 1 || next_tid(first) <= next_tid(array[1])))
		return;

	/* What it has next is mostly beyond all others. */
	memmove(array, array + 1, (streams->count - 1) * sizeof(GsTidStream *));
	if (has_tid(first))
	{
		array[streams->count - 1] = first;
		insert_last(array, streams->count);
	}
	else
		streams->count--;
}

/*
 * Get up to GPUSORT_TID_BATCH of their TIDs in ascending order, each TID once.  Returns their
 * number, which is 0 at the end.
 */
static uint32
read_streams(GsTidStreams *streams, uint64 *tids)
{
	uint64		last = streams->last;
	uint32		n = 0;

	while (n < GPUSORT_TID_BATCH && streams->count > 0)
	{
		GsTidStream *stream = streams->streams[0];
		uint64		others = streams->count == 1 ? PG_UINT64_MAX : next_tid(streams->streams[1]);
		uint32		i = stream->next;

		/*
		 * Lists of one process seldom overlap, so a stream usually has many
		 * TIDs in a row.
		 */
		for (; i < stream->count && stream->tids[i] <= others && n < GPUSORT_TID_BATCH; i++)
		{
			if (stream->tids[i] != last)
				tids[n++] = last = stream->tids[i];
		}
		stream->next = i;
		move_first(streams);
	}
	streams->last = last;
	return n;
}

/* ----------------------------------------------------------------
 *		merging keys
 * ----------------------------------------------------------------
 */

/* A run, or the keys in memory, which come last. */
typedef struct GsGinSource
{
	GsGinRunReader *run;		/* or NULL */
	GsGinKey	key;			/* the next one */
	GsTidStream *stream;		/* of a run */
	GsTidStream **streams;		/* of the keys in memory */
	uint32		nstreams;
} GsGinSource;

struct GsGinMerge
{
	GsGinOrder *order;
	GsGinKeys  *keys;
	GsGinSource *sources;
	uint32		nsources;
	GsLoserTree tree;

	/* The current key: */
	uint32	   *taken;			/* numbers of the sources that have it */
	uint32		ntaken;
	GsTidStream **streams;		/* their TIDs */
	uint32		nstreams;
	uint32		max_streams;
	GsTidStreams tids;
};

/* The rank of a key: the column and the category. */
static uint32
rank_of(const GsGinKey *key)
{
	return (uint32) key->attnum << 8 | (uint8) key->category;
}

/* GsTieCallback */
static bool
is_before(void *arg, uint32_t a, uint32_t b)
{
	GsGinMerge *merge = arg;
	int			order = gpusort_gin_order_compare(merge->order, &merge->sources[a].key,
												  &merge->sources[b].key);

	gpusort_work_add(2 * GPUSORT_WORK_ROW);
	if (order == 0)
	{
		uint64		tid_a = merge->sources[a].streams[0]->tids[0];
		uint64		tid_b = merge->sources[b].streams[0]->tids[0];

		order = tid_a < tid_b ? -1 : tid_a > tid_b;
	}
	return order != 0 ? order < 0 : a < b;
}

/* Get the next key of a source. */
static void
advance(GsGinMerge *merge, uint32 number)
{
	GsGinSource *source = &merge->sources[number];
	GsPlayer   *player = &merge->tree.players[number];

	if (source->run != NULL)
	{
		source->stream = gpusort_gin_run_next(source->run, &source->key);
		source->nstreams = source->stream != NULL ? 1 : 0;
		source->streams = &source->stream;
	}
	else
		source->nstreams = gpusort_gin_keys_next(merge->keys, &source->key,
												 &source->streams);
	if (source->nstreams == 0)
		player->rank = GPUSORT_RANK_OUT;
	else
	{
		player->rank = rank_of(&source->key);
		player->word = source->key.category == GIN_CAT_NORM_KEY ? source->key.word : 0;
	}
}

/* Open the runs of a set as the sources from number 'n' on.  Returns the next number. */
static uint32
open_runs(GsGinMerge *merge, uint32 n, GsGinRuns *runs, Size buffer_bytes)
{
	for (uint32 i = 0; i < gpusort_gin_runs_count(runs); i++)
		merge->sources[n++].run = gpusort_gin_run_open(runs, i, buffer_bytes);
	return n;
}

GsGinMerge *
gpusort_gin_merge_begin(GsGinOrder *order, GsGinKeys *keys, GsGinRuns *runs,
						GsGinRuns **others, uint32 nothers, Size memory)
{
	GsGinMerge *merge = palloc0(sizeof(GsGinMerge));
	uint32		nruns = runs == NULL ? 0 : gpusort_gin_runs_count(runs);
	uint32		n = 0;
	Size		buffer_bytes;

	for (uint32 i = 0; i < nothers; i++)
		nruns += gpusort_gin_runs_count(others[i]);
	buffer_bytes = Min(memory / Max(nruns, 1), MAX_BUFFER_BYTES);
	merge->order = order;
	merge->keys = keys;
	merge->nsources = nruns + 1;
	merge->sources = palloc0(merge->nsources * sizeof(GsGinSource));
	merge->taken = palloc(merge->nsources * sizeof(uint32));
	merge->max_streams = merge->nsources;
	merge->streams = palloc(merge->nsources * sizeof(GsTidStream *));
	merge->tree.count = merge->nsources;
	merge->tree.players = palloc0(merge->nsources * sizeof(GsPlayer));
	merge->tree.losers = palloc(merge->nsources * sizeof(uint32));
	merge->tree.tie = is_before;
	merge->tree.tie_arg = merge;
	if (runs != NULL)
		n = open_runs(merge, n, runs, buffer_bytes);
	for (uint32 i = 0; i < nothers; i++)
		n = open_runs(merge, n, others[i], buffer_bytes);
	for (uint32 i = 0; i < merge->nsources; i++)
		advance(merge, i);
	gpusort_loser_tree_start(&merge->tree);
	return merge;
}

/* Add the streams of a source to those of the current key. */
static void
take_streams(GsGinMerge *merge, uint32 number)
{
	const GsGinSource *source = &merge->sources[number];

	if (merge->nstreams + source->nstreams > merge->max_streams)
	{
		merge->max_streams = (merge->nstreams + source->nstreams) * 2;
		merge->streams = repalloc(merge->streams,
								  merge->max_streams * sizeof(GsTidStream *));
	}
	memcpy(&merge->streams[merge->nstreams], source->streams,
		   source->nstreams * sizeof(GsTidStream *));
	merge->nstreams += source->nstreams;
	merge->taken[merge->ntaken++] = number;
}

/* Is a player's key equal to that of a source? */
static bool
has_equal_key(GsGinMerge *merge, uint32 player, uint32 number)
{
	return merge->tree.players[player].rank != GPUSORT_RANK_OUT &&
		gpusort_gin_order_compare(merge->order, &merge->sources[number].key,
								  &merge->sources[player].key) == 0;
}

/*
 * Take the winner's key.  If others have an equal one, all of them leave the tree until the
 * next key is requested, since their values must last until then.
 */
static void
take_key(GsGinMerge *merge)
{
	GsLoserTree *tree = &merge->tree;
	uint32		first = tree->winner;
	uint32		second = gpusort_loser_tree_second(tree);

	merge->ntaken = 0;
	merge->nstreams = 0;
	take_streams(merge, first);
	if (second == first || !has_equal_key(merge, second, first))
		return;
	tree->players[first].rank = GPUSORT_RANK_OUT;
	gpusort_loser_tree_replay(tree);
	while (has_equal_key(merge, tree->winner, first))
	{
		take_streams(merge, tree->winner);
		tree->players[tree->winner].rank = GPUSORT_RANK_OUT;
		gpusort_loser_tree_replay(tree);
	}
}

bool
gpusort_gin_merge_next(GsGinMerge *merge, GsGinKey *key)
{
	GsLoserTree *tree = &merge->tree;

	for (uint32 i = 0; i < merge->ntaken; i++)
		advance(merge, merge->taken[i]);
	if (merge->ntaken == 1)
		gpusort_loser_tree_replay(tree);
	else if (merge->ntaken > 1)
		gpusort_loser_tree_start(tree);
	if (tree->players[tree->winner].rank == GPUSORT_RANK_OUT)
		return false;
	*key = merge->sources[tree->winner].key;
	take_key(merge);
	start_streams(&merge->tids, merge->streams, merge->nstreams);
	return true;
}

uint32
gpusort_gin_merge_tids(GsGinMerge *merge, uint64 *tids)
{
	return read_streams(&merge->tids, tids);
}

void
gpusort_gin_merge_write(GsGinOrder *order, GsGinKeys *keys, GsGinRuns *runs, Size memory,
						GsGinRuns *target)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort GIN run",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsGinMerge *merge = gpusort_gin_merge_begin(order, keys, runs, NULL, 0, memory);
	uint64		tids[GPUSORT_TID_BATCH];
	GsGinKey	key;

	gpusort_gin_runs_begin_run(target);
	while (gpusort_gin_merge_next(merge, &key))
	{
		uint32		count;

		gpusort_gin_runs_begin_key(target, &key);
		while ((count = gpusort_gin_merge_tids(merge, tids)) > 0)
		{
			CHECK_FOR_INTERRUPTS();
			gpusort_gin_runs_add(target, tids, count);
		}
		gpusort_gin_runs_end_key(target);
	}
	gpusort_gin_runs_end_run(target);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}
