/*-------------------------------------------------------------------------
 *
 * key_memory.h
 *		Memory for keys of an index: large blocks that are used up in sequence.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_MEMORY_H
#define GPUSORT_KEY_MEMORY_H

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

typedef struct GsKeyMemory
{
	GsBudget   *budget;
	Size		block_bytes;
	GsMemoryBlock *blocks;
	uint32		nblocks;		/* allocated */
	uint32		block;			/* the one that is being used up */
	Size		used;			/* bytes of it */
} GsKeyMemory;

/*
 * Prepare memory of up to 'limit' bytes, in the current memory context, with which it is
 * freed.  Raises an error if the system has no memory for the first block.
 */
extern void gpusort_key_memory_init(GsKeyMemory *memory, Size limit);

/* Forget everything that was taken, and use the blocks again. */
extern void gpusort_key_memory_reset(GsKeyMemory *memory);

/*
 * Allocate bytes apart from the blocks, within the same limit, or free them.  Returns NULL if
 * the limit is reached, or the system has no memory left (memory->budget->out_of_memory).
 */
extern void *gpusort_key_memory_alloc(GsKeyMemory *memory, Size size);
extern void gpusort_key_memory_free(GsKeyMemory *memory, void *allocated, Size size);

/*
 * Use a further block, with room for 'size' bytes.  Returns false likewise, or if that is more
 * than a block can have.
 */
extern bool gpusort_key_memory_next_block(GsKeyMemory *memory, Size size);

/* Take bytes, rounded up to a multiple of 8, from the blocks.  Returns NULL likewise. */
static inline void *
gpusort_key_memory_take(GsKeyMemory *memory, Size size)
{
	char	   *taken;

	size = MAXALIGN(size);
	if (memory->used + size > memory->blocks[memory->block].size &&
		!gpusort_key_memory_next_block(memory, size))
		return NULL;
	taken = memory->blocks[memory->block].memory + memory->used;
	memory->used += size;
	return taken;
}

/* Returns the reference of what was taken last. */
static inline uint32
gpusort_key_memory_ref(const GsKeyMemory *memory, const void *taken)
{
	return memory->block << GPUSORT_REF_OFFSET_BITS |
		((const char *) taken - memory->blocks[memory->block].memory) / 8;
}

static inline void *
gpusort_key_memory_at(const GsKeyMemory *memory, uint32 ref)
{
	return memory->blocks[ref >> GPUSORT_REF_OFFSET_BITS].memory +
		(Size) (ref & ((1 << GPUSORT_REF_OFFSET_BITS) - 1)) * 8;
}

#endif							/* GPUSORT_KEY_MEMORY_H */
