/*-------------------------------------------------------------------------
 *
 * device_key.c
 *		Keys of rows that a GPU sorts, if those of a key plan are not exact.
 *
 * A device cannot encode further words of a row, and to bring rows back to the host for that takes
 * longer than to sort them.  So its keys have more words than those of the CPU, which has them in
 * memory for each row: up to three of a string, and other sort keys follow it.
 *
 * The rest of a string comes before these.  So they can only follow a value that ends in its
 * words, as most short strings and numerics do.  Which values do so is known only row by row.
 * Therefore a bit follows the words, a doubt, which is set if this value does not end in them or
 * if they leave open whether it is equal to others; then all other bits of the key are zero.
 * Rows with equal words up to there are a group, in which rows with the doubt come last.  If the
 * last one of a group has it, the host has to order the group again.  Others are in order.  Each
 * such column makes a level of groups.
 *
 * Strings by a locale of the C library have the weights of their characters as words, which leave
 * open the order of strings with equal ones.  If all characters are plain (plain_strings.c), some
 * bits after the doubt tell it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "key/device_key.h"
#include "key/key_column.h"

#define MAX_BITS	(GPUSORT_DEVICE_KEY_WORDS * GPUSORT_WORD_BITS)

/* The words of a string, and those that it has if otherwise not all sort keys have a place. */
#define STRING_WORDS	3
#define FEWER_WORDS		2

/* A sort key. */
typedef struct GsDeviceColumn
{
	GsKeyColumn column;
	bool		exact;
	bool		doubted;		/* does a doubt follow its words? */
	unsigned	bits;			/* of its words */
	GsPlainLimits plain;		/* no letters if no string counts as plain */
	unsigned	rest_bits;		/* of plain strings, after the doubt */
	unsigned	all_bits;
} GsDeviceColumn;

/* ----------------------------------------------------------------
 *		making a key
 * ----------------------------------------------------------------
 */

/* Lay out a column that is not exact, of which strings get that number of words. */
static void
lay_out_open(GsDeviceColumn *column, unsigned string_words, bool may_follow, bool last)
{
	const GsKeyEncoding *encoding = &column->column.encoding;
	unsigned	all_bits = string_words * GPUSORT_WORD_BITS;

	column->bits = encoding->bits;
	column->plain = (GsPlainLimits)
	{
		0
	};
	if (gpusort_key_encoding_has_weights(encoding) && may_follow)
	{
		/* A byte and a bit for each letter, the specials, and the doubt. */
		column->plain.specials = string_words;
		column->plain.letters = (all_bits - 1 - gpusort_plain_bits(column->plain)) /
			(BITS_PER_BYTE + 1);
		column->bits = column->plain.letters * BITS_PER_BYTE;
	}
	else if (gpusort_key_encoding_has_words(encoding))
		column->bits = all_bits;
	column->rest_bits = column->plain.letters > 0 ? gpusort_plain_bits(column->plain) : 0;
	column->doubted = column->rest_bits > 0 ||
		(may_follow && !last && gpusort_key_encoding_can_end(encoding));
	column->all_bits = column->bits + (column->doubted ? 1 : 0) + column->rest_bits;
}

static void
add_level(GsDeviceKey *key, unsigned bits, bool always)
{
	key->levels[key->nlevels++] = (GsKeyLevel)
	{
		.bits = bits,.always = always
	};
}

/* Lay out all columns that have a place. */
static void
lay_out(GsDeviceKey *key, int ncolumns, unsigned string_words, bool alone)
{
	unsigned	bits = 0;
	bool		goes_on = true;
	int			i;

	key->nlevels = 0;
	key->open = -1;
	key->complete = true;
	for (i = 0; i < ncolumns && goes_on; i++)
	{
		GsDeviceColumn *column = &key->columns[i];

		if (!column->exact)
			lay_out_open(column, string_words, !alone, i + 1 == ncolumns);
		if (bits + gpusort_key_null_bits(i) + column->all_bits > MAX_BITS)
			break;
		bits += gpusort_key_null_bits(i);
		if (!column->exact)
		{
			add_level(key, bits + column->bits, !column->doubted);
			goes_on = column->doubted;
			key->complete = goes_on || gpusort_key_encoding_can_end(&column->column.encoding);
			if (key->open < 0)
				key->open = i;
		}
		bits += column->all_bits;
	}
	key->ncolumns = i;
	if (i < ncolumns)
	{
		if (goes_on)
			add_level(key, bits, true);
		key->complete = false;
	}
	if (key->open < 0)
		key->open = i;
	key->words = Max((bits + GPUSORT_WORD_BITS - 1) / GPUSORT_WORD_BITS, 1);
}

