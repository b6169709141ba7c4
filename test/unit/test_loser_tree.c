/*-------------------------------------------------------------------------
 *
 * test_loser_tree.c
 *		Tests that a merge by the loser tree has the result of a stable sort.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "core/loser_tree.h"
#include "random.h"
#include "tap.h"

#define MAX_PLAYERS	70
#define MAX_KEYS	40

/* A key of a player.  Only the callback looks at 'rest'. */
typedef struct Key
{
	uint32_t	rank;
	uint64_t	word;
	uint32_t	rest;
	uint32_t	player;
} Key;

typedef struct Merge
{
	uint32_t	count;
	uint32_t	nkeys[MAX_PLAYERS];
	uint32_t	next[MAX_PLAYERS];
	Key			keys[MAX_PLAYERS][MAX_KEYS];
	GsPlayer	players[MAX_PLAYERS];
	uint32_t	losers[MAX_PLAYERS];
	bool		asked_in_vain;	/* callback was called though words differ */
} Merge;

static int
compare_keys(const Key *a, const Key *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->word != b->word)
		return a->word < b->word ? -1 : 1;
	if (a->rest != b->rest)
		return a->rest < b->rest ? -1 : 1;
	return 0;
}

static int
compare_for_qsort(const void *a, const void *b)
{
	return compare_keys(a, b);
}

static const Key *
current_key(const Merge *merge, uint32_t player)
{
	return &merge->keys[player][merge->next[player]];
}

static bool
tie(void *arg, uint32_t a, uint32_t b)
{
	Merge	   *merge = arg;
	const Key  *left = current_key(merge, a);
	const Key  *right = current_key(merge, b);

	if (left->rank != right->rank || left->word != right->word)
		merge->asked_in_vain = true;
	return left->rest != right->rest ? left->rest < right->rest : a < b;
}

/* Tells the tree the current key of a player, or that it has none. */
static void
show_key(Merge *merge, uint32_t player)
{
	GsPlayer   *shown = &merge->players[player];

	shown->rank = GPUSORT_RANK_OUT;
	if (merge->next[player] < merge->nkeys[player])
	{
		shown->rank = current_key(merge, player)->rank;
		shown->word = current_key(merge, player)->word;
	}
}

static void
make_players(Merge *merge, uint32_t count, uint64_t distinct,
			 RandomState *random)
{
	memset(merge, 0, sizeof(*merge));
	merge->count = count;
	for (uint32_t player = 0; player < count; player++)
	{
		uint32_t	nkeys = random_below(random, MAX_KEYS);

		merge->nkeys[player] = nkeys;
		for (uint32_t i = 0; i < nkeys; i++)
			merge->keys[player][i] = (Key)
		{
			.rank = random_below(random, 8) == 0 ? 2 : 1,
				.word = random_below(random, distinct) - distinct / 2,
				.rest = random_below(random, 3),
				.player = player
		};
		qsort(merge->keys[player], nkeys, sizeof(Key), compare_for_qsort);
		show_key(merge, player);
	}
}

/* Returns whether the tree finds the best of the players that have not won. */
static bool
second_is_right(const GsLoserTree *tree)
{
	uint32_t	second = tree->winner;

	for (uint32_t player = 0; player < tree->count; player++)
		if (player != tree->winner &&
			(second == tree->winner ||
			 gpusort_loser_tree_is_before(tree, player, second)))
			second = player;
	return gpusort_loser_tree_second(tree) == second;
}

/*
 * Returns whether all keys come in order, and ties in the order of players.
 */
static bool
merge_is_right(uint32_t count, uint64_t distinct, RandomState *random)
{
	static Merge merge;
	GsLoserTree tree = {.count = count};
	Key			last = {.rank = 0};
	uint32_t	total = 0;

	make_players(&merge, count, distinct, random);
	for (uint32_t player = 0; player < count; player++)
		total += merge.nkeys[player];
	tree.players = merge.players;
	tree.losers = merge.losers;
	tree.tie = tie;
	tree.tie_arg = &merge;
	gpusort_loser_tree_start(&tree);
	while (merge.players[tree.winner].rank != GPUSORT_RANK_OUT)
	{
		const Key  *key = current_key(&merge, tree.winner);
		int			order = compare_keys(&last, key);

		if (order > 0 || (order == 0 && last.player > key->player) ||
			!second_is_right(&tree))
			return false;
		last = *key;
		total--;
		merge.next[tree.winner]++;
		show_key(&merge, tree.winner);
		gpusort_loser_tree_replay(&tree);
	}
	return total == 0 && !merge.asked_in_vain;
}

int
main(void)
{
	static const uint64_t distinct[] = {1, 2, 10, 1000, UINT64_MAX};
	RandomState random = 1;

	for (int d = 0; d < 5; d++)
	{
		bool		passed = true;

		for (uint32_t count = 1; count <= MAX_PLAYERS && passed; count++)
			for (int repeat = 0; repeat < 10 && passed; repeat++)
			{
				passed = merge_is_right(count, distinct[d], &random);
				if (!passed)
					tap_note("%u players", (unsigned) count);
			}
		tap_ok(passed, "1 to %d players, %llu words", MAX_PLAYERS,
			   (unsigned long long) distinct[d]);
	}
	return tap_done();
}
