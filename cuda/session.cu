/*
 * session.cu
 *		Sort sessions: chunks in, one sort, sorted chunks out.
 *
 * Chunks are copied into segmented arrays on the session's upload stream.  The sort runs on the
 * device's compute stream and leaves the rows' numbers in sorted order; rows stay where they
 *are. Delivery gathers the rows of a chunk into a staging buffer and copies that to the host,
 *on one of two streams in turn, each with a staging buffer of its own.
 *
 * A session of a device that was recovered (GsDevice.epoch) is dead: its device memory, streams
 *and events are gone, and only session_end() is left to do.
 */
#include "session.h"

#include <cstring>
#include <new>

#include "gather.cuh"

namespace
{

constexpr uint64_t MAX_ROWS = UINT32_MAX;
constexpr uint64_t SEGMENT_BYTES = 16 << 20; /* without a hint */
constexpr uint64_t SEGMENT_BYTES_LEAST = 256 << 10;
constexpr uint64_t SEGMENT_BYTES_MOST = 256 << 20;
constexpr int LANES = 2; /* deliveries at a time */

enum State { LOADING, SORTED };

struct Arrival {
	uint64_t order;
	uint64_t first; /* number of the chunk's first row */
	uint64_t rows;
};

struct Pending {
	GsTicket ticket;
	cudaEvent_t event;
};

/* What a delivery is gathered into. */
struct Lane {
	cudaStream_t stream;
	unsigned char *staging;
};

} // namespace

struct GsSession {
	GsOwner owner;
	GsSessionOptions options;
	uint32_t epoch;
	State state;
	GsSession *next; /* of all sessions, for device_close() */
	cudaStream_t upload;
	Lane lanes[LANES];
	uint32_t next_lane;

	/* Input, by row number. */
	uint64_t rows;
	GsList<Arrival> arrivals;
	bool in_order; /* arrivals are by ascending order */
	GsSegmentedArray keys[GPUSORT_MAX_KEY_WORDS];
	GsSegmentedArray data;	  /* fixed width */
	GsArena bytes;			  /* variable width */
	GsSegmentedArray lengths; /* variable width */
	GsSegmentedArray starts;  /* variable width: address of each row */

	/* Result. */
	uint32_t *sorted; /* row numbers */
	uint64_t chunks;
	uint64_t rows_per_chunk;
	uint64_t *offsets;	 /* variable width: of each sorted row, on the device */
	uint64_t *cuts;		 /* variable width: first row of each chunk, on the host */
	uint64_t *cut_bytes; /* its offset */
	GsSessionResult result;

	GsTicket last_ticket;
	GsList<Pending> pending;
	GsList<cudaEvent_t> idle_events;
};

