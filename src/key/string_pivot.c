/*-------------------------------------------------------------------------
 *
 * string_pivot.c
 *		Strings as words that tell how they relate to one of them.
 *
 * Strings can have hundreds of bytes in common, as URLs and paths do, of which
 * those next to each other in sorted order have more.  To go through them by
 * words of 8 bytes takes a step for each word.  Here one step takes what
 * comparing each string with one of them, the pivot, takes:
 *
 *		one bit		whether the string is greater than the pivot
 *		place		how many bytes it has in common with the pivot; of strings
 *					that are greater, the pivot's length less that number
 *		bytes		those of the string from there on
 *
 * These have the order of the strings: of two strings below the pivot, that which
 * leaves it earlier is less, since there the other one still has the pivot's byte,
 * which is greater.  Above the pivot it is the other way round.  A string that is
 * the pivot has the greatest place of those that are not greater.
 *
 * The place has as many bits as the pivot's length takes, so that a word mostly
 * has 6 or 7 bytes of the string behind it.  Strings whose words are equal have in
 * common what they share with the pivot, and the bytes behind it.
 *
 * Of values that are compressed or stored elsewhere, only a window is read, which
 * follows what it took for the others.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "port/pg_bitutils.h"

#include "key/string_pivot.h"
#include "work.h"

#define WORD_BITS		64

/* Bytes in a word of a string, and in one of a string of any bytes. */
#define STRING_BYTES	8
#define BINARY_BYTES	7

/* In a first word, bits that tell of how many of any bytes are there. */
#define COUNT_BITS		4

/*
 * The least window, and how many times more are asked for if that is too little.
 * A compressed value has to be decompressed from its first byte on, so that the
 * window is also no small part of what all have in common.
 */
#define FIRST_WINDOW	((Size) 512)
#define WINDOW_GROWTH	4

/* Bytes that are compared between two checks for interrupts. */
#define BLOCK_BYTES		((Size) 1024 * 1024)

/* How a frame's first word is divided. */
typedef struct GsPivotLayout
{
	bool		binary;			/* strings of any bytes? */
	unsigned	place_shift;
	unsigned	bytes;			/* of the string */
	unsigned	bytes_shift;
} GsPivotLayout;

static inline GsPivotLayout
lay_out(const GsPivotFrame *frame)
{
	GsPivotLayout layout = {.binary = frame->encoding->kind == GS_ENCODE_BYTEA};
	unsigned	place_bits = 0;

	if (frame->rest > 0)
		place_bits = pg_leftmost_one_pos64(frame->rest) + 1;
	layout.place_shift = WORD_BITS - 1 - place_bits;
	layout.bytes = (layout.place_shift - (layout.binary ? COUNT_BITS : 0)) / 8;
	layout.bytes_shift = layout.place_shift - 8 * layout.bytes;
	return layout;
}

Size
gpusort_pivot_bytes_in_words(const GsKeyEncoding *encoding, uint32 nwords)
{
	return (Size) nwords *
		(encoding->kind == GS_ENCODE_BYTEA ? BINARY_BYTES : STRING_BYTES);
}

/* The bytes of a string from 'start' on; 'count' of them if it is elsewhere. */
static inline GsBytes
get_bytes(const GsPivotFrame *frame, Datum value, Size count)
{
	switch (frame->encoding->kind)
	{
		case GS_ENCODE_BPCHAR:
			return gpusort_bytes_skip(gpusort_bytes_get_trimmed(value),
									  frame->start);
		case GS_ENCODE_NAME:
			return gpusort_bytes_skip(gpusort_bytes_get_name(value),
									  frame->start);
		default:
			return gpusort_bytes_get(value, frame->start, count);
	}
}

void
gpusort_pivot_take(GsPivot *pivot, const GsPivotFrame *frame, Datum value)
{
	pivot->frame = *frame;
	pivot->bytes = get_bytes(frame, value, MaxAllocSize);
	pivot->frame.rest = pivot->bytes.length;
	pivot->window = Max(FIRST_WINDOW, frame->start / WINDOW_GROWTH);
}

void
gpusort_pivot_drop(GsPivot *pivot)
{
	gpusort_bytes_free(&pivot->bytes);
	pivot->bytes.copy = NULL;
}

/* How many of the first bytes are the same, of 'count'? */
static inline Size
common_bytes(const unsigned char *a, const unsigned char *b, Size count)
{
	Size		i = 0;

	for (; i + sizeof(uint64) <= count; i += sizeof(uint64))
	{
		uint64		left;
		uint64		right;

		memcpy(&left, a + i, sizeof(left));
		memcpy(&right, b + i, sizeof(right));
		if (left != right)
			break;
	}
	while (i < count && a[i] == b[i])
		i++;
	return i;
}

/* The same of strings that may be long. */
static inline Size
common_length(const GsBytes *a, const GsBytes *b, Size count)
{
	Size		length = 0;

	while (count - length > BLOCK_BYTES)
	{
		Size		common = common_bytes(a->data + length, b->data + length,
										  BLOCK_BYTES);

		gpusort_work_add(common);
		if (common < BLOCK_BYTES)
			return length + common;
		length += common;
		CHECK_FOR_INTERRUPTS();
	}
	return length + common_bytes(a->data + length, b->data + length,
								 count - length);
}

