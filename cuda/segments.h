/*
 * segments.h
 *		Arrays in device memory that grow without moving, and growing lists in host memory.
 *
 * Inside the library, for sessions.
 */
#ifndef GPUSORT_SEGMENTS_H
#define GPUSORT_SEGMENTS_H

#include <cstdlib>

#include "device.h"

/*
 * Items of a segmented array, as kernels see it: segments of a power of two of items, and a
 * table of their addresses that leads from an item number to the item.
 */
struct GsSegments {
	unsigned char *const *table; /* in device memory */
	uint32_t shift;				 /* items of a segment: 2^shift */

	template <class T>
	__device__ __forceinline__ T *at(uint32_t item) const
	{
		return (T *)table[item >> shift] + (item & ((1u << shift) - 1));
	}

	__device__ __forceinline__ const unsigned char *bytes_at(uint32_t item,
															 uint32_t width) const
	{
		return table[item >> shift] + (size_t)(item & ((1u << shift) - 1)) * width;
	}
};

/* A list that reports lack of memory instead of throwing; T is plain data. */
template <class T>
struct GsList {
	T *items;
	size_t count;
	size_t space;

	bool reserve(size_t more)
	{
		if (count + more <= space)
			return true;
		size_t wanted = 2 * space > count + more ? 2 * space : count + more;
		T *moved = (T *)realloc(items, wanted * sizeof(T));
		if (!moved)
			return false;
		items = moved;
		space = wanted;
		return true;
	}

	/* After reserve(). */
	void append(const T &item)
	{
		items[count++] = item;
	}

	void release()
	{
		free(items);
		items = nullptr;
		count = space = 0;
	}
};

/* Where the memory of a session comes from. */
struct GsOwner {
	GsDevice *device;
	GsAccount account;
};

/* count items of item_bytes bytes in segments of 2^shift items. */
struct GsSegmentedArray {
	uint32_t item_bytes;
	uint32_t shift;
	uint64_t count;
	GsList<unsigned char *> segments;
	unsigned char **table; /* copy of segments in device memory, made by publish() */
};

/* Segments get about segment_bytes. */
void gpusort_segments_init(GsSegmentedArray *array, uint32_t item_bytes,
						   uint64_t segment_bytes);

/* Makes room for more items at the end; on failure the array is as before, with room or
 * without. */
GsStatus gpusort_segments_reserve(GsOwner *owner, GsSegmentedArray *array, uint64_t more);

/* One contiguous part of a range of items: address, and how many items from first on. */
struct GsPiece {
	unsigned char *address;
	uint64_t items;
};
GsPiece gpusort_segments_piece(const GsSegmentedArray *array, uint64_t first, uint64_t items);

/* Copies the table to the device, for kernels; to be called again after the array has grown. */
GsStatus gpusort_segments_publish(GsOwner *owner, GsSegmentedArray *array, cudaStream_t stream);
GsSegments gpusort_segments_view(const GsSegmentedArray *array);

/* Frees everything; with gone, the device memory is gone already. */
void gpusort_segments_release(GsOwner *owner, GsSegmentedArray *array, bool gone);

/* Bytes in blocks: what is added at a time stays together. */
struct GsArena {
	uint64_t block_bytes; /* usual size of a block */
	GsList<unsigned char *> blocks;
	uint64_t block_size; /* of the last block */
	uint64_t used;		 /* of the last block */
};

/* Finds room for bytes; it is taken by the next gpusort_arena_take().  16-byte aligned. */
GsStatus gpusort_arena_reserve(GsOwner *owner, GsArena *arena, uint64_t bytes,
							   unsigned char **address);
void gpusort_arena_take(GsArena *arena, uint64_t bytes);
void gpusort_arena_release(GsOwner *owner, GsArena *arena, bool gone);

#endif /* GPUSORT_SEGMENTS_H */
