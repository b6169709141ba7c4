/*-------------------------------------------------------------------------
 *
 * gin_tids.c
 *		TIDs of a key of a GIN index: as numbers, in bytes, and of several lists together.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "index/gin_tids.h"

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

/*
 * Find the stream with the least TID, and the least TID of the others.  Returns NULL if all
 * are at their ends.
 */
static GsTidStream *
find_least(GsTidStream **streams, uint32 nstreams, uint64 *others)
{
	GsTidStream *least = NULL;
	uint64		least_tid = PG_UINT64_MAX;

	*others = PG_UINT64_MAX;
	for (uint32 i = 0; i < nstreams; i++)
	{
		uint64		tid;

		if (!has_tid(streams[i]))
			continue;
		tid = streams[i]->tids[streams[i]->next];
		if (tid < least_tid)
		{
			*others = least_tid;
			least_tid = tid;
			least = streams[i];
		}
		else
			*others = Min(*others, tid);
	}
	return least;
}

uint32
gpusort_tid_streams_read(GsTidStream **streams, uint32 nstreams, uint64 last, uint64 *tids)
{
	uint32		n = 0;
	uint64		others;
	GsTidStream *stream;

	while (n < GPUSORT_TID_BATCH &&
		   (stream = find_least(streams, nstreams, &others)) != NULL)
	{
		uint32		i = stream->next;

		/* The lists of one process seldom overlap, so many come from one. */
		for (; i < stream->count && stream->tids[i] <= others && n < GPUSORT_TID_BATCH; i++)
		{
			if (stream->tids[i] != last)
				tids[n++] = last = stream->tids[i];
		}
		stream->next = i;
	}
	return n;
}
