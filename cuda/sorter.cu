/*
 * sorter.cu
 *		Chooses and launches the kernels of a sort.
 */
#include "sorter.h"

#include <cmath>
#include <cstring>

#include "onesweep_run.cuh"
#include "rank_sort.cuh"
#include "small_sort.cuh"
#include "tuning.cuh"

namespace
{

/*
 * Splits a range of bits into digits: as few as possible, and of about the same width.  An
 * empty range gives a single digit of no width, which never varies.
 */
GsDigits split_bits(uint32_t begin_bit, uint32_t end_bit)
{
	GsDigits digits = {};
	uint32_t bits = end_bit - begin_bit;
	if (bits == 0) {
		digits.count = 1;
		return digits;
	}
	digits.count = gpusort_divide_up<uint32_t>(bits, GPUSORT_RADIX_BITS);
	for (uint32_t i = 0, begin = begin_bit; i < digits.count; i++) {
		uint32_t width = bits / digits.count + (i < bits % digits.count);
		digits.range[i] = {begin, width};
		begin += width;
	}
	return digits;
}

/* Calls use.template run<Key, Value>() for the widths of a job. */
template <class Use>
auto with_widths(uint32_t key_width, uint32_t value_width, Use use)
{
	if (key_width == 4)
		return value_width == 0	  ? use.template run<uint32_t, GsNoValue>()
			   : value_width == 4 ? use.template run<uint32_t, uint32_t>()
								  : use.template run<uint32_t, uint64_t>();
	return value_width == 0	  ? use.template run<uint64_t, GsNoValue>()
		   : value_width == 4 ? use.template run<uint64_t, uint32_t>()
							  : use.template run<uint64_t, uint64_t>();
}

template <class Key>
GsIntegerOrder<Key> integer_order(const GsSortJob &job)
{
	Key flip = job.order == GPUSORT_SIGNED ? GPUSORT_TOP_BIT<Key> : 0;
	return {job.descending ? (Key)~flip : flip};
}

template <class Key>
GsFloatOrder<Key> float_order(const GsSortJob &job)
{
	return {job.descending ? (Key) ~(Key)0 : (Key)0};
}

/*
 * Returns the number of blocks of a grid sort: one per multiprocessor, since all must be
 * resident.
 */
template <class Grid>
uint32_t grid_blocks(const GsSorter &sorter)
{
	return sorter.multiprocessors < Grid::BLOCKS ? sorter.multiprocessors : Grid::BLOCKS;
}

/* Launches the rank sort with the smallest blocks that the device can run at once. */
template <class Order, class Value>
cudaError_t run_by_ranks(const GsSorter &sorter, const GsSmallSortArgs<Order, Value> &args,
						 cudaStream_t stream)
{
	typedef GsRankSmall<sizeof(typename Order::Key)> Small;
	typedef GsRankMedium<sizeof(typename Order::Key)> Medium;
	typedef GsRankLarge<sizeof(typename Order::Key)> Large;
	uint32_t multiprocessors = (uint32_t)sorter.multiprocessors;
	if (args.n <= multiprocessors * Small::OWN)
		return gpusort_launch_rank_sort<Order, Value, Small>(args, stream);
	if (args.n <= multiprocessors * Medium::OWN)
		return gpusort_launch_rank_sort<Order, Value, Medium>(args, stream);
	return gpusort_launch_rank_sort<Order, Value, Large>(args, stream);
}

template <class Order, class Value>
cudaError_t run_small(const GsSorter &sorter, GsSortPath path, const Order &order,
					  const GsSortJob &job, const GsDigits &digits, unsigned char *workspace,
					  cudaStream_t stream)
{
	typedef typename Order::Key Key;
	GsSmallSortArgs<Order, Value> args = {};
	args.order = order;
	for (uint32_t i = 0; i < digits.count; i++)
		args.digit_of[i] = order.extractor(digits.range[i]);
	args.passes = digits.count;
	args.key_mask = gpusort_digits_mask<Key>(digits);
	args.keys_in = (const Key *)job.keys_in;
	args.keys_out = (Key *)job.keys_out;
	args.values_in = (const Value *)job.values_in;
	args.values_out = (Value *)job.values_out;
	args.n = (uint32_t)job.n;
	if (path == GPUSORT_PATH_WARP) {
		GsLaunch launch = {1, 32, 0, false, stream};
		return gpusort_launch(launch, gpusort_warp_sort_kernel<Order, Value>, args);
	}
	if (path == GPUSORT_PATH_RANK)
		return run_by_ranks(sorter, args, stream);
	if (path == GPUSORT_PATH_BLOCK)
		return gpusort_launch_block_sort<
			Order, Value, GsBlockSortTuning<sizeof(Key), GPUSORT_VALUE_BYTES<Value>>>(args,
																					  stream);
	args.keys_tmp = (Key *)workspace;
	args.values_tmp = (Value *)(workspace + gpusort_align_up(job.n * sizeof(Key)));
	args.exchange = (GsGridExchange *)sorter.exchange;
	typedef GsGridSortTuning<sizeof(Key), GPUSORT_VALUE_BYTES<Value>> Grid;
	return gpusort_launch_grid_sort<Order, Value, Grid>(args, grid_blocks<Grid>(sorter),
														stream);
}

/* The two policies of sweeps over keys and values of these types. */
template <class Key, class Value>
struct Sweeps {
	static constexpr int VALUE_BYTES = (int)GPUSORT_VALUE_BYTES<Value>;
	typedef GsSweepTuning<sizeof(Key), VALUE_BYTES, GPUSORT_LARGE_TILES> Large;
	typedef GsSweepTuning<sizeof(Key), VALUE_BYTES, GPUSORT_SMALL_TILES> Small;

