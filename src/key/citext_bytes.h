/*-------------------------------------------------------------------------
 *
 * citext_bytes.h
 *		The bytes by which values of PostgreSQL's contrib module citext are compared.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CITEXT_BYTES_H
#define GPUSORT_CITEXT_BYTES_H

#include "key/string_bytes.h"

/* Get the bytes of a value in lower case, as a copy in the current memory context. */
extern GsBytes gpusort_citext_bytes(Datum value);

#endif							/* GPUSORT_CITEXT_BYTES_H */
