/*
 * small_sort.cuh
 *		Sorts in one launch: by one warp, by one block, by a grid of cooperating blocks.
 *
 * At these sizes, launches take most of the time, and memory accesses little.  A warp sorts up
 * to 32 items with a bitonic network.  A block keeps its items in registers and orders them
 * digit by digit through shared memory.  In a grid, each block keeps a contiguous part of the
 * items.  For each digit the blocks exchange their counts, and move the items through device
 * memory that stays in the cache.  Digits that do not vary are skipped.  Sorts by ranks are in
 * rank_sort.cuh.
 */
#ifndef GPUSORT_SMALL_SORT_CUH
#define GPUSORT_SMALL_SORT_CUH

#include "tile_rank.cuh"
#include "tuning.cuh"

/*
 * Memory through which the blocks of a grid sort exchange counts.  A device has one, since it
 * runs one grid sort at a time; it is zeroed once when it is allocated.  All blocks read
 * arrived and epoch before they publish their first counts.  Both change only after all blocks
 * have published.
 */
struct GsGridExchange {
	uint32_t arrived; /* arrivals at grid barriers, of all launches together */
	uint32_t epoch;	  /* tag of this launch; its passes have the tags that follow */
	uint32_t unused[62];
	/*
	 * A tag above a count, so that blocks need no barrier to wait for counts.
	 *
	 * The first index is the parity of the pass.  A block may be one pass ahead of a block that
	 * still reads, but not two.  Each launch writes all words, also those that it
	 * does not read, so that no word has a tag from before the previous launch.
	 */
	alignas(16) uint32_t counts[2][GPUSORT_GRID_BLOCKS][GPUSORT_RADIX];
};

constexpr uint32_t GPUSORT_GRID_TAG_SHIFT = 16;
/* The tags of more than two launches must differ. */
static_assert(4 * (GPUSORT_MAX_PASSES + 1) < 1 << (32 - GPUSORT_GRID_TAG_SHIFT), "tags");

template <class Order, class Value>
struct GsSmallSortArgs {
	typedef typename Order::Key Key;
	Order order;
	typename Order::DigitExtractor digit_of[GPUSORT_MAX_PASSES];
	uint32_t passes;
	Key key_mask; /* mask of the bits of an ordered key that are compared */
	const Key *keys_in;
	Key *keys_out;			/* NULL: not wanted */
	const Value *values_in; /* NULL: row numbers */
	Value *values_out;
	uint32_t n;
	uint32_t items; /* per thread: ceil(n / (blocks * threads)); rank sort: keys per warp */
	/* Grid sorts only. */
	Key *keys_tmp;
	Value *values_tmp;
	GsGridExchange *exchange;
};

/* ---- one warp ---- */

template <class Order, class Value>
__global__ void gpusort_warp_sort_kernel(GsSmallSortArgs<Order, Value> args)
{
	typedef typename Order::Key Key;
	unsigned lane = threadIdx.x;

	/* Sorts pairs (ordered key, lane), which are unique.  Lanes without an item come last. */
	bool present = lane < args.n;
	Key key = present ? args.keys_in[lane] : 0;
	Key ordered = args.order.ordered(key) & args.key_mask;
	uint32_t source = lane | (present ? 0 : 32);
	for (unsigned size = 2; size <= 32; size *= 2)
		for (unsigned stride = size / 2; stride > 0; stride /= 2) {
			Key other_ordered = __shfl_xor_sync(~0u, ordered, stride);
			uint32_t other_source = __shfl_xor_sync(~0u, source, stride);
			bool absent = source & 32, other_absent = other_source & 32;
			bool less = other_absent != absent	   ? absent
						: other_ordered != ordered ? other_ordered < ordered
												   : other_source < source;
			bool lower = (lane & stride) == 0, ascending = (lane & size) == 0;
			if ((lower == ascending) == less) {
				ordered = other_ordered;
				source = other_source;
			}
		}

	Key sorted_key = __shfl_sync(~0u, key, source & 31);
	if (present && args.keys_out)
		args.keys_out[lane] = sorted_key;
	if constexpr (GPUSORT_HAS_VALUE<Value>) {
		if (present)
			args.values_out[lane] =
				args.values_in ? args.values_in[source & 31] : (Value)(source & 31);
	}
}

/* ---- one block, or a grid ---- */

template <class Order, class Value, class Tuning, bool GRID>
struct GsTileSort {
	typedef typename Order::Key Key;
	typedef GsSmallSortArgs<Order, Value> Args;
	static constexpr int THREADS = Tuning::THREADS;
	static constexpr int ITEMS = Tuning::ITEMS;
	static constexpr int WARPS = THREADS / 32;
	static constexpr int TILE = THREADS * ITEMS;
	static constexpr bool PAIRS = GPUSORT_HAS_VALUE<Value>;

