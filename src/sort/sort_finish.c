/*-------------------------------------------------------------------------
 *
 * sort_finish.c
 *		The facade of a sort: sorts the rows after the last one.
 *
 * The rows of this process are sorted wherever they are, together with those of other processes
 * if there are any.  Then runs are merged.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"

#include "sort/gpu/gpu_session.h"
#include "sort/sort_private.h"
#include "work.h"

/* ----------------------------------------------------------------
 *		the rows of this process
 * ----------------------------------------------------------------
 */

/*
 * Sort the rows of a GPU session, to which no process adds rows any more.  Returns false if they
 * are lost.
 */
static bool
sort_session(GsSort *sort)
{
	if (!gpusort_gpu_rows_sort(&sort->gpu, sort->spec, false))
		return false;
	if (!gpusort_gpu_session_has_rest(sort->gpu.session))
		return true;
	if (!gpusort_sort_may_write_session(sort))
	{
		sort->failure = GS_REASON_DEVICE_MEMORY;
		return false;
	}
	if (sort->participant != NULL)
		gpusort_participant_spill(sort->participant);
	return true;
}

/*
 * A sorted session does not have all rows: have them in runs.  The process that has sorted it
 * writes those that the session has, and those that the device has refused.  Returns false if
 * they are lost.
 */
static bool
write_session(GsSort *sort, bool has_sorted)
{
	GsGpuSession *session = sort->gpu.session;

	if (sort->location == GS_ROWS_ON_GPU)
	{
		gpusort_cpu_sort_begin_runs(&sort->cpu, gpusort_gpu_session_has_rest(session) ?
									GS_REASON_DEVICE_MEMORY : GS_REASON_NONE);
		gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
	}
	gpusort_sort_show_phase(sort, GS_PHASE_WRITING_RUN);
	return !has_sorted ||
		(gpusort_gpu_rows_write(&sort->gpu, &sort->cpu) && gpusort_gpu_session_release(session));
}

/* The same in one process that has all rows. */
static bool
sort_session_alone(GsSort *sort)
{
	if (!sort_session(sort))
		return false;
	if (sort->location == GS_ROWS_ON_GPU && !gpusort_gpu_session_has_rest(sort->gpu.session))
		return true;
	return write_session(sort, true);
}

/* Sort the rows of a memory sort, on disk if there is not enough memory. */
static void
sort_memory(GsSort *sort)
{
	gpusort_cpu_sort_sort(&sort->cpu);
	if (sort->cpu.file != NULL)
		gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
}

/* Sort the rows of this process without those of others.  Returns false if they are lost. */
static bool
sort_apart(GsSort *sort)
{
	if (sort->gpu.session != NULL)
		return sort_session_alone(sort);
	if (sort->location == GS_ROWS_IN_MEMORY)
		sort_memory(sort);
	return true;
}

/* Have the rows of this process where they can be sorted.  Returns false if they are lost. */
static bool
prepare_rows(GsSort *sort)
{
	GsParticipant *participant = sort->participant;

	if (participant != NULL && participant->attached &&
		!gpusort_participant_wants_runs(participant))
		gpusort_sort_share_rows(sort);
	if (sort->location == GS_ROWS_ON_GPU && !gpusort_sort_flush_session(sort))
		return false;
	if (sort->location == GS_ROWS_IN_RUNS)
		gpusort_cpu_sort_write_rows(&sort->cpu);
	return true;
}

/* ----------------------------------------------------------------
 *		the rows of all processes
 *
 * team.h describes the phases in which they are sorted.  Of a pair, the first sort goes through
 * them, and each of its steps is one of both.
 * ----------------------------------------------------------------
 */

/* Does this process return rows?  In a team, the leader does, unless all of them do. */
static bool
returns_rows(const GsSort *sort)
{
	return sort->spec->team == NULL || sort->spec->group_keys > 0;
}

