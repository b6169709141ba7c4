/*-------------------------------------------------------------------------
 *
 * gpu_session.c
 *		Sorts rows in the memory of a GPU.
 *
 * Rows and their keys are written into chunks of the service's pool.  The device
 * process copies full chunks to the device while further rows are read.  The device
 * sorts the keys and gathers the rows.  Sorted rows return through the pool, a few
 * chunks ahead of the reader.  Therefore host memory is accessed only in sequence,
 * and we need no more of it than a few chunks.
 *
 * Rows with NULL keys form a part of their own, which the device sorts separately.
 * The two parts are read one after the other.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "portability/instr_time.h"
#include "utils/float.h"
#include "utils/memutils.h"

#include "core/radix_sort.h"
#include "service/service_client.h"
#include "settings.h"
#include "sort/base/budget.h"
#include "sort/base/row_format.h"
#include "sort/base/tuple_rows.h"
#include "sort/gpu/gpu_session.h"
#include "work.h"

/* Sorted chunks that are requested before they are needed. */
#define CHUNKS_AHEAD		(GPUSORT_SLOT_CHUNKS - 1)

/* Chunks before the one that is being read, whose rows can be lent. */
#define LENT_CHUNKS			2

StaticAssertDecl(LENT_CHUNKS + 1 < GPUSORT_SLOT_CHUNKS,
				 "there must always be a chunk to go on with");

StaticAssertDecl(GPUSORT_CPU_MAX_KEY_WORDS <= GPUSORT_MAX_KEY_WORDS,
				 "every key can go to a device");

/* A chunk that is being filled. */
typedef struct GsFill
{
	GsPoolChunk *chunk;			/* or NULL */
	uint32		rows;
	uint32		max_rows;		/* 0 without a chunk */
	uint64	   *keys[GPUSORT_CPU_MAX_KEY_WORDS];	/* of the next row */
	uint32	   *lengths;		/* of the next row, if variable */
	char	   *data;			/* of the first row */
	char	   *next;			/* of the next row */
	char	   *end;
} GsFill;

/* A part of the sorted rows. */
typedef struct GsSortedPart
{
	int64		first;			/* position of its first row */
	int64		rows;
	uint64		chunks;
	int64	   *starts;			/* first rows of the chunks seen so far */
	uint64		nstarts;		/* length, including that of the next one */
} GsSortedPart;

/* The chunk that is being read. */
typedef struct GsWindow
{
	GsPoolChunk *chunk;			/* or NULL */
	int64		first;			/* position of its first row */
	uint32		rows;
	char	   *data;
	const uint32 *lengths;		/* of rows, if their length varies */
	uint32	   *offsets;		/* likewise */
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
	unsigned	words;
	Size		max_row_bytes;
	GsClient   *client;
	bool		shared;			/* do other processes add rows, too? */
	MemoryContext context;
	GsGpuSession *previous;		/* that this one continues, if we have used it */
	bool		settled;		/* has the device process taken or refused all
								 * chunks? */
	bool		has_ties;		/* do sorted chunks tell which rows are ties? */
	GsFallback	failure;

	/* Adding rows. */
	double		capacity;		/* no chunk is begun at this many rows */
	double		nput;			/* number of rows in chunks that were put */
	GsFill		fills[GS_PARTS];
	GsRowCopy  *copy;			/* of the rows, or NULL */
	uint64		sum_rows;
	uint64		sum_bytes;

	/* Reading sorted rows. */
	int64		nrows;
	GsSortedPart parts[GS_PARTS];
	GsWindow	window;
	GsRecallRows recall;		/* NULL if rows are not lent */
	void	   *recall_arg;
	int			nlent;
	GsLentChunk lent[LENT_CHUNKS];	/* in the order in which they were read */
	int			nahead;
	GsPoolChunk *ahead[CHUNKS_AHEAD];	/* requested, in order */
	instr_time	fetch_time;

	/* Taking rows without device memory: the current chunk, or NULL. */
	GsPoolChunk *rest;
	uint32		next_rest;
	char	   *next_rest_row;
};

/* With fewer rows, a sort takes less time on the CPU. */
static double
min_rows(void)
{
	return gpusort_gpu_min_rows >= 0 ? gpusort_gpu_min_rows : gpusort_client_min_rows();
}

GsFallback
gpusort_gpu_session_check(double rows)
{
	GsFallback	reason;

	if (gpusort_backend == GS_BACKEND_CPU)
		return GS_FALLBACK_BACKEND_CPU;
	reason = gpusort_client_availability();
	if (reason != GS_FALLBACK_NONE)
		return reason;
	if (gpusort_backend == GS_BACKEND_AUTO && rows < min_rows())
		return GS_FALLBACK_GPU_FEW_ROWS;
	return GS_FALLBACK_NONE;
}

