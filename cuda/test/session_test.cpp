/*
 * session_test.cpp
 *		Tests of sort sessions: every row must be returned once, in order, in every layout.
 */
#include "test/device_test.h"

#include <algorithm>
#include <cstring>

namespace
{

constexpr uint32_t WORDS = GPUSORT_MAX_KEY_WORDS;

/* Parameters of a session. */
struct SessionCase {
	GsRowLayout layout = GPUSORT_ROWS_FIXED;
	uint32_t row_width = 24;
	uint32_t key_words = 1;
	uint64_t rows = 1000;
	uint32_t put_rows = 300; /* rows of an unsorted chunk */
	uint32_t chunk_rows = 128;
	uint64_t chunk_bytes = 4096;
	uint64_t distinct = 0; /* number of distinct keys; 0: all random */
	uint32_t longest = 89; /* maximum bytes of most rows of variable width; a few are longer */
	uint32_t levels = 1;   /* of ties; the last one is that of whole keys */
	uint64_t expected_rows = 0;
	uint64_t device_memory_limit = 0;
};

struct Row {
	uint64_t key[WORDS];
	std::string bytes;
};

struct Put {
	std::vector<uint64_t> keys[WORDS];
	std::vector<uint32_t> lengths;
	std::string data;
	GsTicket ticket;
};

std::vector<Row> make_rows(const SessionCase &c, uint64_t seed)
{
	TestRandom random(seed);
	std::vector<Row> rows(c.rows);
	for (uint64_t i = 0; i < c.rows; i++) {
		Row &row = rows[i];
		for (uint64_t &key : row.key)
			key = c.distinct ? random.below(c.distinct) * 0x0101010101010101ull : random();
		uint64_t bytes =
			c.layout == GPUSORT_ROWS_FIXED ? c.row_width : random.below(c.longest + 1);
		if (c.layout == GPUSORT_ROWS_VARIABLE && c.longest && random.below(50) == 0)
			bytes = std::min<uint64_t>(c.chunk_bytes, 1000);
		row.bytes.resize(bytes);
		for (char &byte : row.bytes)
			byte = (char)random();
	}
	return rows;
}

/* Divides the rows into chunks. */
std::vector<Put> make_puts(const SessionCase &c, const std::vector<Row> &rows)
{
	std::vector<Put> puts;
	for (uint64_t first = 0; first < rows.size(); first += c.put_rows) {
		Put put;
		for (uint64_t i = first; i < first + c.put_rows && i < rows.size(); i++) {
			for (uint32_t w = 0; w < WORDS; w++)
				put.keys[w].push_back(rows[i].key[w]);
			put.lengths.push_back((uint32_t)rows[i].bytes.size());
			put.data += rows[i].bytes;
		}
		puts.push_back(put);
	}
	return puts;
}

GsChunk chunk_of(const Put &put)
{
	GsChunk chunk = {};
	chunk.rows = (uint32_t)put.keys[0].size();
	for (uint32_t w = 0; w < WORDS; w++)
		chunk.keys[w] = put.keys[w].data();
	chunk.data = put.data.data();
	chunk.lengths = put.lengths.data();
	chunk.data_bytes = put.data.size();
	return chunk;
}

/* Levels end at different bits of words. */
GsTieLevel level_of(const SessionCase &c, uint32_t level)
{
	uint32_t whole = c.key_words * 64;
	if (level + 1 == c.levels)
		return {whole, 1};
	return {whole * (level + 1) / (c.levels + 1) + level, 0};
}

GsSessionOptions options_of(const SessionCase &c)
{
	GsSessionOptions options = {};
	options.key_words = c.key_words;
	options.row_layout = c.layout;
	options.row_width = c.row_width;
	options.tie_levels = c.levels;
	for (uint32_t l = 0; l < c.levels; l++)
		options.tie_level[l] = level_of(c, l);
	options.chunk_rows = c.chunk_rows;
	options.chunk_bytes = c.chunk_bytes;
	options.expected_rows = c.expected_rows;
	options.device_memory_limit = c.device_memory_limit;
	return options;
}

/* The host side of a delivery, with canaries after the arrays. */
struct Target {
	GsSortedChunk chunk;
	std::vector<uint32_t> lengths, ties;
	std::string data;
	GsTicket ticket;

	explicit Target(const SessionCase &c)
	{
		chunk = {};
		lengths.assign(c.chunk_rows + 1, 77);
		ties.assign(gpusort_ties_words(c.chunk_rows) + 1, 77);
		data.assign(c.chunk_bytes + 1, '#');
		chunk.lengths = lengths.data();
		chunk.ties = ties.data();
		chunk.data = &data[0];
	}

