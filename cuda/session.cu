/*
 * session.cu
 *		Sort sessions: begin, put chunks, tickets, end.
 *
 * Chunks are copied into segmented arrays on the session's upload stream.  The sort runs on the
 * device's compute stream and leaves the row numbers in sorted order; it does not move rows.
 * Delivery gathers the rows of a chunk into a staging buffer and copies that to the host.  Two
 * streams take turns, each with its own staging buffer.
 */
#include <cstring>
#include <new>

#include "session_state.h"

using namespace gpusort_session;

namespace gpusort_session
{

GsStatus reserve_ticket(GsSession *session)
{
	GsDevice *device = device_of(session);
	if (!session->pending.reserve(1) ||
		!session->idle_events.reserve(session->pending.count + 1))
		return gpusort_device_fail(device, GPUSORT_HOST_MEMORY, "out of memory");
	if (session->idle_events.count)
		return GPUSORT_OK;
	cudaEvent_t event;
	GsStatus status = gpusort_device_check(
		device, cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event");
	if (!status)
		session->idle_events.append(event);
	return status;
}

GsStatus issue_ticket(GsSession *session, cudaStream_t stream, GsTicket *ticket)
{
	cudaEvent_t event = session->idle_events.items[--session->idle_events.count];
	session->pending.append({++session->last_ticket, event});
	*ticket = session->last_ticket;
	return gpusort_device_check(device_of(session), cudaEventRecord(event, stream),
								"record an event");
}

} // namespace gpusort_session

namespace
{

/*
 * Returns the index of a pending ticket.  Returns count if the ticket is not pending any more.
 */
size_t find_pending(const GsSession *session, GsTicket ticket)
{
	size_t i = 0;
	while (i < session->pending.count && session->pending.items[i].ticket != ticket)
		i++;
	return i;
}

void retire_ticket(GsSession *session, size_t at)
{
	GsList<Pending> &pending = session->pending;
	session->idle_events.append(pending.items[at].event); /* room: see reserve_ticket() */
	memmove(&pending.items[at], &pending.items[at + 1],
			(--pending.count - at) * sizeof *pending.items);
}

/* ---- putting chunks ---- */

GsStatus check_chunk(GsSession *session, const GsChunk *chunk)
{
	GsDevice *device = device_of(session);
	const GsSessionOptions &options = session->options;
	if (session->rows + chunk->rows > MAX_ROWS)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "too many rows in a sort");
	for (uint32_t w = 0; w < options.key_words; w++)
		if (!chunk->keys[w])
			return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "a chunk has no keys");
	if (!chunk->data && chunk->data_bytes)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "a chunk has no row data");
	uint64_t bytes = (uint64_t)chunk->rows * options.row_width;
	if (is_variable(session)) {
		if (!chunk->lengths)
			return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
									   "a chunk has no row lengths");
		uint32_t longest = 0;
		bytes = 0;
		for (uint32_t i = 0; i < chunk->rows; i++) {
			bytes += chunk->lengths[i];
			longest = chunk->lengths[i] > longest ? chunk->lengths[i] : longest;
		}
		if (longest > options.chunk_bytes)
			return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
									   "a row of %u bytes does not fit in a chunk", longest);
		if (bytes > UINT32_MAX)
			return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
									   "the rows of a chunk have 4 GiB or more");
	}
	if (bytes != chunk->data_bytes)
		return gpusort_device_fail(
			device, GPUSORT_BAD_ARGUMENT, "the rows of a chunk have %llu bytes instead of %llu",
			(unsigned long long)bytes, (unsigned long long)chunk->data_bytes);
	return GPUSORT_OK;
}

/* Copies items to reserved space at the end of an array.  Does not change count. */
GsStatus append_items(GsSession *session, GsSegmentedArray *array, const void *items,
					  uint64_t count)
{
	const unsigned char *source = (const unsigned char *)items;
	uint64_t first = array->count;
	GsStatus status = GPUSORT_OK;
	while (count && !status) {
		GsPiece piece = gpusort_segments_piece(array, first, count);
		size_t bytes = piece.items * array->item_bytes;
		status = copy_async(session, piece.address, source, bytes, cudaMemcpyHostToDevice,
							session->upload);
		source += bytes;
		first += piece.items;
		count -= piece.items;
	}
	return status;
}

/*
 * For rows of variable width: computes the addresses of the chunk's rows from the lengths that
 * were just copied.
 */