namespace
{

GsSession *all_sessions; /* used by the thread that owns the devices; see gpusort_device.h */

GsDevice *device_of(const GsSession *session)
{
	return session->owner.device;
}

bool is_gone(const GsSession *session)
{
	return session->epoch != device_of(session)->epoch;
}

GsStatus enter(GsSession *session)
{
	if (is_gone(session))
		return GPUSORT_DEVICE_LOST;
	return gpusort_device_enter(device_of(session));
}

bool is_variable(const GsSession *session)
{
	return session->options.row_layout == GPUSORT_ROWS_VARIABLE;
}

bool is_fixed(const GsSession *session)
{
	return session->options.row_layout == GPUSORT_ROWS_FIXED;
}

GsStatus allocate(GsSession *session, size_t size, void **pointer)
{
	return gpusort_device_alloc(device_of(session), &session->owner.account, size, pointer);
}

void release(GsSession *session, void *pointer)
{
	gpusort_device_free(device_of(session), &session->owner.account, pointer);
}

template <class... Parameters, class... Arguments>
GsStatus launch_rows(GsSession *session, cudaStream_t stream, uint64_t threads,
					 void (*kernel)(Parameters...), Arguments... arguments)
{
	uint64_t blocks = (threads + GPUSORT_GATHER_THREADS - 1) / GPUSORT_GATHER_THREADS;
	uint64_t most = (uint64_t)device_of(session)->sorter.multiprocessors * 16;
	GsLaunch launch = {(unsigned)(blocks == 0	  ? 1
								  : blocks < most ? blocks
												  : most),
					   GPUSORT_GATHER_THREADS, 0, false, stream};
	return gpusort_device_check(
		device_of(session), gpusort_launch(launch, kernel, arguments...), "launch a kernel");
}

template <class... Parameters, class... Arguments>
GsStatus launch_sums(GsSession *session, cudaStream_t stream, uint64_t blocks,
					 void (*kernel)(Parameters...), Arguments... arguments)
{
	GsLaunch launch = {(unsigned)blocks, GPUSORT_RADIX, sizeof(GsSumShared), false, stream};
	return gpusort_device_check(
		device_of(session), gpusort_launch(launch, kernel, arguments...), "launch a kernel");
}

template <class... Parameters, class... Arguments>
GsStatus launch_warp(GsSession *session, cudaStream_t stream, void (*kernel)(Parameters...),
					 Arguments... arguments)
{
	GsLaunch launch = {1, 32, 0, false, stream};
	return gpusort_device_check(
		device_of(session), gpusort_launch(launch, kernel, arguments...), "launch a kernel");
}

GsStatus copy_async(GsSession *session, void *target, const void *source, size_t size,
					cudaMemcpyKind kind, cudaStream_t stream)
{
	if (size == 0)
		return GPUSORT_OK;
	return gpusort_device_check(
		device_of(session), cudaMemcpyAsync(target, source, size, kind, stream), "copy rows");
}

GsStatus synchronize(GsSession *session, cudaStream_t stream)
{
	return gpusort_device_check(device_of(session), cudaStreamSynchronize(stream),
								"wait for the device");
}

/* ---- tickets ---- */

/* Makes sure that give_ticket() has an event and room, before work is queued. */
GsStatus prepare_ticket(GsSession *session)
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

GsStatus give_ticket(GsSession *session, cudaStream_t stream, GsTicket *ticket)
{
	cudaEvent_t event = session->idle_events.items[--session->idle_events.count];
	session->pending.append({++session->last_ticket, event});
	*ticket = session->last_ticket;
	return gpusort_device_check(device_of(session), cudaEventRecord(event, stream),
								"record an event");
}

/* The place of a ticket that is not known to be done, or count. */
size_t find_pending(const GsSession *session, GsTicket ticket)
{
	size_t i = 0;
	while (i < session->pending.count && session->pending.items[i].ticket != ticket)
		i++;
	return i;
}

void retire(GsSession *session, size_t at)
{
	GsList<Pending> &pending = session->pending;
	session->idle_events.append(pending.items[at].event); /* room: see prepare_ticket() */
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
			return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "a chunk without keys");
	if (options.row_layout == GPUSORT_ROWS_NONE)
		return GPUSORT_OK;
	if (!chunk->data && chunk->data_bytes)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "a chunk without rows");
	uint64_t bytes = (uint64_t)chunk->rows * options.row_width;
	if (is_variable(session)) {
		if (!chunk->lengths)
			return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "a chunk without lengths");
		uint32_t longest = 0;
		bytes = 0;
		for (uint32_t i = 0; i < chunk->rows; i++) {
			bytes += chunk->lengths[i];
			longest = chunk->lengths[i] > longest ? chunk->lengths[i] : longest;
		}
		if (longest > options.chunk_bytes)
			return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
									   "a row of %u bytes is longer than a chunk", longest);
		if (bytes > UINT32_MAX)
			return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "a chunk of 4 GiB");
	}
	if (bytes != chunk->data_bytes)
		return gpusort_device_fail(
			device, GPUSORT_BAD_ARGUMENT, "rows of a chunk have %llu bytes, not %llu",
			(unsigned long long)bytes, (unsigned long long)chunk->data_bytes);
	return GPUSORT_OK;
}

/* Copies items behind the end of array, where room was reserved; does not count them. */
GsStatus append(GsSession *session, GsSegmentedArray *array, const void *items, uint64_t count)
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

/* Rows of variable width: the addresses of the chunk's rows, from the lengths just copied. */
GsStatus find_starts(GsSession *session, const GsChunk *chunk, const unsigned char *bytes)
{
	uint64_t address = (uint64_t)(uintptr_t)bytes;
	uint64_t row = session->rows, left = chunk->rows;
	const uint32_t *lengths = chunk->lengths;
	while (left) {
		/* Both arrays are cut differently: go on to the nearer end. */
		GsPiece from = gpusort_segments_piece(&session->lengths, row, left);
		GsPiece to = gpusort_segments_piece(&session->starts, row, from.items);
		GsStatus status = launch_sums(session, session->upload, 1, gpusort_row_starts_kernel,
									  (uint64_t *)to.address, (const uint32_t *)from.address,
									  (uint32_t)to.items, address);
		if (status)
			return status;
		for (uint64_t i = 0; i < to.items; i++)
			address += lengths[i];
		lengths += to.items;
		row += to.items;
		left -= to.items;
	}
	return GPUSORT_OK;
}