	bool is_tie(uint32_t i) const
	{
		uint64_t bit = chunk.first_row % 32 + i;
		return ties[bit / 32] >> bit % 32 & 1;
	}
};

bool bit_of(const Row &row, uint32_t bit)
{
	return row.key[bit / 64] >> (63 - bit % 64) & 1;
}

bool agree(const Row &a, const Row &b, uint32_t bits)
{
	for (uint32_t bit = 0; bit < bits; bit++)
		if (bit_of(a, bit) != bit_of(b, bit))
			return false;
	return true;
}

/* Are the sorted rows i and i + 1 ties? */
bool are_ties(const SessionCase &c, const std::vector<Row> &sorted, uint64_t i)
{
	for (uint32_t l = 0; i + 1 < sorted.size() && l < c.levels; l++) {
		GsTieLevel level = level_of(c, l);
		uint64_t last = i;
		while (last + 1 < sorted.size() && agree(sorted[i], sorted[last + 1], level.bits))
			last++;
		if (last > i && (level.always || bit_of(sorted[last], level.bits)))
			return true;
	}
	return false;
}

const char *compare_chunk(const SessionCase &c, const Target &t, const std::vector<Row> &sorted)
{
	const GsSortedChunk &chunk = t.chunk;
	uint64_t at = 0;
	if (chunk.rows == 0 || chunk.rows > c.chunk_rows || chunk.data_bytes > c.chunk_bytes)
		return "a chunk has a bad size";
	if (chunk.first_row + chunk.rows > sorted.size())
		return "there are too many rows";
	for (uint32_t i = 0; i < chunk.rows; i++) {
		const Row &row = sorted[chunk.first_row + i];
		if (c.levels && t.is_tie(i) != are_ties(c, sorted, chunk.first_row + i))
			return "a tie is wrong";
		if (c.layout == GPUSORT_ROWS_VARIABLE && t.lengths[i] != row.bytes.size())
			return "a length is wrong";
		if (t.data.compare(at, row.bytes.size(), row.bytes) != 0)
			return "a row is wrong";
		at += row.bytes.size();
	}
	if (chunk.data_bytes != at)
		return "the size of a chunk is wrong";
	if (t.lengths[c.chunk_rows] != 77 || t.ties.back() != 77 || t.data[c.chunk_bytes] != '#')
		return "memory behind a chunk was written";
	return nullptr;
}

/* Sorts the rows into the expected order. */
void sort_rows(const SessionCase &c, std::vector<Row> &rows)
{
	std::stable_sort(rows.begin(), rows.end(), [&](const Row &a, const Row &b) {
		return std::lexicographical_compare(a.key, a.key + c.key_words, b.key,
											b.key + c.key_words);
	});
}

/*
 * Puts the chunks and waits until their memory may be reused.  Each takes as much memory as was
 * said before.
 */
const char *put_all(GsSession *session, std::vector<Put> &puts)
{
	for (Put &put : puts) {
		GsChunk chunk = chunk_of(put);
		uint64_t said = library.api->session_memory(session, &chunk);
		if (library.api->session_put(session, &chunk, &put.ticket))
			return "put failed";
		if (library.api->session_memory(session, nullptr) != said)
			return "a chunk took other memory than was said";
	}
	for (Put &put : puts) {
		GsStatus status;
		while ((status = library.api->session_poll(session, put.ticket)) == GPUSORT_NOT_READY)
			;
		if (status)
			return "poll failed";
		put = Put();
	}
	return nullptr;
}

/* Gets and compares all chunks, three at a time; then gets some again, backwards. */
const char *get_all(const SessionCase &c, GsSession *session, const GsSessionResult &result,
					std::vector<Row> rows)
{
	const GsDeviceApi *api = library.api;
	if (result.rows != rows.size())
		return "the number of rows is wrong";
	sort_rows(c, rows);
	uint64_t covered = 0;
	for (uint64_t first = 0; first < result.chunks; first += 3) {
		std::vector<Target> targets;
		for (uint64_t k = first; k < first + 3 && k < result.chunks; k++)
			targets.emplace_back(c);
		for (size_t k = 0; k < targets.size(); k++) {
			Target &t = targets[k];
			t.chunk.data = &t.data[0];
			if (api->session_get(session, first + k, &t.chunk, &t.ticket))
				return "get failed";
			if (t.chunk.first_row != covered)
				return "chunks do not follow one another";
			covered += t.chunk.rows;
		}
		for (size_t k = targets.size(); k-- > 0;) {
			if (api->session_wait(session, targets[k].ticket))
				return "wait failed";
			const char *problem = compare_chunk(c, targets[k], rows);
			if (problem)
				return problem;
		}
	}
	if (covered != rows.size())
		return "chunks do not hold all rows";
	for (uint64_t k = result.chunks; k-- > 0 && k + 4 > result.chunks;) {
		Target t(c);
		if (api->session_get(session, k, &t.chunk, &t.ticket) ||
			api->session_wait(session, t.ticket) || api->session_poll(session, t.ticket))
			return "getting a chunk again failed";
		const char *problem = compare_chunk(c, t, rows);
		if (problem)
			return problem;
	}
	return nullptr;
}

const char *run_session(const SessionCase &c, GsSession *session, std::vector<Put> &puts,
						const std::vector<Row> &rows)
{
	GsSessionResult result;
	const char *problem = put_all(session, puts);
	if (!problem && library.api->session_sort(session, &result))
		problem = "sort failed";
	return problem ? problem : get_all(c, session, result, rows);
}

uint64_t memory_in_use()
{
	GsDeviceMemory memory;
	library.api->device_memory(library.device, &memory);
	return memory.in_use;
}

void test_session(const SessionCase &c, uint64_t seed)
{
	std::vector<Row> rows = make_rows(c, seed);
	std::vector<Put> puts = make_puts(c, rows);
	GsSessionOptions options = options_of(c);
	GsSession *session;
	uint64_t before = memory_in_use();
	GsStatus status = library.api->session_begin(library.device, &options, &session);
	const char *problem = "begin failed";
	if (!status) {
		problem = run_session(c, session, puts, rows);
		library.api->session_end(session);
	}
	if (!problem && memory_in_use() != before)
		problem = "device memory leaks";
	test_check(
		!problem,
		"session: %s (%s): layout %d, width %u, %u words, %llu rows, put %u, chunks of %u "
		"rows and %llu bytes, distinct %llu",
		problem ? problem : "", library.api->device_message(library.device), (int)c.layout,
		c.row_width, c.key_words, (unsigned long long)c.rows, c.put_rows, c.chunk_rows,
		(unsigned long long)c.chunk_bytes, (unsigned long long)c.distinct);
}

void test_session_states()
{
	const GsDeviceApi *api = library.api;
	SessionCase c;
	GsSessionOptions options = options_of(c);
	GsSession *session = nullptr;
	GsSessionResult result;
	auto refuses = [&](const char *what, const std::function<void(GsSessionOptions &)> &spoil) {
		GsSessionOptions spoiled = options_of(c);
		spoil(spoiled);
		GsSession *none = nullptr;
		test_check(api->session_begin(library.device, &spoiled, &none) ==
						   GPUSORT_BAD_ARGUMENT &&
					   !none,
				   "session options: %s", what);
	};
	refuses("no key", [](GsSessionOptions &o) { o.key_words = 0; });
	refuses("too many words", [](GsSessionOptions &o) { o.key_words = WORDS + 1; });
	refuses("layout", [](GsSessionOptions &o) { o.row_layout = (GsRowLayout)7; });
	refuses("no width", [](GsSessionOptions &o) { o.row_width = 0; });
	refuses("no rows in a chunk", [](GsSessionOptions &o) { o.chunk_rows = 0; });
	refuses("chunk smaller than a row", [](GsSessionOptions &o) { o.chunk_bytes = 23; });

	refuses("huge rows", [](GsSessionOptions &o) { o.row_width = UINT32_MAX; });
	refuses("huge chunks of variable rows", [](GsSessionOptions &o) {
		o.row_layout = GPUSORT_ROWS_VARIABLE, o.chunk_bytes = (uint64_t)1 << 32;
	});
	refuses("chunks of no bytes", [](GsSessionOptions &o) {
		o.row_layout = GPUSORT_ROWS_VARIABLE, o.chunk_bytes = 0;
	});

	/* An empty session. */
	GsTicket ticket;
	Target target(c);
	test_check(!api->session_begin(library.device, &options, &session), "begin");
	GsChunk empty = {};
	test_check(!api->session_put(session, &empty, &ticket) &&
				   !api->session_poll(session, ticket),
			   "an empty chunk");
	test_check(api->session_get(session, 0, &target.chunk, &ticket) == GPUSORT_BAD_STATE,
			   "get before sort");
	test_check(!api->session_sort(session, &result) && result.rows == 0 && result.chunks == 0,
			   "sorting nothing");
	test_check(api->session_put(session, &empty, &ticket) == GPUSORT_BAD_STATE,
			   "put after sort");
	test_check(api->session_sort(session, &result) == GPUSORT_BAD_STATE, "sorting twice");
	test_check(api->session_get(session, 0, &target.chunk, &ticket) == GPUSORT_BAD_ARGUMENT,
			   "a chunk that is not there");
	test_check(api->session_poll(session, 99) == GPUSORT_BAD_ARGUMENT, "an unknown ticket");
	api->session_end(session);

	/* Chunks whose sizes are inconsistent. */
	c.layout = GPUSORT_ROWS_VARIABLE;
	options = options_of(c);
	std::vector<Row> rows = make_rows(c, 1);
	std::vector<Put> puts = make_puts(c, rows);
	test_check(!api->session_begin(library.device, &options, &session), "begin");
	GsChunk chunk = chunk_of(puts[0]);
	chunk.data_bytes++;
	test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_BAD_ARGUMENT,
			   "lengths and data disagree");
	chunk = chunk_of(puts[0]);
	chunk.lengths = nullptr;
	test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_BAD_ARGUMENT,
			   "no lengths");
	chunk = chunk_of(puts[0]);
	chunk.keys[0] = nullptr;
	test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_BAD_ARGUMENT, "no keys");
	chunk = chunk_of(puts[0]);
	chunk.data = nullptr;
	test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_BAD_ARGUMENT, "no data");
	chunk = chunk_of(puts[0]);
	puts[0].lengths[3] = (uint32_t)c.chunk_bytes + 1;
	test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_BAD_ARGUMENT,
			   "a row longer than a chunk");
	chunk = chunk_of(puts[1]);
	test_check(!api->session_put(session, &chunk, &ticket), "a good chunk after bad ones");
	chunk.rows = UINT32_MAX;
	test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_BAD_ARGUMENT, "2^32 rows");
	test_check(!api->session_sort(session, &result) && result.rows == puts[1].lengths.size(),
			   "bad chunks have left rows");
	api->session_end(session);

	/* Sorted chunks may have more rows than fit in memory. */
	uint64_t before = memory_in_use();
	options.chunk_rows = UINT32_MAX;
	options.chunk_bytes = UINT32_MAX;
	test_check(!api->session_begin(library.device, &options, &session), "begin");
	chunk = chunk_of(puts[1]);
	test_check(!api->session_put(session, &chunk, &ticket), "put");
	GsStatus status = api->session_sort(session, &result);
	test_check(status == GPUSORT_OK, "sorting into huge chunks: %s", api->status_text(status));
	api->session_end(session);
	test_check(memory_in_use() == before, "huge chunks leak");
}

