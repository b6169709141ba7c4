/*-------------------------------------------------------------------------
 *
 * gin_runs.c
 *		Sorted runs of keys of a GIN index and their TIDs, in a temporary file.
 *
 * A run is a sequence of keys.  Each has a header, the bytes of its value if that is not
 * passed by value, and the differences of its TIDs, of which the first is the first TID.  A
 * difference of 0, which no TID has, ends them.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "index/gin/gin_runs.h"
#include "sort/disk/extent_file.h"
#include "work.h"

#define EXTENT_BYTES	((Size) 64 * 1024)

/* The most bytes of the TIDs that are read at a time. */
#define MAX_BATCH_BYTES	(GPUSORT_TID_BATCH * GPUSORT_VARBYTE_MAX)

/* Precedes each key. */
typedef struct GsRunKey
{
	Datum		value;			/* or the length of the bytes */
	uint64		word;
	OffsetNumber attnum;
	GinNullCategory category;	/* RUN_END after the last key */
} GsRunKey;

#define RUN_END		((GinNullCategory) 127)

struct GsGinRuns
{
	GsGinOrder *order;
	MemoryContext context;
	const GsRunTarget *target;	/* or NULL */
	GsExtentFile *file;
	GsGinRun   *runs;
	uint32		nruns;
	uint32		max_runs;

	/* While a run is written: */
	char	   *buffer;			/* of an extent */
	Size		filled;			/* bytes of it */
	uint64		last;			/* TID */
};

struct GsGinRunReader
{
	GsTidStream stream;
	GsGinRuns  *runs;
	const GsGinRun *run;
	char	   *buffer;
	Size		buffer_bytes;
	Size		next;			/* in the buffer */
	Size		filled;			/* bytes of the buffer */
	Size		offset;			/* in the run, of what follows the buffer */
	uint64		last;			/* TID */
	bool		ended;			/* have all TIDs of the key been read? */
	char	   *value;
	Size		value_bytes;	/* that 'value' has room for */
};

GsGinRuns *
gpusort_gin_runs_create(GsGinOrder *order, const GsRunTarget *target)
{
	GsGinRuns  *runs = palloc0(sizeof(GsGinRuns));

	runs->order = order;
	runs->context = CurrentMemoryContext;
	runs->target = target;
	return runs;
}

GsGinRuns *
gpusort_gin_runs_open(GsGinOrder *order, const GsRunTarget *target, const GsGinRun *run)
{
	GsGinRuns  *runs = gpusort_gin_runs_create(order, target);

	runs->file = gpusort_extent_file_open(EXTENT_BYTES, target->set, target->producer);
	runs->runs = palloc(sizeof(GsGinRun));
	runs->runs[0] = *run;
	runs->nruns = 1;
	return runs;
}

GsGinRun
gpusort_gin_runs_get(const GsGinRuns *runs, uint32 number)
{
	return runs->runs[number];
}

int64
gpusort_gin_runs_bytes(const GsGinRuns *runs)
{
	return runs->file == NULL ? 0 : gpusort_extent_file_kb(runs->file) * 1024;
}

uint32
gpusort_gin_runs_count(const GsGinRuns *runs)
{
	return runs->nruns;
}

void
gpusort_gin_runs_end(GsGinRuns *runs)
{
	if (runs->file != NULL)
		gpusort_extent_file_close(runs->file);
	runs->file = NULL;
}

/* ----------------------------------------------------------------
 *		writing
 * ----------------------------------------------------------------
 */

/* Write the buffer as the next extent of the run. */
static void
write_extent(GsGinRuns *runs)
{
	GsGinRun   *run = &runs->runs[runs->nruns];
	GsExtent	extent = gpusort_extent_file_alloc(runs->file, 1);

	/* Nothing is freed, so extents follow each other. */
	if (run->nextents++ == 0)
		run->first_extent = extent;
	Assert(extent == run->first_extent + run->nextents - 1);
	gpusort_extent_file_write(runs->file, extent, runs->buffer, EXTENT_BYTES);
	runs->filled = 0;
}

