/*-------------------------------------------------------------------------
 *
 * locale_weights.c
 *		Turns strings into bytes with the order of a locale of the GNU C library.
 *
 * strcoll() divides a string into sequences of characters, and looks up the weights of each in
 * the locale's tables (locale_tables.c).  On the first level it compares the weights of all
 * sequences as one string of bytes, whatever their other levels are.  We read the same tables,
 * and write shorter bytes in the same order.  The weights of a locale are made when it is first
 * asked for, and a sample of strings is compared with what strxfrm_l() and strcoll_l() say.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <errno.h>

#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include "key/locale_weights.h"
#include "key/string_bytes.h"
#include "work.h"

bool		gpusort_locale_weights_spoil = false;

#define FIRST_NOT_ASCII	0x80

/* Bytes of strings to compare between two checks for interrupts. */
#define BLOCK_BYTES		((Size) 256 * 1024)

/* Strings that are compared with strcoll_l(). */
#define CHECKED_STRINGS		256
#define CHECKED_LENGTH		7

/* Sequences with the same first byte that are checked. */
#define CHECKED_SEQUENCES	16

typedef struct GsLocale
{
	struct GsLocale *next;
	bool		prepared;		/* false after an error */
	bool		usable;
	GsLocaleWeights weights;
	GsRecentCharacter recent[GPUSORT_RECENT_CHARACTERS];
	GsPlainTable plain;
	char		name[FLEXIBLE_ARRAY_MEMBER];
} GsLocale;

/* All locales that were asked for. */
static GsLocale *locales = NULL;

/* ----------------------------------------------------------------
 *		the alphabet
 * ----------------------------------------------------------------
 */

