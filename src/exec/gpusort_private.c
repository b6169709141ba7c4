/*-------------------------------------------------------------------------
 *
 * gpusort_private.c
 *		Makes and reads custom_private of the plan nodes of sorts.
 *
 * It is a list of the Sort without its children, and of the traits as a list of integers.  Both can
 * be copied and sent to parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/lsyscache.h"

#include "exec/gpusort_private.h"

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
gpusort_private_make(const Sort *sort, GsSortTraits traits)
{
	if (IsA(sort, IncrementalSort))
		traits.presorted = ((const IncrementalSort *) sort)->nPresortedCols;
	return list_make2(copy_childless(sort),
					  list_concat(list_make5_int(traits.repeatable, traits.ties, traits.presorted,
												 traits.divided, traits.paired),
								  list_make5_int(traits.enough, traits.partition_keys,
												 traits.partition_rows, traits.short_values,
												 traits.string_words)));
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
	GsSortKeys	keys = gpusort_private_keys_of_sort(linitial_node(Sort, gpusort->custom_private));
	GsSortTraits traits = gpusort_private_traits(gpusort);

	keys.enough = traits.enough;
	keys.short_values = traits.short_values;
	keys.string_words = traits.string_words;

	/*
	 * Words tell where rows end that agree in the keys by which it is
	 * divided.
	 */
	keys.alone = traits.divided > 0;
	return keys;
}

bool
gpusort_private_keys_begin_with(const GsSortKeys *keys, int ncolumns, const AttrNumber *attnos,
								const Oid *equalities, const Oid *collations)
{
	if (keys->nkeys < ncolumns)
		return false;
	for (int c = 0; c < ncolumns; c++)
	{
		bool		found = false;

		for (int k = 0; k < ncolumns; k++)
			found |= keys->attnos[k] == attnos[c] && keys->collations[k] == collations[c] &&
				get_equality_op_for_ordering_op(keys->operators[k], NULL) == equalities[c];
		if (!found)
			return false;
	}
	return true;
}

GsSortTraits
gpusort_private_traits(const CustomScan *node)
{
	const List *list = lsecond(node->custom_private);

	return (GsSortTraits)
	{
		.repeatable = list_nth_int(list, 0),
			.ties = list_nth_int(list, 1),
			.presorted = list_nth_int(list, 2),
			.divided = list_nth_int(list, 3),
			.paired = list_nth_int(list, 4),
			.enough = list_nth_int(list, 5),
			.partition_keys = list_nth_int(list, 6),
			.partition_rows = list_nth_int(list, 7),
			.short_values = list_nth_int(list, 8),
			.string_words = list_nth_int(list, 9)
	};
}
