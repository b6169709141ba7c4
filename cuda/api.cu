/*
 * api.cu
 *		The function table: checks the caller's arguments and calls the implementation.
 */
#include "device.h"

#include <cstdio>
#include <cstring>

#include "session.h"

namespace
{

GsStatus bad_argument(char *message, size_t message_size, const char *text)
{
	if (message && message_size)
		snprintf(message, message_size, "%s", text);
	return GPUSORT_BAD_ARGUMENT;
}

const char *status_text(GsStatus status)
{
	switch (status) {
		case GPUSORT_OK:
			return "success";
		case GPUSORT_NOT_READY:
			return "not ready";
		case GPUSORT_BAD_ARGUMENT:
			return "bad argument";
		case GPUSORT_BAD_VERSION:
			return "unknown interface version";
		case GPUSORT_BAD_STATE:
			return "call not allowed in this state";
		case GPUSORT_NO_DRIVER:
			return "no usable CUDA driver";
		case GPUSORT_NO_DEVICE:
			return "no usable device";
		case GPUSORT_DEVICE_MEMORY:
			return "out of device memory";
		case GPUSORT_HOST_MEMORY:
			return "out of host memory";
		case GPUSORT_DEVICE_LOST:
			return "device lost";
		case GPUSORT_DEVICE_ERROR:
			return "device error";
		case GPUSORT_DEVICE_BUSY:
			return "device busy";
	}
	return "unknown status";
}

GsStatus device_count(int *count, char *message, size_t message_size)
{
	if (!count)
		return bad_argument(message, message_size, "count is NULL");
	return gpusort_device_count(count, message, message_size);
}

GsStatus device_info(int ordinal, GsDeviceInfo *info, char *message, size_t message_size)
{
	if (!info)
		return bad_argument(message, message_size, "info is NULL");
	return gpusort_device_info(ordinal, info, message, message_size);
}

GsStatus device_open(int ordinal, GsDevice **device, char *message, size_t message_size)
{
	if (!device)
		return bad_argument(message, message_size, "device is NULL");
	*device = nullptr;
	return gpusort_device_open(ordinal, device, message, message_size);
}

void device_close(GsDevice *device)
{
	if (!device)
		return;
	gpusort_session_end_all(device);
	gpusort_device_close(device);
}

const char *device_message(const GsDevice *device)
{
	return device ? device->message : "";
}

GsStatus device_memory(GsDevice *device, GsDeviceMemory *memory)
{
	if (!device || !memory)
		return GPUSORT_BAD_ARGUMENT;
	memset(memory, 0, sizeof *memory);
	memory->in_use = device->in_use;
	memory->sessions = device->sessions;
	GsStatus status = gpusort_device_select(device);
	size_t free_bytes = 0, total_bytes = 0;
	if (!status)
		status = gpusort_device_check(device, cudaMemGetInfo(&free_bytes, &total_bytes),
									  "query free device memory");
	memory->free = free_bytes;
	memory->total = total_bytes;
	return status;
}

GsStatus device_trim(GsDevice *device)
{
	if (!device)
		return GPUSORT_BAD_ARGUMENT;
	GsStatus status = gpusort_device_select(device);
	if (!status)
		gpusort_device_free_workspace(device);
	return status;
}

GsStatus host_register(GsDevice *device, void *address, size_t size)
{
	if (!device || !address || !size)
		return GPUSORT_BAD_ARGUMENT;
	GsStatus status = gpusort_device_select(device);
	if (!status)
		status = gpusort_device_check(device,
									  cudaHostRegister(address, size, cudaHostRegisterPortable),
									  "pin host memory");
	return status;
}

GsStatus host_unregister(GsDevice *device, void *address)
{
	if (!device || !address)
		return GPUSORT_BAD_ARGUMENT;
	GsStatus status = gpusort_device_select(device);
	if (!status)
		status = gpusort_device_check(device, cudaHostUnregister(address), "unpin host memory");
	return status;
}

GsStatus buffer_alloc(GsDevice *device, size_t size, void **buffer)
{
	if (!device || !buffer)
		return GPUSORT_BAD_ARGUMENT;
	*buffer = nullptr;
	GsStatus status = gpusort_device_select(device);
	return status ? status : gpusort_device_alloc(device, nullptr, size, buffer);
}

GsStatus buffer_free(GsDevice *device, void *buffer)
{
	if (!device)
		return GPUSORT_BAD_ARGUMENT;
	GsStatus status = gpusort_device_select(device);
	return status ? status : gpusort_device_free(device, nullptr, buffer);
}

/*
 * Copies and waits.  cudaMemcpy() cannot be used: it returns when it has read pageable memory,
 * which may be before the bytes have arrived.  Sorts on device->compute do not wait for the
 * default stream and could start earlier.
 */
GsStatus copy_and_wait(GsDevice *device, void *target, const void *source, size_t size,
					   cudaMemcpyKind kind)
{
	if (!device || (size && (!target || !source)))
		return GPUSORT_BAD_ARGUMENT;
	GsStatus status = gpusort_device_select(device);
	if (status || !size)
		return status;
	status = gpusort_device_check(
		device, cudaMemcpyAsync(target, source, size, kind, device->compute), "copy a buffer");
	GsStatus end =
		gpusort_device_check(device, cudaStreamSynchronize(device->compute), "copy a buffer");
	return status ? status : end;
}

GsStatus buffer_write(GsDevice *device, void *buffer, const void *source, size_t size)
{
	return copy_and_wait(device, buffer, source, size, cudaMemcpyHostToDevice);
}

GsStatus buffer_read(GsDevice *device, void *target, const void *buffer, size_t size)
{
	return copy_and_wait(device, target, buffer, size, cudaMemcpyDeviceToHost);
}

GsStatus sort(GsDevice *device, const GsSortRequest *request)
{
	if (!device || !request)
		return GPUSORT_BAD_ARGUMENT;
	GsStatus status = gpusort_device_select(device);
	return status ? status : gpusort_device_sort_arrays(device, request);
}

GsStatus session_begin(GsDevice *device, const GsSessionOptions *options, GsSession **session)
{
	if (!session)
		return GPUSORT_BAD_ARGUMENT;
	*session = nullptr;
	if (!device || !options)
		return GPUSORT_BAD_ARGUMENT;
	GsStatus status = gpusort_device_select(device);
	return status ? status : gpusort_session_begin(device, options, session);
}

GsStatus session_put(GsSession *session, const GsChunk *chunk, GsTicket *ticket)
{
	if (!session || !ticket || !chunk)
		return GPUSORT_BAD_ARGUMENT;
	*ticket = 0;
	return gpusort_session_put(session, chunk, ticket);
}

GsStatus session_sort(GsSession *session, GsSessionResult *result)
{
	if (!session || !result)
		return GPUSORT_BAD_ARGUMENT;
	return gpusort_session_sort(session, result);
}

GsStatus session_get(GsSession *session, uint64_t chunk, GsSortedChunk *target,
					 GsTicket *ticket)
{
	if (!session || !target || !ticket)
		return GPUSORT_BAD_ARGUMENT;
	*ticket = 0;
	return gpusort_session_get(session, chunk, target, ticket);
}

GsStatus session_poll(GsSession *session, GsTicket ticket)
{
	return session ? gpusort_session_poll(session, ticket) : GPUSORT_BAD_ARGUMENT;
}

GsStatus session_wait(GsSession *session, GsTicket ticket)
{
	return session ? gpusort_session_wait(session, ticket) : GPUSORT_BAD_ARGUMENT;
}

GsStatus session_memory(GsSession *session, const GsChunk *chunk, uint64_t *device_bytes)
{
	if (!session || !device_bytes)
		return GPUSORT_BAD_ARGUMENT;
	*device_bytes = gpusort_session_memory(session, chunk);
	return GPUSORT_OK;
}

void session_end(GsSession *session)
{
	if (session)
		gpusort_session_end(session);
}

GsStatus debug_set(GsDevice *device, const GsDebugSettings *settings)
{
	if (!device)
		return GPUSORT_BAD_ARGUMENT;
	GsDebugSettings copy = settings ? *settings : GsDebugSettings();
	device->sorter.debug = copy;
	device->allocs_left = copy.fail_alloc;
	device->launches_left = copy.fail_launch;
#ifndef __CUDACC__
	gpusort_emu::Schedule schedule;
	schedule.seed = copy.emu_seed;
	schedule.dispatch = copy.emu_dispatch;
	schedule.favour = copy.emu_favour;
	schedule.bug = copy.emu_bug;
	if (copy.emu_resident)
		schedule.resident = copy.emu_resident;
	gpusort_emu::schedule = schedule;
#endif
	return GPUSORT_OK;
}

/*
 * Returns the rank of a path among all paths, ordered by the sizes of the inputs for which
 * GPUSORT_PATH_AUTO chooses them.
 */
int rank_by_size(GsSortPath path)
{
	static const GsSortPath paths[] = {GPUSORT_PATH_WARP, GPUSORT_PATH_RANK, GPUSORT_PATH_BLOCK,
									   GPUSORT_PATH_GRID, GPUSORT_PATH_ONESWEEP};
	int rank = 0;
	while (paths[rank] != path && paths[rank] != GPUSORT_PATH_ONESWEEP)
		rank++;
	return rank;
}

/*
 * Returns the largest n for which GPUSORT_PATH_AUTO chooses the path, or a path for smaller
 * inputs.
 */
uint32_t largest_n(const GsSorter *sorter, GsSortJob job, GsSortPath path)
{
	GsSorter unforced = *sorter;
	unforced.debug.path = GPUSORT_PATH_AUTO;
	uint32_t last = 0;
	for (uint32_t bit = 1u << 31; bit; bit /= 2) {
		job.n = last | bit;
		if (rank_by_size(gpusort_sorter_path(&unforced, &job)) <= rank_by_size(path))
			last |= bit;
	}
	return last;
}

GsStatus debug_sizes(GsDevice *device, uint32_t key_width, uint32_t value_width,
					 GsDebugSizes *sizes)
{
	if (!device || !sizes || (key_width != 4 && key_width != 8) ||
		(value_width != 0 && value_width != 4 && value_width != 8))
		return GPUSORT_BAD_ARGUMENT;
	*sizes = gpusort_sorter_sizes(&device->sorter, key_width, value_width);
	GsSortJob job = {};
	job.key_width = key_width;
	job.value_width = value_width;
	sizes->auto_warp = largest_n(&device->sorter, job, GPUSORT_PATH_WARP);
	sizes->auto_rank = largest_n(&device->sorter, job, GPUSORT_PATH_RANK);
	sizes->auto_block = largest_n(&device->sorter, job, GPUSORT_PATH_BLOCK);
	sizes->auto_grid = largest_n(&device->sorter, job, GPUSORT_PATH_GRID);
	return GPUSORT_OK;
}

const GsDeviceApi api = {
	GPUSORT_DEVICE_ABI_VERSION,
#ifdef __CUDACC__
	"cuda",
#else
	"emulator",
#endif
	status_text,
	device_count,
	device_info,
	device_open,
	device_close,
	device_message,
	device_memory,
	device_trim,
	host_register,
	host_unregister,
	buffer_alloc,
	buffer_free,
	buffer_write,
	buffer_read,
	sort,
	session_begin,
	session_put,
	session_sort,
	session_get,
	session_poll,
	session_wait,
	session_memory,
	session_end,
	debug_set,
	debug_sizes,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const GsDeviceApi *
gpusort_device_api(uint32_t abi_version)
{
	return abi_version == GPUSORT_DEVICE_ABI_VERSION ? &api : nullptr;
}
