/*-------------------------------------------------------------------------
 *
 * test_key_codec.c
 *		Tests that encoded values have PostgreSQL's order of the values.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/key_codec.h"
#include "random.h"
#include "tap.h"

#define RANDOM_PAIRS	1000000
#define LENGTH_OF(array)	(sizeof(array) / sizeof((array)[0]))

static inline int
compare_words(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static inline int
sign(int value)
{
	return (value > 0) - (value < 0);
}

/* ----------------------------------------------------------------
 *		integers
 * ----------------------------------------------------------------
 */

static void
test_int16(void)
{
	bool		passed = true;

	for (int32_t value = INT16_MIN; value <= INT16_MAX; value++)
	{
		uint64_t	word = gpusort_codec_int16((int16_t) value);

		if (word != (uint64_t) (value - INT16_MIN))
			passed = false;
	}
	tap_ok(passed, "int16: all values, in order and without gaps");
}

static bool
int32_pair_is_right(int32_t a, int32_t b)
{
	uint64_t	word = gpusort_codec_int32(a);

	if (word <= UINT32_MAX &&
		compare_words(word, gpusort_codec_int32(b)) == (a > b) - (a < b))
		return true;
	tap_note("int32 %" PRId32 " and %" PRId32, a, b);
	return false;
}

static bool
int64_pair_is_right(int64_t a, int64_t b)
{
	if (compare_words(gpusort_codec_int64(a),
					  gpusort_codec_int64(b)) == (a > b) - (a < b))
		return true;
	tap_note("int64 %" PRId64 " and %" PRId64, a, b);
	return false;
}

static void
test_wide_integers(void)
{
	static const int64_t edges[] = {
		INT64_MIN, INT64_MIN + 1, (int64_t) INT32_MIN - 1, INT32_MIN,
		INT32_MIN + 1, -65537, -65536, -257, -256, -2, -1, 0, 1, 2, 255, 256,
		65535, 65536, INT32_MAX - 1, INT32_MAX, (int64_t) INT32_MAX + 1,
		INT64_MAX - 1, INT64_MAX
	};
	RandomState random = 1;
	bool		passed32 = true;
	bool		passed64 = true;

	for (size_t i = 0; i < LENGTH_OF(edges); i++)
		for (size_t j = 0; j < LENGTH_OF(edges); j++)
		{
			passed64 &= int64_pair_is_right(edges[i], edges[j]);
			if (edges[i] == (int32_t) edges[i] && edges[j] == (int32_t) edges[j])
				passed32 &= int32_pair_is_right((int32_t) edges[i],
												(int32_t) edges[j]);
		}
	tap_ok(passed32, "int32: edge values");
	tap_ok(passed64, "int64: edge values");

	for (int i = 0; i < RANDOM_PAIRS && passed32 && passed64; i++)
	{
		uint64_t	a = random_word(&random);
		uint64_t	b = random_word(&random);
		unsigned	shift = (unsigned) random_below(&random, 64);

		/* Also try numbers close to each other. */
		if (i % 2 == 0)
			b = a ^ (b >> shift);
		passed32 &= int32_pair_is_right((int32_t) a, (int32_t) b);
		passed64 &= int64_pair_is_right((int64_t) a, (int64_t) b);
	}
	tap_ok(passed32, "int32: random pairs");
	tap_ok(passed64, "int64: random pairs");
}

/* ----------------------------------------------------------------
 *		floating point
 *
 * PostgreSQL's order: all NaNs are equal, and greater than any number.
 * ----------------------------------------------------------------
 */

static int
compare_floats(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) != 0) - (isnan(b) != 0);
	return (a > b) - (a < b);
}

