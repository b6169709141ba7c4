/*-------------------------------------------------------------------------
 *
 * sink_node.c
 *		The GpuSortSink executor node: each process puts its rows into a sort.
 *
 * In a parallel plan, the sink is below the Gather that feeds a GpuSort:
 *
 *		GpuSort -> Gather -> GpuSortSink -> partial plan
 *
 * Sending a row through a Gather costs more than sorting it.  So the sinks
 * return no rows.  When the Gather has ended, the rows have gone to one of
 * these instead:
 *
 * - If there is a GPU session, each process has put its rows into that
 *   session, and perhaps into a file as well, as a copy in case the GPU is
 *   lost.  When no GPU has room for more, the leader has written the rows
 *   that are there as a run, and each process has sorted the rows that
 *   follow as below.
 * - If not, all processes have sorted their rows together, in memory that they
 *   share, if the rows fit there.
 * - Otherwise each worker has sorted its rows in a sort of its own, and has
 *   written them as one run to a file that the leader will read.  The leader,
 *   if it participates, has put its rows into the GpuSort's sort, where they
 *   stay in memory.
 *
 * If none of these is possible, or if a GPU session is lost and there is no copy, the
 * sink returns its input to the Gather.
 *
 * If a Limit above wants only a few rows, the GpuSort keeps them in a heap.  So does
 * each sink then, which returns the first rows of its process to the Gather.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/extensible.h"
#include "optimizer/optimizer.h"
#include "port/atomics.h"
#include "utils/memutils.h"

#include "exec/gpusort_explain.h"
#include "exec/gpusort_private.h"
#include "exec/row_source.h"
#include "exec/sink_node.h"
#include "sort/base/sort_stats.h"
#include "sort/bounded_sort.h"
#include "sort/disk/shared_merge.h"
#include "sort/gpu/gpu_producers.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/shared_sort.h"
#include "work.h"

/* Where the sink puts rows. */
typedef enum GsSinkMode
{
	GS_SINK_CLOSED,				/* returns them to the Gather */
	GS_SINK_FIRST_ROWS,			/* returns the first of them to the Gather */
	GS_SINK_GPU,
	GS_SINK_CPU					/* a shared sort, or runs */
} GsSinkMode;

/*
 * Stored in the query's dynamic shared memory, or in the leader's sink.  Only
 * the leader changes it, except for 'failure', which any process may set.  The
 * others read 'drained' while it changes; what it announces is ordered by the
 * states of the sessions' slots.
 */
typedef struct GsSinkShared
{
	GsSinkMode	mode;
	GsClientHandle handle;		/* of the GPU session, for GS_SINK_GPU */
	bool		copied;			/* do its rows go to 'copies' as well? */
	GsRunSetHandle copies;
	bool		may_overflow;	/* for GS_SINK_GPU: may rows become runs? */

	/* For GS_SINK_CPU, and for GS_SINK_GPU with 'may_overflow'. */
	struct GsSharedSort *shared_sort;	/* or NULL */
	GsRunSetHandle runs;
	int			batch_processes;	/* see GsSortSpec */
	int64		bound;			/* rows wanted of each process; 0 for all */
	bool		whole_tuples;	/* how the sort keeps rows */
	pg_atomic_uint32 failure;	/* GsFallback */
	pg_atomic_uint32 drained;	/* have the GPU sessions been written as runs,
								 * so that GPUs are free for batches? */
} GsSinkShared;

struct GsSinkState
{
	CustomScanState css;		/* must be first */
	GsSortSpec	spec;
	GsRowSource *source;		/* NULL before the first row is requested */
	bool		done;			/* has this process added its rows? */
	bool		may_go_ahead;	/* see gpusort_sink_is_ahead() */
	bool		ahead;
	int64		nrows;			/* rows that this process has added, or
								 * returned for GS_SINK_FIRST_ROWS */
	GsSort	   *sort;			/* the leader's sort */
	bool		input_ended;	/* has the source returned its last row? */
	TupleTableSlot *refused;	/* row for which no GPU had room, or NULL */
	GsGpuSession *full;			/* where others are that go to runs, or NULL */
	TupleTableSlot *left;		/* the last of these */
	GsBoundedSort *first_rows;	/* for GS_SINK_FIRST_ROWS, while it returns
								 * rows */
	GsSharedCopy copy;			/* of the leader's rows, for GS_SINK_GPU */
	GsSinkShared local;			/* the leader's settings */
	GsSinkShared *shared;		/* the settings in force: in shared memory if
								 * there are workers, else 'local' */
	GsWorkerReports *reports;	/* reports of workers, in shared memory */
	GsWorkerReports *kept_reports;	/* the leader's copy, or NULL */
};

