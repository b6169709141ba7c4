/*
 * sorted_copy.cuh
 *		Copies the input to the output up to the first descent.
 *
 * A descent is a key that is less than its predecessor.  Counting digits costs more than
 * reading keys, and a sorted input needs neither histograms nor sweeps.  So large inputs are
 * copied first, while every key is compared with its successor.  The first descent ends the
 * copy: all blocks read GsControl.unsorted once per tile.  In a random input the first check
 * finds a descent before anything is written.  If there was no descent, the sort is done.
 * Otherwise the sort starts over from the unchanged input and overwrites the output.
 */
#ifndef GPUSORT_SORTED_COPY_CUH
#define GPUSORT_SORTED_COPY_CUH

#include "control.cuh"
#include "tuning.cuh"

template <class Order, class Value>
struct GsSortedCopyArgs {
	typedef typename Order::Key Key;
	Order order;
	Key key_mask;			/* mask of the bits of an ordered key that are compared */
	const Key *keys_in;		/* aligned to the size of a key */
	Key *keys_out;			/* NULL: not wanted */
	const Value *values_in; /* NULL: row numbers */
	Value *values_out;
	uint64_t n; /* > 0 */
	uint32_t *unsorted;
};

template <class Order, class Value, class Tuning>
struct GsSortedCopy {
	typedef typename Order::Key Key;
	typedef GsSortedCopyArgs<Order, Value> Args;
	static constexpr int THREADS = Tuning::THREADS;
	static constexpr int VECTORS = Tuning::VECTORS;
	static constexpr int VECTOR = 16 / sizeof(Key);
	static constexpr int ITEMS = VECTORS * VECTOR;
	static constexpr uint64_t TILE = (uint64_t)THREADS * ITEMS;
	static constexpr bool PAIRS = GPUSORT_HAS_VALUE<Value>;

	struct alignas(16) Keys {
		Key key[VECTOR];
	};
	static constexpr int VALUE_VECTOR = PAIRS ? 16 / sizeof(Value) : 1;
	static constexpr int VALUE_VECTORS = PAIRS ? ITEMS / VALUE_VECTOR : 1;
	struct alignas(16) Values {
		Value value[VALUE_VECTOR];
	};

	const Args &args;
	uint64_t before;	 /* items before the first 16-byte boundary of the keys */
	uint64_t tiles;		 /* of TILE items each, from there */
	bool keys_aligned;	 /* keys_out has its 16-byte boundaries at the same items as keys_in */
	bool values_aligned; /* there are input values, and values_out matches them likewise */

	__device__ __forceinline__ GsSortedCopy(const Args &a) : args(a)
	{
		before = (16 - (uintptr_t)args.keys_in % 16) % 16 / sizeof(Key);
		if (before > args.n)
			before = args.n;
		tiles = (args.n - before) / TILE;
		keys_aligned = (uintptr_t)(args.keys_out + before) % 16 == 0;
		values_aligned = false;
		if constexpr (PAIRS)
			values_aligned = args.values_in && (uintptr_t)(args.values_in + before) % 16 == 0 &&
							 (uintptr_t)(args.values_out + before) % 16 == 0;
	}

	__device__ __forceinline__ bool out_of_order(Key first, Key second) const
	{
		return (args.order.ordered(first) & args.key_mask) >
			   (args.order.ordered(second) & args.key_mask);
	}

	/*
	 * Returns the index in the tile of this lane's vector v.  Each warp has VECTORS * 32
	 * consecutive vectors.
	 */
	__device__ __forceinline__ static uint32_t vector_index(int v)
	{
		return threadIdx.x / 32 * (32 * VECTORS) + v * 32 + gpusort_lane();
	}

	/*
	 * Returns whether this lane finds a descent in the warp's keys.  next is the key after
	 * them; only the last lane uses it.
	 */
	__device__ __forceinline__ bool has_descent(const Keys (&keys)[VECTORS], Key next) const
	{
		bool bad = false;
		GPUSORT_UNROLL
		for (int v = 0; v < VECTORS; v++) {
			GPUSORT_UNROLL
			for (int k = 0; k + 1 < VECTOR; k++)
				bad |= out_of_order(keys[v].key[k], keys[v].key[k + 1]);
			Key behind = __shfl_down_sync(~0u, keys[v].key[0], 1);
			Key wrapped =
				v + 1 < VECTORS ? __shfl_sync(~0u, keys[(v + 1) % VECTORS].key[0], 0) : next;
			if (gpusort_lane() == 31)
				behind = wrapped;
			bad |= out_of_order(keys[v].key[VECTOR - 1], behind);
		}
		return bad;
	}

	/* Reports a descent to all blocks. */
	__device__ __forceinline__ void report_descent()
	{
		if (gpusort_lane() == 0 && !GPUSORT_BUG(GPUSORT_BUG_COPY_DESCENT))
			gpusort_flag_store(args.unsorted, 1);
	}

	__device__ __forceinline__ Value value_of(uint64_t item) const
	{
		if constexpr (PAIRS)
			return args.values_in ? args.values_in[item] : (Value)item;
		return {};
	}

