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

#include "key/citext_bytes.h"
#include "key/enum_words.h"
#include "key/icu_keys.h"
#include "key/key_encoding.h"
#include "key/locales.h"
#include "key/numeric_words.h"
#include "work.h"

#define WORD_BITS	64

/* Room for the weights of most strings. */
#define WEIGHTS_BUFFER_BYTES	512

/* Bytes of weights between two checks for interrupts. */
#define GPUSORT_WEIGHTS_PER_LOOK	65536

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
	[GS_ENCODE_CITEXT] = 64,
	[GS_ENCODE_LOCALE] = 64,
	[GS_ENCODE_ICU] = 64,
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
	const GsLocaleWeights *weights; /* GS_ENCODE_LOCALE */
	GsIcuCollator *collator;	/* GS_ENCODE_ICU */
	GsEncodingKind string;		/* of the values' own bytes */
	GsWeightMemo memo;			/* GS_ENCODE_LOCALE */
	unsigned char buffer[WEIGHTS_BUFFER_BYTES]; /* GS_ENCODE_ICU */
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

/* What the catalogs say of a collation. */
typedef struct GsCollation
{
	char		provider;		/* 0 if there is no such collation */
	char	   *locale;			/* the provider's name of it, or NULL */
	bool		has_rules;		/* of its own, in addition to the locale's */
} GsCollation;

