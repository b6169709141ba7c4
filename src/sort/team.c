/*-------------------------------------------------------------------------
 *
 * team.c
 *		Processes that sort together: who waits for whom.
 *
 * All waiting before rows are read is in this file; team.h describes its phases.  The flags of a
 * team are only ever set, and who sets one arrives or detaches after that.  So those who have
 * waited for it see the flag.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "storage/barrier.h"
#include "storage/condition_variable.h"
#include "utils/memutils.h"

#include "service/fault.h"
#include "sort/team.h"

/* The phases of the barrier.  Unless the team is spilled, READ follows PLACE. */
enum
{
	PHASE_ADD,
	PHASE_PLACE,
	PHASE_SETTLE,
	PHASE_OPEN
};

struct GsTeam
{
	GsSharedBudget budget;		/* must be first */
	GsTeam	   *first;			/* the team whose barrier and flags are used:
								 * this one, or the first one of a pair; set
								 * before others start */
	Barrier		barrier;
	unsigned	string_words;	/* in all key plans */
	int			processes;
	pg_atomic_uint32 nattached; /* processes that have taken part in ADD */
	ConditionVariable attached; /* one more has */
	pg_atomic_uint32 spilled;	/* are rows of any process not in memory? */
	pg_atomic_uint32 failed;	/* are rows of any process missing? */
	pg_atomic_uint64 ndropped;	/* rows beyond the bound */
	GsRunSetHandle files;		/* with all runs; set before others start */
	GsSharedRanges *ranges;		/* follows the struct */
	GsSharedSort *sort;			/* follows that */
	GsSharedMerge *merge;		/* follows that */
};

static bool
is_set(const pg_atomic_uint32 *flag)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) flag) != 0;
}

/* ----------------------------------------------------------------
 *		the team
 * ----------------------------------------------------------------
 */

/* In the leader: create a team, in the current memory context.  Returns NULL without memory. */
static GsTeam *
create_team(const GsSortSpec *spec)
{
	int			processes = spec->processes;
	Size		limit = mul_size(gpusort_sort_spec_memory(spec), processes);
	Size		sort_at = MAXALIGN(sizeof(GsTeam)) + gpusort_shared_ranges_size();
	Size		merge_at = sort_at + gpusort_shared_sort_size(processes);
	GsTeam	   *team = (GsTeam *)
		gpusort_budget_create_group(limit, merge_at + gpusort_shared_merge_size(processes));

	if (team == NULL)
		return NULL;
	memset((char *) team + sizeof(GsSharedBudget), 0,
		   sizeof(GsTeam) - sizeof(GsSharedBudget));
	team->first = team;
	BarrierInit(&team->barrier, 0);
	team->string_words = gpusort_key_plan_string_words(spec->key_plan);
	team->processes = processes;
	pg_atomic_init_u32(&team->nattached, 0);
	ConditionVariableInit(&team->attached);
	pg_atomic_init_u32(&team->spilled, 0);
	pg_atomic_init_u32(&team->failed, 0);
	pg_atomic_init_u64(&team->ndropped, 0);
	team->ranges = gpusort_shared_ranges_init((char *) team + MAXALIGN(sizeof(GsTeam)));
	team->sort = gpusort_shared_sort_init((char *) team + sort_at, &team->budget,
										  team->ranges, spec);
	team->merge = gpusort_shared_merge_init((char *) team + merge_at, &team->budget,
											team->ranges, spec);
	return team;
}

unsigned
gpusort_team_string_words(const GsTeam *team)
{
	return team->string_words;
}

/* Attach to the barrier.  Returns its phase. */
static int
attach(GsTeam *team)
{
	int			phase;

	if (IsParallelWorker() && ParallelWorkerNumber != 0)
		gpusort_fault_host_late();
	phase = BarrierAttach(&team->barrier);
	if (phase == PHASE_ADD)
	{
		pg_atomic_fetch_add_u32(&team->nattached, 1);
		ConditionVariableBroadcast(&team->attached);
	}
	return phase;
}

/* ----------------------------------------------------------------
 *		participants
 * ----------------------------------------------------------------
 */

