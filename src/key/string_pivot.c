/*-------------------------------------------------------------------------
 *
 * string_pivot.c
 *		Encodes strings as words relative to one of them, the pivot.
 *
 * Strings can have hundreds of bytes in common, as URLs and paths do, and
 * neighbours in sorted order have even more.  Sorting by words of 8 bytes each
 * would take a round for every word.  Instead, we compare each string with the
 * pivot once and encode the result:
 *
 *	one bit		whether the string is greater than the pivot
 *	position	the number of bytes that it has in common with the pivot; if
 *				the string is greater, the pivot's length less that number
 *	bytes		the bytes of the string from there on
 *
 * These words have the order of the strings.  Of two strings below the pivot,
 * the one that differs from it earlier is less: at that byte the other one
 * still equals the pivot, whose byte is greater.  Above the pivot it is the
 * other way round.  A string equal to the pivot has the greatest position
 * among those that are not greater.
 *
 * The position takes as many bits as the pivot's length needs, so that usually
 * 6 or 7 bytes of the string fit into the word behind it.  Strings with equal
 * words have in common the bytes that they share with the pivot, and the bytes
 * in the words.
 *
 * Of a value that is compressed or stored out of line, only a window is read,
 * whose size adapts to what the previous values needed.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "port/pg_bitutils.h"

#include "key/key_encoding.h"
#include "key/type_words.h"
#include "work.h"

#define WORD_BITS		64

/*
 * Bytes per word, for text strings and for strings that can have zero bytes.
 */
#define STRING_BYTES	8
#define BINARY_BYTES	7

/*
 * Bits of the byte count in the first word of a string that can have zero
 * bytes.
 */
#define COUNT_BITS		4

/*
 * The smallest window, and the factor by which it grows if it is too small.  A
 * compressed value must be decompressed from its first byte on, so the window
 * is also at least a fixed fraction of the common bytes.
 */
#define FIRST_WINDOW	((Size) 512)
#define WINDOW_GROWTH	4

/* Bytes to compare between two checks for interrupts. */
#define BLOCK_BYTES		((Size) 1024 * 1024)

/* Layout of the first word for a frame. */
typedef struct GsPivotLayout
{
	bool		binary;			/* can strings have zero bytes? */
	bool		text;			/* have words other bytes for 0 and 1? */
	unsigned	position_shift;
	unsigned	bytes;			/* of the string */
	unsigned	bytes_shift;
} GsPivotLayout;

static inline GsPivotLayout
lay_out(const GsPivotFrame *frame)
{
	GsPivotLayout layout = {
		.binary = gpusort_key_encoding_is_binary(frame->encoding),
		.text = gpusort_key_encoding_is_text(frame->encoding)
	};
	unsigned	position_bits = 0;

	if (frame->rest > 0)
		position_bits = pg_leftmost_one_pos64(frame->rest) + 1;
	layout.position_shift = WORD_BITS - 1 - position_bits;
	layout.bytes = (layout.position_shift - (layout.binary ? COUNT_BITS : 0)) / 8;
	layout.bytes_shift = layout.position_shift - 8 * layout.bytes;
	return layout;
}

void
gpusort_pivot_init(GsPivot *pivot, const GsPivotFrame *frame, Datum value)
{
	pivot->frame = *frame;
	pivot->reference = gpusort_key_encoding_reference(frame->encoding, value);
	pivot->bytes = gpusort_key_encoding_bytes(frame->encoding, pivot->reference, value,
											  frame->start, MaxAllocSize);
	if (pivot->bytes.copy == NULL && gpusort_key_encoding_leaves_open(frame->encoding))
	{
		pivot->bytes.copy = palloc(pivot->bytes.length + 1);
		memcpy(pivot->bytes.copy, pivot->bytes.data, pivot->bytes.length);
		pivot->bytes.data = pivot->bytes.copy;
	}
	pivot->frame.rest = pivot->bytes.length;
	pivot->window = Max(FIRST_WINDOW, frame->start / WINDOW_GROWTH);
}

void
gpusort_pivot_drop(GsPivot *pivot)
{
	gpusort_bytes_free(&pivot->bytes);
	pivot->bytes.copy = NULL;
	if (pivot->reference != NULL)
		gpusort_nested_reference_free(pivot->reference);
	pivot->reference = NULL;
}

/* The same for strings that may be long, with checks for interrupts. */
static inline Size
common_length(const GsBytes *a, const GsBytes *b, Size count)
{
	Size		length = 0;

	while (count - length > BLOCK_BYTES)
	{
		Size		common = gpusort_common_bytes(a->data + length, b->data + length,
												  BLOCK_BYTES);

		gpusort_work_add(common);
		if (common < BLOCK_BYTES)
			return length + common;
		length += common;
		CHECK_FOR_INTERRUPTS();
	}
	return length + gpusort_common_bytes(a->data + length, b->data + length,
										 count - length);
}

