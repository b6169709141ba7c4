/*-------------------------------------------------------------------------
 *
 * budget.c
 *		Allocates the host memory of a sort, within a limit.
 *
 * A large part of the time of a large sort goes to page faults when memory is
 * first touched, in particular on virtual machines, whose hosts soon take back
 * memory that is free.  Therefore each large block is a mapping, a stretch of
 * whole huge pages.  If the server has enough warm memory (warm_memory.c), the
 * mapping is a part of that, and is returned to it when the sort ends.
 *
 * Otherwise the backend maps memory of its own, with huge pages if the system has
 * them, and keeps the mappings of its last sort for the next one.  Kept mappings
 * are marked MADV_FREE: if the kernel needs memory, it takes their pages as if they
 * were free, and otherwise they cost nothing.  Kept mappings and those in use are
 * together within pg_gpusort.work_mem, unless those in use alone exceed it.
 *
 * Most blocks are smaller than a mapping should be.  From the memory context they
 * would have their page faults in every sort, and again in every run that a sort
 * writes, since malloc returns memory to the system.  They come from an arena: from
 * mappings that are divided among blocks.  Only the first blocks come from the memory
 * context, because many sorts need no more.
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
#include "sort/base/warm_memory.h"

/* The size of a transparent huge page. */
#define HUGE_PAGE_BYTES		GPUSORT_WARM_BLOCK_BYTES

/* Before the arena is used, blocks of at least this size are mappings; then, of that. */
#define MAPPING_FROM_BYTES	HUGE_PAGE_BYTES
#define MAPPING_BESIDE_ARENA_BYTES	(4 * HUGE_PAGE_BYTES)

/*
 * The size of a mapping of the arena: a part of what the budget has in use, but at most a part
 * of what is left of its limit, and MAX_ARENA_BYTES, so that little of the last one is left over.
 */
#define ARENA_DIVISOR			8
#define ARENA_LEFT_DIVISOR		4
#define MAX_ARENA_BYTES		(16 * HUGE_PAGE_BYTES)

/* The arena is used when this part of the limit is in use, or this number of bytes. */
#define ARENA_FROM_DIVISOR		16
#define ARENA_FROM_BYTES	(HUGE_PAGE_BYTES / 2)

/* The least that a process gets at once of what processes share. */
#define GRANT_BYTES			((Size) 64 * 1024)

