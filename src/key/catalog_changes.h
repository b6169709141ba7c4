/*-------------------------------------------------------------------------
 *
 * catalog_changes.h
 *		Notices changes of the catalogs that encodings are made from.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CATALOG_CHANGES_H
#define GPUSORT_CATALOG_CHANGES_H

/*
 * How many changes this backend has noticed since it first asked.  A key plan, or
 * anything else that was made from these catalogs, must not be used for another
 * sort if the number is no longer what it was before it was made.
 */
extern uint64 gpusort_catalog_changes(void);

#endif							/* GPUSORT_CATALOG_CHANGES_H */
