/*
 * segments.cu
 *		Arrays and arenas in device memory that grow without moving.
 */
#include "segments.h"

/* Returns the usual size of the next allocation of what has size bytes. */
static uint64_t bytes_to_grow(const GsGrowth &growth, uint64_t size)
{
	uint64_t part = size / growth.parts;
	if (part > GPUSORT_MAX_SEGMENT_BYTES)
		part = GPUSORT_MAX_SEGMENT_BYTES;
	return part > growth.segment_bytes ? part : growth.segment_bytes;
}

void gpusort_segments_init(GsSegmentedArray *array, uint32_t item_bytes, const GsGrowth &growth)
{
	*array = {};
	array->item_bytes = item_bytes;
	array->growth_parts = growth.parts;
	while (array->shift < 31 && ((uint64_t)item_bytes << array->shift) < growth.segment_bytes)
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

/* Returns how many segments gpusort_segments_reserve() allocates, which it does at once. */
static uint64_t segments_to_allocate(const GsSegmentedArray *array, uint64_t more)
{
	uint64_t there = array->segments.count;
	uint64_t needed = segments_for(array, array->count + more);
	if (needed <= there)
		return 0;
	uint64_t bytes = bytes_of_segment(array);
	uint64_t usual = bytes_to_grow({bytes, array->growth_parts}, there * bytes) / bytes;
	return usual > needed - there ? usual : needed - there;
}

uint64_t gpusort_segments_growth(const GsSegmentedArray *array, uint64_t more)
{
	return segments_to_allocate(array, more) * bytes_of_segment(array);
}

GsStatus gpusort_segments_reserve(GsOwner *owner, GsSegmentedArray *array, uint64_t more)
{
	uint64_t segments = segments_to_allocate(array, more);
	uint64_t bytes = bytes_of_segment(array);
	if (segments == 0)
		return GPUSORT_OK;
	if (!array->segments.reserve(segments) || !array->allocated.reserve(1))
		return gpusort_device_fail(owner->device, GPUSORT_HOST_MEMORY, "out of memory");
	void *first;
	GsStatus status =
		gpusort_device_alloc(owner->device, &owner->account, segments * bytes, &first);
	if (status)
		return status;
	array->allocated.append(array->segments.count);
	for (uint64_t i = 0; i < segments; i++)
		array->segments.append((unsigned char *)first + i * bytes);
	return GPUSORT_OK;
}

/* Frees the last allocation. */
static void free_last(GsOwner *owner, GsSegmentedArray *array)
{
	array->segments.count = array->allocated.items[--array->allocated.count];
	gpusort_device_free(owner->device, &owner->account,
						array->segments.items[array->segments.count]);
}

void gpusort_segments_trim(GsOwner *owner, GsSegmentedArray *array)
{
	uint64_t needed = segments_for(array, array->count);
	while (array->allocated.count > 0 &&
		   array->allocated.items[array->allocated.count - 1] >= needed)
		free_last(owner, array);
}

/* Returns the first segment after the allocation to which a segment belongs. */
static uint64_t end_of_allocation(const GsSegmentedArray *array, uint64_t segment)
{
	size_t low = 0, high = array->allocated.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (array->allocated.items[middle] <= segment)
			low = middle + 1;
		else
			high = middle;
	}
	return low < array->allocated.count ? array->allocated.items[low] : array->segments.count;
}

GsPiece gpusort_segments_piece(const GsSegmentedArray *array, uint64_t first, uint64_t items)
{
	uint64_t segment = first >> array->shift;
	uint64_t within = first - (segment << array->shift);
	uint64_t here = (end_of_allocation(array, segment) << array->shift) - first;
	return {array->segments.items[segment] + within * array->item_bytes,
			here < items ? here : items};
}

size_t gpusort_segments_table_bytes(const GsSegmentedArray *array, uint64_t items)
{
	return segments_for(array, items) * sizeof *array->table;
}

GsStatus gpusort_segments_upload_table(GsOwner *owner, GsSegmentedArray *array, void *table,
									   cudaStream_t stream)
{
	array->table = (unsigned char **)table;
	return gpusort_device_check(
		owner->device,
		cudaMemcpyAsync(table, array->segments.items,
						gpusort_segments_table_bytes(array, array->count),
						cudaMemcpyHostToDevice, stream),
		"copy a table of segments to the device");
}

GsSegments gpusort_segments_view(const GsSegmentedArray *array)
{
	return {array->table, array->shift};
}

void gpusort_segments_release(GsOwner *owner, GsSegmentedArray *array)
{
	while (array->allocated.count > 0)
		free_last(owner, array);
	array->segments.release();
	array->allocated.release();
	array->table = nullptr;
	array->count = 0;
}

uint64_t gpusort_arena_growth(const GsArena *arena, uint64_t bytes)
{
	if (arena->blocks.count > 0 && arena->block_size - arena->used >= bytes)
		return 0;
	uint64_t usual = bytes_to_grow(arena->growth, arena->size);
	return ((bytes > usual ? bytes : usual) + 15) / 16 * 16;
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
		arena->size += size;
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
	arena->size -= arena->block_size;
	arena->block_size = 0; /* the block before has rows, and what is left of it is not used */
}

void gpusort_arena_release(GsOwner *owner, GsArena *arena)
{
	for (size_t i = 0; i < arena->blocks.count; i++)
		gpusort_device_free(owner->device, &owner->account, arena->blocks.items[i]);
	arena->blocks.release();
	arena->size = arena->block_size = arena->used = 0;
}
