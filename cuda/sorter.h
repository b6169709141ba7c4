/*
 * sorter.h
 *		Sorts of arrays in device memory: chooses the kernels and launches them.
 *
 * Internal to the device library and its benchmark; users of the library include
 * gpusort_device.h.  All work is queued on the given stream; no function here waits for it.
 */
#ifndef GPUSORT_SORTER_H
#define GPUSORT_SORTER_H

#include "gpusort_device.h"
#include "portable.cuh"

struct GsControl;

/* What the sorter knows about a device, and the memory that it has there. */
struct GsSorter {
	int multiprocessors;
	size_t shared_memory; /* maximum per block, by the device and by the kernels' code */
	bool cooperative;	  /* the device supports cooperative launches */
	void *exchange;		  /* GsGridExchange */
	GsDebugSettings debug;
};

/*
 * A sort of arrays in device memory, all aligned to their items.  The fields are those of
 * GsSortRequest, after they were checked.
 *
 * clobber: the input arrays may be overwritten and may contain the result, see
 * gpusort_sorter_result_in_input().  All four arrays must then be given.  If values_in is NULL,
 * values_in_buffer is used as a buffer instead; its contents are not read.
 */
struct GsSortJob {
	uint32_t key_width;
	uint32_t value_width;
	uint32_t begin_bit;
	uint32_t end_bit;
	GsKeyOrder order;
	bool descending;
	bool clobber;
	uint64_t n;
	const void *keys_in;
	void *keys_out; /* NULL: not wanted (not with clobber) */
	const void *values_in;
	void *values_in_buffer;
	void *values_out;
};

/*
 * Sets all fields except exchange and debug, from the current device and from the code that the
 * library has for it.  Returns an error if there is no such code.
 */
cudaError_t gpusort_sorter_init(GsSorter *sorter, const cudaDeviceProp &properties);

/* Returns the size of exchange, which the caller must allocate and zero. */
size_t gpusort_sorter_exchange_bytes();

/*
 * Returns the path by which the job will be sorted.  GPUSORT_PATH_AUTO means that the path
 * forced by debug cannot sort it.
 */
GsSortPath gpusort_sorter_path(const GsSorter *sorter, const GsSortJob *job);

/*
 * Returns the size of a job's workspace, which must be aligned to 256 bytes.  If the job may
 * use its input as a buffer, the workspace is large enough for a job of fewer items, too.
 */
size_t gpusort_sorter_workspace(const GsSorter *sorter, const GsSortJob *job);

/*
 * Queues the sort.  The workspace must be aligned to 256 bytes and stays in use until the
 * stream has completed the sort.
 */
cudaError_t gpusort_sorter_run(const GsSorter *sorter, const GsSortJob *job, void *workspace,
							   cudaStream_t stream);

/*
 * What the kernels report about a job with GPUSORT_PATH_ONESWEEP.
 * gpusort_sorter_report_address() returns its address in the job's workspace, from which the
 * caller copies it.
 */
struct GsSorterReport {
	uint32_t passes; /* sweeps that moved items */
	uint32_t result; /* GsBuffer that holds the sorted items */
};
const void *gpusort_sorter_report_address(const void *workspace);

/* With clobber: returns whether the result is in keys_in and values_in (or values_in_buffer).
 */
bool gpusort_sorter_result_in_input(const GsSorterReport *report);

GsDebugSizes gpusort_sorter_sizes(const GsSorter *sorter, uint32_t key_width,
								  uint32_t value_width);

#endif /* GPUSORT_SORTER_H */
