/*-------------------------------------------------------------------------
 *
 * gin_arena.h
 *		Memory for keys of an index: large blocks that are used up in sequence.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_ARENA_H
#define GPUSORT_GIN_ARENA_H

#include "sort/base/budget.h"

/*
 * A reference is the number of a block and an offset in units of 8 bytes.  No reference
 * is 0.
 */
#define GPUSORT_REF_OFFSET_BITS	18

typedef struct GsMemoryBlock
{
	char	   *memory;
	Size		size;
} GsMemoryBlock;

typedef struct GsGinArena
{
	GsBudget   *budget;
	Size		block_bytes;
	GsMemoryBlock *blocks;
	uint32		nblocks;		/* allocated */
	uint32		block;			/* the one that is being used up */
	Size		used;			/* bytes of it */
} GsGinArena;

/*
 * Prepare memory of up to 'limit' bytes, in the current memory context, with which it is
 * freed.  Raises an error if the system has no memory for the first block.
 */
extern void gpusort_gin_arena_init(GsGinArena *memory, Size limit);

/* Forget everything that was taken, and use the blocks again. */
extern void gpusort_gin_arena_reset(GsGinArena *memory);

/*
 * Allocate bytes apart from the blocks, within the same limit, or free them.  Returns NULL if
 * the limit is reached, or the system has no memory left (memory->budget->out_of_memory).
 */
extern void *gpusort_gin_arena_alloc(GsGinArena *memory, Size size);
extern void gpusort_gin_arena_free(GsGinArena *memory, void *allocated, Size size);

/*
 * Use a further block, with room for 'size' bytes.  Returns false likewise, or if that is more
 * than a block can have.
 */
extern bool gpusort_gin_arena_next_block(GsGinArena *memory, Size size);

/* Take bytes, rounded up to a multiple of 8, from the blocks.  Returns NULL likewise. */
static inline void *
gpusort_gin_arena_take(GsGinArena *memory, Size size)
{
	char	   *taken;

	size = MAXALIGN(size);
	if (memory->used + size > memory->blocks[memory->block].size &&
		!gpusort_gin_arena_next_block(memory, size))
		return NULL;
	taken = memory->blocks[memory->block].memory + memory->used;
	memory->used += size;
	return taken;
}

/* Returns the reference of what was taken last. */
static inline uint32
gpusort_gin_arena_ref(const GsGinArena *memory, const void *taken)
{
	return memory->block << GPUSORT_REF_OFFSET_BITS |
		((const char *) taken - memory->blocks[memory->block].memory) / 8;
}

static inline void *
gpusort_gin_arena_at(const GsGinArena *memory, uint32 ref)
{
	return memory->blocks[ref >> GPUSORT_REF_OFFSET_BITS].memory +
		(Size) (ref & ((1 << GPUSORT_REF_OFFSET_BITS) - 1)) * 8;
}

#endif							/* GPUSORT_GIN_ARENA_H */
