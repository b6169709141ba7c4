/*-------------------------------------------------------------------------
 *
 * gpu_rows.c
 *		The rows of a sort in a GPU session, with ties in the order of the comparators.
 *
 * A row sorter opens a session here, and adds rows to it directly.  After sorting, rows are
 * read from the session, or through gpu_ties.c if their encoded keys are not exact.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/gpu/gpu_producers.h"
#include "sort/gpu/gpu_rows.h"

struct GsGpuRows
{
	const GsSortSpec *spec;
	MemoryContext context;
	GsGpuSession *session;
	GsGpuTies  *ties;			/* NULL before sorting, or if keys are exact */
};

GsGpuRows *
gpusort_gpu_rows_create(const GsSortSpec *spec, GsFallback *reason)
{
	GsGpuSession *session = gpusort_gpu_session_create(spec, reason);
	GsGpuRows  *rows;

	if (session == NULL)
		return NULL;
	rows = palloc0(sizeof(GsGpuRows));
	rows->spec = spec;
	rows->context = CurrentMemoryContext;
	rows->session = session;
	return rows;
}

GsClientHandle
gpusort_gpu_rows_handle(GsGpuRows *rows)
{
	return gpusort_gpu_session_handle(rows->session);
}

GsGpuSession *
gpusort_gpu_rows_session(const GsGpuRows *rows)
{
	return rows->session;
}

GsFallback
gpusort_gpu_rows_failure(const GsGpuRows *rows)
{
	return gpusort_gpu_session_failure(rows->session);
}

bool
gpusort_gpu_rows_sort(GsGpuRows *rows)
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);

	rows->ties = gpusort_gpu_ties_create(rows->spec, rows->session);
	MemoryContextSwitchTo(caller);
	return gpusort_gpu_session_sort(rows->session);
}

int64
gpusort_gpu_rows_count(const GsGpuRows *rows)
{
	return gpusort_gpu_session_count(rows->session);
}

bool
gpusort_gpu_rows_get(GsGpuRows *rows, int64 position, Datum *values, bool *isnull)
{
	if (unlikely(rows->ties != NULL))
		return gpusort_gpu_ties_get(rows->ties, position, values, isnull);
	return gpusort_gpu_session_get(rows->session, position, values, isnull);
}

bool
gpusort_gpu_rows_is_near(const GsGpuRows *rows, int64 position)
{
	return rows->ties != NULL ? gpusort_gpu_ties_is_near(rows->ties, position) :
		gpusort_gpu_session_is_near(rows->session, position);
}

bool
gpusort_gpu_rows_in_place(GsGpuRows *rows, int64 position, GsRowsInPlace *in_place)
{
	return rows->ties != NULL ? gpusort_gpu_ties_in_place(rows->ties, position, in_place) :
		gpusort_gpu_session_in_place(rows->session, position, in_place);
}

void
gpusort_gpu_rows_end(GsGpuRows *rows)
{
	if (rows->ties != NULL)
		gpusort_gpu_ties_end(rows->ties);
	rows->ties = NULL;
}
