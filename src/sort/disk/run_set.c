/*-------------------------------------------------------------------------
 *
 * run_set.c
 *		Files to which several processes write sorted runs.
 *
 * Each process has a file of its own in a set of files that the leader creates.
 * PostgreSQL's shared file sets live as long as a segment of dynamic shared memory.
 * This one belongs to the leader's sort instead, because rows may be read, and read
 * again, after a Limit has ended the Gather and its segment.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "sort/disk/run_set.h"

/* Bytes of a row in a run besides its columns. */
#define ROW_OVERHEAD	8

struct GsRunSet
{
	SharedFileSet files;
};

/* Memory context callback */
static void
remove_files(void *arg)
{
	GsRunSet   *set = arg;

	/*
	 * An interrupt while files are being removed would leave the others
	 * behind.
	 */
	HOLD_INTERRUPTS();
	SharedFileSetDeleteAll(&set->files);
	RESUME_INTERRUPTS();
}

GsRunSet *
gpusort_run_set_create(void)
{
	GsRunSet   *set = palloc0(sizeof(GsRunSet));
	MemoryContextCallback *callback = palloc(sizeof(MemoryContextCallback));

	SharedFileSetInit(&set->files, NULL);
	callback->func = remove_files;
	callback->arg = set;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	return set;
}

GsRunSetHandle
gpusort_run_set_handle(const GsRunSet *set)
{
	return (GsRunSetHandle)
	{
		.files = set->files.fs
	};
}

bool
gpusort_shared_runs_allowed(double rows, int width)
{
	return temp_file_limit < 0 ||
		rows * (width + ROW_OVERHEAD) <= (double) temp_file_limit * 1024;
}
