/*-------------------------------------------------------------------------
 *
 * key_encoding.c
 *		Encodes the values of one sort key as words with the same order.
 *
 * A sort operator belongs to a btree operator class, whose comparison function
 * defines the order.  So we choose an encoding by that function and not by the
 * type's name.  This includes domains, and operator classes of other types
 * that use a built-in comparison function.  For other types we look at their
 * SortSupport: it may use one of the comparators that PostgreSQL shares
 * between types, for the values themselves or for their abbreviated keys.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include <sys/socket.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/varbit.h"

#include "key/enum_words.h"
#include "key/key_encoding.h"
#include "key/numeric_words.h"
#include "key/string_bytes.h"

#define WORD_BITS	64

/* Maximum length of the result of network_bytes(). */
#define MAX_NETWORK_BYTES	(2 + 2 * 16)

/* Number of bits in the words that are encoded initially. */
static const uint8 encoding_bits[] = {
	[GS_ENCODE_NONE] = 0,
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
	[GS_ENCODE_TEXT] = 64,
	[GS_ENCODE_BPCHAR] = 64,
	[GS_ENCODE_NAME] = 64,
	[GS_ENCODE_BYTEA] = 64,
	[GS_ENCODE_INET] = 64,
	[GS_ENCODE_NUMERIC] = 64,
	[GS_ENCODE_VARBIT] = 64,
	[GS_ENCODE_ABBREVIATION] = 64,
};

struct GsEncodingState
{
	SortSupportData ssup;		/* GS_ENCODE_ABBREVIATION */
	GsKeyEncoding abbreviated;	/* encoding of its abbreviated keys */
	GsEnumNumbers *numbers;		/* GS_ENCODE_ENUM */
};

/* ----------------------------------------------------------------
 *		finding an encoding
 * ----------------------------------------------------------------
 */

/*
 * Does a locale of the C library compare strings byte by byte?  C.UTF-8 does
 * so since glibc 2.35, in which it has no collation rules of its own.
 */
static bool
is_name_of_c_locale(const char *name)
{
	if (strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0)
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

/*
 * Returns a collation's provider.  Sets *locale to the provider's name of the
 * locale, or to NULL.
 */
static char
provider_of_collation(Oid collation, char **locale)
{
	bool		is_default = collation == DEFAULT_COLLATION_OID;
	int			cache = is_default ? DATABASEOID : COLLOID;
	HeapTuple	tuple = SearchSysCache1(cache, is_default ?
										ObjectIdGetDatum(MyDatabaseId) :
										ObjectIdGetDatum(collation));
	char		provider;
	bool		isnull;
	Datum		name;

	*locale = NULL;
	if (!HeapTupleIsValid(tuple))
		return '\0';
	if (is_default)
		provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
	else
		provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	name = SysCacheGetAttr(cache, tuple, is_default ?
						   Anum_pg_database_datcollate :
						   Anum_pg_collation_collcollate, &isnull);
	if (!isnull)
		*locale = TextDatumGetCString(name);
	ReleaseSysCache(tuple);
	return provider;
}

bool
gpusort_key_encoding_compares_bytes(Oid collation)
{
	char	   *locale;

	if (!OidIsValid(collation))
		return false;
	switch (provider_of_collation(collation, &locale))
	{
		case COLLPROVIDER_LIBC:
			return locale != NULL && is_name_of_c_locale(locale);
		case GPUSORT_COLLPROVIDER_BUILTIN:
			return true;
		default:
			return false;
	}
}

/* Returns the encoding with the order of a btree comparison function. */
static GsEncodingKind
kind_of_comparison(Oid function, Oid collation)
{
	bool		bytes = gpusort_key_encoding_compares_bytes(collation);

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
		case F_BTTEXT_PATTERN_CMP:
			return GS_ENCODE_TEXT;
		case F_BTBPCHAR_PATTERN_CMP:
			return GS_ENCODE_BPCHAR;
		case F_BTTEXTCMP:
			return bytes ? GS_ENCODE_TEXT : GS_ENCODE_NONE;
		case F_BPCHARCMP:
			return bytes ? GS_ENCODE_BPCHAR : GS_ENCODE_NONE;
		case F_BTNAMECMP:
			return bytes ? GS_ENCODE_NAME : GS_ENCODE_NONE;
		default:
			return GS_ENCODE_NONE;
	}
}