	/*
	 * Returns whether two blocks with large tiles fit on a multiprocessor.  One block alone
	 * could not load keys while it ranks others.  A multiprocessor has a kB more than a block
	 * may use, and takes a kB for each block.
	 */
	static bool large_fit(const GsSorter &sorter)
	{
		typedef typename GsSweep<GsIntegerOrder<Key>, Value, uint64_t, Large>::Shared Shared;
		return 2 * (sizeof(Shared) + 1024) <= sorter.shared_memory + 1024;
	}

	/* Returns the largest n for which small tiles are faster. */
	static uint64_t small_items(const GsSorter &sorter)
	{
		return (uint64_t)GsSmallTileLimit<sizeof(Key), VALUE_BYTES>::ITEMS *
			   sorter.multiprocessors / GPUSORT_SMALL_TILE_MULTIPROCESSORS;
	}

	static bool large(const GsSorter &sorter, const GsSortJob &job)
	{
		bool forced = sorter.debug.path == GPUSORT_PATH_ONESWEEP;
		return large_fit(sorter) && (forced || job.n > small_items(sorter));
	}
};

struct RunJob {
	const GsSorter &sorter;
	const GsSortJob &job;
	unsigned char *workspace;
	cudaStream_t stream;

	template <class Order, class Value>
	cudaError_t run_with(const Order &order) const
	{
		typedef typename Order::Key Key;
		typedef Sweeps<Key, Value> Sweeps;
		GsDigits digits = split_bits(job.begin_bit, job.end_bit);
		GsSortPath path = gpusort_sorter_path(&sorter, &job);
		if (path != GPUSORT_PATH_ONESWEEP)
			return run_small<Order, Value>(sorter, path, order, job, digits, workspace, stream);
		if (Sweeps::large(sorter, job))
			return gpusort_onesweep_run<Order, Value, typename Sweeps::Large>(
				sorter, order, job, digits, workspace, stream);
		/*
		 * Devices on which large tiles do not fit do not have enough memory for items whose
		 * positions need 64 bits.
		 */
		return gpusort_onesweep_run_as<Order, Value, uint32_t, typename Sweeps::Small>(
			sorter, order, job, digits, workspace, stream);
	}

	template <class Key, class Value>
	cudaError_t run() const
	{
		if (job.order == GPUSORT_FLOAT)
			return run_with<GsFloatOrder<Key>, Value>(float_order<Key>(job));
		return run_with<GsIntegerOrder<Key>, Value>(integer_order<Key>(job));
	}
};

struct MeasureJob {
	const GsSorter &sorter;
	const GsSortJob &job;

	/* Of the job, or of one with fewer items, which may have more tiles, since they are small.
	 */
	template <class Key, class Value>
	size_t onesweep_bytes() const
	{
		typedef Sweeps<Key, Value> Sweeps;
		GsSortJob fewer = job;
		size_t large = 0;
		if (Sweeps::large(sorter, job)) {
			large =
				gpusort_onesweep_layout<Key, Value, typename Sweeps::Large>(sorter, job).total;
			fewer.n = Sweeps::small_items(sorter);
		}
		size_t small =
			gpusort_onesweep_layout<Key, Value, typename Sweeps::Small>(sorter, fewer).total;
		return large > small ? large : small;
	}

	template <class Key, class Value>
	size_t run() const
	{
		switch (gpusort_sorter_path(&sorter, &job)) {
			case GPUSORT_PATH_ONESWEEP:
				return onesweep_bytes<Key, Value>();
			case GPUSORT_PATH_GRID:
				return gpusort_align_up(job.n * sizeof(Key)) +
					   gpusort_align_up(job.n * GPUSORT_VALUE_BYTES<Value>);
			default:
				return 0;
		}
	}
};

/*
 * Returns the maximum number of items that are sorted by rank: all keys are compared with all
 * others, which takes longer on smaller devices.
 */
uint32_t rank_limit(const GsSorter &sorter)
{
	if (sorter.multiprocessors >= GPUSORT_RANK_MULTIPROCESSORS)
		return GPUSORT_RANK_ITEMS;
	return (uint32_t)(GPUSORT_RANK_ITEMS *
					  sqrt((double)sorter.multiprocessors / GPUSORT_RANK_MULTIPROCESSORS));
}

struct FindSizes {
	const GsSorter &sorter;

