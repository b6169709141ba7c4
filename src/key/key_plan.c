/*-------------------------------------------------------------------------
 *
 * key_plan.c
 *		How the sort keys of a query become words that order the same way.
 *
 * A sort operator belongs to a btree operator class, and the class's
 * comparison function is what defines the order.  So it is by that function
 * that an encoding is chosen, not by the type's name: domains, and operator
 * classes of other types that use a built-in comparison, come along.  Types
 * of extensions whose SortSupport uses one of core's shared comparators are
 * recognized by that comparator.
 *
 * The columns' encodings are laid one behind the other, the first column in
 * the most significant bits.  A NULL in the first column sets a row apart (so
 * that a single int8 still fits one word); each later column is preceded by
 * one bit for its NULLs.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/timestamp.h"

#include "core/key_codec.h"
#include "core/radix_sort.h"
#include "key/key_plan.h"

#define WORD_BITS	64

typedef enum GsEncoding
{
	GS_ENCODE_NONE,
	GS_ENCODE_BOOL,
	GS_ENCODE_UINT8,
	GS_ENCODE_INT16,
	GS_ENCODE_INT32,
	GS_ENCODE_UINT32,
	GS_ENCODE_INT64,
	GS_ENCODE_UINT64,
	GS_ENCODE_FLOAT4,
	GS_ENCODE_FLOAT8,
	GS_ENCODE_BYTES6,
	GS_ENCODE_BYTES8
} GsEncoding;

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
};

typedef struct GsKeyColumn
{
	GsEncoding	encoding;
	AttrNumber	attno;
	unsigned	position;		/* first bit of the value, from the key's top */
	bool		nulls_first;
	uint64		invert;			/* XORed to the value: 0, or ones if DESC */
} GsKeyColumn;

struct GsKeyPlan
{
	unsigned	words;
	int			ncolumns;
	GsKeyColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

/* The encoding that gives the order of a btree comparison function. */
static GsEncoding
encoding_of_comparison(Oid function)
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
			return GS_ENCODE_UINT64;
		case F_BTFLOAT4CMP:
			return GS_ENCODE_FLOAT4;
		case F_BTFLOAT8CMP:
			return GS_ENCODE_FLOAT8;
		case F_MACADDR_CMP:
			return GS_ENCODE_BYTES6;
		case F_MACADDR8_CMP:
			return GS_ENCODE_BYTES8;
		default:
			return GS_ENCODE_NONE;
	}
}

/*
 * The encoding that gives the order of an operator's SortSupport comparator,
 * if that is one of those core shares.  Only for types passed by value: others
 * cannot have one, and preparing theirs may raise errors (an indeterminate
 * collation, for one) that belong to the execution of the query.
 */
static GsEncoding
encoding_of_sort_support(Oid operator, Oid collation)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort SortSupport",
												  ALLOCSET_SMALL_SIZES);
	SortSupportData ssup = {0};
	GsEncoding	encoding = GS_ENCODE_NONE;

	ssup.ssup_cxt = scratch;
	ssup.ssup_collation = collation;
	ssup.ssup_attno = 1;
	ssup.abbreviate = false;
	PrepareSortSupportFromOrderingOp(operator, &ssup);
	if (ssup.comparator == ssup_datum_int32_cmp)
		encoding = GS_ENCODE_INT32;
	else if (ssup.comparator == ssup_datum_signed_cmp)
		encoding = GS_ENCODE_INT64;
	else if (ssup.comparator == ssup_datum_unsigned_cmp)
		encoding = GS_ENCODE_UINT64;
	MemoryContextDelete(scratch);
	return encoding;
}

/* Find a column's encoding, and whether its operator is a ">". */
static GsEncoding
encoding_of_operator(Oid operator, Oid collation, bool *descending)
{
	Oid			family;
	Oid			type;
	GsOperatorOrder order;
	GsEncoding	encoding;

	if (!get_ordering_op_properties(operator, &family, &type, &order))
		return GS_ENCODE_NONE;
	*descending = (order == GPUSORT_ORDER_DESCENDING);

	encoding = encoding_of_comparison(get_opfamily_proc(family, type, type,
														BTORDER_PROC));
	if (encoding == GS_ENCODE_NONE && get_typbyval(type))
		encoding = encoding_of_sort_support(operator, collation);
	return encoding;
}

