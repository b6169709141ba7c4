/*-------------------------------------------------------------------------
 *
 * key_plan.c
 *		Lays out the sort keys of a query as words with the same order.
 *
 * The columns' encodings follow each other, with the first column in the most
 * significant bits.  Rows whose first column is NULL are sorted separately (so that
 * a single int8 still fits into one word).  Each later column is preceded by one
 * bit for NULL, which the first one of a later stage does without in a group of ties that has no
 * NULL there.
 *
 * If the first words of a column are not exact, no other column can follow,
 * because differences in the rest of the column come before differences in
 * later columns.  So the columns are divided into stages, each of which ends
 * with such a column, when a key is full, or with the first column whose values
 * are nearly all different.  The words of the first stage are the key.  Only to
 * break ties, we encode what follows:
 *
 *		the words of a stage, then further words of its last column, then
 *		the words of the next stage, ...
 *
 * Where most rows agree in short strings, breaking ties takes longer than to sort.  So there
 * (GsSortKeys.short_values), strings have more words, and other columns do follow such a column
 * where its value ends in these words, as most short strings and numerics do.
 * Of a row in which it does not end, these columns' bits are zero.  Rows with equal words agree in
 * that, too, so that the order of the words is still right, and such rows are ties, which are
 * broken by further words of that column, and then by the stage that begins after it.  There is
 * a stage for each column that can be the first one.
 *
 * At a time we encode as many words as a key has, which we call a slice.  If
 * the column that further slices are of is a string, they encode the
 * strings of a group of ties relative to a pivot (see string_pivot.c), since
 * these may have many more bytes in common.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tupmacs.h"
#include "utils/memutils.h"

#include "core/radix_sort.h"
#include "key/distrust.h"
#include "key/key_column.h"
#include "key/key_plan.h"
#include "key/type_words.h"
#include "work.h"

#define WORD_BITS	GPUSORT_WORD_BITS
#define MAX_BITS	(GPUSORT_CPU_MAX_KEY_WORDS * WORD_BITS)

/* The words of a column that is not exact, if others follow it. */
#define SHORT_WORDS	2

typedef struct GsKeyStage
{
	int			end;			/* the first column that does not belong to it */
	int			open;			/* the first one that is not exact, or 'end' */
	unsigned	bits;
	unsigned	words;
	uint32		slices;			/* that these words take, */
	uint32		slices_without_null;	/* also without the first bit */
} GsKeyStage;

struct GsKeyPlan
{
	MemoryContext context;
	unsigned	words;			/* of the first stage, and of each slice */
	unsigned	string_words;	/* at least, of a string */
	int			enough;			/* see GsSortKeys */
	bool		short_values;	/* likewise */
	bool		alone;			/* likewise */
	Size		memory;			/* of what encodings keep */
	bool		distrusted;		/* so that no column has an encoding */
	int			ncolumns;
	GsKeyColumn *columns;
	GsKeyStage *stages;			/* stages[c] begins with column c */
};

/* ----------------------------------------------------------------
 *		making a plan
 * ----------------------------------------------------------------
 */

/* Find the encoding of each column, unless any is distrusted. */
static void
find_encodings(GsKeyPlan *plan, const GsSortKeys *keys)
{
	for (int i = 0; i < keys->nkeys; i++)
	{
		GsKeyColumn *column = &plan->columns[i];

		if (!plan->distrusted)
			column->encoding = gpusort_key_encoding_find(keys->operators[i],
														 keys->collations[i],
														 &column->descending);
		column->attno = keys->attnos[i];
		column->nulls_first = keys->nulls_first[i];
	}
}

/* Returns the number of words that 'bits' take. */
static unsigned
words_of(unsigned bits)
{
	return Max((bits + WORD_BITS - 1) / WORD_BITS, 1);
}

/* Returns the number of slices that 'bits' take. */
static uint32
slices_of(const GsKeyPlan *plan, unsigned bits)
{
	return (words_of(bits) + plan->words - 1) / plan->words;
}

