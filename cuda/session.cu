#include "session.h"
GsStatus gpusort_session_begin(GsDevice *, const GsSessionOptions *, GsSession **) { return GPUSORT_BAD_STATE; }
GsStatus gpusort_session_put(GsSession *, const GsChunk *, GsTicket *) { return GPUSORT_BAD_STATE; }
GsStatus gpusort_session_sort(GsSession *, GsSessionResult *) { return GPUSORT_BAD_STATE; }
GsStatus gpusort_session_get(GsSession *, uint64_t, GsSortedChunk *, GsTicket *) { return GPUSORT_BAD_STATE; }
GsStatus gpusort_session_poll(GsSession *, GsTicket) { return GPUSORT_BAD_STATE; }
GsStatus gpusort_session_wait(GsSession *, GsTicket) { return GPUSORT_BAD_STATE; }
uint64_t gpusort_session_memory(const GsSession *) { return 0; }
void gpusort_session_end(GsSession *) {}
void gpusort_session_end_all(GsDevice *) {}