	template <class Key, class Value>
	GsDebugSizes run() const
	{
		constexpr int VALUE_BYTES = (int)GPUSORT_VALUE_BYTES<Value>;
		typedef Sweeps<Key, Value> Sweeps;
		typedef GsBlockSortTuning<sizeof(Key), VALUE_BYTES> Block;
		typedef GsGridSortTuning<sizeof(Key), VALUE_BYTES> Grid;
		GsDebugSizes sizes = {};
		sizes.warp_items = GPUSORT_WARP_ITEMS;
		sizes.block_items = Block::THREADS * Block::ITEMS;
		sizes.grid_items = Grid::THREADS * Grid::ITEMS * grid_blocks<Grid>(sorter);
		sizes.rank_items = GPUSORT_RANK_ITEMS;
		sizes.auto_rank = rank_limit(sorter);
		sizes.auto_grid = GPUSORT_GRID_ITEMS<sizeof(Key), VALUE_BYTES>;
		sizes.tile_items =
			Sweeps::large_fit(sorter) ? Sweeps::Large::TILE : Sweeps::Small::TILE;
		sizes.auto_small_tiles = (uint32_t)Sweeps::small_items(sorter);
#ifndef __CUDACC__
		sizes.bugs = GPUSORT_BUG_END - 1;
#endif
		return sizes;
	}
};

} // namespace

cudaError_t gpusort_sorter_init(GsSorter *sorter, const cudaDeviceProp &properties)
{
	/*
	 * The code that runs may be for an older architecture than the device's: PTX that the
	 * driver has compiled.  All kernels are compiled for the same architecture, so any of them
	 * will do.
	 */
	typedef GsSweepTuning<8, 4, GPUSORT_SMALL_TILES> Small;
	cudaFuncAttributes attributes;
	cudaError_t error = cudaFuncGetAttributes(
		&attributes,
		(const void *)
			gpusort_sweep_kernel<GsIntegerOrder<uint64_t>, uint32_t, uint32_t, Small>);
	if (error)
		return error;
	size_t compiled = gpusort_arch_shared(10 * attributes.ptxVersion);
	size_t device = properties.sharedMemPerBlockOptin;
	sorter->multiprocessors = properties.multiProcessorCount;
	sorter->shared_memory = compiled < device ? compiled : device;
	sorter->cooperative = properties.cooperativeLaunch != 0;
	return cudaSuccess;
}

size_t gpusort_sorter_exchange_bytes()
{
	return sizeof(GsGridExchange);
}

GsDebugSizes gpusort_sorter_sizes(const GsSorter *sorter, uint32_t key_width,
								  uint32_t value_width)
{
	return with_widths(key_width, value_width, FindSizes{*sorter});
}

GsSortPath gpusort_sorter_path(const GsSorter *sorter, const GsSortJob *job)
{
	GsDebugSizes sizes = gpusort_sorter_sizes(sorter, job->key_width, job->value_width);
	bool small = !job->clobber; /* small sorts never leave their result in the input */
	bool warp = small && job->n <= sizes.warp_items;
	bool rank = small && job->n <= sizes.rank_items;
	bool block = small && job->n <= sizes.block_items;
	bool grid = small && job->n <= sizes.grid_items && sorter->cooperative;

	switch (sorter->debug.path) {
		case GPUSORT_PATH_WARP:
			return warp ? GPUSORT_PATH_WARP : GPUSORT_PATH_AUTO;
		case GPUSORT_PATH_RANK:
			return rank ? GPUSORT_PATH_RANK : GPUSORT_PATH_AUTO;
		case GPUSORT_PATH_BLOCK:
			return block ? GPUSORT_PATH_BLOCK : GPUSORT_PATH_AUTO;
		case GPUSORT_PATH_GRID:
			return grid ? GPUSORT_PATH_GRID : GPUSORT_PATH_AUTO;
		case GPUSORT_PATH_ONESWEEP:
			return GPUSORT_PATH_ONESWEEP;
		default:
			return warp										? GPUSORT_PATH_WARP
				   : rank && job->n <= sizes.auto_rank		? GPUSORT_PATH_RANK
				   : block && job->n <= GPUSORT_BLOCK_ITEMS ? GPUSORT_PATH_BLOCK
				   : grid && job->n <= sizes.auto_grid		? GPUSORT_PATH_GRID
															: GPUSORT_PATH_ONESWEEP;
	}
}

size_t gpusort_sorter_workspace(const GsSorter *sorter, const GsSortJob *job)
{
	return with_widths(job->key_width, job->value_width, MeasureJob{*sorter, *job});
}

cudaError_t gpusort_sorter_run(const GsSorter *sorter, const GsSortJob *job, void *workspace,
							   cudaStream_t stream)
{
	if (job->n == 0)
		return cudaSuccess;
	return with_widths(job->key_width, job->value_width,
					   RunJob{*sorter, *job, (unsigned char *)workspace, stream});
}

const void *gpusort_sorter_report_address(const void *workspace)
{
	return &((const GsControl *)workspace)->report;
}

bool gpusort_sorter_result_in_input(const GsSorterReport *report)
{
	return report->result == GPUSORT_IN;
}
