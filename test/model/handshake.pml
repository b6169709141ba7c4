/*
 * handshake.pml
 *		Model of the handshake by which several processes sort together, for spin.
 *
 * src/sort/team.h describes the handshake, and docs/design/sort.md what happens to rows on a GPU.
 * Process 0 is the leader.  A row goes to the device, to memory or to a file; range r has the rows
 * i with i % NRANGES = r.  Checked: no process waits for ever (no invalid end state), rows that
 * others read are where they are for all, and in the end each row has been returned once, or at
 * most once if the reader stopped early or an error ended all.
 *
 * OWN = 0: the leader reads all rows, the others help.  OWN = 1: each process reads ranges of its
 * own (spec->group_keys).  Two such sorts that are a pair go through the phases as
 * one, whose rows are those of both.  PART = 0: the leader adds no rows.
 * PLANT = 1 to 8 plants a fault, which a check must find: see where PLANT stands.  run checks all
 * of this.
 */
#ifndef PLANT
#define PLANT	0
#endif
#ifndef NW
#define NW	2					/* workers */
#endif
#ifndef OWN
#define OWN	0
#endif
#ifndef PART
#define PART	1				/* does the leader add rows? */
#endif
#ifndef GPU
#define GPU	1					/* does the sort begin with a session? */
#endif
#ifndef NROWS
#define NROWS	3
#endif
#ifndef NRANGES
#define NRANGES	2
#endif
#ifndef NSLOTS
#define NSLOTS	1				/* ranges that may be merged ahead of the leader */
#endif
#define SLOTS	(spilled -> NSLOTS : NRANGES)	/* with rows in memory, each range has one */
#define NP		(NW + 1)
#ifndef MEMORY
#define MEMORY	1				/* rows for which one participant has memory */
#endif
#define DEVICE	1				/* rows for which the device has memory */

#ifdef NOFAULTS
#define FAULTY	false
#else
#define FAULTY	(!aborted)
#endif

#define ADD		0				/* phases, see team.h */
#define PLACE	1
#define SETTLE	2
#define OPEN	3
#define READ	4

#define UNREAD		0			/* where a row is */
#define IN_CHUNK	1			/* on its way to the device */
#define REFUSED		2
#define ON_DEVICE	3
#define IN_MEMORY	4
#define IN_FILE		5

/* GsTeam */
byte phase, nattached, narrived;	/* the Barrier */
byte nparticipants;				/* that have taken part in ADD */
bool failed;					/* rows are missing: sort again without a GPU */
bool is_stopped;				/* the leader wants no more rows */
bool spilled;					/* rows of a participant are not in memory */
byte next_range;				/* that nobody has taken */
byte nread;						/* ranges that the leader has read */
bool published[NP];				/* the runs of a participant */
byte slot[NRANGES];				/* the range that is there + 1, or 0 */

/* the session */
bool session, device_full, lost, drained;
byte ndevice;
byte sorter;					/* who has it sorted, from the end of ADD on; or NP */

byte next_row;					/* of the input */
byte where[NROWS], owner[NROWS];
byte nmemory[NP];
byte returned[NROWS];

bool aborted;					/* an error or a cancel: PostgreSQL ends all processes */
byte nrunning;					/* workers that have been started */
bool over;						/* for the device */
bool early;						/* somebody has stopped reading */

/* ---- Barrier, as PostgreSQL's ---- */
inline attach(ph)		{ atomic { nattached++; ph = phase; if :: ph == ADD -> nparticipants++ :: else fi } }
inline arrive_and_wait(ph)
{
	atomic { narrived++;
		if :: narrived == nattached -> narrived = 0; phase++ :: else fi };
	(phase != ph || aborted);
	ph = phase
}
inline detach()
{
	atomic { nattached--;
		if :: nattached > 0 && narrived == nattached -> narrived = 0; phase++ :: else fi }
}

