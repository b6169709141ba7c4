/*-------------------------------------------------------------------------
 *
 * gin_order.c
 *		The order of the keys of a GIN index.
 *
 * Most operator classes compare keys by the comparison function of a type's btree operator
 * class, whose encoding is used.  Those of jsonb and tsvector compare bytes, as text with the
 * collation "C" does.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "index/gin/gin_order.h"

/*
 * Do the values of this encoding have equal bytes if they are equal?  In PostgreSQL 15, texts
 * with zero bytes may not, but then only the bytes that are stored for their key can differ
 * from PostgreSQL's, which no search sees.
 */
static bool
bytes_tell_keys(GsEncodingKind kind, Oid function, Oid collation)
{
	switch (kind)
	{
		case GS_ENCODE_BOOL:
		case GS_ENCODE_UINT8:
		case GS_ENCODE_INT16:
		case GS_ENCODE_INT32:
		case GS_ENCODE_UINT32:
		case GS_ENCODE_INT64:
		case GS_ENCODE_UINT64:
		case GS_ENCODE_UUID:
		case GS_ENCODE_BYTEA:
			return true;
		case GS_ENCODE_TEXT:
			return true;
		case GS_ENCODE_LOCALE:
		case GS_ENCODE_ICU:

			/*
			 * Equal values of character and citext can have spaces or cases
			 * of their own.
			 */
			return function == F_BTTEXTCMP && get_collation_isdeterministic(collation);
		default:
			return false;
	}
}

/* Find the "<" operator with the order of a comparison function, and the collation. */
static Oid
find_operator(Oid function, Oid type, Oid *collation)
{
	TypeCacheEntry *entry;

	if (function == F_GIN_COMPARE_JSONB || function == F_GIN_CMP_TSLEXEME)
	{
		*collation = C_COLLATION_OID;
		return TextLessOperator;
	}
	entry = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC);
	return entry->cmp_proc == function ? entry->lt_opr : InvalidOid;
}

static void
init_column(GsGinOrder *order, int i)
{
	GsGinColumn *column = &order->columns[i];
	Form_pg_attribute att = TupleDescAttr(order->state.origTupdesc, i);
	Oid			function = order->state.compareFn[i].fn_oid;
	Oid			collation = order->state.supportCollation[i];
	Oid			operator = find_operator(function, att->atttypid, &collation);
	bool		descending = false;

	column->attlen = att->attlen;
	column->attbyval = att->attbyval;
	if (OidIsValid(operator))
		column->encoding = gpusort_key_encoding_find(operator, collation, &descending);

	/*
	 * The labels of an enum may be numbered anew while the index is built.
	 * The words of abbreviations can be of no use, and comparisons have none.
	 */
	if (descending || column->encoding.kind == GS_ENCODE_ENUM ||
		column->encoding.kind == GS_ENCODE_ABBREVIATION ||
		column->encoding.kind == GS_ENCODE_COMPARISONS)
		column->encoding.kind = GS_ENCODE_NONE;
	if (column->encoding.kind == GS_ENCODE_NONE)
		return;
	column->operator = operator;
	column->collation = collation;
	column->bytes_tell_keys = bytes_tell_keys(column->encoding.kind, function, collation);
	column->exact = column->encoding.bits <= 64 &&
		gpusort_key_encoding_is_exact(&column->encoding);
}

GsGinOrder *
gpusort_gin_order_create(Relation index)
{
	GsGinOrder *order = palloc0(sizeof(GsGinOrder));

	initGinState(&order->state, index);
	for (int i = 0; i < order->state.origTupdesc->natts; i++)
		init_column(order, i);
	return order;
}

bool
gpusort_gin_order_is_distrusted(const GsGinOrder *order)
{
	for (int i = 0; i < order->state.origTupdesc->natts; i++)
	{
		const GsGinColumn *column = &order->columns[i];

		if (column->encoding.kind != GS_ENCODE_NONE &&
			gpusort_key_encoding_is_distrusted(column->operator, column->collation))
			return true;
	}
	return false;
}

int
gpusort_gin_order_compare(GsGinOrder *order, const GsGinKey *a, const GsGinKey *b)
{
	if (a->attnum != b->attnum)
		return a->attnum < b->attnum ? -1 : 1;
	if (a->category != b->category)
		return a->category < b->category ? -1 : 1;
	if (a->category != GIN_CAT_NORM_KEY)
		return 0;
	if (a->word != b->word)
		return a->word < b->word ? -1 : 1;
	if (order->columns[a->attnum - 1].exact)
		return 0;
	return ginCompareEntries(&order->state, a->attnum, a->value, a->category,
							 b->value, b->category);
}
