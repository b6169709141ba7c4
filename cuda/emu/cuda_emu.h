/*
 * cuda_emu.h
 *		The subset of CUDA that the device library uses, executed by the CPU.
 *
 * All CUDA threads of a kernel run as fibers on the calling thread (emu_schedule.cpp).  Runtime
 * calls replace those of libcudart (emu_runtime.cpp).  portable.cuh includes this file instead
 * of cuda_runtime.h if the compiler is not nvcc.
 *
 * The emulator detects errors that a GPU does not detect: a warp collective that some named
 * lane does not reach, lanes that reach different collectives, shared memory that is read
 * before it is written (initially it contains noise), kernels that never end, and blocks that
 * wait for each other forever.  It cannot show effects of the weak memory model, or times.
 */
#ifndef GPUSORT_CUDA_EMU_H
#define GPUSORT_CUDA_EMU_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)

struct dim3 {
	unsigned x, y, z;
	dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
	{
	}
};

struct alignas(16) uint4 {
	uint32_t x, y, z, w;
};

/* ---- schedule ---- */

namespace gpusort_emu
{

struct Schedule {
	uint32_t seed = 1;
	uint32_t resident = 6; /* blocks alive at the same time, unless the launch is cooperative */
	uint32_t dispatch = 0; /* order in which blocks start: 0 ascending, 1 reversed, 2 random */
	uint32_t favour = 0; /* 0 any block runs next, 1 mostly the youngest, 2 mostly the oldest */
	uint32_t bug = 0;	 /* enum GsPlantedBug */
};

extern Schedule schedule;

enum Collective { SYNC = 1, BALLOT, SHUFFLE };

/*
 * Runs a launch to its end.  Returns false if it hung or violated a rule; launch_error() then
 * returns the reason.
 */
bool run_kernel(unsigned grid, unsigned block, size_t shared_bytes, bool cooperative,
				const std::function<void()> &kernel);
const char *launch_error();

/*
 * Returns the architecture for which kernels are compiled, in the form of
 * cudaFuncAttributes.ptxVersion.
 */
int compiled_for();

/* May be called only by code that runs in a fiber. */
dim3 thread_index();
dim3 block_index();
dim3 block_size();
dim3 grid_size();
void *shared_memory();
unsigned lane();
void maybe_yield();
void yield_now();
void before_atomic(); /* must be called before an atomic operation; may yield */
void barrier();
int barrier_or(int predicate);
[[noreturn]] void trap();

/*
 * Exchanges values between the lanes of mask.  Waits until all of them have called it with a
 * value, and returns the values of the warp's 32 lanes (0 for lanes outside mask).  The array
 * is valid until the lane's next collective.
 */
const uint64_t *exchange_values(uint32_t mask, Collective what, uint64_t value);

} // namespace gpusort_emu

#define threadIdx (gpusort_emu::thread_index())
#define blockIdx  (gpusort_emu::block_index())
#define blockDim  (gpusort_emu::block_size())
#define gridDim	  (gpusort_emu::grid_size())

/* ---- device functions ---- */

inline void __syncthreads()
{
	gpusort_emu::barrier();
}

inline int __syncthreads_or(int predicate)
{
	return gpusort_emu::barrier_or(predicate);
}

inline void __syncwarp(uint32_t mask = ~0u)
{
	gpusort_emu::exchange_values(mask, gpusort_emu::SYNC, 0);
}

inline uint32_t __ballot_sync(uint32_t mask, int predicate)
{
	const uint64_t *all =
		gpusort_emu::exchange_values(mask, gpusort_emu::BALLOT, predicate != 0);
	uint32_t result = 0;
	for (int i = 0; i < 32; i++)
		result |= (uint32_t)all[i] << i;
	return result;
}

template <class T>
inline T __shfl_sync(uint32_t mask, T value, int source)
{
	uint64_t word = 0;
	memcpy(&word, &value, sizeof value);
	word = gpusort_emu::exchange_values(mask, gpusort_emu::SHUFFLE, word)[source & 31];
	memcpy(&value, &word, sizeof value);
	return value;
}

