/*
 * segments.h
 *		Arrays in device memory that grow without moving, and growing lists in host memory.
 *
 * Internal to the library; used by sessions.
 */
#ifndef GPUSORT_SEGMENTS_H
#define GPUSORT_SEGMENTS_H

#include <cstdlib>

#include "device.h"

/*
 * A segmented array as kernels see it.  Each segment has 2^shift items, and a table has the
 * addresses of the segments.
 */
struct GsSegments {
	unsigned char *const *table; /* in device memory */
	uint32_t shift;				 /* a segment has 2^shift items */

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

/* A growing list that reports lack of memory instead of throwing.  T is plain data. */
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

	/* reserve() must have been called. */
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

/* The device and the account to which a session's memory is charged. */
struct GsOwner {
	GsDevice *device;
	GsAccount account;
};

constexpr uint64_t GPUSORT_MAX_SEGMENT_BYTES = 256 << 20;

/*
 * How arrays and arenas grow.  An allocation has segment_bytes, or a part of what there is
 * already if that is more, up to GPUSORT_MAX_SEGMENT_BYTES.  So the number of allocations grows
 * with the logarithm of the size, even if segment_bytes is far too small for what comes.
 */
struct GsGrowth {
	uint64_t segment_bytes;
	uint64_t parts; /* the size is divided by this */
};

/*
 * An array of count items of item_bytes bytes, in segments of 2^shift items.  Several segments
 * can be allocated together, and are then contiguous.
 */
struct GsSegmentedArray {
	uint32_t item_bytes;
	uint32_t shift;
	uint64_t growth_parts; /* as in GsGrowth */
	uint64_t count;
	GsList<unsigned char *> segments;
	GsList<uint64_t> allocated; /* the first segment of each allocation */
	unsigned char **table;		/* in device memory, of the caller */
};

/*
 * Initializes an empty array.  A segment gets at least segment_bytes, rounded up to a power of
 * two of items.
 */
void gpusort_segments_init(GsSegmentedArray *array, uint32_t item_bytes,
						   const GsGrowth &growth);

/* Returns how many bytes gpusort_segments_reserve() would allocate. */
uint64_t gpusort_segments_growth(const GsSegmentedArray *array, uint64_t more);

/* Allocates segments for more items at the end; does not change count. */
GsStatus gpusort_segments_reserve(GsOwner *owner, GsSegmentedArray *array, uint64_t more);

/* Frees the allocations in which there are no items. */
void gpusort_segments_trim(GsOwner *owner, GsSegmentedArray *array);

/*
 * A contiguous part of a range of items: address and number of the items from the start of the
 * range.
 */
struct GsPiece {
	unsigned char *address;
	uint64_t items;
};
GsPiece gpusort_segments_piece(const GsSegmentedArray *array, uint64_t first, uint64_t items);

/* Returns the size of the table that an array needs for this number of items. */
size_t gpusort_segments_table_bytes(const GsSegmentedArray *array, uint64_t items);

/*
 * Copies the table of the array's items to device memory, for kernels.  Must be repeated after
 * the array has grown.
 */
GsStatus gpusort_segments_upload_table(GsOwner *owner, GsSegmentedArray *array, void *table,
									   cudaStream_t stream);
GsSegments gpusort_segments_view(const GsSegmentedArray *array);

/* Frees everything except the table. */
void gpusort_segments_release(GsOwner *owner, GsSegmentedArray *array);

/* An arena, which allocates bytes in blocks.  The bytes of one reservation are contiguous. */
struct GsArena {
	GsGrowth growth;
	uint64_t size; /* of all blocks */
	GsList<unsigned char *> blocks;
	uint64_t block_size; /* of the last block */
	uint64_t used;		 /* of the last block */
};

/* Returns how many bytes gpusort_arena_reserve() would allocate on the device. */
uint64_t gpusort_arena_growth(const GsArena *arena, uint64_t bytes);

/*
 * Allocates bytes at *address, aligned to 16.  They remain free until gpusort_arena_commit() is
 * called.
 */
GsStatus gpusort_arena_reserve(GsOwner *owner, GsArena *arena, uint64_t bytes,
							   unsigned char **address);
void gpusort_arena_commit(GsArena *arena, uint64_t bytes);

/* Frees the last block if nothing has been committed in it. */
void gpusort_arena_trim(GsOwner *owner, GsArena *arena);
void gpusort_arena_release(GsOwner *owner, GsArena *arena);

#endif /* GPUSORT_SEGMENTS_H */
