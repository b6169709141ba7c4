/*
 * device_test.cpp
 *		Tests of the device library: device_test LIBRARY [OPTION] [GROUP ...]
 *
 * The same program tests the library for GPUs and the emulator.  Options:
 *
 *	--quick		a part of each group
 *	--tiny		one or two cases of each kernel, for compute-sanitizer
 *	--bugs		test the tests with bugs that the emulator plants; see bug_test.cpp
 *	--no-device	test what the library reports if there is no device
 *	--lose-device	cause a fault on the device; the group faults runs this in another
 *				process
 */
#include "test/device_test.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>

TestLibrary library;
uint64_t tests_run;
uint64_t tests_failed;
bool tests_quiet;
std::string first_failure;

static const uint64_t MAX_MESSAGES = 40;

bool test_check(bool good, const char *format, ...)
{
	tests_run++;
	if (good)
		return true;
	tests_failed++;
	char message[1000];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	if (tests_failed == 1)
		first_failure = message;
	if (!tests_quiet && tests_failed <= MAX_MESSAGES)
		printf("FAILED: %s\n", message);
	return false;
}

uint64_t TestRandom::operator()()
{
	/* splitmix64 */
	uint64_t z = state += 0x9E3779B97F4A7C15ull;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

uint64_t TestRandom::below(uint64_t n)
{
	return (*this)() % n;
}

void reopen_device()
{
	library.api->device_close(library.device);
	GsStatus status = library.api->device_open(0, &library.device, nullptr, 0);
	test_check(!status, "opening the device again: %s", library.api->status_text(status));
}

void set_debug(const std::function<void(GsDebugSettings &)> &change)
{
	static GsDebugSettings settings;
	static uint32_t bug;
	if (!change) {
		bug = settings.emu_bug; /* a planted bug stays across resets */
		settings = GsDebugSettings();
		settings.emu_bug = bug;
	} else
		change(settings);
	library.api->debug_set(library.device, &settings);
}

std::vector<uint64_t> entropy_keys(uint64_t n, int samples, uint32_t width, uint64_t seed)
{
	TestRandom random(seed);
	std::vector<uint64_t> keys(n);
	for (uint64_t &key : keys) {
		key = samples ? ~(uint64_t)0 : 42;
		for (int i = 0; i < samples; i++)
			key &= random();
		if (width == 4)
			key &= 0xFFFFFFFF;
	}
	return keys;
}

std::vector<uint64_t> sorted_keys(uint64_t n, uint32_t width, uint64_t seed)
{
	std::vector<uint64_t> keys = entropy_keys(n, 1, width, seed);
	std::sort(keys.begin(), keys.end());
	return keys;
}

template <class Float, class Bits>
static void fill_floats(std::vector<uint64_t> &keys, uint64_t seed)
{
	TestRandom random(seed);
	for (uint64_t &key : keys) {
		Float number;
		Bits bits;
		switch (random.below(8)) {
			case 0:
				number = 0;
				break;
			case 1:
				number = -(Float)0;
				break;
			case 2:
				number = (Float)INFINITY;
				break;
			case 3:
				number = -(Float)INFINITY;
				break;
			default:
				number = ((Float)random() / (Float)1e18 - 9) * (Float)(random.below(3) + 1);
				break;
		}
		memcpy(&bits, &number, sizeof bits);
		switch (random.below(8)) {
			case 0: /* some NaNs, of either sign */
				bits |= ~(Bits)0 >> 2 << 1;
				bits ^= (Bits)random.below(1000) << 2;
				break;
			case 1: /* any bits, perhaps a denormal */
				bits = (Bits)random();
				break;
			default:
				break;
		}
		key = bits;
	}
}

std::vector<uint64_t> float_keys(uint64_t n, uint32_t width, uint64_t seed)
{
	std::vector<uint64_t> keys(n);
	if (width == 4)
		fill_floats<float, uint32_t>(keys, seed);
	else
		fill_floats<double, uint64_t>(keys, seed);
	return keys;
}

/* A second, independent definition of the order, which compares numbers. */
template <class Bits, class Signed, class Float>
static int compare_keys(const SortCase &c, Bits a, Bits b)
{
	int result = 0;
	if (c.order == GPUSORT_FLOAT) {
		Float x, y;
		memcpy(&x, &a, sizeof x);
		memcpy(&y, &b, sizeof y);
		bool x_nan = x != x, y_nan = y != y;
		result = x_nan || y_nan ? (int)x_nan - (int)y_nan : (x > y) - (x < y);
	} else if (c.order == GPUSORT_SIGNED)
		result = ((Signed)a > (Signed)b) - ((Signed)a < (Signed)b);
	else
		result = (a > b) - (a < b);
	return c.descending ? -result : result;
}

template <class Bits, class Signed, class Float>
static void sort_reference(const SortCase &c, const std::vector<uint64_t> &keys,
						   std::vector<uint64_t> &order)
{
	uint32_t width_bits = 8 * sizeof(Bits);
	uint32_t end = c.end_bit ? c.end_bit : width_bits;
	bool part = c.begin_bit != 0 || end != width_bits;
	Bits flip = c.order == GPUSORT_SIGNED ? (Bits)1 << (width_bits - 1) : 0;
	if (c.descending)
		flip = ~flip;
	uint32_t bits = end - c.begin_bit;
	Bits mask = bits ? (Bits) ~(Bits)0 >> (width_bits - bits) : 0;
	std::stable_sort(order.begin(), order.end(), [&](uint64_t i, uint64_t j) {
		Bits a = (Bits)keys[i], b = (Bits)keys[j];
		if (!part)
			return compare_keys<Bits, Signed, Float>(c, a, b) < 0;
		/* Parts of keys are tested with integers only. */
		uint32_t begin = c.begin_bit < width_bits ? c.begin_bit : 0;
		return (((Bits)(a ^ flip) >> begin) & mask) < (((Bits)(b ^ flip) >> begin) & mask);
	});
}

/* A device array between canaries, misaligned to a 256-byte boundary by shift items. */
struct GuardedArray {
	static const size_t GUARD = 256;
	static constexpr uint8_t CANARY = 0xC5;
	uint32_t width;
	size_t offset;
	std::vector<uint8_t> image;
	void *buffer = nullptr;

	GuardedArray(uint64_t n, uint32_t width_, uint32_t shift)
		: width(width_), offset(GUARD + (size_t)shift * width_),
		  image(offset + n * width_ + GUARD, CANARY)
	{
	}

	void set(uint64_t i, uint64_t item)
	{
		memcpy(&image[offset + i * width], &item, width);
	}

	uint64_t get(uint64_t i) const
	{
		uint64_t item = 0;
		memcpy(&item, &image[offset + i * width], width);
		return item;
	}

	void *host()
	{
		return &image[offset];
	}

	void *device()
	{
		return (uint8_t *)buffer + offset;
	}

	bool upload()
	{
		return !library.api->buffer_alloc(library.device, image.size(), &buffer) &&
			   !library.api->buffer_write(library.device, buffer, image.data(), image.size());
	}

	bool download()
	{
		return !library.api->buffer_read(library.device, image.data(), buffer, image.size());
	}

	bool guards_intact(uint64_t n) const
	{
		size_t end = offset + n * width;
		for (size_t i = 0; i < offset; i++)
			if (image[i] != CANARY)
				return false;
		for (size_t i = end; i < image.size(); i++)
			if (image[i] != CANARY)
				return false;
		return true;
	}

	void release()
	{
		library.api->buffer_free(library.device, buffer);
		buffer = nullptr;
	}
};

static const char *compare_result(const std::vector<uint64_t> &keys,
								  const std::vector<uint64_t> &order,
								  const GuardedArray *keys_out, const GuardedArray *values_out,
								  const std::vector<uint64_t> &values, uint64_t *where)
{
	for (uint64_t i = 0; i < keys.size(); i++) {
		*where = i;
		if (keys_out && keys_out->get(i) != keys[order[i]])
			return "a key is wrong";
		if (values_out && values_out->get(i) != values[order[i]])
			return "a value is wrong";
	}
	if ((keys_out && !keys_out->guards_intact(keys.size())) ||
		(values_out && !values_out->guards_intact(keys.size())))
		return "bytes beside an output were written";
	return nullptr;
}

bool run_sort_case(const SortCase &c, const std::vector<uint64_t> &keys)
{
	uint64_t n = keys.size();
	uint64_t value_mask = c.value_width == 4 ? 0xFFFFFFFF : ~(uint64_t)0;
	std::vector<uint64_t> order(n), values(n);
	for (uint64_t i = 0; i < n; i++) {
		order[i] = i;
		values[i] = c.row_numbers ? i : (i * 0x9E3779B97F4A7C15ull + 7) & value_mask;
	}
	if (c.key_width == 4)
		sort_reference<uint32_t, int32_t, float>(c, keys, order);
	else
		sort_reference<uint64_t, int64_t, double>(c, keys, order);

	GuardedArray keys_in(n, c.key_width, c.key_shift),
		keys_out(n, c.key_width, c.key_shift + c.out_shift);
	GuardedArray values_in(n, c.value_width, c.value_shift);
	GuardedArray values_out(n, c.value_width, c.value_shift + c.out_shift);
	for (uint64_t i = 0; i < n; i++) {
		keys_in.set(i, keys[i]);
		if (c.value_width)
			values_in.set(i, values[i]);
	}
	std::vector<uint8_t> keys_before = keys_in.image, values_before = values_in.image;
	bool good = true;
	if (!c.host_arrays)
		good =
			keys_in.upload() && keys_out.upload() && values_in.upload() && values_out.upload();

	GsSortRequest request = {};
	request.key_width = c.key_width;
	request.value_width = c.value_width;
	request.begin_bit = c.begin_bit;
	request.end_bit = c.end_bit ? c.end_bit : 8 * c.key_width;
	request.order = c.order;
	request.descending = c.descending;
	request.location = c.host_arrays ? GPUSORT_HOST_ARRAYS : GPUSORT_DEVICE_ARRAYS;
	request.n = n;
	GuardedArray &keys_result = c.in_place ? keys_in : keys_out;
	GuardedArray &values_result = c.in_place ? values_in : values_out;
	bool with_values = c.value_width != 0;
	request.keys_in = c.host_arrays ? keys_in.host() : keys_in.device();
	if (!c.drop_keys)
		request.keys_out = c.host_arrays ? keys_result.host() : keys_result.device();
	if (with_values && !c.row_numbers)
		request.values_in = c.host_arrays ? values_in.host() : values_in.device();
	if (with_values)
		request.values_out = c.host_arrays ? values_result.host() : values_result.device();

	const char *problem = nullptr;
	uint64_t where = 0;
	GsStatus status =
		good ? library.api->sort(library.device, &request) : GPUSORT_DEVICE_MEMORY;
	if (status)
		problem = library.api->status_text(status);
	if (!c.host_arrays && !problem) {
		good = keys_in.download() && keys_out.download() && values_in.download() &&
			   values_out.download();
		if (!good)
			problem = "copying back failed";
	}
	if (!problem)
		problem = compare_result(keys, order, c.drop_keys ? nullptr : &keys_result,
								 with_values ? &values_result : nullptr, values, &where);
	if (!problem && !c.in_place &&
		(keys_in.image != keys_before || values_in.image != values_before))
		problem = "an input was changed";
	if (!c.host_arrays) {
		keys_in.release();
		keys_out.release();
		values_in.release();
		values_out.release();
	}
	return test_check(!problem,
					  "%s at %llu (%s): n %llu, %u/%u bytes, order %d%s, bits %u..%u, shifts "
					  "%u %u%s%s%s%s, %s",
					  problem ? problem : "", (unsigned long long)where,
					  status ? library.api->device_message(library.device) : "",
					  (unsigned long long)n, c.key_width, c.value_width, (int)c.order,
					  c.descending ? " descending" : "", c.begin_bit, request.end_bit,
					  c.key_shift, c.value_shift, c.row_numbers ? ", row numbers" : "",
					  c.drop_keys ? ", no keys" : "", c.host_arrays ? ", host arrays" : "",
					  c.in_place ? ", in place" : "", c.what.c_str());
}

namespace
{

struct Group {
	const char *name;
	void (*run)(TestAmount amount);
};

const std::vector<Group> groups = {
	{"arguments", test_arguments},
	{"sizes", test_sizes},
	{"distributions", test_distributions},
	{"bits", test_bit_ranges},
	{"schedules", test_schedules},
	{"faults", test_faults},
	{"sessions", test_sessions},
	{"large", test_large},
	{"huge", test_huge},
};

bool is_group(const std::string &name)
{
	return std::any_of(groups.begin(), groups.end(),
					   [&](const Group &group) { return name == group.name; });
}

bool run_groups(const std::vector<std::string> &chosen, TestAmount amount)
{
	for (const Group &group : groups) {
		if (!chosen.empty() &&
			std::find(chosen.begin(), chosen.end(), group.name) == chosen.end())
			continue;
		uint64_t run_before = tests_run, failed_before = tests_failed;
		auto start = std::chrono::steady_clock::now();
		set_debug(nullptr);
		group.run(amount);
		set_debug(nullptr);
		printf("%-14s %8llu checks, %llu failed, %.1f s\n", group.name,
			   (unsigned long long)(tests_run - run_before),
			   (unsigned long long)(tests_failed - failed_before),
			   std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
		fflush(stdout);
	}
	return tests_failed == 0;
}

} // namespace

int main(int count, char **arguments)
{
	TestAmount amount = TEST_ALL;
	bool bugs = false, no_device = false, lose_device = false, good = true;
	const char *path = nullptr;
	std::vector<std::string> chosen;
	for (int i = 1; i < count; i++) {
		if (!strcmp(arguments[i], "--quick"))
			amount = TEST_QUICK;
		else if (!strcmp(arguments[i], "--tiny"))
			amount = TEST_TINY;
		else if (!strcmp(arguments[i], "--bugs"))
			bugs = true;
		else if (!strcmp(arguments[i], "--no-device"))
			no_device = true;
		else if (!strcmp(arguments[i], "--lose-device"))
			lose_device = true;
		else if (!path)
			path = arguments[i];
		else {
			chosen.push_back(arguments[i]);
			good &= is_group(arguments[i]);
		}
	}
	if (!path || !good) {
		printf("usage: device_test LIBRARY [--quick|--tiny|--bugs|--no-device] [GROUP ...]\n"
			   "groups:");
		for (const Group &group : groups)
			printf(" %s", group.name);
		printf("\n");
		return 2;
	}
	library.path = path;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		printf("could not open the library: %s\n", dlerror());
		return 2;
	}
	auto entry = (GsDeviceApiFunction)dlsym(handle, GPUSORT_DEVICE_ENTRY);
	library.api = entry ? entry(GPUSORT_DEVICE_ABI_VERSION) : nullptr;
	if (!library.api) {
		printf("the library has no table of this version\n");
		return 2;
	}
	for (uint32_t version : {0u, GPUSORT_DEVICE_ABI_VERSION + 1u, UINT32_MAX})
		test_check(!entry(version), "version %u is served", version);
	library.emulator = !strcmp(library.api->build, "emulator");

	if (no_device) {
		good = test_no_device();
		printf("%s, no device: %llu checks, %llu failed\n", library.api->build,
			   (unsigned long long)tests_run, (unsigned long long)tests_failed);
		return good ? 0 : 1;
	}

	char message[256] = "";
	GsStatus status = library.api->device_open(0, &library.device, message, sizeof message);
	if (status) {
		printf("could not open the device: %s: %s\n", library.api->status_text(status),
			   message);
		return 2;
	}
	if (lose_device) {
		good = test_losing_device();
		library.api->device_close(library.device);
		return good ? 0 : 1;
	}
	good = bugs ? test_planted_bugs() : run_groups(chosen, amount);
	library.api->device_close(library.device);
	printf("%s: %llu checks, %llu failed\n", library.api->build, (unsigned long long)tests_run,
		   (unsigned long long)tests_failed);
	return good ? 0 : 1;
}
