/*-------------------------------------------------------------------------
 *
 * gpu_spread.c
 *		Spreads the rows of a sort over the memory of several GPUs.
 *
 * Rows are added to one session at a time.  When its device has no memory for more, the
 * rows that it has are sorted there, and the next session is opened on another device,
 * where the refused rows go first.  So the rows of each session arrived before those of
 * the next one.  At the end each session returns its own rows in order, and a merge
 * returns all of them.
 *
 * If several processes put rows, a session that is full is continued in another one by
 * whichever of them notices it first, see gpusort_gpu_session_follow().  When all are done,
 * the owner of the first session finds the others, which belong to it as well.
 *
 * Mostly there is a single session, from which rows are then read directly.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/gpu/gpu_merge.h"
#include "sort/gpu/gpu_producers.h"
#include "sort/gpu/gpu_refused_rows.h"
#include "sort/gpu/gpu_sorted_rows.h"
#include "sort/gpu/gpu_spread.h"

struct GsGpuSpread
{
	const GsSortSpec *spec;
	MemoryContext context;
	bool		can_grow;
	bool		shared;			/* may other processes be putting rows? */
	GsGpuSession *producer;		/* if so: the session to which this process
								 * adds rows, unless it is the first one */
	GsFallback	failure;		/* why rows are lost, or GS_FALLBACK_NONE */
	int			count;			/* number of sessions */
	int			nsorted;		/* so many of them are sorted, the first ones */
	GsGpuSession *sessions[GPUSORT_MAX_DEVICES];
	GsGpuTies  *ties[GPUSORT_MAX_DEVICES];	/* of sorted sessions, or NULL */
	GsGpuMerge *merge;			/* of several sessions, once all are sorted */
};

/* Make a spread of one session. */
static GsGpuSpread *
make_spread(const GsSortSpec *spec, GsGpuSession *first)
{
	GsGpuSpread *spread = palloc0(sizeof(GsGpuSpread));

	spread->spec = spec;
	spread->context = CurrentMemoryContext;
	spread->can_grow = true;
	spread->sessions[0] = first;
	spread->count = 1;
	return spread;
}

GsGpuSpread *
gpusort_gpu_spread_create(const GsSortSpec *spec, GsFallback *reason)
{
	GsGpuSession *session = gpusort_gpu_session_create_one(spec, 0, spec->expected_rows,
														   reason);

	return session != NULL ? make_spread(spec, session) : NULL;
}

GsClientHandle
gpusort_gpu_spread_handle(GsGpuSpread *spread)
{
	spread->shared = true;
	return gpusort_gpu_session_handle(spread->sessions[0]);
}

GsGpuSession *
gpusort_gpu_spread_session(const GsGpuSpread *spread)
{
	return spread->producer != NULL ? spread->producer :
		spread->sessions[spread->count - 1];
}

void
gpusort_gpu_spread_set_capacity(GsGpuSpread *spread, double rows)
{
	gpusort_gpu_session_set_capacity(gpusort_gpu_spread_session(spread), rows);
	spread->can_grow = false;
}

/* Note that the rows of a session are lost.  Returns false. */
static bool
lose(GsGpuSpread *spread, const GsGpuSession *session)
{
	spread->failure = gpusort_gpu_session_failure(session);
	return false;
}

bool
gpusort_gpu_spread_is_lost(const GsGpuSpread *spread)
{
	return spread->failure != GS_FALLBACK_NONE;
}

