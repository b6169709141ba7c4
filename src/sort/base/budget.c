/*-------------------------------------------------------------------------
 *
 * budget.c
 *		Allocates the host memory of a sort, within a limit.
 *
 * A large part of the time of a large sort goes to page faults when memory is
 * first touched, in particular on virtual machines, whose hosts soon take back
 * memory that is free.  Therefore each large block is a mapping, with huge pages
 * if the system has them, and a backend keeps the mappings of its last sort for
 * the next one.  Kept mappings are marked MADV_FREE: if the kernel needs memory,
 * it takes their pages as if they were free, and otherwise they cost nothing.
 * Kept mappings and those in use are together within pg_gpusort.work_mem, unless
 * those in use alone exceed it.
 *
 * The blocks of a small budget are smaller than a mapping.  A sort that fills
 * such a budget repeatedly, for one run after the other, would have the page
 * faults each time, since malloc returns memory to the system.  Such a sort
 * allocates its blocks from one mapping, the arena.  The first blocks come from
 * the memory context, because many sorts need no more.
 *
 * The header of a mapping is not in the mapping, because a block of 2^n bytes
 * would then need one more huge page.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <sys/mman.h>

#include "utils/memutils.h"

#include "core/poison.h"
#include "service/fault.h"
#include "settings.h"
#include "sort/base/budget.h"

/* The size of a transparent huge page. */
#define HUGE_PAGE_BYTES		((Size) 2 * 1024 * 1024)

/* Blocks of at least this size are mappings. */
#define MAPPING_FROM_BYTES	HUGE_PAGE_BYTES

/*
 * The largest arena.  With a larger budget, most blocks of a sort are mappings,
 * which other sorts can use as well.
 */
#define MAX_ARENA_BYTES		((Size) 128 * 1024 * 1024)

/* The arena is used when this part of the limit is in use. */
#define ARENA_FROM_PART		16

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS		MAP_ANON
#endif

/* Allocated in TopMemoryContext. */
struct GsMapping
{
	GsMapping  *next;			/* in the list of kept ones, or of a budget */
	char	   *memory;			/* aligned to HUGE_PAGE_BYTES */
	Size		size;			/* a multiple of HUGE_PAGE_BYTES */
};

/* Mappings that are kept for later sorts, the newest first. */
static GsMapping *kept = NULL;
static Size kept_bytes = 0;

/* The size of all mappings that are in use. */
static Size used_bytes = 0;

/* ----------------------------------------------------------------
 *		mappings
 * ----------------------------------------------------------------
 */

/*
 * Take the smallest kept mapping of at least this size off the list.  Returns NULL if
 * there is none, or if it is more than twice as large.
 */
static GsMapping *
take_kept(Size size)
{
	GsMapping **best = NULL;
	GsMapping  *mapping;

	for (GsMapping **link = &kept; *link != NULL; link = &(*link)->next)
		if ((*link)->size >= size && (*link)->size / 2 <= size &&
			(best == NULL || (*link)->size < (*best)->size))
			best = link;
	if (best == NULL)
		return NULL;
	mapping = *best;
	*best = mapping->next;
	kept_bytes -= mapping->size;
	return mapping;
}

static void
unmap(GsMapping *mapping)
{
	(void) munmap(mapping->memory, mapping->size);
	pfree(mapping);
}

/*
 * Map 'size' bytes, aligned to huge pages: map one huge page more, and unmap what is
 * before and after.  Returns NULL if that fails.
 */
