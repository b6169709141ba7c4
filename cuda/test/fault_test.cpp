/*
 * fault_test.cpp
 *		Tests of bad arguments and of faults of the device: there is a status and a message,
 *		nothing leaks, and the caller can continue.
 */
#include "test/device_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

static GsSortRequest good_request(void *in, void *out, uint64_t n)
{
	GsSortRequest request = {};
	request.key_width = 4;
	request.end_bit = 32;
	request.n = n;
	request.keys_in = in;
	request.keys_out = out;
	return request;
}

static void expect(GsStatus status, GsStatus expected, const char *what)
{
	test_check(status == expected, "%s: %s instead of %s", what,
			   library.api->status_text(status), library.api->status_text(expected));
}

static uint64_t in_use()
{
	GsDeviceMemory memory;
	library.api->device_memory(library.device, &memory);
	return memory.in_use;
}

static void test_requests()
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	alignas(8) uint32_t in[8] = {3, 1, 2, 5, 4, 7, 6, 0}, out[8];
	auto rejects = [&](const char *what, const std::function<void(GsSortRequest &)> &spoil) {
		GsSortRequest request = good_request(in, out, 8);
		spoil(request);
		expect(api->sort(device, &request), GPUSORT_BAD_ARGUMENT, what);
	};

	GsSortRequest request = good_request(in, out, 8);
	expect(api->sort(device, &request), GPUSORT_OK, "a good request");
	test_check(out[0] == 0 && out[7] == 7, "a good request is not sorted");
	request = good_request(nullptr, nullptr, 0);
	expect(api->sort(device, &request), GPUSORT_OK, "no items");

	rejects("no input", [](GsSortRequest &r) { r.keys_in = nullptr; });
	rejects("no output", [](GsSortRequest &r) { r.keys_out = nullptr; });
	rejects("key width", [](GsSortRequest &r) { r.key_width = 5; });
	rejects("value width", [](GsSortRequest &r) { r.value_width = 1; });
	rejects("values missing", [](GsSortRequest &r) { r.value_width = 4; });
	rejects("values superfluous", [&](GsSortRequest &r) { r.values_in = in; });
	rejects("bits beyond the key", [](GsSortRequest &r) { r.end_bit = 33; });
	rejects("bits reversed", [](GsSortRequest &r) { r.begin_bit = 5, r.end_bit = 4; });
	rejects("unknown order", [](GsSortRequest &r) { r.order = (GsKeyOrder)9; });
	rejects("unknown location", [](GsSortRequest &r) { r.location = (GsArrayLocation)9; });
	rejects("huge n", [](GsSortRequest &r) { r.n = UINT64_MAX / 2; });
	rejects("4-byte row numbers beyond 2^32", [&](GsSortRequest &r) {
		r.n = ((uint64_t)1 << 32) + 1;
		r.value_width = 4;
		r.values_out = in;
	});
	for (GsArrayLocation location : {GPUSORT_HOST_ARRAYS, GPUSORT_DEVICE_ARRAYS}) {
		rejects("misaligned input", [&](GsSortRequest &r) {
			r.keys_in = (char *)in + 1, r.n = 4, r.location = location;
		});
		rejects("misaligned output", [&](GsSortRequest &r) {
			r.keys_out = (char *)out + 2, r.n = 4, r.location = location;
		});
		rejects("misaligned values", [&](GsSortRequest &r) {
			r.value_width = 8, r.values_in = in + 1, r.values_out = out + 4;
			r.n = 2, r.location = location;
		});
		rejects("misaligned row numbers", [&](GsSortRequest &r) {
			r.value_width = 8, r.values_out = out + 3, r.n = 2, r.location = location;
		});
	}
	rejects("overlap", [&](GsSortRequest &r) { r.keys_out = in + 1, r.n = 4; });
	rejects("in place on the device", [&](GsSortRequest &r) {
		r.keys_out = in;
		r.location = GPUSORT_DEVICE_ARRAYS;
	});
}

