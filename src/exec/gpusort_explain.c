/*-------------------------------------------------------------------------
 *
 * gpusort_explain.c
 *		Prints what EXPLAIN shows of GpuSort and GpuSortSink nodes.
 *
 * The sort key is printed exactly as for a Sort.  In the structured formats,
 * the sort method has the same properties as that of a Sort, so that tools can
 * read both.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "commands/explain.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "parser/parse_oper.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

#include "exec/gpusort_explain.h"
#include "exec/gpusort_private.h"
#include "key/key_encoding.h"
#include "service/service_shmem.h"

/* Prints what a process has reported about a node. */
typedef void (*GsReportPrinter) (const GsProducerReport *report, ExplainState *es);

/* Append the options of a sort key that differ from the defaults. */
static void
append_key_options(StringInfo text, Oid type, Oid operator, Oid collation,
				   bool nulls_first)
{
	TypeCacheEntry *type_entry = lookup_type_cache(type, TYPECACHE_LT_OPR |
												   TYPECACHE_GT_OPR);
	bool		descending = operator == type_entry->gt_opr;

	if (OidIsValid(collation) && collation != get_typcollation(type))
		appendStringInfo(text, " COLLATE %s",
						 quote_identifier(get_collation_name(collation)));
	if (descending)
		appendStringInfoString(text, " DESC");
	else if (operator != type_entry->lt_opr)
	{
		appendStringInfo(text, " USING %s", get_opname(operator));
		(void) get_equality_op_for_ordering_op(operator, &descending);
	}
	if (nulls_first != descending)
		appendStringInfoString(text, nulls_first ? " NULLS FIRST" :
							   " NULLS LAST");
}

/* Print what the sort keys are encoded from, unless all are by their values. */
static void
show_encodings(const GsSortKeys *keys, ExplainState *es)
{
	List	   *names = NIL;
	bool		by_value = true;

	for (int k = 0; k < keys->nkeys; k++)
	{
		GsKeyEncoding encoding = gpusort_key_encoding_find(keys->operators[k],
														   keys->collations[k], NULL);
		const char *name = gpusort_key_encoding_name(encoding.kind);

		names = lappend(names, unconstify(char *, name));
		by_value &= strcmp(name, "values") == 0;
	}
	if (!by_value)
		ExplainPropertyList("Sort Key Encoding", names, es);
}

/* Print the first 'nkeys' sort keys. */
static void
show_keys(const char *name, const CustomScan *gpusort, int nkeys, bool options,
		  List *ancestors, ExplainState *es)
{
	GsSortKeys	keys = gpusort_private_keys(gpusort);
	Plan	   *plan = unconstify(Plan *, &gpusort->scan.plan);
	List	   *context = set_deparse_context_plan(es->deparse_cxt, plan,
												   ancestors);
	List	   *columns = gpusort->custom_scan_tlist;
	bool		use_prefix = GPUSORT_EXPLAIN_RELATIONS(es) > 1 || es->verbose;
	List	   *texts = NIL;

	for (int k = 0; k < nkeys; k++)
	{
		TargetEntry *target = get_tle_by_resno(columns, keys.attnos[k]);
		StringInfoData text;

		initStringInfo(&text);
		appendStringInfoString(&text,
							   deparse_expression((Node *) target->expr,
												  context, use_prefix, true));
		if (options)
			append_key_options(&text, exprType((Node *) target->expr),
							   keys.operators[k], keys.collations[k], keys.nulls_first[k]);
		texts = lappend(texts, text.data);
	}
	ExplainPropertyList(name, texts, es);
}

void
gpusort_explain_keys(const CustomScan *gpusort, List *ancestors, ExplainState *es)
{
	GsSortTraits traits = gpusort_private_traits(gpusort);
	GsSortKeys	keys = gpusort_private_keys(gpusort);

	show_keys("Sort Key", gpusort, keys.nkeys, true, ancestors, es);
	if (traits.presorted > 0)
		show_keys("Presorted Key", gpusort, traits.presorted, false, ancestors, es);
	if (traits.divided > 0)
		show_keys("Divided By", gpusort, traits.divided, false, ancestors, es);
	if (traits.partition_keys > 0)
		ExplainPropertyInteger("Rows Of Each Partition", NULL, traits.partition_rows, es);
	if (es->verbose)
		show_encodings(&keys, es);
}

void
gpusort_explain_pair(const CustomScan *other, List *ancestors, ExplainState *es)
{
	show_keys("Divided With", other, gpusort_private_traits(other).divided, false, ancestors, es);
}

/* Start and end a line in text format. */
static void
begin_line(ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		appendStringInfoSpaces(es->str, es->indent * 2);
}

static void
end_line(ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		appendStringInfoChar(es->str, '\n');
}

static const char *const space_names[] = {
	[GS_KIND_GPU] = "Device Memory",
	[GS_KIND_CPU] = "Memory",
	[GS_KIND_EXTERNAL] = "Disk",
};

static void
show_method(const GsSortReport *report, ExplainState *es)
{
	const char *space = space_names[report->kind];

	if (es->format == EXPLAIN_FORMAT_TEXT)
		appendStringInfo(es->str, "Sort Method: %s  %s: " INT64_FORMAT "kB\n",
						 report->method, space, report->space_kb);
	else
	{
		ExplainPropertyText("Sort Method", report->method, es);
		ExplainPropertyInteger("Sort Space Used", "kB", report->space_kb, es);
		ExplainPropertyText("Sort Space Type", space, es);
	}
}

