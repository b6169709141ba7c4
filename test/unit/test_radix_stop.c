/*-------------------------------------------------------------------------
 *
 * test_radix_stop.c
 *		Tests that the radix sort ends when its stop callback asks for it.
 *
 * The sort is stopped at each of its first calls of the callback, at some of
 * the following, and at the last one.  The entries must then still be row
 * numbers of the table, and sorting again must work.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "core/radix_sort.h"
#include "key_patterns.h"
#include "sort_check.h"
#include "tap.h"

/*
 * Maximum of rows between two calls: "every few ten thousand" in the header.
 */
#define MAX_ROWS_PER_QUESTION	100000

/* First calls that are all tested, and about how many of the others are. */
#define FIRST_QUESTIONS		20
#define MORE_QUESTIONS		20

/* Which function sorts. */
enum SortFunction
{
	OF_ENTRIES,
	OF_ALL_ROWS,
	BY_VALUES					/* the keys are words that fit in 32 bits */
};

typedef struct StopAfter
{
	unsigned	questions;
	unsigned	stop_at;		/* number of the call, or 0: never */
} StopAfter;

static bool
stop_after(void *arg)
{
	StopAfter  *stop = arg;

	stop->questions++;
	return stop->questions == stop->stop_at;
}

static const char *
function_name(enum SortFunction function)
{
	return function == BY_VALUES ? " by values" :
		function == OF_ALL_ROWS ? " as all rows" : "";
}

/* Sorts all rows with one of the functions, and stops at a call. */
static GsSortStatus
sort_until(const KeyChunks *chunks, uint64_t *entries, uint64_t *scratch,
		   enum SortFunction function, StopAfter *stop)
{
	const GsKeyTable *keys = &chunks->table;
	uint32_t	rows = chunks->rows;

	for (uint32_t row = 0; row < rows; row++)
		entries[row] = function != BY_VALUES ? row :
			gpusort_key_of_row(keys, row)[0] << 32 | row;
	if (function == BY_VALUES)
		return gpusort_radix_sort_by_values(entries, scratch, rows,
											stop_after, stop);
	if (function == OF_ALL_ROWS)
		return gpusort_radix_sort_all(keys, entries, scratch, rows,
									  stop_after, stop);
	return gpusort_radix_sort(keys, entries, scratch, rows, stop_after, stop);
}

static bool
stop_is_right(const KeyChunks *chunks, uint64_t *entries, uint64_t *scratch,
			  enum SortFunction function, unsigned stop_at)
{
	StopAfter	stop = {0, stop_at};

	if (sort_until(chunks, entries, scratch, function, &stop) != GS_SORT_STOPPED)
	{
		tap_note("went on after question %u", stop_at);
		return false;
	}
	if (stop.questions != stop_at)
	{
		tap_note("asked %u times, though told to stop at %u", stop.questions,
				 stop_at);
		return false;
	}
	for (uint32_t i = 0; i < chunks->rows; i++)
		if ((uint32_t) entries[i] >= chunks->rows)
		{
			tap_note("an entry is not a row of the table");
			return false;
		}
	return true;
}

/* Returns the call to stop at after this one was tested. */
static unsigned
next_question(unsigned question, unsigned questions)
{
	unsigned	next = question + 1;

	if (question >= FIRST_QUESTIONS)
		next += questions / MORE_QUESTIONS;
	return question < questions && next > questions ? questions : next;
}

static void
test_stop(KeyPattern pattern, uint32_t rows, unsigned words,
		  enum SortFunction function)
{
	RandomState random = 11;
	uint64_t   *keys = key_pattern_make(pattern, rows, words, &random);
	KeyChunks  *chunks;
	uint64_t   *entries = must_allocate(rows * sizeof(uint64_t));
	uint64_t   *scratch = must_allocate(rows * sizeof(uint64_t));
	StopAfter	never = {0, 0};
	uint32_t   *expected;
	bool		passed;

	for (uint32_t row = 0; row < rows && function == BY_VALUES; row++)
		keys[row] &= UINT32_MAX;
	chunks = key_chunks_create(keys, rows, words, 14);
	for (uint32_t row = 0; row < rows; row++)
		entries[row] = row;
	expected = reference_order(chunks, entries, rows);
	passed = sort_until(chunks, entries, scratch, function, &never) == GS_SORT_DONE &&
		order_is_right(chunks, entries, expected, rows);
	passed &= never.questions >= rows / MAX_ROWS_PER_QUESTION;
	for (unsigned question = 1; question <= never.questions && passed;
		 question = next_question(question, never.questions))
		passed = stop_is_right(chunks, entries, scratch, function, question);

	/*
	 * Whatever a stopped sort left in its memory must not matter to the next.
	 */
	never.questions = 0;
	passed &= sort_until(chunks, entries, scratch, function, &never) == GS_SORT_DONE &&
		order_is_right(chunks, entries, expected, rows);
	tap_ok(passed, "stopped at one of %u questions, %u rows of %u words%s, %s",
		   never.questions, (unsigned) rows, words,
		   function_name(function), key_pattern_name(pattern));
	free(expected);
	free(scratch);
	free(entries);
	key_chunks_free(chunks);
	free(keys);
}

/*
 * Returns the number of calls when rows are sorted whose keys ascend from the
 * last row to the first.  With 'pairs', each row whose position is a multiple
 * of 65536 has the same upper word as its predecessor.
 */
static unsigned
count_questions(uint32_t rows, bool pairs)
{
	uint64_t   *keys = must_allocate(rows * 2 * sizeof(uint64_t));
	uint64_t   *entries = must_allocate(rows * sizeof(uint64_t));
	uint64_t   *scratch = must_allocate(rows * sizeof(uint64_t));
	KeyChunks  *chunks;
	StopAfter	never = {0, 0};

	for (uint32_t row = 0; row < rows; row++)
	{
		uint64_t	place = rows - 1 - row;
		uint64_t	upper = pairs && place > 0 && place % 65536 == 0 ?
			place - 1 : place;

		keys[2 * row] = upper * UINT64_C(0x100000000001);
		keys[2 * row + 1] = place;
	}
	chunks = key_chunks_create(keys, rows, 2, 14);
	(void) sort_until(chunks, entries, scratch, OF_ENTRIES, &never);
	key_chunks_free(chunks);
	free(scratch);
	free(entries);
	free(keys);
	return never.questions;
}

/*
 * The number of calls must not depend on where ties in the upper word begin.
 */
static void
test_runs_at_questions(void)
{
	unsigned	single = count_questions(200000, false);
	unsigned	pairs = count_questions(200000, true);

	tap_ok(pairs >= single, "%u questions of single rows, %u with pairs",
		   single, pairs);
}

int
main(void)
{
	test_runs_at_questions();
	for (enum SortFunction function = OF_ENTRIES; function <= OF_ALL_ROWS; function++)
	{
		for (KeyPattern pattern = 0; pattern < PATTERN_COUNT; pattern++)
		{
			test_stop(pattern, 1000, 1, function);
			test_stop(pattern, 70000, 2, function);
		}
		test_stop(PATTERN_RANDOM, 200000, 1, function);
		test_stop(PATTERN_EQUAL_TOP, 200000, 2, function);
		test_stop(PATTERN_HIDDEN_RUN, 200000, 2, function);
	}
	for (KeyPattern pattern = 0; pattern < PATTERN_COUNT; pattern++)
	{
		test_stop(pattern, 1000, 1, BY_VALUES);
		test_stop(pattern, 70000, 1, BY_VALUES);
		test_stop(pattern, 200000, 1, BY_VALUES);
	}
	return tap_done();
}
