/*-------------------------------------------------------------------------
 *
 * sort_cost.c
 *		Estimates what a GpuSort costs, and makes paths that sort at this cost.
 *
 * Such a path is a plain SortPath with a different cost.  It becomes a Sort,
 * which is swapped like any other.  Therefore it is made only if the sort
 * would be taken over, by the same rules as in the finished plan.  The
 * exception are rows that are in order already: PostgreSQL's own sort may then
 * cost as little, and stays, whatever the planner would charge for it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "exec/limit_bound.h"
#include "plan/sort_cost.h"
#include "plan/sort_eligibility.h"
#include "settings.h"
#include "sort/base/warm_memory.h"
#include "sort/disk/extent_file.h"
#include "sort/disk/shared_merge.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/shared_sort.h"

/* What a page of a run takes to write or to read, as a part of what the planner charges for one. */
#define RUN_PAGE_COST		0.7

/* What a row costs in addition on disk, in the units of sort_eligibility.h. */
#define DISK_ROW_COST		5.0
#define DISK_TIES_COST		8.0 /* more, if most rows tie and keys follow */

/*
 * Additional costs per row, likewise, if processes write their rows as
 * runs, which all of them merge.
 */
#define WRITE_RUN_COST		6.0
#define MERGE_RUNS_COST		4.0
#define MERGE_BYTE_COST		0.02
#define MERGE_WORD_COST		1.0
#define MERGE_TIES_COST		4.0

/*
 * The same if they sort their rows together: to place a row in a range and to copy it
 * there.  To return it, as also after they have merged runs together, the leader reads
 * memory in sequence.
 */
#define PLACE_ROW_COST		3.0
#define COPY_BYTE_COST		0.03
#define RETURN_PLACED_ROW	1.5

/*
 * The additional cost of each access to a hash table, in the same units, for
 * each doubling of the table's size beyond the size of the cache.
 */
#define HASH_MISS_COST		5.0
#define HASH_CACHE_BYTES	(1024.0 * 1024.0)

/* The size of a row in a hash table, in addition to its columns. */
#define HASH_ENTRY_BYTES	60

/*
 * How many times more memory the states of aggregates take than the planner expects: an allocation
 * is rounded up to a power of two.
 */
#define STATE_ROUNDING		2

/*
 * What a SetOp takes in addition to what the planner charges, in the same units: with a table that
 * fits in the cache, to look up a row, and for a row that is kept there; of sorted rows, to compare
 * one, and more if it has strings, whose sort takes longer than it is charged.
 */
#define HASH_SETOP_ROW_COST	4.0
#define HASH_SETOP_GROUP_COST	50.0
#define SORTED_SETOP_ROW_COST	GPUSORT_SINCE_18(5.0, 15.0)
#define SETOP_STRINGS_COST	40.0

/* Since this correlation of a column with the places of rows, a table is in its order. */
#define IN_INDEX_ORDER		0.95

/* What a path over sorts costs at least, in proportion to their inputs. */
#define LEAST_SORT			1.005

/* The cost of a sort is lowered by at most this part if a merge join does not read all of it. */
#define MOST_LOWERED		0.9

/* How a sort would be done. */
typedef struct GsSortMethod
{
	GsSortCandidate candidate;
	bool		disk;
	bool		shared;			/* do processes sort their rows together? */
	bool		runs;			/* or merge runs of them? */
	bool		twice;			/* too many to merge at once, so that most
								 * rows are merged twice? */
	double		processes;		/* number that add or sort rows */
} GsSortMethod;

/* Determines how one process would do a sort.  Returns false if it gets no path. */
static bool
choose_method(const PlannerInfo *root, const Path *input, List *pathkeys, double bound,
			  GsSortMethod *method)
{
	*method = (GsSortMethod)
	{
		.processes = 1
	};
	if (!gpusort_sort_candidate_of_path(root, input, pathkeys, bound, &method->candidate))
		return false;
	method->disk = !gpusort_sort_candidate_fits(&method->candidate);
	return true;
}

/*
 * Returns the cost of writing rows to runs or of reading them, in sequence, and mostly in the cache
 * of the system.
 */
static Cost
cost_of_pages(const Path *input)
{
	double		width = MAXALIGN(input->pathtarget->width);

	return ceil(input->rows * width / BLCKSZ) * RUN_PAGE_COST * seq_page_cost;
}

