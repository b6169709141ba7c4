/*-------------------------------------------------------------------------
 *
 * sort_candidate.c
 *		Describes a sort that the planner considers or has chosen, and what it costs.
 *
 * What a sort costs depends on the columns of its rows and on where they come
 * from.  The same description is made of a path, before the planner chooses,
 * and of the Sort that the path has become, so that both are judged alike.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "plan/sort_candidate.h"
#include "settings.h"
#include "sort/base/tuple_rows.h"
#include "sort/base/warm_memory.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/memory_sort.h"

/*
 * The costs of a row are from regressions over sorts of many shapes with PostgreSQL
 * 15, 18 and 19; docs/experiments.md has the measurements.
 */

/* A GpuSort.  Its sort proper costs next to nothing on a GPU. */
#define STORE_ROW			3.0
#define STORE_BYTE			0.04
#define STORE_TUPLE			2.0 /* rows are whole tuples, or else: */
#define STORE_FIXED			0.3 /* per column */
#define STORE_VARIABLE		2.0
#define COLD_BYTE			0.04	/* of memory that is not warm */
#define SORT_WORD			2.0
#define SORT_TIES			6.0 /* if the encoded keys are not exact */
#define SORT_KEY_OF_ICU		40.0	/* more, if sort keys of ICU are made */
#define COMPARISON_OF_ICU	25.0	/* for each doubling of the rows, if ICU
									 * compares them */
#define RETURN_ROW			2.5

/* What else matters if the rows are in order or reversed. */
#define IN_ORDER			(-3.5)
#define IN_ORDER_TIES		(-2.0)
#define REVERSED			(-2.5)
#define PAGE_SCAN			(-0.8)
#define ORDERED_TUPLE		2.0
#define ORDERED_FIXED		0.35	/* per column, unless rows are tuples */
#define ORDERED_VARIABLE	1.3
#define ORDERED_DISK		3.5
#define ORDERED_DISK_BYTE	0.07

/*
 * A stock sort of rows that are in order or reversed; 16 and later have a
 * faster one.  A sort of a single column of fixed length keeps values instead
 * of tuples.
 */
#define STOCK_ROW			GPUSORT_SINCE_16(7.0, 9.0)
#define STOCK_BYTE			0.11
#define STOCK_VALUE			GPUSORT_SINCE_16(-3.5, -5.5)
#define STOCK_VARIABLE		GPUSORT_SINCE_16(3.3, 5.0)	/* per column if rows
														 * are not as stored */
#define STOCK_REVERSED		GPUSORT_SINCE_16(3.0, 5.0)
#define STOCK_STRING		4.5 /* if words cannot compare the first key */
#define STOCK_STRING_REVERSED	30.0
#define STOCK_LOCALE		14.0	/* if the C library compares it */
#define STOCK_RUNS			GPUSORT_SINCE_16(-1.8, -3.5)
#define STOCK_RUNS_BYTE		GPUSORT_SINCE_16(0.03, 0.0)
#define STOCK_RUNS_LEVEL	GPUSORT_SINCE_16(1.9, 3.0)	/* for each doubling of
														 * the runs */

/* The size of a row that a stock sort keeps, in addition to its columns. */
#define STOCK_TUPLE_BYTES	48
#define STOCK_VALUE_BYTES	16

/* A GpuSort must be faster by this factor. */
#define LEAST_GAIN			1.1

/*
 * A stock sort takes 10 ns for a comparison, or nine times as long if a library compares strings
 * by the rules of a language.  One of so many comparisons takes two milliseconds; the first
 * GpuSort of a session is faster from half of that on.
 */
#define LONG_SORT			200000
#define LANGUAGE_COMPARISON	9

/* ----------------------------------------------------------------
 *		descriptions
 * ----------------------------------------------------------------
 */

/* The type of the column before, which often is that of the next one as well. */
typedef struct GsColumnType
{
	Oid			type;
	bool		variable;
} GsColumnType;

