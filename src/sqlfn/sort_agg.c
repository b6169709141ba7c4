/*-------------------------------------------------------------------------
 *
 * sort_agg.c
 *		Aggregates that sort: gpu_sort_agg, gpu_argsort_agg.
 *
 * Both have the same state, the elements in the order in which they came.  They
 * are sorted at the end, and stay as they are: a window asks for the result again
 * and again, and a query with both aggregates has one state for them.
 *
 * Processes of a parallel plan send their elements to the leader, which sorts all
 * of them.  All aggregates of a query combine their states in the same order, so
 * gpu_argsort_agg() fits the array_agg() beside it in a parallel plan, too.
 *
 * The elements are stored one after the other as in an array, so that they can be
 * sorted where they are.  array_agg() keeps an array of Datums and allocates each
 * value that is passed by reference, which takes more time and memory.
 *
 * There can be a list of elements for each of very many groups.  So a list starts small
 * and has no memory context of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "agg_context.h"
#include "loading.h"
#include "sqlfn/arrays.h"
#include "work.h"

GPUSORT_SQL_FUNCTION(gpusort_sort_agg_add);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_combine);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_serialize);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_deserialize);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_sort);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_argsort);

/* Room for the first elements, and for the first bits that say which are NULL. */
#define FIRST_BYTES			64
#define FIRST_BIT_BYTES		8

/* Elements of one type. */
typedef struct GsElementList
{
	Oid			type;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	int			count;			/* elements, including NULLs */
	int			nulls;
	StringInfoData data;		/* those that are not NULL, as in an array */
	StringInfoData bits;		/* as in an array, up to the last NULL or
								 * further; empty if none is NULL */
} GsElementList;

/* ----------------------------------------------------------------
 *		lists of elements
 * ----------------------------------------------------------------
 */

static void
init_list(GsElementList *list, Oid type)
{
	memset(list, 0, sizeof(*list));
	list->type = type;
	get_typlenbyvalalign(type, &list->typlen, &list->typbyval,
						 &list->typalign);
}

/* As initStringInfo(), but begins with few bytes, since there may be very many lists. */
static void
init_bytes(StringInfo bytes, MemoryContext context, int size)
{
	bytes->data = MemoryContextAlloc(context, size);
	bytes->maxlen = size;
}

static void
report_too_large(Size limit)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("array size exceeds the maximum allowed (%d)",
					(int) limit)));
}

/* Returns where 'bytes' bytes can be added. */
static inline char *
reserve(GsElementList *list, Size bytes)
{
	if (bytes >= list->data.maxlen - list->data.len)
	{
		/* The array has a header, too, which is checked when it is made. */
		if (!AllocSizeIsValid(list->data.len + bytes + 1))
			report_too_large(MaxAllocSize);
		enlargeStringInfo(&list->data, bytes);
	}
	return list->data.data + list->data.len;
}

static void
check_count(const GsElementList *list, int more)
{
	if (more > (int) GPUSORT_MAX_ARRAY_SIZE - list->count)
		report_too_large(GPUSORT_MAX_ARRAY_SIZE);
}

/* Let the bits cover the first 'count' elements.  Those not covered before are not NULL. */
static void
extend_bits(GsElementList *list, int count)
{
	int			missing = (count + 7) / 8 - list->bits.len;

	if (list->bits.data == NULL)
		init_bytes(&list->bits, GetMemoryChunkContext(list->data.data), FIRST_BIT_BYTES);
	if (missing <= 0)
		return;
	enlargeStringInfo(&list->bits, missing);
	memset(list->bits.data + list->bits.len, 0xFF, missing);
	list->bits.len += missing;
}

static void
set_null(GsElementList *list, int number)
{
	extend_bits(list, number + 1);
	list->bits.data[number / 8] &= ~(1 << (number % 8));
	list->nulls++;
}

static bool
is_null(const GsElementList *list, int number)
{
	return number / 8 < list->bits.len && (list->bits.data[number / 8] & (1 << (number % 8))) == 0;
}

/* ----------------------------------------------------------------
 *		adding elements
 * ----------------------------------------------------------------
 */

/*
 * Add a value of 'size' bytes and its padding.  'header' bytes of them are left to the
 * caller.  Returns where the value begins.
 */
static inline char *
add_bytes(GsElementList *list, const char *from, Size header, Size size)
{
	Size		padded = att_align_nominal(size, list->typalign);
	char	   *dest = reserve(list, padded);

	gpusort_work_copy(dest + header, from, size - header);
	memset(dest + size, 0, padded - size);
	list->data.len += padded;
	return dest;
}

