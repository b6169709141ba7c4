/*
 * emu_runtime.cpp
 *		The runtime calls of cuda_emu.h: devices whose memory is the heap.
 *
 * The environment variable GPUSORT_EMU_DEVICES sets the number of devices; the default is one.
 * Each device has its own memory, streams and sticky error.
 *
 * Streams are queues.  An operation is executed when the host waits for its stream or for a
 * later event, or queries such an event.  There is no cudaMemcpy(): on a real device it may
 * return before other streams than the default one see the bytes.  A kernel that violates a
 * rule leaves a sticky error, as a fault on a real device does.
 *
 * The file named by the environment variable GPUSORT_EMU_FAULTS lists the faults of the
 * devices.  It may change at any time.  Each line is "ORDINAL FAULT", or "ORDINAL FAULT
 * PROCESS" for a fault that affects only one process:
 *
 *	lost		every call fails with a sticky error
 *	gone		no call finds the device any more
 *	crash		the driver ends the process when it looks for code
 *	exit		likewise, by exit(1)
 *	hang		it does not return from there
 *	no-code		there is no code of the kernels for the device
 *	busy		another process uses the device, in exclusive mode
 *	no-memory	all of the device's memory is in use
 *	others		other processes use so many MB of its memory: the number is no process
 *	wrong		kernels do nothing
 *	large		kernels of more than LARGE_GRID blocks fail with a sticky error
 */
#include "emu/cuda_emu.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>

#include <sys/resource.h>
#include <unistd.h>

struct EmuEvent {
	bool recorded = false;
	bool done = true;
	int device = 0;
	cudaStream_t stream = nullptr;
	std::chrono::steady_clock::time_point time;
};

/*
 * A pool holds bytes of its device, not addresses: freed pieces of any size can be joined. What
 * is freed stays held until the pool is trimmed, as with an unlimited release threshold.
 */
struct EmuPool {
	int device = 0;
	size_t held = 0;
	size_t used = 0;
};

struct EmuStream {
	int device = 0;
	std::deque<std::function<cudaError_t()>> queue;
};