static float
float4_of_bits(uint32_t bits)
{
	float		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static double
float8_of_bits(uint64_t bits)
{
	double		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static bool
float4_pair_is_right(uint32_t a_bits, uint32_t b_bits)
{
	float		a = float4_of_bits(a_bits);
	float		b = float4_of_bits(b_bits);
	uint64_t	word = gpusort_codec_float4(a);

	if (word <= UINT32_MAX && (isnan(a) || word < UINT32_MAX) &&
		compare_words(word, gpusort_codec_float4(b)) == compare_floats(a, b))
		return true;
	tap_note("float4 with bits %08" PRIx32 " and %08" PRIx32, a_bits, b_bits);
	return false;
}

static bool
float8_pair_is_right(uint64_t a_bits, uint64_t b_bits)
{
	double		a = float8_of_bits(a_bits);
	double		b = float8_of_bits(b_bits);
	uint64_t	word = gpusort_codec_float8(a);

	if ((isnan(a) || word < UINT64_MAX) &&
		compare_words(word, gpusort_codec_float8(b)) == compare_floats(a, b))
		return true;
	tap_note("float8 with bits %016" PRIx64 " and %016" PRIx64, a_bits, b_bits);
	return false;
}

static void
test_float4(void)
{
	/* zero, denormals, least and greatest normals, 1, infinity, NaNs */
	static const uint32_t edges[] = {
		0, 1, 2, 0x007fffff, 0x00800000, 0x00800001, 0x3f7fffff, 0x3f800000,
		0x3f800001, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000,
		0x7fc00001, 0x7fbfffff, 0x7fffffff
	};
	const uint32_t sign_bit = UINT32_C(0x80000000);
	RandomState random = 4;
	bool		passed = true;

	for (size_t i = 0; i < LENGTH_OF(edges) * 2; i++)
		for (size_t j = 0; j < LENGTH_OF(edges) * 2; j++)
			passed &= float4_pair_is_right(edges[i / 2] | (i % 2 ? sign_bit : 0),
										   edges[j / 2] | (j % 2 ? sign_bit : 0));
	tap_ok(passed, "float4: zeroes, denormals, infinities and NaNs");

	/* Compare each number with the next greater one. */
	passed = true;
	for (uint32_t bits = 0; bits < UINT32_C(0x7f800000) && passed; bits += 997)
	{
		passed &= float4_pair_is_right(bits, bits + 1);
		passed &= float4_pair_is_right(sign_bit | bits, sign_bit | (bits + 1));
	}
	tap_ok(passed, "float4: neighbours");

	passed = true;
	for (int i = 0; i < RANDOM_PAIRS && passed; i++)
	{
		uint64_t	word = random_word(&random);

		passed &= float4_pair_is_right((uint32_t) word, (uint32_t) (word >> 32));
	}
	tap_ok(passed, "float4: random pairs");
}

static void
test_float8(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, UINT64_C(0x000fffffffffffff), UINT64_C(0x0010000000000000),
		UINT64_C(0x0010000000000001), UINT64_C(0x3fefffffffffffff),
		UINT64_C(0x3ff0000000000000), UINT64_C(0x3ff0000000000001),
		UINT64_C(0x7fefffffffffffff), UINT64_C(0x7ff0000000000000),
		UINT64_C(0x7ff0000000000001), UINT64_C(0x7ff7ffffffffffff),
		UINT64_C(0x7ff8000000000000), UINT64_C(0x7ff8000000000001),
		UINT64_C(0x7fffffffffffffff)
	};
	const uint64_t sign_bit = UINT64_C(0x8000000000000000);
	const uint64_t infinity = UINT64_C(0x7ff0000000000000);
	RandomState random = 8;
	bool		passed = true;

	for (size_t i = 0; i < LENGTH_OF(edges) * 2; i++)
		for (size_t j = 0; j < LENGTH_OF(edges) * 2; j++)
			passed &= float8_pair_is_right(edges[i / 2] | (i % 2 ? sign_bit : 0),
										   edges[j / 2] | (j % 2 ? sign_bit : 0));
	tap_ok(passed, "float8: zeroes, denormals, infinities and NaNs");

	passed = true;
	for (int i = 0; i < RANDOM_PAIRS && passed; i++)
	{
		uint64_t	bits = random_below(&random, infinity);

		passed &= float8_pair_is_right(bits, bits + 1);
		passed &= float8_pair_is_right(sign_bit | bits, sign_bit | (bits + 1));
	}
	tap_ok(passed, "float8: neighbours");

	passed = true;
	for (int i = 0; i < RANDOM_PAIRS && passed; i++)
		passed &= float8_pair_is_right(random_word(&random),
									   random_word(&random));
	tap_ok(passed, "float8: random pairs");
}

/* ----------------------------------------------------------------
 *		byte strings
 * ----------------------------------------------------------------
 */

static void
test_bytes(unsigned length)
{
	RandomState random = length;
	bool		passed = true;

	for (int i = 0; i < RANDOM_PAIRS / 8 && passed; i++)
	{
		uint64_t	words[2] = {random_word(&random), random_word(&random)};
		unsigned	common = (unsigned) random_below(&random, length + 1);
		unsigned char a[8];
		unsigned char b[8];
		uint64_t	a_word;
		uint64_t	b_word;

		memcpy(a, &words[0], sizeof(a));
		memcpy(b, &words[1], sizeof(b));
		memcpy(b, a, common);
		a_word = gpusort_codec_bytes(a, length);
		b_word = gpusort_codec_bytes(b, length);
		passed &= compare_words(a_word, b_word) == sign(memcmp(a, b, length));
		passed &= length == 8 || a_word < UINT64_C(1) << (8 * length);
	}
	tap_ok(passed, "byte strings of %u", length);
}

/* ----------------------------------------------------------------
 *		strings of any length
 * ----------------------------------------------------------------
 */

#define MAX_STRING	40

typedef struct String
{
	unsigned char bytes[MAX_STRING];
	size_t		length;
} String;

/*
 * Makes a string of few different bytes, so that many strings have long
 * common prefixes.
 */
static String
random_string(RandomState *random, unsigned lowest)
{
	String		string;

	string.length = random_below(random, MAX_STRING + 1);
	for (size_t i = 0; i < string.length; i++)
		string.bytes[i] = (unsigned char)
			(random_below(random, 30) == 0 ? 255 :
			 lowest + random_below(random, 2));
	return string;
}

static int
compare_strings(const String *a, const String *b)
{
	size_t		common = a->length < b->length ? a->length : b->length;
	int			cmp = sign(memcmp(a->bytes, b->bytes, common));

	return cmp != 0 ? cmp : (a->length > b->length) - (a->length < b->length);
}

static uint64_t
string_word(const String *string, size_t start, bool binary)
{
	size_t		left = start < string->length ? string->length - start : 0;
	const unsigned char *bytes = string->bytes + string->length - left;

	return binary ? gpusort_codec_binary(bytes, left) :
		gpusort_codec_string(bytes, left);
}

/* Returns whether the word shows that the string ends in it. */
static bool
is_last_word(uint64_t word, bool binary)
{
	return binary ? (word & 0xFF) <= 7 : (word & 0xFF) == 0;
}

/* Compares two strings by their words, up to the last word that matters. */
static int
compare_by_words(const String *a, const String *b, bool binary)
{
	size_t		step = binary ? 7 : 8;

	for (size_t start = 0;; start += step)
	{
		uint64_t	a_word = string_word(a, start, binary);
		uint64_t	b_word = string_word(b, start, binary);

		if (a_word != b_word || is_last_word(a_word, binary))
			return compare_words(a_word, b_word);
	}
}

static void
test_strings(bool binary)
{
	RandomState random = 7;
	bool		passed = true;

	for (int i = 0; i < RANDOM_PAIRS; i++)
	{
		String		a = random_string(&random, binary ? 0 : 1);
		String		b = random_string(&random, binary ? 0 : 1);

		/* Sometimes one string is a prefix of the other. */
		if (random_below(&random, 4) == 0)
			memcpy(b.bytes, a.bytes, a.length);
		passed &= compare_by_words(&a, &b, binary) == compare_strings(&a, &b);
	}
	tap_ok(passed, binary ? "strings of any bytes" : "strings without zeros");
}

/* Compares two texts by their words, up to the last one that matters. */
static int
compare_texts(const String *a, const String *b)
{
	GsTextBytes a_text = {.next = a->bytes,.length = a->length};
	GsTextBytes b_text = {.next = b->bytes,.length = b->length};

	for (unsigned count = 8;; count = 4 + count % 5)
	{
		uint64_t	a_word = gpusort_codec_text(&a_text, count);
		uint64_t	b_word = gpusort_codec_text(&b_text, count);

		if (a_word != b_word || (a_word & 0xFF) == 0)
			return compare_words(a_word, b_word);
	}
}

/* Do the bytes of words stand for as many bytes of a text as gpusort_codec_text_prefix() says? */
static bool
has_right_prefixes(const String *string)
{
	GsTextBytes text = {.next = string->bytes,.length = string->length};

	for (size_t written = 0; written <= 2 * string->length; written++)
	{
		size_t		read = string->length - text.length - (text.second != 0);

		if (gpusort_codec_text_prefix(string->bytes, string->length, written) != read)
			return false;
		(void) gpusort_codec_text_byte(&text);
	}
	return true;
}

static void
test_texts(void)
{
	RandomState random = 8;
	bool		ordered = true;
	bool		counted = true;

	for (int i = 0; i < RANDOM_PAIRS; i++)
	{
		unsigned	lowest = random_below(&random, 3);
		String		a = random_string(&random, lowest);
		String		b = random_string(&random, lowest);

		if (random_below(&random, 4) == 0)
			memcpy(b.bytes, a.bytes, a.length);
		ordered &= compare_texts(&a, &b) == compare_strings(&a, &b);
		counted &= has_right_prefixes(&a);
	}
	tap_ok(ordered, "texts of any bytes");
	tap_ok(counted, "bytes of texts in words");
}

int
main(void)
{
	test_int16();
	test_wide_integers();
	test_float4();
	test_float8();
	for (unsigned length = 1; length <= 8; length++)
		test_bytes(length);
	test_strings(false);
	test_strings(true);
	test_texts();
	return tap_done();
}
