/*
 * control.cuh
 *		What the kernels of one onesweep sort tell each other through device memory.
 *
 * One GsControl exists per sort that is under way.  It is zeroed before the histogram kernel
 * and read by the host only after the sort has ended.
 */
#ifndef GPUSORT_CONTROL_CUH
#define GPUSORT_CONTROL_CUH

#include "keys.cuh"
#include "sorter.h"

/* The arrays a sweep can read from and write to. */
enum GsBuffer : uint32_t { GPUSORT_IN = 0, GPUSORT_TMP, GPUSORT_OUT };

/* What a sweep has to do; the histogram kernel decides.  One word, since all threads keep it.
 */
struct GsStep {
	uint32_t active : 1; /* the digit varies */
	uint32_t copy : 1;	 /* no digit varies, or the keys are sorted: bring them from in to out,
						  * where the search for a descent has not done so */
	uint32_t first : 1;	 /* nothing is active before this one: its source is the input */
	uint32_t last : 1;	 /* nothing is active after this one */
	uint32_t source : 2; /* GsBuffer */
	uint32_t target : 2; /* GsBuffer */
	uint32_t global : 2; /* status code of an inclusive sum in this sweep, see below */
};

struct GsControl {
	unsigned long long counts[GPUSORT_MAX_PASSES][GPUSORT_RADIX];
	/*
	 * Position in the output of the first key of each digit that the current strip will write.
	 * A strip reads the row of its parity, its last tile writes the other one for the next
	 * strip.
	 */
	uint64_t bases[GPUSORT_MAX_PASSES][2][GPUSORT_RADIX];
	GsStep steps[GPUSORT_MAX_PASSES];
	GsSortReport report;
	uint32_t unsorted;	  /* some key is smaller than the one before it */
	uint32_t blocks_done; /* of the histogram kernel */
	uint32_t next_tile;	  /* ticket of the sweep under way; 0 between sweeps */
};

/*
 * Status words of the look-back: two bits of status above thirty bits of count, so that both
 * are read and written at once.  LOCAL: the count is the tile's own.  GLOBAL_A, GLOBAL_B: it
 * includes all tiles of the strip before.  Active sweeps use A and B in turn, and every word
 * ends a sweep as global, so the words of the sweep before read as empty and need not be
 * cleared.
 */
enum : uint32_t {
	GPUSORT_STATUS_LOCAL = 1,
	GPUSORT_STATUS_GLOBAL_A = 2,
	GPUSORT_STATUS_GLOBAL_B = 3,
	GPUSORT_STATUS_SHIFT = 30,
	GPUSORT_STATUS_COUNT = (1u << GPUSORT_STATUS_SHIFT) - 1
};

/* Most items of a strip: an inclusive sum has to fit the count. */
constexpr uint64_t GPUSORT_STRIP_ITEMS = GPUSORT_STATUS_COUNT;

#endif /* GPUSORT_CONTROL_CUH */