namespace
{

constexpr size_t DEVICE_BYTES = (size_t)8 << 30;

/* How much of an allocation is overwritten. */
constexpr size_t POISONED_BYTES = (size_t)16 << 20;

/* What is after an allocation, and must stay. */
#ifdef __SANITIZE_ADDRESS__
constexpr size_t GUARD_BYTES = 0;
#else
constexpr size_t GUARD_BYTES = 64;
#endif
constexpr unsigned char GUARD = 0x5A;
constexpr int MAX_DEVICES = 16;
constexpr unsigned LARGE_GRID = 50;

struct Device {
	cudaError_t sticky = cudaSuccess;
	std::map<void *, size_t> allocations;
	std::map<void *, std::pair<cudaMemPool_t, size_t>> pooled;
	std::set<cudaStream_t> streams;
	size_t in_use = 0;
};

struct Runtime {
	cudaError_t last = cudaSuccess;
	std::map<void *, size_t> registered;
	Device devices[MAX_DEVICES];
	int current = 0;
};

Runtime &runtime()
{
	static Runtime *instance = new Runtime;
	return *instance;
}

Device &current_device()
{
	return runtime().devices[runtime().current];
}

Device &device_of(cudaStream_t stream)
{
	return runtime().devices[stream->device];
}

int device_count()
{
	const char *text = getenv("GPUSORT_EMU_DEVICES");
	int count = text ? atoi(text) : 1;
	return count < 1 ? 1 : count > MAX_DEVICES ? MAX_DEVICES : count;
}

/* Returns the error of a machine without a driver or a device, for tests that request it. */
cudaError_t missing_error()
{
	if (getenv("GPUSORT_EMU_NO_DRIVER"))
		return cudaErrorInsufficientDriver;
	return getenv("GPUSORT_EMU_NO_DEVICE") ? cudaErrorNoDevice : cudaSuccess;
}

bool has_fault(int ordinal, const char *fault)
{
	const char *path = getenv("GPUSORT_EMU_FAULTS");
	FILE *file = path ? fopen(path, "r") : nullptr;
	char line[80], name[20];
	bool found = false;
	while (file && !found && fgets(line, sizeof line, file)) {
		int device, process = getpid();
		found = sscanf(line, "%d %19s %d", &device, name, &process) >= 2 && device == ordinal &&
				process == getpid() && !strcmp(name, fault);
	}
	if (file)
		fclose(file);
	return found;
}

/* Returns how much of a device's memory is free. */
size_t free_memory(int ordinal)
{
	const char *path = getenv("GPUSORT_EMU_FAULTS");
	FILE *file = path ? fopen(path, "r") : nullptr;
	char line[80];
	size_t used = runtime().devices[ordinal].in_use;
	while (file && fgets(line, sizeof line, file)) {
		int device, megabytes;
		if (sscanf(line, "%d others %d", &device, &megabytes) == 2 && device == ordinal)
			used += (size_t)megabytes << 20;
	}
	if (file)
		fclose(file);
	return used < DEVICE_BYTES ? DEVICE_BYTES - used : 0;
}

/* Returns the result of a runtime call: the sticky error, if any, replaces error. */
cudaError_t end_call(cudaError_t error)
{
	if (current_device().sticky)
		error = current_device().sticky;
	if (error && error != cudaErrorNotReady)
		runtime().last = error;
	return error;
}

void run_front(cudaStream_t stream)
{
	std::function<cudaError_t()> operation = std::move(stream->queue.front());
	stream->queue.pop_front();
	if (device_of(stream).sticky)
		return;
	cudaError_t error = operation();
	if (error)
		device_of(stream).sticky = error;
}

void drain(cudaStream_t stream)
{
	while (!stream->queue.empty())
		run_front(stream);
}

/* Returns memory for an allocation, aligned as on a device, or NULL. */
void *allocate(size_t size)
{
	/* For a sanitizer the size is exact, so that it sees an access beyond the end. */
	void *memory = nullptr;
	if (size > DEVICE_BYTES)
		return nullptr;
	if (posix_memalign(&memory, 256, size + GUARD_BYTES ? size + GUARD_BYTES : 1))
		return nullptr;
	memset((unsigned char *)memory + size, GUARD, GUARD_BYTES);
	/* What nobody wrote is not zero, up to a limit: a session may never use gigabytes of it. */
	memset(memory, 0xA5, std::min(size, POISONED_BYTES));
	return memory;
}

/* Frees memory of that size.  A device on which something was written beyond its end has
 * failed. */
void release(Device &device, void *memory, size_t size)
{
	const unsigned char *guard = (const unsigned char *)memory + size;
	for (size_t i = 0; i < GUARD_BYTES; i++)
		if (guard[i] != GUARD)
			device.sticky = cudaErrorLaunchFailure;
	free(memory);
}

void drain_all()
{
	for (Device &device : runtime().devices)
		for (cudaStream_t stream : device.streams)
			drain(stream);
}

void drain_to(cudaEvent_t event)
{
	while (!event->done && event->stream && !event->stream->queue.empty())
		run_front(event->stream);
	if (runtime().devices[event->device].sticky)
		event->done = true;
}

} // namespace

void gpusort_emu_enqueue(cudaStream_t stream, std::function<cudaError_t()> operation)
{
	stream->queue.push_back(std::move(operation));
}

cudaError_t gpusort_emu_launch(cudaStream_t stream, unsigned grid,
							   std::function<cudaError_t()> kernel)
{
	if (has_fault(stream->device, "no-code"))
		return end_call(cudaErrorNoKernelImageForDevice);
	if (has_fault(stream->device, "wrong"))
		return end_call(cudaSuccess);
	if (grid > LARGE_GRID && has_fault(stream->device, "large"))
		kernel = [] { return cudaErrorLaunchFailure; };
	gpusort_emu_enqueue(stream, std::move(kernel));
	return end_call(cudaSuccess);
}

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t error = missing_error();
	*count = error ? 0 : device_count();
	return end_call(error);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int ordinal)
{
	cudaError_t error = missing_error();
	if (error || ordinal < 0 || ordinal >= device_count())
		return end_call(error ? error : cudaErrorInvalidDevice);
	memset(properties, 0, sizeof *properties);
	snprintf(properties->name, sizeof properties->name, "CUDA emulator");
	properties->totalGlobalMem = DEVICE_BYTES;
	properties->sharedMemPerBlockOptin = 227 * 1024;
	properties->major = 9;
	properties->multiProcessorCount = 4;
	properties->cooperativeLaunch = 1;
	return end_call(cudaSuccess);
}

