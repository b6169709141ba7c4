/*-------------------------------------------------------------------------
 *
 * partition_rows.c
 *		Returns the first rows of each partition only, for a window that wants no more.
 *
 * A window with row_number() <= 3 drops all further rows of a partition.  Where rows can be read in
 * any order, as in memory, the end of the partition is searched for, so that most of these rows are
 * not read at all.  If partitions turn out to be so short that hardly any row is skipped, the
 * window gets all rows: comparing their keys would take longer.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/tuptable.h"
#include "utils/memutils.h"

#include "sort/base/group_keys.h"
#include "sort/partition_rows.h"
#include "sort/sort_private.h"
#include "work.h"

/* Each time this many rows have been returned, go on only if a third of all rows were skipped. */
#define ROWS_PER_DECISION	1024

struct GsPartitionRows
{
	GsGroupKeys *partition;		/* of the row that was returned last */
	TupleTableSlot *slot;		/* for a row that is looked at */
	int64		returned;		/* rows of the partition; 0 before the first */
	int64		nreturned;		/* rows since the last decision */
	int64		nskipped;
	bool		given_up;		/* are all rows returned? */
};

static GsPartitionRows *
create_rows(GsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	GsPartitionRows *rows = palloc0(sizeof(GsPartitionRows));

	rows->partition = gpusort_group_keys_create(sort->spec, sort->spec->partition_keys);
	rows->slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
	MemoryContextSwitchTo(caller);
	return rows;
}

static bool
is_in_partition(GsPartitionRows *rows, TupleTableSlot *slot)
{
	return gpusort_group_keys_match(rows->partition, slot->tts_values, slot->tts_isnull);
}

/* Is row n after the cursor, from 0, in the partition? */
static bool
look_at(GsSort *sort, int64 n)
{
	GsPartitionRows *rows = sort->partition_rows;

	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(GPUSORT_WORK_ROW);
	return gpusort_sort_peek(sort, n, rows->slot) && is_in_partition(rows, rows->slot);
}

/*
 * Move the cursor to the end of the partition, as far as rows are at hand.  Many partitions end
 * soon, so look one row ahead, then two more, four, and so on.
 */
static void
skip_rows(GsSort *sort)
{
	int64		end = gpusort_sort_at_hand(sort);
	int64		low = 0;		/* rows that are known to be in the partition */

	for (int64 step = 1; low < end; step *= 2)
	{
		int64		last = Min(low + step, end) - 1;

		if (!look_at(sort, last))
		{
			end = last;
			break;
		}
		low = last + 1;
	}
	while (low < end)
	{
		int64		middle = low + (end - low) / 2;

		if (look_at(sort, middle))
			low = middle + 1;
		else
			end = middle;
	}
	gpusort_sort_skip(sort, (uint32) low);
	sort->partition_rows->nskipped += low;
}

/* A row is returned: decide whether to go on, if enough have been. */
static inline void
count_row(GsPartitionRows *rows)
{
	if (++rows->nreturned < ROWS_PER_DECISION)
		return;
	rows->given_up = rows->nskipped < rows->nreturned / 2;
	rows->nreturned = rows->nskipped = 0;
}

/* The next row is of another partition. */
static void
begin_partition(GsPartitionRows *rows, TupleTableSlot *slot)
{
	gpusort_group_keys_keep(rows->partition, slot->tts_values, slot->tts_isnull);
	rows->returned = 0;
}

bool
gpusort_partition_rows_next(GsSort *sort, TupleTableSlot *slot)
{
	GsPartitionRows *rows = sort->partition_rows;

	if (unlikely(rows == NULL))
		rows = sort->partition_rows = create_rows(sort);
	if (sort->position == 0)
		rows->returned = 0;		/* also when the sort is read again */
	while (!rows->given_up)
	{
		CHECK_FOR_INTERRUPTS();
		if (rows->returned == sort->spec->partition_rows)
			skip_rows(sort);
		if (!gpusort_sort_next(sort, true, slot))
			return false;
		if (rows->returned == 0 || !is_in_partition(rows, slot))
			begin_partition(rows, slot);
		if (rows->returned < sort->spec->partition_rows)
		{
			rows->returned++;
			count_row(rows);
			return true;
		}
		rows->nskipped++;
	}
	return gpusort_sort_next(sort, true, slot);
}