static void
put_bytes(GsGinRuns *runs, const void *data, Size length)
{
	const char *bytes = data;

	if (likely(length < EXTENT_BYTES - runs->filled))
	{
		memcpy(runs->buffer + runs->filled, bytes, length);
		runs->filled += length;
		return;
	}
	while (length > 0)
	{
		Size		part = Min(length, EXTENT_BYTES - runs->filled);

		memcpy(runs->buffer + runs->filled, bytes, part);
		runs->filled += part;
		bytes += part;
		length -= part;
		if (runs->filled == EXTENT_BYTES)
			write_extent(runs);
	}
}

void
gpusort_gin_runs_begin_key(GsGinRuns *runs, const GsGinKey *key)
{
	const GsGinColumn *column = &runs->order->columns[key->attnum - 1];
	GsRunKey	header;

	runs->last = 0;
	memset(&header, 0, sizeof(header));
	header.attnum = key->attnum;
	header.category = key->category;
	header.word = key->word;
	header.value = key->value;
	if (key->category == GIN_CAT_NORM_KEY && !column->attbyval)
	{
		const char *bytes = DatumGetPointer(key->value);
		Size		length = column->attlen > 0 ? column->attlen :
			column->attlen == -1 ? VARSIZE_ANY(bytes) : strlen(bytes) + 1;

		header.value = (Datum) length;
		put_bytes(runs, &header, sizeof(header));
		put_bytes(runs, bytes, length);
	}
	else
		put_bytes(runs, &header, sizeof(header));
}

/*
 * Add TIDs to the buffer as long as there is room for any difference.  Returns their number.
 */
static inline uint32
fill_extent(GsGinRuns *runs, const uint64 *tids, uint32 count)
{
	uint8	   *end = (uint8 *) runs->buffer + runs->filled;
	const uint8 *limit = (uint8 *) runs->buffer + EXTENT_BYTES - GPUSORT_VARBYTE_ROOM;
	uint64		last = runs->last;
	uint32		i = 0;

	for (; i < count && end < limit; i++)
	{
		end = gpusort_varbyte_write(end, tids[i] - last);
		last = tids[i];
	}
	runs->filled = (char *) end - runs->buffer;
	runs->last = last;
	return i;
}

void
gpusort_gin_runs_add(GsGinRuns *runs, const uint64 *tids, uint32 count)
{
	for (uint32 i = 0; i < count;)
	{
		uint8		bytes[GPUSORT_VARBYTE_ROOM];

		i += fill_extent(runs, tids + i, count - i);
		if (i < count)
		{
			put_bytes(runs, bytes, gpusort_varbyte_write(bytes, tids[i] - runs->last) - bytes);
			runs->last = tids[i++];
		}
	}
	gpusort_work_add(count * sizeof(uint64));
}

void
gpusort_gin_runs_end_key(GsGinRuns *runs)
{
	const uint8 zero = 0;

	put_bytes(runs, &zero, 1);
}

void
gpusort_gin_runs_begin_run(GsGinRuns *runs)
{
	MemoryContext caller = MemoryContextSwitchTo(runs->context);

	if (runs->file == NULL)
	{
		runs->file = gpusort_extent_file_create(EXTENT_BYTES, runs->target);
		runs->buffer = palloc(EXTENT_BYTES);
		runs->max_runs = 16;
		runs->runs = palloc(runs->max_runs * sizeof(GsGinRun));
	}
	else if (runs->nruns == runs->max_runs)
	{
		runs->max_runs *= 2;
		runs->runs = repalloc(runs->runs, runs->max_runs * sizeof(GsGinRun));
	}
	MemoryContextSwitchTo(caller);
	runs->runs[runs->nruns].nextents = 0;
	runs->filled = 0;
}

void
gpusort_gin_runs_end_run(GsGinRuns *runs)
{
	GsRunKey	end;

	memset(&end, 0, sizeof(end));
	end.category = RUN_END;
	put_bytes(runs, &end, sizeof(end));
	if (runs->filled > 0)
	{
		memset(runs->buffer + runs->filled, 0, EXTENT_BYTES - runs->filled);
		write_extent(runs);
	}
	runs->nruns++;
}

