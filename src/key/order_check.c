/*-------------------------------------------------------------------------
 *
 * order_check.c
 *		Checks by PostgreSQL's comparators that sorted rows are in order.
 *
 * The comparators are called as a stock sort does, without key_comparison.c, whose shortcuts are
 * among what is to be checked.
 *
 * Of rows that are compared in part, each pair of neighbours has the same chance.  The distances
 * are random, so that a repeated sort compares others.  Long values are compared less often, in
 * inverse proportion to their length.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "common/pg_prng.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "key/distrust.h"
#include "key/key_column.h"
#include "key/key_comparison.h"
#include "key/order_check.h"
#include "key/type_words.h"
#include "settings.h"
#include "work.h"

/*
 * One row of this many is compared, on average.  This trades a chance to find a wrong order for
 * time: see docs/experiments.md.
 */
#define SAMPLE_PERIOD	64

/* Bytes of a value that can be compared in about the time of a call. */
#define BYTES_PER_CALL	256

struct GsOrderCheck
{
	MemoryContext context;
	const GsSortKeys *keys;
	int			nkeys;			/* of them are compared; 0 until a check
								 * begins */
	SortSupport ssups;			/* NULL until then */
	MemoryContext scratch;		/* for what comparators leak */
};

GsOrderCheck *
gpusort_order_check_create(const GsSortKeys *keys)
{
	GsOrderCheck *check = palloc0(sizeof(GsOrderCheck));

	check->context = CurrentMemoryContext;
	check->keys = keys;
	return check;
}

/*
 * Prepare the comparators.  Sort keys without words are sorted by the same comparators, so
 * these are not checked: one that contradicts itself must not make a query fail here which
 * stock PostgreSQL answers.  Nor are the keys after such a one.
 */
static void
prepare(GsOrderCheck *check)
{
	const GsSortKeys *keys = check->keys;
	MemoryContext caller = MemoryContextSwitchTo(check->context);
	SortSupport ssups = palloc0(keys->nkeys * sizeof(SortSupportData));

	for (int k = 0; k < keys->nkeys; k++)
	{
		GsKeyEncoding encoding = gpusort_key_encoding_find(keys->operators[k],
														   keys->collations[k], NULL);

		if (encoding.kind == GS_ENCODE_NONE || encoding.kind == GS_ENCODE_COMPARISONS)
			break;
		gpusort_key_comparison_prepare(keys, k, &ssups[k]);
		check->nkeys++;
	}
	check->scratch = AllocSetContextCreate(check->context, "pg_gpusort order check",
										   ALLOCSET_SMALL_SIZES);
	check->ssups = ssups;
	MemoryContextSwitchTo(caller);
}

/* Returns how many rows to let pass before one is kept for the comparison with the next. */
static uint32
choose_wait(uint32 period)
{
	return pg_prng_uint32(&pg_global_prng_state) % (2 * period - 1);
}

void
gpusort_checked_rows_begin(GsCheckedRows *rows, GsOrderCheck *check, TupleDesc tupdesc,
						   bool whole, bool lasting)
{
	bool		all = gpusort_verify == GS_VERIFY_ALL;
	GsEncodingKind kind;

	memset(rows, 0, sizeof(*rows));
	if (gpusort_verify == GS_VERIFY_OFF || check == NULL)
		return;
	if (check->ssups == NULL)
		prepare(check);
	if (check->nkeys == 0)
		return;
	rows->check = check;
	rows->tupdesc = tupdesc;
	rows->context = CurrentMemoryContext;
	rows->lasting = lasting;
	rows->ssup = &check->ssups[0];
	rows->column = check->keys->attnos[0] - 1;
	rows->all_keys = true;
	kind = gpusort_key_encoding_of_comparator(rows->ssup);
	if (!whole && !(all && check->nkeys > 1) &&
		(kind == GS_ENCODE_INT32 || kind == GS_ENCODE_INT64))
	{
		rows->shared = kind;
		rows->all_keys = check->nkeys > 1;
	}
	rows->reverse = rows->ssup->ssup_reverse ? ~(Datum) 0 : 0;
	rows->first_isnull = true;

	rows->period = all ? 1 : SAMPLE_PERIOD;
	rows->wait = choose_wait(rows->period);
}

