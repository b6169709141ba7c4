/*-------------------------------------------------------------------------
 *
 * gin_keys.c
 *		Collects the keys of a GIN index in memory, each with its TIDs.
 *
 * A table has far fewer keys than it has pairs of key and TID.  So each key is stored once,
 * in a record that is found by a hash of its bytes.  TIDs come in order: a record has
 * the bytes of their differences, one or two for most of them.  So few rows have to be sorted,
 * and the memory holds several times as many TIDs as it would of pairs.
 *
 *		slots --> record --> chunk --> chunk
 *
 * Records and chunks come from large blocks in sequence.  When memory is full, or all keys have
 * been added, each record becomes a row of the sort, in the order in which they were added.  A
 * record with many TIDs becomes several rows, each of which begins with a chunk.  So in the
 * chunks of the largest size, which a record has from some kB on, the first TID is stored
 * itself, after a difference of 0, which no two TIDs have.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "core/prefetch.h"
#include "index/gin/gin.h"
#include "work.h"

/* The first number of slots. */
#define FIRST_SLOTS			2048

/* The sizes of chunks, each twice that of the one before. */
#define FIRST_CHUNK_BYTES	32
#define MAX_CHUNK_BYTES		4096

/* Keys that are looked up together, while the memory they need is fetched. */
#define LOOKUP_BATCH		32

/* The most bytes of TIDs of a row. */
#define MAX_ROW_BYTES		((Size) 8 * 1024)

/*
 * A reference is the number of a block and an offset in units of 8 bytes.  No reference
 * is 0.
 */
#define REF_OFFSET_BITS	18

#define MAX_BLOCK_BYTES		((Size) 8 << REF_OFFSET_BITS)
#define MIN_BLOCK_BYTES		((Size) 32 * 1024)
#define MAX_BLOCKS			(1 << (32 - REF_OFFSET_BITS))

/* The part of the memory that is one block. */
#define BLOCK_DIVISOR			16

typedef struct GsGinArena
{
	GsBudget   *budget;
	Size		block_bytes;
	char	  **blocks;
	uint32		nblocks;		/* allocated */
	uint32		nused;			/* the last of these is being used up */
	Size		used;			/* bytes of it */
} GsGinArena;

/* A part of the bytes of a list. */
typedef struct GsTidChunk
{
	struct GsTidChunk *next;
	uint32		size;			/* of 'bytes' */
	uint32		used;			/* of these */
	uint8		bytes[FLEXIBLE_ARRAY_MEMBER];
} GsTidChunk;

/* A key, followed by its bytes if it is not passed by value. */
typedef struct GsGinRecord
{
	uint64		first;			/* the TID that was added first */
	uint64		last;			/* the TID that was added last */
	GsTidChunk *chunks;			/* the differences of the others, or NULL */
	GsTidChunk *chunk;			/* the last one */
	Datum		value;			/* or the length of the bytes */
	struct GsGinRecord *next;	/* the one that was added after it, or NULL */
	OffsetNumber attnum;
	GinNullCategory category;
} GsGinRecord;

#define RECORD_BYTES(record) ((char *) (record) + MAXALIGN(sizeof(GsGinRecord)))

/* An empty slot has the reference 0, which is that of no record. */
typedef struct GsGinSlot
{
	uint32		hash;
	uint32		ref;
} GsGinSlot;

struct GsGinKeys
{
	GsGinOrder *order;
	GsGinArena	memory;

	GsGinSlot  *slots;
	uint32		nslots;			/* a power of two */
	uint32		nrecords;
	GsGinRecord *first;			/* the record that was added first, or NULL */
	GsGinRecord *last;			/* and last */
	int64		nentries;

	/* While records are taken: */
	const GsGinRecord *taken;	/* the current one, or NULL */
	const GsTidChunk *chunk;	/* the first one that is left of it, or NULL */
	bytea	   *others;			/* of a row; has room for MAX_ROW_BYTES */
};

/* ----------------------------------------------------------------
 *		memory for records and chunks: large blocks that are used up in sequence
 *
 * A block is one huge page, or less if memory is short.
 * ----------------------------------------------------------------
 */

static Size
choose_block_bytes(Size limit)
{
	Size		size = MAX_BLOCK_BYTES;

	while (size > MIN_BLOCK_BYTES && size > limit / BLOCK_DIVISOR)
		size /= 2;
	return size;
}

/*
 * Use a further block.  Returns false if the limit is reached, or the system has no memory left
 * (memory->budget->out_of_memory).
 */
static bool
arena_next_block(GsGinArena *memory)
{
	/* Blocks are left from before a reset. */
	if (memory->nused == memory->nblocks)
	{
		char	   *block = memory->nblocks == MAX_BLOCKS ? NULL :
			gpusort_budget_enlarge(memory->budget, NULL, 0, memory->block_bytes);

		if (block == NULL)
			return false;
		memory->blocks[memory->nblocks++] = block;
	}
	memory->nused++;
	memory->used = 0;
	return true;
}