static void gpusort_sink_begin(CustomScanState *css, EState *estate,
							   int eflags);
static TupleTableSlot *gpusort_sink_exec(CustomScanState *css);
static void gpusort_sink_end(CustomScanState *css);
static void gpusort_sink_rescan(CustomScanState *css);
static Size gpusort_sink_estimate_dsm(CustomScanState *css,
									  ParallelContext *pcxt);
static void gpusort_sink_init_dsm(CustomScanState *css, ParallelContext *pcxt,
								  void *coordinate);
static void gpusort_sink_reinit_dsm(CustomScanState *css,
									ParallelContext *pcxt, void *coordinate);
static void gpusort_sink_init_worker(CustomScanState *css, shm_toc *toc,
									 void *coordinate);
static void gpusort_sink_shutdown(CustomScanState *css);
static void gpusort_sink_explain(CustomScanState *css, List *ancestors,
								 struct ExplainState *es);

static const CustomExecMethods sink_methods = {
	.CustomName = "GpuSortSink",
	.BeginCustomScan = gpusort_sink_begin,
	.ExecCustomScan = gpusort_sink_exec,
	.EndCustomScan = gpusort_sink_end,
	.ReScanCustomScan = gpusort_sink_rescan,
	.EstimateDSMCustomScan = gpusort_sink_estimate_dsm,
	.InitializeDSMCustomScan = gpusort_sink_init_dsm,
	.ReInitializeDSMCustomScan = gpusort_sink_reinit_dsm,
	.InitializeWorkerCustomScan = gpusort_sink_init_worker,
	.ShutdownCustomScan = gpusort_sink_shutdown,
	.ExplainCustomScan = gpusort_sink_explain,
};

Node *
gpusort_sink_create_state(CustomScan *plan)
{
	GsSinkState *sink = palloc0(sizeof(GsSinkState));

	NodeSetTag(sink, T_CustomScanState);
	sink->css.methods = &sink_methods;
	pg_atomic_init_u32(&sink->local.failure, GS_FALLBACK_NONE);
	pg_atomic_init_u32(&sink->local.drained, 0);
	sink->shared = &sink->local;
	return (Node *) sink;
}

/* ----------------------------------------------------------------
 *		functions for the GpuSort above
 * ----------------------------------------------------------------
 */

GsSinkState *
gpusort_sink_find(PlanState *input)
{
	PlanState  *child;

	if (!IsA(input, GatherState))
		return NULL;
	child = outerPlanState(input);
	if (child == NULL || !IsA(child, CustomScanState) ||
		((CustomScanState *) child)->methods != &sink_methods)
		return NULL;
	return (GsSinkState *) child;
}

PlanState *
gpusort_sink_input(GsSinkState *sink)
{
	return outerPlanState(sink);
}

bool
gpusort_sink_keeps_order(const PlanState *gather)
{
	int			num_workers = castNode(Gather, gather->plan)->num_workers;

	/* The leader participates nevertheless if there are no workers. */
	return Min(num_workers, max_parallel_workers) <= 1 &&
		!parallel_leader_participation;
}

/*
 * Copy the leader's settings to the shared state.  This is done when the
 * settings change, for workers that are not launched again, and whenever
 * shared memory is initialized, for those that are.
 */
static void
tell_workers(const GsSinkState *sink, GsSinkShared *shared)
{
	shared->mode = sink->local.mode;
	shared->handle = sink->local.handle;
	shared->copied = sink->local.copied;
	shared->copies = sink->local.copies;
	shared->may_overflow = sink->local.may_overflow;
	shared->shared_sort = sink->local.shared_sort;
	shared->runs = sink->local.runs;
	shared->batch_processes = sink->local.batch_processes;
	shared->bound = sink->local.bound;
	shared->whole_tuples = sink->local.whole_tuples;
	pg_atomic_write_u32(&shared->failure, GS_FALLBACK_NONE);
	pg_atomic_write_u32(&shared->drained, 0);
}

