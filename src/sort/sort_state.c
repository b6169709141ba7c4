/*-------------------------------------------------------------------------
 *
 * sort_state.c
 *		The state of a sort, what it shows while it runs, and what it reports in the end.
 *
 * The other files of the facade call this when rows have moved or are lost, and when a phase
 * begins.  It raises an error if a move is not among those drawn in sort_private.h.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/tuplesort.h"

#include "sort/base/sort_stats.h"
#include "sort/sort_private.h"

/* May a sort go from one state to another?  See sort_private.h. */
static bool
is_next_state(GsSortState from, GsSortState to)
{
	switch (to)
	{
		case GS_SORT_ADDING:
			return from == GS_SORT_LOST;
		case GS_SORT_SORTED:
			return from == GS_SORT_ADDING;
		case GS_SORT_READY:
			return from == GS_SORT_SORTED;
		case GS_SORT_LOST:
			return true;
	}
	return false;
}

void
gpusort_sort_enter(GsSort *sort, GsSortState state)
{
	if (!is_next_state(sort->state, state))
		elog(ERROR, "a sort cannot go from state %d to %d", sort->state, state);
	sort->state = state;
}

/* Can rows move between these locations?  See sort_private.h. */
static bool
is_next_location(GsRowLocation from, GsRowLocation to)
{
	switch (to)
	{
		case GS_ROWS_ON_GPU:
		case GS_ROWS_IN_MEMORY:
			return false;
		case GS_ROWS_IN_RUNS:
			return true;
		case GS_ROWS_SHARED:
			return from == GS_ROWS_IN_MEMORY || from == GS_ROWS_IN_RUNS;
	}
	return false;
}

void
gpusort_sort_set_location(GsSort *sort, GsRowLocation location)
{
	if (!is_next_location(sort->location, location))
		elog(ERROR, "rows of a sort cannot move from location %d to %d",
			 sort->location, location);
	sort->location = location;
}

/* ----------------------------------------------------------------
 *		loss
 * ----------------------------------------------------------------
 */

bool
gpusort_sort_lost_unless(GsSort *sort, bool kept)
{
	if (kept)
		return true;
	gpusort_sort_enter(sort, GS_SORT_LOST);
	if (sort->participant != NULL)
		gpusort_participant_fail(sort->participant, gpusort_sort_loss(sort));
	return false;
}

GsReason
gpusort_sort_loss(const GsSort *sort)
{
	GsReason	reason = GS_REASON_NONE;

	if (sort->gpu.session != NULL)
		reason = gpusort_gpu_session_failure(sort->gpu.session);

	/*
	 * A session that is full has not lost its rows: then those of others are
	 * lost.
	 */
	if (sort->failure != GS_REASON_NONE &&
		(reason == GS_REASON_NONE || reason == GS_REASON_DEVICE_MEMORY))
		return sort->failure;
	return reason;
}

void
gpusort_sort_check_restart(GsSort *sort)
{
	GsReason	failure;

	if (gpusort_sort_spec_can_restart(sort->spec) &&
		(!sort->returned || sort->spec->index_build))
		return;
	failure = gpusort_sort_loss(sort);
	gpusort_stats_count_reason(failure);
	if (sort->sorted)
		gpusort_stats_count_error();
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 sort->returned ?
			 errmsg("could not read the remaining rows of a sort") :
			 errmsg("could not sort rows that cannot be read a second time"),
			 errdetail("The reason is \"%s\".", gpusort_reason_text(failure)),
			 errhint("The query might succeed if retried.")));
}

/* ----------------------------------------------------------------
 *		progress
 * ----------------------------------------------------------------
 */

double
gpusort_sort_lap_ms(GsSort *sort)
{
	instr_time	now;
	instr_time	lap;

	INSTR_TIME_SET_CURRENT(now);
	lap = now;
	INSTR_TIME_SUBTRACT(lap, sort->lap_start);
	sort->lap_start = now;
	return INSTR_TIME_GET_MILLISEC(lap);
}

const GsProgress *
gpusort_sort_progress(const GsSort *sort)
{
	return sort->progress;
}

void
gpusort_sort_show_space(GsSort *sort)
{
	GsProgress *progress = sort->progress;
	GsGpuReport gpu = {0};

	if (sort->location == GS_ROWS_ON_GPU)
		gpusort_gpu_session_report(sort->gpu.session, &gpu);
	progress->memory_bytes = sort->cpu.rows == NULL ? 0 :
		gpusort_memory_sort_bytes(sort->cpu.rows);
	progress->devices = gpu.devices;
	progress->device_bytes = gpu.device_bytes;
	progress->file_bytes = sort->cpu.file == NULL ? 0 :
		gpusort_run_file_kb(sort->cpu.file) * 1024;
}

