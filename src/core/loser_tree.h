/*-------------------------------------------------------------------------
 *
 * loser_tree.h
 *		Finds the first of many keys again and again, as a merge has to.
 *
 * Each player has a key.  All have played against each other as in a knockout
 * tournament; each match keeps its loser.  When the winner's key is replaced,
 * its matches alone are played again: one comparison per level, and no choice
 * between two children as in a heap.
 *
 * This header knows nothing of PostgreSQL, so that it can be tested alone.
 *
 * Source: Knuth, The Art of Computer Programming, volume 3, section 5.4.1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOSER_TREE_H
#define GPUSORT_LOSER_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* The rank of players that have no key any more; they lose to all others. */
#define GPUSORT_RANK_OUT	UINT32_MAX

/* What most matches are decided by: the rank, and then the word. */
typedef struct GsPlayer
{
	uint64_t	word;
	uint32_t	rank;
} GsPlayer;

/* Does player a, of the same rank and with the same word, go before b? */
typedef bool (*GsTieCallback) (void *arg, uint32_t a, uint32_t b);

typedef struct GsLoserTree
{
	uint32_t	count;			/* players, numbered from 0; at least 1 */
	GsPlayer   *players;		/* the caller's, to be kept up to date */
	uint32_t   *losers;			/* the caller's room for 'count' numbers */
	GsTieCallback tie;
	void	   *tie_arg;
	uint32_t	winner;			/* the number of the first player */
} GsLoserTree;

/* Play all matches.  The other fields have been filled in. */
extern void gpusort_loser_tree_start(GsLoserTree *tree);

/* Does player a go before player b?  Asks the callback only if need be. */
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
 * The winner has another key: find the winner again.  Who wins a match cannot
 * be predicted, so that what follows from it does without a branch.
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