/*
 * Returns the encoding with the order of one of PostgreSQL's shared
 * comparators.
 */
static GsEncodingKind
kind_of_comparator(int (*comparator) (Datum x, Datum y, SortSupport ssup))
{
	if (comparator == ssup_datum_int32_cmp)
		return GS_ENCODE_INT32;
	if (comparator == ssup_datum_signed_cmp)
		return GS_ENCODE_INT64;
	if (comparator == ssup_datum_unsigned_cmp)
		return GS_ENCODE_UINT64;
	return GS_ENCODE_NONE;
}

static GsKeyEncoding
make_encoding(GsEncodingKind kind)
{
	GsKeyEncoding encoding = {.kind = kind,.bits = encoding_bits[kind]};

	if (kind == GS_ENCODE_ENUM)
	{
		encoding.state = palloc0(sizeof(struct GsEncodingState));
		encoding.state->numbers = gpusort_enum_numbers_create();
	}
	return encoding;
}

/*
 * Returns the encoding by an operator's SortSupport.  Preparing a SortSupport
 * without the collation that it needs would raise an error, which belongs to
 * the execution of the query.
 */
static GsKeyEncoding
encoding_of_sort_support(Oid operator, Oid type, Oid collation)
{
	GsKeyEncoding encoding = make_encoding(GS_ENCODE_NONE);
	struct GsEncodingState *state;
	SortSupport ssup;

	if (!OidIsValid(collation) && type_is_collatable(type))
		return encoding;
	state = palloc0(sizeof(struct GsEncodingState));
	ssup = &state->ssup;
	ssup->ssup_cxt = CurrentMemoryContext;
	ssup->ssup_collation = collation;
	ssup->ssup_attno = 1;
	ssup->abbreviate = !get_typbyval(type);
	PrepareSortSupportFromOrderingOp(operator, ssup);

	encoding.kind = kind_of_comparator(ssup->comparator);
	if (ssup->abbrev_converter != NULL && encoding.kind != GS_ENCODE_NONE)
	{
		state->abbreviated = make_encoding(encoding.kind);
		encoding.kind = GS_ENCODE_ABBREVIATION;
		encoding.state = state;
	}
	else if (!get_typbyval(type))
		encoding.kind = GS_ENCODE_NONE;
	encoding.bits = encoding_bits[encoding.kind];
	return encoding;
}

GsKeyEncoding
gpusort_key_encoding_find(Oid operator, Oid collation, bool *descending)
{
	Oid			family;
	Oid			type;
	GsOperatorOrder order;
	GsEncodingKind kind;

	if (!get_ordering_op_properties(operator, &family, &type, &order))
		return make_encoding(GS_ENCODE_NONE);
	*descending = (order == GPUSORT_ORDER_DESCENDING);
	kind = kind_of_comparison(get_opfamily_proc(family, type, type,
												BTORDER_PROC), collation);
	if (kind != GS_ENCODE_NONE)
		return make_encoding(kind);
	if (!OidIsValid(get_opfamily_proc(family, type, type, BTSORTSUPPORT_PROC)))
		return make_encoding(GS_ENCODE_NONE);
	return encoding_of_sort_support(operator, type, collation);
}

bool
gpusort_key_encoding_has_words(const GsKeyEncoding *encoding)
{
	return encoding->kind >= GS_ENCODE_TEXT &&
		encoding->kind <= GS_ENCODE_NUMERIC;
}

bool
gpusort_key_encoding_is_string(const GsKeyEncoding *encoding)
{
	return encoding->kind >= GS_ENCODE_TEXT &&
		encoding->kind <= GS_ENCODE_BYTEA;
}

bool
gpusort_key_encoding_is_exact(const GsKeyEncoding *encoding)
{
	return encoding->kind >= GS_ENCODE_BOOL &&
		encoding->kind <= GS_ENCODE_TIMETZ;
}