/* Returns how many weights of the alphabet are less than a weight. */
static int
rank_weight(const GsWeightAlphabet *alphabet, uint64 weight)
{
	int			low = 0;
	int			high = alphabet->size;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (alphabet->weights[middle] < weight)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Write the bytes for 'length' bytes of well-formed weights.  Returns their number, which is
 * at most twice as large.
 */
static unsigned
write_weights(const GsWeightAlphabet *alphabet, const unsigned char *weights,
			  Size length, unsigned char *bytes)
{
	unsigned	count = 0;

	while (length > 0)
	{
		uint64		weight = 0;
		Size		n = gpusort_locale_tables_weight(weights, length, &weight);
		int			rank = rank_weight(alphabet, weight);

		if (rank < alphabet->size && alphabet->weights[rank] == weight)
			bytes[count++] = 2 * rank + 2;
		else
		{
			bytes[count++] = 2 * rank + 1;
			memcpy(bytes + count, weights, n);
			count += n;
		}
		weights += n;
		length -= n;
	}
	return count;
}

static void
add_to_alphabet(GsWeightAlphabet *alphabet, const GsLocaleTables *tables,
				const unsigned char *character,
				Size length)
{
	const unsigned char *next = character;
	const unsigned char *end = character + length;
	bool		alone;
	Size		n;

	while (next < end)
	{
		int32		position = gpusort_locale_tables_next(tables, &next, end, length, &alone);
		const unsigned char *weights = gpusort_locale_tables_level(tables, position, &length);

		for (; length > 0; weights += n, length -= n)
		{
			uint64		weight = 0;
			int			rank;

			n = gpusort_locale_tables_weight(weights, length, &weight);
			rank = rank_weight(alphabet, weight);
			if (alphabet->size == GPUSORT_ALPHABET_SIZE ||
				(rank < alphabet->size && alphabet->weights[rank] == weight))
				continue;
			memmove(alphabet->weights + rank + 1, alphabet->weights + rank,
					(alphabet->size - rank) * sizeof(uint64));
			alphabet->weights[rank] = weight;
			alphabet->size++;
		}
	}
}

/* Append a character of UTF-8, or of an encoding with one byte for each. */
static void
append_character(StringInfo string, pg_wchar code)
{
	unsigned char bytes[MAX_MULTIBYTE_CHAR_LEN];

	if (GetDatabaseEncoding() != PG_UTF8)
	{
		if (code < 256)
			appendStringInfoChar(string, (char) code);
		return;
	}
	unicode_to_utf8(code, bytes);
	appendBinaryStringInfo(string, (char *) bytes, pg_utf_mblen(bytes));
}

/*
 * Append the most common characters, from whose weights alphabets are chosen: ASCII, the
 * letters of Latin-1, and those of the Cyrillic, Greek, Hebrew and Arabic scripts.
 */
static void
append_common_characters(StringInfo string)
{
	static const pg_wchar ranges[][2] = {
		{0x01, 0x7F}, {0xC0, 0xFF}, {0x430, 0x45F}, {0x3B1, 0x3C9},
		{0x5D0, 0x5EA}, {0x621, 0x64A}
	};

	for (int r = 0; r < lengthof(ranges); r++)
		for (pg_wchar code = ranges[r][0]; code <= ranges[r][1]; code++)
			append_character(string, code);
}

/* Choose the weights of an empty alphabet. */
static void
make_alphabet(GsWeightAlphabet *alphabet, const GsLocaleTables *tables)
{
	StringInfoData characters;
	int			length;

	initStringInfo(&characters);
	append_common_characters(&characters);
	for (int i = 0; i < characters.len; i += length)
	{
		length = gpusort_locale_tables_character((unsigned char *) characters.data + i);
		add_to_alphabet(alphabet, tables, (unsigned char *) characters.data + i, length);
	}
	pfree(characters.data);
}

/* ----------------------------------------------------------------
 *		bytes of weights
 * ----------------------------------------------------------------
 */

/* Returns the place for a character of several bytes among the recent ones. */
static inline GsRecentCharacter *
recent_character(const GsLocaleWeights *weights, const unsigned char *string,
				 Size length, uint32 *character)
{
	uint32		bytes = 0;

	for (Size i = 0; i < length; i++)
		bytes = bytes << 8 | string[i];
	*character = bytes;
	return &weights->recent[(bytes ^ bytes >> 8 ^ bytes >> 16) % GPUSORT_RECENT_CHARACTERS];
}

/* Write the bytes of the next sequence.  Returns their number. */
static unsigned
write_sequence(const GsLocaleWeights *weights, const unsigned char **next,
			   const unsigned char *end, unsigned char *bytes)
{
	Size		character_bytes = Min(gpusort_locale_tables_character(*next), end - *next);
	GsRecentCharacter *recent = NULL;
	uint32		character;
	bool		alone;
	int32		position;
	const unsigned char *level;
	Size		length;
	unsigned	count;

	if (character_bytes > 1)
	{
		recent = recent_character(weights, *next, character_bytes, &character);
		if (recent->character == character)
		{
			*next += character_bytes;
			memcpy(bytes, recent->bytes, recent->count);
			return recent->count;
		}
	}
	position = gpusort_locale_tables_next(&weights->tables, next, end, character_bytes, &alone);
	level = gpusort_locale_tables_level(&weights->tables, position, &length);
	count = write_weights(&weights->alphabet, level, length, bytes);
	if (recent != NULL && alone && count <= GPUSORT_RECENT_BYTES)
	{
		recent->character = character;
		recent->count = count;
		memcpy(recent->bytes, bytes, count);
	}
	return count;
}

unsigned char
gpusort_weight_reader_sequence(GsWeightReader *reader)
{
	while (reader->next < reader->end && *reader->next != '\0')
	{
		unsigned	count = write_sequence(reader->weights,
										   &reader->next, reader->end,
										   reader->bytes);

		if (count > 0)
		{
			reader->count = count;
			reader->waiting = count - 1;
			return reader->bytes[0];
		}
		if ((reader->end - reader->next) % BLOCK_BYTES == 0)
			CHECK_FOR_INTERRUPTS();
	}
	reader->next = reader->end;
	return 0;
}

/*
 * Returns the byte for a character of ASCII, given what follows it, or 0 if it is not that simple.
 */
static inline unsigned char
simple_byte(const GsLocaleWeights *weights, const unsigned char *string,
			const unsigned char *end)
{
	unsigned char byte = weights->alone[*string];

	if (*string >= FIRST_NOT_ASCII)
		return 0;
	if (byte == 0 && (string + 1 == end || string[1] < FIRST_NOT_ASCII))
		byte = weights->before_ascii[*string];
	return byte;
}

/*
 * Strings have 'same' characters of ASCII in common, each of which is simple if ASCII follows
 * it.  Returns how many of them are so in this string, where something else may follow the
 * last one and form a contraction with it.  All strings must be asked.
 */
static inline Size
same_simple(Size same, const unsigned char *string, Size length)
{
	return same > 0 && same < length && string[same] >= FIRST_NOT_ASCII ? same - 1 : same;
}

Size
gpusort_weight_memo_begin(GsWeightMemo *memo, GsWeightReader *reader,
						  const GsLocaleWeights *weights,
						  const unsigned char *string, Size length,
						  Size start, Size count, Size *skipped)
{
	const unsigned char *end = string + length;
	Size		known = Min(length, GPUSORT_MEMO_LENGTH);
	Size		at = gpusort_common_bytes(string, memo->string, Min(known, memo->length));
	Size		bytes;
	Size		written;

	at = same_simple(at, string, length);
	if (memo->start != start)
		while (memo->counts[at] > start)
			at--;
	bytes = memo->counts[at];
	written = bytes - Min(bytes, start);
	while (at < known && written <= count)
	{
		unsigned char byte = simple_byte(weights, string + at, end);

		if (byte == 0)
			break;
		memo->string[at] = string[at];
		at++;
		if (byte != GPUSORT_NO_WEIGHT && bytes++ >= start)
			memo->bytes[written++] = byte;
		memo->counts[at] = bytes;
	}
	memo->start = start;
	memo->length = at;
	*skipped = Min(bytes, start);
	gpusort_weight_reader_begin(reader, weights, string + at, length - at);
	return Min(written, count + 1);
}

/* Returns how many of the first 'count' bytes are ASCII but not 0, up to one that is not so. */
static inline Size
count_ascii(const unsigned char *string, Size count)
{
	Size		i = 0;

	for (; i + sizeof(uint64) <= count; i += sizeof(uint64))
	{
		uint64		word;

		memcpy(&word, string + i, sizeof(word));
		if (((word | (word - UINT64CONST(0x0101010101010101))) &
			 UINT64CONST(0x8080808080808080)) != 0)
			break;
	}
	while (i < count && string[i] != '\0' && string[i] < FIRST_NOT_ASCII)
		i++;
	return i;
}

/* Returns how many characters two strings have in common, all of which have simple bytes. */
static Size
count_same(const GsLocaleWeights *weights, const unsigned char *a, Size a_length,
		   const unsigned char *b, Size b_length)
{
	Size		same = gpusort_common_bytes(a, b, Min(Min(a_length, b_length), BLOCK_BYTES));

	if (weights->ascii_is_simple)
		same = count_ascii(a, same);
	else
		for (Size i = 0; i < same; i++)
			if (simple_byte(weights, a + i, a + a_length) == 0)
				same = i;
	same = same_simple(same, a, a_length);
	return same_simple(same, b, b_length);
}

int
gpusort_locale_weights_compare(const GsLocaleWeights *weights,
							   const unsigned char *a, Size a_length,
							   const unsigned char *b, Size b_length)
{
	GsWeightReader a_reader;
	GsWeightReader b_reader;
	unsigned char a_byte;
	unsigned char b_byte;
	Size		bytes = 0;
	Size		same = count_same(weights, a, a_length, b, b_length);

	gpusort_weight_reader_begin(&a_reader, weights, a + same, a_length - same);
	gpusort_weight_reader_begin(&b_reader, weights, b + same, b_length - same);
	do
	{
		a_byte = gpusort_weight_reader_next(&a_reader);
		b_byte = gpusort_weight_reader_next(&b_reader);
		if (++bytes % BLOCK_BYTES == 0)
		{
			gpusort_work_add(BLOCK_BYTES);
			CHECK_FOR_INTERRUPTS();
		}
	} while (a_byte == b_byte && a_byte != 0);
	return (int) a_byte - (int) b_byte;
}

/* ----------------------------------------------------------------
 *		making weights
 * ----------------------------------------------------------------
 */

/* Do all longer sequences with this first byte go on with a byte from 0x80 on? */
static bool
goes_on_behind_ascii(const GsLocaleWeights *weights, unsigned char first)
{
	const unsigned char *entry = weights->tables.sequences - weights->tables.starts[first];

	for (;;)
	{
		GsSequence	sequence = gpusort_locale_tables_read(entry);

		if (sequence.length == 0)
			return true;
		if (sequence.first[0] < 0x80)
			return false;
		entry = sequence.next;
	}
}

/* Find the bytes of characters that have one byte, and at most one for their weights. */
static void
find_single_bytes(GsLocaleWeights *weights)
{
	for (int first = 1; first < 256; first++)
	{
		unsigned char byte = first;
		const unsigned char *next = &byte;
		unsigned char bytes[GPUSORT_MAX_SEQUENCE_BYTES];
		bool		in_list = weights->tables.starts[first] < 0;
		unsigned	count;

		if (in_list && !goes_on_behind_ascii(weights, first))
			continue;
		count = write_sequence(weights, &next, next + 1, bytes);
		if (count > 1)
			continue;
		if (count == 0)
			bytes[0] = GPUSORT_NO_WEIGHT;
		if (!in_list)
			weights->alone[first] = bytes[0];
		weights->before_ascii[first] = bytes[0];
	}
	weights->ascii_is_simple = true;
	for (int first = 1; first < FIRST_NOT_ASCII; first++)
		if (weights->before_ascii[first] == 0)
			weights->ascii_is_simple = false;
	if (gpusort_locale_weights_spoil)
	{
		unsigned char *alone = weights->alone;
		unsigned char byte = alone['m'];

		alone['m'] = alone['w'];
		alone['w'] = byte;
	}
}

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
	append_common_characters(string);
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
 * Does strxfrm_l() give a string the same weights?  Its result begins with those of the first
 * level, followed by the byte 1 if there are more levels.
 */
static bool
agrees_with_strxfrm(const GsLocale *locale, const char *string, Size length)
{
	Size		room = 24 * length + 1;
	unsigned char *transformed = palloc(room);
	unsigned char *expected = palloc(2 * room);
	unsigned char *found = palloc(2 * room);
	Size		size = strxfrm_l((char *) transformed, string, room, locale->weights.locale);
	Size		at = 0;
	Size		count = 0;
	Size		n = 1;
	bool		agrees = size < room;

	while (agrees && at < size && transformed[at] != 1 && n > 0)
	{
		uint64		weight;

		n = gpusort_locale_tables_weight(transformed + at, size - at, &weight);
		count += write_weights(&locale->weights.alphabet,
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
		expected = strcoll_l(pieces[0], pieces[1], locale->weights.locale);
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

/* Prepare a locale for use, for the first time or after an error. */
static void
prepare(GsLocale *locale)
{
	GsLocaleWeights *weights = &locale->weights;
	locale_t	known = weights->locale;

	memset(weights, 0, sizeof(*weights));
	memset(locale->recent, 0, sizeof(locale->recent));
	errno = 0;
	weights->locale = known != (locale_t) 0 ? known :
		newlocale(LC_COLLATE_MASK, locale->name, (locale_t) 0);
	if (weights->locale == (locale_t) 0)
	{
		/* If memory were lacking in one process, its keys would be others. */
		if (errno == ENOMEM)
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory")));
		return;
	}
	weights->recent = locale->recent;
	weights->plain = &locale->plain;
	if (!gpusort_locale_tables_find(&weights->tables, weights->locale))
		return;
	make_alphabet(&weights->alphabet, &weights->tables);
	find_single_bytes(weights);
	locale->usable = agrees_with_library(locale);
	if (!locale->usable)
		ereport(LOG,
				(errmsg("pg_gpusort does not sort by the locale \"%s\", because the C library compares strings in an unknown way",
						locale->name)));
}

const GsLocaleWeights *
gpusort_locale_weights_get(const char *name)
{
	GsLocale   *locale = locales;

	while (locale != NULL && strcmp(locale->name, name) != 0)
		locale = locale->next;
	if (locale == NULL)
	{
		locale = MemoryContextAllocZero(TopMemoryContext,
										offsetof(GsLocale, name) + strlen(name) + 1);
		strcpy(locale->name, name);
		locale->next = locales;
		locales = locale;
	}
	if (!locale->prepared)
		prepare(locale);
	locale->prepared = true;
	return locale->usable ? &locale->weights : NULL;
}
