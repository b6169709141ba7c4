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

/* Room for the first elements. */
#define FIRST_BYTES			64
#define FIRST_NULLABLE		64	/* a multiple of 8 */

/* Elements of one type. */
typedef struct GsElementList
{
	MemoryContext context;		/* of 'data' and 'bitmap'; NULL if the list is
								 * a view */
	Oid			type;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	int			count;			/* elements, including NULLs */
	int			nulls;
	int			lbound;			/* lower bound as an array: 1 */
	char	   *data;			/* those that are not NULL, as in an array */
	Size		bytes;
	Size		capacity;		/* of 'data', in bytes */
	uint8	   *bitmap;			/* as in an array; NULL if none is NULL */
	int			bitmap_capacity;	/* in elements */
} GsElementList;

/* ----------------------------------------------------------------
 *		lists of elements
 * ----------------------------------------------------------------
 */

/* Begin an empty list, whose elements will be in this memory context. */
static void
init_list(GsElementList *list, Oid type,
		  MemoryContext context)
{
	memset(list, 0, sizeof(*list));
	list->context = context;
	list->type = type;
	list->lbound = 1;
	get_typlenbyvalalign(type, &list->typlen, &list->typbyval,
						 &list->typalign);
}

static void
report_too_large(Size limit)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("array size exceeds the maximum allowed (%d)",
					(int) limit)));
}

/* ----------------------------------------------------------------
 *		room for more elements
 * ----------------------------------------------------------------
 */

static void
enlarge_data(GsElementList *list, Size bytes)
{
	Size		needed = list->bytes + bytes;
	Size		capacity = Max(list->capacity * 2, FIRST_BYTES);

	/* The array has a header, too, which is checked when it is made. */
	if (!AllocSizeIsValid(needed))
		report_too_large(MaxAllocSize);
	while (capacity < needed)
		capacity *= 2;
	capacity = Min(capacity, MaxAllocSize);
	list->data = list->data == NULL ?
		MemoryContextAlloc(list->context, capacity) :
		repalloc(list->data, capacity);
	list->capacity = capacity;
}

/* Returns where so many bytes can be added. */
static inline char *
reserve(GsElementList *list, Size bytes)
{
	if (bytes > list->capacity - list->bytes)
		enlarge_data(list, bytes);
	return list->data + list->bytes;
}

static void
check_count(const GsElementList *list, int more)
{
	if (more > (int) GPUSORT_MAX_ARRAY_SIZE - list->count)
		report_too_large(GPUSORT_MAX_ARRAY_SIZE);
}

/*
 * Make room for the bits of 'more' elements.  If there was no bitmap, none of the
 * present elements is NULL.
 */
static void
enlarge_bitmap(GsElementList *list, int more)
{
	int64		needed = (int64) list->count + more;
	int64		capacity = Max(list->bitmap_capacity, FIRST_NULLABLE);

	while (capacity < needed)
		capacity *= 2;
	if (list->bitmap == NULL)
	{
		list->bitmap = MemoryContextAlloc(list->context, capacity / 8);
		memset(list->bitmap, 0xFF, (list->count + 7) / 8);
	}
	else if (capacity > list->bitmap_capacity)
		list->bitmap = repalloc(list->bitmap, capacity / 8);
	list->bitmap_capacity = (int) capacity;
}

static inline void
set_bit(GsElementList *list, int number, bool isnull)
{
	uint8		mask = 1 << (number % 8);

	if (isnull)
		list->bitmap[number / 8] &= ~mask;
	else
		list->bitmap[number / 8] |= mask;
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
	list->bytes += padded;
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
		list->bytes += padded;
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
	if (isnull || list->bitmap != NULL)
	{
		if (list->count >= list->bitmap_capacity)
			enlarge_bitmap(list, 1);
		set_bit(list, list->count, isnull);
	}
	if (isnull)
		list->nulls++;
	else
		add_value(list, value);
	list->count++;
}

/* Add a copy of all elements of another list, which may be a view. */
static void
add_list(GsElementList *list,
		 const GsElementList *other)
{
	check_count(list, other->count);
	if (list->bitmap != NULL || other->bitmap != NULL)
	{
		enlarge_bitmap(list, other->count);
		for (int i = 0; i < other->count; i++)
		{
			if (i % GPUSORT_ROWS_PER_LOOK == 0)
				CHECK_FOR_INTERRUPTS();
			gpusort_work_add(1);
			set_bit(list, list->count + i, other->bitmap != NULL &&
					(other->bitmap[i / 8] & (1 << (i % 8))) == 0);
		}
	}
	if (other->bytes > 0)
	{
		char	   *dest = reserve(list, other->bytes);

		gpusort_work_copy(dest, other->data, other->bytes);
	}
	list->bytes += other->bytes;
	list->count += other->count;
	list->nulls += other->nulls;
}

/*
 * Prepare to access the elements as those of an array of one dimension, until the
 * list changes.  There must be an element.
 */
static void
open_list(GsElementList *list, GsArrayElements *elements)
{
	gpusort_elements_open_data(elements, list->type, 1, &list->count,
							   &list->lbound, list->data, list->bitmap);
}

