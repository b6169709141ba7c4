/*-------------------------------------------------------------------------
 *
 * key_check.c
 *		Checks the rule of key_encoding.h for all pairs of some values.
 *
 * The reference is the comparison function of the operator's btree operator
 * class, which is called for each pair.  Words are checked twice:
 *
 * as encodings return them, for every number of words up to MOST_WORDS;
 *
 * as plans lay them out, for every number of words that a plan can have,
 * ascending and descending, with NULLs first and last, as the first key,
 * after other keys and before other keys, up to the last word.
 *
 * Values are also tested in the other forms that they can have in tables.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "access/toast_compression.h"
#include "access/toast_internals.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "core/radix_sort.h"
#include "key/device_key.h"
#include "key/key_encoding.h"
#include "key/key_plan.h"
#include "loading.h"

GPUSORT_MODULE_MAGIC("key_check", "1.0");

/* More than a plan uses before it leaves strings to comparisons. */
#define MOST_WORDS		70

/* Maximum size of a value with a short header. */
#define MOST_SHORT_BYTES	(VARATT_SHORT_MAX - VARHDRSZ_SHORT)

/* Maximum number of keys in the rows of a plan. */
#define MOST_KEYS		3

/* Bytes of a value that are shown in a message. */
#define SHOWN_BYTES		80

/* The values of one type. */
typedef struct Values
{
	Oid			type;
	Oid			collation;
	Oid			less;			/* sort operators */
	Oid			greater;
	int			count;
	Datum	   *values;
	bool	   *isnull;
	int8	   *order;			/* -1, 0 or 1: of i and j, at i * count + j */
} Values;

/* Their words: word w of value i is at i * count + w. */
typedef struct Words
{
	unsigned	count;
	uint64	   *words;
	GsEncodingRest *rests;		/* after that word */
} Words;

/*
 * Rows.  Each letter of 'keys' names a key: 'v' is the value, 'w' another
 * value, and 'i' a small integer.
 */
typedef struct Rows
{
	const Values *values;
	const char *keys;
	bool		descending;
	bool		nulls_first;
	Datum	   *columns;		/* those of row i start at i * MOST_KEYS */
	bool	   *isnull;
} Rows;

/* It makes no difference why this library is loaded. */
void
gpusort_loading_note_function(void)
{
}

GPUSORT_SQL_FUNCTION(key_check);
/* ----------------------------------------------------------------
 *		values and their order
 * ----------------------------------------------------------------
 */

static inline int
sign(int cmp)
{
	return (cmp > 0) - (cmp < 0);
}

static int
order_of(const Values *values, int i, int j)
{
	return values->order[i * values->count + j];
}

static struct varlena *
with_short_header(const struct varlena *value)
{
	Size		length = VARSIZE_ANY_EXHDR(value);
	struct varlena *result = palloc(length + VARHDRSZ_SHORT);

	SET_VARSIZE_SHORT(result, length + VARHDRSZ_SHORT);
	memcpy(VARDATA_SHORT(result), VARDATA_ANY(value), length);
	return result;
}

static struct varlena *
behind_pointer(struct varlena *value)
{
	struct varatt_indirect pointer = {.pointer = value};
	struct varlena *result = palloc(VARHDRSZ_EXTERNAL + sizeof(pointer));

	SET_VARTAG_EXTERNAL(result, VARTAG_INDIRECT);
	memcpy(VARDATA_EXTERNAL(result), &pointer, sizeof(pointer));
	return result;
}

/*
 * Returns a value in a form that it could have in a table, chosen by 'form'.
 * Arrays do not contain all forms.
 */
static Datum
in_another_form(Datum value, int form)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);
	Datum		compressed;

	switch (form % 4)
	{
		case 1:
			if (VARSIZE_ANY_EXHDR(varlena) <= MOST_SHORT_BYTES)
				return PointerGetDatum(with_short_header(varlena));
			return value;
		case 2:
			compressed = toast_compress_datum(value, TOAST_PGLZ_COMPRESSION);
			return DatumGetPointer(compressed) != NULL ? compressed : value;
		case 3:
			return PointerGetDatum(behind_pointer(varlena));
		default:
			return value;
	}
}

static void
find_operators(Values *values, Oid less)
{
	Oid			family;
	Oid			type;
	GsOperatorOrder order;

	if (!OidIsValid(less))
		less = lookup_type_cache(values->type, TYPECACHE_LT_OPR)->lt_opr;
	if (!get_ordering_op_properties(less, &family, &type, &order))
		elog(ERROR, "operator %u is not a sort operator", less);
	values->less = less;
	values->greater = get_opfamily_member(family, type, type,
										  BTGreaterStrategyNumber);
}

