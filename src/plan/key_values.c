/*-------------------------------------------------------------------------
 *
 * key_values.c
 *		What the statistics of ANALYZE say of the values of sort keys.
 *
 * The planner has no statistics of the columns of a set operation, which belong to no relation.
 * Here, those of its largest input are looked at: there can be hundreds.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "plan/key_values.h"

/* The keys of groups can have any order.  Fewer rows than this many are sorted as fast in any. */
#define FEWEST_REORDERED_ROWS	50000.0

/* A key of fixed length is worth this many times its values: its words are exact and cheap. */
#define FIXED_LENGTH_GAIN		4.0

/* A key comes before another one if it is worth this many times as much: estimates vary. */
#define CLEARLY_MORE			2.0

/* A property of a column of 'rows' rows. */
typedef double (*GsKeyProperty) (PlannerInfo *root, Node *column, double rows);

/* Returns which part of all rows have the most common value of a column. */
static double
most_common_part(PlannerInfo *root, Node *column, double rows)
{
	VariableStatData variable;
	AttStatsSlot values;
	double		part = IsA(column, Const) ? 1 : 0;

	examine_variable(root, column, 0, &variable);
	if (HeapTupleIsValid(variable.statsTuple))
	{
		part = ((Form_pg_statistic) GETSTRUCT(variable.statsTuple))->stanullfrac;
		if (get_attstatsslot(&values, variable.statsTuple, STATISTIC_KIND_MCV, InvalidOid,
							 ATTSTATSSLOT_NUMBERS))
		{
			if (values.nnumbers > 0)
				part = Max(part, values.numbers[0]);
			free_attstatsslot(&values);
		}
	}
	ReleaseVariableStats(variable);
	return part;
}

static double
count_values(PlannerInfo *root, Node *column, double rows)
{
	return estimate_num_groups(root, list_make1(column), rows, NULL, NULL);
}

const RelOptInfo *
gpusort_key_values_largest_input(PlannerInfo *root, const RelOptInfo *rel)
{
	const RelOptInfo *largest = NULL;
	int			relid = -1;

	while ((relid = bms_next_member(rel->relids, relid)) >= 0)
	{
		const RelOptInfo *input = root->simple_rel_array[relid];

		if (input != NULL && input->subroot != NULL &&
			(largest == NULL || input->rows > largest->rows))
			largest = input;
	}
	return largest;
}

/* Returns a property of a column of a set operation, in its largest input. */
static double
property_of_input(PlannerInfo *root, const RelOptInfo *rel, AttrNumber column,
				  GsKeyProperty property)
{
	const RelOptInfo *input = gpusort_key_values_largest_input(root, rel);
	const TargetEntry *entry;

	if (input == NULL)
		return 0;
	entry = list_nth_node(TargetEntry, input->subroot->parse->targetList, column - 1);
	return property(input->subroot, (Node *) entry->expr, input->rows);
}

/* Returns an expression of a rel that a sort by a pathkey has, or of any rel. */
static Node *
expression_of(const PathKey *pathkey, const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, pathkey->pk_eclass->ec_members)
	{
		const EquivalenceMember *member = lfirst(lc);

		/*
		 * Not the column of one input of a set operation, which 17 has as
		 * well.
		 */
		if (!member->em_is_child && rel->relids != NULL &&
			bms_is_subset(member->em_relids, rel->relids))
			return (Node *) member->em_expr;
	}
	return (Node *) linitial_node(EquivalenceMember, pathkey->pk_eclass->ec_members)->em_expr;
}

/* Returns a property of a sort key of 'rows' rows. */
static double
property_of_key(PlannerInfo *root, const RelOptInfo *rel, const PathKey *pathkey, double rows,
				GsKeyProperty property)
{
	/*
	 * As in a sort of varchar by operators of text, or to the type of a set
	 * operation.
	 */
	Node	   *column = strip_implicit_coercions(expression_of(pathkey, rel));

	/* Columns of set operations belong to no relation. */
	if (IsA(column, Var) && ((Var *) column)->varno == 0)
		return property_of_input(root, rel, ((Var *) column)->varattno, property);
	return property(root, column, rows);
}

double
gpusort_key_values_common_part(PlannerInfo *root, const RelOptInfo *rel, const PathKey *pathkey)
{
	return property_of_key(root, rel, pathkey, rel->rows, most_common_part);
}

/* Returns how well a sort key tells rows apart. */
static double
spread_of_key(PlannerInfo *root, const RelOptInfo *rel, const PathKey *pathkey, double rows)
{
	const EquivalenceMember *member = linitial_node(EquivalenceMember,
													pathkey->pk_eclass->ec_members);
	double		values = property_of_key(root, rel, pathkey, rows, count_values);

	return get_typlen(member->em_datatype) > 0 ? values * FIXED_LENGTH_GAIN : values;
}

List *
gpusort_key_values_order(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys, double rows)
{
	int			nkeys = list_length(pathkeys);
	double	   *spreads = palloc(nkeys * sizeof(double));
	List	   *ordered = NIL;
	ListCell   *lc;

	if (nkeys < 2 || rows < FEWEST_REORDERED_ROWS)
		return pathkeys;
	foreach(lc, pathkeys)
	{
		double		spread = spread_of_key(root, rel, lfirst_node(PathKey, lc), rows);
		int			place = list_length(ordered);

		for (; place > 0 && spreads[place - 1] * CLEARLY_MORE < spread; place--)
			spreads[place] = spreads[place - 1];
		spreads[place] = spread;
		ordered = list_insert_nth(ordered, place, lfirst(lc));
	}
	return ordered;
}
