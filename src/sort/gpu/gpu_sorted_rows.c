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
 * chunks of its own; they are read one after the other.
 *
 * gpu_rows.c has the session sorted.  It reads the rows, and breaks ties if there are any.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

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
		const GsPartResult *result = &gpusort_client_result(session->client)->parts[p];

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
gpusort_gpu_session_join(GsGpuSession *session)
{
	if (!gpusort_client_is_sorted(session->client))
		return gpusort_gpu_session_fail(session);
	if (locate_parts(session))
		return true;
	session->failure = GS_FALLBACK_OUT_OF_MEMORY;
	return false;
}

bool
gpusort_gpu_session_sort(GsGpuSession *session)
{
	/* It may have refused a row, but sorts those that it has. */
	session->failure = GS_FALLBACK_NONE;
	if (!gpusort_client_sort(session->client))
		return gpusort_gpu_session_fail(session);
	return gpusort_gpu_session_join(session);
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

	report->device_bytes = result->device_bytes;
	report->sort_ms = result->sort_ms;
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

/*
 * Returns the number of a chunk that is not known, with a position or not far from it.  If that
 * follows the chunks that are known, it is the right one.
 */
static uint64
guess_chunk(const GsSortedPart *part, int64 position)
{
	uint64		known = part->nstarts - 1;
	int64		rows = part->rows - part->starts[known];
	int64		before = position - part->first - part->starts[known];

	return known + (uint64) ((double) before / rows * (part->chunks - known));
}

/*
 * Returns the chunk with a position, if it has been seen, or its rows follow those that have.
 * Otherwise it is a guess.
 */
static uint64
chunk_of_position(const GsSortedPart *part, int64 position)
{
	uint64		low = part->first_start;
	uint64		high = part->nstarts;

	if (part->nstarts <= part->chunks && position - part->first >= part->starts[high - 1])
		return guess_chunk(part, position);

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

/* Have the window show a chunk, whose bytes are at an address. */
static void
open_window(GsGpuSession *session, const GsPoolChunk *chunk, char *address)
{
	GsWindow   *window = &session->window;
	GsSortedPart *part = &session->parts[chunk->part];

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

/*
 * Get the chunk with a position of a part, whose number is *number or not far from it.  Sets
 * *number to it.
 */
static GsPoolChunk *
find_chunk(GsGpuSession *session, GsPart part, int64 position, uint64 *number)
{
	int64		row = position - session->parts[part].first;
	GsPoolChunk *chunk;

	while (chunk = get_chunk(session, part, *number), chunk != NULL)
	{
		if (row < chunk->first_row)
			--* number;
		else if (row >= chunk->first_row + chunk->rows)
			++* number;
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
	ask_ahead(session, chunk->part, chunk->number);
	session->window.chunk = chunk;
	open_window(session, chunk, address);
}

/*
 * Move the window to the chunk with a position of a part, or if that is -1, to the one with this
 * number.
 */
static bool
move_to_chunk(GsGpuSession *session, GsPart part, int64 position, uint64 number)
{
	instr_time	start;
	instr_time	end;
	GsPoolChunk *chunk;

	leave_window(session);
	INSTR_TIME_SET_CURRENT(start);
	if (session->nahead > 0)
		ask_ahead(session, part, number);
	chunk = position < 0 ? get_chunk(session, part, number) :
		find_chunk(session, part, position, &number);
	if (chunk == NULL)
		return gpusort_gpu_session_fail(session);
	open_chunk(session, chunk);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(session->fetch_time, end, start);
	return true;
}

/* Move the window to the chunk with a position. */
static bool
move_window(GsGpuSession *session, int64 position)
{
	GsPart		part = part_of_position(session, position);

	return move_to_chunk(session, part, position,
						 chunk_of_position(&session->parts[part], position));
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

bool
gpusort_gpu_session_is_near(const GsGpuSession *session, int64 position)
{
	return (uint64) (position - session->window.first) < session->window.rows;
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
	return session->parts[GS_PART_REGULAR].chunks + session->parts[GS_PART_NULL_KEYS].chunks;
}

int64
gpusort_gpu_session_seek(GsGpuSession *session, int64 chunk)
{
	GsPart		part = part_of_position(session, 0);
	GsSortedPart *sorted = &session->parts[part];

	if ((uint64) chunk >= sorted->chunks)
	{
		chunk -= sorted->chunks;
		part = part == GS_PART_REGULAR ? GS_PART_NULL_KEYS : GS_PART_REGULAR;
		sorted = &session->parts[part];
	}
	sorted->first_start = chunk;
	sorted->nstarts = chunk + 1;
	if (!move_to_chunk(session, part, -1, chunk))
		return -1;
	sorted->starts[chunk] = session->window.first - sorted->first;
	return gpusort_gpu_session_chunk_end(session);
}

int64
gpusort_gpu_session_enter(GsGpuSession *session, int64 position)
{
	uint64		within;

	return find_in_window(session, position, &within) ?
		gpusort_gpu_session_chunk_end(session) : -1;
}
