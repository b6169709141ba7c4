/*-------------------------------------------------------------------------
 *
 * btree_build.h
 *		Builds a btree index: reads the table, sorts, writes pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_BUILD_H
#define GPUSORT_BTREE_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

/*
 * Build an empty btree index, as an access method's ambuild does.  Returns
 * NULL, with nothing written, if the build is left to PostgreSQL.  In that
 * case an error is raised if pg_gpusort.debug_require is set.
 */
extern IndexBuildResult *gpusort_btree_build(Relation heap, Relation index,
											 IndexInfo *info);

#endif							/* GPUSORT_BTREE_BUILD_H */
