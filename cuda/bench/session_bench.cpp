/*
 * session_bench.cpp
 *		Measures how much of the bus bandwidth a sort session uses.
 *
 *	session_bench LIBRARY [MILLIONS [CHUNK_KB]]
 *
 * Rows have 8 bytes and a key of 8 bytes, like the elements of an array of int8.  They pass
 * through a pinned pool chunk by chunk, as the service sends them; no host processor reads
 * them.  Times are compared with those of plain copies of the same bytes over the bus.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/mman.h>

#include "gpusort_device.h"

namespace
{

constexpr size_t POOL_BYTES = 256 << 20;
constexpr uint32_t ROW_BYTES = 8;
constexpr int IN_FLIGHT = 8;
constexpr int RUNS = 5;

const GsDeviceApi *api;
GsDevice *device;
unsigned char *pool;

void check(GsStatus status, const char *what)
{
	if (status == GPUSORT_OK)
		return;
	fprintf(stderr, "%s: %s (%s)\n", what, api->status_text(status),
			device ? api->device_message(device) : "");
	exit(1);
}

double now()
{
	using namespace std::chrono;
	return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/* Returns the bytes per second of plain copies from or to the pool. */
double bandwidth(bool to_device)
{
	void *buffer;
	double best = 0;
	check(api->buffer_alloc(device, POOL_BYTES, &buffer), "allocate");
	for (int run = 0; run < RUNS; run++) {
		double start = now();
		if (to_device)
			check(api->buffer_write(device, buffer, pool, POOL_BYTES), "copy");
		else
			check(api->buffer_read(device, pool, buffer, POOL_BYTES), "copy");
		double rate = POOL_BYTES / (now() - start);
		best = rate > best ? rate : best;
	}
	check(api->buffer_free(device, buffer), "free");
	return best;
}

void fill_pool()
{
	uint64_t *words = (uint64_t *)pool;
	uint64_t state = 88172645463325252u;
	for (size_t i = 0; i < POOL_BYTES / 8; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		words[i] = state;
	}
}

struct Times {
	double put, sort, get;
};

Times run_session(uint64_t rows, size_t chunk_bytes)
{
	GsSessionOptions options = {};
	options.key_words = 1;
	options.row_layout = GPUSORT_ROWS_FIXED;
	options.row_width = ROW_BYTES;
	options.chunk_rows = (uint32_t)(chunk_bytes / ROW_BYTES);
	options.chunk_bytes = chunk_bytes;
	options.expected_rows = rows;
	GsSession *session;
	check(api->session_begin(device, &options, &session), "begin");

	Times times;
	size_t chunks_in_pool = POOL_BYTES / chunk_bytes, next = 0;
	uint32_t rows_per_chunk = (uint32_t)(chunk_bytes / (8 + ROW_BYTES));
	GsTicket tickets[IN_FLIGHT] = {};
	double start = now();
	int slot = 0;
	for (uint64_t done = 0; done < rows;) {
		GsChunk chunk = {};
		uint64_t left = rows - done;
		unsigned char *address = pool + next * chunk_bytes;
		next = (next + 1) % chunks_in_pool;
		chunk.rows = left < rows_per_chunk ? (uint32_t)left : rows_per_chunk;
		chunk.keys[0] = (const uint64_t *)address;
		chunk.data = address + (size_t)rows_per_chunk * 8;
		chunk.data_bytes = (uint64_t)chunk.rows * ROW_BYTES;
		if (tickets[slot])
			check(api->session_wait(session, tickets[slot]), "wait");
		check(api->session_put(session, &chunk, &tickets[slot]), "put");
		slot = (slot + 1) % IN_FLIGHT;
		done += chunk.rows;
	}
	for (GsTicket ticket : tickets)
		if (ticket)
			check(api->session_wait(session, ticket), "wait");
	times.put = now() - start;

	GsSessionResult result;
	start = now();
	check(api->session_sort(session, &result), "sort");
	times.sort = now() - start;

	start = now();
	GsTicket gets[IN_FLIGHT] = {};
	for (uint64_t c = 0; c < result.chunks; c++) {
		GsSortedChunk target = {};
		target.data = pool + c % chunks_in_pool * chunk_bytes;
		slot = (int)(c % IN_FLIGHT);
		if (gets[slot])
			check(api->session_wait(session, gets[slot]), "wait");
		check(api->session_get(session, c, &target, &gets[slot]), "get");
	}
	for (GsTicket ticket : gets)
		if (ticket)
			check(api->session_wait(session, ticket), "wait");
	times.get = now() - start;
	api->session_end(session);
	return times;
}

} // namespace

int main(int argc, char **argv)
{
	uint64_t rows = (argc > 2 ? strtoull(argv[2], nullptr, 10) : 100) * 1000000;
	size_t chunk_bytes = (argc > 3 ? strtoull(argv[3], nullptr, 10) : 512) * 1024;
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : nullptr;
	GsDeviceApiFunction get =
		library ? (GsDeviceApiFunction)dlsym(library, GPUSORT_DEVICE_ENTRY) : nullptr;
	char message[256] = "";

	if (!get || !(api = get(GPUSORT_DEVICE_ABI_VERSION))) {
		fprintf(stderr, "usage: session_bench LIBRARY [MILLIONS [CHUNK_KB]]\n");
		return 2;
	}
	if (api->device_open(0, &device, message, sizeof message)) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	pool = (unsigned char *)mmap(nullptr, POOL_BYTES, PROT_READ | PROT_WRITE,
								 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fill_pool();
	check(api->host_register(device, pool, POOL_BYTES), "register");

	double in = bandwidth(true), out = bandwidth(false);
	fill_pool();
	double bytes_in = (double)rows * (8 + ROW_BYTES), bytes_out = (double)rows * ROW_BYTES;
	double ideal = bytes_in / in + bytes_out / out;
	printf("plain copies: %.1f GB/s to the device, %.1f GB/s from it\n", in / 1e9, out / 1e9);
	printf("%llu rows, chunks of %zu kB: %.1f ms at that rate\n", (unsigned long long)rows,
		   chunk_bytes / 1024, ideal * 1e3);
	for (int run = 0; run < RUNS; run++) {
		Times t = run_session(rows, chunk_bytes);
		double total = t.put + t.sort + t.get;
		printf("put %.1f ms (%.0f %%), sort %.1f ms, get %.1f ms (%.0f %%), total %.1f ms: "
			   "%.0f %% of the bus\n",
			   t.put * 1e3, 100 * bytes_in / in / t.put, t.sort * 1e3, t.get * 1e3,
			   100 * bytes_out / out / t.get, total * 1e3, 100 * ideal / total);
	}
	api->host_unregister(device, pool);
	api->device_close(device);
	return 0;
}