/* Makes room for a chunk; *bytes is where the bytes of rows of variable width go. */
GsStatus reserve_chunk(GsSession *session, const GsChunk *chunk, unsigned char **bytes)
{
	GsOwner *owner = &session->owner;
	GsStatus status = prepare_ticket(session);
	if (!status && !session->arrivals.reserve(1))
		status = gpusort_device_fail(owner->device, GPUSORT_HOST_MEMORY, "out of memory");
	for (uint32_t w = 0; w < session->options.key_words && !status; w++)
		status = gpusort_segments_reserve(owner, &session->keys[w], chunk->rows);
	if (!status && is_fixed(session))
		status = gpusort_segments_reserve(owner, &session->data, chunk->rows);
	if (!status && is_variable(session)) {
		status = gpusort_arena_reserve(owner, &session->bytes, chunk->data_bytes, bytes);
		if (!status)
			status = gpusort_segments_reserve(owner, &session->lengths, chunk->rows);
		if (!status)
			status = gpusort_segments_reserve(owner, &session->starts, chunk->rows);
	}
	return status;
}

GsStatus copy_chunk(GsSession *session, const GsChunk *chunk, unsigned char *bytes)
{
	GsStatus status = GPUSORT_OK;
	for (uint32_t w = 0; w < session->options.key_words && !status; w++)
		status = append(session, &session->keys[w], chunk->keys[w], chunk->rows);
	if (!status && is_fixed(session))
		status = append(session, &session->data, chunk->data, chunk->rows);
	if (!status && is_variable(session)) {
		status = copy_async(session, bytes, chunk->data, chunk->data_bytes,
							cudaMemcpyHostToDevice, session->upload);
		/* Rows are read by aligned words, so the bytes behind the last one are read as well. */
		if (!status)
			status =
				gpusort_device_check(device_of(session),
									 cudaMemsetAsync(bytes + chunk->data_bytes, 0,
													 -chunk->data_bytes & 15, session->upload),
									 "clear device memory");
		if (!status)
			status = append(session, &session->lengths, chunk->lengths, chunk->rows);
		if (!status)
			status = find_starts(session, chunk, bytes);
	}
	return status;
}

void count_chunk(GsSession *session, const GsChunk *chunk)
{
	const GsList<Arrival> &arrivals = session->arrivals;
	if (arrivals.count && arrivals.items[arrivals.count - 1].order > chunk->order)
		session->in_order = false;
	session->arrivals.append({chunk->order, session->rows, chunk->rows});
	for (uint32_t w = 0; w < session->options.key_words; w++)
		session->keys[w].count += chunk->rows;
	if (is_fixed(session))
		session->data.count += chunk->rows;
	if (is_variable(session)) {
		gpusort_arena_take(&session->bytes, chunk->data_bytes);
		session->lengths.count += chunk->rows;
		session->starts.count += chunk->rows;
	}
	session->rows += chunk->rows;
}

/* ---- sorting ---- */

/* Device arrays of the sort; what is not the result is freed after it. */
struct SortSpace {
	uint64_t *keys[2];
	uint32_t *values[2];
	void *workspace;
};

