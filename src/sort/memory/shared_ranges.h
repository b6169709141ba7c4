/*-------------------------------------------------------------------------
 *
 * shared_ranges.h
 *		Ranges of sorted rows, which several processes make and their leader reads.
 *
 * All processes have divided the rows into the same ranges of the sorted order.  Each takes the
 * next range that nobody has taken, writes its rows in order to shared memory, and takes another
 * one, until there is none.  The leader reads range 0, 1, 2, ...  While the next one is not
 * ready, it makes others.
 *
 * Range r is in slot r modulo the number of slots.  With fewer slots than ranges, a slot is used
 * again when the leader has read its range, and before that nobody takes the next range for it.
 * Then rows can only be read once, and forward.
 *
 * A process that has no memory for the rows of a range leaves the range to the leader, which
 * reads them without a copy.
 *
 * With spec->group_keys, each process reads the ranges that it takes in this way, and there are no
 * slots.  Two such sorts may be divided into the same ranges: then a process takes each range for
 * both of them.
 *
 * No wait is circular: who has taken a range waits for nobody before the range is ready.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_RANGES_H
#define GPUSORT_SHARED_RANGES_H

#include "sort/base/budget.h"
#include "sort/base/row_format.h"
#include "sort/base/rows_in_place.h"
#include "sort/base/sort_spec.h"
#include "sort/memory/row_store.h"

/* Some rows of a range.  Lists of pieces are linked by 'next'. */
typedef struct GsRangePiece
{
	struct GsRangePiece *next;
	Size		bytes;			/* of the memory after this header */
	GsRowsInPlace range;		/* no rows after the last piece in use */
} GsRangePiece;

/* In the memory that the processes share, at the same address in all of them. */
typedef struct GsSharedRanges GsSharedRanges;

/* How often the first keys of some rows occur. */
typedef struct GsKeyCounts
{
	int64		rows;
	int64		groups;			/* different keys that are not NULL */
	int64		most;			/* rows with the most frequent of these keys,
								 * or 0 */
	Datum		mode;			/* the first such key, if keys are passed by
								 * value */
} GsKeyCounts;

/* How a process gets the rows of a range in order. */
typedef struct GsRangeSource
{
	/*
	 * Write the rows to *pieces, a list that may have been used for another
	 * range.  Returns false if there is no memory.
	 */
	bool		(*make) (void *arg, int range, GsRangePiece **pieces);

	/*
	 * In the leader, if that has failed, here or elsewhere, and in a process
	 * that reads ranges of its own: begin to read the rows, and set *rows to
	 * the next ones.  next() returns false after the last ones.
	 */
	void		(*open) (void *arg, int range);
	bool		(*next) (void *arg, GsRowsInPlace *rows);

	/* Returns the number of rows of a range; or NULL if that is not known. */
	int64		(*count) (void *arg, int range);

	/*
	 * If ranges->counts_keys, instead of open(): add the first keys of the
	 * rows to *counts, and read one of the rows, unless there is none.
	 */
	void		(*count_keys) (void *arg, int range, GsKeyCounts *counts,
							   Datum *values, bool *isnull);
} GsRangeSource;

/*
 * What a process knows of the ranges.  The struct is public because get(), which is called for
 * each row, is inline.
 */
typedef struct GsRanges GsRanges;
struct GsRanges
{
	GsSharedRanges *shared;
	const GsSortSpec *spec;
	const GsRangeSource *source;
	void	   *arg;			/* of its functions */
	bool		counts_keys;	/* can keys be counted without reading all
								 * rows?  Set by who has the source */
	MemoryContext context;		/* in which they are called */
	int			nranges;
	int			nslots;
	int64		nrows;			/* of all ranges */

	/* In a process that reads ranges of its own. */
	GsRanges   *first;			/* that takes ranges for both sorts of a pair,
								 * or this one */
	List	   *taken;			/* in the first: the ranges that this process
								 * has taken, integers */

	/* In the leader, which reads them. */
	int64		longest;		/* rows of the longest range, unless it was
								 * left */
	int			nleft;			/* ranges that were left */
	double		wait_ms;		/* for ranges, or to make them */

	/*
	 * In a process that reads rows: some of the range that is read, and the
	 * position of the first one.
	 */
	const GsRowFormat *format;
	int64		start;
	GsRowsInPlace rows;
	int			reading;		/* number of the range, or -1 */
	bool		left;			/* was it left to the leader, or is it one of
								 * this process? */
	int64		own_start;		/* then: the position of its first row */
	int			nown;			/* ranges of this process, so far */
	int			nread;			/* of the ranges taken */
	const GsRangePiece *piece;	/* the next one, or NULL */
	int64	   *starts;			/* positions of the first rows of ranges up to
								 * this one at least; NULL if rows are read
								 * once */
};

/* The most slots that there can be. */
#define GPUSORT_MAX_SLOTS	2050

/* In the leader: prepare in memory of that size, before other processes use it. */
extern Size gpusort_shared_ranges_size(void);
extern GsSharedRanges *gpusort_shared_ranges_init(void *memory);

/*
 * In each process, when the rows are divided into ranges: prepare to make some or to read them, in
 * the current memory context.  An error is raised if processes have come to different ranges.
 */