void
gpusort_sink_open_gpu(GsSinkState *sink, bool whole_tuples, GsSort *sort,
					  GsClientHandle handle, const GsRunSetHandle *copies,
					  const GsRunSetHandle *runs, bool may_go_ahead)
{
	sink->nrows = 0;
	sink->sort = sort;
	sink->may_go_ahead = may_go_ahead;
	sink->ahead = false;
	sink->copy.extents = 0;
	sink->local.may_overflow = runs != NULL;
	if (runs != NULL)
	{
		sink->local.shared_sort = gpusort_sort_shared(sort);
		sink->local.runs = *runs;
		sink->local.batch_processes = gpusort_sort_batch_processes(sort);
	}
	sink->local.bound = 0;
	sink->local.copied = copies != NULL;
	if (copies != NULL)
		sink->local.copies = *copies;
	sink->local.mode = GS_SINK_GPU;
	sink->local.whole_tuples = whole_tuples;
	sink->local.handle = handle;
	tell_workers(sink, sink->shared);
}

void
gpusort_sink_open_cpu(GsSinkState *sink, bool whole_tuples, GsSort *sort,
					  GsRunSetHandle runs, int64 bound, bool may_go_ahead)
{
	sink->nrows = 0;
	sink->sort = sort;
	sink->may_go_ahead = may_go_ahead;
	sink->ahead = false;
	sink->local.mode = GS_SINK_CPU;
	sink->local.shared_sort = gpusort_sort_shared(sort);
	sink->local.whole_tuples = whole_tuples;
	sink->local.runs = runs;
	sink->local.batch_processes = gpusort_sort_batch_processes(sort);
	sink->local.bound = bound;
	tell_workers(sink, sink->shared);
}

void
gpusort_sink_open_bounded(GsSinkState *sink, int64 bound)
{
	sink->ahead = false;
	sink->local.mode = GS_SINK_FIRST_ROWS;
	sink->local.bound = bound;
	tell_workers(sink, sink->shared);
}

/* Does a node return columns and constants only, so that its input may be NULLs? */
static bool
computes_nothing(const PlanState *state)
{
	ListCell   *lc;

	if (state->ps_ProjInfo == NULL)
		return true;
	foreach(lc, state->plan->targetlist)
	{
		const Expr *expr = lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(expr, Var) && !IsA(expr, Const))
			return false;
	}
	return true;
}

bool
gpusort_sink_may_go_ahead(const PlanState *gather)
{
	return computes_nothing(gather) && parallel_leader_participation;
}

void
gpusort_sink_forget_sort(GsSinkState *sink)
{
	sink->sort = NULL;
}

void
gpusort_sink_close(GsSinkState *sink)
{
	sink->ahead = false;
	sink->local.mode = GS_SINK_CLOSED;
	tell_workers(sink, sink->shared);
}

GsFallback
gpusort_sink_failure(const GsSinkState *sink)
{
	return (GsFallback) pg_atomic_read_u32(&sink->shared->failure);
}

bool
gpusort_sink_is_ahead(const GsSinkState *sink)
{
	return sink->ahead;
}

/* Take one row off what EXPLAIN shows. */
static void
uncount_row(PlanState *state)
{
	if (state->instrument != NULL)
		state->instrument->tuplecount -= 1;
}

void
gpusort_sink_forget_row(GsSinkState *sink, PlanState *gather)
{
	uncount_row(&sink->css.ss.ps);
	uncount_row(gather);
}

const GsSharedRun *
gpusort_sink_run(const GsSinkState *sink, int number)
{
	int			found = 0;

	/* Without shared memory there have been no workers. */
	if ((sink->local.mode != GS_SINK_CPU && sink->local.mode != GS_SINK_GPU) ||
		sink->shared == &sink->local)
		return NULL;
	for (int n = 0; n < gpusort_worker_reports_count(sink->reports); n++)
	{
		const GsSinkReport *report = gpusort_worker_reports_get(sink->reports, n);

		if (report != NULL && report->sorted && found++ == number)
			return &report->run;
	}
	return NULL;
}