/*
 * Returns the architecture of the device, or an older one from GPUSORT_EMU_PTX, as if the
 * driver had compiled PTX.
 */
int gpusort_emu::compiled_for()
{
	const char *text = getenv("GPUSORT_EMU_PTX");
	return text ? atoi(text) : 90;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *)
{
	attributes->ptxVersion = gpusort_emu::compiled_for();
	if (has_fault(runtime().current, "crash")) {
		/* To write the core of a process with so much memory could take longer than it has. */
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		abort();
	}
	if (has_fault(runtime().current, "exit"))
		exit(1);
	while (has_fault(runtime().current, "hang"))
		usleep(10000);
	if (has_fault(runtime().current, "busy"))
		return end_call(cudaErrorDevicesUnavailable);
	return end_call(has_fault(runtime().current, "no-code") ? cudaErrorNoKernelImageForDevice
															: cudaSuccess);
}

cudaError_t cudaSetDevice(int ordinal)
{
	if (ordinal < 0 || ordinal >= device_count())
		return end_call(cudaErrorInvalidDevice);
	runtime().current = ordinal;
	if (has_fault(ordinal, "lost"))
		current_device().sticky = cudaErrorLaunchFailure;
	return end_call(has_fault(ordinal, "gone") ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	*total_bytes = DEVICE_BYTES;
	*free_bytes = free_memory(runtime().current);
	return end_call(cudaSuccess);
}

cudaError_t cudaMalloc(void **pointer, size_t size)
{
	Device &device = current_device();
	*pointer = nullptr;
	if (device.sticky)
		return end_call(device.sticky);
	if (size > free_memory(runtime().current) || has_fault(runtime().current, "no-memory"))
		return end_call(cudaErrorMemoryAllocation);
	void *memory = allocate(size);
	if (!memory)
		return end_call(cudaErrorMemoryAllocation);
	device.allocations[memory] = size;
	device.in_use += size;
	*pointer = memory;
	return cudaSuccess;
}

cudaError_t cudaFree(void *pointer)
{
	if (!pointer)
		return end_call(cudaSuccess);
	drain_all();
	for (Device &device : runtime().devices) {
		auto found = device.allocations.find(pointer);
		if (found == device.allocations.end())
			continue;
		device.in_use -= found->second;
		release(device, pointer, found->second);
		device.allocations.erase(found);
		return end_call(cudaSuccess);
	}
	return end_call(cudaErrorInvalidValue);
}

/* GPUSORT_EMU_NO_POOLS in the environment stands for a device without pools. */
cudaError_t cudaDeviceGetAttribute(int *value, int, int)
{
	*value = !getenv("GPUSORT_EMU_NO_POOLS");
	return end_call(cudaSuccess);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties)
{
	*pool = new EmuPool;
	(*pool)->device = properties->location.id;
	return end_call(cudaSuccess);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	if (pool->used)
		return end_call(cudaErrorInvalidValue);
	runtime().devices[pool->device].in_use -= pool->held;
	delete pool;
	return end_call(cudaSuccess);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *)
{
	return end_call(cudaSuccess);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
	*(uint64_t *)value =
		attribute == cudaMemPoolAttrReservedMemCurrent ? pool->held : pool->used;
	return end_call(cudaSuccess);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	size_t held = std::min(pool->held, std::max(keep, pool->used));
	runtime().devices[pool->device].in_use -= pool->held - held;
	pool->held = held;
	return end_call(cudaSuccess);
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool,
									cudaStream_t)
{
	Device &device = runtime().devices[pool->device];
	size_t more = pool->used + size > pool->held ? pool->used + size - pool->held : 0;
	*pointer = nullptr;
	if (device.sticky)
		return end_call(device.sticky);
	if (more > 0 && (more > free_memory(pool->device) || has_fault(pool->device, "no-memory")))
		return end_call(cudaErrorMemoryAllocation);
	void *memory = allocate(size);
	if (!memory)
		return end_call(cudaErrorMemoryAllocation);
	device.pooled[memory] = {pool, size};
	device.in_use += more;
	pool->held += more;
	pool->used += size;
	*pointer = memory;
	return end_call(cudaSuccess);
}

/*
 * Unlike cudaFree(), this waits for nothing: work that still uses the memory is an error, which
 * a sanitizer sees.
 */
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
	Device &device = device_of(stream);
	auto found = device.pooled.find(pointer);
	if (found == device.pooled.end())
		return end_call(cudaErrorInvalidValue);
	found->second.first->used -= found->second.second;
	release(device, pointer, found->second.second);
	device.pooled.erase(found);
	return end_call(cudaSuccess);
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned)
{
	Runtime &r = runtime();
	if (!pointer || !size)
		return end_call(cudaErrorInvalidValue);
	if (r.registered.count(pointer))
		return end_call(cudaErrorHostMemoryAlreadyRegistered);
	r.registered[pointer] = size;
	return end_call(cudaSuccess);
}