GsStatus compute_row_starts(GsSession *session, const GsChunk *chunk,
							const unsigned char *bytes)
{
	uint64_t address = (uint64_t)(uintptr_t)bytes;
	uint64_t row = session->rows, left = chunk->rows;
	const uint32_t *lengths = chunk->lengths;
	while (left) {
		/*
		 * The segments of the two arrays have different sizes, so continue to the nearer end.
		 */
		GsPiece from = gpusort_segments_piece(&session->lengths, row, left);
		GsPiece to = gpusort_segments_piece(&session->starts, row, from.items);
		constexpr uint32_t MOST = GPUSORT_STARTS_TILE * GPUSORT_STARTS_TILES;
		uint32_t n = to.items < MOST ? (uint32_t)to.items : MOST;
		GsTileAddresses addresses = {};
		for (uint32_t i = 0; i < n; i++) {
			if (i % GPUSORT_STARTS_TILE == 0)
				addresses.first[i / GPUSORT_STARTS_TILE] = address;
			address += lengths[i];
		}
		GsStatus status = launch_sums(session, session->upload,
									  (n + GPUSORT_STARTS_TILE - 1) / GPUSORT_STARTS_TILE,
									  gpusort_row_starts_kernel, (uint64_t *)to.address,
									  (const uint32_t *)from.address, n, addresses);
		if (status)
			return status;
		lengths += n;
		row += n;
		left -= n;
	}
	return GPUSORT_OK;
}

/*
 * Allocates space for a chunk.  For rows of variable width, *bytes becomes the address of their
 * data.
 */
GsStatus reserve_chunk(GsSession *session, const GsChunk *chunk, unsigned char **bytes)
{
	GsOwner *owner = &session->owner;
	GsStatus status = reserve_ticket(session);
	for (uint32_t w = 0; w < session->options.key_words && !status; w++)
		status = gpusort_segments_reserve(owner, &session->keys[w], chunk->rows);
	if (!status && !is_variable(session))
		status = gpusort_segments_reserve(owner, &session->data, chunk->rows);
	if (!status && is_variable(session)) {
		status = gpusort_arena_reserve(owner, &session->bytes, chunk->data_bytes, bytes);
		if (!status)
			status = gpusort_segments_reserve(owner, &session->lengths, chunk->rows);
		if (!status)
			status = gpusort_segments_reserve(owner, &session->starts, chunk->rows);
	}
	/* Last, since unreserve_chunk() does not make it smaller. */
	if (!status)
		status = reserve_for_chunk(session, chunk);
	return status;
}

/* Returns how many bytes reserve_chunk() would allocate. */
uint64_t growth_for_chunk(const GsSession *session, const GsChunk *chunk)
{
	uint64_t bytes = sort_memory_growth(session, chunk);
	for (uint32_t w = 0; w < session->options.key_words; w++)
		bytes += gpusort_segments_growth(&session->keys[w], chunk->rows);
	if (!is_variable(session))
		bytes += gpusort_segments_growth(&session->data, chunk->rows);
	if (is_variable(session))
		bytes += gpusort_arena_growth(&session->bytes, chunk->data_bytes) +
				 gpusort_segments_growth(&session->lengths, chunk->rows) +
				 gpusort_segments_growth(&session->starts, chunk->rows);
	return bytes;
}

/* After a failure of reserve_chunk(): what it has allocated is needed for sorting the rows. */
void unreserve_chunk(GsSession *session)
{
	GsOwner *owner = &session->owner;
	for (GsSegmentedArray &keys : session->keys)
		gpusort_segments_trim(owner, &keys);
	gpusort_segments_trim(owner, &session->data);
	gpusort_arena_trim(owner, &session->bytes);
	gpusort_segments_trim(owner, &session->lengths);
	gpusort_segments_trim(owner, &session->starts);
}

GsStatus copy_chunk(GsSession *session, const GsChunk *chunk, unsigned char *bytes)
{
	GsStatus status = GPUSORT_OK;
	for (uint32_t w = 0; w < session->options.key_words && !status; w++)
		status = append_items(session, &session->keys[w], chunk->keys[w], chunk->rows);
	if (!status && !is_variable(session))
		status = append_items(session, &session->data, chunk->data, chunk->rows);
	if (!status && is_variable(session)) {
		status = copy_async(session, bytes, chunk->data, chunk->data_bytes,
							cudaMemcpyHostToDevice, session->upload);
		/* Rows are read as aligned words, so bytes after the last row are read as well. */
		if (!status)
			status =
				gpusort_device_check(device_of(session),
									 cudaMemsetAsync(bytes + chunk->data_bytes, 0,
													 -chunk->data_bytes & 15, session->upload),
									 "clear device memory");
		if (!status)
			status = append_items(session, &session->lengths, chunk->lengths, chunk->rows);
		if (!status)
			status = compute_row_starts(session, chunk, bytes);
	}
	return status;
}

