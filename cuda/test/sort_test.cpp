/*
 * sort_test.cpp
 *		Tests of array sorts: sizes, distributions, bit ranges, schedules.
 */
#include "test/device_test.h"

#include <algorithm>

static GsDebugSizes sizes_of(const SortCase &c)
{
	GsDebugSizes sizes;
	library.api->debug_sizes(library.device, c.key_width, c.value_width, &sizes);
	return sizes;
}

static void use_path(GsSortPath path)
{
	set_debug([&](GsDebugSettings &s) { s.path = path; });
}

/* Sets whether the sorted copy also runs for small inputs. */
static void use_sorted_copy(bool always)
{
	set_debug([&](GsDebugSettings &s) { s.copy_items = always; });
}

/* Returns all kinds of sorts: widths, with given values, with row numbers, without keys. */
static std::vector<SortCase> kinds()
{
	std::vector<SortCase> list;
	for (uint32_t key_width : {4, 8})
		for (uint32_t value_width : {0, 4, 8}) {
			SortCase c;
			c.key_width = key_width;
			c.value_width = value_width;
			list.push_back(c);
			if (value_width) {
				c.row_numbers = true;
				list.push_back(c);
				c.drop_keys = true;
				list.push_back(c);
			}
		}
	return list;
}

static const GsSortPath PATHS[] = {GPUSORT_PATH_AUTO, GPUSORT_PATH_WARP,	 GPUSORT_PATH_BLOCK,
								   GPUSORT_PATH_GRID, GPUSORT_PATH_ONESWEEP, GPUSORT_PATH_RANK};

static uint64_t path_limit(GsSortPath path, const GsDebugSizes &sizes)
{
	switch (path) {
		case GPUSORT_PATH_WARP:
			return sizes.warp_items;
		case GPUSORT_PATH_BLOCK:
			return sizes.block_items;
		case GPUSORT_PATH_GRID:
			return sizes.grid_items;
		case GPUSORT_PATH_RANK:
			return sizes.rank_items;
		default:
			return UINT64_MAX;
	}
}

/* Runs one or a few cases of each kernel. */
static void run_tiny(const SortCase &base)
{
	SortCase c = base;
	c.what = "tiny";
	GsDebugSizes sizes = sizes_of(c);
	uint64_t onesweep = 2 * sizes.tile_items + 77;
	const struct {
		GsSortPath path;
		uint64_t n;
	} ways[] = {{GPUSORT_PATH_WARP, 29},
				{GPUSORT_PATH_BLOCK, 200},
				{GPUSORT_PATH_BLOCK, sizes.block_items - 1},
				{GPUSORT_PATH_RANK, 100},
				{GPUSORT_PATH_RANK, sizes.rank_items - 1},
				{GPUSORT_PATH_GRID, std::min<uint64_t>(sizes.grid_items, 9001)},
				{GPUSORT_PATH_ONESWEEP, onesweep}};
	for (const auto &way : ways) {
		use_path(way.path);
		run_sort_case(c, entropy_keys(way.n, 1, c.key_width, way.n));
	}
	/* Strips, tiles with a single digit, sorted keys. */
	use_path(GPUSORT_PATH_ONESWEEP);
	set_debug([&](GsDebugSettings &s) { s.strip_items = sizes.tile_items; });
	run_sort_case(c, entropy_keys(onesweep, 8, c.key_width, 1));
	set_debug([&](GsDebugSettings &s) { s.strip_items = 0; });
	run_sort_case(c, sorted_keys(onesweep, c.key_width, 1));
	use_sorted_copy(true);
	for (c.out_shift = 0; c.out_shift < 2; c.out_shift++) {
		run_sort_case(c, sorted_keys(onesweep, c.key_width, 1));
		run_sort_case(c, entropy_keys(onesweep, 1, c.key_width, 2));
	}
	c.out_shift = 0;
	use_sorted_copy(false);
	c.order = GPUSORT_FLOAT;
	run_sort_case(c, float_keys(onesweep, c.key_width, 2));
	use_path(GPUSORT_PATH_AUTO);
}

