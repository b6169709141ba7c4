/*-------------------------------------------------------------------------
 *
 * btree.h
 *		Builds btree indexes, and validates those that concurrent statements have built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_H
#define GPUSORT_BTREE_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

/*
 * Build an empty btree index, as an access method's ambuild does.  Returns
 * NULL, with nothing written, if the build is left to PostgreSQL.  In that
 * case an error is raised if pg_gpusort.debug_require is set.
 */
extern IndexBuildResult *gpusort_btree_build(Relation heap, Relation index,
											 IndexInfo *info);

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