/* Chunks may be much larger than the session: memory is allocated only for the actual rows. */
void test_few_rows_in_large_chunks()
{
	const GsDeviceApi *api = library.api;
	for (GsRowLayout layout : {GPUSORT_ROWS_FIXED, GPUSORT_ROWS_VARIABLE}) {
		SessionCase c;
		c.layout = layout;
		c.key_words = WORDS;
		c.rows = 270;
		c.chunk_rows = 300;
		c.chunk_bytes = 1 << 16;
		std::vector<Row> rows = make_rows(c, layout);
		std::vector<Put> puts = make_puts(c, rows);
		GsSessionOptions options = options_of(c);
		options.chunk_rows = options.chunk_bytes = UINT32_MAX;
		options.expected_rows = c.rows;
		GsSession *session = nullptr;
		GsSessionResult result = {};
		test_check(!api->session_begin(library.device, &options, &session), "begin");
		const char *problem = put_all(session, puts);
		if (!problem && api->session_sort(session, &result))
			problem = "sort failed";
		if (!problem)
			problem = get_all(c, session, result, rows);
		test_check(!problem && result.chunks == 1 && result.device_bytes_peak < 4 << 20,
				   "few rows in large chunks: %s, layout %d, %llu chunks, %llu bytes",
				   problem ? problem : "", (int)layout, (unsigned long long)result.chunks,
				   (unsigned long long)result.device_bytes_peak);
		api->session_end(session);
	}
}

