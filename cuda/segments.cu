/*
 * segments.cu
 *		Arrays and arenas in device memory that grow without moving.
 */
#include "segments.h"

void gpusort_segments_init(GsSegmentedArray *array, uint32_t item_bytes, uint64_t segment_bytes)
{
	*array = {};
	array->item_bytes = item_bytes;
	while (array->shift < 31 && ((uint64_t)item_bytes << array->shift) < segment_bytes)
		array->shift++;
}

/* Returns how many segments so many items need. */
static uint64_t segments_for(const GsSegmentedArray *array, uint64_t items)
{
	return (items + ((uint64_t)1 << array->shift) - 1) >> array->shift;
}

static uint64_t bytes_of_segment(const GsSegmentedArray *array)
{
	return (uint64_t)array->item_bytes << array->shift;
}

uint64_t gpusort_segments_growth(const GsSegmentedArray *array, uint64_t more)
{
	uint64_t segments = segments_for(array, array->count + more);
	return segments > array->segments.count
			   ? (segments - array->segments.count) * bytes_of_segment(array)
			   : 0;
}

GsStatus gpusort_segments_reserve(GsOwner *owner, GsSegmentedArray *array, uint64_t more)
{
	uint64_t segments = segments_for(array, array->count + more);
	while (array->segments.count < segments) {
		if (!array->segments.reserve(1))
			return gpusort_device_fail(owner->device, GPUSORT_HOST_MEMORY, "out of memory");
		void *segment;
		GsStatus status = gpusort_device_alloc(owner->device, &owner->account,
											   bytes_of_segment(array), &segment);
		if (status)
			return status;
		array->segments.append((unsigned char *)segment);
	}
	return GPUSORT_OK;
}

void gpusort_segments_trim(GsOwner *owner, GsSegmentedArray *array)
{
	for (uint64_t needed = segments_for(array, array->count); array->segments.count > needed;)
		gpusort_device_free(owner->device, &owner->account,
							array->segments.items[--array->segments.count]);
}

GsPiece gpusort_segments_piece(const GsSegmentedArray *array, uint64_t first, uint64_t items)
{
	uint64_t segment_items = (uint64_t)1 << array->shift;
	uint64_t within = first & (segment_items - 1);
	uint64_t here = segment_items - within;
	return {array->segments.items[first >> array->shift] + within * array->item_bytes,
			here < items ? here : items};
}

GsStatus gpusort_segments_upload_table(GsOwner *owner, GsSegmentedArray *array,
									   cudaStream_t stream)
{
	gpusort_device_free(owner->device, &owner->account, array->table);
	array->table = nullptr;
	size_t bytes = array->segments.count * sizeof *array->segments.items;
	void *table;
	GsStatus status = gpusort_device_alloc(owner->device, &owner->account, bytes, &table);
	if (status)
		return status;
	array->table = (unsigned char **)table;
	return gpusort_device_check(
		owner->device,
		cudaMemcpyAsync(table, array->segments.items, bytes, cudaMemcpyHostToDevice, stream),
		"copy a table of segments to the device");
}

GsSegments gpusort_segments_view(const GsSegmentedArray *array)
{
	return {array->table, array->shift};
}

void gpusort_segments_release(GsOwner *owner, GsSegmentedArray *array, bool gone)
{
	if (!gone) {
		for (size_t i = 0; i < array->segments.count; i++)
			gpusort_device_free(owner->device, &owner->account, array->segments.items[i]);
		gpusort_device_free(owner->device, &owner->account, array->table);
	}
	array->segments.release();
	array->table = nullptr;
	array->count = 0;
}

uint64_t gpusort_arena_growth(const GsArena *arena, uint64_t bytes)
{
	if (arena->blocks.count > 0 && arena->block_size - arena->used >= bytes)
		return 0;
	return bytes > arena->block_bytes ? (bytes + 15) / 16 * 16 : arena->block_bytes;
}

GsStatus gpusort_arena_reserve(GsOwner *owner, GsArena *arena, uint64_t bytes,
							   unsigned char **address)
{
	uint64_t size = gpusort_arena_growth(arena, bytes);
	if (size > 0) {
		if (!arena->blocks.reserve(1))
			return gpusort_device_fail(owner->device, GPUSORT_HOST_MEMORY, "out of memory");
		void *block;
		GsStatus status = gpusort_device_alloc(owner->device, &owner->account, size, &block);
		if (status)
			return status;
		arena->blocks.append((unsigned char *)block);
		arena->block_size = size;
		arena->used = 0;
	}
	*address = arena->blocks.items[arena->blocks.count - 1] + arena->used;
	return GPUSORT_OK;
}

void gpusort_arena_commit(GsArena *arena, uint64_t bytes)
{
	uint64_t used = arena->used + (bytes + 15) / 16 * 16;
	arena->used = used < arena->block_size ? used : arena->block_size;
}

void gpusort_arena_trim(GsOwner *owner, GsArena *arena)
{
	if (arena->block_size == 0 || arena->used > 0)
		return;
	gpusort_device_free(owner->device, &owner->account,
						arena->blocks.items[--arena->blocks.count]);
	arena->block_size = 0; /* the block before has rows, and what is left of it is not used */
}

void gpusort_arena_release(GsOwner *owner, GsArena *arena, bool gone)
{
	for (size_t i = 0; i < arena->blocks.count && !gone; i++)
		gpusort_device_free(owner->device, &owner->account, arena->blocks.items[i]);
	arena->blocks.release();
	arena->block_size = arena->used = 0;
}
