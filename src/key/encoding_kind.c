/*-------------------------------------------------------------------------
 *
 * encoding_kind.c
 *		Which kind of encoding has the order of a comparison function.
 *
 * key_encoding.c asks this when it looks for the encoding of a sort operator, and then adds
 * what the kind needs to encode values.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/fmgroids.h"

#include "key/citext_bytes.h"
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

GsEncodingKind
gpusort_encoding_kind_of_comparison(Oid function, bool *collated)
{
	GsEncodingKind kind = kind_of_comparison(function);

	*collated = function == F_BTTEXTCMP || function == F_BPCHARCMP ||
		function == F_BTNAMECMP;
	if (kind == GS_ENCODE_NONE && gpusort_citext_is_comparison(function, collated))
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
