/*-------------------------------------------------------------------------
 *
 * compat.h
 *		Differences between the supported versions of PostgreSQL, 15 to 19.
 *
 * This is the only file that looks at PG_VERSION_NUM.  The rest of the source
 * uses the newest signatures; this file defines what older versions lack.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COMPAT_H
#define GPUSORT_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "pg_gpusort needs PostgreSQL 15 or later"
#endif

/* 16 moved the macros for values of variable length out of postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/*
 * The library is built with hidden symbols, as 16 builds its own modules.  15
 * leaves PGDLLEXPORT empty, which would hide the SQL functions as well.
 */
#if PG_VERSION_NUM < 160000 && defined(__GNUC__)
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

#if SIZEOF_DATUM != 8
#error "pg_gpusort needs a 64-bit platform"
#endif

#if PG_VERSION_NUM >= 180000
#include "access/cmptype.h"
#else
#include "access/stratnum.h"
#endif

/* 18 moved the functions that print EXPLAIN properties out of explain.h. */
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/*
 * Number of relations that EXPLAIN counts in a query: it qualifies column
 * names with those of the relations if there are several.  18 adds an entry
 * for GROUP BY, which is not a relation.
 */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_EXPLAIN_RELATIONS(es)	((es)->rtable_size)
#else
#define GPUSORT_EXPLAIN_RELATIONS(es)	list_length((es)->rtable)
#endif

/*
 * 18 has a module magic block with name and version, shown by
 * pg_get_loaded_modules().
 */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_MODULE_MAGIC(module_name, module_version) \
	PG_MODULE_MAGIC_EXT(.name = module_name, .version = module_version)
#else
#define GPUSORT_MODULE_MAGIC(module_name, module_version) PG_MODULE_MAGIC
#endif

/*
 * 18 describes the order of an operator or a PathKey by a comparison type
 * rather than by a strategy number of btrees.
 */
#if PG_VERSION_NUM >= 180000
typedef CompareType GsOperatorOrder;
#define GPUSORT_ORDER_DESCENDING	COMPARE_GT
#define GPUSORT_PATHKEY_OPERATOR(pathkey, type) \
	get_opfamily_member_for_cmptype((pathkey)->pk_opfamily, type, type, \
									(pathkey)->pk_cmptype)
#else
typedef int16 GsOperatorOrder;
#define GPUSORT_ORDER_DESCENDING	BTGreaterStrategyNumber
#define GPUSORT_PATHKEY_OPERATOR(pathkey, type) \
	get_opfamily_member((pathkey)->pk_opfamily, type, type, \
						(pathkey)->pk_strategy)
#endif

/* The number of this process's PGPROC, from 0.  Needs storage/proc.h. */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_MY_PROC_NUMBER	MyProcNumber
#else
#define GPUSORT_MY_PROC_NUMBER	(MyProc->pgprocno)
#endif

/* A number that 16 or 18 has changed: that of it and of later versions, and the one before. */
#define GPUSORT_SINCE_16(new, old)	(PG_VERSION_NUM >= 160000 ? (new) : (old))
#define GPUSORT_SINCE_18(new, old)	(PG_VERSION_NUM >= 180000 ? (new) : (old))

/*
 * Do sorts by a locale of the C library ignore what follows a zero byte?  In
 * 19, they compare all bytes of strings that are equal for strcoll().
 */
#define GPUSORT_ENDS_AT_ZERO	(PG_VERSION_NUM < 190000)

/*
 * The provider of built-in collations, added in 17.  All of its collations
 * compare bytes.  Needs catalog/pg_collation.h.
 */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_COLLPROVIDER_BUILTIN	COLLPROVIDER_BUILTIN
#else
#define GPUSORT_COLLPROVIDER_BUILTIN	'b'
#endif

/*
 * Where the catalogs have the name of ICU's locale, and since 16 rules in addition to it; 0
 * if there are none.  Need catalog/pg_collation.h and catalog/pg_database.h.
 */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_COLLATION_LOCALE	Anum_pg_collation_colllocale