/*
 * Many more rows come than expected.  The number of allocations must not grow with the size of
 * the rows, nor the steps to find one that is freed with the number of allocations.
 */
void test_more_rows_than_expected()
{
	const GsDeviceApi *api = library.api;
	SessionCase c;
	c.row_width = c.longest = 4096;
	c.rows = c.put_rows = 64; /* a chunk of a quarter of a MB */
	c.chunk_bytes = 8192;
	c.expected_rows = 1;
	for (GsRowLayout layout : {GPUSORT_ROWS_FIXED, GPUSORT_ROWS_VARIABLE}) {
		c.layout = layout;
		std::vector<Row> rows = make_rows(c, layout);
		std::vector<Put> puts = make_puts(c, rows);
		GsChunk chunk = chunk_of(puts[0]);
		GsSessionOptions options = options_of(c);
		GsSession *session;
		GsTicket ticket;
		uint64_t held = 0, before = memory_in_use();
		set_debug([&](GsDebugSettings &s) {
			s.fail_alloc = 70;
			s.free_steps = 8;
		});
		bool good = !api->session_begin(library.device, &options, &session);
		for (int i = 0; i < 300 && good; i++) {
			uint64_t said = api->session_memory(session, &chunk);
			good = !api->session_put(session, &chunk, &ticket) &&
				   !api->session_wait(session, ticket);
			held = api->session_memory(session, nullptr);
			good &= said == held;
		}
		test_check(good && held < 300 * chunk.data_bytes / 4 * 5,
				   "more rows than expected: layout %d, %llu bytes: %s", (int)layout,
				   (unsigned long long)held, api->device_message(library.device));
		api->session_end(session);
		set_debug([&](GsDebugSettings &s) { s.fail_alloc = s.free_steps = 0; });
		test_check(memory_in_use() == before, "more rows than expected leak");
	}

	/* Kernels find rows in what was allocated at once. */
	for (GsRowLayout layout : {GPUSORT_ROWS_FIXED, GPUSORT_ROWS_VARIABLE}) {
		c.layout = layout;
		c.row_width = c.longest = 1000;
		c.rows = layout == GPUSORT_ROWS_FIXED ? 1400 : 2800;
		c.put_rows = 20;
		c.key_words = 2;
		c.device_memory_limit = 4 << 20;
		test_session(c, layout);
	}

	/* Fewer rows than expected, which are sorted by smaller tiles. */
	GsDebugSizes sizes = {};
	api->debug_sizes(library.device, 8, 4, &sizes);
	c = SessionCase();
	c.rows = sizes.auto_small_tiles;
	c.put_rows = 4096;
	c.chunk_bytes = 1 << 18;
	c.chunk_rows = 1 << 20;
	c.expected_rows = c.rows + 1;
	test_session(c, 1);

	std::vector<void *> buffers(3000);
	bool good = true;
	uint64_t before = memory_in_use();
	for (void *&buffer : buffers)
		good &= !api->buffer_alloc(library.device, 8, &buffer);
	set_debug([&](GsDebugSettings &s) { s.free_steps = 8; });
	for (void *buffer : buffers)
		good &= !api->buffer_free(library.device, buffer);
	set_debug([&](GsDebugSettings &s) { s.free_steps = 0; });
	test_check(good && memory_in_use() == before, "freeing many buffers takes many steps: %s",
			   api->device_message(library.device));
	for (void *buffer : buffers)
		if (!good)
			api->buffer_free(library.device, buffer);
}

