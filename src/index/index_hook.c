/*-------------------------------------------------------------------------
 *
 * index_hook.c
 *		Directs PostgreSQL's index builds to gpusort_index_build(), and the
 *		validation of a btree built concurrently to gpusort_btree_validate_collect().
 *
 * PostgreSQL has no hook for index builds.  But it looks up the function that
 * builds an index in the index's relation cache entry, in the table of access
 * method routines.  We replace the function there: the entry gets its own copy
 * of the table, in the entry's memory context.  That must happen before the
 * build.  Just then the relation cache is told that the index is new or has a new file, and
 * calls its callbacks.
 *
 * A concurrent statement builds an index in one transaction, and validates it in a later
 * one, where validate_index() calls the function with which VACUUM deletes index tuples.  So
 * we replace that one as well, and know by the list of indexes to be validated who calls it.
 *
 * A copy that is left behind does no harm: each build that is not eligible, and each
 * VACUUM, is passed to PostgreSQL's own function.  If an entry is rebuilt, it has
 * PostgreSQL's functions again.
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
#include "storage/sinval.h"
#include "tcop/utility.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "index/btree/btree.h"
#include "index/gin/gin.h"
#include "index/index_hook.h"
#include "loading.h"

/*
 * A message of call_again() names a relation by an OID of its own: this bit, the
 * sender's process ID and a number.  A relation can have such an OID only if OIDs have
 * wrapped around, and then its cache entry is reloaded once more than needed.
 */
#define CALL_OID_BASE	((Oid) 0xC0000000)
#define CALL_PID_MASK	0x3FFFFF

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
 * Indexes that this statement and those nested in it have created and not built
 * yet, in the order of creation.  Concurrent statements build them in this
 * order, too.
 */
static List *unbuilt = NIL;

/* Those that it has built concurrently and not validated yet, in the same order. */
static List *unvalidated = NIL;

/* The OID in the message that call_again() has sent last, if it has not arrived. */
static Oid	expected_call = InvalidOid;

/* Is an index to be built or validated in this transaction, without other changes? */
static bool is_calling = false;

PGDLLEXPORT void gpusort_index_worker_main(dsm_segment *segment, shm_toc *toc);

static void take_over_listed(const List *indexes);

/* ----------------------------------------------------------------
 *		taking over relation cache entries
 * ----------------------------------------------------------------
 */

/* Append an OID to a list that lasts as long as the statement. */
static List *
append_oid(List *list, Oid relid)
{
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);

	list = lappend_oid(list, relid);
	MemoryContextSwitchTo(caller);
	return list;
}

/* Returns the kind of an index that we build, or NULL. */
static const GsIndexKind *
kind_of(Relation index)
{
	switch (index->rd_rel->relam)
	{
		case BTREE_AM_OID:
			return &gpusort_btree_kind;
		case GIN_AM_OID:
			return &gpusort_gin_kind;
		default:
			return NULL;
	}
}

/* Main function of the workers of a build.  The parallel context finds it by its name. */
void
gpusort_index_worker_main(dsm_segment *segment, shm_toc *toc)
{
	gpusort_index_build_work(kind_of, toc);
}

/* ambuild */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info)
{
	const GsIndexKind *kind = kind_of(index);
	IndexBuildResult *result;

	is_calling = false;
	unbuilt = list_delete_oid(unbuilt, RelationGetRelid(index));
	if (info->ii_Concurrent && kind == &gpusort_btree_kind)
		unvalidated = append_oid(unvalidated, RelationGetRelid(index));
	result = gpusort_index_build(kind, heap, index, info);
	return result != NULL ? result : kind->stock_build(heap, index, info);
}

/*
 * ambulkdelete
 *
 * An index that this very statement has built and not validated is not known to any VACUUM
 * in this process: neither can be executed in a transaction block or in a function.
 *
 * The transactions that validate further indexes begin without messages, because this one
 * changes no catalogs.  So the entries of these indexes are taken over now.
 */
