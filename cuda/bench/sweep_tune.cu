/*
 * sweep_tune.cu
 *		Times policies of kernels: sweep_tune [log2 n ...] [ranks] [grids] [copies]
 *
 * For each pair of widths it prints the times of CUB and of each candidate on the same random
 * keys.  The result of every candidate is checked.  Numbers try policies of the sweep.  "ranks"
 * and "grids" try those of the sorts in one launch, at all sizes for which they are meant;
 * "copies" tries the copy of sorted keys.  The best ones are entered in tuning.cuh by hand.
 */
#include <cub/device/device_radix_sort.cuh>

#include <cstring>

#include "bench/bench_support.cuh"
#include "onesweep_run.cuh"
#include "rank_sort.cuh"

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
	GsDigits digits = {};
	digits.count = sizeof(Key);
	for (uint32_t i = 0; i < digits.count; i++)
		digits.range[i] = {8 * i, 8};
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
			sorter, order, job, digits, a.workspace, stream)));
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

/* Random keys, with row numbers as values. */
template <class Key, class Value>
static Arrays<Key, Value> make_arrays(int log_n)
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
	return a;
}

template <class Key, class Value>
static void free_arrays(const Arrays<Key, Value> &a)
{
	BENCH_CHECK(cudaFree(a.in));
	BENCH_CHECK(cudaFree(a.out));
	BENCH_CHECK(cudaFree(a.values_in));
	BENCH_CHECK(cudaFree(a.values_out));
	BENCH_CHECK(cudaFree(a.workspace));
}

template <class Key, class Value, class... Policies>
static void try_all(int log_n)
{
	Arrays<Key, Value> a = make_arrays<Key, Value>(log_n);
	float cub = time_cub(a);
	printf("keys %zu, values %zu, n 2^%d: CUB %.3f ms\n", sizeof(Key),
		   GPUSORT_VALUE_BYTES<Value>, log_n, cub);
	(try_policy<Key, Value, Policies>(a, cub), ...);
	GsIntegerOrder<Key> order = {0};
	GsDigits digits = {};
	digits.count = sizeof(Key);
	for (uint32_t i = 0; i < digits.count; i++)
		digits.range[i] = {8 * i, 8};
	GsSortJob job = {};
	job.keys_in = a.in;
	job.n = a.n;
	BenchTime time = bench_time(1, 5, stream, [&] {
		BENCH_CHECK(gpusort_launch_histogram(sorter, order, job, digits,
											 (GsControl *)a.workspace, false, stream));
	});
	printf("  histogram alone: %.3f ms\n", time.median);
	free_arrays(a);
}

template <int T, int I, int B, int W, bool S>
using P = GsSweepPolicy<T, I, B, W, S>;

/* ---- sorts in one launch ---- */

template <class Key, class Value>
static GsSmallSortArgs<GsIntegerOrder<Key>, Value> small_args(const Arrays<Key, Value> &a)
{
	GsSmallSortArgs<GsIntegerOrder<Key>, Value> args = {};
	args.passes = sizeof(Key);
	for (uint32_t i = 0; i < args.passes; i++)
		args.digit_of[i] = args.order.extractor({8 * i, 8});
	args.key_mask = (Key) ~(Key)0;
	args.keys_in = a.in;
	args.keys_out = a.out;
	args.values_in = a.values_in;
	args.values_out = a.values_out;
	args.n = (uint32_t)a.n;
	args.keys_tmp = (Key *)a.workspace;
	args.values_tmp = (Value *)(a.workspace + gpusort_align_up(a.n * sizeof(Key)));
	args.exchange = (GsGridExchange *)sorter.exchange;
	return args;
}