/* Add a varlena.  In an array it has a header of four bytes and is not toasted. */
static void
add_varlena(GsElementList *list, struct varlena *value)
{
	if (VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value))
	{
		struct varlena *plain = pg_detoast_datum(value);

		add_bytes(list, (char *) plain, 0, VARSIZE(plain));
		pfree(plain);
	}
	else if (VARATT_IS_SHORT(value))
	{
		Size		size = VARSIZE_SHORT(value) - VARHDRSZ_SHORT + VARHDRSZ;
		char	   *dest = add_bytes(list, VARDATA_SHORT(value), VARHDRSZ, size);

		SET_VARSIZE(dest, size);
	}
	else
		add_bytes(list, (char *) value, 0, VARSIZE(value));
}

static void
add_value(GsElementList *list, Datum value)
{
	if (list->typbyval)
	{
		Size		padded = att_align_nominal(list->typlen, list->typalign);
		char	   *dest = reserve(list, padded);

		store_att_byval(dest, value, list->typlen);
		memset(dest + list->typlen, 0, padded - list->typlen);
		list->data.len += padded;
	}
	else if (list->typlen == -1)
		add_varlena(list, (struct varlena *) DatumGetPointer(value));
	else
		add_bytes(list, DatumGetPointer(value), 0,
				  att_addlength_datum(0, list->typlen, value));
}

/*
 * Add a copy of a value at the end.  Raises an error if the list becomes larger
 * than an array can be.
 */
static void
add_element(GsElementList *list, Datum value, bool isnull)
{
	CHECK_FOR_INTERRUPTS();
	check_count(list, 1);
	if (isnull)
		set_null(list, list->count);
	else
		add_value(list, value);
	list->count++;
}

/* Add a copy of all elements of another list, which may have been read. */
static void
add_list(GsElementList *list, const GsElementList *other)
{
	check_count(list, other->count);
	for (int i = 0; i < other->count && other->nulls > 0; i++)
	{
		if (i % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
		gpusort_work_add(1);
		if (is_null(other, i))
			set_null(list, list->count + i);
	}
	if (other->data.len > 0)
		gpusort_work_copy(reserve(list, other->data.len), other->data.data, other->data.len);
	list->data.len += other->data.len;
	list->count += other->count;
}

/*
 * Prepare to access the elements as those of an array of one dimension, until the
 * list changes.  There must be an element.
 */
static void
open_list(GsElementList *list, GsArrayElements *elements)
{
	static const int lbound = 1;

	if (list->nulls > 0)
		extend_bits(list, list->count);
	gpusort_elements_open_data(elements, list->type, 1, &list->count, &lbound, list->data.data,
							   list->nulls > 0 ? (uint8 *) list->bits.data : NULL);
}

/* ----------------------------------------------------------------
 *		the states of the aggregates
 * ----------------------------------------------------------------
 */

/* The arguments of all rows must agree on the direction. */
typedef struct AggDirection
{
	bool		isnull;			/* "descending" is NULL, and so is the result */
	GsSortDirection sort;
} AggDirection;

typedef struct SortAggState
{
	AggDirection direction;
	GsElementList list;
} SortAggState;

static SortAggState *
create_state(FunctionCallInfo fcinfo, Oid type, const AggDirection *direction)
{
	MemoryContext context = gpusort_agg_context(fcinfo);
	SortAggState *state = MemoryContextAlloc(context, sizeof(SortAggState));

	state->direction = *direction;
	init_list(&state->list, type);
	init_bytes(&state->list.data, context, FIRST_BYTES);
	return state;
}

static void
check_direction(const SortAggState *state, const AggDirection *direction)
{
	if (direction->isnull != state->direction.isnull ||
		direction->sort.descending != state->direction.sort.descending ||
		direction->sort.nulls_first != state->direction.sort.nulls_first)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("all rows of an aggregate must be sorted in the same direction"),
				 errhint("\"descending\" and \"nulls_first\" must have the same values in all rows.")));
}

/*
 * The state transition of (x), (x, descending) and (x, descending, nulls_first):
 * adds an element.
 */