int compare_arrivals(const void *a, const void *b)
{
	const Arrival *x = (const Arrival *)a, *y = (const Arrival *)b;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Brings a word of the keys together in target, chunks by order. */
GsStatus collect_keys(GsSession *session, const GsSegmentedArray *keys, uint64_t *target,
					  cudaStream_t stream)
{
	GsStatus status = GPUSORT_OK;
	Arrival all = {0, 0, session->rows};
	const Arrival *arrivals = session->in_order ? &all : session->arrivals.items;
	size_t count = session->in_order ? 1 : session->arrivals.count;
	for (size_t c = 0; c < count; c++) {
		uint64_t first = arrivals[c].first, left = arrivals[c].rows;
		while (left && !status) {
			GsPiece piece = gpusort_segments_piece(keys, first, left);
			status = copy_async(session, target, piece.address, piece.items * sizeof *target,
								cudaMemcpyDeviceToDevice, stream);
			target += piece.items;
			first += piece.items;
			left -= piece.items;
		}
	}
	return status;
}

/* The row numbers in the order of arrival, where that is not the sequence of the calls. */
GsStatus number_rows(GsSession *session, uint32_t *target, cudaStream_t stream)
{
	GsStatus status = GPUSORT_OK;
	for (size_t c = 0; c < session->arrivals.count && !status; c++) {
		const Arrival &arrival = session->arrivals.items[c];
		status = launch_rows(session, stream, arrival.rows, gpusort_number_kernel, target,
							 (uint32_t)arrival.first, arrival.rows);
		target += arrival.rows;
	}
	return status;
}

GsSortJob sort_job(const GsSession *session, const SortSpace &space, int from, bool generate)
{
	GsSortJob job = {};
	job.key_width = sizeof(uint64_t);
	job.value_width = sizeof(uint32_t);
	job.end_bit = 64;
	job.clobber = true;
	job.n = session->rows;
	job.keys_in = space.keys[0];
	job.keys_out = space.keys[1];
	job.values_in = generate ? nullptr : space.values[from];
	job.values_in_space = space.values[from];
	job.values_out = space.values[1 - from];
	return job;
}

/*
 * Sorts by one word; the values to start from are in values[*from], or are generated.  Leaves
 * the sorted row numbers in values[*from].  Waits.
 */
GsStatus sort_word(GsSession *session, const SortSpace &space, int *from, bool generate)
{
	GsDevice *device = device_of(session);
	GsSortJob job = sort_job(session, space, *from, generate);
	GsSortReport report = {};
	GsStatus status = gpusort_device_run(device, &job, space.workspace);
	if (!status)
		status = copy_async(session, &report, gpusort_sorter_report_source(space.workspace),
							sizeof report, cudaMemcpyDeviceToHost, device->compute);
	if (!status)
		status = synchronize(session, device->compute);
	if (status)
		return status;
	session->result.digit_passes += report.passes;
	if (!gpusort_sorter_result_in_input(&report))
		*from = 1 - *from;
	return GPUSORT_OK;
}

GsStatus sort_words(GsSession *session, SortSpace &space, int *from)
{
	GsDevice *device = device_of(session);
	uint32_t words = session->options.key_words;
	GsStatus status =
		collect_keys(session, &session->keys[words - 1], space.keys[0], device->compute);
	if (!status && !session->in_order)
		status = number_rows(session, space.values[*from], device->compute);
	if (!status)
		status = sort_word(session, space, from, session->in_order);
	/* Least significant word first: the words before are brought into the order so far. */
	for (uint32_t w = words - 1; w-- > 0 && !status;) {
		status = launch_rows(session, device->compute, session->rows,
							 gpusort_gather_items_kernel<uint64_t>, space.keys[0],
							 gpusort_segments_view(&session->keys[w]),
							 (const uint32_t *)space.values[*from], session->rows);
		if (!status)
			status = sort_word(session, space, from, false);
	}
	return status;
}

GsStatus allocate_space(GsSession *session, SortSpace *space)
{
	uint64_t n = session->rows;
	GsStatus status = GPUSORT_OK;
	for (int i = 0; i < 2 && !status; i++) {
		status = allocate(session, n * sizeof(uint64_t), (void **)&space->keys[i]);
		if (!status)
			status = allocate(session, n * sizeof(uint32_t), (void **)&space->values[i]);
	}
	if (!status) {
		GsSortJob job = sort_job(session, *space, 0, true);
		size_t size = gpusort_sorter_workspace(&device_of(session)->sorter, &job);
		status = allocate(session, size, &space->workspace);
	}
	return status;
}

/* Publishes the tables that the kernels of sort and delivery need. */
GsStatus publish_tables(GsSession *session)
{
	GsOwner *owner = &session->owner;
	cudaStream_t stream = device_of(session)->compute;
	GsStatus status = GPUSORT_OK;
	for (uint32_t w = 0; w < session->options.key_words && !status; w++)
		status = gpusort_segments_publish(owner, &session->keys[w], stream);
	if (!status && is_fixed(session))
		status = gpusort_segments_publish(owner, &session->data, stream);
	if (!status && is_variable(session)) {
		status = gpusort_segments_publish(owner, &session->lengths, stream);
		if (!status)
			status = gpusort_segments_publish(owner, &session->starts, stream);
	}
	return status;
}

/* Rows of variable width: offsets of the sorted rows, and the cuts into chunks. */
GsStatus cut_chunks(GsSession *session)
{
	GsDevice *device = device_of(session);
	cudaStream_t stream = device->compute;
	const GsSessionOptions &options = session->options;
	uint64_t n = session->rows;
	uint64_t blocks = n / GPUSORT_SCAN_TILE + 1; /* the last one also writes offsets[n] */
	GsSegments lengths = gpusort_segments_view(&session->lengths);
	uint64_t *sums = nullptr, *cuts = nullptr;
	uint64_t total = 0, most = 0, count = 0;

	GsStatus status = allocate(session, (n + 1) * sizeof(uint64_t), (void **)&session->offsets);
	if (!status)
		status = allocate(session, (blocks + 1) * sizeof(uint64_t), (void **)&sums);
	if (!status)
		status = launch_sums(session, stream, blocks, gpusort_length_sums_kernel, sums, lengths,
							 (const uint32_t *)session->sorted, n);
	if (!status)
		status = launch_warp(session, stream, gpusort_sum_sums_kernel, sums, (uint32_t)blocks);
	if (!status)
		status =
			launch_sums(session, stream, blocks, gpusort_offsets_kernel, session->offsets,
						(const uint64_t *)sums, lengths, (const uint32_t *)session->sorted, n);
	if (!status)
		status = copy_async(session, &total, sums + blocks, sizeof total,
							cudaMemcpyDeviceToHost, stream);
	if (!status)
		status = synchronize(session, stream);
	if (!status) {
		/* Two neighbours together are more than a chunk may be, so chunks are half full or
		 * more. */
		most = 2 * (total / options.chunk_bytes + 1) + n / options.chunk_rows + 1;
		if (most > n)
			most = n;
		status = allocate(session, (2 * (most + 1) + 1) * sizeof(uint64_t), (void **)&cuts);
	}
	if (!status) {
		session->cuts = (uint64_t *)malloc(2 * (most + 1) * sizeof(uint64_t));
		if (session->cuts)
			session->cut_bytes = session->cuts + most + 1;
		else
			status = gpusort_device_fail(device, GPUSORT_HOST_MEMORY, "out of memory");
	}
	if (!status)
		status = launch_warp(session, stream, gpusort_cut_kernel, cuts, cuts + most + 1,
							 cuts + 2 * (most + 1), most, (const uint64_t *)session->offsets, n,
							 (uint64_t)options.chunk_rows, options.chunk_bytes);
	if (!status)
		status = copy_async(session, &count, cuts + 2 * (most + 1), sizeof count,
							cudaMemcpyDeviceToHost, stream);
	if (!status)
		status = synchronize(session, stream);
	if (!status && count > most)
		status = gpusort_device_fail(device, GPUSORT_DEVICE_ERROR, "too many chunks were cut");
	for (int half = 0; half < 2 && !status; half++)
		status =
			copy_async(session, session->cuts + half * (most + 1), cuts + half * (most + 1),
					   (count + 1) * sizeof(uint64_t), cudaMemcpyDeviceToHost, stream);
	if (!status)
		status = synchronize(session, stream);
	release(session, sums);
	release(session, cuts);
	session->chunks = count;
	return status;
}

/* ---- delivering ---- */

struct StagingLayout {
	size_t keys[GPUSORT_MAX_KEY_WORDS];
	size_t numbers;
	size_t lengths;
	size_t data;
	size_t total;
};

StagingLayout staging_layout(const GsSession *session)
{
	StagingLayout layout = {};
	const GsSessionOptions &options = session->options;
	size_t rows = session->rows_per_chunk, at = 0;
	auto take = [&](size_t bytes) {
		size_t place = at;
		at = (at + bytes + 255) / 256 * 256;
		return place;
	};
	for (uint32_t w = 0; w < options.key_words; w++)
		layout.keys[w] = take(options.return_keys ? rows * sizeof(uint64_t) : 0);
	layout.numbers = take(rows * sizeof(uint64_t));
	if (is_variable(session))
		layout.lengths = take(rows * sizeof(uint32_t));
	if (is_fixed(session))
		layout.data = take(rows * options.row_width);
	if (is_variable(session))
		layout.data = take(options.chunk_bytes);
	layout.total = at;
	return layout;
}

template <class Word>
GsStatus gather_fixed(GsSession *session, void *target, const uint32_t *rows, uint64_t n,
					  cudaStream_t stream)
{
	uint32_t words = session->options.row_width / (uint32_t)sizeof(Word);
	return launch_rows(session, stream, n * words, gpusort_gather_fixed_kernel<Word>,
					   (Word *)target, gpusort_segments_view(&session->data), words, rows, n);
}

/* By the widest words that rows are made of. */
GsStatus gather_fixed_rows(GsSession *session, void *target, const uint32_t *rows, uint64_t n,
						   cudaStream_t stream)
{
	uint32_t width = session->options.row_width;
	if (width % 16 == 0)
		return gather_fixed<uint4>(session, target, rows, n, stream);
	if (width % 8 == 0)
		return gather_fixed<uint64_t>(session, target, rows, n, stream);
	if (width % 4 == 0)
		return gather_fixed<uint32_t>(session, target, rows, n, stream);
	return gather_fixed<unsigned char>(session, target, rows, n, stream);
}

/* Gathers the rows first .. first + n - 1 and queues their way to the host. */
GsStatus deliver(GsSession *session, const Lane &lane, uint64_t first, uint64_t n,
				 const GsSortedChunk *target)
{
	StagingLayout layout = staging_layout(session);
	const uint32_t *rows = session->sorted + first;
	GsStatus status = GPUSORT_OK;
	auto fetch = [&](void *to, size_t from, size_t bytes) {
		return copy_async(session, to, lane.staging + from, bytes, cudaMemcpyDeviceToHost,
						  lane.stream);
	};
	for (uint32_t w = 0; w < session->options.key_words && !status; w++) {
		if (!session->options.return_keys || !target->keys[w])
			continue;
		status = launch_rows(session, lane.stream, n, gpusort_gather_items_kernel<uint64_t>,
							 (uint64_t *)(lane.staging + layout.keys[w]),
							 gpusort_segments_view(&session->keys[w]), rows, n);
		if (!status)
			status = fetch(target->keys[w], layout.keys[w], n * sizeof(uint64_t));
	}
	if (!status && target->row_numbers) {
		status = launch_rows(session, lane.stream, n, gpusort_widen_kernel,
							 (uint64_t *)(lane.staging + layout.numbers), rows, n);
		if (!status)
			status = fetch(target->row_numbers, layout.numbers, n * sizeof(uint64_t));
	}
	if (!status && is_fixed(session) && target->data) {
		status = gather_fixed_rows(session, lane.staging + layout.data, rows, n, lane.stream);
		if (!status)
			status = fetch(target->data, layout.data, target->data_bytes);
	}
	if (!status && is_variable(session) && target->data) {
		status = launch_rows(
			session, lane.stream, n * 32, gpusort_gather_variable_kernel,
			lane.staging + layout.data, (uint32_t *)(lane.staging + layout.lengths),
			gpusort_segments_view(&session->starts), gpusort_segments_view(&session->lengths),
			(const uint64_t *)session->offsets + first, rows, n);
		if (!status)
			status = fetch(target->data, layout.data, target->data_bytes);
		if (!status && target->lengths)
			status = fetch(target->lengths, layout.lengths, n * sizeof(uint32_t));
	}
	return status;
}

void free_result(GsSession *session)
{
	release(session, session->sorted);
	release(session, session->offsets);
	for (Lane &lane : session->lanes) {
		release(session, lane.staging);
		lane.staging = nullptr;
	}
	free(session->cuts);
	session->sorted = nullptr;
	session->offsets = session->cuts = session->cut_bytes = nullptr;
	session->chunks = 0;
}

/* What delivery needs; on failure the caller frees it. */
GsStatus prepare_result(GsSession *session)
{
	const GsSessionOptions &options = session->options;
	session->rows_per_chunk = options.chunk_rows;
	if (is_fixed(session) && options.chunk_bytes / options.row_width < session->rows_per_chunk)
		session->rows_per_chunk = options.chunk_bytes / options.row_width;
	session->chunks = (session->rows + session->rows_per_chunk - 1) / session->rows_per_chunk;
	GsStatus status = GPUSORT_OK;
	if (is_variable(session))
		status = cut_chunks(session);
	size_t staging = staging_layout(session).total;
	for (int i = 0; i < LANES && !status; i++)
		status = allocate(session, staging, (void **)&session->lanes[i].staging);
	return status;
}

GsStatus sort_rows(GsSession *session, float *milliseconds)
{
	GsDevice *device = device_of(session);
	SortSpace space = {};
	cudaEvent_t start = nullptr, end = nullptr;
	int from = 0;
	GsStatus status = synchronize(session, session->upload);
	if (!status)
		status = gpusort_device_check(
			device, cudaEventCreateWithFlags(&start, cudaEventDefault), "create an event");
	if (!status)
		status = gpusort_device_check(device, cudaEventCreateWithFlags(&end, cudaEventDefault),
									  "create an event");
	if (!status)
		status = publish_tables(session);
	if (!status)
		status = allocate_space(session, &space);
	if (!status)
		status = gpusort_device_check(device, cudaEventRecord(start, device->compute),
									  "record an event");
	if (!status)
		status = sort_words(session, space, &from);
	if (!status)
		status = gpusort_device_check(device, cudaEventRecord(end, device->compute),
									  "record an event");
	if (!device->lost)
		cudaStreamSynchronize(device->compute); /* errors come back from the next call */
	if (!status)
		status = gpusort_device_check(device, cudaEventElapsedTime(milliseconds, start, end),
									  "read the time");
	for (int i = 0; i < 2; i++) {
		release(session, space.keys[i]);
		if (status || i != from)
			release(session, space.values[i]);
	}
	release(session, space.workspace);
	if (start)
		cudaEventDestroy(start);
	if (end)
		cudaEventDestroy(end);
	if (!status)
		session->sorted = space.values[from];
	return status;
}

/* ---- begin and end ---- */

uint64_t segment_bytes(const GsSessionOptions &options, uint64_t row_bytes)
{
	uint64_t wanted = SEGMENT_BYTES;
	if (options.expected_rows && options.expected_rows < MAX_ROWS)
		wanted = options.expected_rows * row_bytes / 8;
	return wanted < SEGMENT_BYTES_LEAST	 ? SEGMENT_BYTES_LEAST
		   : wanted > SEGMENT_BYTES_MOST ? SEGMENT_BYTES_MOST
										 : wanted;
}

GsStatus check_options(GsDevice *device, const GsSessionOptions *o)
{
	if (o->key_words < 1 || o->key_words > GPUSORT_MAX_KEY_WORDS)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "keys of %u words",
								   o->key_words);
	if ((int)o->row_layout < GPUSORT_ROWS_NONE || o->row_layout > GPUSORT_ROWS_VARIABLE)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "unknown layout of rows");
	if (o->chunk_rows == 0)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "chunks of no rows");
	if (o->row_layout == GPUSORT_ROWS_FIXED &&
		(o->row_width == 0 || o->chunk_bytes < o->row_width))
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "rows of %u bytes in chunks of %llu", o->row_width,
								   (unsigned long long)o->chunk_bytes);
	if (o->row_layout == GPUSORT_ROWS_VARIABLE &&
		(o->chunk_bytes == 0 || o->chunk_bytes > UINT32_MAX))
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "chunks of %llu bytes",
								   (unsigned long long)o->chunk_bytes);
	return GPUSORT_OK;
}

} // namespace