/* Let the window follow what a string took. */
static inline void
adapt_window(GsPivot *pivot, Size needed)
{
	if (needed > pivot->window)
		pivot->window *= WINDOW_GROWTH;
	else if (needed < pivot->window / (2 * WINDOW_GROWTH))
		pivot->window = Max(pivot->window / 2, FIRST_WINDOW);
}

/*
 * Find out how much of a string is as the pivot, with *bytes the string's; those
 * that the words take are there then, too.
 */
static inline Size
relate(GsPivot *pivot, Datum value, GsBytes *bytes)
{
	Size		behind = (pivot->frame.words + 1) * STRING_BYTES;
	Size		there;
	Size		length;

	for (;;)
	{
		*bytes = get_bytes(&pivot->frame, value, pivot->window);
		there = bytes->length;
		if (unlikely(bytes->copy != NULL) &&
			pivot->frame.encoding->kind != GS_ENCODE_BPCHAR)
			there = Min(there, pivot->window);
		length = common_length(bytes, &pivot->bytes,
							   Min(there, pivot->bytes.length));
		if (likely(bytes->copy == NULL))
			return length;
		gpusort_work_add(pivot->frame.start + there);
		adapt_window(pivot, length + behind);
		if (there == bytes->length || length + behind <= there)
			return length;
		gpusort_bytes_free(bytes);
	}
}

/* The first bytes of a string as a number, zeros behind its end. */
static inline uint64
leading_bytes(const GsBytes *bytes, unsigned count)
{
	unsigned	there = Min(bytes->length, count);

	return gpusort_codec_bytes(bytes->data, there) << (8 * (count - there));
}

/* The first word of a string that has 'length' bytes in common with the pivot. */
static inline uint64
first_word(const GsPivot *pivot, const GsPivotLayout *layout, Size length,
		   const GsBytes *rest)
{
	const GsBytes *other = &pivot->bytes;
	uint64		word;

	if (rest->length > 0 && (length == other->length ||
							 rest->data[0] > other->data[length]))
		word = UINT64CONST(1) << (WORD_BITS - 1) |
			(uint64) (other->length - length) << layout->place_shift;
	else
		word = (uint64) length << layout->place_shift;
	if (rest->length > 0)
		word |= leading_bytes(rest, layout->bytes) << layout->bytes_shift;
	if (layout->binary)
		word |= (uint64) Min(rest->length, layout->bytes + 1) <<
			(layout->bytes_shift - COUNT_BITS);
	return word;
}

void
gpusort_pivot_encode(GsPivot *pivot, Datum value, uint64 *key)
{
	const GsPivotFrame *frame = &pivot->frame;
	GsPivotLayout layout = lay_out(frame);
	GsBytes		bytes;
	Size		length = relate(pivot, value, &bytes);
	GsBytes		rest = gpusort_bytes_skip(bytes, length);

	gpusort_work_add(GPUSORT_WORK_ROW + Min(length, BLOCK_BYTES));
	key[0] = first_word(pivot, &layout, length, &rest);
	rest = gpusort_bytes_skip(rest, layout.bytes);
	for (unsigned w = 1; w < frame->words; w++)
	{
		if (layout.binary)
			key[w] = gpusort_codec_binary(rest.data, rest.length);
		else
			key[w] = gpusort_codec_string(rest.data, rest.length);
		rest = gpusort_bytes_skip(rest, layout.binary ? BINARY_BYTES :
								  STRING_BYTES);
	}
	if (frame->descending)
		for (unsigned w = 0; w < frame->words; w++)
			key[w] = ~key[w];
	gpusort_bytes_free(&bytes);
}

/* Does a string go on behind the bytes in its words? */
static bool
goes_on(const GsPivotFrame *frame, const GsPivotLayout *layout, uint64 first,
		uint64 last)
{
	if (frame->words > 1)
		return layout->binary ? (last & 0xFF) > BINARY_BYTES :
			(last & 0xFF) != 0;
	if (layout->binary)
		return ((first >> (layout->bytes_shift - COUNT_BITS)) &
				((1 << COUNT_BITS) - 1)) > layout->bytes;
	return ((first >> layout->bytes_shift) & 0xFF) != 0;
}

bool
gpusort_pivot_leaves_open(const GsPivotFrame *frame, const uint64 *key,
						  Size *start)
{
	GsPivotLayout layout = lay_out(frame);
	uint64		invert = frame->descending ? PG_UINT64_MAX : 0;
	uint64		first = key[0] ^ invert;
	bool		greater = (first >> (WORD_BITS - 1)) != 0;
	Size		place = (first & PG_INT64_MAX) >> layout.place_shift;

	if (!goes_on(frame, &layout, first, key[frame->words - 1] ^ invert))
		return false;
	*start = frame->start + (greater ? frame->rest - place : place) +
		layout.bytes +
		gpusort_pivot_bytes_in_words(frame->encoding, frame->words - 1);
	return true;
}
