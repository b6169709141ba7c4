/*-------------------------------------------------------------------------
 *
 * sorted_run.h
 *		Sorted runs of rows in a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORTED_RUN_H
#define GPUSORT_SORTED_RUN_H

#include "utils/logtape.h"

#include "sort/base/row_format.h"
#include "sort/disk/shared_run.h"

/* The file of all runs of a sort. */
typedef struct GsRunFile GsRunFile;

/* A run that has been written. */
typedef struct GsSortedRun
{
	LogicalTape *tape;
	int64		nrows;
	uint64		bytes;
	uint32		longest_block;	/* bytes */
	int			level;			/* how often its rows have been merged */
} GsSortedRun;

/*
 * What a block of rows begins with.  The rows follow, packed, one behind the
 * other.
 */
typedef struct GsRunBlock
{
	uint32		bytes;			/* with this header */
	uint32		bytes_before;	/* of the block before, or 0 */
	uint32		nrows;			/* at least 1 */
	uint32		unused;			/* rows are aligned */
} GsRunBlock;

/*
 * Make an empty file in the current memory context.  How much is written and
 * read at a time follows from the memory allowed, in bytes.  With 'target', which
 * has to stay, the file is in a set of several processes.
 */
extern GsRunFile *gpusort_run_file_create(const GsRowFormat *format,
										  Size limit,
										  const GsRunTarget *target);

/* Memory that it takes to read a run when so much is allowed. */
extern Size gpusort_run_file_reader_bytes(Size limit);

/* kB on disk, now that all is written. */
extern int64 gpusort_run_file_kb(const GsRunFile *file);

extern void gpusort_run_file_close(GsRunFile *file);

/*
 * Write a run: begin, put its rows in order, and end.  One run is written at a
 * time.  Returns NULL at the end, and leaves nothing, if there were no rows.
 * A run that is frozen can be read again and again and in any direction;
 * others can be read once.  Checks for interrupts.
 */
extern void gpusort_run_file_begin(GsRunFile *file);
extern void gpusort_run_file_put(GsRunFile *file, const Datum *values,
								 const bool *isnull);
extern void gpusort_run_file_put_packed(GsRunFile *file, const char *row,
										Size bytes);

/* Put a row of so many bytes, to be packed to the place returned, at once. */
extern char *gpusort_run_file_reserve(GsRunFile *file, Size bytes);
extern GsSortedRun *gpusort_run_file_end(GsRunFile *file, bool freeze);

/*
 * End a run, instead, that is to be the file's only one and has rows, and have
 * the leader of the set read it.
 */
extern void gpusort_run_file_share(GsRunFile *file, GsSharedRun *shared);

/*
 * For the leader: a run that a process has shared, to be read once.  The file
 * must be one to which nothing is written, and takes only runs of one set.
 */
extern GsSortedRun *gpusort_run_file_import(GsRunFile *file, GsRunSet *set,
											const GsSharedRun *shared);

/*
 * Read the next block into memory of at least so many bytes as the run's
 * longest.  There must be one.
 */
extern void gpusort_run_file_read(GsRunFile *file, GsSortedRun *run,
								  GsRunBlock *block);

/* No run will be written any more: room in the file need not be noted. */
extern void gpusort_run_file_forget_room(GsRunFile *file);

/* Give back a run's place in the file. */
extern void gpusort_run_file_free(GsRunFile *file, GsSortedRun *run);

#endif							/* GPUSORT_SORTED_RUN_H */