/* Do all participants return rows, and not only the leader? */
static bool
returns_rows(const GsParticipant *participant)
{
	return participant->spec->group_keys > 0;
}

/* Write runs to the files of the team. */
static void
set_files(GsParticipant *participant)
{
	participant->target.set = participant->team->files;
	participant->target.producer = participant->spec->process;
}

GsParticipant *
gpusort_participant_begin(const GsSortSpec *spec, MemoryContext parent)
{
	MemoryContext context;
	MemoryContext caller;
	GsParticipant *participant = NULL;
	GsTeam	   *team;

	if (spec->team == NULL && spec->processes < 2)
		return NULL;
	context = AllocSetContextCreate(parent, "pg_gpusort team", ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(context);
	team = spec->team != NULL ? spec->team : create_team(spec);
	if (team != NULL)
	{
		participant = palloc0(sizeof(GsParticipant));
		participant->team = team;
		participant->spec = spec;
		participant->context = context;
		set_files(participant);
		participant->member = gpusort_shared_member_create(team->sort, spec);
	}
	MemoryContextSwitchTo(caller);
	if (participant == NULL)
		MemoryContextDelete(context);
	return participant;
}

void
gpusort_participant_close(GsParticipant *participant)
{
	if (participant->merger != NULL)
		gpusort_merge_member_end(participant->merger);
	participant->merger = NULL;
}

void
gpusort_participant_end(GsParticipant *participant)
{
	gpusort_participant_close(participant);
	MemoryContextDelete(participant->context);
}

void
gpusort_participants_pair(GsParticipant *first, GsParticipant *second)
{
	first->second = second;
	gpusort_shared_members_pair(first->member, second->member);
	if (second->spec->team == NULL)
		second->team->first = first->team;
}

void
gpusort_participant_open(GsParticipant *participant)
{
	MemoryContext caller = MemoryContextSwitchTo(participant->context);

	participant->team->files = gpusort_run_set_handle(gpusort_run_set_create());
	MemoryContextSwitchTo(caller);
	set_files(participant);
	if (!returns_rows(participant) && !gpusort_participant_attach(participant))
		elog(ERROR, "other processes have begun to sort before their leader");
}

/* Is any other process attached, or has been? */
static bool
has_others(const GsTeam *team)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &team->nattached) > 1;
}

/*
 * A process that comes after ADD concludes that all rows have been read, and this one has not
 * seen the end of the input.  So ADD must not end before one has come that reads it.
 */
void
gpusort_participant_await_others(GsParticipant *participant)
{
	GsTeam	   *team = participant->team;

	while (!has_others(team))
		ConditionVariableSleep(&team->attached, gpusort_shared_wait_event());
	ConditionVariableCancelSleep();
}

bool
gpusort_participant_attach(GsParticipant *participant)
{
	GsTeam	   *team = participant->team;
	int			phase;

	if (participant->attached)
		return true;			/* the leader, since it has opened the team */
	phase = attach(team);
	participant->attached = phase == PHASE_ADD || returns_rows(participant);
	if (!participant->attached)
		BarrierDetach(&team->barrier);
	participant->phase = phase;
	if (participant->second != NULL)
		participant->second->phase = phase;
	return phase == PHASE_ADD;
}

int
gpusort_participant_processes(const GsParticipant *participant)
{
	return participant->team->processes;
}

void
gpusort_participant_leave(GsParticipant *participant)
{
	if (participant->attached)
		BarrierDetach(&participant->team->barrier);
	participant->attached = false;
}

void
gpusort_participant_fail(GsParticipant *participant)
{
	if (participant->attached)
		pg_atomic_write_u32(&participant->team->failed, 1);
	gpusort_participant_leave(participant);
}

void
gpusort_participant_spill(GsParticipant *participant)
{
	pg_atomic_write_u32(&participant->team->first->spilled, 1);
}

bool
gpusort_participant_wants_runs(const GsParticipant *participant)
{
	return is_set(&participant->team->first->spilled);
}

void
gpusort_participant_add_dropped(GsParticipant *participant, int64 nrows)
{
	pg_atomic_fetch_add_u64(&participant->team->ndropped, nrows);
}