static IndexBulkDeleteResult *
bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *result,
			IndexBulkDeleteCallback callback, void *callback_arg)
{
	Oid			relid = RelationGetRelid(info->index);

	if (!list_member_oid(unvalidated, relid) || info->index->rd_index->indisvalid)
		return btbulkdelete(info, result, callback, callback_arg);
	is_calling = false;
	unvalidated = list_delete_oid(unvalidated, relid);
	take_over_listed(unvalidated);
	return gpusort_btree_validate_collect(info, result, callback, callback_arg);
}

/* aminsert */
static bool
insert_tuple(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			 IndexUniqueCheck check, bool unchanged, IndexInfo *info)
{
	if (gpusort_btree_validate_is_pending(index))
		elog(ERROR, "validation of index \"%s\" has scanned the table without its TIDs",
			 RelationGetRelationName(index));
	return btinsert(index, values, isnull, tid, heap, check, unchanged, info);
}

/* Make our functions build an index, and validate a btree, unless its table is a system catalog. */
static void
take_over(Relation index)
{
	const GsIndexKind *kind = kind_of(index);
	IndexAmRoutine *copy;

	if (kind == NULL || index->rd_indam == NULL ||
		index->rd_indam->ambuild != kind->stock_build ||
		index->rd_index->indrelid < FirstNormalObjectId ||
		IsSystemRelation(index))
		return;
	copy = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexAmRoutine));
	memcpy(copy, index->rd_indam, sizeof(IndexAmRoutine));
	copy->ambuild = build_index;
	if (kind == &gpusort_btree_kind)
	{
		copy->ambulkdelete = bulk_delete;
		copy->aminsert = insert_tuple;
	}
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
		unvalidated = list_delete_oid(unvalidated, relid);
		return;
	}
	take_over(index);
	RelationClose(index);
}

/* Take over all btrees and GIN indexes of a list. */
static void
take_over_listed(const List *indexes)
{
	List	   *copy = list_copy(indexes);
	ListCell   *lc;

	foreach(lc, copy)
		take_over_index(lfirst_oid(lc));
	list_free(copy);
}

/* ----------------------------------------------------------------
 *		called before a build
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
 *
 * Each index is validated in a transaction of its own as well, after all are built.  The
 * end of the builds has dropped their entries again, so that the same is done then.
 */
static void
entry_changed(Datum arg, Oid relid)
{
	bool		is_call = !OidIsValid(relid) || relid == expected_call;
	const List *awaited = unbuilt != NIL ? unbuilt : unvalidated;

	if (IsTransactionState())
	{
		if (is_call && awaited != NIL)
			take_over_index(linitial_oid(awaited));
		else if (list_member_oid(unbuilt, relid) || list_member_oid(unvalidated, relid) ||
				 (relid >= FirstNormalObjectId && ReindexIsProcessingIndex(relid)))
			take_over_index(relid);
	}
	else
	{
		is_call |= !OidIsValid(expected_call);
		is_calling = awaited != NIL;
	}

	if (is_call)
	{
		expected_call = InvalidOid;
		if (is_calling)
			call_again();
	}
}

/* ----------------------------------------------------------------
 *		watching which indexes are created
 * ----------------------------------------------------------------
 */

/*
 * A relation has been created, and is open.  Remember it if it is an index of
 * ours.  It can be taken over at once if its catalog rows are visible already, but
 * usually they are not.
 */
static void
remember_index(Oid relid)
{
	Relation	relation = RelationIdGetRelation(relid);

	if (!RelationIsValid(relation))
		return;
	if (relation->rd_rel->relkind == RELKIND_INDEX &&
		kind_of(relation) != NULL && !IsSystemRelation(relation))
	{
		unbuilt = append_oid(unbuilt, relid);
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
	is_calling = false;
	list_free(unbuilt);
	unbuilt = NIL;
	list_free(unvalidated);
	unvalidated = NIL;
	gpusort_btree_validate_reset();
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

	if (is_watching || !gpusort_loading_is_wanted() ||
		!may_create_indexes(statement->utilityStmt))
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
	prev_ProcessUtility_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	CacheRegisterRelcacheCallback(entry_changed, (Datum) 0);
}
