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
#include "service/device_trial.h"

/*
 * More rows than one thread block of a GPU sorts, so that blocks must exchange
 * counts to find the positions of their rows; also more than one chunk.
 */
#define CHECK_ROWS			10000
#define CHECK_CHUNK_ROWS	4096

#define CHECK_WORDS			2

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

/* A row consists of its number, from which its key is computed. */
static void
make_rows(const GsTrial *trial)
{
	for (uint32 row = 0; row < trial->rows; row++)
	{
		uint64		key[CHECK_WORDS];

		make_key(row, key);
		for (int w = 0; w < CHECK_WORDS; w++)
			trial->keys[w][row] = key[w];
		trial->numbers[row] = row;
	}
}

/*
 * Are the sorted rows right?  If they are in strictly ascending order and their number is
 * right, none of them is missing.
 */
static bool
rows_are_right(const GsTrial *trial, uint32 returned)
{
	if (returned != trial->rows)
		return false;
	for (uint32 i = 0; i < returned; i++)
	{
		if (trial->sorted[i] >= trial->rows ||
			(i > 0 && !is_in_order(trial->sorted[i - 1], trial->sorted[i])))
			return false;
	}
	return true;
}

GsStatus
gpusort_device_check_run(const GsDeviceApi * api, GsDevice * device, char *message,
						 Size message_bytes)
{
	GsTrial		trial;
	uint32		returned;
	GsStatus	status;

	if (!gpusort_device_trial_make(&trial, CHECK_ROWS, CHECK_WORDS, CHECK_CHUNK_ROWS))
	{
		strlcpy(message, "out of memory", message_bytes);
		return GPUSORT_HOST_MEMORY;
	}
	make_rows(&trial);
	status = gpusort_device_trial_sort(api, device, &trial, trial.rows, &returned);
	if (status != GPUSORT_OK)
		strlcpy(message, api->device_message(device), message_bytes);
	else if (!rows_are_right(&trial, returned))
	{
		strlcpy(message, "it sorted test rows incorrectly", message_bytes);
		status = GPUSORT_DEVICE_ERROR;
	}
	gpusort_device_trial_free(&trial);
	return status;
}
