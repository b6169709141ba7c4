/*-------------------------------------------------------------------------
 *
 * catalog_changes.h
 *		Notices changes of the catalogs that encodings are based on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CATALOG_CHANGES_H
#define GPUSORT_CATALOG_CHANGES_H

/*
 * Returns the number of changes that this backend has noticed since its first
 * call.  Read it before making a key plan, or anything else from these
 * catalogs.  When the number has changed since then, the plan must not be used
 * for another sort.
 */
extern uint64 gpusort_catalog_changes(void);

#endif							/* GPUSORT_CATALOG_CHANGES_H */
