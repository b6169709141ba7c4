/*
 * tuning.cuh
 *		Tuning parameters: every number that was chosen by measurement.
 *
 * Measured on an NVIDIA H200 (132 multiprocessors, CUDA 13.0), 2026-11-21, unless another GPU
 * is named.  The tables are in docs/experiments.md, Kernels, and in docs/results/device.
 */
#ifndef GPUSORT_TUNING_CUH
#define GPUSORT_TUNING_CUH

#include "tile_rank.cuh"

/* Policy of a sweep. */
template <int THREADS_, int ITEMS_, int BLOCKS_, int WINDOW_, bool SHARE_>
struct GsSweepPolicy {
	static constexpr int THREADS = THREADS_; /* at least GPUSORT_RADIX, a multiple of 32 */
	static constexpr int ITEMS = ITEMS_;	 /* per thread */
	static constexpr int BLOCKS = BLOCKS_;	 /* resident per multiprocessor */
	static constexpr int WINDOW = WINDOW_; /* tiles whose status a look-back reads at a time */
	/*
	 * With SHARE, values reuse the shared memory of the keys once these are written, so that
	 * the tile can be larger.  Otherwise values have memory of their own and are loaded
	 * earlier.
	 */
	static constexpr bool SHARE = SHARE_;
	static constexpr int TILE = THREADS * ITEMS;
};

/*
 * Each pair of widths has two policies.  Large tiles are faster, until registers spill: more
 * items have equal digits, so that writes fill whole sectors.  They were measured by
 * `build/cuda/sweep_tune 28 24`.  Small tiles are for inputs of which large ones would leave
 * multiprocessors without work, and for devices of which a multiprocessor has too little
 * shared memory for two blocks with large tiles (compute capability 7.5, 8.6, 8.9, 12.0, and
 * pairs on 8.0).
 */
enum GsTileClass { GPUSORT_LARGE_TILES, GPUSORT_SMALL_TILES };

#ifdef __CUDACC__
template <int KEY_BYTES, int VALUE_BYTES, GsTileClass CLASS>
struct GsSweepTuning : GsSweepPolicy<384, 22, 2, 4, true> {
};
template <>
struct GsSweepTuning<8, 0, GPUSORT_LARGE_TILES> : GsSweepPolicy<384, 24, 2, 4, true> {
};
template <>
struct GsSweepTuning<4, 0, GPUSORT_LARGE_TILES> : GsSweepPolicy<256, 48, 3, 4, false> {
};
template <>
struct GsSweepTuning<4, 4, GPUSORT_LARGE_TILES> : GsSweepPolicy<384, 36, 2, 4, true> {
};
/* Two blocks fit into 99 kB, or one into 64 kB. */
template <int KEY_BYTES, int VALUE_BYTES>
struct GsSweepTuning<KEY_BYTES, VALUE_BYTES, GPUSORT_SMALL_TILES>
	: GsSweepPolicy<256, 14, 2, 4, true> {
};
template <>
struct GsSweepTuning<4, 0, GPUSORT_SMALL_TILES> : GsSweepPolicy<256, 32, 2, 4, true> {
};
template <>
struct GsSweepTuning<4, 4, GPUSORT_SMALL_TILES> : GsSweepPolicy<256, 24, 2, 4, true> {
};
#else
/* Small, so that tests need few items to cover many tiles. */
template <int KEY_BYTES, int VALUE_BYTES, GsTileClass CLASS>
struct GsSweepTuning : GsSweepPolicy<256, 3, 1, 4, (KEY_BYTES == 4)> {
};
template <int KEY_BYTES, int VALUE_BYTES>
struct GsSweepTuning<KEY_BYTES, VALUE_BYTES, GPUSORT_SMALL_TILES>
	: GsSweepPolicy<256, 1, 1, 4, (KEY_BYTES == 4)> {
};
#endif

/* The largest input that is sorted by small tiles, on a device with this number */
constexpr int GPUSORT_SMALL_TILE_MULTIPROCESSORS = 132; /* of multiprocessors. */
template <int KEY_BYTES, int VALUE_BYTES>
struct GsSmallTileLimit {
#ifdef __CUDACC__
	static constexpr uint32_t ITEMS = 1 << (KEY_BYTES == 4 && VALUE_BYTES <= 4 ? 21 : 19);
#else
	static constexpr uint32_t ITEMS = 2500 * 33; /* 2500 on the emulator's device */
#endif
};

/* Policy of the histogram kernel. */
struct GsHistogramTuning {
	static constexpr int THREADS = 512;
	static constexpr int BLOCKS = 4;  /* resident per multiprocessor */
	static constexpr int VECTORS = 4; /* 16-byte loads in flight per thread */
};

