/*-------------------------------------------------------------------------
 *
 * gpu_session.c
 *		Opens GPU sessions, adds rows to them, and takes out those that do not fit.
 *
 * A row is encoded and packed into the chunk that is being filled.  A full chunk is put: the
 * device process copies it to the device while the next one is filled.  So host memory is
 * accessed in sequence only, and a few chunks are all that we need of it.
 *
 * Rows with NULL keys form a part of their own, with a chunk of their own, since the device
 * sorts them separately.
 *
 * The process that opens the session owns it.  Others of the same query, its parallel workers,
 * attach to it.  Each producer fills chunks of its own, and flushes them after its last row.  When
 * all are done, one process sorts the session, which is the owner unless all of them read the
 * sorted rows.  When the device is full, each producer takes a part of the refused rows out, to
 * sort them together with the rest of its input.  The one that has sorted those on the device
 * reads them, and then releases the session's memory.
 *
 * Sorts open sessions by gpu_rows.c, and array functions open sessions of their own.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "core/copy_bytes.h"
#include "core/radix_sort.h"
#include "service/service_client.h"
#include "settings.h"
#include "sort/base/budget.h"
#include "sort/base/row_format.h"
#include "sort/base/tuple_rows.h"
#include "sort/gpu/gpu_session.h"
#include "sort/gpu/gpu_session_private.h"
#include "work.h"

StaticAssertDecl(GPUSORT_DEVICE_KEY_WORDS <= GPUSORT_MAX_KEY_WORDS &&
				 GPUSORT_CPU_MAX_KEY_WORDS <= GPUSORT_DEVICE_KEY_WORDS &&
				 GPUSORT_DEVICE_KEY_LEVELS <= GPUSORT_MAX_TIE_LEVELS,
				 "every key can go to a device");

/* With fewer rows, a sort takes less time on the CPU. */
static double
min_rows(void)
{
	double		measured;

	if (gpusort_gpu_min_rows >= 0)
		return gpusort_gpu_min_rows;
	(void) gpusort_client_speed(&measured);
	return measured;
}

GsReason
gpusort_gpu_session_check(double rows, bool ties)
{
	GsReason	reason;

	if (gpusort_backend == GS_BACKEND_CPU)
		return GS_REASON_BACKEND_CPU;
	reason = gpusort_client_availability();
	if (reason != GS_REASON_NONE)
		return reason;
	if (gpusort_backend == GS_BACKEND_AUTO && rows < min_rows())
		return GS_REASON_GPU_FEW_ROWS;
	if (gpusort_backend == GS_BACKEND_AUTO && ties)
		return GS_REASON_GPU_TIES;
	return GS_REASON_NONE;
}

/* Make a session without a client, in the current memory context. */
static GsGpuSession *
make_session(const GsSortSpec *spec)
{
	GsGpuSession *session = palloc0(sizeof(GsGpuSession));
	int			first_open;

	session->budget = gpusort_budget_create(SIZE_MAX);
	session->spec = spec;
	session->format = gpusort_row_format_create(spec);
	if (gpusort_key_plan_is_exact(spec->key_plan, &first_open))
		session->words = gpusort_key_plan_words(spec->key_plan);
	else
	{
		session->device_key = gpusort_device_key_create(spec->key_plan, spec->keys.alone);
		session->words = session->device_key->words;
		session->has_ties = session->device_key->nlevels > 0;
	}
	session->all_told = session->has_ties;

	/* A row must fit into a chunk with its key, and into a sorted one. */
	session->max_row_bytes = gpusort_client_chunk_bytes() / 4 * 3;
	return session;
}

/* Attach to the session of another process. */
static GsGpuSession *
attach(const GsSortSpec *spec)
{
	GsGpuSession *session = make_session(spec);

	session->client = gpusort_client_attach(*spec->session);
	session->shared = true;
	return session;
}

/* Say on which levels the rows of a session can be ties. */
static void
set_tie_levels(const GsGpuSession *session, GsClientOptions *options)
{
	const GsDeviceKey *key = session->device_key;

	if (key == NULL)
		return;
	options->tie_levels = key->nlevels;
	for (int i = 0; i < key->nlevels; i++)
		options->tie_level[i] = (GsTieLevel)
	{
		.bits = key->levels[i].bits,.always = key->levels[i].always
	};
}