#define GPUSORT_DATABASE_LOCALE		Anum_pg_database_datlocale
#else
#define GPUSORT_COLLATION_LOCALE	Anum_pg_collation_colliculocale
#define GPUSORT_DATABASE_LOCALE		Anum_pg_database_daticulocale
#endif
#if PG_VERSION_NUM >= 160000
#define GPUSORT_COLLATION_RULES		Anum_pg_collation_collicurules
#define GPUSORT_DATABASE_RULES		Anum_pg_database_daticurules
#else
#define GPUSORT_COLLATION_RULES		0
#define GPUSORT_DATABASE_RULES		0
#endif

/*
 * 18 counts the disabled nodes of a path in addition to its costs, and can
 * sort the outer input of a merge join incrementally.  Both inputs are already
 * sorted here, so no such sort is requested.
 */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_MERGEJOIN_COST(root, cost, type, clauses, outer, inner, extra) \
	initial_cost_mergejoin(root, cost, type, clauses, outer, inner, NIL, NIL, \
						   0, extra)
#define GPUSORT_MERGEJOIN_PATH(root, rel, type, cost, extra, o, i, keys, clauses) \
	create_mergejoin_path(root, rel, type, cost, extra, o, i, \
						  (extra)->restrictlist, keys, NULL, clauses, NIL, NIL, \
						  0)
#define GPUSORT_MOVE_DISABLED_NODES(path, from, to) \
	((path)->disabled_nodes += (to)->disabled_nodes - (from)->disabled_nodes)
#else
#define GPUSORT_MERGEJOIN_COST(root, cost, type, clauses, outer, inner, extra) \
	initial_cost_mergejoin(root, cost, type, clauses, outer, inner, NIL, NIL, \
						   extra)
#define GPUSORT_MERGEJOIN_PATH(root, rel, type, cost, extra, o, i, keys, clauses) \
	create_mergejoin_path(root, rel, type, cost, extra, o, i, \
						  (extra)->restrictlist, keys, NULL, clauses, NIL, NIL)
#define GPUSORT_MOVE_DISABLED_NODES(path, from, to) ((void) 0)
#endif

/* Does the genetic optimizer search for an order of joins?  Needs optimizer/geqo.h. */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_IS_GENETIC(root) \
	(Geqo_planner_extension_id >= 0 && GetGeqoPrivateData(root) != NULL)
#else
#define GPUSORT_IS_GENETIC(root) ((root)->join_search_private != NULL)
#endif

/*
 * 16 tries each anti join a second time with its sides exchanged
 * (JOIN_RIGHT_ANTI), so that it can hash the side whose rows are returned.
 */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_IS_RIGHT_ANTI(jointype) ((jointype) == JOIN_RIGHT_ANTI)
#else
#define GPUSORT_IS_RIGHT_ANTI(jointype) false
#endif

/*
 * Up to 18, create_upper_unique_path() is one of two functions.  19 renames it
 * to create_unique_path(), and removes the other one, which had that name.
 */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_UNIQUE_PATH(root, rel, input, ncolumns, rows) \
	create_unique_path(root, rel, input, ncolumns, rows)
#else
#define GPUSORT_UNIQUE_PATH(root, rel, input, ncolumns, rows) \
	create_upper_unique_path(root, rel, input, ncolumns, rows)
#endif

/*
 * Parameters of planner_hook, and the arguments that pass them on to the next
 * planner.  19 adds the state of the EXPLAIN that the query is planned for.
 */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_PLANNER_ARGS \
	Query *parse, const char *query_string, int cursor_options, \
	ParamListInfo bound_params, struct ExplainState *explain
#define GPUSORT_PLANNER_PASS \
	parse, query_string, cursor_options, bound_params, explain
#else
#define GPUSORT_PLANNER_ARGS \
	Query *parse, const char *query_string, int cursor_options, \
	ParamListInfo bound_params
#define GPUSORT_PLANNER_PASS \
	parse, query_string, cursor_options, bound_params
#endif

/*
 * Parameters of ExecutorRun_hook, and the arguments that pass them on to the
 * next executor with a different number of rows.  Up to 17 they include
 * whether a portal is run only once.
 */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_EXECUTOR_RUN_ARGS \
	QueryDesc *query, ScanDirection direction, uint64 count
#define GPUSORT_EXECUTOR_RUN_PASS(rows)	query, direction, rows
#else
#define GPUSORT_EXECUTOR_RUN_ARGS \
	QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once
#define GPUSORT_EXECUTOR_RUN_PASS(rows)	query, direction, rows, execute_once
#endif