/* Policy of the copy of sorted inputs. */
template <int THREADS_, int BLOCKS_, int VECTORS_>
struct GsSortedCopyPolicy {
	static constexpr int THREADS = THREADS_;
	static constexpr int BLOCKS = BLOCKS_;	 /* resident per multiprocessor */
	static constexpr int VECTORS = VECTORS_; /* 16-byte loads of keys in flight per thread */
};
#ifdef __CUDACC__
typedef GsSortedCopyPolicy<256, 4, 4> GsSortedCopyTuning; /* measured by `sweep_tune copies` */
#else
typedef GsSortedCopyPolicy<64, 4, 2> GsSortedCopyTuning;
#endif

/*
 * Inputs of at least this size are first copied until a descent is found; the digits of smaller
 * ones are counted at once.
 */
#ifdef __CUDACC__
constexpr uint64_t GPUSORT_CHECK_ITEMS = 1 << 21;
#else
constexpr uint64_t GPUSORT_CHECK_ITEMS = 2000;
#endif

/* Policies of the rank sort, three by the number of items; measured by `sweep_tune ranks`. */
template <int THREADS_, int ITEMS_, int GROUPS_, int FETCH_>
struct GsRankPolicy {
	static constexpr int THREADS = THREADS_;
	static constexpr int ITEMS = ITEMS_;   /* per lane */
	static constexpr int GROUPS = GROUPS_; /* of lanes in a warp; all hold the same items */
	static constexpr int FETCH = FETCH_;   /* keys a lane brings into shared memory at a time */
	static constexpr int OWN = 32 / GROUPS * ITEMS; /* items per block */
};

#ifdef __CUDACC__
template <int KEY_BYTES>
struct GsRankSmall : GsRankPolicy<512, 4, 8, 32 / KEY_BYTES> {
};
template <int KEY_BYTES>
struct GsRankMedium : GsRankPolicy<512, 8, 8, 32 / KEY_BYTES> {
};
template <int KEY_BYTES>
struct GsRankLarge : GsRankPolicy<512, 8, 4, 32 / KEY_BYTES> {
};
constexpr uint32_t GPUSORT_RANK_ITEMS = 3 << 12;  /* maximum on a device with this number */
constexpr int GPUSORT_RANK_MULTIPROCESSORS = 132; /* of multiprocessors */
#else
template <int KEY_BYTES>
struct GsRankSmall : GsRankPolicy<64, 2, 4, 1> {
};
template <int KEY_BYTES>
struct GsRankMedium : GsRankPolicy<64, 2, 2, 2> {
};
template <int KEY_BYTES>
struct GsRankLarge : GsRankPolicy<128, 4, 2, 1> {
};
constexpr uint32_t GPUSORT_RANK_ITEMS = 400;
constexpr int GPUSORT_RANK_MULTIPROCESSORS = 4;
#endif

template <int THREADS_, int ITEMS_, int BLOCKS_>
struct GsGridPolicy {
	static constexpr int THREADS = THREADS_; /* a multiple of GPUSORT_RADIX */
	static constexpr int ITEMS = ITEMS_;	 /* maximum per thread */
	static constexpr int BLOCKS = BLOCKS_;	 /* maximum, at most GPUSORT_GRID_BLOCKS */
};

/* Policies of the sort by one block, and of the sort by one launch of cooperating blocks. */
#ifdef __CUDACC__
template <int KEY_BYTES, int VALUE_BYTES>
struct GsBlockSortTuning {
	static constexpr int THREADS = 512;
	static constexpr int ITEMS = 8;
};
template <int KEY_BYTES, int VALUE_BYTES>
struct GsGridSortTuning : GsGridPolicy<1024, 4, 64> {
};
constexpr uint32_t GPUSORT_BLOCK_ITEMS = 4096; /* larger inputs are sorted by a grid */
template <int KEY_BYTES, int VALUE_BYTES>	   /* larger inputs are sorted by Onesweep */
constexpr uint32_t GPUSORT_GRID_ITEMS = KEY_BYTES + VALUE_BYTES == 4 ? 1 << 18 : 3 << 16;
constexpr uint32_t GPUSORT_GRID_BLOCKS = 64;
#else
template <int KEY_BYTES, int VALUE_BYTES>
struct GsBlockSortTuning {
	static constexpr int THREADS = 256;
	static constexpr int ITEMS = 3;
};
template <int KEY_BYTES, int VALUE_BYTES>
struct GsGridSortTuning : GsGridPolicy<512, 2, 4> {
};
constexpr uint32_t GPUSORT_BLOCK_ITEMS = 600;
template <int KEY_BYTES, int VALUE_BYTES>
constexpr uint32_t GPUSORT_GRID_ITEMS = 1500;
constexpr uint32_t GPUSORT_GRID_BLOCKS = 5; /* one is unused, to test its words */
#endif
constexpr uint32_t GPUSORT_WARP_ITEMS = 32;

/*
 * Polls of a look-back before it counts the missing tile itself.  A poll takes about a
 * microsecond.
 */
constexpr uint32_t GPUSORT_FALLBACK_POLLS = 1 << 16;

#endif /* GPUSORT_TUNING_CUH */