/* Can columns follow one that is not exact, in keys of this plan? */
static inline bool
is_continued(const GsKeyPlan *plan)
{
	return plan->short_values && !plan->alone;
}

/*
 * Give a column that is not exact its words, up to string_words.  'room' is how many bits it can
 * have.  The next column gets a place if SHORT_WORDS remain.
 */
static void
extend_column(const GsKeyPlan *plan, int c, int end, unsigned room)
{
	GsKeyEncoding *encoding = &plan->columns[c].encoding;
	unsigned	next = c + 1 == end ? 0 :
		gpusort_key_null_bits(c + 1) + plan->columns[c + 1].encoding.bits;
	bool		may_end = is_continued(plan) && gpusort_key_encoding_can_end(encoding);
	unsigned	words = Max(plan->string_words, may_end ? SHORT_WORDS : 1);

	if (may_end && room >= SHORT_WORDS * WORD_BITS + next)
		room -= next;
	while (encoding->bits < words * WORD_BITS && encoding->bits + WORD_BITS <= room)
		encoding->bits += WORD_BITS;
}

/*
 * Lay out the stage that begins with a column.  'extend' says that its columns have not got their
 * words.
 */
static void
lay_out_stage(GsKeyPlan *plan, int first, bool extend)
{
	GsKeyStage *stage = &plan->stages[first];
	unsigned	bits = 0;
	int			end = first < plan->enough ? plan->enough : plan->ncolumns;
	bool		may_follow = true;
	int			i;

	stage->open = -1;
	for (i = first; i < end && may_follow; i++)
	{
		GsKeyEncoding *encoding = &plan->columns[i].encoding;

		if (bits + gpusort_key_null_bits(i) + encoding->bits > MAX_BITS)
			break;
		bits += gpusort_key_null_bits(i);
		if (extend && gpusort_key_encoding_has_words(encoding))
			extend_column(plan, i, end, MAX_BITS - bits);
		bits += encoding->bits;
		if (gpusort_key_encoding_is_exact(encoding))
			continue;
		may_follow = is_continued(plan) && gpusort_key_encoding_can_end(encoding);
		if (stage->open < 0)
			stage->open = i;
	}
	stage->end = i;
	if (stage->open < 0)
		stage->open = stage->end;
	stage->bits = bits;
	stage->words = words_of(bits);
}

/*
 * Lay out all stages.  Which words a column has is the same in all of them, and depends on the
 * stages that follow each other if all values end in their words.
 */
static void
lay_out_stages(GsKeyPlan *plan)
{
	plan->stages = palloc0(plan->ncolumns * sizeof(GsKeyStage));
	for (int i = 0; i < plan->ncolumns; i = plan->stages[i].end)
		lay_out_stage(plan, i, true);
	for (int i = 1; i < plan->ncolumns; i++)
		if (plan->stages[i].end == 0)
			lay_out_stage(plan, i, false);
	plan->words = plan->stages[0].words;
	for (int i = 0; i < plan->ncolumns; i++)
	{
		GsKeyStage *stage = &plan->stages[i];

		stage->slices = slices_of(plan, stage->bits);
		stage->slices_without_null = slices_of(plan, Max(stage->bits, 1) - 1);
	}
}

static bool
any_is_distrusted(const GsSortKeys *keys)
{
	for (int i = 0; i < keys->nkeys; i++)
		if (gpusort_distrust_has(keys->operators[i], keys->collations[i]))
			return true;
	return false;
}

GsKeyPlan *
gpusort_key_plan_create(const GsSortKeys *keys, GsReason *reason)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort key plan",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsKeyPlan  *plan = palloc0(sizeof(GsKeyPlan));

	plan->context = context;
	plan->string_words = Max(keys->string_words, 1);
	plan->enough = keys->enough;
	plan->short_values = keys->short_values;
	plan->alone = keys->alone;
	plan->distrusted = reason != NULL && any_is_distrusted(keys);
	plan->ncolumns = keys->nkeys;
	plan->columns = palloc0(keys->nkeys * sizeof(GsKeyColumn));
	find_encodings(plan, keys);
	lay_out_stages(plan);
	MemoryContextSwitchTo(caller);
	if (reason != NULL && plan->distrusted)
		*reason = GS_REASON_WRONG_ORDER;
	else if (reason != NULL)
		*reason = plan->columns[0].encoding.kind == GS_ENCODE_NONE ?
			GS_REASON_TYPE : GS_REASON_NONE;
	return plan;
}