GsDeviceKey *
gpusort_device_key_create(const GsKeyPlan *plan, bool alone)
{
	GsDeviceKey *key = palloc0(sizeof(GsDeviceKey));
	int			ncolumns;
	const GsKeyColumn *columns = gpusort_key_plan_columns(plan, &ncolumns);

	key->columns = palloc0(ncolumns * sizeof(GsDeviceColumn));
	for (int i = 0; i < ncolumns; i++)
	{
		GsDeviceColumn *column = &key->columns[i];

		column->column = columns[i];
		column->exact = gpusort_key_encoding_is_exact(&columns[i].encoding);
		column->bits = column->all_bits = columns[i].encoding.bits;
	}
	lay_out(key, ncolumns, STRING_WORDS, alone);
	if (key->ncolumns < ncolumns && !alone)
		lay_out(key, ncolumns, FEWER_WORDS, alone);
	return key;
}

bool
gpusort_device_key_encoding(const GsDeviceKey *key, int column, GsKeyEncoding *encoding)
{
	if (column >= key->ncolumns)
		return false;
	*encoding = key->columns[column].column.encoding;
	encoding->bits = key->columns[column].bits;
	return true;
}

/* ----------------------------------------------------------------
 *		encoding
 * ----------------------------------------------------------------
 */

/* Does a value that is not plain end in its words, so that equal words mean equal values? */
static inline bool
ends(const GsDeviceColumn *column, Datum value)
{
	const GsKeyEncoding *encoding = &column->column.encoding;

	return gpusort_key_encoding_can_end(encoding) &&
		gpusort_key_encoding_rest(encoding, value,
								  column->bits / GPUSORT_WORD_BITS) == GS_REST_NONE;
}

/* Encode a value of a column that is not exact.  Returns whether its words tell all of it. */
static bool
encode_open(const GsDeviceColumn *column, unsigned position, Datum value, uint64 *key)
{
	uint64		words[STRING_WORDS];
	uint64		rest;

	if (column->rest_bits > 0 &&
		gpusort_key_encoding_plain_words(&column->column.encoding, column->plain, value, words,
										 &rest))
	{
		gpusort_key_column_write(&column->column, column->bits, position, words, key);
		rest <<= GPUSORT_WORD_BITS - column->rest_bits;
		gpusort_key_column_write(&column->column, column->rest_bits, position + column->bits + 1,
								 &rest, key);
		return true;
	}
	gpusort_key_column_encode(&column->column, column->bits, position, value, key);
	return ends(column, value);
}

bool
gpusort_device_key_encode(const GsDeviceKey *key, const Datum *values, const bool *isnull,
						  uint64 *words, bool *told)
{
	unsigned	position = 0;

	*told = key->complete;
	for (unsigned w = 0; w < key->words; w++)
		words[w] = 0;
	for (int i = 0; i < key->ncolumns; i++)
	{
		const GsDeviceColumn *column = &key->columns[i];
		int			index = column->column.attno - 1;

		if (i > 0)
			gpusort_key_set_bits(words, position++, 1,
								 isnull[index] != column->column.nulls_first);
		if (isnull[index])
			;
		else if (column->exact)
			gpusort_key_column_encode(&column->column, column->bits, position, values[index],
									  words);
		else if (!encode_open(column, position, values[index], words))
		{
			*told = false;
			if (column->doubted)
				gpusort_key_set_bits(words, position + column->bits, 1, 1);
			break;
		}
		position += column->all_bits;
	}
	return !isnull[key->columns[0].column.attno - 1];
}

bool
gpusort_device_key_tells(const GsDeviceKey *key, int column, Datum value)
{
	const GsDeviceColumn *c = &key->columns[column];
	uint64		words[STRING_WORDS];
	uint64		rest;

	return c->exact || ends(c, value) ||
		(c->rest_bits > 0 &&
		 gpusort_key_encoding_plain_words(&c->column.encoding, c->plain, value, words, &rest));
}
