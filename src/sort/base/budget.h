/*-------------------------------------------------------------------------
 *
 * budget.h
 *		The host memory that one sort may use, and memory within it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUDGET_H
#define GPUSORT_BUDGET_H

typedef struct GsMapping GsMapping;

typedef struct GsBudget
{
	MemoryContext context;
	Size		limit;			/* bytes */
	Size		used;			/* bytes reserved; never more than limit */
	bool		out_of_memory;	/* the system had no memory left */
	uint32		allocations;	/* so far, see service/fault.h */
	GsMapping  *mappings;		/* of blocks that are not freed */
	char	   *arena;			/* one of these for small blocks, or NULL */
	Size		arena_bytes;	/* that it has or will have, or 0 */
	Size		arena_used;
} GsBudget;

/*
 * Make a budget of 'limit' bytes in the current memory context, which is also
 * what ends it: all blocks are freed with the context, after an error too.
 */
extern GsBudget *gpusort_budget_create(Size limit);

/*
 * Let a new budget take blocks from one mapping where that saves page faults.  The
 * memory of those that are freed is free when the budget ends.
 */
extern void gpusort_budget_use_arena(GsBudget *budget);

/* Take 'size' bytes from the budget, or return false if they are not there. */
static inline bool
gpusort_budget_reserve(GsBudget *budget, Size size)
{
	if (size > budget->limit - budget->used)
		return false;
	budget->used += size;
	return true;
}

/*
 * Allocate a block of bytes that were reserved, aligned for any type; its
 * contents are undefined.  Returns NULL and sets budget->out_of_memory if the
 * system has no memory left.
 */
extern void *gpusort_budget_alloc(GsBudget *budget, Size size);

/*
 * Reserve and allocate a larger block in the place of an array of 'old_bytes',
 * which may be none and NULL, with the contents of that.  Returns NULL, and leaves
 * the array as it is, if the budget is used up or the system has no memory left
 * (budget->out_of_memory).
 */
extern void *gpusort_budget_enlarge(GsBudget *budget, void *array,
									Size old_bytes, Size bytes);

/* Free a block.  The bytes stay reserved. */
extern void gpusort_budget_free(GsBudget *budget, void *memory);

/*
 * So many bytes will be allocated elsewhere: give memory kept for other sorts back
 * to the system, the oldest first, until both are within pg_gpusort.work_mem.
 */
extern void gpusort_budget_make_room(Size bytes);

#endif							/* GPUSORT_BUDGET_H */