extern GsRanges *gpusort_ranges_create(GsSharedRanges *shared, const GsSortSpec *spec,
									   const GsRangeSource *source, void *arg,
									   int nranges, int nslots, int64 nrows);

/*
 * Before ranges of its own are read: this process will read the same ones of both, in the same
 * order.
 */
extern void gpusort_ranges_pair(GsRanges *first, GsRanges *second);

/* In a worker: make ranges until none is left, or the leader wants no more. */
extern void gpusort_ranges_make(GsRanges *ranges);

/*
 * In the leader: the other processes need not make further ranges.  If more rows are read
 * nevertheless, the leader makes them.
 */
extern void gpusort_shared_ranges_stop(GsSharedRanges *shared);

/* The wait event of processes that wait for others with which they sort. */
extern uint32 gpusort_shared_wait_event(void);

/* ---- Reading, in the leader ---- */

/* Set ranges->rows to those with a position. */
extern void gpusort_ranges_seek(GsRanges *ranges, int64 position);

/*
 * A position will be read that need not be near others.  If possible, only its range is put into
 * order for that, and not those before it.
 */
extern void gpusort_ranges_jump(GsRanges *ranges, int64 position);

/*
 * Of a process that reads ranges of its own: set ranges->rows to the next ones, whose positions
 * follow those before, and return their number.  Returns 0 if there are no more.
 */
extern int64 gpusort_ranges_advance(GsRanges *ranges);

/*
 * Instead of reading rows, if ranges->counts_keys: add the first keys of the next range to *counts,
 * and read one of its rows, unless there is none.  Returns false if there are no more ranges.
 */
extern bool gpusort_ranges_count_keys(GsRanges *ranges, GsKeyCounts *counts, Datum *values,
									  bool *isnull);

/*
 * Read the row at a position, counted from 0.  Values passed by reference point into the
 * range.
 */
static inline void
gpusort_ranges_get(GsRanges *ranges, int64 position, Datum *values,
				   bool *isnull)
{
	const GsRowFormat *format = ranges->format;
	const GsRowsInPlace *rows = &ranges->rows;
	uint64		within = position - ranges->start;
	const uint8 *bitmap = NULL;
	char	   *row;

	if (unlikely(within >= rows->nrows))
	{
		gpusort_ranges_seek(ranges, position);
		within = position - ranges->start;
	}
	row = rows->addresses != NULL ? rows->addresses[within] :
		rows->first + within * rows->row_bytes;
	if (rows->null_offset > 0)
		bitmap = gpusort_row_format_nulls(format, row);
	else if (rows->nulls != NULL)
		bitmap = rows->nulls + within * format->null_bytes;
	gpusort_row_format_read_fast(format, row, bitmap, values, isnull);
}

/*
 * Sets *rows to rows from a position on, which is not beyond the last one.  They are valid until
 * others are read, and 'lasting' as long as those of a range written to memory.
 */
extern void gpusort_ranges_in_place(GsRanges *ranges, int64 position, GsRowsInPlace *rows);

/* ---- Writing the rows of ranges: sorted_ranges.c ---- */

/* Writes ranges.  Belongs to one process. */
typedef struct GsRangeWriter GsRangeWriter;

/*
 * Create a writer for rows in 'store', in the current memory context.  The ranges are
 * allocated from 'budget', where the memory has been reserved.  'has_nulls' tells whether
 * any row has a NULL.
 */
extern GsRangeWriter *gpusort_range_writer_create(const GsRowStore *store,
												  GsBudget *budget,
												  bool has_nulls);

/*
 * Write the rows of 'count' entries, whose low 32 bits are row numbers, in this order.
 * Returns false if there is no memory.
 */
extern bool gpusort_range_writer_write(GsRangeWriter *writer,
									   const uint64 *entries, uint32 count,
									   GsRowsInPlace *range);

/*
 * Instead, find these rows where they are in the store.  Their addresses are in the current memory
 * context.
 */
extern void gpusort_range_writer_find(GsRangeWriter *writer, const uint64 *entries,
									  uint32 count, GsRowsInPlace *range);

/* ---- Ranges of merged rows: pieces of shared memory, which are used again and again ---- */

/* Writes rows to lists of pieces.  Belongs to one process. */
typedef struct GsPieceWriter
{
	const GsRowFormat *format;
	GsBudget   *budget;
	Size		piece_bytes;
	GsRangePiece **link;		/* to the piece after the current one */
	GsRangePiece *piece;		/* the current one, or NULL */
	char	   *next;			/* its free memory */
	char	   *end;
} GsPieceWriter;

/*
 * Begin to write a list, whose pieces are used, and to which the budget adds others.  Pieces have
 * 'piece_bytes' bytes, or those of one row.
 */
extern void gpusort_piece_writer_begin(GsPieceWriter *writer,
									   const GsRowFormat *format,
									   GsBudget *budget, Size piece_bytes,
									   GsRangePiece **list);

/* Add a packed row.  Returns false if the budget has no memory. */
extern bool gpusort_piece_writer_put(GsPieceWriter *writer, char *row);

/* End the list after the last row, also if there was no memory for one. */
extern void gpusort_piece_writer_end(GsPieceWriter *writer);

#endif							/* GPUSORT_SHARED_RANGES_H */
