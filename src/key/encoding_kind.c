/*-------------------------------------------------------------------------
 *
 * encoding_kind.c
 *		What comparison functions and collations say of encodings.
 *
 * key_encoding.c asks this when it looks for the encoding of a sort operator, and then adds
 * what the kind needs to encode values.  Strings of a collation that compares bytes are encoded
 * by their own bytes, others by the weights of the locale.
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
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"

#include "key/encoding_kind.h"

/*
 * Returns the encoding with the order of a btree comparison function, which for strings is
 * that of their bytes.
 */
static GsEncodingKind
kind_of_comparison(Oid function)
{
	switch (function)
	{
		case F_BTBOOLCMP:
			return GS_ENCODE_BOOL;
		case F_BTCHARCMP:
			return GS_ENCODE_UINT8;
		case F_BTINT2CMP:
			return GS_ENCODE_INT16;
		case F_BTINT4CMP:
		case F_DATE_CMP:
			return GS_ENCODE_INT32;
		case F_BTOIDCMP:
			return GS_ENCODE_UINT32;
		case F_BTINT8CMP:
		case F_CASH_CMP:
		case F_TIME_CMP:
		case F_TIMESTAMP_CMP:
		case F_TIMESTAMPTZ_CMP:
			return GS_ENCODE_INT64;
		case F_XID8CMP:
		case F_PG_LSN_CMP:
			return GS_ENCODE_UINT64;
		case F_BTFLOAT4CMP:
			return GS_ENCODE_FLOAT4;
		case F_BTFLOAT8CMP:
			return GS_ENCODE_FLOAT8;
		case F_MACADDR_CMP:
			return GS_ENCODE_BYTES6;
		case F_MACADDR8_CMP:
			return GS_ENCODE_BYTES8;
		case F_BTTIDCMP:
			return GS_ENCODE_TID;
		case F_ENUM_CMP:
			return GS_ENCODE_ENUM;
		case F_UUID_CMP:
			return GS_ENCODE_UUID;
		case F_INTERVAL_CMP:
			return GS_ENCODE_INTERVAL;
		case F_TIMETZ_CMP:
			return GS_ENCODE_TIMETZ;
		case F_BYTEACMP:
			return GS_ENCODE_BYTEA;
		case F_BITCMP:
		case F_VARBITCMP:
			return GS_ENCODE_VARBIT;
		case F_NETWORK_CMP:
			return GS_ENCODE_INET;
		case F_NUMERIC_CMP:
			return GS_ENCODE_NUMERIC;
		case F_BTTEXTCMP:
		case F_BTTEXT_PATTERN_CMP:
			return GS_ENCODE_TEXT;
		case F_BPCHARCMP:
		case F_BTBPCHAR_PATTERN_CMP:
			return GS_ENCODE_BPCHAR;
		case F_BTNAMECMP:
			return GS_ENCODE_NAME;
		default:
			return GS_ENCODE_NONE;
	}
}

/* Returns an attribute of a tuple of a cache, or NULL. */
static char *
text_attribute(int cache, HeapTuple tuple, AttrNumber attno)
{
	bool		isnull = true;
	Datum		value = (Datum) 0;

	if (attno != 0)
		value = SysCacheGetAttr(cache, tuple, attno, &isnull);
	return isnull ? NULL : TextDatumGetCString(value);
}

/*
 * Does a btree comparison function compare values of citext?  If so, sets *collated to
 * whether it does so by the collation, or else byte by byte.
 */
static bool
is_citext_comparison(Oid function, bool *collated)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	const char *file;
	bool		found = false;

	if (!HeapTupleIsValid(tuple))
		return false;
	file = text_attribute(PROCOID, tuple, Anum_pg_proc_probin);
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId &&
		file != NULL && strcmp(file, "$libdir/citext") == 0)
	{
		const char *symbol = text_attribute(PROCOID, tuple, Anum_pg_proc_prosrc);

		*collated = strcmp(symbol, "citext_cmp") == 0;
		found = *collated || strcmp(symbol, "citext_pattern_cmp") == 0;
	}
	ReleaseSysCache(tuple);
	return found;
}

GsEncodingKind
gpusort_encoding_kind_of_comparison(Oid function, bool *collated)
{
	GsEncodingKind kind = kind_of_comparison(function);

	*collated = function == F_BTTEXTCMP || function == F_BPCHARCMP ||
		function == F_BTNAMECMP;
	if (kind == GS_ENCODE_NONE && is_citext_comparison(function, collated))
		return GS_ENCODE_CITEXT;
	return kind;
}

GsEncodingKind
gpusort_encoding_kind_of_comparator(const SortSupportData *ssup)
{
	if (ssup->comparator == ssup_datum_int32_cmp)
		return GS_ENCODE_INT32;
	if (ssup->comparator == ssup_datum_signed_cmp)
		return GS_ENCODE_INT64;
	if (ssup->comparator == ssup_datum_unsigned_cmp)
		return GS_ENCODE_UINT64;
	return GS_ENCODE_NONE;
}

/* ----------------------------------------------------------------
 *		collations
 * ----------------------------------------------------------------
 */

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
	return GPUSORT_ENDS_AT_ZERO &&
		collation->provider == COLLPROVIDER_LIBC && collation->locale != NULL &&
		!is_name_of_c_locale(collation->locale);
}
