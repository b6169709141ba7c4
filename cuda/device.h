/*
 * device.h
 *		An open device: its stream, its memory account, its errors.  Internal to the library.
 *
 * Every CUDA call of the library goes through gpusort_device_check(), which turns an error into
 * a status and keeps a message.  It also notices sticky errors, after which the context is
 * broken: the device then counts as lost.
 */
#ifndef GPUSORT_DEVICE_INTERNAL_H
#define GPUSORT_DEVICE_INTERNAL_H

#include "gpusort_device.h"
#include "sorter.h"

constexpr uint32_t GPUSORT_ALLOCATION_LISTS = 4096; /* a power of two */

struct GsDevice {
	int ordinal;
	bool started; /* the device was found and can run the library's code */
	bool lost;	  /* everything on the device is gone, because of a sticky error */
	uint64_t in_use;
	uint32_t sessions;
	GsSession *all_sessions;
	/*
	 * All allocations of this GsDevice, for the account: each is in the list that its address
	 * says, so that those of a session can be freed without searching those of all others.
	 */
	struct GsAllocation *allocations[GPUSORT_ALLOCATION_LISTS];
	GsSorter sorter;
	cudaStream_t compute;
	cudaMemPool_t pool;	 /* NULL if the device has no pools: memory comes from cudaMalloc() */
	cudaStream_t memory; /* of allocations from the pool only */
	void *workspace;	 /* reused by successive sorts */
	size_t workspace_size;
	uint32_t allocs_left; /* for tests: allocations until one fails; 0: none fails */
	uint32_t launches_left;
	char message[256];
};

/* Keeps a printf-like message and returns status. */
GsStatus gpusort_device_fail(GsDevice *device, GsStatus status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Returns GPUSORT_OK, or the status of a CUDA error.  what is the failed action, as in "could
 * not <what>".
 */
GsStatus gpusort_device_check(GsDevice *device, cudaError_t error, const char *what);

/* Makes the device current.  Returns DEVICE_LOST if it is lost. */
GsStatus gpusort_device_select(GsDevice *device);

/*
 * Device memory comes from a pool, which keeps what is freed until it is trimmed:
 * cudaFree() would wait for the work of all sessions.  All work that uses an
 * allocation must have ended before it is freed.
 *
 * Memory is charged to the device's account, and to an additional one if account is not
 * NULL.  limit of an account: 0 means no limit.  A size of 0 gives a valid pointer.  On failure
 * *pointer is NULL.
 */
struct GsAccount {
	uint64_t limit;
	uint64_t in_use;
	uint64_t peak;
};
GsStatus gpusort_device_alloc(GsDevice *device, GsAccount *account, size_t size,
							  void **pointer);

/*
 * Replaces an allocation of old_size bytes, or NULL, by one of size bytes with other contents.
 * On failure, the old size is allocated again.  The pool still has that, since nobody else uses
 * the pool; without a pool, *pointer may become NULL.
 */
GsStatus gpusort_device_replace(GsDevice *device, GsAccount *account, size_t old_size,
								size_t size, void **pointer);

/*
 * Frees device memory, also on a lost device.  pointer may be NULL; account is that of the
 * allocation.
 */
GsStatus gpusort_device_free(GsDevice *device, GsAccount *account, void *pointer);

/* Returns how many bytes the pool holds, and how many of these are not in use. */
GsStatus gpusort_device_pooled(GsDevice *device, uint64_t *held, uint64_t *unused);

/* Gives the pool's unused memory back to the system. */
GsStatus gpusort_device_trim_pool(GsDevice *device);

/*
 * Returns a workspace of at least size bytes, valid until the next call.  It may be used on the
 * stream compute only.
 */
GsStatus gpusort_device_workspace(GsDevice *device, size_t size, void **workspace);
void gpusort_device_free_workspace(GsDevice *device);

/* Queues a sort on the stream compute, or fails if the settings for tests request it. */
GsStatus gpusort_device_run(GsDevice *device, const GsSortJob *job, void *workspace);

GsStatus gpusort_device_open(int ordinal, GsDevice **device, char *message,
							 size_t message_size);
void gpusort_device_close(GsDevice *device);
GsStatus gpusort_device_count(int *count, char *message, size_t message_size);
GsStatus gpusort_device_info(int ordinal, GsDeviceInfo *info, char *message,
							 size_t message_size);

/* health.cu: what the driver says. */
void gpusort_device_health(GsDevice *device, GsDeviceHealth *health);

/* Sorts arrays in host or device memory, and waits for the end. */
GsStatus gpusort_device_sort_arrays(GsDevice *device, const GsSortRequest *request);

#endif /* GPUSORT_DEVICE_INTERNAL_H */