const GsSharedCopy *
gpusort_sink_copy(const GsSinkState *sink, int number)
{
	int			found = 0;

	if (sink->copy.extents > 0 && found++ == number)
		return &sink->copy;
	if (sink->shared == &sink->local)
		return NULL;
	for (int n = 0; n < gpusort_worker_reports_count(sink->reports); n++)
	{
		const GsSinkReport *report = gpusort_worker_reports_get(sink->reports, n);

		if (report != NULL && report->copy.extents > 0 && found++ == number)
			return &report->copy;
	}
	return NULL;
}

/* ----------------------------------------------------------------
 *		execution
 * ----------------------------------------------------------------
 */

static TupleTableSlot *
exec_proc_node(PlanState *state)
{
	return gpusort_sink_exec((CustomScanState *) state);
}

static void
gpusort_sink_begin(CustomScanState *css, EState *estate, int eflags)
{
	GsSinkState *sink = (GsSinkState *) css;
	CustomScan *plan = castNode(CustomScan, css->ss.ps.plan);

	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate, eflags);
	sink->spec.keys = gpusort_private_keys(plan);
	sink->spec.plan_node = plan->scan.plan.plan_node_id;
	sink->spec.expected_rows = plan->scan.plan.plan_rows;
	sink->spec.expected_width = plan->scan.plan.plan_width;
	css->ss.ps.ExecProcNode = exec_proc_node;
}

/* In a worker: report to the leader. */
static void
publish(GsSinkState *sink, GsSinkReport *report)
{
	report->nrows = sink->nrows;
	gpusort_worker_reports_publish(sink->reports, report);
}

static const GsKeyPlan *
make_key_plan(const GsSinkState *sink, int string_words)
{
	GsFallback	reason;

	return gpusort_key_plan_create(&sink->spec.keys, string_words, &reason);
}

/* Returns the next row of this process's share, or NULL. */
static TupleTableSlot *
read_source(GsSinkState *sink)
{
	TupleTableSlot *slot = NULL;

	if (!sink->input_ended)
		slot = gpusort_row_source_next(sink->source);
	sink->input_ended = TupIsNull(slot);
	return sink->input_ended ? NULL : slot;
}

/*
 * Add this process's share of the rows to the GPU session, and if that is full and there is
 * no copy, to those that continue it, which *session becomes.  Returns false after a
 * failure.  Then all rows are in 'copy'; if that is NULL, sink->refused is the row that could
 * not be added.
 */
