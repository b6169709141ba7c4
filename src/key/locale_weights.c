/*-------------------------------------------------------------------------
 *
 * locale_weights.c
 *		Turns strings into bytes with the order of a locale of the GNU C library.
 *
 * strcoll() divides a string into sequences of characters, of which the locale has a
 * table, and looks up the weights of each.  On the first level it compares the weights of
 * all sequences as one string of bytes, whatever their other levels are.  We read the same
 * tables, which nl_langinfo_l() gives, and write shorter bytes in the same order:
 *
 * Up to ALPHABET_SIZE weights, those of the most common characters, have an even byte of
 * their own, the lowest weight 2, the next one 4.  Any other weight has the odd byte for
 * its place among these, and behind that its own bytes.  Thus most characters take one
 * byte, where the C library needs three.
 *
 * Before tables are used, all of their entries are checked to be as we expect them, which
 * also makes sure that no later look-up leaves them, and a sample of strings is compared
 * with what strxfrm_l() and strcoll_l() say.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <errno.h>
#include <locale.h>
#ifdef __GLIBC__
#include <langinfo.h>
#endif

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "key/locale_weights.h"
#include "key/string_bytes.h"
#include "work.h"

bool		gpusort_locale_weights_spoil = false;

#ifdef __GLIBC__

#define ALPHABET_SIZE	126

/* A weight has at most this many bytes. */
#define MAX_WEIGHT_BYTES	6

/* The sequences of a range differ in at most this many bytes at their end. */
#define MAX_RANGE_BYTES	4

/* Characters of several bytes that have been looked up: a power of 2. */
#define RECENT_CHARACTERS	1024
#define RECENT_BYTES		11

#define FIRST_NOT_ASCII	0x80

/* Bytes of strings to compare between two checks for interrupts. */
#define BLOCK_BYTES		((Size) 256 * 1024)

/* Strings that are compared with strcoll_l() before weights are used. */
#define CHECKED_STRINGS		256
#define CHECKED_LENGTH		7

/* Sequences with the same first byte that are checked. */
#define CHECKED_SEQUENCES	16

/* A rule of the first level: weights are compared from the first to the last. */
#define RULE_FORWARD	1

/* The weights of a character of several bytes that starts no longer sequence. */
typedef struct GsRecentCharacter
{
	uint32		character;		/* its bytes; 0 if unused */
	uint8		count;
	unsigned char bytes[RECENT_BYTES];
} GsRecentCharacter;

typedef struct GsLocaleTables
{
	GsLocaleWeights weights;
	struct GsLocaleTables *next;
	bool		usable;

	/* Of the C library; see check_tables(). */
	locale_t	locale;
	uint32		nrules;			/* levels */
	const unsigned char *rules;
	Size		rules_bytes;
	const int32 *starts;		/* by the first byte of a sequence */
	const unsigned char *levels;
	Size		levels_bytes;
	const unsigned char *sequences;
	Size		sequences_bytes;
	const int32 *ranges;
	Size		nranges;

	int			alphabet_size;
	uint64		alphabet[ALPHABET_SIZE];	/* ascending */
	GsRecentCharacter recent[RECENT_CHARACTERS];
	char		name[FLEXIBLE_ARRAY_MEMBER];
} GsLocaleTables;

/* All locales that were asked for. */
static GsLocaleTables *locales = NULL;

/* ----------------------------------------------------------------
 *		the tables of the C library
 * ----------------------------------------------------------------
 *
 * 'starts' has for each first byte of a sequence the position of its weights in 'levels',
 * or, if longer sequences begin with it, the negated position of their list in
 * 'sequences'.  An entry of a list has a position, the number n of bytes that follow the
 * first one, and these bytes; the next one is aligned like an int32.  If its position is
 * negative, the entry is for all sequences between two ones of n more bytes each, and the
 * positions of their weights are in 'ranges', from there on.  The last entry has no more
 * bytes.  The first entry that matches counts.
 *
 * The high 8 bits of the position of weights are the number of its rules.  There 'levels'
 * has for each level the number of bytes of the weights and these bytes.
 */

