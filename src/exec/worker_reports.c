/*-------------------------------------------------------------------------
 *
 * worker_reports.c
 *		What parallel workers report to their leader about a GpuSort or a sink.
 *
 * Each worker writes its own report, and then sets a flag that says so.  The
 * leader copies the reports when the workers are done and the shared memory is
 * about to be freed.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "utils/memutils.h"

#include "exec/worker_reports.h"

Size
gpusort_worker_reports_size(int nworkers)
{
	return add_size(offsetof(GsWorkerReports, workers),
					mul_size(nworkers, sizeof(GsWorkerReport)));
}

void
gpusort_worker_reports_init(GsWorkerReports *reports, int nworkers)
{
	memset(reports, 0, gpusort_worker_reports_size(nworkers));
	reports->nworkers = nworkers;
}

void
gpusort_worker_reports_publish(GsWorkerReports *reports, const GsProducerReport *report)
{
	GsWorkerReport *own = &reports->workers[ParallelWorkerNumber];

	Assert(ParallelWorkerNumber >= 0 && ParallelWorkerNumber < reports->nworkers);
	own->report = *report;
	pg_write_barrier();			/* who sees the flag sees the whole report */
	own->published = true;
}

const GsProducerReport *
gpusort_worker_reports_get(const GsWorkerReports *reports, int worker)
{
	if (!reports->workers[worker].published)
		return NULL;
	pg_read_barrier();			/* who sees the flag sees the whole report */
	return &reports->workers[worker].report;
}

GsWorkerReports *
gpusort_worker_reports_copy(GsWorkerReports *reports, MemoryContext context)
{
	Size		size = gpusort_worker_reports_size(reports->nworkers);
	GsWorkerReports *copy = MemoryContextAlloc(context, size);

	gpusort_worker_reports_init(copy, reports->nworkers);
	for (int n = 0; n < reports->nworkers; n++)
	{
		const GsProducerReport *report = gpusort_worker_reports_get(reports, n);

		if (report == NULL)
			continue;
		copy->workers[n].published = true;
		copy->workers[n].report = *report;
	}
	return copy;
}
