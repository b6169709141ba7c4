/*-------------------------------------------------------------------------
 *
 * device_trial.c
 *		Sorts made-up rows on a device that was just opened.
 *
 * The device process has no memory contexts that it could use, so memory is malloc's.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <unistd.h>

#include "service/device_trial.h"

bool
gpusort_device_trial_make(GsTrial *trial, uint32 rows, int words, uint32 chunk_rows)
{
	Size		page = (Size) sysconf(_SC_PAGESIZE);
	uint64	   *array;

	memset(trial, 0, sizeof(GsTrial));
	trial->rows = rows;
	trial->words = words;
	trial->chunk_rows = chunk_rows;
	trial->bytes = TYPEALIGN(page, ((words + 2) * (Size) rows + chunk_rows) * sizeof(uint64));
	if (posix_memalign(&trial->memory, page, trial->bytes) != 0)
		return false;
	array = trial->memory;
	for (int w = 0; w < words; w++, array += rows)
		trial->keys[w] = array;
	trial->numbers = array;
	trial->sorted = array + rows;
	return true;
}

void
gpusort_device_trial_free(GsTrial *trial)
{
	free(trial->memory);
}

/* Put the rows from 'first' on into a session. */
static GsStatus
put_chunk(const GsDeviceApi * api, GsSession * session, const GsTrial *trial,
		  uint32 first, uint32 rows)
{
	GsTicket	ticket;
	GsStatus	status;
	GsChunk		chunk = {
		.struct_size = sizeof(GsChunk),
		.rows = rows,
		.data = trial->numbers + first,
		.data_bytes = rows * sizeof(uint64)
	};

	for (int w = 0; w < trial->words; w++)
		chunk.keys[w] = (const uint64_t *) trial->keys[w] + first;
	status = api->session_put(session, &chunk, &ticket);
	return status == GPUSORT_OK ? api->session_wait(session, ticket) : status;
}

static GsStatus
get_rows(const GsDeviceApi * api, GsSession * session, uint64 chunks,
		 const GsTrial *trial, uint32 *returned)
{
	*returned = 0;
	for (uint64 c = 0; c < chunks && *returned <= trial->rows; c++)
	{
		GsSortedChunk target = {
			.struct_size = sizeof(GsSortedChunk),
			.data = trial->sorted + *returned
		};
		GsTicket	ticket;
		GsStatus	status = api->session_get(session, c, &target, &ticket);

		if (status == GPUSORT_OK)
			status = api->session_wait(session, ticket);
		if (status != GPUSORT_OK)
			return status;
		*returned += target.rows;
	}
	return GPUSORT_OK;
}

static GsStatus
sort_in_session(const GsDeviceApi * api, GsSession * session, const GsTrial *trial,
				uint32 rows, uint32 *returned)
{
	GsSessionResult result = {0};
	GsStatus	status = GPUSORT_OK;

	for (uint32 first = 0; first < rows && status == GPUSORT_OK; first += trial->chunk_rows)
		status = put_chunk(api, session, trial, first,
						   Min(rows - first, trial->chunk_rows));
	if (status == GPUSORT_OK)
		status = api->session_sort(session, &result);
	if (status == GPUSORT_OK)
		status = get_rows(api, session, result.chunks, trial, returned);
	return status;
}

GsStatus
gpusort_device_trial_sort(const GsDeviceApi * api, GsDevice * device,
						  const GsTrial *trial, uint32 rows, uint32 *returned)
{
	GsSessionOptions options = {
		.struct_size = sizeof(GsSessionOptions),
		.key_words = trial->words,
		.row_layout = GPUSORT_ROWS_FIXED,
		.row_width = sizeof(uint64),
		.chunk_rows = trial->chunk_rows,
		.chunk_bytes = trial->chunk_rows * sizeof(uint64),
		.expected_rows = rows
	};
	GsSession  *session;
	GsStatus	status = api->session_begin(device, &options, &session);

	if (status != GPUSORT_OK)
		return status;
	status = sort_in_session(api, session, trial, rows, returned);
	api->session_end(session);
	return status;
}