/*
 * Small sizes, and sizes around tiles and around the limits of paths, by every path that can
 * sort them.
 */
static void test_small_sizes(const SortCase &base, bool quick)
{
	SortCase c = base;
	GsDebugSizes sizes = sizes_of(c);
	std::vector<uint64_t> list = {0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 255, 256, 257};
	uint64_t tile = sizes.tile_items;
	for (uint64_t n :
		 {tile, 2 * tile, 3 * tile, 7 * tile, (uint64_t)sizes.block_items,
		  (uint64_t)sizes.grid_items, (uint64_t)sizes.auto_warp, (uint64_t)sizes.auto_block,
		  (uint64_t)sizes.auto_grid, (uint64_t)sizes.auto_rank, (uint64_t)sizes.rank_items,
		  (uint64_t)sizes.rank_items / 4,
		  (uint64_t)(library.emulator || c.key_width == 8 ? sizes.auto_small_tiles : tile)})
		for (int by = -1; by <= 1; by++)
			list.push_back(n + by);
	std::sort(list.begin(), list.end());
	list.erase(std::unique(list.begin(), list.end()), list.end());
	for (GsSortPath path : PATHS)
		for (uint64_t n : list) {
			if (n > path_limit(path, sizes))
				continue;
			if (quick && n > 600 && (c.row_numbers || n > 3 * tile))
				continue;
			use_path(path);
			c.what = "random";
			run_sort_case(c, entropy_keys(n, 1, c.key_width, n + 1));
			c.what = "few";
			run_sort_case(c, entropy_keys(n, 4, c.key_width, n + 2));
		}
	use_path(GPUSORT_PATH_AUTO);
}

/* The limits of the paths are in order, and none exceeds the maximum of its path. */
static void test_path_ends(const SortCase &c)
{
	GsDebugSizes sizes = sizes_of(c);
	test_check(sizes.auto_warp >= 1 && sizes.auto_warp <= sizes.warp_items &&
				   sizes.auto_rank >= sizes.auto_warp && sizes.auto_rank <= sizes.rank_items &&
				   sizes.auto_block >= sizes.auto_rank && sizes.auto_grid >= sizes.auto_block &&
				   sizes.auto_block <= std::max(sizes.block_items, sizes.auto_rank) &&
				   sizes.auto_grid <= std::max(sizes.grid_items, sizes.auto_block),
			   "ends of paths: warp %u, rank %u, block %u, grid %u", sizes.auto_warp,
			   sizes.auto_rank, sizes.auto_block, sizes.auto_grid);
	if (library.emulator) /* each path is chosen for some inputs */
		test_check(sizes.auto_warp < sizes.auto_rank && sizes.auto_rank < sizes.auto_block &&
					   sizes.auto_block < sizes.auto_grid,
				   "a path has no inputs: warp %u, rank %u, block %u, grid %u", sizes.auto_warp,
				   sizes.auto_rank, sizes.auto_block, sizes.auto_grid);
}

/* Sorted keys with one descent: among a thread's keys, and between threads, warps and tiles. */
static void test_descents(uint32_t key_width, bool quick)
{
	SortCase c;
	c.key_width = key_width;
	c.value_width = 4;
	c.row_numbers = true;
	use_path(GPUSORT_PATH_ONESWEEP);
	use_sorted_copy(true);
	const uint64_t n = library.emulator ? 2150 : 9000;
	for (uint64_t middle : {4, 256, 512, 1024, 1536, 2048, 2144, 4096, 6144, 8192, 8994})
		for (uint64_t at = middle - 4; at < middle + 5 && at < n - 1; at++) {
			if (quick && (at + 1) % 4)
				continue;
			std::vector<uint64_t> keys(n);
			for (uint64_t i = 0; i < n; i++)
				keys[i] = i <= at ? i + 2 : i;
			c.what = "a descent behind " + std::to_string(at);
			c.key_shift = at % 3;
			run_sort_case(c, keys);
		}
	use_sorted_copy(false);
	use_path(GPUSORT_PATH_AUTO);
}

