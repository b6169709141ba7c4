/*
 * fault_test.cpp
 *		Tests of bad arguments and of trouble on the device: a status, a message, nothing
 *leaked.
 */
#include "test/device_test.h"

#include <cstring>

static GsSortRequest good_request(void *in, void *out, uint64_t n)
{
	GsSortRequest request = {};
	request.struct_size = sizeof request;
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

void test_arguments()
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	uint32_t in[8] = {3, 1, 2, 5, 4, 7, 6, 0}, out[8];
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

	expect(api->sort(nullptr, &request), GPUSORT_BAD_ARGUMENT, "no device");
	expect(api->sort(device, nullptr), GPUSORT_BAD_ARGUMENT, "no request");
	rejects("no struct size", [](GsSortRequest &r) { r.struct_size = 0; });
	rejects("no input", [](GsSortRequest &r) { r.keys_in = nullptr; });
	rejects("no output", [](GsSortRequest &r) { r.keys_out = nullptr; });
	rejects("key width", [](GsSortRequest &r) { r.key_width = 5; });
	rejects("value width", [](GsSortRequest &r) { r.value_width = 1; });
	rejects("values missing", [](GsSortRequest &r) { r.value_width = 4; });
	rejects("values superfluous", [&](GsSortRequest &r) { r.values_in = in; });
	rejects("bits beyond the key", [](GsSortRequest &r) { r.end_bit = 33; });
	rejects("bits reversed", [](GsSortRequest &r) { r.begin_bit = 5, r.end_bit = 4; });
	rejects("unknown order", [](GsSortRequest &r) { r.order = (GsKeyOrder)9; });
	rejects("unknown place", [](GsSortRequest &r) { r.place = (GsMemoryPlace)9; });
	rejects("huge n", [](GsSortRequest &r) { r.n = UINT64_MAX / 2; });
	rejects("misaligned", [&](GsSortRequest &r) { r.keys_in = (char *)in + 1, r.n = 4; });
	rejects("overlap", [&](GsSortRequest &r) { r.keys_out = in + 1, r.n = 4; });
	rejects("in place on the device", [&](GsSortRequest &r) {
		r.keys_out = in;
		r.place = GPUSORT_DEVICE_ARRAYS;
	});

	GsDevice *other = device;
	GsDeviceOptions options = {};
	char message[64] = "";
	expect(api->device_open(&options, &other, message, sizeof message), GPUSORT_BAD_ARGUMENT,
		   "options without a size");
	test_check(!other && message[0], "no message for options without a size");
	options.struct_size = sizeof options;
	options.ordinal = 1000;
	expect(api->device_open(&options, &other, message, sizeof message), GPUSORT_NO_DEVICE,
		   "device 1000");
	GsDeviceInfo info;
	expect(api->device_info(0, &info, message, sizeof message), GPUSORT_OK, "info");
	test_check(info.multiprocessors > 0 && info.name[0], "info is empty");
	test_check(api->device_info(1000, &info, message, sizeof message) != GPUSORT_OK,
			   "info of device 1000");
	int count = 0;
	expect(api->device_count(&count, nullptr, 0), GPUSORT_OK, "count");
	test_check(count > 0, "no devices");
	expect(api->buffer_free(device, in), GPUSORT_BAD_ARGUMENT, "freeing a stranger's memory");
	expect(api->host_register(device, nullptr, 4096), GPUSORT_BAD_ARGUMENT, "pinning NULL");
	expect(api->host_register(device, in, 0), GPUSORT_BAD_ARGUMENT, "pinning nothing");
	for (int status = 0; status < 20; status++)
		test_check(api->status_text((GsStatus)status)[0], "status %d has no text", status);
	api->device_close(nullptr);
	api->session_end(nullptr);
}

static uint64_t in_use()
{
	GsDeviceMemory memory;
	library.api->device_memory(library.device, &memory);
	return memory.in_use;
}

void test_faults()
{
	const GsDeviceApi *api = library.api;
	GsDevice *device = library.device;
	std::vector<uint32_t> in(20000), out(20000);
	for (size_t i = 0; i < in.size(); i++)
		in[i] = (uint32_t)(i * 2654435761u);

	/* Every allocation of a sort fails once; nothing stays behind, and the next sort works. */
	api->device_trim(device);
	uint64_t before = in_use();
	for (uint32_t fail = 1; fail < 10; fail++) {
		set_debug([&](GsDebugSettings &s) {
			s.path = GPUSORT_PATH_ONESWEEP;
			s.fail_alloc = fail;
		});
		GsSortRequest request = good_request(in.data(), out.data(), in.size());
		GsStatus status = api->sort(device, &request);
		test_check(status == GPUSORT_OK || status == GPUSORT_DEVICE_MEMORY,
				   "failing allocation %u: %s", fail, api->status_text(status));
		test_check(status == GPUSORT_OK || api->device_message(device)[0],
				   "failing allocation %u has no message", fail);
		set_debug([&](GsDebugSettings &s) { s.fail_alloc = 0; });
		expect(api->device_trim(device), GPUSORT_OK, "trim");
		test_check(in_use() == before, "failing allocation %u leaks", fail);
		expect(api->sort(device, &request), GPUSORT_OK, "the sort after a failed allocation");
		api->device_trim(device);
	}

	/* A limit of the device's memory. */
	GsDevice *small = nullptr;
	GsDeviceOptions options = {};
	options.struct_size = sizeof options;
	options.memory_limit = 300000;
	expect(api->device_open(&options, &small, nullptr, 0), GPUSORT_OK, "opening with a limit");
	if (small) {
		GsSortRequest request = good_request(in.data(), out.data(), in.size());
		expect(api->sort(small, &request), GPUSORT_DEVICE_MEMORY, "sorting beyond the limit");
		request.n = 1000;
		expect(api->sort(small, &request), GPUSORT_OK, "sorting within the limit");
		api->device_close(small);
	}

	/* The device is lost in a sort: every call says so, until it is recovered. */
	set_debug([&](GsDebugSettings &s) { s.fail_launch = 1; });
	GsSortRequest request = good_request(in.data(), out.data(), in.size());
	expect(api->sort(device, &request), GPUSORT_DEVICE_LOST, "the sort that loses the device");
	set_debug([&](GsDebugSettings &s) { s.fail_launch = 0; });
	expect(api->sort(device, &request), GPUSORT_DEVICE_LOST, "a sort on a lost device");
	void *buffer = &buffer;
	expect(api->buffer_alloc(device, 100, &buffer), GPUSORT_DEVICE_LOST, "a buffer on it");
	test_check(!buffer, "a buffer on a lost device is not NULL");
	expect(api->device_recover(device), GPUSORT_OK, "recovering");
	expect(api->sort(device, &request), GPUSORT_OK, "the sort after recovering");
	bool sorted = true;
	for (size_t i = 1; i < out.size(); i++)
		sorted &= out[i - 1] <= out[i];
	test_check(sorted, "the sort after recovering is wrong");
}
