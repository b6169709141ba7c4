/*
 * tuning.cuh
 *		Every number that was chosen by measuring, with its measurement.
 *
 * Measured on an NVIDIA H200 (132 multiprocessors, CUDA 13.0), 2026-11-21, unless another GPU
 *is named; the tables are in docs/benchmarks-device.md.
 */
#ifndef GPUSORT_TUNING_CUH
#define GPUSORT_TUNING_CUH

#include "tile_rank.cuh"

/* Shape of a sweep. */
template <int THREADS_, int ITEMS_, int BLOCKS_, int WINDOW_, bool SHARE_>
struct GsSweepPolicy {
	static constexpr int THREADS = THREADS_; /* at least GPUSORT_RADIX, a multiple of 32 */
	static constexpr int ITEMS = ITEMS_;	 /* keys of a thread */
	static constexpr int BLOCKS = BLOCKS_;	 /* resident on a multiprocessor */
	static constexpr int WINDOW = WINDOW_;	 /* tiles a look-back reads at a time */
	/*
	 * Values take the place of the keys in shared memory once these are written, so that the
	 * tile can be larger; or have their own, so that they are there before.
	 */
	static constexpr bool SHARE = SHARE_;
	static constexpr int TILE = THREADS * ITEMS;
};

/*
 * Two shapes for each pair of widths: for devices whose blocks can have some 110 kB of shared
 * memory (compute capability 8.0, 9.0, 10.0), and for those with 64 kB or more.
 *
 * build/cuda/sweep_tune 28 24: large tiles win, since they make long runs of equal digits and
 * with them whole sectors, until registers spill.
 */
enum GsDeviceClass { GPUSORT_LARGE_SHARED, GPUSORT_SMALL_SHARED };

#ifdef __CUDACC__
template <int KEY_BYTES, int VALUE_BYTES, GsDeviceClass CLASS>
struct GsSweepTuning : GsSweepPolicy<384, 24, 2, 4, true> {
};
template <>
struct GsSweepTuning<4, 0, GPUSORT_LARGE_SHARED> : GsSweepPolicy<256, 48, 3, 4, false> {
};
template <>
struct GsSweepTuning<4, 4, GPUSORT_LARGE_SHARED> : GsSweepPolicy<384, 36, 2, 4, true> {
};
/* Not measured: what fits two blocks into 99 kB, or one into 64 kB. */
template <int KEY_BYTES, int VALUE_BYTES>
struct GsSweepTuning<KEY_BYTES, VALUE_BYTES, GPUSORT_SMALL_SHARED>
	: GsSweepPolicy<256, 14, 2, 4, true> {
};
template <>
struct GsSweepTuning<4, 0, GPUSORT_SMALL_SHARED> : GsSweepPolicy<256, 32, 2, 4, true> {
};
#else
/* Small, so that a tile is many cases and a case few tiles. */
template <int KEY_BYTES, int VALUE_BYTES, GsDeviceClass CLASS>
struct GsSweepTuning : GsSweepPolicy<256, 3, 1, 4, (KEY_BYTES == 4)> {
};
#endif

/* Histogram of all digit places. */
struct GsHistogramTuning {
	static constexpr int THREADS = 512;
	static constexpr int BLOCKS = 4;  /* resident on a multiprocessor */
	static constexpr int VECTORS = 4; /* 16-byte loads of a thread in flight */
};

/* Larger inputs are first looked through for a descent; smaller ones while they are counted. */
#ifdef __CUDACC__
constexpr uint64_t GPUSORT_CHECK_ITEMS = 1 << 25;
#else
constexpr uint64_t GPUSORT_CHECK_ITEMS = 2000;
#endif

/* Sorts of one block, in a smaller and a larger shape, and of one launch of cooperating blocks.
 */
#ifdef __CUDACC__
template <int KEY_BYTES, int VALUE_BYTES, bool LARGE>
struct GsBlockSortTuning {
	static constexpr int THREADS = LARGE ? 512 : 256;
	static constexpr int ITEMS = LARGE ? 8 : 4;
};
template <int KEY_BYTES, int VALUE_BYTES>
struct GsGridSortTuning {
	static constexpr int THREADS = 512;
	static constexpr int ITEMS = 8;
};
constexpr uint32_t GPUSORT_BLOCK_ITEMS = 4096; /* larger inputs take the grid */
constexpr uint32_t GPUSORT_GRID_ITEMS = 1 << 17;
constexpr uint32_t GPUSORT_GRID_BLOCKS = 64;
#else
template <int KEY_BYTES, int VALUE_BYTES, bool LARGE>
struct GsBlockSortTuning {
	static constexpr int THREADS = 256;
	static constexpr int ITEMS = LARGE ? 3 : 1;
};
template <int KEY_BYTES, int VALUE_BYTES>
struct GsGridSortTuning {
	static constexpr int THREADS = 512;
	static constexpr int ITEMS = 2;
};
constexpr uint32_t GPUSORT_BLOCK_ITEMS = 600;
constexpr uint32_t GPUSORT_GRID_ITEMS = 1500;
constexpr uint32_t GPUSORT_GRID_BLOCKS = 4;
#endif
constexpr uint32_t GPUSORT_WARP_ITEMS = 32;

/* Polls of a look-back before it counts the missing tile itself; a poll is near a microsecond.
 */
constexpr uint32_t GPUSORT_FALLBACK_POLLS = 1 << 16;

#endif /* GPUSORT_TUNING_CUH */
