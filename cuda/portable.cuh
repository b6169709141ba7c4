/*
 * portable.cuh
 *		Definitions with which nvcc, and a C++ compiler for the emulator, build the same
 *		kernels.
 *
 * Kernels take all their shared memory through GPUSORT_SHARED().  They synchronize with the
 * *_sync and __sync* intrinsics, and use the flag functions below for words that other blocks
 * poll.  Kernels are started with gpusort_launch().
 */
#ifndef GPUSORT_PORTABLE_CUH
#define GPUSORT_PORTABLE_CUH

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "emu/cuda_emu.h"
#endif

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define GPUSORT_UNROLL	  _Pragma("unroll")
#define GPUSORT_NO_UNROLL _Pragma("unroll 1")
#else
#define GPUSORT_UNROLL
#define GPUSORT_NO_UNROLL
#endif

/*
 * Bugs that the emulator can plant, to test the kernel tests: each bug must make them fail.  On
 * a device the condition is the constant false.
 */
enum GsPlantedBug {
	GPUSORT_BUG_NONE = 0,
	GPUSORT_BUG_COUNT_BARRIER,	 /* no barrier between counting a tile and summing the counts */
	GPUSORT_BUG_SCATTER_BARRIER, /* no barrier between the shared scatter and its readers */
	GPUSORT_BUG_PARTIAL_TILE,	 /* padding of a partial tile sorts before the keys */
	GPUSORT_BUG_SHORT_LOOKBACK,	 /* look-back stops after a few tiles */
	GPUSORT_BUG_LANE_ORDER,		 /* equal digits of a warp are ranked from the last lane */
	GPUSORT_BUG_BLOCK_INDEX,	 /* tiles are assigned by block index instead of a counter */
	GPUSORT_BUG_STRIP_BASE,		 /* bases of digits are not carried to the next strip */
	GPUSORT_BUG_SKIP_DIGIT,		 /* a digit is taken for constant if most keys agree */
	GPUSORT_BUG_GRID_BARRIER,	 /* the grid barrier is passed before all blocks have arrived */
	GPUSORT_BUG_GRID_TAG,		 /* counts of other blocks are taken regardless of their tag */
	GPUSORT_BUG_RANK_BEHIND,	 /* equal keys after a block's items count as less */
	GPUSORT_BUG_RANK_OWN,		 /* equal keys among a block's own items do not count */
	GPUSORT_BUG_COPY_DESCENT,	 /* the sorted copy reports no descent */
	GPUSORT_BUG_COPY_SEAM,		 /* the sorted copy ignores the seams between warps */
	GPUSORT_BUG_END
};

#ifdef __CUDACC__
#define GPUSORT_BUG(which) false
#else
#define GPUSORT_BUG(which) (gpusort_emu::schedule.bug == (which))
#endif

/* ---- shared memory ---- */

/* Maximum threads per multiprocessor of the architecture that is being compiled for. */
#if !defined(__CUDACC__) || !defined(__CUDA_ARCH__)
#define GPUSORT_ARCH_THREADS 2048
#elif __CUDA_ARCH__ < 800
#define GPUSORT_ARCH_THREADS 1024
#elif __CUDA_ARCH__ == 800 || (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1100)
#define GPUSORT_ARCH_THREADS 2048
#else
#define GPUSORT_ARCH_THREADS 1536
#endif

/* For launch bounds: this number of resident blocks, or as many as fit. */
#define GPUSORT_RESIDENT(threads, blocks)                                                      \
	((threads) * (blocks) <= GPUSORT_ARCH_THREADS ? (blocks) : GPUSORT_ARCH_THREADS / (threads))

/* The architecture that this code is compiled for, in the form of __CUDA_ARCH__. */
#ifndef __CUDACC__
#define GPUSORT_ARCH (10 * gpusort_emu::compiled_for())
#elif defined(__CUDA_ARCH__)
#define GPUSORT_ARCH __CUDA_ARCH__
#else
#define GPUSORT_ARCH 900
#endif

/*
 * Returns the maximum shared memory of a block in code compiled for an architecture.  Code for
 * an older architecture than the device's has the limit of the older one.  The host therefore
 * has to ask a kernel for its architecture: see gpusort_sorter_init().
 */
__host__ __device__ constexpr size_t gpusort_arch_shared(int arch)
{
#ifdef __CUDACC__
	return arch < 800					? 64 * 1024
		   : arch == 800 || arch == 870 ? 163 * 1024
		   : arch >= 900 && arch < 1200 ? 227 * 1024
										: 99 * 1024;
#else
	/*
	 * As on devices, few of the large tiles of the emulator fit in the limit of older
	 * architectures.
	 */
	return arch < 800 ? 16 * 1024 + 512 : 227 * 1024;
#endif
}

#ifdef __CUDACC__
extern __shared__ __align__(16) unsigned char gpusort_shared_bytes[];
#define GPUSORT_SHARED(type, name) type &name = *reinterpret_cast<type *>(gpusort_shared_bytes)
#else
#define GPUSORT_SHARED(type, name)                                                             \
	type &name = *reinterpret_cast<type *>(gpusort_emu::shared_memory())
