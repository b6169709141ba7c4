/*-------------------------------------------------------------------------
 *
 * gin_keys.c
 *		Collects the keys of a GIN index in memory, each with its TIDs.
 *
 * A table has far fewer keys than it has pairs of key and TID.  So each key is stored once,
 * in a record that is found by a hash of its bytes, and comparisons are needed only to sort
 * the keys at the end.  TIDs come nearly in order: a record has the bytes of their
 * differences, one or two for most of them.  So the memory holds several times as many as
 * it would of pairs to be sorted.
 *
 *		slots --> record --> chunk --> chunk
 *
 * Records and chunks come from large blocks in sequence.  The slots of the hash table have
 * twice as many places as there are records, so that a sort can use their memory.
 *
 * HOT updates make the TIDs of a heap page come out of order.  Such a list is sorted page by
 * page as it is read.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "index/gin/gin_arena.h"
#include "index/gin/gin_keys.h"
#include "work.h"

/* The first number of slots. */
#define FIRST_SLOTS			2048

/* The sizes of chunks, each twice that of the one before. */
#define FIRST_CHUNK_BYTES	32
#define MAX_CHUNK_BYTES		4096

/* Keys that are looked up together, while the memory they need is fetched. */
#define LOOKUP_BATCH		32

/* Keys that are fetched before they are needed, in their order. */
#define PREFETCH_KEYS		4

/* A part of the bytes of a list. */
typedef struct GsTidChunk
{
	struct GsTidChunk *next;
	uint32		size;			/* of 'bytes' */
	uint32		used;			/* likewise, unless it is the last chunk */
	uint8		bytes[FLEXIBLE_ARRAY_MEMBER];
} GsTidChunk;

/* A key, followed by its bytes if it is not passed by value. */
typedef struct GsGinRecord
{
	uint64		first;			/* the TID that was added first */
	uint64		last;			/* the TID that was added last */
	GsTidChunk *chunks;			/* the differences of the others, or NULL */
	GsTidChunk *chunk;			/* the last one */
	uint8	   *end;			/* of its bytes */
	Datum		value;			/* or the length of the bytes */
	uint32		number;			/* records before it */
	OffsetNumber attnum;
	GinNullCategory category;
	bool		disordered;		/* are TIDs of a heap page out of order? */
} GsGinRecord;

#define RECORD_BYTES(record) ((char *) (record) + MAXALIGN(sizeof(GsGinRecord)))

/* An empty slot has the reference 0, which is that of no record. */
typedef struct GsGinSlot
{
	uint32		hash;
	uint32		ref;
} GsGinSlot;

/* A record to be sorted; takes the place of two slots. */
typedef struct GsSortedKey
{
	uint64		word;
	uint32		ref;
	OffsetNumber attnum;
	GinNullCategory category;
} GsSortedKey;

StaticAssertDecl(sizeof(GsSortedKey) <= 2 * sizeof(GsGinSlot),
				 "a sorted key must fit into two slots");

/* Reads the list of a record. */
typedef struct GsRecordReader
{
	GsTidStream stream;
	const GsGinRecord *record;
	const GsTidChunk *chunk;	/* NULL before the first TID */
	const uint8 *bytes;			/* in the chunk */
	uint64		last;
	bool		ended;
	bool		has_next;		/* of a disordered list: was 'next' read? */
	uint64		next;
} GsRecordReader;

struct GsGinKeys
{
	GsGinOrder *order;
	GsGinArena	memory;

	GsGinSlot  *slots;
	uint32		nslots;			/* a power of two */
	uint32		nrecords;
	int64		nentries;

	GsSortedKey *sorted;		/* in the memory of the slots, or NULL */
	uint32		next;			/* of those */
	GsRecordReader **readers;
	GsTidStream **streams;
	uint32		nreaders;
};

/* ----------------------------------------------------------------
 *		memory
 * ----------------------------------------------------------------
 */

static inline GsGinRecord *
record_of(const GsGinKeys *keys, uint32 ref)
{
	return gpusort_gin_arena_at(&keys->memory, ref);
}

