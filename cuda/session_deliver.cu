/*
 * session_deliver.cu
 *		Delivery of sorted chunks: divides the sorted rows into chunks, gathers them, and copies
 *		them to the host.
 */
#include <cstdlib>

#include "session_state.h"

using namespace gpusort_session;

namespace
{

/*
 * For rows of variable width: computes the offsets of the sorted rows, and divides them into
 * chunks.
 */
GsStatus split_chunks(GsSession *session)
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
		status = launch_warp(session, stream, gpusort_scan_sums_kernel, sums, (uint32_t)blocks);
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
		/*
		 * Two neighbouring chunks together exceed the limits of one chunk, so on average chunks
		 * are at least half full.
		 */
		most = 2 * (total / options.chunk_bytes + 1) + n / options.chunk_rows + 1;
		if (most > n)
			most = n;
		status = allocate(session, (2 * (most + 1) + 1) * sizeof(uint64_t), (void **)&cuts);
	}
	if (!status) {
		session->chunk_firsts = (uint64_t *)malloc(2 * (most + 1) * sizeof(uint64_t));
		if (session->chunk_firsts)
			session->chunk_offsets = session->chunk_firsts + most + 1;
		else
			status = gpusort_device_fail(device, GPUSORT_HOST_MEMORY, "out of memory");
	}
	if (!status)
		status =
			launch_warp(session, stream, gpusort_split_chunks_kernel, cuts, cuts + most + 1,
						cuts + 2 * (most + 1), most, (const uint64_t *)session->offsets, n,
						(uint64_t)options.chunk_rows, options.chunk_bytes);
	if (!status)
		status = copy_async(session, &count, cuts + 2 * (most + 1), sizeof count,
							cudaMemcpyDeviceToHost, stream);
	if (!status)
		status = synchronize(session, stream);
	if (!status && count > most)
		status = gpusort_device_fail(
			device, GPUSORT_DEVICE_ERROR,
			"could not divide the rows into chunks: there are too many chunks");
	for (int half = 0; half < 2 && !status; half++)
		status = copy_async(session, session->chunk_firsts + half * (most + 1),
							cuts + half * (most + 1), (count + 1) * sizeof(uint64_t),
							cudaMemcpyDeviceToHost, stream);
	if (!status)
		status = synchronize(session, stream);
	release(session, sums);
	release(session, cuts);
	session->chunks = count;
	session->chunk_bytes = total < options.chunk_bytes ? total : options.chunk_bytes;
	return status;
}

/* Notes which sorted rows have the same key as the next one. */
GsStatus find_ties(GsSession *session)
{
	cudaStream_t stream = device_of(session)->compute;
	GsKeySegments keys = {};
	keys.count = session->options.key_words;
	for (uint32_t w = 0; w < keys.count; w++)
		keys.words[w] = gpusort_segments_view(&session->keys[w]);
	uint64_t words = (session->rows + 31) / 32;
	GsStatus status = allocate(session, words * sizeof(uint32_t), (void **)&session->ties);
	if (!status)
		status = launch_rows(session, stream, session->rows, gpusort_ties_kernel, session->ties,
							 keys, (const uint32_t *)session->sorted, session->rows);
	return status ? status : synchronize(session, stream);
}

/* Where in a staging buffer the lengths and the data of rows begin, and where it ends. */
struct StagingLayout {
	size_t data;
	size_t total;
};

StagingLayout staging_layout(const GsSession *session)
{
	size_t rows = session->rows_per_chunk;
	if (!is_variable(session))
		return {0, rows * session->options.row_width};
	size_t data = (rows * sizeof(uint32_t) + 255) / 256 * 256;
	return {data, data + session->chunk_bytes};
}

template <class Word>
GsStatus gather_fixed(GsSession *session, void *target, const uint32_t *rows, uint64_t n,
					  cudaStream_t stream)
{
	uint32_t words = session->options.row_width / (uint32_t)sizeof(Word);
	return launch_rows(session, stream, n * words, gpusort_gather_fixed_kernel<Word>,
					   (Word *)target, gpusort_segments_view(&session->data), words, rows, n);
}

/* Uses the widest words whose size divides the width of rows. */
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