/* Allocated in TopMemoryContext. */
struct GsMapping
{
	GsMapping  *next;			/* in the list of kept ones, or of a budget */
	char	   *memory;			/* aligned to HUGE_PAGE_BYTES */
	Size		size;			/* a multiple of HUGE_PAGE_BYTES */
	bool		warm;			/* belongs to the server's warm memory */
	bool		is_arena;		/* is divided among blocks */
	uint32		nblocks;		/* that are in use */
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

/* Take the mapping to which a link points off the list of kept ones. */
static GsMapping *
take_kept(GsMapping **link)
{
	GsMapping  *mapping = *link;

	*link = mapping->next;
	kept_bytes -= mapping->size;
	return mapping;
}

/*
 * Take the smallest kept mapping of at least this size.  Returns NULL if there is none, or if it is
 * more than twice as large.
 */
static GsMapping *
find_kept(Size size)
{
	GsMapping **best = NULL;

	for (GsMapping **link = &kept; *link != NULL; link = &(*link)->next)
		if ((*link)->size >= size && (*link)->size / 2 <= size &&
			(best == NULL || (*link)->size < (*best)->size))
			best = link;
	return best != NULL ? take_kept(best) : NULL;
}

static void
unmap(GsMapping *mapping)
{
	(void) munmap(mapping->memory, mapping->size);
	pfree(mapping);
}

/* May this number of bytes be kept or allocated, in addition to what is used and kept? */
static bool
has_room(Size bytes)
{
	return kept_bytes + used_bytes + bytes <= (Size) gpusort_settings_work_mem() * 1024;
}

void
gpusort_budget_make_room(Size bytes)
{
	while (kept != NULL && !has_room(bytes))
	{
		GsMapping **last = &kept;

		while ((*last)->next != NULL)
			last = &(*last)->next;
		unmap(take_kept(last));
	}
}

/* Map memory of this process alone.  Returns NULL if that fails. */
static char *
map_private(Size size)
{
	char	   *memory;

	gpusort_budget_make_room(size);
	memory = gpusort_warm_memory_map(size, false);
#ifdef MADV_HUGEPAGE
	/* If the advice is refused, ordinary pages are used. */
	if (memory != NULL)
		(void) madvise(memory, size, MADV_HUGEPAGE);
#endif
	return memory;
}

/*
 * Make a mapping of memory of a group; or without one, of warm memory, or else of new memory.
 * Returns NULL if there is none.
 */
static GsMapping *
make_mapping(const GsWarmGroup *group, Size size)
{
	GsMapping  *mapping = MemoryContextAllocExtended(TopMemoryContext, sizeof(GsMapping),
													 MCXT_ALLOC_NO_OOM);

	if (mapping == NULL)
		return NULL;
	mapping->size = size;
	mapping->memory = gpusort_warm_memory_take(group, size);
	mapping->warm = mapping->memory != NULL;
	if (group == NULL && !mapping->warm)
		mapping->memory = map_private(size);
	if (mapping->memory != NULL)
		return mapping;
	pfree(mapping);
	return NULL;
}

/* Returns a mapping for a budget, which may be a kept one.  Returns NULL if there is no memory. */
static GsMapping *
get_mapping(const GsBudget *budget, Size size)
{
	GsMapping  *mapping;

	size = TYPEALIGN(HUGE_PAGE_BYTES, size);
	if (budget->shared != NULL)
		return make_mapping(&budget->shared->group, size);
	mapping = find_kept(size);
	if (mapping == NULL)
		mapping = make_mapping(NULL, size);
	if (mapping != NULL)
		used_bytes += mapping->size;
	return mapping;
}

/* Keep a mapping for the next sort, or unmap it. */
static void
keep_mapping(GsMapping *mapping)
{
#ifdef MADV_FREE
	/* Unmap the oldest first, because the next sort may be like the last one. */
	gpusort_budget_make_room(mapping->size);
	if (has_room(mapping->size) && madvise(mapping->memory, mapping->size, MADV_FREE) == 0)
	{
		mapping->next = kept;
		kept = mapping;
		kept_bytes += mapping->size;
		return;
	}
#endif
	unmap(mapping);
}

/* Free a mapping that is off the list of its budget, unless other processes access it. */
static void
free_mapping(const GsBudget *budget, GsMapping *mapping)
{
	if (budget->shared == NULL)
		used_bytes -= mapping->size;
	if (!mapping->warm)
	{
		keep_mapping(mapping);
		return;
	}
	if (!budget->published)
		gpusort_warm_memory_return(mapping->memory, mapping->size);
	pfree(mapping);
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
		free_mapping(budget, mapping);
	}
	if (budget->shared != NULL && !budget->published)
		pg_atomic_fetch_sub_u64(&budget->shared->granted, budget->granted);
}

GsBudget *
gpusort_budget_create(Size limit)
{
	GsBudget   *budget = palloc0(sizeof(GsBudget));
	MemoryContextCallback *callback = palloc(sizeof(MemoryContextCallback));

	budget->context = CurrentMemoryContext;
	budget->limit = limit;
	budget->granted = limit;
	callback->func = free_mappings;
	callback->arg = budget;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	return budget;
}

GsSharedBudget *
gpusort_budget_create_group(Size limit, Size extra)
{
	MemoryContextCallback *callback = palloc(sizeof(MemoryContextCallback));
	GsWarmGroup *group = palloc(sizeof(GsWarmGroup));
	Size		size = TYPEALIGN(HUGE_PAGE_BYTES, sizeof(GsSharedBudget) + extra);
	GsSharedBudget *shared;

	if (!gpusort_warm_memory_create_group(group))
		return NULL;
	callback->func = gpusort_warm_memory_end_group;
	callback->arg = group;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	shared = (GsSharedBudget *) gpusort_warm_memory_take(group, size);
	if (shared == NULL)
		return NULL;
	shared->group = *group;
	shared->limit = limit;
	pg_atomic_init_u64(&shared->granted, 0);
	return shared;
}

GsBudget *
gpusort_budget_create_shared(GsSharedBudget *shared)
{
	GsBudget   *budget = gpusort_budget_create(shared->limit);

	budget->shared = shared;
	budget->granted = 0;
	return budget;
}

bool
gpusort_budget_get_granted(GsBudget *budget, Size size)
{
	GsSharedBudget *shared = budget->shared;
	Size		wanted = Max(size, GRANT_BYTES);
	uint64		before;

	if (shared == NULL)
		return false;
	before = pg_atomic_fetch_add_u64(&shared->granted, wanted);
	if (before + wanted > shared->limit)
	{
		pg_atomic_fetch_sub_u64(&shared->granted, wanted);
		return false;
	}
	budget->granted += wanted;
	return true;
}

