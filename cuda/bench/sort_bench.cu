/*
 * sort_bench.cu
 *		Benchmark against CUB: sort_bench [--csv FILE] [GROUP ...]
 *
 * Every line is one input, sorted by this library and by cub::DeviceRadixSort in the same
 * process, one after the other, on the same arrays.  It has the median and spread in
 * milliseconds of runs timed by events.  The keys and values of pairs are given, not generated.
 * Inputs stay unchanged, as with CUB.  Every result is checked on the device.
 *
 * Groups: phases, sizes, entropy, database (these by default), paths, sorted, huge.
 */
#include <cub/device/device_radix_sort.cuh>

#include <cstring>
#include <string>

#include "bench/bench_support.cuh"
#include "onesweep_run.cuh"

namespace
{

cudaStream_t stream;
GsSorter sorter;
FILE *csv;
double copy_bandwidth; /* bytes per second, read and written */
bool all_good = true;

struct Arrays {
	uint64_t capacity; /* bytes of each array */
	unsigned char *in, *out, *values_in, *values_out, *workspace;
	size_t workspace_size;
};
Arrays arrays;

void *device_memory(size_t size)
{
	void *pointer;
	BENCH_CHECK(cudaMalloc(&pointer, size));
	return pointer;
}

template <class Key, class Value>
GsSortJob make_job(uint64_t n)
{
	GsSortJob job = {};
	job.key_width = sizeof(Key);
	job.value_width = (uint32_t)GPUSORT_VALUE_BYTES<Value>;
	job.end_bit = 8 * sizeof(Key);
	job.n = n;
	job.keys_in = arrays.in;
	job.keys_out = arrays.out;
	if (GPUSORT_HAS_VALUE<Value>) {
		job.values_in = arrays.values_in;
		job.values_out = arrays.values_out;
	}
	return job;
}

int repeats_for(uint64_t n)
{
	return n <= 1 << 20 ? 51 : n <= 1 << 24 ? 21 : n <= 1 << 28 ? 7 : 3;
}

template <class Key, class Value>
BenchTime time_ours(uint64_t n)
{
	GsSortJob job = make_job<Key, Value>(n);
	if (gpusort_sorter_workspace(&sorter, &job) > arrays.workspace_size) {
		printf("working space is too small\n");
		exit(2);
	}
	return bench_time(3, repeats_for(n), stream, [&] {
		BENCH_CHECK(gpusort_sorter_run(&sorter, &job, arrays.workspace, stream));
	});
}

template <class Key, class Value>
BenchTime time_cub(uint64_t n)
{
	size_t size = arrays.workspace_size;
	const Key *in = (const Key *)arrays.in;
	Key *out = (Key *)arrays.out;
	return bench_time(3, repeats_for(n), stream, [&] {
		if constexpr (GPUSORT_HAS_VALUE<Value>)
			BENCH_CHECK(cub::DeviceRadixSort::SortPairs(
				arrays.workspace, size, in, out, (const Value *)arrays.values_in,
				(Value *)arrays.values_out, n, 0, 8 * sizeof(Key), stream));
		else
			BENCH_CHECK(cub::DeviceRadixSort::SortKeys(arrays.workspace, size, in, out, n, 0,
													   8 * sizeof(Key), stream));
	});
}

/*
 * Returns the bytes that a sort by all digits moves: a read for the histogram, and a read and a
 * write per digit.
 */
template <class Key, class Value>
double bytes_moved(uint64_t n)
{
	return (double)n *
		   (sizeof(Key) + 2.0 * sizeof(Key) * (sizeof(Key) + GPUSORT_VALUE_BYTES<Value>));
}

template <class Key, class Value>
void bench_line(uint64_t n, GsDistribution distribution, int parameter, const char *what)
{
	Key *in = (Key *)arrays.in;
	bench_fill(in, n, distribution, parameter, n);
	if constexpr (GPUSORT_HAS_VALUE<Value>)
		bench_iota_kernel<<<1024, 256>>>((Value *)arrays.values_in, n);
	BENCH_CHECK(cudaDeviceSynchronize());
	BenchTime cub = time_cub<Key, Value>(n);
	BENCH_CHECK(cudaMemset(arrays.out, 0xEE, n * sizeof(Key)));
	BenchTime ours = time_ours<Key, Value>(n);
	bool good = bench_verify(in, (const Key *)arrays.out, (const Value *)arrays.values_out, n);
	all_good &= good;
	double fraction = bytes_moved<Key, Value>(n) / (ours.median * 1e-3) / copy_bandwidth;
	printf(
		"u%zu/%zu  n %10llu  %-24s %9.4f (%.4f..%.4f) ms  CUB %9.4f (%.4f..%.4f) ms  %5.2f x  "
		"%6.2f Gkeys/s  %3.0f %%%s\n",
		8 * sizeof(Key), 8 * GPUSORT_VALUE_BYTES<Value>, (unsigned long long)n, what,
		ours.median, ours.least, ours.most, cub.median, cub.least, cub.most,
		cub.median / ours.median, n / ours.median / 1e6, 100 * fraction, good ? "" : "  WRONG");
	fflush(stdout);
	if (csv)
		fprintf(csv, "%zu,%zu,%llu,%s,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%d\n", sizeof(Key),
				GPUSORT_VALUE_BYTES<Value>, (unsigned long long)n, what, ours.median,
				ours.least, ours.most, cub.median, cub.least, cub.most, (int)good);
}

/* Runs all five combinations of key and value widths. */
void bench_shapes(uint64_t n, GsDistribution distribution, int parameter, const char *what)
{
	bench_line<uint32_t, GsNoValue>(n, distribution, parameter, what);
	bench_line<uint64_t, GsNoValue>(n, distribution, parameter, what);
	bench_line<uint32_t, uint32_t>(n, distribution, parameter, what);
	bench_line<uint64_t, uint32_t>(n, distribution, parameter, what);
	bench_line<uint64_t, uint64_t>(n, distribution, parameter, what);
}

void bench_sizes()
{
	for (int log_n = 10; log_n <= 30; log_n += log_n < 22 ? 1 : 2)
		bench_shapes((uint64_t)1 << log_n, BENCH_ENTROPY, 1, "random");
}

/* Sorts small inputs by every path that can sort them, to find the limits in tuning.cuh. */
template <class Key, class Value>
void bench_paths()
{
	for (int log_n = 8; log_n <= 20; log_n++) {
		uint64_t n = (uint64_t)1 << log_n;
		GsSortJob job = make_job<Key, Value>(n);
		bench_fill((Key *)arrays.in, n, BENCH_ENTROPY, 1, n);
		printf("u%zu/%zu  n 2^%-2d  CUB %.4f", 8 * sizeof(Key), 8 * GPUSORT_VALUE_BYTES<Value>,
			   log_n, time_cub<Key, Value>(n).median);
		for (GsSortPath path : {GPUSORT_PATH_RANK, GPUSORT_PATH_BLOCK, GPUSORT_PATH_GRID,
								GPUSORT_PATH_ONESWEEP}) {
			sorter.debug.path = path;
			if (gpusort_sorter_path(&sorter, &job) == path)
				printf("  %s %.4f",
					   path == GPUSORT_PATH_RANK	? "rank"
					   : path == GPUSORT_PATH_BLOCK ? "block"
					   : path == GPUSORT_PATH_GRID	? "grid"
													: "onesweep",
					   time_ours<Key, Value>(n).median);
		}
		sorter.debug.path = GPUSORT_PATH_AUTO;
		printf("\n");
	}
}

/*
 * Sorts inputs that are already sorted, and others, with sizes around the limit of the sorted
 * copy.
 */
void bench_sorted()
{
	for (int log_n = 20; log_n <= 25; log_n++) {
		uint64_t n = (uint64_t)1 << log_n;
		bench_shapes(n, BENCH_ENTROPY, 1, "random");
		bench_shapes(n, BENCH_SORTED, 0, "sorted");
		bench_shapes(n, BENCH_ENTROPY, 0, "all equal");
	}
}

void bench_entropy()
{
	for (int samples : {0, 1, 2, 3, 4, 8, 16})
		bench_shapes((uint64_t)1 << 28, BENCH_ENTROPY, samples,
					 ("entropy band " + std::to_string(samples)).c_str());
}

void bench_database()
{
	uint64_t n = (uint64_t)1 << 26;
	bench_shapes(n, BENCH_DENSE, 0, "dense ids");
	bench_shapes(n, BENCH_BELOW, 27, "ids below 2^27");
	bench_shapes(n, BENCH_TIMESTAMPS, 0, "timestamps of a year");
	bench_shapes(n, BENCH_DISTINCT, 16, "64 k distinct");
	bench_shapes(n, BENCH_SORTED, 0, "sorted");
	bench_shapes(n, BENCH_ENTROPY, 0, "all equal");
	bench_shapes(n, BENCH_NEARLY_SORTED, 1000, "1 of 1000 out of place");
	bench_shapes(n, BENCH_REVERSED, 0, "reversed");
	bench_line<uint64_t, uint32_t>((uint64_t)1 << 28, BENCH_BELOW, 27, "ids below 2^27");
	bench_shapes((uint64_t)1 << 28, BENCH_SORTED, 0, "sorted");
}

/* ---- phases ---- */

template <class Key, class Value>
void bench_phases(uint64_t n)
{
	bench_fill((Key *)arrays.in, n, BENCH_ENTROPY, 1, 1);
	if constexpr (GPUSORT_HAS_VALUE<Value>)
		bench_iota_kernel<<<1024, 256>>>((Value *)arrays.values_in, n);
	GsSortJob job = make_job<Key, Value>(n);
	GsIntegerOrder<Key> order = {0};
	GsDigits digits = {};
	digits.count = sizeof(Key);
	for (uint32_t i = 0; i < digits.count; i++)
		digits.range[i] = {8 * i, 8};
	BenchTime all = time_ours<Key, Value>(n);
	BenchTime histogram = bench_time(1, 5, stream, [&] {
		BENCH_CHECK(cudaMemsetAsync(arrays.workspace, 0, sizeof(GsControl), stream));
		BENCH_CHECK(gpusort_launch_histogram(sorter, order, job, digits,
											 (GsControl *)arrays.workspace, false, stream));
	});
	double sweep = (all.median - histogram.median) / sizeof(Key);
	double sweep_bytes = 2.0 * n * (sizeof(Key) + GPUSORT_VALUE_BYTES<Value>);
	printf("u%zu/%zu  n %llu  histogram %.3f ms (%.2f TB/s), a sweep %.3f ms (%.2f TB/s, %.0f "
		   "%% of "
		   "copying)\n",
		   8 * sizeof(Key), 8 * GPUSORT_VALUE_BYTES<Value>, (unsigned long long)n,
		   histogram.median, n * sizeof(Key) / histogram.median / 1e9, sweep,
		   sweep_bytes / sweep / 1e9, 100 * sweep_bytes / (sweep * 1e-3) / copy_bandwidth);
}

void measure_copy()
{
	uint64_t bytes = (uint64_t)4 << 30;
	BenchTime time = bench_time(1, 5, stream, [&] {
		BENCH_CHECK(
			cudaMemcpyAsync(arrays.out, arrays.in, bytes, cudaMemcpyDeviceToDevice, stream));
	});
	copy_bandwidth = 2.0 * bytes / (time.median * 1e-3);
	printf("device-to-device copy: %.2f TB/s, read and written\n", copy_bandwidth / 1e12);
}

/* More items than 32-bit positions, or than a strip: 2^31 + 1 keys, and more than 2^32. */
void bench_huge()
{
	bench_line<uint32_t, GsNoValue>(((uint64_t)1 << 31) + 1, BENCH_ENTROPY, 1, "random");
	bench_line<uint32_t, uint32_t>(((uint64_t)1 << 31) + 1, BENCH_ENTROPY, 1, "random");
	bench_line<uint32_t, GsNoValue>(((uint64_t)1 << 32) + 12345, BENCH_ENTROPY, 1, "random");
}

} // namespace

