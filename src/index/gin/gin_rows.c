/*-------------------------------------------------------------------------
 *
 * gin_rows.c
 *		The rows that a build of a GIN index sorts, and the keys and TIDs that it reads from them.
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
 * A key has several rows if it has many TIDs, if memory was full between them, or if several
 * processes have found it.  Its rows come in the order of their first TIDs, and the TIDs of a row
 * ascend.  So when the next row is known, all TIDs before its first one can be written, and few
 * have to be merged.
 *
 * A key that has been read is compared with the one before by the operator class's function, to
 * find rows of equal keys that have other bytes.  This also tells whether the sort, which uses
 * encodings, has them in order.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "index/gin/gin.h"
#include "key/distrust.h"
#include "settings.h"
#include "work.h"

/* Room for TIDs of a key in the beginning. */
#define FIRST_TIDS		1024

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

static void
load_row(const GsGinOrder *order, const TupleTableSlot *slot, GsGinRow *row)
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

/* ----------------------------------------------------------------
 *		reading keys
 * ----------------------------------------------------------------
 */

struct GsGinReader
{
	GsGinOrder *order;
	GsSort	   *sort;
	MemoryContext scratch;		/* for what comparisons leak */
	TupleTableSlot *slot;

	bool		has_row;		/* is there a row that has not been used? */
	GsGinRow	row;			/* if so; it is in the slot */
	bool		wrong;			/* are keys not in order? */

	/* The current key: */
	GsGinKey	key;
	MemoryContext key_context;	/* of its value */
	bool		ended;			/* have all of its rows been used? */
	uint64	   *tids;			/* in ascending order */
	uint64	   *added;			/* of the row that is being added */
	uint32		ntids;
	uint32		max_tids;		/* that each array has room for */
	uint32		nfinal;			/* no TID will come before or between these */
	uint32		ngiven;			/* how many of those the caller has */
};

static void
read_row(GsGinReader *reader)
{
	reader->has_row = gpusort_sort_next(reader->sort, true, reader->slot);
	if (reader->has_row)
		load_row(reader->order, reader->slot, &reader->row);
}

GsGinReader *
gpusort_gin_reader_begin(const GsIndexBuild *build, GsGinOrder *order)
{
	GsGinReader *reader = palloc0(sizeof(GsGinReader));

	reader->order = order;
	reader->sort = build->producer.sort;
	reader->key_context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort GIN sorted key",
												ALLOCSET_SMALL_SIZES);
	reader->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort GIN comparison",
											ALLOCSET_SMALL_SIZES);
	reader->slot = MakeSingleTupleTableSlot(build->spec.tupdesc, &TTSOpsVirtual);
	reader->max_tids = FIRST_TIDS;
	reader->tids = palloc(FIRST_TIDS * sizeof(uint64));
	reader->added = palloc(FIRST_TIDS * sizeof(uint64));
	reader->ended = true;
	read_row(reader);
	return reader;
}

/* Make the key of the row the current one. */
static void
keep_key(GsGinReader *reader)
{
	const GsGinKey *key = &reader->row.key;
	const GsGinColumn *column = &reader->order->columns[key->attnum - 1];
	MemoryContext caller;

	reader->key = *key;
	if (key->category != GIN_CAT_NORM_KEY || column->attbyval)
		return;
	gpusort_work_add(gpusort_gin_order_key_bytes(column, key->value));
	MemoryContextReset(reader->key_context);
	caller = MemoryContextSwitchTo(reader->key_context);
	reader->key.value = datumCopy(key->value, false, column->attlen);
	MemoryContextSwitchTo(caller);
}

/* Compare the current key with that of the row. */
static int
compare_keys(GsGinReader *reader)
{
	const GsGinKey *a = &reader->key;
	const GsGinKey *b = &reader->row.key;
	const GsGinColumn *column = &reader->order->columns[a->attnum - 1];
	MemoryContext caller;
	int			cmp;

	if (a->attnum != b->attnum)
		return a->attnum < b->attnum ? -1 : 1;
	if (a->category != b->category)
		return a->category < b->category ? -1 : 1;
	if (a->category != GIN_CAT_NORM_KEY ||
		datumIsEqual(a->value, b->value, column->attbyval, column->attlen))
		return 0;
	CHECK_FOR_INTERRUPTS();
	caller = MemoryContextSwitchTo(reader->scratch);
	cmp = ginCompareEntries(&reader->order->state, a->attnum, a->value, a->category,
							b->value, b->category);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(reader->scratch);
	return cmp;
}

/*
 * Has the row the current key?  Keys without a sort operator are sorted by the same function, and
 * it does not matter if that contradicts itself.
 */
static bool
is_same_key(GsGinReader *reader)
{
	int			cmp = compare_keys(reader);

	if (cmp > 0 && gpusort_verify != GS_VERIFY_OFF &&
		OidIsValid(reader->order->columns[reader->key.attnum - 1].operator))
		reader->wrong = true;
	return cmp == 0;
}

