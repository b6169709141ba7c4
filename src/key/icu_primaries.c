/*-------------------------------------------------------------------------
 *
 * icu_primaries.c
 *		The primary weights of ICU, for strings of common characters.
 *
 * Making a sort key takes ICU some hundred nanoseconds.  Most strings that are sorted
 * consist of ASCII and of letters of Latin-1.  We put their primary weights together from a
 * table.
 *
 * A character's primary weight has up to four bytes, the first of which stands for a group
 * of characters such as the Latin letters.  ICU writes that lead byte only once for
 * neighbouring characters of one group, if the group is compressible, and marks the end of
 * such a stretch by a byte that sorts before or behind all lead bytes.
 *
 * A character gets into the table only if ICU's sort keys of all pairs with it are as we
 * would write them, see check_pairs().
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "key/icu_library.h"
#include "key/icu_primaries.h"

/* ASCII, and the letters from U+00C0 on, whose first of two bytes in UTF-8 is LETTERS_BYTE. */
#define CHARACTERS		256
#define FIRST_LETTER	0xC0
#define LETTERS_BYTE	0xC3

/*
 * Marks that can change the letter before them, by putting marks into another order, begin at
 * U+0300.  Their first byte in UTF-8 is at least this one.
 */
#define FIRST_MARK_BYTE	0xCC

/* Bytes that end a stretch of one group. */
#define LOWER_GROUP		3		/* a lower lead byte follows */
#define HIGHER_GROUP	0xFF

/* Bytes of a weight: those of two characters that are sorted as one, as "ss", included. */
#define MOST_BYTES		8

/* Room for the weights of two characters. */
#define PAIR_BYTES		64

/*
 * The weight of a character that is not the start of a contraction, or of one that is
 * unless a character that goes on with one follows.
 */
typedef struct GsPrimary
{
	uint8		lead;			/* 0: not in the table */
	uint8		length;			/* of the other bytes */
	bool		compressible;	/* is a repeated lead byte left out? */
	bool		starts;			/* is it the first of a contraction? */
	bool		continues;		/* is it another one of a contraction? */
	unsigned char bytes[MOST_BYTES];
} GsPrimary;

struct GsIcuPrimaries
{
	GsPrimary	characters[CHARACTERS];
};

bool		gpusort_icu_primaries_spoil = false;

/*
 * Returns the weight of the character at *string and moves on to the next one, or returns
 * NULL if the table does not have it.
 */
static inline const GsPrimary *
read_character(const GsIcuPrimaries *primaries, const unsigned char **string,
			   const unsigned char *end)
{
	const GsPrimary *primary;

	if (**string < 0x80)
		primary = &primaries->characters[*(*string)++];
	else if (**string == LETTERS_BYTE && end - *string > 1)
	{
		primary = &primaries->characters[FIRST_LETTER | ((*string)[1] & 0x3F)];
		*string += 2;
	}
	else
		return NULL;
	return primary->lead != 0 ? primary : NULL;
}

/* May the rest of a string make another weight of the character before it? */
static inline bool
may_continue(const GsIcuPrimaries *primaries, const unsigned char *string,
			 const unsigned char *end)
{
	const GsPrimary *next;

	if (string == end)
		return false;
	next = read_character(primaries, &string, end);
	return next == NULL || next->continues;
}

int
gpusort_icu_primaries_key(const GsIcuPrimaries *primaries, const unsigned char *string,
						  Size length, unsigned char *key, int count)
{
	const unsigned char *end = string + length;
	unsigned char lead = 0;		/* of the stretch, or 0 */
	int			written = 0;

	while (string < end && written < count)
	{
		const GsPrimary *primary = read_character(primaries, &string, end);

		if (primary == NULL ||
			(primary->starts && may_continue(primaries, string, end)))
			return -1;
		if (primary->lead != lead)
		{
			if (lead != 0)
				key[written++] = primary->lead < lead ? LOWER_GROUP : HIGHER_GROUP;
			if (written < count)
				key[written++] = primary->lead;
			lead = primary->compressible ? primary->lead : 0;
		}
		for (int i = 0; i < primary->length && written < count; i++)
			key[written++] = primary->bytes[i];
	}
	if (string < end && *string >= FIRST_MARK_BYTE)
		return -1;
	return written;
}

/* ----------------------------------------------------------------
 *		making a table
 * ----------------------------------------------------------------
 */

/* Append a character in UTF-8.  Returns the end of the string. */
static unsigned char *
write_character(unsigned char *string, unsigned character)
{
	if (character >= FIRST_LETTER)
	{
		*string++ = LETTERS_BYTE;
		character = 0x80 | (character & 0x3F);
	}
	*string++ = character;
	return string;
}

static void
add_character(GsIcuPrimaries *primaries, const void *collator, unsigned character)
{
	GsPrimary  *primary = &primaries->characters[character];
	unsigned char string[2];
	unsigned char key[PAIR_BYTES];
	unsigned char *end = write_character(string, character);
	int			bytes = gpusort_icu_library_primaries(collator, string, end - string,
													  key, PAIR_BYTES);

	if (bytes == 0 || bytes > 1 + MOST_BYTES)
		return;
	primary->lead = key[0];
	primary->length = bytes - 1;
	memcpy(primary->bytes, key + 1, bytes - 1);
}

