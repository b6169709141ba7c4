/*-------------------------------------------------------------------------
 *
 * warm_memory.c
 *		Host memory in huge pages that the server keeps between sorts.
 *
 * The first touch of a page costs more than sorting what is put there, in particular
 * on virtual machines, whose hosts take back memory that is free.  A session that
 * allocates its own memory pays for that in its first sort, and most sessions do not
 * sort twice.  Therefore the postmaster reserves a range of addresses for shared memory,
 * which all its children inherit.  It is divided into blocks of the size of a huge page.
 * A block is *cold* until the system gives memory for it and *warm* from then on.
 *
 * Shared memory has no huge pages by default, whatever madvise(MADV_HUGEPAGE) says.  But
 * Linux 6.1 has MADV_COLLAPSE, which makes one of any block at once.  A process that
 * takes the block later has a single page fault for it.  Where this does not work,
 * there is no warm memory, and sessions allocate their own.
 *
 * Virtual machines can report free memory to their host in pieces of this size, and getting
 * a huge page back then takes 5 ms instead of 0.1.  So when the last ones took long, the next
 * blocks get ordinary pages, which come from what is free in smaller pieces.
 *
 * A background worker makes huge pages of such blocks when they are free, and gives blocks back to
 * the system that nobody has used for pg_gpusort.warm_memory_timeout.
 *
 * The processes of a parallel query can have memory in common.  It needs the same
 * addresses in all of them, because rows contain pointers, and dynamic shared memory does
 * not have that.  So the range is as long as the memory of the machine, and only its first
 * blocks, up to pg_gpusort.warm_memory, are kept warm.  The others are given back to the
 * system when the sort ends.  Where huge pages cannot be had, they have ordinary ones.
 * Blocks that processes share form a group, which ends as a whole.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "miscadmin.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/pg_shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "preload.h"
#include "service/fault.h"
#include "settings.h"
#include "sort/base/warm_memory.h"

extern PGDLLEXPORT void gpusort_warm_memory_main(Datum arg);

#define BLOCK_BYTES		GPUSORT_WARM_BLOCK_BYTES

/* The headers of older C libraries lack it. */
#if defined(__linux__) && !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE	25
#endif

/* What other systems call differently or lack. */
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS	MAP_ANON
#endif
#ifndef MAP_NORESERVE
#define MAP_NORESERVE	0
#endif

#define LOCK_NAME		"pg_gpusort memory"

/* If the setting is -1: this part of the machine's memory, and at most so much. */
#define DEFAULT_DIVISOR	8
#define DEFAULT_MAX		((Size) 8 * 1024 * 1024 * 1024)

/* The memory of a container, where Linux has control groups of version 2. */
#define CGROUP_LIMIT	"/sys/fs/cgroup/memory.max"

/* Contains 2 if Linux promises only memory that it has. */
#define OVERCOMMIT_MODE	"/proc/sys/vm/overcommit_memory"
#define OVERCOMMIT_NEVER	2

/* After the system had no huge page left, do not ask again for so long. */
#define REFUSED_MS		10000

/*
 * If the last HUGE_PAGES_AVERAGED huge pages took longer than this on average, use ordinary pages
 * for REFUSED_MS.  A single one may take long because another process was given the processor.
 */
#define SLOW_MS			2.0
#define HUGE_PAGES_AVERAGED	8

/* How often the worker looks for blocks that are due, or have ordinary pages. */
#define LOOK_MS			5000

typedef struct WarmBlock
{
	int			pid;			/* the process that has it, or 0 */
	uint32		group;			/* to which it belongs, or 0 */
	bool		warm;			/* has memory of the system */
	bool		huge;			/* if it is warm: in one huge page */
	TimestampTz free_since;		/* if it is warm and nobody has it */
} WarmBlock;

typedef struct WarmMemory
{
	TimestampTz refused;		/* when the system last had no huge page */
	TimestampTz slow;			/* when getting one last took long */
	double		huge_page_ms;	/* how long that takes, on average */
	uint32		last_group;		/* number of the last group created */
	WarmBlock	blocks[FLEXIBLE_ARRAY_MEMBER];
} WarmMemory;