static GsGpuSession *
make_session(const GsSortSpec *spec)
{
	GsGpuSession *session = palloc0(sizeof(GsGpuSession));

	session->budget = gpusort_budget_create(SIZE_MAX);
	session->spec = spec;
	session->context = CurrentMemoryContext;
	session->format = gpusort_row_format_create(spec);
	session->words = gpusort_key_plan_words(spec->key_plan);
	session->capacity = get_float8_infinity();

	/* A row must fit into a chunk with its key, and into a sorted one. */
	session->max_row_bytes = gpusort_client_chunk_bytes() / 4 * 3;
	return session;
}

/* Open a session with options that say which devices it may have. */
static GsGpuSession *
create_session(const GsSortSpec *spec, GsClientOptions options, double rows,
			   GsFallback *reason)
{
	GsGpuSession *session;
	int			first_open;

	*reason = gpusort_gpu_session_check(spec->expected_rows);
	if (*reason != GS_FALLBACK_NONE)
		return NULL;

	session = make_session(spec);
	options.key_words = session->words;
	options.variable = session->format->variable;
	session->has_ties = !gpusort_key_plan_is_exact(spec->key_plan, &first_open);
	options.ties = session->has_ties;
	options.row_width = session->format->packed_bytes;
	options.expected_rows = rows;
	options.expected_bytes = rows *
		(options.variable ? Max(spec->expected_width, options.row_width) :
		 options.row_width);
	if (session->format->packed_bytes > session->max_row_bytes)
	{
		*reason = GS_FALLBACK_ROW_WIDTH;
		return NULL;
	}
	session->client = gpusort_client_open(&options, reason);
	return session->client != NULL ? session : NULL;
}

GsGpuSession *
gpusort_gpu_session_create(const GsSortSpec *spec, GsFallback *reason)
{
	GsClientOptions options = {.spread = false};

	return create_session(spec, options, spec->expected_rows, reason);
}

/*
 * Should the sort begin on the CPU rather than on several devices?  The leader would merge
 * their rows alone, which takes longer than a sort on the CPU by all processes.
 */
static bool
gains_from_one_device_only(const GsSortSpec *spec)
{
	return gpusort_backend == GS_BACKEND_AUTO && spec->processes > 0;
}

GsGpuSession *
gpusort_gpu_session_create_one(const GsSortSpec *spec, uint32 used, double rows,
							   GsFallback *reason)
{
	GsClientOptions options = {
		.spread = used != 0 || !gains_from_one_device_only(spec),
		.used_devices = used
	};

	return create_session(spec, options, rows, reason);
}

GsGpuSession *
gpusort_gpu_session_create_batch(const GsSortSpec *spec, int processes, GsFallback *reason)
{
	GsClientOptions options = {.spread = true,.batch_processes = processes};

	return create_session(spec, options, spec->expected_rows, reason);
}

uint32
gpusort_gpu_session_device(const GsGpuSession *session)
{
	return (uint32) 1 << gpusort_client_device(session->client);
}

double
gpusort_gpu_session_rows_put(const GsGpuSession *session)
{
	/* If others have put rows, too, we know how many when they are sorted. */
	return Max(session->nput, session->nrows);
}

GsClientHandle
gpusort_gpu_session_handle(GsGpuSession *session)
{
	session->shared = true;
	return gpusort_client_handle(session->client);
}

GsGpuSession *
gpusort_gpu_session_attach(const GsSortSpec *spec, GsClientHandle handle)
{
	GsGpuSession *session = make_session(spec);

	session->client = gpusort_client_attach(handle);
	session->shared = true;
	return session;
}

GsFallback
gpusort_gpu_session_failure(const GsGpuSession *session)
{
	return session->failure;
}

static bool
fail(GsGpuSession *session)
{
	session->failure = gpusort_client_failure(session->client);
	return false;
}

/* ----------------------------------------------------------------
 *		rows in
 * ----------------------------------------------------------------
 */

