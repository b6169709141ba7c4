/*-------------------------------------------------------------------------
 *
 * test_radix_stop.c
 *		Tests that a callback can leave the radix sort.
 *
 * The sort is stopped at each of its first calls of the callback, at some of
 * the following, and at the last one.  The entries must then still be row
 * numbers of the table, and sorting again must work.
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
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

/* The calls of the callback, and the number of that which leaves the sort, or 0: none. */
static unsigned questions;
static unsigned stop_at;
static jmp_buf stop;

static void
count_or_stop(void)
{
	questions++;
	if (questions == stop_at)
		longjmp(stop, 1);
}

static const char *
function_name(enum SortFunction function)
{
	return function == BY_VALUES ? " by values" :
		function == OF_ALL_ROWS ? " as all rows" : "";
}

/* Sorts all rows with one of the functions.  Returns false if a call, unless 0, left the sort. */
static bool
sort_until(const KeyChunks *chunks, uint64_t *entries, uint64_t *scratch,
		   enum SortFunction function, unsigned call)
{
	const GsKeyTable *keys = &chunks->table;
	uint32_t	rows = chunks->rows;

	for (uint32_t row = 0; row < rows; row++)
		entries[row] = function != BY_VALUES ? row :
			gpusort_key_of_row(keys, row)[0] << 32 | row;
	questions = 0;
	stop_at = call;
	if (setjmp(stop) != 0)
		return false;
	if (function == BY_VALUES)
		gpusort_radix_sort_by_values(entries, scratch, rows, count_or_stop);
	else
		gpusort_radix_sort(keys, function == OF_ALL_ROWS ? NULL : entries, entries, scratch, rows,
						   count_or_stop);
	return true;
}

static bool
stop_is_right(const KeyChunks *chunks, uint64_t *entries, uint64_t *scratch,
			  enum SortFunction function, unsigned call)
{
	if (sort_until(chunks, entries, scratch, function, call))
	{
		tap_note("went on after question %u", call);
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
next_question(unsigned question, unsigned last)
{
	unsigned	next = question + 1;

	if (question >= FIRST_QUESTIONS)
		next += last / MORE_QUESTIONS;
	return question < last && next > last ? last : next;
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
	uint32_t   *expected;
	unsigned	last;
	bool		passed;

	for (uint32_t row = 0; row < rows && function == BY_VALUES; row++)
		keys[row] &= UINT32_MAX;
	chunks = key_chunks_create(keys, rows, words, 14);
	for (uint32_t row = 0; row < rows; row++)
		entries[row] = row;
	expected = reference_order(chunks, entries, rows);
	passed = sort_until(chunks, entries, scratch, function, 0) &&
		order_is_right(chunks, entries, expected, rows);
	last = questions;
	passed &= last >= rows / MAX_ROWS_PER_QUESTION;
	for (unsigned question = 1; question <= last && passed;
		 question = next_question(question, last))
		passed = stop_is_right(chunks, entries, scratch, function, question);

	/*
	 * Whatever a stopped sort left in its memory must not matter to the next.
	 */
	passed &= sort_until(chunks, entries, scratch, function, 0) &&
		order_is_right(chunks, entries, expected, rows);
	tap_ok(passed, "stopped at one of %u questions, %u rows of %u words%s, %s",
		   last, (unsigned) rows, words,
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

	for (uint32_t row = 0; row < rows; row++)
	{
		uint64_t	place = rows - 1 - row;
		uint64_t	upper = pairs && place > 0 && place % 65536 == 0 ?
			place - 1 : place;

		keys[2 * row] = upper * UINT64_C(0x100000000001);
		keys[2 * row + 1] = place;
	}
	chunks = key_chunks_create(keys, rows, 2, 14);
	(void) sort_until(chunks, entries, scratch, OF_ENTRIES, 0);
	key_chunks_free(chunks);
	free(scratch);
	free(entries);
	free(keys);
	return questions;
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
	}
	for (KeyPattern pattern = 0; pattern < PATTERN_COUNT; pattern++)
	{
		test_stop(pattern, 1000, 1, BY_VALUES);
		test_stop(pattern, 70000, 1, BY_VALUES);
		test_stop(pattern, 200000, 1, BY_VALUES);
	}
	return tap_done();
}
