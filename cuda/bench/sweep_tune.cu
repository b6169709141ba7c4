/*
 * sweep_tune.cu
 *		Times shapes of the sweep kernel: sweep_tune [log2 n ...]
 *
 * For each pair of widths, CUB's time and that of each candidate on the same random keys; every
 * candidate's result is checked.  What is best goes into tuning.cuh by hand.
 */
#include <cub/device/device_radix_sort.cuh>

#include "bench/bench_support.cuh"
#include "onesweep_run.cuh"

static cudaStream_t stream;
static GsSorter sorter;

template <class Key, class Value>
struct Arrays {
	uint64_t n;
	Key *in, *out;
	Value *values_in, *values_out;
	unsigned char *workspace;
	size_t workspace_size;
};

template <class T>
static T *device_array(uint64_t n)
{
	T *pointer;
	BENCH_CHECK(cudaMalloc(&pointer, n * sizeof(T)));
	return pointer;
}

template <class Key, class Value, class Policy>
static void try_policy(const Arrays<Key, Value> &a, float cub)
{
	GsSortJob job = {};
	job.key_width = sizeof(Key);
	job.value_width = (uint32_t)GPUSORT_VALUE_BYTES<Value>;
	job.end_bit = 8 * sizeof(Key);
	job.n = a.n;
	job.keys_in = a.in;
	job.keys_out = a.out;
	job.values_in = GPUSORT_HAS_VALUE<Value> ? a.values_in : nullptr;
	job.values_out = GPUSORT_HAS_VALUE<Value> ? a.values_out : nullptr;
	GsIntegerOrder<Key> order = {0};
	GsPlaces places = {};
	places.count = sizeof(Key);
	for (uint32_t i = 0; i < places.count; i++)
		places.place[i] = {8 * i, 8};
	size_t size = gpusort_onesweep_layout<Key, Value, Policy>(sorter, job).total;
	if (size > a.workspace_size) {
		printf("  working space too small\n");
		return;
	}
	int blocks = 0;
	size_t shared =
		sizeof(typename GsSweep<GsIntegerOrder<Key>, Value, uint32_t, Policy>::Shared);
	auto kernel = gpusort_sweep_kernel<GsIntegerOrder<Key>, Value, uint32_t, Policy>;
	if (cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
							 (int)shared)) {
		cudaGetLastError();
		printf("  %4d x %2d: does not fit\n", Policy::THREADS, Policy::ITEMS);
		return;
	}
	BENCH_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, Policy::THREADS,
															  shared));
	BENCH_CHECK(cudaMemset(a.out, 0xEE, a.n * sizeof(Key)));
	BenchTime time = bench_time(1, a.n > 1 << 26 ? 3 : 9, stream, [&] {
		BENCH_CHECK((gpusort_onesweep_run<GsIntegerOrder<Key>, Value, Policy>(
			sorter, order, job, places, a.workspace, stream)));
	});
	bool good = bench_verify(a.in, a.out, a.values_out, a.n);
	printf("  %4d x %2d, %d (%d) blocks, window %d, %s values: %8.3f ms  %.2f x CUB%s\n",
		   Policy::THREADS, Policy::ITEMS, blocks, Policy::BLOCKS, Policy::WINDOW,
		   Policy::SHARE ? "late" : "early", time.median, cub / time.median,
		   good ? "" : "  WRONG");
	fflush(stdout);
}

template <class Key, class Value>
static float time_cub(const Arrays<Key, Value> &a)
{
	size_t size = a.workspace_size;
	BenchTime time = bench_time(1, a.n > 1 << 26 ? 3 : 9, stream, [&] {
		if constexpr (GPUSORT_HAS_VALUE<Value>)
			BENCH_CHECK(cub::DeviceRadixSort::SortPairs(a.workspace, size, a.in, a.out,
														a.values_in, a.values_out, a.n, 0,
														8 * sizeof(Key), stream));
		else
			BENCH_CHECK(cub::DeviceRadixSort::SortKeys(a.workspace, size, a.in, a.out, a.n, 0,
													   8 * sizeof(Key), stream));
	});
	return time.median;
}

template <class Key, class Value, class... Policies>
static void try_all(int log_n)
{
	Arrays<Key, Value> a;
	a.n = (uint64_t)1 << log_n;
	a.in = device_array<Key>(a.n);
	a.out = device_array<Key>(a.n);
	a.values_in = device_array<Value>(a.n);
	a.values_out = device_array<Value>(a.n);
	a.workspace_size = a.n * (sizeof(Key) + sizeof(Value)) + a.n / 2 + (64 << 20);
	a.workspace = device_array<unsigned char>(a.workspace_size);
	bench_fill(a.in, a.n, BENCH_ENTROPY, 1, 1);
	if constexpr (GPUSORT_HAS_VALUE<Value>)
		bench_iota_kernel<<<1024, 256>>>(a.values_in, a.n);
	float cub = time_cub(a);
	printf("keys %zu, values %zu, n 2^%d: CUB %.3f ms\n", sizeof(Key),
		   GPUSORT_VALUE_BYTES<Value>, log_n, cub);
	(try_policy<Key, Value, Policies>(a, cub), ...);
	GsIntegerOrder<Key> order = {0};
	GsPlaces places = {};
	places.count = sizeof(Key);
	for (uint32_t i = 0; i < places.count; i++)
		places.place[i] = {8 * i, 8};
	GsSortJob job = {};
	job.keys_in = a.in;
	job.n = a.n;
	BenchTime time = bench_time(1, 5, stream, [&] {
		BENCH_CHECK(gpusort_launch_histogram(sorter, order, job, places,
											 (GsControl *)a.workspace, stream));
	});
	printf("  histogram alone: %.3f ms\n", time.median);
	BENCH_CHECK(cudaFree(a.in));
	BENCH_CHECK(cudaFree(a.out));
	BENCH_CHECK(cudaFree(a.values_in));
	BENCH_CHECK(cudaFree(a.values_out));
	BENCH_CHECK(cudaFree(a.workspace));
}

template <int T, int I, int B, int W, bool S>
using P = GsSweepPolicy<T, I, B, W, S>;

int main(int count, char **arguments)
{
	BENCH_CHECK(cudaStreamCreate(&stream));
	cudaDeviceProp properties;
	BENCH_CHECK(cudaGetDeviceProperties(&properties, 0));
	sorter.multiprocessors = properties.multiProcessorCount;
	sorter.shared_memory = properties.sharedMemPerBlockOptin;
	printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
	for (int i = 1; i < count; i++) {
		int log_n = atoi(arguments[i]);
		try_all<uint32_t, GsNoValue, P<256, 36, 4, 4, false>, P<256, 48, 3, 4, false>,
				P<384, 32, 2, 4, false>, P<384, 20, 3, 4, false>>(log_n);
		try_all<uint64_t, GsNoValue, P<384, 24, 2, 4, false>, P<256, 26, 3, 4, false>,
				P<384, 20, 2, 4, false>>(log_n);
		try_all<uint32_t, uint32_t, P<384, 26, 2, 4, false>, P<384, 32, 2, 4, true>,
				P<384, 36, 2, 4, true>, P<384, 40, 2, 4, true>>(log_n);
		try_all<uint64_t, uint32_t, P<384, 18, 2, 4, false>, P<384, 22, 2, 4, true>,
				P<384, 24, 2, 4, true>>(log_n);
		try_all<uint64_t, uint64_t, P<384, 14, 2, 4, false>, P<384, 22, 2, 4, true>,
				P<384, 24, 2, 4, true>>(log_n);
	}
	return 0;
}