/* Returns the cost of merging a row, in units of cpu_operator_cost. */
static double
cost_of_merging(const Path *input, const GsSortCandidate *candidate)
{
	const GsKeyShape *key = &candidate->key;

	return MERGE_RUNS_COST + MERGE_BYTE_COST * input->pathtarget->width +
		MERGE_WORD_COST * key->words +
		(key->exact ? 0 : candidate->ties ? DISK_TIES_COST : MERGE_TIES_COST);
}

static void
set_sort_cost(Path *path, const Path *input, const GsSortMethod *method)
{
	GsRowCost	row = gpusort_row_cost(&method->candidate, method->candidate.gpu);
	Cost		per_unit = cpu_operator_cost * input->rows;

	if (method->shared)
	{
		row.keep += PLACE_ROW_COST + COPY_BYTE_COST * input->pathtarget->width;
		row.emit = RETURN_PLACED_ROW;
	}
	if (method->runs)
	{
		row.keep += (WRITE_RUN_COST + cost_of_merging(input, &method->candidate)) *
			(method->twice ? 2 : 1);
		row.emit = RETURN_PLACED_ROW;
	}
	path->startup_cost = input->total_cost +
		per_unit * row.keep / method->processes;
	path->total_cost = path->startup_cost + per_unit * row.emit;
	if (method->runs || method->disk)
	{
		Cost		pages = cost_of_pages(input);

		if (method->twice)
			pages *= 2;
		path->startup_cost += pages;
		path->total_cost += 2 * pages;
		if (!method->runs)
			path->total_cost += per_unit *
				(DISK_ROW_COST + (method->candidate.ties ? DISK_TIES_COST : 0));
	}
}

double
gpusort_cost_correlation(HeapTuple statistics)
{
	AttStatsSlot slot;
	double		correlation = 0;

	if (!get_attstatsslot(&slot, statistics, STATISTIC_KIND_CORRELATION, InvalidOid,
						  ATTSTATSSLOT_NUMBERS))
		return 0;
	if (slot.nnumbers == 1)
		correlation = fabs(slot.numbers[0]);
	free_attstatsslot(&slot);
	return correlation;
}

/*
 * Is a table in the order of an index, by the statistics of its first column?  Further columns
 * do not matter if the rows of a value are on a page or two.
 */
static bool
is_in_index_order(const PlannerInfo *root, const IndexOptInfo *index)
{
	Oid			table = root->simple_rte_array[index->rel->relid]->relid;
	HeapTuple	statistics = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table),
											 Int16GetDatum(index->indexkeys[0]),
											 BoolGetDatum(false));
	double		distinct;
	bool		in_order;

	if (!HeapTupleIsValid(statistics))
		return false;
	distinct = ((Form_pg_statistic) GETSTRUCT(statistics))->stadistinct;
	if (distinct < 0)
		distinct *= -index->rel->tuples;
	in_order = gpusort_cost_correlation(statistics) >= IN_INDEX_ORDER &&
		(index->nkeycolumns == 1 || distinct >= index->rel->pages);
	ReleaseSysCache(statistics);
	return in_order;
}

Cost
gpusort_cost_index_scan(const PlannerInfo *root, const Path *path)
{
	const IndexOptInfo *index;
	const RelOptInfo *rel = path->parent;
	const QualCost *target = &path->pathtarget->cost;
	bool		only = path->pathtype == T_IndexOnlyScan;
	double		pages = only ? rel->pages * (1 - rel->allvisfrac) : rel->pages;
	double		part = path->parallel_workers > 0 ? path->rows / Max(rel->rows, 1) : 1;
	Cost		cost;

	if (!IsA(path, IndexPath) || ((const IndexPath *) path)->indexclauses != NIL ||
		!(only ? enable_indexonlyscan : enable_indexscan))
		return path->total_cost;
	index = ((const IndexPath *) path)->indexinfo;
	if (pages > 0 && !is_in_index_order(root, index))
		return path->total_cost;
	cost = (index->pages + pages) * seq_page_cost + index->tuples * part *
		(cpu_tuple_cost + cpu_index_tuple_cost + rel->baserestrictcost.per_tuple) +
		rel->baserestrictcost.startup + target->startup + target->per_tuple * path->rows;
	return Min(cost, path->total_cost);
}

static Path *
make_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *input,
			   List *pathkeys, const GsSortMethod *method)
{
	Path	   *path = (Path *) create_sort_path(root, rel, input, pathkeys,
												 -1.0);

	set_sort_cost(path, input, method);
	return path;
}

