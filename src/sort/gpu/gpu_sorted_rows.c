/*-------------------------------------------------------------------------
 *
 * gpu_sorted_rows.c
 *		Has a device sort the rows of a GPU session, and reads them in sorted order.
 *
 * Sorted rows return through the pool.  We request chunks by their numbers, some ahead of
 * the one that is being read, which is the window.  If rows are lent, the chunks read last
 * stay for a while.
 *
 * If several processes read the rows, none of them keeps a chunk in the pool.  Each asks for one,
 * waits for it, copies and frees it.
 *
 * Rows with NULL keys and all others are two parts.  Each is sorted by itself, and has
 * chunks of its own.  Here the chunks of the part that comes last follow those of the first.
 *
 * gpu_rows.c has the session sorted.  It reads the rows, and breaks ties if there are any.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "port/pg_bitutils.h"
#include "portability/instr_time.h"

#include "sort/base/budget.h"
#include "sort/base/row_format.h"
#include "sort/gpu/gpu_session.h"
#include "sort/gpu/gpu_session_private.h"
#include "work.h"

StaticAssertDecl(LENT_CHUNKS + 1 < GPUSORT_SLOT_CHUNKS,
				 "there must always be a chunk to go on with");

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/* Returns the part whose rows come last. */
static GsNullPart
other_part(const GsGpuSession *session)
{
	return session->first_part == GS_PART_REGULAR ? GS_PART_NULL_KEYS : GS_PART_REGULAR;
}

/* Prepare to read the rows of both parts.  Returns false if there is not enough memory. */
static bool
locate_rows(GsGpuSession *session)
{
	bool		nulls_first = gpusort_key_plan_nulls_first(session->spec->key_plan);
	const GsPartResult *first;
	const GsPartResult *second;

	session->first_part = nulls_first ? GS_PART_NULL_KEYS : GS_PART_REGULAR;
	first = &gpusort_client_result(session->client)->parts[session->first_part];
	second = &gpusort_client_result(session->client)->parts[other_part(session)];
	session->first_rows = first->rows;
	session->first_chunks = first->chunks;
	session->nrows = first->rows + second->rows;
	session->nchunks = first->chunks + second->chunks;
	session->starts = gpusort_budget_alloc(session->budget,
										   (session->nchunks + 1) * sizeof(int64));
	if (session->starts == NULL)
		return false;
	session->starts[0] = 0;
	session->nstarts = 1;
	if (session->format->variable)
		session->window.offsets =
			gpusort_budget_alloc(session->budget,
								 gpusort_client_chunk_bytes() / 8);
	return !session->budget->out_of_memory;
}

bool
gpusort_gpu_session_join(GsGpuSession *session)
{
	if (!gpusort_client_is_sorted(session->client))
		return gpusort_gpu_session_fail(session);
	session->has_ties &= gpusort_client_has_ties(session->client);
	if (locate_rows(session))
		return true;
	session->failure = GS_REASON_OUT_OF_MEMORY;
	return false;
}

bool
gpusort_gpu_session_sort(GsGpuSession *session)
{
	/* It may have refused a row, but sorts those that it has. */
	session->failure = GS_REASON_NONE;
	if (!gpusort_client_sort(session->client))
		return gpusort_gpu_session_fail(session);
	return gpusort_gpu_session_join(session);
}

bool
gpusort_gpu_session_has_ties(const GsGpuSession *session)
{
	return session->has_ties;
}

int64
gpusort_gpu_session_count(const GsGpuSession *session)
{
	return session->nrows;
}

