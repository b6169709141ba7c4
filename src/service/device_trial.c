/*-------------------------------------------------------------------------
 *
 * device_trial.c
 *		Sorts made-up rows on a device that was just opened.
 *
 * A device can be present and can be opened, and still be unable to sort: the
 * library may have no code or only a part of the code for its architecture, or
 * the device may be broken.  Without the check each query would find that out
 * only after sending all of its rows, or, if the rows come back in a wrong
 * order, not at all.
 *
 * Then we measure how many rows make a sort worth a GPU.  A session on a device takes some
 * time, however few rows there are.  Then each row is cheaper than on the CPU, unless the
 * device or its bus is slow.  What comes before and after, reading the input and returning
 * rows, is the same for both.  Each time is the least of some, since other processes may run
 * while the server starts.  The first one also warms up: a driver loads kernels when they are
 * first used.
 *
 * The device process has no memory contexts that it could use, so memory is malloc's.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <unistd.h>

#include "portability/instr_time.h"
#include "utils/float.h"

#include "core/radix_sort.h"
#include "service/devices.h"

/*
 * More rows than one thread block of a GPU sorts, so that blocks must exchange
 * counts to find the positions of their rows; also more than one chunk.
 */
#define CHECK_ROWS			10000
#define CHECK_CHUNK_ROWS	4096

/* Words of a key, of which the speed is measured with one. */
#define TRIAL_WORDS			2

/* What is measured. */
#define ALL_ROWS			262144
#define CHUNK_ROWS			65536

/* For the time of a session without its rows. */
#define FEW_ROWS			512

#define TRIES				4

/*
 * If a row takes so many times as long as on the CPU, with so many rows, more of them are not
 * tried: the emulator of a GPU would need seconds.
 */
#define HOPELESS			20
#define SAMPLE_ROWS			2048

/* Rows of one number each.  Their arrays are in one piece of memory of whole pages. */
typedef struct GsTrial
{
	const		GsDeviceApi *api;
	GsDevice   *device;
	int			words;			/* of a key */
	uint32		chunk_rows;		/* of a chunk in either direction */
	uint64	   *keys[TRIAL_WORDS];	/* of each row, word by word */
	uint64	   *numbers;
	uint64	   *sorted;			/* has room for one more chunk */
	void	   *memory;
	Size		bytes;
} GsTrial;

/* Allocate the arrays.  Returns false if there is no memory. */
static bool
make_trial(GsTrial *trial)
{
	Size		page = (Size) sysconf(_SC_PAGESIZE);
	uint64	   *array;

	trial->bytes = TYPEALIGN(page, ((TRIAL_WORDS + 2) * (Size) ALL_ROWS + CHUNK_ROWS) *
							 sizeof(uint64));
	if (posix_memalign(&trial->memory, page, trial->bytes) != 0)
		return false;
	array = trial->memory;
	for (int w = 0; w < TRIAL_WORDS; w++, array += ALL_ROWS)
		trial->keys[w] = array;
	trial->numbers = array;
	trial->sorted = array + ALL_ROWS;
	return true;
}

/* Put the rows from 'first' on into a session. */
static GsStatus
put_chunk(GsSession * session, const GsTrial *trial, uint32 first, uint32 rows)
{
	GsTicket	ticket;
	GsStatus	status;
	GsChunk		chunk = {
		.rows = rows,
		.data = trial->numbers + first,
		.data_bytes = rows * sizeof(uint64)
	};

	for (int w = 0; w < trial->words; w++)
		chunk.keys[w] = (const uint64_t *) trial->keys[w] + first;
	status = trial->api->session_put(session, &chunk, &ticket);
	return status == GPUSORT_OK ? trial->api->session_wait(session, ticket) : status;
}

static GsStatus
get_rows(GsSession * session, uint64 chunks, const GsTrial *trial, uint32 rows, uint32 *returned)
{
	*returned = 0;
	for (uint64 c = 0; c < chunks && *returned <= rows; c++)
	{
		GsSortedChunk target = {
			.data = trial->sorted + *returned
		};
		GsTicket	ticket;
		GsStatus	status = trial->api->session_get(session, c, &target, &ticket);

		if (status == GPUSORT_OK)
			status = trial->api->session_wait(session, ticket);
		if (status != GPUSORT_OK)
			return status;
		*returned += target.rows;
	}
	return GPUSORT_OK;
}