void test_sizes(TestAmount amount)
{
	bool quick = amount != TEST_ALL;
	for (const SortCase &kind : kinds())
		if (amount != TEST_TINY)
			test_small_sizes(kind, quick);
		else if (kind.row_numbers == kind.drop_keys)
			run_tiny(kind);
	if (amount == TEST_TINY)
		return;

	for (const SortCase &kind : kinds())
		test_path_ends(kind);
	for (uint32_t width : {4, 8})
		test_descents(width, quick);

	/* All sizes from one to two tiles, for both tile sizes of the emulator. */
	SortCase c;
	c.what = "every n of two tiles";
	uint64_t tile;
	use_path(GPUSORT_PATH_ONESWEEP);
	for (uint32_t width : {4, 8}) {
		c.key_width = width;
		c.value_width = width == 4 ? 4 : 0;
		tile = sizes_of(c).tile_items;
		uint64_t by = !quick ? 1 : library.emulator ? 37 : 97;
		for (uint64_t n = tile; n <= 2 * tile; n += by)
			run_sort_case(c, entropy_keys(n, 1, width, n));
	}

	/* Sizes one below, at and above the ends of strips, and many strips. */
	for (uint32_t width : {4, 8}) {
		c = SortCase();
		c.key_width = width;
		c.value_width = 8;
		c.row_numbers = true;
		c.what = "strips";
		tile = sizes_of(c).tile_items;
		for (uint64_t strip : {tile, 2 * tile, 3 * tile}) {
			set_debug([&](GsDebugSettings &s) { s.strip_items = strip; });
			for (uint64_t n :
				 {strip - 1, strip, strip + 1, 2 * strip - 1, 2 * strip + 1, 5 * strip + 3})
				for (int samples : {1, 3, 16})
					run_sort_case(c, entropy_keys(n, samples, width, n + samples));
			if (quick)
				break;
		}
		set_debug([&](GsDebugSettings &s) { s.strip_items = 0; });
	}

	/* Arrays that are not aligned to 16 bytes, and host arrays. */
	use_path(GPUSORT_PATH_AUTO);
	for (SortCase d : kinds()) {
		uint64_t n = 2 * sizes_of(d).tile_items + 5;
		for (GsSortPath path : {GPUSORT_PATH_AUTO, GPUSORT_PATH_ONESWEEP}) {
			use_path(path);
			for (uint32_t shift = 1; shift < 4; shift++) {
				d.key_shift = shift;
				d.value_shift = shift + 1;
				d.what = "shifted";
				run_sort_case(d, entropy_keys(n, 2, d.key_width, shift));
				run_sort_case(d, entropy_keys(shift, 2, d.key_width, shift));
				if (path == GPUSORT_PATH_AUTO)
					continue;
				use_sorted_copy(true);
				for (uint32_t out_shift = 0; out_shift < 2; out_shift++) {
					d.out_shift = out_shift;
					std::vector<uint64_t> keys = sorted_keys(n + n / 2, d.key_width, shift);
					run_sort_case(d, keys);
					std::swap(keys[n], keys[n + n / 3]);
					run_sort_case(d, keys);
				}
				d.out_shift = 0;
				use_sorted_copy(false);
			}
		}
		use_path(GPUSORT_PATH_AUTO);
		d.host_arrays = true;
		run_sort_case(d, entropy_keys(n, 1, d.key_width, 5));
		d.in_place = !d.drop_keys && !d.row_numbers;
		run_sort_case(d, entropy_keys(n, 1, d.key_width, 6));
	}
}