/* What is freed is free for others, but held by the pool until it is trimmed. */
void test_memory_pool()
{
	const GsDeviceApi *api = library.api;
	constexpr uint64_t LARGE = (uint64_t)5 << 30;
	GsDeviceMemory before, freed, trimmed;
	void *buffer = nullptr;
	api->device_trim(library.device);
	bool good = !api->device_memory(library.device, &before);
	if (before.held == 0 || before.free < LARGE + (LARGE >> 6)) /* no pool, or no room */
		return;
	for (int i = 0; i < 2 && good; i++) {
		good = !api->buffer_alloc(library.device, LARGE, &buffer) &&
			   !api->buffer_free(library.device, buffer) &&
			   !api->device_memory(library.device, &freed);
		test_check(good && freed.held >= LARGE && freed.in_use == before.in_use,
				   "freed memory: %llu bytes held, %llu in use: %s",
				   (unsigned long long)freed.held, (unsigned long long)freed.in_use,
				   api->device_message(library.device));
		test_check(!library.emulator || freed.free == before.free,
				   "freed memory: %llu bytes are free, %llu before",
				   (unsigned long long)freed.free, (unsigned long long)before.free);
	}
	good &= !api->device_trim(library.device) && !api->device_memory(library.device, &trimmed);
	test_check(good && trimmed.held <= before.held,
			   "after a trim the pool holds %llu bytes, %llu before",
			   (unsigned long long)trimmed.held, (unsigned long long)before.held);
}

/*
 * Others take all the memory while a session puts rows.  It can sort and return the rows put,
 * however often a put has failed to get more.
 */
