/*-------------------------------------------------------------------------
 *
 * gpu_session_private.h
 *		The state of a GPU session.
 *
 * Only gpu_session.c and gpu_sorted_rows.c include this.  It does not include gpu_session.h,
 * since gpu_session.c includes both and includes must not be circular.  Therefore it names the
 * struct by its tag.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_SESSION_PRIVATE_H
#define GPUSORT_GPU_SESSION_PRIVATE_H

#include "portability/instr_time.h"

#include "key/device_key.h"
#include "service/service_client.h"
#include "sort/base/budget.h"
#include "sort/base/row_format.h"
#include "sort/base/rows_in_place.h"
#include "sort/base/sort_spec.h"

/* Sorted chunks that are requested before they are needed. */
#define CHUNKS_AHEAD		(GPUSORT_SLOT_CHUNKS - 1)

/* Chunks before the one that is being read, whose rows can be lent. */
#define LENT_CHUNKS			2

/* A chunk that is being filled. */
typedef struct GsChunkFill
{
	GsPoolChunk *chunk;			/* or NULL */
	uint32		rows;
	uint32		max_rows;		/* 0 without a chunk */
	uint64	   *keys[GPUSORT_DEVICE_KEY_WORDS]; /* of the next row */
	uint32	   *lengths;		/* of the next row, if variable */
	char	   *data;			/* of the first row */
	char	   *next;			/* of the next row */
	char	   *end;
} GsChunkFill;

/* The chunk that is being read. */
typedef struct GsWindow
{
	GsPoolChunk *chunk;			/* or NULL, also if it is a copy */
	int64		first;			/* position of its first row */
	uint32		rows;
	char	   *data;
	const uint32 *lengths;		/* of rows, if their length varies */
	uint32	   *offsets;		/* likewise, */
	bool		has_offsets;	/* if they have been computed */
	const uint32 *ties;			/* see GsSortedChunk */
	uint32		first_tie;		/* bit of its first row in 'ties' */
} GsWindow;

/* A chunk that has been read, but not freed. */
typedef struct GsLentChunk
{
	GsPoolChunk *chunk;
	int64		end;			/* position after its last row */
} GsLentChunk;

struct GsGpuSession
{
	GsBudget   *budget;			/* for memory that grows with the rows; no
								 * limit */
	const GsSortSpec *spec;
	GsRowFormat *format;
	GsDeviceKey *device_key;	/* NULL if spec->key_plan is exact */
	unsigned	words;
	Size		max_row_bytes;
	GsClient   *client;
	bool		has_ties;		/* do sorted chunks tell which rows are ties,
								 * since words do not tell all keys of each
								 * row? */
	GsReason	failure;

	/* Adding rows: gpu_session.c. */
	bool		all_told;		/* have words told all keys so far, although
								 * they need not? */
	double		nput;			/* number of rows in chunks that were put */
	GsChunkFill fills[GS_PARTS];
	uint64		sum_rows;
	uint64		sum_bytes;

	/* Reading sorted rows: gpu_sorted_rows.c. */
	int64		nrows;			/* of both parts, as all below */
	int64		nchunks;
	GsNullPart	first_part;		/* whose rows come first */
	int64		first_rows;
	int64		first_chunks;
	int64	   *starts;			/* positions of the chunks seen so far */
	int64		first_start;	/* those from this chunk on are known */
	int64		nstarts;		/* length, including that of the next one */
	GsWindow	window;
	GsRecallRows recall;		/* NULL if rows are not lent */
	void	   *recall_arg;
	int			nlent;
	GsLentChunk lent[LENT_CHUNKS];	/* in the order in which they were read */
	int			nahead;
	GsPoolChunk *ahead[CHUNKS_AHEAD];	/* requested, in order */
	char	   *copy;			/* of the chunk in the window, if several
								 * processes read rows; or NULL */
	instr_time	fetch_time;

	/* Taking refused rows: gpu_session.c. */
	GsPoolChunk *rest;			/* current chunk, or NULL */
	uint32		next_rest;
	char	   *next_rest_row;

	/* Several producers: gpu_session.c. */
	bool		shared;			/* do other processes add rows, too? */
	bool		settled;		/* has the device process taken or refused all
								 * chunks? */
};

/* Note the reason of a failure of the client.  Returns false. */
extern bool gpusort_gpu_session_fail(struct GsGpuSession *session);

#endif							/* GPUSORT_GPU_SESSION_PRIVATE_H */