template <class Key, class Value, class Launch>
static void time_small(const Arrays<Key, Value> &a, const char *name, Launch launch)
{
	BENCH_CHECK(cudaMemset(a.out, 0xEE, a.n * sizeof(Key)));
	BenchTime time = bench_time(3, 101, stream, [&] { BENCH_CHECK(launch(small_args(a))); });
	bool good = bench_verify(a.in, a.out, a.values_out, a.n);
	printf("  %s %.2f%s", name, 1000 * time.median, good ? "" : " WRONG");
	fflush(stdout);
}

template <class Policy, class Key, class Value>
static void try_rank(const Arrays<Key, Value> &a)
{
	char name[40];
	snprintf(name, sizeof name, "%dx%d/%d", Policy::THREADS, Policy::ITEMS, Policy::GROUPS);
	time_small(a, name, [](const auto &args) {
		return gpusort_launch_rank_sort<GsIntegerOrder<Key>, Value, Policy>(args, stream);
	});
}

template <class Policy, class Key, class Value>
static void try_grid(const Arrays<Key, Value> &a)
{
	char name[40];
	snprintf(name, sizeof name, "%dx%d", Policy::BLOCKS, Policy::THREADS);
	if (a.n <= (uint64_t)Policy::BLOCKS * Policy::THREADS * Policy::ITEMS)
		time_small(a, name, [](const auto &args) {
			return gpusort_launch_grid_sort<GsIntegerOrder<Key>, Value, Policy>(
				args, Policy::BLOCKS, stream);
		});
}

/* Prints microseconds at each size.  try_shapes(arrays) tries all policies. */
template <class Key, class Value, class Try>
static void try_small(int log_least, int log_most, Try try_shapes)
{
	for (int log_n = log_least; log_n <= log_most; log_n++) {
		Arrays<Key, Value> a = make_arrays<Key, Value>(log_n);
		printf("keys %zu, values %zu, n 2^%d: CUB %.2f us", sizeof(Key),
			   GPUSORT_VALUE_BYTES<Value>, log_n, 1000 * time_cub(a));
		try_shapes(a);
		printf("\n");
		free_arrays(a);
	}
}

template <class Key, class Value>
static void try_ranks()
{
	constexpr int F = 32 / sizeof(Key);
	try_small<Key, Value>(8, 15, [](const Arrays<Key, Value> &a) {
		try_rank<GsRankPolicy<256, 4, 8, F>>(a);
		try_rank<GsRankPolicy<512, 4, 8, F>>(a);
		try_rank<GsRankPolicy<512, 4, 4, F>>(a);
		try_rank<GsRankPolicy<512, 8, 8, F>>(a);
		try_rank<GsRankPolicy<512, 8, 4, F>>(a);
		try_rank<GsRankPolicy<512, 8, 2, F>>(a);
		try_rank<GsRankPolicy<1024, 8, 2, F>>(a);
	});
}

template <class Key, class Value>
static void try_grids()
{
	try_small<Key, Value>(12, 18, [](const Arrays<Key, Value> &a) {
		try_grid<GsGridPolicy<512, 8, 16>>(a);
		try_grid<GsGridPolicy<512, 8, 32>>(a);
		try_grid<GsGridPolicy<512, 8, 64>>(a);
		try_grid<GsGridPolicy<1024, 4, 32>>(a);
		try_grid<GsGridPolicy<1024, 4, 64>>(a);
	});
}

/* ---- sorted input ---- */

template <class Key, class Value, class Policy>
static void try_copy(const Arrays<Key, Value> &a)
{
	GsSortJob job = {};
	job.n = a.n;
	job.keys_in = a.in;
	job.keys_out = a.out;
	job.values_in = a.values_in;
	job.values_out = a.values_out;
	GsDigits digits = {};
	digits.count = sizeof(Key);
	for (uint32_t i = 0; i < digits.count; i++)
		digits.range[i] = {8 * i, 8};
	GsIntegerOrder<Key> order = {0};
	BENCH_CHECK(cudaMemset(a.workspace, 0, sizeof(GsControl)));
	BENCH_CHECK(cudaMemset(a.out, 0xEE, a.n * sizeof(Key)));
	BenchTime time = bench_time(1, 9, stream, [&] {
		BENCH_CHECK((gpusort_launch_sorted_copy<GsIntegerOrder<Key>, Value, Policy>(
			sorter, order, job, digits, (GsControl *)a.workspace, stream)));
	});
	bool good = bench_verify(a.in, a.out, a.values_out, a.n);
	printf("  %dx%dx%d %.4f ms%s", Policy::THREADS, Policy::BLOCKS, Policy::VECTORS,
		   time.median, good ? "" : " WRONG");
	fflush(stdout);
}