/* Divide a new chunk into arrays of key words, an array of lengths, and the rows. */
static void
lay_out_fill(GsGpuSession *session, GsFill *fill)
{
	GsPoolChunk *chunk = fill->chunk;
	char	   *address = gpusort_chunk_address(chunk);
	Size		chunk_bytes = gpusort_client_chunk_bytes();
	Size		row_bytes = session->format->packed_bytes;
	Size		offset = 0;

	if (session->format->variable)
	{
		/* Assume the average length so far, or at first the expected one. */
		if (session->sum_rows > 0)
			row_bytes = session->sum_bytes / session->sum_rows;
		else
			row_bytes = Max(row_bytes, session->spec->expected_width);
		row_bytes = Min(row_bytes, chunk_bytes / 2) + sizeof(uint32);
	}
	fill->rows = 0;
	fill->max_rows = (chunk_bytes - MAXIMUM_ALIGNOF) /
		(row_bytes + session->words * sizeof(uint64));
	for (unsigned w = 0; w < session->words; w++)
	{
		chunk->keys_offset[w] = offset;
		fill->keys[w] = (uint64 *) (address + offset);
		offset += fill->max_rows * sizeof(uint64);
	}
	if (session->format->variable)
	{
		chunk->lengths_offset = offset;
		fill->lengths = (uint32 *) (address + offset);
		offset = MAXALIGN(offset + fill->max_rows * sizeof(uint32));
	}
	chunk->data_offset = offset;
	fill->data = fill->next = address + offset;
	fill->end = address + chunk_bytes;
}

void
gpusort_gpu_session_keep_copy(GsGpuSession *session, GsRowCopy *copy)
{
	session->copy = copy;
}

static void
copy_fill(GsGpuSession *session, const GsFill *fill)
{
	if (session->copy != NULL)
		gpusort_row_copy_add(session->copy, fill->data, fill->next - fill->data,
							 fill->rows);
}

/* End the chunk, which belongs to the caller from now on, and return it. */
static GsPoolChunk *
take_fill(GsGpuSession *session, GsFill *fill)
{
	GsPoolChunk *chunk = fill->chunk;

	copy_fill(session, fill);
	chunk->part = fill - session->fills;
	chunk->rows = fill->rows;
	chunk->data_bytes = fill->next - fill->data;
	fill->chunk = NULL;
	fill->max_rows = 0;
	return chunk;
}

void
gpusort_gpu_session_copy_rest(GsGpuSession *session)
{
	for (int p = 0; p < GS_PARTS; p++)
		if (session->fills[p].chunk != NULL)
			(void) take_fill(session, &session->fills[p]);
}

void
gpusort_gpu_session_make_room(GsGpuSession *session)
{
	if (session->copy != NULL)
		gpusort_row_copy_leave_memory(session->copy);
}

/* Are our keys comparable with those of all other processes that add rows? */
static bool
has_comparable_keys(GsGpuSession *session)
{
	if (!session->shared ||
		gpusort_key_plan_is_common(session->spec->key_plan))
		return true;
	session->failure = GS_FALLBACK_ENUM_LABELS;
	return false;
}

/* Put a chunk, and set *position as gpusort_client_put() does.  Returns false on failure. */
static bool
put_chunk(GsGpuSession *session, GsPoolChunk *chunk, uint64 *position)
{
	session->nput += chunk->rows;
	session->sum_rows += chunk->rows;
	session->sum_bytes += chunk->data_bytes;
	return gpusort_client_put(session->client, chunk, position) || fail(session);
}

/* Put the chunk of a part, if there is one.  Returns false on failure. */
static bool
flush_fill(GsGpuSession *session, GsPart part)
{
	GsFill	   *fill = &session->fills[part];
	uint64		position;
	bool		put;

	if (fill->chunk == NULL)
		return true;
	if (!has_comparable_keys(session))
		return false;
	put = put_chunk(session, take_fill(session, fill), &position);
	if (session->copy != NULL)
		gpusort_row_copy_set_number(session->copy, position);
	return put;
}

bool
gpusort_gpu_session_flush(GsGpuSession *session)
{
	for (int p = 0; p < GS_PARTS; p++)
		if (!flush_fill(session, p))
			return false;
	return true;
}

/*
 * Begin a new chunk with space for a row of 'row_bytes' bytes.  Returns false on
 * failure.
 */
static bool
make_room(GsGpuSession *session, GsPart part, Size row_bytes)
{
	GsFill	   *fill = &session->fills[part];

	if (row_bytes > session->max_row_bytes)
	{
		session->failure = GS_FALLBACK_ROW_WIDTH;
		return false;
	}
	if (!flush_fill(session, part))
		return false;
	if (session->nput >= session->capacity)
	{
		session->failure = GS_FALLBACK_LIMIT;
		return false;
	}
	fill->chunk = gpusort_client_new_chunk(session->client, false);
	if (fill->chunk == NULL)
	{
		if (!gpusort_gpu_session_flush(session))
			return false;
		fill->chunk = gpusort_client_new_chunk(session->client, true);
	}
	if (fill->chunk == NULL)
		return fail(session);
	lay_out_fill(session, fill);
	if (fill->end - fill->next >= (ptrdiff_t) row_bytes)
		return true;

	/* The row is unusually long.  Lay the chunk out for rows of its length. */
	session->sum_rows = 1;
	session->sum_bytes = row_bytes;
	lay_out_fill(session, fill);
	return true;
}