void
gpusort_gin_keys_reset(GsGinKeys *keys)
{
	memset(keys->slots, 0, (Size) keys->nslots * sizeof(GsGinSlot));
	gpusort_gin_arena_reset(&keys->memory);
	keys->nrecords = 0;
	keys->sorted = NULL;
	keys->next = 0;
}

/* Double the number of slots, or allocate the first ones.  Returns false without memory. */
static bool
add_slots(GsGinKeys *keys)
{
	uint32		nslots = keys->slots == NULL ? FIRST_SLOTS : keys->nslots * 2;
	Size		size = (Size) nslots * sizeof(GsGinSlot);
	GsGinSlot  *slots = nslots == 0 ? NULL : gpusort_gin_arena_alloc(&keys->memory, size);

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
		gpusort_gin_arena_free(&keys->memory, keys->slots,
							   (Size) keys->nslots * sizeof(GsGinSlot));
	keys->slots = slots;
	keys->nslots = nslots;
	return true;
}

GsGinKeys *
gpusort_gin_keys_create(GsGinOrder *order, Size limit)
{
	GsGinKeys  *keys = palloc0(sizeof(GsGinKeys));

	keys->order = order;
	gpusort_gin_arena_init(&keys->memory, limit);
	if (!add_slots(keys) && !add_slots(keys))
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
typedef struct GsLookup
{
	const char *bytes;			/* NULL if it is passed by value */
	Size		length;
	Datum		value;			/* or the length, as in records */
	uint32		hash;
	uint32		slot;
} GsLookup;

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
begin_lookup(GsGinKeys *keys, const GsGinKey *key, GsLookup *lookup)
{
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
		lookup->length = column->attlen > 0 ? column->attlen :
			column->attlen == -1 ? VARSIZE_ANY(lookup->bytes) :
			strlen(lookup->bytes) + 1;
		lookup->value = (Datum) lookup->length;
		gpusort_work_add(lookup->length);
	}
	hash = mix(hash, lookup->value);
	if (lookup->bytes != NULL)
		hash = hash_bytes_of(lookup->bytes, lookup->length, hash);
	hash = mix(hash, hash >> 32);
	lookup->hash = (uint32) (hash >> 32);
	lookup->slot = lookup->hash & (keys->nslots - 1);
	__builtin_prefetch(&keys->slots[lookup->slot]);
}

static inline bool
is_key(const GsGinRecord *record, const GsGinKey *key, const GsLookup *lookup)
{
	return record->value == lookup->value && record->attnum == key->attnum &&
		record->category == key->category &&
		(lookup->bytes == NULL ||
		 memcmp(RECORD_BYTES(record), lookup->bytes, lookup->length) == 0);
}

/* Find the record of a key, or set lookup->slot to where it belongs and return NULL. */
static inline GsGinRecord *
find_record(GsGinKeys *keys, const GsGinKey *key, GsLookup *lookup)
{
	uint32		k = lookup->slot;

	for (; keys->slots[k].ref != 0; k = (k + 1) & (keys->nslots - 1))
	{
		if (keys->slots[k].hash == lookup->hash)
		{
			GsGinRecord *record = record_of(keys, keys->slots[k].ref);

			if (is_key(record, key, lookup))
				return record;
		}
	}
	lookup->slot = k;
	return NULL;
}

/* Add a record that was not found, with its first TID.  Returns false without memory. */
static bool
add_record(GsGinKeys *keys, const GsGinKey *key, GsLookup *lookup, uint64 tid)
{
	GsGinRecord *record;

	if (keys->nrecords >= keys->nslots / 2)
	{
		if (!add_slots(keys))
			return false;
		lookup->slot = lookup->hash & (keys->nslots - 1);
		find_record(keys, key, lookup);
	}
	record = gpusort_gin_arena_take(&keys->memory,
									MAXALIGN(sizeof(GsGinRecord)) + lookup->length);
	if (record == NULL)
		return false;
	record->first = record->last = tid;
	record->chunks = record->chunk = NULL;
	record->end = NULL;
	record->value = lookup->value;
	record->number = keys->nrecords++;
	record->attnum = key->attnum;
	record->category = key->category;
	record->disordered = false;
	if (lookup->bytes != NULL)
		memcpy(RECORD_BYTES(record), lookup->bytes, lookup->length);
	keys->slots[lookup->slot].hash = lookup->hash;
	keys->slots[lookup->slot].ref = gpusort_gin_arena_ref(&keys->memory, record);
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
	GsTidChunk *chunk = gpusort_gin_arena_take(&keys->memory, size);

	if (chunk == NULL)
		return false;
	chunk->next = NULL;
	chunk->size = size - offsetof(GsTidChunk, bytes);
	chunk->used = 0;
	if (last == NULL)
		record->chunks = chunk;
	else
	{
		last->used = record->end - last->bytes;
		last->next = chunk;
	}
	record->chunk = chunk;
	record->end = chunk->bytes;
	return true;
}