/* Forget everything that was taken, and use the blocks again. */
static void
arena_reset(GsGinArena *memory)
{
	memory->nused = 1;

	/* This leaves the reference 0 out. */
	memory->used = 8;
}

/*
 * Prepare memory within a budget, in the current memory context.  Returns false if the system has
 * no memory for the first block.
 */
static bool
arena_init(GsGinArena *memory, GsBudget *budget)
{
	memory->budget = budget;
	memory->block_bytes = choose_block_bytes(budget->limit);
	memory->blocks = palloc(MAX_BLOCKS * sizeof(char *));
	memory->nblocks = memory->nused = 0;
	if (!arena_next_block(memory) && !arena_next_block(memory))
		return false;
	arena_reset(memory);
	return true;
}

/*
 * Take bytes, rounded up to a multiple of 8, from the blocks.  Returns NULL likewise, or if that
 * is more than a block has.
 */
static inline void *
arena_take(GsGinArena *memory, Size size)
{
	char	   *taken;

	size = MAXALIGN(size);
	if (memory->used + size > memory->block_bytes &&
		(size > memory->block_bytes || !arena_next_block(memory)))
		return NULL;
	taken = memory->blocks[memory->nused - 1] + memory->used;
	memory->used += size;
	return taken;
}

/* Returns the reference of what was taken last. */
static inline uint32
arena_ref(const GsGinArena *memory, const void *taken)
{
	return (memory->nused - 1) << REF_OFFSET_BITS |
		((const char *) taken - memory->blocks[memory->nused - 1]) / 8;
}

/* ----------------------------------------------------------------
 *		slots
 * ----------------------------------------------------------------
 */

static inline GsGinRecord *
record_of(const GsGinKeys *keys, uint32 ref)
{
	return (GsGinRecord *) (keys->memory.blocks[ref >> REF_OFFSET_BITS] +
							(Size) (ref & ((1 << REF_OFFSET_BITS) - 1)) * 8);
}

/* Forget all records, but keep the memory. */
static void
reset(GsGinKeys *keys)
{
	memset(keys->slots, 0, (Size) keys->nslots * sizeof(GsGinSlot));
	arena_reset(&keys->memory);
	keys->nrecords = 0;
	keys->first = keys->last = NULL;
	keys->taken = NULL;
	keys->chunk = NULL;
}

/* Double the number of slots, or allocate the first ones.  Returns false without memory. */
static bool
add_slots(GsGinKeys *keys)
{
	uint32		nslots = keys->slots == NULL ? FIRST_SLOTS : keys->nslots * 2;
	Size		size = (Size) nslots * sizeof(GsGinSlot);
	GsBudget   *budget = keys->memory.budget;
	GsGinSlot  *slots = nslots == 0 ? NULL : gpusort_budget_enlarge(budget, NULL, 0, size);

	if (slots == NULL)
		return false;
	memset(slots, 0, size);
	for (uint32 i = 0; i < keys->nslots; i++)
	{
		uint32		k = keys->slots[i].hash & (nslots - 1);

		if (keys->slots[i].ref == 0)
			continue;
		while (slots[k].ref != 0)
			k = (k + 1) & (nslots - 1);
		slots[k] = keys->slots[i];
	}
	if (keys->slots != NULL)
	{
		gpusort_budget_free(budget, keys->slots);
		budget->used -= (Size) keys->nslots * sizeof(GsGinSlot);
	}
	keys->slots = slots;
	keys->nslots = nslots;
	return true;
}

GsGinKeys *
gpusort_gin_keys_create(GsGinOrder *order, GsBudget *budget)
{
	GsGinKeys  *keys = palloc0(sizeof(GsGinKeys));

	keys->order = order;
	keys->others = palloc(VARHDRSZ + MAX_ROW_BYTES);
	if (!arena_init(&keys->memory, budget) || (!add_slots(keys) && !add_slots(keys)))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	return keys;
}

/* ----------------------------------------------------------------
 *		adding keys
 * ----------------------------------------------------------------
 */

/* A key to be looked up. */
typedef struct GsKeyLookup
{
	GsGinKey	key;
	const char *bytes;			/* NULL if it is passed by value */
	Size		length;
	Datum		value;			/* or the length, as in records */
	uint32		hash;
	uint32		slot;
} GsKeyLookup;

static inline uint64
mix(uint64 hash, uint64 word)
{
	hash = (hash ^ word) * UINT64CONST(0x9E3779B97F4A7C15);
	return hash ^ (hash >> 29);
}

