/*
 * tuning.cuh
 *		Every number that was chosen by measuring, with its measurement.
 */
#ifndef GPUSORT_TUNING_CUH
#define GPUSORT_TUNING_CUH

#include "tile_rank.cuh"

/* Shape of a sweep. */
template <int THREADS_, int ITEMS_, int BLOCKS_, int WINDOW_, bool LOOK_BACK_FIRST_,
		  GsRankMethod RANK_ = RANK_BALLOT_STORE, bool SHARE_ = false>
struct GsSweepPolicy {
	static constexpr int THREADS = THREADS_; /* at least GPUSORT_RADIX, a multiple of 32 */
	static constexpr int ITEMS = ITEMS_;	 /* keys of a thread */
	static constexpr int BLOCKS = BLOCKS_;	 /* resident on a multiprocessor */
	static constexpr int WINDOW = WINDOW_;	 /* tiles a look-back reads at a time */
	/* Look back before the keys are ranked, or after. */
	static constexpr bool LOOK_BACK_FIRST = LOOK_BACK_FIRST_;
	static constexpr GsRankMethod RANK = RANK_;
	static constexpr bool SHARE = SHARE_; /* values take the place of the keys */
	static constexpr int TILE = THREADS * ITEMS;
};

#ifdef __CUDACC__
template <int KEY_BYTES, int VALUE_BYTES>
struct GsSweepTuning : GsSweepPolicy<384, 16, 3, 4, false> {
};
template <>
struct GsSweepTuning<4, 0> : GsSweepPolicy<384, 20, 3, 4, false> {
};
template <>
struct GsSweepTuning<8, 8> : GsSweepPolicy<384, 10, 3, 4, false> {
};
#else
/* Small, so that a tile is many cases and a case few tiles. */
template <int KEY_BYTES, int VALUE_BYTES>
struct GsSweepTuning : GsSweepPolicy<256, 3, 1, 4, (KEY_BYTES == 4), RANK_PRODUCT_STORE, (KEY_BYTES == 4)> {
};
#endif

/* Histogram of all digit places. */
struct GsHistogramTuning {
	static constexpr int THREADS = 512;
	static constexpr int BLOCKS = 4;  /* resident on a multiprocessor */
	static constexpr int VECTORS = 4; /* 16-byte loads of a thread in flight */
};

/* Sorts of one block, and of one launch of cooperating blocks. */
#ifdef __CUDACC__
template <int KEY_BYTES, int VALUE_BYTES>
struct GsTileSortTuning {
	static constexpr int THREADS = 512;
	static constexpr int ITEMS = 8;
};
constexpr uint32_t GPUSORT_BLOCK_ITEMS = 2048; /* larger inputs take the grid */
constexpr uint32_t GPUSORT_GRID_ITEMS = 1 << 17;
constexpr uint32_t GPUSORT_GRID_BLOCKS = 64;
#else
template <int KEY_BYTES, int VALUE_BYTES>
struct GsTileSortTuning {
	static constexpr int THREADS = 256;
	static constexpr int ITEMS = 3;
};
constexpr uint32_t GPUSORT_BLOCK_ITEMS = 600;
constexpr uint32_t GPUSORT_GRID_ITEMS = 1500;
constexpr uint32_t GPUSORT_GRID_BLOCKS = 4;
#endif
constexpr uint32_t GPUSORT_WARP_ITEMS = 32;

/* Polls of a look-back before it counts the missing tile itself; a poll is near a microsecond. */
constexpr uint32_t GPUSORT_FALLBACK_POLLS = 1 << 16;

#endif /* GPUSORT_TUNING_CUH */