/* ----------------------------------------------------------------
 *		lists of other processes
 * ----------------------------------------------------------------
 */

/* What precedes the elements and then the bitmap. */
typedef struct WrittenList
{
	Oid			type;
	int			count;
	int			nulls;
	Size		bytes;
} WrittenList;

static Size
bitmap_bytes(const GsElementList *list)
{
	return list->bitmap != NULL ? (list->count + 7) / 8 : 0;
}

/* How many bytes a list takes when it is written. */
static Size
list_size(const GsElementList *list)
{
	return sizeof(WrittenList) + list->bytes + bitmap_bytes(list);
}

/*
 * Write a list to so many bytes, for a process of the same parallel query.  Reading
 * them makes a view, whose elements are not aligned and can only be added to a list.
 * It is valid as long as the bytes are.
 */
static void
write_list(const GsElementList *list, char *dest)
{
	WrittenList written = {
		.type = list->type,
		.count = list->count,
		.nulls = list->nulls,
		.bytes = list->bytes
	};

	memcpy(dest, &written, sizeof(written));
	dest += sizeof(written);
	if (list->bytes > 0)
		gpusort_work_copy(dest, list->data, list->bytes);
	dest += list->bytes;
	if (list->bitmap != NULL)
		gpusort_work_copy(dest, (char *) list->bitmap, bitmap_bytes(list));
}

static void
read_list(GsElementList *list, char *from)
{
	WrittenList written;

	memcpy(&written, from, sizeof(written));
	init_list(list, written.type, NULL);
	list->count = written.count;
	list->nulls = written.nulls;
	list->data = from + sizeof(written);
	list->bytes = written.bytes;
	if (written.nulls > 0)
		list->bitmap = (uint8 *) list->data + list->bytes;
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
	init_list(&state->list, type, context);
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

Datum
gpusort_sort_agg_serialize(PG_FUNCTION_ARGS)
{
	SortAggState *state = (SortAggState *) PG_GETARG_POINTER(0);
	Size		size = VARHDRSZ + sizeof(AggDirection) +
		list_size(&state->list);
	bytea	   *result;
	char	   *next;

	(void) gpusort_agg_context(fcinfo);
	result = palloc(size);
	SET_VARSIZE(result, size);
	next = VARDATA(result);
	memcpy(next, &state->direction, sizeof(AggDirection));
	write_list(&state->list, next + sizeof(AggDirection));
	PG_RETURN_BYTEA_P(result);
}

/* The state has the elements where they are, until it is combined with another one. */
Datum
gpusort_sort_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *written = PG_GETARG_BYTEA_PP(0);
	SortAggState *state = palloc(sizeof(SortAggState));
	char	   *next = VARDATA_ANY(written);

	(void) gpusort_agg_context(fcinfo);
	memcpy(&state->direction, next, sizeof(AggDirection));
	read_list(&state->list, next + sizeof(AggDirection));
	PG_RETURN_POINTER(state);
}

/* ----------------------------------------------------------------
 *		results
 * ----------------------------------------------------------------
 */

/* Returns the state whose elements are to be sorted, or NULL if the result is NULL. */
static SortAggState *
state_of_result(FunctionCallInfo fcinfo)
{
	SortAggState *state;

	(void) gpusort_agg_context(fcinfo);
	if (PG_ARGISNULL(0))
		return NULL;
	state = (SortAggState *) PG_GETARG_POINTER(0);
	return state->direction.isnull ? NULL : state;
}

/*
 * gpu_sort_agg(): returns what gpu_sort() makes of an array of the elements, NULL if
 * there is none.
 */
Datum
gpusort_sort_agg_sort(PG_FUNCTION_ARGS)
{
	SortAggState *state = state_of_result(fcinfo);
	GsArrayElements elements;
	MemoryContext caller;
	ArrayType  *result;

	if (state == NULL)
		PG_RETURN_NULL();

	caller = gpusort_sort_call_begin();
	open_list(&state->list, &elements);
	if (elements.count > 1)
		result = gpusort_sort_call_sort(fcinfo, &elements, &state->direction.sort, caller);
	else
	{
		uint64		first = 0;

		result = gpusort_sort_call_rearrange(&elements, &first, caller);
	}
	gpusort_sort_call_end(caller);
	PG_RETURN_ARRAYTYPE_P(result);
}

/* gpu_argsort_agg(): the same for gpu_argsort(). */
Datum
gpusort_sort_agg_argsort(PG_FUNCTION_ARGS)
{
	SortAggState *state = state_of_result(fcinfo);
	GsArrayElements elements;
	MemoryContext caller;
	ArrayType  *result;

	if (state == NULL)
		PG_RETURN_NULL();

	caller = gpusort_sort_call_begin();
	open_list(&state->list, &elements);
	result = gpusort_sort_call_positions(fcinfo, &elements,
										 &state->direction.sort, caller);
	gpusort_sort_call_end(caller);
	PG_RETURN_ARRAYTYPE_P(result);
}
