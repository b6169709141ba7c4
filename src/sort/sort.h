/*-------------------------------------------------------------------------
 *
 * sort.h
 *		The facade of a sort: takes rows and returns them in order.
 *
 * The caller describes the sort in a GsSortSpec: the rows, their sort keys, and the memory
 * that may be used.  gpusort_sort_plan_keys() plans the encoding of the keys, or tells why they
 * cannot be encoded.  gpusort_sort_begin() then begins the sort.
 *
 * The caller adds each row by gpusort_sort_add(), and calls gpusort_sort_finish() after the last
 * one.  Other processes can take part if this is arranged before the first row (producer.h): they
 * add rows to the GPU session of the sort, or, if there is none, to sorts of their own, which
 * share memory and files with it.
 *
 * The sort is then a cursor before the first row.  gpusort_sort_next() moves it and returns a
 * row; it can be marked, restored and rewound.  The report and the number of rows are known
 * from this time on.
 *
 * If a GPU is lost together with the rows, add() or finish() return false, or the cursor ends
 * early.  Then gpusort_sort_is_lost(), and the caller reads its input from its start, calls
 * gpusort_sort_restart(), and adds all rows again.  They are then sorted without a GPU, so this
 * happens at most once.  If the input cannot be read again, or rows have been returned and this
 * is no index build, which can discard them, the sort raises an error instead.
 *
 * A sort with spec->team, in another process than the leader, is not a cursor.  Its rows are
 * returned by the leader's sort.  But with spec->group_keys, the sort of each process is a cursor:
 * it takes ranges of the rows of all processes, until none is left, and returns them in order.  It
 * cannot move back.
 *
 * gpusort_sort_end() ends the sort at any time.  So does the end of the
 * memory context in which it was begun, after an error too.
 *
 * Where the rows are is decided and changed below the facade (sort_private.h):
 * in the backend's memory, on a GPU, or on disk.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_H
#define GPUSORT_SORT_H

#include "executor/tuptable.h"

#include "service/service_client.h"
#include "sort/base/progress.h"
#include "sort/base/rows_in_place.h"
#include "sort/base/sort_spec.h"
#include "sort/base/sort_stats.h"

typedef struct GsSort GsSort;

/*
 * Set spec->key_plan to a plan of the sort's keys.  Returns GS_REASON_NONE, or why the keys are not
 * encoded: see gpusort_key_plan_create().  Also sets spec->check.
 */
extern GsReason gpusort_sort_plan_keys(GsSortSpec *spec);

/*
 * Begin a sort, with a memory context of its own below the current one.  The
 * spec and what it points to must stay valid.
 */
extern GsSort *gpusort_sort_begin(const GsSortSpec *spec);

/*
 * In each process that adds rows, before its first one: take part in that.  Returns false
 * if the other processes have read all of the input already.  A sort with
 * spec->group_keys is counted, unless it is nested, from then on.
 */
extern bool gpusort_sort_attach(GsSort *sort);

/*
 * Make a pair of two sorts with spec->group_keys, which have the same sort keys: each process takes
 * the same ranges of both, so it returns all rows of both that agree in the first keys, or none of
 * them.  This is done in each process, in the leader before others start, and before
 * gpusort_sort_attach() of the first sort, which attaches both.  The rows of both are added before
 * gpusort_sort_finish() of the first, and that of the second follows.
 */
extern void gpusort_sort_pair(GsSort *first, GsSort *second);

/* Add a row.  Returns false if rows are lost. */
extern bool gpusort_sort_add(GsSort *sort, TupleTableSlot *slot);

/* Returns the progress of a sort, also of one with spec->unseen. */
extern const GsProgress *gpusort_sort_progress(const GsSort *sort);

/* Rows of other processes are lost, for that reason: end what these do together. */
extern void gpusort_sort_fail(GsSort *sort, GsReason reason);

/*
 * No more rows are wanted, so other processes need not sort further ones.  If more are
 * read nevertheless, this process sorts them.
 */
extern void gpusort_sort_stop(GsSort *sort);

/*
 * All rows have been added: sort them, unless that has been done.  The cursor is then before the
 * first row.  Returns false if rows are lost and can be added again, and in a worker if rows of
 * any process are lost.
 */
extern bool gpusort_sort_finish(GsSort *sort);

/*
 * After rows were lost, when the caller has rewound its input, which has ended the processes
 * that added rows of it: begin again, without rows and without a GPU.
 */
extern bool gpusort_sort_is_lost(const GsSort *sort);
extern void gpusort_sort_restart(GsSort *sort);

/*
 * After sorting: the number of rows, and whether rows beyond spec->bound have been
 * dropped, so that these are not all rows of the input.
 */
extern int64 gpusort_sort_count(const GsSort *sort);
extern bool gpusort_sort_is_cut(const GsSort *sort);

/*
 * Move to the next or previous row and store it in 'slot', a virtual slot of the
 * rows' type.  Values that are passed by reference are valid until the next call.
 * If there is no such row, clears the slot and returns false.
 */
extern bool gpusort_sort_next(GsSort *sort, bool forward,
							  TupleTableSlot *slot);

/*
 * The same, forward, of a sort with spec->partition_keys, but skips the rows of a partition after
 * its first spec->partition_rows ones.
 */
extern bool gpusort_sort_next_of_partition(GsSort *sort, TupleTableSlot *slot);

/*
 * Sets *rows to some of the rows after the cursor, where they are in memory.  They are valid
 * until gpusort_sort_next() is called.  gpusort_sort_skip() moves the cursor beyond 'n' of
 * them.  Returns false if gpusort_sort_next() has to be asked for the next row.
 */
extern bool gpusort_sort_in_place(GsSort *sort, GsRowsInPlace *rows);
extern void gpusort_sort_skip(GsSort *sort, uint32 n);

/*
 * From now on such rows may be read for longer, if they are 'lasting': until recall(), which
 * gpusort_sort_next() calls, has returned for a later position, or until the sort ends.
 */
extern void gpusort_sort_lend(GsSort *sort, GsRecallRows recall, void *arg);

/*
 * In an index build, for each row in place before the cursor is moved beyond it: is the row in
 * order, as far as that is checked?
 */
extern bool gpusort_sort_check_in_place(GsSort *sort, const Datum *values,
										const bool *isnull);

/*
 * In an index build, after that or gpusort_sort_next() has returned false: returns NULL, or if
 * a row is not in order, a text that describes the encoding of the keys.  Then the caller ends
 * the sort.
 */
extern const char *gpusort_sort_wrong_encoding(const GsSort *sort);

/*
 * Mark the position of the cursor, return to the mark, and return to before the
 * first row.  Without spec->random_access this is allowed only if
 * gpusort_sort_can_rewind().
 */
extern bool gpusort_sort_can_rewind(const GsSort *sort);
extern void gpusort_sort_mark(GsSort *sort);
extern void gpusort_sort_restore(GsSort *sort);
extern void gpusort_sort_rescan(GsSort *sort);

/* After sorting: how it was done. */
extern void gpusort_sort_report(GsSort *sort,
								GsSortReport *report);

/*
 * Likewise, count a nested sort in the statistics.  Several of them can be parts of what is one
 * sort to the user: 'first' says whether to count another sort, or only its rows, bytes and times.
 */
extern void gpusort_sort_count_part(GsSort *sort, bool first);

extern void gpusort_sort_end(GsSort *sort);

/*
 * In the leader of a sort with spec->group_keys, whose rows others may still be reading: give back
 * what only this process uses.  The memory context must end when they have ended.
 */
extern void gpusort_sort_end_reading(GsSort *sort);

#endif							/* GPUSORT_SORT_H */
