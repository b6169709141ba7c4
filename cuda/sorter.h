/*
 * sorter.h
 *		Sorts of arrays in device memory: chooses the kernels and launches them.
 *
 * Inside the device library and its benchmark; users have gpusort_device.h.  All work is
 * queued on the stream given; nothing here waits for it.
 */
#ifndef GPUSORT_SORTER_H
#define GPUSORT_SORTER_H

#include "gpusort_device.h"
#include "portable.cuh"

struct GsControl;

/* What the sorter needs to know of a device, and keeps on it. */
struct GsSorter {
	int multiprocessors;
	size_t shared_memory; /* most of a block, for the device and for the kernels' code */
	bool cooperative;	  /* the device can launch cooperating blocks */
	void *exchange;		  /* GsGridExchange */
	GsDebugSettings debug;
};

/*
 * A sort of device arrays, all aligned to their items.  The fields are those of GsSortRequest,
 * checked.  clobber: the input arrays may be overwritten and hold the result; see
 * gpusort_sorter_result().  With clobber, all four arrays must be given (values_in may be NULL
 * when values_in_space is given, which then is used like values_in but not read).
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
	void *values_in_space;
	void *values_out;
};

/*
 * Learns of the current device, and of the code that the library has for it, all but exchange
 * and debug.  An error if there is no such code.
 */
cudaError_t gpusort_sorter_init(GsSorter *sorter, const cudaDeviceProp &properties);

/* exchange must be zeroed memory of gpusort_sorter_exchange_bytes(). */
size_t gpusort_sorter_exchange_bytes();

/* The way the job will take; GPUSORT_PATH_AUTO if the forced one cannot take it. */
GsSortPath gpusort_sorter_path(const GsSorter *sorter, const GsSortJob *job);

/* Bytes of working space for a job, aligned to 256. */
size_t gpusort_sorter_workspace(const GsSorter *sorter, const GsSortJob *job);

/* Queues the sort.  workspace is 256-byte aligned and stays in use until the stream is done. */
cudaError_t gpusort_sorter_run(const GsSorter *sorter, const GsSortJob *job, void *workspace,
							   cudaStream_t stream);

/*
 * After a job with GPUSORT_PATH_ONESWEEP: what the kernels found out.  source is an address in
 * the job's working space; the caller copies the struct from there.
 */
struct GsSortReport {
	uint32_t passes; /* sweeps that moved items */
	uint32_t result; /* GsBuffer that holds the sorted items */
};
const void *gpusort_sorter_report_source(const void *workspace);

/* With clobber: whether keys_in and values_in (or its space) hold the result. */
bool gpusort_sorter_result_in_input(const GsSortReport *report);

GsDebugSizes gpusort_sorter_sizes(const GsSorter *sorter, uint32_t key_width,
								  uint32_t value_width);

#endif /* GPUSORT_SORTER_H */
