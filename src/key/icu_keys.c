/*-------------------------------------------------------------------------
 *
 * icu_keys.c
 *		Makes ICU's sort keys of strings, of which PostgreSQL gives only 8 bytes.
 *
 * We call the ICU that the server is linked to.  Its functions have the major version in
 * their names, and its headers need not be where this is built, so we look the functions up
 * by name.  Their signatures are part of ICU's stable interface for C since version 2.8.
 *
 * A sort key takes some hundred nanoseconds.  Those of recent strings are kept, as long as
 * enough strings come again.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <dlfcn.h>

#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "key/icu_keys.h"

/* Versions of ICU that are looked for. */
#define FIRST_VERSION	50
#define LAST_VERSION	120

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
	bool		complete;		/* is it the whole key? */
	unsigned char bytes[RECENT_BYTES];	/* the string and the key */
} GsRecentString;

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
	int32		(*next_part) (const void *collator, GsIcuIterator *iterator,
							  uint32 state[2], uint8 *dest, int32 count,
							  GsIcuError *error);
	void		(*set_utf8) (GsIcuIterator *iterator, const char *string,
							 int32 length);
} GsIcuFunctions;

struct GsIcuCollator
{
	struct GsIcuCollator *next;
	void	   *collator;		/* NULL if ICU cannot open it */
	GsRecentString *recent;		/* NULL until it is needed */
	int			observed;		/* strings that were looked for, or negative
								 * the number of those to pass */
	int			found;			/* among them */
	char		locale[FLEXIBLE_ARRAY_MEMBER];
};

/* All collators that were asked for. */
static GsIcuCollator *collators = NULL;

static GsIcuFunctions functions = {NULL, NULL, NULL};

/* Look a function up.  A version of 0 stands for names without a version. */
static void *
look_up(const char *name, int version)
{
	char		symbol[NAMEDATALEN];

	if (version == 0)
		return dlsym(RTLD_DEFAULT, name);
	snprintf(symbol, sizeof(symbol), "%s_%d", name, version);
	return dlsym(RTLD_DEFAULT, symbol);
}

/* Find ICU's functions.  Returns false if there are none. */
static bool
find_functions(void)
{
	static bool searched = false;

	for (int version = FIRST_VERSION - 1; version <= LAST_VERSION && !searched; version++)
	{
		int			suffix = version < FIRST_VERSION ? 0 : version;

		*(void **) &functions.open = look_up("ucol_open", suffix);
		*(void **) &functions.next_part = look_up("ucol_nextSortKeyPart", suffix);
		*(void **) &functions.set_utf8 = look_up("uiter_setUTF8", suffix);
		if (functions.open != NULL && functions.next_part != NULL &&
			functions.set_utf8 != NULL)
			break;
		functions.open = NULL;
	}
	searched = true;
	return functions.open != NULL;
}

GsIcuCollator *
gpusort_icu_collator_get(const char *locale)
{
	GsIcuCollator *found = collators;
	GsIcuError	error = 0;

	if (GetDatabaseEncoding() != PG_UTF8 || !find_functions())
		return NULL;
	while (found != NULL && strcmp(found->locale, locale) != 0)
		found = found->next;
	if (found == NULL)
	{
		found = MemoryContextAllocZero(TopMemoryContext,
									   offsetof(GsIcuCollator, locale) +
									   strlen(locale) + 1);
		strcpy(found->locale, locale);
		found->collator = functions.open(locale, &error);
		/* If memory were lacking in one process, its keys would be others. */
		if (error == ICU_OUT_OF_MEMORY)
		{
			pfree(found);
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory")));
		}
		if (error > 0)
			found->collator = NULL;
		found->next = collators;
		collators = found;
	}
	return found->collator != NULL ? found : NULL;
}

static Size
make_key(const GsIcuCollator *collator, const unsigned char *string,
		 Size length, unsigned char *key, Size count)
{
	GsIcuIterator iterator;
	uint32		state[2] = {0, 0};
	GsIcuError	error = 0;
	int32		bytes;

	functions.set_utf8(&iterator, (const char *) string, (int32) length);
	bytes = functions.next_part(collator->collator, &iterator, state, key,
								(int32) Min(count, PG_INT32_MAX), &error);
	if (error > 0)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not make the sort key of a string: ICU error %d", error)));
	return strnlen((char *) key, bytes);
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

/* Keep a key for the next time. */
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

Size
gpusort_icu_key(GsIcuCollator *collator, const unsigned char *string,
				Size length, unsigned char *key, Size count)
{
	GsRecentString *recent;
	uint32		hash;
	Size		key_length;

	if (length == 0 || length > RECENT_BYTES || !looks_for_recent(collator))
		return make_key(collator, string, length, key, count);
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
	key_length = make_key(collator, string, length, key, count);
	keep_key(recent, hash, string, length, key, key_length, key_length < count);
	return key_length;
}
