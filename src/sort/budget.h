/*-------------------------------------------------------------------------
 *
 * budget.h
 *		The host memory that one sort may use, and memory within it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUDGET_H
#define GPUSORT_BUDGET_H

typedef struct GsBudget
{
	Size		limit;			/* bytes */
	Size		used;			/* bytes reserved; never more than limit */
	bool		out_of_memory;	/* malloc() failed */
} GsBudget;

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
 * Allocate bytes that were reserved, backed by huge pages where the system
 * can.  Returns NULL and sets budget->out_of_memory if malloc() fails.
 */
extern void *gpusort_budget_alloc(GsBudget *budget, MemoryContext context,
								  Size size);

#endif							/* GPUSORT_BUDGET_H */