/* gpusort_participant_fail(): publish the failure, then leave */
#if PLANT == 3					/* publishes a failure without leaving */
inline fail()			{ failed = true }
#else
inline fail()			{ failed = true; detach() }
#endif

/* ---- rows in ---- */
inline spill(p)			/* memory to file; the row stays what it is */
{
	d_step { spilled = true; k = 0;
		do :: k < NROWS ->
				if :: where[k] == IN_MEMORY && owner[k] == p -> where[k] = IN_FILE :: else fi; k++
		   :: else -> break od;
		k = 0; nmemory[p] = 0 }
}
inline add_to_memory(p, i)
{
	if :: nmemory[p] < MEMORY -> d_step { where[i] = IN_MEMORY; nmemory[p]++ }
	   :: else -> spill(p); where[i] = IN_FILE
	fi
}
inline take_range(p, r, most)
{
	atomic { if :: next_range < NRANGES && next_range < most ->
				r = next_range; next_range++
		   :: else -> r = NRANGES fi }
}

/* Make a range that has been taken. */
inline make_range(r)	{ assert(slot[r % SLOTS] == 0); slot[r % SLOTS] = r + 1 }

#define IS_READABLE(i)	((where[i] == IN_FILE && published[owner[i]]) || (where[i] == IN_MEMORY && !spilled))
#define IS_ANY(place)	(where[0] == place || where[1] == place || where[NROWS - 1] == place)
#define IS_ANY_IN_CHUNK	IS_ANY(IN_CHUNK)

/* Wait until the device has taken or refused all chunks; then row j, for each that it has refused. */
inline await_device()	{ (!IS_ANY_IN_CHUNK || lost || aborted) }

/* leave_session(): take the rows that have been refused, whoever has put them. */
inline leave_session(p)
{
	spilled = true;
	await_device();
	j = 0;
	do :: j < NROWS && !lost && !aborted ->
			atomic { if :: where[j] == REFUSED -> where[j] = UNREAD; owner[j] = p :: else fi };
			if :: where[j] == UNREAD && owner[j] == p && PLANT != 1 -> add_to_memory(p, j) :: else fi;	/* 1: forgets them */
			j++
	   :: j >= NROWS || lost || aborted -> break od;
	j = 0
}

/* Write the rows of the session, and those that it has refused, as runs of one process. */
inline drain(p)
{
	d_step { k = 0;
		do :: k < NROWS && !lost && !aborted ->
				if :: where[k] == ON_DEVICE || where[k] == REFUSED -> where[k] = IN_FILE; owner[k] = p :: else fi; k++
		   :: k >= NROWS || lost || aborted -> break od;
		k = 0; drained = !lost && !aborted }
}

/* ADD, in all processes.  'out' is left to by who ends for any reason. */
inline add(p, ph)
{
	do
	:: ph == ADD && !failed && !aborted ->
		if	:: FAULTY -> aborted = true; goto out :: skip fi;
		atomic { i = next_row; if :: i < NROWS -> next_row++; owner[i] = p :: else -> break fi };
		if	:: session && !device_full && !lost -> where[i] = IN_CHUNK
			:: else ->
				if :: session && !lost -> leave_session(p) :: else fi;
				add_to_memory(p, i) fi
	:: ph != ADD || failed || aborted -> break
	od;
	if :: aborted -> goto out :: else fi;
	if :: ph == ADD && session && device_full && !failed && !lost -> leave_session(p)	/* after its last chunk */
	   :: ph == ADD && session && !failed -> skip	/* it has not noticed */
	   :: else fi;
	if :: ph == ADD && (failed || (session && lost)) -> fail(); goto out :: else fi
}

/* Wait at the end of a phase, and leave if rows are missing. */
inline end_phase(ph)
{
	arrive_and_wait(ph);
	if :: aborted -> goto out :: else fi;
	if :: failed -> detach(); goto out :: else fi
}

/*
 * From the end of ADD to READ, in who has not left; with OWN, also from a later phase on.  'session_read'
 * is left to by who finds that the session has all rows.
 */