GsKeyPlan *
gpusort_key_plan_create(const GsSortKeys *keys, GsFallback *reason,
						int *culprit)
{
	GsKeyPlan  *plan;
	unsigned	bits = 0;

	plan = palloc0(offsetof(GsKeyPlan, columns) +
				   keys->nkeys * sizeof(GsKeyColumn));
	plan->ncolumns = keys->nkeys;
	for (int i = 0; i < keys->nkeys; i++)
	{
		GsKeyColumn *column = &plan->columns[i];
		bool		descending = false;
		unsigned	width;

		column->encoding = encoding_of_operator(keys->operators[i],
												keys->collations[i],
												&descending);
		width = encoding_bits[column->encoding];
		*culprit = i;
		if (column->encoding == GS_ENCODE_NONE)
		{
			*reason = GS_FALLBACK_TYPE;
			pfree(plan);
			return NULL;
		}
		if (i > 0)
			bits++;				/* for NULLs */
		column->attno = keys->attnos[i];
		column->nulls_first = keys->nulls_first[i];
		column->position = bits;
		column->invert = descending ? PG_UINT64_MAX >> (WORD_BITS - width) : 0;
		bits += width;
		if (bits > GPUSORT_CPU_MAX_KEY_WORDS * WORD_BITS)
		{
			*reason = GS_FALLBACK_KEY_WIDTH;
			pfree(plan);
			return NULL;
		}
	}
	plan->words = (bits + WORD_BITS - 1) / WORD_BITS;

	/* gpusort_key_plan_encode() stores a single value as it is. */
	Assert(keys->nkeys > 1 || plan->words == 1);
	*reason = GS_FALLBACK_NONE;
	return plan;
}

unsigned
gpusort_key_plan_words(const GsKeyPlan *plan)
{
	return plan->words;
}

bool
gpusort_key_plan_is_exact(const GsKeyPlan *plan, int *first)
{
	*first = plan->ncolumns;
	return true;
}

bool
gpusort_key_plan_nulls_first(const GsKeyPlan *plan)
{
	return plan->columns[0].nulls_first;
}

static inline uint64
encode_value(GsEncoding encoding, Datum value)
{
	switch (encoding)
	{
		case GS_ENCODE_BOOL:
			return DatumGetBool(value) ? 1 : 0;
		case GS_ENCODE_UINT8:
			return DatumGetUInt8(value);
		case GS_ENCODE_INT16:
			return gpusort_codec_int16(DatumGetInt16(value));
		case GS_ENCODE_INT32:
			return gpusort_codec_int32(DatumGetInt32(value));
		case GS_ENCODE_UINT32:
			return DatumGetUInt32(value);
		case GS_ENCODE_INT64:
			return gpusort_codec_int64(DatumGetInt64(value));
		case GS_ENCODE_UINT64:
			return DatumGetUInt64(value);
		case GS_ENCODE_FLOAT4:
			return gpusort_codec_float4(DatumGetFloat4(value));
		case GS_ENCODE_FLOAT8:
			return gpusort_codec_float8(DatumGetFloat8(value));
		case GS_ENCODE_BYTES6:
			return gpusort_codec_bytes((unsigned char *) DatumGetPointer(value), 6);
		case GS_ENCODE_BYTES8:
			return gpusort_codec_bytes((unsigned char *) DatumGetPointer(value), 8);
		case GS_ENCODE_NONE:
			break;
	}
	pg_unreachable();
}

/* Set the bits [position, position + width) of a key that has zeroes there. */
static inline void
set_key_bits(uint64 *key, unsigned position, unsigned width, uint64 value)
{
	uint64	   *word = &key[position / WORD_BITS];
	unsigned	room = WORD_BITS - position % WORD_BITS;

	if (width <= room)
		word[0] |= value << (room - width);
	else
	{
		word[0] |= value >> (width - room);
		word[1] |= value << (WORD_BITS - (width - room));
	}
}

/* The key of a row with several sort keys. */
static void
encode_columns(const GsKeyPlan *plan, const Datum *values, const bool *isnull,
			   uint64 *key)
{
	for (unsigned w = 0; w < plan->words; w++)
		key[w] = 0;
	for (int i = 0; i < plan->ncolumns; i++)
	{
		const GsKeyColumn *column = &plan->columns[i];
		unsigned	width = encoding_bits[column->encoding];
		bool		is_null = isnull[column->attno - 1];

		if (i > 0)
			set_key_bits(key, column->position - 1, 1,
						 is_null != column->nulls_first);
		if (!is_null)
			set_key_bits(key, column->position, width,
						 encode_value(column->encoding,
									  values[column->attno - 1]) ^ column->invert);
	}
}

bool
gpusort_key_plan_encode(const GsKeyPlan *plan, const Datum *values,
						const bool *isnull, uint64 *key)
{
	const GsKeyColumn *first = &plan->columns[0];
	bool		first_is_null = isnull[first->attno - 1];

	if (plan->ncolumns > 1)
		encode_columns(plan, values, isnull, key);
	else if (first_is_null)
		*key = 0;
	else
		*key = encode_value(first->encoding, values[first->attno - 1]) ^
			first->invert;
	return !first_is_null;
}
