/*-------------------------------------------------------------------------
 *
 * test_radix_stop.c
 *		Does the radix sort end when its stop callback asks for it?
 *
 * A sort is stopped at each of its questions in turn.  What it leaves behind
 * must still be row numbers of the table, and sorting afresh must work.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "core/radix_sort.h"
#include "key_patterns.h"
#include "sort_check.h"
#include "tap.h"

/* Rows between two questions: "every few ten thousand" as the header says. */
#define MAX_ROWS_PER_QUESTION	100000

typedef struct StopAfter
{
	unsigned	questions;
	unsigned	stop_at;		/* the number of a question, or 0: never */
} StopAfter;

static bool
stop_after(void *arg)
{
	StopAfter  *stop = arg;

	stop->questions++;
	return stop->questions == stop->stop_at;
}

/* Sort the rows from their own order, stopping at a question. */
static GsSortStatus
sort_until(const KeyChunks *chunks, uint64_t *entries, uint64_t *scratch,
		   StopAfter *stop)
{
	for (uint32_t row = 0; row < chunks->rows; row++)
		entries[row] = row;
	return gpusort_radix_sort(&chunks->table, entries, scratch, chunks->rows,
							  stop_after, stop);
}

static bool
stop_is_right(const KeyChunks *chunks, unsigned stop_at)
{
	uint32_t	rows = chunks->rows;
	uint64_t   *entries = must_allocate(rows * sizeof(uint64_t));
	uint64_t   *scratch = must_allocate(rows * sizeof(uint64_t));
	StopAfter	stop = {0, stop_at};
	bool		right = true;

	if (sort_until(chunks, entries, scratch, &stop) != GS_SORT_STOPPED)
	{
		tap_note("went on after question %u", stop_at);
		right = false;
	}
	if (stop.questions != stop_at)
	{
		tap_note("asked %u times, though told to stop at %u", stop.questions,
				 stop_at);
		right = false;
	}
	for (uint32_t i = 0; i < rows && right; i++)
		if ((uint32_t) entries[i] >= rows)
		{
			tap_note("an entry is not a row of the table");
			right = false;
		}
	free(entries);
	free(scratch);
	return right;
}

static void
test_stop(KeyPattern pattern, uint32_t rows, unsigned words)
{
	RandomState random = 11;
	uint64_t   *keys = key_pattern_make(pattern, rows, words, &random);
	KeyChunks  *chunks = key_chunks_create(keys, rows, words, 14);
	uint64_t   *entries = must_allocate(rows * sizeof(uint64_t));
	uint64_t   *scratch = must_allocate(rows * sizeof(uint64_t));
	uint64_t   *input = must_allocate(rows * sizeof(uint64_t));
	StopAfter	never = {0, 0};
	bool		passed;

	for (uint32_t row = 0; row < rows; row++)
		input[row] = row;
	passed = sort_until(chunks, entries, scratch, &never) == GS_SORT_DONE &&
		order_is_right(chunks, input, entries, rows);
	passed &= never.questions >= rows / MAX_ROWS_PER_QUESTION;
	for (unsigned question = 1; question <= never.questions && passed; question++)
		passed = stop_is_right(chunks, question);

	/* What a stopped sort left in its memory does not matter to the next. */
	never.questions = 0;
	passed &= sort_until(chunks, entries, scratch, &never) == GS_SORT_DONE &&
		order_is_right(chunks, input, entries, rows);
	tap_ok(passed, "stopped at each of %u questions, %u rows of %u words, %s",
		   never.questions, (unsigned) rows, words, key_pattern_name(pattern));
	free(input);
	free(scratch);
	free(entries);
	key_chunks_free(chunks);
	free(keys);
}

int
main(void)
{
	for (KeyPattern pattern = 0; pattern < PATTERN_COUNT; pattern++)
	{
		test_stop(pattern, 1000, 1);
		test_stop(pattern, 70000, 2);
	}
	test_stop(PATTERN_RANDOM, 200000, 1);
	test_stop(PATTERN_EQUAL_TOP, 200000, 2);
	test_stop(PATTERN_HIDDEN_RUN, 200000, 2);
	return tap_done();
}