/* Passes sizes from zero to more than all memory, and numbers of devices. */
static void test_sizes_and_numbers()
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	char message[64] = "";
	void *buffer = &buffer;
	GsDevice *other = device;
	GsDeviceInfo info;
	char page[16] = "";

	api->device_close(nullptr);
	api->session_end(nullptr);
	expect(api->buffer_free(device, page), GPUSORT_BAD_ARGUMENT,
		   "freeing memory of another owner");
	expect(api->buffer_free(device, nullptr), GPUSORT_OK, "buffer_free() of NULL");
	expect(api->buffer_write(device, nullptr, nullptr, 0), GPUSORT_OK, "writing nothing");

	uint64_t before = in_use();
	expect(api->buffer_alloc(device, 0, &buffer), GPUSORT_OK, "a buffer of no bytes");
	test_check(buffer, "a buffer of no bytes is NULL");
	expect(api->buffer_free(device, buffer), GPUSORT_OK, "freeing a buffer of no bytes");
	for (size_t size : {SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 50}) {
		buffer = &buffer;
		expect(api->buffer_alloc(device, size, &buffer), GPUSORT_DEVICE_MEMORY,
			   "a buffer larger than the device");
		test_check(!buffer && api->device_message(device)[0], "a huge buffer is not NULL");
	}
	/* These arrays are never read, since there is no memory for them. */
	for (GsArrayLocation location : {GPUSORT_HOST_ARRAYS, GPUSORT_DEVICE_ARRAYS}) {
		GsSortRequest request = good_request((void *)((uintptr_t)1 << 44),
											 (void *)((uintptr_t)1 << 45), (uint64_t)1 << 40);
		request.location = location;
		expect(api->sort(device, &request), GPUSORT_DEVICE_MEMORY, "more items than memory");
		test_check(api->device_message(device)[0], "more items than memory: no message");
	}
	test_check(in_use() == before, "memory that could not be allocated is counted");

	for (int32_t ordinal : {1000, -1, INT32_MAX, INT32_MIN}) {
		message[0] = 0;
		expect(api->device_open(ordinal, &other, message, sizeof message), GPUSORT_NO_DEVICE,
			   "a device that does not exist");
		test_check(!other && message[0], "device %d: no message", ordinal);
		message[0] = 0;
		expect(api->device_info(ordinal, &info, message, sizeof message), GPUSORT_NO_DEVICE,
			   "info of a device that does not exist");
		test_check(message[0], "info of device %d: no message", ordinal);
	}
	char tiny[4] = "###";
	api->device_open(-1, &other, tiny, 2);
	test_check(!tiny[1] && tiny[2] == '#', "a message is longer than its buffer");
	expect(api->device_info(0, &info, message, sizeof message), GPUSORT_OK, "info");
	test_check(info.multiprocessors > 0 && info.name[0], "info is empty");
	int count = 0;
	expect(api->device_count(&count, nullptr, 0), GPUSORT_OK, "count");
	test_check(count > 0, "no devices");
	GsDeviceHealth health;
	api->device_health(library.device, &health);
	test_check(
		health.temperature >= -1 && health.temperature < 150 && health.memory_errors >= -1,
		"health: %d degrees, %ld errors", (int)health.temperature, (long)health.memory_errors);
	for (int status = -1; status < 20; status++)
		test_check(api->status_text((GsStatus)status)[0], "status %d has no text", status);
}

/* Pins host memory and unpins it; both can be done only once. */
static void test_pinning()
{
	const GsDeviceApi *api = library.api;
	const size_t page = 4096;
	void *memory = aligned_alloc(page, 2 * page);
	GsStatus status = api->host_unregister(library.device, memory);
	test_check(status == GPUSORT_DEVICE_ERROR, "unpinning what is not pinned: %s",
			   api->status_text(status));
	expect(api->host_register(library.device, memory, 2 * page), GPUSORT_OK, "pinning");
	test_check(api->host_register(library.device, memory, 2 * page) != GPUSORT_OK,
			   "pinning twice");
	expect(api->host_unregister(library.device, memory), GPUSORT_OK, "unpinning");
	free(memory);
}

static void expect_missing(const char *what, GsStatus expected)
{
	const GsDeviceApi *api = library.api;
	auto good = [&](GsStatus status) {
		return expected ? status == expected
						: status == GPUSORT_NO_DRIVER || status == GPUSORT_NO_DEVICE;
	};
	int count = 7;
	char message[256] = "";
	GsStatus status = api->device_count(&count, message, sizeof message);
	test_check(good(status) && !count && message[0], "%s: device_count: %s, %d devices, %s",
			   what, api->status_text(status), count, message);
	GsDeviceInfo info;
	message[0] = 0;
	status = api->device_info(0, &info, message, sizeof message);
	test_check(good(status) && message[0], "%s: device_info: %s, %s", what,
			   api->status_text(status), message);
	GsDevice *device = library.device;
	message[0] = 0;
	status = api->device_open(0, &device, message, sizeof message);
	test_check(good(status) && !device && message[0], "%s: device_open: %s, %s", what,
			   api->status_text(status), message);
	test_check(good(api->device_open(0, &device, nullptr, 0)), "%s: without a message", what);
}