#endif

/*
 * Copies one item of 4 or 8 bytes from global to shared memory without passing through
 * registers.  After gpusort_copies_done() the thread that started the copy sees the item; after
 * a barrier, the others do.
 */
template <class T>
__device__ __forceinline__ void gpusort_copy_async(T *shared, const T *global)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
	unsigned address = (unsigned)__cvta_generic_to_shared(shared);
	asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
				 :
				 : "r"(address), "l"(global), "n"(sizeof(T))
				 : "memory");
#else
	*shared = *global;
#endif
}

__device__ __forceinline__ void gpusort_copies_done()
{
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
	asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

/* ---- lanes ---- */

__device__ __forceinline__ unsigned gpusort_lane()
{
#ifdef __CUDACC__
	unsigned lane;
	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
#else
	return gpusort_emu::lane();
#endif
}

/* Returns the mask of the lanes below this one. */
__device__ __forceinline__ uint32_t gpusort_lanes_below()
{
#ifdef __CUDACC__
	uint32_t mask;
	asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
	return mask;
#else
	return (1u << gpusort_emu::lane()) - 1;
#endif
}

/* Returns the mask of the lanes above this one. */
__device__ __forceinline__ uint32_t gpusort_lanes_above()
{
#ifdef __CUDACC__
	uint32_t mask;
	asm("mov.u32 %0, %%lanemask_gt;" : "=r"(mask));
	return mask;
#else
	return ~1u << gpusort_emu::lane();
#endif
}

/*
 * Returns the mask of the lanes whose word agrees with this lane's in one bit.  It is written
 * in PTX because the compiler takes seven instructions for a ballot whose predicate is needed
 * as a mask, and these are four.  From compute capability 10.0 on it is not used, since ptxas
 * of CUDA 13.0 runs out of predicates there.
 */
template <uint32_t BIT>
__device__ __forceinline__ uint32_t gpusort_peers_bit(uint32_t word)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ < 1000
	uint32_t vote;
	asm volatile("{\n\t"
				 ".reg .pred set;\n\t"
				 ".reg .b32 bit;\n\t"
				 "and.b32 bit, %1, %2;\n\t"
				 "setp.ne.u32 set, bit, 0;\n\t"
				 "vote.sync.ballot.b32 %0, set, 0xffffffff;\n\t"
				 "@!set not.b32 %0, %0;\n\t"
				 "}"
				 : "=r"(vote)
				 : "r"(word), "n"(BIT));
	return vote;
#else
	uint32_t vote = __ballot_sync(~0u, (word & BIT) != 0);
	return word & BIT ? vote : ~vote;
#endif
}

/*
 * Like gpusort_peers_bit(), for kernels that keep many predicates.  ptxas of CUDA 13.0 runs out
 * of predicates in such kernels when it compiles PTX for 7.5 to 9.0 for a device of 10.0 or
 * above, and the device then has no code at all.  This variant takes five instructions, and no
 * predicate except that of the vote.
 */
template <uint32_t BIT>
__device__ __forceinline__ uint32_t gpusort_peers_bit_lean(uint32_t word)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ < 1000
	uint32_t vote;
	asm volatile("{\n\t"
				 ".reg .pred set;\n\t"
				 ".reg .b32 bit;\n\t"
				 "and.b32 bit, %1, %2;\n\t"
				 "setp.ne.u32 set, bit, 0;\n\t"
				 "vote.sync.ballot.b32 %0, set, 0xffffffff;\n\t"
				 "}"
				 : "=r"(vote)
				 : "r"(word), "n"(BIT));
	/*
	 * Spreads the bit over all bits: it is moved to the sign, which an arithmetic shift copies.
	 */
	return vote ^ ~(uint32_t)((int32_t)(word << __builtin_clz(BIT)) >> 31);
#else
	return gpusort_peers_bit<BIT>(word);
#endif
}

/*
 * Adds one to count if a < b, or with EQUAL if a <= b.  It is written in PTX so that the
 * addition is one of floats, because comparisons already fill the integer pipe.
 */
template <bool EQUAL>
__device__ __forceinline__ void gpusort_count(float &count, uint32_t a, uint32_t b)
{
#ifdef __CUDACC__
	if (EQUAL)
		asm("{\n\t"
			".reg .pred counts;\n\t"
			"setp.le.u32 counts, %1, %2;\n\t"
			"@counts add.f32 %0, %0, 0f3F800000;\n\t"
			"}"
			: "+f"(count)
			: "r"(a), "r"(b));
	else
		asm("{\n\t"
			".reg .pred counts;\n\t"
			"setp.lt.u32 counts, %1, %2;\n\t"
			"@counts add.f32 %0, %0, 0f3F800000;\n\t"
			"}"
			: "+f"(count)
			: "r"(a), "r"(b));
#else
	count += EQUAL ? a <= b : a < b;
#endif
}