Path *
gpusort_cost_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *input,
					   List *pathkeys, double bound)
{
	GsSortMethod method;

	if (!choose_method(root, input, pathkeys, bound, &method))
		return NULL;
	return make_sort_path(root, rel, input, pathkeys, &method);
}

/* Will processes sort their rows together, as far as the estimates tell? */
static bool
sort_together(const GsSortMethod *method, int processes)
{
	const GsSortCandidate *candidate = &method->candidate;
	double		rows = candidate->rows;

	/* With a bound, each keeps that many. */
	if (candidate->bound != GPUSORT_NO_BOUND)
		rows = Min(rows, candidate->bound * processes);
	return !candidate->gpu &&
		gpusort_shared_sort_fits(method->candidate.key.words, rows, candidate->width,
								 (Size) gpusort_settings_work_mem() * 1024,
								 processes);
}

/* Otherwise, can they merge runs? */
static bool
can_merge(const Path *gather)
{
	return gpusort_warm_memory_shared_limit() > 0 &&
		gpusort_shared_runs_allowed(gather->rows, gather->pathtarget->width);
}

/*
 * Choose the way in which processes sort the rows of a partial path together.  Returns a Gather of
 * all rows, or NULL if there is no way.
 */
static Path *
choose_together(PlannerInfo *root, Path *partial, double rows, List *pathkeys, double bound,
				GsSortMethod *method)
{
	Path	   *gather = (Path *) create_gather_path(root, partial->parent, partial,
													 partial->pathtarget, NULL, &rows);
	int			processes = 1 + partial->parallel_workers;
	Size		memory = (Size) gpusort_settings_work_mem() * 1024;
	double		bytes;

	if (!choose_method(root, gather, pathkeys, bound, method))
		return NULL;
	bytes = gpusort_memory_sort_estimate(method->candidate.key.words, gather->rows,
										 gather->pathtarget->width);
	method->shared = sort_together(method, processes);
	method->runs = !method->candidate.gpu && !method->shared;
	method->twice = method->runs && bytes / processes / memory >
		gpusort_shared_merge_most_runs(memory, processes);
	if (method->shared)
		method->disk = false;
	return !method->runs || can_merge(gather) ? gather : NULL;
}

Path *
gpusort_cost_parallel_sort_path(PlannerInfo *root, RelOptInfo *rel,
								Path *partial, double rows, List *pathkeys, double bound)
{
	GsSortMethod method;
	Path	   *gather = choose_together(root, partial, rows, pathkeys, bound, &method);

	if (gather == NULL)
		return NULL;
	gather->total_cost = partial->total_cost + parallel_setup_cost;
	method.processes = 1 + partial->parallel_workers;
	return make_sort_path(root, rel, gather, pathkeys, &method);
}

Path *
gpusort_cost_divided_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *partial, double rows,
							   List *pathkeys)
{
	GsSortMethod method;

	if (gpusort_warm_memory_shared_limit() == 0 ||
		choose_together(root, partial, rows, pathkeys, GPUSORT_NO_BOUND, &method) == NULL ||
		!method.candidate.key.encoded)
		return NULL;

	/* The rows of 'partial' are those of one process already. */
	return make_sort_path(root, rel, partial, pathkeys, &method);
}

Path *
gpusort_cost_partial_path(const RelOptInfo *rel)
{
	if (!rel->consider_parallel || rel->partial_pathlist == NIL)
		return NULL;
	return linitial(rel->partial_pathlist);
}

Path *
gpusort_cost_cheapest_sort_path(PlannerInfo *root, RelOptInfo *rel,
								Path *input, Path *partial, List *pathkeys)
{
	Path	   *sort = gpusort_cost_sort_path(root, rel, input, pathkeys,
											  GPUSORT_NO_BOUND);
	Path	   *parallel;

	if (partial == NULL)
		return sort;
	parallel = gpusort_cost_parallel_sort_path(root, rel, partial, input->rows, pathkeys,
											   GPUSORT_NO_BOUND);
	if (sort == NULL || parallel == NULL)
		return sort != NULL ? sort : parallel;
	return parallel->total_cost < sort->total_cost ? parallel : sort;
}

/* As set_sort_cost(), with what the keys and columns cost at least. */
static Cost
sort_minimum(const Path *input, Cost input_cost, double processes)
{
	return input_cost + cpu_operator_cost * input->rows *
		gpusort_row_cost_minimum(input->pathtarget->width) / processes;
}

