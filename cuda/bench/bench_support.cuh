/*
 * bench_support.cuh
 *		Support of the benchmarks: inputs made on the device, checks on the device, timing by
 *		events.
 *
 * Programs that include this run only on a GPU, and stop at the first error.
 */
#ifndef GPUSORT_BENCH_SUPPORT_CUH
#define GPUSORT_BENCH_SUPPORT_CUH

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "keys.cuh"

#define BENCH_CHECK(call) bench_check((call), #call, __FILE__, __LINE__)

inline void bench_check(cudaError_t error, const char *what, const char *file, int line)
{
	if (error == cudaSuccess)
		return;
	printf("%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(error));
	exit(2);
}

/* ---- inputs ---- */

enum GsDistribution {
	BENCH_ENTROPY, /* parameter: number of random words combined by AND; 0: constant */
	BENCH_SORTED,
	BENCH_NEARLY_SORTED, /* one of parameter keys is random */
	BENCH_REVERSED,
	BENCH_DENSE,	 /* 0 .. n-1 in a random order */
	BENCH_BELOW,	 /* random below 2^parameter */
	BENCH_DISTINCT,	 /* about 2^parameter distinct random keys */
	BENCH_TIMESTAMPS /* microseconds, within one year */
};

__host__ __device__ inline uint64_t bench_hash(uint64_t x)
{
	x += 0x9E3779B97F4A7C15ull;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

/* A bijection of 0 .. 2^bits - 1 by four Feistel rounds.  bits must be even. */
__device__ inline uint64_t bench_shuffle_power(uint64_t x, int bits)
{
	int half = bits / 2;
	uint64_t mask = ((uint64_t)1 << half) - 1;
	uint64_t left = x >> half, right = x & mask;
	for (int round = 0; round < 4; round++) {
		uint64_t next = left ^ (bench_hash(right * 4 + round) & mask);
		left = right;
		right = next;
	}
	return left << half | right;
}

template <class Key>
__global__ void bench_fill_kernel(Key *keys, uint64_t n, GsDistribution distribution,
								  int parameter, uint64_t seed)
{
	uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
	int bits = 2;
	while (bits < 62 && (uint64_t)1 << bits < n)
		bits += 2;
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
		uint64_t key = bench_hash(i ^ seed << 40);
		/* Increases with i over the whole range of keys. */
		uint64_t ramp =
			(uint64_t)((double)i / (double)n * (sizeof(Key) == 4 ? 4294967295.0 : 1.8e19));
		switch (distribution) {
			case BENCH_ENTROPY:
				key = parameter ? key : 42;
				for (int q = 1; q < parameter; q++)
					key &= bench_hash(i ^ (seed + q) << 40);
				break;
			case BENCH_SORTED:
				key = ramp;
				break;
			case BENCH_NEARLY_SORTED:
				key = key % parameter ? ramp : bench_hash(key);
				break;
			case BENCH_REVERSED:
				key = ~ramp;
				break;
			case BENCH_DENSE:
				key = i;
				do
					key = bench_shuffle_power(key, bits);
				while (key >= n);
				break;
			case BENCH_BELOW:
				key &= ((uint64_t)1 << parameter) - 1;
				break;
			case BENCH_DISTINCT:
				key = bench_hash((key & (((uint64_t)1 << parameter) - 1)) + 12345);
				break;
			case BENCH_TIMESTAMPS:
				key = 820000000000000ull + key % (366ull * 86400 * 1000000);
				break;
		}
		keys[i] = (Key)key;
	}
}

template <class Key>
void bench_fill(Key *keys, uint64_t n, GsDistribution distribution, int parameter,
				uint64_t seed)
{
	bench_fill_kernel<<<1024, 256>>>(keys, n, distribution, parameter, seed);
	BENCH_CHECK(cudaGetLastError());
}

template <class Value>
__global__ void bench_iota_kernel(Value *values, uint64_t n)
{
	uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
		values[i] = (Value)i;
}

/* ---- checks ---- */

struct BenchFindings {
	unsigned long long descents; /* a key is less than its predecessor */
	unsigned long long
		bad_values; /* value does not lead to the key, or a tie is out of order */
	unsigned long long sum_in, sum_out; /* sums of hashed keys */
};

/*
 * Checks out.  If values are given, they must be the row numbers of the keys in `in`; the check
 * is then complete.
 */
template <class Key, class Value>
__global__ void bench_verify_kernel(const Key *in, const Key *out, const Value *values,
									uint64_t n, BenchFindings *findings)
{
	unsigned long long descents = 0, bad = 0, sum_in = 0, sum_out = 0;
	uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
		descents += i > 0 && out[i - 1] > out[i];
		sum_in += bench_hash(in[i]);
		sum_out += bench_hash(out[i]);
		if constexpr (GPUSORT_HAS_VALUE<Value>) {
			bad += (uint64_t)values[i] >= n || in[values[i]] != out[i];
			bad += i > 0 && out[i - 1] == out[i] && values[i - 1] >= values[i];
		}
	}
	atomicAdd(&findings->descents, descents);
	atomicAdd(&findings->bad_values, bad);
	atomicAdd(&findings->sum_in, sum_in);
	atomicAdd(&findings->sum_out, sum_out);
}

template <class Key, class Value>
bool bench_verify(const Key *in, const Key *out, const Value *values, uint64_t n)
{
	BenchFindings *findings, host;
	BENCH_CHECK(cudaMalloc(&findings, sizeof *findings));
	BENCH_CHECK(cudaMemset(findings, 0, sizeof *findings));
	bench_verify_kernel<<<1024, 256>>>(in, out, values, n, findings);
	BENCH_CHECK(cudaGetLastError());
	BENCH_CHECK(cudaMemcpy(&host, findings, sizeof host, cudaMemcpyDeviceToHost));
	BENCH_CHECK(cudaFree(findings));
	return !host.descents && !host.bad_values && host.sum_in == host.sum_out;
}

/* ---- timing ---- */

struct BenchTime {
	float median;
	float least;
	float most;
};

/* Returns the milliseconds of run(stream), measured by events after warm-up runs. */
template <class Run>
BenchTime bench_time(int warmups, int repeats, cudaStream_t stream, Run run)
{
	cudaEvent_t start, end;
	BENCH_CHECK(cudaEventCreate(&start));
	BENCH_CHECK(cudaEventCreate(&end));
	std::vector<float> times;
	for (int i = 0; i < warmups + repeats; i++) {
		BENCH_CHECK(cudaEventRecord(start, stream));
		run();
		BENCH_CHECK(cudaEventRecord(end, stream));
		BENCH_CHECK(cudaEventSynchronize(end));
		float time;
		BENCH_CHECK(cudaEventElapsedTime(&time, start, end));
		if (i >= warmups)
			times.push_back(time);
	}
	BENCH_CHECK(cudaEventDestroy(start));
	BENCH_CHECK(cudaEventDestroy(end));
	std::sort(times.begin(), times.end());
	return {times[times.size() / 2], times.front(), times.back()};
}

#endif /* GPUSORT_BENCH_SUPPORT_CUH */
