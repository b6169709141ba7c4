/*
 * tile_rank.cuh
 *		Ranks the keys of a tile by one digit: a stable multisplit within a block.
 *
 * A tile consists of the keys that one block holds in registers, ITEMS per thread.  Each warp
 * owns a contiguous part of the tile (warp-striped arrangement): item i of a lane is the
 * lane-th key of the i-th group of 32 in that part.  The order of the input is therefore the
 * order of (warp, item, lane).
 *
 * Ranking has two steps.  First, each warp counts its digits in its own row of bins in shared
 * memory.  The bins are then turned into the position of the warp's first key with each digit.
 * In the second step each warp goes through its items again: lanes with the same digit find
 * each other by ballots, and the highest of them advances the bin for all.  The counts of the
 * tile are known before the second step, which is the longer one, so other tiles need not wait
 * for it.
 */
#ifndef GPUSORT_TILE_RANK_CUH
#define GPUSORT_TILE_RANK_CUH

#include "keys.cuh"

constexpr int GPUSORT_RADIX_WARPS = GPUSORT_RADIX / 32;

/*
 * Returns the mask of lanes whose digit equals this lane's; offset is four times the digit.
 * LEAN: see gpusort_peers_bit_lean().
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
 * Returns the position of this lane's item, and advances the bin at offset by the number of
 * items that take positions from it.  All lanes of the warp must call it together.  No other
 * warp uses these bins.
 */
template <bool LEAN = false>
__device__ __forceinline__ uint32_t gpusort_rank_item(uint32_t offset, uint32_t *bins)
{
	uint32_t peers = gpusort_match_digit<LEAN>(offset);
	uint32_t before = peers & gpusort_lanes_below();
	if (GPUSORT_BUG(GPUSORT_BUG_LANE_ORDER))
		before = peers & gpusort_lanes_above();
	uint32_t *bin = &gpusort_at(bins, offset);
	__syncwarp(); /* orders the previous item's store to the bin before this load */
	uint32_t position = *bin + __popc(before);
	__syncwarp(); /* all lanes must have read before one stores */
	if (!(peers & gpusort_lanes_above()))
		*bin = position + 1;
	return position;
}

/* Computes the inclusive sum over the lanes of a warp. */
__device__ __forceinline__ uint32_t gpusort_warp_inclusive_sum(uint32_t value)
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
 * Computes the exclusive sum over the first GPUSORT_RADIX threads of a block, one value each.
 * All threads of the block must call it.  warp_sums has GPUSORT_RADIX_WARPS words of shared
 * memory.  The function contains one barrier but does not end with one: the caller needs a
 * barrier before warp_sums is used again.
 */
__device__ __forceinline__ uint32_t gpusort_radix_exclusive_sum(uint32_t value,
																uint32_t *warp_sums)
{
	unsigned warp = threadIdx.x / 32;
	uint32_t inclusive = 0;
	if (warp < GPUSORT_RADIX_WARPS) {
		inclusive = gpusort_warp_inclusive_sum(value);
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

/*
 * Returns the tile's count of digit d, from the bins of all warps.  Must be called by thread d
 * < GPUSORT_RADIX.
 */
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
 * Turns the bins of digit d from each warp's count into the position of the warp's first key
 * with that digit.  first is the position of the tile's first key with it.  Must be called by
 * thread d.
 */
template <int WARPS>
__device__ __forceinline__ void gpusort_scan_bins(uint32_t (*bins)[GPUSORT_RADIX],
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
