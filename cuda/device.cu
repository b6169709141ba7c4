/*
 * device.cu
 *		Opens devices; accounts for device memory; translates errors.
 */
#include "device.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

struct GsAllocation {
	GsAllocation *next;
	void *pointer;
	size_t size;
};

namespace
{

/* Addresses are multiples of 256, and often of much more. */
GsAllocation **list_of(GsDevice *device, const void *pointer)
{
	uint64_t mixed = (uint64_t)(uintptr_t)pointer * 0x9E3779B97F4A7C15ull;
	return &device->allocations[(mixed >> 32) % GPUSORT_ALLOCATION_LISTS];
}

/* Returns whether the context of the process is unusable after an error. */
bool is_sticky(cudaError_t error)
{
	switch (error) {
		case cudaSuccess:
		case cudaErrorInvalidValue:
		case cudaErrorMemoryAllocation:
		case cudaErrorInvalidDevice:
		case cudaErrorNoDevice:
		case cudaErrorNoKernelImageForDevice:
		case cudaErrorDevicesUnavailable:
		case cudaErrorNotReady:
		case cudaErrorHostMemoryAlreadyRegistered:
		case cudaErrorHostMemoryNotRegistered:
			return false;
#ifdef __CUDACC__
		case cudaErrorInvalidKernelImage:
		case cudaErrorInvalidPtx:
		case cudaErrorUnsupportedPtxVersion:
		case cudaErrorJitCompilerNotFound:
		case cudaErrorJitCompilationDisabled:
		case cudaErrorInvalidConfiguration:
		case cudaErrorInvalidDeviceFunction:
		case cudaErrorLaunchOutOfResources:
		case cudaErrorCooperativeLaunchTooLarge:
		case cudaErrorNotSupported:
			return false;
#endif
		default:
			return true;
	}
}

GsStatus status_of(cudaError_t error)
{
	switch (error) {
		case cudaSuccess:
			return GPUSORT_OK;
		case cudaErrorMemoryAllocation:
			return GPUSORT_DEVICE_MEMORY;
		case cudaErrorInsufficientDriver:
		case cudaErrorInitializationError:
#ifdef __CUDACC__
		case cudaErrorStubLibrary:
		case cudaErrorCompatNotSupportedOnDevice:
		case cudaErrorSystemDriverMismatch:
		case cudaErrorSystemNotReady:
#endif
			return GPUSORT_NO_DRIVER;
		case cudaErrorNoDevice:
		case cudaErrorInvalidDevice:
		case cudaErrorNoKernelImageForDevice:
#ifdef __CUDACC__
		case cudaErrorInvalidKernelImage:
		case cudaErrorInvalidPtx:
		case cudaErrorUnsupportedPtxVersion:
		case cudaErrorJitCompilerNotFound:
		case cudaErrorJitCompilationDisabled:
		case cudaErrorDeviceUninitialized:
#endif
			return GPUSORT_NO_DEVICE;
		case cudaErrorDevicesUnavailable:
			return GPUSORT_DEVICE_BUSY;
		default:
			return is_sticky(error) ? GPUSORT_DEVICE_LOST : GPUSORT_DEVICE_ERROR;
	}
}

/* Converts an error of a call without a GsDevice into a status and a message, and clears it. */
GsStatus report_error(cudaError_t error, const char *what, char *message, size_t message_size)
{
	if (error == cudaSuccess)
		return GPUSORT_OK;
	cudaGetLastError();
	if (message && message_size)
		snprintf(message, message_size, "could not %s: %s", what, cudaGetErrorString(error));
	GsStatus status = status_of(error);
	return status == GPUSORT_DEVICE_LOST ? GPUSORT_DEVICE_ERROR : status;
}

/* Creates the pool, if the device supports any, and its stream. */
GsStatus create_pool(GsDevice *device)
{
	int supported = 0;
	GsStatus status = gpusort_device_check(
		device,
		cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device->ordinal),
		"read the properties of the device");
	if (status || !supported)
		return status;
	status = gpusort_device_check(
		device, cudaStreamCreateWithFlags(&device->memory, cudaStreamNonBlocking),
		"create a stream");
	if (status)
		return status;
	cudaMemPoolProps properties = {};
	properties.allocType = cudaMemAllocationTypePinned;
	properties.location.type = cudaMemLocationTypeDevice;
	properties.location.id = device->ordinal;
	status = gpusort_device_check(device, cudaMemPoolCreate(&device->pool, &properties),
								  "create a memory pool");
	if (status)
		return status;
	uint64_t keep = UINT64_MAX; /* gpusort_device_trim_pool() gives memory back */
	return gpusort_device_check(
		device, cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReleaseThreshold, &keep),
		"set up a memory pool");
}

