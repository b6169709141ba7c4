/*
 * session_sort.cu
 *		The sort of a session: collects the keys, sorts stably by one word after the other, and
 *		leaves the row numbers.
 */
#include <cstdlib>

#include "session_state.h"

using namespace gpusort_session;

namespace
{

/* Device arrays of the sort.  values[0] is that of the result. */
struct SortBuffers {
	uint64_t *keys[2];
	uint32_t *values[2];
	void *workspace;
};

/* Copies one word of all keys to target. */
GsStatus collect_keys(GsSession *session, const GsSegmentedArray *keys, uint64_t *target,
					  cudaStream_t stream)
{
	GsStatus status = GPUSORT_OK;
	uint64_t first = 0, left = session->rows;
	while (left && !status) {
		GsPiece piece = gpusort_segments_piece(keys, first, left);
		status = copy_async(session, target, piece.address, piece.items * sizeof *target,
							cudaMemcpyDeviceToDevice, stream);
		target += piece.items;
		first += piece.items;
		left -= piece.items;
	}
	return status;
}

SortBuffers sort_buffers(const GsSession *session)
{
	const SortMemory &memory = session->memory;
	SpaceLayout space = space_layout(session, memory.rows);
	ResultLayout result = result_layout(session, memory.rows, memory.bytes);
	SortBuffers buffers = {};
	for (int i = 0; i < 2; i++)
		buffers.keys[i] = (uint64_t *)(memory.space + space.keys[i]);
	buffers.values[0] = (uint32_t *)(memory.result + result.sorted);
	buffers.values[1] = (uint32_t *)(memory.space + space.values);
	buffers.workspace = memory.space + space.workspace;
	return buffers;
}

GsSortJob make_job(const GsSession *session, const SortBuffers &buffers, int current,
				   bool generate)
{
	GsSortJob job = sort_job(session->rows);
	job.keys_in = buffers.keys[0];
	job.keys_out = buffers.keys[1];
	job.values_in = generate ? nullptr : buffers.values[current];
	job.values_in_buffer = buffers.values[current];
	job.values_out = buffers.values[1 - current];
	return job;
}

/*
 * Sorts by one word.  The initial values are in values[*from], or are generated.  Leaves the
 * sorted row numbers in values[*from].  Waits for the end.
 */
GsStatus sort_word(GsSession *session, const SortBuffers &buffers, int *current, bool generate)
{
	GsDevice *device = device_of(session);
	GsSortJob job = make_job(session, buffers, *current, generate);
	GsSorterReport report = {};
	GsStatus status = gpusort_device_run(device, &job, buffers.workspace);
	if (!status)
		status = copy_async(session, &report, gpusort_sorter_report_address(buffers.workspace),
							sizeof report, cudaMemcpyDeviceToHost, device->compute);
	if (!status)
		status = synchronize(session, device->compute);
	if (status)
		return status;
	session->result.digit_passes += report.passes;
	if (!gpusort_sorter_result_in_input(&report))
		*current = 1 - *current;
	return GPUSORT_OK;
}

GsStatus sort_words(GsSession *session, SortBuffers &buffers, int *current)
{
	GsDevice *device = device_of(session);
	uint32_t words = session->options.key_words;
	GsStatus status =
		collect_keys(session, &session->keys[words - 1], buffers.keys[0], device->compute);
	if (!status)
		status = sort_word(session, buffers, current, true);
	/*
	 * The least significant word is sorted first.  Each further word is gathered into the order
	 * so far.
	 */
	for (uint32_t w = words - 1; w-- > 0 && !status;) {
		status = launch_rows(session, device->compute, session->rows,
							 gpusort_gather_items_kernel<uint64_t>, buffers.keys[0],
							 gpusort_segments_view(&session->keys[w]),
							 (const uint32_t *)buffers.values[*current], session->rows);
		if (!status)
			status = sort_word(session, buffers, current, false);
	}
	return status;
}

/* Publishes the tables that kernels of the sort and of the delivery read. */
GsStatus upload_tables(GsSession *session)
{
	GsOwner *owner = &session->owner;
	cudaStream_t stream = device_of(session)->compute;
	unsigned char *result = session->memory.result;
	ResultLayout at = result_layout(session, session->memory.rows, session->memory.bytes);
	GsStatus status = GPUSORT_OK;
	for (uint32_t w = 0; w < session->options.key_words && !status; w++)
		status = gpusort_segments_upload_table(owner, &session->keys[w],
											   result + at.key_tables[w], stream);
	if (!status && !is_variable(session))
		status = gpusort_segments_upload_table(owner, &session->data, result + at.data_table,
											   stream);
	if (!status && is_variable(session)) {
		status = gpusort_segments_upload_table(owner, &session->lengths,
											   result + at.lengths_table, stream);
		if (!status)
			status = gpusort_segments_upload_table(owner, &session->starts,
												   result + at.starts_table, stream);
	}
	return status;
}

GsStatus sort_rows(GsSession *session, float *milliseconds)
{
	GsDevice *device = device_of(session);
	SortBuffers buffers = sort_buffers(session);
	cudaEvent_t start = nullptr, end = nullptr;
	int current = 0;
	GsStatus status = synchronize(session, session->upload);
	if (!status)
		status = gpusort_device_check(
			device, cudaEventCreateWithFlags(&start, cudaEventDefault), "create an event");
	if (!status)
		status = gpusort_device_check(device, cudaEventCreateWithFlags(&end, cudaEventDefault),
									  "create an event");
	if (!status)
		status = upload_tables(session);
	if (!status)
		status = gpusort_device_check(device, cudaEventRecord(start, device->compute),
									  "record an event");
	if (!status)
		status = sort_words(session, buffers, &current);
	if (!status && current == 1)
		status = copy_async(session, buffers.values[0], buffers.values[1],
							session->rows * sizeof(uint32_t), cudaMemcpyDeviceToDevice,
							device->compute);
	if (!status)
		status = gpusort_device_check(device, cudaEventRecord(end, device->compute),
									  "record an event");
	if (!device->lost)
		cudaStreamSynchronize(device->compute); /* errors are returned by the next call */
	if (!status)
		status = gpusort_device_check(device, cudaEventElapsedTime(milliseconds, start, end),
									  "measure the time of the sort");
	if (start)
		cudaEventDestroy(start);
	if (end)
		cudaEventDestroy(end);
	if (!status)
		session->sorted = buffers.values[0];
	return status;
}

} // namespace

