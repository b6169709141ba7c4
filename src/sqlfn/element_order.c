/*-------------------------------------------------------------------------
 *
 * element_order.c
 *		Determines the sorted order of the elements of an array.
 *
 * The elements are sorted by radix, and ties of an encoding that is not exact by comparisons.
 * Elements without an encoding that is trusted, and few elements whose encoding is not exact, are
 * only compared.  If the encoding is exact, a GPU sorts the elements, if there are many and one is
 * available.  All of these sorts are stable.
 *
 * Numbers that can be told from their words are sorted as words alone, and the sorted array is made
 * from these: that accesses memory in sequence only.
 *
 * Memory is not limited by a budget here: the array and the result are in
 * memory in any case, and there is no other sort that could take the elements
 * over.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "port/pg_bitutils.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "core/copy_bytes.h"
#include "key/distrust.h"
#include "key/key_comparison.h"
#include "key/key_plan.h"
#include "key/order_check.h"
#include "sort/base/sort_stats.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/key_sort.h"
#include "sqlfn/arrays.h"
#include "work.h"

/*
 * Limits of the number of keys per chunk, as powers of two.  Within them, one
 * chunk has all keys.
 */
#define MIN_CHUNK_SHIFT		6
#define MAX_CHUNK_SHIFT		20

struct GsElementOrder
{
	Oid			operator;
	Oid			collation;
	bool		nulls_first;
	AttrNumber	attno;			/* of the element in rows, as encoded */
	GsSortKeys	keys;
	GsKeyPlan  *key_plan;		/* NULL if there is no encoding */
	bool		exact;			/* does it leave no ties to break? */
	SortSupportData comparison; /* prepared when it is needed */
	GsOrderCheck *check;
	TupleDesc	tupdesc;		/* of these rows */
};

/* So many elements are compared, unless their encoding is exact. */
#define FEW_ELEMENTS		32

/*
 * Elements are encoded as rows of two columns: something that accompanies the
 * element, and the element.
 */
#define ROW_COLUMNS			2
#define ELEMENT_ATTNO		2

GsElementOrder *
gpusort_element_order_create(Oid type, Oid collation, bool descending,
							 bool nulls_first)
{
	GsElementOrder *order = palloc0(sizeof(GsElementOrder));
	TypeCacheEntry *typcache;
	GsReason	reason;
	int			first_open;

	typcache = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	order->operator = descending ? typcache->gt_opr : typcache->lt_opr;
	if (!OidIsValid(order->operator))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("could not identify an ordering operator for type %s",
						format_type_be(type)),
				 errhint("Arrays can be sorted if their element type has a default btree operator class.")));
	order->collation = collation;
	order->nulls_first = nulls_first;

	order->attno = ELEMENT_ATTNO;
	order->keys.nkeys = 1;
	order->keys.attnos = &order->attno;
	order->keys.operators = &order->operator;
	order->keys.collations = &order->collation;
	order->keys.nulls_first = &order->nulls_first;
	order->key_plan = gpusort_key_plan_create(&order->keys, &reason);
	order->exact = gpusort_key_plan_is_exact(order->key_plan, &first_open);
	if (reason != GS_REASON_NONE)
	{
		gpusort_key_plan_free(order->key_plan);
		order->key_plan = NULL;
	}
	order->check = gpusort_order_check_create(&order->keys);
	order->tupdesc = CreateTemplateTupleDesc(ROW_COLUMNS);
	TupleDescInitEntry(order->tupdesc, 1, "along", INT4OID, -1, 0);
	TupleDescInitEntry(order->tupdesc, ELEMENT_ATTNO, "element", type, -1, 0);
	TupleDescFinalize(order->tupdesc);
	return order;
}

/* ----------------------------------------------------------------
 *		checking the order
 * ----------------------------------------------------------------
 */

/*
 * Check the next element in sorted order.  If it is not in order, returns false; then the array
 * is sorted by comparisons.
 */
static inline bool
check_element(GsCheckedRows *checked, Datum value, bool value_isnull)
{
	Datum		values[ROW_COLUMNS] = {0, value};
	bool		isnull[ROW_COLUMNS] = {false, value_isnull};

	if (likely(gpusort_checked_rows_add(checked, values, isnull)))
		return true;
	(void) gpusort_checked_rows_distrust(checked);
	gpusort_stats_count_reason(GS_REASON_WRONG_ORDER);
	return false;
}