/* A list entry. */
typedef struct GsSequence
{
	int32		position;
	Size		length;			/* of the bytes behind the first one */
	const unsigned char *first;
	const unsigned char *last;	/* of a range, otherwise the same as 'first' */
	const unsigned char *next;	/* entry */
} GsSequence;

static inline GsSequence
read_sequence(const unsigned char *entry)
{
	GsSequence	sequence;
	Size		bytes;

	memcpy(&sequence.position, entry, sizeof(int32));
	sequence.length = entry[sizeof(int32)];
	sequence.first = entry + sizeof(int32) + 1;
	sequence.last = sequence.first;
	bytes = 1 + sequence.length;
	if (sequence.position < 0)
	{
		sequence.last += sequence.length;
		bytes += sequence.length;
	}
	sequence.next = entry + sizeof(int32) + TYPEALIGN(sizeof(int32), bytes);
	return sequence;
}

/* Returns the number of a string of bytes within a range. */
static inline Size
offset_in_range(const GsSequence *sequence, const unsigned char *string)
{
	Size		offset = 0;
	Size		i = 0;

	while (i < sequence->length && string[i] == sequence->first[i])
		i++;
	for (; i < sequence->length; i++)
		offset = (offset << 8) + string[i] - sequence->first[i];
	return offset;
}

/*
 * Read the sequence at *next, and advance it.  Returns the position of its weights.  Sets
 * *alone to whether it is one character of so many bytes, and would be so whatever follows
 * this.
 */
static int32
find_sequence(const GsLocaleTables *tables, const unsigned char **next,
			  const unsigned char *end, Size character_bytes, bool *alone)
{
	int32		start = tables->starts[**next];
	const unsigned char *string = *next + 1;
	Size		left = end - string;
	const unsigned char *entry;

	*next = string;
	*alone = character_bytes == 1;
	if (start >= 0)
		return start;
	*alone = true;
	entry = tables->sequences - start;
	for (;;)
	{
		GsSequence	sequence = read_sequence(entry);
		Size		bytes = sequence.length + 1;

		/* Next time, a longer one may match that begins alike. */
		if (bytes > character_bytes &&
			memcmp(string, sequence.first, character_bytes - 1) >= 0 &&
			memcmp(string, sequence.last, character_bytes - 1) <= 0)
			*alone = false;
		if (sequence.length <= left &&
			memcmp(string, sequence.first, sequence.length) >= 0 &&
			memcmp(string, sequence.last, sequence.length) <= 0)
		{
			*next += sequence.length;
			*alone = *alone && bytes == character_bytes;
			if (sequence.position >= 0)
				return sequence.position;
			return tables->ranges[-sequence.position +
								  offset_in_range(&sequence, string)];
		}
		entry = sequence.next;
	}
}

/* Returns the number of bytes of a character of the database's encoding, or 1. */
static inline Size
character_length(const unsigned char *character)
{
	return GetDatabaseEncoding() == PG_UTF8 ? pg_utf_mblen(character) : 1;
}

/* The bytes of the weights of the first level at a position. */
static inline const unsigned char *
first_level(const GsLocaleTables *tables, int32 position, Size *length)
{
	const unsigned char *level = tables->levels + (position & 0xFFFFFF);

	*length = level[0];
	return level + 1;
}

/*
 * Returns the length of the first of some weights, or 0 if it is not well-formed: no
 * weight must be the beginning of another one.  Sets *weight to a number with the order of
 * its bytes.
 */
static inline Size
read_weight(const unsigned char *bytes, Size length, uint64 *weight)
{
	static const unsigned char leads[MAX_WEIGHT_BYTES] =
	{0x00, 0xC0, 0xE0, 0xF0, 0xF8, 0xFC};
	Size		n = 0;

	if (length == 0 || bytes[0] < 2 || bytes[0] >= 0xFE ||
		(bytes[0] >= 0x80 && bytes[0] < 0xC0))
		return 0;
	while (n < MAX_WEIGHT_BYTES && bytes[0] >= leads[n])
		n++;
	if (n > 1 && bytes[0] < 0x80)
		n = 1;
	if (n > length)
		return 0;
	*weight = 0;
	for (Size i = 0; i < n; i++)
	{
		if (i > 0 && (bytes[i] & 0xC0) != 0x80)
			return 0;
		*weight |= (uint64) bytes[i] << (8 * (MAX_WEIGHT_BYTES - 1 - i));
	}
	return n;
}