void
gpusort_checked_rows_aim(GsCheckedRows *rows, int64 distance)
{
	if (distance >= 2 && distance - 2 < rows->wait)
		rows->wait = distance - 2;
}

/* ----------------------------------------------------------------
 *		rows that are kept
 * ----------------------------------------------------------------
 */

static void
make_room(GsCheckedRows *rows)
{
	int			nkeys = rows->check->nkeys;

	rows->values = MemoryContextAlloc(rows->context, 2 * nkeys * sizeof(Datum));
	rows->isnull = MemoryContextAlloc(rows->context, 2 * nkeys * sizeof(bool));
}

static Form_pg_attribute
attribute_of_key(const GsCheckedRows *rows, int k)
{
	return TupleDescAttr(rows->tupdesc, rows->check->keys->attnos[k] - 1);
}

/*
 * Get the sort keys of a row into an array of values.  Returns the bytes of those of variable
 * length, which a comparison may read.
 */
static Size
get_keys(const GsCheckedRows *rows, const Datum *values, const bool *isnull,
		 Datum *key_values, bool *key_isnull)
{
	const GsSortKeys *keys = rows->check->keys;
	Size		bytes = 0;

	for (int k = 0; k < rows->check->nkeys; k++)
	{
		key_values[k] = values[keys->attnos[k] - 1];
		key_isnull[k] = isnull[keys->attnos[k] - 1];
		if (!key_isnull[k] && attribute_of_key(rows, k)->attlen == -1)
			bytes += toast_raw_datum_size(key_values[k]);
	}
	return bytes;
}

/* Replace the kept values by copies, which stay when the next row is read. */
static void
copy_keys(GsCheckedRows *rows)
{
	int			nkeys = rows->check->nkeys;
	Size		size = 0;
	char	   *copy;

	for (int k = 0; k < nkeys; k++)
		if (!rows->isnull[k] && !attribute_of_key(rows, k)->attbyval)
			size += MAXALIGN(datumGetSize(rows->values[k], false,
										  attribute_of_key(rows, k)->attlen));
	if (size > rows->copies_size)
	{
		if (rows->copies != NULL)
			pfree(rows->copies);
		rows->copies = MemoryContextAllocHuge(rows->context, size);
		rows->copies_size = size;
	}
	copy = rows->copies;
	for (int k = 0; k < nkeys; k++)
	{
		Form_pg_attribute att = attribute_of_key(rows, k);

		if (rows->isnull[k] || att->attbyval)
			continue;
		size = datumGetSize(rows->values[k], false, att->attlen);
		gpusort_work_copy(copy, DatumGetPointer(rows->values[k]), size);
		rows->values[k] = PointerGetDatum(copy);
		copy += MAXALIGN(size);
	}
}

/* Keep the keys of a row, unless they are so long that they are compared less often. */
static void
keep_row(GsCheckedRows *rows, const Datum *values, const bool *isnull)
{
	Size		bytes = get_keys(rows, values, isnull, rows->values, rows->isnull);

	if (rows->period > 1 && bytes > BYTES_PER_CALL &&
		pg_prng_uint64_range(&pg_global_prng_state, 0, bytes) > BYTES_PER_CALL)
	{
		rows->wait = choose_wait(rows->period);
		return;
	}
	if (!rows->lasting)
		copy_keys(rows);
	rows->kept = true;
	rows->wait = 0;
}

/* ----------------------------------------------------------------
 *		comparing
 * ----------------------------------------------------------------
 */

static int
compare_key(const GsOrderCheck *check, int k, Datum a, bool a_isnull, Datum b, bool b_isnull)
{
	MemoryContext caller = MemoryContextSwitchTo(check->scratch);
	int			cmp = ApplySortComparator(a, a_isnull, b, b_isnull, &check->ssups[k]);

	MemoryContextSwitchTo(caller);
	return cmp;
}

