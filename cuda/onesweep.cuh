/*
 * onesweep.cuh
 *		One sweep: sorts the items stably by one digit, reading and writing each item once.
 *
 * The algorithm is that of Adinets and Merrill, "Onesweep: A Faster Least Significant Digit
 * Radix Sort for GPUs" (2022).  A block takes a tile of items and counts their digits.  It
 * publishes the counts, and learns from the preceding tiles at which position of the output its
 * items with each digit start (decoupled look-back).  It ranks the items by their digits in
 * shared memory and then writes them, so that items with equal digits go to consecutive
 * addresses.
 *
 * Forward progress must not depend on the order in which the device starts blocks.  Therefore
 * blocks draw their tiles from a counter: all tiles that a block waits for have been started.
 * If the block of such a tile is not scheduled for a long time, the waiting block counts that
 * tile itself and continues.
 *
 * A launch handles one strip.  Item numbers and counts within a strip fit in 30 bits; positions
 * in the output may need 64 bits.
 */
#ifndef GPUSORT_ONESWEEP_CUH
#define GPUSORT_ONESWEEP_CUH

#include "control.cuh"
#include "tile_rank.cuh"
#include "tuning.cuh"

template <class Order, class Value>
struct GsSweepArgs {
	typedef typename Order::Key Key;
	Order order;
	typename Order::DigitExtractor digit_of;
	uint32_t pass; /* index into GsControl.passes and .bases */
	GsControl *control;
	uint32_t *status; /* status words of this strip: [tile][digit] */
	const Key *keys_in;
	Key *keys_tmp;
	Key *keys_out;
	const Value *values_in;
	Value *values_tmp;
	Value *values_out;
	uint64_t strip_first; /* index of the strip's first item in the input */
	uint32_t strip_items; /* 1 .. GPUSORT_STRIP_ITEMS */
	uint32_t strip_parity;
	bool last_strip;
	bool generate;			 /* there are no input values: they are the row numbers */
	bool drop_keys;			 /* the last sweep writes values only */
	uint32_t fallback_polls; /* UINT32_MAX: never fall back to counting */
	uint32_t delay_every;	 /* for tests, as in GsDebugSettings */
	uint32_t delay_polls;
};

/* Position is uint32_t if the output has few enough items for it, else uint64_t. */
template <class Order, class Value, class Position, class Policy>
struct GsSweep {
	typedef typename Order::Key Key;
	typedef GsSweepArgs<Order, Value> Args;
	static constexpr int THREADS = Policy::THREADS;
	static constexpr int ITEMS = Policy::ITEMS;
	static constexpr int WARPS = THREADS / 32;
	static constexpr int TILE = THREADS * ITEMS;
	static constexpr bool PAIRS = GPUSORT_HAS_VALUE<Value>;
	static constexpr bool SHARE = Policy::SHARE;
	static constexpr uint32_t NONE = ~0u;

	static_assert(THREADS >= GPUSORT_RADIX && THREADS % 32 == 0, "a thread per digit");

	struct Shared {
		union {
			Key keys[TILE];
			Value late_values[PAIRS && SHARE ? TILE : 1]; /* after the keys were written */
		};
		Value early_values[PAIRS && !SHARE ? TILE : 1]; /* while the keys are ranked */
		/*
		 * Values are stored in the order of the input; source[s] is the index, within the tile,
		 * of the item that is ranked into slot s.
		 */
		uint16_t source[PAIRS ? TILE : 1];
		uint32_t bins[WARPS][GPUSORT_RADIX];
		Position base[GPUSORT_RADIX]; /* the item in slot s with digit d goes to base[d] + s */
		uint32_t warp_sums[GPUSORT_RADIX_WARPS];
		uint32_t missing_counts[GPUSORT_RADIX];
		uint32_t tile;
		uint32_t missing_tile;
		uint32_t only_digit; /* the digit that all items of the tile have, or NONE */
	};

	const Args &args;
	Shared &shared;
	const unsigned thread;
	const unsigned warp;
	GsPass pass;
	uint32_t tile;
	uint32_t tile_first; /* index of the tile's first item in the strip */
	uint32_t tile_items;
	Key keys[ITEMS];

