/*-------------------------------------------------------------------------
 *
 * loser_tree.c
 *		Loser tree: finds the smallest of many keys repeatedly, for a merge.
 *
 * With n players, the matches are numbered from 1, the final, to n - 1.  Match
 * m is followed by match m / 2.  Player p starts in match (p + n) / 2.
 *
 *-------------------------------------------------------------------------
 */
#include "core/loser_tree.h"

#define NOBODY	UINT32_MAX

void
gpusort_loser_tree_start(GsLoserTree *tree)
{
	for (uint32_t match = 0; match < tree->count; match++)
		tree->losers[match] = NOBODY;

	/* Each player plays until there is no opponent yet. */
	for (uint32_t player = 0; player < tree->count; player++)
	{
		uint32_t	current = player;
		uint32_t	match = (player + tree->count) / 2;

		while (match > 0 && tree->losers[match] != NOBODY)
		{
			uint32_t	opponent = tree->losers[match];

			if (gpusort_loser_tree_is_before(tree, opponent, current))
			{
				tree->losers[match] = current;
				current = opponent;
			}
			match /= 2;
		}
		if (match > 0)
			tree->losers[match] = current;
		else
			tree->winner = current;
	}
}

uint32_t
gpusort_loser_tree_second(const GsLoserTree *tree)
{
	uint32_t	match = (tree->winner + tree->count) / 2;
	uint32_t	second = match > 0 ? tree->losers[match] : tree->winner;

	/* The second best player can have lost to nobody but the winner. */
	for (match /= 2; match > 0; match /= 2)
		if (gpusort_loser_tree_is_before(tree, tree->losers[match], second))
			second = tree->losers[match];
	return second;
}