static void
compare_all(Values *values)
{
	Oid			family;
	Oid			type;
	GsOperatorOrder order;
	FmgrInfo	compare;

	(void) get_ordering_op_properties(values->less, &family, &type, &order);
	fmgr_info(get_opfamily_proc(family, type, type, BTORDER_PROC), &compare);
	values->order = palloc0(values->count * values->count * sizeof(int8));
	for (int i = 0; i < values->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int j = 0; j < values->count; j++)
			if (!values->isnull[i] && !values->isnull[j])
				values->order[i * values->count + j] =
					sign(DatumGetInt32(FunctionCall2Coll(&compare, values->collation,
														 values->values[i],
														 values->values[j])));
	}
}

static void
open_values(Values *values, ArrayType *array)
{
	int16		typlen;
	bool		typbyval;
	char		typalign;

	values->type = ARR_ELEMTYPE(array);
	get_typlenbyvalalign(values->type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, values->type, typlen, typbyval, typalign,
					  &values->values, &values->isnull, &values->count);
	for (int i = 0; i < values->count; i++)
		if (typlen == -1 && !values->isnull[i])
			values->values[i] = in_another_form(values->values[i], i);
}

/* ----------------------------------------------------------------
 *		messages
 * ----------------------------------------------------------------
 */

static char *
text_of_value(const Values *values, int i)
{
	Oid			output;
	bool		is_varlena;
	char	   *text;

	if (values->isnull[i])
		return "NULL";
	getTypeOutputInfo(values->type, &output, &is_varlena);
	text = OidOutputFunctionCall(output, values->values[i]);
	return pnstrdup(text, pg_mbcliplen(text, strlen(text), SHOWN_BYTES));
}

/*
 * Describes what is wrong with two values, or with the rows that contain
 * them.
 */
static char *
complaint(const Values *values, int i, int j, const char *what, unsigned words)
{
	return psprintf("%s, with %u words: %s and %s (numbers %d and %d)", what, words,
					text_of_value(values, i), text_of_value(values, j),
					i + 1, j + 1);
}

/* ----------------------------------------------------------------
 *		words as encodings give them
 * ----------------------------------------------------------------
 */

/* Returns the number of words that can be requested of a value. */
static unsigned
count_words(const GsKeyEncoding *encoding)
{
	if (gpusort_key_encoding_has_words(encoding))
		return MOST_WORDS;
	return (encoding->bits + 63) / 64;
}

/* Checks the words of two values, and the rests.  Returns NULL, or what is wrong. */
static char *
check_words(const Values *values, const GsKeyEncoding *encoding, int i, int j,
			const Words *words)
{
	int			order = order_of(values, i, j);
	const uint64 *a = words->words + i * words->count;
	const uint64 *b = words->words + j * words->count;
	const GsEncodingRest *a_rests = words->rests + i * words->count;
	const GsEncodingRest *b_rests = words->rests + j * words->count;

	for (unsigned n = 1; n <= words->count; n++)
	{
		if (a[n - 1] != b[n - 1])
			return (a[n - 1] < b[n - 1] ? -1 : 1) == order ? NULL :
				complaint(values, i, j, "words in another order", n);
		if (gpusort_key_encoding_is_exact(encoding) && n < words->count)
			continue;
		if (a_rests[n - 1] != b_rests[n - 1])
			return complaint(values, i, j, "equal words with different rests", n);
		if (a_rests[n - 1] == GS_REST_NONE && order != 0)
			return complaint(values, i, j, "equal words of different values", n);
	}
	return NULL;
}

/* Gets the words of all values that are not NULL, and what is left after each. */
static Words
get_words(const Values *values, const GsKeyEncoding *encoding)
{
	unsigned	count = count_words(encoding);
	Words		words = {
		.count = count,
		.words = palloc0(values->count * count * sizeof(uint64)),
		.rests = palloc0(values->count * count * sizeof(GsEncodingRest))
	};

	for (int i = 0; i < values->count; i++)
		for (unsigned w = 0; w < count && !values->isnull[i]; w++)
		{
			words.words[i * count + w] =
				gpusort_key_encoding_word(encoding, values->values[i], w);
			if (!gpusort_key_encoding_is_exact(encoding) || w + 1 == count)
				words.rests[i * count + w] =
					gpusort_key_encoding_rest(encoding, values->values[i], w + 1);
		}
	return words;
}

