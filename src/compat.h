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

#if SIZEOF_DATUM != 8
#error "pg_gpusort needs a 64-bit platform"
#endif

/* 18 moved the functions that print EXPLAIN properties out of explain.h. */
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* 18 has a module magic with name and version, shown by pg_get_loaded_modules(). */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_MODULE_MAGIC(module_name, module_version) \
	PG_MODULE_MAGIC_EXT(.name = module_name, .version = module_version)
#else
#define GPUSORT_MODULE_MAGIC(module_name, module_version) PG_MODULE_MAGIC
#endif

/*
 * The operator of a PathKey for a type: 18 keeps a comparison type where there
 * was a btree strategy number.
 */
#if PG_VERSION_NUM >= 180000
#define GPUSORT_PATHKEY_OPERATOR(pathkey, type) \
	get_opfamily_member_for_cmptype((pathkey)->pk_opfamily, type, type, \
									(pathkey)->pk_cmptype)
#else
#define GPUSORT_PATHKEY_OPERATOR(pathkey, type) \
	get_opfamily_member((pathkey)->pk_opfamily, type, type, \
						(pathkey)->pk_strategy)
#endif

#endif							/* GPUSORT_COMPAT_H */
