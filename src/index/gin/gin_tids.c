/*-------------------------------------------------------------------------
 *
 * gin_tids.c
 *		TIDs of a key of a GIN index: as numbers, in bytes, and of several lists together.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "index/gin/gin_tids.h"

/* Has the stream a TID left? */
static inline bool
has_tid(GsTidStream *stream)
{
	if (stream->next < stream->count)
		return true;
	if (stream->count == 0)
		return false;
	gpusort_tid_stream_start(stream);
	return stream->count > 0;
}

static inline uint64
next_tid(const GsTidStream *stream)
{
	return stream->tids[stream->next];
}

/* Move the stream at the end of a part of the array to its place in the order there. */
static void
insert_last(GsTidStream **array, uint32 count)
{
	GsTidStream *stream = array[count - 1];
	uint32		k = count - 1;

	for (; k > 0 && next_tid(array[k - 1]) > next_tid(stream); k--)
		array[k] = array[k - 1];
	array[k] = stream;
}

void
gpusort_tid_streams_start(GsTidStreams *streams, GsTidStream **array, uint32 count)
{
	streams->streams = array;
	streams->count = 0;
	streams->last = 0;
	for (uint32 i = 0; i < count; i++)
	{
		GsTidStream *stream = array[i];

		if (!has_tid(stream))
			continue;
		array[streams->count++] = stream;
		insert_last(array, streams->count);
	}
}

/* The first stream has been read: move it to its place. */
static void
move_first(GsTidStreams *streams)
{
	GsTidStream **array = streams->streams;
	GsTidStream *first = array[0];

	if (has_tid(first) && (streams->count == 1 || next_tid(first) <= next_tid(array[1])))
		return;

	/* What it has next is mostly beyond all others. */
	memmove(array, array + 1, (streams->count - 1) * sizeof(GsTidStream *));
	if (has_tid(first))
	{
		array[streams->count - 1] = first;
		insert_last(array, streams->count);
	}
	else
		streams->count--;
}

uint32
gpusort_tid_streams_read(GsTidStreams *streams, uint64 *tids)
{
	uint64		last = streams->last;
	uint32		n = 0;

	while (n < GPUSORT_TID_BATCH && streams->count > 0)
	{
		GsTidStream *stream = streams->streams[0];
		uint64		others = streams->count == 1 ? PG_UINT64_MAX : next_tid(streams->streams[1]);
		uint32		i = stream->next;

		/* The lists of one process seldom overlap, so many come from one. */
		for (; i < stream->count && stream->tids[i] <= others && n < GPUSORT_TID_BATCH; i++)
		{
			if (stream->tids[i] != last)
				tids[n++] = last = stream->tids[i];
		}
		stream->next = i;
		move_first(streams);
	}
	streams->last = last;
	return n;
}