/* ----------------------------------------------------------------
 *		reading
 * ----------------------------------------------------------------
 */

/* Read on, so that the buffer has at least 'bytes' bytes, if the run has so many. */
static void
fill_buffer(GsGinRunReader *reader, Size bytes)
{
	Size		rest = reader->filled - reader->next;
	Size		left = reader->run->nextents * EXTENT_BYTES - reader->offset;

	if (rest >= bytes)
		return;
	memmove(reader->buffer, reader->buffer + reader->next, rest);
	reader->next = 0;
	reader->filled = rest +
		gpusort_extent_file_read(reader->runs->file, reader->run->first_extent, reader->offset,
								 reader->buffer + rest,
								 Min(reader->buffer_bytes - rest, left));
	reader->offset += reader->filled - rest;
}

static void
get_bytes(GsGinRunReader *reader, void *data, Size length)
{
	char	   *bytes = data;

	while (length > 0)
	{
		Size		part;

		fill_buffer(reader, 1);
		part = Min(length, reader->filled - reader->next);
		if (part == 0)
			elog(ERROR, "unexpected end of a run of GIN keys");
		memcpy(bytes, reader->buffer + reader->next, part);
		reader->next += part;
		bytes += part;
		length -= part;
	}
}

/* GsTidStream.fill */
static void
fill_stream(GsTidStream *stream)
{
	GsGinRunReader *reader = stream->arg;
	uint64		last = reader->last;
	uint32		n = 0;
	const uint8 *bytes;

	fill_buffer(reader, MAX_BATCH_BYTES);
	bytes = (const uint8 *) reader->buffer + reader->next;
	while (n < GPUSORT_TID_BATCH && !reader->ended)
	{
		uint64		difference;

		bytes = gpusort_varbyte_read_ahead(bytes, &difference);
		if (difference == 0)
			reader->ended = true;
		else
			stream->tids[n++] = last += difference;
	}
	reader->last = last;
	reader->next = (const char *) bytes - reader->buffer;
	stream->count = n;
	stream->next = 0;
}

GsGinRunReader *
gpusort_gin_run_open(GsGinRuns *runs, uint32 number, Size buffer_bytes)
{
	GsGinRunReader *reader = palloc0(sizeof(GsGinRunReader));

	reader->runs = runs;
	reader->run = &runs->runs[number];
	reader->buffer_bytes = Max(buffer_bytes, 2 * MAX_BATCH_BYTES);
	reader->buffer = palloc0(reader->buffer_bytes + GPUSORT_VARBYTE_ROOM);
	reader->value_bytes = 256;
	reader->value = palloc(reader->value_bytes);
	reader->ended = true;
	reader->stream.fill = fill_stream;
	reader->stream.arg = reader;
	return reader;
}

/* Read a value that is not passed by value. */
static Datum
get_value(GsGinRunReader *reader, Size length)
{
	if (length > reader->value_bytes)
	{
		pfree(reader->value);
		reader->value_bytes = length;
		reader->value = palloc(length);
	}
	get_bytes(reader, reader->value, length);
	return PointerGetDatum(reader->value);
}

GsTidStream *
gpusort_gin_run_next(GsGinRunReader *reader, GsGinKey *key)
{
	GsRunKey	header;

	Assert(reader->ended);
	get_bytes(reader, &header, sizeof(header));
	if (header.category == RUN_END)
		return NULL;
	key->attnum = header.attnum;
	key->category = header.category;
	key->word = header.word;
	key->value = header.value;
	if (key->category == GIN_CAT_NORM_KEY &&
		!reader->runs->order->columns[key->attnum - 1].attbyval)
		key->value = get_value(reader, (Size) header.value);
	reader->last = 0;
	reader->ended = false;
	gpusort_tid_stream_start(&reader->stream);
	return &reader->stream;
}