/* Do integers that follow each other ascend or, if 'reverse' has all bits, descend? */
static pg_attribute_always_inline bool
integers_ascend(const char *data, Size length, int count, Datum reverse)
{
	bool		ascend = true;

	for (int i = 1; i < count; i++)
	{
		Datum		a = fetch_att(data + (i - 1) * length, true, length) ^ reverse;
		Datum		b = fetch_att(data + i * length, true, length) ^ reverse;

		ascend &= length == sizeof(int64) ? DatumGetInt64(a) <= DatumGetInt64(b) :
			DatumGetInt32(a) <= DatumGetInt32(b);
	}
	return ascend;
}

/*
 * Returns how many elements, the first ones, are in order, as far as that is found out by comparing
 * nothing but integers that follow each other.
 */
static int
count_in_order(const GsArrayElements *elements, const GsCheckedRows *checked)
{
	Size		length = elements->stride;
	int			most = 0;

	if (checked->all_keys || elements->nulls > 0 || elements->offsets != NULL)
		return 0;
	for (int i = 0; i < elements->count; i = most)
	{
		/* Each stretch begins with the last element of the one before. */
		const char *data = elements->data + Max(i - 1, 0) * length;
		int			count = Min(elements->count - i, GPUSORT_ROWS_PER_LOOK) + (i > 0);

		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(count * length);
		if (!(checked->shared == GS_ENCODE_INT64 && length == sizeof(int64) &&
			  integers_ascend(data, sizeof(int64), count, checked->reverse)) &&
			!(checked->shared == GS_ENCODE_INT32 && length == sizeof(int32) &&
			  integers_ascend(data, sizeof(int32), count, checked->reverse)))
			break;
		most = Min(elements->count, i + GPUSORT_ROWS_PER_LOOK);
	}
	return most;
}

/* Are the elements in the order of the entries or, if that is NULL, as they are? */
static bool
are_in_order(const GsElementOrder *order, const GsArrayElements *elements,
			 const uint64 *entries)
{
	GsCheckedRows checked;
	int			start = 0;

	gpusort_checked_rows_begin(&checked, order->check, order->tupdesc, false, true);
	if (checked.check == NULL)
		return true;
	if (entries == NULL)
		start = count_in_order(elements, &checked);
	if (start == elements->count)
		return true;
	for (int i = Max(start - 1, 0); i < elements->count; i++)
	{
		Datum		value = (Datum) 0;
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(sizeof(uint64));
		if (gpusort_checked_rows_passes(&checked))
			continue;
		isnull = !gpusort_elements_get(elements, entries != NULL ? (uint32) entries[i] : i, &value);
		if (!check_element(&checked, value, isnull))
			return false;
	}
	return true;
}

static uint64 *
alloc_entries(int count)
{
	return MemoryContextAllocHuge(CurrentMemoryContext, Max(count, 1) * sizeof(uint64));
}

/* ----------------------------------------------------------------
 *		counting sorts of arrays, for pg_stat_gpusort
 *
 * Arrays can be short, and there can be one in each row of a query, so this
 * must not take long.
 * ----------------------------------------------------------------
 */

/*
 * Shorter arrays are not timed.  Reading the clock would take a good part of their
 * time, of which there are not enough microseconds to count.
 */
#define MIN_TIMED_ELEMENTS	100

typedef struct GsArraySortTimer
{
	MemoryContextCallback callback;
	uint64		elements;
	instr_time	start;			/* if there are enough of them */
	bool		ended;
} GsArraySortTimer;

/* Called when the memory context ends. */
static void
memory_is_freed(void *arg)
{
	GsArraySortTimer *timer = arg;

	if (!timer->ended)
		gpusort_stats_count_error();
}

/*
 * Begin to measure a sort of that number of elements, in the current memory
 * context.  If that context ends before one of the functions below is called, an
 * error is counted.
 */