static char *
check_encoding(const Values *values, const GsKeyEncoding *encoding)
{
	Words		words = get_words(values, encoding);
	char	   *wrong = NULL;

	for (int i = 0; i < values->count && wrong == NULL; i++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int j = 0; j < i && wrong == NULL; j++)
			if (!values->isnull[i] && !values->isnull[j])
				wrong = check_words(values, encoding, i, j, &words);
	}
	return wrong;
}

/* ----------------------------------------------------------------
 *		words as plans lay them out
 * ----------------------------------------------------------------
 */

/* Returns the index of the value in a row's column. */
static int
value_number(const Values *values, char key, int row)
{
	return key == 'w' ? (row * 7 + 3) % values->count : row;
}

static void
make_rows(Rows *rows)
{
	const Values *values = rows->values;
	int			size = values->count * MOST_KEYS;

	rows->columns = palloc0(size * sizeof(Datum));
	rows->isnull = palloc0(size * sizeof(bool));
	for (int i = 0; i < values->count; i++)
		for (int k = 0; rows->keys[k] != '\0'; k++)
		{
			int			number = value_number(values, rows->keys[k], i);

			if (rows->keys[k] == 'i')
			{
				rows->columns[i * MOST_KEYS + k] = Int32GetDatum(i % 3 - 1);
				rows->isnull[i * MOST_KEYS + k] = i % 5 == 0;
			}
			else
			{
				rows->columns[i * MOST_KEYS + k] = values->values[number];
				rows->isnull[i * MOST_KEYS + k] = values->isnull[number];
			}
		}
}

/* Returns the order of two rows by one key. */
static int
order_by_key(const Rows *rows, int k, int i, int j)
{
	const Datum *columns = rows->columns + k;
	bool		i_isnull = rows->isnull[i * MOST_KEYS + k];
	bool		j_isnull = rows->isnull[j * MOST_KEYS + k];
	int			order;

	if (i_isnull || j_isnull)
		order = (i_isnull == j_isnull) ? 0 :
			(i_isnull == rows->nulls_first) ? -1 : 1;
	else if (rows->keys[k] == 'i')
		order = sign(DatumGetInt32(columns[i * MOST_KEYS]) -
					 DatumGetInt32(columns[j * MOST_KEYS]));
	else
	{
		order = order_of(rows->values,
						 value_number(rows->values, rows->keys[k], i),
						 value_number(rows->values, rows->keys[k], j));
		if (rows->descending)
			order = -order;
	}
	return order;
}

/* Returns the order of two rows by the keys 'from' to 'to' - 1. */
static int
order_by_keys(const Rows *rows, int from, int to, int i, int j)
{
	int			order = 0;

	for (int k = from; k < to && order == 0; k++)
		order = order_by_key(rows, k, i, j);
	return order;
}

/* Returns the order of two keys of 'words' words: -1, 0 or 1. */
static int
compare_words(const uint64 *a, const uint64 *b, unsigned words)
{
	for (unsigned w = 0; w < words; w++)
		if (a[w] != b[w])
			return a[w] < b[w] ? -1 : 1;
	return 0;
}

/* Encodes two strings relative to the first one as the pivot. */
static void
encode_strings(const GsKeyPlan *plan, GsKeyCursor *cursor, Datum a, Datum b,
			   uint64 *a_words, uint64 *b_words)
{
	GsPivot		pivot;

	gpusort_key_plan_set_pivot(plan, cursor, a, &pivot);
	gpusort_pivot_encode(&pivot, a, a_words);
	gpusort_pivot_encode(&pivot, b, b_words);
	gpusort_pivot_drop(&pivot);
}

/*
 * Compares two rows by words, as long as there are any, and checks every
 * claim of the plan on the way.  Words can have a place for NULLs of other rows.  Returns NULL, or
 * what is wrong.
 */