void record_chunk(GsSession *session, const GsChunk *chunk)
{
	for (uint32_t w = 0; w < session->options.key_words; w++)
		session->keys[w].count += chunk->rows;
	if (!is_variable(session))
		session->data.count += chunk->rows;
	if (is_variable(session)) {
		gpusort_arena_commit(&session->bytes, chunk->data_bytes);
		session->lengths.count += chunk->rows;
		session->starts.count += chunk->rows;
	}
	session->rows += chunk->rows;
	session->data_bytes += chunk->data_bytes;
}

/* ---- begin and end ---- */

/* With many arrays, those of a session with little memory must not take it all. */
uint64_t min_segment_bytes(const GsSessionOptions &options)
{
	uint64_t part = options.device_memory_limit / MIN_SEGMENT_PART;
	if (options.device_memory_limit == 0 || part > MIN_SEGMENT_BYTES)
		return MIN_SEGMENT_BYTES;
	return part < LIMITED_MIN_SEGMENT_BYTES ? LIMITED_MIN_SEGMENT_BYTES : part;
}

GsGrowth growth_of(const GsSessionOptions &options, uint64_t row_bytes)
{
	uint64_t wanted = DEFAULT_SEGMENT_BYTES;
	uint64_t parts = options.device_memory_limit ? LIMITED_SEGMENTS : SEGMENTS;
	if (options.expected_rows && options.expected_rows < MAX_ROWS)
		wanted = options.expected_rows * row_bytes / parts;
	uint64_t least = min_segment_bytes(options);
	if (wanted < least)
		wanted = least;
	return {wanted > GPUSORT_MAX_SEGMENT_BYTES ? GPUSORT_MAX_SEGMENT_BYTES : wanted, parts};
}

GsStatus check_options(GsDevice *device, const GsSessionOptions *o)
{
	if (o->key_words < 1 || o->key_words > GPUSORT_MAX_KEY_WORDS)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "unsupported number of key words: %u", o->key_words);
	if (o->tie_levels > GPUSORT_MAX_TIE_LEVELS)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "unsupported number of tie levels: %u", o->tie_levels);
	for (uint32_t l = 0; l < o->tie_levels; l++)
		if (o->tie_level[l].bits + !o->tie_level[l].always > o->key_words * 64)
			return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
									   "tie level of %u bits in keys of %u words",
									   o->tie_level[l].bits, o->key_words);
	if ((int)o->row_layout < GPUSORT_ROWS_FIXED || o->row_layout > GPUSORT_ROWS_VARIABLE)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "unrecognized row layout: %d",
								   (int)o->row_layout);
	if (o->chunk_rows == 0)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "chunk_rows must be greater than zero");
	if (o->row_layout == GPUSORT_ROWS_FIXED &&
		(o->row_width == 0 || o->chunk_bytes < o->row_width))
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "invalid row width: %u bytes in chunks of %llu bytes",
								   o->row_width, (unsigned long long)o->chunk_bytes);
	if (o->row_layout == GPUSORT_ROWS_VARIABLE &&
		(o->chunk_bytes == 0 || o->chunk_bytes > UINT32_MAX))
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "unsupported chunk size: %llu bytes",
								   (unsigned long long)o->chunk_bytes);
	return GPUSORT_OK;
}

} // namespace

GsStatus gpusort_session_begin(GsDevice *device, const GsSessionOptions *options,
							   GsSession **result)
{
	*result = nullptr;
	GsStatus status = gpusort_device_select(device);
	if (!status)
		status = check_options(device, options);
	if (status)
		return status;
	GsSession *session = new (std::nothrow) GsSession();
	if (!session)
		return gpusort_device_fail(device, GPUSORT_HOST_MEMORY, "out of memory");
	session->owner.device = device;
	session->owner.account.limit = options->device_memory_limit;
	session->options = *options;
	for (uint32_t w = 0; w < options->key_words; w++)
		gpusort_segments_init(&session->keys[w], sizeof(uint64_t),
							  growth_of(*options, sizeof(uint64_t)));
	if (!is_variable(session))
		gpusort_segments_init(&session->data, options->row_width,
							  growth_of(*options, options->row_width));
	if (is_variable(session)) {
		session->bytes.growth = growth_of(*options, EXPECTED_ROW_BYTES);
		gpusort_segments_init(&session->lengths, sizeof(uint32_t),
							  growth_of(*options, sizeof(uint32_t)));
		gpusort_segments_init(&session->starts, sizeof(uint64_t),
							  growth_of(*options, sizeof(uint64_t)));
	}
	session->next = device->all_sessions;
	device->all_sessions = session;
	device->sessions++;

	status = gpusort_device_check(
		device, cudaStreamCreateWithFlags(&session->upload, cudaStreamNonBlocking),
		"create a stream");
	for (int i = 0; i < DELIVERIES && !status; i++)
		status = gpusort_device_check(
			device,
			cudaStreamCreateWithFlags(&session->deliveries[i].stream, cudaStreamNonBlocking),
			"create a stream");
	if (!status)
		status = reserve_expected(session);
	if (status) {
		gpusort_session_end(session);
		return status;
	}
	*result = session;
	return GPUSORT_OK;
}