/* Rows of other processes are in runs.  Write those of this one, too, unless that has been done. */
static void
write_rows(GsSort *sort)
{
	if (sort->location == GS_ROWS_IN_MEMORY)
		gpusort_sort_write_memory(sort, GS_REASON_NONE);
	gpusort_sort_show_phase(sort, GS_PHASE_MERGING);
}

/* Has this process rows in memory that it may share?  Who has come after ADD has none. */
static bool
has_rows_to_share(const GsSort *sort)
{
	return sort->cpu.rows != NULL && sort->participant->phase == GS_TEAM_ADD &&
		!gpusort_participant_wants_runs(sort->participant);
}

/* At the end of ADD: let the others access the rows of this process. */
static void
publish_rows(GsSort *sort)
{
	/* Do not wait with that until all others have come so far. */
	if (gpusort_participant_wants_runs(sort->participant) && sort->location != GS_ROWS_ON_GPU)
		write_rows(sort);
	if (has_rows_to_share(sort) &&
		!gpusort_shared_member_publish(sort->participant->member, sort->cpu.rows))
		gpusort_participant_spill(sort->participant);
}

/* Returns what a sort, which may be NULL, has of the sort in memory. */
static GsSharedMember *
member_of(const GsSort *sort)
{
	return sort != NULL ? sort->participant->member : NULL;
}

/* PLACE.  One process has been 'chosen'.  Returns false if rows are lost. */
static bool
place_rows(GsSort *sort, bool chosen)
{
	if (sort->gpu.session != NULL)
		return !chosen || sort_session(sort);
	for (GsSort *s = sort; s != NULL; s = s->second)
		if (has_rows_to_share(s) &&
			!gpusort_shared_member_place(member_of(s), member_of(s->second), s->cpu.rows))
			gpusort_participant_spill(s->participant);
	return true;
}

/* SETTLE.  Returns false if rows are lost. */
static bool
settle_rows(GsSort *sort, bool chosen)
{
	if (sort->gpu.session != NULL && !write_session(sort, chosen))
		return false;
	for (GsSort *s = sort; s != NULL; s = s->second)
	{
		write_rows(s);
		gpusort_merge_reduce_runs(s->participant->merge, &s->cpu);
	}
	return true;
}

/* Returns what a sort, which may be NULL, has of the merge of runs. */
static GsMergeMember *
merger_of(const GsSort *sort)
{
	return sort != NULL ? sort->participant->merger : NULL;
}

/*
 * Begin READ of rows that are placed in memory, or of runs.  A worker whose leader reads all ranges
 * makes some, until none is left.
 */
static void
share_ranges(GsSort *sort)
{
	for (GsSort *s = sort; s != NULL; s = s->second)
	{
		s->ranges = merger_of(s) != NULL ?
			gpusort_merge_member_open(merger_of(s), merger_of(s->second)) :
			gpusort_shared_member_prepare(member_of(s), member_of(s->second), s->cpu.rows);
		gpusort_sort_set_location(s, GS_ROWS_SHARED);
	}
	if (sort->second != NULL)
		gpusort_ranges_pair(sort->ranges, sort->second->ranges);
	if (!returns_rows(sort))
		gpusort_ranges_make(sort->ranges);
}

/* In OPEN, when nobody has rows in memory: let the others find the runs of this process. */
static void
publish_runs(GsSort *sort)
{
	GsParticipant *participant = sort->participant;
	MemoryContext caller = MemoryContextSwitchTo(participant->context);

	participant->merger = gpusort_merge_member_create(participant->merge, sort->spec,
													  participant->target.files);
	if (participant->phase <= GS_TEAM_OPEN)
		gpusort_merge_member_publish(participant->merger, &sort->cpu);
	MemoryContextSwitchTo(caller);
}