static bool
add_rows(GsSinkState *sink, GsGpuSession **session, GsRowCopy *copy)
{
	bool		failed = false;
	TupleTableSlot *slot;

	while ((slot = read_source(sink)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		if (copy == NULL)
		{
			if (!gpusort_gpu_session_put_shared(session, slot->tts_values,
												slot->tts_isnull))
			{
				sink->refused = slot;
				return false;
			}
		}
		else if (unlikely(failed ||
						  !gpusort_gpu_session_put(*session, slot->tts_values,
												   slot->tts_isnull)))
		{
			/* The leader will sort the copies, so continue with ours. */
			if (!failed)
				gpusort_gpu_session_copy_rest(*session);
			failed = true;
			gpusort_row_copy_add_row(copy, slot->tts_values, slot->tts_isnull);
		}
		sink->nrows++;
	}
	if (copy == NULL)
		return gpusort_gpu_session_flush_shared(session);
	if (!failed && gpusort_gpu_session_flush(*session))
		return true;
	gpusort_gpu_session_copy_rest(*session);
	return false;
}

/* Create this process's copy of the rows, or return NULL. */
static GsRowCopy *
create_copy(const GsSinkState *sink, GsGpuSession *session)
{
	GsRunTarget target = {
		.set = sink->shared->copies,
		.producer = ParallelWorkerNumber + 1	/* 0 for the leader */
	};
	GsRowCopy  *copy = NULL;

	if (sink->shared->copied)
		copy = gpusort_row_copy_create(&sink->spec, &target);
	gpusort_gpu_session_keep_copy(session, copy);
	return copy;
}

/* Have any process's rows been lost, so that all of the input must be read again? */
static inline bool
has_failed(const GsSinkState *sink)
{
	return pg_atomic_read_u32(&sink->shared->failure) != GS_FALLBACK_NONE;
}

/* Rows of this process's sort are lost, or those of another one. */
static void
give_up(GsSinkState *sink, GsSort *sort)
{
	sink->ahead = false;
	if (!has_failed(sink))
		pg_atomic_write_u32(&sink->shared->failure, gpusort_sort_loss(sort));
	gpusort_sort_give_up(sort);
}

/* GsInput.next of a worker's sort. */
static TupleTableSlot *
next_counted_row(void *arg)
{
	GsSinkState *sink = arg;
	TupleTableSlot *slot = NULL;

	/* If rows are lost, no more are wanted. */
	if (likely(!has_failed(sink)))
		slot = read_source(sink);
	if (slot != NULL)
		sink->nrows++;
	return slot;
}

/*
 * The same after an overflow of the GPU sessions: first the rows that these have not taken,
 * most of which have been counted.
 */
static TupleTableSlot *
next_left_row(void *arg)
{
	GsSinkState *sink = arg;
	TupleTableSlot *slot = sink->refused;

	if (slot != NULL)
	{
		sink->refused = NULL;
		sink->nrows++;
		return slot;
	}
	if (sink->full != NULL)
	{
		slot = ExecClearTuple(sink->left);
		if (gpusort_gpu_session_take_left(sink->full, slot->tts_values, slot->tts_isnull))
			return ExecStoreVirtualTuple(slot);
		if (!gpusort_gpu_session_has_no_room(sink->full))
			pg_atomic_write_u32(&sink->shared->failure,
								gpusort_gpu_session_failure(sink->full));
		sink->full = NULL;
	}
	return next_counted_row(sink);
}

/* In the leader: put the rows that next() returns into its own sort, and sort them there. */
static void
fill_own_sort(GsSinkState *sink, TupleTableSlot *(*next) (void *arg))
{
	TupleTableSlot *slot;

	while ((slot = next(sink)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_sort_put(sink->sort, slot))
			break;
	}
	sink->ahead = sink->may_go_ahead;
	if (slot != NULL || has_failed(sink) ||
		!gpusort_sort_end_put(sink->sort, &sink->ahead))
		give_up(sink, sink->sort);
}

/* GsInput.has_devices of a worker's sort. */
static bool
has_devices(void *arg)
{
	const GsSinkState *sink = arg;

	return sink->shared->mode == GS_SINK_CPU ||
		pg_atomic_read_u32(&sink->shared->drained) != 0;
}

/*
 * In a worker: sort the rows that next() returns together with the other processes, or else
 * alone, and write them as a run.
 */
static void
sort_rows(GsSinkState *sink, MemoryContext context,
		  TupleTableSlot *(*next) (void *arg))
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsRunTarget target = {
		.set = sink->shared->runs,
		.producer = ParallelWorkerNumber
	};
	GsSortSpec	spec = sink->spec;
	GsSinkReport report = {.sorted = true};
	GsSort	   *sort;

	spec.shared = sink->shared->shared_sort;
	spec.process = ParallelWorkerNumber + 1;
	spec.entered = sink->shared->mode == GS_SINK_GPU;
	spec.key_plan = make_key_plan(sink, spec.shared == NULL ? 1 :
								  gpusort_shared_sort_string_words(spec.shared));
	spec.input.next = next;
	spec.input.has_devices = has_devices;
	spec.input.arg = sink;
	spec.target = &target;
	spec.bound = sink->shared->bound;
	spec.nested = true;
	spec.batch_processes = sink->shared->batch_processes;
	sort = gpusort_sort_begin(&spec);
	MemoryContextSwitchTo(caller);
	if (!gpusort_sort_attach(sort))
	{
		gpusort_sort_end(sort);
		return;
	}
	if (gpusort_sort_perform_once(sort))
	{
		gpusort_sort_report(sort, &report.sort);
		report.run = *gpusort_sort_shared_run(sort);
		publish(sink, &report);
	}
	else
		give_up(sink, sort);
	gpusort_sort_end(sort);
}

