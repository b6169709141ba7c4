/*-------------------------------------------------------------------------
 *
 * shared_run.h
 *		Sorted runs that several processes write and their leader reads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_RUN_H
#define GPUSORT_SHARED_RUN_H

#include "storage/sharedfileset.h"

#include "fallback.h"

/* The files with the runs of all processes.  Belongs to the leader. */
typedef struct GsRunSet GsRunSet;

/* What other processes need to know about it.  Contains no pointers. */
typedef struct GsRunSetHandle
{
	FileSet		files;
} GsRunSetHandle;

/* Where a process writes its rows, as a single run. */
typedef struct GsRunTarget
{
	GsRunSetHandle set;
	int			producer;		/* different in each process */
} GsRunTarget;

/* A run that a process has written.  Contains no pointers. */
typedef struct GsSharedRun
{
	int			producer;
	uint32		first_extent;	/* of its file */
	uint32		extent_bytes;
	int64		nrows;			/* there is no file if this is 0 */
	int64		ndropped;		/* rows beyond the bound that the process has
								 * dropped */
	uint64		bytes;
	uint32		longest_block;	/* bytes */
	int64		file_kb;		/* size of the file */
	GsFallback	overflow;		/* why its rows did not fit in memory, if so */
} GsSharedRun;

/*
 * Create an empty set in the current memory context.  The files are removed when
 * that context is deleted, also after an error.  No other process may be writing
 * to them at that time.
 */
extern GsRunSet *gpusort_run_set_create(void);

extern GsRunSetHandle gpusort_run_set_handle(const GsRunSet *set);

/* Does temp_file_limit allow that many rows of 'width' bytes in temporary files? */
extern bool gpusort_shared_runs_allowed(double rows, int width);

#endif							/* GPUSORT_SHARED_RUN_H */
