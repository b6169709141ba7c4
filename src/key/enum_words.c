/*-------------------------------------------------------------------------
 *
 * enum_words.c
 *		Encodes values of enum types as words with the same order.
 *
 * The order of labels is that of pg_enum.enumsortorder.  Two labels keep their
 * order for as long as the type exists, but the column can change: ALTER TYPE
 * ... ADD VALUE ... BEFORE gives a new label a number halfway between its
 * neighbours, and when no number is left between these, it renumbers all
 * labels of the type. This can happen at any time, since neither reading nor
 * sorting values locks the type.  So sort orders read at different times must
 * not be compared.
 *
 * Therefore we read all labels of a type at once and give them our own
 * numbers, at equal distances.  A label that did not exist then gets a number
 * between those of its neighbours when it is first needed, and the others keep
 * theirs.
 *
 * If several processes add words to one sort, they must number the labels
 * alike. They do, because they read pg_enum with the active snapshot, which
 * they share. A label that is invisible to this snapshot breaks the rule.  It
 * can come from a cast of text, or enter an index from a transaction that the
 * build waited for.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_enum.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "key/type_words.h"

/* All numbers are below this. */
#define END_OF_NUMBERS		(UINT64CONST(1) << 32)

/*
 * Number of labels in the cache of recent ones, which are found without a
 * search.
 */
#define RECENT_LABELS		256

typedef struct GsEnumLabel
{
	Oid			oid;			/* the first member, for oid_cmp() */
	float4		sort_order;		/* as read from pg_enum */
	uint32		number;			/* 0 if not assigned yet */
} GsEnumLabel;

struct GsEnumNumbers
{
	MemoryContext context;
	Oid			type;			/* invalid until the first label */
	int			nlabels;
	GsEnumLabel *labels;		/* sorted by oid */
	bool		common;
	GsEnumLabel recent[RECENT_LABELS];	/* index is oid % RECENT_LABELS */
};

GsEnumNumbers *
gpusort_enum_numbers_create(void)
{
	GsEnumNumbers *numbers = palloc0(sizeof(GsEnumNumbers));

	numbers->context = CurrentMemoryContext;
	numbers->common = true;
	return numbers;
}

bool
gpusort_enum_numbers_are_common(const GsEnumNumbers *numbers)
{
	return numbers->common;
}

static int
compare_sort_orders(const void *a, const void *b)
{
	float4		left = ((const GsEnumLabel *) a)->sort_order;
	float4		right = ((const GsEnumLabel *) b)->sort_order;

	return (left > right) - (left < right);
}

/* Returns NULL if the label is unknown. */
static GsEnumLabel *
find_label(const GsEnumNumbers *numbers, Oid oid)
{
	if (numbers->nlabels == 0)
		return NULL;
	return bsearch(&oid, numbers->labels, numbers->nlabels, sizeof(GsEnumLabel), oid_cmp);
}

static Oid
type_of_label(Oid label)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, ObjectIdGetDatum(label));
	Oid			type;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for enum label %u", label);
	type = ((Form_pg_enum) GETSTRUCT(tuple))->enumtypid;
	ReleaseSysCache(tuple);
	return type;
}

/*
 * Read the labels of a type, in their order and without numbers, into the
 * current memory context: those visible to the snapshot, or the current ones
 * if it is NULL.
 */
static GsEnumLabel *
read_labels(Oid type, Snapshot snapshot, int *nlabels)
{
	Relation	catalog = table_open(EnumRelationId, AccessShareLock);
	StringInfoData labels;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	initStringInfo(&labels);
	ScanKeyInit(&key, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(type));
	scan = systable_beginscan(catalog, EnumTypIdLabelIndexId, true, snapshot, 1,
							  &key);
	while (tuple = systable_getnext(scan), HeapTupleIsValid(tuple))
	{
		Form_pg_enum form = (Form_pg_enum) GETSTRUCT(tuple);
		GsEnumLabel label = {.oid = form->oid,.sort_order = form->enumsortorder};

		CHECK_FOR_INTERRUPTS();
		appendBinaryStringInfo(&labels, (const char *) &label, sizeof(label));
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	*nlabels = labels.len / sizeof(GsEnumLabel);
	qsort(labels.data, *nlabels, sizeof(GsEnumLabel), compare_sort_orders);
	return (GsEnumLabel *) labels.data;
}

/*
 * Assign numbers between 'low' and 'high', both of which are taken.  They have
 * equal distances, a power of two so that few of their bits differ.
 */
static void
number_labels(Oid type, GsEnumLabel *labels, int count, uint64 low, uint64 high)
{
	uint64		distance = (high - low) / ((uint64) count + 1);

	if (count == 0)
		return;
	if (distance == 0)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("could not sort values of type %s because too many labels were added to it",
						format_type_be(type)),
				 errhint("The statement might succeed if retried.")));
	distance = UINT64CONST(1) << pg_leftmost_one_pos64(distance);
	for (int i = 0; i < count; i++)
		labels[i].number = low + (i + 1) * distance;
}

/* Read the labels again, and assign numbers to those that have none yet. */
static void
load_labels(GsEnumNumbers *numbers, Snapshot snapshot)
{
	MemoryContext caller = MemoryContextSwitchTo(numbers->context);
	int			count;
	GsEnumLabel *labels = read_labels(numbers->type, snapshot, &count);
	int			first = 0;		/* first label without a number before i */
	uint64		low = 0;

	for (int i = 0; i < count; i++)
	{
		const GsEnumLabel *known = find_label(numbers, labels[i].oid);

		if (known == NULL)
			continue;
		number_labels(numbers->type, labels + first, i - first, low,
					  known->number);
		labels[i].number = known->number;
		first = i + 1;
		low = known->number;
	}
	number_labels(numbers->type, labels + first, count - first, low,
				  END_OF_NUMBERS);
	qsort(labels, count, sizeof(GsEnumLabel), oid_cmp);
	if (numbers->labels != NULL)
		pfree(numbers->labels);
	numbers->labels = labels;
	numbers->nlabels = count;
	MemoryContextSwitchTo(caller);
}

/* Find a label that is not among the recent ones. */
static const GsEnumLabel *
look_up(GsEnumNumbers *numbers, Oid oid)
{
	const GsEnumLabel *label;

	if (!OidIsValid(numbers->type))
	{
		numbers->type = type_of_label(oid);
		if (ActiveSnapshotSet())
			load_labels(numbers, GetActiveSnapshot());
	}
	label = find_label(numbers, oid);
	if (label != NULL)
		return label;

	numbers->common = false;
	load_labels(numbers, NULL);
	label = find_label(numbers, oid);
	if (label == NULL)
		elog(ERROR, "enum label %u not found in type %s", oid,
			 format_type_be(numbers->type));
	return label;
}

uint64
gpusort_enum_word(GsEnumNumbers *numbers, Oid label)
{
	GsEnumLabel *recent = &numbers->recent[label % RECENT_LABELS];

	if (unlikely(recent->oid != label))
		*recent = *look_up(numbers, label);
	return recent->number;
}