/* Destroys the streams and the pool, after everything was freed. */
void destroy_streams(GsDevice *device)
{
	if (device->compute)
		cudaStreamDestroy(device->compute);
	if (device->pool)
		cudaMemPoolDestroy(device->pool);
	if (device->memory)
		cudaStreamDestroy(device->memory);
	device->compute = device->memory = nullptr;
	device->pool = nullptr;
}

/* Allocates memory that any stream can use. */
cudaError_t take_memory(GsDevice *device, size_t size, void **pointer)
{
	if (!device->pool)
		return cudaMalloc(pointer, size);
	cudaError_t error = cudaMallocFromPoolAsync(pointer, size, device->pool, device->memory);
	/* Orders the allocation before its use on other streams.  Nothing else is queued there. */
	return error ? error : cudaStreamSynchronize(device->memory);
}

cudaError_t return_memory(GsDevice *device, void *pointer)
{
	return device->pool ? cudaFreeAsync(pointer, device->memory) : cudaFree(pointer);
}

/*
 * Creates the streams and allocates the sorter's memory.  On failure it releases everything.
 */
GsStatus start_device(GsDevice *device)
{
	cudaDeviceProp properties;
	device->started = false;
	GsStatus status =
		gpusort_device_check(device, cudaSetDevice(device->ordinal), "select the device");
	if (!status)
		status =
			gpusort_device_check(device, cudaGetDeviceProperties(&properties, device->ordinal),
								 "read the properties of the device");
	if (status)
		return status;
	if (properties.major < 7)
		return gpusort_device_fail(
			device, GPUSORT_NO_DEVICE,
			"compute capability %d.%d is not supported: 7.0 or higher is required",
			properties.major, properties.minor);
	status = gpusort_device_check(device, gpusort_sorter_init(&device->sorter, properties),
								  "load the kernels for the device");
	if (status)
		return status;
	status = gpusort_device_check(
		device, cudaStreamCreateWithFlags(&device->compute, cudaStreamNonBlocking),
		"create a stream");
	size_t size = gpusort_sorter_exchange_bytes();
	if (!status)
		status = create_pool(device);
	if (!status)
		status = gpusort_device_alloc(device, nullptr, size, &device->sorter.exchange);
	if (!status)
		status = gpusort_device_check(
			device, cudaMemsetAsync(device->sorter.exchange, 0, size, device->compute),
			"clear device memory");
	if (!status)
		status = gpusort_device_check(device, cudaStreamSynchronize(device->compute),
									  "initialize the device");
	if (status) {
		gpusort_device_free(device, nullptr, device->sorter.exchange);
		device->sorter.exchange = nullptr;
		destroy_streams(device);
	}
	device->started = status == GPUSORT_OK;
	return status;
}

} // namespace

GsStatus gpusort_device_fail(GsDevice *device, GsStatus status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(device->message, sizeof device->message, format, arguments);
	va_end(arguments);
	return status;
}