GsStatus gpusort_session_begin(GsDevice *device, const GsSessionOptions *options,
							   GsSession **result)
{
	GsStatus status = check_options(device, options);
	if (status)
		return status;
	GsSession *session = new (std::nothrow) GsSession();
	if (!session)
		return gpusort_device_fail(device, GPUSORT_HOST_MEMORY, "out of memory");
	session->owner.device = device;
	session->owner.account.limit = options->device_memory_limit;
	session->options = *options;
	session->epoch = device->epoch;
	session->in_order = true;
	for (uint32_t w = 0; w < options->key_words; w++)
		gpusort_segments_init(&session->keys[w], sizeof(uint64_t),
							  segment_bytes(*options, sizeof(uint64_t)));
	if (is_fixed(session))
		gpusort_segments_init(&session->data, options->row_width,
							  segment_bytes(*options, options->row_width));
	if (is_variable(session)) {
		session->bytes.block_bytes = (segment_bytes(*options, 64) + 15) / 16 * 16;
		gpusort_segments_init(&session->lengths, sizeof(uint32_t),
							  segment_bytes(*options, sizeof(uint32_t)));
		gpusort_segments_init(&session->starts, sizeof(uint64_t),
							  segment_bytes(*options, sizeof(uint64_t)));
	}
	session->next = all_sessions;
	all_sessions = session;
	device->sessions++;

	status = gpusort_device_check(
		device, cudaStreamCreateWithFlags(&session->upload, cudaStreamNonBlocking),
		"create a stream");
	for (int i = 0; i < LANES && !status; i++)
		status = gpusort_device_check(
			device, cudaStreamCreateWithFlags(&session->lanes[i].stream, cudaStreamNonBlocking),
			"create a stream");
	if (status) {
		gpusort_session_end(session);
		return status;
	}
	*result = session;
	return GPUSORT_OK;
}

