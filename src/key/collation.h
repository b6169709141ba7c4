/*-------------------------------------------------------------------------
 *
 * collation.h
 *		What the catalogs say of a collation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLLATION_H
#define GPUSORT_COLLATION_H

typedef struct GsCollation
{
	char		provider;		/* 0 if there is no such collation */
	char	   *locale;			/* the provider's name of it, or NULL */
	bool		has_rules;		/* of its own, in addition to the locale's */
} GsCollation;

/* Accesses the system catalogs. */
extern GsCollation gpusort_collation_find(Oid oid);

/* Does it compare strings byte by byte? */
extern bool gpusort_collation_compares_bytes(const GsCollation *collation);

/* Does it compare strings by strcoll(), which ends at the first zero byte? */
extern bool gpusort_collation_ends_at_zero(const GsCollation *collation);

#endif							/* GPUSORT_COLLATION_H */
