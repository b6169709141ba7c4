/*
 * keys.cuh
 *		The order of keys: turns the bits of a key into digits that compare as unsigned numbers.
 *
 * Keys keep their original bits through all passes; the transform is applied whenever a digit
 * is extracted.  For integers the transform is an exclusive or, which is merged with the mask
 * and costs nothing.  For floats it cannot be inverted (-0 equals +0, and all NaNs are equal),
 * so the original bits have to be kept.
 */
#ifndef GPUSORT_KEYS_CUH
#define GPUSORT_KEYS_CUH

#include "portable.cuh"

constexpr int GPUSORT_RADIX_BITS = 8;
constexpr int GPUSORT_RADIX = 1 << GPUSORT_RADIX_BITS;
constexpr int GPUSORT_MAX_PASSES = 8;

/* The bits of a digit in the ordered form of a key. */
struct GsDigitRange {
	uint32_t begin_bit; /* less than the number of bits of a key */
	uint32_t bits;		/* 0 .. GPUSORT_RADIX_BITS */
};

/* The digits of a sort, least significant first.  They are adjacent. */
struct GsDigits {
	GsDigitRange range[GPUSORT_MAX_PASSES];
	uint32_t count; /* > 0 */
};

/* Returns a mask of the bits in the ordered form of a key that the digits cover. */
template <class Key>
inline Key gpusort_digits_mask(const GsDigits &digits)
{
	uint32_t bits = 0;
	for (uint32_t i = 0; i < digits.count; i++)
		bits += digits.range[i].bits;
	return bits ? (Key)((Key) ~(Key)0 >> (8 * sizeof(Key) - bits) << digits.range[0].begin_bit)
				: 0;
}

template <class Key>
constexpr Key GPUSORT_TOP_BIT = (Key)1 << (8 * sizeof(Key) - 1);

/*
 * Extracts digits as byte offsets into a table of 32-bit words (four times the digit), since
 * they are only used as such.  A rotation brings the digit to bit 2.  Of an 8-byte key, four
 * bytes that contain the digit are selected first.  The host computes the fields, so that they
 * are constants of the launch.
 */
template <class Key>
struct GsDigitRotation {
	uint32_t selector;
	uint32_t shift;
};

template <class Key>
inline GsDigitRotation<Key> gpusort_digit_rotation(uint32_t begin_bit)
{
	uint32_t byte = sizeof(Key) == 4 ? 0 : begin_bit / 8 < 4 ? begin_bit / 8 : 4;
	return {0x3210 + 0x1111 * byte, (begin_bit - 8 * byte - 2) & 31};
}

__device__ __forceinline__ uint32_t gpusort_rotate_digit(GsDigitRotation<uint32_t> rotation,
														 uint32_t key)
{
	return __funnelshift_r(key, key, rotation.shift);
}

__device__ __forceinline__ uint32_t gpusort_rotate_digit(GsDigitRotation<uint64_t> rotation,
														 uint64_t key)
{
	uint32_t part = __byte_perm((uint32_t)key, (uint32_t)(key >> 32), rotation.selector);
	return __funnelshift_r(part, part, rotation.shift);
}

/* Returns the entry of a table for a digit; offset is four times the digit. */
template <class Word>
__device__ __forceinline__ Word &gpusort_at(Word *table, uint32_t offset)
{
	return *(Word *)((unsigned char *)table + offset * (sizeof(Word) / sizeof(uint32_t)));
}

/* Order of integers: signed keys flip the top bit, descending order flips all bits. */
template <class KeyType>
struct GsIntegerOrder {
	typedef KeyType Key;
	Key flip;

	/* greatest() returns a key of which every digit is at least that of any other key. */
	static constexpr bool HAS_GREATEST = true;

	__host__ __device__ __forceinline__ Key ordered(Key key) const
	{
		return key ^ flip;
	}

	__device__ __forceinline__ Key greatest() const
	{
		return ~flip;
	}

	/* Extracts one digit, times four. */
	struct DigitExtractor {
		GsDigitRotation<Key> rotation;
		uint32_t mask; /* also the greatest value that is returned */
		uint32_t flip;

		__device__ __forceinline__ uint32_t operator()(Key key) const
		{
			return (gpusort_rotate_digit(rotation, key) & mask) ^ flip;
		}
	};

	DigitExtractor extractor(GsDigitRange range) const
	{
		uint32_t mask = (1u << range.bits) - 1;
		return {gpusort_digit_rotation<Key>(range.begin_bit), mask * 4,
				((uint32_t)(flip >> range.begin_bit) & mask) * 4};
	}
};

template <class KeyType>
struct GsFloatOrder {
	typedef KeyType Key;
	Key flip; /* 0 for ascending order, all ones for descending order */

	static constexpr bool HAS_GREATEST = false;

	__host__ __device__ __forceinline__ Key ordered(Key key) const
	{
		constexpr Key SIGN = GPUSORT_TOP_BIT<Key>;
		constexpr Key INFINITE =
			sizeof(Key) == 4 ? (Key)0x7F800000u : (Key)0x7FF0000000000000ull;
		Key magnitude = key & (Key)~SIGN;
		Key result = (key & SIGN) && magnitude ? (Key)~key : (Key)(magnitude | SIGN);
		if (magnitude > INFINITE)
			result = (Key) ~(Key)0;
		return result ^ flip;
	}

	__device__ __forceinline__ Key greatest() const
	{
		return 0;
	}

	struct DigitExtractor {
		GsDigitRotation<Key> rotation;
		uint32_t mask;
		GsFloatOrder order;

		__device__ __forceinline__ uint32_t operator()(Key key) const
		{
			return gpusort_rotate_digit(rotation, order.ordered(key)) & mask;
		}
	};

	DigitExtractor extractor(GsDigitRange range) const
	{
		return {gpusort_digit_rotation<Key>(range.begin_bit), ((1u << range.bits) - 1) * 4,
				*this};
	}
};

/* The type of the values that are moved with the keys: GsNoValue, or one of 4 or 8 bytes. */
struct GsNoValue {
};

template <class Value>
inline constexpr bool GPUSORT_HAS_VALUE = true;
template <>
inline constexpr bool GPUSORT_HAS_VALUE<GsNoValue> = false;

/* Bytes of a value in memory. */
template <class Value>
constexpr size_t GPUSORT_VALUE_BYTES = GPUSORT_HAS_VALUE<Value> ? sizeof(Value) : 0;

#endif /* GPUSORT_KEYS_CUH */
