/*-------------------------------------------------------------------------
 *
 * budget.c
 *		The host memory that one sort may use, and memory within it.
 *
 * First-touch page faults are a large part of what a big sort costs, the more
 * so on virtual machines, whose hosts take memory back that was free for a
 * moment.  So large blocks are mappings of their own, of huge pages where the
 * system has them, and a backend keeps the mappings of its last sort for its
 * next one.  What it keeps is marked MADV_FREE: the kernel takes such pages
 * the moment it needs them, as if they were free, and costs nothing if it
 * does not.  What is kept and what sorts use together is never more than
 * pg_gpusort.work_mem, unless the sorts alone take more.
 *
 * Blocks of small budgets are far below the size of a mapping.  A sort that uses
 * up such a budget again and again, for one run after the other, would pay for
 * its page faults each time, since malloc gives memory back to the system.  So it
 * takes its blocks from one mapping, the arena, but for the first ones, as many
 * a sort is small.
 *
 * A mapping has its header elsewhere: blocks of a power of two bytes would take
 * a huge page more for it.
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

/* The size of a huge page on the platforms that have them transparently. */
#define HUGE_PAGE_BYTES		((Size) 2 * 1024 * 1024)

/* Blocks from this size are mappings. */
#define MAPPING_FROM_BYTES	HUGE_PAGE_BYTES

/*
 * The largest arena.  With more memory most blocks of a sort are mappings by
 * themselves, which serve other sorts as well.
 */
#define MAX_ARENA_BYTES		((Size) 128 * 1024 * 1024)

/* Blocks are taken from the arena when a part of the limit is in use. */
#define ARENA_FROM_PART		16

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS		MAP_ANON
#endif

/* In memory of TopMemoryContext. */
struct GsMapping
{
	GsMapping  *next;			/* among the mappings kept, or of a budget */
	char	   *memory;			/* aligned to HUGE_PAGE_BYTES */
	Size		size;			/* a multiple of HUGE_PAGE_BYTES */
};

/* The mappings kept. */
static GsMapping *kept = NULL;
static Size kept_bytes = 0;

/* Bytes of all other mappings. */
static Size used_bytes = 0;

/* ----------------------------------------------------------------
 *		mappings
 * ----------------------------------------------------------------
 */

/* The smallest mapping kept of at least that size, if not much larger. */
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
 * Map so many bytes, aligned to huge pages: map one more and cut both ends.
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
	/* Only advice: where it is refused, ordinary pages do. */
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

/* Returns NULL if there is no memory. */
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
	/* The oldest go first: the next sort may well be like the last one. */
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

/* Memory context callback: the context frees its own memory, we the rest. */
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

/* A mapping of so many bytes, or NULL. */
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

/* A block of the arena, or NULL if that has no room. */
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

/* The place in a budget's list at which a block's mapping is, or NULL. */
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
