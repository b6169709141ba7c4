/*-------------------------------------------------------------------------
 *
 * pathkey_encoding.c
 *		Determines how sort keys that the planner considers would be encoded.
 *
 * Finding the encoding of a key takes several lookups in the system catalogs.
 * The planner asks for the same few keys thousands of times in a join of many
 * tables, once for each path that might be sorted.  The answers are therefore
 * cached while a statement is planned.  The address of a PathKey identifies
 * it, because the planner makes one PathKey for each meaning, and frees none.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "optimizer/paths.h"
#include "utils/lsyscache.h"

#include "key/key_encoding.h"
#include "plan/pathkey_encoding.h"

/* The number of cache entries.  A power of two makes the remainder cheap. */
#define CACHE_ENTRIES	128

typedef struct GsPathKeyEncoding
{
	const PathKey *pathkey;		/* NULL in an empty entry */
	Oid			type;			/* of the equivalence class member to encode */
	bool		usable;
	GsKeyEncoding encoding;		/* if usable */
} GsPathKeyEncoding;

/*
 * The cache of the statement that is being planned; its context is NULL if
 * there is no such statement.  An entry's index is a hash of its key.  A new
 * entry replaces an old one with the same hash.
 */
static GsPathKeyCache current = {NULL, NULL};

GsPathKeyCache
gpusort_pathkey_encoding_begin(void)
{
	GsPathKeyCache previous = current;

	current.context = CurrentMemoryContext;
	current.entries = NULL;
	return previous;
}

void
gpusort_pathkey_encoding_end(GsPathKeyCache previous)
{
	current = previous;
}

/*
 * Returns the type of a sort key: that of the member of its equivalence class
 * that belongs to 'relids', or else of the first member.
 */
static Oid
type_of_pathkey(const PathKey *pathkey, Relids relids)
{
	List	   *members = pathkey->pk_eclass->ec_members;
	ListCell   *lc;

	foreach(lc, members)
	{
		EquivalenceMember *member = lfirst_node(EquivalenceMember, lc);

		if (!member->em_is_child && !bms_is_empty(member->em_relids) &&
			bms_is_subset(member->em_relids, relids))
			return member->em_datatype;
	}
	return linitial_node(EquivalenceMember, members)->em_datatype;
}

/*
 * Look up the encoding in the catalogs.  It is allocated in the current memory
 * context.
 */
static GsPathKeyEncoding
look_up(const PathKey *pathkey, Oid type)
{
	GsPathKeyEncoding found = {.pathkey = pathkey,.type = type};
	Oid			operator = GPUSORT_PATHKEY_OPERATOR(pathkey, type);
	Oid			collation = pathkey->pk_eclass->ec_collation;
	bool		descending;

	found.usable = OidIsValid(operator) &&
		!gpusort_key_encoding_is_distrusted(operator, collation);
	if (found.usable)
		found.encoding = gpusort_key_encoding_find(operator, collation, &descending);
	return found;
}

static GsPathKeyEncoding
look_up_cached(const PathKey *pathkey, Oid type)
{
	MemoryContext caller;
	GsPathKeyEncoding *entry;

	if (current.context == NULL)
		return look_up(pathkey, type);
	caller = MemoryContextSwitchTo(current.context);
	if (current.entries == NULL)
		current.entries = palloc0(CACHE_ENTRIES * sizeof(GsPathKeyEncoding));
	entry = &current.entries[((uintptr_t) pathkey / sizeof(PathKey) ^ type) %
							 CACHE_ENTRIES];
	if (entry->pathkey != pathkey || entry->type != type)
		*entry = look_up(pathkey, type);
	MemoryContextSwitchTo(caller);
	return *entry;
}

bool
gpusort_pathkey_encoding_find(List *pathkeys, Relids relids,
							  GsKeyShape *shape)
{
	GsKeyEncoding encodings[GPUSORT_KEY_SHAPE_COLUMNS];
	int			nkeys = 0;
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		const PathKey *pathkey = lfirst_node(PathKey, lc);
		GsPathKeyEncoding found =
			look_up_cached(pathkey, type_of_pathkey(pathkey, relids));

		if (!found.usable)
			return false;
		if (nkeys < GPUSORT_KEY_SHAPE_COLUMNS)
			encodings[nkeys++] = found.encoding;
	}
	if (encodings[0].kind == GS_ENCODE_NONE)
		return false;
	*shape = gpusort_key_plan_shape_of(encodings, nkeys);
	return true;
}
