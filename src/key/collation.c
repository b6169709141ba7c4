/*-------------------------------------------------------------------------
 *
 * collation.c
 *		What the catalogs say of a collation.
 *
 * key_encoding.c asks this before it chooses the encoding of strings: those of a collation
 * that compares bytes are encoded by their own bytes, others by the weights of the locale.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "key/collation.h"

/* Does PostgreSQL compare strings itself instead of asking the C library? */
static bool
is_name_of_c_locale(const char *name)
{
	return strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0;
}

/*
 * Does a locale of the C library compare strings byte by byte?  C.UTF-8 does
 * so since glibc 2.35, in which it has no collation rules of its own.
 */
static bool
locale_compares_bytes(const char *name)
{
	if (is_name_of_c_locale(name))
		return true;
#ifdef __GLIBC__
	if (pg_strcasecmp(name, "C.UTF-8") == 0 || pg_strcasecmp(name, "C.utf8") == 0)
	{
		int			major;
		int			minor;

		return GetDatabaseEncoding() == PG_UTF8 &&
			sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
			(major > 2 || (major == 2 && minor >= 35));
	}
#endif
	return false;
}

static char *
text_attribute(int cache, HeapTuple tuple, AttrNumber attno)
{
	bool		isnull = true;
	Datum		value = (Datum) 0;

	if (attno != 0)
		value = SysCacheGetAttr(cache, tuple, attno, &isnull);
	return isnull ? NULL : TextDatumGetCString(value);
}

GsCollation
gpusort_collation_find(Oid oid)
{
	bool		is_default = oid == DEFAULT_COLLATION_OID;
	int			cache = is_default ? DATABASEOID : COLLOID;
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(is_default ?
																MyDatabaseId : oid));
	GsCollation collation = {0};

	if (!HeapTupleIsValid(tuple))
		return collation;
	if (is_default)
		collation.provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
	else
		collation.provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	if (collation.provider == COLLPROVIDER_ICU)
		collation.locale = text_attribute(cache, tuple, is_default ?
										  GPUSORT_DATABASE_LOCALE :
										  GPUSORT_COLLATION_LOCALE);
	else
		collation.locale = text_attribute(cache, tuple, is_default ?
										  Anum_pg_database_datcollate :
										  Anum_pg_collation_collcollate);
	collation.has_rules = text_attribute(cache, tuple, is_default ?
										 GPUSORT_DATABASE_RULES :
										 GPUSORT_COLLATION_RULES) != NULL;
	ReleaseSysCache(tuple);
	return collation;
}

bool
gpusort_collation_compares_bytes(const GsCollation *collation)
{
	switch (collation->provider)
	{
		case COLLPROVIDER_LIBC:
			return collation->locale != NULL && locale_compares_bytes(collation->locale);
		case GPUSORT_COLLPROVIDER_BUILTIN:
			return true;
		default:
			return false;
	}
}

bool
gpusort_collation_ends_at_zero(const GsCollation *collation)
{
	return collation->provider == COLLPROVIDER_LIBC && collation->locale != NULL &&
		!is_name_of_c_locale(collation->locale);
}