static GsStatus
sort_in_session(GsSession * session, const GsTrial *trial, uint32 rows, uint32 *returned)
{
	GsSessionResult result = {0};
	GsStatus	status = GPUSORT_OK;

	for (uint32 first = 0; first < rows && status == GPUSORT_OK; first += trial->chunk_rows)
		status = put_chunk(session, trial, first, Min(rows - first, trial->chunk_rows));
	if (status == GPUSORT_OK)
		status = trial->api->session_sort(session, &result);
	if (status == GPUSORT_OK)
		status = get_rows(session, result.chunks, trial, rows, returned);
	return status;
}

/*
 * Sort the first 'rows' rows in a session of their own, and fill 'sorted'.  Sets how many
 * rows have come back; there may be too many, unless the device is right.
 */
static GsStatus
sort_trial(const GsTrial *trial, uint32 rows, uint32 *returned)
{
	GsSessionOptions options = {
		.key_words = trial->words,
		.row_layout = GPUSORT_ROWS_FIXED,
		.row_width = sizeof(uint64),
		.chunk_rows = trial->chunk_rows,
		.chunk_bytes = trial->chunk_rows * sizeof(uint64),
		.expected_rows = rows
	};
	GsSession  *session;
	GsStatus	status = trial->api->session_begin(trial->device, &options, &session);

	if (status != GPUSORT_OK)
		return status;
	status = sort_in_session(session, trial, rows, returned);
	trial->api->session_end(session);
	return status;
}

/* ----------------------------------------------------------------
 *		is it right?
 * ----------------------------------------------------------------
 */

/*
 * Make keys in no particular order, some of them equal.  Only a few bits vary, which keeps the
 * number of passes small, but both words have some of them.  A row consists of its number.
 */
static void
make_checked_rows(const GsTrial *trial)
{
	for (uint32 row = 0; row < CHECK_ROWS; row++)
	{
		uint64		scattered = row * UINT64CONST(2654435761);

		trial->keys[0][row] = (scattered >> 8 & 63) << 40;
		trial->keys[1][row] = (scattered >> 14 & 63) << 5;
		trial->numbers[row] = row;
	}
}

/* Does row 'b' come after row 'a'?  Rows with equal keys keep their order. */
static bool
is_in_order(const GsTrial *trial, uint64 a, uint64 b)
{
	for (int w = 0; w < TRIAL_WORDS; w++)
		if (trial->keys[w][a] != trial->keys[w][b])
			return trial->keys[w][a] < trial->keys[w][b];
	return a < b;
}

/*
 * Are the sorted rows right?  If they are in strictly ascending order and their number is
 * right, none of them is missing.
 */
static bool
rows_are_right(const GsTrial *trial, uint32 returned)
{
	if (returned != CHECK_ROWS)
		return false;
	for (uint32 i = 0; i < returned; i++)
	{
		if (trial->sorted[i] >= CHECK_ROWS ||
			(i > 0 && !is_in_order(trial, trial->sorted[i - 1], trial->sorted[i])))
			return false;
	}
	return true;
}

static GsStatus
check(GsTrial *trial, char *message)
{
	uint32		returned;
	GsStatus	status;

	trial->words = TRIAL_WORDS;
	trial->chunk_rows = CHECK_CHUNK_ROWS;
	make_checked_rows(trial);
	status = sort_trial(trial, CHECK_ROWS, &returned);
	if (status != GPUSORT_OK || rows_are_right(trial, returned))
		return status;
	strlcpy(message, "it sorted test rows incorrectly", GPUSORT_MESSAGE_BYTES);
	return GPUSORT_DEVICE_ERROR;
}

/* ----------------------------------------------------------------
 *		how fast is it?
 * ----------------------------------------------------------------
 */

static double
us_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_DOUBLE(now) * 1e6;
}

static void
make_measured_rows(const GsTrial *trial)
{
	for (uint32 row = 0; row < ALL_ROWS; row++)
	{
		trial->keys[0][row] = (row + 1) * UINT64CONST(0x9E3779B97F4A7C15);
		trial->numbers[row] = row;
	}
}