cudaError_t cudaHostUnregister(void *pointer)
{
	drain_all();
	if (!runtime().registered.erase(pointer))
		return end_call(cudaErrorHostMemoryNotRegistered);
	return end_call(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t size, cudaMemcpyKind,
							cudaStream_t stream)
{
	gpusort_emu_enqueue(stream, [=] {
		if (size)
			memmove(target, source, size);
		return cudaSuccess;
	});
	return end_call(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void *target, int value, size_t size, cudaStream_t stream)
{
	gpusort_emu_enqueue(stream, [=] {
		if (size)
			memset(target, value, size);
		return cudaSuccess;
	});
	return end_call(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
	*stream = new EmuStream;
	(*stream)->device = runtime().current;
	current_device().streams.insert(*stream);
	return end_call(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	drain(stream);
	device_of(stream).streams.erase(stream);
	delete stream;
	return end_call(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	drain(stream);
	return end_call(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
	*event = new EmuEvent;
	return end_call(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	drain_to(event);
	delete event;
	return end_call(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	drain_to(event);
	event->recorded = true;
	event->done = false;
	event->stream = stream;
	event->device = stream->device;
	gpusort_emu_enqueue(stream, [=] {
		event->done = true;
		event->time = std::chrono::steady_clock::now();
		return cudaSuccess;
	});
	return end_call(cudaSuccess);
}

/* Executes one operation before the event, so that polling ends at some time. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
	if (!event->done && event->stream && !event->stream->queue.empty())
		run_front(event->stream);
	if (runtime().devices[event->device].sticky)
		return end_call(runtime().devices[event->device].sticky);
	return end_call(event->done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	drain_to(event);
	return end_call(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	if (!start->recorded || !end->recorded)
		return end_call(cudaErrorInvalidValue);
	if (!start->done || !end->done)
		return end_call(cudaErrorNotReady);
	*milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
	return end_call(cudaSuccess);
}

cudaError_t cudaGetLastError()
{
	cudaError_t error = runtime().last;
	runtime().last = cudaSuccess;
	return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
	switch (error) {
		case cudaSuccess:
			return "no error";
		case cudaErrorInvalidValue:
			return "invalid argument";
		case cudaErrorMemoryAllocation:
			return "out of memory";
		case cudaErrorInsufficientDriver:
			return "CUDA driver version is insufficient for CUDA runtime version";
		case cudaErrorNoDevice:
			return "no CUDA-capable device is detected";
		case cudaErrorInvalidDevice:
			return "invalid device ordinal";
		case cudaErrorNoKernelImageForDevice:
			return "no kernel image is available for execution on the device";
		case cudaErrorNotReady:
			return "device not ready";
		case cudaErrorHostMemoryAlreadyRegistered:
			return "part or all of the requested memory range is already mapped";
		case cudaErrorLaunchFailure:
			return gpusort_emu::launch_error()[0] ? gpusort_emu::launch_error()
												  : "unspecified launch failure";
		default:
			return "unknown error";
	}
}