GsStatus gpusort_device_check(GsDevice *device, cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return GPUSORT_OK;
	cudaGetLastError(); /* clears the error unless it is sticky */
	GsStatus status = status_of(error);
	/* The device was usable before and has disappeared. */
	if (device->started && (status == GPUSORT_NO_DEVICE || status == GPUSORT_NO_DRIVER ||
							status == GPUSORT_DEVICE_BUSY))
		status = GPUSORT_DEVICE_LOST;
	if (status == GPUSORT_DEVICE_LOST)
		device->lost = true;
	return gpusort_device_fail(device, status, "could not %s: %s", what,
							   cudaGetErrorString(error));
}

GsStatus gpusort_device_select(GsDevice *device)
{
	if (device->lost)
		return GPUSORT_DEVICE_LOST;
	return gpusort_device_check(device, cudaSetDevice(device->ordinal), "select the device");
}

GsStatus gpusort_device_alloc(GsDevice *device, GsAccount *account, size_t size, void **pointer)
{
	*pointer = nullptr;
	if (device->lost)
		return GPUSORT_DEVICE_LOST;
	if (account && account->limit && size > account->limit - account->in_use)
		return gpusort_device_fail(
			device, GPUSORT_DEVICE_MEMORY,
			"could not allocate device memory: limit of %llu bytes for the sort exceeded",
			(unsigned long long)account->limit);
	if (device->allocs_left && --device->allocs_left == 0)
		return gpusort_device_fail(
			device, GPUSORT_DEVICE_MEMORY,
			"could not allocate device memory: failure requested by a test");
	GsAllocation *allocation = new (std::nothrow) GsAllocation;
	if (!allocation)
		return gpusort_device_fail(device, GPUSORT_HOST_MEMORY, "out of memory");
	GsStatus status = gpusort_device_check(
		device, take_memory(device, size ? size : 1, pointer), "allocate device memory");
	if (status) {
		*pointer = nullptr;
		delete allocation;
		return status;
	}
	GsAllocation **list = list_of(device, *pointer);
	*allocation = {*list, *pointer, size};
	*list = allocation;
	device->in_use += size;
	if (account) {
		account->in_use += size;
		if (account->in_use > account->peak)
			account->peak = account->in_use;
	}
	return GPUSORT_OK;
}

GsStatus gpusort_device_replace(GsDevice *device, GsAccount *account, size_t old_size,
								size_t size, void **pointer)
{
	bool replaces = *pointer != nullptr;
	gpusort_device_free(device, account, *pointer);
	GsStatus status = gpusort_device_alloc(device, account, size, pointer);
	if (status && replaces) {
		char message[sizeof device->message]; /* of the first failure */
		memcpy(message, device->message, sizeof message);
		gpusort_device_alloc(device, account, old_size, pointer);
		memcpy(device->message, message, sizeof message);
	}
	return status;
}

GsStatus gpusort_device_free(GsDevice *device, GsAccount *account, void *pointer)
{
	if (!pointer)
		return GPUSORT_OK;
	uint32_t steps = 0;
	for (GsAllocation **link = list_of(device, pointer); *link; link = &(*link)->next) {
		GsAllocation *allocation = *link;
		if (device->sorter.debug.free_steps && ++steps > device->sorter.debug.free_steps)
			break;
		if (allocation->pointer != pointer)
			continue;
		*link = allocation->next;
		device->in_use -= allocation->size;
		if (account)
			account->in_use -= allocation->size;
		delete allocation;
		if (device->lost)
			return GPUSORT_OK; /* gone with the context */
		return gpusort_device_check(device, return_memory(device, pointer),
									"free device memory");
	}
	return gpusort_device_fail(
		device, GPUSORT_BAD_ARGUMENT,
		"could not free device memory: it was not allocated on this device");
}

GsStatus gpusort_device_pooled(GsDevice *device, uint64_t *held, uint64_t *unused)
{
	uint64_t used = 0;
	*held = *unused = 0;
	if (!device->pool)
		return GPUSORT_OK;
	GsStatus status = gpusort_device_check(
		device, cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrReservedMemCurrent, held),
		"query a memory pool");
	if (!status)
		status = gpusort_device_check(
			device, cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrUsedMemCurrent, &used),
			"query a memory pool");
	if (!status && used < *held)
		*unused = *held - used;
	return status;
}

