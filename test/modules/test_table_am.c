/*-------------------------------------------------------------------------
 *
 * test_table_am.c
 *		A table access method that is not the heap's, in builds for tests.
 *
 * It is the heap's, except for two functions: it raises a notice when it is
 * asked for an estimate, since columnar tables may have such effects, and it
 * builds indexes of empty tables only.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "fmgr.h"
#include "utils/rel.h"

#include "loading.h"

GPUSORT_SQL_FUNCTION(gpusort_test_table_am);

/* relation_estimate_size */
static void
estimate_size(Relation table, int32 *widths, BlockNumber *pages,
			  double *tuples, double *visible)
{
	ereport(NOTICE,
			(errmsg("estimating the size of \"%s\"",
					RelationGetRelationName(table))));
	*pages = 1000;
	*tuples = 100000;
	*visible = 0;
}

/* index_build_range_scan */
static double
scan_for_build(Relation table, Relation index, struct IndexInfo *info,
			   bool allow_sync, bool any_visible, bool progress,
			   BlockNumber first, BlockNumber n, IndexBuildCallback callback,
			   void *state, TableScanDesc scan)
{
	return 0;
}

Datum
gpusort_test_table_am(PG_FUNCTION_ARGS)
{
	static TableAmRoutine routine;

	routine = *GetHeapamTableAmRoutine();
	routine.relation_estimate_size = estimate_size;
	routine.index_build_range_scan = scan_for_build;
	PG_RETURN_POINTER(&routine);
}