static GsArraySortTimer *
begin_timer(uint64 elements)
{
	GsArraySortTimer *timer = palloc(sizeof(GsArraySortTimer));

	timer->elements = elements;
	timer->ended = false;
	timer->callback.func = memory_is_freed;
	timer->callback.arg = timer;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &timer->callback);
	if (elements >= MIN_TIMED_ELEMENTS)
		INSTR_TIME_SET_CURRENT(timer->start);
	return timer;
}

/* They are sorted: count the sort.  'bytes' are those that it took. */
static void
count_sort(GsArraySortTimer *timer, GsSortKind kind,
		   uint64 bytes)
{
	GsSortCounts counts = {.sorts = 1,.array_sorts = 1};

	timer->ended = true;
	counts.rows = timer->elements;
	counts.bytes = bytes;
	if (timer->elements >= MIN_TIMED_ELEMENTS)
	{
		instr_time	duration;

		INSTR_TIME_SET_CURRENT(duration);
		INSTR_TIME_SUBTRACT(duration, timer->start);
		counts.sort_us = (uint64) INSTR_TIME_GET_MICROSEC(duration);
	}
	gpusort_stats_count_sort(kind, &counts);
}

/* ----------------------------------------------------------------
 *		by comparisons
 * ----------------------------------------------------------------
 */

typedef struct SortItem
{
	Datum		value;
	uint32		number;
} SortItem;

static inline int
compare_items(const SortItem *a, const SortItem *b, SortSupport comparison)
{
	int			cmp = ApplySortComparator(a->value, false, b->value, false, comparison);

	return cmp != 0 ? cmp : (a->number > b->number) - (a->number < b->number);
}

#define ST_SORT sort_items
#define ST_ELEMENT_TYPE SortItem
#define ST_COMPARE(a, b, comparison) compare_items(a, b, comparison)
#define ST_COMPARE_ARG_TYPE SortSupportData
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* This is not done before there are elements to compare, because it may raise errors. */
static void
prepare_comparison(GsElementOrder *order)
{
	MemoryContext caller = MemoryContextSwitchTo(GetMemoryChunkContext(order));

	memset(&order->comparison, 0, sizeof(SortSupportData));
	gpusort_key_comparison_prepare(&order->keys, 0, &order->comparison);
	MemoryContextSwitchTo(caller);
}

/* Sort entries of elements that are not NULL. */
static void
sort_by_comparisons(GsElementOrder *order, const GsArrayElements *elements, uint64 *entries,
					uint32 count)
{
	SortItem   *items = MemoryContextAllocHuge(CurrentMemoryContext,
											   Max(count, 1) * sizeof(SortItem));

	if (order->comparison.comparator == NULL)
		prepare_comparison(order);
	for (uint32 i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		items[i].number = (uint32) entries[i];
		(void) gpusort_elements_get(elements, items[i].number, &items[i].value);
	}
	sort_items(items, count, &order->comparison);
	for (uint32 i = 0; i < count; i++)
	{
		if (i % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
		gpusort_work_add(sizeof(SortItem));
		entries[i] = items[i].number;
	}
	pfree(items);
}

static uint64 *
order_by_comparisons(GsElementOrder *order, const GsArrayElements *elements,
					 GsArraySortTimer *timer)
{
	uint32		regular = elements->count - elements->nulls;
	uint64	   *entries = alloc_entries(elements->count);
	uint64	   *first = order->nulls_first ? entries + elements->nulls : entries;
	uint64	   *next = first;
	uint64	   *nulls = order->nulls_first ? entries : entries + regular;
	Datum		value;

	for (int i = 0; i < elements->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (gpusort_elements_get(elements, i, &value))
			*next++ = i;
		else
			*nulls++ = i;
	}
	sort_by_comparisons(order, elements, first, regular);
	count_sort(timer, GS_KIND_CPU,
			   elements->count * sizeof(uint64) + regular * sizeof(SortItem));
	return entries;
}

/* ----------------------------------------------------------------
 *		by radix
 * ----------------------------------------------------------------
 */

static void
report_out_of_memory(const GsArrayElements *elements)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed while sorting an array of %d elements.",
					   elements->count)));
}

/* What breaking ties needs. */
typedef struct GsElementTies
{
	GsElementOrder *order;
	const GsArrayElements *elements;
} GsElementTies;