GsFallback
gpusort_gpu_spread_failure(const GsGpuSpread *spread)
{
	if (spread->failure != GS_FALLBACK_NONE)
		return spread->failure;
	for (int s = 0; s < spread->count; s++)
		if (gpusort_gpu_session_failure(spread->sessions[s]) != GS_FALLBACK_NONE)
			return gpusort_gpu_session_failure(spread->sessions[s]);
	return GS_FALLBACK_NONE;
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/* Have at least 'count' sessions sorted.  Returns false if rows are lost. */
static bool
sort_sessions(GsGpuSpread *spread, int count)
{
	while (spread->nsorted < count)
	{
		GsGpuSession *session = spread->sessions[spread->nsorted];

		spread->ties[spread->nsorted] = gpusort_gpu_ties_create(spread->spec,
																session);
		if (!gpusort_gpu_session_sort(session))
			return lose(spread, session);
		spread->nsorted++;
	}
	return true;
}

double
gpusort_gpu_spread_rows_put(const GsGpuSpread *spread)
{
	double		nrows = 0;

	for (int s = 0; s < spread->count; s++)
		nrows += gpusort_gpu_session_rows_put(spread->sessions[s]);
	return nrows;
}

/*
 * Returns how many rows to expect in the next session.  If there are about as many as
 * expected already, we expect as many again.
 */
static double
expected_rows(const GsGpuSpread *spread)
{
	double		nrows = gpusort_gpu_spread_rows_put(spread);
	double		left = spread->spec->expected_rows - nrows;

	return left > nrows / 8 ? left : nrows;
}

uint32
gpusort_gpu_spread_devices(const GsGpuSpread *spread)
{
	uint32		devices = 0;

	for (int s = 0; s < spread->count; s++)
		devices |= gpusort_gpu_session_device(spread->sessions[s]);
	return devices;
}

/* Open a session on a device without rows of this sort.  Returns false if there is none. */
static bool
open_next(GsGpuSpread *spread)
{
	GsGpuSession *session;
	GsFallback	reason;

	if (spread->count == GPUSORT_MAX_DEVICES)
		return false;
	session = gpusort_gpu_session_create_one(spread->spec,
											 gpusort_gpu_spread_devices(spread),
											 expected_rows(spread), &reason);
	if (session == NULL)
		return false;
	spread->sessions[spread->count++] = session;
	return true;
}

/*
 * Move the rows that other sessions have refused to the last one.  If one of them had to
 * keep some, the sessions after it have refused rows that arrived before these.  Returns
 * false if the last session does not take all rows.
 */
static bool
move_rest(GsGpuSpread *spread)
{
	GsGpuSession *last = gpusort_gpu_spread_session(spread);

	for (int s = spread->count - 2; s >= 0; s--)
		if (!gpusort_gpu_session_move_rest(spread->sessions[s], last))
			return gpusort_gpu_session_failure(last) == GS_FALLBACK_DEVICE_MEMORY ?
				false : lose(spread, last);
	return true;
}

/* With other producers: add further rows to the next session. */
static bool
follow(GsGpuSpread *spread)
{
	GsGpuSession *full = gpusort_gpu_spread_session(spread);
	GsGpuSession *next = gpusort_gpu_session_follow(full);

	if (next == NULL)
		return lose(spread, full);
	spread->producer = next;
	return true;
}

bool
gpusort_gpu_spread_grow(GsGpuSpread *spread)
{
	MemoryContext caller;
	bool		grown = false;

	if (spread->shared)
		return follow(spread);
	if (!spread->can_grow)
		return false;
	caller = MemoryContextSwitchTo(spread->context);
	while (!grown && open_next(spread) &&
		   sort_sessions(spread, spread->count - 1))
		grown = move_rest(spread);
	MemoryContextSwitchTo(caller);
	return grown;
}

/*
 * All producers are done: find the sessions that continue the first one, and move to the
 * last one what was refused after it had been opened.  Returns false if rows are lost.
 */
static bool
collect_sessions(GsGpuSpread *spread)
{
	GsGpuSession *next;

	if (spread->producer != NULL &&
		!gpusort_gpu_session_flush_shared(&spread->producer))
		return lose(spread, spread->producer);
	spread->producer = NULL;
	spread->shared = false;
	while ((next = gpusort_gpu_session_own_next(gpusort_gpu_spread_session(spread))) != NULL)
		spread->sessions[spread->count++] = next;
	if (!sort_sessions(spread, spread->count - 1))
		return false;
	(void) move_rest(spread);
	return spread->failure == GS_FALLBACK_NONE;
}

bool
gpusort_gpu_spread_sort(GsGpuSpread *spread)
{
	MemoryContext caller = MemoryContextSwitchTo(spread->context);
	bool		sorted = !spread->shared || collect_sessions(spread);

	while (sorted && (sorted = sort_sessions(spread, spread->count)) &&
		   gpusort_gpu_spread_has_rest(spread) && gpusort_gpu_spread_grow(spread))
		;

	/* If that could not move all of the rest, there may be a further session. */
	sorted = sorted && spread->failure == GS_FALLBACK_NONE &&
		sort_sessions(spread, spread->count);
	if (sorted && spread->count > 1)
		spread->merge = gpusort_gpu_merge_create(spread->spec, spread->sessions,
												 spread->ties, spread->count);
	MemoryContextSwitchTo(caller);
	return sorted;
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

int64
gpusort_gpu_spread_count(const GsGpuSpread *spread)
{
	int64		nrows = 0;

	for (int s = 0; s < spread->nsorted; s++)
		nrows += gpusort_gpu_session_count(spread->sessions[s]);
	return nrows;
}

bool
gpusort_gpu_spread_get(GsGpuSpread *spread, int64 position, Datum *values, bool *isnull)
{
	if (unlikely(spread->merge != NULL))
		return gpusort_gpu_merge_get(spread->merge, position, values, isnull);
	if (unlikely(spread->ties[0] != NULL))
		return gpusort_gpu_ties_get(spread->ties[0], position, values, isnull);
	return gpusort_gpu_session_get(spread->sessions[0], position, values, isnull);
}

bool
gpusort_gpu_spread_is_near(const GsGpuSpread *spread, int64 position)
{
	if (spread->merge != NULL)
		return false;
	return spread->ties[0] != NULL ? gpusort_gpu_ties_is_near(spread->ties[0], position) :
		gpusort_gpu_session_is_near(spread->sessions[0], position);
}

bool
gpusort_gpu_spread_in_place(GsGpuSpread *spread, int64 position, GsRowsInPlace *rows)
{
	if (spread->merge != NULL)
		return false;
	return spread->ties[0] != NULL ?
		gpusort_gpu_ties_in_place(spread->ties[0], position, rows) :
		gpusort_gpu_session_in_place(spread->sessions[0], position, rows);
}

void
gpusort_gpu_spread_lend(GsGpuSpread *spread, GsRecallRows recall, void *arg)
{
	if (spread->merge == NULL)
		gpusort_gpu_session_lend(spread->sessions[0], recall, arg);
}

bool
gpusort_gpu_spread_has_rest(const GsGpuSpread *spread)
{
	for (int s = 0; s < spread->nsorted; s++)
		if (gpusort_gpu_session_has_rest(spread->sessions[s]))
			return true;
	return false;
}

bool
gpusort_gpu_spread_take_rest(GsGpuSpread *spread, Datum *values, bool *isnull)
{
	/* In the order of arrival: see move_rest(). */
	for (int s = spread->count - 1; s >= 0; s--)
		if (gpusort_gpu_session_take_rest(spread->sessions[s], values, isnull))
			return true;
	return false;
}

bool
gpusort_gpu_spread_has_no_room(const GsGpuSpread *spread)
{
	return gpusort_gpu_session_has_no_room(spread->sessions[0]);
}

bool
gpusort_gpu_spread_release(GsGpuSpread *spread)
{
	for (int s = 0; s < spread->count; s++)
		if (!gpusort_gpu_session_release(spread->sessions[s]))
			return lose(spread, spread->sessions[s]);
	return true;
}

int
gpusort_gpu_spread_report(const GsGpuSpread *spread, GsGpuReport *report)
{
	memset(report, 0, sizeof(*report));
	for (int s = 0; s < spread->count; s++)
	{
		GsGpuReport one;

		gpusort_gpu_session_report(spread->sessions[s], &one);
		report->device_bytes += one.device_bytes;
		report->sort_ms += one.sort_ms;
		report->fetch_ms += one.fetch_ms;
	}
	return spread->count;
}

void
gpusort_gpu_spread_end(GsGpuSpread *spread)
{
	for (int s = 0; s < spread->count; s++)
		if (spread->ties[s] != NULL)
			gpusort_gpu_ties_end(spread->ties[s]);
}
