/*
 * gather.cuh
 *		Brings rows into sorted order: looks up items of segmented arrays, and copies rows.
 *
 * Row numbers have 32 bits.  Kernels that are not templates are static: every file that
 * includes this one has its own copies.
 */
#ifndef GPUSORT_GATHER_CUH
#define GPUSORT_GATHER_CUH

#include "segments.h"
#include "tile_rank.cuh"

constexpr unsigned GPUSORT_GATHER_THREADS = 256;
constexpr uint32_t GPUSORT_SCAN_TILE = 2048;  /* rows per block in the sums of lengths */
constexpr uint32_t GPUSORT_STARTS_TILE = 512; /* rows per block in the addresses of rows */
#ifdef __CUDACC__
constexpr uint32_t GPUSORT_STARTS_TILES = 256; /* maximum per launch */
#else
constexpr uint32_t GPUSORT_STARTS_TILES = 3;
#endif

__device__ __forceinline__ uint64_t gpusort_thread_number()
{
	return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ uint64_t gpusort_thread_count()
{
	return (uint64_t)gridDim.x * blockDim.x;
}

/* target[i] = items[rows[i]] */
template <class T>
__global__ void gpusort_gather_items_kernel(T *target, GsSegments items, const uint32_t *rows,
											uint64_t n)
{
	for (uint64_t i = gpusort_thread_number(); i < n; i += gpusort_thread_count())
		target[i] = *items.template at<T>(rows[i]);
}

/*
 * Gathers rows of one width, which is words_per_row Words.  Neighbouring threads write
 * neighbouring words of the target.
 */
template <class Word>
__global__ void gpusort_gather_fixed_kernel(Word *target, GsSegments data,
											uint32_t words_per_row, const uint32_t *rows,
											uint64_t n)
{
	uint64_t words = n * words_per_row;
	for (uint64_t i = gpusort_thread_number(); i < words; i += gpusort_thread_count()) {
		uint64_t row = i / words_per_row;
		uint32_t word = (uint32_t)(i - row * words_per_row);
		const unsigned char *source =
			data.bytes_at(rows[row], words_per_row * (uint32_t)sizeof(Word));
		target[i] = ((const Word *)source)[word];
	}
}

/* ---- ties ---- */

/* The key words of all rows, and the order of the rows. */
struct GsSortedKeys {
	GsSegments words[GPUSORT_MAX_KEY_WORDS];
	const uint32_t *rows;
	uint64_t n;
	GsTieLevel levels[GPUSORT_MAX_TIE_LEVELS];
	uint32_t nlevels;
};

/* Returns word w of the key of the sorted row i. */
__device__ __forceinline__ uint64_t gpusort_key_word(const GsSortedKeys &keys, uint32_t w,
													 uint64_t i)
{
	return *keys.words[w].at<uint64_t>(keys.rows[i]);
}

/* Do two rows agree in the first bits of their keys? */
__device__ __forceinline__ bool gpusort_keys_agree(const GsSortedKeys &keys, uint32_t bits,
												   uint64_t a, uint64_t b)
{
	for (uint32_t w = 0; w * 64 < bits; w++) {
		uint64_t differing = gpusort_key_word(keys, w, a) ^ gpusort_key_word(keys, w, b);
		if (bits < (w + 1) * 64)
			differing >>= (w + 1) * 64 - bits;
		if (differing)
			return false;
	}
	return true;
}

/*
 * Returns the last row that agrees with row i.  Steps forward double as long as rows agree, and
 * then are halved.
 */
__device__ __forceinline__ uint64_t gpusort_group_end(const GsSortedKeys &keys, uint32_t bits,
													  uint64_t i)
{
	uint64_t last = i, step = 1;
	while (last + step < keys.n && gpusort_keys_agree(keys, bits, i, last + step)) {
		last += step;
		step *= 2;
	}
	for (; step > 0; step /= 2)
		if (last + step < keys.n && gpusort_keys_agree(keys, bits, i, last + step))
			last += step;
	return last;
}

/* Are the sorted rows i and i + 1 ties on a level? */
__device__ __forceinline__ bool gpusort_are_ties(const GsSortedKeys &keys, uint64_t i)
{
	for (uint32_t l = 0; l < keys.nlevels; l++) {
		uint32_t bits = keys.levels[l].bits;
		if (!gpusort_keys_agree(keys, bits, i, i + 1))
			return false;
		if (keys.levels[l].always)
			return true;
		uint64_t last = gpusort_group_end(keys, bits, i + 1);
		if (gpusort_key_word(keys, bits / 64, last) >> (63 - bits % 64) & 1)
			return true;
	}
	return false;
}

/*
 * Sets bit i % 32 of ties[i / 32] if the sorted rows i and i + 1 are ties.  All lanes of
 * a warp take part in each ballot, so the loop runs to a multiple of 32.
 */
[[maybe_unused]] static __global__ void gpusort_ties_kernel(uint32_t *ties, GsSortedKeys keys)
{
	uint64_t end = (keys.n + 31) / 32 * 32;
	for (uint64_t i = gpusort_thread_number(); i < end; i += gpusort_thread_count()) {
		bool tied = i + 1 < keys.n && gpusort_are_ties(keys, i);
		uint32_t votes = __ballot_sync(~0u, tied);
		if (i % 32 == 0)
			ties[i / 32] = votes;
	}
}

/* ---- variable width ---- */

/*
 * Computes the exclusive sum over a block of GPUSORT_RADIX threads.  *total is the sum of all
 * values.  Contains barriers.
 */
__device__ __forceinline__ uint64_t gpusort_block_exclusive_sum(uint32_t value,
																uint32_t *warp_sums,
																uint32_t *total)
{
	uint32_t sum = gpusort_radix_exclusive_sum(value, warp_sums);
	if (threadIdx.x == GPUSORT_RADIX - 1)
		warp_sums[GPUSORT_RADIX_WARPS] = sum + value;
	__syncthreads();
	*total = warp_sums[GPUSORT_RADIX_WARPS];
	__syncthreads();
	return sum;
}

struct GsSumShared {
	uint32_t warp_sums[GPUSORT_RADIX_WARPS + 1];
};

/* Addresses of the first row of each tile, which the host has computed. */
struct GsTileAddresses {
	uint64_t first[GPUSORT_STARTS_TILES];
};

/*
 * Computes the addresses of n rows, which follow one another within each tile.  A block does
 * one tile.
 */
[[maybe_unused]] static __global__ void gpusort_row_starts_kernel(uint64_t *starts,
																  const uint32_t *lengths,
																  uint32_t n,
																  GsTileAddresses addresses)
{
	GPUSORT_SHARED(GsSumShared, shared);
	uint64_t data = addresses.first[blockIdx.x];
	for (uint32_t k = 0; k < GPUSORT_STARTS_TILE; k += blockDim.x) {
		uint32_t i = blockIdx.x * GPUSORT_STARTS_TILE + k + threadIdx.x, total;
		uint64_t before =
			gpusort_block_exclusive_sum(i < n ? lengths[i] : 0, shared.warp_sums, &total);
		if (i < n)
			starts[i] = data + before;
		data += total;
	}
}

/* sums[b] = bytes of the GPUSORT_SCAN_TILE rows of block b. */
[[maybe_unused]] static __global__ void
gpusort_length_sums_kernel(uint64_t *sums, GsSegments lengths, const uint32_t *rows, uint64_t n)
{
	GPUSORT_SHARED(GsSumShared, shared);
	uint64_t first = (uint64_t)blockIdx.x * GPUSORT_SCAN_TILE, sum = 0;
	for (uint32_t k = 0; k < GPUSORT_SCAN_TILE; k += blockDim.x) {
		uint64_t i = first + k + threadIdx.x;
		uint32_t total;
		gpusort_block_exclusive_sum(i < n ? *lengths.at<uint32_t>(rows[i]) : 0,
									shared.warp_sums, &total);
		sum += total;
	}
	if (threadIdx.x == 0)
		sums[blockIdx.x] = sum;
}

/* Replaces sums by their exclusive prefix sums; sums[n] = the total.  Runs in one warp. */
[[maybe_unused]] static __global__ void gpusort_scan_sums_kernel(uint64_t *sums, uint32_t n)
{
	uint64_t before = 0;
	for (uint32_t base = 0; base < n; base += 32) {
		uint32_t i = base + threadIdx.x;
		uint64_t value = i < n ? sums[i] : 0, inclusive = value;
		for (int distance = 1; distance < 32; distance *= 2) {
			uint64_t other = __shfl_up_sync(~0u, inclusive, distance);
			if ((int)threadIdx.x >= distance)
				inclusive += other;
		}
		if (i < n)
			sums[i] = before + inclusive - value;
		before += __shfl_sync(~0u, inclusive, 31);
	}
	if (threadIdx.x == 0)
		sums[n] = before;
}

/* offsets[i] = bytes of the sorted rows before i, for i = 0 .. n. */
[[maybe_unused]] static __global__ void gpusort_offsets_kernel(uint64_t *offsets,
															   const uint64_t *sums,
															   GsSegments lengths,
															   const uint32_t *rows, uint64_t n)
{
	GPUSORT_SHARED(GsSumShared, shared);
	uint64_t first = (uint64_t)blockIdx.x * GPUSORT_SCAN_TILE, before = sums[blockIdx.x];
	for (uint32_t k = 0; k < GPUSORT_SCAN_TILE; k += blockDim.x) {
		uint64_t i = first + k + threadIdx.x;
		uint32_t total;
		uint64_t sum = gpusort_block_exclusive_sum(i < n ? *lengths.at<uint32_t>(rows[i]) : 0,
												   shared.warp_sums, &total);
		if (i <= n)
			offsets[i] = before + sum;
		before += total;
	}
}

/*
 * Divides the sorted rows into chunks of at most chunk_rows rows and chunk_bytes bytes, each as
 * large as possible.  firsts[k] is the first row of chunk k and bytes[k] its offset; both have
 * one more entry for the end.  At most `most` chunks are written, but *count is always the
 * total number.  Runs in one warp, which narrows down the end of each chunk with 32 probes at a
 * time.
 */
[[maybe_unused]] static __global__ void
gpusort_split_chunks_kernel(uint64_t *firsts, uint64_t *bytes, uint64_t *count, uint64_t most,
							const uint64_t *offsets, uint64_t n, uint64_t chunk_rows,
							uint64_t chunk_bytes)
{
	uint64_t first = 0, chunks = 0;
	while (first < n) {
		if (threadIdx.x == 0 && chunks < most) {
			firsts[chunks] = first;
			bytes[chunks] = offsets[first];
		}
		/*
		 * The end of the chunk is in low .. high.  low is always a possible end, since any row
		 * fits in a chunk.
		 */
		uint64_t low = first + 1, high = n - first < chunk_rows ? n : first + chunk_rows;
		uint64_t limit = offsets[first] + chunk_bytes;
		while (low < high) {
			uint64_t step = (high - low + 31) / 32;
			uint64_t probe = low + step * (threadIdx.x + 1);
			bool possible = probe <= high && offsets[probe] <= limit;
			uint32_t votes = __ballot_sync(~0u, possible);
			uint64_t passed = __popc(votes); /* the lanes that vote yes are a prefix */
			low += step * passed;
			if (passed < 32 && low + step - 1 < high)
				high = low + step - 1;
		}
		first = low;
		chunks++;
	}
	if (threadIdx.x == 0) {
		if (chunks <= most) {
			firsts[chunks] = n;
			bytes[chunks] = offsets[n];
		}
		*count = chunks;
	}
}

/*
 * Gathers rows of any width, packed.  A warp copies a row.  A lane writes four aligned bytes of
 * the target at a time, shifted together from the two aligned words of the source that contain
 * them.
 */
[[maybe_unused]] static __global__ void
gpusort_gather_variable_kernel(unsigned char *target, uint32_t *target_lengths,
							   GsSegments starts, GsSegments lengths, const uint64_t *offsets,
							   const uint32_t *rows, uint64_t n)
{
	uint64_t base = offsets[0];
	uint64_t warps = gpusort_thread_count() / 32;
	unsigned lane = threadIdx.x % 32;
	for (uint64_t i = gpusort_thread_number() / 32; i < n; i += warps) {
		uint32_t row = rows[i];
		uint32_t length = *lengths.at<uint32_t>(row);
		const unsigned char *source = (const unsigned char *)*starts.at<uint64_t>(row);
		unsigned char *to = target + (offsets[i] - base);
		if (lane == 0)
			target_lengths[i] = length;

		uint32_t head = (uint32_t)(-(uintptr_t)to & 3);
		if (head > length)
			head = length;
		uint32_t words = (length - head) / 4;
		uint32_t tail = length - head - 4 * words;
		if (lane < head)
			to[lane] = source[lane];
		const unsigned char *middle = source + head;
		uint32_t skew = (uint32_t)((uintptr_t)middle & 3);
		const uint32_t *from = (const uint32_t *)(middle - skew);
		for (uint32_t w = lane; w < words; w += 32) {
			uint32_t high = skew ? from[w + 1] : 0;
			((uint32_t *)(to + head))[w] = __funnelshift_r(from[w], high, 8 * skew);
		}
		if (lane < tail)
			to[length - tail + lane] = source[length - tail + lane];
	}
}

#endif /* GPUSORT_GATHER_CUH */
