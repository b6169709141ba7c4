/*
 * session.h
 *		Sort sessions, as described in gpusort_device.h.  Internal to the library.
 *
 * These are functions of the table GsDeviceApi.
 */
#ifndef GPUSORT_SESSION_H
#define GPUSORT_SESSION_H

#include "device.h"

GsStatus gpusort_session_begin(GsDevice *device, const GsSessionOptions *options,
							   GsSession **session);
GsStatus gpusort_session_put(GsSession *session, const GsChunk *chunk, GsTicket *ticket);
GsStatus gpusort_session_sort(GsSession *session, GsSessionResult *result);
GsStatus gpusort_session_get(GsSession *session, uint64_t chunk, GsSortedChunk *target,
							 GsTicket *ticket);
GsStatus gpusort_session_poll(GsSession *session, GsTicket ticket);
GsStatus gpusort_session_wait(GsSession *session, GsTicket ticket);
uint64_t gpusort_session_memory(const GsSession *session, const GsChunk *chunk);
void gpusort_session_end(GsSession *session);

/* Ends all sessions of a device that is being closed. */
void gpusort_session_end_all(GsDevice *device);

#endif /* GPUSORT_SESSION_H */
