/*-------------------------------------------------------------------------
 *
 * gin_order.c
 *		The order of the keys of a GIN index, and the rows that are sorted.
 *
 * Most operator classes compare keys by the comparison function of a type's btree operator
 * class, whose operator "<" is the sort operator.  Those of jsonb and tsvector compare bytes,
 * as text with the collation "C" does.  For any other function the sort has no encoding.
 * What is left open by the encoding, the function decides itself and not the operator's sort
 * support, which in most collations ignores what follows a zero byte of a text.
 *
 * A row has the columns
 *
 *		number		of the index column and the category
 *		key			one for each index column; NULL but for the row's own, if that is a value
 *		first		a TID
 *		others		the other TIDs
 *
 * and is sorted by them in this order, without the last one.  An index of one column has
 * the key before the number, since all keys but the NULLs have the same number.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "index/gin/gin_private.h"

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
	bool		descending = false;
	GsKeyEncoding encoding;

	column->attlen = att->attlen;
	column->attbyval = att->attbyval;
	column->collation = order->state.supportCollation[i];
	column->operator = find_operator(function, att->atttypid, &column->collation);
	if (!OidIsValid(column->operator))
		return;
	encoding = gpusort_key_encoding_find(column->operator, column->collation, &descending);
	if (descending)
		column->operator = InvalidOid;
	else
		column->bytes_tell_keys = bytes_tell_keys(encoding.kind, function, column->collation);

	/* Since PostgreSQL 16, all bytes count, and their order is that of "C". */
	if (GPUSORT_SINCE_16(encoding.ends_at_zero, false))
		column->collation = C_COLLATION_OID;
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

int
gpusort_gin_order_compare(GsGinOrder *order, const GsGinKey *a, const GsGinKey *b)
{
	return ginCompareEntries(&order->state, a->attnum, a->value, a->category,
							 b->value, b->category);
}

/* ----------------------------------------------------------------
 *		rows of the sort
 * ----------------------------------------------------------------
 */

/*
 * Columns of a row, counted from 0, of an index with that many columns.  The key of a column has
 * the column's attnum.
 */
#define NUMBER_COLUMN			0
#define FIRST_COLUMN(ncolumns)	((ncolumns) + 1)
#define OTHERS_COLUMN(ncolumns) ((ncolumns) + 2)

/* The bits of the number that have the category. */
#define CATEGORY_BITS	2

/* The width of a row of the sort, if keys have few TIDs. */
#define ROW_WIDTH			64

StaticAssertDecl(INDEX_MAX_KEYS << CATEGORY_BITS < 0xFF, "numbers must fit into a byte");
StaticAssertDecl(GIN_CAT_NULL_ITEM < 1 << CATEGORY_BITS, "categories must fit into their bits");

static TupleDesc
make_tupdesc(const GsGinOrder *order)
{
	TupleDesc	keys = order->state.origTupdesc;
	int			n = keys->natts;
	TupleDesc	rows = CreateTemplateTupleDesc(OTHERS_COLUMN(n) + 1);

	TupleDescInitEntry(rows, NUMBER_COLUMN + 1, "number", INT8OID, -1, 0);
	for (int i = 0; i < n; i++)
	{
		/* Rows of words of eight bytes are read and written fastest. */
		if (TupleDescAttr(keys, i)->attbyval)
			TupleDescInitEntry(rows, i + 2, NULL, INT8OID, -1, 0);
		else
			TupleDescCopyEntry(rows, i + 2, keys, i + 1);
	}
	TupleDescInitEntry(rows, FIRST_COLUMN(n) + 1, "first", INT8OID, -1, 0);
	TupleDescInitEntry(rows, OTHERS_COLUMN(n) + 1, "others", BYTEAOID, -1, 0);
	TupleDescFinalize(rows);
	return rows;
}

/* Add a sort key: a column of the rows, from 0. */
static void
add_key(GsSortKeys *keys, int column, Oid operator, Oid function, Oid collation)
{
	int			k = keys->nkeys++;

	keys->attnos[k] = column + 1;
	keys->operators[k] = operator;
	keys->functions[k] = function;
	keys->collations[k] = collation;
	keys->nulls_first[k] = false;
}

static void
add_number(GsSortKeys *keys)
{
	TypeCacheEntry *entry = lookup_type_cache(CHAROID, TYPECACHE_LT_OPR);

	add_key(keys, NUMBER_COLUMN, entry->lt_opr, InvalidOid, InvalidOid);
}

static void
describe_keys(const GsGinOrder *order, GsSortKeys *keys)
{
	int			n = order->state.origTupdesc->natts;
	int			size = n + 2;

	keys->attnos = palloc(size * sizeof(AttrNumber));
	keys->operators = palloc(size * sizeof(Oid));
	keys->functions = palloc(size * sizeof(Oid));
	keys->collations = palloc(size * sizeof(Oid));
	keys->nulls_first = palloc(size * sizeof(bool));
	keys->nkeys = 0;
	if (n > 1)
		add_number(keys);
	for (int i = 0; i < n; i++)
		add_key(keys, i + 1, order->columns[i].operator, order->state.compareFn[i].fn_oid,
				order->columns[i].collation);
	if (n == 1)
		add_number(keys);
	add_key(keys, FIRST_COLUMN(n), Int8LessOperator, InvalidOid, InvalidOid);
}

void
gpusort_gin_order_describe(const GsGinOrder *order, GsSortSpec *spec)
{
	spec->tupdesc = make_tupdesc(order);
	describe_keys(order, &spec->keys);
	spec->expected_width = ROW_WIDTH;
	spec->nested = true;
	spec->unseen = true;
}

void
gpusort_gin_order_store(const GsGinOrder *order, const GsGinRow *row, TupleTableSlot *slot)
{
	int			n = order->state.origTupdesc->natts;

	ExecClearTuple(slot);
	memset(slot->tts_isnull, n > 1, n + 1);
	slot->tts_isnull[row->key.attnum] = row->key.category != GIN_CAT_NORM_KEY;
	slot->tts_isnull[NUMBER_COLUMN] = false;
	slot->tts_isnull[FIRST_COLUMN(n)] = false;
	slot->tts_isnull[OTHERS_COLUMN(n)] = row->others == NULL;
	slot->tts_values[NUMBER_COLUMN] = row->key.attnum << CATEGORY_BITS | row->key.category;
	slot->tts_values[row->key.attnum] = row->key.value;
	slot->tts_values[FIRST_COLUMN(n)] = UInt64GetDatum(row->first);
	slot->tts_values[OTHERS_COLUMN(n)] = PointerGetDatum(row->others);
	ExecStoreVirtualTuple(slot);
}

void
gpusort_gin_order_load(const GsGinOrder *order, const TupleTableSlot *slot, GsGinRow *row)
{
	int			n = order->state.origTupdesc->natts;
	int			number = (int) slot->tts_values[NUMBER_COLUMN];

	row->key.attnum = number >> CATEGORY_BITS;
	row->key.category = number & ((1 << CATEGORY_BITS) - 1);
	row->key.value = slot->tts_values[row->key.attnum];
	row->first = DatumGetUInt64(slot->tts_values[FIRST_COLUMN(n)]);
	row->others = slot->tts_isnull[OTHERS_COLUMN(n)] ? NULL :
		(bytea *) DatumGetPointer(slot->tts_values[OTHERS_COLUMN(n)]);
}