bool test_no_device()
{
	if (library.emulator) {
		setenv("GPUSORT_EMU_NO_DRIVER", "1", 1);
		expect_missing("no driver", GPUSORT_NO_DRIVER);
		unsetenv("GPUSORT_EMU_NO_DRIVER");
		setenv("GPUSORT_EMU_NO_DEVICE", "1", 1);
		expect_missing("no device", GPUSORT_NO_DEVICE);
		unsetenv("GPUSORT_EMU_NO_DEVICE");
		GsDevice *device = nullptr;
		expect(library.api->device_open(0, &device, nullptr, 0), GPUSORT_OK,
			   "the device that has returned");
		library.api->device_close(device);
	} else
		expect_missing("no driver or no device", GPUSORT_OK);
	return tests_failed == 0;
}

/*
 * Code for an older architecture than the device's, as if the driver had compiled its PTX.  It
 * lacks large tiles, so small ones must be used, and the result must be right.
 */
static void test_older_code()
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	setenv("GPUSORT_EMU_PTX", "75", 1);
	expect(api->device_open(0, &library.device, nullptr, 0), GPUSORT_OK,
		   "opening a device with older code");
	SortCase c;
	c.key_width = 8;
	c.value_width = 4;
	c.row_numbers = true;
	c.what = "older code";
	GsDebugSizes sizes = {}, older = {};
	api->debug_sizes(device, c.key_width, c.value_width, &sizes);
	api->debug_sizes(library.device, c.key_width, c.value_width, &older);
	test_check(older.tile_items < sizes.tile_items, "tiles of older code have %u items, not %u",
			   older.tile_items, sizes.tile_items);
	set_debug([](GsDebugSettings &s) { s.path = GPUSORT_PATH_ONESWEEP; });
	run_sort_case(c, entropy_keys(5 * older.tile_items, 1, 8, 1));
	set_debug(nullptr);
	api->device_close(library.device);
	unsetenv("GPUSORT_EMU_PTX");
	library.device = device;
}

void test_arguments(TestAmount)
{
	test_requests();
	test_sizes_and_numbers();
	test_pinning();
	if (library.emulator) {
		test_no_device();
		test_older_code();
	}
}

static std::vector<uint32_t> some_keys(uint64_t n)
{
	std::vector<uint32_t> keys(n);
	for (uint64_t i = 0; i < n; i++)
		keys[i] = (uint32_t)i * 2654435761u;
	return keys;
}

/* Checks that the device can be used as if nothing had happened. */
static void expect_working(GsDevice *device, const char *what)
{
	std::vector<uint32_t> in = some_keys(5000), out(in.size());
	GsSortRequest request = good_request(in.data(), out.data(), in.size());
	GsStatus status = library.api->sort(device, &request);
	bool sorted = true;
	for (size_t i = 1; i < out.size(); i++)
		sorted &= out[i - 1] < out[i];
	test_check(!status && sorted, "%s: the sort after it: %s", what,
			   library.api->status_text(status));
}

/* Lets each allocation of a sort fail once.  Nothing may leak, and the next sort must work. */
static void test_failing_allocations()
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	std::vector<uint32_t> in = some_keys(20000), out(in.size());
	std::vector<uint64_t> values(in.size());
	api->device_trim(device);
	uint64_t before = in_use();
	bool failed = true;
	uint32_t fail;
	for (fail = 1; failed && fail < 20; fail++) {
		set_debug([&](GsDebugSettings &s) {
			s.path = GPUSORT_PATH_ONESWEEP;
			s.fail_alloc = fail;
		});
		GsSortRequest request = good_request(in.data(), out.data(), in.size());
		request.value_width = 8;
		request.values_in = request.values_out = values.data();
		GsStatus status = api->sort(device, &request);
		failed = status == GPUSORT_DEVICE_MEMORY;
		test_check(failed || status == GPUSORT_OK, "failing allocation %u: %s", fail,
				   api->status_text(status));
		test_check(!failed || api->device_message(device)[0],
				   "failing allocation %u has no message", fail);
		set_debug([&](GsDebugSettings &s) { s.fail_alloc = 0; });
		expect(api->device_trim(device), GPUSORT_OK, "trim");
		test_check(in_use() == before, "failing allocation %u leaks", fail);
		expect(api->sort(device, &request), GPUSORT_OK, "the sort after a failed allocation");
		api->device_trim(device);
	}
	test_check(fail == 7, "a sort of host arrays has %u allocations instead of 5", fail - 2);
	set_debug(nullptr);
}