void test_full_device()
{
	const GsDeviceApi *api = library.api;
	for (GsRowLayout layout : {GPUSORT_ROWS_FIXED, GPUSORT_ROWS_VARIABLE})
		for (uint64_t expected : {0, 500, 5000}) {
			SessionCase c;
			c.layout = layout;
			c.rows = 30000;
			c.put_rows = 500;
			c.key_words = 2;
			c.expected_rows = expected;
			c.device_memory_limit = expected == 500 ? 3 << 20 : 0;
			std::vector<Row> rows = make_rows(c, layout);
			std::vector<Put> puts = make_puts(c, rows);
			GsSessionOptions options = options_of(c);
			GsSession *session;
			GsSessionResult result = {};
			std::vector<void *> buffers;
			bool good = !api->session_begin(library.device, &options, &session);
			size_t put = 0;
			uint64_t put_rows = 0, held = 0;
			for (GsStatus status = GPUSORT_OK; good && put < puts.size() && !status;) {
				GsChunk chunk = chunk_of(puts[put]);
				status = api->session_put(session, &chunk, &puts[put].ticket);
				good = !status || status == GPUSORT_DEVICE_MEMORY;
				if (!status) {
					put++;
					put_rows += chunk.rows;
				}
				for (uint64_t size = put == 1 ? (uint64_t)1 << 40 : 0; size > 0; size /= 2) {
					void *buffer;
					while (!api->buffer_alloc(library.device, size, &buffer))
						buffers.push_back(buffer);
				}
			}
			held = api->session_memory(session, nullptr);
			for (int again = 0; again < 3 && good && put < puts.size(); again++) {
				GsChunk chunk = chunk_of(puts[put]);
				good = api->session_put(session, &chunk, &puts[put].ticket) ==
						   GPUSORT_DEVICE_MEMORY &&
					   api->session_memory(session, nullptr) == held;
			}
			rows.resize(put_rows);
			test_check(good && put < puts.size() && !api->session_sort(session, &result),
					   "sorting on a full device: layout %d, %llu rows expected, %llu put: %s",
					   (int)layout, (unsigned long long)expected, (unsigned long long)put_rows,
					   api->device_message(library.device));
			const char *problem = get_all(c, session, result, rows);
			test_check(!problem, "on a full device: %s", problem ? problem : "");
			api->session_end(session);
			for (void *buffer : buffers)
				api->buffer_free(library.device, buffer);
			api->device_trim(library.device);
		}
}

/* Two sessions at the same time, whose calls alternate. */
void test_two_sessions()
{
	const GsDeviceApi *api = library.api;
	SessionCase cases[2];
	cases[1].layout = GPUSORT_ROWS_VARIABLE;
	cases[1].key_words = 2;
	cases[1].distinct = 4;
	std::vector<Row> rows[2];
	std::vector<Put> puts[2];
	GsSession *sessions[2] = {};
	GsSessionResult results[2] = {};
	bool good = true;
	for (int s = 0; s < 2; s++) {
		GsSessionOptions options = options_of(cases[s]);
		rows[s] = make_rows(cases[s], 40 + s);
		puts[s] = make_puts(cases[s], rows[s]);
		good &= !api->session_begin(library.device, &options, &sessions[s]);
	}
	for (size_t i = 0; i < puts[0].size() && good; i++)
		for (int s = 0; s < 2; s++) {
			GsChunk chunk = chunk_of(puts[s][i]);
			good &= !api->session_put(sessions[s], &chunk, &puts[s][i].ticket);
		}
	for (int s = 1; s >= 0 && good; s--) {
		good &= !api->session_sort(sessions[s], &results[s]);
		sort_rows(cases[s], rows[s]);
	}
	test_check(good, "two sessions: %s", api->device_message(library.device));
	for (uint64_t k = 0; good && (k < results[0].chunks || k < results[1].chunks); k++) {
		Target targets[2] = {Target(cases[0]), Target(cases[1])};
		for (int s = 0; s < 2; s++) {
			targets[s].chunk.data = &targets[s].data[0];
			if (k < results[s].chunks)
				good &=
					!api->session_get(sessions[s], k, &targets[s].chunk, &targets[s].ticket);
		}
		for (int s = 0; s < 2 && good; s++)
			if (k < results[s].chunks) {
				good &= !api->session_wait(sessions[s], targets[s].ticket);
				const char *problem = compare_chunk(cases[s], targets[s], rows[s]);
				test_check(!problem, "two sessions: %s", problem ? problem : "");
			}
	}
	test_check(good, "delivery of two sessions: %s", api->device_message(library.device));
	for (GsSession *session : sessions)
		api->session_end(session);
}

