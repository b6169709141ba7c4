/*-------------------------------------------------------------------------
 *
 * gpu_merge.c
 *		Reads the rows of several GPU sessions in one sorted order.
 *
 * Each session returns its own rows in order.  A loser tree finds the first of their next
 * rows, or, when the cursor moves backward, the last of their previous rows.  The key of
 * a row is encoded again when the row is reached, because devices return rows without
 * their keys.
 *
 * The row that was returned last stays the winner of the tree until the cursor moves, so
 * that its values stay valid in the pool chunk of its session.
 *
 * To go back far, we note at regular positions how many rows of each session come before
 * them, and read on from there.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "core/loser_tree.h"
#include "core/radix_sort.h"
#include "sort/base/merge_order.h"
#include "sort/base/tuple_rows.h"
#include "sort/gpu/gpu_merge.h"
#include "sort/gpu/gpu_sorted_rows.h"
#include "work.h"

/* The positions noted are so many at most, and so many rows apart at least. */
#define MAX_MILESTONES		1024
#define MIN_MILESTONE_ROWS	256

/* Ranks of rows in the tree, by which NULL keys sort before or after all others. */
#define RANK_NULL_FIRST		0
#define RANK_REGULAR		1
#define RANK_NULL_LAST		2

typedef struct GsMergedSession
{
	GsGpuSession *gpu;
	GsGpuTies  *ties;			/* or NULL */
	int64		nrows;
	int64		before;			/* rows that come before the boundary; see
								 * GsGpuMerge.backward */

	/* The row on this side of the boundary. */
	Datum	   *values;
	bool	   *isnull;
	uint64		key[GPUSORT_CPU_MAX_KEY_WORDS];

	/* Its sort keys by their numbers, if their encoding is not exact. */
	Datum	   *key_values;
	bool	   *key_isnull;
} GsMergedSession;

struct GsGpuMerge
{
	const GsSortSpec *spec;
	GsMergeOrder order;

	/*
	 * There is a boundary between two rows of the sorted order, which divides
	 * the rows of each session, too.  The players of the tree are the rows
	 * after it, and the winner is the first of them; or, if 'backward', those
	 * before it, and the winner is the last.  The winner is at 'position'.
	 */
	bool		backward;
	int64		position;		/* or -1: no player is set yet */
	GsLoserTree tree;
	GsMergedSession *sessions;

	/*
	 * For position n * milestone_rows: 'before' of each session, count at a
	 * time.
	 */
	int64		milestone_rows;
	int64		nmilestones;
	int64	   *milestones;
};

/* ----------------------------------------------------------------
 *		comparing
 * ----------------------------------------------------------------
 */

/*
 * Compare the rows of two sessions that have equal first words of the keys.  Returns 0 if
 * they are ties.
 */
static int
compare_rest(const GsGpuMerge *merge, const GsMergedSession *left,
			 const GsMergedSession *right)
{
	int			cmp = gpusort_merge_order_compare_words(&merge->order, left->key, right->key);

	if (cmp != 0 || merge->order.exact)
		return cmp;
	gpusort_work_add(GPUSORT_WORK_ROW);
	cmp = gpusort_merge_order_compare_values(&merge->order,
											 left->key_values, left->key_isnull,
											 right->key_values, right->key_isnull);
	gpusort_merge_order_free(&merge->order);
	return cmp;
}

/* GsTieCallback, called if the first words of the keys are equal. */
static bool
wins(void *arg, uint32 a, uint32 b)
{
	const GsGpuMerge *merge = arg;
	int			cmp = compare_rest(merge, &merge->sessions[a],
								   &merge->sessions[b]);
	bool		before = cmp != 0 ? cmp < 0 : a < b;

	return before != merge->backward;
}

/* Pass the key of a session's current row to the tree. */
static void
show_key(GsGpuMerge *merge, uint32 number)
{
	const GsKeyPlan *plan = merge->spec->key_plan;
	const GsSortKeys *keys = &merge->spec->keys;
	GsMergedSession *session = &merge->sessions[number];
	GsPlayer   *player = &merge->tree.players[number];

	gpusort_tuple_row_get_keys(merge->spec, session->values, session->isnull);
	player->rank = RANK_REGULAR;
	if (!gpusort_key_plan_encode(plan, session->values, session->isnull,
								 session->key))
		player->rank = gpusort_key_plan_nulls_first(plan) ? RANK_NULL_FIRST :
			RANK_NULL_LAST;
	player->word = session->key[0];
	if (merge->backward)
	{
		player->rank = RANK_NULL_LAST - player->rank;
		player->word = ~player->word;
	}
	for (int k = 0; !merge->order.exact && k < keys->nkeys; k++)
	{
		session->key_values[k] = session->values[keys->attnos[k] - 1];
		session->key_isnull[k] = session->isnull[keys->attnos[k] - 1];
	}
}

/*
 * Make the row on the right side of the boundary the player of a session, or take the
 * session out of the tree.  Returns false if the rows are lost.
 */
static bool
set_player(GsGpuMerge *merge, uint32 number)
{
	GsMergedSession *session = &merge->sessions[number];
	int64		row = merge->backward ? session->before - 1 : session->before;

	if (row < 0 || row >= session->nrows)
	{
		merge->tree.players[number].rank = GPUSORT_RANK_OUT;
		return true;
	}
	if (session->ties != NULL ?
		!gpusort_gpu_ties_get(session->ties, row, session->values, session->isnull) :
		!gpusort_gpu_session_get(session->gpu, row, session->values, session->isnull))
		return false;
	show_key(merge, number);
	return true;
}