/* The reserved addresses, the same in all processes; NULL if there are none. */
static char *base = NULL;
static int	nblocks = 0;

/* How many blocks, from the first one on, are kept warm. */
static int	nwarm = 0;

static const char *reason = "pg_gpusort is not in shared_preload_libraries";

/* In the server's shared memory, with its lock. */
static WarmMemory *state = NULL;
static LWLock * lock = NULL;

/* Has this process asked for gpusort_warm_memory_return() at its end? */
static bool returns_at_exit = false;

static char *
block_address(int block)
{
	return base + (Size) block * BLOCK_BYTES;
}

/* ----------------------------------------------------------------
 *		the system's memory
 * ----------------------------------------------------------------
 */

/*
 * Get memory for a cold block, in one huge page.  Returns false, with errno set, if the
 * system has none or cannot do it.
 */
static bool
warm_up(char *block)
{
#ifdef MADV_COLLAPSE
	*(volatile char *) block = 0;
	return madvise(block, BLOCK_BYTES, MADV_COLLAPSE) == 0;
#else
	errno = ENOSYS;
	return false;
#endif
}

/* Give the memory of blocks back to the system. */
static void
cool_down(char *block, Size bytes)
{
#ifdef MADV_REMOVE
	(void) madvise(block, bytes, MADV_REMOVE);
#endif
}

/* Returns the number in a file, or 'otherwise' if there is none. */
static Size
number_in_file(const char *path, Size otherwise)
{
	FILE	   *file = AllocateFile(path, "r");
	unsigned long long number;

	if (file == NULL)
		return otherwise;
	if (fscanf(file, "%llu", &number) != 1)
		number = otherwise;
	FreeFile(file);
	return number;
}

/* The memory of the machine or of the container, in bytes. */
static Size
machine_bytes(void)
{
	Size		bytes = (Size) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);

	return Min(bytes, number_in_file(CGROUP_LIMIT, bytes));
}

static Size
configured_bytes(void)
{
	Size		bytes = gpusort_warm_memory >= 0 ?
		(Size) gpusort_warm_memory * 1024 :
		Min(machine_bytes() / DEFAULT_DIVISOR, DEFAULT_MAX);

	return TYPEALIGN_DOWN(BLOCK_BYTES, bytes);
}

/*
 * How many addresses to reserve, if 'warm' bytes of memory are to be kept warm.  If the
 * system promises only memory that it has, more would be taken away from others.
 */
static Size
bytes_to_reserve(Size warm)
{
	if (number_in_file(OVERCOMMIT_MODE, 0) == OVERCOMMIT_NEVER)
		return warm;
	return Max(warm, TYPEALIGN_DOWN(BLOCK_BYTES, machine_bytes()));
}

/*
 * Reserve a block more than needed, unmap what is before and after, and map over the rest.  (If
 * only a part of shared memory were used, its huge pages would begin elsewhere.)
 */
