/*-------------------------------------------------------------------------
 *
 * sort_session.h
 *		The facade of a sort: rows go in, and come out in order.
 *
 * A session reads all rows of its input, sorts them, and then acts as a cursor
 * over the sorted rows that can be moved, marked and rewound at will.  Whether
 * the rows are in its own memory, in a GPU's, or on disk, because they outgrew
 * it, is its own business.
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
 * The key plan of a sort, for a GPU if one is to be tried, or else for the CPU.
 * For *reason see gpusort_key_plan_create().
 */
extern GsKeyPlan *gpusort_session_key_plan(const GsSessionSpec *spec,
										   GsFallback *reason);

/*
 * Begin a session in a memory context of its own below the current one.  What
 * the spec points to must stay.  An error or the end of that context ends the
 * session as gpusort_session_end() does.
 */
extern GsSortSession *gpusort_session_begin(const GsSessionSpec *spec);

/*
 * If the session's rows go to a GPU session to which other processes can add
 * rows before the sort, all of them that the input has: get its handle.  Will
 * they come in the order of the input?  With pg_gpusort.debug_stock_ties they
 * have to.
 */
extern bool gpusort_session_gpu_handle(GsSortSession *session, bool in_order,
									   GsClientHandle *handle);

/*
 * If the session's rows do not go to a GPU: let so many other processes sort
 * rows of the input, and write them as runs to a set of which this is the
 * handle; spec->input.run tells of them.  'in_order' is as above, of rows that
 * go through one process.  Returns false if they are not to do that.
 */
extern bool gpusort_session_run_set(GsSortSession *session, int nprocesses,
									bool in_order, GsRunSetHandle *handle);

/*
 * In such a session: add a row of the input while the input is read, and after
 * the last one sort those that were added.
 */
extern void gpusort_session_put(GsSortSession *session, TupleTableSlot *slot);
extern void gpusort_session_sort_put(GsSortSession *session);

/*
 * Read the input, sort it, and stand before the first row.  To be called in
 * the context in which the session was begun, which is the one in which the
 * input is read, then and if it has to be read again.  With spec->target, the
 * rows are written there instead, and gpusort_session_shared_run() tells where.
 */
extern void gpusort_session_sort(GsSortSession *session);

/*
 * After that: the number of rows; with spec->bound, are these only the first ones
 * that it asks for?
 */
extern int64 gpusort_session_count(const GsSortSession *session);
extern bool gpusort_session_is_cut(const GsSortSession *session);

/*
 * Move to the next or previous row and put it into 'slot', a virtual slot of
 * the rows' type; what is passed by reference is valid until the next call.
 * At the end of the rows, clear the slot and return false.
 */
extern bool gpusort_session_next(GsSortSession *session, bool forward,
								 TupleTableSlot *slot);

/*
 * In an index build, after gpusort_session_next() returned false: is that because
 * the rest of the rows was lost with a GPU?  Then the input can be read and sorted
 * again, without a GPU, in the same context as the first time; the cursor stands
 * before the first row.
 */
extern bool gpusort_session_is_lost(const GsSortSession *session);
extern void gpusort_session_sort_again(GsSortSession *session);

/*
 * Remember the position, return to it, return to before the first row.  A
 * session begun without random_access allows them while
 * gpusort_session_can_rewind().
 */
extern bool gpusort_session_can_rewind(const GsSortSession *session);
extern void gpusort_session_mark(GsSortSession *session);
extern void gpusort_session_restore(GsSortSession *session);
extern void gpusort_session_rescan(GsSortSession *session);

/* After gpusort_session_sort(). */
extern void gpusort_session_report(GsSortSession *session,
								   GsSessionReport *report);

/* With spec->target: the run that gpusort_session_sort() has written. */
extern const GsSharedRun *gpusort_session_shared_run(const GsSortSession *session);

extern void gpusort_session_end(GsSortSession *session);

#endif							/* GPUSORT_SORT_SESSION_H */