Datum
gpusort_sort_agg_add(PG_FUNCTION_ARGS)
{
	SortAggState *state;
	AggDirection direction = {0};

	direction.isnull = !gpusort_sort_call_direction(fcinfo, 2,
													&direction.sort);
	if (PG_ARGISNULL(0))
	{
		Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 1);

		if (!OidIsValid(type))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("could not determine input data type")));
		state = create_state(fcinfo, type, &direction);
	}
	else
	{
		state = (SortAggState *) PG_GETARG_POINTER(0);
		check_direction(state, &direction);
	}
	add_element(&state->list, PG_GETARG_DATUM(1),
				PG_ARGISNULL(1));
	PG_RETURN_POINTER(state);
}

/* ----------------------------------------------------------------
 *		parallel plans
 * ----------------------------------------------------------------
 */

/* Add the elements of the second state to the first one. */
Datum
gpusort_sort_agg_combine(PG_FUNCTION_ARGS)
{
	SortAggState *state;
	SortAggState *other;

	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	other = (SortAggState *) PG_GETARG_POINTER(1);
	if (PG_ARGISNULL(0))
		state = create_state(fcinfo, other->list.type, &other->direction);
	else
	{
		state = (SortAggState *) PG_GETARG_POINTER(0);
		check_direction(state, &other->direction);
	}
	add_list(&state->list, &other->list);
	PG_RETURN_POINTER(state);
}

/* What precedes the elements and then the bits in a state that is sent to a process. */
typedef struct WrittenState
{
	AggDirection direction;
	Oid			type;
	int			count;
	int			nulls;
	int			bytes;
	int			bit_bytes;
} WrittenState;

Datum
gpusort_sort_agg_serialize(PG_FUNCTION_ARGS)
{
	const SortAggState *state = (SortAggState *) PG_GETARG_POINTER(0);
	const GsElementList *list = &state->list;
	WrittenState written = {
		.direction = state->direction,
		.type = list->type,
		.count = list->count,
		.nulls = list->nulls,
		.bytes = list->data.len,
		.bit_bytes = list->bits.len
	};
	Size		size = VARHDRSZ + sizeof(written) + list->data.len + list->bits.len;
	bytea	   *result;
	char	   *next;

	(void) gpusort_agg_context(fcinfo);
	result = palloc(size);
	SET_VARSIZE(result, size);
	next = VARDATA(result);
	memcpy(next, &written, sizeof(written));
	next += sizeof(written);
	if (list->data.len > 0)
		gpusort_work_copy(next, list->data.data, list->data.len);
	next += list->data.len;
	if (list->bits.len > 0)
		gpusort_work_copy(next, list->bits.data, list->bits.len);
	PG_RETURN_BYTEA_P(result);
}

/*
 * The state has the elements where they are, not aligned, until it is combined with another one.
 */
Datum
gpusort_sort_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	SortAggState *state = palloc(sizeof(SortAggState));
	GsElementList *list = &state->list;
	WrittenState written;

	(void) gpusort_agg_context(fcinfo);
	memcpy(&written, VARDATA_ANY(bytes), sizeof(written));
	state->direction = written.direction;
	init_list(list, written.type);
	list->count = written.count;
	list->nulls = written.nulls;
	list->data.data = VARDATA_ANY(bytes) + sizeof(written);
	list->data.len = written.bytes;
	list->bits.data = list->data.data + written.bytes;
	list->bits.len = written.bit_bytes;
	PG_RETURN_POINTER(state);
}

/* ----------------------------------------------------------------
 *		results
 * ----------------------------------------------------------------
 */

/* Returns what 'sort' makes of the elements, or NULL if there are none. */
static Datum
return_sorted(FunctionCallInfo fcinfo, GsSortCall sort)
{
	SortAggState *state = PG_ARGISNULL(0) ? NULL : (SortAggState *) PG_GETARG_POINTER(0);
	GsArrayElements elements;
	MemoryContext caller;
	ArrayType  *result;

	(void) gpusort_agg_context(fcinfo);
	if (state == NULL || state->direction.isnull)
		PG_RETURN_NULL();
	caller = gpusort_sort_call_begin();
	open_list(&state->list, &elements);
	result = sort(fcinfo, &elements, &state->direction.sort, caller);
	gpusort_sort_call_end(caller);
	PG_RETURN_ARRAYTYPE_P(result);
}

/* gpu_sort_agg(): returns what gpu_sort() makes of an array of the elements. */
Datum
gpusort_sort_agg_sort(PG_FUNCTION_ARGS)
{
	return return_sorted(fcinfo, gpusort_sort_call_sort);
}

/* gpu_argsort_agg(): the same for gpu_argsort(). */
Datum
gpusort_sort_agg_argsort(PG_FUNCTION_ARGS)
{
	return return_sorted(fcinfo, gpusort_sort_call_positions);
}
