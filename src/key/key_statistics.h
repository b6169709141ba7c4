/*-------------------------------------------------------------------------
 *
 * key_statistics.h
 *		Tells from statistics how well the words of keys tell rows apart.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_STATISTICS_H
#define GPUSORT_KEY_STATISTICS_H

#include "key/key_plan.h"

/* The column of a table that a sort key is; table is InvalidOid if it is none. */
typedef struct GsTableColumn
{
	Oid			table;
	AttrNumber	attno;
} GsTableColumn;

/*
 * Will most of 'rows' rows be ties on a GPU, so that the host has to order them?  columns[k] is
 * what sort key k is.  A string without statistics is assumed to tie if another key follows it.
 * Reads the system catalogs.
 */
extern bool gpusort_key_statistics_expect_ties(const GsSortKeys *keys,
											   const GsTableColumn *columns,
											   double rows);

/*
 * Returns the first sort key, from 'first' on, whose values probably do not end in two words, or
 * nkeys; those of device keys if 'gpu'.  It knows average widths only, which takes less time.
 */
extern int	gpusort_key_statistics_open(const GsSortKeys *keys, const GsTableColumn *columns,
										int first, bool gpu);

/* See GsSortKeys. */
extern bool gpusort_key_statistics_short_values(const GsSortKeys *keys,
												const GsTableColumn *columns, double rows);

/* How many words tell the values of a column apart. */
typedef struct GsStringWords
{
	GsTableColumn column;
	Oid			collation;
	double		rows;
	int			words;
} GsStringWords;

/*
 * See GsSortKeys: how many words of the first string tell most of its values apart, if they are
 * few, as the histogram shows.  'last', zero at first, is what was found for the sort before: a
 * query with many windows can have the same string in all of them.
 */
extern int	gpusort_key_statistics_string_words(const GsSortKeys *keys,
												const GsTableColumn *columns, double rows,
												GsStringWords *last);

/*
 * Do most of 'rows' rows agree in the first 'nkeys' keys with others, as far as the numbers of
 * different values tell, which takes less time to find out?  False if one of them is not known.
 */
extern bool gpusort_key_statistics_few_values(const GsTableColumn *columns, int nkeys,
											  double rows);

/*
 * Do 'nkeys' keys tell nearly all of 'rows' rows apart, since one of them does, or since they have
 * many times as many values together?
 */
extern bool gpusort_key_statistics_tell_apart(const GsTableColumn *columns, int nkeys,
											  double rows);

/* Returns how many of the keys, the first ones, tell nearly all of 'rows' rows apart; or nkeys. */
extern int	gpusort_key_statistics_enough(const GsTableColumn *columns, int nkeys, double rows);

#endif							/* GPUSORT_KEY_STATISTICS_H */
