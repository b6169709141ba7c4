/*-------------------------------------------------------------------------
 *
 * row_sharing.c
 *		What the processes of a parallel query sort together.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "sort/row_sharing.h"

/* In the leader: create the memory that the processes share.  Returns NULL if there is none. */
static GsSharedSort *
create_shared(const GsSortSpec *spec)
{
	Size		extra = gpusort_shared_merge_bytes(spec->processes);
	GsSharedSort *sort = gpusort_shared_sort_create(spec, spec->processes, extra);

	if (sort != NULL)
		memset(gpusort_shared_sort_extra(sort), 0, extra);
	return sort;
}

void
gpusort_row_sharing_begin(GsRowSharing *sharing, const GsSortSpec *spec,
						  MemoryContext parent)
{
	MemoryContext caller;

	memset(sharing, 0, sizeof(*sharing));
	sharing->spec = spec;
	if (spec->shared == NULL && spec->processes < 2)
		return;
	sharing->context = AllocSetContextCreate(parent, "pg_gpusort shared rows",
											 ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(sharing->context);
	sharing->sort = spec->shared != NULL ? spec->shared : create_shared(spec);
	if (sharing->sort != NULL)
	{
		sharing->member = gpusort_shared_member_create(sharing->sort, spec);
		sharing->merge =
			gpusort_shared_merge_find(gpusort_shared_sort_extra(sharing->sort));
	}
	MemoryContextSwitchTo(caller);
}

void
gpusort_row_sharing_end(GsRowSharing *sharing)
{
	if (sharing->merger != NULL)
		gpusort_merge_member_end(sharing->merger);
	if (sharing->context != NULL)
		MemoryContextDelete(sharing->context);
	memset(sharing, 0, sizeof(*sharing));
}

void
gpusort_row_sharing_allow_merge(GsRowSharing *sharing, GsRunSetHandle set)
{
	sharing->merge =
		gpusort_shared_merge_init(gpusort_shared_sort_extra(sharing->sort),
								  gpusort_shared_sort_budget(sharing->sort),
								  sharing->spec, set);
}

void
gpusort_row_sharing_only_merge(GsRowSharing *sharing)
{
	gpusort_shared_sort_refuse(sharing->sort);
}

void
gpusort_row_sharing_leave(GsRowSharing *sharing)
{
	if (sharing->merger != NULL)
		gpusort_merge_member_leave(sharing->merger);
}

bool
gpusort_row_sharing_attach(GsRowSharing *sharing)
{
	MemoryContext caller;

	if (sharing->sort == NULL)
		return true;
	caller = MemoryContextSwitchTo(sharing->context);
	if (sharing->merge != NULL)
		sharing->merger = gpusort_merge_member_create(sharing->merge,
													  sharing->spec);
	MemoryContextSwitchTo(caller);
	if (sharing->merge != NULL && sharing->merger == NULL)
		return false;
	if (gpusort_shared_member_attach(sharing->member))
		return true;
	if (sharing->merger != NULL)
		gpusort_merge_member_leave(sharing->merger);
	return false;
}

void
gpusort_row_sharing_refuse(GsRowSharing *sharing)
{
	if (sharing->member != NULL)
		gpusort_shared_member_refuse(sharing->member);
}

void
gpusort_row_sharing_give_up(GsRowSharing *sharing)
{
	if (sharing->member != NULL)
	{
		gpusort_shared_member_refuse(sharing->member);
		(void) gpusort_shared_member_sort(sharing->member, NULL);
	}
	if (sharing->merger != NULL)
		gpusort_merge_member_give_up(sharing->merger);
}

bool
gpusort_row_sharing_sort(GsRowSharing *sharing, GsMemorySort *rows)
{
	bool		sorted;

	if (sharing->member == NULL)
		return false;
	sorted = gpusort_shared_member_sort(sharing->member, rows);

	/* Memory that is still in use could not be had for merging. */
	if (sharing->merger != NULL &&
		(sorted || !gpusort_shared_sort_refused_early(sharing->sort)))
		gpusort_merge_member_leave(sharing->merger);
	return sorted;
}

bool
gpusort_row_sharing_wants_runs(GsRowSharing *sharing)
{
	if (sharing->merger == NULL)
		return false;
	if (gpusort_merge_member_has_others(sharing->merger))
		return true;

	/*
	 * Nobody must wait for us who comes later.  Nor may those who come later
	 * merge: they could be the leader, with the rows of the GPU, and a
	 * process without rows, and our rows would be missing.
	 */
	gpusort_merge_member_give_up(sharing->merger);
	return false;
}

bool
gpusort_row_sharing_merge(GsRowSharing *sharing, GsExternalSort *external,
						  GsFallback overflow)
{
	MemoryContext caller;

	if (sharing->merger == NULL)
		return false;
	caller = MemoryContextSwitchTo(sharing->context);
	sharing->merged = gpusort_merge_member_merge(sharing->merger, external,
												 overflow);
	MemoryContextSwitchTo(caller);
	return sharing->merged;
}

void
gpusort_row_sharing_read(GsRowSharing *sharing)
{
	MemoryContext caller = MemoryContextSwitchTo(sharing->context);

	sharing->ranges = sharing->merged ?
		gpusort_merge_member_read(sharing->merger) :
		gpusort_shared_member_read(sharing->member);
	MemoryContextSwitchTo(caller);
}

void
gpusort_row_sharing_stop(GsRowSharing *sharing)
{
	if (sharing->sort != NULL)
		gpusort_shared_sort_stop(sharing->sort);
	if (sharing->merge != NULL)
		gpusort_shared_merge_stop(sharing->merge);
}

/* ----------------------------------------------------------------
 *		reports
 *
 * A worker reports its own memory or files, and the leader those of all processes.
 * ----------------------------------------------------------------
 */

static void
report_sort(const GsRowSharing *sharing, const GsMemorySort *rows,
			GsSortReport *report)
{
	Size		bytes = sharing->spec->target != NULL ?
		gpusort_memory_sort_bytes(rows) :
		gpusort_shared_sort_bytes(sharing->sort);

	report->kind = GS_KIND_CPU;
	report->space = GS_SPACE_MEMORY;
	report->space_kb = (bytes + 1023) / 1024;
	report->range_rows = gpusort_shared_member_rows(sharing->member);
	report->fetch_ms = gpusort_shared_member_wait_ms(sharing->member);
	strlcpy(report->method, "cpu radix, shared", sizeof(report->method));
}

static void
report_merge(const GsRowSharing *sharing, GsSortReport *report)
{
	report->kind = GS_KIND_EXTERNAL;
	report->space = GS_SPACE_DISK;
	report->space_kb = sharing->spec->target != NULL ?
		gpusort_merge_member_kb(sharing->merger) :
		gpusort_shared_merge_kb(sharing->merge);
	report->range_rows = gpusort_merge_member_rows(sharing->merger);
	report->fetch_ms = gpusort_merge_member_wait_ms(sharing->merger);
	snprintf(report->method, sizeof(report->method), "%s, shared",
			 tuplesort_method_name(SORT_TYPE_EXTERNAL_MERGE));
}

void
gpusort_row_sharing_report(const GsRowSharing *sharing, const GsMemorySort *rows,
						   GsSortReport *report)
{
	report->fetches = true;
	if (sharing->merged)
		report_merge(sharing, report);
	else
		report_sort(sharing, rows, report);
}
