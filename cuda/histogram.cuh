/*
 * histogram.cuh
 *		Histograms of all digits in one pass over the keys, and the plan of the sweeps.
 *
 * A fixed number of blocks strides over the keys and counts in shared memory.  The block that
 * finishes last computes the prefix sums and writes GsControl.bases and .passes.  A sweep is
 * skipped if all keys have the same digit; if the keys are already sorted, all sweeps are
 * skipped.  The device makes this plan itself, so that the host need not wait for the counts.
 *
 * Before this kernel, large inputs are copied up to the first descent, see sorted_copy.cuh.  If
 * the copy was complete, nothing is counted.
 */
#ifndef GPUSORT_HISTOGRAM_CUH
#define GPUSORT_HISTOGRAM_CUH

#include "control.cuh"
#include "tile_rank.cuh"
#include "tuning.cuh"

template <class Order>
struct GsHistogramArgs {
	Order order;
	typename Order::DigitExtractor digit_of[GPUSORT_MAX_PASSES];
	uint32_t passes;
	typename Order::Key key_mask;	 /* mask of the bits of an ordered key that are compared */
	const typename Order::Key *keys; /* aligned to the size of a key */
	uint64_t n;						 /* > 0 */
	GsControl *control;
	bool checked; /* gpusort_sorted_copy_kernel has run */
	bool clobber; /* sweeps alternate between in and out; there are no temporary arrays */
};

template <class Order>
struct GsHistogram {
	typedef typename Order::Key Key;
	typedef GsHistogramTuning Tuning;
	static constexpr int MAX_PASSES = 8 * sizeof(Key) / GPUSORT_RADIX_BITS;
	static constexpr int VECTOR = 16 / sizeof(Key);
	static constexpr uint64_t TILE = (uint64_t)Tuning::THREADS * Tuning::VECTORS * VECTOR;

	struct Shared {
		uint32_t counts[MAX_PASSES][GPUSORT_RADIX];
		uint32_t warp_sums[GPUSORT_RADIX_WARPS];
		uint32_t is_last;
	};

	const GsHistogramArgs<Order> &args;
	Shared &shared;
	bool checking; /* this warp has not found a descent yet */

	__device__ __forceinline__ GsHistogram(const GsHistogramArgs<Order> &a, Shared &s)
		: args(a), shared(s), checking(!a.checked)
	{
	}

	__device__ __forceinline__ void count(Key key)
	{
		GPUSORT_UNROLL
		for (int i = 0; i < MAX_PASSES; i++)
			if (i < (int)args.passes)
				atomicAdd(&gpusort_at(shared.counts[i], args.digit_of[i](key)), 1u);
	}

	/* Returns the number of items before the first 16-byte boundary. */
	__device__ __forceinline__ uint64_t first_aligned() const
	{
		uint64_t before = (16 - (uintptr_t)args.keys % 16) % 16 / sizeof(Key);
		return before < args.n ? before : args.n;
	}

	__device__ __forceinline__ bool out_of_order(Key first, Key second) const
	{
		return (args.order.ordered(first) & args.key_mask) >
			   (args.order.ordered(second) & args.key_mask);
	}

	struct alignas(16) Keys {
		Key key[VECTOR];
	};

	/* Loads TILE keys, aligned to 16 bytes; none of them may be beyond the end. */
	__device__ __forceinline__ void load_tile(Keys (&vectors)[Tuning::VECTORS], const Key *keys)
	{
		GPUSORT_UNROLL
		for (int v = 0; v < Tuning::VECTORS; v++)
			vectors[v] = ((const Keys *)keys)[v * Tuning::THREADS + threadIdx.x];
	}

	__device__ __forceinline__ void check_tile(const Keys (&vectors)[Tuning::VECTORS],
											   const Key *keys, bool has_next)
	{
		bool bad = false;
		GPUSORT_UNROLL
		for (int v = 0; v < Tuning::VECTORS; v++) {
			int at = (v * Tuning::THREADS + threadIdx.x) * VECTOR;
			GPUSORT_UNROLL
			for (int k = 0; k + 1 < VECTOR; k++)
				bad |= out_of_order(vectors[v].key[k], vectors[v].key[k + 1]);
			/*
			 * The next lane has the successor of this lane's last key.  Lane 31 reads it from
			 * memory.
			 */
			Key next = __shfl_down_sync(~0u, vectors[v].key[0], 1);
			bool last = gpusort_lane() == 31;
			if (last && (has_next || at + VECTOR < (int)TILE))
				next = keys[at + VECTOR];
			else if (last)
				next = vectors[v].key[VECTOR - 1];
			bad |= out_of_order(vectors[v].key[VECTOR - 1], next);
		}
		report_descent(bad);
	}

	__device__ __forceinline__ void count_tile(const Key *keys, bool has_next)
	{
		Keys vectors[Tuning::VECTORS];
		load_tile(vectors, keys);
		if (checking)
			check_tile(vectors, keys, has_next);
		GPUSORT_UNROLL
		for (int v = 0; v < Tuning::VECTORS; v++)
			GPUSORT_UNROLL
		for (int k = 0; k < VECTOR; k++)
			count(vectors[v].key[k]);
	}

	/* Counts n keys, one at a time.  has_next: there is a key after them. */
	__device__ __forceinline__ void count_partial_tile(const Key *keys, uint32_t n,
													   bool has_next)
	{
		bool bad = false;
		GPUSORT_NO_UNROLL
		for (uint32_t i = threadIdx.x; i < n; i += Tuning::THREADS) {
			Key key = keys[i];
			if (i + 1 < n || has_next)
				bad |= out_of_order(key, keys[i + 1]);
			count(key);
		}
		report_descent(bad);
	}

