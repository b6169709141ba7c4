/*-------------------------------------------------------------------------
 *
 * sorted_run.h
 *		Writes and reads sorted runs of rows in a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORTED_RUN_H
#define GPUSORT_SORTED_RUN_H

#include "sort/base/row_format.h"
#include "sort/disk/extent_file.h"

/* The file with all runs of a process. */
typedef struct GsRunFile GsRunFile;

/* Where a block of a run is. */
typedef struct GsBlockEntry
{
	int64		first_row;		/* number of its first row in the run */
	Size		sample;			/* offset of the sort keys of that row among
								 * the samples */
	GsExtent	extent;
} GsBlockEntry;

/*
 * Where blocks of a run are.  In a run set, their first rows are samples of the run, of which this
 * has the sort keys, as packed rows of gpusort_row_format_create_keys().  Most blocks are here
 * then, unless keys are so long that the samples would take much memory.  Otherwise all are here,
 * without samples.
 */
typedef struct GsRunIndex
{
	GsBlockEntry *blocks;
	uint32		nblocks;
	char	   *samples;
	Size		sample_bytes;
} GsRunIndex;

/*
 * A run that has been written.  Processes of a run set read copies of it, with a file that they
 * have opened, and an index in memory that they share.
 */
typedef struct GsSortedRun
{
	GsExtentFile *file;
	bool		frozen;			/* can its blocks be read several times? */
	GsExtent	first;			/* of its first block */
	GsExtent	next;			/* of the block to read next */
	GsExtent	end;			/* the one after the last block, if all are in
								 * the file in their order */
	int64		nrows;
	uint64		bytes;
	uint32		longest_block;	/* bytes */
	int			level;			/* how often its rows have been merged */
	GsRunIndex	index;			/* empty if it is neither frozen nor in a run
								 * set */
} GsSortedRun;

/* Memory for a packed row, a multiple of MAXIMUM_ALIGNOF.  All bytes are 0 at first. */
typedef struct GsRowBuffer
{
	MemoryContext context;		/* set by its owner */
	char	   *row;			/* NULL at first */
	Size		room;
} GsRowBuffer;

/*
 * The header of a block of rows.  The dense rows follow it.  A block is in one extent,
 * or in several that follow each other if it has a single row that is longer.
 */
typedef struct GsRunBlock
{
	uint32		bytes;			/* including this header */
	uint32		nrows;			/* at least 1 */
	GsExtent	next;			/* first extent of the next block, or
								 * GPUSORT_NO_EXTENT */
	uint32		last_row;		/* offset of the last row */
} GsRunBlock;

/*
 * Create an empty file in the current memory context.  'limit' is the memory allowed,
 * in bytes, which determines the size of a block.  If 'target'
 * is not NULL, the file belongs to the run set of several processes, and its runs are
 * indexed; 'target' must stay valid.
 */
extern GsRunFile *gpusort_run_file_create(const GsSortSpec *spec, const GsRowFormat *format,
										  Size limit, const GsRunTarget *target);

/*
 * Bytes of memory that reading a run takes if 'limit' bytes are allowed, where several
 * processes merge the runs together or one merges its own.
 */
extern Size gpusort_run_file_reader_bytes(Size limit, bool together);

/* The kB used on disk.  Call this after everything has been written. */
extern int64 gpusort_run_file_kb(const GsRunFile *file);

extern void gpusort_run_file_close(GsRunFile *file);

/*
 * Write a run: begin it, put its rows in sorted order, and end it.  Only one run can
 * be written at a time.  If no rows were put, there is no run, and
 * gpusort_run_file_end() returns NULL.  A run that will 'freeze' can be read in both
 * directions and any number of times; others can be read only once.  Checks for
 * interrupts.
 */
extern void gpusort_run_file_begin(GsRunFile *file, bool freeze);
extern void gpusort_run_file_put(GsRunFile *file, const Datum *values,
								 const bool *isnull);
extern void gpusort_run_file_put_dense(GsRunFile *file, const char *row,
									   Size bytes);

/*
 * The same for a stored or packed row, whose values of variable length begin at 'start', which is
 * fixed_bytes or packed_bytes.  'bitmap' is as in gpusort_row_format_read().
 */
extern void gpusort_run_file_put_row(GsRunFile *file, char *row, const uint8 *bitmap,
									 Size start);
extern GsSortedRun *gpusort_run_file_end(GsRunFile *file);

/* Reads the blocks of a run. */
typedef struct GsRunReader
{
	GsSortedRun *run;
	char	   *window;			/* what was read at once */
	Size		room;			/* bytes that can be */
	GsExtent	first;			/* where it begins in the file */
	Size		bytes;			/* that were read */
} GsRunReader;

/*
 * Prepare to read a run into 'window', which has 'bytes' bytes.  If it is NULL, or too small for a
 * block, allocates memory in the current context.
 */
extern GsRunReader gpusort_run_reader_create(GsSortedRun *run, char *window, Size bytes);

/*
 * Returns the next block, which must exist.  It is valid until the next call.  Checks for
 * interrupts.
 */
extern GsRunBlock *gpusort_run_reader_next(GsRunReader *reader);

/*
 * Expand a dense row to a packed row in the buffer, whose address is returned, and set
 * *bytes to the size of the dense row.
 */
extern char *gpusort_dense_row_expand(const GsRowFormat *format, const char *dense,
									  GsRowBuffer *buffer, Size *bytes);

/* The same, inline for the most common rows: a few words without NULLs. */
static inline char *
gpusort_dense_row_expand_fast(const GsRowFormat *format, const char *dense,
							  GsRowBuffer *buffer, Size *bytes)
{
	if (unlikely(!format->only_words || format->null_bytes != 1 ||
				 dense[0] != 0 || buffer->row == NULL))
		return gpusort_dense_row_expand(format, dense, buffer, bytes);
	for (int i = 0; i < format->ncolumns; i++)
		memcpy(buffer->row + i * sizeof(Datum),
			   dense + 1 + i * sizeof(Datum), sizeof(Datum));
	buffer->row[format->columns_bytes] = 0;
	*bytes = 1 + format->columns_bytes;
	return buffer->row;
}

/* Free a run.  The extents of blocks that were read once are free already. */
extern void gpusort_sorted_run_free(GsSortedRun *run);

/* ---- A cursor that moves over a frozen run in both directions ---- */

typedef struct GsRunCursor GsRunCursor;

/* Open a cursor in the current memory context. */
extern GsRunCursor *gpusort_run_cursor_create(const GsRowFormat *format, GsSortedRun *run);

/*
 * Returns the row at a position, counted from 0, in the packed form.  It is valid until the next
 * call.
 */
extern char *gpusort_run_cursor_get(GsRunCursor *cursor, int64 position);

#endif							/* GPUSORT_SORTED_RUN_H */