/* Checks that every call reports that the device is lost. */
static void expect_lost(const char *what)
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	uint32_t in[4] = {3, 1, 2, 0}, out[4];
	GsSortRequest request = good_request(in, out, 4);
	GsSessionOptions options = {};
	options.key_words = options.chunk_rows = 1;
	options.row_width = options.chunk_bytes = 8;
	GsSession *session;
	GsDeviceMemory memory;
	void *buffer = &buffer;
	expect(api->sort(device, &request), GPUSORT_DEVICE_LOST, what);
	test_check(api->device_message(device)[0], "%s: no message", what);
	expect(api->buffer_alloc(device, 100, &buffer), GPUSORT_DEVICE_LOST, what);
	test_check(!buffer, "%s: a buffer on a lost device is not NULL", what);
	expect(api->buffer_write(device, in, out, 4), GPUSORT_DEVICE_LOST, what);
	expect(api->host_register(device, in, 4), GPUSORT_DEVICE_LOST, what);
	expect(api->device_trim(device), GPUSORT_DEVICE_LOST, what);
	expect(api->device_memory(device, &memory), GPUSORT_DEVICE_LOST, what);
	expect(api->session_begin(device, &options, &session), GPUSORT_DEVICE_LOST, what);
	test_check(!session, "%s: a session on a lost device is not NULL", what);
}

/* Opens a device that was lost again.  All of its memory must be free afterwards. */
static void expect_return(uint64_t fresh, const char *what)
{
	expect_lost(what);
	reopen_device();
	test_check(in_use() == fresh, "%s: %llu bytes are in use after opening the device again",
			   what, (unsigned long long)in_use());
	expect_working(library.device, what);
	library.api->device_trim(library.device);
}

/* Loses the device: by keys at invalid addresses, or in the emulator by a kernel that hangs. */
static void lose_device()
{
	std::vector<uint32_t> in = some_keys(20000), out(in.size());
	GsSortRequest request = good_request(in.data(), out.data(), in.size());
	set_debug([](GsDebugSettings &s) { s.path = GPUSORT_PATH_ONESWEEP; });
	if (library.emulator)
		set_debug([](GsDebugSettings &s) {
			s.fallback_polls = UINT32_MAX;
			s.emu_resident = 1;
			s.emu_dispatch = 1;
			s.emu_bug = 6; /* GPUSORT_BUG_BLOCK_INDEX */
		});
	else {
		request.location = GPUSORT_DEVICE_ARRAYS;
		request.keys_in = (void *)((uintptr_t)1 << 46);
		request.keys_out = (void *)((uintptr_t)1 << 45);
	}
	expect(library.api->sort(library.device, &request), GPUSORT_DEVICE_LOST,
		   "a fault of a kernel");
	set_debug([](GsDebugSettings &s) { s.emu_bug = 0; });
	set_debug(nullptr);
}

/* Loses the device with a session, a buffer and pinned memory. */
bool test_losing_device()
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	const size_t page = 4096;
	void *memory = aligned_alloc(page, page), *buffer = nullptr;
	GsSessionOptions options = {};
	options.key_words = options.chunk_rows = 1;
	options.row_width = options.chunk_bytes = 8;
	GsSession *session = nullptr;
	expect(api->host_register(device, memory, page), GPUSORT_OK, "pinning");
	expect(api->buffer_alloc(device, 1000, &buffer), GPUSORT_OK, "a buffer");
	expect(api->session_begin(device, &options, &session), GPUSORT_OK, "begin");
	lose_device();
	expect_lost("after a fault");
	GsSessionResult result;
	expect(api->session_sort(session, &result), GPUSORT_DEVICE_LOST, "an older session");
	api->session_end(session);
	free(memory);
	return tests_failed == 0;
}

/*
 * CUDA does not guarantee that a process can continue after a fault, so another process causes
 * the fault.  This process uses the same device and must not be affected.
 */
