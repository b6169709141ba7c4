/*-------------------------------------------------------------------------
 *
 * locales.h
 *		The locales of the GNU C library by which this process can sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOCALES_H
#define GPUSORT_LOCALES_H

#include "key/locale_weights.h"

/*
 * Returns the weights of a locale, which remain for the life of the process.  Returns
 * NULL if it is none of the GNU C library with rules of its own, or if its tables or
 * weights are not as they should be.
 */
extern const GsLocaleWeights *gpusort_locales_get(const char *name);

#endif							/* GPUSORT_LOCALES_H */