/* Adapt the window to the number of bytes that a string needed. */
static inline void
adapt_window(GsPivot *pivot, Size needed)
{
	if (needed > pivot->window)
		pivot->window *= WINDOW_GROWTH;
	else if (needed < pivot->window / (2 * WINDOW_GROWTH))
		pivot->window = Max(pivot->window / 2, FIRST_WINDOW);
}

/*
 * Returns how many bytes a string has in common with the pivot.  Sets *bytes
 * to the string's bytes, including those that the words need.
 */
static inline Size
relate(GsPivot *pivot, Datum value, GsBytes *bytes)
{
	Size		behind = (pivot->frame.words + 1) * STRING_BYTES;
	Size		there;
	Size		length;

	for (;;)
	{
		*bytes = gpusort_key_encoding_bytes(pivot->frame.encoding, pivot->reference, value,
											pivot->frame.start, pivot->window);
		there = bytes->length;
		if (unlikely(bytes->copy != NULL) &&
			pivot->frame.encoding->kind != GS_ENCODE_BPCHAR &&
			pivot->frame.encoding->kind != GS_ENCODE_CITEXT)
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

/*
 * Returns the first word of a string that has 'length' bytes in common with
 * the pivot; 'rest' are the bytes after these.  Sets *next to the bytes after the word.
 */
static inline uint64
first_word(const GsPivot *pivot, const GsPivotLayout *layout, Size length,
		   const GsBytes *rest, GsTextBytes *next)
{
	const GsBytes *other = &pivot->bytes;
	uint64		word;

	if (rest->length > 0 && (length == other->length ||
							 rest->data[0] > other->data[length]))
		word = UINT64CONST(1) << (WORD_BITS - 1) |
			(uint64) (other->length - length) << layout->position_shift;
	else
		word = (uint64) length << layout->position_shift;
	if (layout->text)
		word |= gpusort_codec_text(next, layout->bytes) << layout->bytes_shift;
	else if (rest->length > 0)
	{
		unsigned	count = Min(rest->length, layout->bytes);

		word |= gpusort_codec_string(rest->data, count) >>
			(WORD_BITS - 8 * layout->bytes) << layout->bytes_shift;
		next->next += count;
		next->length -= count;
	}
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
	GsTextBytes next = {.next = rest.data,.length = rest.length};

	gpusort_work_add(GPUSORT_WORK_ROW + Min(length, BLOCK_BYTES));
	key[0] = first_word(pivot, &layout, length, &rest, &next);
	for (unsigned w = 1; w < frame->words; w++)
		key[w] = gpusort_key_encoding_next_word(frame->encoding, &next);
	if (frame->descending)
		for (unsigned w = 0; w < frame->words; w++)
			key[w] = ~key[w];
	gpusort_bytes_free(&bytes);
}

/* Does a string have more bytes than its words include? */
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

/*
 * Returns how many of the bytes in a text's words, which are all full, are not bytes of the
 * text: the second one of two for one byte, and a first one without it.
 */
static Size
count_other_bytes(const GsPivotFrame *frame, const GsPivotLayout *layout,
				  const uint64 *key, uint64 invert)
{
	Size		count = 0;
	bool		is_second = false;

	for (unsigned w = 0; w < frame->words; w++)
	{
		unsigned	bytes = w == 0 ? layout->bytes : STRING_BYTES;
		uint64		word = (key[w] ^ invert) >> (w == 0 ? layout->bytes_shift : 0);

		while (bytes-- > 0)
		{
			bool		is_first = !is_second && ((word >> (8 * bytes)) & 0xFF) == 1;

			if (is_first)
				count++;
			is_second = is_first;
		}
	}
	return count;
}

bool
gpusort_pivot_leaves_open(const GsPivotFrame *frame, const uint64 *key,
						  Size *start)
{
	GsPivotLayout layout = lay_out(frame);
	uint64		invert = frame->descending ? PG_UINT64_MAX : 0;
	uint64		first = key[0] ^ invert;
	bool		greater = (first >> (WORD_BITS - 1)) != 0;
	Size		position = (first & PG_INT64_MAX) >> layout.position_shift;

	*start = frame->start + (greater ? frame->rest - position : position);
	if (!goes_on(frame, &layout, first, key[frame->words - 1] ^ invert))
		return frame->encoding->kind == GS_ENCODE_NESTED && (greater || position < frame->rest);
	*start += layout.bytes +
		(frame->words - 1) * (layout.binary ? BINARY_BYTES : STRING_BYTES);
	if (layout.text)
		*start -= count_other_bytes(frame, &layout, key, invert);
	return true;
}
