/*
 * handshake.pml
 *		Model of the handshake by which several processes sort together, for spin.
 *
 * docs/design/one-sort.md describes the handshake.  Process 0 is the leader.  A row goes to the
 * device, to memory or to a file; range r has the rows i with i % NRANGES = r.  Checked: no
 * process waits for ever (no invalid end state), and in the end each row has been returned once,
 * or at most once if the reader stopped early or an error ended all.
 *
 * OWN = 0: the leader reads all rows, the others help.  OWN = 1: each process reads ranges of its
 * own.  PLANT = 1 to 5 plants a fault, which a check must find: see where PLANT stands.  run
 * checks all of this.
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

#define ADD		0				/* GsTeamPhase */
#define SETTLE	1
#define PLACE	2
#define READ	3

#define UNREAD		0			/* where a row is */
#define IN_CHUNK	1			/* on its way to the device */
#define REFUSED		2
#define ON_DEVICE	3
#define IN_MEMORY	4
#define IN_FILE		5

/* GsTeam */
byte phase, nattached, narrived;	/* the Barrier */
bool failure;					/* rows are missing: sort again without a GPU */
bool is_stopped;					/* the leader wants no more rows */
bool spilled;					/* a part is a file */
byte next_range;				/* that nobody has taken */
byte nread;						/* ranges that the leader has read */
byte taken[NRANGES];			/* by whom, + 1 */
bool sorted[NRANGES];			/* of rows in memory */
byte slot_row[NSLOTS];			/* a merged row + 1, or 0 if there is room */
bool slot_end[NSLOTS];			/* its range is complete */

/* the session */
bool session, device_full, lost;
byte ndevice;

byte next_row;					/* of the input */
byte where[NROWS], owner[NROWS];
byte nmemory[NP];
byte returned[NROWS];

bool aborted;					/* an error or a cancel: PostgreSQL ends all processes */
byte nrunning;					/* workers that have been started */
bool over;						/* for the device */
bool early;						/* somebody has stopped reading */

/* ---- Barrier, as PostgreSQL's ---- */
inline attach(ph)		{ atomic { nattached++; ph = phase } }
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

/* team_fail(): publish the failure, then leave; nobody else does either apart from it */
#if PLANT == 3					/* publishes a failure without leaving */
inline fail()			{ failure = true }
#else
inline fail()			{ failure = true; detach() }
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
				r = next_range; next_range++; taken[r] = p + 1
		   :: else -> r = NRANGES fi }
}
#define IS_MERGED	(spilled || session)
#define IS_READABLE(i)	(where[i] == ON_DEVICE || where[i] == IN_FILE || (where[i] == IN_MEMORY && !spilled))

/* All phases up to READ.  'out' is left to by who ends for any reason. */
inline add_and_place(p, ph)
{
	do					/* ADD */
	:: ph == ADD && !failure && !aborted ->
		if	:: FAULTY -> aborted = true; goto out :: skip fi;
		atomic { i = next_row; if :: i < NROWS -> next_row++; owner[i] = p :: else -> break fi };
		if	:: session && !device_full && !lost -> where[i] = IN_CHUNK
			:: else -> add_to_memory(p, i) fi
	:: ph != ADD || failure || aborted -> break
	od;
	if :: aborted -> goto out :: else fi;
	if :: failure -> detach(); goto out :: else fi;
	if :: ph == ADD ->	/* flush: wait for the own chunks only, and take back what was refused */
		j = 0;
		do :: j < NROWS ->
			if :: owner[j] == p && where[j] == IN_CHUNK && PLANT != 1 ->	/* 1: does not wait for its chunks */
					(where[j] != IN_CHUNK || lost || aborted);
					if :: aborted -> goto out :: else fi
			   :: else fi;
			if :: owner[j] == p && where[j] == REFUSED -> add_to_memory(p, j) :: else fi;
			j++
		   :: else -> break od;
		j = 0;
		if :: session && lost -> fail(); goto out :: else fi;
		arrive_and_wait(ph)
	   :: else fi;
	if :: aborted -> goto out :: else fi;
	if :: failure -> detach(); goto out :: else fi;
	if :: ph == SETTLE ->
		if :: spilled && nmemory[p] > 0 && PLANT != 2 -> spill(p) :: else fi;	/* 2: keeps rows in memory */
		if :: p == 0 && session && lost -> fail(); goto out :: else fi;	/* the device sorts */
		if	:: FAULTY -> aborted = true; goto out :: skip fi;
		arrive_and_wait(ph)
	   :: else fi;
	if :: aborted -> goto out :: else fi;
	if :: failure -> detach(); goto out :: else fi;
	if :: ph == PLACE -> arrive_and_wait(ph) :: else fi;
	if :: aborted -> goto out :: else fi;
	if :: failure -> detach(); goto out :: else fi;
	assert(ph == READ && next_row == NROWS);
	k = 0;
	do :: k < NROWS -> assert(IS_READABLE(k)); k++ :: else -> break od;
	k = 0
}

/* Return the rows of a range directly, from row 'k' on. */
inline return_range(r)
{
	k = r;
	do :: k < NROWS && !aborted && !(session && lost) ->
			d_step { returned[k]++; assert(returned[k] == 1); k = k + NRANGES }
	   :: k >= NROWS || aborted || (session && lost) -> break od
}