GsStatus gpusort_device_trim_pool(GsDevice *device)
{
	if (!device->pool)
		return GPUSORT_OK;
	/* Orders what was freed before the trim. */
	GsStatus status = gpusort_device_check(device, cudaStreamSynchronize(device->memory),
										   "free device memory");
	if (!status)
		status = gpusort_device_check(device, cudaMemPoolTrimTo(device->pool, 0),
									  "give back device memory");
	return status;
}

GsStatus gpusort_device_workspace(GsDevice *device, size_t size, void **workspace)
{
	if (device->workspace_size < size) {
		gpusort_device_free_workspace(device);
		GsStatus status = gpusort_device_alloc(device, nullptr, size, &device->workspace);
		if (status)
			return status;
		device->workspace_size = size;
	}
	*workspace = device->workspace;
	return GPUSORT_OK;
}

void gpusort_device_free_workspace(GsDevice *device)
{
	gpusort_device_free(device, nullptr, device->workspace);
	device->workspace = nullptr;
	device->workspace_size = 0;
}

GsStatus gpusort_device_run(GsDevice *device, const GsSortJob *job, void *workspace)
{
	if (device->launches_left && --device->launches_left == 0) {
		device->lost = true;
		return gpusort_device_fail(device, GPUSORT_DEVICE_LOST,
								   "could not launch a kernel: failure requested by a test");
	}
	return gpusort_device_check(
		device, gpusort_sorter_run(&device->sorter, job, workspace, device->compute),
		"launch a kernel");
}

GsStatus gpusort_device_open(int ordinal, GsDevice **result, char *message, size_t message_size)
{
	*result = nullptr;
	int count;
	GsStatus status = gpusort_device_count(&count, message, message_size);
	if (status)
		return status;
	if (ordinal < 0 || ordinal >= count) {
		if (message && message_size)
			snprintf(message, message_size, "device %d does not exist", ordinal);
		return GPUSORT_NO_DEVICE;
	}
	GsDevice *device = new (std::nothrow) GsDevice();
	if (!device) {
		if (message && message_size)
			snprintf(message, message_size, "out of memory");
		return GPUSORT_HOST_MEMORY;
	}
	device->ordinal = ordinal;
	status = start_device(device);
	if (status) {
		if (message && message_size)
			snprintf(message, message_size, "%s", device->message);
		delete device;
		return status;
	}
	*result = device;
	return GPUSORT_OK;
}

static void free_all(GsDevice *device)
{
	for (GsAllocation *&list : device->allocations)
		while (list)
			gpusort_device_free(device, nullptr, list->pointer);
}

void gpusort_device_close(GsDevice *device)
{
	if (!device->lost)
		cudaSetDevice(device->ordinal);
	gpusort_device_free_workspace(device);
	free_all(device);
	if (!device->lost)
		destroy_streams(device);
	delete device;
}

GsStatus gpusort_device_count(int *count, char *message, size_t message_size)
{
	*count = 0;
	GsStatus status =
		report_error(cudaGetDeviceCount(count), "count the devices", message, message_size);
	if (status)
		*count = 0;
	return status;
}

GsStatus gpusort_device_info(int ordinal, GsDeviceInfo *info, char *message,
							 size_t message_size)
{
	cudaDeviceProp properties;
	GsStatus status = report_error(cudaGetDeviceProperties(&properties, ordinal),
								   "read the properties of the device", message, message_size);
	if (status)
		return status;
	memset(info, 0, sizeof *info);
	memcpy(info->name, properties.name, sizeof info->name - 1);
	info->ordinal = ordinal;
	info->capability_major = properties.major;
	info->capability_minor = properties.minor;
	info->multiprocessors = properties.multiProcessorCount;
	info->total_memory = properties.totalGlobalMem;
	return GPUSORT_OK;
}
