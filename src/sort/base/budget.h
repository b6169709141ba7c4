/*-------------------------------------------------------------------------
 *
 * budget.h
 *		Allocates the host memory of a sort, within a limit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUDGET_H
#define GPUSORT_BUDGET_H

#include "port/atomics.h"

#include "sort/base/warm_memory.h"

typedef struct GsMapping GsMapping;

/*
 * What several processes sort together has its memory in common: each process has a
 * budget of its own, whose blocks have the same address in all of them.  In such memory.
 */
typedef struct GsSharedBudget
{
	GsWarmGroup group;
	Size		limit;			/* bytes for all processes */
	pg_atomic_uint64 granted;	/* bytes that they may reserve so far */
} GsSharedBudget;

typedef struct GsBudget
{
	MemoryContext context;
	Size		limit;			/* bytes */
	Size		granted;		/* bytes that may be reserved now: limit,
								 * unless it is shared */
	Size		used;			/* bytes reserved; never more than granted */
	GsSharedBudget *shared;		/* to which it belongs, or NULL */
	bool		published;		/* do other processes access its blocks?  Then
								 * they remain until the shared memory ends,
								 * whatever happens to this process.  Set by
								 * who shares them */
	bool		out_of_memory;	/* the system had no memory left */
	uint32		allocations;	/* so far, see service/fault.h */
	GsMapping  *mappings;		/* those in use */
	char	   *arena;			/* what is left of a mapping of it */
	Size		arena_free;		/* bytes of that */
	Size		arena_total;	/* bytes of all its mappings */
} GsBudget;

/*
 * Create a budget of 'limit' bytes in the current memory context.  All blocks are
 * freed with that context, also after an error.
 */
extern GsBudget *gpusort_budget_create(Size limit);

/*
 * Create the memory for several processes, with a limit for all of them.  It ends with the
 * current memory context; the other processes must not access it any more at that time.
 * Returns NULL if there is no such memory.  'extra' bytes follow the struct.
 */
extern GsSharedBudget *gpusort_budget_create_group(Size limit, Size extra);

/* Create a budget of this process in such memory. */
extern GsBudget *gpusort_budget_create_shared(GsSharedBudget *shared);

/* Ask for more of what processes share.  Returns false if less than 'size' is left. */
extern bool gpusort_budget_get_granted(GsBudget *budget, Size size);

/* Reserve 'size' bytes.  Returns false if the budget has fewer left. */
static inline bool
gpusort_budget_reserve(GsBudget *budget, Size size)
{
	if (size > budget->granted - budget->used &&
		!gpusort_budget_get_granted(budget, size))
		return false;
	budget->used += size;
	return true;
}

/*
 * Allocate a block of bytes that have been reserved.  It is aligned for any type,
 * and its contents are undefined.  Returns NULL and sets budget->out_of_memory if
 * the system has no memory left.
 */
extern void *gpusort_budget_alloc(GsBudget *budget, Size size);

/*
 * Enlarge an array of 'old_bytes' to 'bytes': reserve and allocate a new block, copy
 * the array and free it.  If 'old_bytes' is 0, 'array' may be NULL.  Returns NULL and
 * leaves the array unchanged if the budget is used up or the system has no memory
 * left (budget->out_of_memory).
 */
extern void *gpusort_budget_enlarge(GsBudget *budget, void *array,
									Size old_bytes, Size bytes);

/* Free a block.  Its bytes remain reserved. */
extern void gpusort_budget_free(GsBudget *budget, void *memory);

/*
 * Make room for 'bytes' that will be allocated outside of a budget: return mappings
 * that are kept for later sorts to the system, the oldest first, until both together
 * are within pg_gpusort.work_mem.
 */
extern void gpusort_budget_make_room(Size bytes);

#endif							/* GPUSORT_BUDGET_H */
