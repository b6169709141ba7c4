/*
 * api.cu
 *		The function table, and those of its functions that are about no session or array.
 */
#include "device.h"

#include <cstdio>
#include <cstring>

#include "session.h"

namespace
{

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

void device_close(GsDevice *device)
{
	if (!device)
		return;
	gpusort_session_end_all(device);
	gpusort_device_close(device);
}

const char *device_message(const GsDevice *device)
{
	return device->message;
}

GsStatus device_memory(GsDevice *device, GsDeviceMemory *memory)
{
	memset(memory, 0, sizeof *memory);
	memory->in_use = device->in_use;
	memory->sessions = device->sessions;
	GsStatus status = gpusort_device_select(device);
	size_t free_bytes = 0, total_bytes = 0;
	if (!status)
		status = gpusort_device_check(device, cudaMemGetInfo(&free_bytes, &total_bytes),
									  "query free device memory");
	uint64_t unused = 0;
	if (!status)
		status = gpusort_device_pooled(device, &memory->held, &unused);
	memory->free = free_bytes + unused;
	memory->total = total_bytes;
	return status;
}

GsStatus device_trim(GsDevice *device)
{
	GsStatus status = gpusort_device_select(device);
	if (!status)
		gpusort_device_free_workspace(device);
	return status ? status : gpusort_device_trim_pool(device);
}

GsStatus host_register(GsDevice *device, void *address, size_t size)
{
	GsStatus status = gpusort_device_select(device);
	if (!status)
		status = gpusort_device_check(device,
									  cudaHostRegister(address, size, cudaHostRegisterPortable),
									  "pin host memory");
	return status;
}

GsStatus host_unregister(GsDevice *device, void *address)
{
	GsStatus status = gpusort_device_select(device);
	if (!status)
		status = gpusort_device_check(device, cudaHostUnregister(address), "unpin host memory");
	return status;
}

GsStatus buffer_alloc(GsDevice *device, size_t size, void **buffer)
{
	*buffer = nullptr;
	GsStatus status = gpusort_device_select(device);
	return status ? status : gpusort_device_alloc(device, nullptr, size, buffer);
}

GsStatus buffer_free(GsDevice *device, void *buffer)
{
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
	GsStatus status = gpusort_device_select(device);
	return status ? status : gpusort_device_sort_arrays(device, request);
}

GsStatus debug_set(GsDevice *device, const GsDebugSettings *settings)
{
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
	if ((key_width != 4 && key_width != 8) ||
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
	gpusort_device_count,
	gpusort_device_info,
	gpusort_device_open,
	device_close,
	device_message,
	device_memory,
	gpusort_device_health,
	device_trim,
	host_register,
	host_unregister,
	buffer_alloc,
	buffer_free,
	buffer_write,
	buffer_read,
	sort,
	gpusort_session_begin,
	gpusort_session_put,
	gpusort_session_sort,
	gpusort_session_get,
	gpusort_session_poll,
	gpusort_session_wait,
	gpusort_session_memory,
	gpusort_session_end,
	debug_set,
	debug_sizes,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const GsDeviceApi *
gpusort_device_api(uint32_t abi_version)
{
	return abi_version == GPUSORT_DEVICE_ABI_VERSION ? &api : nullptr;
}