bool
gpusort_key_encoding_is_common(const GsKeyEncoding *encoding)
{
	return encoding->kind != GS_ENCODE_ENUM ||
		gpusort_enum_numbers_are_common(encoding->state->numbers);
}

/* ----------------------------------------------------------------
 *		words
 * ----------------------------------------------------------------
 */

/*
 * Write a network address as bytes that memcmp() orders as network_cmp() does:
 * the family, the network part of the address, the length of that part, and
 * the whole address.  Returns the length, which is the same for all addresses
 * of a family.
 */
static Size
network_bytes(Datum value, unsigned char bytes[MAX_NETWORK_BYTES])
{
	inet	   *address = DatumGetInetPP(value);
	Size		size = ip_addrsize(address);
	unsigned	bits = ip_bits(address);

	bytes[0] = ip_family(address);
	memset(bytes + 1, 0, size);
	memcpy(bytes + 1, ip_addr(address), (bits + 7) / 8);
	if (bits % 8 != 0)
		bytes[1 + bits / 8] &= 0xFF << (8 - bits % 8);
	bytes[1 + size] = bits;
	memcpy(bytes + 2 + size, ip_addr(address), size);
	if (address != (inet *) DatumGetPointer(value))
		pfree(address);
	return 2 + 2 * size;
}


