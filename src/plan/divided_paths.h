/*-------------------------------------------------------------------------
 *
 * divided_paths.h
 *		Adds partial paths over sorts that are divided among processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DIVIDED_PATHS_H
#define GPUSORT_DIVIDED_PATHS_H

#include "nodes/pathnodes.h"

/*
 * What it takes to add a sorted row to the state of an aggregate, to end a group, to compare a row
 * with the one before it, and to compute a window function for it, in addition to what the planner
 * charges, in the units of sort_eligibility.h.
 */
#define GPUSORT_GROUP_ROW_COST	15.0
#define GPUSORT_GROUP_COST		60.0
#define GPUSORT_UNIQUE_ROW_COST	8.0
#define GPUSORT_WINDOW_ROW_COST	55.0

/*
 * A node that needs rows in order, for which paths are made: a Group, an Agg or a Unique.
 */
typedef struct GsSortedNode
{
	PlannerInfo *root;
	RelOptInfo *rel;			/* of the node */
	RelOptInfo *input_rel;
	Path	   *input;			/* all rows, in one process */
	Path	   *partial;		/* those of each process, or NULL */
	List	   *pathkeys;
	int			columns;		/* how many of them, the first ones, it groups
								 * rows by */
	bool		may_divide;		/* may a sort be divided by these? */
	double		row_cost;		/* one of those above */
	double		groups;			/* that take GPUSORT_GROUP_COST each */
	double		rows;			/* that it returns, or 0 for those of its path */
	Cost		computed;		/* for each row, of what its aggregates
								 * compute and the input has already */
	/* Make its path over a sort of this part of the rows. */
	Path	   *(*make) (const struct GsSortedNode *node, Path *sort, double part);
	void	   *extra;			/* for 'make' */
} GsSortedNode;

/* Describe a Unique over rows of 'input_rel', or the members that another node has as well. */
extern GsSortedNode gpusort_sorted_node(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *input_rel,
										List *pathkeys, int columns, double rows);

/*
 * Make the path of a node over a sort in one process, or by several if that is cheaper, which
 * *sort is set to.  Returns NULL if that would not be taken over.
 */
extern Path *gpusort_sorted_node_path(const GsSortedNode *node, Path **sort);

/*
 * Add a path of the node over a divided sort.  'best' is the best path so far, and takes so much
 * 'more' than it is charged, besides what the cache misses of a hash table take.  Returns whether
 * it is better.
 */
extern bool gpusort_sorted_node_divide(const GsSortedNode *node, Path *best, Cost more);

/*
 * Does a path have the order of the query's ORDER BY?  A Gather over a divided sort would have to
 * be sorted for that.
 */
extern bool gpusort_sorted_for_query(const PlannerInfo *root, const Path *path);

/*
 * Add 'path', made as above, or NULL, unless one over a divided sort is better and needs no other
 * sort above.  It takes so much 'more' than it is charged.  'best' is the planner's best path.
 */
extern void gpusort_sorted_node_add(const GsSortedNode *node, Path *path, Cost more, Path *best);

/*
 * Returns by how many of the columns of GROUP BY, which are the first sort keys, a sort of
 * 'partial' is divided: all of them, or the first ones that windows above the groups partition by
 * as well, if none of their values is frequent.  Then the windows need no other divided sort.
 */
extern int	gpusort_divided_group_columns(PlannerInfo *root, const RelOptInfo *rel,
										  const Path *partial, List *pathkeys);

/*
 * Make a partial path of 'rel' that sorts 'partial', the rows of each process, and is divided by
 * the first 'divided' keys.  All processes have 'rows' rows.  If the relation of 'partial' has a
 * partial path that is divided already, and with gpusort_sort_of_process() is cheaper, returns
 * that.  Returns NULL if 'divided' is 0, or if the sort would not be taken over.
 */
extern Path *gpusort_divided_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *partial,
									   double rows, List *pathkeys, int divided);

/* Are rows that agree in some keys in one process? */
extern bool gpusort_is_divided_by(PlannerInfo *root, const Path *path, List *pathkeys);

/*
 * Returns a path that sorts the rows that each process has, or 'path' if they are in order.  The
 * sort may be an 'incremental' one.
 */
extern Path *gpusort_sort_of_process(PlannerInfo *root, RelOptInfo *rel, Path *path,
									 List *pathkeys, bool incremental);

/*
 * Make such sorts of the inputs of a merge join, which are divided alike by all of
 * their keys: each process has the rows of both that match.  Returns false if that is not possible.
 */
extern bool gpusort_divided_pair_paths(PlannerInfo *root, RelOptInfo *const rels[2],
									   List *const pathkeys[2], Path *sorts[2]);

/*
 * Returns the path from which a path has its rows, or the outer one of two; or NULL if it is
 * another path.
 */
extern Path *gpusort_path_input(const Path *path);

/* Returns how many pathkeys in a row, the first ones, are of columns that others have. */
extern int	gpusort_count_columns_of(const List *pathkeys, const List *others);

/* Returns the pathkeys of a PARTITION BY. */
extern List *gpusort_partition_pathkeys(PlannerInfo *root, const WindowClause *window);

/*
 * Add 'partial', a path over such a sort, if 'rel' has no partial path, and a Gather of it if that
 * takes clearly less time than any other way, which is 'other'.  'node' is what the nodes above the
 * sort take in one process in addition to what the planner charges; 'rows' is the number of rows
 * that pass the Gather.  The process that has the largest group takes longest.  Since the planner
 * charges much for rows that pass, a path that is better is preferred to 'best', the cheapest path
 * so far, and to those of 'rel'.  Returns whether it is.  If 'sort' is NULL, it is the lowest
 * divided sort of the path.
 */
extern bool gpusort_divided_path_add(PlannerInfo *root, RelOptInfo *rel, Path *partial,
									 const Path *sort, Cost node, double rows, Cost other,
									 Path *best);

/*
 * Returns what such a path, over its lowest divided sort, takes up to the end of a Gather above it,
 * and whether that is clearly less than 'other'.
 */
extern Cost gpusort_divided_time(PlannerInfo *root, const Path *partial, Cost node, double rows);
extern bool gpusort_divided_is_better(Cost time, Cost other);

/*
 * Returns how many times more rows the process has that returns the largest group of the divided
 * sorts of a path than all would have if groups were small.
 */
extern double gpusort_divided_share(PlannerInfo *root, const Path *path);

#endif							/* GPUSORT_DIVIDED_PATHS_H */
