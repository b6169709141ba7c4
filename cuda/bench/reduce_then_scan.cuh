/*
 * reduce_then_scan.cuh
 *		A radix sort by reduce-then-scan, for comparison with onesweep.
 *
 * The algorithm is that of Merrill and Grimshaw, "Revisiting Sorting for GPGPU Stream
 * Architectures" (2010).  For each digit, an upsweep counts the digits of each block's part of
 * the input.  A scan turns the counts of all blocks into positions.  A downsweep reads the
 * input again and scatters it.  This takes about three memory operations per item and digit;
 * onesweep needs two.  Ranking, reordering in shared memory and tile sizes are those of the
 * sweep, so that only the algorithms differ.
 */
#ifndef GPUSORT_REDUCE_THEN_SCAN_CUH
#define GPUSORT_REDUCE_THEN_SCAN_CUH

#include "tile_rank.cuh"
#include "tuning.cuh"

constexpr int BENCH_SCAN_THREADS = 256;

template <class Key, class Value>
struct BenchScanArgs {
	typename GsIntegerOrder<Key>::DigitExtractor digit_of;
	const Key *keys_in;
	Key *keys_out;
	const Value *values_in;
	Value *values_out;
	uint32_t *counts; /* [digit][block] */
	uint32_t *totals; /* [digit] */
	uint64_t n;
	uint64_t block_items; /* a multiple of the tile */
};

template <class Key, class Value, int BITS>
__global__ void __launch_bounds__(BENCH_SCAN_THREADS)
	bench_upsweep_kernel(BenchScanArgs<Key, Value> args)
{
	__shared__ uint32_t counts[BENCH_SCAN_THREADS / 32][GPUSORT_RADIX];
	uint32_t *mine = counts[threadIdx.x / 32];
	gpusort_clear_bins(mine);
	uint64_t first = blockIdx.x * args.block_items;
	uint64_t end = first + args.block_items < args.n ? first + args.block_items : args.n;
	constexpr int UNROLL = 8;
	uint64_t i = first + threadIdx.x;
	for (; i + (UNROLL - 1) * BENCH_SCAN_THREADS < end; i += UNROLL * BENCH_SCAN_THREADS) {
		Key keys[UNROLL];
		GPUSORT_UNROLL
		for (int k = 0; k < UNROLL; k++)
			keys[k] = args.keys_in[i + k * BENCH_SCAN_THREADS];
		GPUSORT_UNROLL
		for (int k = 0; k < UNROLL; k++)
			atomicAdd(&gpusort_at(mine, args.digit_of(keys[k])), 1u);
	}
	for (; i < end; i += BENCH_SCAN_THREADS)
		atomicAdd(&gpusort_at(mine, args.digit_of(args.keys_in[i])), 1u);
	__syncthreads();
	if (threadIdx.x < 1 << BITS)
		args.counts[(size_t)threadIdx.x * gridDim.x + blockIdx.x] =
			gpusort_sum_bins<BENCH_SCAN_THREADS / 32>(counts, threadIdx.x);
}

/* Exclusive sums of the counts of digit d in place, and their total.  Block d does this. */
static __global__ void __launch_bounds__(GPUSORT_RADIX)
	bench_scan_kernel(uint32_t *counts, uint32_t *totals, uint32_t blocks)
{
	__shared__ uint32_t warp_sums[GPUSORT_RADIX_WARPS];
	__shared__ uint32_t total;
	uint32_t before = 0;
	counts += (size_t)blockIdx.x * blocks;
	for (uint32_t base = 0; base < blocks; base += GPUSORT_RADIX) {
		uint32_t i = base + threadIdx.x;
		uint32_t value = i < blocks ? counts[i] : 0;
		uint32_t sum = gpusort_radix_exclusive_sum(value, warp_sums);
		if (threadIdx.x == GPUSORT_RADIX - 1)
			total = sum + value;
		if (i < blocks)
			counts[i] = before + sum;
		__syncthreads();
		before += total;
		__syncthreads();
	}
	if (threadIdx.x == 0)
		totals[blockIdx.x] = before;
}

template <class Key, class Value, int BITS, class Policy>
struct BenchDownsweep {
	static constexpr int THREADS = Policy::THREADS;
	static constexpr int ITEMS = Policy::ITEMS;
	static constexpr int WARPS = THREADS / 32;
	static constexpr int TILE = THREADS * ITEMS;
	static constexpr bool PAIRS = GPUSORT_HAS_VALUE<Value>;

	struct Shared {
		Key keys[TILE];
		Value values[PAIRS ? TILE : 1];
		uint32_t bins[WARPS][GPUSORT_RADIX];
		uint32_t base[GPUSORT_RADIX];
		uint32_t warp_sums[GPUSORT_RADIX_WARPS];
	};
};

