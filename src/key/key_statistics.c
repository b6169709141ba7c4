/*-------------------------------------------------------------------------
 *
 * key_statistics.c
 *		Tells from statistics how well the words of keys tell rows apart.
 *
 * The words of a key end within a string.  Rows whose words are the same have yet to be
 * ordered, which takes a GPU's rows back to the host.  ANALYZE has found how many different
 * values a column has, and a histogram of them.  Of strings, the latter tells in which byte
 * they begin to differ.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "port/pg_bitutils.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "core/radix_sort.h"
#include "key/device_key.h"
#include "key/key_statistics.h"

/* So many values an expression is expected to have, as by the planner. */
#define VALUES_OF_EXPRESSION	200.0

/* More rows than this for each key, and most of them tie. */
#define ROWS_OF_KEY		2.0

/* This part of the rows is most of them, since it takes longer to break ties than to sort. */
#define MOST_ROWS		0.25

/* So many different symbols stand for a byte of a string, about as many as there are digits. */
#define SYMBOLS			10.0

/* This part of a column's values are different if nearly all are. */
#define NEARLY_ALL		0.95

/* Columns that may depend on each other tell rows apart if as many times more values could. */
#define MANY_VALUES		10.0

/* The bounds of a histogram that are looked at. */
#define MOST_BOUNDS		101

/* If strings have more than this in common, words relative to a pivot take less time. */
#define MOST_STRING_WORDS	2

/* Values of this average width, with a header, mostly end in two words of 14 to 16 bytes. */
#define SHORT_WIDTH		12

/* What the statistics say of the words of a column. */
typedef struct GsColumnWords
{
	double		distinct;		/* number of different ones */
	double		common;			/* part of the rows with one of the most
								 * common values */
} GsColumnWords;

/* Returns how many bytes two strings of words have in common at their beginning. */
static int
common_bytes(const uint64 *a, const uint64 *b)
{
	for (int w = 0; w < GPUSORT_CPU_MAX_KEY_WORDS; w++)
		if (a[w] != b[w])
			return w * sizeof(uint64) +
				(63 - pg_leftmost_one_pos64(a[w] ^ b[w])) / BITS_PER_BYTE;
	return GPUSORT_CPU_MAX_KEY_WORDS * sizeof(uint64);
}

/*
 * Returns how many bytes neighbours among the bounds of a histogram have in common, on average.
 */
static double
mean_common_bytes(const GsKeyEncoding *encoding, const Datum *bounds, int nbounds)
{
	uint64		words[2][GPUSORT_CPU_MAX_KEY_WORDS];
	double		sum = 0;

	gpusort_key_encoding_string_words(encoding, bounds[0], words[0],
									  GPUSORT_CPU_MAX_KEY_WORDS);
	for (int i = 1; i < nbounds; i++)
	{
		gpusort_key_encoding_string_words(encoding, bounds[i], words[i % 2],
										  GPUSORT_CPU_MAX_KEY_WORDS);
		sum += common_bytes(words[0], words[1]);
	}
	return sum / (nbounds - 1);
}

/*
 * Returns how many bytes tell apart 'distinct' strings of a column.  Between two bounds of the
 * histogram there are many strings, which differ in some bytes more than the bounds do.
 */
static double
bytes_needed(const GsKeyEncoding *encoding, HeapTuple statistics, double distinct)
{
	AttStatsSlot slot;
	double		bytes = 0;

	if (!get_attstatsslot(&slot, statistics, STATISTIC_KIND_HISTOGRAM, InvalidOid,
						  ATTSTATSSLOT_VALUES))
		return 0;
	if (slot.nvalues > 1)
		bytes = mean_common_bytes(encoding, slot.values, Min(slot.nvalues, MOST_BOUNDS)) +
			Max(log(distinct / (slot.nvalues - 1)) / log(SYMBOLS), 0);
	free_attstatsslot(&slot);
	return bytes;
}

/* Returns the part of the rows that have one of the most common values. */
static double
part_of_common_values(HeapTuple statistics)
{
	AttStatsSlot slot;
	double		part = 0;

	if (!get_attstatsslot(&slot, statistics, STATISTIC_KIND_MCV, InvalidOid,
						  ATTSTATSSLOT_NUMBERS))
		return 0;
	for (int i = 0; i < slot.nnumbers; i++)
		part += slot.numbers[i];
	free_attstatsslot(&slot);
	return part;
}

static HeapTuple
statistics_of(const GsTableColumn *column)
{
	return SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(column->table),
						   Int16GetDatum(column->attno), BoolGetDatum(false));
}

/* Returns how many different values a column has in 'rows' rows. */
static double
distinct_values(HeapTuple statistics, double rows)
{
	double		distinct = ((Form_pg_statistic) GETSTRUCT(statistics))->stadistinct;

	return Max(distinct < 0 ? -distinct * rows : distinct, 1);
}