static char *
map_aligned(Size size)
{
	char	   *start = mmap(NULL, size + HUGE_PAGE_BYTES,
							 PROT_READ | PROT_WRITE,
							 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char	   *aligned;
	Size		before;

	if (start == MAP_FAILED)
		return NULL;
	aligned = (char *) TYPEALIGN(HUGE_PAGE_BYTES, start);
	before = aligned - start;
	if (before > 0)
		(void) munmap(start, before);
	if (before < HUGE_PAGE_BYTES)
		(void) munmap(aligned + size, HUGE_PAGE_BYTES - before);
#ifdef MADV_HUGEPAGE
	/* If the advice is refused, ordinary pages are used. */
	(void) madvise(aligned, size, MADV_HUGEPAGE);
#endif
	return aligned;
}

void
gpusort_budget_make_room(Size bytes)
{
	Size		limit = (Size) gpusort_settings_work_mem() * 1024;

	while (kept != NULL && kept_bytes + used_bytes + bytes > limit)
	{
		GsMapping **last = &kept;

		while ((*last)->next != NULL)
			last = &(*last)->next;
		kept_bytes -= (*last)->size;
		unmap(*last);
		*last = NULL;
	}
}

static GsMapping *
make_mapping(Size size)
{
	GsMapping  *mapping;

	mapping = MemoryContextAllocExtended(TopMemoryContext, sizeof(GsMapping),
										 MCXT_ALLOC_NO_OOM);
	if (mapping == NULL)
		return NULL;
	mapping->size = size;
	mapping->memory = map_aligned(size);
	if (mapping->memory == NULL)
	{
		pfree(mapping);
		return NULL;
	}
	return mapping;
}

/* Returns a kept mapping or a new one, or NULL if there is no memory. */
static GsMapping *
get_mapping(Size size)
{
	GsMapping  *mapping;

	size = TYPEALIGN(HUGE_PAGE_BYTES, size);
	mapping = take_kept(size);
	if (mapping == NULL)
	{
		gpusort_budget_make_room(size);
		mapping = make_mapping(size);
	}
	if (mapping != NULL)
		used_bytes += mapping->size;
	return mapping;
}

/* Keep a mapping for the next sort, or unmap it. */
static void
put_mapping(GsMapping *mapping)
{
	used_bytes -= mapping->size;
#ifdef MADV_FREE
	/* Unmap the oldest first, because the next sort may be like the last one. */
	gpusort_budget_make_room(mapping->size);
	if (kept_bytes + used_bytes + mapping->size <=
		(Size) gpusort_settings_work_mem() * 1024 &&
		madvise(mapping->memory, mapping->size, MADV_FREE) == 0)
	{
		mapping->next = kept;
		kept = mapping;
		kept_bytes += mapping->size;
		return;
	}
#endif
	unmap(mapping);
}

/* ----------------------------------------------------------------
 *		budgets
 * ----------------------------------------------------------------
 */

/* Memory context callback: frees what is not in the memory context. */
static void
free_mappings(void *arg)
{
	GsBudget   *budget = arg;

	while (budget->mappings != NULL)
	{
		GsMapping  *mapping = budget->mappings;

		budget->mappings = mapping->next;
		put_mapping(mapping);
	}
}

GsBudget *
gpusort_budget_create(Size limit)
{
	GsBudget   *budget = palloc0(sizeof(GsBudget));
	MemoryContextCallback *callback = palloc(sizeof(MemoryContextCallback));

	budget->context = CurrentMemoryContext;
	budget->limit = limit;
	callback->func = free_mappings;
	callback->arg = budget;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	return budget;
}

/* Allocate a block as a mapping.  Returns NULL if there is no memory. */
static char *
take_mapping(GsBudget *budget, Size size)
{
	GsMapping  *mapping = get_mapping(size);

	if (mapping == NULL)
		return NULL;
	mapping->next = budget->mappings;
	budget->mappings = mapping;
	return mapping->memory;
}

void
gpusort_budget_use_arena(GsBudget *budget)
{
	budget->arena_bytes = TYPEALIGN_DOWN(HUGE_PAGE_BYTES, budget->limit);
	if (budget->arena_bytes > MAX_ARENA_BYTES)
		budget->arena_bytes = 0;
}

/* Allocate a block in the arena.  Returns NULL if the arena is not used or full. */
static char *
take_from_arena(GsBudget *budget, Size size)
{
	char	   *memory;

	if (budget->arena == NULL)
	{
		if (budget->arena_bytes == 0 ||
			budget->used < budget->limit / ARENA_FROM_PART)
			return NULL;
		budget->arena = take_mapping(budget, budget->arena_bytes);
		if (budget->arena == NULL)
			budget->arena_bytes = 0;
	}
	size = MAXALIGN(size);
	if (size > budget->arena_bytes - budget->arena_used)
		return NULL;
	memory = budget->arena + budget->arena_used;
	budget->arena_used += size;
	return memory;
}

static inline bool
is_in_arena(const GsBudget *budget, const char *memory)
{
	return budget->arena != NULL && memory >= budget->arena &&
		memory < budget->arena + budget->arena_bytes;
}

void *
gpusort_budget_alloc(GsBudget *budget, Size size)
{
	char	   *memory = NULL;

	if (likely(!gpusort_fault_host_alloc(&budget->allocations)))
	{
		memory = take_from_arena(budget, size);
		if (memory == NULL && size >= MAPPING_FROM_BYTES)
			memory = take_mapping(budget, size);
		else if (memory == NULL)
			memory = MemoryContextAllocExtended(budget->context, size,
												MCXT_ALLOC_NO_OOM);
	}
	if (memory == NULL)
		budget->out_of_memory = true;
	else
		gpusort_poison(memory, size);
	return memory;
}

void *
gpusort_budget_enlarge(GsBudget *budget, void *array, Size old_bytes,
					   Size bytes)
{
	void	   *larger;

	if (!gpusort_budget_reserve(budget, bytes))
		return NULL;
	larger = gpusort_budget_alloc(budget, bytes);
	if (larger == NULL)
		return NULL;
	if (old_bytes > 0)
	{
		memcpy(larger, array, old_bytes);
		gpusort_budget_free(budget, array);
		budget->used -= old_bytes;
	}
	return larger;
}

/*
 * Returns the pointer to a block's mapping in the budget's list, or NULL if the block is
 * not a mapping.
 */
static GsMapping **
find_mapping(GsBudget *budget, const void *memory)
{
	if ((uintptr_t) memory % HUGE_PAGE_BYTES == 0)
		for (GsMapping **link = &budget->mappings; *link != NULL;
			 link = &(*link)->next)
			if ((*link)->memory == memory)
				return link;
	return NULL;
}

void
gpusort_budget_free(GsBudget *budget, void *memory)
{
	GsMapping **link;
	GsMapping  *mapping;

	if (is_in_arena(budget, memory))
		return;
	link = find_mapping(budget, memory);
	if (link == NULL)
	{
		pfree(memory);
		return;
	}
	mapping = *link;
	*link = mapping->next;
	put_mapping(mapping);
}
