/*
 * onesweep_run.cuh
 *		The host side of a onesweep sort: workspace, strips, launches.
 *
 * These are templates over the policy of the sweeps.  The library has one policy for each pair
 * of key and value widths; the benchmark tries others.
 */
#ifndef GPUSORT_ONESWEEP_RUN_CUH
#define GPUSORT_ONESWEEP_RUN_CUH

#include "histogram.cuh"
#include "onesweep.cuh"
#include "sorted_copy.cuh"
#include "sorter.h"

constexpr size_t GPUSORT_ALIGNMENT = 256;

inline size_t gpusort_align_up(size_t size)
{
	return (size + GPUSORT_ALIGNMENT - 1) / GPUSORT_ALIGNMENT * GPUSORT_ALIGNMENT;
}

template <class T>
T gpusort_divide_up(T a, T b)
{
	return (a + b - 1) / b;
}

struct GsStrips {
	uint64_t items; /* of each strip except the last */
	uint32_t count;
	uint64_t tiles; /* of all strips together */
};

template <class Policy>
GsStrips gpusort_split_strips(const GsSorter &sorter, uint64_t n)
{
	uint64_t tiles = GPUSORT_STRIP_ITEMS / Policy::TILE;
	if (sorter.debug.strip_items && sorter.debug.strip_items < tiles * Policy::TILE)
		tiles = gpusort_divide_up<uint64_t>(sorter.debug.strip_items, Policy::TILE);
	uint64_t items = tiles * Policy::TILE;
	return {items, (uint32_t)gpusort_divide_up(n, items),
			gpusort_divide_up<uint64_t>(n, Policy::TILE)};
}

/*
 * Offsets in the workspace of a onesweep sort.  Control block and status words come first and
 * are zeroed together; temporary arrays follow.
 */
struct GsOnesweepLayout {
	size_t status;
	size_t zeroed;
	size_t keys_tmp;
	size_t values_tmp;
	size_t keys_out; /* used if the caller wants no keys */
	size_t total;
};

template <class Key, class Value, class Policy>
GsOnesweepLayout gpusort_onesweep_layout(const GsSorter &sorter, const GsSortJob &job)
{
	GsOnesweepLayout layout;
	size_t keys = gpusort_align_up(job.n * sizeof(Key));
	size_t values = gpusort_align_up(job.n * GPUSORT_VALUE_BYTES<Value>);
	layout.status = gpusort_align_up(sizeof(GsControl));
	layout.zeroed = layout.status + gpusort_split_strips<Policy>(sorter, job.n).tiles *
										GPUSORT_RADIX * sizeof(uint32_t);
	layout.keys_tmp = gpusort_align_up(layout.zeroed);
	layout.values_tmp = layout.keys_tmp + (job.clobber ? 0 : keys);
	layout.keys_out = layout.values_tmp + (job.clobber ? 0 : values);
	layout.total = gpusort_align_up(layout.keys_out + (job.keys_out ? 0 : keys));
	return layout;
}

/* Launches the copy of the input, which ends at the first descent. */
template <class Order, class Value, class Tuning>
cudaError_t gpusort_launch_sorted_copy(const GsSorter &sorter, const Order &order,
									   const GsSortJob &job, const GsDigits &digits,
									   GsControl *control, cudaStream_t stream)
{
	typedef typename Order::Key Key;
	typedef GsSortedCopy<Order, Value, Tuning> SortedCopy;
	GsSortedCopyArgs<Order, Value> args = {};
	args.order = order;
	args.key_mask = gpusort_digits_mask<Key>(digits);
	args.keys_in = (const Key *)job.keys_in;
	args.keys_out = (Key *)job.keys_out;
	args.values_in = (const Value *)job.values_in;
	args.values_out = (Value *)job.values_out;
	args.n = job.n;
	args.unsorted = &control->unsorted;
	uint64_t max_blocks =
		(uint64_t)sorter.multiprocessors * GPUSORT_RESIDENT(Tuning::THREADS, Tuning::BLOCKS);
	uint64_t tiles = gpusort_divide_up<uint64_t>(job.n, SortedCopy::TILE);
	GsLaunch launch = {(unsigned)(tiles < max_blocks ? tiles : max_blocks), SortedCopy::THREADS,
					   0, false, stream};
	return gpusort_launch(launch, gpusort_sorted_copy_kernel<Order, Value, Tuning>, args);
}

