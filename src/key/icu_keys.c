/*-------------------------------------------------------------------------
 *
 * icu_keys.c
 *		Turns strings into bytes with the order of a collation of ICU.
 *
 * ICU makes them in some hundred nanoseconds, together with a sort key.  If strings consist of
 * common characters, they come from a table instead.  Those of other recent strings are kept,
 * as long as enough strings come again.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "key/icu_keys.h"
#include "key/icu_library.h"
#include "key/icu_primaries.h"

/* After so many strings, which take as long, a table of primary weights is made. */
int			gpusort_icu_strings_before_table = 50000;

/*
 * Recent strings: their number, a power of 2, and the bytes of a string and its key
 * together.  After as many strings, of which less than that part was found, the next ones
 * are not looked for.
 */
#define RECENT_STRINGS		16384
#define RECENT_BYTES		120
#define OBSERVED_STRINGS	8192
#define LEAST_FOUND_PART	4
#define PASSED_STRINGS		(16 * OBSERVED_STRINGS)

typedef struct GsRecentString
{
	uint32		hash;
	uint8		length;			/* of the string; 0 if unused */
	uint8		key_length;
	bool		complete;		/* are these all bytes? */
	unsigned char bytes[RECENT_BYTES];	/* the string and the key */
} GsRecentString;

struct GsIcuCollator
{
	struct GsIcuCollator *next;
	void	   *collator;		/* NULL if ICU cannot open it */
	int			strings;		/* number so far, before a table is made */
	bool		has_looked;		/* was it tried to make a table? */
	GsIcuPrimaries *primaries;	/* the table, or NULL */
	GsRecentString *recent;		/* NULL until it is needed */
	int			observed;		/* strings that were looked for, or negative
								 * the number of those to pass */
	int			found;			/* among them */
	char		locale[FLEXIBLE_ARRAY_MEMBER];
};

/* All collators that were asked for. */
static GsIcuCollator *collators = NULL;

GsIcuCollator *
gpusort_icu_collator_get(const char *locale)
{
	GsIcuCollator *found = collators;
	void	   *collator;

	if (GetDatabaseEncoding() != PG_UTF8 || !gpusort_icu_library_is_there())
		return NULL;
	while (found != NULL && strcmp(found->locale, locale) != 0)
		found = found->next;
	if (found == NULL)
	{
		collator = gpusort_icu_library_open(locale);
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

/* Should a string be looked for among the recent ones? */
static inline bool
looks_for_recent(GsIcuCollator *collator)
{
	if (collator->observed == OBSERVED_STRINGS)
	{
		collator->observed =
			collator->found < OBSERVED_STRINGS / LEAST_FOUND_PART ? -PASSED_STRINGS : 0;
		collator->found = 0;
	}
	return collator->observed++ >= 0;
}

/* Keep the bytes of a string for the next time. */
static void
keep_key(GsRecentString *recent, uint32 hash, const unsigned char *string,
		 Size length, const unsigned char *key, Size key_length, bool complete)
{
	if (length + key_length > RECENT_BYTES)
		return;
	recent->hash = hash;
	recent->length = length;
	recent->key_length = key_length;
	recent->complete = complete;
	memcpy(recent->bytes, string, length);
	memcpy(recent->bytes + length, key, key_length);
}

/* Write the bytes from the table of primary weights.  Returns -1 if that is not possible. */
static inline int
key_from_table(GsIcuCollator *collator, const unsigned char *string, Size length,
			   unsigned char *key, Size count)
{
	if (unlikely(!collator->has_looked))
	{
		if (collator->strings++ < gpusort_icu_strings_before_table)
			return -1;
		collator->primaries = gpusort_icu_primaries_create(collator->collator);
		collator->has_looked = true;
	}
	if (collator->primaries == NULL)
		return -1;
	return gpusort_icu_primaries_key(collator->primaries, string, length, key,
									 Min(count, PG_INT32_MAX));
}

Size
gpusort_icu_key(GsIcuCollator *collator, const unsigned char *string,
				Size length, unsigned char *key, Size count)
{
	GsRecentString *recent;
	uint32		hash;
	Size		key_length;
	int			from_table = key_from_table(collator, string, length, key, count);

	if (from_table >= 0)
		return from_table;
	if (length == 0 || length > RECENT_BYTES || !looks_for_recent(collator))
		return gpusort_icu_library_primaries(collator->collator, string, length, key, count);
	if (collator->recent == NULL)
		collator->recent = MemoryContextAllocZero(TopMemoryContext,
												  RECENT_STRINGS * sizeof(GsRecentString));
	hash = hash_bytes(string, (int) length);
	recent = &collator->recent[hash % RECENT_STRINGS];
	if (recent->hash == hash && recent->length == length &&
		(recent->complete || recent->key_length >= count) &&
		memcmp(recent->bytes, string, length) == 0)
	{
		collator->found++;
		key_length = Min(recent->key_length, count);
		memcpy(key, recent->bytes + length, key_length);
		return key_length;
	}
	key_length = gpusort_icu_library_primaries(collator->collator, string, length, key, count);
	keep_key(recent, hash, string, length, key, key_length, key_length < count);
	return key_length;
}