template <bool EQUAL>
__device__ __forceinline__ void gpusort_count(float &count, uint64_t a, uint64_t b)
{
#ifdef __CUDACC__
	if (EQUAL)
		asm("{\n\t"
			".reg .pred counts;\n\t"
			"setp.le.u64 counts, %1, %2;\n\t"
			"@counts add.f32 %0, %0, 0f3F800000;\n\t"
			"}"
			: "+f"(count)
			: "l"(a), "l"(b));
	else
		asm("{\n\t"
			".reg .pred counts;\n\t"
			"setp.lt.u64 counts, %1, %2;\n\t"
			"@counts add.f32 %0, %0, 0f3F800000;\n\t"
			"}"
			: "+f"(count)
			: "l"(a), "l"(b));
#else
	count += EQUAL ? a <= b : a < b;
#endif
}

/* ---- flags: words that other blocks poll ---- */

/*
 * Relaxed accesses of device scope.  A status word contains its value, so that nothing else has
 * to be ordered with it.
 */
__device__ __forceinline__ uint32_t gpusort_flag_load(const uint32_t *flag)
{
#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 700
	uint32_t value;
	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag));
	return value;
#else
	return *(const volatile uint32_t *)flag;
#endif
#else
	gpusort_emu::maybe_yield();
	return *(const volatile uint32_t *)flag;
#endif
}

__device__ __forceinline__ void gpusort_flag_store(uint32_t *flag, uint32_t value)
{
#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 700
	asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
#else
	*(volatile uint32_t *)flag = value;
#endif
#else
	gpusort_emu::maybe_yield();
	*(volatile uint32_t *)flag = value;
#endif
}

/*
 * Acquire load of device scope.  What a block wrote before it increased the counter (release)
 * is visible to a block after it has read that value (acquire).
 */
__device__ __forceinline__ uint32_t gpusort_flag_load_acquire(const uint32_t *flag)
{
#ifdef __CUDACC__
	uint32_t value;
	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
	return value;
#else
	gpusort_emu::yield_now();
	return *(const volatile uint32_t *)flag;
#endif
}

/*
 * Adds to a counter, with release semantics.  With a barrier before the call, this orders
 * everything that the block wrote before it.
 */
__device__ __forceinline__ void gpusort_flag_add_release(uint32_t *flag, uint32_t value)
{
#ifdef __CUDACC__
	asm volatile("red.release.gpu.global.add.u32 [%0], %1;"
				 :
				 : "l"(flag), "r"(value)
				 : "memory");
#else
	atomicAdd(flag, value);
#endif
}

/*
 * Loads four neighbouring flags, aligned to 16 bytes, each of them as gpusort_flag_load() does.
 * The four are not loaded atomically together.
 */
struct GsFourFlags {
	uint32_t flag[4];
};

__device__ __forceinline__ GsFourFlags gpusort_flags_load(const uint32_t *flags)
{
	GsFourFlags four;
#ifdef __CUDACC__
	asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
				 : "=r"(four.flag[0]), "=r"(four.flag[1]), "=r"(four.flag[2]),
				   "=r"(four.flag[3])
				 : "l"(flags));
#else
	gpusort_emu::yield_now();
	for (int i = 0; i < 4; i++)
		four.flag[i] = *(const volatile uint32_t *)&flags[i];
#endif
	return four;
}

/* Waits for about a microsecond, so that other blocks can proceed. */
__device__ __forceinline__ void gpusort_pause()
{
	__nanosleep(1000);
}

/* ---- launches ---- */

struct GsLaunch {
	unsigned grid;
	unsigned block;
	size_t shared_bytes;
	bool cooperative; /* all blocks must be resident at the same time */
	cudaStream_t stream;
};

/* Shared memory that a kernel may use without requesting more. */
constexpr size_t GPUSORT_SHARED_DEFAULT = 48 * 1024;

template <class... Parameters, class... Arguments>
cudaError_t gpusort_launch(const GsLaunch &launch, void (*kernel)(Parameters...),
						   Arguments... arguments)
{
#ifdef __CUDACC__
	if (launch.shared_bytes > GPUSORT_SHARED_DEFAULT) {
		cudaError_t error = cudaFuncSetAttribute((const void *)kernel,
												 cudaFuncAttributeMaxDynamicSharedMemorySize,
												 (int)launch.shared_bytes);
		if (error)
			return error;
	}
	cudaLaunchAttribute attribute = {};
	attribute.id = cudaLaunchAttributeCooperative;
	attribute.val.cooperative = 1;
	cudaLaunchConfig_t config = {};
	config.gridDim = dim3(launch.grid);
	config.blockDim = dim3(launch.block);
	config.dynamicSmemBytes = launch.shared_bytes;
	config.stream = launch.stream;
	config.attrs = &attribute;
	config.numAttrs = launch.cooperative ? 1 : 0;
	return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
#else
	return gpusort_emu_launch(launch.stream, launch.grid, [=] {
		bool good = gpusort_emu::run_kernel(launch.grid, launch.block, launch.shared_bytes,
											launch.cooperative, [&] { kernel(arguments...); });
		return good ? cudaSuccess : cudaErrorLaunchFailure;
	});
#endif
}

#endif /* GPUSORT_PORTABLE_CUH */