/* The statement node of CLUSTER; in 19 it also stands for other commands. */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_CLUSTER_STATEMENT	T_RepackStmt
#else
#define GPUSORT_CLUSTER_STATEMENT	T_ClusterStmt
#endif

/*
 * The struct that counts the rows and the time of a node; 19 has other kinds
 * of instrumentation as well.
 */
#if PG_VERSION_NUM >= 190000
typedef struct NodeInstrumentation GsNodeInstrumentation;
#else
typedef struct Instrumentation GsNodeInstrumentation;
#endif

/* In 19 a complete TupleDesc has to be finalized. */
#if PG_VERSION_NUM < 190000
#define TupleDescFinalize(tupdesc)	((void) 0)
#endif

/*
 * Gives a ScanState a slot of another kind for its rows.  19 has flags for
 * properties of the rows, none of which is promised here.  Needs
 * executor/executor.h.
 */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_INIT_SCAN_SLOT(estate, scan, tupdesc, ops) \
	ExecInitScanTupleSlot(estate, scan, tupdesc, ops, 0)
#else
#define GPUSORT_INIT_SCAN_SLOT(estate, scan, tupdesc, ops) \
	ExecInitScanTupleSlot(estate, scan, tupdesc, ops)
#endif

/*
 * Signal handlers that ignore a signal or do what it does by default.  19 has a
 * type of its own for handlers.  Its own macros for these two cast one function
 * type to another, of which clang warns.
 */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_SIG_IGN	((pqsigfunc) (uintptr_t) SIG_IGN)
#define GPUSORT_SIG_DFL	((pqsigfunc) (uintptr_t) SIG_DFL)
#else
#define GPUSORT_SIG_IGN	SIG_IGN
#define GPUSORT_SIG_DFL	SIG_DFL
#endif

/*
 * Up to 16, the run condition of a window is in its clause.  The planner does not see there which
 * parameters the WindowAgg needs, and a Gather would not send them to workers.
 */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_RUN_CONDITION(window)	((window)->runCondition)
#define GPUSORT_RUN_CONDITION_IS_SENT	true
#else
#define GPUSORT_RUN_CONDITION(window)	((window)->winclause->runCondition)
#define GPUSORT_RUN_CONDITION_IS_SENT	false
#endif

/* 16 removes redundant columns from GROUP BY. */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_GROUP_CLAUSE(root)	((root)->processed_groupClause)
#else
#define GPUSORT_GROUP_CLAUSE(root)	((root)->parse->groupClause)
#endif

/*
 * 18 has pg_noreturn, which comes first in a declaration.  It replaces
 * pg_attribute_noreturn(), which came last.
 */
#ifndef pg_noreturn
#define pg_noreturn __attribute__((noreturn))
#endif

/*
 * Begins the scan of a SeqScanState's ScanState as the node itself would.  19
 * passes hints to the table access method: whether the query only reads the
 * table, and whether EXPLAIN shows I/O.  Needs access/tableam.h,
 * executor/executor.h and executor/instrument.h.
 */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_BEGIN_SEQ_SCAN(node) \
	table_beginscan((node)->ss_currentRelation, \
					(node)->ps.state->es_snapshot, 0, NULL, \
					(ScanRelIsReadOnly(node) ? SO_HINT_REL_READ_ONLY : 0) | \
					(((node)->ps.state->es_instrument & INSTRUMENT_IO) != 0 ? \
					 SO_SCAN_INSTRUMENT : 0))
#else
#define GPUSORT_BEGIN_SEQ_SCAN(node) \
	table_beginscan((node)->ss_currentRelation, \
					(node)->ps.state->es_snapshot, 0, NULL)
#endif

/*
 * Joins the parallel scan of a HeapScanDesc.  In 19 such a scan can be limited
 * to a range of blocks.  Needs access/heapam.h.
 */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_BEGIN_PARALLEL_SCAN(heap, parallel) \
	table_block_parallelscan_startblock_init((heap)->rs_base.rs_rd, \
											 (heap)->rs_parallelworkerdata, \
											 parallel, (heap)->rs_startblock, \
											 (heap)->rs_numblocks)
#else
#define GPUSORT_BEGIN_PARALLEL_SCAN(heap, parallel) \
	table_block_parallelscan_startblock_init((heap)->rs_base.rs_rd, \
											 (heap)->rs_parallelworkerdata, \
											 parallel)