/* Gathers the rows first .. first + n - 1 and queues their copies to the host. */
GsStatus deliver_rows(GsSession *session, const Delivery &delivery, uint64_t first, uint64_t n,
					  const GsSortedChunk *target)
{
	unsigned char *lengths = delivery.staging;
	unsigned char *data = delivery.staging + staging_layout(session).data;
	const uint32_t *rows = session->sorted + first;
	GsStatus status;
	auto copy_to_host = [&](void *to, const void *from, size_t bytes) {
		return copy_async(session, to, from, bytes, cudaMemcpyDeviceToHost, delivery.stream);
	};
	if (is_variable(session)) {
		status = launch_rows(session, delivery.stream, n * 32, gpusort_gather_variable_kernel,
							 data, (uint32_t *)lengths, gpusort_segments_view(&session->starts),
							 gpusort_segments_view(&session->lengths),
							 (const uint64_t *)session->offsets + first, rows, n);
		if (!status)
			status = copy_to_host(target->lengths, lengths, n * sizeof(uint32_t));
	} else
		status = gather_fixed_rows(session, data, rows, n, delivery.stream);
	if (!status)
		status = copy_to_host(target->data, data, target->data_bytes);
	if (!status && session->options.return_ties) {
		uint64_t from = first / 32, end = (first + n + 31) / 32;
		status =
			copy_to_host(target->ties, session->ties + from, (end - from) * sizeof(uint32_t));
	}
	return status;
}

} // namespace

namespace gpusort_session
{

void free_result(GsSession *session)
{
	release(session, session->sorted);
	release(session, session->ties);
	release(session, session->offsets);
	for (Delivery &delivery : session->deliveries) {
		release(session, delivery.staging);
		delivery.staging = nullptr;
	}
	free(session->chunk_firsts);
	session->sorted = session->ties = nullptr;
	session->offsets = session->chunk_firsts = session->chunk_offsets = nullptr;
	session->chunks = 0;
}

GsStatus prepare_result(GsSession *session)
{
	const GsSessionOptions &options = session->options;
	session->rows_per_chunk =
		options.chunk_rows < session->rows ? options.chunk_rows : session->rows;
	if (!is_variable(session) &&
		options.chunk_bytes / options.row_width < session->rows_per_chunk)
		session->rows_per_chunk = options.chunk_bytes / options.row_width;
	session->chunks = (session->rows + session->rows_per_chunk - 1) / session->rows_per_chunk;
	GsStatus status = GPUSORT_OK;
	if (options.return_ties)
		status = find_ties(session);
	if (is_variable(session) && !status)
		status = split_chunks(session);
	size_t staging = staging_layout(session).total;
	for (int i = 0; i < DELIVERIES && !status; i++)
		status = allocate(session, staging, (void **)&session->deliveries[i].staging);
	return status;
}

} // namespace gpusort_session

GsStatus gpusort_session_get(GsSession *session, uint64_t chunk, GsSortedChunk *target,
							 GsTicket *ticket)
{
	GsStatus status = select_device(session);
	if (status)
		return status;
	GsDevice *device = device_of(session);
	if (session->state != SORTED)
		return gpusort_device_fail(device, GPUSORT_BAD_STATE,
								   "the rows have not been sorted yet");
	if (chunk >= session->chunks)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "chunk %llu does not exist",
								   (unsigned long long)chunk);
	uint64_t first, end;
	if (is_variable(session)) {
		first = session->chunk_firsts[chunk];
		end = session->chunk_firsts[chunk + 1];
		target->data_bytes = session->chunk_offsets[chunk + 1] - session->chunk_offsets[chunk];
	} else {
		first = chunk * session->rows_per_chunk;
		end = first + session->rows_per_chunk;
		end = end < session->rows ? end : session->rows;
		target->data_bytes = (end - first) * session->options.row_width;
	}
	target->rows = (uint32_t)(end - first);
	target->first_row = first;
	status = reserve_ticket(session);
	if (status)
		return status;
	const Delivery &delivery = session->deliveries[session->next_delivery];
	session->next_delivery = (session->next_delivery + 1) % DELIVERIES;
	status = deliver_rows(session, delivery, first, end - first, target);
	return status ? status : issue_ticket(session, delivery.stream, ticket);
}