/* Add the column at a position, counted from 1. */
static void
add_column(GsSortCandidate *candidate, const Node *expression, int position, GsColumnType *last)
{
	const Var  *var = (const Var *) expression;
	Oid			type = exprType(expression);

	if (type != last->type)
	{
		last->type = type;
		last->variable = get_typlen(type) < 0;
	}
	if (last->variable)
		candidate->variable_columns++;
	else
		candidate->fixed_columns++;
	if (!IsA(var, Var) || var->varattno != position)
		candidate->stored_rows = false;
}

static int
ncolumns(const GsSortCandidate *candidate)
{
	return candidate->fixed_columns + candidate->variable_columns;
}

GsSortCandidate
gpusort_sort_candidate_of_path(const Path *input, double bound)
{
	GsSortCandidate candidate = {
		.rows = input->rows,
		.width = input->pathtarget->width,
		.bound = bound,
		.stored_rows = true
	};
	const Path *scan = input;
	GsColumnType last = {InvalidOid, false};
	int			position = 0;
	ListCell   *lc;

	foreach(lc, input->pathtarget->exprs)
		add_column(&candidate, lfirst(lc), ++position, &last);

	if (IsA(scan, GatherPath))
		scan = ((const GatherPath *) scan)->subpath;
	if (IsA(scan, ProjectionPath))
		scan = ((const ProjectionPath *) scan)->subpath;
	if (scan->pathtype != T_SeqScan)
	{
		candidate.stored_rows = false;
		return candidate;
	}
	candidate.all_rows = scan->parent->baserestrictinfo == NIL;
	if (ncolumns(&candidate) != scan->parent->max_attr)
		candidate.stored_rows = false;
	return candidate;
}

GsSortCandidate
gpusort_sort_candidate_of_plan(const Sort *sort, double bound,
							   const PlannedStmt *statement)
{
	GsSortCandidate candidate = {
		.rows = sort->plan.plan_rows,
		.width = sort->plan.plan_width,
		.bound = bound,
		.stored_rows = true
	};
	const		Scan *scan = (const Scan *) sort->plan.lefttree;
	const RangeTblEntry *table = rt_fetch(scan->scanrelid, statement->rtable);
	GsColumnType last = {InvalidOid, false};
	ListCell   *lc;

	foreach(lc, scan->plan.targetlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);

		add_column(&candidate, (const Node *) entry->expr, entry->resno, &last);
	}
	candidate.all_rows = scan->plan.qual == NIL;
	if (SearchSysCacheExists2(ATTNUM, ObjectIdGetDatum(table->relid),
							  Int16GetDatum(ncolumns(&candidate) + 1)))
		candidate.stored_rows = false;
	return candidate;
}

bool
gpusort_sort_candidate_fits(const GsSortCandidate *candidate, unsigned words)
{
	/* A GPU keeps rows in its own memory, and will report if it lacks room. */
	return gpusort_gpu_session_check(candidate->rows, false) == GS_FALLBACK_NONE ||
		gpusort_memory_sort_estimate(words, candidate->rows,
									 candidate->width) <=
		(double) gpusort_settings_work_mem() * 1024;
}

bool
gpusort_sort_candidate_is_long(double rows, double bound, const GsKeyShape *key)
{
	double		kept = bound > 0 ? Min(rows, bound) : rows;
	double		comparisons = rows * log2(Max(kept, 2));

	if (key->has_weights || key->collated || key->compared)
		comparisons *= LANGUAGE_COMPARISON;
	return comparisons >= LONG_SORT;
}

/* ----------------------------------------------------------------
 *		costs
 * ----------------------------------------------------------------
 */

double
gpusort_row_cost_minimum(int width)
{
	return STORE_ROW + STORE_BYTE * width;
}

/* Would the sort keep rows as whole tuples? */
static bool
keeps_tuples(const GsSortCandidate *candidate)
{
	return candidate->stored_rows &&
		gpusort_tuple_rows_pay(candidate->fixed_columns,
							   candidate->variable_columns);
}

