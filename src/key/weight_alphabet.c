/*-------------------------------------------------------------------------
 *
 * weight_alphabet.c
 *		Short bytes for the weights of a locale of the GNU C library.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#ifdef __GLIBC__

#include "key/weight_alphabet.h"

/* Returns how many weights of the alphabet are less than a weight. */
static int
rank_weight(const GsWeightAlphabet *alphabet, uint64 weight)
{
	int			low = 0;
	int			high = alphabet->size;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (alphabet->weights[middle] < weight)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

unsigned
gpusort_weight_alphabet_write(const GsWeightAlphabet *alphabet, const unsigned char *weights,
							  Size length, unsigned char *bytes)
{
	unsigned	count = 0;

	while (length > 0)
	{
		uint64		weight = 0;
		Size		n = gpusort_locale_tables_weight(weights, length, &weight);
		int			rank = rank_weight(alphabet, weight);

		if (rank < alphabet->size && alphabet->weights[rank] == weight)
			bytes[count++] = 2 * rank + 2;
		else
		{
			bytes[count++] = 2 * rank + 1;
			memcpy(bytes + count, weights, n);
			count += n;
		}
		weights += n;
		length -= n;
	}
	return count;
}

/* Add the weights of a character to the alphabet. */
static void
add_to_alphabet(GsWeightAlphabet *alphabet, const GsLocaleTables *tables,
				const unsigned char *character,
				Size length)
{
	const unsigned char *next = character;
	const unsigned char *end = character + length;
	bool		alone;
	Size		n;

	while (next < end)
	{
		int32		position = gpusort_locale_tables_next(tables, &next, end, length, &alone);
		const unsigned char *weights = gpusort_locale_tables_level(tables, position, &length);

		for (; length > 0; weights += n, length -= n)
		{
			uint64		weight = 0;
			int			rank;

			n = gpusort_locale_tables_weight(weights, length, &weight);
			rank = rank_weight(alphabet, weight);
			if (alphabet->size == GPUSORT_ALPHABET_SIZE ||
				(rank < alphabet->size && alphabet->weights[rank] == weight))
				continue;
			memmove(alphabet->weights + rank + 1, alphabet->weights + rank,
					(alphabet->size - rank) * sizeof(uint64));
			alphabet->weights[rank] = weight;
			alphabet->size++;
		}
	}
}

/* Append a character of UTF-8, or of an encoding with one byte for each. */
static void
append_character(StringInfo string, pg_wchar code)
{
	unsigned char bytes[MAX_MULTIBYTE_CHAR_LEN];

	if (GetDatabaseEncoding() != PG_UTF8)
	{
		if (code < 256)
			appendStringInfoChar(string, (char) code);
		return;
	}
	unicode_to_utf8(code, bytes);
	appendBinaryStringInfo(string, (char *) bytes, pg_utf_mblen(bytes));
}

/*
 * Append the most common characters: ASCII, the letters of Latin-1, and those of the
 * Cyrillic, Greek, Hebrew and Arabic scripts.
 */
void
gpusort_weight_alphabet_sample(StringInfo string)
{
	static const pg_wchar ranges[][2] = {
		{0x01, 0x7F}, {0xC0, 0xFF}, {0x430, 0x45F}, {0x3B1, 0x3C9},
		{0x5D0, 0x5EA}, {0x621, 0x64A}
	};

	for (int r = 0; r < lengthof(ranges); r++)
		for (pg_wchar code = ranges[r][0]; code <= ranges[r][1]; code++)
			append_character(string, code);
}

void
gpusort_weight_alphabet_make(GsWeightAlphabet *alphabet, const GsLocaleTables *tables)
{
	StringInfoData characters;
	int			length;

	initStringInfo(&characters);
	gpusort_weight_alphabet_sample(&characters);
	for (int i = 0; i < characters.len; i += length)
	{
		length = gpusort_locale_tables_character((unsigned char *) characters.data + i);
		add_to_alphabet(alphabet, tables, (unsigned char *) characters.data + i, length);
	}
	pfree(characters.data);
}

#endif							/* __GLIBC__ */