/* ----------------------------------------------------------------
 *		rows for a GPU
 * ----------------------------------------------------------------
 */

/* Returns the merge of the runs of all processes, if they may merge; or NULL. */
static GsSharedMerge *
find_merge(const GsSinkState *sink)
{
	if (sink->shared->shared_sort == NULL)
		return NULL;
	return gpusort_shared_merge_find(gpusort_shared_sort_extra(sink->shared->shared_sort));
}

/*
 * Before the first row, if there can be runs: have the other processes wait for ours.
 * Returns false if all rows have been added.
 */
static bool
expect_overflow(GsSinkState *sink)
{
	GsSharedMerge *merge;

	if (!sink->shared->may_overflow)
		return true;
	if (!IsParallelWorker())
		return gpusort_sort_attach(sink->sort);
	merge = find_merge(sink);
	return merge == NULL || gpusort_shared_merge_enter(merge);
}

/* After the last row: there are no runs of this process.  'lost' if rows are missing. */
static void
end_without_overflow(GsSinkState *sink, bool lost)
{
	GsSharedMerge *merge;

	if (!sink->shared->may_overflow)
		return;
	if (!IsParallelWorker())
	{
		if (lost)
			gpusort_sort_give_up(sink->sort);
		else
			gpusort_sort_leave(sink->sort);
		return;
	}
	merge = find_merge(sink);
	if (merge != NULL)
		gpusort_shared_merge_leave(merge, lost);
}

/* No GPU has room for more rows: sort the others. */
static void
overflow(GsSinkState *sink, GsGpuSession *session, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);

	sink->full = session;
	sink->left = MakeSingleTupleTableSlot(sink->spec.tupdesc, &TTSOpsVirtual);
	MemoryContextSwitchTo(caller);
	if (IsParallelWorker())
		sort_rows(sink, context, next_left_row);
	else if (gpusort_sort_overflow(sink->sort))
	{
		pg_atomic_write_u32(&sink->shared->drained, 1);
		fill_own_sort(sink, next_left_row);
	}
	else
		give_up(sink, sink->sort);
	ExecDropSingleTupleTableSlot(sink->left);
	sink->full = NULL;
}

/* In any process: put the rows into the GPU session. */
static void
fill_gpu_session(GsSinkState *sink, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsSinkReport report = {.sorted = false};
	GsGpuSession *session;
	GsRowCopy  *copy;
	bool		added;

	sink->spec.key_plan = make_key_plan(sink, GPUSORT_GPU_STRING_WORDS);
	session = gpusort_gpu_session_attach(&sink->spec, sink->shared->handle);
	copy = create_copy(sink, session);
	MemoryContextSwitchTo(caller);
	added = add_rows(sink, &session, copy);
	if (sink->shared->may_overflow && gpusort_gpu_session_has_no_room(session))
	{
		overflow(sink, session, context);
		return;
	}
	if (!added)
		pg_atomic_write_u32(&sink->shared->failure,
							gpusort_gpu_session_failure(session));
	end_without_overflow(sink, !added);
	if (copy != NULL)
	{
		gpusort_row_copy_share(copy, &report.copy);
		gpusort_row_copy_end(copy);
	}
	if (IsParallelWorker())
		publish(sink, &report);
	else
		sink->copy = report.copy;
}

/* ----------------------------------------------------------------
 *		where rows go
 * ----------------------------------------------------------------
 */

/* As the GpuSort does it, to whose sort the rows go. */
static GsRowSource *
create_source(GsSinkState *sink)
{
	PlanState  *input = outerPlanState(sink);
	TupleDesc	tupdesc = sink->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	bool		whole_tuples = sink->shared->whole_tuples;
	const GsNarrowRows *narrow = NULL;

	if (!whole_tuples)
		narrow = gpusort_narrow_rows_create(input->plan, tupdesc,
											&sink->spec.keys);
	if (narrow != NULL)
		return gpusort_row_source_create_narrow(input, narrow, &sink->spec);
	return gpusort_row_source_create(input, tupdesc, whole_tuples, &sink->spec);
}

