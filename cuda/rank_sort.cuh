/*
 * rank_sort.cuh
 *		A sort in one launch that counts the rank of every item, so that blocks do not wait for
 *		each other.
 *
 * Each block owns a few consecutive items and compares them with all keys of the input.  The
 * number of keys that sort before an item is its position in the output.  That takes n * n
 * comparisons, but neither passes nor a grid barrier.  For up to some thousand items no other
 * sort was faster.
 *
 * The lanes of each warp hold the block's items in registers, and each warp compares them with
 * its share of the keys.  A warp loads these keys into shared memory in their ordered form,
 * chunk by chunk.  The lanes are divided into groups.  All lanes of a group read the same 16
 * bytes; the groups hold the same items and read different keys.  Thus a read serves many
 * comparisons even if a block owns few items.
 *
 * The sort is stable: a key before the block's items counts if it is not greater, a key after
 * them if it is less.  Among the block's own items, the index decides between equal keys.
 */
#ifndef GPUSORT_RANK_SORT_CUH
#define GPUSORT_RANK_SORT_CUH

#include "small_sort.cuh"

template <class Order, class Value, class Policy>
struct GsRankSort {
	typedef typename Order::Key Key;
	typedef GsSmallSortArgs<Order, Value> Args;
	static constexpr int THREADS = Policy::THREADS;
	static constexpr int ITEMS = Policy::ITEMS;
	static constexpr int WARPS = THREADS / 32;
	static constexpr unsigned GROUP_LANES = 32 / Policy::GROUPS;
	static constexpr unsigned OWN = Policy::OWN;
	static constexpr int VECTOR = 16 / sizeof(Key);
	static constexpr uint32_t STEP =
		Policy::GROUPS * VECTOR; /* keys that a warp reads at once */
	static constexpr int FETCH = Policy::FETCH;
	static constexpr uint32_t CHUNK = 32 * FETCH;
	static constexpr bool PAIRS = GPUSORT_HAS_VALUE<Value>;

	static_assert(OWN <= THREADS && CHUNK % STEP == 0 && 32 % STEP == 0, "whole steps");

	struct alignas(16) Keys {
		Key key[VECTOR];
	};
	struct Shared {
		Keys keys[WARPS][CHUNK / VECTOR];
		uint32_t counts[WARPS][OWN];
	};

	const Args &args;
	Shared &shared;
	const unsigned thread;
	const unsigned warp;
	const unsigned group;
	const unsigned group_lane; /* index in the group */
	const uint32_t first;	   /* index of the block's first item */
	Key own[ITEMS];		 /* own[i] is the key of item first + i * GROUP_LANES + group_lane */
	float counts[ITEMS]; /* integral; adding floats leaves the integer pipe to comparisons */

	__device__ __forceinline__ GsRankSort(const Args &a, Shared &s)
		: args(a), shared(s), thread(threadIdx.x), warp(threadIdx.x / 32),
		  group(gpusort_lane() / GROUP_LANES), group_lane(gpusort_lane() % GROUP_LANES),
		  first(blockIdx.x * OWN)
	{
	}

	__device__ __forceinline__ Key ordered(Key key) const
	{
		return args.order.ordered(key) & args.key_mask;
	}

