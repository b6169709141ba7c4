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
	if (!gpusort_gpu_rows_sort(&sort->gpu, sort->spec))
		return false;
	if (!gpusort_gpu_session_has_rest(sort->gpu.session))
		return true;
	if (!gpusort_sort_may_write_session(sort))
	{
		sort->failure = GS_FALLBACK_DEVICE_MEMORY;
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
									GS_FALLBACK_DEVICE_MEMORY : GS_FALLBACK_NONE);
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
	if (sort->cpu.external != NULL)
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

/* Rows of other processes are in runs.  Write those of this one, too, unless that has been done. */
static void
settle(GsSort *sort)
{
	if (sort->location == GS_ROWS_IN_MEMORY)
		gpusort_sort_write_memory(sort, GS_FALLBACK_NONE);
	gpusort_sort_show_phase(sort, GS_PHASE_MERGING);
}

/* All processes sort their rows together. */
static void
set_shared(GsSort *sort)
{
	for (GsSort *s = sort; s != NULL; s = s->second)
		gpusort_sort_set_location(s, GS_ROWS_SHARED);
}

/* Write them, and merge the runs of all processes. */
static bool
merge_together(GsSort *sort)
{
	GsTogether	together;

	for (GsSort *s = sort; s != NULL; s = s->second)
	{
		settle(s);
		gpusort_participant_offer_runs(s->participant, s->cpu.external, s->cpu.overflow);
	}
	together = gpusort_participant_merge(sort->participant);
	if (together == GS_TOGETHER_IN_RUNS)
		set_shared(sort);
	return together != GS_TOGETHER_LOST;
}

/* Offer the rows of this process to the others. */
static void
offer_rows(GsSort *sort)
{
	/* Do not wait with that until all others have come so far. */
	if (gpusort_participant_wants_runs(sort->participant))
		settle(sort);
	gpusort_participant_offer(sort->participant, sort->cpu.rows);
}

/* Sort the rows of all processes together.  Returns false if they are lost. */
static bool
sort_together(GsSort *sort)
{
	for (GsSort *s = sort; s != NULL; s = s->second)
		offer_rows(s);

	switch (gpusort_participant_place(sort->participant))
	{
		case GS_TOGETHER_IN_MEMORY:
			set_shared(sort);
			return true;
		case GS_TOGETHER_IN_RUNS:
			return merge_together(sort);
		case GS_APART:
			return sort_apart(sort);
		case GS_TOGETHER_ON_GPU:
		case GS_TOGETHER_LOST:
			break;
	}
	return false;
}

/* Does this process return rows?  In a team, the leader does, unless all of them do. */
static bool
returns_rows(const GsSort *sort)
{
	return sort->spec->team == NULL || sort->spec->group_keys > 0;
}

/* ----------------------------------------------------------------
 *		a GPU session of all processes
 * ----------------------------------------------------------------
 */

/* All rows of this process have been put, or are in runs.  Returns false if rows are lost. */
static bool
sort_in_session(GsSort *sort)
{
	bool		chosen;

	if (sort->location == GS_ROWS_IN_RUNS)
		gpusort_sort_show_phase(sort, GS_PHASE_MERGING);
	if (!gpusort_participant_end_adding(sort->participant, &chosen) ||
		(chosen && !sort_session(sort)))
		return false;
	switch (gpusort_participant_end_sorting(sort->participant))
	{
		case GS_TOGETHER_ON_GPU:
			return chosen || !returns_rows(sort) ||
				gpusort_gpu_rows_join(&sort->gpu, sort->spec);
		case GS_TOGETHER_IN_RUNS:
			return write_session(sort, chosen) && merge_together(sort);
		default:
			return false;
	}
}

/* The same, and sets sort->failure if the reason is known. */
static bool
sort_session_together(GsSort *sort)
{
	if (sort_in_session(sort))
		return true;

	/*
	 * It may be another process that has noticed.  In a sort with
	 * spec->group_keys, nobody will say why.
	 */
	if (sort->failure == GS_FALLBACK_NONE && sort->spec->group_keys > 0)
		sort->failure = GS_FALLBACK_SERVICE_LOST;
	return false;
}

/* ----------------------------------------------------------------
 *		all rows of this process
 * ----------------------------------------------------------------
 */

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

/* Sort the rows of this process.  Returns false if they are lost. */
static bool
sort_rows(GsSort *sort)
{
	for (GsSort *s = sort; s != NULL; s = s->second)
		if (!prepare_rows(s))
			return false;
	if (sort->participant == NULL)
		return sort_apart(sort);
	gpusort_participant_add_dropped(sort->participant, sort->ndropped);
	if (sort->gpu.session != NULL && sort->participant->attached)
		return sort_session_together(sort);
	return sort_together(sort);
}

/* The last row of this process has been added: sort them.  Returns false if they are lost. */
static bool
end_adding(GsSort *sort)
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

bool
gpusort_sort_end_adding(GsSort *sort, bool *ahead)
{
	if (!end_adding(sort))
		return false;
	*ahead = sort->location == GS_ROWS_SHARED;
	return true;
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
	gpusort_external_begin_run(cpu->external);
	for (int64 i = 0; i < sort->nrows; i++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_range_reader_get(sort->ranges, i, slot->tts_values, slot->tts_isnull);
		gpusort_external_put(cpu->external, slot->tts_values, slot->tts_isnull);
	}
	gpusort_external_read_run(cpu->external);
	ExecDropSingleTupleTableSlot(slot);
	gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
}

/* The processes have sorted their rows together. */
static void
read_shared_rows(GsSort *sort)
{
	sort->ranges = gpusort_participant_read(sort->participant);
	if (!sort->spec->nested)
		gpusort_cpu_sort_note_overflow(&sort->cpu,
									   gpusort_participant_overflow(sort->participant));
	if (sort->spec->group_keys > 0)
		return;					/* it is not known how many rows will be ours */
	sort->nrows = sort->ranges->nrows;
	sort->ndropped = gpusort_participant_dropped(sort->participant);
	drop_last_rows(sort);
	if (sort->participant->merged && sort->spec->random_access)
		write_shared_rows(sort);
}

/* The processes read a GPU session together. */
static void
read_session(GsSort *sort)
{
	sort->gpu_ranges = gpusort_participant_share_session(sort->participant, &sort->gpu);
	sort->ranges = gpusort_participant_read(sort->participant);
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
		read_session(sort);
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
		(void) end_adding(sort);
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
		gpusort_sort_begin_check(sort);
		gpusort_sort_count_it(sort);
	}
	return true;
}