inline place_and_settle(p, ph)
{
	if :: ph == ADD ->
			end_phase(ph);
			atomic { if :: session && sorter == NP -> sorter = p :: else fi }
	   :: else fi;

	/* PLACE: there may be no memory for that; or one process has the session sorted */
	if :: ph == PLACE ->
			if :: session && sorter == p ->
					await_device();
					if :: aborted -> goto out :: else fi;
					if :: lost -> fail(); goto out :: else fi;
					if :: IS_ANY(REFUSED) && PLANT != 8 -> spilled = true :: else fi	/* 8: leaves them */
			   :: !session && !spilled -> if :: FAULTY -> spilled = true :: skip fi
			   :: else fi;
			end_phase(ph)
	   :: else fi;
	if :: session && !spilled -> detach(); goto session_read :: else fi;
	if :: spilled && ph == SETTLE ->
			if :: session && sorter == p -> drain(p);
					if :: aborted -> goto out :: else fi;
					if :: lost -> fail(); goto out :: else fi
			   :: else fi;
			if :: nmemory[p] > 0 && PLANT != 2 -> spill(p) :: else fi;	/* 2: keeps rows in memory */
			if	:: FAULTY -> aborted = true; goto out :: skip fi;
			end_phase(ph)
	   :: else fi;
	if :: spilled && ph == OPEN ->
			published[p] = true;
			if :: PLANT != 6 -> end_phase(ph) :: else fi		/* 6: does not wait for others' runs */
	   :: else fi;
	detach();
	assert(next_row == NROWS);
	k = 0;
	do :: k < NROWS -> assert(IS_READABLE(k)); k++ :: else -> break od;
	k = 0
}

/*
 * Return the rows of a session, from row 'k' on, of which each 'step'-th is read.  If it is lost, the
 * others are missing.
 */
inline return_session(first, step)
{
	k = first;
	do :: k < NROWS && !aborted && !lost ->
			assert(where[k] == ON_DEVICE);
			d_step { returned[k]++; assert(returned[k] == 1); k = k + step }
	   :: k >= NROWS || aborted || lost -> break od;
	if :: lost && !aborted && k < NROWS -> failed = true :: else fi
}

/* Return the rows of a range directly, from row 'k' on. */
inline return_range(r)
{
	k = r;
	do :: k < NROWS && !aborted ->
			d_step { returned[k]++; assert(returned[k] == 1); k = k + NRANGES }
	   :: k >= NROWS || aborted -> break od
}

/* ---- a worker ---- */
proctype worker(byte p)
{
	byte ph, i, j, k, r;

	/* It may never start, which is an error if the leader adds no rows. */
	if :: skip :: if :: PART -> skip :: else -> aborted = true fi; goto ended fi;
	attach(ph);
	if :: ph != ADD && !OWN ->				/* late: all rows have been read */
			if :: PLANT != 4 -> detach() :: else fi;		/* 4: stays attached */
			goto out
	   :: else fi;
	if :: ph == ADD -> add(p, ph) :: else fi;
	place_and_settle(p, ph);
#if OWN
	do :: take_range(p, r, NRANGES);
		if :: r == NRANGES -> break :: else fi;
		return_range(r);
		if :: early = true; break :: skip fi	/* a LIMIT above */
	od;
#else
	do :: ((is_stopped && PLANT != 5) || aborted || next_range == NRANGES || next_range < nread + SLOTS);	/* 5: does not look at it */
			if :: is_stopped || aborted || next_range == NRANGES -> break :: else fi;
			take_range(p, r, nread + SLOTS);
			if :: r < NRANGES -> make_range(r) :: else fi
	od;
#endif
	goto out;
session_read:
#if OWN
	do :: take_range(p, r, NRANGES);
		if :: r == NRANGES -> break :: else fi;
		return_session(r, NRANGES);
		if :: early = true; break :: skip fi
	od;
#endif
out: skip;
ended:
	nrunning--
}

