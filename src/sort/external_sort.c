/*-------------------------------------------------------------------------
 *
 * external_sort.c
 *		Rows of a sort that went on to a stock tuplesort.
 *
 * A tuplesort leaves rows with equal keys in any order.  Where their order of
 * arrival matters, the rows get their number as one more column, by which they
 * are sorted last.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "sort/external_sort.h"

struct GsExternalSort
{
	Tuplesortstate *tuplesort;
	int			natts;			/* of the rows of the session */
	bool		by_arrival;
	int64		nrows;
	TupleTableSlot *slot;		/* for the caller */
	TupleTableSlot *in_slot;	/* with the number, if by_arrival */
	TupleTableSlot *out_slot;	/* of the tuplesort's kind */
};

/* The same keys, and behind them the column 'attno', ascending. */
static GsSortKeys
add_arrival_key(const GsSortKeys *keys, AttrNumber attno)
{
	int			n = keys->nkeys;
	GsSortKeys	longer = {
		.nkeys = n + 1,
		.attnos = palloc((n + 1) * sizeof(AttrNumber)),
		.operators = palloc((n + 1) * sizeof(Oid)),
		.collations = palloc((n + 1) * sizeof(Oid)),
		.nulls_first = palloc((n + 1) * sizeof(bool))
	};

	memcpy(longer.attnos, keys->attnos, n * sizeof(AttrNumber));
	memcpy(longer.operators, keys->operators, n * sizeof(Oid));
	memcpy(longer.collations, keys->collations, n * sizeof(Oid));
	memcpy(longer.nulls_first, keys->nulls_first, n * sizeof(bool));
	longer.attnos[n] = attno;
	longer.operators[n] = Int8LessOperator;
	longer.collations[n] = InvalidOid;
	longer.nulls_first[n] = false;
	return longer;
}

static TupleDesc
add_arrival_column(TupleDesc tupdesc)
{
	TupleDesc	wider = CreateTemplateTupleDesc(tupdesc->natts + 1);

	for (AttrNumber attno = 1; attno <= tupdesc->natts; attno++)
		TupleDescCopyEntry(wider, attno, tupdesc, attno);
	TupleDescInitEntry(wider, tupdesc->natts + 1, "arrival", INT8OID, -1, 0);
	return wider;
}

GsExternalSort *
gpusort_external_begin(const GsSessionSpec *spec, int limit_kb, bool by_arrival)
{
	GsExternalSort *sort = palloc0(sizeof(GsExternalSort));
	TupleDesc	tupdesc = spec->tupdesc;
	GsSortKeys	keys = spec->keys;

	sort->natts = tupdesc->natts;
	sort->by_arrival = by_arrival;
	sort->slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual);
	if (by_arrival)
	{
		tupdesc = add_arrival_column(tupdesc);
		keys = add_arrival_key(&keys, tupdesc->natts);
		sort->in_slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual);
	}
	sort->out_slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	sort->tuplesort =
		tuplesort_begin_heap(tupdesc, keys.nkeys, keys.attnos, keys.operators,
							 keys.collations, keys.nulls_first, limit_kb, NULL,
							 spec->random_access ? TUPLESORT_RANDOMACCESS :
							 TUPLESORT_NONE);
	return sort;
}

TupleTableSlot *
gpusort_external_slot(GsExternalSort *sort)
{
	return sort->slot;
}

static TupleTableSlot *
number_row(GsExternalSort *sort, TupleTableSlot *slot)
{
	TupleTableSlot *numbered = sort->in_slot;

	ExecClearTuple(numbered);
	slot_getallattrs(slot);
	memcpy(numbered->tts_values, slot->tts_values, sort->natts * sizeof(Datum));
	memcpy(numbered->tts_isnull, slot->tts_isnull, sort->natts * sizeof(bool));
	numbered->tts_values[sort->natts] = Int64GetDatum(sort->nrows);
	numbered->tts_isnull[sort->natts] = false;
	return ExecStoreVirtualTuple(numbered);
}

void
gpusort_external_put(GsExternalSort *sort, TupleTableSlot *slot)
{
	CHECK_FOR_INTERRUPTS();
	tuplesort_puttupleslot(sort->tuplesort,
						   sort->by_arrival ? number_row(sort, slot) : slot);
	sort->nrows++;
}

int64
gpusort_external_count(const GsExternalSort *sort)
{
	return sort->nrows;
}

void
gpusort_external_perform(GsExternalSort *sort)
{
	tuplesort_performsort(sort->tuplesort);
}

bool
gpusort_external_next(GsExternalSort *sort, bool forward, TupleTableSlot *slot)
{
	TupleTableSlot *from = sort->out_slot;

	if (!tuplesort_gettupleslot(sort->tuplesort, forward, false, from, NULL))
		return false;
	slot_getallattrs(from);
	memcpy(slot->tts_values, from->tts_values, sort->natts * sizeof(Datum));
	memcpy(slot->tts_isnull, from->tts_isnull, sort->natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	return true;
}

void
gpusort_external_skip(GsExternalSort *sort, int64 rows)
{
	(void) tuplesort_skiptuples(sort->tuplesort, rows, true);
}

void
gpusort_external_mark(GsExternalSort *sort)
{
	tuplesort_markpos(sort->tuplesort);
}

void
gpusort_external_restore(GsExternalSort *sort)
{
	tuplesort_restorepos(sort->tuplesort);
}

void
gpusort_external_rescan(GsExternalSort *sort)
{
	tuplesort_rescan(sort->tuplesort);
}

void
gpusort_external_stats(GsExternalSort *sort, TuplesortInstrumentation *stats)
{
	tuplesort_get_stats(sort->tuplesort, stats);
}

void
gpusort_external_end(GsExternalSort *sort)
{
	ExecDropSingleTupleTableSlot(sort->slot);
	if (sort->in_slot != NULL)
		ExecDropSingleTupleTableSlot(sort->in_slot);
	ExecDropSingleTupleTableSlot(sort->out_slot);
	tuplesort_end(sort->tuplesort);
}
