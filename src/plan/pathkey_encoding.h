/*-------------------------------------------------------------------------
 *
 * pathkey_encoding.h
 *		Determines how sort keys that the planner considers would be encoded.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATHKEY_ENCODING_H
#define GPUSORT_PATHKEY_ENCODING_H

#include "nodes/pathnodes.h"

#include "key/key_plan.h"

/*
 * Get the shape of the encoded keys of a sort by 'pathkeys', whose rows come
 * from the relations 'relids'.  Returns false if the sort would not be taken
 * over.
 */
extern bool gpusort_pathkey_encoding_find(List *pathkeys, Relids relids,
										  GsKeyShape *shape);

/*
 * Call gpusort_pathkey_encoding_begin() before a statement is planned, and
 * gpusort_pathkey_encoding_end() afterwards, also after an error, with what
 * the former returned.  In between the answers are cached.  Such pairs of
 * calls may be nested, because planning may run queries of its own.
 */
typedef struct GsPathKeyCache
{
	MemoryContext context;		/* must live as long as the cache */
	struct GsPathKeyEncoding *entries;	/* NULL if there are none yet */
} GsPathKeyCache;

extern GsPathKeyCache gpusort_pathkey_encoding_begin(void);
extern void gpusort_pathkey_encoding_end(GsPathKeyCache previous);

#endif							/* GPUSORT_PATHKEY_ENCODING_H */
