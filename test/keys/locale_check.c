/*-------------------------------------------------------------------------
 *
 * locale_check.c
 *		Compares the weights of a locale of the C library with strcoll_l().
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "common/hashfn.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "key/locale_weights.h"
#include "loading.h"

/* Strings of a contraction, with what precedes and follows it, and the bytes of their weights. */
#define STRING_BYTES	64
#define STRING_WEIGHTS	(STRING_BYTES * GPUSORT_MAX_SEQUENCE_BYTES)

/* A string and its weights, read to the end. */
typedef struct LocaleString
{
	Size		length;
	char		string[STRING_BYTES];
	Size		nbytes;
	unsigned char bytes[STRING_WEIGHTS];
} LocaleString;

/* A locale whose contractions are compared. */
typedef struct Contractions
{
	const GsLocaleWeights *weights;
	locale_t	locale;
	GsWeightMemo memo;
	LocaleString strings[2];
	int			step;			/* check one case in 'step' */
	unsigned	other;			/* a number of the locale */
	int			count;			/* of contractions */
} Contractions;

GPUSORT_SQL_FUNCTION(locale_is_used);
GPUSORT_SQL_FUNCTION(locale_tables_hash);
GPUSORT_SQL_FUNCTION(locale_contractions);
GPUSORT_SQL_FUNCTION(locale_plain);

static inline int
sign(int cmp)
{
	return (cmp > 0) - (cmp < 0);
}

