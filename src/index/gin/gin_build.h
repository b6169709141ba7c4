/*-------------------------------------------------------------------------
 *
 * gin_build.h
 *		Builds a GIN index: extracts keys, sorts them, writes pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_BUILD_H
#define GPUSORT_GIN_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

/*
 * Build an empty GIN index, as an access method's ambuild does.  Returns NULL, with nothing
 * written, if the build is left to PostgreSQL.  In that case an error is raised if
 * pg_gpusort.debug_require is set.
 */
extern IndexBuildResult *gpusort_gin_build(Relation heap, Relation index, IndexInfo *info);

#endif							/* GPUSORT_GIN_BUILD_H */