char *
gpusort_warm_memory_map(Size bytes, bool shared)
{
	int			flags = MAP_ANONYMOUS | (shared ? MAP_SHARED | MAP_NORESERVE : MAP_PRIVATE);
	char	   *start = mmap(NULL, bytes + BLOCK_BYTES, PROT_NONE,
							 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char	   *aligned = (char *) TYPEALIGN(BLOCK_BYTES, start);

	if (start == MAP_FAILED)
		return NULL;
	if (aligned > start)
		(void) munmap(start, aligned - start);
	(void) munmap(aligned + bytes, start + BLOCK_BYTES - aligned);
	if (mmap(aligned, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0) != MAP_FAILED)
		return aligned;
	(void) munmap(aligned, bytes);
	return NULL;
}

/* Returns why no memory can be kept warm, or NULL.  In the postmaster. */
static const char *
find_reason(Size warm)
{
	bool		works;

	if (warm == 0)
		return "pg_gpusort.warm_memory is 0";
	if (huge_pages == HUGE_PAGES_OFF)
		return "huge_pages is off";
	works = warm_up(base);
	cool_down(base, BLOCK_BYTES);
	return works ? NULL :
		"the kernel cannot make huge pages of shared memory, or has none";
}

/* Reserve addresses, and find out which memory can be kept warm.  In the postmaster. */
static void
reserve_addresses(void)
{
	Size		warm = configured_bytes();
	Size		bytes = bytes_to_reserve(warm);

	if (bytes == 0)
	{
		reason = "pg_gpusort.warm_memory is 0";
		return;
	}
	base = gpusort_warm_memory_map(bytes, true);
	if (base == NULL && warm > 0)
	{
		bytes = warm;
		base = gpusort_warm_memory_map(bytes, true);
	}
	if (base == NULL)
	{
		reason = "the system could not reserve addresses";
		return;
	}
	nblocks = (int) (bytes / BLOCK_BYTES);
	reason = find_reason(warm);
	if (reason == NULL)
		nwarm = (int) (warm / BLOCK_BYTES);
}

/* ----------------------------------------------------------------
 *		shared memory
 * ----------------------------------------------------------------
 */

static Size
state_bytes(void)
{
	return offsetof(WarmMemory, blocks) + nblocks * sizeof(WarmBlock);
}

/* Also after a crash, when no process is left that had blocks. */
static void
start_shared(void *memory, bool found)
{
	state = memory;
	if (!found)
	{
		memset(state, 0, state_bytes());
		cool_down(base, nblocks * BLOCK_BYTES);
	}
	lock = &GetNamedLWLockTranche(LOCK_NAME)->lock;
}

static const GsSharedMemory shared_memory = {
	.name = "pg_gpusort memory",
	.lock = LOCK_NAME,
	.bytes = state_bytes,
	.start = start_shared,
};

void
gpusort_warm_memory_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	reserve_addresses();
	if (base == NULL)
		return;
	gpusort_shared_memory_add(&shared_memory);
	if (nwarm > 0)
		gpusort_register_worker("pg_gpusort memory", "gpusort_warm_memory_main");
}

/* ----------------------------------------------------------------
 *		blocks
 * ----------------------------------------------------------------
 */

/*
 * Returns the first of 'n' free blocks in a row, among the first 'end' ones, or -1.  If
 * 'warm', all of them are.  The first such blocks are taken, so that what is warm stays
 * together.
 */
static int
find_free(int n, int end, bool warm)
{
	int			free_blocks = 0;

	for (int b = 0; b < end; b++)
	{
		const WarmBlock *block = &state->blocks[b];

		if (block->pid == 0 && (block->warm || !warm))
			free_blocks++;
		else
			free_blocks = 0;
		if (free_blocks == n)
			return b + 1 - n;
	}
	return -1;
}

static void
set_owner(int first, int n, int pid, uint32 group)
{
	for (int b = first; b < first + n; b++)
	{
		state->blocks[b].pid = pid;
		state->blocks[b].group = group;
	}
}

/*
 * Return blocks, and give the memory of those that are not kept warm back to the system.  Nobody
 * else uses them yet, so that needs no lock.
 */
static void
free_blocks(int first, int n)
{
	TimestampTz now = GetCurrentTimestamp();
	int			end = first + n;
	int			rest = Max(first, nwarm);

	if (rest < end)
		cool_down(block_address(rest), (Size) (end - rest) * BLOCK_BYTES);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (int b = first; b < end; b++)
	{
		state->blocks[b].warm &= b < nwarm;
		state->blocks[b].huge &= b < nwarm;
		state->blocks[b].free_since = now;
	}
	set_owner(first, n, 0, 0);
	LWLockRelease(lock);
}

/* Return all blocks of a process, of a group or, if that is 0, of any. */
static void
return_blocks(int pid, uint32 group)
{
	for (int first = 0; first < nblocks; first++)
	{
		int			end = first;

		while (end < nblocks && state->blocks[end].pid == pid &&
			   (group == 0 || state->blocks[end].group == group))
			end++;
		if (end == first)
			continue;
		free_blocks(first, end - first);
		first = end;
	}
}

