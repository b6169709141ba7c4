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
 * chunks.  sums and cuts, up to three words for each row, take the place of the keys, the
 * values and the workspace of the sort.
 */
GsStatus split_chunks(GsSession *session)
{
	GsDevice *device = device_of(session);
	cudaStream_t stream = device->compute;
	const GsSessionOptions &options = session->options;
	uint64_t n = session->rows;
	uint64_t blocks = n / GPUSORT_SCAN_TILE + 1; /* the last one also writes offsets[n] */
	GsSegments lengths = gpusort_segments_view(&session->lengths);
	uint64_t *sums = (uint64_t *)session->memory.space, *cuts = sums + blocks + 1;
	uint64_t total = 0, most = 0, count = 0;

	GsStatus status = launch_sums(session, stream, blocks, gpusort_length_sums_kernel, sums,
								  lengths, (const uint32_t *)session->sorted, n);
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
	session->chunks = count;
	session->chunk_bytes = total < options.chunk_bytes ? total : options.chunk_bytes;
	return status;
}

/* Notes which sorted rows are ties of the next one. */
GsStatus find_ties(GsSession *session)
{
	cudaStream_t stream = device_of(session)->compute;
	GsSortedKeys keys = {};
	for (uint32_t w = 0; w < session->options.key_words; w++)
		keys.words[w] = gpusort_segments_view(&session->keys[w]);
	keys.rows = session->sorted;
	keys.n = session->rows;
	keys.nlevels = session->options.tie_levels;
	memcpy(keys.levels, session->options.tie_level, sizeof keys.levels);
	GsStatus status =
		launch_rows(session, stream, session->rows, gpusort_ties_kernel, session->ties, keys);
	return status ? status : synchronize(session, stream);
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
	unsigned char *data =
		delivery.staging +
		staging_layout(session, session->rows_per_chunk, session->chunk_bytes).data;
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
	if (!status && session->options.tie_levels) {
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
	free(session->chunk_firsts);
	session->sorted = session->ties = nullptr;
	session->offsets = session->chunk_firsts = session->chunk_offsets = nullptr;
	session->chunks = 0;
}

GsStatus prepare_result(GsSession *session)
{
	unsigned char *result = session->memory.result;
	ResultLayout at = result_layout(session, session->memory.rows, session->memory.bytes);
	session->rows_per_chunk = rows_per_chunk(session, session->rows);
	session->chunks = (session->rows + session->rows_per_chunk - 1) / session->rows_per_chunk;
	session->ties = (uint32_t *)(result + at.ties);
	session->offsets = (uint64_t *)(result + at.offsets);
	for (int i = 0; i < DELIVERIES; i++)
		session->deliveries[i].staging = result + at.staging[i];
	GsStatus status = GPUSORT_OK;
	if (session->options.tie_levels)
		status = find_ties(session);
	if (is_variable(session) && !status)
		status = split_chunks(session);
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