/* Add a TID to a record.  Returns false if there is no memory. */
static inline bool
add_tid(GsGinKeys *keys, GsGinRecord *record, uint64 tid)
{
	if (tid == record->last)
		return true;
	if (record->chunk == NULL ||
		record->end + GPUSORT_VARBYTE_ROOM > record->chunk->bytes + record->chunk->size)
	{
		if (!add_chunk(keys, record))
			return false;
	}
	record->disordered |= tid < record->last;
	record->end = gpusort_varbyte_write(record->end, (tid - record->last) & GPUSORT_TID_MASK);
	record->last = tid;
	keys->nentries++;
	return true;
}

/* Add up to LOOKUP_BATCH keys.  Returns how many were added before memory was used up. */
static uint32
add_batch(GsGinKeys *keys, const GsGinKey *added, uint32 count, uint64 tid)
{
	GsLookup	lookups[LOOKUP_BATCH];

	for (uint32 i = 0; i < count; i++)
		begin_lookup(keys, &added[i], &lookups[i]);
	for (uint32 i = 0; i < count; i++)
	{
		const GsGinSlot *slot = &keys->slots[lookups[i].slot];

		if (slot->ref != 0)
			__builtin_prefetch(record_of(keys, slot->ref));
	}
	for (uint32 i = 0; i < count; i++)
	{
		GsGinRecord *record;

		/* More slots may have been added since. */
		lookups[i].slot = lookups[i].hash & (keys->nslots - 1);
		record = find_record(keys, &added[i], &lookups[i]);
		if (record == NULL ? !add_record(keys, &added[i], &lookups[i], tid) :
			!add_tid(keys, record, tid))
			return i;
		gpusort_work_add(GPUSORT_WORK_ROW);
	}
	return count;
}

uint32
gpusort_gin_keys_add(GsGinKeys *keys, const GsGinKey *added, uint32 count, uint64 tid)
{
	Assert(keys->sorted == NULL);
	for (uint32 i = 0; i < count; i += LOOKUP_BATCH)
	{
		uint32		size = Min(LOOKUP_BATCH, count - i);
		uint32		n;

		CHECK_FOR_INTERRUPTS();
		n = add_batch(keys, added + i, size, tid);
		if (n < size)
			return i + n;
	}
	return count;
}

Size
gpusort_gin_keys_bytes(const GsGinKeys *keys)
{
	return keys->memory.budget->used;
}