GsStatus gpusort_session_put(GsSession *session, const GsChunk *chunk, GsTicket *ticket)
{
	GsStatus status = enter(session);
	if (status)
		return status;
	if (session->state != LOADING)
		return gpusort_device_fail(device_of(session), GPUSORT_BAD_STATE,
								   "the rows are sorted already");
	if (chunk->rows == 0) {
		*ticket = ++session->last_ticket;
		return GPUSORT_OK;
	}
	unsigned char *bytes = nullptr;
	status = check_chunk(session, chunk);
	if (!status)
		status = reserve_chunk(session, chunk, &bytes);
	if (!status)
		status = copy_chunk(session, chunk, bytes);
	if (status)
		return status;
	count_chunk(session, chunk);
	return give_ticket(session, session->upload, ticket);
}

GsStatus gpusort_session_sort(GsSession *session, GsSessionResult *result)
{
	GsStatus status = enter(session);
	if (status)
		return status;
	if (session->state != LOADING)
		return gpusort_device_fail(device_of(session), GPUSORT_BAD_STATE,
								   "the rows are sorted already");
	session->result = {};
	float milliseconds = 0;
	if (session->rows) {
		if (!session->in_order)
			qsort(session->arrivals.items, session->arrivals.count, sizeof(Arrival),
				  compare_arrivals);
		status = sort_rows(session, &milliseconds);
		if (!status)
			status = prepare_result(session);
		if (status) {
			free_result(session);
			return status;
		}
		if (!session->options.return_keys)
			for (GsSegmentedArray &keys : session->keys)
				gpusort_segments_release(&session->owner, &keys, false);
	}
	session->state = SORTED;
	session->result.rows = session->rows;
	session->result.chunks = session->chunks;
	session->result.device_bytes_peak = session->owner.account.peak;
	session->result.sort_ms = milliseconds;
	*result = session->result;
	return GPUSORT_OK;
}

