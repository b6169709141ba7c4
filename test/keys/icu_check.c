/*-------------------------------------------------------------------------
 *
 * icu_check.c
 *		Compares our table of weights for a locale of ICU with ICU's sort keys.
 *
 * The file with the table is included, since no other file of the extension sees it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "key/icu_keys.c"
#include "loading.h"

/* Maximum number of bytes of ICU that are asked for one by one. */
#define MOST_ICU_BYTES	24

GPUSORT_SQL_FUNCTION(icu_table_count);
GPUSORT_SQL_FUNCTION(icu_table_is_right);
extern PGDLLEXPORT void _PG_init(void);

/* Use tables of weights for the first strings, too. */
void
_PG_init(void)
{
	strings_before_table = 0;
}

/* ----------------------------------------------------------------
 *		an ICU that is not the server's
 *
 * Another library can bring another version of ICU into the server.  The server makes the
 * symbols of each library global, so these look like version 50, which orders strings
 * backward.  Nothing must call it but to ask for its version.
 * ----------------------------------------------------------------
 */

extern PGDLLEXPORT void *ucol_open_50(const char *locale, int *error);
extern PGDLLEXPORT void ucol_close_50(void *collator);
extern PGDLLEXPORT void ucol_getVersion_50(const void *collator, uint8 version[4]);
extern PGDLLEXPORT void u_versionToString_50(const uint8 version[4], char *text);
extern PGDLLEXPORT void uiter_setUTF8_50(const char **iterator, const char *string, int32 length);
extern PGDLLEXPORT int32 ucol_nextSortKeyPart_50(const void *collator, const char **iterator,
												 uint32 state[2], uint8 *dest, int32 count,
												 int *error);

void *
ucol_open_50(const char *locale, int *error)
{
	return pstrdup(locale);
}

void
ucol_close_50(void *collator)
{
	pfree(collator);
}

void
ucol_getVersion_50(const void *collator, uint8 version[4])
{
	memset(version, 1, 4);
}

void
u_versionToString_50(const uint8 version[4], char *text)
{
	sprintf(text, "%d.%d.%d.%d", version[0], version[1], version[2], version[3]);
}

void
uiter_setUTF8_50(const char **iterator, const char *string, int32 length)
{
	*iterator = length > 0 ? string : "";
}

int32
ucol_nextSortKeyPart_50(const void *collator, const char **iterator, uint32 state[2],
						uint8 *dest, int32 count, int *error)
{
	*dest = 0xFF - (uint8) **iterator / 2;
	return 1;
}

/* ----------------------------------------------------------------
 *		tables of weights
 * ----------------------------------------------------------------
 */

/*
 * The number of characters in the table of weights for a locale of ICU, which may have been
 * spoiled.
 */
Datum
icu_table_count(PG_FUNCTION_ARGS)
{
	char	   *locale = text_to_cstring(PG_GETARG_TEXT_PP(0));
	GsIcuPrimaries *primaries = NULL;
	int			count = 0;

	spoil_primaries = PG_GETARG_BOOL(1);
	if (library_is_there())
		primaries = make_primaries(open_collator(locale));
	spoil_primaries = false;
	for (unsigned c = 0; c < CHARACTERS && primaries != NULL; c++)
		count += primaries->characters[c].lead != 0;
	PG_RETURN_INT32(count);
}

/*
 * If the table of weights for a locale of ICU tells bytes of a string, are they those of ICU,
 * whatever the number of bytes?  NULL if it does not tell all of them, and those that it tells
 * are right.  The table of the last call is kept.
 */
Datum
icu_table_is_right(PG_FUNCTION_ARGS)
{
	static char *known = NULL;
	static void *collator;
	static GsIcuPrimaries *primaries;
	char	   *locale = text_to_cstring(PG_GETARG_TEXT_PP(0));
	text	   *string = PG_GETARG_TEXT_PP(1);
	unsigned char *bytes = (unsigned char *) VARDATA_ANY(string);
	Size		length = VARSIZE_ANY_EXHDR(string);
	unsigned char ours[1000];
	unsigned char icus[1000];
	int			count = 0;

	if (!library_is_there())
		PG_RETURN_NULL();
	if (known == NULL || strcmp(known, locale) != 0)
	{
		collator = open_collator(locale);
		primaries = make_primaries(collator);
		known = MemoryContextStrdup(TopMemoryContext, locale);
	}
	for (int n = 1; n <= MOST_ICU_BYTES + 1; n++)
	{
		int			most = n <= MOST_ICU_BYTES ? n : sizeof(ours);

		count = write_primaries(primaries, bytes, length, ours, most);
		if (count >= 0 &&
			(icu_primaries(collator, bytes, length, icus, most) != count ||
			 memcmp(ours, icus, count) != 0))
			PG_RETURN_BOOL(false);
	}
	if (count < 0)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(true);
}