int64
gpusort_participant_dropped(const GsParticipant *participant)
{
	return (int64) pg_atomic_read_u64(&participant->team->ndropped);
}

/* ----------------------------------------------------------------
 *		the phases
 * ----------------------------------------------------------------
 */

/*
 * End a phase, unless this participant has come later.  Returns false if rows are missing; then it
 * has left.  Sets *chosen in one of those that have not come later.
 */
static bool
end_phase_and_choose(GsParticipant *participant, int phase, bool *chosen)
{
	GsTeam	   *team = participant->team;

	*chosen = participant->phase <= phase &&
		BarrierArriveAndWait(&team->barrier, gpusort_shared_wait_event());
	if (!is_set(&team->failed))
		return true;
	gpusort_participant_leave(participant);
	return false;
}

static bool
end_phase(GsParticipant *participant, int phase)
{
	bool		chosen;

	return end_phase_and_choose(participant, phase, &chosen);
}

/* End ADD: let the others access the rows of this process. */
static bool
publish_rows(GsParticipant *participant)
{
	for (GsParticipant *p = participant; p != NULL; p = p->second)
		if (p->phase == PHASE_ADD && p->rows != NULL && !gpusort_participant_wants_runs(p) &&
			!gpusort_shared_member_publish(p->member, p->rows))
			gpusort_participant_spill(p);
	return end_phase(participant, PHASE_ADD);
}

/* End PLACE. */
static bool
place_rows(GsParticipant *participant)
{
	for (GsParticipant *p = participant; p != NULL; p = p->second)
		if (p->phase <= PHASE_PLACE && !gpusort_participant_wants_runs(p) &&
			!gpusort_shared_member_place(p->member, p->rows))
			gpusort_participant_spill(p);
	return end_phase(participant, PHASE_PLACE);
}

/* End ADD and PLACE, in a process that is attached. */
static GsTogether
end_adding(GsParticipant *participant)
{
	GsTeam	   *team = participant->team;

	if (!publish_rows(participant))
		return GS_TOGETHER_LOST;
	if (!place_rows(participant))
		return GS_TOGETHER_LOST;
	if (!is_set(&team->spilled))
	{
		gpusort_participant_leave(participant);
		return GS_TOGETHER_IN_MEMORY;
	}

	/* Those who come later have no rows, but may return some. */
	if (has_others(team) || returns_rows(participant))
		return GS_TOGETHER_IN_RUNS;
	gpusort_participant_leave(participant);
	return GS_APART;
}

/*
 * Sort or merge ranges in a worker, until none is left.  The leader reads them later.  If each
 * participant returns rows, it does this then.
 */
static void
make_ranges(GsParticipant *participant)
{
	if (participant->second != NULL)
		gpusort_range_makers_pair(participant->maker, participant->second->maker);
	if (participant->spec->team != NULL && !returns_rows(participant))
		gpusort_range_maker_run(participant->maker);
}

void
gpusort_participant_offer(GsParticipant *participant, GsMemorySort *rows)
{
	participant->rows = rows;
}

void
gpusort_participant_offer_runs(GsParticipant *participant, GsExternalSort *external,
							   GsFallback overflow)
{
	gpusort_merge_reduce_runs(participant->team->merge, external);
	participant->external = external;
	participant->overflow = overflow;
}

/* All rows have been placed: sort them together. */
static void
sort_ranges(GsParticipant *participant)
{
	for (GsParticipant *p = participant; p != NULL; p = p->second)
		p->maker = gpusort_shared_member_prepare(p->member, p->rows);
	make_ranges(participant);
}

/* They will not be: nobody accesses them any more, so their memory can be freed. */
static void
take_rows_back(GsParticipant *participant)
{
	for (GsParticipant *p = participant; p != NULL; p = p->second)
		if (p->rows != NULL)
			gpusort_budget_set_published(gpusort_memory_sort_budget(p->rows), false);
}