char *
gpusort_gin_reader_wrong_encoding(const GsGinReader *reader)
{
	const GsGinColumn *column = &reader->order->columns[reader->key.attnum - 1];

	return reader->wrong ?
		gpusort_distrust_add(column->operator, column->collation) : NULL;
}

/* ----------------------------------------------------------------
 *		reading TIDs
 * ----------------------------------------------------------------
 */

/* Make room for 'count' more TIDs. */
static void
reserve_tids(GsGinReader *reader, Size count)
{
	Size		needed = reader->ntids + count;

	if (needed <= reader->max_tids)
		return;
	reader->max_tids = Max(needed, reader->max_tids * 2);
	reader->tids = repalloc_huge(reader->tids, reader->max_tids * sizeof(uint64));
	reader->added = repalloc_huge(reader->added, reader->max_tids * sizeof(uint64));
}

/* Read the TIDs of the row.  Returns their number. */
static uint32
decode_row(const GsGinRow *row, uint64 *tids)
{
	const uint8 *bytes;
	const uint8 *end;
	uint64		last = row->first;
	uint32		n = 0;

	tids[n++] = last;
	if (row->others == NULL)
		return n;
	bytes = (const uint8 *) VARDATA_ANY(row->others);
	end = bytes + VARSIZE_ANY_EXHDR(row->others);
	while (bytes < end)
	{
		uint64		difference;

		if (likely(end - bytes >= GPUSORT_VARBYTE_ROOM))
			bytes = gpusort_varbyte_read_ahead(bytes, &difference);
		else
			bytes = gpusort_varbyte_read(bytes, &difference);
		if (unlikely(difference == 0))
		{
			/* The next one is a TID. */
			last = 0;
			continue;
		}
		tids[n++] = last += difference;
	}
	return n;
}

/* Merge 'count' added TIDs with the others.  There is room for all of them. */
static void
merge_tids(GsGinReader *reader, uint32 count)
{
	uint64	   *tids = reader->tids;
	uint32		before = reader->ntids;
	uint32		n = before + count;
	uint32		next = n;

	/* From the last one on; equal ones leave a gap. */
	while (count > 0)
	{
		uint64		tid = reader->added[count - 1];

		if (before > 0 && tids[before - 1] > tid)
			tids[--next] = tids[--before];
		else
		{
			if (before > 0 && tids[before - 1] == tid)
				before--;
			tids[--next] = tid;
			count--;
		}
	}
	memmove(tids + before, tids + next, (n - next) * sizeof(uint64));
	reader->ntids = before + (n - next);
}

/* Add the TIDs of the row to those of the current key. */
static void
add_row(GsGinReader *reader)
{
	uint64	   *added;
	uint32		count;

	reserve_tids(reader, 1 + (reader->row.others == NULL ? 0 :
							  VARSIZE_ANY_EXHDR(reader->row.others)));
	added = reader->tids + reader->ntids;
	count = decode_row(&reader->row, added);
	gpusort_work_add(count * sizeof(uint64));
	if (reader->ntids == 0 || added[-1] < added[0])
		reader->ntids += count;
	else
	{
		memcpy(reader->added, added, count * sizeof(uint64));
		merge_tids(reader, count);
	}
}

/* Returns how many of the TIDs are before those of the row. */
static uint32
count_before_row(const GsGinReader *reader)
{
	uint64		limit = reader->row.first;
	uint32		low = 0;
	uint32		high = reader->ntids;

	if (high > 0 && reader->tids[high - 1] < limit)
		return high;
	while (low < high)
	{
		uint32		middle = low + (high - low) / 2;

		if (reader->tids[middle] < limit)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Add the row to the current key, and go to the next one. */
static void
use_row(GsGinReader *reader)
{
	CHECK_FOR_INTERRUPTS();
	reader->ntids -= reader->ngiven;
	memmove(reader->tids, reader->tids + reader->ngiven, reader->ntids * sizeof(uint64));
	reader->ngiven = 0;
	reader->nfinal = count_before_row(reader);
	add_row(reader);
	read_row(reader);
}

bool
gpusort_gin_reader_next(GsGinReader *reader, GsGinKey *key)
{
	Assert(reader->ended);
	if (!reader->has_row || reader->wrong)
		return false;
	keep_key(reader);
	reader->ntids = 0;
	reader->ngiven = 0;
	reader->ended = false;
	use_row(reader);
	*key = reader->key;
	return true;
}

uint32
gpusort_gin_reader_tids(GsGinReader *reader, const uint64 **tids)
{
	uint32		count;

	while (!reader->ended && reader->ngiven == reader->nfinal)
	{
		if (reader->has_row && is_same_key(reader))
			use_row(reader);
		else
		{
			reader->ended = true;
			reader->nfinal = reader->ntids;
		}
	}
	count = Min(reader->nfinal - reader->ngiven, GPUSORT_GIN_READER_TIDS);
	*tids = reader->tids + reader->ngiven;
	reader->ngiven += count;
	return count;
}
