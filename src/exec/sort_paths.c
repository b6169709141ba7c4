/*-------------------------------------------------------------------------
 *
 * sort_paths.c
 *		Lets the planner know what a GpuSort costs.
 *
 * Swapping Sorts in finished plans makes the sorts faster that the planner
 * chose at stock PostgreSQL's cost.  For the final ORDER BY, this adds a path
 * at GpuSort's cost, so that a sort can win against an index scan or a Gather
 * Merge where it is now the faster way.  The path is a plain SortPath with
 * another cost: it becomes a Sort, which is swapped like any other.  With a GPU
 * there is a second path, over a Gather.
 *
 * There is no path for a sort that will need the disk: what that costs depends
 * on the disk more than on us, and stock's estimate does as well.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "utils/lsyscache.h"

#include "exec/limit_bound.h"
#include "exec/sort_eligibility.h"
#include "exec/sort_paths.h"
#include "settings.h"
#include "sort/gpu_session.h"

/*
 * Cost per row in units of cpu_operator_cost, from 10 M rows of two int8, where
 * a stock sort is charged about 46 for what takes it about 270 ns: keeping and
 * sorting a row takes 45 ns and some more for each word of the key, returning
 * it 18 ns.  On a GPU sorting costs next to nothing.
 */
#define KEEP_ROW_COST		6.0
#define SORT_WORD_COST		2.0
#define RETURN_ROW_COST		3.0

static create_upper_paths_hook_type prev_create_upper_paths_hook = NULL;

/* The keys of a sort that is still a list of pathkeys; false if unknown. */
static bool
keys_of_pathkeys(List *pathkeys, GsSortKeys *keys)
{
	int			nkeys = list_length(pathkeys);
	ListCell   *lc;

	keys->nkeys = 0;
	keys->attnos = palloc(nkeys * sizeof(AttrNumber));
	keys->operators = palloc(nkeys * sizeof(Oid));
	keys->collations = palloc(nkeys * sizeof(Oid));
	keys->nulls_first = palloc(nkeys * sizeof(bool));
	foreach(lc, pathkeys)
	{
		PathKey    *pathkey = lfirst_node(PathKey, lc);
		EquivalenceMember *member = linitial(pathkey->pk_eclass->ec_members);
		Oid			type = member->em_datatype;
		Oid			operator;

		operator = GPUSORT_PATHKEY_OPERATOR(pathkey, type);
		if (!OidIsValid(operator))
			return false;
		keys->attnos[keys->nkeys] = keys->nkeys + 1;
		keys->operators[keys->nkeys] = operator;
		keys->collations[keys->nkeys] = pathkey->pk_eclass->ec_collation;
		keys->nulls_first[keys->nkeys] = pathkey->pk_nulls_first;
		keys->nkeys++;
	}
	return true;
}

/*
 * Add a path that sorts the rows of 'input', which so many processes put into
 * the session.
 */
static void
add_sort_path(PlannerInfo *root, RelOptInfo *ordered_rel, Path *input,
			  unsigned words, double processes)
{
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	Path	   *path = (Path *) create_sort_path(root, ordered_rel, input,
												 root->sort_pathkeys, -1.0);

	path->startup_cost = input->total_cost + cpu_operator_cost * input->rows *
		(KEEP_ROW_COST + words * SORT_WORD_COST) / processes;
	path->total_cost = path->startup_cost +
		cpu_operator_cost * input->rows * RETURN_ROW_COST;
	if (path->pathtarget != target)
		path = apply_projection_to_path(root, ordered_rel, path, target);
	add_path(ordered_rel, path);
}

/*
 * Add a path over a Gather whose processes put their rows into a GPU session
 * themselves, so that no row goes through the Gather.
 */
static void
add_parallel_path(PlannerInfo *root, RelOptInfo *input_rel,
				  RelOptInfo *ordered_rel, double rows)
{
	Path	   *partial = linitial(input_rel->partial_pathlist);
	Path	   *gather = (Path *) create_gather_path(root, input_rel, partial,
													 partial->pathtarget, NULL,
													 &rows);

	gather->total_cost = partial->total_cost + parallel_setup_cost;
	add_sort_path(root, ordered_rel, gather, 0, 1 + partial->parallel_workers);
}

/* Such a sort might turn into a heap, whose input cannot come through sinks. */
static bool
bound_is_unknown(const PlannerInfo *root)
{
	const Query *query = root->parse;

	return gpusort_limit_bound_estimate(query->limitCount, query->limitOffset,
										query->limitOption) ==
		GPUSORT_UNKNOWN_BOUND;
}

static void
add_gpusort_paths(PlannerInfo *root, RelOptInfo *input_rel,
				  RelOptInfo *ordered_rel)
{
	Path	   *input = input_rel->cheapest_total_path;
	GsSortCandidate candidate;
	bool		gpu;
	unsigned	words;

	if (root->sort_pathkeys == NIL || input == NULL ||
		root->upper_targets[UPPERREL_ORDERED] == NULL ||
		pathkeys_contained_in(root->sort_pathkeys, input->pathkeys))
		return;
	candidate.rows = input->rows;
	candidate.width = input->pathtarget->width;
	candidate.bound = root->limit_tuples;
	candidate.repeat = GS_INPUT_SAME_ORDER; /* unknown yet */
	if (!keys_of_pathkeys(root->sort_pathkeys, &candidate.keys) ||
		gpusort_eligibility_check(&candidate, &words) != GS_FALLBACK_NONE ||
		!gpusort_eligibility_fits(&candidate, words))
		return;

	gpu = gpusort_gpu_session_check(candidate.rows, candidate.repeat) ==
		GS_FALLBACK_NONE;
	add_sort_path(root, ordered_rel, input, gpu ? 0 : words, 1);
	if (gpu && !bound_is_unknown(root) && ordered_rel->consider_parallel &&
		input_rel->partial_pathlist != NIL)
		add_parallel_path(root, input_rel, ordered_rel, candidate.rows);
}

static void
add_upper_paths(PlannerInfo *root, UpperRelationKind stage,
				RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	if (prev_create_upper_paths_hook)
		prev_create_upper_paths_hook(root, stage, input_rel, output_rel,
									 extra);
	if (stage == UPPERREL_ORDERED && gpusort_enable && !gpusort_debug_hide &&
		enable_sort)
		add_gpusort_paths(root, input_rel, output_rel);
}

void
gpusort_sort_paths_init(void)
{
	prev_create_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = add_upper_paths;
}