/* Are there weights for a locale of this name, which may have been spoiled? */
Datum
locale_is_used(PG_FUNCTION_ARGS)
{
	const GsLocaleWeights *weights;

	gpusort_locale_weights_spoil = PG_GETARG_BOOL(1);
	weights = gpusort_locale_weights_get(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	gpusort_locale_weights_spoil = false;
	PG_RETURN_BOOL(weights != NULL);
}

/*
 * A hash of the tables of a locale, by which those with other names for the same tables are
 * found; NULL for locales that we do not use.
 */
Datum
locale_tables_hash(PG_FUNCTION_ARGS)
{
	const GsLocaleWeights *weights =
		gpusort_locale_weights_get(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	const GsLocaleTables *tables;

	if (weights == NULL)
		PG_RETURN_NULL();
	tables = &weights->tables;
	PG_RETURN_INT64(hash_bytes_extended(tables->rules,
										(const unsigned char *) (tables->ranges + tables->nranges) -
										tables->rules, tables->nrules));
}

/* Sets one of two strings: a beginning, some bytes, and a character unless it is 0. */
static void
set_string(Contractions *contractions, int number, const char *beginning,
		   const unsigned char *bytes, Size length, char character)
{
	LocaleString *string = &contractions->strings[number];
	Size		start = strlen(beginning);
	GsWeightReader reader;

	memcpy(string->string, beginning, start);
	memcpy(string->string + start, bytes, length);
	string->string[start + length] = character;
	string->string[start + length + 1] = '\0';
	string->length = strlen(string->string);
	string->nbytes = 0;
	gpusort_weight_reader_begin(&reader, contractions->weights,
								(unsigned char *) string->string, string->length);
	while ((string->bytes[string->nbytes] = gpusort_weight_reader_next(&reader)) != 0)
		string->nbytes++;
}

/* Are a string's weights the same if those of the string before it are remembered? */
static bool
is_same_by_memo(Contractions *contractions, const LocaleString *string)
{
	GsWeightReader reader;
	Size		skipped;
	Size		count;
	unsigned char byte;

	count = gpusort_weight_memo_begin(&contractions->memo, &reader, contractions->weights,
									  (const unsigned char *) string->string, string->length,
									  0, STRING_BYTES, &skipped);
	if (count > string->nbytes ||
		memcmp(contractions->memo.bytes, string->bytes, count) != 0)
		return false;
	while ((byte = gpusort_weight_reader_next(&reader)) != 0)
		if (count == string->nbytes || byte != string->bytes[count++])
			return false;
	return count == string->nbytes;
}

/* Compares the two strings, in both directions.  Returns NULL, or what is wrong. */
static const char *
compare_strings(Contractions *contractions)
{
	const LocaleString *a = &contractions->strings[0];
	const LocaleString *b = &contractions->strings[1];
	int			by_library = sign(strcoll_l(a->string, b->string, contractions->locale));
	int			by_bytes = sign(memcmp(a->bytes, b->bytes, Min(a->nbytes, b->nbytes) + 1));

	if (by_bytes != 0 && by_bytes != by_library)
		return "weights in another order";
	for (int i = 0; i < 2; i++)
	{
		const LocaleString *other = &contractions->strings[1 - i];
		const LocaleString *string = &contractions->strings[i];

		if (sign(gpusort_locale_weights_compare(contractions->weights,
												(unsigned char *) string->string,
												string->length,
												(unsigned char *) other->string,
												other->length)) !=
			(i == 0 ? by_bytes : -by_bytes))
			return "a comparison of what two strings do not have in common";
		if (!is_same_by_memo(contractions, string))
			return "other weights after a string that begins alike";
	}
	return NULL;
}

/*
 * Compares a contraction with each number of its first characters, followed by each character
 * of ASCII and by nothing, alone and after a common beginning.  Only ASCII has code of its
 * own.  Many locales share contractions that begin with other characters, so only some
 * cases of these are checked, different ones in each locale.
 */
static void
check_contraction(Contractions *contractions, const unsigned char *bytes, Size length)
{
	static const char *const beginnings[] = {"", "m", "in common ", "in common, l\302\267l"};
	int			step = bytes[0] < 0x80 ? 1 : contractions->step;
	int			first = (contractions->count++ + contractions->other) % step;

	for (Size part = pg_utf_mblen(bytes); part < length; part += pg_utf_mblen(bytes + part))
		for (int n = first; n < lengthof(beginnings) * 128; n += step)
		{
			const char *beginning = beginnings[n / 128];
			const char *what;

			set_string(contractions, 0, beginning, bytes, length, '\0');
			set_string(contractions, 1, beginning, bytes, part, n % 128);
			what = compare_strings(contractions);
			if (what != NULL)
				elog(ERROR, "%s: \"%s\" and \"%s\"", what, contractions->strings[0].string,
					 contractions->strings[1].string);
		}
}

/* Checks the sequences of an entry that are longer than a character. */
static void
check_sequence(Contractions *contractions, unsigned char first, const GsSequence *sequence)
{
	unsigned char bytes[1 + UINT8_MAX] = {first};
	Size		length = 1 + sequence->length;

	memcpy(bytes + 1, sequence->first, sequence->length);
	if (length <= pg_utf_mblen(bytes))
		return;
	for (;;)
	{
		if (length < STRING_BYTES / 2)
			check_contraction(contractions, bytes, length);
		if (memcmp(bytes + 1, sequence->last, sequence->length) == 0)
			return;
		/* Those of a range differ in their last byte. */
		bytes[length - 1]++;
	}
}

/*
 * locale_contractions(locale text, step int4): compares strings with all contractions of a
 * locale with strcoll_l().  Returns the number of contractions, or NULL if we do not use the
 * locale.
 */
Datum
locale_contractions(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Contractions *contractions = palloc0(sizeof(Contractions));
	const GsLocaleTables *tables;

	contractions->weights = gpusort_locale_weights_get(name);
	if (contractions->weights == NULL)
		PG_RETURN_NULL();
	contractions->locale = newlocale(LC_COLLATE_MASK, name, (locale_t) 0);
	contractions->step = PG_GETARG_INT32(1);
	contractions->other = hash_bytes((unsigned char *) name, strlen(name));
	tables = &contractions->weights->tables;
	for (int first = 1; first < 256; first++)
	{
		const unsigned char *entry = tables->sequences - tables->starts[first];
		GsSequence	sequence;

		if (tables->starts[first] >= 0)
			continue;
		do
		{
			sequence = gpusort_locale_tables_read(entry);
			check_sequence(contractions, first, &sequence);
			entry = sequence.next;
			CHECK_FOR_INTERRUPTS();
		} while (sequence.length > 0);
	}
	freelocale(contractions->locale);
	PG_RETURN_INT32(contractions->count);
}

/* ----------------------------------------------------------------
 *		plain strings
 * ----------------------------------------------------------------
 */

/* Letters and digits of a plain string. */
#define PLAIN_LETTERS	9

/* A locale whose plain strings are compared. */
typedef struct PlainStrings
{
	const GsLocaleWeights *weights;
	uint32		number;			/* of the next random number */
	char		letters[PLAIN_LETTERS + 1]; /* that two strings have in common */
} PlainStrings;

static uint32
random_below(PlainStrings *strings, uint32 bound)
{
	return hash_bytes_uint32(strings->number++) % bound;
}

/* Returns a random plain character that is special, or is not; or 0 if there is none. */
static char
random_plain(PlainStrings *strings, bool special)
{
	const GsPlainTable *table = gpusort_plain_strings_table(strings->weights);
	uint32		start = random_below(strings, 128);

	for (int i = 0; i < 128; i++)
	{
		unsigned	c = (start + i) % 128;

		if (table->characters[c] != 0 &&
			(table->characters[c] >> GS_PLAIN_NUMBER_BIT != 0) == special)
			return c;
	}
	return '\0';
}

/* Chooses letters, of at most three kinds. */
static void
choose_letters(PlainStrings *strings)
{
	char		kinds[3];
	int			length = random_below(strings, PLAIN_LETTERS + 1);

	for (int i = 0; i < lengthof(kinds); i++)
		kinds[i] = random_plain(strings, false);
	for (int i = 0; i < length; i++)
		strings->letters[i] = kinds[random_below(strings, lengthof(kinds))];
	strings->letters[length] = '\0';
}

/* Writes these letters in random cases, with specials among them. */
static void
write_plain(PlainStrings *strings, char *string)
{
	const unsigned char *bytes = strings->weights->before_ascii;
	char		special = random_plain(strings, true);

	for (const char *letter = strings->letters;; letter++)
	{
		if (special != '\0' && random_below(strings, 4) == 0)
			*string++ = random_below(strings, 3) > 0 ? special : random_plain(strings, true);
		if (*letter == '\0')
			break;
		*string = *letter;
		for (int c = 1; c < 128 && random_below(strings, 64) > 0; c++)
			if (c != *letter && bytes[c] == bytes[(int) *letter])
				*string = c;
		string++;
	}
	*string = '\0';
}

/*
 * locale_plain(locale text, pairs int4): compares pairs of plain strings with strcoll_l().  Returns
 * NULL if we do not use the locale; otherwise how many are in another order.
 */
Datum
locale_plain(PG_FUNCTION_ARGS)
{
	static const GsPlainLimits limits[] = {{17, 3}, {11, 2}};
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	PlainStrings strings = {.weights = gpusort_locale_weights_get(name)};
	locale_t	locale;
	int			wrong = 0;

	if (strings.weights == NULL)
		PG_RETURN_NULL();
	locale = newlocale(LC_COLLATE_MASK, name, (locale_t) 0);
	strings.number = hash_bytes((unsigned char *) name, strlen(name));
	for (int i = 0; i < PG_GETARG_INT32(1) && random_plain(&strings, false) != '\0'; i++)
	{
		char		string[2][2 * PLAIN_LETTERS + 2];
		unsigned char bytes[2][STRING_BYTES] = {{0}};
		uint64		rest[2];
		bool		plain = true;
		int			cmp;

		choose_letters(&strings);
		for (int s = 0; s < 2; s++)
		{
			write_plain(&strings, string[s]);
			plain &= gpusort_plain_string_encode(strings.weights, limits[i % 2],
												 (unsigned char *) string[s],
												 strlen(string[s]), bytes[s], &rest[s]);
		}
		cmp = memcmp(bytes[0], bytes[1], STRING_BYTES);
		if (cmp == 0)
			cmp = (rest[0] > rest[1]) - (rest[0] < rest[1]);
		wrong += plain && sign(cmp) != sign(strcoll_l(string[0], string[1], locale));
	}
	freelocale(locale);
	PG_RETURN_INT32(wrong);
}