	static_assert(TILE <= 65536, "indexes in a tile have 16 bits");

	__device__ __forceinline__ GsSweep(const Args &a, Shared &s)
		: args(a), shared(s), thread(threadIdx.x), warp(threadIdx.x / 32)
	{
	}

	/* Index in the input tile of item i of this thread. */
	__device__ __forceinline__ uint32_t index_of(int i) const
	{
		return warp * (32 * ITEMS) + i * 32 + gpusort_lane();
	}

	template <class T>
	__device__ __forceinline__ static T *select(uint32_t which, const T *in, T *tmp, T *out)
	{
		return which == GPUSORT_IN ? const_cast<T *>(in) : which == GPUSORT_TMP ? tmp : out;
	}

	/* Draws the tile that this block processes. */
	__device__ __forceinline__ void draw_tile()
	{
		if (thread == 0) {
			uint32_t drawn = atomicAdd(&args.control->next_tile, 1u);
			if (drawn == gridDim.x - 1) /* this is the last draw; reset for the next sweep */
				atomicExch(&args.control->next_tile, 0u);
			if (GPUSORT_BUG(GPUSORT_BUG_BLOCK_INDEX))
				drawn = blockIdx.x;
			shared.tile = drawn;
			shared.only_digit = NONE;
		}
		__syncthreads();
		tile = shared.tile;
		tile_first = tile * TILE;
		tile_items =
			args.strip_items - tile_first < TILE ? args.strip_items - tile_first : TILE;
	}

	__device__ __forceinline__ Key *keys_of(uint32_t buffer) const
	{
		return select(buffer, args.keys_in, args.keys_tmp, args.keys_out);
	}

	__device__ __forceinline__ Value *values_of(uint32_t buffer) const
	{
		return select(buffer, args.values_in, args.values_tmp, args.values_out);
	}

	/* Loads this thread's items of the tile.  Items beyond the end of the input are padding. */
	template <class T>
	__device__ __forceinline__ void load(T (&items)[ITEMS], const T *source, T padding) const
	{
		source += args.strip_first + tile_first + index_of(0);
		if (tile_items == TILE) {
			GPUSORT_UNROLL
			for (int i = 0; i < ITEMS; i++)
				items[i] = source[i * 32];
		} else {
			GPUSORT_UNROLL
			for (int i = 0; i < ITEMS; i++)
				items[i] = index_of(i) < tile_items ? source[i * 32] : padding;
		}
	}

	__device__ __forceinline__ void load_keys()
	{
		Key padding = GPUSORT_BUG(GPUSORT_BUG_PARTIAL_TILE) ? 0 : args.order.greatest();
		load(keys, (const Key *)keys_of(pass.source), padding);
	}

	__device__ __forceinline__ bool generates() const
	{
		return args.generate && pass.first;
	}

	__device__ __forceinline__ Value *shared_values() const
	{
		return SHARE ? shared.late_values : shared.early_values;
	}

	/* Starts an asynchronous copy of the tile's values into shared memory. */
	__device__ __forceinline__ void fetch_values()
	{
		if constexpr (PAIRS) {
			if (generates())
				return;
			const Value *source = values_of(pass.source) + args.strip_first + tile_first;
			GPUSORT_UNROLL
			for (int i = 0; i < ITEMS; i++) {
				uint32_t index = thread + i * THREADS;
				if (index < tile_items)
					gpusort_copy_async(&shared_values()[index], source + index);
			}
		}
	}

	/* Returns the value of the item with this index in the input tile. */
	__device__ __forceinline__ Value value_at(uint32_t index) const
	{
		if (generates())
			return (Value)(args.strip_first + tile_first + index);
		return shared_values()[index];
	}

	/*
	 * Returns four times the digit of item i.  Padding has the greatest digit and comes last in
	 * the tile; since the sort is stable, it stays at the end.
	 */
	__device__ __forceinline__ uint32_t digit_at(int i) const
	{
		if (!Order::HAS_GREATEST && index_of(i) >= tile_items)
			return args.digit_of.mask;
		return args.digit_of(keys[i]);
	}