GsStatus gpusort_session_get(GsSession *session, uint64_t chunk, GsSortedChunk *target,
							 GsTicket *ticket)
{
	GsStatus status = enter(session);
	if (status)
		return status;
	GsDevice *device = device_of(session);
	if (session->state != SORTED)
		return gpusort_device_fail(device, GPUSORT_BAD_STATE, "the rows are not sorted yet");
	if (chunk >= session->chunks)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "there is no chunk %llu",
								   (unsigned long long)chunk);
	uint64_t first, end;
	if (is_variable(session)) {
		first = session->cuts[chunk];
		end = session->cuts[chunk + 1];
		target->data_bytes = session->cut_bytes[chunk + 1] - session->cut_bytes[chunk];
	} else {
		first = chunk * session->rows_per_chunk;
		end = first + session->rows_per_chunk;
		end = end < session->rows ? end : session->rows;
		target->data_bytes = is_fixed(session) ? (end - first) * session->options.row_width : 0;
	}
	target->rows = (uint32_t)(end - first);
	target->first_row = first;
	status = prepare_ticket(session);
	if (status)
		return status;
	const Lane &lane = session->lanes[session->next_lane];
	session->next_lane = (session->next_lane + 1) % LANES;
	status = deliver(session, lane, first, end - first, target);
	return status ? status : give_ticket(session, lane.stream, ticket);
}