void
gpusort_gpu_session_set_capacity(GsGpuSession *session, double rows)
{
	session->capacity = rows;
}

bool
gpusort_gpu_session_put(GsGpuSession *session, const Datum *values,
						const bool *isnull)
{
	uint64		key[GPUSORT_CPU_MAX_KEY_WORDS];
	const GsRowFormat *format = session->format;
	GsPart		part = GS_PART_REGULAR;
	Size		row_bytes = 0;
	GsFill	   *fill;

	if (!gpusort_key_plan_encode(session->spec->key_plan, values, isnull, key))
		part = GS_PART_NULL_KEYS;
	fill = &session->fills[part];
	if (likely(fill->rows < fill->max_rows))
		row_bytes = gpusort_row_format_pack_fast(format, values, isnull,
												 fill->next,
												 fill->end - fill->next);
	if (unlikely(row_bytes == 0))
	{
		if (!make_room(session, part,
					   gpusort_row_format_packed_size(format, values, isnull)))
			return false;
		row_bytes = gpusort_row_format_pack(format, values, isnull, fill->next,
											fill->end - fill->next);
	}

	gpusort_work_add(GPUSORT_WORK_ROW + row_bytes);
	for (unsigned w = 0; w < session->words; w++)
		*fill->keys[w]++ = key[w];
	if (format->variable)
		*fill->lengths++ = row_bytes;
	fill->next += row_bytes;
	fill->rows++;
	return true;
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/*
 * Compute the positions of both parts, and prepare to read them.  Returns false if
 * there is not enough memory.
 */
static bool
locate_parts(GsGpuSession *session)
{
	bool		nulls_first =
		gpusort_key_plan_nulls_first(session->spec->key_plan);

	for (int p = 0; p < GS_PARTS; p++)
	{
		GsSortedPart *part = &session->parts[p];
		const GsPartResult *result = gpusort_client_result(session->client, p);

		part->rows = result->rows;
		part->chunks = result->chunks;
		part->starts = gpusort_budget_alloc(session->budget,
											(part->chunks + 1) * sizeof(int64));
		if (part->starts == NULL)
			return false;
		part->starts[0] = 0;
		part->nstarts = 1;
		session->nrows += part->rows;
	}
	session->parts[nulls_first ? GS_PART_REGULAR : GS_PART_NULL_KEYS].first =
		session->parts[nulls_first ? GS_PART_NULL_KEYS : GS_PART_REGULAR].rows;
	if (session->format->variable)
		session->window.offsets =
			gpusort_budget_alloc(session->budget,
								 gpusort_client_chunk_bytes() / 8);
	return !session->budget->out_of_memory;
}

bool
gpusort_gpu_session_sort(GsGpuSession *session)
{
	bool		full = session->failure == GS_FALLBACK_DEVICE_MEMORY;

	session->failure = GS_FALLBACK_NONE;
	if (!full && !gpusort_gpu_session_flush(session))
	{
		if (session->failure != GS_FALLBACK_DEVICE_MEMORY)
			return false;
		session->failure = GS_FALLBACK_NONE;
	}
	if (!gpusort_client_sort(session->client))
		return fail(session);
	if (!locate_parts(session))
	{
		session->failure = GS_FALLBACK_OUT_OF_MEMORY;
		return false;
	}
	return true;
}

int64
gpusort_gpu_session_count(const GsGpuSession *session)
{
	return session->nrows;
}

void
gpusort_gpu_session_report(const GsGpuSession *session, GsGpuReport *report)
{
	report->device_bytes = gpusort_client_device_bytes(session->client);
	report->sort_ms = gpusort_client_sort_ms(session->client);
	report->fetch_ms = INSTR_TIME_GET_MILLISEC(session->fetch_time);
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

static GsPart
part_of_position(const GsGpuSession *session, int64 position)
{
	const GsSortedPart *regular = &session->parts[GS_PART_REGULAR];

	return position >= regular->first &&
		position < regular->first + regular->rows ? GS_PART_REGULAR :
		GS_PART_NULL_KEYS;
}

/* Returns the chunk with a position: one seen before, or the first one not seen. */
static uint64
chunk_of_position(const GsSortedPart *part, int64 position)
{
	uint64		low = 0;
	uint64		high = part->nstarts;

	/* Find the last chunk that does not start after the position. */
	while (high - low > 1)
	{
		uint64		middle = low + (high - low) / 2;

		if (part->starts[middle] <= position - part->first)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Move on to the next chunk in sorted order.  Returns false after the last one. */
static bool
next_chunk(const GsGpuSession *session, GsPart *part, uint64 *number)
{
	const GsSortedPart *current = &session->parts[*part];
	GsPart		other = *part == GS_PART_REGULAR ? GS_PART_NULL_KEYS :
		GS_PART_REGULAR;

	if (++*number < current->chunks)
		return true;
	if (session->parts[other].chunks == 0 ||
		session->parts[other].first < current->first)
		return false;
	*part = other;
	*number = 0;
	return true;
}

/* Request the sorted chunks after one, as long as pool chunks are available. */
static void
ask_ahead(GsGpuSession *session, GsPart part, uint64 number)
{
	if (session->nahead > 0)
	{
		part = session->ahead[session->nahead - 1]->part;
		number = session->ahead[session->nahead - 1]->number;
	}
	while (session->nahead < CHUNKS_AHEAD &&
		   next_chunk(session, &part, &number))
	{
		GsPoolChunk *chunk = gpusort_client_ask(session->client, part, number,
												false);

		if (chunk == NULL)
			return;
		session->ahead[session->nahead++] = chunk;
	}
}

/* Remove the first of the chunks ahead, and return it. */
static GsPoolChunk *
take_ahead(GsGpuSession *session)
{
	GsPoolChunk *chunk = session->ahead[0];

	session->nahead--;
	memmove(session->ahead, session->ahead + 1,
			session->nahead * sizeof(session->ahead[0]));
	return chunk;
}

/*
 * Get a sorted chunk.  Usually it is the first of the chunks ahead.  After a jump it is
 * another one, and chunks ahead that are not wanted are dropped.
 */
static GsPoolChunk *
get_chunk(GsGpuSession *session, GsPart part, uint64 number)
{
	GsPoolChunk *chunk;

	while (session->nahead > 0)
	{
		chunk = take_ahead(session);
		if (!gpusort_client_await(session->client, chunk))
			return NULL;
		if (chunk->part == part && chunk->number == number)
			return chunk;
		gpusort_chunk_free(chunk);
	}
	chunk = gpusort_client_ask(session->client, part, number, true);
	if (chunk == NULL || !gpusort_client_await(session->client, chunk))
		return NULL;
	return chunk;
}

/* Free the chunk of the window, or lend it and free one that was lent before. */
static void
leave_window(GsGpuSession *session)
{
	GsWindow   *window = &session->window;
	GsPoolChunk *chunk = window->chunk;

	if (chunk != NULL && session->recall != NULL)
	{
		GsLentChunk leaving = {chunk, window->first + window->rows};

		chunk = NULL;
		if (session->nlent == LENT_CHUNKS)
		{
			session->recall(session->recall_arg, session->lent[0].end);
			chunk = session->lent[0].chunk;
			session->nlent--;
			memmove(session->lent, session->lent + 1,
					session->nlent * sizeof(session->lent[0]));
		}
		session->lent[session->nlent++] = leaving;
	}
	if (chunk != NULL)
		gpusort_chunk_free(chunk);
	window->chunk = NULL;
	window->rows = 0;
}

static void
open_window(GsGpuSession *session, GsPoolChunk *chunk)
{
	GsWindow   *window = &session->window;
	GsSortedPart *part = &session->parts[chunk->part];
	char	   *address = gpusort_chunk_address(chunk);

	window->chunk = chunk;
	window->first = part->first + chunk->first_row;
	window->rows = chunk->rows;
	window->data = address + chunk->data_offset;
	window->ties = (const uint32 *) (address + chunk->ties_offset);
	window->first_tie = chunk->first_row % 32;
	if (chunk->number + 1 == part->nstarts)
		part->starts[part->nstarts++] = chunk->first_row + chunk->rows;
	if (session->format->variable)
	{
		uint32		offset = 0;

		window->lengths = (const uint32 *) (address + chunk->lengths_offset);
		for (uint32 i = 0; i < chunk->rows; i++)
		{
			window->offsets[i] = offset;
			offset += window->lengths[i];
		}
	}
}

/* Move the window to the chunk with a position. */
static bool
move_window(GsGpuSession *session, int64 position)
{
	GsPart		part = part_of_position(session, position);
	uint64		number = chunk_of_position(&session->parts[part], position);
	instr_time	start;
	instr_time	end;
	GsPoolChunk *chunk;

	leave_window(session);
	INSTR_TIME_SET_CURRENT(start);
	if (session->nahead > 0)
		ask_ahead(session, part, number);
	chunk = get_chunk(session, part, number);
	if (chunk == NULL)
		return fail(session);
	ask_ahead(session, part, number);
	open_window(session, chunk);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(session->fetch_time, end, start);
	return true;
}

/*
 * Move the window to a position, if it is elsewhere, and set *within to the row's number in it.
 * Returns false if the rows are lost.
 */
static inline bool
find_in_window(GsGpuSession *session, int64 position, uint64 *within)
{
	gpusort_work_add(GPUSORT_WORK_ROW);
	*within = (uint64) (position - session->window.first);
	if (likely(*within < session->window.rows))
		return true;
	if (!move_window(session, position))
		return false;
	*within = position - session->window.first;
	return true;
}

/* Returns a row of the window. */
static inline char *
packed_row(const GsGpuSession *session, uint64 within)
{
	const GsWindow *window = &session->window;

	return window->data + (session->format->variable ? window->offsets[within] :
						   within * session->format->packed_bytes);
}

static inline void
unpack_row(const GsGpuSession *session, uint64 within, Datum *values, bool *isnull)
{
	const GsRowFormat *format = session->format;
	char	   *row = packed_row(session, within);

	if (format->variable)
		gpusort_row_format_unpack(format, row, values, isnull);
	else
		gpusort_row_format_unpack_fast(format, row, values, isnull);
}

static inline bool
is_tie(const GsGpuSession *session, uint64 within)
{
	uint64		bit = session->window.first_tie + within;

	return (session->window.ties[bit / 32] >> (bit % 32)) & 1;
}

bool
gpusort_gpu_session_get(GsGpuSession *session, int64 position,
						Datum *values, bool *isnull)
{
	uint64		within;

	if (!find_in_window(session, position, &within))
		return false;
	unpack_row(session, within, values, isnull);
	return true;
}

char *
gpusort_gpu_session_get_packed(GsGpuSession *session, int64 position)
{
	uint64		within;

	return find_in_window(session, position, &within) ? packed_row(session, within) : NULL;
}

int
gpusort_gpu_session_is_tie(GsGpuSession *session, int64 position)
{
	uint64		within;

	if (!find_in_window(session, position, &within))
		return -1;
	return is_tie(session, within);
}

int
gpusort_gpu_session_get_untied(GsGpuSession *session, int64 position,
							   Datum *values, bool *isnull)
{
	uint64		within;

	if (!find_in_window(session, position, &within))
		return -1;
	if (is_tie(session, within))
		return 0;
	unpack_row(session, within, values, isnull);
	return 1;
}

/* Returns the number of rows of the window from one on that come before any row with a tie. */
static uint32
count_untied(const GsGpuSession *session, uint64 within)
{
	uint32		end = session->window.rows;
	uint32		n = 0;

	if (!session->has_ties)
		return end - within;
	while (within + n < end && !is_tie(session, within + n))
		n++;
	return n;
}

bool
gpusort_gpu_session_in_place(GsGpuSession *session, int64 position, GsRowsInPlace *rows)
{
	const GsWindow *window = &session->window;
	const GsRowFormat *format = session->format;
	uint64		within = (uint64) (position - window->first);

	if (format->null_bytes != 1 || within >= window->rows)
		return false;
	memset(rows, 0, sizeof(*rows));
	rows->nrows = count_untied(session, within);
	if (format->variable)
	{
		rows->first = window->data + window->offsets[within];
		rows->lengths = window->lengths + within;
	}
	else
	{
		rows->row_bytes = format->packed_bytes;
		rows->first = window->data + within * rows->row_bytes;
	}
	rows->null_offset = format->columns_bytes;
	rows->lasting = session->recall != NULL;
	return rows->nrows > 0;
}

void
gpusort_gpu_session_lend(GsGpuSession *session, GsRecallRows recall, void *arg)
{
	session->recall = recall;
	session->recall_arg = arg;
}

int64
gpusort_gpu_session_chunk_end(const GsGpuSession *session)
{
	return session->window.first + session->window.rows;
}

/* ----------------------------------------------------------------
 *		rows without device memory
 * ----------------------------------------------------------------
 */

/*
 * Returns the next chunk of which rows can be taken, or NULL.  The chunks that the
 * device refused come first, then those that have not been put, for which it sets *fill.
 */
static GsPoolChunk *
find_rest_chunk(const GsGpuSession *session, GsFill **fill)
{
	GsPoolChunk *refused = NULL;

	*fill = NULL;
	if (gpusort_client_has_refused(session->client))
		refused = gpusort_client_first_refused(session->client);
	for (int p = 0; p < GS_PARTS && refused == NULL && *fill == NULL; p++)
		if (session->fills[p].chunk != NULL)
			*fill = unconstify(GsFill *, &session->fills[p]);
	return *fill != NULL ? (*fill)->chunk : refused;
}

bool
gpusort_gpu_session_has_rest(const GsGpuSession *session)
{
	GsFill	   *fill;

	return find_rest_chunk(session, &fill) != NULL;
}

/* The next chunk of which rows can be taken, which the caller has to free; or NULL. */
static GsPoolChunk *
next_rest_chunk(GsGpuSession *session)
{
	GsPoolChunk *chunk = gpusort_client_take_refused(session->client);

	for (int p = 0; p < GS_PARTS && chunk == NULL; p++)
		if (session->fills[p].chunk != NULL)
			chunk = take_fill(session, &session->fills[p]);
	return chunk;
}

/*
 * Copy the rows of a chunk into an empty one of another session, free it, and put that.
 * Returns false on failure.
 */
static bool
move_chunk(GsGpuSession *session, GsPoolChunk *from, GsPoolChunk *to)
{
	Size		bytes = from->data_offset + from->data_bytes;
	uint64		position;

	gpusort_work_add(bytes);
	to->part = from->part;
	to->rows = from->rows;
	memcpy(to->keys_offset, from->keys_offset, sizeof(to->keys_offset));
	to->lengths_offset = from->lengths_offset;
	to->data_offset = from->data_offset;
	to->data_bytes = from->data_bytes;
	memcpy(gpusort_chunk_address(to), gpusort_chunk_address(from), bytes);
	gpusort_chunk_free(from);
	return put_chunk(session, to, &position);
}

/* Move the refused chunks.  Returns false if 'to' does not take all of them. */
static bool
move_refused(GsGpuSession *from, GsGpuSession *to)
{
	while (gpusort_client_first_refused(from->client) != NULL)
	{
		GsPoolChunk *chunk = gpusort_client_new_chunk(to->client, true);
		GsPoolChunk *refused;

		CHECK_FOR_INTERRUPTS();
		if (chunk == NULL)
			return fail(to);
		refused = gpusort_client_take_refused(from->client);
		if (refused == NULL)
		{
			gpusort_chunk_free(chunk);
			break;
		}
		if (!move_chunk(to, refused, chunk))
			return false;
	}
	return true;
}

/* Move the chunks that this process has not put.  Returns false likewise. */
static bool
move_fills(GsGpuSession *from, GsGpuSession *to)
{
	for (int p = 0; p < GS_PARTS; p++)
	{
		GsPoolChunk *chunk;

		if (from->fills[p].chunk == NULL)
			continue;
		if (!has_comparable_keys(to))
			return false;
		chunk = gpusort_client_new_chunk(to->client, true);
		if (chunk == NULL)
			return fail(to);
		if (!move_chunk(to, take_fill(from, &from->fills[p]), chunk))
			return false;
	}
	return true;
}

bool
gpusort_gpu_session_move_rest(GsGpuSession *from, GsGpuSession *to)
{
	to->copy = from->copy;
	return move_refused(from, to) && move_fills(from, to);
}

bool
gpusort_gpu_session_take_rest(GsGpuSession *session, Datum *values,
							  bool *isnull)
{
	while (session->rest == NULL || session->next_rest == session->rest->rows)
	{
		/* The values last returned are no longer in use. */
		if (session->rest != NULL)
			gpusort_chunk_free(session->rest);
		session->rest = next_rest_chunk(session);
		if (session->rest == NULL)
			return false;
		session->next_rest = 0;
		session->next_rest_row = gpusort_chunk_address(session->rest) +
			session->rest->data_offset;
	}
	gpusort_row_format_unpack(session->format, session->next_rest_row, values,
							  isnull);
	gpusort_tuple_row_get_keys(session->spec, values, isnull);
	session->next_rest_row +=
		gpusort_row_format_packed_length(session->format,
										 session->next_rest_row);
	session->next_rest++;
	return true;
}

/* ----------------------------------------------------------------
 *		several producers of several sessions
 * ----------------------------------------------------------------
 */

/* Make a session for another client of the same sort. */
static GsGpuSession *
continue_session(GsGpuSession *previous, GsClient *client)
{
	GsGpuSession *session = make_session(previous->spec);

	session->client = client;
	session->shared = true;
	session->has_ties = previous->has_ties;
	session->sum_rows = previous->sum_rows;
	session->sum_bytes = previous->sum_bytes;
	return session;
}

/*
 * After a session became full: move rows to the session that continues it.  If that is new,
 * the refused chunks are moved as well.  Earlier sessions may have rows that have not
 * found room so far; they arrived after those that the sessions behind them have refused.
 */
static void
move_to_next(GsGpuSession *full, GsGpuSession *next, bool opened)
{
	for (GsGpuSession *from = full; from != NULL; from = from->previous)
	{
		if (opened && (!gpusort_client_settle(from->client) ||
					   !move_refused(from, next)))
			return;
		if (!move_fills(from, next))
			return;
	}
}

GsGpuSession *
gpusort_gpu_session_follow(GsGpuSession *full)
{
	MemoryContext caller = MemoryContextSwitchTo(full->context);
	GsGpuSession *next = NULL;
	bool		opened;
	GsClient   *client = gpusort_client_find_next(full->client, &opened);

	if (client != NULL)
	{
		next = continue_session(full, client);
		next->previous = full;
		move_to_next(full, next, opened);
		if (opened && !gpusort_client_announce_next(full->client, client))
			next->failure = GS_FALLBACK_SERVICE_LOST;
	}
	MemoryContextSwitchTo(caller);
	if (next == NULL)
		(void) fail(full);
	else if (next->failure != GS_FALLBACK_NONE &&
			 next->failure != GS_FALLBACK_DEVICE_MEMORY)
	{
		full->failure = next->failure;
		next = NULL;
	}
	return next;
}

/* Continue in the next session, after one became full.  Returns false if there is none. */
static bool
go_on(GsGpuSession **session)
{
	GsGpuSession *next;

	if ((*session)->failure != GS_FALLBACK_DEVICE_MEMORY)
		return false;
	next = gpusort_gpu_session_follow(*session);
	if (next == NULL)
		return false;
	*session = next;
	return true;
}

bool
gpusort_gpu_session_put_shared(GsGpuSession **session, const Datum *values,
							   const bool *isnull)
{
	while (!gpusort_gpu_session_put(*session, values, isnull))
		if (!go_on(session))
			return false;
	return true;
}

bool
gpusort_gpu_session_has_no_room(const GsGpuSession *session)
{
	return (session->failure == GS_FALLBACK_NONE ||
			session->failure == GS_FALLBACK_DEVICE_MEMORY) &&
		gpusort_client_has_no_room(session->client);
}

bool
gpusort_gpu_session_take_left(GsGpuSession *session, Datum *values, bool *isnull)
{
	for (GsGpuSession *from = session; from != NULL; from = from->previous)
	{
		if (!from->settled && !gpusort_client_settle(from->client))
		{
			session->failure = GS_FALLBACK_SERVICE_LOST;
			return false;
		}
		from->settled = true;
		if (gpusort_gpu_session_take_rest(from, values, isnull))
			return true;
	}
	return false;
}

bool
gpusort_gpu_session_release(GsGpuSession *session)
{
	return gpusort_client_release(session->client) || fail(session);
}

/* Has this process rows in chunks that it has not put? */
static bool
has_fills(const GsGpuSession *session)
{
	for (; session != NULL; session = session->previous)
		for (int p = 0; p < GS_PARTS; p++)
			if (session->fills[p].chunk != NULL)
				return true;
	return false;
}

bool
gpusort_gpu_session_flush_shared(GsGpuSession **session)
{
	while ((*session)->failure != GS_FALLBACK_NONE ||
		   !gpusort_gpu_session_flush(*session))
	{
		/* The owner will find chunks that were put and are refused. */
		if ((*session)->failure == GS_FALLBACK_DEVICE_MEMORY &&
			!has_fills(*session))
			return true;
		if (!go_on(session))
			return false;
	}
	return true;
}

GsGpuSession *
gpusort_gpu_session_own_next(GsGpuSession *session)
{
	MemoryContext caller = MemoryContextSwitchTo(session->context);
	GsClient   *client = gpusort_client_own_next(session->client);
	GsGpuSession *next = NULL;

	if (client != NULL)
		next = continue_session(session, client);
	MemoryContextSwitchTo(caller);
	return next;
}
