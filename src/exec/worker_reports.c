/*-------------------------------------------------------------------------
 *
 * worker_reports.c
 *		What parallel workers report to their leader about a node.
 *
 * Each worker writes its own report, and then sets a flag that says so.  The
 * leader copies the reports when the workers are done and the shared memory is
 * about to be freed.  The flag of a worker that has not published a report is
 * not set.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "utils/memutils.h"

#include "exec/worker_reports.h"

struct GsWorkerReports
{
	int			nworkers;
	Size		slot_bytes;		/* size of a flag and a report, aligned */
	Size		report_bytes;
};

#define HEADER_BYTES	MAXALIGN(sizeof(GsWorkerReports))
#define FLAG_BYTES		MAXALIGN(sizeof(bool))

static bool *
flag_of_worker(const GsWorkerReports *reports, int worker)
{
	return (bool *) ((char *) reports + HEADER_BYTES +
					 worker * reports->slot_bytes);
}

static void *
report_of_worker(const GsWorkerReports *reports, int worker)
{
	return (char *) flag_of_worker(reports, worker) + FLAG_BYTES;
}

Size
gpusort_worker_reports_size(int nworkers, Size report_bytes)
{
	return add_size(HEADER_BYTES, mul_size(nworkers, FLAG_BYTES +
										   MAXALIGN(report_bytes)));
}

void
gpusort_worker_reports_init(GsWorkerReports *reports, int nworkers,
							Size report_bytes)
{
	memset(reports, 0, gpusort_worker_reports_size(nworkers, report_bytes));
	reports->nworkers = nworkers;
	reports->slot_bytes = FLAG_BYTES + MAXALIGN(report_bytes);
	reports->report_bytes = report_bytes;
}

void
gpusort_worker_reports_publish(GsWorkerReports *reports, const void *report)
{
	int			worker = ParallelWorkerNumber;

	Assert(worker >= 0 && worker < reports->nworkers);
	memcpy(report_of_worker(reports, worker), report, reports->report_bytes);
	pg_write_barrier();			/* who sees the flag sees the whole report */
	*flag_of_worker(reports, worker) = true;
}

GsWorkerReports *
gpusort_worker_reports_copy(GsWorkerReports *reports, MemoryContext context)
{
	GsWorkerReports *copy =
		MemoryContextAlloc(context,
						   gpusort_worker_reports_size(reports->nworkers,
													   reports->report_bytes));

	gpusort_worker_reports_init(copy, reports->nworkers, reports->report_bytes);
	for (int n = 0; n < reports->nworkers; n++)
	{
		*flag_of_worker(copy, n) = *flag_of_worker(reports, n);
		pg_read_barrier();
		memcpy(report_of_worker(copy, n), report_of_worker(reports, n),
			   reports->report_bytes);
	}
	return copy;
}

int
gpusort_worker_reports_count(const GsWorkerReports *reports)
{
	return reports != NULL ? reports->nworkers : 0;
}

const void *
gpusort_worker_reports_get(const GsWorkerReports *reports, int worker)
{
	if (!*flag_of_worker(reports, worker))
		return NULL;
	pg_read_barrier();			/* who sees the flag sees the whole report */
	return report_of_worker(reports, worker);
}
