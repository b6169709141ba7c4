/*-------------------------------------------------------------------------
 *
 * gpusort_private.h
 *		Makes and reads custom_private of the plan nodes of sorts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_PRIVATE_H
#define GPUSORT_GPUSORT_PRIVATE_H

#include "nodes/plannodes.h"

#include "sort/base/sort_spec.h"

/* What the plan node of a sort has besides the sort itself. */
typedef struct GsSortTraits
{
	bool		repeatable;		/* can its input be read a second time? */
	bool		ties;			/* would a GPU leave most of its rows as ties? */
	int			enough;			/* see GsSortKeys */
	bool		short_values;	/* likewise */
	int			string_words;	/* likewise */
	int			presorted;		/* by how many of its sort keys, the first
								 * ones, its input is sorted already: 0 unless
								 * it was made from an IncrementalSort */
	int			divided;		/* by how many, likewise, it is divided below
								 * a Gather: each process returns all rows
								 * that agree in these keys, or none of them.
								 * 0 if each process sorts its own input */
	bool		paired;			/* is it divided like the other sort below a
								 * Merge Join? */
	int			partition_keys; /* see GsSortSpec */
	int			partition_rows;
} GsSortTraits;

/*
 * Make custom_private of a node that sorts as 'sort' does, which may be an IncrementalSort.  That
 * says what is presorted.
 */
extern List *gpusort_private_make(const Sort *sort, GsSortTraits traits);

/* Read what it says. */
extern GsSortTraits gpusort_private_traits(const CustomScan *node);

/*
 * Returns the sort keys of a Sort, or of a node that was made from one.  They point into
 * the node.
 */
extern GsSortKeys gpusort_private_keys_of_sort(const Sort *sort);
extern GsSortKeys gpusort_private_keys(const CustomScan *gpusort);

/*
 * Are the first sort keys these columns, in any order?  The equality operators and collations are
 * those by which a node above the sort compares rows.
 */
extern bool gpusort_private_keys_begin_with(const GsSortKeys *keys, int ncolumns,
											const AttrNumber *attnos, const Oid *equalities,
											const Oid *collations);

#endif							/* GPUSORT_GPUSORT_PRIVATE_H */
