/*-------------------------------------------------------------------------
 *
 * version.h
 *		Which build of the library this is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_VERSION_H
#define GPUSORT_VERSION_H

#include "fmgr.h"

/* Of the release, in three numbers. */
extern const char gpusort_version_number[];

/* Abbreviated, and followed by "-dirty" if the sources differed from it; "unknown" outside of git. */
extern const char gpusort_version_commit[];

/* The date of the commit, or of SOURCE_DATE_EPOCH, such as "2026-11-28"; or "unknown". */
extern const char gpusort_version_built[];

/* All in one line, for users. */
extern const char gpusort_version_text[];

/*
 * Raise an error: the script of another build has created this SQL function, as 'detail' says.  To
 * be called by functions that would misread their arguments or return other columns.
 */
extern void gpusort_version_refuse(FunctionCallInfo fcinfo, const char *detail);

#endif							/* GPUSORT_VERSION_H */