GsStatus gpusort_session_poll(GsSession *session, GsTicket ticket)
{
	GsStatus status = enter(session);
	if (status)
		return status;
	if (ticket == 0 || ticket > session->last_ticket)
		return gpusort_device_fail(device_of(session), GPUSORT_BAD_ARGUMENT, "unknown ticket");
	size_t at = find_pending(session, ticket);
	if (at == session->pending.count)
		return GPUSORT_OK;
	cudaError_t error = cudaEventQuery(session->pending.items[at].event);
	if (error == cudaErrorNotReady)
		return GPUSORT_NOT_READY;
	status = gpusort_device_check(device_of(session), error, "copy rows");
	if (!status)
		retire(session, at);
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
		retire(session, at);
	return status;
}

uint64_t gpusort_session_memory(const GsSession *session)
{
	return session->owner.account.in_use;
}

void gpusort_session_end(GsSession *session)
{
	GsDevice *device = device_of(session);
	bool gone = is_gone(session);
	if (!gone && !device->lost) {
		cudaSetDevice(device->ordinal);
		if (session->upload)
			cudaStreamSynchronize(session->upload);
		for (Lane &lane : session->lanes)
			if (lane.stream)
				cudaStreamSynchronize(lane.stream);
	}
	if (gone) {
		session->sorted = nullptr;
		session->offsets = nullptr;
		for (Lane &lane : session->lanes)
			lane.staging = nullptr;
	}
	free_result(session);
	for (GsSegmentedArray &keys : session->keys)
		gpusort_segments_release(&session->owner, &keys, gone);
	gpusort_segments_release(&session->owner, &session->data, gone);
	gpusort_arena_release(&session->owner, &session->bytes, gone);
	gpusort_segments_release(&session->owner, &session->lengths, gone);
	gpusort_segments_release(&session->owner, &session->starts, gone);
	if (!gone && !device->lost) {
		for (size_t i = 0; i < session->pending.count; i++)
			cudaEventDestroy(session->pending.items[i].event);
		for (size_t i = 0; i < session->idle_events.count; i++)
			cudaEventDestroy(session->idle_events.items[i]);
		if (session->upload)
			cudaStreamDestroy(session->upload);
		for (Lane &lane : session->lanes)
			if (lane.stream)
				cudaStreamDestroy(lane.stream);
		cudaGetLastError();
	}
	session->pending.release();
	session->idle_events.release();
	session->arrivals.release();
	for (GsSession **link = &all_sessions; *link; link = &(*link)->next)
		if (*link == session) {
			*link = session->next;
			break;
		}
	device->sessions--;
	delete session;
}

void gpusort_session_end_all(GsDevice *device)
{
	GsSession *session = all_sessions;
	while (session) {
		GsSession *next = session->next;
		if (device_of(session) == device)
			gpusort_session_end(session);
		session = next;
	}
}
