/*-------------------------------------------------------------------------
 *
 * sort_report.c
 *		Reports how the rows of a sort were sorted, and counts it in statistics.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/base/sort_stats.h"
#include "sort/sort_private.h"

static void
report_runs(const GsCpuSort *cpu, GsSortReport *report)
{
	report->kind = GS_KIND_EXTERNAL;
	report->space = GS_SPACE_DISK;
	report->space_kb = gpusort_external_kb(cpu->external);
	strlcpy(report->method, gpusort_external_method(cpu->external), sizeof(report->method));
}

/* For a GPU session, sort_ms is the time of the device itself. */
static void
report_gpu(const GsSort *sort, GsSortReport *report)
{
	GsGpuReport counts;

	gpusort_gpu_session_report(sort->gpu.session, &counts);
	report->kind = GS_KIND_GPU;
	report->space = GS_SPACE_DEVICE;
	report->space_kb = (counts.device_bytes + 1023) / 1024;
	report->sort_ms = counts.sort_ms;
	report->wait_ms = Max(sort->sort_ms - counts.sort_ms, 0);
	report->fetches = true;
	report->fetch_ms = counts.fetch_ms;
	strlcpy(report->method, "gpu onesweep", sizeof(report->method));
}

static void
report_memory(const GsSort *sort, GsSortReport *report)
{
	Size		bytes = gpusort_memory_sort_bytes(sort->cpu.rows);

	report->kind = GS_KIND_CPU;
	report->space = GS_SPACE_MEMORY;
	report->space_kb = (Max(bytes, sort->most_bytes) + 1023) / 1024;
	strlcpy(report->method,
			sort->ndropped > 0 ? "cpu radix, top-N" : "cpu radix",
			sizeof(report->method));
}

void
gpusort_sort_report(GsSort *sort, GsSortReport *report)
{
	memset(report, 0, sizeof(*report));
	report->fallback = sort->cpu.overflow;
	report->gpu_reason = sort->gpu_reason;
	report->drain_ms = sort->drain_ms;
	report->sort_ms = sort->sort_ms;
	switch (sort->location)
	{
		case GS_ROWS_ON_GPU:
			report_gpu(sort, report);
			break;
		case GS_ROWS_IN_MEMORY:
			report_memory(sort, report);
			break;
		case GS_ROWS_IN_RUNS:
			report_runs(&sort->cpu, report);
			break;
		case GS_ROWS_SHARED:
			gpusort_participant_report(sort->participant, sort->cpu.rows, report);
			break;
	}
}

/* Have other processes sorted rows, or added rows to the GPU session? */
static bool
is_parallel(const GsSort *sort)
{
	return sort->location == GS_ROWS_SHARED ||
		(sort->fed_by_others && sort->location == GS_ROWS_ON_GPU);
}

void
gpusort_sort_count_it(GsSort *sort)
{
	GsSortReport report;
	GsSortCounts counts = {.sorts = 1};

	if (!sort->counted)
		return;
	gpusort_sort_report(sort, &report);
	counts.rows = sort->nrows + sort->ndropped;
	counts.bytes = (uint64) report.space_kb * 1024;
	counts.drain_us = (uint64) (report.drain_ms * 1000);
	counts.sort_us = (uint64) ((report.wait_ms + report.sort_ms) * 1000);
	counts.parallel_sorts = is_parallel(sort);
	counts.page_scans = sort->spec->by_pages;
	gpusort_stats_count_sort(report.kind, &counts);
}