static void run_distribution(SortCase c, const char *what, const std::vector<uint64_t> &keys)
{
	c.what = what;
	for (int descending = 0; descending < 2; descending++) {
		c.descending = descending;
		c.order = GPUSORT_UNSIGNED;
		run_sort_case(c, keys);
		c.order = GPUSORT_SIGNED;
		run_sort_case(c, keys);
	}
}

void test_distributions(TestAmount amount)
{
	bool quick = amount != TEST_ALL;
	if (amount == TEST_TINY)
		return; /* the group "sizes" has a case of each kernel */
	std::vector<SortCase> list;
	for (SortCase c : kinds())
		if (!c.drop_keys && (!quick || !c.row_numbers))
			list.push_back(c);
	for (GsSortPath path : PATHS)
		for (const SortCase &base : list) {
			SortCase c = base;
			GsDebugSizes sizes = sizes_of(c);
			uint64_t n =
				std::min<uint64_t>(path_limit(path, sizes), 3 * sizes.tile_items + 100);
			if (library.emulator &&
				path == GPUSORT_PATH_GRID) /* its barriers take long in the emulator */
				n = 600;
			uint32_t width = c.key_width;
			uint32_t bits = 8 * width;
			uint64_t ones = width == 4 ? 0xFFFFFFFF : ~(uint64_t)0;
			use_path(path);

			for (int samples : {0, 1, 2, 3, 4, 8, 16})
				run_distribution(c, "entropy band", entropy_keys(n, samples, width, samples));

			std::vector<uint64_t> keys = sorted_keys(n, width, 1);
			run_distribution(c, "sorted", keys);
			std::swap(keys[n / 3], keys[n / 2]);
			run_distribution(c, "one swap", keys);
			keys = sorted_keys(n, width, 2);
			std::reverse(keys.begin(), keys.end());
			run_distribution(c, "reversed", keys);
			keys = entropy_keys(n, 1, width, 3);
			for (uint64_t i = 0; i < n; i++)
				if (i % 10)
					keys[i] = keys[0];
			run_distribution(c, "hot key", keys);
			run_distribution(c, "all ones", std::vector<uint64_t>(n, ones));
			keys = std::vector<uint64_t>(n, ones);
			keys[n / 2] = 0;
			run_distribution(c, "ones and a zero", keys);
			for (uint64_t i = 0; i < n; i++)
				keys[i] = i % 3 == 0 ? (uint64_t)1 << (bits - 1) : i % 3 == 1 ? ones >> 1 : 0;
			run_distribution(c, "extremes", keys);
			for (uint32_t digit = 0; digit < width; digit++) {
				if (quick && digit && digit != width - 1)
					continue;
				keys = entropy_keys(n, 1, width, digit);
				for (uint64_t &key : keys)
					key = (key & (uint64_t)255 << 8 * digit) |
						  (0x5A5A5A5A5A5A5A5Aull & ones & ~((uint64_t)255 << 8 * digit));
				run_distribution(c, "one digit", keys);
			}
			c.order = GPUSORT_FLOAT;
			c.what = "floats";
			for (int descending = 0; descending < 2; descending++) {
				c.descending = descending;
				run_sort_case(c, float_keys(n, width, 5));
				run_sort_case(c, float_keys(n - 1, width, 6));
			}
		}
}

void test_bit_ranges(TestAmount amount)
{
	for (GsSortPath path : PATHS)
		for (uint32_t width : {4, 8}) {
			SortCase c;
			c.key_width = width;
			c.value_width = 4;
			c.row_numbers = true;
			c.what = "bit range";
			uint64_t n = std::min<uint64_t>(path_limit(path, sizes_of(c)), 70);
			std::vector<uint64_t> keys = entropy_keys(n, 1, width, 7);
			use_path(path);
			/* These two paths are tested with every pair of bits. */
			bool all = path == GPUSORT_PATH_BLOCK || path == GPUSORT_PATH_ONESWEEP;
			uint32_t by = amount == TEST_TINY	 ? 8 * width
						  : amount == TEST_QUICK ? 5
						  : all					 ? 1
												 : 3;
			for (uint32_t begin = 0; begin <= 8 * width; begin += by)
				for (uint32_t end = begin; end <= 8 * width; end += by) {
					if (end == 0)
						continue; /* it would mean the whole key in a SortCase */
					c.begin_bit = begin;
					c.end_bit = end;
					c.order = (begin + end) % 3 ? GPUSORT_UNSIGNED : GPUSORT_SIGNED;
					c.descending = end % 2;
					run_sort_case(c, keys);
				}
		}
}

