/*-------------------------------------------------------------------------
 *
 * gpusort_private.c
 *		Makes and reads custom_private of the plan nodes of sorts.
 *
 * It holds the Sort without its children.  The Sort has everything that is
 * needed, and can be copied and sent to parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/value.h"

#include "exec/gpusort_private.h"

/* The list elements of custom_private, by index. */
enum
{
	GS_PRIVATE_SORT,			/* the Sort, without children */
	GS_PRIVATE_REPEATABLE,		/* can its input be read again? as an Integer */
	GS_PRIVATE_TIES,			/* would a GPU leave most rows as ties? as an
								 * Integer */
	GS_PRIVATE_PRESORTED,		/* number of presorted keys, as an Integer */
	GS_PRIVATE_DIVIDED,			/* number of keys by which it is divided, as
								 * an Integer */
	GS_PRIVATE_PAIRED,			/* is it so with another one? as an Integer */
	GS_PRIVATE_COUNT
};

static Sort *
copy_childless(const Sort *sort)
{
	Sort	   *copy = makeNode(Sort);

	memcpy(copy, sort, sizeof(Sort));
	copy->plan.type = T_Sort;
	copy->plan.targetlist = NIL;
	copy->plan.lefttree = NULL;
	copy->plan.initPlan = NIL;
	return copy;
}

List *
gpusort_private_make(const Sort *sort, bool repeatable, bool ties, int divided, bool paired)
{
	int			presorted = 0;

	if (IsA(sort, IncrementalSort))
		presorted = ((const IncrementalSort *) sort)->nPresortedCols;
	return lappend(list_make5(copy_childless(sort), makeInteger(repeatable), makeInteger(ties),
							  makeInteger(presorted), makeInteger(divided)),
				   makeInteger(paired));
}

GsSortKeys
gpusort_private_keys_of_sort(const Sort *sort)
{
	return (GsSortKeys)
	{
		.nkeys = sort->numCols,
			.attnos = sort->sortColIdx,
			.operators = sort->sortOperators,
			.collations = sort->collations,
			.nulls_first = sort->nullsFirst
	};
}

GsSortKeys
gpusort_private_keys(const CustomScan *gpusort)
{
	Assert(list_length(gpusort->custom_private) == GS_PRIVATE_COUNT);
	return gpusort_private_keys_of_sort(list_nth_node(Sort,
													  gpusort->custom_private,
													  GS_PRIVATE_SORT));
}

bool
gpusort_private_repeatable(const CustomScan *gpusort)
{
	return intVal(list_nth(gpusort->custom_private, GS_PRIVATE_REPEATABLE)) != 0;
}

bool
gpusort_private_ties(const CustomScan *gpusort)
{
	return intVal(list_nth(gpusort->custom_private, GS_PRIVATE_TIES)) != 0;
}

void
gpusort_private_set_ties(CustomScan *gpusort, bool ties)
{
	lfirst(list_nth_cell(gpusort->custom_private, GS_PRIVATE_TIES)) = makeInteger(ties);
}

int
gpusort_private_presorted(const CustomScan *gpusort)
{
	return intVal(list_nth(gpusort->custom_private, GS_PRIVATE_PRESORTED));
}

int
gpusort_private_divided(const CustomScan *gpusort)
{
	return intVal(list_nth(gpusort->custom_private, GS_PRIVATE_DIVIDED));
}

bool
gpusort_private_paired(const CustomScan *gpusort)
{
	return intVal(list_nth(gpusort->custom_private, GS_PRIVATE_PAIRED)) != 0;
}
