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

struct GsTeam
{
	GsSharedBudget budget;		/* must be first */
	GsTeam	   *first;			/* the team whose barrier and flags are used:
								 * this one, or the first one of a pair; set
								 * before others start */
	Barrier		barrier;
	int			processes;
	pg_atomic_uint32 nattached; /* processes that have taken part in ADD */
	ConditionVariable attached; /* one more has */
	pg_atomic_uint32 spilled;	/* are rows of any process not in memory? */
	pg_atomic_uint32 failure;	/* GsReason: why rows of a process are missing */
	pg_atomic_uint64 ndropped;	/* rows beyond the bound */
	FileSet		files;			/* with all runs; set before others start */
	GsSharedRanges *ranges;		/* follows the struct */
	GsSharedSort *sort;			/* follows that */
	GsSharedMerge *merge;		/* follows that */
};

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
	team->processes = processes;
	pg_atomic_init_u32(&team->nattached, 0);
	ConditionVariableInit(&team->attached);
	pg_atomic_init_u32(&team->spilled, 0);
	pg_atomic_init_u32(&team->failure, GS_REASON_NONE);
	pg_atomic_init_u64(&team->ndropped, 0);
	team->ranges = gpusort_shared_ranges_init((char *) team + MAXALIGN(sizeof(GsTeam)));
	team->sort = gpusort_shared_sort_init((char *) team + sort_at, &team->budget,
										  team->ranges, spec);
	team->merge = gpusort_shared_merge_init((char *) team + merge_at, &team->budget,
											team->ranges, spec);
	return team;
}

GsReason
gpusort_team_failure(const GsTeam *team)
{
	return (GsReason) pg_atomic_read_u32((pg_atomic_uint32 *) &team->failure);
}

/* Attach to the barrier.  Returns its phase. */
static int
attach(GsTeam *team)
{
	int			phase;

	if (IsParallelWorker() && ParallelWorkerNumber != 0)
		gpusort_fault_host_late();
	phase = BarrierAttach(&team->barrier);
	if (phase == GS_TEAM_ADD)
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
		participant->merge = team->merge;
		participant->target.files = team->files;
		participant->target.producer = spec->process;
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
	if (second->spec->team == NULL)
		second->team->first = first->team;
}

void
gpusort_participant_open(GsParticipant *participant)
{
	MemoryContext caller = MemoryContextSwitchTo(participant->context);

	participant->team->files = participant->target.files = gpusort_run_set_create();
	MemoryContextSwitchTo(caller);
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
	participant->attached = phase == GS_TEAM_ADD || returns_rows(participant);
	if (!participant->attached)
		BarrierDetach(&team->barrier);
	participant->phase = phase;
	return phase == GS_TEAM_ADD;
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
gpusort_participant_fail(GsParticipant *participant, GsReason reason)
{
	uint32		none = GS_REASON_NONE;

	Assert(reason != GS_REASON_NONE);
	if (participant->attached)
		(void) pg_atomic_compare_exchange_u32(&participant->team->failure, &none, reason);
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
	return pg_atomic_read_u32(&participant->team->first->spilled) != 0;
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

bool
gpusort_participant_end_phase(GsParticipant *participant, GsTeamPhase phase, bool *chosen)
{
	GsTeam	   *team = participant->team;
	bool		elected = participant->phase <= phase &&
		BarrierArriveAndWait(&team->barrier, gpusort_shared_wait_event());

	if (chosen != NULL)
		*chosen = elected;
	if (gpusort_team_failure(team) == GS_REASON_NONE)
		return true;
	gpusort_participant_leave(participant);
	return false;
}

bool
gpusort_participant_is_alone(const GsParticipant *participant)
{
	/* Those who come later have no rows, but may return some. */
	return !returns_rows(participant) && !has_others(participant->team);
}

GsRanges *
gpusort_participant_open_session(const GsParticipant *participant, const GsGpuRows *rows)
{
	GsTeam	   *team = participant->team;

	return gpusort_gpu_ranges_create(rows, participant->spec, team->ranges, team->processes);
}

void
gpusort_participant_stop(GsParticipant *participant)
{
	gpusort_shared_ranges_stop(participant->team->ranges);
	gpusort_participant_leave(participant);
}