bool
gpusort_gin_keys_lacked_memory(const GsGinKeys *keys)
{
	return keys->memory.budget->out_of_memory;
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
 *		sorting
 * ----------------------------------------------------------------
 */

/* Set 'key' to a sorted key. */
static void
set_key(const GsGinKeys *keys, const GsSortedKey *sorted, GsGinKey *key)
{
	const GsGinRecord *record = record_of(keys, sorted->ref);

	key->attnum = sorted->attnum;
	key->category = sorted->category;
	key->word = sorted->word;
	key->value = 0;
	if (sorted->category == GIN_CAT_NORM_KEY)
		key->value = keys->order->columns[sorted->attnum - 1].attbyval ?
			record->value : PointerGetDatum(RECORD_BYTES(record));
}

static inline int
compare_records(const GsSortedKey *a, const GsSortedKey *b, GsGinKeys *keys)
{
	GsGinKey	key_a,
				key_b;
	int			order;

	if (a->attnum != b->attnum)
		return a->attnum < b->attnum ? -1 : 1;
	if (a->category != b->category)
		return a->category < b->category ? -1 : 1;
	if (a->word != b->word)
		return a->word < b->word ? -1 : 1;
	if (a == b)
		return 0;
	gpusort_work_add(2 * GPUSORT_WORK_ROW);
	set_key(keys, a, &key_a);
	set_key(keys, b, &key_b);
	order = gpusort_gin_order_compare(keys->order, &key_a, &key_b);
	if (order != 0)
		return order;

	/* Of equal keys the one added first is kept. */
	return record_of(keys, a->ref)->number < record_of(keys, b->ref)->number ? -1 : 1;
}

#define ST_SORT sort_keys
#define ST_ELEMENT_TYPE GsSortedKey
#define ST_COMPARE(a, b, arg) compare_records(a, b, arg)
#define ST_COMPARE_ARG_TYPE GsGinKeys
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Turn the slots into keys to be sorted, in the same memory: first the references move to
 * its beginning, and then each makes room for its key, from the last one on.
 */
static void
collect_records(GsGinKeys *keys)
{
	uint32	   *refs = (uint32 *) keys->slots;
	uint32		n = 0;

	for (uint32 i = 0; i < keys->nslots; i++)
	{
		uint32		ref = keys->slots[i].ref;

		if (ref != 0)
			refs[n++] = ref;
	}
	Assert(n == keys->nrecords);
	keys->sorted = (GsSortedKey *) keys->slots;
	while (n-- > 0)
	{
		GsSortedKey *sorted = &keys->sorted[n];
		uint32		ref = refs[n];
		const GsGinRecord *record = record_of(keys, ref);
		GsGinKey	key;

		if (n % LOOKUP_BATCH == 0)
			CHECK_FOR_INTERRUPTS();
		gpusort_work_add(GPUSORT_WORK_ROW);
		sorted->ref = ref;
		sorted->attnum = record->attnum;
		sorted->category = record->category;
		sorted->word = 0;
		if (record->category != GIN_CAT_NORM_KEY)
			continue;
		set_key(keys, sorted, &key);
		sorted->word = gpusort_gin_order_word(keys->order, key.attnum, key.value);
	}
}

void
gpusort_gin_keys_sort(GsGinKeys *keys)
{
	collect_records(keys);
	sort_keys(keys->sorted, keys->nrecords, keys);
	keys->next = 0;
}

/* ----------------------------------------------------------------
 *		reading
 * ----------------------------------------------------------------
 */

/* Read the next TID of a list, in the order in which they were added. */
static inline bool
read_tid(GsRecordReader *reader, uint64 *tid)
{
	const GsGinRecord *record = reader->record;
	const GsTidChunk *chunk = reader->chunk;
	uint64		difference;

	if (reader->bytes == NULL)
	{
		/* The first one. */
		reader->bytes = chunk != NULL ? chunk->bytes : (const uint8 *) record;
		*tid = reader->last = record->first;
		return true;
	}
	if (chunk == NULL)
		return false;
	if (reader->bytes == (chunk->next != NULL ? chunk->bytes + chunk->used : record->end))
	{
		if (chunk->next == NULL)
			return false;
		reader->chunk = chunk = chunk->next;
		reader->bytes = chunk->bytes;
	}
	reader->bytes = gpusort_varbyte_read(reader->bytes, &difference);
	*tid = reader->last = (reader->last + difference) & GPUSORT_TID_MASK;
	return true;
}

/* GsTidStream.fill */
static void
fill_ordered(GsTidStream *stream)
{
	GsRecordReader *reader = stream->arg;
	uint32		n = 0;

	while (n < GPUSORT_TID_BATCH && read_tid(reader, &stream->tids[n]))
	{
		const GsTidChunk *chunk = reader->chunk;
		const uint8 *bytes = reader->bytes;
		uint64		last = reader->last;
		const uint8 *end;

		n++;
		if (chunk == NULL)
			break;
		/* Most of the chunk can be read faster. */
		end = chunk->next != NULL ? chunk->bytes + chunk->used : reader->record->end;
		while (n < GPUSORT_TID_BATCH && end - bytes >= GPUSORT_VARBYTE_ROOM)
		{
			uint64		difference;

			bytes = gpusort_varbyte_read_ahead(bytes, &difference);
			stream->tids[n++] = last += difference;
		}
		reader->bytes = bytes;
		reader->last = last;
	}
	stream->count = n;
	stream->next = 0;
}

/* GsTidStream.fill: the TIDs of one heap page, sorted. */
static void
fill_page(GsTidStream *stream)
{
	GsRecordReader *reader = stream->arg;
	uint64	   *tids = stream->tids;
	uint32		n = 0;

	if (!reader->has_next)
		reader->has_next = read_tid(reader, &reader->next);
	while (reader->has_next &&
		   (n == 0 || tids[0] >> GPUSORT_TID_OFFSET_BITS ==
			reader->next >> GPUSORT_TID_OFFSET_BITS))
	{
		uint32		k = n++;

		for (; k > 0 && tids[k - 1] > reader->next; k--)
			tids[k] = tids[k - 1];
		tids[k] = reader->next;
		reader->has_next = read_tid(reader, &reader->next);
	}
	stream->count = n;
	stream->next = 0;
}

/* Get one more reader. */
static GsRecordReader *
add_reader(GsGinKeys *keys, uint32 n)
{
	MemoryContext caller;
	uint32		more = Max(keys->nreaders * 2, 1);

	if (n < keys->nreaders)
		return keys->readers[n];
	caller = MemoryContextSwitchTo(GetMemoryChunkContext(keys));
	if (keys->nreaders == 0)
	{
		keys->readers = palloc(more * sizeof(GsRecordReader *));
		keys->streams = palloc(more * sizeof(GsTidStream *));
	}
	else
	{
		keys->readers = repalloc(keys->readers, more * sizeof(GsRecordReader *));
		keys->streams = repalloc(keys->streams, more * sizeof(GsTidStream *));
	}
	for (uint32 i = keys->nreaders; i < more; i++)
	{
		keys->readers[i] = palloc(sizeof(GsRecordReader));
		keys->streams[i] = &keys->readers[i]->stream;
	}
	keys->nreaders = more;
	MemoryContextSwitchTo(caller);
	return keys->readers[n];
}

static void
start_reader(GsGinKeys *keys, uint32 n, const GsSortedKey *sorted)
{
	GsRecordReader *reader = add_reader(keys, n);
	const GsGinRecord *record = record_of(keys, sorted->ref);

	reader->record = record;
	reader->chunk = record->chunks;
	reader->bytes = NULL;
	reader->has_next = false;
	reader->stream.arg = reader;
	reader->stream.fill = record->disordered ? fill_page : fill_ordered;
	gpusort_tid_stream_start(&reader->stream);
}

/* Fetch what the following keys need, which is anywhere in memory. */
static inline void
prefetch_next(const GsGinKeys *keys)
{
	uint32		record = keys->next + 2 * PREFETCH_KEYS;
	uint32		chunk = keys->next + PREFETCH_KEYS;

	if (record < keys->nrecords)
		__builtin_prefetch(record_of(keys, keys->sorted[record].ref));
	if (chunk < keys->nrecords)
		__builtin_prefetch(record_of(keys, keys->sorted[chunk].ref)->chunks);
}

uint32
gpusort_gin_keys_next(GsGinKeys *keys, GsGinKey *key, GsTidStream ***streams)
{
	uint32		n = 0;

	if (keys->next == keys->nrecords)
		return 0;
	prefetch_next(keys);
	set_key(keys, &keys->sorted[keys->next], key);
	start_reader(keys, n++, &keys->sorted[keys->next++]);
	while (keys->next < keys->nrecords)
	{
		const GsSortedKey *sorted = &keys->sorted[keys->next];
		GsGinKey	other;

		if (sorted->word != key->word)
			break;
		set_key(keys, sorted, &other);
		if (gpusort_gin_order_compare(keys->order, key, &other) != 0)
			break;
		start_reader(keys, n++, sorted);
		keys->next++;
	}
	*streams = keys->streams;
	return n;
}
