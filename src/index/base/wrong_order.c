/*-------------------------------------------------------------------------
 *
 * wrong_order.c
 *		Leaves an index to PostgreSQL whose rows or keys are not in order.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/storage.h"
#include "storage/bufmgr.h"

#include "index/base/wrong_order.h"

void
gpusort_wrong_order_truncate(Relation index)
{
	if (RelationGetNumberOfBlocks(index) > 0)
		RelationTruncate(index, 0);
}

void
gpusort_wrong_order_warn(Relation index, const char *encoding)
{
	ereport(WARNING,
			(errmsg("rows of index \"%s\" were not sorted into the right order, so PostgreSQL builds it",
					RelationGetRelationName(index)),
			 errdetail("They were sorted by type %s.", encoding),
			 errhint("Check other indexes of this type with amcheck.")));
}