void
gpusort_sort_show_phase(GsSort *sort, GsProgressPhase phase)
{
	gpusort_sort_show_space(sort);
	sort->progress->phase = phase;
}

/* ----------------------------------------------------------------
 *		report and statistics
 * ----------------------------------------------------------------
 */

static void
report_runs(const GsCpuSort *cpu, GsSortReport *report)
{
	report->kind = GS_KIND_EXTERNAL;
	report->space_kb = gpusort_run_file_kb(cpu->file);
	strlcpy(report->method, tuplesort_method_name(cpu->cursor != NULL ? SORT_TYPE_EXTERNAL_SORT :
												  SORT_TYPE_EXTERNAL_MERGE),
			sizeof(report->method));
}

/* For a GPU session, sort_ms is the time of the device itself. */
static void
report_gpu(const GsSort *sort, GsSortReport *report)
{
	GsGpuReport counts;

	gpusort_gpu_session_report(sort->gpu.session, &counts);
	report->kind = GS_KIND_GPU;
	report->space_kb = (counts.device_bytes + 1023) / 1024;
	report->sort_ms = counts.sort_ms;
	report->wait_ms = Max(sort->sort_ms - counts.sort_ms, 0);
	report->fetches = true;
	report->fetch_ms = counts.fetch_ms;
	strlcpy(report->method, "gpu onesweep", sizeof(report->method));
}

/* Returns how rows in memory are sorted, as EXPLAIN names it. */
static const char *
memory_method(const GsSort *sort)
{
	if (gpusort_key_plan_is_distrusted(sort->spec->key_plan))
		return "cpu comparisons";
	return sort->ndropped > 0 ? "cpu radix, top-N" : "cpu radix";
}

static void
report_memory(const GsSort *sort, GsSortReport *report)
{
	Size		bytes = gpusort_memory_sort_bytes(sort->cpu.rows);

	report->kind = GS_KIND_CPU;
	report->space_kb = (Max(bytes, sort->most_bytes) + 1023) / 1024;
	strlcpy(report->method, memory_method(sort), sizeof(report->method));
}

/* The leader reports the memory or files of all processes. */
static void
report_shared(const GsSort *sort, GsSortReport *report)
{
	const GsParticipant *participant = sort->participant;

	report->fetches = true;
	report->fetch_ms = sort->ranges->wait_ms;
	if (participant->merger != NULL)
		gpusort_merge_member_report(participant->merger, report);
	else
		gpusort_shared_member_report(participant->member, sort->cpu.rows, report);
}

void
gpusort_sort_report(GsSort *sort, GsSortReport *report)
{
	memset(report, 0, sizeof(*report));
	report->fallback = gpusort_key_plan_is_distrusted(sort->spec->key_plan) ?
		GS_REASON_WRONG_ORDER : sort->cpu.overflow;
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
			report_shared(sort, report);
			break;
	}
	if (sort->spec->group_keys > 0 && sort->ranges != NULL)
	{
		report->divided = true;
		report->ranges = sort->ranges->nown;
		report->returned = Min(sort->position, sort->nrows);
	}
}

/* Have other processes sorted rows, or added rows to the GPU session? */
static bool
is_parallel(const GsSort *sort)
{
	return sort->location == GS_ROWS_SHARED ||
		(sort->location == GS_ROWS_ON_GPU && sort->together);
}

void
gpusort_sort_count_part(GsSort *sort, bool first)
{
	GsSortReport report;
	GsSortCounts counts = {.sorts = first ? 1 : 0};

	gpusort_sort_report(sort, &report);
	/* This process need not return all of them. */
	counts.rows = sort->spec->group_keys > 0 && sort->ranges != NULL ?
		sort->ranges->nrows : sort->nrows;
	counts.rows += sort->ndropped;
	counts.bytes = (uint64) report.space_kb * 1024;
	counts.drain_us = (uint64) (report.drain_ms * 1000);
	counts.sort_us = (uint64) ((report.wait_ms + report.sort_ms) * 1000);
	counts.parallel_sorts = is_parallel(sort);
	counts.page_scans = sort->spec->by_pages;
	gpusort_stats_count_sort(report.kind, &counts);
}