	__device__ __forceinline__ void count_digits()
	{
		gpusort_clear_bins(shared.bins[warp]);
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			atomicAdd(&gpusort_at(shared.bins[warp], digit_at(i)), 1u);
		if (!GPUSORT_BUG(GPUSORT_BUG_COUNT_BARRIER))
			__syncthreads();
	}

	__device__ __forceinline__ uint32_t *status_word(uint32_t of_tile) const
	{
		return args.status + (size_t)of_tile * GPUSORT_RADIX + thread;
	}

	__device__ __forceinline__ void publish(uint32_t status, uint32_t count) const
	{
		gpusort_flag_store(status_word(tile), status << GPUSORT_STATUS_SHIFT | count);
	}

	__device__ __forceinline__ bool is_global(uint32_t word) const
	{
		return word >> GPUSORT_STATUS_SHIFT == pass.global;
	}

	__device__ __forceinline__ bool is_ready(uint32_t word) const
	{
		return word >> GPUSORT_STATUS_SHIFT == GPUSORT_STATUS_LOCAL || is_global(word);
	}

	/*
	 * Publishes the tile's count of digit d.  Must be called by thread d < GPUSORT_RADIX.
	 *
	 * Each warp's bin becomes the slot of the warp's first key with the digit.  Returns the
	 * count; *first is the slot of the tile's first key with the digit.
	 */
	__device__ __forceinline__ uint32_t sum_counts(uint32_t *first)
	{
		uint32_t slots = 0;
		uint32_t count = 0;
		if (thread < GPUSORT_RADIX) {
			slots = gpusort_sum_bins<WARPS>(shared.bins, thread);
			count = slots;
			if (thread * 4 == args.digit_of.mask)
				count -= TILE - tile_items;
			if (args.delay_every && tile % args.delay_every == args.delay_every - 1)
				for (uint32_t i = 0; i < args.delay_polls; i++)
					gpusort_pause();
			publish(GPUSORT_STATUS_LOCAL, count);
			if (count == tile_items)
				shared.only_digit = thread;
		}
		*first = gpusort_radix_exclusive_sum(slots, shared.warp_sums);
		if (thread < GPUSORT_RADIX)
			gpusort_scan_bins<WARPS>(shared.bins, thread, *first);
		return count;
	}

	/* State of the look-back of one digit. */
	struct LookBack {
		uint32_t sum; /* count of the digit in the tiles read so far */
		int next;	  /* next tile to read, -1 if all have been read, or PUBLISHED */
		uint32_t polls;
		static constexpr int PUBLISHED = -2;
	};

	/*
	 * Reads status words of preceding tiles, until an inclusive sum or the strip's first tile
	 * is reached, or until fallback_polls polls in a row found nothing.
	 */
	__device__ __forceinline__ void look_back(LookBack &state) const
	{
		constexpr int WINDOW = Policy::WINDOW;
		while (state.next >= 0) {
			uint32_t words[WINDOW];
			words[0] = gpusort_flag_load(status_word(state.next));
			/*
			 * As long as the nearest word is missing, reading more words would only keep the
			 * cache busy.
			 */
			GPUSORT_UNROLL
			for (int i = 1; i < WINDOW; i++)
				words[i] = state.polls == 0 && state.next >= i
							   ? gpusort_flag_load(status_word(state.next - i))
							   : 0;
			int used = 0;
			bool end = false;
			GPUSORT_UNROLL
			for (int i = 0; i < WINDOW; i++) {
				if (!end && used == i && is_ready(words[i])) {
					state.sum += words[i] & GPUSORT_STATUS_COUNT;
					used++;
					end = is_global(words[i]);
				}
			}
			state.next = end ? -1 : state.next - used;
			if (GPUSORT_BUG(GPUSORT_BUG_SHORT_LOOKBACK) && state.next >= 0 &&
				state.next + 3 < (int)tile)
				state.next = -1;
			if (used)
				state.polls = 0;
			else if (++state.polls > args.fallback_polls && args.fallback_polls != NONE)
				return;
		}
	}