/* How many of the entries, from the first one on, have the same key? */
static uint32
count_ties(const GsKeySort *key_sort, const GsKeyPlan *plan, const uint64 *entries, uint32 count)
{
	const uint64 *key = gpusort_key_sort_key(key_sort, (uint32) entries[0]);
	Size		bytes = gpusort_key_plan_words(plan) * sizeof(uint64);
	uint32		n;

	for (n = 1; n < count; n++)
	{
		if (n % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
		gpusort_work_add(bytes);
		if (memcmp(gpusort_key_sort_key(key_sort, (uint32) entries[n]), key, bytes) != 0)
			break;
	}
	return n;
}

/* GsTiesCallback */
static void
break_ties(GsKeySort *key_sort, uint64 *entries, uint32 count, void *arg)
{
	const GsElementTies *ties = arg;
	Datum		value;
	uint32		n;

	/* NULLs are apart from other elements, and all equal. */
	if (count == 0 || !gpusort_elements_get(ties->elements, (uint32) entries[0], &value))
		return;
	for (uint32 i = 0; i < count; i += n)
	{
		CHECK_FOR_INTERRUPTS();
		n = count_ties(key_sort, ties->order->key_plan, entries + i, count - i);
		if (n > 1)
			sort_by_comparisons(ties->order, ties->elements, entries + i, n);
	}
}

static uint64 *
order_by_radix(GsElementOrder *order, const GsArrayElements *elements,
			   GsArraySortTimer *timer)
{
	GsElementTies ties = {.order = order,.elements = elements};
	unsigned	chunk_shift = pg_ceil_log2_32(elements->count);
	GsBudget   *unlimited = gpusort_budget_create(SIZE_MAX);
	GsKeySort  *key_sort;

	chunk_shift = Min(Max(chunk_shift, MIN_CHUNK_SHIFT), MAX_CHUNK_SHIFT);
	key_sort = gpusort_key_sort_create(unlimited,
									   gpusort_key_plan_words(order->key_plan),
									   chunk_shift, order->nulls_first, PG_UINT32_MAX);
	for (int i = 0; i < elements->count; i++)
	{
		uint64	   *key = gpusort_key_sort_next_key(key_sort);
		Datum		values[ROW_COLUMNS] = {0};
		bool		isnull[ROW_COLUMNS] = {0};

		CHECK_FOR_INTERRUPTS();
		if (key == NULL)
			report_out_of_memory(elements);
		isnull[1] = !gpusort_elements_get(elements, i, &values[1]);
		gpusort_key_plan_encode(order->key_plan, values, isnull, key);
		if (!gpusort_key_sort_add(key_sort, isnull[1]))
			report_out_of_memory(elements);
	}
	if (!gpusort_key_sort_range(key_sort, 0, gpusort_key_sort_count(key_sort),
								order->exact ? NULL : break_ties, &ties))
		report_out_of_memory(elements);
	count_sort(timer, GS_KIND_CPU, unlimited->used);
	return gpusort_key_sort_entries(key_sort);
}

/*
 * Sort numbers as words, to be the data of an array, which may be their own.  Returns false, and
 * writes nothing, if they cannot be told from words.
 */
static bool
sort_as_words(const GsElementOrder *order, const GsArrayElements *elements,
			  GsArraySortTimer *timer, char *dest)
{
	GsBudget   *unlimited = gpusort_budget_create(SIZE_MAX);
	Size		bytes = elements->count * sizeof(uint64);
	uint64	   *words;
	uint64	   *scratch;
	bool		done = true;

	(void) gpusort_budget_reserve(unlimited, 2 * bytes);
	words = gpusort_budget_alloc(unlimited, bytes);
	if (words == NULL)
		report_out_of_memory(elements);
	for (int i = 0; done && i < elements->count; i += GPUSORT_ROWS_PER_LOOK)
	{
		CHECK_FOR_INTERRUPTS();
		done = gpusort_key_plan_encode_numbers(order->key_plan,
											   elements->data + i * elements->stride,
											   elements->stride,
											   Min(elements->count - i, GPUSORT_ROWS_PER_LOOK),
											   words + i);
	}
	if (done)
	{
		scratch = gpusort_budget_alloc(unlimited, bytes);
		if (scratch == NULL)
			report_out_of_memory(elements);
		gpusort_radix_sort_words((uint64_t *) words, (uint64_t *) scratch, elements->count,
								 gpusort_key_sort_check_interrupts);
		gpusort_budget_free(unlimited, scratch);
		for (int i = 0; i < elements->count; i += GPUSORT_ROWS_PER_LOOK)
		{
			CHECK_FOR_INTERRUPTS();
			gpusort_key_plan_decode_numbers(order->key_plan, words + i, elements->stride,
											Min(elements->count - i, GPUSORT_ROWS_PER_LOOK),
											dest + i * elements->stride);
		}
		count_sort(timer, GS_KIND_CPU, unlimited->used);
	}
	gpusort_budget_free(unlimited, words);
	return done;
}

/* ----------------------------------------------------------------
 *		by a GPU
 * ----------------------------------------------------------------
 */

static bool
may_use_gpu(const GsElementOrder *order, const GsArrayElements *elements)
{
	return order->exact &&
		gpusort_gpu_session_check(elements->count, false) == GS_REASON_NONE;
}

/*
 * Begin a GPU session for the elements, each with a value of type 'along'.
 * The session is made in a new memory context; deleting that ends the session.
 * Returns NULL if no GPU is used.
 */
static GsGpuSession *
begin_gpu_session(const GsElementOrder *order, const GsArrayElements *elements,
				  Oid along, MemoryContext *context)
{
	GsSortSpec *spec;
	GsGpuSession *session;
	GsReason	reason;
	MemoryContext caller;

	*context = AllocSetContextCreate(CurrentMemoryContext,
									 "pg_gpusort GPU session",
									 ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(*context);
	spec = palloc0(sizeof(GsSortSpec));
	spec->tupdesc = CreateTemplateTupleDesc(1);
	TupleDescInitEntry(spec->tupdesc, 1, "along", along, -1, 0);
	TupleDescFinalize(spec->tupdesc);
	spec->key_plan = order->key_plan;
	spec->expected_rows = elements->count;
	spec->repeatable = true;
	session = gpusort_gpu_session_create(spec, &reason);
	MemoryContextSwitchTo(caller);
	if (session == NULL)
	{
		if (gpusort_reason_is_no_gpu(reason))
			gpusort_stats_count_reason(reason);
		MemoryContextDelete(*context);
	}
	return session;
}

/* Put numbers together if there are as many, or else one by one. */
#define NUMBERS_AT_ONCE		256

/*
 * Put all elements into the session, accompanied by themselves or by their
 * numbers.  Returns false after a failure.
 */
static bool
put_elements(GsGpuSession *session, const GsArrayElements *elements,
			 bool themselves)
{
	int			end;

	for (int start = 0; start < elements->count; start = end)
	{
		end = Min(elements->count - start, NUMBERS_AT_ONCE) + start;
		CHECK_FOR_INTERRUPTS();
		if (themselves &&
			gpusort_gpu_session_put_numbers(session, elements->data + start * elements->stride,
											elements->stride, end - start))
			continue;
		for (int i = start; i < end; i++)
		{
			Datum		values[ROW_COLUMNS] = {Int32GetDatum(i)};
			bool		isnull[ROW_COLUMNS] = {0};

			CHECK_FOR_INTERRUPTS();
			isnull[1] = !gpusort_elements_get(elements, i, &values[1]);
			if (themselves)
				values[0] = values[1];
			if (!gpusort_gpu_session_put(session, values, isnull))
				return false;
		}
	}
	return true;
}

/*
 * Fetch what accompanies the sorted elements: the elements, as the data of an array, or their
 * numbers as words.  Returns false after a failure, or if the elements are not in order.
 */
static bool
fetch_sorted(const GsElementOrder *order, GsGpuSession *session,
			 const GsArrayElements *elements, bool themselves, void *dest)
{
	GsArrayElements sorted = *elements;
	GsRowsInPlace rows;

	sorted.data = dest;
	for (int i = 0; i < elements->count; i += rows.nrows)
	{
		Datum		value;
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		if (!gpusort_gpu_session_get(session, i, &value, &isnull))
			return false;
		rows.nrows = 1;
		if (!themselves)
			((uint64 *) dest)[i] = (uint32) DatumGetInt32(value);
		else if (!gpusort_gpu_session_in_place(session, i, &rows))
			return false;
		else
		{
			rows.nrows = Min(rows.nrows, GPUSORT_ROWS_PER_LOOK);
			gpusort_work_add(rows.nrows * rows.row_bytes);
			gpusort_copy_values(sorted.data + i * elements->stride, elements->stride,
								rows.first, rows.row_bytes, elements->stride, rows.nrows);
		}
	}
	return !themselves || are_in_order(order, &sorted, NULL);
}

/*
 * Sort the elements on a GPU, each accompanied by itself or by its number, and fetch that.  Counts
 * the sort, or why it is not done.  Returns false if no GPU is used or it failed.
 */
static bool
sort_on_gpu(const GsElementOrder *order, const GsArrayElements *elements, bool themselves,
			GsArraySortTimer *timer, void *dest)
{
	MemoryContext context;
	GsGpuSession *session = begin_gpu_session(order, elements,
											  themselves ? elements->type : INT4OID, &context);
	bool		done;

	if (session == NULL)
		return false;
	done = put_elements(session, elements, themselves) &&
		gpusort_gpu_session_flush(session) && gpusort_gpu_session_sort(session) &&
		gpusort_gpu_session_count(session) == elements->count &&
		fetch_sorted(order, session, elements, themselves, dest);
	if (done)
	{
		GsGpuReport report;

		gpusort_gpu_session_report(session, &report);
		count_sort(timer, GS_KIND_GPU, report.device_bytes);
	}
	else if (gpusort_gpu_session_failure(session) != GS_REASON_NONE)
		gpusort_stats_count_reason(gpusort_gpu_session_failure(session));
	MemoryContextDelete(context);
	return done;
}

/* ----------------------------------------------------------------
 *		by whichever it is
 * ----------------------------------------------------------------
 */

static bool
is_trusted(const GsElementOrder *order)
{
	return order->key_plan != NULL &&
		!gpusort_distrust_has(order->operator, order->collation);
}

uint64 *
gpusort_element_order_apply(GsElementOrder *order, const GsArrayElements *elements)
{
	GsArraySortTimer *timer = begin_timer(elements->count);
	uint64	   *entries = NULL;

	if (!is_trusted(order) || (!order->exact && elements->count <= FEW_ELEMENTS))
		return order_by_comparisons(order, elements, timer);
	if (may_use_gpu(order, elements))
	{
		entries = alloc_entries(elements->count);
		if (!sort_on_gpu(order, elements, false, timer, entries))
		{
			pfree(entries);
			entries = NULL;
		}
	}
	if (entries == NULL)
		entries = order_by_radix(order, elements, timer);
	if (likely(are_in_order(order, elements, entries)))
		return entries;
	return order_by_comparisons(order, elements, begin_timer(elements->count));
}

ArrayType *
gpusort_element_order_sort(const GsElementOrder *order, const GsArrayElements *elements,
						   ArrayType *own, MemoryContext target)
{
	GsArraySortTimer *timer;
	ArrayType  *result;
	GsArrayElements sorted = *elements;

	/*
	 * The session's rows are the elements themselves, and so are words, so
	 * these must be passed by value.
	 */
	if (!is_trusted(order) || !elements->typbyval || elements->offsets != NULL)
		return NULL;
	timer = begin_timer(elements->count);
	if (may_use_gpu(order, elements))
	{
		/* If the GPU fails, the elements are still needed. */
		result = gpusort_elements_make_array(elements, target);
		if (sort_on_gpu(order, elements, true, timer, ARR_DATA_PTR(result)))
			return result;
		pfree(result);
	}

	/*
	 * An array may have a bitmap without a NULL in it, which the result does
	 * not have.
	 */
	if (own != NULL &&
		VARSIZE(own) != ARR_OVERHEAD_NONULLS(elements->ndim) + elements->data_bytes)
		own = NULL;
	result = own != NULL ? own : gpusort_elements_make_array(elements, target);
	sorted.data = ARR_DATA_PTR(result);
	if (sort_as_words(order, elements, timer, sorted.data) && are_in_order(order, &sorted, NULL))
		return result;
	timer->ended = true;		/* they have to be sorted in another way */
	if (result != own)
		pfree(result);
	return NULL;
}