Cost
gpusort_cost_sort_minimum(const Path *input, const Path *partial)
{
	Cost		minimum = sort_minimum(input, input->total_cost, 1);

	if (partial == NULL)
		return minimum;
	return Min(minimum, sort_minimum(input, partial->total_cost + parallel_setup_cost,
									 1 + partial->parallel_workers));
}

bool
gpusort_cost_in_memory(const Path *sort_path)
{
	GsSortCandidate candidate = {
		.rows = sort_path->rows,
		.width = sort_path->pathtarget->width,
		.gpu = gpusort_gpu_session_check(sort_path->rows, false) == GS_REASON_NONE,
		.key.words = 1
	};

	return gpusort_sort_candidate_fits(&candidate);
}

/* Returns the size of a hash table, of which a part may be on disk. */
static double
table_bytes(double rows, double width)
{
	return rows * (HASH_ENTRY_BYTES + width);
}

/*
 * Returns the cost of the cache misses of 'accesses' accesses to a hash table of which 'bytes' are
 * in memory at a time.
 */
static Cost
miss_cost(double accesses, double bytes)
{
	if (bytes <= HASH_CACHE_BYTES)
		return 0;
	return cpu_operator_cost * accesses * HASH_MISS_COST *
		log2(bytes / HASH_CACHE_BYTES);
}

Cost
gpusort_cost_hash_misses(const Path *path)
{
	double		limit = get_hash_memory_limit();

	if (path->param_info != NULL)
		return 0;
	if (IsA(path, AggPath))
	{
		const AggPath *agg = (const AggPath *) path;

		if (agg->aggstrategy == AGG_HASHED && agg->aggsplit == AGGSPLIT_SIMPLE)
			return miss_cost(agg->subpath->rows,
							 Min(table_bytes(agg->numGroups, path->pathtarget->width +
											 STATE_ROUNDING * agg->transitionSpace), limit));
	}
	else if (IsA(path, SetOpPath) && ((const SetOpPath *) path)->strategy == SETOP_HASHED)
	{
		const SetOpPath *setop = (const SetOpPath *) path;
		double		rows = 0;
		ListCell   *lc;

		foreach(lc, GPUSORT_SETOP_INPUTS(setop))
			rows += ((const Path *) lfirst(lc))->rows;
		return miss_cost(rows,
						 Min(table_bytes(setop->numGroups, path->pathtarget->width), limit)) +
			cpu_operator_cost * (HASH_SETOP_ROW_COST * rows +
								 HASH_SETOP_GROUP_COST * setop->numGroups);
	}
	else if (IsA(path, HashPath))
	{
		const		HashPath *hash = (const HashPath *) path;
		const Path *inner = hash->jpath.innerjoinpath;

		/* Processes that share a table have the rows of all of them in it. */
		return miss_cost(hash->jpath.outerjoinpath->rows + inner->rows,
						 table_bytes(hash->inner_rows_total / Max(hash->num_batches, 1),
									 inner->pathtarget->width));
	}
	return 0;
}

/* Returns what a sort has to read, or 0 if there is none. */
static Cost
cost_below(const Path *sort)
{
	if (sort == NULL)
		return 0;
	if (IsA(sort, CustomPath))	/* a divided sort, whose child is a Sort */
		sort = linitial(((const CustomPath *) sort)->custom_paths);
	return ((const SortPath *) sort)->subpath->total_cost;
}

/* Returns the cost of a sort without its input. */
static Cost
cost_of_sort(const Path *sort)
{
	return sort != NULL ? sort->total_cost - cost_below(sort) : 0;
}

/* Returns what the inputs of a path over sorts cost, which need not all be sorted here. */
static Cost
cost_of_inputs(const Path *path, Path *const sorts[2])
{
	const		JoinPath *join = (const JoinPath *) path;
	Cost		inputs = 0;
	ListCell   *lc;

	if (IsA(path, MergePath))
		return join->outerjoinpath->total_cost + join->innerjoinpath->total_cost;
	if (!IsA(path, SetOpPath))
		return sorts[0]->total_cost;
	foreach(lc, GPUSORT_SETOP_INPUTS((const SetOpPath *) path))
		inputs += ((const Path *) lfirst(lc))->total_cost;
	return inputs;
}

/* Returns the cost of a path over sorts without its inputs. */
static Cost
own_cost(const Path *path, Path *const sorts[2])
{
	/* A merge join need not read its inputs to their ends. */
	return Max(path->total_cost - cost_of_inputs(path, sorts), 0);
}