GsKeyShape
gpusort_key_plan_shape(const GsKeyPlan *plan)
{
	const GsKeyEncoding *encoding = &plan->columns[0].encoding;
	GsKeyShape	shape = {
		.words = plan->stages[0].words,
		.encoded = encoding->kind != GS_ENCODE_NONE,
		.first_exact = gpusort_key_encoding_is_exact(encoding),
		.has_weights = gpusort_key_encoding_has_weights(encoding)
	};

	shape.exact = gpusort_key_plan_is_exact(plan, &shape.open);
	for (int i = 0; i < plan->ncolumns; i++)
	{
		GsEncodingKind kind = plan->columns[i].encoding.kind;

		shape.collated |= kind == GS_ENCODE_ICU || kind == GS_ENCODE_ABBREVIATION;
		shape.compared |= kind == GS_ENCODE_COMPARISONS;
		shape.nested |= kind == GS_ENCODE_NESTED;
	}
	return shape;
}

bool
gpusort_key_plan_is_distrusted(const GsKeyPlan *plan)
{
	return plan->distrusted;
}

void
gpusort_key_plan_free(GsKeyPlan *plan)
{
	MemoryContextDelete(plan->context);
}

void
gpusort_key_plan_set_memory(GsKeyPlan *plan, Size limit)
{
	plan->memory = 0;
	for (int i = 0; i < plan->ncolumns; i++)
		plan->memory += gpusort_key_encoding_set_memory(&plan->columns[i].encoding,
														limit / plan->ncolumns);
}

Size
gpusort_key_plan_memory(const GsKeyPlan *plan)
{
	return plan->memory;
}

unsigned
gpusort_key_plan_words(const GsKeyPlan *plan)
{
	return plan->words;
}

const GsKeyColumn *
gpusort_key_plan_columns(const GsKeyPlan *plan, int *ncolumns)
{
	*ncolumns = plan->ncolumns;
	return plan->columns;
}

bool
gpusort_key_plan_is_exact(const GsKeyPlan *plan, int *first)
{
	*first = plan->stages[0].open;
	return *first == plan->ncolumns;
}

bool
gpusort_key_plan_is_string(const GsKeyPlan *plan)
{
	const GsKeyStage *stage = &plan->stages[0];

	return stage->open == 0 && stage->end == 1 && stage->slices == 1 &&
		gpusort_key_encoding_is_string(&plan->columns[0].encoding);
}

void
gpusort_key_plan_mask(const GsKeyPlan *plan, int nkeys, uint64 *mask)
{
	const GsKeyStage *stage = &plan->stages[0];
	unsigned	bits = plan->words * WORD_BITS;

	/* A key of one column need not begin with the first bit. */
	if (nkeys < stage->end)
	{
		bits = 0;
		for (int i = 0; i < nkeys; i++)
			bits += gpusort_key_null_bits(i) + plan->columns[i].encoding.bits;
	}
	for (unsigned w = 0; w < plan->words; w++)
	{
		unsigned	before = Min(w * WORD_BITS, bits);
		unsigned	here = Min(bits - before, WORD_BITS);

		mask[w] = here == 0 ? 0 : PG_UINT64_MAX << (WORD_BITS - here);
	}
}

bool
gpusort_key_plan_is_common(const GsKeyPlan *plan)
{
	for (int i = 0; i < plan->ncolumns; i++)
		if (!gpusort_key_encoding_is_common(&plan->columns[i].encoding))
			return false;
	return true;
}

bool
gpusort_key_plan_nulls_first(const GsKeyPlan *plan)
{
	return plan->columns[0].nulls_first;
}

/* ----------------------------------------------------------------
 *		encoding
 * ----------------------------------------------------------------
 */