/* Note that characters are parts of a contraction. */
static void
mark_contraction(const uint16 *string, int length, void *argument)
{
	GsIcuPrimaries *primaries = argument;

	for (int i = 0; i < length && length > 1; i++)
	{
		if (string[i] >= CHARACTERS)
			continue;
		if (i == 0)
			primaries->characters[string[i]].starts = true;
		else
			primaries->characters[string[i]].continues = true;
	}
}

/*
 * Find out which lead bytes are compressible, by characters that are repeated and are no
 * contraction with themselves.
 */
static void
find_compressible(GsIcuPrimaries *primaries, const void *collator)
{
	bool		compressible[256] = {false};

	for (unsigned c = 0; c < CHARACTERS; c++)
	{
		const GsPrimary *primary = &primaries->characters[c];
		unsigned char string[4];
		unsigned char key[PAIR_BYTES];
		unsigned char *end;

		if (primary->lead == 0 || (primary->starts && primary->continues))
			continue;
		end = write_character(write_character(string, c), c);
		if (gpusort_icu_library_primaries(collator, string, end - string, key, PAIR_BYTES) <
			2 * (1 + primary->length))
			compressible[primary->lead] = true;
	}
	for (unsigned c = 0; c < CHARACTERS; c++)
		primaries->characters[c].compressible = compressible[primaries->characters[c].lead];
}

/* Do we write the primary weights of a pair as ICU does, if we write them at all? */
static bool
is_right_pair(const GsIcuPrimaries *primaries, const void *collator, unsigned first,
			  unsigned second)
{
	const GsPrimary *primary = &primaries->characters[first];
	const GsPrimary *next = &primaries->characters[second];
	unsigned char string[4];
	unsigned char ours[PAIR_BYTES];
	unsigned char icus[PAIR_BYTES];
	unsigned char *end = write_character(write_character(string, first), second);
	int			bytes;

	if (primary->lead == 0 || next->lead == 0 || (primary->starts && next->continues))
		return true;
	bytes = gpusort_icu_library_primaries(collator, string, end - string, icus, PAIR_BYTES);
	return gpusort_icu_primaries_key(primaries, string, end - string, ours,
									 PAIR_BYTES) == bytes &&
		memcmp(ours, icus, bytes) == 0;
}

/*
 * Remove characters until all pairs are written as by ICU, those first that have the most
 * wrong pairs.  Then all strings are right, because what we write for a character depends only
 * on the one before it, and so does what ICU writes, unless they are parts of a contraction.
 */
static void
check_pairs(GsIcuPrimaries *primaries, const void *collator)
{
	bool		(*wrong)[CHARACTERS] = palloc0(CHARACTERS * sizeof(*wrong));
	int			count[CHARACTERS] = {0};

	for (unsigned first = 0; first < CHARACTERS; first++)
	{
		CHECK_FOR_INTERRUPTS();
		for (unsigned second = 0; second < CHARACTERS; second++)
		{
			wrong[first][second] = !is_right_pair(primaries, collator, first, second);
			count[first] += wrong[first][second];
			count[second] += wrong[first][second];
		}
	}
	for (;;)
	{
		unsigned	worst = 0;

		for (unsigned c = 1; c < CHARACTERS; c++)
			if (count[c] > count[worst])
				worst = c;
		if (count[worst] == 0)
			break;
		primaries->characters[worst].lead = 0;
		for (unsigned c = 0; c < CHARACTERS; c++)
			count[c] -= wrong[worst][c] + wrong[c][worst];
		for (unsigned c = 0; c < CHARACTERS; c++)
			wrong[worst][c] = wrong[c][worst] = false;
		count[worst] = 0;
	}
	pfree(wrong);
}

GsIcuPrimaries *
gpusort_icu_primaries_create(const void *collator)
{
	GsIcuPrimaries *primaries = palloc0(sizeof(GsIcuPrimaries));
	GsIcuPrimaries *kept = NULL;

	for (unsigned c = ' '; c < 0x7F; c++)
		add_character(primaries, collator, c);
	for (unsigned c = FIRST_LETTER; c < CHARACTERS; c++)
		add_character(primaries, collator, c);
	if (gpusort_icu_library_contractions(collator, mark_contraction, primaries))
	{
		find_compressible(primaries, collator);
		if (gpusort_icu_primaries_spoil)
			primaries->characters['e'].lead++;
		check_pairs(primaries, collator);
		kept = MemoryContextAlloc(TopMemoryContext, sizeof(GsIcuPrimaries));
		memcpy(kept, primaries, sizeof(GsIcuPrimaries));
	}
	pfree(primaries);
	return kept;
}

int
gpusort_icu_primaries_count(const GsIcuPrimaries *primaries)
{
	int			count = 0;

	for (unsigned c = 0; c < CHARACTERS; c++)
		count += primaries->characters[c].lead != 0;
	return count;
}
