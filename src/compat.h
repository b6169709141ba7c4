/*-------------------------------------------------------------------------
 *
 * compat.h
 *		The one place that knows PostgreSQL's version.
 *
 * The rest of the source is written for the newest signatures; what an older
 * version lacks is defined here.  PostgreSQL 15 to 18 are supported.
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
 * How many relations a query has for EXPLAIN, which shows their names with the
 * columns if they are several.  18 adds an entry for GROUP BY that is none.
 */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_EXPLAIN_RELATIONS(es)	((es)->rtable_size)
#else
#define GPUSORT_EXPLAIN_RELATIONS(es)	list_length((es)->rtable)
#endif

/* 18 has a module magic with name and version, shown by pg_get_loaded_modules(). */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_MODULE_MAGIC(module_name, module_version) \
	PG_MODULE_MAGIC_EXT(.name = module_name, .version = module_version)
#else
#define GPUSORT_MODULE_MAGIC(module_name, module_version) PG_MODULE_MAGIC
#endif

/*
 * Makes a function callable from SQL.  Before 16, PG_FUNCTION_INFO_V1() does
 * not export the function.  Needs fmgr.h.
 */
#define GPUSORT_SQL_FUNCTION(function) \
	extern PGDLLEXPORT Datum function(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(function)

/*
 * 18 speaks of the order of an operator or a PathKey as a comparison type, not
 * as a strategy number of btrees.
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

/*
 * The provider of collations that 17 brought, all of which compare bytes.  Needs
 * catalog/pg_collation.h.
 */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_COLLPROVIDER_BUILTIN	COLLPROVIDER_BUILTIN
#else
#define GPUSORT_COLLPROVIDER_BUILTIN	'b'
#endif

/*
 * 18 counts disabled nodes of a path beside its costs, and can sort the outer
 * input of a merge join incrementally.  Here both inputs have their order.
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

/*
 * 16 proposes an anti join a second time with its sides exchanged, to hash the
 * rows it returns.
 */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_IS_RIGHT_ANTI(jointype) ((jointype) == JOIN_RIGHT_ANTI)
#else
#define GPUSORT_IS_RIGHT_ANTI(jointype) false
#endif

/* 16 leaves out of GROUP BY what is redundant. */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_GROUP_CLAUSE(root)	((root)->processed_groupClause)
#else
#define GPUSORT_GROUP_CLAUSE(root)	((root)->parse->groupClause)
#endif

/* 18 has this in the place of pg_attribute_noreturn(), which came last. */
#ifndef pg_noreturn
#define pg_noreturn __attribute__((noreturn))
#endif

/*
 * Reads a block of a scan begun with table_beginscan(), in place of the one
 * before, and finds its visible tuples.  17 took the two apart, to have streams
 * read ahead; then the block is read here.  Needs access/heapam.h and
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
 * A wait event with a name of its own, to be asked for once per process; before
 * 17 all those of extensions are one.  Needs utils/wait_event.h.
 */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_NEW_WAIT_EVENT(name) WaitEventExtensionNew(name)
#else
#define GPUSORT_NEW_WAIT_EVENT(name) ((void) (name), PG_WAIT_EXTENSION)
#endif

/* The number of a block of a logical tape; 17 made it wide on all platforms. */
#if PG_VERSION_NUM >= 170000
typedef int64 GsTapeBlock;
#else
typedef long GsTapeBlock;
#endif

/* Functions that write a new relation's pages, with WAL and flushing. */
#if PG_VERSION_NUM >= 170000
#define GPUSORT_HAVE_BULK_WRITE
#endif

/* Where the files of a relation are; 16 renamed it. */
#if PG_VERSION_NUM >= 160000
#define GPUSORT_RELATION_LOCATOR(relation)	(&(relation)->rd_locator)
#else
#define GPUSORT_RELATION_LOCATOR(relation)	(&(relation)->rd_node)
#endif

#endif							/* GPUSORT_COMPAT_H */
