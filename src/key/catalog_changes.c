/*-------------------------------------------------------------------------
 *
 * catalog_changes.c
 *		Notices changes of the catalogs that encodings are based on.
 *
 * The encoding of a type depends on its default operator class, on the
 * operators and functions of its operator family, and on what these functions
 * do.  All of them can change, and enums can get new labels.  A call site of
 * an array function caches the encodings it has found, so it must notice such
 * changes.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/inval.h"
#include "utils/syscache.h"

#include "key/catalog_changes.h"

static bool is_registered = false;
static uint64 changes = 0;

/* Callback for CacheRegisterSyscacheCallback(). */
static void
note_change(Datum arg, GPUSORT_SYSCACHE_ID cache, uint32 hash)
{
	changes++;
}

uint64
gpusort_catalog_changes(void)
{
	if (!is_registered)
	{
		CacheRegisterSyscacheCallback(CLAOID, note_change, (Datum) 0);
		CacheRegisterSyscacheCallback(AMOPOPID, note_change, (Datum) 0);
		CacheRegisterSyscacheCallback(AMPROCNUM, note_change, (Datum) 0);
		CacheRegisterSyscacheCallback(PROCOID, note_change, (Datum) 0);
		CacheRegisterSyscacheCallback(ENUMOID, note_change, (Datum) 0);
		is_registered = true;
	}
	return changes;
}