template <class Key, class Value, int BITS, class Policy>
__global__ void __launch_bounds__(Policy::THREADS, Policy::BLOCKS)
	bench_downsweep_kernel(BenchScanArgs<Key, Value> args)
{
	typedef BenchDownsweep<Key, Value, BITS, Policy> Down;
	GPUSORT_SHARED(typename Down::Shared, shared);
	constexpr int ITEMS = Down::ITEMS;
	unsigned thread = threadIdx.x, warp = thread / 32;
	uint64_t first = blockIdx.x * args.block_items;
	uint64_t end = first + args.block_items < args.n ? first + args.block_items : args.n;
	/* Position of the block's next key whose digit is `thread`. */
	bool digit = thread < 1 << BITS;
	uint32_t next =
		gpusort_radix_exclusive_sum(digit ? args.totals[thread] : 0, shared.warp_sums);
	if (digit)
		next += args.counts[(size_t)thread * gridDim.x + blockIdx.x];
	__syncthreads();

	for (uint64_t tile = first; tile < end; tile += Down::TILE) {
		uint32_t items = end - tile < Down::TILE ? (uint32_t)(end - tile) : Down::TILE;
		uint32_t index = warp * (32 * ITEMS) + gpusort_lane();
		Key keys[ITEMS];
		uint32_t slots[ITEMS];
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			keys[i] = index + i * 32 < items ? args.keys_in[tile + index + i * 32] : ~(Key)0;
		gpusort_clear_bins(shared.bins[warp]);
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			atomicAdd(&gpusort_at(shared.bins[warp], args.digit_of(keys[i])), 1u);
		__syncthreads();
		uint32_t count =
			thread < GPUSORT_RADIX ? gpusort_sum_bins<Down::WARPS>(shared.bins, thread) : 0;
		uint32_t slot = gpusort_radix_exclusive_sum(count, shared.warp_sums);
		if (thread < GPUSORT_RADIX) {
			gpusort_scan_bins<Down::WARPS>(shared.bins, thread, slot);
			shared.base[thread] = next - slot;
			next += count; /* only the block's last tile has padding */
		}
		__syncthreads();
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++) {
			slots[i] = gpusort_rank_item(args.digit_of(keys[i]), shared.bins[warp]);
			shared.keys[slots[i]] = keys[i];
		}
		if constexpr (Down::PAIRS) {
			GPUSORT_UNROLL
			for (int i = 0; i < ITEMS; i++)
				if (index + i * 32 < items)
					shared.values[slots[i]] = args.values_in[tile + index + i * 32];
		}
		__syncthreads();
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++) {
			uint32_t s = thread + i * Down::THREADS;
			if (s < items) {
				Key key = shared.keys[s];
				uint32_t position = gpusort_at(shared.base, args.digit_of(key)) + s;
				args.keys_out[position] = key;
				if constexpr (Down::PAIRS)
					args.values_out[position] = shared.values[s];
			}
		}
		__syncthreads();
	}
}

/*
 * Sorts n < 2^32 items.  workspace must have room for a copy of the keys and values, and for
 * the counts.
 */
template <class Key, class Value, int BITS>
cudaError_t bench_reduce_then_scan_sort(const Key *keys_in, Key *keys_out,
										const Value *values_in, Value *values_out, uint64_t n,
										int multiprocessors, unsigned char *workspace,
										cudaStream_t stream)
{
	typedef GsSweepPolicy<256, (sizeof(Key) + GPUSORT_VALUE_BYTES<Value> > 8 ? 12 : 20), 3, 1,
						  false>
		Policy;
	typedef BenchDownsweep<Key, Value, BITS, Policy> Down;
	constexpr int PASSES =
		8 * sizeof(Key) / BITS; /* even, so that the last pass writes to out */
	unsigned blocks = (unsigned)multiprocessors * Policy::BLOCKS;
	uint64_t tiles = (n + Down::TILE - 1) / Down::TILE;
	uint64_t block_items = (tiles + blocks - 1) / blocks * Down::TILE;
	Key *keys_tmp = (Key *)workspace;
	Value *values_tmp = (Value *)(workspace + (n * sizeof(Key) + 255) / 256 * 256);
	uint32_t *counts = (uint32_t *)((unsigned char *)values_tmp +
									(n * GPUSORT_VALUE_BYTES<Value> + 255) / 256 * 256);
	GsIntegerOrder<Key> order = {0};
	for (int pass = 0; pass < PASSES; pass++) {
		BenchScanArgs<Key, Value> args = {};
		args.digit_of = order.extractor({(uint32_t)(pass * BITS), BITS});
		args.keys_in = pass == 0 ? keys_in : pass % 2 ? keys_tmp : keys_out;
		args.values_in = pass == 0 ? values_in : pass % 2 ? values_tmp : values_out;
		args.keys_out = pass % 2 ? keys_out : keys_tmp;
		args.values_out = pass % 2 ? values_out : values_tmp;
		args.totals = counts;
		args.counts = counts + GPUSORT_RADIX;
		args.n = n;
		args.block_items = block_items;
		GsLaunch up = {blocks, BENCH_SCAN_THREADS, 0, false, stream};
		GsLaunch scan = {1 << BITS, GPUSORT_RADIX, 0, false, stream};
		GsLaunch down = {blocks, Policy::THREADS, sizeof(typename Down::Shared), false, stream};
		cudaError_t error = gpusort_launch(up, bench_upsweep_kernel<Key, Value, BITS>, args);
		if (!error)
			error = gpusort_launch(scan, bench_scan_kernel, args.counts, args.totals, blocks);
		if (!error)
			error =
				gpusort_launch(down, bench_downsweep_kernel<Key, Value, BITS, Policy>, args);
		if (error)
			return error;
	}
	return cudaSuccess;
}

#endif /* GPUSORT_REDUCE_THEN_SCAN_CUH */
