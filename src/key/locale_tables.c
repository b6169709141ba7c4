/*-------------------------------------------------------------------------
 *
 * locale_tables.c
 *		The tables by which the GNU C library compares strings of a locale.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <langinfo.h>

#include "key/locale_weights.h"

/* The sequences of a range differ in at most this many bytes at their end. */
#define MAX_RANGE_BYTES	4

/* Returns the number of a string of bytes within a range. */
static inline Size
offset_in_range(const GsSequence *sequence, const unsigned char *string)
{
	Size		offset = 0;
	Size		i = 0;

	while (i < sequence->length && string[i] == sequence->first[i])
		i++;
	for (; i < sequence->length; i++)
		offset = (offset << 8) + string[i] - sequence->first[i];
	return offset;
}

int32
gpusort_locale_tables_next(const GsLocaleTables *tables, const unsigned char **next,
						   const unsigned char *end, Size character_bytes, bool *alone)
{
	int32		start = tables->starts[**next];
	const unsigned char *string = *next + 1;
	Size		left = end - string;
	const unsigned char *entry;

	*next = string;
	*alone = character_bytes == 1;
	if (start >= 0)
		return start;
	*alone = true;
	entry = tables->sequences - start;
	for (;;)
	{
		GsSequence	sequence = gpusort_locale_tables_read(entry);
		Size		bytes = sequence.length + 1;

		/* Next time, a longer one may match that begins alike. */
		if (bytes > character_bytes &&
			memcmp(string, sequence.first, character_bytes - 1) >= 0 &&
			memcmp(string, sequence.last, character_bytes - 1) <= 0)
			*alone = false;
		if (sequence.length <= left &&
			memcmp(string, sequence.first, sequence.length) >= 0 &&
			memcmp(string, sequence.last, sequence.length) <= 0)
		{
			*next += sequence.length;
			*alone = *alone && bytes == character_bytes;
			if (sequence.position >= 0)
				return sequence.position;
			return tables->ranges[-sequence.position +
								  offset_in_range(&sequence, string)];
		}
		entry = sequence.next;
	}
}

const unsigned char *
gpusort_locale_tables_weights(const GsLocaleTables *tables, int32 position, uint32 level,
							  unsigned char *rule)
{
	Size		at = (Size) (position >> 24) * tables->nrules + level;
	const unsigned char *end = tables->levels + tables->levels_bytes;
	const unsigned char *weights = tables->levels + (position & 0xFFFFFF);

	if (level >= tables->nrules || at >= tables->rules_bytes)
		return NULL;
	*rule = tables->rules[at];
	for (; level > 0 && weights < end; level--)
		weights += 1 + weights[0];
	return weights < end && weights + weights[0] < end ? weights : NULL;
}

/* ----------------------------------------------------------------
 *		checking the tables
 * ----------------------------------------------------------------
 */

/* Are there weights at a position, all of which are compared forward? */
static bool
check_position(const GsLocaleTables *tables, int32 position)
{
	Size		rule = (Size) (position >> 24) * tables->nrules;
	Size		at = position & 0xFFFFFF;
	const unsigned char *weights;
	Size		length;

	if (position < 0 || rule >= tables->rules_bytes ||
		tables->rules[rule] != GPUSORT_RULE_FORWARD || at >= tables->levels_bytes)
		return false;
	weights = gpusort_locale_tables_level(tables, position, &length);
	if (length > tables->levels_bytes - at - 1)
		return false;
	while (length > 0)
	{
		uint64		weight;
		Size		n = gpusort_locale_tables_weight(weights, length, &weight);

		if (n == 0)
			return false;
		weights += n;
		length -= n;
	}
	return true;
}

/* Check the positions of a range of sequences. */
static bool
check_range(const GsLocaleTables *tables, const GsSequence *sequence)
{
	Size		start = -(int64) sequence->position;
	Size		common = 0;
	Size		count;

	while (common < sequence->length &&
		   sequence->first[common] == sequence->last[common])
		common++;
	if (sequence->length - common > MAX_RANGE_BYTES ||
		memcmp(sequence->first, sequence->last, sequence->length) > 0)
		return false;
	count = offset_in_range(sequence, sequence->last) + 1;
	if (start > tables->nranges || count > tables->nranges - start)
		return false;
	for (Size i = 0; i < count; i++)
		if (!check_position(tables, tables->ranges[start + i]))
			return false;
	return true;
}

static bool
check_list(const GsLocaleTables *tables, int32 start)
{
	Size		at = -(int64) start;

	for (;;)
	{
		const unsigned char *entry = tables->sequences + at;
		GsSequence	sequence;

		if (at + sizeof(int32) >= tables->sequences_bytes)
			return false;
		sequence = gpusort_locale_tables_read(entry);
		if (sequence.next > tables->sequences + tables->sequences_bytes ||
			(sequence.position >= 0 ? !check_position(tables, sequence.position) :
			 !check_range(tables, &sequence)))
			return false;
		if (sequence.length == 0)
			return true;
		at = sequence.next - tables->sequences;
	}
}

/* The tables follow each other in the locale's file, and so tell each other's sizes. */
bool
gpusort_locale_tables_find(GsLocaleTables *tables, locale_t locale)
{
#ifdef __GLIBC__
	const char *rules = nl_langinfo_l(_NL_COLLATE_RULESETS, locale);
	const char *starts = nl_langinfo_l(_NL_COLLATE_TABLEMB, locale);
	const char *levels = nl_langinfo_l(_NL_COLLATE_WEIGHTMB, locale);
	const char *sequences = nl_langinfo_l(_NL_COLLATE_EXTRAMB, locale);
	const char *ranges = nl_langinfo_l(_NL_COLLATE_INDIRECTMB, locale);
	const char *end = nl_langinfo_l(_NL_COLLATE_TABLEWC, locale);

	tables->nrules = (uint32) (uintptr_t) nl_langinfo_l(_NL_COLLATE_NRULES, locale);
	if (tables->nrules == 0 || rules == NULL || starts <= rules ||
		levels - starts != 256 * (ptrdiff_t) sizeof(int32) ||
		sequences <= levels || ranges < sequences || end < ranges)
		return false;
	tables->rules = (const unsigned char *) rules;
	tables->rules_bytes = starts - rules;
	tables->starts = (const int32 *) starts;
	tables->levels = (const unsigned char *) levels;
	tables->levels_bytes = sequences - levels;
	tables->sequences = (const unsigned char *) sequences;
	tables->sequences_bytes = ranges - sequences;
	tables->ranges = (const int32 *) ranges;
	tables->nranges = (end - ranges) / sizeof(int32);
	for (int first = 1; first < 256; first++)
	{
		int32		start = tables->starts[first];

		if (start >= 0 ? !check_position(tables, start) :
			!check_list(tables, start))
			return false;
	}
	return true;
#else
	return false;
#endif
}
