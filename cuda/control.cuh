/*
 * control.cuh
 *		State in device memory that the kernels of one onesweep sort share.
 *
 * Each sort in progress has one GsControl.  It is zeroed before the histogram kernel, and the
 * host reads it only after the sort has ended.
 */
#ifndef GPUSORT_CONTROL_CUH
#define GPUSORT_CONTROL_CUH

#include "keys.cuh"
#include "sorter.h"

/* Arrays that a sweep reads from and writes to. */
enum GsBuffer : uint32_t { GPUSORT_IN = 0, GPUSORT_TMP, GPUSORT_OUT };

/*
 * What a pass has to do, as planned by the histogram kernel.  It is a single word, since every
 * thread keeps it in a register.
 */
struct GsPass {
	uint32_t active : 1; /* keys differ in this digit */
	uint32_t copy : 1;	 /* no pass is active, and the sorted copy did not copy in to out */
	uint32_t first : 1;	 /* no earlier pass is active: the source is the input */
	uint32_t last : 1;	 /* no later pass is active */
	uint32_t source : 2; /* GsBuffer */
	uint32_t target : 2; /* GsBuffer */
	uint32_t global : 2; /* status code of an inclusive sum in this sweep, see below */
};

struct GsControl {
	unsigned long long counts[GPUSORT_MAX_PASSES][GPUSORT_RADIX];
	/*
	 * Position in the output of the first key of each digit that the current strip writes.  A
	 * strip reads the row of its parity; its last tile writes the other row for the next strip.
	 */
	uint64_t bases[GPUSORT_MAX_PASSES][2][GPUSORT_RADIX];
	GsPass passes[GPUSORT_MAX_PASSES];
	GsSorterReport report;
	uint32_t unsorted;	  /* not 0: some key is less than its predecessor */
	uint32_t blocks_done; /* blocks of the histogram kernel that have finished counting */
	uint32_t next_tile;	  /* next tile to draw in the current sweep; 0 between sweeps */
};

/*
 * Status words of the look-back: two bits of status above thirty bits of count, so that one
 * access reads or writes both.
 *
 * LOCAL: the count is that of the tile alone.  GLOBAL_A, GLOBAL_B: it is an inclusive sum over
 * the tile and all preceding tiles of the strip.  Active sweeps use A and B alternately.  Every
 * word is global at the end of a sweep, so the words of the previous sweep count as empty and
 * need not be cleared.
 */
enum : uint32_t {
	GPUSORT_STATUS_LOCAL = 1,
	GPUSORT_STATUS_GLOBAL_A = 2,
	GPUSORT_STATUS_GLOBAL_B = 3,
	GPUSORT_STATUS_SHIFT = 30,
	GPUSORT_STATUS_COUNT = (1u << GPUSORT_STATUS_SHIFT) - 1
};

/* Maximum number of items of a strip: an inclusive sum has to fit in the count. */
constexpr uint64_t GPUSORT_STRIP_ITEMS = GPUSORT_STATUS_COUNT;

#endif /* GPUSORT_CONTROL_CUH */