/* Returns how to break ties of the words that encode a column's value, which is not NULL. */
static inline GsEncodingRest
rest_of_column(const GsKeyColumn *column, Datum value)
{
	return gpusort_key_encoding_is_exact(&column->encoding) ? GS_REST_NONE :
		gpusort_key_encoding_rest(&column->encoding, value, column->encoding.bits / WORD_BITS);
}

/*
 * Encode the words of the stage that begins with a column.  The value of column i is values[i], or
 * that of its attribute if 'by_attribute'.
 */
static pg_attribute_always_inline void
encode_stage(const GsKeyPlan *plan, int first, const Datum *values, const bool *isnull,
			 bool by_attribute, uint64 *key)
{
	const GsKeyStage *stage = &plan->stages[first];
	unsigned	position = 0;

	for (unsigned w = 0; w < stage->words; w++)
		key[w] = 0;
	for (int i = first; i < stage->end; i++)
	{
		const GsKeyColumn *column = &plan->columns[i];
		int			index = by_attribute ? column->attno - 1 : i;

		if (i > 0)
			gpusort_key_set_bits(key, position++, 1, isnull[index] != column->nulls_first);
		if (!isnull[index])
		{
			gpusort_key_column_encode(column, column->encoding.bits, position, values[index], key);
			if (i >= stage->open && i + 1 < stage->end &&
				rest_of_column(column, values[index]) != GS_REST_NONE)
				return;
		}
		position += column->encoding.bits;
	}
}

bool
gpusort_key_plan_encode(const GsKeyPlan *plan, const Datum *values,
						const bool *isnull, uint64 *key)
{
	const GsKeyStage *stage = &plan->stages[0];
	const GsKeyColumn *first = &plan->columns[0];
	bool		first_is_null = isnull[first->attno - 1];

	if (stage->end > 1 || stage->words > 1 || first->encoding.bits == 0)
		encode_stage(plan, 0, values, isnull, true, key);
	else if (first_is_null)
		*key = 0;
	else
		*key = gpusort_key_column_word(first, values[first->attno - 1], 0,
									   first->encoding.bits);
	return !first_is_null;
}

/* ----------------------------------------------------------------
 *		numbers
 *
 * The word of a number is its bits, some of them inverted: see core/key_codec.h.
 * ----------------------------------------------------------------
 */

/* How numbers of one type become words. */
typedef struct GsNumberBits
{
	uint64		sign;			/* the highest bit */
	uint64		inverted;		/* bits that are inverted in each word */
	uint64		if_negative;	/* likewise, if the sign is set */
	uint64		greatest;		/* the greatest number, of any sign, not NaN */
} GsNumberBits;

/* Returns false if the plan is not for numbers of that length, or encodes some as others. */
static bool
get_number_bits(const GsKeyPlan *plan, Size length, GsNumberBits *bits)
{
	const GsKeyColumn *column = &plan->columns[0];
	GsEncodingKind kind = column->encoding.kind;

	if (plan->ncolumns > 1 || kind < GS_ENCODE_UINT8 || kind > GS_ENCODE_FLOAT8 ||
		column->encoding.bits != length * BITS_PER_BYTE || GPUSORT_IS_WRONG(GS_WRONG_ENCODING))
		return false;
	bits->sign = UINT64CONST(1) << (column->encoding.bits - 1);
	bits->inverted = gpusort_key_encoding_word(&column->encoding, (Datum) 0, 0);
	if (column->descending)
		bits->inverted ^= bits->sign | (bits->sign - 1);
	bits->if_negative = 0;
	bits->greatest = bits->sign - 1;
	if (kind >= GS_ENCODE_FLOAT4)
	{
		bits->if_negative = bits->sign - 1;
		bits->greatest = kind == GS_ENCODE_FLOAT4 ? UINT64CONST(0x7F800000) :
			UINT64CONST(0x7FF0000000000000);
	}
	return true;
}

