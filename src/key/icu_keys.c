/*-------------------------------------------------------------------------
 *
 * icu_keys.c
 *		Turns strings into bytes with the order of a collation of ICU.
 *
 * ICU makes them in some hundred nanoseconds, together with a sort key.  If strings consist of
 * common characters, they come from a table instead.  A sort keeps those of other recent
 * strings, as long as enough strings come again.
 *
 * ICU's functions have its major version in their names, and its headers need not be where
 * this is built, so we look the functions up by name.  Their signatures are part of ICU's
 * stable interface for C since version 2.8.  Other libraries can bring other versions of ICU
 * into the process, so we take only one whose collations have the version that the server
 * reports of its own.  A collator is ICU's UCollator.  It lives as long as the process.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <dlfcn.h>

#include "catalog/pg_collation.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "key/type_words.h"
#include "work.h"

/* A table of primary weights is made after this number of strings, which take as long. */
static int	strings_before_table = 50000;

/*
 * Recent strings that are kept: their first number and their maximum, powers of 2, and the
 * bytes of a string and its key together.
 */
#define FIRST_RECENT	64
#define MAX_RECENT		16384
#define RECENT_BYTES	120

/*
 * After as many strings, of which less than that part was found, the next ones are not
 * looked for.
 */
#define OBSERVED_STRINGS	8192
#define LEAST_FOUND_DIVISOR	4
#define PASSED_STRINGS		(16 * OBSERVED_STRINGS)

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

typedef struct GsIcuPrimaries
{
	GsPrimary	characters[CHARACTERS];
} GsIcuPrimaries;

/* For the test of check_pairs(): spoil the weight of one character of new tables. */
static bool spoil_primaries = false;

typedef struct GsRecentString
{
	uint32		hash;
	uint8		length;			/* of the string; 0 if unused */
	uint8		key_length;
	bool		complete;		/* are these all bytes? */
	unsigned char bytes[RECENT_BYTES];	/* the string and the key */
} GsRecentString;

struct GsIcuRecent
{
	MemoryContext context;
	uint32		size;			/* of 'strings', a power of 2 */
	uint32		max_size;
	uint32		made;			/* keys that were not found since the last
								 * growth */
	GsRecentString *strings;	/* NULL until it is needed */
	int			observed;		/* strings that were looked for, or negative
								 * the number of those to pass */
	int			found;			/* among them */
};

struct GsIcuCollator
{
	struct GsIcuCollator *next;
	void	   *collator;		/* NULL if ICU cannot open it */
	int			strings;		/* number so far, before a table is made */
	bool		has_looked;		/* was it tried to make a table? */
	GsIcuPrimaries *primaries;	/* the table, or NULL */
	char		locale[FLEXIBLE_ARRAY_MEMBER];
};

/* ----------------------------------------------------------------
 *		the library
 * ----------------------------------------------------------------
 */

/* As in utils/pg_locale.h, which cannot be included without ICU's headers. */
extern char *get_collation_actual_version(char collprovider, const char *collcollate);

/* Versions of ICU that are looked for. */
#define FIRST_VERSION	50
#define LAST_VERSION	120

/* The locale whose version is compared with the server's.  All versions of ICU have it. */
#define VERSION_LOCALE	"en"

/* ICU's U_MAX_VERSION_LENGTH and U_MAX_VERSION_STRING_LENGTH. */
#define VERSION_BYTES	4
#define VERSION_STRING_BYTES	20

/* The byte that follows the weights of a level in a sort key. */
#define LEVEL_SEPARATOR	1

/* The longest contraction that is looked at, in units of UTF-16; they have up to ten. */
#define MOST_UNITS		256

/* ICU's UCharIterator has 112 bytes; callers allocate it, and only ICU looks into it. */
typedef union GsIcuIterator
{
	char		bytes[256];
	void	   *align;
} GsIcuIterator;

/* ICU's error codes: 0 and warnings, which are negative, are no errors. */
typedef int GsIcuError;

#define ICU_OUT_OF_MEMORY	7

