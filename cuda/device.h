/*
 * device.h
 *		An open device: its streams, its memory account, its errors.  Inside the library.
 *
 * Every CUDA call of the library goes through gpusort_device_check(), which turns its error
 * into a status, keeps a message, and notices errors that stay (the context is broken): from
 * then on the device is lost.
 */
#ifndef GPUSORT_DEVICE_INTERNAL_H
#define GPUSORT_DEVICE_INTERNAL_H

#include "gpusort_device.h"
#include "sorter.h"

struct GsDevice {
	int ordinal;
	bool started; /* it was there, with code that it can run */
	bool lost;
	uint64_t memory_limit;
	uint64_t in_use;
	uint32_t sessions;
	GsSession *all_sessions;
	struct GsAllocation *allocations; /* all of this device, for the account */
	GsSorter sorter;
	cudaStream_t compute;
	void *workspace; /* kept from sort to sort */
	size_t workspace_size;
	uint32_t allocs_left; /* debug: until one fails; 0: none will */
	uint32_t launches_left;
	uint32_t epoch;	 /* counts device_recover() */
	uint32_t resets; /* of this ordinal, in this process, when the device was started */
	char message[256];
};

/* Records and returns a status with a printf-like message. */
GsStatus gpusort_device_fail(GsDevice *device, GsStatus status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* GPUSORT_OK, or the status of a CUDA error; what names the attempt, as in "could not <what>".
 */
GsStatus gpusort_device_check(GsDevice *device, cudaError_t error, const char *what);

/*
 * Whether everything on the device is gone: an error that stays, or the reset of another
 * GsDevice of the same ordinal.
 */
bool gpusort_device_is_lost(GsDevice *device);

/* DEVICE_LOST when the device is, else GPUSORT_OK after making it current. */
GsStatus gpusort_device_enter(GsDevice *device);

/*
 * Device memory against the device's account and an additional one (may be NULL) with its limit
 * (0: none).  A size of 0 gives a valid pointer.  On failure *pointer is NULL.
 */
struct GsAccount {
	uint64_t limit;
	uint64_t in_use;
	uint64_t peak;
};
GsStatus gpusort_device_alloc(GsDevice *device, GsAccount *account, size_t size,
							  void **pointer);

/* Frees it, also on a lost device; NULL is allowed.  account: as at the allocation. */
GsStatus gpusort_device_free(GsDevice *device, GsAccount *account, void *pointer);

/* Working space of at least size bytes, valid until the next call; used on compute only. */
GsStatus gpusort_device_workspace(GsDevice *device, size_t size, void **workspace);
void gpusort_device_drop_workspace(GsDevice *device);

/* Queues a sort on compute, with the test's faults. */
GsStatus gpusort_device_run(GsDevice *device, const GsSortJob *job, void *workspace);

GsStatus gpusort_device_open(const GsDeviceOptions *options, GsDevice **device, char *message,
							 size_t message_size);
void gpusort_device_close(GsDevice *device);
GsStatus gpusort_device_recover(GsDevice *device);
GsStatus gpusort_device_count(int *count, char *message, size_t message_size);
GsStatus gpusort_device_info(int ordinal, GsDeviceInfo *info, char *message,
							 size_t message_size);

/* One sort of arrays, host or device; waits. */
GsStatus gpusort_array_sort(GsDevice *device, const GsSortRequest *request);

#endif /* GPUSORT_DEVICE_INTERNAL_H */
