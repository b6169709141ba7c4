/*-------------------------------------------------------------------------
 *
 * index_build.h
 *		Builds an index of any kind: by one process or several, from rows of a sort.
 *
 * The rows of the table are read (heap_rows.h), and the kind of index makes rows for a sort of
 * them.  It then gets these in order, and writes the pages of the index.
 *
 * With workers, all processes take blocks of the table from a common counter, and add rows to the
 * leader's sort (producer.h).  Without a GPU, workers may still sort the last rows while the leader
 * makes the first pages.  Then they write pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_BUILD_H
#define GPUSORT_INDEX_BUILD_H

#include "access/amapi.h"
#include "access/parallel.h"
#include "nodes/execnodes.h"

#include "reason.h"
#include "heap/heap_rows.h"
#include "index/base/page_writer.h"
#include "sort/producer.h"

/* In the leader, and in each worker. */
typedef struct GsIndexBuild
{
	const struct GsIndexKind *kind;
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	int			nworkers;		/* that may be started */
	GsSortSpec	spec;
	void	   *state;			/* of the kind */

	/* While rows are added to the sort; in the leader until the end. */
	GsHeapRows *rows;
	TupleTableSlot *slot;		/* for a row of the sort, without NULLs in the
								 * beginning */
	GsProducer	producer;		/* has the sort */

	/* In the leader: */
	struct GsBuildWorkers *workers; /* or NULL */
	double		nlive;			/* live rows of the table */

	/* Set when the index is written: */
	double		ntuples;
	const char *wrong_encoding; /* what rows that are not in order were sorted
								 * by, or NULL */
} GsIndexBuild;

/* A kind of index. */
typedef struct GsIndexKind
{
	ambuild_function stock_build;
	bool		by_phases;		/* are there phases in
								 * pg_stat_progress_create_index? */
	bool		fetch;			/* are values of the table needed for long? */

	/* How many workers are planned, if processes can share memory or without? */
	int			(*plan_workers) (const GsIndexBuild *build);

	/*
	 * In each process, describe the sort's rows and keys.  Returns false if
	 * there are no operators.
	 */
	bool		(*describe) (GsIndexBuild *build);

	/*
	 * In the leader, plan the keys of the sort that has been described.
	 * Returns GS_REASON_NONE, or why the build is left to PostgreSQL.
	 */
	GsReason	(*plan) (GsIndexBuild *build);

	/* Before the first row, in each process: prepare to read rows; or NULL. */
	void		(*begin) (GsIndexBuild *build);

	/* Returns the next row for the sort, or NULL at the end of the table. */
	TupleTableSlot *(*next) (GsIndexBuild *build);

	/*
	 * In the leader, write the index from the sort.  If the rows are lost or
	 * not in order, forgets all pages and returns false.
	 */
	bool		(*write) (GsIndexBuild *build);
} GsIndexKind;

/* Estimate how many rows a table has. */
extern double gpusort_build_rows_estimate(Relation heap);

/*
 * Returns GS_REASON_NONE, or why a build or validation of any kind of index is left to
 * PostgreSQL: it is switched off, or the table is not a heap or has too few rows.  The estimate
 * comes last, because for other access methods it may take long or have visible effects.
 */
extern GsReason gpusort_build_check(Relation heap, Relation index);

/*
 * Build an empty index, as an access method's ambuild does.  Returns NULL, with nothing written,
 * if the build is left to PostgreSQL.  In that case an error is raised if
 * pg_gpusort.debug_require is set.
 */
extern IndexBuildResult *gpusort_index_build(const GsIndexKind *kind, Relation heap,
											 Relation index, IndexInfo *info);

/*
 * Take part in a build, in a worker, whose main function is gpusort_index_worker_main().  'kind_of'
 * returns the kind of the index.
 */
extern void gpusort_index_build_work(const GsIndexKind *(*kind_of) (Relation index), shm_toc *toc);

/* While the index is written: the queue of pages that workers write too, or NULL without any. */
extern GsPageQueue *gpusort_index_build_pages(const GsIndexBuild *build);

#endif							/* GPUSORT_INDEX_BUILD_H */