typedef struct GsIcuFunctions
{
	void	   *(*open) (const char *locale, GsIcuError *error);
	void		(*close) (void *collator);
	void		(*version) (const void *collator, uint8 version[VERSION_BYTES]);
	void		(*version_text) (const uint8 version[VERSION_BYTES], char *text);
	int32		(*next_part) (const void *collator, GsIcuIterator *iterator,
							  uint32 state[2], uint8 *dest, int32 count,
							  GsIcuError *error);
	void		(*set_utf8) (GsIcuIterator *iterator, const char *string,
							 int32 length);
	void		(*contractions) (const void *collator, void *contractions,
								 void *expansions, int8 add_prefixes,
								 GsIcuError *error);
	void	   *(*set_open) (void);
	void		(*set_close) (void *set);
	int32		(*set_count) (const void *set);
	int32		(*set_item) (const void *set, int32 index, int32 *start, int32 *end,
							 uint16 *string, int32 units, GsIcuError *error);
} GsIcuFunctions;

static GsIcuFunctions functions;

/* The names of the functions in GsIcuFunctions, in order. */
static const char *const function_names[] = {
	"ucol_open", "ucol_close", "ucol_getVersion", "u_versionToString",
	"ucol_nextSortKeyPart", "uiter_setUTF8", "ucol_getContractionsAndExpansions",
	"uset_openEmpty", "uset_close", "uset_getItemCount", "uset_getItem"
};

StaticAssertDecl(sizeof(GsIcuFunctions) == lengthof(function_names) * sizeof(void *),
				 "every function has a name");

/*
 * Look the functions of a version up.  A version of 0 stands for names without a version.  Returns
 * false if one is missing.
 */
static bool
look_up(int version)
{
	char		symbol[NAMEDATALEN];

	for (int i = 0; i < lengthof(function_names); i++)
	{
		void	  **function = (void **) &functions + i;

		if (version == 0)
			strlcpy(symbol, function_names[i], sizeof(symbol));
		else
			snprintf(symbol, sizeof(symbol), "%s_%d", function_names[i], version);
		*function = dlsym(RTLD_DEFAULT, symbol);
		if (*function == NULL)
			return false;
	}
	return true;
}

/* Does the ICU that was looked up order strings as that of the server does? */
static bool
is_of_server(void)
{
	char	   *expected = get_collation_actual_version(COLLPROVIDER_ICU, VERSION_LOCALE);
	GsIcuError	error = 0;
	void	   *collator;
	uint8		version[VERSION_BYTES];
	char		text[VERSION_STRING_BYTES];

	if (expected == NULL)
		return false;
	collator = functions.open(VERSION_LOCALE, &error);
	if (error > 0)
		return false;
	functions.version(collator, version);
	functions.close(collator);
	functions.version_text(version, text);
	return strcmp(text, expected) == 0;
}

/* Can ICU's functions be called? */
static bool
library_is_there(void)
{
	static bool searched = false;
	static bool found = false;

	for (int version = FIRST_VERSION - 1; version <= LAST_VERSION && !searched && !found;
		 version++)
		found = look_up(version < FIRST_VERSION ? 0 : version) && is_of_server();
	searched = true;
	return found;
}

/* Open a collator for a locale.  Returns NULL if ICU cannot; raises an error if memory is short. */
static void *
open_collator(const char *locale)
{
	GsIcuError	error = 0;
	void	   *collator = functions.open(locale, &error);

	/* If memory were lacking in one process, its keys would be others. */
	if (error == ICU_OUT_OF_MEMORY)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	return error > 0 ? NULL : collator;
}

/*
 * Write up to 'count' bytes of the primary weights of a string in UTF-8, as in its sort key,
 * from the first one on.  Returns their number, less than 'count' if they end.
 * None of them is 0.
 */
static Size
icu_primaries(const void *collator, const unsigned char *string,
			  Size length, unsigned char *key, Size count)
{
	GsIcuIterator iterator;
	uint32		state[2] = {0, 0};
	GsIcuError	error = 0;
	int32		bytes;
	unsigned char *separator;

	functions.set_utf8(&iterator, (const char *) string, (int32) length);
	bytes = functions.next_part(collator, &iterator, state, key,
								(int32) Min(count, PG_INT32_MAX), &error);
	if (error > 0)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not make the sort key of a string: ICU error %d", error)));
	separator = memchr(key, LEVEL_SEPARATOR, bytes);
	return separator != NULL ? separator - key : strnlen((char *) key, bytes);
}

/* ----------------------------------------------------------------
 *		collators
 * ----------------------------------------------------------------
 */

/* All collators that were asked for. */
static GsIcuCollator *collators = NULL;