int main(int count, char **arguments)
{
	std::vector<std::string> groups;
	for (int i = 1; i < count; i++) {
		if (!strcmp(arguments[i], "--csv") && i + 1 < count)
			csv = fopen(arguments[++i], "w");
		else
			groups.push_back(arguments[i]);
	}
	if (groups.empty())
		groups = {"phases", "sizes", "entropy", "database"};
	bool huge = std::find(groups.begin(), groups.end(), "huge") != groups.end();

	BENCH_CHECK(cudaStreamCreate(&stream));
	cudaDeviceProp properties;
	BENCH_CHECK(cudaGetDeviceProperties(&properties, 0));
	BENCH_CHECK(gpusort_sorter_init(&sorter, properties));
	sorter.exchange = device_memory(gpusort_sorter_exchange_bytes());
	BENCH_CHECK(cudaMemset(sorter.exchange, 0, gpusort_sorter_exchange_bytes()));
	arrays.capacity = huge ? (uint64_t)18 << 30 : (uint64_t)8 << 30;
	arrays.in = (unsigned char *)device_memory(arrays.capacity);
	arrays.out = (unsigned char *)device_memory(arrays.capacity);
	arrays.values_in = (unsigned char *)device_memory(arrays.capacity);
	arrays.values_out = (unsigned char *)device_memory(arrays.capacity);
	arrays.workspace_size = 2 * arrays.capacity + ((size_t)1 << 30);
	arrays.workspace = (unsigned char *)device_memory(arrays.workspace_size);

	int runtime;
	BENCH_CHECK(cudaRuntimeGetVersion(&runtime));
	printf("%s, %d multiprocessors, CUDA %d.%d, CUB %d.%d.%d\n", properties.name,
		   properties.multiProcessorCount, runtime / 1000, runtime % 1000 / 10,
		   CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
	if (csv)
		fprintf(csv, "key_bytes,value_bytes,n,input,ms,ms_least,ms_most,cub_ms,cub_ms_least,"
					 "cub_ms_most,good\n");
	measure_copy();
	for (const std::string &group : groups) {
		if (group == "sizes")
			bench_sizes();
		else if (group == "entropy")
			bench_entropy();
		else if (group == "database")
			bench_database();
		else if (group == "phases") {
			bench_phases<uint32_t, GsNoValue>((uint64_t)1 << 28);
			bench_phases<uint32_t, uint32_t>((uint64_t)1 << 28);
			bench_phases<uint64_t, uint64_t>((uint64_t)1 << 28);
		} else if (group == "paths") {
			bench_paths<uint32_t, GsNoValue>();
			bench_paths<uint64_t, GsNoValue>();
			bench_paths<uint64_t, uint64_t>();
		} else if (group == "sorted")
			bench_sorted();
		else if (group == "huge")
			bench_huge();
		else {
			printf("unknown group %s\n", group.c_str());
			return 2;
		}
	}
	if (csv)
		fclose(csv);
	return all_good ? 0 : 1;
}