/* Read this process's share of the rows, and put them where they belong. */
static void
take_rows(GsSinkState *sink)
{
	bool		gpu = sink->shared->mode == GS_SINK_GPU;
	MemoryContext query = sink->css.ss.ps.state->es_query_cxt;
	MemoryContext caller = MemoryContextSwitchTo(query);
	MemoryContext context = AllocSetContextCreate(query, "pg_gpusort sink",
												  ALLOCSET_SMALL_SIZES);
	GsSortCounts page_scan = {.page_scans = 1};

	sink->input_ended = false;
	sink->refused = NULL;
	if (sink->source == NULL)
		sink->source = create_source(sink);
	if (gpusort_row_source_prepare(sink->source))
		gpusort_stats_count_sort(gpu ? GS_KIND_GPU : GS_KIND_CPU,
								 &page_scan);
	if (gpu)
	{
		if (expect_overflow(sink))
			fill_gpu_session(sink, context);
	}
	else if (IsParallelWorker())
		sort_rows(sink, context, next_counted_row);
	else if (gpusort_sort_attach(sink->sort))
		fill_own_sort(sink, next_counted_row);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* Returns the next row of the input, in this node's own slot. */
static TupleTableSlot *
forward_row(GsSinkState *sink)
{
	TupleTableSlot *slot = sink->css.ss.ss_ScanTupleSlot;
	TupleTableSlot *row = ExecProcNode(outerPlanState(sink));
	int			natts = slot->tts_tupleDescriptor->natts;

	ExecClearTuple(slot);
	if (TupIsNull(row))
		return slot;
	slot_getallattrs(row);
	memcpy(slot->tts_values, row->tts_values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull, row->tts_isnull, natts * sizeof(bool));
	return ExecStoreVirtualTuple(slot);
}

/* GsInput.next of a heap. */
static TupleTableSlot *
execute_input(void *arg)
{
	return ExecProcNode(outerPlanState((GsSinkState *) arg));
}

/* Keep the first rows of the input in a heap. */
static void
keep_first_rows(GsSinkState *sink)
{
	MemoryContext caller =
		MemoryContextSwitchTo(sink->css.ss.ps.state->es_query_cxt);
	GsSortSpec	spec = {
		.input.next = execute_input,
		.input.arg = sink,
		.expected_rows = sink->spec.expected_rows,
		.plan_node = sink->spec.plan_node
	};

	sink->first_rows =
		gpusort_bounded_sort(&spec, &sink->spec.keys,
							 sink->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor,
							 sink->shared->bound);
	sink->nrows = 0;
	MemoryContextSwitchTo(caller);
}

static void
end_first_rows(GsSinkState *sink)
{
	/* The slot's columns point into the memory of the heap. */
	ExecClearTuple(sink->css.ss.ss_ScanTupleSlot);
	if (sink->first_rows != NULL)
		gpusort_bounded_end(sink->first_rows);
	sink->first_rows = NULL;
}

/* Returns the next one of the first rows, in order. */
static TupleTableSlot *
next_first_row(GsSinkState *sink)
{
	TupleTableSlot *slot = sink->css.ss.ss_ScanTupleSlot;

	if (sink->done)
		return ExecClearTuple(slot);
	if (sink->first_rows == NULL)
		keep_first_rows(sink);

	/* The heap must not be asked for more rows than it was told to keep. */
	if (sink->nrows < sink->shared->bound)
	{
		gpusort_bounded_next(sink->first_rows, true, slot);
		if (!TupIsNull(slot))
		{
			sink->nrows++;
			return slot;
		}
	}
	end_first_rows(sink);
	sink->done = true;
	return slot;
}

static TupleTableSlot *
gpusort_sink_exec(CustomScanState *css)
{
	GsSinkState *sink = (GsSinkState *) css;

	CHECK_FOR_INTERRUPTS();
	if (sink->shared->mode == GS_SINK_CLOSED)
		return forward_row(sink);
	if (sink->shared->mode == GS_SINK_FIRST_ROWS)
		return next_first_row(sink);
	if (sink->done)
		return ExecClearTuple(css->ss.ss_ScanTupleSlot);
	take_rows(sink);
	sink->done = true;
	return sink->ahead ? ExecStoreAllNullTuple(css->ss.ss_ScanTupleSlot) :
		ExecClearTuple(css->ss.ss_ScanTupleSlot);
}

static void
gpusort_sink_end(CustomScanState *css)
{
	end_first_rows((GsSinkState *) css);
	ExecEndNode(outerPlanState(css));
}

static void
gpusort_sink_rescan(CustomScanState *css)
{
	GsSinkState *sink = (GsSinkState *) css;

	end_first_rows(sink);
	sink->done = false;
	sink->ahead = false;
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

/* ----------------------------------------------------------------
 *		parallel execution
 * ----------------------------------------------------------------
 */

/* The workers' reports follow the shared state. */
static GsWorkerReports *
shared_reports(void *coordinate)
{
	return (GsWorkerReports *) ((char *) coordinate +
								MAXALIGN(sizeof(GsSinkShared)));
}

static Size
gpusort_sink_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	return add_size(MAXALIGN(sizeof(GsSinkShared)),
					gpusort_worker_reports_size(pcxt->nworkers,
												sizeof(GsSinkReport)));
}

static void
gpusort_sink_init_dsm(CustomScanState *css, ParallelContext *pcxt,
					  void *coordinate)
{
	GsSinkState *sink = (GsSinkState *) css;

	sink->shared = coordinate;
	sink->reports = shared_reports(coordinate);
	pg_atomic_init_u32(&sink->shared->failure, GS_FALLBACK_NONE);
	pg_atomic_init_u32(&sink->shared->drained, 0);
	gpusort_worker_reports_init(sink->reports, pcxt->nworkers,
								sizeof(GsSinkReport));
	tell_workers(sink, sink->shared);
}

static void
gpusort_sink_reinit_dsm(CustomScanState *css, ParallelContext *pcxt,
						void *coordinate)
{
	gpusort_worker_reports_init(shared_reports(coordinate), pcxt->nworkers,
								sizeof(GsSinkReport));
	tell_workers((GsSinkState *) css, coordinate);
}

static void
gpusort_sink_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	GsSinkState *sink = (GsSinkState *) css;

	sink->shared = coordinate;
	sink->reports = shared_reports(coordinate);
}