/* ---- a worker ---- */
proctype worker(byte p)
{
	byte ph, i, j, k, r;

	if :: skip :: goto ended fi;			/* may never start */
	attach(ph);
#if OWN
	add_and_place(p, ph);
	do :: take_range(p, r, NRANGES);
		if :: r == NRANGES -> break :: else fi;
		return_range(r);
		if :: session && lost && k < NROWS -> aborted = true; goto out :: else fi;
		if :: early = true; break :: skip fi	/* a LIMIT above */
	od;
	detach();
#else
	if :: ph != ADD -> 				/* late: all rows have been read */
			if :: PLANT != 4 -> detach() :: else fi;		/* 4: stays attached */
			goto out
	   :: else fi;
	add_and_place(p, ph);
	do :: !IS_MERGED ->
			if :: is_stopped || aborted -> break :: else fi;
			take_range(p, r, NRANGES);
			if :: r == NRANGES -> break :: else -> sorted[r] = true fi
	   :: IS_MERGED ->
			(is_stopped || aborted || failure || next_range == NRANGES || next_range < nread + NSLOTS);
			if :: is_stopped || aborted || failure || next_range == NRANGES -> break :: else fi;
			take_range(p, r, nread + NSLOTS);
			if :: r < NRANGES ->
				k = r;
				do :: k < NROWS ->
					(slot_row[r % NSLOTS] == 0 || (is_stopped && PLANT != 5) || aborted || failure);	/* 5: does not look at it */
					if :: is_stopped || aborted || failure -> goto leave :: else fi;
					if :: session && lost -> fail(); goto out :: else fi;
					slot_row[r % NSLOTS] = k + 1; k = k + NRANGES
				   :: else -> break od;
				slot_end[r % NSLOTS] = true
			   :: else fi
	od;
leave:
	detach();
#endif
out: skip;
ended:
	nrunning--
}

/* ---- the leader ---- */
bool again;						/* has the leader to sort again? */
inline init_team()
{
	d_step { phase = ADD; narrived = 0; nattached = 1 - OWN; failure = false; is_stopped = false;
		spilled = false; next_range = 0; nread = 0; device_full = false; lost = false; ndevice = 0;
		next_row = 0; early = false; again = false; k = 0;
		do :: k < NROWS -> where[k] = UNREAD; owner[k] = 0; returned[k] = 0; k++ :: else -> break od;
		k = 0;
		do :: k < NRANGES -> taken[k] = 0; sorted[k] = false; k++ :: else -> break od;
		k = 0;
		do :: k < NSLOTS -> slot_row[k] = 0; slot_end[k] = false; k++ :: else -> break od;
		k = 0;
		do :: k < NP -> nmemory[k] = 0; k++ :: else -> break od; k = 0 }
}

active proctype leader()
{
	byte ph, i, j, k, r, q, s, w;

	session = GPU;
repeat:
	init_team();
	w = 1;
	do :: w < NP -> atomic { nrunning++; run worker(w) }; w++ :: else -> break od;
	ph = ADD;
#if OWN
	if :: skip :: goto out fi;	/* the Gather may not let the leader take part */
	attach(ph);
	add_and_place(0, ph);
	do :: take_range(0, r, NRANGES);
		if :: r == NRANGES -> break :: else fi;
		return_range(r);
		if :: session && lost && k < NROWS -> aborted = true; goto out :: else fi;
		if :: early = true; break :: skip fi
	od;
	detach();
#else
	add_and_place(0, ph);
	r = 0;
	do :: r < NRANGES ->
		if :: early = true; break :: skip fi;			/* a LIMIT, a cursor, a rescan */
		if	:: aborted || failure -> break :: else fi;
		if	:: taken[r] == 0 -> take_range(0, q, r + 1) :: else fi;	/* perhaps another one did */
		if	:: taken[r] == 1 -> return_range(r);
				if :: session && lost && k < NROWS -> failure = true; break :: else fi
			:: taken[r] > 1 && !IS_MERGED -> (sorted[r] || aborted);
				if :: aborted -> break :: else fi;
				return_range(r)
			:: taken[r] > 1 && IS_MERGED ->
				s = r % NSLOTS;
				do :: slot_row[s] > 0 -> atomic { k = slot_row[s] - 1; slot_row[s] = 0 };
						returned[k]++; assert(returned[k] == 1 && k % NRANGES == r)
				   :: slot_row[s] == 0 && slot_end[s] -> slot_end[s] = false; break
				   :: aborted || failure -> break
				   :: next_range < NRANGES && next_range < nread + NSLOTS ->
						take_range(0, q, nread + NSLOTS)	/* merges it meanwhile */
				od
		fi;
		if :: aborted || failure -> break :: else fi;
		nread++; r++
	   :: else -> break od;
	detach();
#endif
out:
	is_stopped = true;
	(nrunning == 0);			/* PostgreSQL waits for them, after an error too */
	d_step { k = 0; j = 0;
		do :: k < NROWS -> j = j + returned[k]; assert(returned[k] <= 1); k++ :: else -> break od; k = 0 }
	if :: aborted -> skip
	   :: !aborted && failure && j == 0 && !OWN ->
			assert(session); session = false; goto repeat	/* once, on the CPU */
	   :: !aborted && failure && (j > 0 || OWN) -> skip		/* an error with a hint */
	   :: !aborted && !failure && early -> skip
	   :: else -> assert(j == NROWS || (OWN && j == 0 && next_row == 0))
	fi;
	over = true
}

/* ---- the device process: takes or refuses chunks, or is lost ---- */
active proctype device()
{
	byte i;
end:
	do :: atomic { !over && (where[0] == IN_CHUNK || where[1] == IN_CHUNK || where[NROWS - 1] == IN_CHUNK) ->
			i = 0;
			do :: where[i] != IN_CHUNK -> i++ :: else -> break od;
			if :: ndevice < DEVICE -> where[i] = ON_DEVICE; ndevice++
			   :: else -> device_full = true; where[i] = REFUSED fi; i = 0 }
#ifndef NOLOSS
	   :: atomic { !over && session && !lost -> lost = true }
#endif
	   :: over -> break
	od
}