/* Returns the cost per row of memory that the system has yet to provide. */
static double
cost_of_cold_memory(const GsSortCandidate *candidate, const GsKeyShape *key)
{
	double		bytes = gpusort_memory_sort_estimate(key->words, 1,
													 candidate->width);
	double		warm = gpusort_warm_memory_limit() / Max(candidate->rows, 1);

	return COLD_BYTE * Max(bytes - warm, 0);
}

GsRowCost
gpusort_row_cost(const GsSortCandidate *candidate, const GsKeyShape *key,
				 bool gpu)
{
	GsRowCost	cost = {
		.keep = gpusort_row_cost_minimum(candidate->width),
		.emit = RETURN_ROW
	};

	if (keeps_tuples(candidate))
		cost.keep += STORE_TUPLE;
	else
		cost.keep += STORE_FIXED * candidate->fixed_columns +
			STORE_VARIABLE * candidate->variable_columns;
	if (!gpu)
		cost.keep += SORT_WORD * key->words;
	if (!key->exact)
		cost.keep += SORT_TIES;
	if (key->collated)
		cost.keep += SORT_KEY_OF_ICU;
	if (key->compared)
		cost.keep += COMPARISON_OF_ICU * log2(Max(candidate->rows, 2));
	return cost;
}

/* Returns what a GpuSort costs in all, if rows are in order or reversed. */
static double
cost_of_gpusort(const GsSortCandidate *candidate, const GsKeyShape *key,
				bool reversed)
{
	GsRowCost	row = gpusort_row_cost(candidate, key, false);
	double		cost = row.keep + row.emit;

	if (reversed)
		cost += REVERSED;
	else
		cost += IN_ORDER + (key->first_exact ? 0 : IN_ORDER_TIES);
	if (keeps_tuples(candidate))
		cost += ORDERED_TUPLE;
	else
		cost += ORDERED_FIXED * candidate->fixed_columns +
			ORDERED_VARIABLE * candidate->variable_columns;
	if (candidate->all_rows)
		cost += PAGE_SCAN;
	if (gpusort_sort_candidate_fits(candidate, key->words))
		return cost + cost_of_cold_memory(candidate, key);
	return cost + ORDERED_DISK + ORDERED_DISK_BYTE * candidate->width;
}

/* Returns what the runs of a stock sort cost if it needs any. */
static double
cost_of_stock_runs(const GsSortCandidate *candidate, bool values)
{
	double		bytes = candidate->rows *
		(candidate->width + (values ? STOCK_VALUE_BYTES : STOCK_TUPLE_BYTES));
	double		runs = bytes / ((double) work_mem * 1024);

	if (runs <= 1)
		return 0;
	return Max(STOCK_RUNS + STOCK_RUNS_BYTE * candidate->width +
			   STOCK_RUNS_LEVEL * log2(runs), 0);
}

/* The same as cost_of_gpusort(). */
static double
cost_of_stock_sort(const GsSortCandidate *candidate, const GsKeyShape *key,
				   bool reversed)
{
	bool		values = candidate->fixed_columns == 1 &&
		candidate->variable_columns == 0;
	double		cost = STOCK_ROW + STOCK_BYTE * candidate->width;

	if (values)
		cost += STOCK_VALUE;
	if (!candidate->stored_rows)
		cost += STOCK_VARIABLE * candidate->variable_columns;
	if (!key->first_exact)
		cost += STOCK_STRING;
	if (key->has_weights)
		cost += STOCK_LOCALE;
	if (reversed)
		cost += key->first_exact ? STOCK_REVERSED : STOCK_STRING_REVERSED;
	return cost + cost_of_stock_runs(candidate, values);
}

bool
gpusort_row_cost_gains(const GsSortCandidate *candidate,
					   const GsKeyShape *key, GsRowOrder order)
{
	bool		reversed = order == GS_ROWS_REVERSED;

	if (order == GS_ROWS_UNORDERED)
		return true;
	return cost_of_stock_sort(candidate, key, reversed) >=
		LEAST_GAIN * cost_of_gpusort(candidate, key, reversed);
}