GsIcuCollator *
gpusort_icu_collator_get(const char *locale)
{
	GsIcuCollator *found = collators;
	void	   *collator;

	if (GetDatabaseEncoding() != PG_UTF8 || !library_is_there())
		return NULL;
	while (found != NULL && strcmp(found->locale, locale) != 0)
		found = found->next;
	if (found == NULL)
	{
		collator = open_collator(locale);
		found = MemoryContextAllocZero(TopMemoryContext,
									   offsetof(GsIcuCollator, locale) +
									   strlen(locale) + 1);
		strcpy(found->locale, locale);
		found->collator = collator;
		found->next = collators;
		collators = found;
	}
	return found->collator != NULL ? found : NULL;
}

/* ----------------------------------------------------------------
 *		recent strings
 * ----------------------------------------------------------------
 */

GsIcuRecent *
gpusort_icu_recent_create(void)
{
	GsIcuRecent *recent = palloc0(sizeof(GsIcuRecent));

	recent->context = CurrentMemoryContext;
	recent->max_size = FIRST_RECENT;
	return recent;
}

/* The most that as many strings take: while they grow, half as many are there, too. */
static Size
bytes_of_recent(uint32 size)
{
	return size * sizeof(GsRecentString) * 3 / 2;
}

Size
gpusort_icu_recent_set_limit(GsIcuRecent *recent, Size limit)
{
	recent->max_size = FIRST_RECENT;
	while (recent->max_size < MAX_RECENT && bytes_of_recent(recent->max_size * 2) <= limit)
		recent->max_size *= 2;
	return bytes_of_recent(recent->max_size);
}

/* Should a string be looked for among the recent ones? */
static inline bool
looks_for_recent(GsIcuRecent *recent)
{
	if (recent->observed == OBSERVED_STRINGS)
	{
		recent->observed =
			recent->found < OBSERVED_STRINGS / LEAST_FOUND_DIVISOR ? -PASSED_STRINGS : 0;
		recent->found = 0;
	}
	return recent->observed++ >= 0;
}

/* Allocate the first places for strings, or double their number if there is memory. */
static void
grow_recent(GsIcuRecent *recent)
{
	uint32		size = recent->strings == NULL ? FIRST_RECENT : recent->size * 2;
	GsRecentString *strings = MemoryContextAllocExtended(recent->context,
														 size * sizeof(GsRecentString),
														 MCXT_ALLOC_ZERO | MCXT_ALLOC_NO_OOM);

	recent->made = 0;
	if (strings == NULL)
		return;
	for (uint32 i = 0; i < recent->size; i++)
		if (recent->strings[i].length > 0)
			strings[recent->strings[i].hash % size] = recent->strings[i];
	if (recent->strings != NULL)
		pfree(recent->strings);
	recent->strings = strings;
	recent->size = size;
}

/* Keep the bytes of a string for the next time. */
static void
keep_key(GsRecentString *place, uint32 hash, const unsigned char *string,
		 Size length, const unsigned char *key, Size key_length, bool complete)
{
	if (length + key_length > RECENT_BYTES)
		return;
	place->hash = hash;
	place->length = length;
	place->key_length = key_length;
	place->complete = complete;
	memcpy(place->bytes, string, length);
	memcpy(place->bytes + length, key, key_length);
}

/* ----------------------------------------------------------------
 *		primary weights of common characters
 * ----------------------------------------------------------------
 *
 * Making a sort key takes ICU some hundred nanoseconds.  Most strings that are sorted
 * consist of ASCII and of letters of Latin-1.  We look up their primary weights, with which a
 * sort key begins, in a table.  docs/design/keys.md says why the bytes are those that
 * ICU makes.
 *
 * A character's primary weight has up to four bytes, the first of which stands for a group
 * of characters such as the Latin letters.  ICU writes that lead byte only once for
 * neighbouring characters of one group, if the group is compressible.  The end of these
 * characters is a byte that sorts before or after all lead bytes.
 *
 * A character gets into the table only if ICU's sort keys of all pairs with it are as we
 * would write them, see check_pairs().
 */

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

/*
 * Write the first 'count' bytes of the primary weights of a string, exactly those of its
 * sort key for any 'count'.  Returns their number, less than 'count' if they end, or -1 if
 * the table does not tell them; 'key' may then have been written, too.
 */
static int
write_primaries(const GsIcuPrimaries *primaries, const unsigned char *string,
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
 *		making a table of primary weights
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
	int			bytes = icu_primaries(collator, string, end - string,
									  key, PAIR_BYTES);

	if (bytes == 0 || bytes > 1 + MOST_BYTES)
		return;
	primary->lead = key[0];
	primary->length = bytes - 1;
	memcpy(primary->bytes, key + 1, bytes - 1);
}

