/*-------------------------------------------------------------------------
 *
 * gin_build.h
 *		Builds a GIN index: extracts keys, sorts them, writes pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_BUILD_H
#define GPUSORT_GIN_BUILD_H

#include "index/base/index_build.h"

extern const GsIndexKind gpusort_gin_kind;

#endif							/* GPUSORT_GIN_BUILD_H */