/* Sort all rows on the CPU, as a sort in memory does.  'entries' has room for twice as many. */
static void
sort_on_cpu(const GsTrial *trial, uint64 *entries)
{
	const uint64_t *chunk = (const uint64_t *) trial->keys[0];
	GsKeyTable	keys = {.chunks = &chunk,.chunk_shift = 31,.words = 1};

	gpusort_radix_sort(&keys, NULL, (uint64_t *) entries, (uint64_t *) entries + ALL_ROWS,
					   ALL_ROWS, NULL);
	for (uint32 i = 0; i < ALL_ROWS; i++)
		trial->sorted[i] = trial->numbers[(uint32) entries[i]];
}

/* Returns the microseconds of sorting all rows on the CPU, or 0 if there is no memory. */
static double
measure_cpu(const GsTrial *trial)
{
	uint64	   *entries = malloc(2 * (Size) ALL_ROWS * sizeof(uint64));
	double		least = get_float8_infinity();

	if (entries == NULL)
		return 0;
	for (int i = 0; i < TRIES; i++)
	{
		instr_time	start;

		INSTR_TIME_SET_CURRENT(start);
		sort_on_cpu(trial, entries);
		least = Min(least, us_since(start));
	}
	free(entries);
	return least;
}

/* Set the microseconds of sorting so many rows on the device. */
static GsStatus
measure_device(const GsTrial *trial, uint32 rows, int tries, double *least)
{
	*least = get_float8_infinity();
	for (int i = 0; i < tries; i++)
	{
		instr_time	start;
		uint32		returned;
		GsStatus	status;

		INSTR_TIME_SET_CURRENT(start);
		status = sort_trial(trial, rows, &returned);
		if (status != GPUSORT_OK)
			return status;
		*least = Min(*least, us_since(start));
	}
	return GPUSORT_OK;
}

/* Set the nanoseconds of a row, given what few rows take. */
static GsStatus
measure_row(const GsTrial *trial, uint32 rows, int tries, double few_us, double *row_ns)
{
	double		us;
	GsStatus	status = measure_device(trial, rows, tries, &us);

	if (status == GPUSORT_OK)
		*row_ns = Max(us - few_us, 0) * 1000 / (rows - FEW_ROWS);
	return status;
}

static GsStatus
measure(GsTrial *trial, GsDeviceSpeed *speed)
{
	double		cpu_us;
	double		few_us;
	GsStatus	status;

	trial->words = 1;
	trial->chunk_rows = CHUNK_ROWS;
	make_measured_rows(trial);
	cpu_us = measure_cpu(trial);
	if (cpu_us == 0)
		return GPUSORT_HOST_MEMORY;
	speed->cpu_row_ns = cpu_us * 1000 / ALL_ROWS;
	status = measure_device(trial, FEW_ROWS, TRIES, &few_us);
	if (status == GPUSORT_OK)
		status = measure_row(trial, SAMPLE_ROWS, TRIES / 2, few_us, &speed->gpu_row_ns);
	if (status == GPUSORT_OK && speed->gpu_row_ns < HOPELESS * speed->cpu_row_ns)
		status = measure_row(trial, ALL_ROWS, TRIES, few_us, &speed->gpu_row_ns);
	if (status == GPUSORT_OK)
		speed->session_us = Max(few_us - FEW_ROWS * speed->gpu_row_ns / 1000, 0);
	return status;
}

GsStatus
gpusort_device_trial(const GsDeviceApi * api, GsDevice * device, GsDeviceSpeed *speed,
					 char *message)
{
	GsTrial		trial;
	GsDeviceSpeed measured = *speed;
	GsStatus	status;

	if (!make_trial(&trial))
		return GPUSORT_HOST_MEMORY;
	trial.api = api;
	trial.device = device;
	status = api->host_register(device, trial.memory, trial.bytes);
	if (status == GPUSORT_OK)
	{
		status = check(&trial, message);
		gpusort_service_step();
		if (status == GPUSORT_OK && measured.cpu_row_ns == 0)
			status = measure(&trial, &measured);
		if (status != GPUSORT_DEVICE_LOST)
			(void) api->host_unregister(device, trial.memory);
	}
	free(trial.memory);
	if (status == GPUSORT_OK)
		*speed = measured;
	return status;
}