bool
gpusort_key_plan_encode_numbers(const GsKeyPlan *plan, const char *values, Size length,
								uint32 count, uint64 *words)
{
	GsNumberBits bits;
	bool		odd = false;

	if (!get_number_bits(plan, length, &bits))
		return false;
	gpusort_work_add(count * (length + sizeof(uint64)));
	for (uint32 i = 0; i < count; i++)
	{
		uint64		value = (uint64) fetch_att(values + i * length, true, length) &
			(bits.sign | (bits.sign - 1));

		odd |= (value & ~bits.sign) > bits.greatest ||
			(value == bits.sign && bits.if_negative != 0);
		words[i] = value ^ bits.inverted ^ (value & bits.sign ? bits.if_negative : 0);
	}
	return !odd;
}

void
gpusort_key_plan_decode_numbers(const GsKeyPlan *plan, const uint64 *words, Size length,
								uint32 count, char *values)
{
	GsNumberBits bits;

	(void) get_number_bits(plan, length, &bits);
	gpusort_work_add(count * (length + sizeof(uint64)));
	for (uint32 i = 0; i < count; i++)
	{
		uint64		value = words[i] ^ bits.inverted;

		value ^= value & bits.sign ? bits.if_negative : 0;
		store_att_byval(values + i * length, (Datum) value, length);
	}
}

/* ----------------------------------------------------------------
 *		more words
 * ----------------------------------------------------------------
 */

/* Is the bit for NULL left out which the first column of a later stage has? */
static inline bool
is_without_null(const GsKeyCursor *cursor)
{
	return cursor->stage > 0 && !cursor->nulls;
}

/* Returns the number of slices of the stage at the cursor. */
static inline uint32
slices_at(const GsKeyPlan *plan, const GsKeyCursor *cursor)
{
	const GsKeyStage *stage = &plan->stages[cursor->stage];

	return is_without_null(cursor) ? stage->slices_without_null : stage->slices;
}

/*
 * Returns how many words of the column that further slices are of are encoded up to the end of a
 * slice.
 */
static uint32
column_words_up_to(const GsKeyPlan *plan, const GsKeyCursor *cursor, uint32 slice)
{
	return plan->columns[cursor->column].encoding.bits / WORD_BITS +
		(slice + 1 - slices_at(plan, cursor)) * plan->words;
}

GsKeyRest
gpusort_key_plan_skip_key(const GsKeyPlan *plan, GsKeyCursor *cursor, int *first)
{
	if (cursor->column + 1 == (uint32) plan->ncolumns)
		return GS_KEY_EQUAL;
	cursor->stage = ++cursor->column;
	cursor->slice = 0;
	cursor->nulls = false;
	*first = cursor->stage;
	return GS_KEY_WORDS;
}

/*
 * Returns the frame of the words at the cursor, which encode strings relative
 * to a pivot.
 */
static GsPivotFrame
pivot_frame(const GsKeyPlan *plan, const GsKeyCursor *cursor)
{
	const GsKeyColumn *column = &plan->columns[cursor->column];

	return (GsPivotFrame)
	{
		.encoding = &column->encoding,
			.descending = column->descending,
			.words = plan->words,
			.start = cursor->start,
			.rest = cursor->rest
	};
}

/* gpusort_key_plan_next_words() within the cursor's column, if that is not NULL. */
static GsKeyRest
next_words_of_column(const GsKeyPlan *plan, Datum value, const uint64 *key,
					 GsKeyCursor *cursor, int *first)
{
	const GsKeyEncoding *encoding = &plan->columns[cursor->column].encoding;
	bool		is_string = gpusort_key_encoding_is_string(encoding);
	GsEncodingRest rest;

	if (is_string && cursor->slice >= slices_at(plan, cursor))
	{
		GsPivotFrame frame = pivot_frame(plan, cursor);
		Size		start = 0;

		if (gpusort_pivot_leaves_open(&frame, key, &start))
			rest = GS_REST_WORDS;
		else
			rest = gpusort_key_encoding_leaves_open(encoding) ?
				GS_REST_COMPARE : GS_REST_NONE;
		cursor->start = start;
	}
	else
	{
		uint32		nwords = column_words_up_to(plan, cursor, cursor->slice);

		rest = gpusort_key_encoding_rest(encoding, value, nwords);
		if (is_string && rest == GS_REST_WORDS)
			cursor->start = gpusort_key_encoding_bytes_in_words(encoding, value, nwords);
	}
	if (rest == GS_REST_NONE)
		return gpusort_key_plan_skip_key(plan, cursor, first);
	*first = cursor->column;
	if (rest == GS_REST_COMPARE)
		return GS_KEY_COMPARE;
	cursor->slice++;
	return is_string ? GS_KEY_STRINGS : GS_KEY_WORDS;
}

