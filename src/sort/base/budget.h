/*-------------------------------------------------------------------------
 *
 * budget.h
 *		Allocates the host memory of a sort, within a limit.
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
	GsMapping  *mappings;		/* those in use */
	bool		has_arena;		/* gpusort_budget_use_arena() */
	char	   *arena;			/* what is left of its last mapping */
	Size		arena_free;		/* bytes of that */
	Size		arena_total;	/* bytes of all its mappings */
} GsBudget;

/*
 * Create a budget of 'limit' bytes in the current memory context.  All blocks are
 * freed with that context, also after an error.
 */
extern GsBudget *gpusort_budget_create(Size limit);

/*
 * Let the smaller blocks of a new budget share mappings, which saves page faults.  The
 * memory of such a block that is freed cannot be used again before the budget ends.
 */
extern void gpusort_budget_use_arena(GsBudget *budget);

/* Reserve 'size' bytes.  Returns false if the budget has fewer left. */
static inline bool
gpusort_budget_reserve(GsBudget *budget, Size size)
{
	if (size > budget->limit - budget->used)
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