/* The team is spilled: have all rows in runs, and merge these.  Returns false if rows are lost. */
static bool
merge_together(GsSort *sort, bool chosen)
{
	/*
	 * Nobody accesses the rows of others any more, so their memory can be
	 * freed.
	 */
	for (GsSort *s = sort; s != NULL; s = s->second)
		if (s->cpu.rows != NULL)
			gpusort_memory_sort_budget(s->cpu.rows)->published = false;
	if (sort->gpu.session == NULL && gpusort_participant_is_alone(sort->participant))
	{
		gpusort_participant_leave(sort->participant);
		return sort_apart(sort);
	}
	if (!settle_rows(sort, chosen) ||
		!gpusort_participant_end_phase(sort->participant, GS_TEAM_SETTLE, NULL))
		return false;
	for (GsSort *s = sort; s != NULL; s = s->second)
		publish_runs(s);
	if (!gpusort_participant_end_phase(sort->participant, GS_TEAM_OPEN, NULL))
		return false;
	gpusort_participant_leave(sort->participant);
	share_ranges(sort);
	return true;
}

/* Sort the rows of all processes together.  Returns false if rows are lost. */
static bool
sort_together(GsSort *sort)
{
	GsParticipant *participant = sort->participant;
	bool		chosen;

	for (GsSort *s = sort; s != NULL; s = s->second)
		publish_rows(s);
	if (!gpusort_participant_end_phase(participant, GS_TEAM_ADD, &chosen) ||
		!place_rows(sort, chosen) ||
		!gpusort_participant_end_phase(participant, GS_TEAM_PLACE, NULL))
		return false;
	if (gpusort_participant_wants_runs(participant))
		return merge_together(sort, chosen);
	gpusort_participant_leave(participant);
	if (sort->gpu.session != NULL)
		return chosen || !returns_rows(sort) || gpusort_gpu_rows_sort(&sort->gpu, sort->spec, true);
	share_ranges(sort);
	return true;
}

/*
 * Sort the rows, with those of other processes if there are any.  Returns false if they are lost.
 */
static bool
sort_rows(GsSort *sort)
{
	for (GsSort *s = sort; s != NULL; s = s->second)
		if (!prepare_rows(s))
			return false;
	if (sort->participant == NULL || !sort->participant->attached)
		return sort_apart(sort);
	gpusort_participant_add_dropped(sort->participant, sort->ndropped);
	if (sort_together(sort))
		return true;

	/* It may be another process that has lost rows. */
	if (sort->failure == GS_REASON_NONE)
		sort->failure = gpusort_team_failure(sort->participant->team);
	return false;
}

bool
gpusort_sort_end_adding(GsSort *sort)
{
	bool		kept;

	for (GsSort *s = sort; s != NULL; s = s->second)
	{
		s->drain_ms += gpusort_sort_lap_ms(s);
		gpusort_sort_show_phase(s, GS_PHASE_SORTING);
	}
	kept = gpusort_sort_lost_unless(sort, sort_rows(sort));
	for (GsSort *s = sort; s != NULL; s = s->second)
	{
		if (kept)
			gpusort_sort_enter(s, GS_SORT_SORTED);
		s->sort_ms += gpusort_sort_lap_ms(s);
	}
	return kept;
}

/* ----------------------------------------------------------------
 *		the sort as a whole
 * ----------------------------------------------------------------
 */

/* If rows have been dropped, return only those within the bound. */
static void
drop_last_rows(GsSort *sort)
{
	int64		unwanted = sort->nrows - sort->spec->bound;

	if (sort->ndropped > 0 && unwanted > 0)
	{
		sort->ndropped += unwanted;
		sort->nrows -= unwanted;
	}
}

/*
 * Rows that are merged together can be read only once, and forward.  Write them as a run, which
 * can be read again, and backward.
 */
