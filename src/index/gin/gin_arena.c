/*-------------------------------------------------------------------------
 *
 * gin_arena.c
 *		Memory for keys of an index: large blocks that are used up in sequence.
 *
 * A block is one huge page, or less if memory is short.  What is larger than that has a block
 * of its own, up to a huge page, since no reference could be made into the rest of it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "index/gin/gin_arena.h"

#define MAX_BLOCK_BYTES		((Size) 8 << GPUSORT_REF_OFFSET_BITS)
#define MIN_BLOCK_BYTES		((Size) 32 * 1024)
#define MAX_BLOCKS			(1 << (32 - GPUSORT_REF_OFFSET_BITS))

/* The part of the memory that is one block. */
#define BLOCK_PART			16

static Size
choose_block_bytes(Size limit)
{
	Size		size = MAX_BLOCK_BYTES;

	while (size > MIN_BLOCK_BYTES && size > limit / BLOCK_PART)
		size /= 2;
	return size;
}

void
gpusort_gin_arena_init(GsGinArena *memory, Size limit)
{
	memory->budget = gpusort_budget_create(limit);
	gpusort_budget_use_arena(memory->budget);
	memory->block_bytes = choose_block_bytes(limit);
	memory->blocks = palloc(MAX_BLOCKS * sizeof(GsMemoryBlock));
	memory->nblocks = 0;
	memory->block = 0;
	for (int attempt = 0; !gpusort_gin_arena_next_block(memory, memory->block_bytes); attempt++)
		if (attempt > 0)
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory")));
	gpusort_gin_arena_reset(memory);
}

void
gpusort_gin_arena_reset(GsGinArena *memory)
{
	memory->block = 0;

	/* This leaves the reference 0 out. */
	memory->used = 8;
}

void *
gpusort_gin_arena_alloc(GsGinArena *memory, Size size)
{
	if (!gpusort_budget_reserve(memory->budget, size))
		return NULL;
	return gpusort_budget_alloc(memory->budget, size);
}

void
gpusort_gin_arena_free(GsGinArena *memory, void *allocated, Size size)
{
	gpusort_budget_free(memory->budget, allocated);
	memory->budget->used -= size;
}

bool
gpusort_gin_arena_next_block(GsGinArena *memory, Size size)
{
	GsMemoryBlock *block;

	/* Blocks are left from before a reset. */
	while (memory->block + 1 < memory->nblocks)
	{
		memory->block++;
		memory->used = 0;
		if (memory->blocks[memory->block].size >= size)
			return true;
	}
	if (memory->nblocks == MAX_BLOCKS || size > MAX_BLOCK_BYTES)
		return false;
	block = &memory->blocks[memory->nblocks];
	block->size = Max(size, memory->block_bytes);
	block->memory = gpusort_gin_arena_alloc(memory, block->size);
	if (block->memory == NULL)
		return false;
	memory->block = memory->nblocks++;
	memory->used = 0;
	return true;
}