/* ----------------------------------------------------------------
 *		moving
 * ----------------------------------------------------------------
 */

/* Set all players, for a direction.  The boundary stays. */
static bool
set_players(GsGpuMerge *merge, bool backward)
{
	merge->backward = backward;
	for (uint32 s = 0; s < merge->tree.count; s++)
		if (!set_player(merge, s))
			return false;
	gpusort_loser_tree_start(&merge->tree);
	return true;
}

/* Move the boundary over the winner.  Returns false if the rows are lost. */
static inline bool
step(GsGpuMerge *merge)
{
	uint32		winner = merge->tree.winner;

	CHECK_FOR_INTERRUPTS();
	merge->sessions[winner].before += merge->backward ? -1 : 1;
	if (!set_player(merge, winner))
		return false;
	gpusort_loser_tree_replay(&merge->tree);
	return true;
}

/* Note the boundary before the current position, if that is the next one to be noted. */
static inline void
note_milestone(GsGpuMerge *merge)
{
	uint32		count = merge->tree.count;

	if (likely(merge->position != merge->nmilestones * merge->milestone_rows))
		return;
	for (uint32 s = 0; s < count; s++)
		merge->milestones[merge->nmilestones * count + s] =
			merge->sessions[s].before;
	merge->nmilestones++;
}

static bool
move_forward(GsGpuMerge *merge, int64 position)
{
	if (merge->backward)
	{
		if (!set_players(merge, false))
			return false;
		merge->position++;
	}
	while (merge->position < position)
	{
		if (!step(merge))
			return false;
		merge->position++;
		note_milestone(merge);
	}
	return true;
}

static bool
move_backward(GsGpuMerge *merge, int64 position)
{
	if (!merge->backward)
	{
		if (!set_players(merge, true))
			return false;
		merge->position--;
	}
	while (merge->position > position)
	{
		if (!step(merge))
			return false;
		merge->position--;
	}
	return true;
}

/* Go to a milestone. */
static bool
go_to_milestone(GsGpuMerge *merge, int64 milestone)
{
	for (uint32 s = 0; s < merge->tree.count; s++)
		merge->sessions[s].before = merge->milestones[milestone * merge->tree.count + s];
	merge->position = milestone * merge->milestone_rows;
	return set_players(merge, false);
}

/* Make the row at a position the winner.  Returns false if the rows are lost. */
static bool
find_row(GsGpuMerge *merge, int64 position)
{
	int64		milestone = Min(position / merge->milestone_rows,
								merge->nmilestones - 1);
	int64		distance = position - milestone * merge->milestone_rows;
	int64		steps = Max(position - merge->position, merge->position - position);

	if (merge->position < 0 || steps > distance + merge->tree.count)
	{
		if (!go_to_milestone(merge, milestone))
			return false;
	}
	return position >= merge->position ? move_forward(merge, position) :
		move_backward(merge, position);
}

/* ----------------------------------------------------------------
 *		interface
 * ----------------------------------------------------------------
 */

static void
begin_session(GsGpuMerge *merge, GsMergedSession *session, GsGpuSession *gpu,
			  GsGpuTies *ties)
{
	const GsSortSpec *spec = merge->spec;

	session->gpu = gpu;
	session->ties = ties;
	session->nrows = gpusort_gpu_session_count(gpu);
	session->values = palloc0(spec->tupdesc->natts * sizeof(Datum));
	session->isnull = palloc0(spec->tupdesc->natts * sizeof(bool));
	if (merge->order.exact)
		return;
	session->key_values = palloc0(spec->keys.nkeys * sizeof(Datum));
	session->key_isnull = palloc0(spec->keys.nkeys * sizeof(bool));
}

GsGpuMerge *
gpusort_gpu_merge_create(const GsSortSpec *spec, GsGpuSession *const *sessions,
						 GsGpuTies *const *ties, int count)
{
	GsGpuMerge *merge = palloc0(sizeof(GsGpuMerge));
	int64		nrows = 0;

	merge->spec = spec;
	gpusort_merge_order_init(&merge->order, spec, spec->key_plan);
	merge->sessions = palloc0(count * sizeof(GsMergedSession));
	for (int s = 0; s < count; s++)
	{
		begin_session(merge, &merge->sessions[s], sessions[s], ties[s]);
		nrows += merge->sessions[s].nrows;
	}
	merge->tree.count = count;
	merge->tree.players = palloc0(count * sizeof(GsPlayer));
	merge->tree.losers = palloc(count * sizeof(uint32));
	merge->tree.tie = wins;
	merge->tree.tie_arg = merge;

	/* The first milestone, before all rows, is there already. */
	merge->position = -1;
	merge->milestone_rows = Max(nrows / MAX_MILESTONES + 1, MIN_MILESTONE_ROWS);
	merge->milestones = palloc0((MAX_MILESTONES + 1) * count * sizeof(int64));
	merge->nmilestones = 1;
	return merge;
}

bool
gpusort_gpu_merge_get(GsGpuMerge *merge, int64 position, Datum *values, bool *isnull)
{
	const GsMergedSession *session;
	int			natts = merge->spec->tupdesc->natts;

	if (merge->position != position && !find_row(merge, position))
	{
		merge->position = -1;
		return false;
	}
	session = &merge->sessions[merge->tree.winner];
	memcpy(values, session->values, natts * sizeof(Datum));
	memcpy(isnull, session->isnull, natts * sizeof(bool));
	return true;
}
