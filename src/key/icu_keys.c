/*-------------------------------------------------------------------------
 *
 * icu_keys.c
 *		Turns strings into bytes with the order of a collation of ICU.
 *
 * ICU makes them in some hundred nanoseconds, together with a sort key.  If strings consist of
 * common characters, they come from a table instead.  A sort keeps those of other recent
 * strings, as long as enough strings come again.
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

void
gpusort_icu_recent_set_limit(GsIcuRecent *recent, Size limit)
{
	recent->max_size = FIRST_RECENT;
	while (recent->max_size < MAX_RECENT && bytes_of_recent(recent->max_size * 2) <= limit)
		recent->max_size *= 2;
}

Size
gpusort_icu_recent_bytes(const GsIcuRecent *recent)
{
	return bytes_of_recent(recent->max_size);
}

/* Should a string be looked for among the recent ones? */
static inline bool
looks_for_recent(GsIcuRecent *recent)
{
	if (recent->observed == OBSERVED_STRINGS)
	{
		recent->observed =
			recent->found < OBSERVED_STRINGS / LEAST_FOUND_PART ? -PASSED_STRINGS : 0;
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
		return gpusort_icu_library_primaries(collator->collator, string, length, key, count);
	if (recent->made == recent->size && recent->size < recent->max_size)
		grow_recent(recent);
	if (recent->strings == NULL)
		return gpusort_icu_library_primaries(collator->collator, string, length, key, count);
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
	key_length = gpusort_icu_library_primaries(collator->collator, string, length, key, count);
	keep_key(place, hash, string, length, key, key_length, key_length < count);
	recent->made++;
	return key_length;
}