/*
 * The Gather will wait for the workers, so end their work.  The shared memory is about to be
 * freed, so copy what is needed later.
 */
static void
gpusort_sink_shutdown(CustomScanState *css)
{
	GsSinkState *sink = (GsSinkState *) css;

	if (sink->sort != NULL)
		gpusort_sort_stop(sink->sort);
	if (IsParallelWorker() || sink->shared == &sink->local)
		return;
	pg_atomic_write_u32(&sink->local.failure, gpusort_sink_failure(sink));
	if (css->ss.ps.instrument != NULL)
		sink->kept_reports =
			gpusort_worker_reports_copy(sink->reports,
										css->ss.ps.state->es_query_cxt);
	sink->shared = &sink->local;
}

/*
 * Returns how many rows all processes have added in the last execution, or -1
 * if the sink has returned them to the Gather.
 */
static int64
added_rows(const GsSinkState *sink)
{
	int64		nrows = sink->nrows;

	if (sink->local.mode != GS_SINK_GPU && sink->local.mode != GS_SINK_CPU)
		return -1;
	for (int n = 0; n < gpusort_worker_reports_count(sink->kept_reports); n++)
	{
		const GsSinkReport *report =
			gpusort_worker_reports_get(sink->kept_reports, n);

		if (report != NULL)
			nrows += report->nrows;
	}
	return nrows;
}

/* Have workers written runs? */
static bool
has_runs(const GsSinkState *sink)
{
	for (int n = 0; n < gpusort_worker_reports_count(sink->kept_reports); n++)
	{
		const GsSinkReport *report =
			gpusort_worker_reports_get(sink->kept_reports, n);

		if (report != NULL && report->sorted)
			return true;
	}
	return false;
}

static void
gpusort_sink_explain(CustomScanState *css, List *ancestors,
					 struct ExplainState *es)
{
	const GsSinkState *sink = (GsSinkState *) css;

	gpusort_explain_sink(added_rows(sink), sink->kept_reports,
						 sink->local.mode == GS_SINK_CPU || has_runs(sink), es);
}