static const char *
follow_words(const Rows *rows, const GsKeyPlan *plan, int i, int j,
			 const uint64 *key_i, const uint64 *key_j, bool nulls)
{
	const Datum *a = rows->columns + i * MOST_KEYS;
	const Datum *b = rows->columns + j * MOST_KEYS;
	const bool *a_isnull = rows->isnull + i * MOST_KEYS;
	const bool *b_isnull = rows->isnull + j * MOST_KEYS;
	unsigned	words = gpusort_key_plan_words(plan);
	int			nkeys = strlen(rows->keys);
	int			order = order_by_keys(rows, 0, nkeys, i, j);
	uint64		a_words[GPUSORT_CPU_MAX_KEY_WORDS];
	uint64		b_words[GPUSORT_CPU_MAX_KEY_WORDS];
	GsKeyCursor cursor = {0};
	int			first = 0;
	int			by_words = compare_words(key_i, key_j, words);
	const uint64 *key = key_i;

	if (by_words == 0 && gpusort_key_plan_is_exact(plan, &first) && order != 0)
		return "equal keys that are said to be exact";
	if (by_words == 0 && order_by_keys(rows, 0, first, i, j) != 0)
		return "equal keys, and a difference before the first open one";

	while (by_words == 0)
	{
		GsKeyCursor other = cursor;
		int			other_first = first;
		GsKeyRest	rest = gpusort_key_plan_next_words(plan, a, a_isnull, key, &cursor,
													   &first);

		if (rest != gpusort_key_plan_next_words(plan, b, b_isnull, key, &other,
												&other_first) ||
			cursor.stage != other.stage || cursor.slice != other.slice ||
			first != other_first)
			return "equal keys that continue differently";
		if (rest == GS_KEY_EQUAL)
			return order == 0 ? NULL : "equal keys of different rows";
		if (order_by_keys(rows, 0, first, i, j) != 0)
			return "equal keys, and a difference before the one to go on with";
		if (rest == GS_KEY_COMPARE)
			return NULL;
		if (rest == GS_KEY_STRINGS)
			encode_strings(plan, &cursor, a[first], b[first], a_words, b_words);
		else
		{
			int			from;
			int			to;

			gpusort_key_plan_span(plan, &cursor, &from, &to);
			if (cursor.slice == 0)
				cursor.nulls = nulls || a_isnull[from] || b_isnull[from];
			gpusort_key_plan_encode_at(plan, &cursor, a, a_isnull, a_words);
			gpusort_key_plan_encode_at(plan, &cursor, b, b_isnull, b_words);
		}
		key = a_words;
		by_words = compare_words(a_words, b_words, words);
	}
	return by_words == order ? NULL : "keys in another order";
}

static char *
check_plan(const Rows *rows, const GsKeyPlan *plan)
{
	int			count = rows->values->count;
	unsigned	words = gpusort_key_plan_words(plan);
	uint64	   *keys = palloc0(count * words * sizeof(uint64));
	bool	   *null_keys = palloc(count * sizeof(bool));

	for (int i = 0; i < count; i++)
	{
		null_keys[i] = !gpusort_key_plan_encode(plan, rows->columns + i * MOST_KEYS,
												rows->isnull + i * MOST_KEYS,
												keys + i * words);
		if (null_keys[i] != rows->isnull[i * MOST_KEYS])
			return complaint(rows->values, i, i, "NULL has no NULL key", words);
	}
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int j = 0; j < i; j++)
		{
			const char *what = null_keys[i] != null_keys[j] ? NULL :
				follow_words(rows, plan, i, j, keys + i * words,
							 keys + j * words, (i + j) % 2 == 0);

			if (what != NULL)
				return complaint(rows->values, i, j,
								 psprintf("%s, keys \"%s\"%s%s", what, rows->keys,
										  rows->descending ? " descending" : "",
										  rows->nulls_first ? " nulls first" : ""),
								 words);
		}
	}
	return NULL;
}

/* Does a key have equal bits as another one up to one of its levels, and are both ties then? */
static bool
can_be_ties(const GsDeviceKey *key, const uint64 *less, const uint64 *greater)
{
	for (int l = 0; l < key->nlevels; l++)
	{
		unsigned	bits = key->levels[l].bits;

		for (unsigned bit = 0; bit < bits; bit++)
			if (((less[bit / 64] ^ greater[bit / 64]) >> (63 - bit % 64) & 1) != 0)
				return false;
		if (key->levels[l].always || (greater[bits / 64] >> (63 - bits % 64) & 1) != 0)
			return true;
	}
	return false;
}

/*
 * Compares two rows by their keys for a GPU, unless they are ties.  Returns NULL, or what is wrong.
 */
static const char *
compare_device_keys(const Rows *rows, const GsDeviceKey *key, int i, int j,
					const uint64 *key_i, const uint64 *key_j, bool told)
{
	int			by_words = compare_words(key_i, key_j, key->words);
	bool		ties = by_words < 0 ? can_be_ties(key, key_i, key_j) :
		can_be_ties(key, key_j, key_i);

	if (told && ties && by_words != 0)
		return "keys that tell all and are ties";
	if (ties && !told)
		return NULL;
	return by_words == order_by_keys(rows, 0, strlen(rows->keys), i, j) ? NULL :
		"keys for a GPU in another order";
}

