/*-------------------------------------------------------------------------
 *
 * sort_session.h
 *		The facade of a sort: rows go in, and come out in order.
 *
 * The caller describes the sort in a GsSessionSpec: the rows, their sort keys,
 * the input that they are read from, and the memory that may be used.
 * gpusort_session_key_plan() plans the encoding of the keys, or tells why they
 * cannot be encoded.  gpusort_session_begin() then begins a session.
 *
 * gpusort_session_sort() reads the input and sorts all of its rows.  Other
 * processes can take part if this is arranged before that call: they add rows to
 * the session on a GPU whose handle gpusort_session_gpu_handle() returns, or, if
 * there is none, they sort rows of their own and write them to the files of
 * gpusort_session_run_set().  In the latter case the callback that reads the input
 * can add this process's rows itself, by gpusort_session_put() for each row and
 * gpusort_session_sort_put() after the last one, and return no row.
 *
 * The session is then a cursor before the first row.  gpusort_session_next()
 * moves it and returns a row; it can be marked, restored and rewound.  The report
 * and the number of rows are known from this time on.  If a GPU is lost together
 * with the rows, the session reads the input again and continues where it was, or
 * raises an error if the rows could come in another order.  Only for an index
 * build, whose rows may do so, the cursor ends early instead: it has to ask
 * gpusort_session_is_lost() after the last row, and then starts over with
 * gpusort_session_sort_again().
 *
 * A session with spec->target is not a cursor.  It writes the sorted rows to the
 * target, and gpusort_session_shared_run() tells the leader where they are.
 *
 * gpusort_session_end() ends a session at any time.  So does the end of the
 * memory context in which it was begun, after an error too.
 *
 * Where the rows are is decided and changed below the facade (input_sort.h):
 * in the backend's memory, on a GPU, or on disk.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SESSION_H
#define GPUSORT_SORT_SESSION_H

#include "executor/tuptable.h"

#include "service/service_client.h"
#include "sort/base/session_report.h"
#include "sort/base/session_spec.h"
#include "sort/disk/shared_run.h"

typedef struct GsSortSession GsSortSession;

/*
 * Plan the keys of a sort, for a GPU if one will be tried, or else for the CPU.
 * Returns NULL and sets *reason if the keys cannot be encoded, see
 * gpusort_key_plan_create().
 */
extern GsKeyPlan *gpusort_session_key_plan(const GsSessionSpec *spec,
										   GsFallback *reason);

/*
 * Begin a session, with a memory context of its own below the current one.  The
 * spec and what it points to must stay valid.
 */
extern GsSortSession *gpusort_session_begin(const GsSessionSpec *spec);

/*
 * Get the handle of the session on a GPU, so that other processes can add rows of
 * the input to it.  Returns false if there is none.  'in_order' says whether the
 * rows arrive in the order of the input, which pg_gpusort.debug_stock_ties
 * requires.
 */
extern bool gpusort_session_gpu_handle(GsSortSession *session, bool in_order,
									   GsClientHandle *handle);

/*
 * Without a GPU: get the handle of a set of files to which 'nprocesses' other
 * processes can write rows of the input as sorted runs.  The session asks
 * spec->input.run for these runs later.  Returns false if the processes must not
 * do that.  'in_order' is as above, and means that a single process has all rows.
 */
extern bool gpusort_session_run_set(GsSortSession *session, int nprocesses,
									bool in_order, GsRunSetHandle *handle);

/*
 * With a run set, to be called while the input is being read: add a row, and sort
 * the rows that were added after the last one.
 */
extern void gpusort_session_put(GsSortSession *session, TupleTableSlot *slot);
extern void gpusort_session_sort_put(GsSortSession *session);

/*
 * Read the input and sort it.  The cursor is then before the first row.  Must be
 * called in the memory context in which the session was begun, because the input
 * is read in that context if it has to be read again.
 */
extern void gpusort_session_sort(GsSortSession *session);

/*
 * After sorting: the number of rows, and whether rows beyond spec->bound have been
 * dropped, so that these are not all rows of the input.
 */
extern int64 gpusort_session_count(const GsSortSession *session);
extern bool gpusort_session_is_cut(const GsSortSession *session);

/*
 * Move to the next or previous row and store it in 'slot', a virtual slot of the
 * rows' type.  Values that are passed by reference are valid until the next call.
 * If there is no such row, clears the slot and returns false.
 */
extern bool gpusort_session_next(GsSortSession *session, bool forward,
								 TupleTableSlot *slot);

/*
 * In an index build, after gpusort_session_next() returned false: were the
 * remaining rows lost with a GPU?  If so, the input can be read and sorted again
 * without a GPU, and the cursor is then before the first row.
 */
extern bool gpusort_session_is_lost(const GsSortSession *session);
extern void gpusort_session_sort_again(GsSortSession *session);

/*
 * Mark the position of the cursor, return to the mark, and return to before the
 * first row.  Without spec->random_access this is allowed only if
 * gpusort_session_can_rewind().
 */
extern bool gpusort_session_can_rewind(const GsSortSession *session);
extern void gpusort_session_mark(GsSortSession *session);
extern void gpusort_session_restore(GsSortSession *session);
extern void gpusort_session_rescan(GsSortSession *session);

/* After sorting: how it was done. */
extern void gpusort_session_report(GsSortSession *session,
								   GsSessionReport *report);

/* With spec->target, after sorting: the run that was written. */
extern const GsSharedRun *gpusort_session_shared_run(const GsSortSession *session);

extern void gpusort_session_end(GsSortSession *session);

#endif							/* GPUSORT_SORT_SESSION_H */
