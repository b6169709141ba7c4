/*-------------------------------------------------------------------------
 *
 * device_sessions.h
 *		The device process's data for sessions, for the files that serve them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_SESSIONS_H
#define GPUSORT_DEVICE_SESSIONS_H

#include "service/devices.h"
#include "service/service_shmem.h"

typedef struct GsTransfer
{
	GsPoolChunk *chunk;
	GsTicket	ticket;
} GsTransfer;

/*
 * Where the sorted rows of a session are.
 *
 *	ON_DEVICE -> PARKING -> PARKED
 *
 * PARKING -> ON_DEVICE when a client asks for a chunk, or the file cannot be written.
 */
typedef enum GsRowsPlace
{
	GS_ROWS_ON_DEVICE,
	GS_ROWS_PARKING,			/* on the device, and some in the file */
	GS_ROWS_PARKED				/* in the file */
} GsRowsPlace;

/* The device process's data for the session of a slot. */
typedef struct GsServedSlot
{
	bool		open;
	int			device;
	GsSession  *parts[GS_PARTS];
	uint64		rows;			/* rows put so far */
	uint64		spoken_for;		/* its share of the device's spoken_for */
	bool		full;
	bool		sorted;
	bool		failed;
	uint32		ring_tail;
	uint32		faults;			/* how often the fault's point was reached */
	bool		swap_rows;		/* the fault "swap", in the next chunk */
	GsRowsPlace place;
	int			file;			/* has rows, unless ON_DEVICE */
	uint64		file_bytes;		/* written to it */
	uint64		next_parked;	/* PARKING: index of the next chunk */
	TimestampTz park_at;		/* ON_DEVICE: when to begin, if it is sorted */
	int			ntransfers;
	GsTransfer	transfers[GPUSORT_MAX_CHUNKS];
} GsServedSlot;

/* ---- device_parking.c: sorted rows of sessions that nobody reads ---- */

/* A client uses the session, so that its rows stay where they are for a while. */
extern void gpusort_parking_note_use(GsSlot *slot, GsServedSlot *session);

/* Returns when the rows of a session are to be parked if no client uses it, or DT_NOEND. */
extern TimestampTz gpusort_parking_due(GsSlot *slot, const GsServedSlot *session);

/*
 * Park the next chunk of a session.  If that was the last one, the session is PARKED, and the
 * caller frees its device memory.  If the file cannot be written, the log says so, the rows stay
 * on the device, and it is not tried again for a while; 'fault' makes that happen.  Returns a
 * failure of the device.
 */
extern GsStatus gpusort_parking_step(GsSlot *slot, GsServedSlot *session,
									 const GsDeviceApi * api, bool fault);

/* Read a chunk of rows that are PARKED.  Returns false and sets errno if that fails. */
extern bool gpusort_parking_read(const GsSlot *slot, const GsServedSlot *session,
								 const GsPoolChunk *pool_chunk, GsSortedChunk * target);

/* Close the file of a session, if there is one. */
extern void gpusort_parking_end(GsServedSlot *session);

#endif							/* GPUSORT_DEVICE_SESSIONS_H */
