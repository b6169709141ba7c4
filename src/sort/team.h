/*-------------------------------------------------------------------------
 *
 * team.h
 *		Processes that sort together: who waits for whom.
 *
 * The processes of a parallel query, its participants, each add rows to a sort of their own.  Then
 * they sort the rows of all of them together, and the leader reads these:
 *
 *		ADD		Each adds rows.  If those of one do not fit in memory, it goes on with runs on
 *				disk: the team is spilled.
 *		PLACE	Unless the team is spilled, each has published its rows in memory, and places
 *				them in ranges of the sorted order.  If there is no memory for that, the team is
 *				spilled, too.
 *		SETTLE	If the team is spilled, each writes the rows that it has in memory as runs.
 *		OPEN	Likewise: nobody has rows in memory any more, so each publishes its runs there.
 *		READ	Each takes the next range that nobody has taken, and sorts its rows in memory
 *				(memory/shared_sort.h), or merges them from all runs (disk/shared_merge.h).  The
 *				leader reads the ranges in order.
 *
 * These are the phases of a Barrier.  A participant arrives at the end of each and waits for the
 * others, so whatever is decided in a phase is the same for all of them in the next one.  Without
 * runs, READ follows PLACE.  The leader is attached before others start, and remains until READ.
 * Who attaches after ADD finds that all rows have been added, and has nothing to do.
 *
 * With spec->group_keys, each participant reads the ranges that it takes, and none is special: the
 * leader need not be attached, and who attaches after ADD has no rows, but takes ranges.  So nobody
 * waits for one that is not attached, and nobody who returns rows is waited for.
 *
 * If such a team has a GPU session, each participant puts its rows there in ADD, and one of those
 * that arrive has them sorted in PLACE, while the others wait.  The team is spilled if the GPU does
 * not take all rows.  Then that one writes those on the GPU as a run in SETTLE.
 *
 * Two such sorts, by the same keys, can be a pair: they are divided into the same ranges, and who
 * takes a range reads it in both.  They go through the phases as one: each process has a
 * participant in both teams, but only the barrier and flags of the first team are used.  They use
 * no GPU.
 *
 * With a bound, each participant drops the rows that sort after its first 'bound' ones.  Only the
 * others are sorted together.
 *
 * There are these ways to leave before READ: rows are missing, as after the loss of a GPU, so that
 * all begin again (gpusort_participant_fail()); the leader is the only one that has come
 * (gpusort_participant_is_alone()).  An error ends all processes.
 *
 * Ties come in the order of the processes, the leader first and then by worker number, and
 * in the order of arrival for each process.
 *
 * The struct GsParticipant is public because callers may read its members.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TEAM_H
#define GPUSORT_TEAM_H

#include "sort/base/sort_spec.h"
#include "sort/base/sort_stats.h"
#include "sort/disk/shared_merge.h"
#include "sort/gpu/gpu_rows.h"
#include "sort/memory/shared_sort.h"

/* In the memory that the processes share, at the same address in all of them. */
typedef struct GsTeam GsTeam;

/* The phases before READ. */
typedef enum GsTeamPhase
{
	GS_TEAM_ADD,
	GS_TEAM_PLACE,
	GS_TEAM_SETTLE,
	GS_TEAM_OPEN
} GsTeamPhase;

/* What a process knows of its team. */
typedef struct GsParticipant
{
	GsTeam	   *team;
	const GsSortSpec *spec;
	MemoryContext context;
	bool		attached;
	GsTeamPhase phase;			/* in which it has come */
	GsRunTarget target;			/* where it writes runs */

	GsSharedMember *member;		/* of the sort in memory */
	GsSharedMerge *merge;
	GsMergeMember *merger;		/* of the merge; NULL if rows are in memory */
} GsParticipant;

/* ---- The team, in any process ---- */

/* Returns why rows are missing, as the first process to fail has said; or GS_REASON_NONE. */
extern GsReason gpusort_team_failure(const GsTeam *team);

/* ---- A participant, whose sort calls these ---- */

/*
 * Begin, with memory contexts below 'parent': in a worker for the team spec->team, in the leader
 * for a new one of spec->processes.  Returns NULL if there is no team, since this process is the
 * only one, the library is not preloaded, or there is no shared memory.  spec->process is 0 for
 * the leader, and different for all others.
 */
extern GsParticipant *gpusort_participant_begin(const GsSortSpec *spec, MemoryContext parent);

/* Close the files that this process reads. */
extern void gpusort_participant_close(GsParticipant *participant);

/* The same, and end.  In the leader, no other process may use the team any more. */
extern void gpusort_participant_end(GsParticipant *participant);

/*
 * Make a pair of two sorts with spec->group_keys by the same keys, which are encoded alike.  In the
 * leader this is done before the others start; 'second' must not be used otherwise before that.
 * Then 'second' is attached, placed and merged with 'first', and never by itself.
 */
extern void gpusort_participants_pair(GsParticipant *first, GsParticipant *second);

/*
 * In the leader, before the others start: attach, so that they wait for it, and create the files
 * of all runs.
 */
extern void gpusort_participant_open(GsParticipant *participant);

/* In a leader that adds no rows: wait until another process is attached. */
extern void gpusort_participant_await_others(GsParticipant *participant);

/*
 * Before the first row of this process is added: attach, unless that has been done.  Returns false
 * if all rows have been added without it.  Then it remains attached only with spec->group_keys.
 */
extern bool gpusort_participant_attach(GsParticipant *participant);

/* Returns how many processes can take part. */
extern int	gpusort_participant_processes(const GsParticipant *participant);

/* Let the others go on without this process.  fail() is for one that knows of lost rows. */
extern void gpusort_participant_leave(GsParticipant *participant);
extern void gpusort_participant_fail(GsParticipant *participant, GsReason reason);

/* In ADD: rows of this process are not in memory, but in runs or on a GPU. */
extern void gpusort_participant_spill(GsParticipant *participant);

/* Must rows that are in memory become runs in any case, since the team is spilled? */
extern bool gpusort_participant_wants_runs(const GsParticipant *participant);

/*
 * In ADD: rows of this process have been dropped, since they are beyond the bound.  After ADD:
 * returns how many those of all processes are.
 */
extern void gpusort_participant_add_dropped(GsParticipant *participant, int64 nrows);
extern int64 gpusort_participant_dropped(const GsParticipant *participant);

/*
 * End a phase, unless this participant has come later: wait for the others.  Returns false if rows
 * of any process are missing; then it has left.  Sets *chosen, unless that is NULL, in one of those
 * that have not come later.  The first one of a pair does this for both.  Checks for interrupts.
 */
extern bool gpusort_participant_end_phase(GsParticipant *participant, GsTeamPhase phase,
										  bool *chosen);

/* Has no other process come in time, in a team whose leader reads all rows? */
extern bool gpusort_participant_is_alone(const GsParticipant *participant);

/* In READ: prepare to take ranges of a GPU session. */
extern GsRanges *gpusort_participant_open_session(const GsParticipant *participant,
												  const GsGpuRows *rows);

/*
 * In the leader: no more rows are wanted, so the others need not sort further ranges.  If
 * rows are read nevertheless, the leader sorts their ranges.
 */
extern void gpusort_participant_stop(GsParticipant *participant);

#endif							/* GPUSORT_TEAM_H */
