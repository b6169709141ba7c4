/*-------------------------------------------------------------------------
 *
 * icu_library.c
 *		Calls the ICU that the server is linked to.
 *
 * ICU's functions have its major version in their names, and its headers need not be where
 * this is built, so we look the functions up by name.  Their signatures are part of ICU's
 * stable interface for C since version 2.8.
 *
 * Other libraries can bring other versions of ICU into the process, so we take only one whose
 * collations have the version that the server reports of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <dlfcn.h>

#include "catalog/pg_collation.h"

#include "key/icu_library.h"

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

/* The byte of a sort key behind the weights of a level. */
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

bool
gpusort_icu_library_is_there(void)
{
	static bool searched = false;

	for (int version = FIRST_VERSION - 1; version <= LAST_VERSION && !searched; version++)
	{
		int			suffix = version < FIRST_VERSION ? 0 : version;

		*(void **) &functions.open = look_up("ucol_open", suffix);
		*(void **) &functions.close = look_up("ucol_close", suffix);
		*(void **) &functions.version = look_up("ucol_getVersion", suffix);
		*(void **) &functions.version_text = look_up("u_versionToString", suffix);
		*(void **) &functions.next_part = look_up("ucol_nextSortKeyPart", suffix);
		*(void **) &functions.set_utf8 = look_up("uiter_setUTF8", suffix);
		*(void **) &functions.contractions = look_up("ucol_getContractionsAndExpansions", suffix);
		*(void **) &functions.set_open = look_up("uset_openEmpty", suffix);
		*(void **) &functions.set_close = look_up("uset_close", suffix);
		*(void **) &functions.set_count = look_up("uset_getItemCount", suffix);
		*(void **) &functions.set_item = look_up("uset_getItem", suffix);
		if (functions.open != NULL && functions.close != NULL &&
			functions.version != NULL && functions.version_text != NULL &&
			functions.next_part != NULL && functions.set_utf8 != NULL && is_of_server())
			break;
		functions.open = NULL;
	}
	searched = true;
	return functions.open != NULL;
}

void *
gpusort_icu_library_open(const char *locale)
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

Size
gpusort_icu_library_primaries(const void *collator, const unsigned char *string,
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

/* Call 'found' for each string of a set of ICU.  Returns false if one cannot be read. */
static bool
read_strings(const void *set, void (*found) (const uint16 *string, int length, void *argument),
			 void *argument)
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
		if (length > 0)
			found(string, length, argument);
	}
	return true;
}

bool
gpusort_icu_library_contractions(const void *collator,
								 void (*found) (const uint16 *string, int length,
												void *argument),
								 void *argument)
{
	GsIcuError	error = 0;
	bool		complete;
	void	   *set;

	if (functions.contractions == NULL || functions.set_open == NULL ||
		functions.set_close == NULL || functions.set_count == NULL ||
		functions.set_item == NULL)
		return false;
	set = functions.set_open();
	if (set == NULL)
		return false;
	functions.contractions(collator, set, NULL, true, &error);
	complete = error <= 0 && read_strings(set, found, argument);
	functions.set_close(set);
	return complete;
}
