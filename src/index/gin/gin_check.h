/*-------------------------------------------------------------------------
 *
 * gin_check.h
 *		Checks by the operator class's comparison that the keys of a GIN index are in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_CHECK_H
#define GPUSORT_GIN_CHECK_H

#include "index/gin/gin_order.h"

typedef struct GsGinCheck GsGinCheck;

/* Create it in the current memory context. */
extern GsGinCheck *gpusort_gin_check_create(GsGinOrder *order);

/*
 * Is a key after the one before?  Keys of a column without an encoding are sorted by the same
 * comparison, and not compared.
 */
extern bool gpusort_gin_check_key(GsGinCheck *check, const GsGinKey *key);

/*
 * If not: distrust the encoding of the key.  Returns a text that describes it, in the current
 * memory context.
 */
extern char *gpusort_gin_check_distrust(const GsGinCheck *check, const GsGinKey *key);

#endif							/* GPUSORT_GIN_CHECK_H */