	/*
	 * Counts the digits of a tile whose block is late, and publishes the counts for it.  Must
	 * be called by all threads.  If that block publishes its count in the meantime, its word
	 * stays; the counts are the same.
	 */
	__device__ __forceinline__ void count_missing_tile()
	{
		uint32_t missing = shared.missing_tile;
		if (thread < GPUSORT_RADIX)
			shared.missing_counts[thread] = 0;
		__syncthreads();
		const Key *source = keys_of(pass.source) + args.strip_first + (size_t)missing * TILE;
		GPUSORT_NO_UNROLL
		for (uint32_t i = thread; i < TILE; i += THREADS)
			atomicAdd(&gpusort_at(shared.missing_counts, args.digit_of(source[i])), 1u);
		__syncthreads();
		if (thread < GPUSORT_RADIX) {
			uint32_t *word = status_word(missing);
			uint32_t seen = gpusort_flag_load(word);
			if (!is_ready(seen))
				atomicCAS(word, seen,
						  GPUSORT_STATUS_LOCAL << GPUSORT_STATUS_SHIFT |
							  shared.missing_counts[thread]);
		}
	}

	/*
	 * Publishes the inclusive sum of digit d, and passes it to the next strip.  Must be called
	 * by thread d.
	 */
	__device__ __forceinline__ void publish_sum(uint32_t before, uint32_t count, uint32_t first)
	{
		publish(pass.global, before + count);
		uint64_t(*bases)[GPUSORT_RADIX] = args.control->bases[args.pass];
		uint64_t base = bases[args.strip_parity][thread];
		shared.base[thread] = (Position)(base + before - first);
		if (tile == gridDim.x - 1 && !args.last_strip && !GPUSORT_BUG(GPUSORT_BUG_STRIP_BASE))
			bases[args.strip_parity ^ 1][thread] = base + before + count;
	}

	/*
	 * Continues the look-back of digit d, and publishes the sum if it is complete.  Must be
	 * called by thread d.
	 */
	__device__ __forceinline__ void continue_look_back(LookBack &state, uint32_t count,
													   uint32_t first)
	{
		if (state.next == LookBack::PUBLISHED)
			return;
		look_back(state);
		if (state.next < 0) {
			publish_sum(state.sum, count, first);
			state.next = LookBack::PUBLISHED;
		}
	}

	/*
	 * Completes the look-back, counting missing tiles as often as necessary, so that
	 * shared.base is set.  Must be called by all threads; ends with a barrier.
	 */
	__device__ __forceinline__ void finish_look_back(LookBack &state, uint32_t count,
													 uint32_t first)
	{
		for (;;) {
			bool stuck = false;
			if (thread < GPUSORT_RADIX) {
				continue_look_back(state, count, first);
				stuck = state.next >= 0;
				if (stuck) /* any of the missing tiles may be counted first */
					atomicExch(&shared.missing_tile, (uint32_t)state.next);
			}
			if (GPUSORT_BUG(GPUSORT_BUG_SCATTER_BARRIER))
				return;
			if (!__syncthreads_or(stuck))
				return;
			count_missing_tile();
			state.polls = 0;
			__syncthreads();
		}
	}

