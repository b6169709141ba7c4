/*-------------------------------------------------------------------------
 *
 * distrust.c
 *		The encodings that sorted rows into a wrong order.
 *
 * If the library is in shared_preload_libraries, the list is in shared memory.  Otherwise each
 * session has its own.
 *
 * Entries are only added, so they are read without a lock.  If the list is full, all encodings
 * are distrusted.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "access/transam.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "key/distrust.h"
#include "key/key_encoding.h"
#include "preload.h"

#define MAX_ENTRIES		32
#define TEXT_BYTES		128
#define LOCALE_BYTES	64

/*
 * What tells encodings apart.  A locale has one encoding, whichever collation or database has
 * it.  OIDs of functions that extensions create belong to a database.
 */
typedef struct GsEncodingName
{
	GsEncodingKind kind;
	Oid			function;		/* the btree comparison function */
	Oid			database;		/* or InvalidOid for a built-in function */
	char		locale[LOCALE_BYTES];
} GsEncodingName;

typedef struct GsDistrustEntry
{
	GsEncodingName name;
	char		text[TEXT_BYTES];
} GsDistrustEntry;

typedef struct GsDistrust
{
	slock_t		lock;			/* for adding an entry */
	pg_atomic_uint32 count;		/* of entries, which have been filled */
	pg_atomic_uint64 wrong_orders;
	GsDistrustEntry entries[MAX_ENTRIES];
} GsDistrust;

static GsDistrust local_distrust;
static GsDistrust *distrust = &local_distrust;

/* Returns the number of entries that can be read. */
static uint32
read_count(void)
{
	uint32		count = pg_atomic_read_u32(&distrust->count);

	/*
	 * Read the count before the entries, which were filled before it was
	 * raised.
	 */
	pg_read_barrier();
	return count;
}

static bool
is_same(const GsEncodingName *a, const GsEncodingName *b)
{
	return a->kind == b->kind && a->function == b->function &&
		a->database == b->database && strcmp(a->locale, b->locale) == 0;
}

static bool
is_among(const GsEncodingName *name, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
		if (is_same(&distrust->entries[i].name, name))
			return true;
	return count == MAX_ENTRIES;
}

/* Returns the name of a sort operator's encoding, and the type that it is of. */
static GsEncodingName
name_of_encoding(Oid operator, Oid collation, Oid *type)
{
	GsEncodingName name = {
		.kind = gpusort_key_encoding_find(operator, collation, NULL).kind
	};
	GsOperatorOrder order;
	Oid			family;

	*type = InvalidOid;
	if (!get_ordering_op_properties(operator, &family, type, &order))
		return name;
	name.function = get_opfamily_proc(family, *type, *type, BTORDER_PROC);
	if (name.function >= FirstNormalObjectId)
		name.database = MyDatabaseId;
	strlcpy(name.locale, gpusort_key_encoding_locale(collation), LOCALE_BYTES);
	return name;
}

bool
gpusort_distrust_has(Oid operator, Oid collation)
{
	uint32		count = read_count();
	GsEncodingName name;
	Oid			type;

	if (likely(count == 0))
		return false;
	name = name_of_encoding(operator, collation, &type);
	return is_among(&name, count);
}

/* Returns false if the encoding is distrusted already. */
static bool
add_entry(const GsEncodingName *name, const char *text)
{
	uint32		count;
	bool		known;

	SpinLockAcquire(&distrust->lock);
	count = pg_atomic_read_u32(&distrust->count);
	known = is_among(name, count);
	if (!known)
	{
		distrust->entries[count].name = *name;
		strlcpy(distrust->entries[count].text, text, TEXT_BYTES);
		/* Fill the entry before the count is raised. */
		pg_write_barrier();
		pg_atomic_write_u32(&distrust->count, count + 1);
	}
	SpinLockRelease(&distrust->lock);
	return !known;
}

char *
gpusort_distrust_add(Oid operator, Oid collation)
{
	Oid			type;
	GsEncodingName name = name_of_encoding(operator, collation, &type);
	char	   *text = psprintf("%s (%s%s%s)", format_type_be(type),
								gpusort_key_encoding_name(name.kind),
								name.locale[0] != '\0' ? " in " : "", name.locale);

	pg_atomic_fetch_add_u64(&distrust->wrong_orders, 1);
	if (!add_entry(&name, text))
		return text;
	if (gpusort_distrust_is_shared())
		ereport(LOG,
				(errmsg("sorts by type %s are left to PostgreSQL until the server restarts", text),
				 errdetail("Rows that pg_gpusort had sorted by this encoding were not in order.")));
	else
		ereport(LOG,
				(errmsg("sorts by type %s are left to PostgreSQL until the session ends", text),
				 errdetail("Rows that pg_gpusort had sorted by this encoding were not in order.")));
	return text;
}

bool
gpusort_distrust_is_shared(void)
{
	return distrust != &local_distrust;
}

int64
gpusort_distrust_count(void)
{
	return (int64) pg_atomic_read_u64(&distrust->wrong_orders);
}

char *
gpusort_distrust_texts(void)
{
	uint32		count = read_count();
	StringInfoData texts;

	if (count == 0)
		return NULL;
	initStringInfo(&texts);
	for (uint32 i = 0; i < count; i++)
		appendStringInfo(&texts, "%s%s", i > 0 ? "; " : "", distrust->entries[i].text);
	if (count == MAX_ENTRIES)
		appendStringInfoString(&texts, "; others");
	return texts.data;
}

static void
init_distrust(GsDistrust *target)
{
	memset(target, 0, sizeof(*target));
	SpinLockInit(&target->lock);
	pg_atomic_init_u32(&target->count, 0);
	pg_atomic_init_u64(&target->wrong_orders, 0);
}

static Size
shared_bytes(void)
{
	return sizeof(GsDistrust);
}

static void
start_shared(void *memory, bool found)
{
	distrust = memory;
	if (!found)
		init_distrust(distrust);
}

static const GsSharedMemory shared_memory = {
	.name = "pg_gpusort distrusted encodings",
	.bytes = shared_bytes,
	.start = start_shared,
};

void
gpusort_distrust_init(void)
{
	init_distrust(&local_distrust);
	gpusort_shared_memory_add(&shared_memory);
}
