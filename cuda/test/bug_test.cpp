/*
 * bug_test.cpp
 *		The test of the tests: they must detect bugs that the emulator plants.
 *
 * Each bug has cases like those of the other groups, chosen so that it shows within seconds.
 * Without a bug the same cases must pass.  A bug may write to any address, so each one runs in
 * its own process.  A bug because of which the process does not end counts as not detected,
 * since the emulator must detect such launches.
 */
#include "test/device_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace
{

constexpr unsigned MAX_SECONDS = 600;
constexpr uint32_t SEEDS = 20;

SortCase pairs()
{
	SortCase c;
	c.value_width = 4;
	return c;
}

uint64_t tile_of(const SortCase &c)
{
	GsDebugSizes sizes;
	library.api->debug_sizes(library.device, c.key_width, c.value_width, &sizes);
	return sizes.tile_items;
}

/* Runs a case under several schedules, until one fails. */
void run_seeds(SortCase c, uint64_t n, int samples, uint32_t seeds = SEEDS)
{
	std::vector<uint64_t> keys = entropy_keys(n, samples, c.key_width, n);
	for (uint32_t seed = 0; seed < seeds && !tests_failed; seed++) {
		c.what = "seed " + std::to_string(seed);
		set_debug([&](GsDebugSettings &s) { s.emu_seed = seed; });
		run_sort_case(c, keys);
	}
}

void use_onesweep(uint32_t resident, uint32_t dispatch, uint32_t favour)
{
	set_debug([&](GsDebugSettings &s) {
		s.path = GPUSORT_PATH_ONESWEEP;
		s.fallback_polls = UINT32_MAX;
		s.emu_resident = resident;
		s.emu_dispatch = dispatch;
		s.emu_favour = favour;
	});
}

void missing_barriers()
{
	use_onesweep(4, 0, 0);
	run_seeds(pairs(), 4 * tile_of(pairs()), 1);
}

void partial_tile()
{
	use_onesweep(4, 0, 0);
	run_seeds(pairs(), tile_of(pairs()) + tile_of(pairs()) / 3, 1, 2);
}

void many_tiles()
{
	use_onesweep(8, 0, 1);
	run_seeds(pairs(), 12 * tile_of(pairs()), 2, 4);
}

void ties()
{
	use_onesweep(4, 0, 0);
	run_seeds(pairs(), tile_of(pairs()), 4, 2);
}

/* The tiles that the resident blocks wait for belong to blocks that cannot start. */
void last_blocks_first()
{
	use_onesweep(2, 1, 0);
	run_seeds(pairs(), 12 * tile_of(pairs()), 2, 2);
}

void strips()
{
	use_onesweep(4, 0, 0);
	uint64_t tile = tile_of(pairs());
	set_debug([&](GsDebugSettings &s) { s.strip_items = tile; });
	run_seeds(pairs(), 3 * tile + 1, 1, 2);
}

void hot_key()
{
	use_onesweep(4, 0, 0);
	run_seeds(pairs(), 2 * tile_of(pairs()), 4, 2);
}

void grid()
{
	GsDebugSizes sizes;
	library.api->debug_sizes(library.device, 4, 4, &sizes);
	set_debug([&](GsDebugSettings &s) { s.path = GPUSORT_PATH_GRID; });
	run_seeds(pairs(), sizes.grid_items - 1, 1, 5);
}

/* Many equal keys: some among the block's own items, some before and some after them. */
void ranks()
{
	set_debug([&](GsDebugSettings &s) { s.path = GPUSORT_PATH_RANK; });
	run_seeds(pairs(), 150, 5, 2);
}

/* Sorted except for one descent, which is at the seam between two warps of the copy. */
void one_descent()
{
	use_onesweep(4, 0, 0);
	std::vector<uint64_t> keys(2150);
	for (uint64_t i = 0; i < keys.size(); i++)
		keys[i] = i < 256 ? i + 2 : i;
	run_sort_case(pairs(), keys);
}

/* In the order of GsPlantedBug, from 1 on. */
const struct {
	const char *name;
	void (*cases)();
} bugs[] = {
	{"count barrier", missing_barriers},
	{"scatter barrier", missing_barriers},
	{"partial tile", partial_tile},
	{"short look-back", many_tiles},
	{"lane order", ties},
	{"block index", last_blocks_first},
	{"strip base", strips},
	{"skipped digit", hot_key},
	{"grid barrier", grid},
	{"grid tags", grid},
	{"ranks of keys behind", ranks},
	{"ranks of own keys", ranks},
	{"descent not reported", one_descent},
	{"descent at a seam", one_descent},
};
constexpr uint32_t BUGS = sizeof bugs / sizeof *bugs;

void run_cases(uint32_t bug, void (*cases)())
{
	set_debug([&](GsDebugSettings &s) { s.emu_bug = bug; });
	set_debug(nullptr);
	cases();
}

/* Prints a line.  Returns true if the bug is detected. */
bool is_detected(uint32_t bug)
{
	auto start = std::chrono::steady_clock::now();
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		tests_quiet = true;
		alarm(MAX_SECONDS);
		run_cases(bug, bugs[bug - 1].cases);
		if (tests_failed)
			printf("bug %u, %s: detected: %s", bug, bugs[bug - 1].name, first_failure.c_str());
		fflush(stdout);
		_exit(tests_failed ? 1 : 0);
	}
	int status = 0;
	bool ended = child > 0 && waitpid(child, &status, 0) == child;
	bool detected = ended && WIFEXITED(status) && WEXITSTATUS(status) != 0;
	if (ended && WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM) {
		detected = true;
		printf("bug %u, %s: detected: signal %d", bug, bugs[bug - 1].name, WTERMSIG(status));
	}
	if (!detected)
		printf("bug %u, %s: NOT DETECTED", bug, bugs[bug - 1].name);
	printf(" (%.1f s)\n",
		   std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
	return detected;
}

} // namespace

bool test_planted_bugs()
{
	GsDebugSizes sizes;
	library.api->debug_sizes(library.device, 4, 0, &sizes);
	if (sizes.bugs != BUGS) {
		printf("this library can plant %u bugs, and there are cases for %u\n", sizes.bugs,
			   BUGS);
		return false;
	}
	bool good = true;
	for (uint32_t bug = 1; bug <= BUGS; bug++)
		good &= is_detected(bug);
	auto start = std::chrono::steady_clock::now();
	for (uint32_t bug = 1; bug <= BUGS; bug++)
		run_cases(0, bugs[bug - 1].cases);
	printf("no bug: %llu failed (%.1f s)\n", (unsigned long long)tests_failed,
		   std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
	return good && !tests_failed;
}