	/*
	 * Number of groups of threads in a grid sort: the threads of a group add up the counts of
	 * some blocks, four digits each.
	 */
	static constexpr unsigned GROUPS = 4 * THREADS / GPUSORT_RADIX;

	static_assert(THREADS % GPUSORT_RADIX == 0, "a thread or more per digit");

	struct Shared {
		Key keys[GRID ? 1 : TILE];
		Value values[PAIRS && !GRID ? TILE : 1];
		uint32_t bins[WARPS][GPUSORT_RADIX];
		/*
		 * Sums over the blocks of a group: all blocks in the low half, preceding blocks in the
		 * high half.
		 */
		uint32_t sums[GRID ? GROUPS : 1][GPUSORT_RADIX];
		uint32_t warp_sums[GPUSORT_RADIX_WARPS];
		uint32_t arrived; /* value of exchange->arrived when the launch began */
		uint32_t epoch;
	};
	static_assert(TILE < 1 << GPUSORT_GRID_TAG_SHIFT, "counts leave room for a tag");

	const Args &args;
	Shared &shared;
	const unsigned thread;
	const unsigned warp;
	const int items;	  /* per thread in this launch */
	uint32_t barriers;	  /* grid barriers passed */
	uint32_t block_first; /* index of the block's first item */
	uint32_t block_items; /* may be 0 in the last blocks */
	Key keys[ITEMS];
	Value values[PAIRS ? ITEMS : 1];

	__device__ __forceinline__ GsTileSort(const Args &a, Shared &s)
		: args(a), shared(s), thread(threadIdx.x), warp(threadIdx.x / 32), items((int)a.items),
		  barriers(0)
	{
		uint32_t tile = (uint32_t)THREADS * items;
		block_first = GRID ? blockIdx.x * tile : 0;
		if (block_first > args.n)
			block_first = args.n;
		block_items = args.n - block_first < tile ? args.n - block_first : tile;
	}

	__device__ __forceinline__ uint32_t index_of(int i) const
	{
		return warp * (32 * items) + i * 32 + gpusort_lane();
	}

	__device__ __forceinline__ bool is_item(int i) const
	{
		return i < items && index_of(i) < block_items;
	}

	__device__ __forceinline__ void load()
	{
		if (GRID && thread == 0) {
			shared.arrived = gpusort_flag_load(&args.exchange->arrived);
			shared.epoch = gpusort_flag_load(&args.exchange->epoch);
		}
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			if (is_item(i)) {
				uint32_t item = block_first + index_of(i);
				keys[i] = args.keys_in[item];
				if constexpr (PAIRS)
					values[i] = args.values_in ? args.values_in[item] : (Value)item;
			}
	}

	__device__ __forceinline__ void write_item(uint32_t slot, int i, bool with_keys)
	{
		if (with_keys)
			args.keys_out[slot] = keys[i];
		if constexpr (PAIRS)
			args.values_out[slot] = values[i];
	}

	/*
	 * Returns four times the digit of item i.  Padding has the greatest digit and comes last,
	 * so its slots are after those of all keys.
	 */
	__device__ __forceinline__ uint32_t
	digit_at(int i, const typename Order::DigitExtractor &digit_of) const
	{
		return index_of(i) < block_items ? digit_of(keys[i]) : digit_of.mask;
	}

	/*
	 * Waits until all blocks have arrived.  What they wrote before the barrier is visible after
	 * it.
	 */
	__device__ __forceinline__ void grid_barrier()
	{
		__syncthreads();
		barriers++;
		if (thread == 0) {
			/* Release: orders the block's writes before its arrival. */
			gpusort_flag_add_release(&args.exchange->arrived, 1);
			uint32_t target = shared.arrived + barriers * gridDim.x;
			/* Acquire: orders the arrivals before the reads of this block that follow. */
			if (!GPUSORT_BUG(GPUSORT_BUG_GRID_BARRIER)) {
				while ((int32_t)(gpusort_flag_load_acquire(&args.exchange->arrived) - target) <
					   0)
					;
			}
		}
		__syncthreads();
	}

