/*
 * device_test.h
 *		Support of the device library's tests: the library under test, test cases, counts of
 *		checks.
 */
#ifndef GPUSORT_DEVICE_TEST_H
#define GPUSORT_DEVICE_TEST_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpusort_device.h"

struct TestLibrary {
	const char *path;
	const GsDeviceApi *api;
	GsDevice *device;
	bool emulator;
};

extern TestLibrary library;

/* Counts a check, and prints what failed unless quiet. */
bool test_check(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern uint64_t tests_run;
extern uint64_t tests_failed;
extern bool tests_quiet;
extern std::string first_failure;

struct TestRandom {
	uint64_t state;
	explicit TestRandom(uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ull + 1)
	{
	}
	uint64_t operator()();
	uint64_t below(uint64_t n);
};

/* Describes a sort.  Each field has its most usual value. */
struct SortCase {
	uint32_t key_width = 4;
	uint32_t value_width = 0;
	GsKeyOrder order = GPUSORT_UNSIGNED;
	bool descending = false;
	uint32_t begin_bit = 0;
	uint32_t end_bit = 0; /* 0: the width of a key */
	bool row_numbers = false;
	bool drop_keys = false;
	bool host_arrays = false;
	bool in_place = false;	/* host arrays only */
	uint32_t key_shift = 0; /* items by which the arrays miss a 256-byte boundary */
	uint32_t value_shift = 0;
	uint32_t out_shift = 0; /* additional items for the outputs */
	std::string what;		/* the distribution, for messages */
};

/*
 * Sorts keys (modulo the key width) with the library and compares with std::stable_sort: the
 * order, ties, values, unchanged inputs, and the bytes around all arrays.
 */
bool run_sort_case(const SortCase &c, const std::vector<uint64_t> &keys);

/*
 * Distributions of keys, as 64-bit patterns.  The width is that of the keys for which they are
 * used.
 */
std::vector<uint64_t> entropy_keys(uint64_t n, int samples, uint32_t width, uint64_t seed);
std::vector<uint64_t> float_keys(uint64_t n, uint32_t width, uint64_t seed);
std::vector<uint64_t> sorted_keys(uint64_t n, uint32_t width, uint64_t seed);

/* Closes the device, and opens it again. */
void reopen_device();

void set_debug(const std::function<void(GsDebugSettings &)> &change);

/* How much of a group is run. */
enum TestAmount {
	TEST_TINY,	/* each kernel once or twice: for tools that make it a thousand times slower */
	TEST_QUICK, /* a part of each kind of case */
	TEST_ALL
};

/* The groups of tests. */
void test_arguments(TestAmount amount);
void test_sizes(TestAmount amount);
void test_distributions(TestAmount amount);
void test_bit_ranges(TestAmount amount);
void test_schedules(TestAmount amount);
void test_faults(TestAmount amount);
void test_sessions(TestAmount amount);
void test_large(TestAmount amount);
void test_huge(TestAmount amount);

/*
 * Returns true if every planted bug makes the cases that aim at it fail, and nothing fails
 * without bugs.
 */
bool test_planted_bugs();

/* Loses the device by a real fault, for test_faults().  Returns true if no check failed. */
bool test_losing_device();

/*
 * Checks that without a device everything that needs one reports that.  Returns true if no
 * check failed.
 */
bool test_no_device();

#endif /* GPUSORT_DEVICE_TEST_H */