GsGpuSession *
gpusort_gpu_session_create(const GsSortSpec *spec, GsReason *reason)
{
	GsClientOptions options = {.expected_rows = spec->expected_rows};
	GsGpuSession *session;

	if (spec->session != NULL)
		return attach(spec);
	*reason = gpusort_gpu_session_check(spec->expected_rows, spec->expected_ties);
	if (*reason != GS_REASON_NONE)
		return NULL;

	session = make_session(spec);
	options.key_words = session->words;
	options.variable = session->format->variable;
	set_tie_levels(session, &options);
	options.row_width = session->format->packed_bytes;
	options.expected_row_bytes =
		options.variable ? Max(spec->expected_width, options.row_width) : options.row_width;
	if (session->format->packed_bytes > session->max_row_bytes)
	{
		*reason = GS_REASON_ROW_WIDTH;
		return NULL;
	}
	session->client = gpusort_client_open(&options, reason);
	return session->client != NULL ? session : NULL;
}

int
gpusort_gpu_session_first_open(const GsGpuSession *session)
{
	return session->device_key != NULL ? session->device_key->open : session->spec->keys.nkeys;
}

GsClientHandle
gpusort_gpu_session_handle(GsGpuSession *session)
{
	session->shared = true;
	return gpusort_client_handle(session->client);
}

GsReason
gpusort_gpu_session_failure(const GsGpuSession *session)
{
	return session->failure;
}

bool
gpusort_gpu_session_fail(GsGpuSession *session)
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
lay_out_fill(GsGpuSession *session, GsChunkFill *fill)
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

/* End the chunk, which belongs to the caller from now on, and return it. */
static GsPoolChunk *
take_fill(GsGpuSession *session, GsChunkFill *fill)
{
	GsPoolChunk *chunk = fill->chunk;

	chunk->part = fill - session->fills;
	chunk->rows = fill->rows;
	chunk->data_bytes = fill->next - fill->data;
	fill->chunk = NULL;
	fill->max_rows = 0;
	return chunk;
}

/*
 * Are our keys comparable with those of all other processes that add rows?  If not, the
 * session has failed.
 */
static bool
has_comparable_keys(GsGpuSession *session)
{
	if (!session->shared ||
		gpusort_key_plan_is_common(session->spec->key_plan))
		return true;
	session->failure = GS_REASON_ENUM_LABELS;
	return false;
}

/* Put a chunk.  Returns false on failure. */
static bool
put_chunk(GsGpuSession *session, GsPoolChunk *chunk)
{
	session->nput += chunk->rows;
	session->sum_rows += chunk->rows;
	session->sum_bytes += chunk->data_bytes;
	return gpusort_client_put(session->client, chunk) ||
		gpusort_gpu_session_fail(session);
}