	/* Loads the values of a tile: as vectors if they are aligned, else one by one. */
	__device__ __forceinline__ void load_values(Values (&values)[VALUE_VECTORS], uint64_t first)
	{
		if (values_aligned) {
			GPUSORT_UNROLL
			for (int v = 0; v < VALUE_VECTORS; v++)
				values[v] =
					((const Values *)(args.values_in + first))[v * THREADS + threadIdx.x];
			return;
		}
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			values[i / VALUE_VECTOR].value[i % VALUE_VECTOR] =
				value_of(first + i * THREADS + threadIdx.x);
	}

	__device__ __forceinline__ void store_values(const Values (&values)[VALUE_VECTORS],
												 uint64_t first)
	{
		if (values_aligned) {
			GPUSORT_UNROLL
			for (int v = 0; v < VALUE_VECTORS; v++)
				((Values *)(args.values_out + first))[v * THREADS + threadIdx.x] = values[v];
			return;
		}
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			args.values_out[first + i * THREADS + threadIdx.x] =
				values[i / VALUE_VECTOR].value[i % VALUE_VECTOR];
	}

	__device__ __forceinline__ void store_keys(const Keys (&keys)[VECTORS], uint64_t first)
	{
		if (keys_aligned) {
			GPUSORT_UNROLL
			for (int v = 0; v < VECTORS; v++)
				((Keys *)(args.keys_out + first))[vector_index(v)] = keys[v];
			return;
		}
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			args.keys_out[first + (uint64_t)vector_index(i / VECTOR) * VECTOR + i % VECTOR] =
				keys[i / VECTOR].key[i % VECTOR];
	}

	/*
	 * Checks one vector per thread of the block's first tile before reading more, which detects
	 * nearly every input that is not sorted.  Returns false if there is a descent; all threads
	 * of a block get the same result.
	 */
	__device__ __forceinline__ bool check_first_tile()
	{
		bool bad = false;
		if (blockIdx.x < tiles) {
			const Key *source = args.keys_in + before + blockIdx.x * TILE;
			Keys keys = ((const Keys *)source)[threadIdx.x];
			GPUSORT_UNROLL
			for (int k = 0; k + 1 < VECTOR; k++)
				bad |= out_of_order(keys.key[k], keys.key[k + 1]);
		}
		if (!__syncthreads_or(bad))
			return true;
		if (threadIdx.x < 32)
			report_descent();
		return false;
	}

	/*
	 * Copies a tile.  Returns false if a descent was found anywhere; all threads of a warp get
	 * the same result.
	 */
	__device__ __forceinline__ bool copy_tile(uint64_t first)
	{
		uint32_t seen = gpusort_flag_load(args.unsorted);
		const Key *source = args.keys_in + first;
		Keys keys[VECTORS];
		Values values[VALUE_VECTORS];
		GPUSORT_UNROLL
		for (int v = 0; v < VECTORS; v++)
			keys[v] = ((const Keys *)source)[vector_index(v)];
		uint64_t behind = first + (uint64_t)(vector_index(VECTORS - 1) + 1) * VECTOR;
		Key next = keys[VECTORS - 1].key[VECTOR - 1];
		if (gpusort_lane() == 31 && behind < args.n && !GPUSORT_BUG(GPUSORT_BUG_COPY_SEAM))
			next = args.keys_in[behind];
		if constexpr (PAIRS)
			load_values(values, first);

		bool bad = has_descent(keys, next);
		if (__ballot_sync(~0u, bad || seen)) {
			if (!seen)
				report_descent();
			return false;
		}
		if (args.keys_out)
			store_keys(keys, first);
		if constexpr (PAIRS)
			store_values(values, first);
		return true;
	}

	/* Copies items first .. end - 1, one at a time. */
	__device__ __forceinline__ void copy_partial_tile(uint64_t first, uint64_t end)
	{
		bool bad = false;
		GPUSORT_NO_UNROLL
		for (uint64_t i = first + threadIdx.x; i < end; i += THREADS) {
			Key key = args.keys_in[i];
			bad |= i + 1 < args.n && out_of_order(key, args.keys_in[i + 1]);
			if (args.keys_out)
				args.keys_out[i] = key;
			if constexpr (PAIRS)
				args.values_out[i] = value_of(i);
		}
		if (__ballot_sync(~0u, bad))
			report_descent();
	}

	__device__ __forceinline__ void process()
	{
		if (!check_first_tile())
			return;
		for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
			if (!copy_tile(before + tile * TILE))
				return;
		if (blockIdx.x == 0)
			copy_partial_tile(0, before);
		if (blockIdx.x == gridDim.x - 1)
			copy_partial_tile(before + tiles * TILE, args.n);
	}
};

template <class Order, class Value, class Tuning>
__global__ void __launch_bounds__(Tuning::THREADS,
								  GPUSORT_RESIDENT(Tuning::THREADS, Tuning::BLOCKS))
	gpusort_sorted_copy_kernel(GsSortedCopyArgs<Order, Value> args)
{
	GsSortedCopy<Order, Value, Tuning>(args).process();
}

#endif /* GPUSORT_SORTED_COPY_CUH */
