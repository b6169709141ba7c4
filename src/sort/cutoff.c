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

#include "utils/memutils.h"

#include "core/radix_sort.h"
#include "key/key_comparison.h"
#include "sort/base/row_format.h"
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
	MemoryContext context;		/* for 'row' */
	MemoryContext scratch;		/* for what comparators leak */
	GsRowFormat *format;		/* of a row of the sort keys */
	char	   *row;			/* that row of the cutoff, or NULL */
	Datum	   *values;			/* of it */
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
	cutoff->format = gpusort_row_format_create_keys(cutoff->spec);
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

/* Read the sort keys of a row, from number 'first' on. */
static void
read_keys(GsCutoff *cutoff, int first, const Datum *values, const bool *isnull)
{
	const GsSortKeys *keys = &cutoff->spec->keys;

	for (int k = first; k < keys->nkeys; k++)
	{
		cutoff->row_values[k] = values[keys->attnos[k] - 1];
		cutoff->row_isnull[k] = isnull[keys->attnos[k] - 1];
	}
}

/* Copy the sort keys of a row.  Returns false if there is not enough memory. */
static bool
copy_keys(GsCutoff *cutoff, const Datum *values, const bool *isnull)
{
	Size		bytes;
	char	   *row;

	read_keys(cutoff, 0, values, isnull);
	bytes = gpusort_row_format_packed_size(cutoff->format, cutoff->row_values,
										   cutoff->row_isnull);
	row = MemoryContextAllocExtended(cutoff->context, bytes,
									 MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (row == NULL)
		return false;
	(void) gpusort_row_format_pack(cutoff->format, cutoff->row_values, cutoff->row_isnull,
								   row, bytes);
	if (cutoff->row != NULL)
		pfree(cutoff->row);
	cutoff->row = row;
	gpusort_row_format_unpack(cutoff->format, row, cutoff->values, cutoff->isnull);
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
	MemoryContext caller;
	int			cmp;

	read_keys(cutoff, cutoff->first_inexact, slot->tts_values, slot->tts_isnull);
	caller = MemoryContextSwitchTo(cutoff->scratch);
	cmp = gpusort_key_comparison_compare(cutoff->comparison,
										 cutoff->first_inexact, cutoff->spec->keys.nkeys,
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
