/*
 * huge_test.cpp
 *		Sorts of up to 2^32 items, checked in one pass over the result.
 *
 * A key is a function of its row number, so that neither the input nor a sorted copy has to be
 * kept.  The result is right if the keys ascend, each key is that of its row number, the row
 * numbers of ties ascend, and the row numbers are a permutation, which the sum of their hashes
 * shows.  Device arrays are filled and read in pieces.  The emulator runs the same tests with
 * small sizes and small strips.
 */
#include "test/device_test.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace
{

constexpr uint64_t PIECE = (uint64_t)1 << 22; /* items */

enum KeyOrder { RANDOM, SORTED, ONE_DESCENT, REVERSED };

struct HugeCase {
	uint32_t key_width;
	uint32_t value_width; /* 0: no values */
	uint64_t n;
	uint64_t distinct; /* random keys: approximate number of distinct ones; 0: all random */
	KeyOrder order;
};

uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

template <class Key>
Key key_of(const HugeCase &c, uint64_t row)
{
	uint64_t key = mix(row + 0x9E3779B97F4A7C15ull);
	switch (c.order) {
		case SORTED:
			return (Key)(row / 3);
		case ONE_DESCENT:
			return (Key)(row == c.n / 2 ? 5 : row / 3);
		case REVERSED:
			return (Key)((c.n - row) / 3);
		default:
			return (Key)(c.distinct ? key % c.distinct * 0x10001 : key);
	}
}

struct Buffers {
	void *keys_in = nullptr, *keys_out = nullptr, *values = nullptr;
	~Buffers()
	{
		for (void *buffer : {keys_in, keys_out, values})
			library.api->buffer_free(library.device, buffer);
	}
};

/* Fills the keys.  *sum becomes the sum of the hashes that the result must have. */
template <class Key>
bool fill(const HugeCase &c, void *target, uint64_t *sum)
{
	std::vector<Key> keys(std::min(c.n, PIECE));
	*sum = 0;
	for (uint64_t first = 0; first < c.n; first += PIECE) {
		uint64_t count = std::min(PIECE, c.n - first);
		for (uint64_t i = 0; i < count; i++) {
			keys[i] = key_of<Key>(c, first + i);
			*sum += mix(c.value_width ? first + i : keys[i]);
		}
		if (library.api->buffer_write(library.device, (Key *)target + first, keys.data(),
									  count * sizeof(Key)))
			return false;
	}
	return true;
}

/* Returns NULL, or what is wrong. */
template <class Key, class Value>
const char *check_result(const HugeCase &c, const Buffers &buffers, uint64_t sum)
{
	std::vector<Key> keys(std::min(c.n, PIECE));
	std::vector<Value> rows(c.value_width ? keys.size() : 0);
	Key last_key = 0;
	uint64_t last_row = 0;
	for (uint64_t first = 0; first < c.n; first += PIECE) {
		uint64_t count = std::min(PIECE, c.n - first);
		if (library.api->buffer_read(library.device, keys.data(),
									 (const Key *)buffers.keys_out + first,
									 count * sizeof(Key)) ||
			(c.value_width && library.api->buffer_read(library.device, rows.data(),
													   (const Value *)buffers.values + first,
													   count * sizeof(Value))))
			return "reading the result failed";
		for (uint64_t i = 0; i < count; i++) {
			if (keys[i] < last_key)
				return "the keys do not ascend";
			if (c.value_width) {
				uint64_t row = rows[i];
				if (row >= c.n || keys[i] != key_of<Key>(c, row))
					return "a key has the row number of another";
				if (first + i && keys[i] == last_key && row <= last_row)
					return "equal keys are not in order of their row numbers";
				last_row = row;
			}
			sum -= mix(c.value_width ? (uint64_t)rows[i] : keys[i]);
			last_key = keys[i];
		}
	}
	return sum ? "items are missing or duplicated" : nullptr;
}

template <class Key, class Value>
void run(const HugeCase &c)
{
	const GsDeviceApi *api = library.api;
	Buffers buffers;
	GsStatus status = api->buffer_alloc(library.device, c.n * c.key_width, &buffers.keys_in);
	if (!status)
		status = api->buffer_alloc(library.device, c.n * c.key_width, &buffers.keys_out);
	if (!status && c.value_width)
		status = api->buffer_alloc(library.device, c.n * c.value_width, &buffers.values);
	uint64_t sum;
	const char *problem = nullptr;
	if (!status && !fill<Key>(c, buffers.keys_in, &sum))
		problem = "writing the keys failed";
	if (!status && !problem) {
		GsSortRequest request = {};
		request.key_width = c.key_width;
		request.value_width = c.value_width;
		request.end_bit = 8 * c.key_width;
		request.location = GPUSORT_DEVICE_ARRAYS;
		request.n = c.n;
		request.keys_in = buffers.keys_in;
		request.keys_out = buffers.keys_out;
		request.values_out = buffers.values;
		status = api->sort(library.device, &request);
	}
	if (status == GPUSORT_DEVICE_MEMORY) {
		printf("skipped for lack of device memory: %llu items of %u and %u bytes\n",
			   (unsigned long long)c.n, c.key_width, c.value_width);
		return;
	}
	if (status)
		problem = api->status_text(status);
	if (!problem)
		problem = check_result<Key, Value>(c, buffers, sum);
	test_check(!problem, "%s (%s): huge, n %llu, %u/%u bytes, distinct %llu, order %d",
			   problem ? problem : "", status ? api->device_message(library.device) : "",
			   (unsigned long long)c.n, c.key_width, c.value_width,
			   (unsigned long long)c.distinct, (int)c.order);
	api->device_trim(library.device);
}

void run_case(const HugeCase &c)
{
	if (c.key_width == 4 && c.value_width == 8)
		run<uint32_t, uint64_t>(c);
	else if (c.key_width == 4)
		run<uint32_t, uint32_t>(c);
	else if (c.value_width == 8)
		run<uint64_t, uint64_t>(c);
	else
		run<uint64_t, uint32_t>(c);
}

} // namespace

void test_huge(TestAmount amount)
{
	if (library.emulator) {
		set_debug([](GsDebugSettings &s) { s.strip_items = 1500; });
		for (uint32_t key_width : {4, 8})
			for (uint32_t value_width : {0, 4, 8})
				for (KeyOrder order : {RANDOM, SORTED, ONE_DESCENT, REVERSED})
					for (uint64_t distinct : {0, 7})
						if (order == RANDOM || !distinct)
							run_case({key_width, value_width, 5003, distinct, order});
		return;
	}
	if (amount != TEST_ALL)
		return;
	/* Inputs of this size are first searched for a descent. */
	for (KeyOrder order : {SORTED, ONE_DESCENT, REVERSED})
		run_case({4, 4, ((uint64_t)1 << 26) + 1, 0, order});
	uint64_t strip = (uint64_t)1 << 30;
	run_case({4, 4, ((uint64_t)1 << 26) + 1, 1000, RANDOM});
	run_case({8, 8, ((uint64_t)1 << 28) + 1, 0, RANDOM});
	run_case({4, 4, strip + 1, 0, RANDOM});
	run_case({4, 0, 2 * strip + 1, 0, RANDOM});
	run_case({4, 4, 2 * strip + 1, 1 << 16, RANDOM});
	/* Positions do not fit in 32 bits. */
	run_case({4, 0, 4 * strip + 5, 0, RANDOM});
	run_case({4, 8, 4 * strip + 5, 0, RANDOM});
}