/* ----------------------------------------------------------------
 *		bytes of weights
 * ----------------------------------------------------------------
 */

/* Returns how many weights of the alphabet are less than a weight. */
static int
rank_weight(const GsLocaleTables *tables, uint64 weight)
{
	int			low = 0;
	int			high = tables->alphabet_size;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (tables->alphabet[middle] < weight)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Write the bytes for well-formed weights.  Returns their number. */
static unsigned
write_weights(const GsLocaleTables *tables, const unsigned char *weights,
			  Size length, unsigned char *bytes)
{
	unsigned	count = 0;

	while (length > 0)
	{
		uint64		weight = 0;
		Size		n = read_weight(weights, length, &weight);
		int			rank = rank_weight(tables, weight);

		if (rank < tables->alphabet_size && tables->alphabet[rank] == weight)
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

/* Returns the place for a character of several bytes among the recent ones. */
static inline GsRecentCharacter *
recent_character(GsLocaleTables *tables, const unsigned char *string,
				 Size length, uint32 *character)
{
	uint32		bytes = 0;

	for (Size i = 0; i < length; i++)
		bytes = bytes << 8 | string[i];
	*character = bytes;
	return &tables->recent[(bytes ^ bytes >> 8 ^ bytes >> 16) % RECENT_CHARACTERS];
}

/* Write the bytes of the next sequence.  Returns their number. */
static unsigned
write_sequence(GsLocaleTables *tables, const unsigned char **next,
			   const unsigned char *end, unsigned char *bytes)
{
	Size		character_bytes = Min(character_length(*next), end - *next);
	GsRecentCharacter *recent = NULL;
	uint32		character;
	bool		alone;
	const unsigned char *weights;
	Size		length;
	unsigned	count;

	if (character_bytes > 1)
	{
		recent = recent_character(tables, *next, character_bytes, &character);
		if (recent->character == character)
		{
			*next += character_bytes;
			memcpy(bytes, recent->bytes, recent->count);
			return recent->count;
		}
	}
	weights = first_level(tables, find_sequence(tables, next, end,
												character_bytes, &alone),
						  &length);
	count = write_weights(tables, weights, length, bytes);
	if (recent != NULL && alone && count <= RECENT_BYTES)
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
	while (reader->next < reader->end)
	{
		unsigned	count = write_sequence(reader->weights->tables,
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
 * Strings have 'same' characters in common, which are simple in one of them.  Returns how many
 * of them are so in both: what follows the last one may make a difference.
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

/* Returns how many of the first 'count' bytes are ASCII, up to the first one that is not. */
static inline Size
count_ascii(const unsigned char *string, Size count)
{
	Size		i = 0;

	for (; i + sizeof(uint64) <= count; i += sizeof(uint64))
	{
		uint64		word;

		memcpy(&word, string + i, sizeof(word));
		if ((word & UINT64CONST(0x8080808080808080)) != 0)
			break;
	}
	while (i < count && string[i] < FIRST_NOT_ASCII)
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
 *		checking the tables
 * ----------------------------------------------------------------
 */

/* Are there weights at a position, all of which are compared forward? */
static bool
check_position(const GsLocaleTables *tables, int32 position)
{
	Size		rule = (Size) (position >> 24) * tables->nrules;
	Size		at = position & 0xFFFFFF;
	const unsigned char *weights;
	Size		length;

	if (position < 0 || rule >= tables->rules_bytes ||
		tables->rules[rule] != RULE_FORWARD || at >= tables->levels_bytes)
		return false;
	weights = first_level(tables, position, &length);
	if (length > tables->levels_bytes - at - 1)
		return false;
	while (length > 0)
	{
		uint64		weight;
		Size		n = read_weight(weights, length, &weight);

		if (n == 0)
			return false;
		weights += n;
		length -= n;
	}
	return true;
}

/* Check the positions of a range of sequences. */
static bool
check_range(const GsLocaleTables *tables, const GsSequence *sequence)
{
	Size		start = -(int64) sequence->position;
	Size		common = 0;
	Size		count;

	while (common < sequence->length &&
		   sequence->first[common] == sequence->last[common])
		common++;
	if (sequence->length - common > MAX_RANGE_BYTES ||
		memcmp(sequence->first, sequence->last, sequence->length) > 0)
		return false;
	count = offset_in_range(sequence, sequence->last) + 1;
	if (start > tables->nranges || count > tables->nranges - start)
		return false;
	for (Size i = 0; i < count; i++)
		if (!check_position(tables, tables->ranges[start + i]))
			return false;
	return true;
}

/* Check all sequences of a list. */
static bool
check_list(const GsLocaleTables *tables, int32 start)
{
	Size		at = -(int64) start;

	for (;;)
	{
		const unsigned char *entry = tables->sequences + at;
		GsSequence	sequence;

		if (at + sizeof(int32) >= tables->sequences_bytes)
			return false;
		sequence = read_sequence(entry);
		if (sequence.next > tables->sequences + tables->sequences_bytes ||
			(sequence.position >= 0 ? !check_position(tables, sequence.position) :
			 !check_range(tables, &sequence)))
			return false;
		if (sequence.length == 0)
			return true;
		at = sequence.next - tables->sequences;
	}
}

/*
 * Find the tables of a locale, and check that they are as described above.  They follow
 * each other in the locale's file, and so tell each other's sizes.
 */
static bool
find_tables(GsLocaleTables *tables)
{
	locale_t	locale = tables->locale;
	const char *rules = nl_langinfo_l(_NL_COLLATE_RULESETS, locale);
	const char *starts = nl_langinfo_l(_NL_COLLATE_TABLEMB, locale);
	const char *levels = nl_langinfo_l(_NL_COLLATE_WEIGHTMB, locale);
	const char *sequences = nl_langinfo_l(_NL_COLLATE_EXTRAMB, locale);
	const char *ranges = nl_langinfo_l(_NL_COLLATE_INDIRECTMB, locale);
	const char *end = nl_langinfo_l(_NL_COLLATE_TABLEWC, locale);

	tables->nrules = (uint32) (uintptr_t) nl_langinfo_l(_NL_COLLATE_NRULES, locale);
	if (tables->nrules == 0 || rules == NULL || starts <= rules ||
		levels - starts != 256 * (ptrdiff_t) sizeof(int32) ||
		sequences <= levels || ranges < sequences || end < ranges)
		return false;
	tables->rules = (const unsigned char *) rules;
	tables->rules_bytes = starts - rules;
	tables->starts = (const int32 *) starts;
	tables->levels = (const unsigned char *) levels;
	tables->levels_bytes = sequences - levels;
	tables->sequences = (const unsigned char *) sequences;
	tables->sequences_bytes = ranges - sequences;
	tables->ranges = (const int32 *) ranges;
	tables->nranges = (end - ranges) / sizeof(int32);
	for (int first = 1; first < 256; first++)
	{
		int32		start = tables->starts[first];

		if (start >= 0 ? !check_position(tables, start) :
			!check_list(tables, start))
			return false;
	}
	return true;
}

/* ----------------------------------------------------------------
 *		the alphabet
 * ----------------------------------------------------------------
 */

/* Add the weights of a character to the alphabet. */
static void
add_to_alphabet(GsLocaleTables *tables, const unsigned char *character,
				Size length)
{
	const unsigned char *next = character;
	const unsigned char *end = character + length;
	bool		alone;
	const unsigned char *weights;
	Size		n;

	while (next < end)
	{
		weights = first_level(tables, find_sequence(tables, &next, end, length,
													&alone), &length);
		for (; length > 0; weights += n, length -= n)
		{
			uint64		weight = 0;
			int			rank;

			n = read_weight(weights, length, &weight);
			rank = rank_weight(tables, weight);
			if (tables->alphabet_size == ALPHABET_SIZE ||
				(rank < tables->alphabet_size && tables->alphabet[rank] == weight))
				continue;
			memmove(tables->alphabet + rank + 1, tables->alphabet + rank,
					(tables->alphabet_size - rank) * sizeof(uint64));
			tables->alphabet[rank] = weight;
			tables->alphabet_size++;
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
 * Append the most common characters: ASCII, the letters of Latin-1, and those of the
 * Cyrillic, Greek, Hebrew and Arabic scripts.
 */
static void
append_characters(StringInfo string)
{
	static const pg_wchar ranges[][2] = {
		{0x01, 0x7F}, {0xC0, 0xFF}, {0x430, 0x45F}, {0x3B1, 0x3C9},
		{0x5D0, 0x5EA}, {0x621, 0x64A}
	};

	for (int r = 0; r < lengthof(ranges); r++)
		for (pg_wchar code = ranges[r][0]; code <= ranges[r][1]; code++)
			append_character(string, code);
}

/* Choose the alphabet, and find the bytes of characters of one byte. */
static void
make_alphabet(GsLocaleTables *tables)
{
	StringInfoData characters;
	int			length;

	initStringInfo(&characters);
	append_characters(&characters);
	for (int i = 0; i < characters.len; i += length)
	{
		length = character_length((unsigned char *) characters.data + i);
		add_to_alphabet(tables, (unsigned char *) characters.data + i, length);
	}
	pfree(characters.data);
}

/* Do all longer sequences with this first byte go on with a byte from 0x80 on? */
static bool
goes_on_behind_ascii(const GsLocaleTables *tables, unsigned char first)
{
	const unsigned char *entry = tables->sequences - tables->starts[first];

	for (;;)
	{
		GsSequence	sequence = read_sequence(entry);

		if (sequence.length == 0)
			return true;
		if (sequence.first[0] < 0x80)
			return false;
		entry = sequence.next;
	}
}

/* Find the bytes of characters that have one byte, and at most one for their weights. */
static void
find_single_bytes(GsLocaleTables *tables)
{
	for (int first = 1; first < 256; first++)
	{
		unsigned char byte = first;
		const unsigned char *next = &byte;
		unsigned char bytes[GPUSORT_MAX_SEQUENCE_BYTES];
		bool		in_list = tables->starts[first] < 0;
		unsigned	count;

		if (in_list && !goes_on_behind_ascii(tables, first))
			continue;
		count = write_sequence(tables, &next, next + 1, bytes);
		if (count > 1)
			continue;
		if (count == 0)
			bytes[0] = GPUSORT_NO_WEIGHT;
		if (!in_list)
			tables->weights.alone[first] = bytes[0];
		tables->weights.before_ascii[first] = bytes[0];
	}
	tables->weights.ascii_is_simple = true;
	for (int first = 1; first < FIRST_NOT_ASCII; first++)
		if (tables->weights.before_ascii[first] == 0)
			tables->weights.ascii_is_simple = false;
	if (gpusort_locale_weights_spoil)
	{
		unsigned char *alone = tables->weights.alone;
		unsigned char byte = alone['m'];

		alone['m'] = alone['w'];
		alone['w'] = byte;
	}
}

/* ----------------------------------------------------------------
 *		checking what comes of them
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
		GsSequence	sequence = read_sequence(entry);

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
append_sample(const GsLocaleTables *tables, StringInfo string)
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
	append_characters(string);
	for (int first = 1; first < 256; first++)
		if (tables->starts[first] < 0)
			append_sequences(tables, first, string);
}

/* Read all bytes of a string.  Returns their number, at most 'most'. */
static Size
read_all(const GsLocaleTables *tables, const char *string, Size length,
		 unsigned char *bytes, Size most)
{
	GsWeightReader reader;
	Size		count = 0;

	gpusort_weight_reader_begin(&reader, &tables->weights,
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
agrees_with_strxfrm(const GsLocaleTables *tables, const char *string, Size length)
{
	Size		room = 24 * length + 1;
	unsigned char *transformed = palloc(room);
	unsigned char *expected = palloc(2 * room);
	unsigned char *found = palloc(2 * room);
	Size		size = strxfrm_l((char *) transformed, string, room, tables->locale);
	Size		at = 0;
	Size		count = 0;
	Size		n = 1;
	bool		agrees = size < room;

	while (agrees && at < size && transformed[at] != 1 && n > 0)
	{
		uint64		weight;

		n = read_weight(transformed + at, size - at, &weight);
		count += write_weights(tables, transformed + at, n, expected + count);
		at += n;
	}
	agrees = agrees && n > 0 &&
		read_all(tables, string, length, found, 2 * room) == count &&
		memcmp(expected, found, count) == 0;
	pfree(transformed);
	pfree(expected);
	pfree(found);
	return agrees;
}

/* Does strcoll_l() put pieces of a string into the same order? */
static bool
agrees_with_strcoll(const GsLocaleTables *tables, const char *string, Size length)
{
	char		pieces[2][CHECKED_LENGTH + 1] = {{0}};

	for (int i = 0; i < CHECKED_STRINGS; i++)
	{
		int			cmp;
		int			expected;

		for (int p = 0; p < 2; p++)
			memcpy(pieces[p], string + (Size) (i * (p == 0 ? 131 : 977)) %
				   (length - CHECKED_LENGTH), CHECKED_LENGTH);
		cmp = gpusort_locale_weights_compare(&tables->weights,
											 (unsigned char *) pieces[0], CHECKED_LENGTH,
											 (unsigned char *) pieces[1], CHECKED_LENGTH);
		expected = strcoll_l(pieces[0], pieces[1], tables->locale);
		if (cmp != 0 && (cmp < 0 ? expected >= 0 : expected <= 0))
			return false;
	}
	return true;
}

static bool
agrees_with_library(const GsLocaleTables *tables)
{
	StringInfoData sample;
	bool		agrees;

	initStringInfo(&sample);
	append_sample(tables, &sample);
	agrees = agrees_with_strxfrm(tables, sample.data, sample.len) &&
		agrees_with_strcoll(tables, sample.data, sample.len);
	pfree(sample.data);
	return agrees;
}

/* ----------------------------------------------------------------
 *		locales
 * ----------------------------------------------------------------
 */

/* Prepare a new locale for use. */
static pg_noinline void
prepare(GsLocaleTables *tables)
{
	errno = 0;
	tables->locale = newlocale(LC_COLLATE_MASK, tables->name, (locale_t) 0);
	if (tables->locale == (locale_t) 0)
	{
		/* If memory were lacking in one process, its keys would be others. */
		if (errno == ENOMEM)
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory")));
		return;
	}
	if (!find_tables(tables))
		return;
	tables->weights.tables = tables;
	make_alphabet(tables);
	find_single_bytes(tables);
	tables->usable = agrees_with_library(tables);
	if (!tables->usable)
		ereport(LOG,
				(errmsg("pg_gpusort does not sort by the locale \"%s\", because the C library compares strings in an unknown way",
						tables->name)));
}

/* The same; frees the tables if there is an error. */
static pg_noinline void
prepare_or_free(GsLocaleTables *tables)
{
	PG_TRY();
	{
		prepare(tables);
	}
	PG_CATCH();
	{
		if (tables->locale != (locale_t) 0)
			freelocale(tables->locale);
		pfree(tables);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

const GsLocaleWeights *
gpusort_locale_weights_get(const char *locale)
{
	GsLocaleTables *tables = locales;

	while (tables != NULL && strcmp(tables->name, locale) != 0)
		tables = tables->next;
	if (tables == NULL)
	{
		tables = MemoryContextAllocZero(TopMemoryContext,
										offsetof(GsLocaleTables, name) +
										strlen(locale) + 1);
		strcpy(tables->name, locale);
		prepare_or_free(tables);
		tables->next = locales;
		locales = tables;
	}
	return tables->usable ? &tables->weights : NULL;
}

#else

unsigned char
gpusort_weight_reader_sequence(GsWeightReader *reader)
{
	pg_unreachable();
}

int
gpusort_locale_weights_compare(const GsLocaleWeights *weights,
							   const unsigned char *a, Size a_length,
							   const unsigned char *b, Size b_length)
{
	pg_unreachable();
}

const GsLocaleWeights *
gpusort_locale_weights_get(const char *locale)
{
	return NULL;
}

#endif							/* __GLIBC__ */