/* on_shmem_exit callback: returns what this process still has. */
static void
return_all(int code, Datum arg)
{
	return_blocks(MyProcPid, 0);
	state = NULL;
}

/* Was it a short time ago? */
static bool
is_recent(TimestampTz when)
{
	return when != 0 && !TimestampDifferenceExceeds(when, GetCurrentTimestamp(), REFUSED_MS);
}

/* The system has no huge page. */
static void
note_refusal(void)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	state->refused = GetCurrentTimestamp();
	LWLockRelease(lock);
}

/* Note how long a huge page took. */
static void
note_huge_page(double ms)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	state->huge_page_ms += (ms - state->huge_page_ms) / HUGE_PAGES_AVERAGED;
	if (state->huge_page_ms > SLOW_MS)
		state->slow = GetCurrentTimestamp();
	LWLockRelease(lock);
}

/* Get a huge page for a block of ours. */
static bool
make_huge(int block)
{
	instr_time	start;
	instr_time	time;

	INSTR_TIME_SET_CURRENT(start);
	state->blocks[block].huge = warm_up(block_address(block));
	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, start);
	if (gpusort_fault_host("slow") > 0)
		note_huge_page(2 * HUGE_PAGES_AVERAGED * SLOW_MS);
	else
		note_huge_page(INSTR_TIME_GET_MILLISEC(time));
	return state->blocks[block].huge;
}

/*
 * Get memory for those of our blocks that are cold.  Returns false if the system has
 * too little.  Nobody else changes the state of our blocks.
 */
static bool
warm_up_blocks(int first, int n)
{
	for (int b = first; b < first + n; b++)
	{
		WarmBlock  *block = &state->blocks[b];

		if (block->warm)
			continue;
		if (!is_recent(state->slow) && !make_huge(b))
		{
			cool_down(block_address(b), BLOCK_BYTES);
			note_refusal();
			return false;
		}
		block->warm = true;
	}
	return true;
}

/*
 * Take 'n' blocks in a row for a process and a group, warm ones if there are any, or else
 * others, up to block number 'cold_end'.  Returns the first one, or -1.
 */
static int
take_blocks(int n, int pid, uint32 group, int cold_end)
{
	int			first;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	first = find_free(n, nwarm, true);
	if (first < 0)
		first = find_free(n, cold_end, false);
	if (first >= 0)
		set_owner(first, n, pid, group);
	LWLockRelease(lock);
	return first;
}

static void
return_at_exit(void)
{
	if (returns_at_exit)
		return;
	on_shmem_exit(return_all, (Datum) 0);
	returns_at_exit = true;
}

/* Take warm blocks for this process.  Returns the first one, or -1. */
static int
take_warm(int n)
{
	int			first = take_blocks(n, MyProcPid, 0, is_recent(state->refused) ? 0 : nwarm);

	if (first < 0 || warm_up_blocks(first, n))
		return first;
	gpusort_warm_memory_return(block_address(first), (Size) n * BLOCK_BYTES);
	return -1;
}

/* Take blocks for a group, warm or not.  Returns the first one, or -1. */
static int
take_for_group(const GsWarmGroup *group, int n)
{
	int			first = take_blocks(n, group->pid, group->number, nblocks);

	if (first >= 0 && nwarm > 0 && !is_recent(state->refused))
		(void) warm_up_blocks(first, n);

	/* What is left gets ordinary pages, from their first access on. */
	for (int b = first; first >= 0 && b < first + n; b++)
		state->blocks[b].warm = true;
	return first;
}

char *
gpusort_warm_memory_take(const GsWarmGroup *group, Size size)
{
	Size		n = size / BLOCK_BYTES;
	int			first;

	if (state == NULL || n > (Size) (group != NULL ? nblocks : nwarm))
		return NULL;
	return_at_exit();
	first = group != NULL ? take_for_group(group, (int) n) : take_warm((int) n);
	return first >= 0 ? block_address(first) : NULL;
}