/* Is a row, whose keys are the second half of 'values', in order after the one that was kept? */
static bool
is_in_order(GsCheckedRows *rows)
{
	GsOrderCheck *check = rows->check;
	int			nkeys = check->nkeys;
	int			cmp = 0;

	for (int k = 0; cmp == 0 && k < nkeys; k++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(GPUSORT_WORK_ROW);
		rows->wrong_key = k;
		cmp = compare_key(check, k, rows->values[k], rows->isnull[k],
						  rows->values[nkeys + k], rows->isnull[nkeys + k]);
	}
	MemoryContextReset(check->scratch);
	return cmp <= 0;
}

bool
gpusort_checked_rows_compare_first(GsCheckedRows *rows, const Datum *values, const bool *isnull)
{
	Datum		value = values[rows->column];
	bool		value_isnull = isnull[rows->column];
	int			cmp = 0;

	if (rows->has_first)
		cmp = ApplySortComparator(rows->first, rows->first_isnull, value, value_isnull,
								  rows->ssup);
	rows->has_first = true;
	rows->first = value;
	rows->first_isnull = value_isnull;
	rows->wrong_key = 0;
	return cmp <= 0;
}

bool
gpusort_checked_rows_compare(GsCheckedRows *rows, const Datum *values, const bool *isnull)
{
	int			nkeys = rows->check->nkeys;

	if (unlikely(rows->values == NULL))
		make_room(rows);
	if (rows->kept)
	{
		(void) get_keys(rows, values, isnull, rows->values + nkeys, rows->isnull + nkeys);
		rows->kept = false;
		if (unlikely(!is_in_order(rows)))
		{
			rows->kept = true;
			return false;
		}
		rows->wait = choose_wait(rows->period);
		if (rows->wait > 0)
		{
			rows->wait--;
			return true;
		}
	}
	keep_row(rows, values, isnull);
	return true;
}

/* ----------------------------------------------------------------
 *		wrong orders
 * ----------------------------------------------------------------
 */

/* Does the encoding of sort key k give two values another order than the comparator? */
static bool
encoding_is_wrong(const GsOrderCheck *check, int k, const Datum *values, const bool *isnull)
{
	int			nkeys = check->nkeys;
	GsKeyColumn column = {0};
	uint64		a[GPUSORT_CPU_MAX_KEY_WORDS] = {0};
	uint64		b[GPUSORT_CPU_MAX_KEY_WORDS] = {0};
	unsigned	bits;
	int			order = 0;
	int			cmp;

	if (isnull[k] || isnull[nkeys + k])
		return false;
	column.encoding = gpusort_key_encoding_find(check->keys->operators[k],
												check->keys->collations[k], &column.descending);
	bits = gpusort_key_encoding_has_words(&column.encoding) ?
		GPUSORT_CPU_MAX_KEY_WORDS * GPUSORT_WORD_BITS : column.encoding.bits;
	gpusort_key_column_encode(&column, bits, 0, values[k], a);
	gpusort_key_column_encode(&column, bits, 0, values[nkeys + k], b);
	for (unsigned w = 0; order == 0 && w < GPUSORT_CPU_MAX_KEY_WORDS; w++)
		order = (a[w] > b[w]) - (a[w] < b[w]);
	cmp = compare_key(check, k, values[k], isnull[k], values[nkeys + k], isnull[nkeys + k]);
	return order != 0 && (cmp == 0 || (order < 0) != (cmp < 0));
}

/*
 * The first key by which the rows are not in order is wrong_key.  Those before it compare as
 * equal, but an encoding may have told them apart.
 */
char *
gpusort_checked_rows_distrust(GsCheckedRows *rows)
{
	const GsSortKeys *keys = rows->check->keys;
	int			wrong = rows->wrong_key;

	if (rows->kept)
		for (int k = 0; k < rows->wrong_key; k++)
			if (encoding_is_wrong(rows->check, k, rows->values, rows->isnull))
			{
				wrong = k;
				break;
			}
	return gpusort_distrust_add(keys->operators[wrong], keys->collations[wrong]);
}