/* Lets each allocation of a session fail once.  The session can then be sorted, or ended. */
void test_session_faults()
{
	const GsDeviceApi *api = library.api;
	for (GsRowLayout layout : {GPUSORT_ROWS_FIXED, GPUSORT_ROWS_VARIABLE})
		for (uint32_t fail = 1; fail < 24; fail++) {
			SessionCase c;
			c.layout = layout;
			std::vector<Row> rows = make_rows(c, fail);
			std::vector<Put> puts = make_puts(c, rows);
			GsSessionOptions options = options_of(c);
			GsSession *session;
			uint64_t before = memory_in_use();
			GsStatus status = api->session_begin(library.device, &options, &session);
			test_check(!status, "begin of a session that will lack memory");
			if (status)
				continue;
			set_debug([&](GsDebugSettings &s) { s.fail_alloc = fail; });
			GsSessionResult result = {};
			for (Put &put : puts) {
				GsChunk chunk = chunk_of(put);
				status = api->session_put(session, &chunk, &put.ticket);
				if (status ==
					GPUSORT_DEVICE_MEMORY) /* the fault occurs only once, so try again */
					status = api->session_put(session, &chunk, &put.ticket);
				test_check(!status, "put after failing allocation %u", fail);
			}
			status = api->session_sort(session, &result);
			if (status == GPUSORT_DEVICE_MEMORY)
				status = api->session_sort(session, &result);
			set_debug([&](GsDebugSettings &s) { s.fail_alloc = 0; });
			const char *problem =
				status ? "sort failed twice" : get_all(c, session, result, rows);
			test_check(!problem, "session after failing allocation %u: %s (%s)", fail,
					   problem ? problem : "", api->device_message(library.device));
			api->session_end(session);
			test_check(memory_in_use() == before, "failing allocation %u leaks", fail);
		}

	/* There is no memory for a chunk: those before it can be sorted. */
	SessionCase c;
	c.rows = 20000;
	c.put_rows = 20000;
	c.expected_rows = 20000;
	GsSessionOptions options = options_of(c);
	std::vector<Row> kept = make_rows(c, 6);
	std::vector<Put> kept_puts = make_puts(c, kept);
	Put too_many = kept_puts[0];
	GsSession *session;
	GsTicket ticket;
	GsSessionResult result = {};
	test_check(!api->session_begin(library.device, &options, &session), "begin");
	const char *problem = put_all(session, kept_puts);
	GsChunk chunk = chunk_of(too_many);
	set_debug([&](GsDebugSettings &s) { s.fail_alloc = 1; });
	uint64_t held = memory_in_use();
	test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_DEVICE_MEMORY,
			   "a chunk fits without another segment");
	test_check(memory_in_use() == held, "a chunk without memory takes some");
	set_debug([&](GsDebugSettings &s) { s.fail_alloc = 0; });
	test_check(!problem && !api->session_sort(session, &result), "sorting what was put");
	problem = get_all(c, session, result, kept);
	test_check(!problem, "the chunks before one without memory: %s", problem ? problem : "");
	api->session_end(session);

	/* Twice there is no memory for a chunk, wherever that is noticed: likewise. */
	for (uint32_t fail = 1; fail <= 3; fail++) {
		c.layout = GPUSORT_ROWS_VARIABLE;
		options = options_of(c);
		kept = make_rows(c, 20 + fail);
		kept_puts = make_puts(c, kept);
		too_many = kept_puts[0];
		test_check(!api->session_begin(library.device, &options, &session), "begin");
		problem = put_all(session, kept_puts);
		chunk = chunk_of(too_many);
		held = memory_in_use();
		for (uint32_t at : {fail, 1u}) {
			set_debug([&](GsDebugSettings &s) { s.fail_alloc = at; });
			test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_DEVICE_MEMORY,
					   "a chunk fits without allocation %u", at);
			test_check(memory_in_use() == held, "a chunk without allocation %u takes some", at);
		}
		set_debug([&](GsDebugSettings &s) { s.fail_alloc = 0; });
		test_check(!problem && !api->session_sort(session, &result), "sorting what was put");
		problem = get_all(c, session, result, kept);
		test_check(!problem, "the chunks before two without memory: %s",
				   problem ? problem : "");
		api->session_end(session);
	}

	/* A memory limit; and the end of a session with work in progress. */
	c = SessionCase();
	options = options_of(c);
	options.expected_rows = 1000;
	options.device_memory_limit = 1 << 20;
	std::vector<Row> rows = make_rows(c, 5);
	std::vector<Put> puts = make_puts(c, rows);
	chunk = chunk_of(puts[0]);
	test_check(!api->session_begin(library.device, &options, &session), "begin with a limit");
	options.device_memory_limit = api->session_memory(session, &chunk);
	api->session_end(session);
	test_check(!api->session_begin(library.device, &options, &session), "begin with a limit");
	test_check(!api->session_put(session, &chunk, &ticket), "put within the limit");
	test_check(!api->session_sort(session, &result), "sorting within the limit");
	api->session_end(session);
	options.device_memory_limit -= 1;
	test_check(!api->session_begin(library.device, &options, &session), "begin with a limit");
	test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_DEVICE_MEMORY,
			   "a put beyond the limit");
	api->session_end(session);

	/* The device is lost in the sort by each of the words. */
	c.key_words = 2;
	c.distinct = 3;
	options = options_of(c);
	for (uint32_t launch = 1; launch <= 2; launch++) {
		uint64_t fresh = memory_in_use();
		test_check(!api->session_begin(library.device, &options, &session), "begin");
		test_check(!api->session_put(session, &chunk, &ticket), "put");
		set_debug([&](GsDebugSettings &s) { s.fail_launch = launch; });
		test_check(api->session_sort(session, &result) == GPUSORT_DEVICE_LOST,
				   "losing the device");
		set_debug([&](GsDebugSettings &s) { s.fail_launch = 0; });
		test_check(api->session_put(session, &chunk, &ticket) == GPUSORT_DEVICE_LOST,
				   "put on a lost device");
		api->session_end(session);
		reopen_device();
		test_check(memory_in_use() <= fresh, "a lost session leaks");
		test_session(c, 3);
	}
}

} // namespace