/* Adverse schedules, late tiles, and the fallback of the look-back. */
void test_schedules(TestAmount amount)
{
	bool quick = amount != TEST_ALL;
	if (amount == TEST_TINY)
		return;
	SortCase c;
	c.value_width = 4;
	c.row_numbers = true;
	uint64_t tile = sizes_of(c).tile_items;
	uint64_t tiles = library.emulator ? quick ? 12 : 30 : 60;
	uint64_t n = tiles * tile + tile / 3;
	std::vector<uint64_t> keys = entropy_keys(n, 2, 4, 11);

	use_path(GPUSORT_PATH_ONESWEEP);
	if (library.emulator) {
		for (uint32_t resident : {1, 2, 3, 8, 40})
			for (uint32_t dispatch : {0, 1, 2})
				for (uint32_t favour : {0, 1, 2}) {
					c.what = "schedule " + std::to_string(resident) + " " +
							 std::to_string(dispatch) + " " + std::to_string(favour);
					set_debug([&](GsDebugSettings &s) {
						s.fallback_polls =
							UINT32_MAX; /* the tile counter alone ensures progress */
						s.emu_resident = resident;
						s.emu_dispatch = dispatch;
						s.emu_favour = favour;
						s.emu_seed = resident + 7 * dispatch + 31 * favour;
					});
					run_sort_case(c, keys);
					if (quick && resident > 3)
						break;
				}
		set_debug([&](GsDebugSettings &s) {
			s.emu_resident = s.emu_dispatch = s.emu_favour = s.fallback_polls = 0;
			s.path = GPUSORT_PATH_GRID;
		});
		c.what = "grid";
		for (uint32_t seed = 0; seed < (quick ? 3u : 12u); seed++) {
			set_debug([&](GsDebugSettings &s) { s.emu_seed = seed; });
			run_sort_case(c, entropy_keys(sizes_of(c).grid_items - seed, 1, 4, seed));
		}
		use_path(GPUSORT_PATH_ONESWEEP);
	}
	for (uint32_t every : {2, 3, 7})
		for (uint32_t polls : {1u, 40u, UINT32_MAX}) {
			c.what =
				"late tiles " + std::to_string(every) + ", fallback " + std::to_string(polls);
			set_debug([&](GsDebugSettings &s) {
				s.delay_every = every;
				s.delay_polls = 60;
				s.fallback_polls = polls;
				s.emu_resident = 8;
				s.emu_seed = every;
			});
			run_sort_case(c, keys);
			c.key_width = 8;
			run_sort_case(c, entropy_keys(library.emulator ? 6 * tile : n, 1, 8, every));
			c.key_width = 4;
		}
}

/* Sizes that only a device can sort in reasonable time, compared with a sort on the host. */
void test_large(TestAmount amount)
{
	if (library.emulator || amount == TEST_TINY)
		return;
	bool quick = amount == TEST_QUICK;
	for (SortCase c : kinds()) {
		c.what = "large";
		run_sort_case(c, entropy_keys(quick ? 300007 : 5000011, 1, c.key_width, 3));
		c.order = GPUSORT_SIGNED;
		c.descending = true;
		run_sort_case(c, entropy_keys(quick ? 200003 : 2000003, 3, c.key_width, 4));
	}
}
