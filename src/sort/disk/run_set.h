/*-------------------------------------------------------------------------
 *
 * run_set.h
 *		Files to which several processes write sorted runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_SET_H
#define GPUSORT_RUN_SET_H

#include "storage/sharedfileset.h"

/* The files with the runs of all processes.  Belongs to the leader. */
typedef struct GsRunSet GsRunSet;

/* What other processes need to know about it.  Contains no pointers. */
typedef struct GsRunSetHandle
{
	FileSet		files;
} GsRunSetHandle;

/* Where a process writes its runs. */
typedef struct GsRunTarget
{
	GsRunSetHandle set;
	int			producer;		/* different in each process */
} GsRunTarget;

/*
 * Create an empty set in the current memory context.  The files are removed when
 * that context is deleted, also after an error.  No other process may be writing
 * to them at that time.
 */
extern GsRunSet *gpusort_run_set_create(void);

extern GsRunSetHandle gpusort_run_set_handle(const GsRunSet *set);

/* Does temp_file_limit allow that many rows of 'width' bytes in temporary files? */
extern bool gpusort_shared_runs_allowed(double rows, int width);

#endif							/* GPUSORT_RUN_SET_H */