static char *
check_device_key(const Rows *rows, const GsDeviceKey *key)
{
	int			count = rows->values->count;
	uint64	   *keys = palloc0(count * key->words * sizeof(uint64));
	bool	   *null_keys = palloc(count * sizeof(bool));
	bool	   *told = palloc(count * sizeof(bool));

	for (int i = 0; i < count; i++)
		null_keys[i] = !gpusort_device_key_encode(key, rows->columns + i * MOST_KEYS,
												  rows->isnull + i * MOST_KEYS,
												  keys + i * key->words, &told[i]);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int j = 0; j < i; j++)
		{
			const char *what = null_keys[i] != null_keys[j] ? NULL :
				compare_device_keys(rows, key, i, j, keys + i * key->words,
									keys + j * key->words, told[i] && told[j]);

			if (what != NULL)
				return complaint(rows->values, i, j,
								 psprintf("%s, keys \"%s\"%s%s", what, rows->keys,
										  rows->descending ? " descending" : "",
										  rows->nulls_first ? " nulls first" : ""),
								 key->words);
		}
	}
	return NULL;
}

/* Checks all plans for the rows.  Returns NULL, or what is wrong. */
static char *
check_rows(const Rows *rows)
{
	const Values *values = rows->values;
	AttrNumber	attnos[MOST_KEYS];
	Oid			operators[MOST_KEYS];
	Oid			collations[MOST_KEYS];
	bool		nulls_first[MOST_KEYS];
	GsSortKeys	keys = {
		.nkeys = strlen(rows->keys),
		.attnos = attnos,
		.operators = operators,
		.collations = collations,
		.nulls_first = nulls_first
	};
	char	   *wrong = NULL;

	for (int k = 0; k < keys.nkeys; k++)
	{
		bool		small = rows->keys[k] == 'i';

		attnos[k] = k + 1;
		operators[k] = rows->descending ? values->greater : values->less;
		if (small)
			operators[k] = lookup_type_cache(INT4OID, TYPECACHE_LT_OPR)->lt_opr;
		collations[k] = small ? InvalidOid : values->collation;
		nulls_first[k] = rows->nulls_first;
	}
	for (unsigned words = 0;
		 words <= GPUSORT_CPU_MAX_KEY_WORDS && wrong == NULL; words++)
	{
		GsReason	reason;
		GsKeyPlan  *plan;

		keys.short_values = words == 0;
		keys.string_words = words;
		plan = gpusort_key_plan_create(&keys, &reason);
		wrong = check_plan(rows, plan);
		if (words <= 1 && wrong == NULL)
			wrong = check_device_key(rows, gpusort_device_key_create(plan, words == 1));
		gpusort_key_plan_free(plan);
	}
	return wrong;
}

static char *
check_plans(const Values *values)
{
	static const char *const keys[] = {"v", "iv", "vi", "wv", "ivw", "vwi"};
	char	   *wrong = NULL;

	for (int n = 0; n < lengthof(keys) * 4 && wrong == NULL; n++)
	{
		Rows		rows = {
			.values = values,
			.keys = keys[n / 4],
			.descending = n % 2 == 1,
			.nulls_first = n / 2 % 2 == 1
		};

		make_rows(&rows);
		wrong = check_rows(&rows);
	}
	return wrong;
}

/*
 * key_check(values anyarray, less regoperator): checks the encoding of a sort
 * operator's order, or of the type's default order if it is 0.  Returns a
 * text that starts with "same", or with "no encoding, same" if there is none;
 * otherwise what is wrong.
 */
Datum
key_check(PG_FUNCTION_ARGS)
{
	Values		values = {.collation = PG_GET_COLLATION()};
	GsKeyEncoding encoding;
	bool		descending;
	char	   *wrong = NULL;

	open_values(&values, PG_GETARG_ARRAYTYPE_P(0));
	find_operators(&values, PG_GETARG_OID(1));
	if (!type_is_collatable(values.type))
		values.collation = InvalidOid;
	compare_all(&values);
	encoding = gpusort_key_encoding_find(values.less, values.collation,
										 &descending);
	if (descending)
		wrong = "descending";
	if (wrong == NULL && encoding.kind != GS_ENCODE_NONE)
		wrong = check_encoding(&values, &encoding);
	if (wrong == NULL)
		wrong = check_plans(&values);
	if (wrong == NULL)
		wrong = psprintf("%ssame order of %d values",
						 encoding.kind == GS_ENCODE_NONE ? "no encoding, " : "",
						 values.count);
	PG_RETURN_TEXT_P(cstring_to_text(wrong));
}