/* Lower the cost of a sort by a part of it.  Returns by how much its startup cost is lowered. */
static Cost
lower_sort(Path *sort, double part)
{
	Cost		startup = (sort->startup_cost - cost_below(sort)) * part;

	sort->startup_cost -= startup;
	sort->total_cost -= cost_of_sort(sort) * part;
	return startup;
}

/*
 * Lower the cost of a path by 'excess'.  Its own part and those of its sorts, which it may be one
 * of, are lowered in proportion, and the startup cost by as much as those of the sorts, which it
 * consists of.  The planner does not look at the sorts any more, but EXPLAIN shows them.
 */
static void
lower_path(Path *path, Path *const sorts[2], Cost excess)
{
	Cost		cost = own_cost(path, sorts) + cost_of_sort(sorts[0]) + cost_of_sort(sorts[1]);
	double		part = excess < cost ? excess / cost : MOST_LOWERED;
	Cost		total = path->total_cost - excess;
	Cost		startup = path->startup_cost;

	for (int i = 0; i < 2; i++)
		if (sorts[i] != NULL)
			startup -= lower_sort(sorts[i], part);
	path->total_cost = total;
	path->startup_cost = Max(Min(startup, total), 0);
}

/*
 * Returns what a path over sorts costs if it is preferred to one that costs 'other': always a
 * little more than what the sorts have to read.
 */
static Cost
preferred_cost(Path *const sorts[2], Cost other)
{
	return Max(other * GPUSORT_CHEAPER, (cost_below(sorts[0]) + cost_below(sorts[1])) * LEAST_SORT);
}

void
gpusort_cost_prefer_sort(Path *path, Path *const sorts[2], Path *other)
{
	Cost		preferred = preferred_cost(sorts, other->total_cost);
	Cost		excess = path->total_cost - preferred;

	other->total_cost = Max(other->total_cost, preferred / GPUSORT_CHEAPER);
	if (excess > 0)
		lower_path(path, sorts, excess);
}

void
gpusort_cost_prefer_gather(Path *gather, const Path *partial, RelOptInfo *rel, Path *best,
						   Cost order)
{
	Cost		least = partial->total_cost + parallel_setup_cost;
	Cost		others;
	ListCell   *lc;

	gather->total_cost = Min(gather->total_cost, Max(best->total_cost * GPUSORT_CHEAPER, least));
	gather->startup_cost = Min(gather->startup_cost, gather->total_cost);
	others = (gather->total_cost + order) / GPUSORT_CHEAPER;
	best->total_cost = Max(best->total_cost, others);
	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		path->total_cost = Max(path->total_cost, others);
	}
}

/* Returns what a SetOp of sorted rows takes more than it is charged, or 0 for another path. */
static Cost
cost_of_sorted_setop(const Path *path, Path *const sorts[2])
{
	bool		strings = false;
	double		rows = 0;
	ListCell   *lc;

	if (!IsA(path, SetOpPath))
		return 0;
	foreach(lc, path->pathtarget->exprs)
		strings |= type_is_collatable(exprType(lfirst(lc)));
	for (int i = 0; i < 2; i++)
		rows += sorts[i] != NULL ? sorts[i]->rows : 0;
	return cpu_operator_cost * rows *
		(SORTED_SETOP_ROW_COST + (strings ? SETOP_STRINGS_COST : 0));
}

void
gpusort_cost_prefer(Path *path, Path *const sorts[2], const Path *hash)
{
	Cost		misses = gpusort_cost_hash_misses(hash) - cost_of_sorted_setop(path, sorts);
	Cost		excess = path->total_cost - preferred_cost(sorts, hash->total_cost);

	if (excess > 0 && excess < misses)
		lower_path(path, sorts, excess);
}

bool
gpusort_cost_prefer_to_agg(PlannerInfo *root, Path *path, Path *sort,
						   AggPath *agg, const AggClauseCosts *costs,
						   double groups)
{
	Path	   *const sorts[2] = {sort, NULL};
	Path	   *certain = (Path *)
		create_agg_path(root, agg->path.parent, agg->subpath,
						agg->path.pathtarget, AGG_HASHED, AGGSPLIT_SIMPLE,
						agg->groupClause, agg->qual, costs, groups);

	gpusort_cost_prefer(path, sorts, certain);
	return path->total_cost <= certain->total_cost;
}