/* Note that characters are parts of a contraction, which is in UTF-16. */
static void
mark_contraction(GsIcuPrimaries *primaries, const uint16 *string, int length)
{
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

/* Do so for each string of a set of ICU.  Returns false if one cannot be read. */
static bool
mark_set(GsIcuPrimaries *primaries, const void *set)
{
	int32		count = functions.set_count(set);

	for (int32 i = 0; i < count; i++)
	{
		uint16		string[MOST_UNITS];
		GsIcuError	error = 0;
		int32		start;
		int32		end;

		/* The length is 0 for a range of single characters. */
		int32		length = functions.set_item(set, i, &start, &end, string,
												MOST_UNITS, &error);

		if (error > 0)
			return false;
		mark_contraction(primaries, string, length);
	}
	return true;
}

/*
 * Find the sequences of characters that the collator does not treat as its characters one by
 * one: contractions, and characters with a context before them.  Returns false if ICU cannot
 * tell all of them.
 */
static bool
find_contractions(GsIcuPrimaries *primaries, const void *collator)
{
	GsIcuError	error = 0;
	void	   *set = functions.set_open();
	bool		complete;

	if (set == NULL)
		return false;
	functions.contractions(collator, set, NULL, true, &error);
	complete = error <= 0 && mark_set(primaries, set);
	functions.set_close(set);
	return complete;
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
		if (icu_primaries(collator, string, end - string, key, PAIR_BYTES) <
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
	bytes = icu_primaries(collator, string, end - string, icus, PAIR_BYTES);
	return write_primaries(primaries, string, end - string, ours,
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

/*
 * Returns a table for a collator, which remains for the life of the process.  Takes 10 to
 * 40 ms.  Returns NULL if ICU cannot tell what the table depends on.
 */
static GsIcuPrimaries *
make_primaries(const void *collator)
{
	GsIcuPrimaries *primaries = palloc0(sizeof(GsIcuPrimaries));
	GsIcuPrimaries *kept = NULL;

	for (unsigned c = ' '; c < 0x7F; c++)
		add_character(primaries, collator, c);
	for (unsigned c = FIRST_LETTER; c < CHARACTERS; c++)
		add_character(primaries, collator, c);
	if (find_contractions(primaries, collator))
	{
		find_compressible(primaries, collator);
		if (spoil_primaries)
			primaries->characters['e'].lead++;
		check_pairs(primaries, collator);
		kept = MemoryContextAlloc(TopMemoryContext, sizeof(GsIcuPrimaries));
		memcpy(kept, primaries, sizeof(GsIcuPrimaries));
	}
	pfree(primaries);
	return kept;
}

/* ----------------------------------------------------------------
 *		bytes of strings
 * ----------------------------------------------------------------
 */

/* Write the bytes from the table of primary weights.  Returns -1 if that is not possible. */
static inline int
key_from_table(GsIcuCollator *collator, const unsigned char *string, Size length,
			   unsigned char *key, Size count)
{
	if (unlikely(!collator->has_looked))
	{
		if (collator->strings++ < strings_before_table)
			return -1;
		collator->primaries = make_primaries(collator->collator);
		collator->has_looked = true;
	}
	if (collator->primaries == NULL)
		return -1;
	return write_primaries(collator->primaries, string, length, key,
						   Min(count, PG_INT32_MAX));
}

Size
gpusort_icu_key(GsIcuCollator *collator, GsIcuRecent *recent, const unsigned char *string,
				Size length, unsigned char *key, Size count)
{
	GsRecentString *place;
	uint32		hash;
	Size		key_length;
	int			from_table = key_from_table(collator, string, length, key, count);

	if (from_table >= 0)
		return from_table;
	if (recent == NULL || length == 0 || length > RECENT_BYTES || !looks_for_recent(recent))
		return icu_primaries(collator->collator, string, length, key, count);
	if (recent->made == recent->size && recent->size < recent->max_size)
		grow_recent(recent);
	if (recent->strings == NULL)
		return icu_primaries(collator->collator, string, length, key, count);
	hash = hash_bytes(string, (int) length);
	place = &recent->strings[hash % recent->size];
	if (place->hash == hash && place->length == length &&
		(place->complete || place->key_length >= count) &&
		memcmp(place->bytes, string, length) == 0)
	{
		recent->found++;
		key_length = Min(place->key_length, count);
		memcpy(key, place->bytes + length, key_length);
		return key_length;
	}
	key_length = icu_primaries(collator->collator, string, length, key, count);
	keep_key(place, hash, string, length, key, key_length, key_length < count);
	recent->made++;
	return key_length;
}