	/*
	 * Publishes the count of digit d in the block for this pass, with its tag.  Must be called
	 * by thread d.
	 */
	__device__ __forceinline__ void publish(uint32_t pass, uint32_t tag, uint32_t count)
	{
		uint32_t(*all)[GPUSORT_RADIX] = args.exchange->counts[pass % 2];
		gpusort_flag_store(&all[blockIdx.x][thread], tag << GPUSORT_GRID_TAG_SHIFT | count);
		if (pass > 0)
			return;
		/* Also write the words that no block reads in this launch. */
		uint32_t unread = shared.epoch << GPUSORT_GRID_TAG_SHIFT;
		if (args.passes == 1)
			gpusort_flag_store(&args.exchange->counts[1][blockIdx.x][thread], unread);
		for (unsigned b = blockIdx.x + gridDim.x; b < GPUSORT_GRID_BLOCKS; b += gridDim.x) {
			gpusort_flag_store(&args.exchange->counts[0][b][thread], unread);
			gpusort_flag_store(&args.exchange->counts[1][b][thread], unread);
		}
	}

	/*
	 * Adds up the counts of all blocks.  Each group of GPUSORT_RADIX / 4 threads sums some of
	 * the blocks, four digits per thread.  *count becomes the total, and *before the sum over
	 * the preceding blocks.
	 */
	__device__ __forceinline__ void exchange_counts(uint32_t pass, uint32_t *count,
													uint32_t *before)
	{
		constexpr uint32_t LOW = (1u << GPUSORT_GRID_TAG_SHIFT) - 1;
		uint32_t(*all)[GPUSORT_RADIX] = args.exchange->counts[pass % 2];
		unsigned digit = thread % (GPUSORT_RADIX / 4) * 4, group = thread / (GPUSORT_RADIX / 4);
		uint32_t tag = (shared.epoch + pass + 1) & LOW;
		if (thread < GPUSORT_RADIX)
			publish(pass, tag, *count);
		uint32_t sums[4] = {};
		constexpr unsigned BATCH = 4; /* loads in flight */
		GPUSORT_NO_UNROLL
		for (unsigned first = group; first < gridDim.x; first += BATCH * GROUPS) {
			GsFourFlags words[BATCH];
			GPUSORT_UNROLL
			for (unsigned i = 0; i < BATCH; i++)
				if (first + i * GROUPS < gridDim.x)
					words[i] = gpusort_flags_load(&all[first + i * GROUPS][digit]);
			GPUSORT_UNROLL
			for (unsigned i = 0; i < BATCH; i++) {
				unsigned block = first + i * GROUPS;
				if (block >= gridDim.x)
					continue;
				while (!all_have_tag(words[i], tag))
					words[i] = gpusort_flags_load(&all[block][digit]);
				GPUSORT_UNROLL
				for (int d = 0; d < 4; d++) {
					uint32_t some = words[i].flag[d] & LOW;
					sums[d] += some | (block < blockIdx.x ? some << GPUSORT_GRID_TAG_SHIFT : 0);
				}
			}
		}
		GPUSORT_UNROLL
		for (int d = 0; d < 4; d++)
			shared.sums[group][digit + d] = sums[d];
		__syncthreads();
		/* All blocks have published, so all of them have read the epoch. */
		if (pass == 0 && blockIdx.x == 0 && thread == 0)
			gpusort_flag_store(&args.exchange->epoch, shared.epoch + GPUSORT_MAX_PASSES + 1);
		*count = *before = 0;
		if (thread < GPUSORT_RADIX) {
			GPUSORT_UNROLL
			for (unsigned g = 0; g < GROUPS; g++) {
				*count += shared.sums[g][thread] & LOW;
				*before += shared.sums[g][thread] >> GPUSORT_GRID_TAG_SHIFT;
			}
		}
	}

	__device__ __forceinline__ static bool all_have_tag(const GsFourFlags &words, uint32_t tag)
	{
		bool all = true;
		GPUSORT_UNROLL
		for (int d = 0; d < 4; d++)
			all &= words.flag[d] >> GPUSORT_GRID_TAG_SHIFT == tag;
		return all || GPUSORT_BUG(GPUSORT_BUG_GRID_TAG);
	}

	/*
	 * Moves the items to their slots by one digit.  Returns false if the digit does not vary.
	 */
	__device__ __forceinline__ bool run_pass(uint32_t pass, bool last)
	{
		const typename Order::DigitExtractor digit_of = args.digit_of[pass];
		uint32_t ranks[ITEMS] = {}; /* among the warp's items with equal digits */

		gpusort_clear_bins(shared.bins[warp]);
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			if (i < items)
				ranks[i] = gpusort_rank_item<GRID>(digit_at(i, digit_of), shared.bins[warp]);
		__syncthreads();

		uint32_t count = 0, before = 0;
		if (thread < GPUSORT_RADIX) {
			count = gpusort_sum_bins<WARPS>(shared.bins, thread);
			if (thread * 4 == digit_of.mask) /* padding has that digit */
				count -= (uint32_t)(THREADS * items) - block_items;
		}
		if constexpr (GRID)
			exchange_counts(pass, &count, &before);
		if (__syncthreads_or(thread < GPUSORT_RADIX && count == args.n))
			return false;
		uint32_t smaller = gpusort_radix_exclusive_sum(count, shared.warp_sums);
		if (thread < GPUSORT_RADIX)
			gpusort_scan_bins<WARPS>(shared.bins, thread, smaller + before);
		__syncthreads();

		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			if (is_item(i))
				scatter_item(i, ranks[i] + gpusort_at(shared.bins[warp], digit_of(keys[i])),
							 last);
		return true;
	}

