/*-------------------------------------------------------------------------
 *
 * index_hook.c
 *		Directs PostgreSQL's index builds to gpusort_index_build().
 *
 * PostgreSQL has no hook for index builds.  But it looks up the function that
 * builds an index in the index's relation cache entry, in the table of access
 * method routines.  We replace the function there: the entry gets its own copy
 * of the table, in the entry's memory context.  That must happen before the
 * build, and there are two ways to be called in time:
 *
 * - If workers are allowed, PostgreSQL plans their number, with the index open
 *   and locked.  The planner asks for information about the table, and there
 *   is a hook for that.
 * - If max_parallel_maintenance_workers is 0, nothing is planned, and changing
 *   that setting would be visible to users.  But before a build the relation
 *   cache is told that the index is new or has a new file, and calls its
 *   callbacks.
 *
 * A copy that is left behind does no harm: each build that is not eligible is
 * passed to PostgreSQL's own function.  If an entry is rebuilt, it has
 * PostgreSQL's function again.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "storage/sinval.h"
#include "tcop/utility.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "index/index_build.h"
#include "index/index_hook.h"

/*
 * A message of call_again() names a relation by an OID of its own: this bit, the
 * sender's process ID and a number.  A relation can have such an OID only if OIDs have
 * wrapped around, and then its cache entry is reloaded once more than needed.
 */
#define CALL_OID_BASE	((Oid) 0xC0000000)
#define CALL_PID_MASK	0x3FFFFF

static GPUSORT_RELATION_HOOK_TYPE prev_relation_hook = NULL;
static ProcessUtility_hook_type prev_ProcessUtility_hook = NULL;

/*
 * Is check_access() in the chain of object_access_hook?  What comes after
 * it?
 */
static bool is_access_hooked = false;
static object_access_hook_type prev_access_hook = NULL;

/* Is a statement being executed that may create indexes? */
static bool is_watching = false;

/*
 * Btrees that this statement and those nested in it have created and not built
 * yet, in the order of creation.  Concurrent statements build them in this
 * order, too.
 */
static List *unbuilt = NIL;

/* The OID in the message that call_again() has sent last, if it has not arrived. */
static Oid	expected_call = InvalidOid;

/* ----------------------------------------------------------------
 *		taking over relation cache entries
 * ----------------------------------------------------------------
 */

/* ambuild */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result;

	unbuilt = list_delete_oid(unbuilt, RelationGetRelid(index));
	result = gpusort_index_build(heap, index, info);
	return result != NULL ? result : btbuild(heap, index, info);
}

/*
 * Make gpusort_index_build() build a btree, unless its table is a system
 * catalog.
 */
static void
take_over(Relation index)
{
	IndexAmRoutine *copy;

	if (index->rd_rel->relam != BTREE_AM_OID ||
		index->rd_indam == NULL || index->rd_indam->ambuild != btbuild ||
		index->rd_index->indrelid < FirstNormalObjectId ||
		IsSystemRelation(index))
		return;
	copy = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexAmRoutine));
	memcpy(copy, index->rd_indam, sizeof(IndexAmRoutine));
	copy->ambuild = build_index;
	index->rd_indam = copy;
}

static void
take_over_index(Oid relid)
{
	Relation	index = RelationIdGetRelation(relid);

	/* Its creation may have been rolled back. */
	if (!RelationIsValid(index))
	{
		unbuilt = list_delete_oid(unbuilt, relid);
		return;
	}
	take_over(index);
	RelationClose(index);
}

/* Take over all btrees of a table. */
static void
take_over_all(Relation heap)
{
	List	   *indexes = RelationGetIndexList(heap);
	ListCell   *lc;

	foreach(lc, indexes)
		take_over_index(lfirst_oid(lc));
	list_free(indexes);
}

/* ----------------------------------------------------------------
 *		called before a build whose workers are planned
 * ----------------------------------------------------------------
 */

/* Is this the planner's bare state for a table whose index is to be built? */
static bool
is_for_build(const PlannerInfo *root, const RelOptInfo *rel)
{
	const Query *query = root->parse;

	return root->query_level == 1 && root->parent_root == NULL &&
		query->jointree == NULL && query->commandType == CMD_SELECT &&
		rel->relid == 1;
}

static void
check_relation(GPUSORT_RELATION_HOOK_ARGS)
{
	const RangeTblEntry *entry = root->simple_rte_array[rel->relid];
	Relation	heap;

	if (prev_relation_hook)
		prev_relation_hook(GPUSORT_RELATION_HOOK_PASS);
	if (entry->rtekind != RTE_RELATION || !entry->inh ||
		!is_for_build(root, rel) || entry->relid < FirstNormalObjectId)
		return;
	heap = RelationIdGetRelation(entry->relid);
	if (!RelationIsValid(heap))
		return;
	if (!IsSystemRelation(heap))
		take_over_all(heap);
	RelationClose(heap);
}

/* ----------------------------------------------------------------
 *		called before any build
 * ----------------------------------------------------------------
 */

/*
 * Make this process call entry_changed() when it takes its next lock, by
 * sending an invalidation message for a relation that does not exist.
 *
 * All processes of the database receive it.  Each must answer only its own last
 * message: if those of two concurrent builds answered each other's, there would be twice
 * as many with each lock.
 */
