/*-------------------------------------------------------------------------
 *
 * distrust.h
 *		The encodings that sorted rows into a wrong order.
 *
 * If a sort finds that its rows are not in order, the encoding of the sort key is noted here.
 * Sorts by it are left to stock PostgreSQL from then on, in all sessions until the server
 * restarts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DISTRUST_H
#define GPUSORT_DISTRUST_H

/* Is the encoding of a sort operator distrusted?  This is cheap if none is. */
extern bool gpusort_distrust_has(Oid operator, Oid collation);

/*
 * Distrust it.  Counts a wrong order, and writes to the server's log if the encoding was
 * trusted before.  Returns a text that describes the encoding to users, in the current memory
 * context.
 */
extern char *gpusort_distrust_add(Oid operator, Oid collation);

/* Does this hold for all sessions, or only for this one? */
extern bool gpusort_distrust_is_shared(void);

/* Returns the number of wrong orders found. */
extern int64 gpusort_distrust_count(void);

/* Returns the texts of all distrusted encodings as one string, or NULL if there are none. */
extern char *gpusort_distrust_texts(void);

/* Called once by _PG_init(). */
extern void gpusort_distrust_init(void);

#endif							/* GPUSORT_DISTRUST_H */