GsStatus gpusort_session_put(GsSession *session, const GsChunk *chunk, GsTicket *ticket)
{
	GsStatus status = select_device(session);
	if (status)
		return status;
	if (session->state != LOADING)
		return gpusort_device_fail(device_of(session), GPUSORT_BAD_STATE,
								   "the rows have already been sorted");
	if (chunk->rows == 0) {
		*ticket = ++session->last_ticket;
		return GPUSORT_OK;
	}
	unsigned char *bytes = nullptr;
	status = check_chunk(session, chunk);
	if (!status) {
		status = reserve_chunk(session, chunk, &bytes);
		if (status)
			unreserve_chunk(session);
	}
	if (!status)
		status = copy_chunk(session, chunk, bytes);
	if (status)
		return status;
	record_chunk(session, chunk);
	return issue_ticket(session, session->upload, ticket);
}

GsStatus gpusort_session_poll(GsSession *session, GsTicket ticket)
{
	GsStatus status = select_device(session);
	if (status)
		return status;
	if (ticket == 0 || ticket > session->last_ticket)
		return gpusort_device_fail(device_of(session), GPUSORT_BAD_ARGUMENT,
								   "unrecognized ticket: %llu", (unsigned long long)ticket);
	size_t at = find_pending(session, ticket);
	if (at == session->pending.count)
		return GPUSORT_OK;
	cudaError_t error = cudaEventQuery(session->pending.items[at].event);
	if (error == cudaErrorNotReady)
		return GPUSORT_NOT_READY;
	status = gpusort_device_check(device_of(session), error, "copy rows");
	if (!status)
		retire_ticket(session, at);
	return status;
}

GsStatus gpusort_session_wait(GsSession *session, GsTicket ticket)
{
	GsStatus status = gpusort_session_poll(session, ticket);
	if (status != GPUSORT_NOT_READY)
		return status;
	size_t at = find_pending(session, ticket);
	status = gpusort_device_check(device_of(session),
								  cudaEventSynchronize(session->pending.items[at].event),
								  "copy rows");
	if (!status)
		retire_ticket(session, at);
	return status;
}

uint64_t gpusort_session_memory(const GsSession *session, const GsChunk *chunk)
{
	uint64_t bytes = session->owner.account.in_use;
	return chunk ? bytes + growth_for_chunk(session, chunk) : bytes;
}

void gpusort_session_end(GsSession *session)
{
	if (!session)
		return;
	GsDevice *device = device_of(session);
	/* If the device is broken, the next call on it reports that. */
	if (gpusort_device_select(device) == GPUSORT_OK) {
		if (session->upload)
			synchronize(session, session->upload);
		for (Delivery &delivery : session->deliveries)
			if (delivery.stream)
				synchronize(session, delivery.stream);
	}
	free_result(session);
	for (GsSegmentedArray &keys : session->keys)
		gpusort_segments_release(&session->owner, &keys);
	gpusort_segments_release(&session->owner, &session->data);
	gpusort_arena_release(&session->owner, &session->bytes);
	gpusort_segments_release(&session->owner, &session->lengths);
	gpusort_segments_release(&session->owner, &session->starts);
	release_sort_memory(session);
	if (!device->lost) {
		for (size_t i = 0; i < session->pending.count; i++)
			cudaEventDestroy(session->pending.items[i].event);
		for (size_t i = 0; i < session->idle_events.count; i++)
			cudaEventDestroy(session->idle_events.items[i]);
		if (session->upload)
			cudaStreamDestroy(session->upload);
		for (Delivery &delivery : session->deliveries)
			if (delivery.stream)
				cudaStreamDestroy(delivery.stream);
		cudaGetLastError();
	}
	session->pending.release();
	session->idle_events.release();
	for (GsSession **link = &device->all_sessions; *link; link = &(*link)->next)
		if (*link == session) {
			*link = session->next;
			break;
		}
	device->sessions--;
	delete session;
}

void gpusort_session_end_all(GsDevice *device)
{
	while (device->all_sessions)
		gpusort_session_end(device->all_sessions);
}
