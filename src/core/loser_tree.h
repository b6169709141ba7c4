/*-------------------------------------------------------------------------
 *
 * loser_tree.h
 *		Loser tree: finds the smallest of many keys repeatedly, for a merge.
 *
 * Each player has a key.  All players have played a knockout tournament, and
 * each match stores its loser.  When the winner's key is replaced, only the
 * winner's matches are played again: one comparison per level, where a heap
 * would also have to choose between two children.
 *
 * This header does not depend on PostgreSQL, so that it can be tested alone.
 *
 * Source: Knuth, The Art of Computer Programming, volume 3, section 5.4.1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOSER_TREE_H
#define GPUSORT_LOSER_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* The rank of players without a key, which lose to all others. */
#define GPUSORT_RANK_OUT	UINT32_MAX

/* The rank and then the word decide most matches. */
typedef struct GsPlayer
{
	uint64_t	word;
	uint32_t	rank;
} GsPlayer;

/*
 * Does player a come before player b, which has the same rank and the same
 * word?
 */
typedef bool (*GsTieCallback) (void *arg, uint32_t a, uint32_t b);

typedef struct GsLoserTree
{
	uint32_t	count;			/* players, numbered from 0; at least 1 */
	GsPlayer   *players;		/* owned and kept up to date by the caller */
	uint32_t   *losers;			/* array of 'count' numbers, owned by the
								 * caller */
	GsTieCallback tie;
	void	   *tie_arg;
	uint32_t	winner;			/* the number of the first player */
} GsLoserTree;

/* Play all matches, and set 'winner'.  The caller has set the other fields. */
extern void gpusort_loser_tree_start(GsLoserTree *tree);

/*
 * Returns the player that would win without the winner, or the winner if there is no
 * other player.
 */
extern uint32_t gpusort_loser_tree_second(const GsLoserTree *tree);

/* Does player a come before player b?  Calls the callback only for ties. */
static inline bool
gpusort_loser_tree_is_before(const GsLoserTree *tree, uint32_t a, uint32_t b)
{
	const GsPlayer *player = &tree->players[a];
	const GsPlayer *other = &tree->players[b];

	if (player->rank != other->rank)
		return player->rank < other->rank;
	if (player->rank == GPUSORT_RANK_OUT)
		return a < b;
	if (player->word != other->word)
		return player->word < other->word;
	return tree->tie(tree->tie_arg, a, b);
}

/*
 * Find the winner again after the winner's key was replaced.  The outcome of a
 * match cannot be predicted, so its effects are computed without a branch.
 */
static inline void
gpusort_loser_tree_replay(GsLoserTree *tree)
{
	uint32_t	current = tree->winner;

	for (uint32_t match = (current + tree->count) / 2; match > 0; match /= 2)
	{
		uint32_t	loser = tree->losers[match];
		uint32_t	change = (current ^ loser) &
			-(uint32_t) gpusort_loser_tree_is_before(tree, loser, current);

		tree->losers[match] = loser ^ change;
		current ^= change;
	}
	tree->winner = current;
}

#endif							/* GPUSORT_LOSER_TREE_H */
