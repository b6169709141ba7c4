/*-------------------------------------------------------------------------
 *
 * device_check.c
 *		Tests that a device sorts correctly.
 *
 * A device can be present and can be opened, and still be unable to sort: the
 * library may have no code or only a part of the code for its architecture, or
 * the device may be broken.  Without this test each query would find that out
 * only after sending all of its rows, or, if the rows come back in a wrong
 * order, not at all.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "service/device_check.h"

/*
 * More rows than one thread block of a GPU sorts, so that blocks must exchange
 * counts to find the positions of their rows; also more than one chunk.
 */
#define CHECK_ROWS			10000
#define CHECK_CHUNK_ROWS	4096

#define CHECK_WORDS			2

/* A row consists of its number, from which its key is computed. */
typedef struct GsCheckRows
{
	uint64		keys[CHECK_WORDS][CHECK_ROWS];
	uint64		rows[CHECK_ROWS];
	uint64		sorted[CHECK_CHUNK_ROWS];
} GsCheckRows;

/*
 * Make keys in no particular order, some of them equal.  Only a few bits vary,
 * which keeps the number of passes small, but both words have some of them.
 */
static void
make_key(uint64 row, uint64 *key)
{
	uint64		scattered = row * UINT64CONST(2654435761);

	key[0] = (scattered >> 8 & 63) << 40;
	key[1] = (scattered >> 14 & 63) << 5;
}

/* Does row 'b' come after row 'a'?  Rows with equal keys keep their order. */
static bool
is_in_order(uint64 a, uint64 b)
{
	uint64		key_a[CHECK_WORDS];
	uint64		key_b[CHECK_WORDS];

	make_key(a, key_a);
	make_key(b, key_b);
	if (key_a[0] != key_b[0])
		return key_a[0] < key_b[0];
	if (key_a[1] != key_b[1])
		return key_a[1] < key_b[1];
	return a < b;
}

static GsStatus
put_rows(const GsDeviceApi * api, GsSession * session, GsCheckRows *check)
{
	GsTicket	ticket;
	GsStatus	status;
	GsChunk		chunk = {
		.struct_size = sizeof(GsChunk),
		.rows = CHECK_ROWS,
		.data = check->rows,
		.data_bytes = sizeof(check->rows)
	};

	for (uint64 row = 0; row < CHECK_ROWS; row++)
	{
		uint64		key[CHECK_WORDS];

		make_key(row, key);
		for (int w = 0; w < CHECK_WORDS; w++)
			check->keys[w][row] = key[w];
		check->rows[row] = row;
	}
	for (int w = 0; w < CHECK_WORDS; w++)
		chunk.keys[w] = (const uint64_t *) check->keys[w];
	status = api->session_put(session, &chunk, &ticket);
	return status == GPUSORT_OK ? api->session_wait(session, ticket) : status;
}

/*
 * Read the sorted rows back, and check them.  If they are in strictly
 * ascending order and their number is right, none of them is missing.
 */
static GsStatus
check_rows(const GsDeviceApi * api, GsSession * session, uint64 chunks,
		   GsCheckRows *check, bool *right)
{
	uint64		count = 0;
	uint64		last = 0;

	*right = true;
	for (uint64 c = 0; c < chunks && *right; c++)
	{
		GsSortedChunk target = {
			.struct_size = sizeof(GsSortedChunk),
			.data = check->sorted
		};
		GsTicket	ticket;
		GsStatus	status = api->session_get(session, c, &target, &ticket);

		if (status == GPUSORT_OK)
			status = api->session_wait(session, ticket);
		if (status != GPUSORT_OK)
			return status;
		for (uint32 i = 0; i < target.rows && *right; i++)
		{
			uint64		row = check->sorted[i];

			*right = row < CHECK_ROWS && (count == 0 || is_in_order(last, row));
			last = row;
			count++;
		}
	}
	*right = *right && count == CHECK_ROWS;
	return GPUSORT_OK;
}

static GsStatus
sort_rows(const GsDeviceApi * api, GsDevice * device, GsCheckRows *check, bool *right)
{
	GsSessionOptions options = {
		.struct_size = sizeof(GsSessionOptions),
		.key_words = CHECK_WORDS,
		.row_layout = GPUSORT_ROWS_FIXED,
		.row_width = sizeof(uint64),
		.chunk_rows = CHECK_CHUNK_ROWS,
		.chunk_bytes = sizeof(check->sorted),
		.expected_rows = CHECK_ROWS
	};
	GsSessionResult result = {0};
	GsSession  *session;
	GsStatus	status = api->session_begin(device, &options, &session);

	if (status != GPUSORT_OK)
		return status;
	status = put_rows(api, session, check);
	if (status == GPUSORT_OK)
		status = api->session_sort(session, &result);
	if (status == GPUSORT_OK)
		status = check_rows(api, session, result.chunks, check, right);
	api->session_end(session);
	return status;
}

GsStatus
gpusort_device_check_run(const GsDeviceApi * api, GsDevice * device, char *message,
						 Size message_bytes)
{
	GsCheckRows *check = malloc(sizeof(GsCheckRows));
	bool		right = false;
	GsStatus	status;

	if (check == NULL)
	{
		strlcpy(message, "out of memory", message_bytes);
		return GPUSORT_HOST_MEMORY;
	}
	status = sort_rows(api, device, check, &right);
	free(check);
	if (status != GPUSORT_OK)
		strlcpy(message, api->device_message(device), message_bytes);
	else if (!right)
	{
		strlcpy(message, "it sorted test rows incorrectly", message_bytes);
		status = GPUSORT_DEVICE_ERROR;
	}
	return status;
}