static void
call_again(void)
{
	static uint8 number = 0;
	SharedInvalidationMessage message;

	expected_call = CALL_OID_BASE | (MyProcPid & CALL_PID_MASK) << 8 | number++;
	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = MyDatabaseId;
	message.rc.relId = expected_call;
	SendSharedInvalidMessages(&message, 1);
}

/*
 * Callback of the relation cache: the entry of a relation has been reloaded if
 * the relation is open, or dropped if it is not.  InvalidOid means all
 * relations.
 *
 * index_create() makes the catalog rows of an index visible before the build,
 * and check_access() has remembered the index.  reindex_index() first
 * declares which index it builds, and then assigns a new file.  In both cases
 * the index is open.
 *
 * A concurrent build creates indexes in one transaction, and their entries are
 * dropped at its end.  Each index is then built in a transaction of its own,
 * in which nothing has changed before the index is opened, so that no callback
 * would be called.  So when that transaction begins, and cannot read catalogs
 * yet, we send a message to ourselves, and another one whenever it has
 * arrived.  One of them arrives when index_concurrently_build() locks the
 * index, before it opens it.  If the index has no entry by then, we make one
 * here.  That is safe, since the relation cache itself reads the catalogs at
 * this point, to reload the entries of open relations.
 */
static void
entry_changed(Datum arg, Oid relid)
{
	bool		is_call = !OidIsValid(relid) || relid == expected_call;

	if (IsTransactionState())
	{
		if (is_call && unbuilt != NIL)
			take_over_index(linitial_oid(unbuilt));
		else if (list_member_oid(unbuilt, relid) ||
				 (relid >= FirstNormalObjectId && ReindexIsProcessingIndex(relid)))
			take_over_index(relid);
	}
	else if (!OidIsValid(expected_call))
		is_call = true;

	if (is_call)
	{
		expected_call = InvalidOid;
		if (unbuilt != NIL)
			call_again();
	}
}

/* ----------------------------------------------------------------
 *		watching which indexes are created
 * ----------------------------------------------------------------
 */

/*
 * A relation has been created, and is open.  Remember it if it is a btree.  It
 * can be taken over at once if its catalog rows are visible already, but
 * usually they are not.
 */
static void
remember_index(Oid relid)
{
	Relation	relation = RelationIdGetRelation(relid);
	MemoryContext caller;

	if (!RelationIsValid(relation))
		return;
	if (relation->rd_rel->relkind == RELKIND_INDEX &&
		relation->rd_rel->relam == BTREE_AM_OID && !IsSystemRelation(relation))
	{
		caller = MemoryContextSwitchTo(TopMemoryContext);
		unbuilt = lappend_oid(unbuilt, relid);
		MemoryContextSwitchTo(caller);
		take_over(relation);
	}
	RelationClose(relation);
}

static void
check_access(ObjectAccessType access, Oid class, Oid object, int subobject,
			 void *arg)
{
	if (prev_access_hook)
		prev_access_hook(access, class, object, subobject, arg);
	if (access == OAT_POST_CREATE && class == RelationRelationId &&
		subobject == 0)
		remember_index(object);
}

/* Can a statement create or rebuild indexes? */
static bool
may_create_indexes(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_CreateStmt:
		case T_IndexStmt:
		case T_ReindexStmt:
		case T_AlterTableStmt:
		case GPUSORT_CLUSTER_STATEMENT:
			return true;
		default:
			return false;
	}
}

/*
 * Begin to watch which objects are created.  The hook is not set permanently,
 * because PostgreSQL 17 and later cache less of search paths while it is set.
 */
static void
begin_watching(void)
{
	is_watching = true;
	if (is_access_hooked)
		return;
	prev_access_hook = object_access_hook;
	object_access_hook = check_access;
	is_access_hooked = true;
}

/*
 * Stop watching.  If another library has put itself before us in the chain of
 * hooks, we have to stay in it.
 */
static void
end_watching(void)
{
	is_watching = false;
	list_free(unbuilt);
	unbuilt = NIL;
	if (object_access_hook != check_access)
		return;
	object_access_hook = prev_access_hook;
	is_access_hooked = false;
}

static void
process_utility(PlannedStmt *statement, const char *query_string,
				bool read_only_tree, ProcessUtilityContext context,
				ParamListInfo params, QueryEnvironment *environment,
				DestReceiver *dest, QueryCompletion *completion)
{
	ProcessUtility_hook_type volatile next = prev_ProcessUtility_hook ?
		prev_ProcessUtility_hook : standard_ProcessUtility;

	if (is_watching || !may_create_indexes(statement->utilityStmt))
	{
		next(statement, query_string, read_only_tree, context, params,
			 environment, dest, completion);
		return;
	}
	begin_watching();
	PG_TRY();
	{
		next(statement, query_string, read_only_tree, context, params,
			 environment, dest, completion);
	}
	PG_FINALLY();
	{
		end_watching();
	}
	PG_END_TRY();
}

void
gpusort_index_hook_init(void)
{
	prev_relation_hook = GPUSORT_RELATION_HOOK;
	GPUSORT_RELATION_HOOK = check_relation;
	prev_ProcessUtility_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	CacheRegisterRelcacheCallback(entry_changed, (Datum) 0);
}
