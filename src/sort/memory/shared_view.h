/*-------------------------------------------------------------------------
 *
 * shared_view.h
 *		All rows of a shared sort, as each of its processes sees them, and the ranges into
 *		which they are divided.
 *
 * A view consists of a key sort and a row store whose chunks are those of all processes,
 * one process after the other.  In it every row has a number, by which any process finds
 * its key and its columns.  So all that sorts the rows of one process sorts those of all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_VIEW_H
#define GPUSORT_SHARED_VIEW_H

#include "sort/memory/memory_sort.h"
#include "sort/memory/shared_ranges.h"

/* What one process has added, and where it has placed it. */
typedef struct GsShare
{
	GsSharedKeys keys;
	GsSharedRows rows;

	GsKeyBits	bits;			/* of the keys */

	/*
	 * Entries of the rows in the order of arrival, first those without a NULL
	 * key; NULL if none has one.
	 */
	uint64	   *arrived;

	/*
	 * Entries by range: those of range r are from starts[r] to starts[r + 1].
	 * Their keys are in the same order, or NULL.
	 */
	uint64	   *placed;
	uint64	   *placed_keys;
	uint32	   *starts;
} GsShare;

/* Rows with a NULL key, or those without. */
typedef struct GsRowClass GsRowClass;

/* In the memory of one process. */
typedef struct GsSharedView
{
	const GsSortSpec *spec;
	GsShare    *shares;			/* of all processes */
	int			nshares;
	unsigned	chunk_shift;

	GsKeySort  *key_sort;
	GsRowStore *store;
	bool		has_nulls;		/* is any column of any row NULL? */
	uint32	   *first_rows;		/* the number of each process's first row */
	GsKeyWindow window;			/* the highest bits in which any keys differ */
	bool		complete;		/* are all such bits in the window? */
	bool		exact;			/* are there no ties to break? */
	uint64		nrows;
	GsRowClass *classes;		/* in sorted order */
	int			nranges;
	double		longest;		/* rows of the longest range, about */
	bool		has_long_range; /* is that long because a group of rows must
								 * be in one range? */
	bool		places_keys;	/* along with the entries? */
} GsSharedView;

/*
 * Let the other processes access the rows of this one.  Returns false if there is no memory
 * for sorting them, or if others would not understand their keys.
 */
extern bool gpusort_share_publish(GsShare *share, const GsSortSpec *spec,
								  GsMemorySort *rows);

/* Are there row numbers for all rows? */
extern bool gpusort_shares_have_numbers(const GsShare *shares, int nshares,
										unsigned chunk_shift);

/*
 * After all processes have published: create a view in the current memory context, and divide
 * the rows into ranges, by splitters from a sample.  'others' are the shares of a sort with which
 * this one will be united, or NULL.
 */
extern GsSharedView *gpusort_shared_view_create(GsShare *shares, int nshares,
												unsigned chunk_shift,
												const GsSortSpec *spec,
												const GsShare *others);

/*
 * Divide the rows of two sorts, whose keys are encoded alike, into the same ranges: between the
 * splitters of both.  So no range has more rows of either than it would have alone.
 */
extern void gpusort_shared_views_unite(GsSharedView *a, GsSharedView *b);

/*
 * Place the rows of a process in ranges, in memory of its budget.  Returns false if there is
 * none.
 */
extern bool gpusort_shared_view_place(const GsSharedView *view, int process,
									  GsBudget *budget);

/* After placing: the number of rows of a range that one process has, or all. */
static inline uint32
gpusort_share_rows(const GsShare *share, int range)
{
	return share->starts == NULL ? 0 :
		share->starts[range + 1] - share->starts[range];
}

extern uint32 gpusort_shares_count(const GsShare *shares, int nshares, int range);

/* Does a range have rows with a NULL key, rather than those without? */
extern bool gpusort_shared_view_has_null_keys(const GsSharedView *view, int range);

/*
 * ---- Dividing rows into ranges before they are sorted: range_splitters.c ----
 *
 * Splitters are rows of a sample.  Range r has the rows that sort before splitter r, and
 * not before splitter r - 1.  No two rows are equal, since row numbers decide in the end.
 * So the ranges have about the same length whatever the keys are, even if all are equal.
 *
 * With spec->group_keys, rows that agree in that number of leading keys count as equal, and are in
 * one range.
 */

typedef struct GsRangeSplitters GsRangeSplitters;

/* How many rows of a sample each range should have. */
#define GPUSORT_SAMPLE_PER_RANGE	24

/*
 * Choose the splitters of 'nranges' ranges, at least 1, in the current memory context.
 * 'sample' has the numbers of 'count' rows, at least nranges, in ascending order; it is
 * overwritten.  'key_sort' and 'store' have the keys and the rows.  The values of 'window'
 * are compared first: it has the most significant bits in which keys differ.
 */
extern GsRangeSplitters *gpusort_range_splitters_create(const GsSortSpec *spec,
														GsKeySort *key_sort,
														const GsRowStore *store,
														const GsKeyWindow *window,
														uint64 *sample,
														uint32 count,
														int nranges);

/*
 * Do nearly all of 'rows' rows have different values of the window, as far as the sample
 * tells?
 */
extern bool gpusort_range_splitters_separate(const GsRangeSplitters *splitters,
											 uint32 rows);

/*
 * Returns about which part of all rows the longest range has.  That is more than others have only
 * if rows of a group are in one range (spec->group_keys).
 */
extern double gpusort_range_splitters_longest(const GsRangeSplitters *splitters);

/* Returns the number of splitters, one less than there are ranges. */
extern int	gpusort_range_splitters_count(const GsRangeSplitters *splitters);

/*
 * Let both have the splitters of both.  They are those of two sorts with spec->group_keys, whose
 * keys are encoded alike, and were made with the same window.
 */
extern void gpusort_range_splitters_unite(GsRangeSplitters *a, GsRangeSplitters *b,
										  const GsKeyPlan *plan);

/* Returns the range of a row with this value of the window, from 0. */
extern int	gpusort_range_splitters_find(GsRangeSplitters *splitters,
										 uint32 value, uint32 row);

#endif							/* GPUSORT_SHARED_VIEW_H */
