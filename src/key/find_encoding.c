/*-------------------------------------------------------------------------
 *
 * find_encoding.c
 *		Finds the encoding of a sort operator.
 *
 * A sort operator belongs to a btree operator class, whose comparison function
 * defines the order.  So we choose an encoding by that function and not by the
 * type's name.  This includes domains, and operator classes of other types
 * that use a built-in comparison function.  For other types we look at their
 * SortSupport: it may use one of the comparators that PostgreSQL shares
 * between types, for the values themselves or for their abbreviated keys.
 *
 * Strings of a collation that compares bytes are encoded by their own bytes, others by the
 * weights of the locale.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_language.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"

#include "key/key_encoding.h"
#include "key/type_words.h"

/* ----------------------------------------------------------------
 *		comparison functions
 * ----------------------------------------------------------------
 */

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
		case F_BTARRAYCMP:
		case F_BTRECORDCMP:
		case F_RANGE_CMP:
		case F_MULTIRANGE_CMP:
		case F_JSONB_CMP:
			return GS_ENCODE_NESTED;
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

/*
 * Returns the kind with the order of a btree comparison function.  Sets *collated to whether
 * the function compares by a collation.
 */
static GsEncodingKind
kind_of_any_comparison(Oid function, bool *collated)
{
	GsEncodingKind kind = kind_of_comparison(function);

	*collated = function == F_BTTEXTCMP || function == F_BPCHARCMP ||
		function == F_BTNAMECMP;
	if (kind == GS_ENCODE_NONE && is_citext_comparison(function, collated))
		return GS_ENCODE_CITEXT;
	return kind;
}

GsEncodingKind
gpusort_key_encoding_of_comparator(const SortSupportData *ssup)
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

typedef struct GsCollation
{
	char		provider;		/* 0 if there is no such collation */
	char	   *locale;			/* the provider's name of it, or NULL */
	bool		has_rules;		/* of its own, in addition to the locale's */
} GsCollation;

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

static GsCollation
find_collation(Oid oid)
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

/* Does a collation compare strings byte by byte? */
static bool
collation_compares_bytes(const GsCollation *collation)
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

/*
 * If it compares bytes: do its strings end at the first zero byte, as those of
 * strcoll() do?
 */
static bool
ends_at_zero(const GsCollation *collation)
{
	return GPUSORT_ENDS_AT_ZERO &&
		collation->provider == COLLPROVIDER_LIBC && collation->locale != NULL &&
		!is_name_of_c_locale(collation->locale);
}

bool
gpusort_key_encoding_compares_bytes(Oid collation)
{
	GsCollation found;

	if (!OidIsValid(collation))
		return false;
	found = find_collation(collation);
	return collation_compares_bytes(&found);
}

char *
gpusort_key_encoding_locale(Oid collation)
{
	GsCollation found;

	if (!OidIsValid(collation))
		return "";
	found = find_collation(collation);
	if (collation_compares_bytes(&found))
		return "";
	return psprintf("%s of %s", found.locale != NULL ? found.locale : "no locale",
					found.provider == COLLPROVIDER_ICU ? "icu" : "libc");
}

/* ----------------------------------------------------------------
 *		encodings
 * ----------------------------------------------------------------
 */

/* Number of bits in the words that are exact. */
static const uint8 encoding_bits[] = {
	[GS_ENCODE_BOOL] = 1,
	[GS_ENCODE_UINT8] = 8,
	[GS_ENCODE_INT16] = 16,
	[GS_ENCODE_INT32] = 32,
	[GS_ENCODE_UINT32] = 32,
	[GS_ENCODE_INT64] = 64,
	[GS_ENCODE_UINT64] = 64,
	[GS_ENCODE_FLOAT4] = 32,
	[GS_ENCODE_FLOAT8] = 64,
	[GS_ENCODE_BYTES6] = 48,
	[GS_ENCODE_BYTES8] = 64,
	[GS_ENCODE_TID] = 48,
	[GS_ENCODE_ENUM] = 32,
	[GS_ENCODE_UUID] = 128,
	[GS_ENCODE_INTERVAL] = 64 + 37,
	[GS_ENCODE_TIMETZ] = 64 + 32,
};

static GsKeyEncoding
make_encoding(GsEncodingKind kind)
{
	GsKeyEncoding encoding = {.kind = kind};

	if (gpusort_key_encoding_is_exact(&encoding))
		encoding.bits = encoding_bits[kind];
	else if (kind != GS_ENCODE_NONE && kind != GS_ENCODE_COMPARISONS)
		encoding.bits = 64;
	if (kind == GS_ENCODE_ENUM || gpusort_key_encoding_leaves_open(&encoding))
		encoding.state = palloc0(sizeof(struct GsEncodingState));
	if (kind == GS_ENCODE_ENUM)
		encoding.state->numbers = gpusort_enum_numbers_create();
	return encoding;
}

/*
 * Returns the encoding of strings with a collation, if it compares their bytes, the
 * weights of a locale of the C library, or those of ICU.
 */