	__device__ __forceinline__ void load_own()
	{
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++) {
			uint32_t item = first + i * GROUP_LANES + group_lane;
			own[i] = item < args.n ? ordered(args.keys_in[item]) : 0;
			counts[i] = 0;
		}
	}

	/*
	 * Loads this lane's keys of a chunk.  Keys beyond the end are replaced by the greatest key,
	 * which does not count: it is less than no key and comes after all items.
	 */
	__device__ __forceinline__ void load_keys(Key (&keys)[FETCH], uint32_t begin,
											  uint32_t end) const
	{
		GPUSORT_UNROLL
		for (int i = 0; i < FETCH; i++) {
			uint32_t item = begin + i * 32 + gpusort_lane();
			keys[i] = item < end ? ordered(args.keys_in[item]) : (Key) ~(Key)0;
		}
	}

	__device__ __forceinline__ Keys read_keys(uint32_t begin, uint32_t at) const
	{
		return shared.keys[warp][(at - begin) / VECTOR + group];
	}

	/*
	 * Compares the items with the keys from .. to - 1 of the chunk that starts at begin.  With
	 * BEFORE, all of these keys precede the block's items, else all follow them.
	 */
	template <bool BEFORE>
	__device__ __forceinline__ void count(uint32_t begin, uint32_t from, uint32_t to)
	{
#ifdef __CUDACC__
#pragma unroll 4
#endif
		for (uint32_t at = from; at < to; at += STEP) {
			Keys keys = read_keys(begin, at);
			GPUSORT_UNROLL
			for (int k = 0; k < VECTOR; k++)
				GPUSORT_UNROLL
			for (int i = 0; i < ITEMS; i++)
				gpusort_count<BEFORE>(counts[i], keys.key[k], own[i]);
		}
	}

	/* Like count(), for a range of keys that includes the block's own items. */
	__device__ __forceinline__ void count_near(uint32_t begin, uint32_t from, uint32_t to)
	{
		GPUSORT_NO_UNROLL
		for (uint32_t at = from; at < to; at += STEP) {
			Keys keys = read_keys(begin, at);
			GPUSORT_UNROLL
			for (int k = 0; k < VECTOR; k++)
				GPUSORT_UNROLL
			for (int i = 0; i < ITEMS; i++) {
				uint32_t item = first + i * GROUP_LANES + group_lane;
				bool before =
					at + group * VECTOR + k < item && !GPUSORT_BUG(GPUSORT_BUG_RANK_OWN);
				if (keys.key[k] < own[i] || (before && keys.key[k] == own[i]))
					counts[i] += 1;
			}
		}
	}

	__device__ __forceinline__ void count_chunk(uint32_t begin, uint32_t end)
	{
		uint32_t near = first / STEP * STEP;
		uint32_t behind = (first + OWN + STEP - 1) / STEP * STEP;
		near = near < begin ? begin : near < end ? near : end;
		behind = behind < begin ? begin : behind < end ? behind : end;
		count<true>(begin, begin, near);
		count_near(begin, near, behind);
		if (GPUSORT_BUG(GPUSORT_BUG_RANK_BEHIND))
			count<true>(begin, behind, end);
		else
			count<false>(begin, behind, end);
	}

	/* Compares the block's items with this warp's share of the keys. */
	__device__ __forceinline__ void count_share()
	{
		uint32_t begin = warp * args.items;
		uint32_t end = begin + args.items < args.n ? begin + args.items : args.n;
		Key keys[FETCH];
		load_keys(keys, begin, end);
		load_own();
		GPUSORT_NO_UNROLL
		while (begin < end) {
			__syncwarp(); /* the previous chunk has been read */
			Key *staged = &shared.keys[warp][0].key[0];
			GPUSORT_UNROLL
			for (int i = 0; i < FETCH; i++)
				staged[i * 32 + gpusort_lane()] = keys[i];
			__syncwarp(); /* all lanes have stored */
			uint32_t next = begin + CHUNK;
			if (next < end)
				load_keys(keys, next, end);
			/* Rounded up to whole steps; the keys beyond the end are padding. */
			uint32_t stop = next < end ? next : begin + (end - begin + STEP - 1) / STEP * STEP;
			count_chunk(begin, stop);
			begin = next;
		}
	}

	/* Adds the counts of the groups, and stores them for the sum over all warps. */
	__device__ __forceinline__ void store_counts()
	{
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++) {
			GPUSORT_UNROLL
			for (unsigned distance = GROUP_LANES; distance < 32; distance *= 2)
				counts[i] += __shfl_xor_sync(~0u, counts[i], distance);
			if (group == 0)
				shared.counts[warp][i * GROUP_LANES + group_lane] = (uint32_t)counts[i];
		}
	}

	__device__ __forceinline__ void process()
	{
		/*
		 * Each of the first threads writes one item.  It loads the item before counting, to
		 * hide the latency.
		 */
		uint32_t item = first + thread;
		bool writes = thread < OWN && item < args.n;
		Key key = 0;
		Value value = {};
		if (writes) {
			if (args.keys_out)
				key = args.keys_in[item];
			if constexpr (PAIRS)
				value = args.values_in ? args.values_in[item] : (Value)item;
		}
		count_share();
		store_counts();
		__syncthreads();
		if (!writes)
			return;
		uint32_t rank = 0;
		GPUSORT_UNROLL
		for (int w = 0; w < WARPS; w++)
			rank += shared.counts[w][thread];
		if (args.keys_out)
			args.keys_out[rank] = key;
		if constexpr (PAIRS)
			args.values_out[rank] = value;
	}
};

template <class Order, class Value, class Policy>
__global__ void __launch_bounds__(Policy::THREADS, 1)
	gpusort_rank_sort_kernel(GsSmallSortArgs<Order, Value> args)
{
	typedef GsRankSort<Order, Value, Policy> RankSort;
	GPUSORT_SHARED(typename RankSort::Shared, shared);
	RankSort(args, shared).process();
}

/* The caller must set all fields of args except items. */
template <class Order, class Value, class Policy>
cudaError_t gpusort_launch_rank_sort(GsSmallSortArgs<Order, Value> args, cudaStream_t stream)
{
	typedef GsRankSort<Order, Value, Policy> RankSort;
	args.items = (args.n + Policy::THREADS - 1) / Policy::THREADS * 32;
	GsLaunch launch = {(args.n + Policy::OWN - 1) / Policy::OWN, Policy::THREADS,
					   sizeof(typename RankSort::Shared), false, stream};
	return gpusort_launch(launch, gpusort_rank_sort_kernel<Order, Value, Policy>, args);
}

#endif /* GPUSORT_RANK_SORT_CUH */