static uint64
hash_bytes_of(const char *bytes, Size length, uint64 hash)
{
	uint64		word;

	for (; length >= sizeof(word); bytes += sizeof(word), length -= sizeof(word))
	{
		memcpy(&word, bytes, sizeof(word));
		hash = mix(hash, word);
	}
	word = 0;
	memcpy(&word, bytes, length);
	return mix(hash, word);
}

/* Prepare to look up a key. */
static inline void
begin_lookup(GsGinKeys *keys, GsKeyLookup *lookup)
{
	const GsGinKey *key = &lookup->key;
	const GsGinColumn *column = &keys->order->columns[key->attnum - 1];
	uint64		hash = (uint64) key->attnum << 8 | (uint8) key->category;

	lookup->bytes = NULL;
	lookup->length = 0;
	lookup->value = 0;
	if (key->category == GIN_CAT_NORM_KEY && column->attbyval)
		lookup->value = key->value;
	else if (key->category == GIN_CAT_NORM_KEY)
	{
		lookup->bytes = DatumGetPointer(key->value);
		lookup->length = gpusort_gin_order_key_bytes(column, key->value);
		lookup->value = (Datum) lookup->length;
		gpusort_work_add(lookup->length);
	}
	hash = mix(hash, lookup->value);
	if (lookup->bytes != NULL)
		hash = hash_bytes_of(lookup->bytes, lookup->length, hash);
	hash = mix(hash, hash >> 32);
	lookup->hash = (uint32) (hash >> 32);
	lookup->slot = lookup->hash & (keys->nslots - 1);
	gpusort_prefetch(&keys->slots[lookup->slot]);
}

static inline bool
is_key(const GsGinRecord *record, const GsKeyLookup *lookup)
{
	return record->value == lookup->value && record->attnum == lookup->key.attnum &&
		record->category == lookup->key.category &&
		(lookup->bytes == NULL ||
		 memcmp(RECORD_BYTES(record), lookup->bytes, lookup->length) == 0);
}

/* Find the record of a key, or set lookup->slot to where it belongs and return NULL. */
static inline GsGinRecord *
find_record(GsGinKeys *keys, GsKeyLookup *lookup)
{
	uint32		k = lookup->slot;

	for (; keys->slots[k].ref != 0; k = (k + 1) & (keys->nslots - 1))
	{
		if (keys->slots[k].hash == lookup->hash)
		{
			GsGinRecord *record = record_of(keys, keys->slots[k].ref);

			if (is_key(record, lookup))
				return record;
		}
	}
	lookup->slot = k;
	return NULL;
}

/* Add a record that was not found, with its first TID.  Returns false without memory. */
static bool
add_record(GsGinKeys *keys, GsKeyLookup *lookup, uint64 tid)
{
	GsGinRecord *record;

	if (keys->nrecords >= keys->nslots / 2)
	{
		if (!add_slots(keys))
			return false;
		lookup->slot = lookup->hash & (keys->nslots - 1);
		find_record(keys, lookup);
	}
	record = arena_take(&keys->memory,
						MAXALIGN(sizeof(GsGinRecord)) + lookup->length);
	if (record == NULL)
		return false;
	record->first = record->last = tid;
	record->chunks = record->chunk = NULL;
	record->value = lookup->value;
	record->next = NULL;
	record->attnum = lookup->key.attnum;
	record->category = lookup->key.category;
	if (lookup->bytes != NULL)
		memcpy(RECORD_BYTES(record), lookup->bytes, lookup->length);
	keys->slots[lookup->slot].hash = lookup->hash;
	keys->slots[lookup->slot].ref = arena_ref(&keys->memory, record);
	if (keys->last == NULL)
		keys->first = record;
	else
		keys->last->next = record;
	keys->last = record;
	keys->nrecords++;
	keys->nentries++;
	return true;
}

/* Add a chunk to a list.  Returns false if there is no memory. */
static bool
add_chunk(GsGinKeys *keys, GsGinRecord *record)
{
	GsTidChunk *last = record->chunk;
	Size		size = last == NULL ? FIRST_CHUNK_BYTES :
		Min((offsetof(GsTidChunk, bytes) + last->size) * 2, MAX_CHUNK_BYTES);
	GsTidChunk *chunk = arena_take(&keys->memory, size);

	if (chunk == NULL)
		return false;
	chunk->next = NULL;
	chunk->size = size - offsetof(GsTidChunk, bytes);
	chunk->used = 0;
	if (last == NULL)
		record->chunks = chunk;
	else
		last->next = chunk;
	record->chunk = chunk;

	/* A row can begin here. */
	if (size == MAX_CHUNK_BYTES)
	{
		chunk->bytes[chunk->used++] = 0;
		record->last = 0;
	}
	return true;
}