void
gpusort_warm_memory_return(char *memory, Size size)
{
	/* It is NULL if the process is about to end. */
	if (state != NULL)
		free_blocks((int) ((memory - base) / BLOCK_BYTES), (int) (size / BLOCK_BYTES));
}

/* ----------------------------------------------------------------
 *		groups
 * ----------------------------------------------------------------
 */

bool
gpusort_warm_memory_create_group(GsWarmGroup *group)
{
	if (state == NULL)
		return false;
	return_at_exit();
	LWLockAcquire(lock, LW_EXCLUSIVE);
	if (++state->last_group == 0)
		state->last_group = 1;
	group->pid = MyProcPid;
	group->number = state->last_group;
	LWLockRelease(lock);
	return true;
}

void
gpusort_warm_memory_end_group(void *arg)
{
	const GsWarmGroup *group = arg;

	if (state != NULL)
		return_blocks(group->pid, group->number);
}

Size
gpusort_warm_memory_limit(void)
{
	return nwarm * BLOCK_BYTES;
}

Size
gpusort_warm_memory_shared_limit(void)
{
	return state == NULL ? 0 : nblocks * BLOCK_BYTES;
}

void
gpusort_warm_memory_status(GsWarmMemoryStatus *status)
{
	memset(status, 0, sizeof(GsWarmMemoryStatus));
	status->reason = reason;
	status->limit = gpusort_warm_memory_limit();
	if (state == NULL)
		return;
	LWLockAcquire(lock, LW_SHARED);
	for (int b = 0; b < nblocks; b++)
	{
		status->present += state->blocks[b].warm ? BLOCK_BYTES : 0;
		status->huge += state->blocks[b].huge ? BLOCK_BYTES : 0;
		status->in_use += state->blocks[b].pid != 0 ? BLOCK_BYTES : 0;
	}
	LWLockRelease(lock);
}

/* ----------------------------------------------------------------
 *		the worker
 * ----------------------------------------------------------------
 */

/*
 * Take a free block that is due to be given back, or else one with ordinary pages.  Sorts take the
 * first blocks first.  Returns -1 if there is none.
 */
static int
take_for_worker(bool due)
{
	TimestampTz now = GetCurrentTimestamp();
	int			found = -1;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (int i = 0; i < nwarm && found < 0; i++)
	{
		int			b = due ? nwarm - 1 - i : i;
		const WarmBlock *block = &state->blocks[b];
		bool		wanted = due ?
			TimestampDifferenceExceeds(block->free_since, now, gpusort_warm_memory_timeout * 1000) :
			!block->huge;

		if (block->warm && block->pid == 0 && wanted)
			found = b;
	}
	if (found >= 0)
		set_owner(found, 1, MyProcPid, 0);
	LWLockRelease(lock);
	return found;
}

/* Return a block, whose time without use goes on. */
static void
release_block(int block)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	set_owner(block, 1, 0, 0);
	LWLockRelease(lock);
}

/* Give back what is due. */
static void
give_back(void)
{
	int			block;

	while ((block = take_for_worker(true)) >= 0)
	{
		cool_down(block_address(block), BLOCK_BYTES);
		state->blocks[block].warm = state->blocks[block].huge = false;
		release_block(block);
	}
}

/* Make huge pages of ordinary ones, unless the system has none. */
static void
make_free_blocks_huge(void)
{
	int			block;
	bool		made = true;

	while (made && !ShutdownRequestPending && (block = take_for_worker(false)) >= 0)
	{
		made = make_huge(block);
		release_block(block);
	}
}

void
gpusort_warm_memory_main(Datum arg)
{
	uint32		wait_event;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	wait_event = GPUSORT_NEW_WAIT_EVENT("GpuSortMemoryMain");
	return_at_exit();

	while (!ShutdownRequestPending)
	{
		give_back();
		make_free_blocks_huge();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, LOOK_MS,
						 wait_event);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}

	/* Not 0, after which the worker would not be restarted. */
	proc_exit(1);
}