template <class Key, class Value>
static void try_copies(int log_n)
{
	Arrays<Key, Value> a = make_arrays<Key, Value>(log_n);
	bench_fill(a.in, a.n, BENCH_SORTED, 0, 1);
	printf("sorted keys %zu, values %zu, n 2^%d:", sizeof(Key), GPUSORT_VALUE_BYTES<Value>,
		   log_n);
	try_copy<Key, Value, GsSortedCopyPolicy<512, 2, 4>>(a);
	try_copy<Key, Value, GsSortedCopyPolicy<512, 2, 2>>(a);
	try_copy<Key, Value, GsSortedCopyPolicy<512, 3, 2>>(a);
	try_copy<Key, Value, GsSortedCopyPolicy<256, 4, 4>>(a);
	try_copy<Key, Value, GsSortedCopyPolicy<256, 8, 1>>(a);
	try_copy<Key, Value, GsSortedCopyPolicy<256, 6, 2>>(a);
	printf("\n");
	free_arrays(a);
}

int main(int count, char **arguments)
{
	BENCH_CHECK(cudaStreamCreate(&stream));
	cudaDeviceProp properties;
	BENCH_CHECK(cudaGetDeviceProperties(&properties, 0));
	sorter.multiprocessors = properties.multiProcessorCount;
	printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
	sorter.exchange = device_array<GsGridExchange>(1);
	BENCH_CHECK(cudaMemset(sorter.exchange, 0, sizeof(GsGridExchange)));
	for (int i = 1; i < count; i++) {
		if (!strcmp(arguments[i], "ranks")) {
			try_ranks<uint32_t, GsNoValue>();
			try_ranks<uint64_t, GsNoValue>();
			continue;
		}
		if (!strcmp(arguments[i], "grids")) {
			try_grids<uint32_t, GsNoValue>();
			try_grids<uint64_t, GsNoValue>();
			try_grids<uint64_t, uint64_t>();
			continue;
		}
		if (!strcmp(arguments[i], "copies")) {
			try_copies<uint32_t, GsNoValue>(28);
			try_copies<uint64_t, GsNoValue>(28);
			try_copies<uint32_t, uint32_t>(28);
			try_copies<uint64_t, uint64_t>(28);
			continue;
		}
		int log_n = atoi(arguments[i]);
		try_all<uint32_t, GsNoValue, P<256, 36, 4, 4, false>, P<256, 48, 3, 4, false>,
				P<384, 32, 2, 4, false>, P<384, 20, 3, 4, false>>(log_n);
		try_all<uint64_t, GsNoValue, P<384, 24, 2, 4, false>, P<256, 26, 3, 4, false>,
				P<384, 20, 2, 4, false>>(log_n);
		try_all<uint32_t, uint32_t, P<384, 26, 2, 4, false>, P<384, 32, 2, 4, true>,
				P<384, 36, 2, 4, true>, P<384, 40, 2, 4, true>>(log_n);
		try_all<uint64_t, uint32_t, P<384, 20, 2, 4, true>, P<384, 22, 2, 4, true>,
				P<384, 24, 2, 4, true>>(log_n);
		try_all<uint64_t, uint64_t, P<384, 20, 2, 4, true>, P<384, 22, 2, 4, true>,
				P<384, 24, 2, 4, true>>(log_n);
	}
	return 0;
}
