/*-------------------------------------------------------------------------
 *
 * index_hook.c
 *		Brings index builds of PostgreSQL to gpusort_index_build().
 *
 * There is no hook for index builds.  But before each of them PostgreSQL plans how
 * many workers to use, with the index open and locked, and for that it asks for
 * information about the table, where there is a hook.  There the routine that builds
 * indexes is replaced in the relation cache's entries of the table's btrees: each
 * gets a copy of its access method's routines, in the entry's own memory.
 *
 * A copy that stays behind does no harm: it leaves to PostgreSQL's own routine
 * what is not for us, each time.  An entry that is built anew has PostgreSQL's.
 *
 * With max_parallel_maintenance_workers = 0 no workers are planned, and the hook is
 * not called.  So the setting is 1 while statements run that may build indexes, and
 * the hook says that there are to be no workers.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "tcop/utility.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "index/index_build.h"
#include "index/index_hook.h"
#include "settings.h"

static GPUSORT_RELATION_HOOK_TYPE prev_relation_hook = NULL;
static ProcessUtility_hook_type prev_ProcessUtility_hook = NULL;

/* Was max_parallel_maintenance_workers 0, and is 1 for the hook's sake? */
static bool workers_raised = false;

/* ambuild */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = gpusort_index_build(heap, index, info);

	return result != NULL ? result : btbuild(heap, index, info);
}

/* Have a btree of a user's table built here. */
static void
take_over(Relation index)
{
	IndexAmRoutine *copy;

	if (index->rd_rel->relam != BTREE_AM_OID ||
		index->rd_indam->ambuild != btbuild)
		return;
	copy = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexAmRoutine));
	memcpy(copy, index->rd_indam, sizeof(IndexAmRoutine));
	copy->ambuild = build_index;
	index->rd_indam = copy;
}

/* Take over all btrees of a table. */
static void
take_over_all(Relation heap)
{
	List	   *indexes = RelationGetIndexList(heap);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(lc));

		if (!RelationIsValid(index))
			continue;
		take_over(index);
		RelationClose(index);
	}
	list_free(indexes);
}

/* Is a table planned for, all by itself, as for an index build? */
static bool
is_for_build(const PlannerInfo *root, const RelOptInfo *rel)
{
	const Query *query = root->parse;

	return root->query_level == 1 && root->parent_root == NULL &&
		query->jointree == NULL && query->commandType == CMD_SELECT &&
		rel->relid == 1;
}

static void
look_at_relation(GPUSORT_RELATION_HOOK_ARGS)
{
	const RangeTblEntry *entry = root->simple_rte_array[rel->relid];

	if (prev_relation_hook)
		prev_relation_hook(GPUSORT_RELATION_HOOK_PASS);
	if (entry->rtekind != RTE_RELATION || !entry->inh ||
		!is_for_build(root, rel))
		return;
	if (workers_raised)
		rel->rel_parallel_workers = 0;
	if (entry->relid >= FirstNormalObjectId)
	{
		Relation	heap = RelationIdGetRelation(entry->relid);

		if (!RelationIsValid(heap))
			return;
		if (!IsSystemRelation(heap))
			take_over_all(heap);
		RelationClose(heap);
	}
}

/* Statements that may build indexes. */
static bool
may_build_indexes(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_CreateStmt:
		case T_IndexStmt:
		case T_ReindexStmt:
		case T_AlterTableStmt:
		case GPUSORT_CLUSTER_STATEMENT:
		case T_VacuumStmt:
		case T_TruncateStmt:
		case T_RefreshMatViewStmt:
			return true;
		default:
			return false;
	}
}

/* Have workers planned for indexes, so that the hook is called. */
static bool
raise_workers(const Node *statement)
{
	if (max_parallel_maintenance_workers != 0 ||
		(!gpusort_enable_index_build && gpusort_debug_require == GS_REQUIRE_OFF) ||
		!may_build_indexes(statement))
		return false;
	max_parallel_maintenance_workers = 1;
	workers_raised = true;
	return true;
}

/* The setting is the user's again, unless the statement has set it. */
static void
lower_workers(void)
{
	if (max_parallel_maintenance_workers == 1)
		max_parallel_maintenance_workers = 0;
	workers_raised = false;
}

static void
process_utility(PlannedStmt *statement, const char *query_string,
				bool read_only_tree, ProcessUtilityContext context,
				ParamListInfo params, QueryEnvironment *environment,
				DestReceiver *dest, QueryCompletion *completion)
{
	ProcessUtility_hook_type volatile next = prev_ProcessUtility_hook ?
		prev_ProcessUtility_hook : standard_ProcessUtility;
	volatile bool raised = raise_workers(statement->utilityStmt);

	PG_TRY();
	{
		next(statement, query_string, read_only_tree, context, params,
			 environment, dest, completion);
	}
	PG_FINALLY();
	{
		if (raised)
			lower_workers();
	}
	PG_END_TRY();
}

void
gpusort_index_hook_init(void)
{
	prev_relation_hook = GPUSORT_RELATION_HOOK;
	GPUSORT_RELATION_HOOK = look_at_relation;
	prev_ProcessUtility_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