/* Look up what is known of a column.  Returns false if there are no statistics. */
static bool
look_up(const GsTableColumn *column, const GsKeyEncoding *encoding, double rows,
		GsColumnWords *words)
{
	HeapTuple	statistics = statistics_of(column);

	if (!HeapTupleIsValid(statistics))
		return false;
	words->distinct = distinct_values(statistics, rows);
	words->common = part_of_common_values(statistics);
	if (gpusort_key_encoding_is_string(encoding))
	{
		double		missing = bytes_needed(encoding, statistics, words->distinct) -
			encoding->bits / (double) BITS_PER_BYTE;

		words->distinct /= pow(SYMBOLS, Max(missing, 0));
	}
	ReleaseSysCache(statistics);
	return true;
}

/* Returns the number of rows that a table had when it was analyzed, or 0. */
static double
rows_of_table(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	double		rows;

	if (!HeapTupleIsValid(tuple))
		return 0;
	rows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
	ReleaseSysCache(tuple);
	return rows;
}

/*
 * Are nearly all of a column's values different in 'rows' rows?  A join that returns more rows
 * than its table has repeats them.
 */
static bool
is_nearly_unique(const GsTableColumn *column, double rows)
{
	HeapTuple	statistics = statistics_of(column);
	bool		unique;

	if (!HeapTupleIsValid(statistics))
		return false;
	unique = ((Form_pg_statistic) GETSTRUCT(statistics))->stadistinct <= -NEARLY_ALL;
	ReleaseSysCache(statistics);
	return unique && rows * NEARLY_ALL <= rows_of_table(column->table);
}

/*
 * Returns how many combinations of the values of columns there can be, of those that have
 * statistics.  Sets *known to whether all have.
 */
static double
combined_values(const GsTableColumn *columns, int nkeys, double rows, bool *known)
{
	double		distinct = 1;

	*known = true;
	for (int k = 0; k < nkeys; k++)
	{
		HeapTuple	statistics = statistics_of(&columns[k]);

		*known &= HeapTupleIsValid(statistics);
		if (!HeapTupleIsValid(statistics))
			continue;
		distinct *= distinct_values(statistics, rows);
		ReleaseSysCache(statistics);
	}
	return distinct;
}

bool
gpusort_key_statistics_tell_apart(const GsTableColumn *columns, int nkeys, double rows)
{
	bool		known;

	for (int k = 0; k < nkeys; k++)
		if (is_nearly_unique(&columns[k], rows))
			return true;
	return combined_values(columns, nkeys, rows, &known) >= MANY_VALUES * rows;
}

/* Would a device key tell all values of one kind of statistics, of which there are some? */
static bool
tells_values(HeapTuple statistics, int kind, const GsDeviceKey *key, int k, bool *any)
{
	AttStatsSlot slot;
	bool		told = true;

	if (!get_attstatsslot(&slot, statistics, kind, InvalidOid, ATTSTATSSLOT_VALUES))
		return true;
	*any |= slot.nvalues > 0;
	for (int i = 0; i < Min(slot.nvalues, MOST_BOUNDS) && told; i++)
		told = gpusort_device_key_tells(key, k, slot.values[i]);
	free_attstatsslot(&slot);
	return told;
}

/* Does a device key tell the values of column k, as far as statistics show? */
static bool
tells_column(const GsTableColumn *column, const GsDeviceKey *key, int k)
{
	GsKeyEncoding encoding;
	HeapTuple	statistics;
	bool		any = false;
	bool		told;

	(void) gpusort_device_key_encoding(key, k, &encoding);
	if (gpusort_key_encoding_is_exact(&encoding))
		return true;
	statistics = statistics_of(column);
	if (!HeapTupleIsValid(statistics))
		return false;
	told = tells_values(statistics, STATISTIC_KIND_HISTOGRAM, key, k, &any) &&
		tells_values(statistics, STATISTIC_KIND_MCV, key, k, &any);
	ReleaseSysCache(statistics);
	return told && any;
}

/* Do the values of a column probably end in two words, by their average width? */
static bool
is_short(const GsTableColumn *column)
{
	int32		width = OidIsValid(column->table) ?
		get_attavgwidth(column->table, column->attno) : 0;

	return width > 0 && width <= SHORT_WIDTH;
}

int
gpusort_key_statistics_open(const GsSortKeys *keys, const GsTableColumn *columns, int first,
							bool gpu)
{
	for (int k = first; k < keys->nkeys; k++)
	{
		GsKeyEncoding encoding = gpusort_key_encoding_find(keys->operators[k],
														   keys->collations[k], NULL);
		bool		may_end = gpusort_key_encoding_can_end(&encoding) ||
			(gpu && gpusort_key_encoding_has_weights(&encoding));

		if (!gpusort_key_encoding_is_exact(&encoding) && !(may_end && is_short(&columns[k])))
			return k;
	}
	return keys->nkeys;
}