static GsKeyEncoding
encoding_of_collation(GsEncodingKind string, Oid oid)
{
	GsKeyEncoding encoding = make_encoding(GS_ENCODE_NONE);
	GsCollation collation;
	const GsLocaleWeights *weights = NULL;
	GsIcuCollator *collator = NULL;

	if (!OidIsValid(oid))
		return encoding;
	collation = find_collation(oid);
	if (collation_compares_bytes(&collation))
	{
		encoding = make_encoding(string);
		encoding.ends_at_zero = ends_at_zero(&collation);
		return encoding;
	}
	if (collation.locale != NULL && collation.provider == COLLPROVIDER_LIBC)
		weights = gpusort_locale_weights_get(collation.locale);
	else if (collation.locale != NULL && collation.provider == COLLPROVIDER_ICU &&
			 !collation.has_rules)
		collator = gpusort_icu_collator_get(collation.locale);
	if (weights == NULL && collator == NULL)
		return encoding;
	encoding = make_encoding(weights != NULL ? GS_ENCODE_LOCALE : GS_ENCODE_ICU);
	encoding.state->weights = weights;
	encoding.state->collator = collator;
	if (collator != NULL)
	{
		encoding.state->string = GS_ENCODE_TEXT;
		if (!gpusort_icu_agreement_check(oid, &encoding))
			return make_encoding(GS_ENCODE_COMPARISONS);
		encoding.state->recent = gpusort_icu_recent_create();
	}
	encoding.state->string = string;
	return encoding;
}

/* Returns the encoding by an operator's SortSupport. */
static GsKeyEncoding
prepare_sort_support(Oid operator, bool by_value, Oid collation)
{
	struct GsEncodingState *state = palloc0(sizeof(struct GsEncodingState));
	SortSupport ssup = &state->ssup;
	GsEncodingKind kind;
	GsKeyEncoding encoding;

	ssup->ssup_cxt = CurrentMemoryContext;
	ssup->ssup_collation = collation;
	ssup->ssup_attno = 1;
	ssup->abbreviate = !by_value;
	PrepareSortSupportFromOrderingOp(operator, ssup);
	kind = gpusort_key_encoding_of_comparator(ssup);
	if (ssup->abbrev_converter == NULL || kind == GS_ENCODE_NONE)
		return make_encoding(by_value ? kind : GS_ENCODE_NONE);
	encoding = make_encoding(GS_ENCODE_ABBREVIATION);
	encoding.state = state;
	state->abbreviated = make_encoding(kind);
	return encoding;
}

/* Do PostgreSQL's abbreviations of strings have the order of its comparisons? */
static bool
abbreviations_agree(Oid collation)
{
	GsKeyEncoding encoding;

	if (!OidIsValid(collation) || find_collation(collation).provider != COLLPROVIDER_ICU)
		return true;
	encoding = prepare_sort_support(TextLessOperator, false, collation);
	return encoding.kind != GS_ENCODE_ABBREVIATION ||
		gpusort_icu_agreement_check(collation, &encoding);
}

/*
 * Likewise, for a type.  Preparing a SortSupport without the collation that it needs would
 * raise an error, which belongs to the execution of the query.
 */
static GsKeyEncoding
encoding_of_sort_support(Oid operator, Oid type, Oid collation)
{
	GsKeyEncoding encoding;

	if (!OidIsValid(collation) && type_is_collatable(type))
		return make_encoding(GS_ENCODE_NONE);
	encoding = prepare_sort_support(operator, get_typbyval(type), collation);
	if (encoding.kind == GS_ENCODE_ABBREVIATION && !abbreviations_agree(collation))
		return make_encoding(GS_ENCODE_COMPARISONS);
	return encoding;
}

GsKeyEncoding
gpusort_key_encoding_find(Oid operator, Oid collation, bool *descending)
{
	Oid			family;
	Oid			type;
	Oid			function;
	GsOperatorOrder order;
	GsKeyEncoding encoding;
	bool		collated;

	if (!get_ordering_op_properties(operator, &family, &type, &order))
		return make_encoding(GS_ENCODE_NONE);
	if (descending != NULL)
		*descending = order == GPUSORT_ORDER_DESCENDING;
	function = get_opfamily_proc(family, type, type, BTORDER_PROC);
	encoding.kind = kind_of_any_comparison(function, &collated);
	if (collated)
		encoding = encoding_of_collation(encoding.kind, collation);
	else
		encoding = make_encoding(encoding.kind);
	if (encoding.kind == GS_ENCODE_NESTED)
		encoding.state->nested = gpusort_nested_create(function, collation,
													   gpusort_key_encoding_find,
													   gpusort_key_encoding_write);
	if (encoding.kind != GS_ENCODE_NONE)
		return encoding;
	if (!OidIsValid(get_opfamily_proc(family, type, type, BTSORTSUPPORT_PROC)))
		return make_encoding(GS_ENCODE_NONE);
	return encoding_of_sort_support(operator, type, collation);
}