	/* Reports a descent to all blocks.  A warp that has found one stops checking. */
	__device__ __forceinline__ void report_descent(bool bad)
	{
		if (checking && __ballot_sync(~0u, bad)) {
			checking = false;
			if (gpusort_lane() == 0)
				atomicExch(&args.control->unsorted, 1u);
		}
	}

	__device__ __forceinline__ void count_all()
	{
		for (unsigned i = threadIdx.x; i < MAX_PASSES * GPUSORT_RADIX; i += Tuning::THREADS)
			(&shared.counts[0][0])[i] = 0;
		__syncthreads();

		/*
		 * Block 0 also counts the keys before the first 16-byte boundary, and the last block
		 * those after the last full tile.
		 */
		uint64_t before = first_aligned();
		uint64_t tiles = (args.n - before) / TILE;
		const Key *aligned = args.keys + before;
		if (blockIdx.x == 0)
			count_partial_tile(args.keys, (uint32_t)before, before < args.n);
		for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
			count_tile(aligned + tile * TILE, before + (tile + 1) * TILE < args.n);
		if (blockIdx.x == gridDim.x - 1)
			count_partial_tile(aligned + tiles * TILE,
							   (uint32_t)(args.n - before - tiles * TILE), false);
		__syncthreads();

		for (unsigned i = threadIdx.x; i < args.passes * GPUSORT_RADIX; i += Tuning::THREADS) {
			uint32_t count = (&shared.counts[0][0])[i];
			if (count)
				atomicAdd(&args.control->counts[0][0] + i, (unsigned long long)count);
		}
	}

	/* Returns true in the block that finishes last.  It sees the counts of all other blocks. */
	__device__ __forceinline__ bool is_last_block()
	{
		/* Orders this thread's additions to the counts before the block's arrival below. */
		__threadfence();
		__syncthreads();
		if (threadIdx.x == 0)
			shared.is_last = atomicAdd(&args.control->blocks_done, 1u) == gridDim.x - 1;
		__syncthreads();
		/* Orders the arrivals of the other blocks before the reads that follow. */
		__threadfence();
		return shared.is_last;
	}

	/* Computes the exclusive sums of the counts of a pass.  Returns whether its digit varies.
	 */
	__device__ __forceinline__ bool scan_counts(uint32_t pass)
	{
		uint64_t count = 0;
		if (threadIdx.x < GPUSORT_RADIX)
			count = *(volatile unsigned long long *)&args.control->counts[pass][threadIdx.x];
		bool constant = count == args.n;
		if (GPUSORT_BUG(GPUSORT_BUG_SKIP_DIGIT))
			constant = count > args.n / 2;
		/*
		 * The 64-bit sum is computed as two 32-bit sums of halves.  At most 2^8 counts of 24
		 * bits each fit in 32 bits.
		 */
		uint32_t low =
			gpusort_radix_exclusive_sum((uint32_t)(count & 0xFFFFFF), shared.warp_sums);
		__syncthreads();
		uint32_t high = gpusort_radix_exclusive_sum((uint32_t)(count >> 24), shared.warp_sums);
		if (threadIdx.x < GPUSORT_RADIX)
			args.control->bases[pass][0][threadIdx.x] = ((uint64_t)high << 24) + low;
		return !__syncthreads_or(constant);
	}

	__device__ __forceinline__ void plan()
	{
		GsControl *control = args.control;
		bool sorted = *(volatile uint32_t *)&control->unsorted == 0;
		bool copied = sorted && args.checked;
		uint32_t active_passes = 0;
		for (uint32_t i = 0; i < args.passes; i++)
			if (scan_counts(i) && !sorted)
				active_passes |= 1u << i;
		if (threadIdx.x != 0)
			return;

		uint32_t active = __popc(active_passes);
		uint32_t source = GPUSORT_IN;
		uint32_t left = active;
		for (uint32_t i = 0; i < args.passes; i++) {
			GsPass pass = {};
			if (active_passes >> i & 1) {
				pass.active = 1;
				pass.first = left == active;
				left--;
				pass.source = source;
				if (args.clobber)
					source = source == GPUSORT_IN ? GPUSORT_OUT : GPUSORT_IN;
				else
					source = left % 2 ? GPUSORT_TMP : GPUSORT_OUT;
				pass.target = source;
				pass.last = left == 0;
				pass.global = left % 2 ? GPUSORT_STATUS_GLOBAL_B : GPUSORT_STATUS_GLOBAL_A;
			}
			if (active == 0 && i == args.passes - 1) {
				pass.copy = !copied;
				pass.first = pass.last = 1;
				source = GPUSORT_OUT;
				pass.target = source;
			}
			control->passes[i] = pass;
		}
		control->report.passes = active;
		control->report.result = source;
	}
};

template <class Order>
__global__ void __launch_bounds__(GsHistogramTuning::THREADS,
								  GPUSORT_RESIDENT(GsHistogramTuning::THREADS,
												   GsHistogramTuning::BLOCKS))
	gpusort_histogram_kernel(GsHistogramArgs<Order> args)
{
	typedef GsHistogram<Order> Histogram;
	GPUSORT_SHARED(typename Histogram::Shared, shared);
	Histogram histogram(args, shared);
	/*
	 * If the sorted copy found no descent, the plan is to do nothing, and no counts are needed.
	 */
	bool sorted = args.checked && gpusort_flag_load(&args.control->unsorted) == 0;
	if (!sorted)
		histogram.count_all();
	if (histogram.is_last_block())
		histogram.plan();
}

#endif /* GPUSORT_HISTOGRAM_CUH */
