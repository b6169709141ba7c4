/*-------------------------------------------------------------------------
 *
 * progress.c
 *		Shows the sorts and index builds that run, for pg_stat_progress_gpusort.
 *
 * Each process has a few slots, found by the number of its PGPROC, so that no lock is
 * needed to get one.  They are in shared memory if the library is in
 * shared_preload_libraries.  Otherwise a process sees only its own sorts.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/proc.h"
#include "storage/shmem.h"

#include "preload.h"
#include "sort/base/progress.h"

/* More sorts of one process at a time are not shown. */
#define SLOTS_PER_PROCESS	8

/* A reader gives up a slot that changes its sort while it reads, so many times. */
#define READ_TRIES			10

/* Has cache lines of its own, so that processes do not disturb each other. */
typedef union GsProgressSlot
{
	GsProgress	progress;
	char		padding[PG_CACHE_LINE_SIZE];
} GsProgressSlot;

StaticAssertDecl(sizeof(GsProgressSlot) == PG_CACHE_LINE_SIZE,
				 "the progress of a sort fits into a cache line");

static GsProgressSlot local_slots[SLOTS_PER_PROCESS];
static GsProgressSlot *slots = local_slots;
static int	nslots = SLOTS_PER_PROCESS;
static GsProgress unseen;		/* of sorts beyond these */

const char *const gpusort_progress_phase_names[] = {
	[GS_PHASE_READING] = "reading rows",
	[GS_PHASE_WRITING_RUN] = "writing a run",
	[GS_PHASE_SORTING] = "sorting",
	[GS_PHASE_MERGING] = "merging runs",
	[GS_PHASE_RETURNING] = "returning rows",
};

/* ----------------------------------------------------------------
 *		the process that sorts
 * ----------------------------------------------------------------
 */

/* Returns the slots of this process, or NULL. */
static GsProgressSlot *
own_slots(void)
{
	int			first;

	if (slots == local_slots)
		return slots;
	if (MyProc == NULL)
		return NULL;
	first = GPUSORT_MY_PROC_NUMBER * SLOTS_PER_PROCESS;
	return first + SLOTS_PER_PROCESS <= nslots ? slots + first : NULL;
}

/* Returns a free slot of this process, or NULL. */
static GsProgress *
find_free_slot(void)
{
	GsProgressSlot *own = own_slots();

	for (int i = 0; own != NULL && i < SLOTS_PER_PROCESS; i++)
		if (own[i].progress.pid == 0)
			return &own[i].progress;
	return NULL;
}

/* A MemoryContextCallback, which the end of the process calls as well. */
static void
end_progress(void *arg)
{
	((GsProgress *) arg)->pid = 0;
}

GsProgress *
gpusort_progress_begin(MemoryContext context, int plan_node, int workers,
					   double rows_expected)
{
	GsProgress *progress = find_free_slot();
	MemoryContextCallback *callback;

	if (progress == NULL)
		return &unseen;
	callback = MemoryContextAlloc(context, sizeof(MemoryContextCallback));
	callback->func = end_progress;
	callback->arg = progress;
	progress->generation++;
	pg_write_barrier();
	memset(&progress->pid, 0, sizeof(GsProgress) - offsetof(GsProgress, pid));
	progress->pid = MyProcPid;
	if (IsParallelWorker() && MyProc->lockGroupLeader != NULL)
		progress->leader_pid = MyProc->lockGroupLeader->pid;
	progress->database = MyDatabaseId;
	progress->role = GetSessionUserId();
	progress->plan_node = plan_node;
	progress->workers = Max(workers, 0);
	progress->phase = GS_PHASE_READING;
	progress->rows_expected = (int64) Min(rows_expected, 1e18);
	pg_write_barrier();
	progress->generation++;
	MemoryContextRegisterResetCallback(context, callback);
	return progress;
}

/* ----------------------------------------------------------------
 *		readers
 * ----------------------------------------------------------------
 */

int
gpusort_progress_slots(void)
{
	return nslots;
}

bool
gpusort_progress_read(int number, GsProgress *copy)
{
	volatile GsProgress *slot = &slots[number].progress;

	for (int i = 0; i < READ_TRIES; i++)
	{
		uint32		before = slot->generation;

		pg_read_barrier();
		*copy = *slot;
		pg_read_barrier();
		if (before == slot->generation && before % 2 == 0)
			return copy->pid != 0;
	}
	return false;
}

static bool
is_busy(const GsProgress *progress)
{
	return progress->phase != GS_PHASE_RETURNING || progress->plan_node == -1;
}

int
gpusort_progress_busy_others(void)
{
	GsProgress	progress;
	int			counted = -1;	/* the last process that was counted */
	int			result = 0;

	for (int i = 0; i < nslots; i++)
	{
		int			process = i / SLOTS_PER_PROCESS;

		if (process != counted && gpusort_progress_read(i, &progress) &&
			progress.pid != MyProcPid && is_busy(&progress))
		{
			counted = process;
			result++;
		}
	}
	return result;
}

/* ----------------------------------------------------------------
 *		shared memory
 * ----------------------------------------------------------------
 */

static int
shared_slots(void)
{
	return MaxBackends * SLOTS_PER_PROCESS;
}

static Size
shared_bytes(void)
{
	return mul_size(shared_slots(), sizeof(GsProgressSlot));
}

static void
start_shared(void *memory, bool found)
{
	slots = memory;
	nslots = shared_slots();
	if (!found)
		memset(slots, 0, shared_bytes());
}

static const GsSharedMemory shared_memory = {
	.name = "pg_gpusort progress",
	.bytes = shared_bytes,
	.start = start_shared,
};

void
gpusort_progress_init(void)
{
	gpusort_shared_memory_add(&shared_memory);
}
