/*-------------------------------------------------------------------------
 *
 * order_check.h
 *		Checks by PostgreSQL's comparators that sorted rows are in order.
 *
 * Encoded keys, and what merges rows by them, are our own code.  So while the rows of a sort
 * are returned, some of them are compared with the row before by the comparators of the sort
 * operators, which a stock sort calls.  How many depends on pg_gpusort.verify and on what
 * comparisons cost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDER_CHECK_H
#define GPUSORT_ORDER_CHECK_H

#include "access/tupdesc.h"
#include "utils/sortsupport.h"

#include "key/key_plan.h"

/* The comparators of sort keys.  Sorts by the same keys can share it. */
typedef struct GsOrderCheck GsOrderCheck;

/*
 * Create it in the current memory context.  The comparators are prepared when a check begins,
 * which may raise errors that belong to the execution of a query.  'keys' must stay valid.
 */
extern GsOrderCheck *gpusort_order_check_create(const GsSortKeys *keys);

/*
 * The check of one sort, as far as it has come.  The struct is public because
 * gpusort_checked_rows_add(), which is called for each row, is inline.
 */
typedef struct GsCheckedRows
{
	GsOrderCheck *check;		/* NULL if no rows are compared */
	TupleDesc	tupdesc;
	MemoryContext context;
	uint32		period;			/* one row of this many is compared, on
								 * average */
	bool		lasting;		/* do values stay where they are? */

	/* Every row's first key is compared, if that takes a few instructions. */
	GsEncodingKind shared;		/* GS_ENCODE_INT32 or INT64, or NONE */
	SortSupport ssup;			/* of the first key */
	int			column;			/* of the first key, from 0 */
	Datum		reverse;		/* all bits if the key is descending, or 0 */
	bool		has_first;		/* is this the first key of the row before? */
	bool		first_isnull;	/* true if there is none */
	Datum		first;

	/* All keys of some rows are compared with those of the row before. */
	bool		all_keys;		/* is that necessary? */
	uint32		wait;			/* rows until the next one that is kept */
	bool		kept;			/* are these the keys of the row before? */
	Datum	   *values;			/* of its sort keys, and of those of the row
								 * after it */
	bool	   *isnull;
	char	   *copies;			/* what 'values' point to, unless lasting */
	Size		copies_size;
	int			wrong_key;		/* the sort key by which rows are not in order */
} GsCheckedRows;

/*
 * Begin to check the rows of a sort, whose type is 'tupdesc'.  If rows are 'whole', each look
 * at their sort keys costs too much.  If 'lasting', values passed by reference stay valid.
 * What the check allocates is in the current memory context.
 */
extern void gpusort_checked_rows_begin(GsCheckedRows *rows, GsOrderCheck *check,
									   TupleDesc tupdesc, bool whole, bool lasting);

/* The next row is not the one after the last one. */
static inline void
gpusort_checked_rows_forget(GsCheckedRows *rows)
{
	rows->has_first = false;
	rows->first_isnull = true;
	rows->kept = false;
}

/* gpusort_checked_rows_first() of NULLs, and of keys that may not be in order. */
extern bool gpusort_checked_rows_compare_first(GsCheckedRows *rows, const Datum *values,
											   const bool *isnull);

/*
 * Returns whether the first key of a row is in order, if it is compared in each row.  Otherwise
 * returns true.  For speed, this does itself what the comparators of signed integers do.
 */
static pg_attribute_always_inline bool
gpusort_checked_rows_first(GsCheckedRows *rows, const Datum *values, const bool *isnull)
{
	Datum		value;
	Datum		a;
	Datum		b;

	if (rows->shared == GS_ENCODE_NONE)
		return true;
	value = values[rows->column];
	a = rows->first ^ rows->reverse;
	b = value ^ rows->reverse;
	if (unlikely(isnull[rows->column] || rows->first_isnull))
		return gpusort_checked_rows_compare_first(rows, values, isnull);
	if (unlikely(rows->shared == GS_ENCODE_INT64 ? DatumGetInt64(a) > DatumGetInt64(b) :
				 DatumGetInt32(a) > DatumGetInt32(b)))
		return gpusort_checked_rows_compare_first(rows, values, isnull);
	rows->first = value;
	return true;
}

/* Is all that is compared of each row its first key? */
static inline bool
gpusort_checked_rows_skip(GsCheckedRows *rows)
{
	if (!rows->all_keys)
		return true;
	if (likely(rows->wait > 0))
	{
		rows->wait--;
		return true;
	}
	return false;
}

/*
 * Compare all keys of a row with those of the row before, or keep them for the row after it.
 * Returns false if they are not in order.
 */
extern bool gpusort_checked_rows_compare(GsCheckedRows *rows, const Datum *values,
										 const bool *isnull);

/* Is nothing compared of the next row?  Then it has been passed over. */
static inline bool
gpusort_checked_rows_passes(GsCheckedRows *rows)
{
	if (rows->shared != GS_ENCODE_NONE || rows->wait == 0)
		return false;
	rows->wait--;
	return true;
}

/* Check the next row.  Returns false if it is not in order. */
static inline bool
gpusort_checked_rows_add(GsCheckedRows *rows, const Datum *values, const bool *isnull)
{
	return likely(gpusort_checked_rows_first(rows, values, isnull)) &&
		(gpusort_checked_rows_skip(rows) ||
		 gpusort_checked_rows_compare(rows, values, isnull));
}

/* Have the row at a distance compared with the one before it, 1 being the next row. */
extern void gpusort_checked_rows_aim(GsCheckedRows *rows, int64 distance);

/*
 * After a row that is not in order: distrust the encoding to which this is due.  Returns a text
 * that describes it, in the current memory context.
 */
extern char *gpusort_checked_rows_distrust(GsCheckedRows *rows);

#endif							/* GPUSORT_ORDER_CHECK_H */
