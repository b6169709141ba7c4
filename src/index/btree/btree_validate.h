/*-------------------------------------------------------------------------
 *
 * btree_validate.h
 *		Validates a btree that a concurrent statement has built: finds the rows
 *		that are missing in it, and inserts them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_VALIDATE_H
#define GPUSORT_BTREE_VALIDATE_H

#include "access/genam.h"
#include "utils/relcache.h"

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

#endif							/* GPUSORT_BTREE_VALIDATE_H */
