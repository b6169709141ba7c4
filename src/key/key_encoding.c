/*-------------------------------------------------------------------------
 *
 * key_encoding.c
 *		Encodes the values of one sort key as words with the same order.
 *
 * find_encoding.c finds the encoding of a sort operator.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <sys/socket.h>

#include "storage/itemptr.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "key/key_encoding.h"
#include "key/type_words.h"
#include "work.h"

#define WORD_BITS	64

/* Bytes of weights between two checks for interrupts. */
#define GPUSORT_WEIGHTS_PER_LOOK	65536

/* Maximum length of the result of network_bytes(). */
#define MAX_NETWORK_BYTES	(2 + 2 * 16)

const char *
gpusort_key_encoding_name(GsEncodingKind kind)
{
	switch (kind)
	{
		case GS_ENCODE_NONE:
		case GS_ENCODE_COMPARISONS:
			return "comparisons";
		case GS_ENCODE_LOCALE:
			return "weights of the C library";
		case GS_ENCODE_ICU:
			return "weights of ICU";
		case GS_ENCODE_VARBIT:
		case GS_ENCODE_ABBREVIATION:
			return "abbreviations";
		default:
			return "values";
	}
}

Size
gpusort_key_encoding_set_memory(const GsKeyEncoding *encoding, Size limit)
{
	return encoding->kind == GS_ENCODE_ICU ?
		gpusort_icu_recent_set_limit(encoding->state->recent, limit) : 0;
}

/* ----------------------------------------------------------------
 *		bytes of strings
 * ----------------------------------------------------------------
 */

/* Get the own bytes of a string of some kind, as gpusort_bytes_get() does. */
static inline GsBytes
string_bytes(GsEncodingKind kind, Datum value, Size start, Size count)
{
	switch (kind)
	{
		case GS_ENCODE_BPCHAR:
			return gpusort_bytes_skip(gpusort_bytes_get_trimmed(value), start);
		case GS_ENCODE_NAME:
			return gpusort_bytes_skip(gpusort_bytes_get_name(value), start);
		case GS_ENCODE_CITEXT:
			return gpusort_bytes_skip(gpusort_citext_bytes(value), start);
		default:
			return gpusort_bytes_get(value, start, count);
	}
}

/*
 * Get the bytes of a string's weights.  Those of most strings fit into a buffer; if there
 * are more, begin again with a copy.
 */
