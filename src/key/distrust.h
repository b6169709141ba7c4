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

#include "key/encoding_kind.h"

#define GPUSORT_LOCALE_BYTES	64

/*
 * What tells encodings apart.  A locale has one encoding, whichever collation or database has
 * it.  OIDs of functions that extensions create belong to a database.
 */
typedef struct GsEncodingName
{
	GsEncodingKind kind;
	Oid			function;		/* the btree comparison function */
	Oid			database;		/* or InvalidOid for a built-in function */
	char		locale[GPUSORT_LOCALE_BYTES];	/* with its provider, or "" */
} GsEncodingName;

/* Is any encoding distrusted?  This is cheap, and nearly always false. */
extern bool gpusort_distrust_any(void);

extern bool gpusort_distrust_has(const GsEncodingName *name);

/*
 * Distrust an encoding, which 'text' describes to users.  Counts a wrong order, and writes to
 * the server's log if the encoding was trusted before.
 */
extern void gpusort_distrust_add(const GsEncodingName *name, const char *text);

/* Does this hold for all sessions, or only for this one? */
extern bool gpusort_distrust_is_shared(void);

/* Returns the number of wrong orders found. */
extern int64 gpusort_distrust_count(void);

/* Returns the texts of all distrusted encodings as one string, or NULL if there are none. */
extern char *gpusort_distrust_texts(void);

/* Called once by _PG_init(). */
extern void gpusort_distrust_init(void);

#endif							/* GPUSORT_DISTRUST_H */