/* Launches the histogram.  checked: the sorted copy has been launched before. */
template <class Order>
cudaError_t gpusort_launch_histogram(const GsSorter &sorter, const Order &order,
									 const GsSortJob &job, const GsDigits &digits,
									 GsControl *control, bool checked, cudaStream_t stream)
{
	typedef GsHistogram<Order> Histogram;
	GsHistogramArgs<Order> args = {};
	args.order = order;
	for (uint32_t i = 0; i < digits.count; i++)
		args.digit_of[i] = order.extractor(digits.range[i]);
	args.passes = digits.count;
	args.key_mask = gpusort_digits_mask<typename Order::Key>(digits);
	args.keys = (const typename Order::Key *)job.keys_in;
	args.n = job.n;
	args.control = control;
	args.checked = checked;
	args.clobber = job.clobber;
	uint64_t max_blocks = (uint64_t)sorter.multiprocessors * GsHistogramTuning::BLOCKS;
	uint64_t tiles = gpusort_divide_up<uint64_t>(job.n, Histogram::TILE);
	if (tiles == 0)
		tiles = 1;
	GsLaunch launch = {(unsigned)(tiles < max_blocks ? tiles : max_blocks),
					   GsHistogramTuning::THREADS, sizeof(typename Histogram::Shared), false,
					   stream};
	return gpusort_launch(launch, gpusort_histogram_kernel<Order>, args);
}

template <class Order, class Value, class Position, class Policy>
cudaError_t gpusort_onesweep_run_as(const GsSorter &sorter, const Order &order,
									const GsSortJob &job, const GsDigits &digits,
									unsigned char *workspace, cudaStream_t stream)
{
	typedef typename Order::Key Key;
	typedef GsSweep<Order, Value, Position, Policy> Sweep;
	GsOnesweepLayout layout = gpusort_onesweep_layout<Key, Value, Policy>(sorter, job);
	GsStrips strips = gpusort_split_strips<Policy>(sorter, job.n);

	cudaError_t error = cudaMemsetAsync(workspace, 0, layout.zeroed, stream);
	if (error)
		return error;
	GsControl *control = (GsControl *)workspace;
	uint64_t min_items =
		sorter.debug.copy_items ? sorter.debug.copy_items : GPUSORT_CHECK_ITEMS;
	bool check = job.n >= min_items;
	if (check)
		error = gpusort_launch_sorted_copy<Order, Value, GsSortedCopyTuning>(
			sorter, order, job, digits, control, stream);
	if (!error)
		error = gpusort_launch_histogram(sorter, order, job, digits, control, check, stream);
	if (error)
		return error;

	GsSweepArgs<Order, Value> args = {};
	args.order = order;
	args.control = control;
	args.keys_in = (const Key *)job.keys_in;
	args.keys_tmp = (Key *)(workspace + layout.keys_tmp);
	args.keys_out = (Key *)(job.keys_out ? job.keys_out : workspace + layout.keys_out);
	args.generate = !job.values_in;
	args.values_in = (const Value *)(job.values_in ? job.values_in : job.values_in_buffer);
	args.values_tmp = (Value *)(workspace + layout.values_tmp);
	args.values_out = (Value *)job.values_out;
	args.drop_keys = !job.keys_out;
	args.fallback_polls =
		sorter.debug.fallback_polls ? sorter.debug.fallback_polls : GPUSORT_FALLBACK_POLLS;
	args.delay_every = sorter.debug.delay_every;
	args.delay_polls = sorter.debug.delay_polls;
	for (uint32_t i = 0; i < digits.count; i++) {
		args.digit_of = order.extractor(digits.range[i]);
		args.pass = i;
		for (uint32_t s = 0; s < strips.count; s++) {
			uint64_t first = s * strips.items;
			uint64_t left = job.n - first;
			args.strip_first = first;
			args.strip_items = (uint32_t)(left < strips.items ? left : strips.items);
			args.strip_parity = s % 2;
			args.last_strip = s == strips.count - 1;
			args.status =
				(uint32_t *)(workspace + layout.status) + first / Policy::TILE * GPUSORT_RADIX;
			GsLaunch launch = {gpusort_divide_up<uint32_t>(args.strip_items, Policy::TILE),
							   Policy::THREADS, sizeof(typename Sweep::Shared), false, stream};
			error = gpusort_launch(launch, gpusort_sweep_kernel<Order, Value, Position, Policy>,
								   args);
			if (error)
				return error;
		}
	}
	return cudaSuccess;
}

template <class Order, class Value, class Policy>
cudaError_t gpusort_onesweep_run(const GsSorter &sorter, const Order &order,
								 const GsSortJob &job, const GsDigits &digits,
								 unsigned char *workspace, cudaStream_t stream)
{
	/*
	 * A digit's base minus a slot may wrap around, which is harmless: their sum is right modulo
	 * the width of Position, as long as positions fit in it.
	 */
	if (job.n <= UINT32_MAX)
		return gpusort_onesweep_run_as<Order, Value, uint32_t, Policy>(
			sorter, order, job, digits, workspace, stream);
	return gpusort_onesweep_run_as<Order, Value, uint64_t, Policy>(sorter, order, job, digits,
																   workspace, stream);
}

#endif /* GPUSORT_ONESWEEP_RUN_CUH */