/* ---- the leader ---- */
bool again;						/* has the leader to sort again? */
inline init_team()
{
	d_step { phase = ADD; narrived = 0; nattached = 1 - OWN; nparticipants = 1 - OWN; failed = false;
		is_stopped = false; spilled = false; next_range = 0; nread = 0; device_full = false;
		lost = false; drained = false; ndevice = 0; sorter = NP;
		next_row = 0; early = false; again = false; k = 0;
		do :: k < NROWS -> where[k] = UNREAD; owner[k] = 0; returned[k] = 0; k++ :: else -> break od;
		k = 0;
		do :: k < NRANGES -> slot[k] = 0; k++ :: else -> break od;
		k = 0;
		do :: k < NP -> nmemory[k] = 0; published[k] = false; k++ :: else -> break od; k = 0 }
}

active proctype leader()
{
	byte ph, i, j, k, r, q, w;

	session = GPU;
repeat:
	init_team();
	w = 1;
	do :: w < NP -> atomic { nrunning++; run worker(w) }; w++ :: else -> break od;
	ph = ADD;
#if OWN
	if :: skip :: goto out fi;	/* the Gather may not let the leader take part */
	attach(ph);
#endif
#if PART
	if :: ph == ADD -> add(0, ph) :: else fi;
#else
	(nparticipants > 1 || aborted || PLANT == 7);	/* 7: does not wait for others */
	if :: aborted -> goto out :: else fi;
#endif
	place_and_settle(0, ph);
#if OWN
	do :: take_range(0, r, NRANGES);
		if :: r == NRANGES -> break :: else fi;
		return_range(r);
		if :: early = true; break :: skip fi
	od;
#else
	r = 0;
	do :: r < NRANGES ->
		if :: early = true; break :: skip fi;			/* a LIMIT, a cursor, a rescan */
		do :: aborted -> break							/* its own ranges while it waits for this one */
		   :: !aborted && slot[r % SLOTS] == r + 1 -> break
		   :: !aborted && slot[r % SLOTS] != r + 1 && next_range < NRANGES && next_range < nread + SLOTS ->
				take_range(0, q, nread + SLOTS);
				if :: q < NRANGES -> make_range(q) :: else fi
		od;
		if :: aborted -> break :: else fi;
		return_range(r);
		slot[r % SLOTS] = 0; nread++; r++
	   :: else -> break od;
#endif
	goto out;
session_read:
#if OWN
	do :: take_range(0, r, NRANGES);
		if :: r == NRANGES -> break :: else fi;
		return_session(r, NRANGES);
		if :: early = true; break :: skip fi
	od;
#else
	if :: early = true :: return_session(0, 1) fi;
#endif
out:
	is_stopped = true;
	(nrunning == 0);			/* PostgreSQL waits for them, after an error too */
	d_step { k = 0; j = 0;
		do :: k < NROWS -> j = j + returned[k]; assert(returned[k] <= 1); k++ :: else -> break od; k = 0 }
	if :: aborted -> skip
	   :: !aborted && failed && j == 0 && !OWN ->
			assert(session); session = false; goto repeat	/* once, on the CPU */
	   :: !aborted && failed && (j > 0 || OWN) -> skip		/* an error with a hint */
	   :: !aborted && !failed && early -> skip
	   :: else -> assert(j == NROWS || (OWN && nparticipants == 0))
	fi;
	over = true
}

/* ---- the device process: takes or refuses chunks, or is lost ---- */
active proctype device()
{
	byte i;
end:
	do :: atomic { !over && IS_ANY_IN_CHUNK ->
			i = 0;
			do :: where[i] != IN_CHUNK -> i++ :: else -> break od;
			if :: ndevice < DEVICE && !drained -> where[i] = ON_DEVICE; ndevice++
			   :: else -> device_full = true; where[i] = REFUSED fi; i = 0 }
#ifndef NOLOSS
	   :: atomic { !over && session && !lost -> lost = true }
#endif
	   :: over -> break
	od
}
