/*-------------------------------------------------------------------------
 *
 * marked_rows.c
 *		Rows after a mark of a cursor, kept where reading them again is slow.
 *
 * The rows are in a row store.  Those of several marks follow each other there, since most
 * groups of a join have few rows, until the store has many rows or no memory for more.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/marked_rows.h"
#include "sort/memory/row_store.h"

#define CHUNK_SHIFT			6

/* A new mark begins a new store if the old one has this many rows. */
#define MANY_ROWS			4096

struct GsMarkedRows
{
	const GsSortSpec *spec;
	MemoryContext context;		/* of the store */
	GsRowStore *store;			/* NULL before the first mark */
	uint32		nrows;			/* in the store */
	bool		full;			/* has the store refused a row? */

	/*
	 * Positions first to end - 1 are kept, from number 'base' of the store
	 * on.
	 */
	int64		first;
	int64		end;
	uint32		base;
	bool		adding;			/* is the row at 'end' to be kept? */
};

GsMarkedRows *
gpusort_marked_rows_create(const GsSortSpec *spec)
{
	GsMarkedRows *marked = palloc0(sizeof(GsMarkedRows));

	marked->spec = spec;
	marked->context = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort marked rows",
											ALLOCSET_DEFAULT_SIZES);
	return marked;
}

static void
begin_store(GsMarkedRows *marked)
{
	MemoryContext caller;
	GsBudget   *budget;

	MemoryContextReset(marked->context);
	caller = MemoryContextSwitchTo(marked->context);
	budget = gpusort_budget_create(gpusort_sort_spec_marked_memory(marked->spec));
	marked->store = gpusort_row_store_create(budget, marked->spec, CHUNK_SHIFT);
	MemoryContextSwitchTo(caller);
	marked->nrows = 0;
	marked->full = false;
}

static inline bool
is_kept(const GsMarkedRows *marked, int64 position)
{
	return position >= marked->first && position < marked->end;
}

void
gpusort_marked_rows_restore(GsMarkedRows *marked, int64 position)
{
	/* With a store of its own, more of the group may be kept. */
	if (!is_kept(marked, position) || (marked->full && marked->base > 0))
	{
		if (marked->store == NULL || marked->full || marked->nrows >= MANY_ROWS)
			begin_store(marked);
		marked->first = marked->end = position;
		marked->base = marked->nrows;
	}
	marked->adding = true;
}

void
gpusort_marked_rows_stop(GsMarkedRows *marked)
{
	marked->adding = false;
}

bool
gpusort_marked_rows_get(const GsMarkedRows *marked, int64 position,
						Datum *values, bool *isnull)
{
	if (!is_kept(marked, position))
		return false;
	gpusort_row_store_get(marked->store,
						  marked->base + (uint32) (position - marked->first),
						  values, isnull);
	return true;
}

void
gpusort_marked_rows_add(GsMarkedRows *marked, int64 position,
						const Datum *values, const bool *isnull)
{
	if (!marked->adding || marked->full || position != marked->end)
		return;
	if (gpusort_row_store_put(marked->store, values, isnull))
	{
		marked->nrows++;
		marked->end++;
	}
	else
		marked->full = true;
}
