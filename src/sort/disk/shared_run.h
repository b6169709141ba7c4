/*-------------------------------------------------------------------------
 *
 * shared_run.h
 *		Sorted runs that processes of one query write and their leader reads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_RUN_H
#define GPUSORT_SHARED_RUN_H

#include "storage/sharedfileset.h"

#include "fallback.h"

/* The files of the runs of one sort: the leader's. */
typedef struct GsRunSet GsRunSet;

/* What other processes have to know of it.  Holds no pointers. */
typedef struct GsRunSetHandle
{
	FileSet		files;
} GsRunSetHandle;

/* Where a process writes the one run of its rows. */
typedef struct GsRunTarget
{
	GsRunSetHandle set;
	int			producer;		/* another number in each process */
} GsRunTarget;

/* A run that a process has written.  Holds no pointers. */
typedef struct GsSharedRun
{
	int			producer;
	int64		first_block;	/* of its tape */
	int64		nrows;			/* if 0, there is no file */
	int64		ndropped;		/* rows of the process that no Limit wants */
	uint64		bytes;
	uint32		longest_block;	/* bytes */
	GsFallback	overflow;		/* why its rows were on disk before, too */
} GsSharedRun;

/*
 * Make an empty set, in the current memory context.  When that goes, after an
 * error too, the files are removed: no other process may be writing then.
 */
extern GsRunSet *gpusort_run_set_create(void);

extern GsRunSetHandle gpusort_run_set_handle(const GsRunSet *set);

/* The set in the form that logical tapes ask for; it stays the set's. */
extern SharedFileSet *gpusort_run_set_files(GsRunSet *set);

/* The same for a process that is not the leader, in the current context. */
extern SharedFileSet *gpusort_run_target_files(const GsRunTarget *target);

/* Is it safe to write so many rows, each of so many bytes, to temporary files? */
extern bool gpusort_shared_runs_allowed(double rows, int width);

#endif							/* GPUSORT_SHARED_RUN_H */