GsTogether
gpusort_participant_place(GsParticipant *participant)
{
	MemoryContext caller;
	GsTogether	together;

	/* There are no other processes. */
	if (!participant->attached)
		return GS_APART;
	caller = MemoryContextSwitchTo(participant->context);
	together = end_adding(participant);
	if (together == GS_TOGETHER_IN_MEMORY)
		sort_ranges(participant);
	else
		take_rows_back(participant);
	MemoryContextSwitchTo(caller);
	return together;
}

bool
gpusort_participant_end_adding(GsParticipant *participant, bool *chosen)
{
	return end_phase_and_choose(participant, PHASE_ADD, chosen);
}

GsTogether
gpusort_participant_end_sorting(GsParticipant *participant)
{
	if (!end_phase(participant, PHASE_PLACE))
		return GS_TOGETHER_LOST;
	if (gpusort_participant_wants_runs(participant))
		return GS_TOGETHER_IN_RUNS;
	gpusort_participant_leave(participant);
	return GS_TOGETHER_ON_GPU;
}

/* Let the others find the runs of this process. */
static void
publish_runs(GsParticipant *participant)
{
	GsTeam	   *team = participant->team;
	MemoryContext caller = MemoryContextSwitchTo(participant->context);

	participant->merger = gpusort_merge_member_create(team->merge, participant->spec,
													  team->files);
	if (participant->phase <= PHASE_OPEN)
		gpusort_merge_member_publish(participant->merger, participant->external,
									 participant->overflow);
	MemoryContextSwitchTo(caller);
}

/* Merge the runs of all processes. */
static void
open_runs(GsParticipant *participant)
{
	if (participant->second != NULL)
		gpusort_merge_members_pair(participant->merger, participant->second->merger);
	for (GsParticipant *p = participant; p != NULL; p = p->second)
	{
		p->merged = true;
		p->maker = gpusort_merge_member_open(p->merger);
	}
	make_ranges(participant);
}

/* End SETTLE and OPEN.  The runs of this process are written. */
static GsTogether
merge_runs(GsParticipant *participant)
{
	if (!end_phase(participant, PHASE_SETTLE))
		return GS_TOGETHER_LOST;
	for (GsParticipant *p = participant; p != NULL; p = p->second)
		publish_runs(p);
	if (!end_phase(participant, PHASE_OPEN))
		return GS_TOGETHER_LOST;
	gpusort_participant_leave(participant);
	open_runs(participant);
	return GS_TOGETHER_IN_RUNS;
}

GsTogether
gpusort_participant_merge(GsParticipant *participant)
{
	MemoryContext caller = MemoryContextSwitchTo(participant->context);
	GsTogether	together = merge_runs(participant);

	MemoryContextSwitchTo(caller);
	return together;
}

/* ----------------------------------------------------------------
 *		reading
 * ----------------------------------------------------------------
 */

GsRangeReader *
gpusort_participant_read(GsParticipant *participant)
{
	MemoryContext caller = MemoryContextSwitchTo(participant->context);
	GsRangeReader *reader = gpusort_range_reader_create(participant->maker);

	MemoryContextSwitchTo(caller);
	return reader;
}

GsGpuRanges *
gpusort_participant_share_session(GsParticipant *participant, const GsGpuRows *rows)
{
	GsTeam	   *team = participant->team;
	GsGpuRanges *ranges = gpusort_gpu_ranges_create(rows, participant->spec, team->ranges,
													team->processes);

	participant->maker = gpusort_gpu_ranges_maker(ranges);
	make_ranges(participant);
	return ranges;
}

GsFallback
gpusort_participant_overflow(const GsParticipant *participant)
{
	return participant->merged ?
		gpusort_shared_merge_overflow(participant->team->merge) : GS_FALLBACK_NONE;
}

void
gpusort_participant_stop(GsParticipant *participant)
{
	gpusort_shared_ranges_stop(participant->team->ranges);
	gpusort_participant_leave(participant);
}

void
gpusort_participant_report(const GsParticipant *participant, const GsMemorySort *rows,
						   GsSortReport *report)
{
	report->fetches = true;
	report->fetch_ms = participant->maker->wait_ms;
	if (participant->merged)
		gpusort_merge_member_report(participant->merger, report);
	else
		gpusort_shared_member_report(participant->member, rows, report);
}