#endif

/*
 * Begins a process's part of a scan that several processes share.  19 passes hints, see
 * above.  Needs access/tableam.h.
 */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_BEGIN_SHARED_SCAN(heap, shared)	table_beginscan_parallel(heap, shared, 0)
#else
#define GPUSORT_BEGIN_SHARED_SCAN(heap, shared)	table_beginscan_parallel(heap, shared)
#endif

/*
 * Reads a block of a scan begun with table_beginscan(), releases the previous
 * block, and finds the visible tuples.  17 split this function to support read
 * streams, so there the block is read here.  Needs access/heapam.h and
 * storage/bufmgr.h.
 */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_HEAP_READ_PAGE(scan, block) \
	do { \
		if (BufferIsValid((scan)->rs_cbuf)) \
			ReleaseBuffer((scan)->rs_cbuf); \
		(scan)->rs_cbuf = ReadBufferExtended((scan)->rs_base.rs_rd, \
											 MAIN_FORKNUM, block, RBM_NORMAL, \
											 (scan)->rs_strategy); \
		(scan)->rs_cblock = (block); \
		heap_prepare_pagescan(&(scan)->rs_base); \
	} while (0)
#else
#define GPUSORT_HEAP_READ_PAGE(scan, block) heapgetpage(&(scan)->rs_base, block)
#endif

/*
 * A wait event with a name of its own, to be requested once per process.
 * Before 17 all extensions share one wait event.  Needs utils/wait_event.h.
 */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_NEW_WAIT_EVENT(name) WaitEventExtensionNew(name)
#else
#define GPUSORT_NEW_WAIT_EVENT(name) ((void) (name), PG_WAIT_EXTENSION)
#endif

/* Since 18 a query counts its workers.  Needs access/parallel.h and nodes/execnodes.h. */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_COUNT_WORKERS(estate, pcxt) \
	((estate)->es_parallel_workers_to_launch += (pcxt)->nworkers_to_launch, \
	 (estate)->es_parallel_workers_launched += (pcxt)->nworkers_launched)
#else
#define GPUSORT_COUNT_WORKERS(estate, pcxt) ((void) 0)
#endif

/* The list of registered background workers is doubly linked since 18. */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_WORKER_ITER		dlist_iter
#define GPUSORT_FOREACH_WORKER(iter)	dlist_foreach(iter, &BackgroundWorkerList)
#define GPUSORT_WORKER_AT(iter) \
	(&dlist_container(RegisteredBgWorker, rw_lnode, (iter).cur)->rw_worker)
#else
#define GPUSORT_WORKER_ITER		slist_iter
#define GPUSORT_FOREACH_WORKER(iter)	slist_foreach(iter, &BackgroundWorkerList)
#define GPUSORT_WORKER_AT(iter) \
	(&slist_container(RegisteredBgWorker, rw_lnode, (iter).cur)->rw_worker)
#endif

/*
 * The type of the cache number passed to a syscache callback; 19 has a type of
 * its own for it.
 */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_SYSCACHE_ID	SysCacheIdentifier
#else
#define GPUSORT_SYSCACHE_ID	int
#endif

/*
 * 17 has functions that write the pages of a new relation, including WAL and
 * flushing.
 */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_HAVE_BULK_WRITE
#endif

/* Sets the checksum of a page; renamed in 19.  Needs storage/bufpage.h. */
#if PG_VERSION_NUM < 190000
#define PageSetChecksum(page, block)	PageSetChecksumInplace(page, block)
#endif

/* A page in memory that direct I/O can use, which 16 added. */
#if PG_VERSION_NUM < 160000
#define PGIOAlignedBlock PGAlignedBlock
#endif

/* The location of a relation's files; renamed in 16. */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_RELATION_LOCATOR(relation)	(&(relation)->rd_locator)
#else
#define GPUSORT_RELATION_LOCATOR(relation)	(&(relation)->rd_node)
#endif

/*
 * Does the planner of PostgreSQL sort the input of an Agg for aggregates with
 * DISTINCT or ORDER BY, and leave out their own sorts?  Added in 16.
 */
#define GPUSORT_CORE_PRESORTS_AGGS	(PG_VERSION_NUM >= 160000)