GsSortJob gpusort_session::sort_job(uint64_t rows)
{
	GsSortJob job = {};
	job.key_width = sizeof(uint64_t);
	job.value_width = sizeof(uint32_t);
	job.end_bit = 64;
	job.clobber = true;
	job.n = rows;
	return job;
}

GsStatus gpusort_session_sort(GsSession *session, GsSessionResult *result)
{
	GsStatus status = select_device(session);
	if (status)
		return status;
	if (session->state != LOADING)
		return gpusort_device_fail(device_of(session), GPUSORT_BAD_STATE,
								   "the rows have already been sorted");
	session->result = {};
	float milliseconds = 0;
	GsChunk none = {};
	if (session->rows) {
		status = reserve_for_chunk(session, &none); /* it has been lost only without a pool */
		if (!status)
			status = sort_rows(session, &milliseconds);
		if (!status)
			status = prepare_result(session);
		if (status) {
			free_result(session);
			return status;
		}
		for (GsSegmentedArray &keys : session->keys)
			gpusort_segments_release(&session->owner, &keys);
		release_sort_space(session);
	}
	session->state = SORTED;
	session->result.rows = session->rows;
	session->result.chunks = session->chunks;
	session->result.device_bytes_peak = session->owner.account.peak;
	session->result.sort_ms = milliseconds;
	*result = session->result;
	return GPUSORT_OK;
}
