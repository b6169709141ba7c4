/*-------------------------------------------------------------------------
 *
 * sorted_values.c
 *		The values of a group of an aggregate, which come in order.
 *
 * The values are an array.  Beyond work_mem it continues in a temporary file, or
 * values that are passed by reference move to a tuplestore.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tupdesc.h"
#include "commands/tablespace.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "agg_context.h"
#include "exec/agg_private.h"
#include "sort/first_keys.h"

#define INITIAL_CAPACITY	16

struct GsSortedValues
{
	int16		typlen;
	bool		typbyval;
	MemoryContext context;		/* of the group */

	Datum	   *values;
	int64		in_memory;
	int64		capacity;

	/* By value: the first ones may be in a file; the others are in memory. */
	BufFile    *file;			/* NULL if all are in memory */
	int64		in_file;

	/* By reference: all are in memory, or all are in a tuplestore. */
	Size		bytes;			/* in memory */
	Oid			type;
	Tuplestorestate *store;		/* of tuples of one column, or NULL */
	int64		in_store;
	int64		next;			/* position that it returns next */
	TupleTableSlot *slot;

	GsFirstKeys *keys;			/* if a sort has all values; or NULL */
};

/* At the end of a group, if the list has not been cleared before. */
static void
close_file(Datum arg)
{
	GsSortedValues *sorted = (GsSortedValues *) DatumGetPointer(arg);

	if (sorted->file != NULL)
		BufFileClose(sorted->file);
	sorted->file = NULL;
}

static void
end_store(Datum sorted)
{
	tuplestore_end(((GsSortedValues *) DatumGetPointer(sorted))->store);
}

/* Make an empty list without memory for values. */
static GsSortedValues *
create(MemoryContext group, Oid type)
{
	GsSortedValues *sorted = MemoryContextAllocZero(group, sizeof(GsSortedValues));

	sorted->context = group;
	sorted->type = type;
	get_typlenbyval(type, &sorted->typlen, &sorted->typbyval);
	return sorted;
}

GsSortedValues *
gpusort_sorted_values_create(FunctionCallInfo fcinfo, Oid type)
{
	MemoryContext group = gpusort_agg_context(fcinfo);
	GsSortedValues *sorted = create(group, type);

	sorted->capacity = INITIAL_CAPACITY;
	sorted->values = MemoryContextAlloc(group, INITIAL_CAPACITY * sizeof(Datum));
	return sorted;
}

GsSortedValues *
gpusort_sorted_values_of_sort(FunctionCallInfo fcinfo, Oid type, GsSort *sort)
{
	MemoryContext group = gpusort_agg_context(fcinfo);
	MemoryContext caller = MemoryContextSwitchTo(group);
	GsSortedValues *sorted = create(group, type);

	sorted->keys = gpusort_first_keys_create(sort);
	MemoryContextSwitchTo(caller);
	return gpusort_first_keys_number(sorted->keys) > 0 ? sorted : NULL;
}

/* Move the values in memory to the end of the file. */
static void
spill(FunctionCallInfo fcinfo, GsSortedValues *sorted)
{
	if (sorted->file == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(sorted->context);

		PrepareTempTablespaces();
		sorted->file = BufFileCreateTemp(false);
		AggRegisterCallback(fcinfo, close_file, PointerGetDatum(sorted));
		MemoryContextSwitchTo(caller);
	}
	BufFileWrite(sorted->file, sorted->values,
				 sorted->in_memory * sizeof(Datum));
	sorted->in_file += sorted->in_memory;
	sorted->in_memory = 0;
}

static void
make_room(FunctionCallInfo fcinfo, GsSortedValues *sorted)
{
	int64		limit = (int64) work_mem * 1024 / sizeof(Datum);

	if (2 * sorted->capacity > limit)
	{
		spill(fcinfo, sorted);
		return;
	}
	sorted->capacity *= 2;
	sorted->values = repalloc_huge(sorted->values,
								   sorted->capacity * sizeof(Datum));
}

/* Add a value that is passed by value. */
static void
add_by_value(FunctionCallInfo fcinfo, GsSortedValues *sorted, Datum value)
{
	if (sorted->in_memory == sorted->capacity)
		make_room(fcinfo, sorted);
	sorted->values[sorted->in_memory++] = value;
}