static void test_real_fault()
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		execl("/proc/self/exe", "device_test", library.path, "--lose-device", (char *)nullptr);
		_exit(127);
	}
	int status = -1;
	bool ended = child > 0 && waitpid(child, &status, 0) == child;
	test_check(ended && WIFEXITED(status) && WEXITSTATUS(status) == 0,
			   "the process that loses the device ends with %d", status);
	expect_working(library.device, "a fault of another process");
	library.api->device_trim(library.device);
}

/* Gives the emulated device a fault, or removes it (NULL); see emu_runtime.cpp. */
static void set_device_fault(const char *fault)
{
	static const std::string path = "/tmp/gpusort_faults." + std::to_string(getpid());
	setenv("GPUSORT_EMU_FAULTS", path.c_str(), 1);
	FILE *file = fault ? fopen(path.c_str(), "w") : nullptr;
	if (file) {
		fprintf(file, "0 %s %d\n", fault, (int)getpid());
		fclose(file);
	} else
		unlink(path.c_str());
}

/* The device is lost while it is idle: a query, or the end of a session, must detect this. */
static void test_lost_while_idle(const char *fault)
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	GsSessionOptions options = {};
	options.key_words = options.chunk_rows = 1;
	options.row_width = options.chunk_bytes = 8;
	GsSession *session = nullptr;
	GsDeviceMemory memory;
	expect(api->session_begin(device, &options, &session), GPUSORT_OK, "begin");
	set_device_fault(fault);
	api->session_end(session);
	expect(api->device_memory(device, &memory), GPUSORT_DEVICE_LOST, fault);
	test_check(api->device_message(device)[0], "%s: no message", fault);
	test_check(memory.sessions == 0, "%s: the session has not ended", fault);
	set_device_fault(nullptr);
	expect_lost(fault);
}

/* As above, in another process, since an emulated device that is lost stays so. */
static void test_lost_while_idle_elsewhere(const char *fault)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		uint64_t failed = tests_failed;
		test_lost_while_idle(fault);
		fflush(stdout);
		_exit(tests_failed > failed);
	}
	int status = -1;
	waitpid(child, &status, 0);
	test_check(status == 0, "%s, in another process: its status is %d", fault, status);
}

/* The library has no code for the device. */
static void test_no_code()
{
	GsDevice *device = library.device;
	char message[256] = "";
	set_device_fault("no-code");
	expect(library.api->device_open(0, &device, message, sizeof message), GPUSORT_NO_DEVICE,
		   "a device without code");
	test_check(!device && strstr(message, "no kernel image"), "a device without code: %s",
			   message);
	set_device_fault(nullptr);
}

static void test_lost_device()
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	std::vector<uint32_t> in = some_keys(20000), out(in.size());
	GsSortRequest request = good_request(in.data(), out.data(), in.size());
	api->device_trim(device);
	uint64_t fresh = in_use();

	set_debug([](GsDebugSettings &s) { s.fail_launch = 1; });
	expect(api->sort(device, &request), GPUSORT_DEVICE_LOST, "the sort that loses the device");
	set_debug(nullptr);
	expect_return(fresh, "a launch that fails");

	if (library.emulator) {
		test_lost_while_idle_elsewhere("lost");
		test_lost_while_idle_elsewhere("gone");
		test_no_code();
	}
	test_real_fault();
}

/* Closes the device with a session, its copies and a buffer in progress. */
static void test_closing()
{
	const GsDeviceApi *api = library.api;
	std::vector<uint64_t> keys = entropy_keys(5000, 1, 8, 1);
	GsSessionOptions options = {};
	options.key_words = 1;
	options.row_width = 8;
	options.chunk_rows = 5000;
	options.chunk_bytes = 8 * 5000;
	GsChunk chunk = {};
	chunk.rows = 5000;
	chunk.keys[0] = keys.data();
	chunk.data = keys.data();
	chunk.data_bytes = 8 * 5000;
	GsSession *session = nullptr;
	GsTicket ticket;
	void *buffer = nullptr;
	expect(api->buffer_alloc(library.device, 1000, &buffer), GPUSORT_OK, "a buffer");
	expect(api->session_begin(library.device, &options, &session), GPUSORT_OK, "begin");
	expect(api->session_put(session, &chunk, &ticket), GPUSORT_OK, "put");
	reopen_device();
	expect_working(library.device, "closing the device with work in progress");
}

void test_faults(TestAmount amount)
{
	test_failing_allocations();
	test_closing();
	if (amount != TEST_TINY)
		test_lost_device();
}
