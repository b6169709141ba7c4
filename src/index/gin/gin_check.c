/*-------------------------------------------------------------------------
 *
 * gin_check.c
 *		Checks by the operator class's comparison that the keys of a GIN index are in order.
 *
 * There are far fewer keys than index entries, and each is compared several times while they are
 * merged.  So all of them are checked unless pg_gpusort.verify is off.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/datum.h"
#include "utils/memutils.h"

#include "index/gin/gin_check.h"
#include "settings.h"
#include "work.h"

struct GsGinCheck
{
	GsGinOrder *order;
	MemoryContext context;
	MemoryContext scratch;		/* for what comparisons leak */
	bool		enabled;

	/* The key before. */
	bool		has_key;
	GsGinKey	key;
	char	   *copy;			/* what its value points to */
	Size		copy_size;
};

GsGinCheck *
gpusort_gin_check_create(GsGinOrder *order)
{
	GsGinCheck *check = palloc0(sizeof(GsGinCheck));

	check->order = order;
	check->enabled = gpusort_verify != GS_VERIFY_OFF;
	check->context = CurrentMemoryContext;
	check->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort order check",
										   ALLOCSET_SMALL_SIZES);
	return check;
}

static bool
is_in_order(const GsGinCheck *check, const GsGinKey *key)
{
	const GsGinKey *before = &check->key;
	MemoryContext caller;
	int			cmp;

	if (before->attnum == key->attnum && before->category == key->category &&
		check->order->columns[key->attnum - 1].encoding.kind == GS_ENCODE_NONE)
		return true;
	CHECK_FOR_INTERRUPTS();
	caller = MemoryContextSwitchTo(check->scratch);
	cmp = ginCompareAttEntries(&check->order->state,
							   before->attnum, before->value, before->category,
							   key->attnum, key->value, key->category);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(check->scratch);
	return cmp < 0;
}

static void
keep_key(GsGinCheck *check, const GsGinKey *key)
{
	const GsGinColumn *column = &check->order->columns[key->attnum - 1];
	Size		size;

	check->has_key = true;
	check->key = *key;
	if (key->category != GIN_CAT_NORM_KEY || column->attbyval)
		return;
	size = datumGetSize(key->value, false, column->attlen);
	gpusort_work_add(size);
	if (size > check->copy_size)
	{
		if (check->copy != NULL)
			pfree(check->copy);
		check->copy_size = size * 2;
		check->copy = MemoryContextAllocHuge(check->context, check->copy_size);
	}
	memcpy(check->copy, DatumGetPointer(key->value), size);
	check->key.value = PointerGetDatum(check->copy);
}

bool
gpusort_gin_check_key(GsGinCheck *check, const GsGinKey *key)
{
	if (!check->enabled)
		return true;
	if (check->has_key && !is_in_order(check, key))
		return false;
	keep_key(check, key);
	return true;
}

char *
gpusort_gin_check_distrust(const GsGinCheck *check, const GsGinKey *key)
{
	const GsGinColumn *column = &check->order->columns[key->attnum - 1];

	return gpusort_key_encoding_distrust(column->operator, column->collation);
}
