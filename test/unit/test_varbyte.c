/*-------------------------------------------------------------------------
 *
 * test_varbyte.c
 *		Tests that numbers have the bytes they should have, and are read again.
 *
 *-------------------------------------------------------------------------
 */
#include "core/varbyte.h"
#include "random.h"
#include "tap.h"

#define NUMBERS		1000
#define ROUNDS		200
#define MAX_NUMBER	((UINT64_C(1) << 49) - 1)

/* Write a number seven bits at a time.  Returns its end. */
static uint8_t *
write_simply(uint8_t *bytes, uint64_t number)
{
	for (; number >= 128; number /= 128)
		*bytes++ = (uint8_t) (128 + number % 128);
	*bytes++ = (uint8_t) number;
	return bytes;
}

/* Returns a number of any length: a power of 128 or its neighbours, or any between. */
static uint64_t
random_number(RandomState *state)
{
	uint64_t	power = UINT64_C(1) << random_below(state, 50);
	uint64_t	number = random_below(state, 2) == 0 ?
		power + random_below(state, 3) - 1 : random_below(state, power);

	return number > MAX_NUMBER ? MAX_NUMBER : number;
}

typedef struct NumberList
{
	uint64_t	numbers[NUMBERS];
	uint8_t		bytes[NUMBERS * GPUSORT_VARBYTE_MAX + GPUSORT_VARBYTE_ROOM];
	uint8_t    *end;
} NumberList;

static bool
is_written(const NumberList *list)
{
	static uint8_t expected[NUMBERS * GPUSORT_VARBYTE_MAX];
	uint8_t    *end = expected;

	for (int i = 0; i < NUMBERS; i++)
		end = write_simply(end, list->numbers[i]);
	return end - expected == list->end - list->bytes &&
		memcmp(expected, list->bytes, (size_t) (end - expected)) == 0;
}

/* Are the numbers read again, with any bytes behind the last one? */
static bool
is_read(const NumberList *list)
{
	const uint8_t *slow = list->bytes;
	const uint8_t *fast = list->bytes;

	for (int i = 0; i < NUMBERS; i++)
	{
		uint64_t	a;
		uint64_t	b;

		slow = gpusort_varbyte_read(slow, &a);
		fast = gpusort_varbyte_read_ahead(fast, &b);
		if (a != list->numbers[i] || b != a || fast != slow)
			return false;
	}
	return slow == list->end;
}

int
main(void)
{
	RandomState state = 1;
	int			written = 0;
	int			read = 0;

	for (int round = 0; round < ROUNDS; round++)
	{
		static NumberList list;

		list.end = list.bytes;
		for (int i = 0; i < NUMBERS; i++)
		{
			list.numbers[i] = i == 0 ? MAX_NUMBER : random_number(&state);
			list.end = gpusort_varbyte_write(list.end, list.numbers[i]);
		}
		written += is_written(&list);
		memset(list.end, (int) random_below(&state, 256), GPUSORT_VARBYTE_ROOM);
		read += is_read(&list);
	}
	tap_ok(written == ROUNDS, "bytes of %d lists of %d numbers", ROUNDS, NUMBERS);
	tap_ok(read == ROUNDS, "numbers read from them");
	return tap_done();
}
