/*-------------------------------------------------------------------------
 *
 * row_copy.h
 *		Keeps a copy of the rows that a GPU has, in the order of arrival.
 *
 * If the input of a sort cannot be read a second time, rows that are lost with a GPU
 * are taken from such a copy.  It is in memory as long as it fits into the memory
 * allowed, and the rows that follow go to a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_COPY_H
#define GPUSORT_ROW_COPY_H

#include "sort/base/sort_spec.h"
#include "sort/disk/shared_run.h"

typedef struct GsRowCopy GsRowCopy;

/* The copy of a process, as its leader needs to know it.  Contains no pointers. */
typedef struct GsSharedCopy
{
	int			producer;
	uint32		extents;		/* length of its file; 0 without rows */
} GsSharedCopy;

/*
 * May rows of a sort be copied, with some of them in memory unless it is 'shared'?  Not if
 * they are expected to need a larger file than temp_file_limit allows.
 */
extern bool gpusort_row_copy_allowed(const GsSortSpec *spec, bool shared);

/*
 * Create an empty copy in the current memory context.  It is removed with that context,
 * also after an error.  'spec' and what it points to must stay valid.  If 'target' is not
 * NULL, all rows go to that file, which the leader can read after the end of this process.
 */
extern GsRowCopy *gpusort_row_copy_create(const GsSortSpec *spec,
										  const GsRunTarget *target);

/*
 * Add 'nrows' packed rows that follow each other, of 'bytes' bytes together; or the row
 * with these values.  Checks for interrupts.
 */
extern void gpusort_row_copy_add(GsRowCopy *copy, const char *rows, Size bytes,
								 uint32 nrows);
extern void gpusort_row_copy_add_row(GsRowCopy *copy, const Datum *values,
									 const bool *isnull);

/*
 * With a target, after gpusort_row_copy_add(): set the number of these rows.  The leader
 * takes the rows of all processes in the order of the numbers, and rows without one last.
 */
extern void gpusort_row_copy_set_number(GsRowCopy *copy, uint64 number);

/*
 * With a target, after the last row: tell what the leader needs to know.  The leader adds
 * this to a copy of its own, which has no other rows.
 */
extern void gpusort_row_copy_share(GsRowCopy *copy, GsSharedCopy *shared);
extern void gpusort_row_copy_import(GsRowCopy *copy, GsRunSetHandle set,
									const GsSharedCopy *shared);

/* Forget the rows, because they have gone elsewhere.  Others can be added. */
extern void gpusort_row_copy_clear(GsRowCopy *copy);

/*
 * After all rows have been added: take them out one by one, in the order in which they
 * were added, until false is returned.  Values that are passed by reference are valid until
 * the next call.  Memory is freed on the way.
 */
extern bool gpusort_row_copy_take(GsRowCopy *copy, Datum *values, bool *isnull);

/*
 * Move what is in memory to the file, except for the rows around the one taken last,
 * because the memory is needed for something else.
 */
extern void gpusort_row_copy_leave_memory(GsRowCopy *copy);

/* The bytes of memory, and the kB on disk, that the copy takes. */
extern Size gpusort_row_copy_memory(const GsRowCopy *copy);
extern int64 gpusort_row_copy_file_kb(const GsRowCopy *copy);

extern void gpusort_row_copy_end(GsRowCopy *copy);

#endif							/* GPUSORT_ROW_COPY_H */