/* A session of each layout, and the faults that do not lose the device. */
static void test_tiny_sessions()
{
	for (GsRowLayout layout : {GPUSORT_ROWS_FIXED, GPUSORT_ROWS_VARIABLE}) {
		SessionCase c;
		c.layout = layout;
		c.key_words = 2 + 2 * layout;
		c.rows = 701;
		c.distinct = 9;
		test_session(c, 1);
	}
	for (uint32_t width : {3, 4, 16}) { /* covers all word sizes in which rows are copied */
		SessionCase c;
		c.row_width = width;
		c.rows = 100;
		test_session(c, width);
	}
	test_two_sessions();
}

void test_sessions(TestAmount amount)
{
	bool quick = amount != TEST_ALL;
	if (amount == TEST_TINY) {
		test_tiny_sessions();
		return;
	}
	test_session_states();
	test_few_rows_in_large_chunks();
	test_more_rows_than_expected();
	test_memory_pool();
	if (library.emulator) /* others may use a device */
		test_full_device();
	test_two_sessions();
	for (GsRowLayout layout : {GPUSORT_ROWS_FIXED, GPUSORT_ROWS_VARIABLE})
		for (uint32_t key_words : {1u, 2u, 3u, 4u, WORDS})
			for (uint64_t n : {1, 2, 33, 300, 301, 1000, 2500}) {
				if (quick && n > 1000)
					continue;
				SessionCase c;
				c.layout = layout;
				c.key_words = key_words;
				c.rows = n;
				test_session(c, n);
				c.distinct = 5;
				test_session(c, n + 1);
				c.expected_rows = n;
				test_session(c, n + 2);
				c.chunk_rows = 1000000;
				test_session(c, n + 3);
				c.levels = 0;
				test_session(c, n + 5);
				c.levels = n % 2 ? 3 : GPUSORT_MAX_TIE_LEVELS;
				test_session(c, n + 6);
				c.levels = 1;
				c.put_rows = 7;
				c.chunk_rows = 10;
				c.chunk_bytes = 1000;
				if (n <= 1000)
					test_session(c, n + 4);
			}
	for (uint32_t width : {1, 2, 3, 4, 7, 8, 12, 16, 20, 32, 100}) {
		SessionCase c;
		c.row_width = width;
		c.rows = 500;
		test_session(c, width);
	}
	for (uint32_t longest : {0, 1, 15}) {
		SessionCase c;
		c.layout = GPUSORT_ROWS_VARIABLE;
		c.longest = longest;
		test_session(c, longest);
		c.rows = c.put_rows = library.emulator ? 1600 : 140000; /* more than a launch handles */
		test_session(c, longest);
	}
	if (!library.emulator) {
		SessionCase c;
		c.rows = quick ? 200000 : 3000000;
		c.put_rows = 40000;
		c.chunk_rows = 30000;
		c.chunk_bytes = 1 << 20;
		for (GsRowLayout layout : {GPUSORT_ROWS_FIXED, GPUSORT_ROWS_VARIABLE}) {
			c.layout = layout;
			c.key_words = 1 + c.key_words % WORDS;
			test_session(c, 1);
		}
	}
	test_session_faults();
}
