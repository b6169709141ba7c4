/*-------------------------------------------------------------------------
 *
 * pathkey_encoding.h
 *		How sort keys that the planner considers would be encoded.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATHKEY_ENCODING_H
#define GPUSORT_PATHKEY_ENCODING_H

#include "nodes/pathnodes.h"

#include "key/key_plan.h"

/*
 * Get the shape of the encoded keys of a sort by 'pathkeys', whose rows come from
 * the relations 'relids'.  Returns false if the sort would not be taken over, or
 * if a key has a collation whose comparisons cost as much as in a stock sort.
 */
extern bool gpusort_pathkey_encoding_find(List *pathkeys, Relids relids,
										  GsKeyShape *shape);

/*
 * Call begin() before a statement is planned, and end() afterwards with what
 * begin() has returned, also after an error.  In between the answers are cached.
 * Such pairs of calls nest, because planning may run queries of its own.
 */
typedef struct GsPathKeyCache
{
	MemoryContext context;		/* lives as long as the cache */
	struct GsPathKeyEncoding *entries;	/* NULL if there are none yet */
} GsPathKeyCache;

extern GsPathKeyCache gpusort_pathkey_encoding_begin(void);
extern void gpusort_pathkey_encoding_end(GsPathKeyCache previous);

#endif							/* GPUSORT_PATHKEY_ENCODING_H */