void
gpusort_gpu_session_report(const GsGpuSession *session, GsGpuReport *report)
{
	const GsSlotResult *result = gpusort_client_result(session->client);

	report->devices = (uint32) 1 << gpusort_client_device(session->client);
	report->rows_put = session->nput;
	report->device_bytes = result->device_bytes;
	report->sort_ms = result->sort_ms;
	report->fetch_ms = INSTR_TIME_GET_MILLISEC(session->fetch_time);
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

/* Returns the number of a chunk among those of both parts. */
static int64
number_of_chunk(const GsGpuSession *session, const GsPoolChunk *chunk)
{
	return chunk->number + (chunk->part == session->first_part ? 0 : session->first_chunks);
}

/* Returns the position of a chunk's first row. */
static int64
start_of_chunk(const GsGpuSession *session, const GsPoolChunk *chunk)
{
	return chunk->first_row + (chunk->part == session->first_part ? 0 : session->first_rows);
}

/* Request a chunk.  Returns as gpusort_client_ask() does. */
static GsPoolChunk *
ask(const GsGpuSession *session, int64 number, bool wait)
{
	if (number < session->first_chunks)
		return gpusort_client_ask(session->client, session->first_part, number, wait);
	return gpusort_client_ask(session->client, other_part(session),
							  number - session->first_chunks, wait);
}

/*
 * Returns the number of a chunk that is not known, with a position or not far from it.  If that
 * follows the chunks that are known, it is the right one.
 */
static int64
guess_chunk(const GsGpuSession *session, int64 position)
{
	int64		known = session->nstarts - 1;
	int64		rows = session->nrows - session->starts[known];
	int64		before = position - session->starts[known];

	return known + (int64) ((double) before / rows * (session->nchunks - known));
}

/*
 * Returns the chunk with a position, if it has been seen, or its rows follow those that have.
 * Otherwise it is a guess.
 */
static int64
chunk_of_position(const GsGpuSession *session, int64 position)
{
	int64		low = session->first_start;
	int64		high = session->nstarts;

	if (session->nstarts <= session->nchunks && position >= session->starts[high - 1])
		return guess_chunk(session, position);

	/* Find the last chunk that does not start after the position. */
	while (high - low > 1)
	{
		int64		middle = low + (high - low) / 2;

		if (session->starts[middle] <= position)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Request the sorted chunks after one, as long as pool chunks are available. */
static void
ask_ahead(GsGpuSession *session, int64 number)
{
	if (session->nahead > 0)
		number = number_of_chunk(session, session->ahead[session->nahead - 1]);
	while (session->nahead < CHUNKS_AHEAD && ++number < session->nchunks)
	{
		GsPoolChunk *chunk = ask(session, number, false);

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
get_chunk(GsGpuSession *session, int64 number)
{
	GsPoolChunk *chunk;

	while (session->nahead > 0)
	{
		chunk = take_ahead(session);
		if (!gpusort_client_await(session->client, chunk))
			return NULL;
		if (number_of_chunk(session, chunk) == number)
			return chunk;
		gpusort_chunk_free(chunk);
	}
	chunk = ask(session, number, true);
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

/* Have the window show a chunk, whose bytes are at an address. */
static void
open_window(GsGpuSession *session, const GsPoolChunk *chunk, char *address)
{
	GsWindow   *window = &session->window;

	window->first = start_of_chunk(session, chunk);
	window->rows = chunk->rows;
	window->data = address + chunk->data_offset;
	window->ties = (const uint32 *) (address + chunk->ties_offset);
	window->first_tie = chunk->first_row % 32;
	if (number_of_chunk(session, chunk) + 1 == session->nstarts)
		session->starts[session->nstarts++] = window->first + window->rows;
	window->lengths = (const uint32 *) (address + chunk->lengths_offset);
	window->has_offsets = false;
}

/* Get the chunk with a position, whose number is this one or not far from it. */
static GsPoolChunk *
find_chunk(GsGpuSession *session, int64 position, int64 number)
{
	GsPoolChunk *chunk;

	while (chunk = get_chunk(session, number), chunk != NULL)
	{
		int64		start = start_of_chunk(session, chunk);

		if (position < start)
			number--;
		else if (position >= start + chunk->rows)
			number++;
		else
			break;
		gpusort_chunk_free(chunk);
	}
	return chunk;
}

/* Open the window on a chunk, or on a copy of it. */
static void
open_chunk(GsGpuSession *session, GsPoolChunk *chunk)
{
	char	   *address = gpusort_chunk_address(chunk);

	if (session->copy != NULL)
	{
		memcpy(session->copy, address, gpusort_client_chunk_bytes());
		open_window(session, chunk, session->copy);
		gpusort_chunk_free(chunk);
		return;
	}
	ask_ahead(session, number_of_chunk(session, chunk));
	session->window.chunk = chunk;
	open_window(session, chunk, address);
}

/*
 * Move the window to the chunk with a position, whose number is this one or not far from it; or if
 * the position is -1, to the one with this number.
 */
static bool
move_window(GsGpuSession *session, int64 position, int64 number)
{
	instr_time	start;
	instr_time	end;
	GsPoolChunk *chunk;

	leave_window(session);
	INSTR_TIME_SET_CURRENT(start);
	if (session->nahead > 0)
		ask_ahead(session, number);
	chunk = position < 0 ? get_chunk(session, number) :
		find_chunk(session, position, number);
	if (chunk == NULL)
		return gpusort_gpu_session_fail(session);
	open_chunk(session, chunk);
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
	if (!move_window(session, position, chunk_of_position(session, position)))
		return false;
	*within = position - session->window.first;
	return true;
}

/* Compute where the rows of the window are, whose lengths differ. */
static pg_noinline void
compute_offsets(GsWindow *window)
{
	uint32		offset = 0;

	for (uint32 i = 0; i < window->rows; i++)
	{
		window->offsets[i] = offset;
		offset += window->lengths[i];
	}
	window->has_offsets = true;
}

/* Returns a row of the window.  Who reads all of them in sequence asks for the first one only. */
static inline char *
packed_row(GsGpuSession *session, uint64 within)
{
	GsWindow   *window = &session->window;

	if (!session->format->variable)
		return window->data + within * session->format->packed_bytes;
	if (within == 0)
		return window->data;
	if (unlikely(!window->has_offsets))
		compute_offsets(window);
	return window->data + window->offsets[within];
}

static inline void
unpack_row(GsGpuSession *session, uint64 within, Datum *values, bool *isnull)
{
	gpusort_row_format_unpack(session->format, packed_row(session, within), values, isnull);
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
	const GsWindow *window = &session->window;
	uint32		most = window->rows - within;
	uint64		bit = window->first_tie + within;
	uint32		n = 0;

	while (session->has_ties && n < most)
	{
		uint32		word = window->ties[bit / 32] >> (bit % 32);

		if (word != 0)
			return Min(n + pg_rightmost_one_pos32(word), most);
		n += 32 - bit % 32;
		bit += 32 - bit % 32;
	}
	return most;
}

bool
gpusort_gpu_session_in_place(GsGpuSession *session, int64 position, GsRowsInPlace *rows)
{
	const GsRowFormat *format = session->format;
	uint64		within;

	if (!find_in_window(session, position, &within))
		return false;
	memset(rows, 0, sizeof(*rows));
	rows->format = format;
	rows->nrows = count_untied(session, within);
	rows->first = packed_row(session, within);
	if (format->variable)
		rows->lengths = session->window.lengths + within;
	else
		rows->row_bytes = format->packed_bytes;
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

bool
gpusort_gpu_session_is_near(const GsGpuSession *session, int64 position)
{
	return (uint64) (position - session->window.first) < session->window.rows;
}

int64
gpusort_gpu_session_chunk_start(const GsGpuSession *session)
{
	return session->window.first;
}

int64
gpusort_gpu_session_chunk_end(const GsGpuSession *session)
{
	return session->window.first + session->window.rows;
}

/* ----------------------------------------------------------------
 *		several processes read the rows
 * ----------------------------------------------------------------
 */

void
gpusort_gpu_session_copy_chunks(GsGpuSession *session)
{
	session->copy = palloc_extended(gpusort_client_chunk_bytes(), MCXT_ALLOC_HUGE);
}

int64
gpusort_gpu_session_chunks(const GsGpuSession *session)
{
	return session->nchunks;
}

int64
gpusort_gpu_session_seek(GsGpuSession *session, int64 chunk)
{
	session->first_start = chunk;
	session->nstarts = chunk + 1;
	if (!move_window(session, -1, chunk))
		return -1;
	session->starts[chunk] = session->window.first;
	return gpusort_gpu_session_chunk_end(session);
}

int64
gpusort_gpu_session_enter(GsGpuSession *session, int64 position)
{
	uint64		within;

	return find_in_window(session, position, &within) ?
		gpusort_gpu_session_chunk_end(session) : -1;
}