/*
 * Do most rows agree in the words of a device key?  If another key follows a string within which
 * the words end, one that is there twice is a tie, and columns may depend on each other, so they
 * have to tell rows apart by a margin.  Where another key follows, a column without statistics
 * means that they do.
 */
static bool
expect_ties(const GsSortKeys *keys, const GsTableColumn *columns, const GsDeviceKey *key,
			double rows)
{
	int			open = 0;
	int			end;
	double		distinct = 1;
	GsKeyEncoding encoding;
	GsColumnWords words = {0};

	while (open < key->ncolumns && tells_column(&columns[open], key, open))
		open++;
	if (open == keys->nkeys)
		return false;
	end = Min(open + 1, key->ncolumns);
	if (end < keys->nkeys && gpusort_device_key_encoding(key, open, &encoding) &&
		gpusort_key_encoding_is_string(&encoding) &&
		!gpusort_key_statistics_tell_apart(columns, end, rows))
		return true;
	for (int k = 0; k < end; k++)
	{
		(void) gpusort_device_key_encoding(key, k, &encoding);
		if (look_up(&columns[k], &encoding, rows, &words))
			distinct *= words.distinct;
		else if (k == end - 1 || end < keys->nkeys)
			return end < keys->nkeys;
		else
			distinct *= VALUES_OF_EXPRESSION;
	}
	return distinct * ROWS_OF_KEY < rows || (end == 1 && words.common > MOST_ROWS);
}

bool
gpusort_key_statistics_expect_ties(const GsSortKeys *keys, const GsTableColumn *columns,
								   double rows)
{
	GsReason	reason;
	GsKeyPlan  *plan = gpusort_key_plan_create(keys, &reason);
	int			open;

	/* Without words, all rows tie. */
	bool		ties = reason == GS_REASON_TYPE;

	if (reason == GS_REASON_NONE && !gpusort_key_plan_is_exact(plan, &open))
		ties = expect_ties(keys, columns, gpusort_device_key_create(plan, keys->alone), rows);
	gpusort_key_plan_free(plan);
	return ties;
}

bool
gpusort_key_statistics_few_values(const GsTableColumn *columns, int nkeys, double rows)
{
	bool		known;
	double		distinct = combined_values(columns, nkeys, rows, &known);

	return known && distinct * ROWS_OF_KEY < rows;
}

bool
gpusort_key_statistics_short_values(const GsSortKeys *keys, const GsTableColumn *columns,
									double rows)
{
	for (int k = 0; k < keys->nkeys; k++)
	{
		GsKeyEncoding encoding = gpusort_key_encoding_find(keys->operators[k],
														   keys->collations[k], NULL);

		if (!gpusort_key_encoding_is_exact(&encoding))
			return gpusort_key_statistics_open(keys, columns, k, false) > k &&
				gpusort_key_statistics_few_values(columns, k + 1, rows);
	}
	return false;
}

/* Returns how many words tell the values of a string column apart, as far as statistics show. */
static int
words_needed(const GsKeyEncoding *encoding, const GsTableColumn *column, double rows)
{
	HeapTuple	statistics = statistics_of(column);
	double		words;

	if (!HeapTupleIsValid(statistics))
		return 1;
	words = ceil(bytes_needed(encoding, statistics, distinct_values(statistics, rows)) /
				 sizeof(uint64));
	ReleaseSysCache(statistics);
	return words > 1 && words <= MOST_STRING_WORDS ? (int) words : 1;
}

int
gpusort_key_statistics_string_words(const GsSortKeys *keys, const GsTableColumn *columns,
									double rows, GsStringWords *last)
{
	for (int k = 0; k < keys->nkeys; k++)
	{
		GsKeyEncoding encoding = gpusort_key_encoding_find(keys->operators[k],
														   keys->collations[k], NULL);

		if (gpusort_key_encoding_is_exact(&encoding))
			continue;
		if (!gpusort_key_encoding_is_string(&encoding) ||
			(k > 0 && !gpusort_key_statistics_few_values(columns, k, rows)) ||
			(is_short(&columns[k]) && gpusort_key_statistics_few_values(columns, k + 1, rows)))
			return 1;
		if (last->column.table != columns[k].table || last->column.attno != columns[k].attno ||
			last->collation != keys->collations[k] || last->rows != rows)
			*last = (GsStringWords)
		{
			columns[k], keys->collations[k], rows, words_needed(&encoding, &columns[k], rows)
		};
		return last->words;
	}
	return 1;
}

int
gpusort_key_statistics_enough(const GsTableColumn *columns, int nkeys, double rows)
{
	for (int k = 0; k < nkeys; k++)
		if (is_nearly_unique(&columns[k], rows))
			return k + 1;
	return nkeys;
}
