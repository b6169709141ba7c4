/*-------------------------------------------------------------------------
 *
 * locales.c
 *		The locales of the GNU C library by which this process can sort.
 *
 * The weights of a locale are made when it is first asked for, and a sample of strings is
 * compared with what strxfrm_l() and strcoll_l() say.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <errno.h>

#include "utils/memutils.h"

#include "key/locale_weights.h"

#ifdef __GLIBC__

/* Strings that are compared with strcoll_l(). */
#define CHECKED_STRINGS		256
#define CHECKED_LENGTH		7

/* Sequences with the same first byte that are checked. */
#define CHECKED_SEQUENCES	16

typedef struct GsLocale
{
	struct GsLocale *next;
	locale_t	locale;			/* of the C library */
	bool		usable;
	GsLocaleWeights weights;
	GsRecentCharacter recent[GPUSORT_RECENT_CHARACTERS];
	char		name[FLEXIBLE_ARRAY_MEMBER];
} GsLocale;

/* All locales that were asked for. */
static GsLocale *locales = NULL;

/* ----------------------------------------------------------------
 *		checking weights
 * ----------------------------------------------------------------
 */

/* Append the first sequences that a locale has for a first byte. */
static void
append_sequences(const GsLocaleTables *tables, unsigned char first,
				 StringInfo string)
{
	const unsigned char *entry = tables->sequences - tables->starts[first];

	for (int i = 0; i < CHECKED_SEQUENCES; i++)
	{
		GsSequence	sequence = gpusort_locale_tables_read(entry);

		appendStringInfoChar(string, (char) first);
		appendBinaryStringInfo(string, (const char *) sequence.first,
							   sequence.length);
		if (sequence.length == 0)
			break;
		entry = sequence.next;
	}
}

/* Append all pairs of ASCII characters, the most common others, and sequences. */
static void
append_sample(const GsLocale *locale, StringInfo string)
{
	for (int a = ' '; a < 127; a++)
	{
		appendStringInfoChar(string, (char) a);
		for (int b = a + 1; b < 127; b++)
		{
			appendStringInfoChar(string, (char) a);
			appendStringInfoChar(string, (char) b);
		}
	}
	gpusort_weight_alphabet_sample(string);
	for (int first = 1; first < 256; first++)
		if (locale->weights.tables.starts[first] < 0)
			append_sequences(&locale->weights.tables, first, string);
}

/* Read all bytes of a string.  Returns their number, at most 'most'. */
static Size
read_all(const GsLocale *locale, const char *string, Size length,
		 unsigned char *bytes, Size most)
{
	GsWeightReader reader;
	Size		count = 0;

	gpusort_weight_reader_begin(&reader, &locale->weights,
								(const unsigned char *) string, length);
	while (count < most && (bytes[count] = gpusort_weight_reader_next(&reader)) != 0)
		count++;
	return count;
}

/*
 * Does strxfrm_l() give a string the same weights?  Its result has those of the first
 * level first, and the byte 1 behind them if there are more levels.
 */
static bool
agrees_with_strxfrm(const GsLocale *locale, const char *string, Size length)
{
	Size		room = 24 * length + 1;
	unsigned char *transformed = palloc(room);
	unsigned char *expected = palloc(2 * room);
	unsigned char *found = palloc(2 * room);
	Size		size = strxfrm_l((char *) transformed, string, room, locale->locale);
	Size		at = 0;
	Size		count = 0;
	Size		n = 1;
	bool		agrees = size < room;

	while (agrees && at < size && transformed[at] != 1 && n > 0)
	{
		uint64		weight;

		n = gpusort_locale_tables_weight(transformed + at, size - at, &weight);
		count += gpusort_weight_alphabet_write(&locale->weights.alphabet,
											   transformed + at, n, expected + count);
		at += n;
	}
	agrees = agrees && n > 0 &&
		read_all(locale, string, length, found, 2 * room) == count &&
		memcmp(expected, found, count) == 0;
	pfree(transformed);
	pfree(expected);
	pfree(found);
	return agrees;
}

/* Does strcoll_l() put pieces of a string into the same order? */
static bool
agrees_with_strcoll(const GsLocale *locale, const char *string, Size length)
{
	char		pieces[2][CHECKED_LENGTH + 1] = {{0}};

	for (int i = 0; i < CHECKED_STRINGS; i++)
	{
		int			cmp;
		int			expected;

		for (int p = 0; p < 2; p++)
			memcpy(pieces[p], string + (Size) (i * (p == 0 ? 131 : 977)) %
				   (length - CHECKED_LENGTH), CHECKED_LENGTH);
		cmp = gpusort_locale_weights_compare(&locale->weights,
											 (unsigned char *) pieces[0], CHECKED_LENGTH,
											 (unsigned char *) pieces[1], CHECKED_LENGTH);
		expected = strcoll_l(pieces[0], pieces[1], locale->locale);
		if (cmp != 0 && (cmp < 0 ? expected >= 0 : expected <= 0))
			return false;
	}
	return true;
}

static bool
agrees_with_library(const GsLocale *locale)
{
	StringInfoData sample;
	bool		agrees;

	initStringInfo(&sample);
	append_sample(locale, &sample);
	agrees = agrees_with_strxfrm(locale, sample.data, sample.len) &&
		agrees_with_strcoll(locale, sample.data, sample.len);
	pfree(sample.data);
	return agrees;
}

/* ----------------------------------------------------------------
 *		locales
 * ----------------------------------------------------------------
 */

/* Prepare a new locale for use. */
static pg_noinline void
prepare(GsLocale *locale)
{
	errno = 0;
	locale->locale = newlocale(LC_COLLATE_MASK, locale->name, (locale_t) 0);
	if (locale->locale == (locale_t) 0)
	{
		/* If memory were lacking in one process, its keys would be others. */
		if (errno == ENOMEM)
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory")));
		return;
	}
	locale->weights.recent = locale->recent;
	if (!gpusort_locale_weights_init(&locale->weights, locale->locale))
		return;
	locale->usable = agrees_with_library(locale);
	if (!locale->usable)
		ereport(LOG,
				(errmsg("pg_gpusort does not sort by the locale \"%s\", because the C library compares strings in an unknown way",
						locale->name)));
}

/* The same; frees the locale if there is an error. */
static pg_noinline void
prepare_or_free(GsLocale *locale)
{
	PG_TRY();
	{
		prepare(locale);
	}
	PG_CATCH();
	{
		if (locale->locale != (locale_t) 0)
			freelocale(locale->locale);
		pfree(locale);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

const GsLocaleWeights *
gpusort_locales_get(const char *name)
{
	GsLocale   *locale = locales;

	while (locale != NULL && strcmp(locale->name, name) != 0)
		locale = locale->next;
	if (locale == NULL)
	{
		locale = MemoryContextAllocZero(TopMemoryContext,
										offsetof(GsLocale, name) + strlen(name) + 1);
		strcpy(locale->name, name);
		prepare_or_free(locale);
		locale->next = locales;
		locales = locale;
	}
	return locale->usable ? &locale->weights : NULL;
}

#else

const GsLocaleWeights *
gpusort_locales_get(const char *name)
{
	return NULL;
}

#endif							/* __GLIBC__ */
