/*-------------------------------------------------------------------------
 *
 * device_speed.c
 *		Measures how many rows make a sort worth a GPU.
 *
 * A session on a device takes some time, however few rows there are.  Then each row is
 * cheaper than on the CPU, unless the device or its bus is slow.  What comes before and
 * after, reading the input and returning rows, is the same for both.
 *
 * Each time is the least of some, since other processes may run while the server starts.
 * The first one also warms up: a driver loads kernels when they are first used.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "portability/instr_time.h"
#include "utils/float.h"

#include "core/radix_sort.h"
#include "service/device_speed.h"
#include "service/device_trial.h"

#define ALL_ROWS			262144
#define CHUNK_ROWS			65536

/* For the time of a session without its rows. */
#define FEW_ROWS			512

#define TRIES				4

/*
 * What is not measured here: the service has to be woken up and to answer, and the backend
 * waits.  A sort of 3000 rows took 0.2 ms longer on an H100 than on the CPU; with 10,000 rows, it
 * took two thirds of the time (docs/experiments.md, Few rows on a GPU).
 */
#define SERVICE_US			200

/*
 * If a row takes so many times as long as on the CPU, with so many rows, more of them are not
 * tried: the emulator of a GPU would need seconds.
 */
#define HOPELESS			20
#define SAMPLE_ROWS			2048

static double
us_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_DOUBLE(now) * 1e6;
}

static void
make_rows(const GsTrial *trial)
{
	for (uint32 row = 0; row < trial->rows; row++)
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

	gpusort_radix_sort_all(&keys, (uint64_t *) entries, (uint64_t *) entries + trial->rows,
						   trial->rows, NULL, NULL);
	for (uint32 i = 0; i < trial->rows; i++)
		trial->sorted[i] = trial->numbers[(uint32) entries[i]];
}

/* Returns the microseconds of sorting all rows on the CPU, or 0 if there is no memory. */
static double
measure_cpu(const GsTrial *trial)
{
	uint64	   *entries = malloc(2 * (Size) trial->rows * sizeof(uint64));
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
measure_device(const GsDeviceApi * api, GsDevice * device, const GsTrial *trial,
			   uint32 rows, int tries, double *least)
{
	*least = get_float8_infinity();
	for (int i = 0; i < tries; i++)
	{
		instr_time	start;
		uint32		returned;
		GsStatus	status;

		INSTR_TIME_SET_CURRENT(start);
		status = gpusort_device_trial_sort(api, device, trial, rows, &returned);
		if (status != GPUSORT_OK)
			return status;
		*least = Min(*least, us_since(start));
	}
	return GPUSORT_OK;
}

/* Set the nanoseconds of a row, given what few rows take. */
static GsStatus
measure_row(const GsDeviceApi * api, GsDevice * device, const GsTrial *trial,
			uint32 rows, int tries, double few_us, double *row_ns)
{
	double		us;
	GsStatus	status = measure_device(api, device, trial, rows, tries, &us);

	if (status == GPUSORT_OK)
		*row_ns = Max(us - few_us, 0) * 1000 / (rows - FEW_ROWS);
	return status;
}

static GsStatus
measure_both(const GsDeviceApi * api, GsDevice * device, const GsTrial *trial,
			 GsDeviceSpeed *speed)
{
	double		cpu_us;
	double		few_us;
	GsStatus	status;

	make_rows(trial);
	cpu_us = measure_cpu(trial);
	if (cpu_us == 0)
		return GPUSORT_HOST_MEMORY;
	speed->cpu_row_ns = cpu_us * 1000 / trial->rows;
	status = measure_device(api, device, trial, FEW_ROWS, TRIES, &few_us);
	if (status == GPUSORT_OK)
		status = measure_row(api, device, trial, SAMPLE_ROWS, TRIES / 2, few_us,
							 &speed->gpu_row_ns);
	if (status == GPUSORT_OK && speed->gpu_row_ns < HOPELESS * speed->cpu_row_ns)
		status = measure_row(api, device, trial, trial->rows, TRIES, few_us,
							 &speed->gpu_row_ns);
	if (status == GPUSORT_OK)
		speed->session_us = Max(few_us - FEW_ROWS * speed->gpu_row_ns / 1000, 0);
	return status;
}

GsStatus
gpusort_device_speed_measure(const GsDeviceApi * api, GsDevice * device,
							 GsDeviceSpeed *speed)
{
	GsTrial		trial;
	GsStatus	status;

	memset(speed, 0, sizeof(GsDeviceSpeed));
	if (!gpusort_device_trial_make(&trial, ALL_ROWS, 1, CHUNK_ROWS))
		return GPUSORT_HOST_MEMORY;
	status = api->host_register(device, trial.memory, trial.bytes);
	if (status == GPUSORT_OK)
	{
		status = measure_both(api, device, &trial, speed);
		if (status != GPUSORT_DEVICE_LOST)
			(void) api->host_unregister(device, trial.memory);
	}
	gpusort_device_trial_free(&trial);
	return status;
}

double
gpusort_device_speed_min_rows(const GsDeviceSpeed *speed)
{
	double		gain_ns = speed->cpu_row_ns - speed->gpu_row_ns;

	return gain_ns > 0 ? (SERVICE_US + speed->session_us) * 1000 / gain_ns :
		get_float8_infinity();
}