static char *
text_attribute(int cache, HeapTuple tuple, AttrNumber attno)
{
	bool		isnull = true;
	Datum		value = (Datum) 0;

	if (attno != 0)
		value = SysCacheGetAttr(cache, tuple, attno, &isnull);
	return isnull ? NULL : TextDatumGetCString(value);
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

static bool
compares_bytes(const GsCollation *collation)
{
	switch (collation->provider)
	{
		case COLLPROVIDER_LIBC:
			return collation->locale != NULL && is_name_of_c_locale(collation->locale);
		case GPUSORT_COLLPROVIDER_BUILTIN:
			return true;
		default:
			return false;
	}
}

bool
gpusort_key_encoding_compares_bytes(Oid collation)
{
	GsCollation found;

	if (!OidIsValid(collation))
		return false;
	found = find_collation(collation);
	return compares_bytes(&found);
}

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

/*
 * The same, also for comparison functions of contrib modules.  Sets *collated to whether the
 * function compares by a collation.
 */
static GsEncodingKind
kind_of_any_comparison(Oid function, bool *collated)
{
	GsEncodingKind kind = kind_of_comparison(function);

	*collated = function == F_BTTEXTCMP || function == F_BPCHARCMP ||
		function == F_BTNAMECMP;
	if (kind == GS_ENCODE_NONE && gpusort_citext_is_comparison(function, collated))
		return GS_ENCODE_CITEXT;
	return kind;
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

	if (kind == GS_ENCODE_ENUM || kind == GS_ENCODE_LOCALE || kind == GS_ENCODE_ICU)
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
	if (compares_bytes(&collation))
		return make_encoding(string);
	if (collation.locale != NULL && collation.provider == COLLPROVIDER_LIBC)
		weights = gpusort_locales_get(collation.locale);
	else if (collation.locale != NULL && collation.provider == COLLPROVIDER_ICU &&
			 !collation.has_rules)
		collator = gpusort_icu_collator_get(collation.locale);
	if (weights == NULL && collator == NULL)
		return encoding;
	encoding = make_encoding(weights != NULL ? GS_ENCODE_LOCALE : GS_ENCODE_ICU);
	encoding.state->weights = weights;
	encoding.state->collator = collator;
	encoding.state->string = string;
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
	Oid			function;
	GsOperatorOrder order;
	GsKeyEncoding encoding;
	bool		collated;

	if (!get_ordering_op_properties(operator, &family, &type, &order))
		return make_encoding(GS_ENCODE_NONE);
	*descending = (order == GPUSORT_ORDER_DESCENDING);
	function = get_opfamily_proc(family, type, type, BTORDER_PROC);
	encoding.kind = kind_of_any_comparison(function, &collated);
	if (collated)
		encoding = encoding_of_collation(encoding.kind, collation);
	else
		encoding = make_encoding(encoding.kind);
	if (encoding.kind != GS_ENCODE_NONE)
		return encoding;
	if (!OidIsValid(get_opfamily_proc(family, type, type, BTSORTSUPPORT_PROC)))
		return make_encoding(GS_ENCODE_NONE);
	return encoding_of_sort_support(operator, type, collation);
}

const char *
gpusort_key_encoding_name(const GsKeyEncoding *encoding)
{
	switch (encoding->kind)
	{
		case GS_ENCODE_NONE:
			return "comparisons";
		case GS_ENCODE_LOCALE:
			return "weights of the C library";
		case GS_ENCODE_ICU:
			return "weights of ICU";
		case GS_ENCODE_VARBIT:
		case GS_ENCODE_ABBREVIATION:
			return "abbreviations";
		default:
			return "values";
	}
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
gpusort_key_encoding_has_weights(const GsKeyEncoding *encoding)
{
	return encoding->kind == GS_ENCODE_LOCALE;
}

bool
gpusort_key_encoding_leaves_open(const GsKeyEncoding *encoding)
{
	return encoding->kind == GS_ENCODE_LOCALE || encoding->kind == GS_ENCODE_ICU;
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
 *		bytes of strings
 * ----------------------------------------------------------------
 */

/* Get the own bytes of a string of some kind, as gpusort_bytes_get() does. */
static inline GsBytes
string_bytes(GsEncodingKind kind, Datum value, Size start, Size count)
{
	switch (kind)
	{
		case GS_ENCODE_BPCHAR:
			return gpusort_bytes_skip(gpusort_bytes_get_trimmed(value), start);
		case GS_ENCODE_NAME:
			return gpusort_bytes_skip(gpusort_bytes_get_name(value), start);
		case GS_ENCODE_CITEXT:
			return gpusort_bytes_skip(gpusort_citext_bytes(value), start);
		default:
			return gpusort_bytes_get(value, start, count);
	}
}

/*
 * Get the bytes of a string's weights.  Those of most strings fit into a buffer; if there
 * are more, begin again with a copy.
 */
static GsBytes
weight_bytes(struct GsEncodingState *state, Datum value, Size start, Size count)
{
	GsBytes		string = string_bytes(state->string, value, 0, MaxAllocSize);
	GsBytes		weights = {.data = state->memo.bytes};
	unsigned char *bytes = state->memo.bytes;
	Size		room = sizeof(state->memo.bytes);
	GsWeightReader reader;
	Size		skipped;
	unsigned char byte;

	weights.length = gpusort_weight_memo_begin(&state->memo, &reader, state->weights,
											   string.data, string.length, start, count,
											   &skipped);
	while (skipped < start && gpusort_weight_reader_next(&reader) != 0)
		if (++skipped % GPUSORT_WEIGHTS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
	while (weights.length <= count && (byte = gpusort_weight_reader_next(&reader)) != 0)
	{
		if (unlikely(weights.length == room))
		{
			CHECK_FOR_INTERRUPTS();
			room *= 2;
			if (weights.copy != NULL)
				weights.copy = repalloc_huge(weights.copy, room);
			else
				weights.copy = memcpy(palloc(room), bytes, weights.length);
			weights.data = bytes = weights.copy;
		}
		bytes[weights.length++] = byte;
	}
	gpusort_work_add(skipped + weights.length);
	gpusort_bytes_free(&string);
	return weights;
}

/* Get the bytes of a string's weights in ICU, likewise. */
static GsBytes
icu_bytes(struct GsEncodingState *state, Datum value, Size start, Size count)
{
	GsBytes		string = string_bytes(state->string, value, 0, MaxAllocSize);
	GsBytes		key = {.data = state->buffer};
	Size		room = sizeof(state->buffer);
	Size		wanted = start + Min(count, MaxAllocHugeSize / 2) + 1;
	Size		length;

	CHECK_FOR_INTERRUPTS();
	length = gpusort_icu_key(state->collator, string.data, string.length,
							 state->buffer, Min(wanted, room));
	while (length == room && room < wanted)
	{
		room *= 4;
		if (key.copy != NULL)
			pfree(key.copy);
		key.data = key.copy = MemoryContextAllocHuge(CurrentMemoryContext, room);
		length = gpusort_icu_key(state->collator, string.data, string.length,
								 key.copy, Min(wanted, room));
	}
	gpusort_work_add(string.length + length);
	gpusort_bytes_free(&string);
	key.length = length;
	return gpusort_bytes_skip(key, start);
}

GsBytes
gpusort_key_encoding_bytes(const GsKeyEncoding *encoding, Datum value, Size start,
						   Size count)
{
	if (encoding->kind == GS_ENCODE_LOCALE)
		return weight_bytes(encoding->state, value, start, count);
	if (encoding->kind == GS_ENCODE_ICU)
		return icu_bytes(encoding->state, value, start, count);
	return string_bytes(encoding->kind, value, start, count);
}

int
gpusort_key_encoding_compare_weights(const GsKeyEncoding *encoding, Datum a,
									 Datum b, bool *same)
{
	const struct GsEncodingState *state = encoding->state;
	GsBytes		a_bytes = string_bytes(state->string, a, 0, MaxAllocSize);
	GsBytes		b_bytes = string_bytes(state->string, b, 0, MaxAllocSize);
	int			cmp = 0;

	*same = a_bytes.length == b_bytes.length &&
		memcmp(a_bytes.data, b_bytes.data, a_bytes.length) == 0;
	if (!*same)
		cmp = gpusort_locale_weights_compare(state->weights,
											 a_bytes.data, a_bytes.length,
											 b_bytes.data, b_bytes.length);
	gpusort_bytes_free(&a_bytes);
	gpusort_bytes_free(&b_bytes);
	return cmp;
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
string_word(const GsKeyEncoding *encoding, Datum value, uint32 index)
{
	GsBytes		bytes = gpusort_key_encoding_bytes(encoding, value,
												   (Size) index * 8, 8);
	uint64		word = gpusort_codec_string(bytes.data, bytes.length);

	gpusort_bytes_free(&bytes);
	return word;
}

static uint64
bytea_word(Datum value, uint32 index)
{
	GsBytes		bytes = gpusort_bytes_get(value, (Size) index * 7, 7);
	uint64		word = gpusort_codec_binary(bytes.data, bytes.length);

	gpusort_bytes_free(&bytes);
	return word;
}

void
gpusort_key_encoding_string_words(const GsKeyEncoding *encoding, Datum value,
								  uint64 *words, unsigned count)
{
	bool		binary = encoding->kind == GS_ENCODE_BYTEA;
	Size		word_bytes = binary ? 7 : 8;
	GsBytes		bytes = gpusort_key_encoding_bytes(encoding, value, 0,
												   count * word_bytes);
	GsBytes		rest = bytes;

	for (unsigned w = 0; w < count; w++)
	{
		words[w] = binary ? gpusort_codec_binary(rest.data, rest.length) :
			gpusort_codec_string(rest.data, rest.length);
		rest = gpusort_bytes_skip(rest, word_bytes);
	}
	gpusort_bytes_free(&bytes);
}

/* The first word of a string's weights. */
static uint64
first_word_of_weights(const GsKeyEncoding *encoding, Datum value)
{
	GsWeightReader reader;
	GsBytes		string = string_bytes(encoding->state->string, value, 0,
									  MaxAllocSize);
	uint64		word = 0;
	unsigned	shift = WORD_BITS;
	unsigned char byte;

	gpusort_weight_reader_begin(&reader, encoding->state->weights, string.data,
								string.length);
	while (shift > 0 && (byte = gpusort_weight_reader_next(&reader)) != 0)
	{
		shift -= 8;
		word |= (uint64) byte << shift;
	}
	gpusort_bytes_free(&string);
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
		case GS_ENCODE_BPCHAR:
		case GS_ENCODE_NAME:
		case GS_ENCODE_CITEXT:
		case GS_ENCODE_ICU:
			return string_word(encoding, value, index);
		case GS_ENCODE_LOCALE:
			return index == 0 ? first_word_of_weights(encoding, value) :
				string_word(encoding, value, index);
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
		case GS_ENCODE_NAME:
		case GS_ENCODE_CITEXT:
			bytes = gpusort_key_encoding_bytes(encoding, value, 0, 0);
			gpusort_bytes_free(&bytes);
			return bytes.length;
		default:
			{
				unsigned char network[MAX_NETWORK_BYTES];

				Assert(encoding->kind == GS_ENCODE_INET);
				return network_bytes(value, network);
			}
	}
}

/* Do the weights of a string end before so many words are full? */
static bool
bytes_end(const GsKeyEncoding *encoding, Datum value, uint32 nwords)
{
	Size		most = (Size) nwords * 8;
	GsBytes		bytes = gpusort_key_encoding_bytes(encoding, value, 0, most);

	gpusort_bytes_free(&bytes);
	return bytes.length < most;
}

GsEncodingRest
gpusort_key_encoding_rest(const GsKeyEncoding *encoding, Datum value,
						  uint32 nwords)
{
	bool		ended;

	switch (encoding->kind)
	{
		case GS_ENCODE_LOCALE:
		case GS_ENCODE_ICU:
			return bytes_end(encoding, value, nwords) ?
				GS_REST_COMPARE : GS_REST_WORDS;
		case GS_ENCODE_TEXT:
		case GS_ENCODE_BPCHAR:
		case GS_ENCODE_NAME:
		case GS_ENCODE_CITEXT:

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
