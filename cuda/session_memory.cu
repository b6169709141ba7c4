/*
 * session_memory.cu
 *		The memory in which a session sorts its rows and delivers them.
 *
 * It is there before the rows are: session_begin() allocates it for the rows expected, and a
 * put of more rows makes it larger or fails.  So a sort never fails for lack of device memory.
 * Its contents do not matter before the sort, and it can be replaced by a larger piece.
 */
#include "session_state.h"

using namespace gpusort_session;

namespace
{

/*
 * Of more rows expected, memory is reserved as they come.  There may be far fewer, and an H200
 * takes 4 ms to allocate 3 GB.
 */
constexpr uint64_t MAX_RESERVED_ROWS = (uint64_t)1 << 26;

size_t align_up(size_t size)
{
	return (size + 255) / 256 * 256;
}

/* What the memory suffices for. */
struct Sizes {
	uint64_t rows;
	uint64_t bytes; /* of a sorted chunk, if rows have variable width */
};

size_t space_bytes(const GsSession *session, const Sizes &sizes)
{
	return sizes.rows ? space_layout(session, sizes.rows).total : 0;
}

size_t result_bytes(const GsSession *session, const Sizes &sizes)
{
	return sizes.rows ? result_layout(session, sizes.rows, sizes.bytes).total : 0;
}

/*
 * Returns the sizes for rows, of which all have data_bytes bytes: those that there are if they
 * suffice.  Otherwise they grow by a part, as arrays do.
 */
Sizes sizes_for(const GsSession *session, uint64_t rows, uint64_t data_bytes)
{
	const GsSessionOptions &options = session->options;
	const SortMemory &memory = session->memory;
	Sizes sizes = {memory.rows, memory.bytes};
	if (sizes.rows < rows) {
		uint64_t grown = sizes.rows + sizes.rows / (options.device_memory_limit ? 32 : 4);
		uint64_t least = options.device_memory_limit ? 0 : 8192;
		grown = grown > least ? grown : least;
		sizes.rows = grown > rows ? grown : rows;
	}
	uint64_t needed = data_bytes < options.chunk_bytes ? data_bytes : options.chunk_bytes;
	if (is_variable(session) && sizes.bytes < needed)
		sizes.bytes = 2 * needed < options.chunk_bytes ? 2 * needed : options.chunk_bytes;
	return sizes;
}

GsStatus reserve(GsSession *session, const Sizes &sizes)
{
	GsDevice *device = device_of(session);
	GsAccount *account = &session->owner.account;
	SortMemory &memory = session->memory;
	Sizes before = {memory.rows, memory.bytes};
	size_t space_before = space_bytes(session, before);
	size_t space = space_bytes(session, sizes);
	size_t result_before = result_bytes(session, before);
	size_t result = result_bytes(session, sizes);
	GsStatus status = GPUSORT_OK;
	if (space != space_before)
		status = gpusort_device_replace(device, account, space_before, space,
										(void **)&memory.space);
	if (!status && result != result_before) {
		status = gpusort_device_replace(device, account, result_before, result,
										(void **)&memory.result);
		if (status && space != space_before)
			gpusort_device_replace(device, account, space, space_before,
								   (void **)&memory.space);
	}
	if (!status)
		memory.rows = sizes.rows, memory.bytes = sizes.bytes;
	else if (!memory.space || !memory.result)
		release_sort_memory(session);
	return status;
}

} // namespace

namespace gpusort_session
{

SpaceLayout space_layout(const GsSession *session, uint64_t rows)
{
	GsSortJob job = sort_job(rows);
	SpaceLayout layout;
	layout.keys[0] = 0;
	layout.keys[1] = align_up(rows * sizeof(uint64_t));
	layout.values = 2 * layout.keys[1];
	layout.workspace = layout.values + align_up(rows * sizeof(uint32_t));
	job.keys_out = &job; /* it matters only that there is an output */
	layout.total =
		layout.workspace + gpusort_sorter_workspace(&device_of(session)->sorter, &job);
	return layout;
}

ResultLayout result_layout(const GsSession *session, uint64_t rows, uint64_t bytes)
{
	ResultLayout layout;
	size_t at = 0;
	auto place = [&](size_t size) {
		size_t here = at;
		at += align_up(size);
		return here;
	};
	layout.sorted = place(rows * sizeof(uint32_t));
	layout.ties = place(session->options.tie_levels ? (rows + 31) / 32 * sizeof(uint32_t) : 0);
	layout.offsets = place(is_variable(session) ? (rows + 1) * sizeof(uint64_t) : 0);
	for (uint32_t w = 0; w < session->options.key_words; w++)
		layout.key_tables[w] = place(gpusort_segments_table_bytes(&session->keys[w], rows));
	layout.data_table = layout.lengths_table = layout.starts_table = at;
	if (!is_variable(session))
		layout.data_table = place(gpusort_segments_table_bytes(&session->data, rows));
	if (is_variable(session)) {
		layout.lengths_table = place(gpusort_segments_table_bytes(&session->lengths, rows));
		layout.starts_table = place(gpusort_segments_table_bytes(&session->starts, rows));
	}
	size_t staging = staging_layout(session, rows_per_chunk(session, rows), bytes).total;
	for (size_t &buffer : layout.staging)
		buffer = place(staging);
	layout.total = at;
	return layout;
}

StagingLayout staging_layout(const GsSession *session, uint64_t rows, uint64_t bytes)
{
	if (!is_variable(session))
		return {0, rows * session->options.row_width};
	size_t data = align_up(rows * sizeof(uint32_t));
	return {data, data + bytes};
}

uint64_t rows_per_chunk(const GsSession *session, uint64_t rows)
{
	const GsSessionOptions &options = session->options;
	uint64_t most = options.chunk_rows < rows ? options.chunk_rows : rows;
	if (!is_variable(session) && options.chunk_bytes / options.row_width < most)
		most = options.chunk_bytes / options.row_width;
	return most;
}

GsStatus reserve_expected(GsSession *session)
{
	const GsSessionOptions &options = session->options;
	uint64_t rows =
		options.expected_rows < MAX_RESERVED_ROWS ? options.expected_rows : MAX_RESERVED_ROWS;
	uint64_t bytes = rows * EXPECTED_ROW_BYTES;
	bytes = bytes < options.chunk_bytes ? bytes : options.chunk_bytes;
	return rows ? reserve(session, {rows, is_variable(session) ? bytes : 0}) : GPUSORT_OK;
}

GsStatus reserve_for_chunk(GsSession *session, const GsChunk *chunk)
{
	return reserve(session, sizes_for(session, session->rows + chunk->rows,
									  session->data_bytes + chunk->data_bytes));
}

uint64_t sort_memory_growth(const GsSession *session, const GsChunk *chunk)
{
	Sizes before = {session->memory.rows, session->memory.bytes};
	Sizes after = sizes_for(session, session->rows + chunk->rows,
							session->data_bytes + chunk->data_bytes);
	return space_bytes(session, after) - space_bytes(session, before) +
		   result_bytes(session, after) - result_bytes(session, before);
}

void release_sort_space(GsSession *session)
{
	release(session, session->memory.space);
	session->memory.space = nullptr;
}

void release_sort_memory(GsSession *session)
{
	release_sort_space(session);
	release(session, session->memory.result);
	session->memory = {};
}

} // namespace gpusort_session
