/*-------------------------------------------------------------------------
 *
 * unique_check.c
 *		Verifies that no two live rows of a unique index are equal.
 *
 * Rows come in the order of the keys, so each live row is compared with the
 * live row before it, whose values are kept.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "index/btree/btree_private.h"
#include "key/key_comparison.h"

struct GsUniqueCheck
{
	Relation	heap;
	Relation	index;
	int			nkeys;
	bool		nulls_are_equal;
	GsKeyComparison *comparison;
	MemoryContext context;		/* for memory that comparators leak */

	/* The previous live row. */
	bool		has_previous;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext copies;		/* of by-reference values; NULL if there are
								 * none */
};

GsUniqueCheck *
gpusort_unique_check_create(Relation heap, Relation index,
							const IndexInfo *info, const GsSortKeys *keys)
{
	GsUniqueCheck *check = palloc0(sizeof(GsUniqueCheck));
	GsSortKeys	index_keys = *keys;

	/* Leave out the TID. */
	index_keys.nkeys = IndexRelationGetNumberOfKeyAttributes(index);

	check->heap = heap;
	check->index = index;
	check->nkeys = index_keys.nkeys;
	check->nulls_are_equal = info->ii_NullsNotDistinct;
	check->comparison = gpusort_key_comparison_create(&index_keys);
	check->context = AllocSetContextCreate(CurrentMemoryContext,
										   "pg_gpusort comparisons",
										   ALLOCSET_DEFAULT_SIZES);
	for (int k = 0; k < check->nkeys; k++)
		if (!TupleDescAttr(RelationGetDescr(index), k)->attbyval &&
			check->copies == NULL)
			check->copies = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort previous row",
												  ALLOCSET_DEFAULT_SIZES);
	return check;
}

/*
 * Raise the error of a duplicate.  Like PostgreSQL, we name the first of the
 * two rows.
 */
pg_noreturn static void
raise_duplicate(GsUniqueCheck *check)
{
	char	   *key = BuildIndexValueDescription(check->index, check->values,
												 check->isnull);

	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(check->index)),
			 key != NULL ? errdetail("Key %s is duplicated.", key) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(check->heap,
								RelationGetRelationName(check->index))));
}

static bool
is_equal_to_previous(const GsUniqueCheck *check, const Datum *values,
					 const bool *isnull)
{
	MemoryContext caller = MemoryContextSwitchTo(check->context);
	bool		equal;

	equal = gpusort_key_comparison_compare(check->comparison, 0,
										   check->values, check->isnull,
										   values, isnull) == 0;
	MemoryContextSwitchTo(caller);
	MemoryContextReset(check->context);
	return equal;
}

static void
keep_row(GsUniqueCheck *check, const Datum *values, const bool *isnull)
{
	MemoryContext caller;

	memcpy(check->isnull, isnull, check->nkeys * sizeof(bool));
	if (check->copies == NULL)
	{
		memcpy(check->values, values, check->nkeys * sizeof(Datum));
		return;
	}
	MemoryContextReset(check->copies);
	caller = MemoryContextSwitchTo(check->copies);
	for (int k = 0; k < check->nkeys; k++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(check->index), k);

		check->values[k] = isnull[k] ? (Datum) 0 :
			datumCopy(values[k], att->attbyval, att->attlen);
	}
	MemoryContextSwitchTo(caller);
}

void
gpusort_unique_check_row(GsUniqueCheck *check, const Datum *values,
						 const bool *isnull)
{
	bool		has_null = false;

	for (int k = 0; k < check->nkeys; k++)
		has_null |= isnull[k];

	/* A row with a NULL equals no other row, unless NULLs are equal. */
	if (has_null && !check->nulls_are_equal)
		return;
	if (check->has_previous && is_equal_to_previous(check, values, isnull))
		raise_duplicate(check);
	keep_row(check, values, isnull);
	check->has_previous = true;
}