static uint64
tid_word(ItemPointer tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

/*
 * Intervals are ordered by their lengths, with months of 30 days.  The first
 * word has the whole days, and the second one the remaining microseconds,
 * which are less than 2^37.
 */
static uint64
interval_word(const Interval * interval, uint32 index)
{
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		rest = interval->time % USECS_PER_DAY;

	days += interval->time / USECS_PER_DAY;
	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	return index == 0 ? gpusort_codec_int64(days) : (uint64) rest;
}

/* The first word has the time in UTC, the second one the time zone. */
static uint64
timetz_word(const TimeTzADT * time, uint32 index)
{
	return index == 0 ?
		gpusort_codec_int64(time->time + time->zone * USECS_PER_SEC) :
		gpusort_codec_int32(time->zone);
}

static uint64
text_word(Datum value, uint32 index)
{
	GsBytes		bytes = gpusort_bytes_get(value, (Size) index * 8, 8);
	uint64		word = gpusort_codec_string(bytes.data, bytes.length);

	gpusort_bytes_free(&bytes);
	return word;
}

static uint64
bpchar_word(Datum value, uint32 index)
{
	GsBytes		bytes = gpusort_bytes_skip(gpusort_bytes_get_trimmed(value), (Size) index * 8);
	uint64		word = gpusort_codec_string(bytes.data, bytes.length);

	gpusort_bytes_free(&bytes);
	return word;
}

static uint64
name_word(Datum value, uint32 index)
{
	GsBytes		bytes = gpusort_bytes_skip(gpusort_bytes_get_name(value), (Size) index * 8);

	return gpusort_codec_string(bytes.data, bytes.length);
}

static uint64
bytea_word(Datum value, uint32 index)
{
	GsBytes		bytes = gpusort_bytes_get(value, (Size) index * 7, 7);
	uint64		word = gpusort_codec_binary(bytes.data, bytes.length);

	gpusort_bytes_free(&bytes);
	return word;
}

static uint64
inet_word(Datum value, uint32 index)
{
	unsigned char bytes[MAX_NETWORK_BYTES];
	Size		length = network_bytes(value, bytes);
	Size		start = Min((Size) index * 8, length);

	return gpusort_codec_string(bytes + start, length - start);
}

/* Bit strings are ordered by their bytes, and then by their lengths. */
static uint64
varbit_word(Datum value)
{
	GsBytes		bytes = gpusort_bytes_get(value, sizeof(int32), 8);
	uint64		word = gpusort_codec_string(bytes.data, bytes.length);

	gpusort_bytes_free(&bytes);
	return word;
}

static uint64
abbreviation_word(struct GsEncodingState *state, Datum value)
{
	Datum		abbreviation = state->ssup.abbrev_converter(value, &state->ssup);
	uint64		word = gpusort_key_encoding_word(&state->abbreviated,
												 abbreviation, 0);

	/* Move the bits to the high end of the word. */
	return word << (WORD_BITS - state->abbreviated.bits);
}

uint64
gpusort_key_encoding_long_word(const GsKeyEncoding *encoding, Datum value,
							   uint32 index)
{
	const unsigned char *fixed = (unsigned char *) DatumGetPointer(value);

	switch (encoding->kind)
	{
		case GS_ENCODE_BYTES6:
			return gpusort_codec_bytes(fixed, 6);
		case GS_ENCODE_BYTES8:
			return gpusort_codec_bytes(fixed, 8);
		case GS_ENCODE_TID:
			return tid_word((ItemPointer) DatumGetPointer(value));
		case GS_ENCODE_ENUM:
			return gpusort_enum_word(encoding->state->numbers,
									 DatumGetObjectId(value));
		case GS_ENCODE_UUID:
			return gpusort_codec_bytes(DatumGetUUIDP(value)->data + index * 8, 8);
		case GS_ENCODE_INTERVAL:
			return interval_word(DatumGetIntervalP(value), index);
		case GS_ENCODE_TIMETZ:
			return timetz_word(DatumGetTimeTzADTP(value), index);
		case GS_ENCODE_TEXT:
			return text_word(value, index);
		case GS_ENCODE_BPCHAR:
			return bpchar_word(value, index);
		case GS_ENCODE_NAME:
			return name_word(value, index);
		case GS_ENCODE_BYTEA:
			return bytea_word(value, index);
		case GS_ENCODE_INET:
			return inet_word(value, index);
		case GS_ENCODE_NUMERIC:
			return gpusort_numeric_word(value, index);
		case GS_ENCODE_VARBIT:
			return varbit_word(value);
		case GS_ENCODE_ABBREVIATION:
			return abbreviation_word(encoding->state, value);
		default:
			pg_unreachable();
	}
}

/* ----------------------------------------------------------------
 *		ties of words
 * ----------------------------------------------------------------
 */

/* Returns the number of bytes of a value whose kind can need more words. */
static Size
count_bytes(const GsKeyEncoding *encoding, Datum value)
{
	GsBytes		bytes;

	switch (encoding->kind)
	{
		case GS_ENCODE_TEXT:
		case GS_ENCODE_BYTEA:
			return toast_raw_datum_size(value) - VARHDRSZ;
		case GS_ENCODE_BPCHAR:
			bytes = gpusort_bytes_get_trimmed(value);
			gpusort_bytes_free(&bytes);
			return bytes.length;
		case GS_ENCODE_NAME:
			return gpusort_bytes_get_name(value).length;
		default:
			{
				unsigned char network[MAX_NETWORK_BYTES];

				Assert(encoding->kind == GS_ENCODE_INET);
				return network_bytes(value, network);
			}
	}
}

GsEncodingRest
gpusort_key_encoding_rest(const GsKeyEncoding *encoding, Datum value,
						  uint32 nwords)
{
	bool		ended;

	switch (encoding->kind)
	{
		case GS_ENCODE_TEXT:
		case GS_ENCODE_BPCHAR:
		case GS_ENCODE_NAME:

			/*
			 * A longer string may have the same words, unless the last one
			 * has a zero byte.
			 */
			ended = count_bytes(encoding, value) < (Size) nwords * 8;
			break;
		case GS_ENCODE_BYTEA:
			ended = count_bytes(encoding, value) <= (Size) nwords * 7;
			break;
		case GS_ENCODE_INET:
			ended = count_bytes(encoding, value) <= (Size) nwords * 8;
			break;
		case GS_ENCODE_NUMERIC:
			ended = gpusort_numeric_ends(value, nwords);
			break;
		case GS_ENCODE_NONE:
		case GS_ENCODE_VARBIT:
		case GS_ENCODE_ABBREVIATION:
			return GS_REST_COMPARE;
		default:
			return GS_REST_NONE;
	}
	return ended ? GS_REST_NONE : GS_REST_WORDS;
}