/*
 * Returns the column of a stage whose words leave it open how the ties of a row are broken, or the
 * last one.
 */
static int
open_column(const GsKeyPlan *plan, const GsKeyStage *stage, const Datum *values,
			const bool *isnull)
{
	int			c = stage->open;

	while (c + 1 < stage->end &&
		   (isnull[c] || rest_of_column(&plan->columns[c], values[c]) == GS_REST_NONE))
		c++;
	return Min(c, stage->end - 1);
}

GsKeyRest
gpusort_key_plan_next_words(const GsKeyPlan *plan, const Datum *values,
							const bool *isnull, const uint64 *key,
							GsKeyCursor *cursor, int *first)
{
	const GsKeyStage *stage = &plan->stages[cursor->stage];
	uint32		slices = slices_at(plan, cursor);

	if (cursor->slice + 1 < slices)
	{
		cursor->slice++;
		*first = cursor->stage;
		return GS_KEY_WORDS;
	}
	if (cursor->slice < slices)
		cursor->column = open_column(plan, stage, values, isnull);
	if (cursor->column < (uint32) stage->open || isnull[cursor->column])
		return gpusort_key_plan_skip_key(plan, cursor, first);
	return next_words_of_column(plan, values[cursor->column], key, cursor, first);
}

uint32
gpusort_key_plan_rounds(const GsKeyPlan *plan, const GsKeyCursor *cursor)
{
	uint32		slices = slices_at(plan, cursor);

	return cursor->slice < slices ? 0 : cursor->slice - slices + 1;
}

void
gpusort_key_plan_set_pivot(const GsKeyPlan *plan, GsKeyCursor *cursor,
						   Datum value, GsPivot *pivot)
{
	GsPivotFrame frame = pivot_frame(plan, cursor);

	gpusort_pivot_init(pivot, &frame, value);
	cursor->rest = pivot->frame.rest;
}

void
gpusort_key_plan_span(const GsKeyPlan *plan, const GsKeyCursor *cursor,
					  int *from, int *to)
{
	bool		in_stage = cursor->slice < slices_at(plan, cursor);

	*from = in_stage ? cursor->stage : cursor->column;
	*to = in_stage ? plan->stages[cursor->stage].end : *from + 1;
}

/* Take out the first bit. */
static inline void
shift_by_bit(uint64 *words, unsigned count)
{
	for (unsigned w = 0; w + 1 < count; w++)
		words[w] = words[w] << 1 | words[w + 1] >> (WORD_BITS - 1);
	words[count - 1] <<= 1;
}

void
gpusort_key_plan_encode_at(const GsKeyPlan *plan, const GsKeyCursor *cursor,
						   const Datum *values, const bool *isnull,
						   uint64 *key)
{
	const GsKeyStage *stage = &plan->stages[cursor->stage];

	if (cursor->slice < slices_at(plan, cursor))
	{
		uint64		words[2 * GPUSORT_CPU_MAX_KEY_WORDS] = {0};

		encode_stage(plan, cursor->stage, values, isnull, false, words);
		if (is_without_null(cursor))
			shift_by_bit(words, stage->words);
		memcpy(key, words + cursor->slice * plan->words,
			   plan->words * sizeof(uint64));
	}
	else
	{
		uint32		index = column_words_up_to(plan, cursor, cursor->slice - 1);

		for (unsigned w = 0; w < plan->words; w++)
			key[w] = gpusort_key_column_word(&plan->columns[cursor->column], values[cursor->column],
											 index + w, WORD_BITS);
	}
}
