/*-------------------------------------------------------------------------
 *
 * gin.h
 *		Builds GIN indexes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_H
#define GPUSORT_GIN_H

#include "access/gin.h"
#include "access/gin_private.h"
#include "executor/tuptable.h"

#include "core/varbyte.h"
#include "index/base/index_build.h"
#include "index/base/index_rows.h"
#include "index/base/page_writer.h"
#include "sort/base/budget.h"
#include "sort/base/progress.h"
#include "sort/base/sort_spec.h"
#include "sort/sort.h"

extern const GsIndexKind gpusort_gin_kind;

/*
 * ---- The order of the keys of an index, and the rows that are sorted: gin_rows.c ----
 *
 * Keys are ordered by the index column, then by their category (a value, NULL, or what
 * stands for an item without keys or a NULL item), and then by the comparison function of
 * the operator class.
 */

/* A key of a GIN index. */
typedef struct GsGinKey
{
	OffsetNumber attnum;
	GinNullCategory category;
	Datum		value;			/* if the category is GIN_CAT_NORM_KEY */
} GsGinKey;

/* A row of the sort: a key and some of its TIDs. */
typedef struct GsGinRow
{
	GsGinKey	key;
	uint64		first;			/* the first TID */
	bytea	   *others;			/* the differences of the others, which ascend */
} GsGinRow;

typedef struct GsGinColumn
{
	int16		attlen;
	bool		attbyval;
	bool		bytes_tell_keys;	/* have equal keys always equal bytes? */
	Oid			operator;		/* "<" in the order of keys, or InvalidOid */
	Oid			collation;
} GsGinColumn;

typedef struct GsGinOrder
{
	GinState	state;			/* of the server's functions */
	GsGinColumn columns[INDEX_MAX_KEYS];
} GsGinOrder;

/* Create the order of an index in the current memory context. */
extern GsGinOrder *gpusort_gin_order_create(Relation index);

/*
 * Describe the sort, in the current memory context.  The caller sets the memory and the rows that
 * are expected.
 */
extern void gpusort_gin_order_describe(const GsGinOrder *order, GsSortSpec *spec);

/* Returns the number of bytes of a key that is not passed by value. */
static inline Size
gpusort_gin_order_key_bytes(const GsGinColumn *column, Datum value)
{
	const char *bytes = DatumGetPointer(value);

	if (column->attlen > 0)
		return column->attlen;
	return column->attlen == -1 ? VARSIZE_ANY(bytes) : strlen(bytes) + 1;
}

/* Store a row in a virtual slot.  Values are not copied. */
extern void gpusort_gin_order_store(const GsGinOrder *order, const GsGinRow *row,
									TupleTableSlot *slot);

/* ---- Keys in memory, each with its TIDs: gin_keys.c ---- */

typedef struct GsGinKeys GsGinKeys;

/*
 * Create an empty collection in the current memory context.  All of it is freed with that
 * context.
 */
extern GsGinKeys *gpusort_gin_keys_create(GsGinOrder *order, GsBudget *budget);

/* The keys of one column of a row of the table. */
typedef struct GsGinRowKeys
{
	OffsetNumber attnum;
	const Datum *values;
	const		GinNullCategory *categories;
	uint32		count;
	uint32		next;			/* the first one that has not been added */
} GsGinRowKeys;

static inline GsGinKey
gpusort_gin_row_key(const GsGinRowKeys *keys, uint32 i)
{
	return (GsGinKey)
	{
		keys->attnum, keys->categories[i], keys->values[i]
	};
}

/*
 * Add the keys that have not been added.  A key may occur more than once.  Rows come in the order
 * of their TIDs.  Returns false if memory was used up before the last key: then take all rows, and
 * call this again.
 */
extern bool gpusort_gin_keys_add(GsGinKeys *keys, GsGinRowKeys *added, uint64 tid);

extern bool gpusort_gin_keys_is_empty(const GsGinKeys *keys);

/* The number of pairs of key and TID that were added, without repeated ones. */
extern int64 gpusort_gin_keys_entries(const GsGinKeys *keys);

/*
 * Take a row for the sort.  A key has one row, or several if it has many TIDs.  What a row points
 * to is valid until the next call.  Returns false after the last row.  Then the collection is
 * empty, and keys can be added again.
 */
extern bool gpusort_gin_keys_take(GsGinKeys *keys, GsGinRow *row);

/* ---- Reading keys and their TIDs from a sort: gin_rows.c ---- */

/* The most TIDs that are read at a time. */
#define GPUSORT_GIN_READER_TIDS	2048

typedef struct GsGinReader GsGinReader;

/* Begin to read the sort of a build, which is finished, in the current memory context. */
extern GsGinReader *gpusort_gin_reader_begin(const GsIndexBuild *build, GsGinOrder *order);

/*
 * Get the next key in the order of the index.  Of equal keys with other bytes it is the one with
 * the first TID.  It is valid until the next call, before which all of its TIDs have to be read.
 * Returns false at the end, or if the keys are not in order.
 */
extern bool gpusort_gin_reader_next(GsGinReader *reader, GsGinKey *key);

/*
 * Get up to GPUSORT_GIN_READER_TIDS of the key's TIDs in ascending order, each once.  They are
 * valid until the next call.  Returns their number, which is 0 at the end.
 */
extern uint32 gpusort_gin_reader_tids(GsGinReader *reader, const uint64 **tids);

/*
 * If keys are not in order, distrust their encoding.  Returns a text that describes it, in the
 * current memory context, or NULL if keys are in order.
 */
extern char *gpusort_gin_reader_wrong_encoding(const GsGinReader *reader);

/* ---- Writing the pages of an index from its keys in order: gin_writer.c ---- */

typedef struct GsGinWriter GsGinWriter;

/* Create the metapage and an empty root, in the buffer pool, of an index without blocks. */
extern void gpusort_gin_writer_create_pages(Relation index);

/* Have rows been inserted since then?  A writer would overwrite them. */
extern bool gpusort_gin_writer_has_rows(Relation index);

/* Set the statistics of the metapage, and log the first 'nblocks' blocks if needed. */
extern void gpusort_gin_writer_end_index(Relation index, const GinStatsData *stats,
										 BlockNumber nblocks);

/*
 * Begin to write the index of a build, which has no blocks but those.  The writer is allocated in
 * the current memory context.  After an error, freeing that context is all that is needed.
 */
extern GsGinWriter *gpusort_gin_writer_begin(const GsIndexBuild *build, GsGinOrder *order);

/*
 * Write a key: begin it, add its TIDs in ascending order, of which there is at least one, and
 * end it.  The key must be valid until its end.  Raises PostgreSQL's error if it is too long.
 */
extern void gpusort_gin_writer_begin_key(GsGinWriter *writer, const GsGinKey *key);
extern void gpusort_gin_writer_add(GsGinWriter *writer, const uint64 *tids, uint32 count);
extern void gpusort_gin_writer_end_key(GsGinWriter *writer);

/* Write no more pages, and forget those that are not written yet. */
extern void gpusort_gin_writer_abandon(GsGinWriter *writer);

/* Write the remaining pages and the statistics, and make the file durable if needed. */
extern void gpusort_gin_writer_end(GsGinWriter *writer);

#endif							/* GPUSORT_GIN_H */