static void
store_value(GsSortedValues *sorted, Datum value)
{
	bool		isnull = false;

	tuplestore_putvalues(sorted->store, sorted->slot->tts_tupleDescriptor,
						 &value, &isnull);
	sorted->in_store++;
}

/* Move the values in memory to a tuplestore. */
static void
begin_store(FunctionCallInfo fcinfo, GsSortedValues *sorted)
{
	MemoryContext caller = MemoryContextSwitchTo(sorted->context);
	TupleDesc	tupdesc = CreateTemplateTupleDesc(1);

	TupleDescInitEntry(tupdesc, 1, NULL, sorted->type, -1, 0);
	TupleDescFinalize(tupdesc);
	sorted->slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	sorted->store = tuplestore_begin_heap(true, false, work_mem);
	AggRegisterCallback(fcinfo, end_store, PointerGetDatum(sorted));
	for (int64 i = 0; i < sorted->in_memory; i++)
	{
		store_value(sorted, sorted->values[i]);
		pfree(DatumGetPointer(sorted->values[i]));
	}
	pfree(sorted->values);
	sorted->values = NULL;
	sorted->in_memory = 0;
	MemoryContextSwitchTo(caller);
}

/* Keep a copy of a value that is passed by reference in memory. */
static void
copy_value(GsSortedValues *sorted, Datum value)
{
	MemoryContext caller = MemoryContextSwitchTo(sorted->context);
	Datum		copy = datumCopy(value, false, sorted->typlen);

	if (sorted->in_memory == sorted->capacity)
	{
		sorted->capacity *= 2;
		sorted->values = repalloc_huge(sorted->values,
									   sorted->capacity * sizeof(Datum));
	}
	sorted->values[sorted->in_memory++] = copy;
	sorted->bytes += GetMemoryChunkSpace(DatumGetPointer(copy)) +
		2 * sizeof(Datum);
	MemoryContextSwitchTo(caller);
}

static void
add_by_reference(FunctionCallInfo fcinfo, GsSortedValues *sorted, Datum value)
{
	if (sorted->store == NULL && sorted->bytes > (Size) work_mem * 1024)
		begin_store(fcinfo, sorted);
	if (sorted->store != NULL)
		store_value(sorted, value);
	else
		copy_value(sorted, value);
}

void
gpusort_sorted_values_add(FunctionCallInfo fcinfo, GsSortedValues *sorted,
						  Datum value)
{
	if (sorted->typbyval)
		add_by_value(fcinfo, sorted, value);
	else
		add_by_reference(fcinfo, sorted, value);
}

int64
gpusort_sorted_values_count(const GsSortedValues *sorted)
{
	if (sorted->keys != NULL)
		return gpusort_first_keys_number(sorted->keys);
	return sorted->in_file + sorted->in_memory + sorted->in_store;
}

static Datum
value_in_file(GsSortedValues *sorted, int64 position)
{
	Datum		value;

	if (BufFileSeek(sorted->file, 0, position * sizeof(Datum), SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file: %m")));
	GPUSORT_BUFFILE_READ(sorted->file, &value, sizeof(value));
	return value;
}

static Datum
value_in_store(GsSortedValues *sorted, int64 position)
{
	bool		isnull;

	if (position < sorted->next)
	{
		tuplestore_rescan(sorted->store);
		sorted->next = 0;
	}
	if (!tuplestore_skiptuples(sorted->store, position - sorted->next, true) ||
		!tuplestore_gettupleslot(sorted->store, true, false, sorted->slot))
		elog(ERROR, "pg_gpusort: an aggregate has lost a value");
	sorted->next = position + 1;
	return slot_getattr(sorted->slot, 1, &isnull);
}

Datum
gpusort_sorted_values_get(GsSortedValues *sorted, int64 position)
{
	if (sorted->keys != NULL)
		return gpusort_first_keys_get(sorted->keys, position);
	if (sorted->store != NULL)
		return value_in_store(sorted, position);
	if (position < sorted->in_file)
		return value_in_file(sorted, position);
	return sorted->values[position - sorted->in_file];
}

Datum
gpusort_sorted_values_copy(GsSortedValues *sorted, int64 position)
{
	return datumCopy(gpusort_sorted_values_get(sorted, position),
					 sorted->typbyval, sorted->typlen);
}

void
gpusort_sorted_values_clear(GsSortedValues *sorted)
{
	close_file(PointerGetDatum(sorted));
	pfree(sorted->values);
	sorted->values = NULL;
}
