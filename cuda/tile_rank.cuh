/*
 * tile_rank.cuh
 *		Ranks of the keys of a tile by one digit: the stable multi-split inside a block.
 *
 * A tile is the keys that one block holds in registers, ITEMS per thread.  Each warp owns a
 * contiguous part of it, and item i of a lane is the lane-th key of the i-th group of 32 of
 * that part, so that (warp, item, lane) is the order of arrival.
 *
 * The work has two steps.  First every warp counts its digits in a row of bins of its own in
 * shared memory.  Then, with the bins holding the position of the warp's first key of each
 * digit, every warp goes through its items once more: the lanes that hold the same digit find
 * each other by ballots, and the last of them takes positions for all.  Since the counts of
 * the tile are known before the second, longer, step, other tiles need not wait for it.
 */
#ifndef GPUSORT_TILE_RANK_CUH
#define GPUSORT_TILE_RANK_CUH

#include "keys.cuh"

constexpr int GPUSORT_RADIX_WARPS = GPUSORT_RADIX / 32;

/*
 * The lanes whose digit equals this one's; offset is the digit times four.  LEAN: see
 * gpusort_peers_bit_lean().
 */
template <bool LEAN>
__device__ __forceinline__ uint32_t gpusort_match_digit(uint32_t offset)
{
	if (LEAN)
		return gpusort_peers_bit_lean<1 << 2>(offset) & gpusort_peers_bit_lean<1 << 3>(offset) &
			   gpusort_peers_bit_lean<1 << 4>(offset) & gpusort_peers_bit_lean<1 << 5>(offset) &
			   gpusort_peers_bit_lean<1 << 6>(offset) & gpusort_peers_bit_lean<1 << 7>(offset) &
			   gpusort_peers_bit_lean<1 << 8>(offset) & gpusort_peers_bit_lean<1 << 9>(offset);
	return gpusort_peers_bit<1 << 2>(offset) & gpusort_peers_bit<1 << 3>(offset) &
		   gpusort_peers_bit<1 << 4>(offset) & gpusort_peers_bit<1 << 5>(offset) &
		   gpusort_peers_bit<1 << 6>(offset) & gpusort_peers_bit<1 << 7>(offset) &
		   gpusort_peers_bit<1 << 8>(offset) & gpusort_peers_bit<1 << 9>(offset);
}

/*
 * The position of this lane's item: the bin at offset counts up by the number of items taken.
 * All lanes of the warp call it together; bins belong to the warp alone.
 */
template <bool LEAN = false>
__device__ __forceinline__ uint32_t gpusort_take_position(uint32_t offset, uint32_t *bins)
{
	uint32_t peers = gpusort_match_digit<LEAN>(offset);
	uint32_t before = peers & gpusort_lanes_below();
	if (GPUSORT_BUG(GPUSORT_BUG_LANE_ORDER))
		before = peers & gpusort_lanes_above();
	uint32_t *bin = &gpusort_at(bins, offset);
	__syncwarp(); /* the stores for the item before come first */
	uint32_t position = *bin + __popc(before);
	__syncwarp(); /* all lanes have read before one stores */
	if (!(peers & gpusort_lanes_above()))
		*bin = position + 1;
	return position;
}

/* Inclusive sum over the lanes of a warp. */
__device__ __forceinline__ uint32_t gpusort_warp_sum(uint32_t value)
{
	GPUSORT_UNROLL
	for (int distance = 1; distance < 32; distance *= 2) {
		uint32_t other = __shfl_up_sync(~0u, value, distance);
		if ((int)gpusort_lane() >= distance)
			value += other;
	}
	return value;
}

/*
 * Exclusive sum over the first GPUSORT_RADIX threads of a block, one value each.  warp_sums has
 * GPUSORT_RADIX_WARPS words of shared memory.  All threads of the block call it; it contains
 * one barrier, and ends without one: the caller must have one before warp_sums is used again.
 */
__device__ __forceinline__ uint32_t gpusort_radix_exclusive_sum(uint32_t value,
																uint32_t *warp_sums)
{
	unsigned warp = threadIdx.x / 32;
	uint32_t inclusive = 0;
	if (warp < GPUSORT_RADIX_WARPS) {
		inclusive = gpusort_warp_sum(value);
		if (gpusort_lane() == 31)
			warp_sums[warp] = inclusive;
	}
	__syncthreads();
	uint32_t sum = inclusive - value;
	if (warp < GPUSORT_RADIX_WARPS) {
		GPUSORT_UNROLL
		for (unsigned i = 0; i < GPUSORT_RADIX_WARPS - 1; i++)
			if (i < warp)
				sum += warp_sums[i];
	}
	return sum;
}

/* Sets all bins of the calling warp to 0. */
__device__ __forceinline__ void gpusort_clear_bins(uint32_t *bins)
{
	GPUSORT_UNROLL
	for (int i = 0; i < GPUSORT_RADIX; i += 32)
		bins[i + gpusort_lane()] = 0;
	__syncwarp();
}

/* By thread d < GPUSORT_RADIX: the tile's count of digit d, from the bins of all warps. */
template <int WARPS>
__device__ __forceinline__ uint32_t gpusort_sum_bins(const uint32_t (*bins)[GPUSORT_RADIX],
													 unsigned digit)
{
	uint32_t sum = 0;
	GPUSORT_UNROLL
	for (int warp = 0; warp < WARPS; warp++)
		sum += bins[warp][digit];
	return sum;
}

/*
 * By thread d: turns the counts of digit d into the position of each warp's first key of that
 * digit, where first is the position of the tile's.
 */
template <int WARPS>
__device__ __forceinline__ void gpusort_place_bins(uint32_t (*bins)[GPUSORT_RADIX],
												   unsigned digit, uint32_t first)
{
	GPUSORT_UNROLL
	for (int warp = 0; warp < WARPS; warp++) {
		uint32_t count = bins[warp][digit];
		bins[warp][digit] = first;
		first += count;
	}
}

#endif /* GPUSORT_TILE_RANK_CUH */