	/* Ranks the keys by their digits and scatters them into shared memory in this order. */
	__device__ __forceinline__ void scatter_keys()
	{
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++) {
			uint32_t slot = gpusort_rank_item(digit_at(i), shared.bins[warp]);
			shared.keys[slot] = keys[i];
			if constexpr (PAIRS)
				shared.source[slot] = (uint16_t)index_of(i);
		}
	}

	/*
	 * Writes the ranked tile.  Neighbours in shared memory mostly are neighbours in the output,
	 * so that the writes coalesce.  The digits of this thread's slots are kept for the values,
	 * four in a word.
	 */
	template <bool FULL>
	__device__ __forceinline__ void write_slots()
	{
		bool with_keys = !PAIRS || !(args.drop_keys && pass.last);
		Key *keys_target = keys_of(pass.target);
		uint32_t digits[(ITEMS + 3) / 4] = {};
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++) {
			uint32_t slot = thread + i * THREADS;
			if (FULL || slot < tile_items) {
				Key key = shared.keys[slot];
				uint32_t digit = args.digit_of(key);
				if (PAIRS)
					digits[i / 4] |= digit / 4 << i % 4 * 8;
				if (with_keys)
					keys_target[(Position)(gpusort_at(shared.base, digit) + slot)] = key;
			}
		}
		if constexpr (PAIRS) {
			if (SHARE && !generates()) {
				__syncthreads(); /* all keys have been read, so their memory can be reused */
				fetch_values();
				gpusort_copies_done();
				__syncthreads();
			}
			Value *values_target = values_of(pass.target);
			GPUSORT_UNROLL
			for (int i = 0; i < ITEMS; i++) {
				uint32_t slot = thread + i * THREADS;
				uint32_t digit = digits[i / 4] >> i % 4 * 8 & 255;
				if (FULL || slot < tile_items)
					values_target[(Position)(shared.base[digit] + slot)] =
						value_at(shared.source[slot]);
			}
		}
	}

	__device__ __forceinline__ void write_tile()
	{
		if (tile_items == TILE)
			write_slots<true>();
		else
			write_slots<false>();
	}

	/*
	 * Writes the items in the order of the input, to positions from base on: either all items
	 * of the tile have the same digit, or the pass is a copy.
	 */
	__device__ __forceinline__ void write_unranked(uint64_t base)
	{
		bool with_keys = !PAIRS || !(args.drop_keys && pass.last);
		Key *keys_target = keys_of(pass.target) + base + index_of(0);
		GPUSORT_UNROLL
		for (int i = 0; i < ITEMS; i++)
			if (with_keys && index_of(i) < tile_items)
				keys_target[i * 32] = keys[i];
		if constexpr (PAIRS) {
			if (SHARE) {
				fetch_values();
				gpusort_copies_done(); /* each thread writes what it fetched itself */
			}
			Value *values_target = values_of(pass.target) + base;
			GPUSORT_UNROLL
			for (int i = 0; i < ITEMS; i++) {
				uint32_t index = thread + i * THREADS;
				if (index < tile_items)
					values_target[index] = value_at(index);
			}
		}
	}

	__device__ __forceinline__ void process()
	{
		pass = args.control->passes[args.pass];
		if (!pass.active && !pass.copy)
			return;
		draw_tile();
		load_keys();
		if (!SHARE)
			fetch_values();
		if (pass.copy) {
			gpusort_copies_done(); /* each thread writes what it fetched itself */
			write_unranked(args.strip_first + tile_first);
			return;
		}

		count_digits();
		uint32_t first;
		uint32_t count = sum_counts(&first);
		LookBack state = {0, (int)tile - 1, 0};
		__syncthreads();

		uint32_t only_digit = shared.only_digit;
		if (only_digit != NONE) {
			gpusort_copies_done();
			finish_look_back(state, count, first);
			write_unranked(shared.base[only_digit]);
			return;
		}
		/*
		 * Ranking before the look-back gives preceding tiles time to publish.  It was faster
		 * than the reverse order.
		 */
		scatter_keys();
		gpusort_copies_done();
		finish_look_back(state, count, first);
		write_tile();
	}
};

template <class Order, class Value, class Position, class Policy>
__global__ void __launch_bounds__(Policy::THREADS,
								  GPUSORT_RESIDENT(Policy::THREADS, Policy::BLOCKS))
	gpusort_sweep_kernel(GsSweepArgs<Order, Value> args)
{
	typedef GsSweep<Order, Value, Position, Policy> Sweep;
	/*
	 * If the tile does not fit in an architecture's shared memory, the kernel traps there.  It
	 * is never launched: see gpusort_sorter_init().
	 */
	if (sizeof(typename Sweep::Shared) <= gpusort_arch_shared(GPUSORT_ARCH)) {
		GPUSORT_SHARED(typename Sweep::Shared, shared);
		Sweep(args, shared).process();
	} else
		__trap();
}

#endif /* GPUSORT_ONESWEEP_CUH */