/*
 * Has it chosen the order of this Aggref?  Needs nodes/primnodes.h.
 */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_AGG_IS_PRESORTED(aggref)	((aggref)->aggpresorted)
#else
#define GPUSORT_AGG_IS_PRESORTED(aggref)	false
#endif

/*
 * Does an aggregate with DISTINCT or ORDER BY sort its rows by itself?  16 has a flag for
 * that, since the rows may come in order.  Need executor/nodeAgg.h.
 */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_AGG_SORTS(pertrans)		((pertrans)->aggsortrequired)
#define GPUSORT_AGG_LEAVE_OUT_SORT(pertrans) \
	((pertrans)->aggsortrequired = false)
#else
#define GPUSORT_AGG_SORTS(pertrans)		((pertrans)->numSortCols > 0)
#define GPUSORT_AGG_LEAVE_OUT_SORT(pertrans)	((void) 0)
#endif

/*
 * Copies a transition value into the memory of its group; renamed in 16.  Needs
 * executor/execExpr.h.
 */
#if PG_VERSION_NUM < 160000
#define ExecAggCopyTransValue	ExecAggTransReparent
#endif

/*
 * How many pathkeys of root->group_pathkeys are those of GROUP BY?  The others
 * are of aggregates.  Needs nodes/pathnodes.h.
 */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_GROUPBY_PATHKEYS(root)	((root)->num_groupby_pathkeys)
#else
#define GPUSORT_GROUPBY_PATHKEYS(root)	list_length((root)->group_pathkeys)
#endif

/* An Aggref of an AggInfo; 16 has a list of them.  Needs nodes/pathnodes.h. */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_AGGREF_OF(info)	linitial_node(Aggref, (info)->aggrefs)
#else
#define GPUSORT_AGGREF_OF(info)	((info)->representative_aggref)
#endif

/*
 * The path of a Unique node; renamed in 19.  Needs nodes/pathnodes.h.
 */
#if PG_VERSION_NUM >= 190000
typedef struct UniquePath GsUniquePath;
#define GPUSORT_IS_UNIQUE_PATH(path)	IsA(path, UniquePath)
#else
typedef struct UpperUniquePath GsUniquePath;
#define GPUSORT_IS_UNIQUE_PATH(path)	IsA(path, UpperUniquePath)
#endif

/*
 * Makes an AppendPath without an order.  In 19 its inputs are members of a struct.  Needs
 * optimizer/pathnode.h.
 */
#if PG_VERSION_NUM >= 190000
#define GPUSORT_APPEND_PATH(root, rel, paths, partial_paths, workers, parallel_aware) \
	create_append_path(root, rel, \
					   (AppendPathInput) {.subpaths = paths, \
					   .partial_subpaths = partial_paths}, \
					   NIL, NULL, workers, parallel_aware, -1)
#else
#define GPUSORT_APPEND_PATH(root, rel, paths, partial_paths, workers, parallel_aware) \
	create_append_path(root, rel, paths, partial_paths, NIL, NULL, workers, \
					   parallel_aware, -1)
#endif

/*
 * The inputs of a SetOpPath, the columns by which it compares rows, and a path for the
 * same operation over other inputs, which are sorted, that returns 'nrows' rows.  Up to 17
 * there is one input, which appends the rows of two relations.  Need optimizer/pathnode.h.
 */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_SETOP_INPUTS(setop)	list_make2((setop)->leftpath, (setop)->rightpath)
#define GPUSORT_SETOP_CLAUSES(setop)	((setop)->groupList)
#define GPUSORT_SORTED_SETOP_PATH(root, rel, setop, inputs, nrows) \
	create_setop_path(root, rel, linitial(inputs), lsecond(inputs), (setop)->cmd, \
					  SETOP_SORTED, (setop)->groupList, (setop)->numGroups, nrows)
#else
#define GPUSORT_SETOP_INPUTS(setop)	list_make1((setop)->subpath)
#define GPUSORT_SETOP_CLAUSES(setop)	((setop)->distinctList)
#define GPUSORT_SORTED_SETOP_PATH(root, rel, setop, inputs, nrows) \
	create_setop_path(root, rel, linitial(inputs), (setop)->cmd, SETOP_SORTED, \
					  (setop)->distinctList, (setop)->flagColIdx, -1, \
					  (setop)->numGroups, nrows)
#endif

#endif							/* GPUSORT_COMPAT_H */