static void
write_shared_rows(GsSort *sort)
{
	GsCpuSort  *cpu = &sort->cpu;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);

	gpusort_cpu_sort_begin_anew(cpu);
	gpusort_run_file_begin(cpu->file, true);
	for (int64 i = 0; i < sort->nrows; i++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_ranges_get(sort->ranges, i, slot->tts_values, slot->tts_isnull);
		gpusort_run_file_put(cpu->file, slot->tts_values, slot->tts_isnull);
	}
	gpusort_cpu_sort_end_run(cpu, 0);
	gpusort_cpu_sort_perform(cpu);
	ExecDropSingleTupleTableSlot(slot);
	gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
}

/* The processes have sorted their rows together. */
static void
read_shared_rows(GsSort *sort)
{
	if (!sort->spec->nested && sort->participant->merger != NULL)
		gpusort_cpu_sort_note_overflow(&sort->cpu,
									   gpusort_shared_merge_overflow(sort->participant->merge));
	if (sort->spec->group_keys > 0)
		return;					/* it is not known how many rows will be ours */
	sort->nrows = sort->ranges->nrows;
	sort->ndropped = gpusort_participant_dropped(sort->participant);
	drop_last_rows(sort);
	if (sort->participant->merger != NULL && sort->spec->random_access)
		write_shared_rows(sort);
}

/* No other process has rows. */
static void
read_own_rows(GsSort *sort)
{
	if (sort->location == GS_ROWS_ON_GPU)
		sort->nrows = gpusort_gpu_session_count(sort->gpu.session);
	else
	{
		if (sort->location == GS_ROWS_IN_RUNS)
			gpusort_sort_show_phase(sort, GS_PHASE_MERGING);
		gpusort_cpu_sort_perform(&sort->cpu);
		sort->nrows = gpusort_cpu_sort_count(&sort->cpu);
	}
	drop_last_rows(sort);
}

/* Prepare to read the rows, which are sorted. */
static void
begin_reading(GsSort *sort)
{
	if (sort->location == GS_ROWS_SHARED)
		read_shared_rows(sort);
	else if (sort->location == GS_ROWS_ON_GPU && sort->spec->group_keys > 0)
		sort->ranges = gpusort_participant_open_session(sort->participant, &sort->gpu);
	else
		read_own_rows(sort);
}

/* All rows of this process are sorted.  Read those of all processes in one order. */
static void
finish_rows(GsSort *sort)
{
	/* Each process has taken the rows that were refused. */
	if (sort->location != GS_ROWS_ON_GPU && sort->gpu.session != NULL &&
		gpusort_gpu_session_has_rest(sort->gpu.session))
		elog(ERROR, "rows of a sort are left in the pool");
	if (returns_rows(sort))
		begin_reading(sort);
	/* Nobody has written runs, so the memory for merging them is not needed. */
	if (sort->location == GS_ROWS_ON_GPU && sort->ranges == NULL)
		gpusort_sort_end_participant(sort);
	gpusort_sort_enter(sort, GS_SORT_READY);
	gpusort_sort_show_phase(sort, GS_PHASE_RETURNING);
	sort->progress->rows_sorted = sort->nrows + sort->ndropped;
	if (sort->nrows_lost >= 0 && sort->nrows_lost != sort->nrows + sort->ndropped)
		elog(ERROR, "input of a sort had " INT64_FORMAT " rows and then "
			 INT64_FORMAT, sort->nrows_lost, sort->nrows + sort->ndropped);
}

bool
gpusort_sort_finish(GsSort *sort)
{
	if (sort->state == GS_SORT_ADDING)
		(void) gpusort_sort_end_adding(sort);
	if (sort->state == GS_SORT_SORTED)
		finish_rows(sort);
	sort->sort_ms += gpusort_sort_lap_ms(sort);
	if (sort->state == GS_SORT_LOST)
	{
		if (returns_rows(sort))
			gpusort_sort_check_restart(sort);
		return false;
	}
	sort->sorted = true;
	if (returns_rows(sort))
	{
		gpusort_sort_begin_reading(sort);
		if (sort->counted)
			gpusort_sort_count_part(sort, true);
	}
	return true;
}
