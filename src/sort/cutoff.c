/*-------------------------------------------------------------------------
 *
 * cutoff.c
 *		Recognizes rows that a Limit does not want as they arrive.
 *
 * The cutoff is the last row wanted among those that have arrived so far.  A row that
 * sorts after it can be dropped as soon as its key is known.  For most rows, the
 * first word of the key decides.  The comparators of the sort operators are called
 * only if all words are equal and are not exact.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/datum.h"
#include "utils/memutils.h"

#include "core/radix_sort.h"
#include "key/key_comparison.h"
#include "sort/cutoff.h"

struct GsCutoff
{
	const GsSortSpec *spec;
	unsigned	words;
	bool		exact;			/* is the encoding of all keys exact? */
	int			first_inexact;	/* number of the sort key */
	AttrNumber	last_attno;		/* highest column among the sort keys */
	bool		null_key;		/* is its first sort key NULL? */
	uint64		key[GPUSORT_CPU_MAX_KEY_WORDS];

	/* Unless exact: its sort keys, and those of a row to compare with it. */
	GsKeyComparison *comparison;
	MemoryContext context;		/* for 'copies' */
	MemoryContext scratch;		/* for what comparators leak */
	char	   *copies;			/* what 'values' point to, or NULL */
	Datum	   *values;
	bool	   *isnull;
	Datum	   *row_values;
	bool	   *row_isnull;
};

static void
prepare_comparison(GsCutoff *cutoff)
{
	int			nkeys = cutoff->spec->keys.nkeys;

	cutoff->comparison = gpusort_key_comparison_create(&cutoff->spec->keys);
	cutoff->context = CurrentMemoryContext;
	cutoff->scratch = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort comparisons",
											ALLOCSET_SMALL_SIZES);
	cutoff->values = palloc(nkeys * sizeof(Datum));
	cutoff->isnull = palloc(nkeys * sizeof(bool));
	cutoff->row_values = palloc(nkeys * sizeof(Datum));
	cutoff->row_isnull = palloc(nkeys * sizeof(bool));
}

GsCutoff *
gpusort_cutoff_create(const GsSortSpec *spec)
{
	GsCutoff   *cutoff = palloc0(sizeof(GsCutoff));

	cutoff->spec = spec;
	cutoff->words = gpusort_key_plan_words(spec->key_plan);
	cutoff->exact = gpusort_key_plan_is_exact(spec->key_plan,
											  &cutoff->first_inexact);
	for (int k = 0; k < spec->keys.nkeys; k++)
		cutoff->last_attno = Max(cutoff->last_attno, spec->keys.attnos[k]);
	if (!cutoff->exact)
		prepare_comparison(cutoff);
	return cutoff;
}

/* Returns the size of a copy of an attribute's value. */
static Size
copy_bytes(Form_pg_attribute att, Datum value, bool isnull)
{
	if (isnull || att->attbyval)
		return 0;
	return MAXALIGN(datumGetSize(value, false, att->attlen));
}

/* Copy the sort keys of a row.  Returns false if there is not enough memory. */
static bool
copy_keys(GsCutoff *cutoff, const Datum *values, const bool *isnull)
{
	const GsSortKeys *keys = &cutoff->spec->keys;
	TupleDesc	tupdesc = cutoff->spec->tupdesc;
	Size		bytes = 1;
	char	   *copy;

	for (int k = 0; k < keys->nkeys; k++)
		bytes += copy_bytes(TupleDescAttr(tupdesc, keys->attnos[k] - 1),
							values[keys->attnos[k] - 1],
							isnull[keys->attnos[k] - 1]);
	copy = MemoryContextAllocExtended(cutoff->context, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (copy == NULL)
		return false;
	if (cutoff->copies != NULL)
		pfree(cutoff->copies);
	cutoff->copies = copy;
	for (int k = 0; k < keys->nkeys; k++)
	{
		int			column = keys->attnos[k] - 1;
		Form_pg_attribute att = TupleDescAttr(tupdesc, column);

		cutoff->values[k] = values[column];
		cutoff->isnull[k] = isnull[column];
		if (isnull[column] || att->attbyval)
			continue;
		cutoff->values[k] = PointerGetDatum(copy);
		memcpy(copy, DatumGetPointer(values[column]),
			   datumGetSize(values[column], false, att->attlen));
		copy += copy_bytes(att, values[column], false);
	}
	return true;
}

bool
gpusort_cutoff_set(GsCutoff *cutoff, const Datum *values, const bool *isnull)
{
	if (!cutoff->exact && !copy_keys(cutoff, values, isnull))
		return false;
	cutoff->null_key = !gpusort_key_plan_encode(cutoff->spec->key_plan, values,
												isnull, cutoff->key);
	return true;
}

/* Does a row whose words equal those of the cutoff sort before it? */
static bool
comes_before(GsCutoff *cutoff, const TupleTableSlot *slot)
{
	const GsSortKeys *keys = &cutoff->spec->keys;
	MemoryContext caller;
	int			cmp;

	for (int k = cutoff->first_inexact; k < keys->nkeys; k++)
	{
		cutoff->row_values[k] = slot->tts_values[keys->attnos[k] - 1];
		cutoff->row_isnull[k] = slot->tts_isnull[keys->attnos[k] - 1];
	}
	caller = MemoryContextSwitchTo(cutoff->scratch);
	cmp = gpusort_key_comparison_compare(cutoff->comparison,
										 cutoff->first_inexact,
										 cutoff->row_values, cutoff->row_isnull,
										 cutoff->values, cutoff->isnull);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(cutoff->scratch);
	return cmp < 0;
}

bool
gpusort_cutoff_drops(GsCutoff *cutoff, TupleTableSlot *slot)
{
	const GsKeyPlan *plan = cutoff->spec->key_plan;
	uint64		key[GPUSORT_CPU_MAX_KEY_WORDS];
	bool		null_key;

	slot_getsomeattrs(slot, cutoff->last_attno);
	null_key = !gpusort_key_plan_encode(plan, slot->tts_values, slot->tts_isnull,
										key);
	if (unlikely(null_key != cutoff->null_key))
		return null_key != gpusort_key_plan_nulls_first(plan);
	for (unsigned w = 0; w < cutoff->words; w++)
		if (key[w] != cutoff->key[w])
			return key[w] > cutoff->key[w];
	return cutoff->exact || !comes_before(cutoff, slot);
}