	__device__ __forceinline__ void scatter_item(int i, uint32_t slot, bool last)
	{
		if (last) {
			write_item(slot, i, args.keys_out != nullptr);
		} else if constexpr (GRID) {
			args.keys_tmp[slot] = keys[i];
			if constexpr (PAIRS)
				args.values_tmp[slot] = values[i];
		} else {
			shared.keys[slot] = keys[i];
			if constexpr (PAIRS)
				shared.values[slot] = values[i];
		}
	}

	/* Loads the block's part of the moved items into registers. */
	__device__ __forceinline__ void reload_items()
	{
		if constexpr (GRID)
			grid_barrier();
		else
			__syncthreads();
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			if (is_item(i)) {
				uint32_t slot = block_first + index_of(i);
				if constexpr (GRID) {
					/*
					 * Other blocks wrote these in this launch, so they must not be read through
					 * the read-only cache.
					 */
					keys[i] = *(volatile Key *)&args.keys_tmp[slot];
					if constexpr (PAIRS)
						values[i] = *(volatile Value *)&args.values_tmp[slot];
				} else {
					keys[i] = shared.keys[slot];
					if constexpr (PAIRS)
						values[i] = shared.values[slot];
				}
			}
	}

	__device__ __forceinline__ void process()
	{
		load();
		bool written = false;
		GPUSORT_NO_UNROLL
		for (uint32_t pass = 0; pass < args.passes; pass++) {
			bool last = pass == args.passes - 1;
			bool moved = run_pass(pass, last);
			if (moved && !last)
				reload_items();
			written = moved && last;
		}
		if (written)
			return;
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			if (is_item(i))
				write_item(block_first + index_of(i), i, args.keys_out != nullptr);
	}
};

template <class Order, class Value, class Tuning, bool GRID>
__global__ void __launch_bounds__(Tuning::THREADS, 1)
	gpusort_tile_sort_kernel(GsSmallSortArgs<Order, Value> args)
{
	typedef GsTileSort<Order, Value, Tuning, GRID> TileSort;
	GPUSORT_SHARED(typename TileSort::Shared, shared);
	TileSort(args, shared).process();
}

/* The caller must set all fields of args except items.  n is at most THREADS * ITEMS. */
template <class Order, class Value, class Tuning>
cudaError_t gpusort_launch_block_sort(GsSmallSortArgs<Order, Value> args, cudaStream_t stream)
{
	typedef GsTileSort<Order, Value, Tuning, false> TileSort;
	args.items = (args.n + Tuning::THREADS - 1) / Tuning::THREADS;
	GsLaunch launch = {1, Tuning::THREADS, sizeof(typename TileSort::Shared), false, stream};
	return gpusort_launch(launch, gpusort_tile_sort_kernel<Order, Value, Tuning, false>, args);
}

/*
 * Like gpusort_launch_block_sort(), but n is at most THREADS * ITEMS * blocks, and blocks is at
 * most BLOCKS.
 */
template <class Order, class Value, class Tuning>
cudaError_t gpusort_launch_grid_sort(GsSmallSortArgs<Order, Value> args, uint32_t blocks,
									 cudaStream_t stream)
{
	typedef GsTileSort<Order, Value, Tuning, true> TileSort;
	static_assert(Tuning::BLOCKS <= (int)GPUSORT_GRID_BLOCKS, "room in the exchange area");
	static_assert((Tuning::BLOCKS + TileSort::GROUPS - 1) / TileSort::GROUPS * TileSort::TILE <
					  1 << GPUSORT_GRID_TAG_SHIFT,
				  "the sums of a group fit half a word");
	uint32_t all = Tuning::THREADS * blocks;
	args.items = (args.n + all - 1) / all;
	uint32_t tile = Tuning::THREADS * args.items;
	GsLaunch launch = {(args.n + tile - 1) / tile, Tuning::THREADS,
					   sizeof(typename TileSort::Shared), true, stream};
	return gpusort_launch(launch, gpusort_tile_sort_kernel<Order, Value, Tuning, true>, args);
}

#endif /* GPUSORT_SMALL_SORT_CUH */
