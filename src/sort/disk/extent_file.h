/*-------------------------------------------------------------------------
 *
 * extent_file.h
 *		Temporary files that are written and read in large pieces.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTENT_FILE_H
#define GPUSORT_EXTENT_FILE_H

#include "storage/fileset.h"

/* ---- Sets of files to which several processes write sorted runs ---- */

/* Where a process writes its runs. */
typedef struct GsRunTarget
{
	FileSet		files;			/* with the runs of all processes */
	int			producer;		/* different in each process */
} GsRunTarget;

/*
 * Create an empty set, whose files are removed when the current memory context is deleted, also
 * after an error.  No other process may be writing to them at that time.
 */
extern FileSet gpusort_run_set_create(void);

/* Does temp_file_limit allow that many rows of 'width' bytes in temporary files? */
extern bool gpusort_shared_runs_allowed(double rows, int width);

/* ---- Files ---- */

typedef struct GsExtentFile GsExtentFile;

/* Extents are numbered from 0. */
typedef uint32 GsExtent;

#define GPUSORT_NO_EXTENT	PG_UINT32_MAX

/* The sizes that an extent can have: powers of two in this range. */
#define GPUSORT_MIN_EXTENT_BYTES	((Size) 8 * 1024)
#define GPUSORT_MAX_EXTENT_BYTES	((Size) 128 * 1024)

/*
 * Create a file in the current memory context.  It does not exist on disk before it is
 * written.  If 'target' is not NULL, other processes can open the file, and it is
 * removed with the run set; otherwise it is removed when it is closed or when the
 * resource owner of the caller ends.
 */
extern GsExtentFile *gpusort_extent_file_create(Size extent_bytes,
												const GsRunTarget *target);

/* Open a file that another process has written, to be read only. */
extern GsExtentFile *gpusort_extent_file_open(Size extent_bytes, const GsRunTarget *target);

extern void gpusort_extent_file_close(GsExtentFile *file);

/* The kB used on disk. */
extern int64 gpusort_extent_file_kb(const GsExtentFile *file);

extern Size gpusort_extent_file_extent_bytes(const GsExtentFile *file);

/* The number of extents that 'bytes' bytes take. */
extern uint32 gpusort_extent_file_count(const GsExtentFile *file, Size bytes);

/*
 * Allocate extents that follow each other for 'bytes' bytes, and return the first one; or free
 * them so that they are used again.  Freeing extents of an opened file does nothing.
 */
extern GsExtent gpusort_extent_file_alloc(GsExtentFile *file, Size bytes);
extern void gpusort_extent_file_free(GsExtentFile *file, GsExtent first, Size bytes);

/*
 * Write bytes to an extent and to those that follow it, or read them from 'offset' on.
 * Reading returns how many bytes there were, which is less than
 * 'bytes' only at the end of the file.  Checks for interrupts.
 */
extern void gpusort_extent_file_write(GsExtentFile *file, GsExtent extent,
									  const char *data, Size bytes);
extern Size gpusort_extent_file_read(GsExtentFile *file, GsExtent extent,
									 Size offset, char *data, Size bytes);

#endif							/* GPUSORT_EXTENT_FILE_H */