static GsBytes
weight_bytes(struct GsEncodingState *state, Datum value, Size start, Size count)
{
	GsBytes		string = string_bytes(state->string, value, 0, MaxAllocSize);
	GsBytes		weights = {.data = state->memo.bytes};
	unsigned char *bytes = state->memo.bytes;
	Size		room = sizeof(state->memo.bytes);
	GsWeightReader reader;
	Size		skipped;
	unsigned char byte;

	weights.length = gpusort_weight_memo_begin(&state->memo, &reader, state->weights,
											   string.data, string.length, start, count,
											   &skipped);
	while (skipped < start && gpusort_weight_reader_next(&reader) != 0)
		if (++skipped % GPUSORT_WEIGHTS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
	while (weights.length <= count && (byte = gpusort_weight_reader_next(&reader)) != 0)
	{
		if (unlikely(weights.length == room))
		{
			CHECK_FOR_INTERRUPTS();
			room *= 2;
			if (weights.copy != NULL)
				weights.copy = repalloc_huge(weights.copy, room);
			else
				weights.copy = memcpy(palloc(room), bytes, weights.length);
			weights.data = bytes = weights.copy;
		}
		bytes[weights.length++] = byte;
	}
	gpusort_work_add(skipped + weights.length);
	gpusort_bytes_free(&string);
	return weights;
}

/* Get the bytes of a string's weights in ICU, likewise. */
static GsBytes
icu_bytes(struct GsEncodingState *state, Datum value, Size start, Size count)
{
	GsBytes		string = string_bytes(state->string, value, 0, MaxAllocSize);
	GsBytes		key = {.data = state->buffer};
	Size		room = sizeof(state->buffer);
	Size		wanted = start + Min(count, MaxAllocHugeSize / 2) + 1;
	Size		length;

	CHECK_FOR_INTERRUPTS();
	length = gpusort_icu_key(state->collator, state->recent, string.data, string.length,
							 state->buffer, Min(wanted, room));
	while (length == room && room < wanted)
	{
		room *= 4;
		if (key.copy != NULL)
			pfree(key.copy);
		key.data = key.copy = MemoryContextAllocHuge(CurrentMemoryContext, room);
		length = gpusort_icu_key(state->collator, state->recent, string.data, string.length,
								 key.copy, Min(wanted, room));
	}
	gpusort_work_add(string.length + length);
	gpusort_bytes_free(&string);
	key.length = length;
	return gpusort_bytes_skip(key, start);
}

/* Get the bytes of a text up to its first zero byte, likewise. */
static GsBytes
bytes_until_zero(GsEncodingKind kind, Datum value, Size start, Size count)
{
	GsBytes		bytes = string_bytes(kind, value, 0, start + Min(count, MaxAllocSize));
	Size		valid = bytes.copy == NULL || kind == GS_ENCODE_BPCHAR ? bytes.length :
		Min(bytes.length, start + Min(count, MaxAllocSize));
	const unsigned char *zero = valid > 0 ? memchr(bytes.data, 0, valid) : NULL;

	if (zero != NULL)
		bytes.length = zero - bytes.data;
	return gpusort_bytes_skip(bytes, start);
}

/* Get the bytes of a nested value, likewise, and whether they leave the order open. */
static GsBytes
nested_bytes(struct GsEncodingState *state, const GsNestedReference *reference, Datum value,
			 Size start, Size count, bool *open)
{
	GsByteBuffer buffer = {
		.data = state->buffer,
		.room = sizeof(state->buffer),
		.wanted = start + Min(count, MaxAllocHugeSize / 2) + 1
	};
	GsBytes		bytes;

	*open = gpusort_nested_write(state->nested, reference, value, &buffer);
	gpusort_work_add(buffer.length);
	bytes = (GsBytes)
	{
		.data = buffer.data,.length = Min(buffer.length, buffer.wanted),.copy = buffer.copy
	};
	return gpusort_bytes_skip(bytes, start);
}

GsBytes
gpusort_key_encoding_bytes(const GsKeyEncoding *encoding, const GsNestedReference *reference,
						   Datum value, Size start, Size count)
{
	bool		open;

	if (encoding->kind == GS_ENCODE_LOCALE)
		return weight_bytes(encoding->state, value, start, count);
	if (encoding->kind == GS_ENCODE_ICU)
		return icu_bytes(encoding->state, value, start, count);
	if (encoding->kind == GS_ENCODE_NESTED)
		return nested_bytes(encoding->state, reference, value, start, count, &open);
	if (encoding->ends_at_zero)
		return bytes_until_zero(encoding->kind, value, start, count);
	return string_bytes(encoding->kind, value, start, count);
}

GsNestedReference *
gpusort_key_encoding_reference(const GsKeyEncoding *encoding, Datum value)
{
	return encoding->kind == GS_ENCODE_NESTED ?
		gpusort_nested_reference_create(encoding->state->nested, value) : NULL;
}

int
gpusort_key_encoding_compare_weights(const GsKeyEncoding *encoding, Datum a,
									 Datum b, bool *same)
{
	const struct GsEncodingState *state = encoding->state;
	GsBytes		a_bytes = string_bytes(state->string, a, 0, MaxAllocSize);
	GsBytes		b_bytes = string_bytes(state->string, b, 0, MaxAllocSize);
	int			cmp = 0;

	*same = a_bytes.length == b_bytes.length &&
		memcmp(a_bytes.data, b_bytes.data, a_bytes.length) == 0;
	if (!*same)
		cmp = gpusort_locale_weights_compare(state->weights,
											 a_bytes.data, a_bytes.length,
											 b_bytes.data, b_bytes.length);
	gpusort_bytes_free(&a_bytes);
	gpusort_bytes_free(&b_bytes);
	return cmp;
}

/* ----------------------------------------------------------------
 *		words
 * ----------------------------------------------------------------
 */

/*
 * Write a network address as bytes that memcmp() orders as network_cmp() does:
 * the family, the network part of the address, the length of that part, and
 * the whole address.  Returns the length, which is the same for all addresses
 * of a family.
 */
static Size
network_bytes(Datum value, unsigned char bytes[MAX_NETWORK_BYTES])
{
	inet	   *address = DatumGetInetPP(value);
	Size		size = ip_addrsize(address);
	unsigned	bits = ip_bits(address);

	bytes[0] = ip_family(address);
	memset(bytes + 1, 0, size);
	memcpy(bytes + 1, ip_addr(address), (bits + 7) / 8);
	if (bits % 8 != 0)
		bytes[1 + bits / 8] &= 0xFF << (8 - bits % 8);
	bytes[1 + size] = bits;
	memcpy(bytes + 2 + size, ip_addr(address), size);
	if (address != (inet *) DatumGetPointer(value))
		pfree(address);
	return 2 + 2 * size;
}

static uint64
tid_word(ItemPointer tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

/*
 * Intervals are ordered by their lengths, with months of 30 days.  The first
 * word has the whole days, and the second one the remaining microseconds,
 * which are less than 2^37.
 */
static uint64
interval_word(const Interval * interval, uint32 index)
{
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		rest = interval->time % USECS_PER_DAY;

	days += interval->time / USECS_PER_DAY;
	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	return index == 0 ? gpusort_codec_int64(days) : (uint64) rest;
}

/* The first word has the time in UTC, the second one the time zone. */
static uint64
timetz_word(const TimeTzADT * time, uint32 index)
{
	return index == 0 ?
		gpusort_codec_int64(time->time + time->zone * USECS_PER_SEC) :
		gpusort_codec_int32(time->zone);
}

/*
 * Get 'count' words of a string from that at 'index' on.  Of a text, the bytes in the words
 * before it are known when these have been read.
 */
static inline void
string_words(const GsKeyEncoding *encoding, Datum value, uint32 index, uint64 *words,
			 unsigned count)
{
	Size		word_bytes = gpusort_key_encoding_word_bytes(encoding);
	uint32		skipped = gpusort_key_encoding_is_text(encoding) ? index : 0;
	GsBytes		bytes = gpusort_key_encoding_bytes(encoding, NULL, value,
												   (index - skipped) * word_bytes,
												   (skipped + count) * word_bytes);
	GsTextBytes rest = {.next = bytes.data,.length = bytes.length};

	while (skipped-- > 0)
		(void) gpusort_key_encoding_next_word(encoding, &rest);
	for (unsigned w = 0; w < count; w++)
		words[w] = gpusort_key_encoding_next_word(encoding, &rest);
	gpusort_bytes_free(&bytes);
}

void
gpusort_key_encoding_string_words(const GsKeyEncoding *encoding, Datum value,
								  uint64 *words, unsigned count)
{
	string_words(encoding, value, 0, words, count);
}

static uint64
string_word(const GsKeyEncoding *encoding, Datum value, uint32 index)
{
	uint64		word;

	string_words(encoding, value, index, &word, 1);
	return word;
}

static uint64
first_word_of_weights(const GsKeyEncoding *encoding, Datum value)
{
	GsWeightReader reader;
	GsBytes		string = string_bytes(encoding->state->string, value, 0,
									  MaxAllocSize);
	uint64		word = 0;
	unsigned	shift = WORD_BITS;
	unsigned char byte;

	gpusort_weight_reader_begin(&reader, encoding->state->weights, string.data,
								string.length);
	while (shift > 0 && (byte = gpusort_weight_reader_next(&reader)) != 0)
	{
		shift -= 8;
		word |= (uint64) byte << shift;
	}
	gpusort_bytes_free(&string);
	return word;
}

bool
gpusort_key_encoding_plain_words(const GsKeyEncoding *encoding, GsPlainLimits limits,
								 Datum value, uint64 *words, uint64 *rest)
{
	const struct GsEncodingState *state = encoding->state;
	GsBytes		string = string_bytes(state->string, value, 0, limits.letters + limits.specials);
	unsigned char bytes[1 << GPUSORT_SPECIAL_GAP_BITS] = {0};
	bool		plain = gpusort_plain_string_encode(state->weights, limits,
													string.data, string.length, bytes, rest);

	for (unsigned at = 0; plain && at < limits.letters; at += sizeof(uint64))
		words[at / sizeof(uint64)] = gpusort_codec_8_bytes(bytes + at);
	gpusort_bytes_free(&string);
	return plain;
}

static uint64
inet_word(Datum value, uint32 index)
{
	unsigned char bytes[MAX_NETWORK_BYTES];
	Size		length = network_bytes(value, bytes);
	Size		start = Min((Size) index * 8, length);

	return gpusort_codec_string(bytes + start, length - start);
}

/* Bit strings are ordered by their bytes, and then by their lengths. */
static uint64
varbit_word(Datum value)
{
	GsBytes		bytes = gpusort_bytes_get(value, sizeof(int32), 8);
	uint64		word = gpusort_codec_string(bytes.data, bytes.length);

	gpusort_bytes_free(&bytes);
	return word;
}

static uint64
abbreviation_word(struct GsEncodingState *state, Datum value)
{
	Datum		abbreviation = state->ssup.abbrev_converter(value, &state->ssup);
	uint64		word = gpusort_key_encoding_word(&state->abbreviated,
												 abbreviation, 0);

	/* Move the bits to the high end of the word. */
	return word << (WORD_BITS - state->abbreviated.bits);
}

uint64
gpusort_key_encoding_long_word(const GsKeyEncoding *encoding, Datum value,
							   uint32 index)
{
	const unsigned char *fixed = (unsigned char *) DatumGetPointer(value);

	switch (encoding->kind)
	{
		case GS_ENCODE_BYTES6:
			return gpusort_codec_bytes(fixed, 6);
		case GS_ENCODE_BYTES8:
			return gpusort_codec_bytes(fixed, 8);
		case GS_ENCODE_TID:
			return tid_word((ItemPointer) DatumGetPointer(value));
		case GS_ENCODE_ENUM:
			return gpusort_enum_word(encoding->state->numbers,
									 DatumGetObjectId(value));
		case GS_ENCODE_UUID:
			return gpusort_codec_bytes(DatumGetUUIDP(value)->data + index * 8, 8);
		case GS_ENCODE_INTERVAL:
			return interval_word(DatumGetIntervalP(value), index);
		case GS_ENCODE_TIMETZ:
			return timetz_word(DatumGetTimeTzADTP(value), index);
		case GS_ENCODE_TEXT:
		case GS_ENCODE_BPCHAR:
		case GS_ENCODE_NAME:
		case GS_ENCODE_CITEXT:
		case GS_ENCODE_ICU:
		case GS_ENCODE_NESTED:
		case GS_ENCODE_BYTEA:
			return string_word(encoding, value, index);
		case GS_ENCODE_LOCALE:
			return index == 0 ? first_word_of_weights(encoding, value) :
				string_word(encoding, value, index);
		case GS_ENCODE_INET:
			return inet_word(value, index);
		case GS_ENCODE_NUMERIC:
			return gpusort_numeric_word(value, index);
		case GS_ENCODE_VARBIT:
			return varbit_word(value);
		case GS_ENCODE_ABBREVIATION:
			return abbreviation_word(encoding->state, value);
		default:
			pg_unreachable();
	}
}

/* ----------------------------------------------------------------
 *		ties of words
 * ----------------------------------------------------------------
 */

/*
 * Does a string end before that number of words is full?  If not, a longer one may have the same
 * words.
 */
static bool
string_ends(const GsKeyEncoding *encoding, Datum value, uint32 nwords)
{
	Size		most = (Size) nwords * 8;
	GsBytes		bytes;
	bool		ends;

	if (encoding->kind == GS_ENCODE_TEXT && !encoding->ends_at_zero &&
		toast_raw_datum_size(value) - VARHDRSZ >= most)
		return false;
	bytes = gpusort_key_encoding_bytes(encoding, NULL, value, 0, most);
	ends = bytes.length < most;
	if (ends && gpusort_key_encoding_is_text(encoding))
		ends = gpusort_codec_text_prefix(bytes.data, bytes.length, most - 1) == bytes.length;
	gpusort_bytes_free(&bytes);
	return ends;
}

/*
 * Likewise of a nested value.  If its bytes end in the words and leave the order open, more of them
 * follow that are relative to a reference.
 */
static GsEncodingRest
rest_of_nested(const GsKeyEncoding *encoding, Datum value, uint32 nwords)
{
	Size		most = nwords * gpusort_key_encoding_word_bytes(encoding);
	bool		open;
	GsBytes		bytes = nested_bytes(encoding->state, NULL, value, 0, most, &open);

	gpusort_bytes_free(&bytes);
	return open || bytes.length > most ? GS_REST_WORDS : GS_REST_NONE;
}

GsEncodingRest
gpusort_key_encoding_rest(const GsKeyEncoding *encoding, Datum value,
						  uint32 nwords)
{
	unsigned char network[MAX_NETWORK_BYTES];
	bool		ended;

	switch (encoding->kind)
	{
		case GS_ENCODE_LOCALE:
		case GS_ENCODE_ICU:
			return string_ends(encoding, value, nwords) ?
				GS_REST_COMPARE : GS_REST_WORDS;
		case GS_ENCODE_TEXT:
		case GS_ENCODE_BPCHAR:
		case GS_ENCODE_NAME:
		case GS_ENCODE_CITEXT:
			ended = string_ends(encoding, value, nwords);
			break;
		case GS_ENCODE_BYTEA:
			ended = toast_raw_datum_size(value) - VARHDRSZ <= (Size) nwords * 7;
			break;
		case GS_ENCODE_NESTED:
			return rest_of_nested(encoding, value, nwords);
		case GS_ENCODE_INET:
			ended = network_bytes(value, network) <= (Size) nwords * 8;
			break;
		case GS_ENCODE_NUMERIC:
			return gpusort_numeric_rest(value, nwords);
		case GS_ENCODE_NONE:
		case GS_ENCODE_VARBIT:
		case GS_ENCODE_ABBREVIATION:
		case GS_ENCODE_COMPARISONS:
			return GS_REST_COMPARE;
		default:
			return GS_REST_NONE;
	}
	return ended ? GS_REST_NONE : GS_REST_WORDS;
}

Size
gpusort_key_encoding_bytes_in_words(const GsKeyEncoding *encoding, Datum value,
									uint32 nwords)
{
	Size		most = nwords * gpusort_key_encoding_word_bytes(encoding);
	GsBytes		bytes;

	if (!gpusort_key_encoding_is_text(encoding) && encoding->kind != GS_ENCODE_NESTED)
		return most;
	bytes = gpusort_key_encoding_bytes(encoding, NULL, value, 0, most);
	most = Min(bytes.length, most);
	if (gpusort_key_encoding_is_text(encoding))
		most = gpusort_codec_text_prefix(bytes.data, most, nwords * sizeof(uint64));
	gpusort_bytes_free(&bytes);
	return most;
}

/* ----------------------------------------------------------------
 *		parts of nested values
 * ----------------------------------------------------------------
 */

/* Write the bytes of a word, of which the lowest 'bits' count. */
static void
write_word(GsByteBuffer *buffer, uint64 word, unsigned bits)
{
	unsigned char bytes[sizeof(uint64)];
	unsigned	count = (bits + 7) / 8;

	for (unsigned i = 0; i < count; i++)
		bytes[i] = word >> (8 * (count - 1 - i));
	gpusort_byte_buffer_add(buffer, bytes, count);
}

static GsEncodingRest
write_exact(const GsKeyEncoding *encoding, Datum value, GsByteBuffer *buffer)
{
	unsigned	bits = encoding->bits;

	for (uint32 index = 0; bits > 0; index++)
	{
		unsigned	width = Min(bits, WORD_BITS);

		write_word(buffer, gpusort_key_encoding_word(encoding, value, index), width);
		bits -= width;
	}
	return GS_REST_NONE;
}

/*
 * Write a string and a zero byte.  As in the words of texts, two bytes stand for a byte 0, and for
 * a byte 1.  If it has more bytes than are wanted, the rest of them is left out.
 */
static GsEncodingRest
write_string(const GsKeyEncoding *encoding, Datum value, GsByteBuffer *buffer)
{
	Size		most = buffer->wanted - buffer->length;
	GsBytes		bytes = gpusort_key_encoding_bytes(encoding, NULL, value, 0, most);
	Size		valid = Min(bytes.length, most);
	Size		done = 0;

	for (Size i = 0; i < valid; i++)
		if (unlikely(bytes.data[i] <= 1))
		{
			unsigned char pair[2] = {1, bytes.data[i] + 1};

			gpusort_byte_buffer_add(buffer, bytes.data + done, i - done);
			gpusort_byte_buffer_add(buffer, pair, 2);
			done = i + 1;
		}
	gpusort_byte_buffer_add(buffer, bytes.data + done, valid - done);
	if (valid == bytes.length)
		gpusort_byte_buffer_add(buffer, "", 1);
	gpusort_bytes_free(&bytes);
	return gpusort_key_encoding_leaves_open(encoding) ? GS_REST_COMPARE : GS_REST_NONE;
}

static GsEncodingRest
write_words(const GsKeyEncoding *encoding, Datum value, GsByteBuffer *buffer)
{
	GsEncodingRest rest = GS_REST_WORDS;

	for (uint32 index = 0; rest == GS_REST_WORDS && buffer->length < buffer->wanted; index++)
	{
		write_word(buffer, gpusort_key_encoding_word(encoding, value, index), WORD_BITS);
		rest = gpusort_key_encoding_rest(encoding, value, index + 1);
	}
	return rest == GS_REST_COMPARE ? GS_REST_COMPARE : GS_REST_NONE;
}

GsEncodingRest
gpusort_key_encoding_write(const GsKeyEncoding *encoding, Datum value, GsByteBuffer *buffer)
{
	if (gpusort_key_encoding_is_exact(encoding))
		return write_exact(encoding, value, buffer);
	if (gpusort_key_encoding_is_string(encoding))
		return write_string(encoding, value, buffer);
	if (encoding->bits > 0)
		return write_words(encoding, value, buffer);
	return GS_REST_COMPARE;
}