/* Allocate a block as a mapping.  Returns NULL if there is no memory. */
static char *
take_mapping(GsBudget *budget, Size size)
{
	GsMapping  *mapping = get_mapping(budget, size);

	if (mapping == NULL)
		return NULL;
	mapping->is_arena = false;
	mapping->nblocks = 0;
	mapping->next = budget->mappings;
	budget->mappings = mapping;
	return mapping->memory;
}

static bool
uses_arena(const GsBudget *budget, Size size)
{
	return size < MAPPING_BESIDE_ARENA_BYTES &&
		(budget->shared != NULL ||
		 budget->used >= Min(budget->limit / ARENA_FROM_DIVISOR, ARENA_FROM_BYTES));
}

/*
 * Begin a new mapping of the arena that has room for a block.  Returns false if that
 * would make the arena larger than the budget, or if there is no memory.
 */
static bool
enlarge_arena(GsBudget *budget, Size size)
{
	Size		bytes = Min(budget->used / ARENA_DIVISOR, MAX_ARENA_BYTES);

	bytes = Min(bytes, (budget->limit - budget->used) / ARENA_LEFT_DIVISOR);
	bytes = TYPEALIGN(HUGE_PAGE_BYTES, Max(bytes, size));
	if (budget->arena_total + bytes > Max(budget->limit, HUGE_PAGE_BYTES))
		return false;
	budget->arena = take_mapping(budget, bytes);
	if (budget->arena == NULL)
	{
		budget->arena_free = 0;
		return false;
	}
	budget->mappings->is_arena = true;
	budget->arena_free = bytes;
	budget->arena_total += bytes;
	return true;
}

/*
 * Allocate a block in the arena.  Returns NULL if it has no room.  If a new mapping is
 * needed, of what is left of both the larger part is kept.  Otherwise, where large blocks
 * alternate with small ones, each large one would waste most of a mapping.
 */
static char *
take_from_arena(GsBudget *budget, Size size)
{
	char	   *rest = budget->arena;
	Size		rest_bytes = budget->arena_free;
	char	   *memory;

	size = MAXALIGN(Max(size, 1));
	if (size > rest_bytes && !enlarge_arena(budget, size))
		return NULL;
	memory = budget->arena;
	budget->arena += size;
	budget->arena_free -= size;
	if (memory != rest && rest_bytes > budget->arena_free)
	{
		budget->arena = rest;
		budget->arena_free = rest_bytes;
	}
	return memory;
}

/*
 * Returns the pointer to the mapping of a block in the budget's list, or NULL if the
 * block is in the memory context.
 */
static GsMapping **
find_mapping(GsBudget *budget, const char *memory)
{
	for (GsMapping **link = &budget->mappings; *link != NULL;
		 link = &(*link)->next)
		if (memory >= (*link)->memory &&
			memory < (*link)->memory + (*link)->size)
			return link;
	return NULL;
}

/* Take a block from the arena, a mapping or the memory context.  Returns NULL if that fails. */
static char *
take_block(GsBudget *budget, Size size)
{
	char	   *memory = uses_arena(budget, size) ? take_from_arena(budget, size) : NULL;

	if (memory == NULL && size < MAPPING_FROM_BYTES && budget->shared == NULL)
		return MemoryContextAllocExtended(budget->context, size, MCXT_ALLOC_NO_OOM);
	if (memory == NULL)
		memory = take_mapping(budget, size);
	if (memory != NULL)
		(*find_mapping(budget, memory))->nblocks++;
	return memory;
}

void *
gpusort_budget_alloc(GsBudget *budget, Size size)
{
	char	   *memory = NULL;

	if (likely(!gpusort_fault_host_alloc(&budget->allocations)))
		memory = take_block(budget, size);
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

/* No block of a mapping is in use.  It may be what is left of the arena: then use it again. */
static void
end_mapping(GsBudget *budget, GsMapping **link)
{
	GsMapping  *mapping = *link;

	if (mapping->is_arena && budget->arena + budget->arena_free == mapping->memory + mapping->size)
	{
		budget->arena = mapping->memory;
		budget->arena_free = mapping->size;
		return;
	}
	if (mapping->is_arena)
		budget->arena_total -= mapping->size;
	*link = mapping->next;
	free_mapping(budget, mapping);
}

void
gpusort_budget_free(GsBudget *budget, void *memory)
{
	GsMapping **link = find_mapping(budget, memory);

	if (link == NULL)
		pfree(memory);
	else if (--(*link)->nblocks == 0)
		end_mapping(budget, link);
}
