/*-------------------------------------------------------------------------
 *
 * btree.h
 *		Builds btree indexes, and validates those that concurrent statements have built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_H
#define GPUSORT_BTREE_H

#include "index/base/index_build.h"

extern const GsIndexKind gpusort_btree_kind;

/* ---- Validation, which inserts the rows that are missing: btree_validate.c ---- */

/*
 * Do what btbulkdelete() does for validate_index(), which must be the caller: collect the
 * index's TIDs.  If the validation is for us, they are not passed to the callback, and the
 * scan of the table that follows is ours.
 */
extern IndexBulkDeleteResult *gpusort_btree_validate_collect(IndexVacuumInfo *info,
															 IndexBulkDeleteResult *result,
															 IndexBulkDeleteCallback callback,
															 void *callback_arg);

/*
 * Have the TIDs of an index been collected for a scan of the table that has not begun?
 * Nothing may be inserted then: PostgreSQL's scan would insert all rows again.
 */
extern bool gpusort_btree_validate_is_pending(Relation index);

/* After a statement: forget a validation that an error has ended. */
extern void gpusort_btree_validate_reset(void);

#endif							/* GPUSORT_BTREE_H */