/* Put the chunk of a part, if there is one.  Returns false on failure. */
static bool
flush_fill(GsGpuSession *session, GsNullPart part)
{
	GsChunkFill *fill = &session->fills[part];

	if (fill->chunk == NULL)
		return true;
	if (!has_comparable_keys(session))
		return false;
	return put_chunk(session, take_fill(session, fill));
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
make_room(GsGpuSession *session, GsNullPart part, Size row_bytes)
{
	GsChunkFill *fill = &session->fills[part];

	if (row_bytes > session->max_row_bytes)
	{
		session->failure = GS_REASON_ROW_WIDTH;
		return false;
	}
	if (!flush_fill(session, part))
		return false;
	fill->chunk = gpusort_client_new_chunk(session->client, false);
	if (fill->chunk == NULL)
	{
		if (!gpusort_gpu_session_flush(session))
			return false;
		fill->chunk = gpusort_client_new_chunk(session->client, true);
	}
	if (fill->chunk == NULL)
		return gpusort_gpu_session_fail(session);
	lay_out_fill(session, fill);
	if (fill->end - fill->next >= (ptrdiff_t) row_bytes)
		return true;

	/* The row is unusually long.  Lay the chunk out for rows of its length. */
	session->sum_rows = 1;
	session->sum_bytes = row_bytes;
	lay_out_fill(session, fill);
	return true;
}

/* Add the key and the length of a row that has been written, and go to the next row. */
static inline void
end_row(const GsGpuSession *session, GsChunkFill *fill, const uint64 *key, Size row_bytes)
{
	gpusort_work_add(GPUSORT_WORK_ROW + row_bytes);
	for (unsigned w = 0; w < session->words; w++)
		*fill->keys[w]++ = key[w];
	if (session->format->variable)
		*fill->lengths++ = row_bytes;
	fill->next += row_bytes;
	fill->rows++;
}

/*
 * Encode a row.  Returns false if its first sort key is NULL.  Notes it if words do not tell all
 * keys of a row, the first one of this process.
 */
static inline bool
encode_row(GsGpuSession *session, const Datum *values, const bool *isnull, uint64 *key)
{
	bool		told;
	bool		not_null;

	if (session->device_key == NULL)
		return gpusort_key_plan_encode(session->spec->key_plan, values, isnull, key);
	not_null = gpusort_device_key_encode(session->device_key, values, isnull, key, &told);
	if (!told && session->all_told)
	{
		session->all_told = false;
		gpusort_client_note_ties(session->client);
	}
	return not_null;
}

bool
gpusort_gpu_session_put(GsGpuSession *session, const Datum *values,
						const bool *isnull)
{
	uint64		key[GPUSORT_DEVICE_KEY_WORDS];
	const GsRowFormat *format = session->format;
	GsNullPart	part = GS_PART_REGULAR;
	Size		row_bytes = 0;
	GsChunkFill *fill;

	if (!encode_row(session, values, isnull, key))
		part = GS_PART_NULL_KEYS;
	fill = &session->fills[part];
	if (likely(fill->rows < fill->max_rows))
		row_bytes = gpusort_row_format_pack_fast(format, values, isnull,
												 fill->next,
												 Min(fill->end - fill->next,
													 session->max_row_bytes));
	if (unlikely(row_bytes == 0))
	{
		if (!make_room(session, part,
					   gpusort_row_format_packed_size(format, values, isnull)))
			return false;
		row_bytes = gpusort_row_format_pack(format, values, isnull, fill->next,
											fill->end - fill->next);
	}
	end_row(session, fill, key, row_bytes);
	return true;
}

bool
gpusort_gpu_session_put_numbers(GsGpuSession *session, const char *values, Size length,
								uint32 count)
{
	const GsRowFormat *format = session->format;
	GsChunkFill *fill = &session->fills[GS_PART_REGULAR];
	Size		bytes = count * format->packed_bytes;

	if (count > fill->max_rows - fill->rows || format->variable || format->ncolumns != 1 ||
		!gpusort_key_plan_encode_numbers(session->spec->key_plan, values, length, count,
										 fill->keys[0]))
		return false;
	gpusort_work_add(bytes);
	memset(fill->next, 0, bytes);
	gpusort_copy_values(fill->next, format->packed_bytes, values, length, length, count);
	fill->keys[0] += count;
	fill->next += bytes;
	fill->rows += count;
	return true;
}

/* ----------------------------------------------------------------
 *		rows that are refused
 *
 * When a device has no memory for a chunk that was put, it refuses this one and those that
 * follow it.  They stay in the pool.  Further rows are in the chunks that were being filled.
 * These are the rest: rows that the device does not have, and that arrived after those that
 * it has.
 * ----------------------------------------------------------------
 */

/* Has this process rows in chunks that it has not put? */
static bool
has_fills(const GsGpuSession *session)
{
	for (int p = 0; p < GS_PARTS; p++)
		if (session->fills[p].chunk != NULL)
			return true;
	return false;
}

bool
gpusort_gpu_session_has_rest(const GsGpuSession *session)
{
	return gpusort_client_first_refused(session->client) != NULL || has_fills(session);
}

/*
 * Returns the next chunk of which rows can be taken, which the caller has to free; or NULL.
 * Chunks that the device has refused come first, since their rows arrived first.
 */
static GsPoolChunk *
next_rest_chunk(GsGpuSession *session)
{
	GsPoolChunk *chunk = gpusort_client_take_refused(session->client);

	for (int p = 0; p < GS_PARTS && chunk == NULL; p++)
		if (session->fills[p].chunk != NULL)
			chunk = take_fill(session, &session->fills[p]);
	return chunk;
}

bool
gpusort_gpu_session_take_rest(GsGpuSession *session, Datum *values, bool *isnull)
{
	/* Once the session has been sorted, no chunk is on its way. */
	if (!session->settled && !gpusort_client_settle(session->client))
	{
		session->failure = GS_REASON_SERVICE_LOST;
		return false;
	}
	session->settled = true;
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

bool
gpusort_gpu_session_release(GsGpuSession *session)
{
	return gpusort_client_release(session->client) || gpusort_gpu_session_fail(session);
}
