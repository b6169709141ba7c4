/*-------------------------------------------------------------------------
 *
 * input_report.c
 *		Reports how the rows of an input were sorted.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/input_report.h"

static void
report_runs(const GsRowRuns *runs, GsSortReport *report)
{
	/* If all processes sorted in memory, merging their runs is no overflow. */
	bool		memory = runs->overflow == GS_FALLBACK_NONE;

	report->kind = memory ? GS_KIND_CPU : GS_KIND_EXTERNAL;
	report->space = GS_SPACE_DISK;
	report->space_kb = gpusort_external_kb(runs->external);
	strlcpy(report->method, memory ? "cpu radix, merged" :
			gpusort_external_method(runs->external),
			sizeof(report->method));
}

static void
report_gpu(const GsGpuSession *session, GsSortReport *report)
{
	GsGpuReport counts;

	gpusort_gpu_session_report(session, &counts);
	report->kind = GS_KIND_GPU;
	report->space = GS_SPACE_DEVICE;
	report->space_kb = (counts.device_bytes + 1023) / 1024;
	report->sort_ms = counts.sort_ms;
	report->fetches = true;
	report->fetch_ms = counts.fetch_ms;
	strlcpy(report->method, "gpu onesweep", sizeof(report->method));
}

static void
report_memory(const GsInputSort *sort, GsSortReport *report)
{
	Size		bytes = gpusort_memory_sort_bytes(sort->sorter.cpu);

	report->kind = GS_KIND_CPU;
	report->space = GS_SPACE_MEMORY;
	report->space_kb = (Max(bytes, sort->most_bytes) + 1023) / 1024;
	strlcpy(report->method,
			sort->ndropped > 0 ? "cpu radix, top-N" : "cpu radix",
			sizeof(report->method));
}

void
gpusort_input_report_fill(const GsInputSort *sort, GsSortReport *report)
{
	memset(report, 0, sizeof(*report));
	report->fallback = sort->runs.overflow;
	report->gpu_reason = sort->gpu_reason;
	switch (sort->location)
	{
		case GS_ROWS_ON_GPU:
			report_gpu(sort->sorter.gpu, report);
			break;
		case GS_ROWS_IN_MEMORY:
			report_memory(sort, report);
			break;
		case GS_ROWS_IN_RUNS:
			report_runs(&sort->runs, report);
			break;
		case GS_ROWS_SHARED:
			gpusort_row_sharing_report(&sort->sharing, sort->sorter.cpu, report);
			break;
	}
}