/* Add a TID to a record.  Returns false if there is no memory. */
static inline bool
add_tid(GsGinKeys *keys, GsGinRecord *record, uint64 tid)
{
	GsTidChunk *chunk = record->chunk;

	if (tid == record->last)
		return true;
	if (chunk == NULL || chunk->used + GPUSORT_VARBYTE_ROOM > chunk->size)
	{
		if (!add_chunk(keys, record))
			return false;
		chunk = record->chunk;
	}
	chunk->used = gpusort_varbyte_write(chunk->bytes + chunk->used, tid - record->last) -
		chunk->bytes;
	record->last = tid;
	keys->nentries++;
	return true;
}

/* Add up to LOOKUP_BATCH of the keys.  Returns how many were added before memory was used up. */
static uint32
add_batch(GsGinKeys *keys, const GsGinRowKeys *added, uint32 count, uint64 tid)
{
	GsKeyLookup lookups[LOOKUP_BATCH];

	for (uint32 i = 0; i < count; i++)
	{
		lookups[i].key = gpusort_gin_row_key(added, added->next + i);
		begin_lookup(keys, &lookups[i]);
	}
	for (uint32 i = 0; i < count; i++)
	{
		const GsGinSlot *slot = &keys->slots[lookups[i].slot];

		if (slot->ref != 0)
			gpusort_prefetch(record_of(keys, slot->ref));
	}
	for (uint32 i = 0; i < count; i++)
	{
		GsGinRecord *record;

		/* More slots may have been added since. */
		lookups[i].slot = lookups[i].hash & (keys->nslots - 1);
		record = find_record(keys, &lookups[i]);
		if (record == NULL ? !add_record(keys, &lookups[i], tid) : !add_tid(keys, record, tid))
			return i;
		gpusort_work_add(GPUSORT_WORK_ROW);
	}
	return count;
}

bool
gpusort_gin_keys_add(GsGinKeys *keys, GsGinRowKeys *added, uint64 tid)
{
	Assert(keys->taken == NULL);
	while (added->next < added->count)
	{
		uint32		size = Min(LOOKUP_BATCH, added->count - added->next);
		uint32		n;

		CHECK_FOR_INTERRUPTS();
		n = add_batch(keys, added, size, tid);
		added->next += n;
		if (n < size)
			return false;
	}
	return true;
}

bool
gpusort_gin_keys_is_empty(const GsGinKeys *keys)
{
	return keys->nrecords == 0;
}

int64
gpusort_gin_keys_entries(const GsGinKeys *keys)
{
	return keys->nentries;
}

/* ----------------------------------------------------------------
 *		taking records
 * ----------------------------------------------------------------
 */

static void
set_key(const GsGinKeys *keys, const GsGinRecord *record, GsGinKey *key)
{
	key->attnum = record->attnum;
	key->category = record->category;
	key->value = record->category != GIN_CAT_NORM_KEY ? 0 :
		keys->order->columns[record->attnum - 1].attbyval ? record->value :
		PointerGetDatum(RECORD_BYTES(record));
}

/* Go to the next record.  Returns false if there is none. */
static bool
next_record(GsGinKeys *keys)
{
	const GsGinRecord *next = keys->taken == NULL ? keys->first : keys->taken->next;

	if (next == NULL)
		return false;
	keys->taken = next;
	keys->chunk = next->chunks;
	gpusort_prefetch(next->next);
	return true;
}

/*
 * Collect the bytes of chunks of the current record, as long as there is room.  Returns them, or
 * NULL if there are none.
 */
static bytea *
collect_chunks(GsGinKeys *keys, const uint8 *from)
{
	char	   *to = VARDATA(keys->others);
	char	   *limit = to + MAX_ROW_BYTES - MAX_CHUNK_BYTES;

	while (keys->chunk != NULL && to <= limit)
	{
		const GsTidChunk *chunk = keys->chunk;
		const uint8 *end = chunk->bytes + chunk->used;

		memcpy(to, from, end - from);
		to += end - from;
		keys->chunk = chunk->next;
		if (chunk->next != NULL)
			from = chunk->next->bytes;
	}
	if (to == VARDATA(keys->others))
		return NULL;
	SET_VARSIZE(keys->others, to - (char *) keys->others);
	gpusort_work_add(to - (char *) keys->others);
	return keys->others;
}

bool
gpusort_gin_keys_take(GsGinKeys *keys, GsGinRow *row)
{
	const uint8 *from;

	if (keys->chunk != NULL)
	{
		/* The row before had MAX_ROW_BYTES, so this chunk is a large one. */
		from = gpusort_varbyte_read(keys->chunk->bytes + 1, &row->first);
	}
	else
	{
		if (!next_record(keys))
		{
			reset(keys);
			return false;
		}
		row->first = keys->taken->first;
		from = keys->chunk == NULL ? NULL : keys->chunk->bytes;
	}
	set_key(keys, keys->taken, &row->key);
	row->others = collect_chunks(keys, from);
	return true;
}