/* Print how long a phase took.  In text format, this is a part of a line. */
static void
show_phase(const char *label, const char *property, double ms, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		appendStringInfo(es->str, "%s=%.3f ms", label, ms);
	else
		ExplainPropertyFloat(property, "ms", ms, 3, es);
}

static void
show_phases(const GsSortReport *report, ExplainState *es)
{
	begin_line(es);
	show_phase("Sort Phases: drain", "Sort Drain Time", report->drain_ms, es);
	if (report->kind == GS_KIND_GPU)
		show_phase("  wait", "Sort Wait Time", report->wait_ms, es);
	show_phase("  sort", "Sort Time", report->sort_ms, es);
	if (report->fetches)
		show_phase("  fetch", "Sort Fetch Time", report->fetch_ms, es);
	end_line(es);
}

/*
 * Does the user want to know why a sort did not use a GPU?  Not if the settings say
 * that it should not, and not on a server that was set up without one.
 */
static bool
gpu_was_expected(GsReason reason)
{
	switch (reason)
	{
		case GS_REASON_NONE:
		case GS_REASON_BACKEND_CPU:
			return false;
		case GS_REASON_NO_GPU:
			return gpusort_library_was_found;
		default:
			return true;
	}
}

/*
 * Print a number, such as that of rows.  In text format, this begins in the middle of a
 * line and does not end it.
 */
static void
show_number(const char *name, int64 number, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		appendStringInfo(es->str, "%s: " INT64_FORMAT, name, number);
	else
		ExplainPropertyInteger(name, NULL, number, es);
}

/* Print a number after another one, on the same line if the format is text. */
static void
show_number_after(const char *name, int64 number, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		appendStringInfoString(es->str, "  ");
	show_number(name, number, es);
}

/* Print what a process has had of a divided sort. */
static void
show_part(const GsSortReport *report, ExplainState *es)
{
	begin_line(es);
	show_number("Ranges Read", report->ranges, es);
	show_number_after("Rows Returned", report->returned, es);
	end_line(es);
}

/*
 * Print everything about a sort except its method, one property per line.
 */
static void
show_details(const GsSortReport *report, ExplainState *es)
{
	if (report->divided)
		show_part(report, es);
	if (es->timing)
		show_phases(report, es);
	if (report->fallback != GS_REASON_NONE)
		ExplainPropertyText("Sort Fallback",
							gpusort_reason_text(report->fallback), es);
	if (gpu_was_expected(report->gpu_reason))
		ExplainPropertyText("GPU Not Used",
							gpusort_reason_text(report->gpu_reason), es);
}

/*
 * Print what a worker reports of a GpuSort.  In text format, this begins in the middle of a
 * line.  A GsReportPrinter.
 */
static void
show_sort_report(const GsProducerReport *report, ExplainState *es)
{
	show_method(&report->sort, es);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		es->indent++;
	show_details(&report->sort, es);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		es->indent--;
}

/* Print what a worker of a sink reports.  A GsReportPrinter. */
static void
show_sink_report(const GsProducerReport *report, ExplainState *es)
{
	show_number("Rows Sent", report->nrows, es);
	if (report->sorted && report->sort.range_rows > 0)
		show_number_after("Rows Sorted", report->sort.range_rows, es);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		appendStringInfoString(es->str, report->sorted ? "  " : "\n");
	if (report->sorted)
		show_method(&report->sort, es);
}

/*
 * Print the reports of parallel workers.  In text format they look like those
 * of a Sort.  The other formats get a list of their own, since the functions
 * that add to EXPLAIN's list of workers are not exported.
 */
static void
show_worker_reports(const char *list, const char *member,
					const GsWorkerReports *reports, GsReportPrinter show,
					ExplainState *es)
{
	ExplainOpenGroup(list, list, false, es);
	for (int n = 0; n < reports->nworkers; n++)
	{
		const GsProducerReport *report = gpusort_worker_reports_get(reports, n);

		if (report == NULL)
			continue;
		ExplainOpenGroup(member, NULL, true, es);
		begin_line(es);
		if (es->format == EXPLAIN_FORMAT_TEXT)
			appendStringInfo(es->str, "Worker %d:  ", n);
		else
			ExplainPropertyInteger("Worker Number", NULL, n, es);
		show(report, es);
		ExplainCloseGroup(member, NULL, true, es);
	}
	ExplainCloseGroup(list, list, false, es);
}

void
gpusort_explain_sort(const GsSortReport *report, int64 nbatches, ExplainState *es)
{
	if (!es->analyze)
		return;
	if (nbatches > 0)
		ExplainPropertyInteger("Sort Batches", NULL, nbatches, es);
	begin_line(es);
	show_method(report, es);
	show_details(report, es);
}

void
gpusort_explain_sort_workers(const GsWorkerReports *reports, ExplainState *es)
{
	if (es->analyze)
		show_worker_reports("Sort Workers", "Sort Worker", reports,
							show_sort_report, es);
}

void
gpusort_explain_sink(int64 nrows, const GsWorkerReports *reports,
					 bool writes_runs, ExplainState *es)
{
	if (!es->analyze)
		return;
	begin_line(es);
	show_number("Rows Sent", nrows, es);
	end_line(es);
	if (reports != NULL && (es->verbose || writes_runs))
		show_worker_reports("Sink Workers", "Sink Worker", reports,
							show_sink_report, es);
}