template <class T>
inline T __shfl_up_sync(uint32_t mask, T value, unsigned delta)
{
	unsigned lane = gpusort_emu::lane();
	return __shfl_sync(mask, value, lane >= delta ? lane - delta : lane);
}

template <class T>
inline T __shfl_down_sync(uint32_t mask, T value, unsigned delta)
{
	unsigned lane = gpusort_emu::lane();
	return __shfl_sync(mask, value, lane + delta < 32 ? lane + delta : lane);
}

template <class T>
inline T __shfl_xor_sync(uint32_t mask, T value, int other)
{
	return __shfl_sync(mask, value, gpusort_emu::lane() ^ other);
}

template <class T>
inline T atomicAdd(T *address, T value)
{
	gpusort_emu::before_atomic();
	T old = *address;
	*address = old + value;
	return old;
}

template <class T>
inline T atomicExch(T *address, T value)
{
	gpusort_emu::before_atomic();
	T old = *address;
	*address = value;
	return old;
}

template <class T>
inline T atomicCAS(T *address, T expected, T value)
{
	gpusort_emu::before_atomic();
	T old = *address;
	if (old == expected)
		*address = value;
	return old;
}

[[noreturn]] inline void __trap()
{
	gpusort_emu::trap();
}

inline void __threadfence()
{
}

inline void __nanosleep(unsigned)
{
	gpusort_emu::yield_now();
}

inline int __popc(uint32_t x)
{
	return __builtin_popcount(x);
}

inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift)
{
	return (uint32_t)(((uint64_t)high << 32 | low) >> (shift & 31));
}

inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t selector)
{
	uint64_t bytes = (uint64_t)high << 32 | low;
	uint32_t result = 0;
	for (int i = 0; i < 4; i++)
		result |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
	return result;
}

/* ---- runtime ---- */

enum cudaError_t {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInitializationError = 3,
	cudaErrorInsufficientDriver = 35,
	cudaErrorDevicesUnavailable = 46,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorNoKernelImageForDevice = 209,
	cudaErrorNotReady = 600,
	cudaErrorHostMemoryAlreadyRegistered = 712,
	cudaErrorHostMemoryNotRegistered = 713,
	cudaErrorLaunchFailure = 719
};

enum cudaMemcpyKind {
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice
};

enum { cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };
enum { cudaHostRegisterPortable = 1 };

struct cudaDeviceProp {
	char name[256];
	size_t totalGlobalMem;
	size_t sharedMemPerBlockOptin;
	int major, minor;
	int multiProcessorCount;
	int cooperativeLaunch;
};

struct cudaFuncAttributes {
	int ptxVersion;
};

enum { cudaDevAttrMemoryPoolsSupported = 115 };
enum { cudaMemAllocationTypePinned = 1, cudaMemLocationTypeDevice = 1 };
enum cudaMemPoolAttr {
	cudaMemPoolAttrReleaseThreshold = 4,
	cudaMemPoolAttrReservedMemCurrent,
	cudaMemPoolAttrUsedMemCurrent = 7
};

struct cudaMemPoolProps {
	int allocType;
	struct {
		int type, id;
	} location;
};

typedef struct EmuPool *cudaMemPool_t;
typedef struct EmuStream *cudaStream_t;
typedef struct EmuEvent *cudaEvent_t;

/*
 * Queues an operation on a stream.  It is executed when the host waits for it, so that host
 * code that forgets to wait reads memory that has not been written yet.
 */
void gpusort_emu_enqueue(cudaStream_t stream, std::function<cudaError_t()> operation);

/* The same for a kernel of `grid` blocks. */
cudaError_t gpusort_emu_launch(cudaStream_t stream, unsigned grid,
							   std::function<cudaError_t()> kernel);

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int ordinal);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel);
cudaError_t cudaSetDevice(int ordinal);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaMalloc(void **pointer, size_t size);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int ordinal);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool,
									cudaStream_t stream);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t size, cudaMemcpyKind kind,
							cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *target, int value, size_t size, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t error);

#endif /* GPUSORT_CUDA_EMU_H */
