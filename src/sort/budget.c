/*-------------------------------------------------------------------------
 *
 * budget.c
 *		Memory of a sort, backed by huge pages where the system can.
 *
 * First-touch page faults are a large part of what a big sort costs: clearing
 * 2 MB at a time is several times as fast as 4 kB at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "utils/memutils.h"

#include "sort/budget.h"

/* The size of a transparent huge page on the platforms that have them. */
#define HUGE_PAGE_SIZE	((Size) 2 * 1024 * 1024)

/*
 * Below some huge pages, rounding to whole ones would cost memory, and
 * clearing them time, that a small sort does not earn back.
 */
#define HUGE_PAGES_FROM	(2 * HUGE_PAGE_SIZE)

void *
gpusort_budget_alloc(GsBudget *budget, MemoryContext context, Size size)
{
	void	   *memory = MemoryContextAllocExtended(context, size,
													MCXT_ALLOC_HUGE |
													MCXT_ALLOC_NO_OOM);

	if (memory == NULL)
	{
		budget->out_of_memory = true;
		return NULL;
	}
#if defined(__linux__) && defined(MADV_HUGEPAGE)
	if (size >= HUGE_PAGES_FROM)
	{
		char	   *start = (char *) TYPEALIGN(HUGE_PAGE_SIZE, memory);
		char	   *end = (char *) TYPEALIGN_DOWN(HUGE_PAGE_SIZE,
												  (char *) memory + size);

		/* Only advice: where it is refused, ordinary pages do. */
		(void) madvise(start, end - start, MADV_HUGEPAGE);
	}
#endif
	return memory;
}
