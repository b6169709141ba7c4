/*
 * emu_runtime.cpp
 *		The runtime calls of cuda_emu.h: one device whose memory is the heap.
 *
 * Streams are queues.  An operation is carried out when somebody waits for its stream, for an
 * event behind it, or asks for such an event.  There is no cudaMemcpy(), which on a device may
 * return before the bytes are there for other streams than the default one.  A kernel that
 * breaks a rule leaves a sticky error, as a fault on a device does; cudaDeviceReset() clears
 * it.
 */
#include "emu/cuda_emu.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>

struct EmuEvent {
	bool recorded = false;
	bool done = true;
	cudaStream_t stream = nullptr;
	std::chrono::steady_clock::time_point time;
};

struct EmuStream {
	std::deque<std::function<cudaError_t()>> queue;
};

namespace
{

constexpr size_t DEVICE_BYTES = (size_t)8 << 30;

struct Runtime {
	cudaError_t sticky = cudaSuccess;
	cudaError_t last = cudaSuccess;
	std::map<void *, size_t> allocations;
	std::map<void *, size_t> registered;
	std::set<cudaStream_t> streams;
	size_t in_use = 0;
};

Runtime &runtime()
{
	static Runtime *instance = new Runtime;
	return *instance;
}

/* For tests of what is said where there is no driver, or no device. */
cudaError_t missing()
{
	if (getenv("GPUSORT_EMU_NO_DRIVER"))
		return cudaErrorInsufficientDriver;
	return getenv("GPUSORT_EMU_NO_DEVICE") ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t result(cudaError_t error)
{
	Runtime &r = runtime();
	if (r.sticky)
		error = r.sticky;
	if (error && error != cudaErrorNotReady)
		r.last = error;
	return error;
}

void run_front(cudaStream_t stream)
{
	std::function<cudaError_t()> operation = std::move(stream->queue.front());
	stream->queue.pop_front();
	if (runtime().sticky)
		return;
	cudaError_t error = operation();
	if (error)
		runtime().sticky = error;
}

void drain(cudaStream_t stream)
{
	while (!stream->queue.empty())
		run_front(stream);
}

void drain_all()
{
	for (cudaStream_t stream : runtime().streams)
		drain(stream);
}

void drain_to(cudaEvent_t event)
{
	while (!event->done && event->stream && !event->stream->queue.empty())
		run_front(event->stream);
	if (runtime().sticky)
		event->done = true;
}

} // namespace

void gpusort_emu_enqueue(cudaStream_t stream, std::function<cudaError_t()> operation)
{
	stream->queue.push_back(std::move(operation));
}

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t error = missing();
	*count = error ? 0 : 1;
	return result(error);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int ordinal)
{
	cudaError_t error = missing();
	if (error || ordinal != 0)
		return result(error ? error : cudaErrorInvalidDevice);
	memset(properties, 0, sizeof *properties);
	snprintf(properties->name, sizeof properties->name, "CUDA emulator");
	properties->totalGlobalMem = DEVICE_BYTES;
	properties->sharedMemPerBlockOptin = 227 * 1024;
	properties->major = 9;
	properties->multiProcessorCount = 4;
	properties->cooperativeLaunch = 1;
	return result(cudaSuccess);
}

cudaError_t cudaSetDevice(int ordinal)
{
	return result(ordinal == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceReset()
{
	Runtime &r = runtime();
	for (cudaStream_t stream : r.streams)
		stream->queue.clear();
	for (auto &allocation : r.allocations)
		free(allocation.first);
	r.allocations.clear();
	r.registered.clear();
	r.in_use = 0;
	/* For tests of devices that do not come back. */
	if (!r.sticky || !getenv("GPUSORT_EMU_STAYS_LOST"))
		r.sticky = r.last = cudaSuccess;
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	*total_bytes = DEVICE_BYTES;
	*free_bytes = DEVICE_BYTES - runtime().in_use;
	return result(cudaSuccess);
}

cudaError_t cudaMalloc(void **pointer, size_t size)
{
	Runtime &r = runtime();
	*pointer = nullptr;
	if (r.sticky)
		return result(r.sticky);
	if (size > DEVICE_BYTES - r.in_use)
		return result(cudaErrorMemoryAllocation);
	/* Exact sizes, so that a sanitizer sees an access behind the end. */
	void *memory = nullptr;
	if (posix_memalign(&memory, 256, size ? size : 1))
		return result(cudaErrorMemoryAllocation);
	memset(memory, 0xA5, size);
	r.allocations[memory] = size;
	r.in_use += size;
	*pointer = memory;
	return cudaSuccess;
}

cudaError_t cudaFree(void *pointer)
{
	Runtime &r = runtime();
	if (!pointer)
		return result(cudaSuccess);
	drain_all();
	auto found = r.allocations.find(pointer);
	if (found == r.allocations.end())
		return result(cudaErrorInvalidValue);
	r.in_use -= found->second;
	r.allocations.erase(found);
	free(pointer);
	return result(cudaSuccess);
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned)
{
	Runtime &r = runtime();
	if (!pointer || !size)
		return result(cudaErrorInvalidValue);
	if (r.registered.count(pointer))
		return result(cudaErrorHostMemoryAlreadyRegistered);
	r.registered[pointer] = size;
	return result(cudaSuccess);
}

cudaError_t cudaHostUnregister(void *pointer)
{
	drain_all();
	if (!runtime().registered.erase(pointer))
		return result(cudaErrorHostMemoryNotRegistered);
	return result(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t size, cudaMemcpyKind,
							cudaStream_t stream)
{
	gpusort_emu_enqueue(stream, [=] {
		if (size)
			memmove(target, source, size);
		return cudaSuccess;
	});
	return result(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void *target, int value, size_t size, cudaStream_t stream)
{
	gpusort_emu_enqueue(stream, [=] {
		if (size)
			memset(target, value, size);
		return cudaSuccess;
	});
	return result(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
	*stream = new EmuStream;
	runtime().streams.insert(*stream);
	return result(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	drain(stream);
	runtime().streams.erase(stream);
	delete stream;
	return result(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	drain(stream);
	return result(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
	*event = new EmuEvent;
	return result(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	drain_to(event);
	delete event;
	return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	drain_to(event);
	event->recorded = true;
	event->done = false;
	event->stream = stream;
	gpusort_emu_enqueue(stream, [=] {
		event->done = true;
		event->time = std::chrono::steady_clock::now();
		return cudaSuccess;
	});
	return result(cudaSuccess);
}

/* Does one step of the work in front of the event, so that polling ends. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
	if (!event->done && event->stream && !event->stream->queue.empty())
		run_front(event->stream);
	return result(event->done || runtime().sticky ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	drain_to(event);
	return result(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	if (!start->recorded || !end->recorded)
		return result(cudaErrorInvalidValue);
	if (!start->done || !end->done)
		return result(cudaErrorNotReady);
	*milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
	return result(cudaSuccess);
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
		case cudaErrorNotReady:
			return "device not ready";
		case cudaErrorLaunchFailure:
			return gpusort_emu::launch_error()[0] ? gpusort_emu::launch_error()
												  : "unspecified launch failure";
		default:
			return "unknown error";
	}
}
