/*-------------------------------------------------------------------------
 *
 * group_keys.c
 *		The first sort keys of a row, with which those of others are compared.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/datum.h"
#include "utils/memutils.h"

#include "key/key_comparison.h"
#include "sort/base/group_keys.h"
#include "sort/base/tuple_rows.h"

struct GsGroupKeys
{
	const GsSortSpec *spec;
	int			nkeys;
	GsKeyComparison *comparison;
	Datum	   *keys;			/* of the row that was kept */
	bool	   *isnull;
	MemoryContext context;		/* of what they point to */
	Datum	   *other_keys;		/* of another row */
	bool	   *other_isnull;
	MemoryContext scratch;		/* for what comparators leak */
};

GsGroupKeys *
gpusort_group_keys_create(const GsSortSpec *spec, int nkeys)
{
	GsGroupKeys *group = palloc0(sizeof(GsGroupKeys));

	group->spec = spec;
	group->nkeys = nkeys;
	group->comparison = gpusort_key_comparison_create(&spec->keys);
	group->keys = palloc0(nkeys * sizeof(Datum));
	group->isnull = palloc0(nkeys * sizeof(bool));
	group->other_keys = palloc0(nkeys * sizeof(Datum));
	group->other_isnull = palloc0(nkeys * sizeof(bool));
	group->context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort group",
										   ALLOCSET_SMALL_SIZES);
	group->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort comparisons",
										   ALLOCSET_SMALL_SIZES);
	return group;
}

/* Get the sort keys of a row, from number 'first' on. */
static void
get_keys(const GsGroupKeys *group, int first, const Datum *values, const bool *isnull,
		 Datum *keys, bool *keys_isnull)
{
	const GsSortSpec *spec = group->spec;

	for (int k = first; k < group->nkeys; k++)
	{
		keys[k] = values[spec->keys.attnos[k] - 1];
		keys_isnull[k] = isnull[spec->keys.attnos[k] - 1];
	}
}

void
gpusort_group_keys_keep(GsGroupKeys *group, Datum *values, bool *isnull)
{
	const GsSortSpec *spec = group->spec;
	MemoryContext caller;

	MemoryContextReset(group->context);
	caller = MemoryContextSwitchTo(group->context);
	gpusort_tuple_row_get_keys(spec, values, isnull);
	get_keys(group, 0, values, isnull, group->keys, group->isnull);
	for (int k = 0; k < group->nkeys; k++)
	{
		Form_pg_attribute attr = TupleDescAttr(spec->tupdesc, spec->keys.attnos[k] - 1);

		if (!group->isnull[k])
			group->keys[k] = datumCopy(group->keys[k], attr->attbyval, attr->attlen);
	}
	MemoryContextSwitchTo(caller);
}

void
gpusort_group_keys_get(const GsGroupKeys *group, Datum **keys, bool **isnull)
{
	*keys = group->keys;
	*isnull = group->isnull;
}

int
gpusort_group_keys_compare(GsGroupKeys *group, int first, const Datum *values, const bool *isnull)
{
	MemoryContext caller = MemoryContextSwitchTo(group->scratch);
	int			order;

	get_keys(group, first, values, isnull, group->other_keys, group->other_isnull);
	order = gpusort_key_comparison_compare(group->comparison, first, group->nkeys,
										   group->other_keys, group->other_isnull,
										   group->keys, group->isnull);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(group->scratch);
	return order;
}

bool
gpusort_group_keys_match(GsGroupKeys *group, Datum *values, bool *isnull)
{
	gpusort_tuple_row_get_keys(group->spec, values, isnull);
	return gpusort_group_keys_compare(group, 0, values, isnull) == 0;
}
