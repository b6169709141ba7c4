/*-------------------------------------------------------------------------
 *
 * leaf_tuples.h
 *		Leaf tuples of an index, formed on their pages from the rows of a sort.
 *
 * To know where pages begin, one need only know how long tuples are, and which have the same
 * keys.  So one process can lay out pages, and another one form the tuples on them later, from
 * rows that are still where the sort has left them.
 *
 * This is for rows of short values without NULLs.  All others become tuples one by one
 * (btree_build.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LEAF_TUPLES_H
#define GPUSORT_LEAF_TUPLES_H

#include "access/itup.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#include "heap/heap_rows.h"
#include "index/base/index_rows.h"
#include "sort/base/rows_in_place.h"
#include "sort/base/sort_spec.h"

/* A longer tuple is not formed here. */
#define GPUSORT_LEAF_TUPLE_BYTES	1024

/*
 * The largest size of a tuple with a posting list and its line pointer: a
 * tenth of a page, so that pages can be filled to about the usual fillfactor.
 */
#define GPUSORT_POSTING_BYTES \
	(MAXALIGN_DOWN(BLCKSZ * 10 / 100) - sizeof(ItemIdData))

typedef struct GsLeafColumn
{
	GsTupleColumn tuple;
	uint32		row_offset;		/* of the value, or of its offset */
	Datum		bits;			/* of a Datum that are part of the value */
} GsLeafColumn;

/* How rows become tuples.  Without pointers, so that processes can share it. */
typedef struct GsLeafForm
{
	int			ncolumns;
	int			nkeys;
	bool		deduplicate;	/* do rows with the same keys share a tuple? */
	bool		unique;			/* must rows that are not dead have different
								 * keys? */
	Size		size;			/* of a tuple without posting list; 0 if it
								 * varies */
	uint32		tid_offset;		/* of the TID in a row */
	GsLeafColumn columns[INDEX_MAX_KEYS];
} GsLeafForm;

/* Convert between a row's TID and dead flag and the "tid", a Datum of eight bytes. */
static inline Datum
gpusort_leaf_pack_tid(const GsHeapRow *row)
{
	return UInt64GetDatum(gpusort_tid_number(&row->tid) << 1 | (row->alive ? 0 : 1));
}

static inline GsHeapRow
gpusort_leaf_unpack_tid(Datum tid)
{
	GsHeapRow	row = {.alive = (DatumGetUInt64(tid) & 1) == 0};

	gpusort_tid_set(&row.tid, DatumGetUInt64(tid) >> 1);
	return row;
}

/* Returns false if the tuples of an index cannot be formed here. */
extern bool gpusort_leaf_form_init(GsLeafForm *form, Relation index,
								   const GsSortSpec *spec, bool deduplicate,
								   bool unique);

/*
 * Returns the size of the tuple of a row, without a posting list, or 0 if it cannot be formed
 * here or there is no such row.
 */
extern Size gpusort_leaf_key_bytes(const GsLeafForm *form, const GsRowsInPlace *rows,
								   GsRowPlace place);

/* Returns the TID of a row. */
extern ItemPointerData gpusort_leaf_tid(const GsLeafForm *form, const char *row);

/* Sets values to the columns of a row, and the one after them to the "tid". */
extern void gpusort_leaf_values(const GsLeafForm *form, const char *row, Datum *values);

/* Forms the tuple of a row in memory of zeros, without a posting list. */
extern void gpusort_leaf_form_tuple(const GsLeafForm *form, const char *row,
									IndexTuple tuple);

/* ---- posting lists ---- */

/* May a tuple of key_bytes bytes have one of so many TIDs? */
static inline bool
gpusort_posting_fits(Size key_bytes, uint32 ntids)
{
	return MAXALIGN(key_bytes + ntids * sizeof(ItemPointerData)) <= GPUSORT_POSTING_BYTES;
}

/* Turns the first key_bytes bytes of a tuple, behind which are TIDs, into one that has these. */
extern void gpusort_posting_finish(IndexTuple tuple, Size key_bytes, uint32 ntids);

/* ---- the room on a page ---- */

/* What decides whether a page takes one more tuple. */
typedef struct GsPageRoom
{
	int			min_free;		/* bytes to leave free, from the fillfactor */
	int			reserved;		/* bytes that must stay free for a high key */
	int			last_posting;	/* bytes of the last tuple's posting list */
} GsPageRoom;

/*
 * Does a tuple fit on a page?  The first two tuples always do,
 * whatever the fillfactor.  The posting list of the last tuple does not count
 * for the fillfactor, because it is truncated away if the tuple becomes the
 * high key.
 */
static inline bool
gpusort_page_has_room(const GsPageRoom *room, int lower, int upper, int size)
{
	int			left = upper - lower - (int) sizeof(ItemIdData);

	if (left < size + room->reserved)
		return false;
	return left + room->last_posting >= room->min_free ||
		lower <= (int) (SizeOfPageHeaderData + 2 * sizeof(ItemIdData));
}

/* Returns how many tuples of a size, without posting lists, fit on a page, at least. */
static inline uint32
gpusort_page_count_fitting(const GsPageRoom *room, int lower, int upper, int size)
{
	int			left = upper - lower - (int) sizeof(ItemIdData);
	int			spare = left - Max(size + room->reserved, room->min_free);

	/* A tuple is added as long as there is so much room before it. */
	return spare < 0 ? 0 : spare / (size + (int) sizeof(ItemIdData)) + 1;
}

/* ---- tuples of a page that are formed later ---- */

/* Rows that become one tuple after the other, from 'upper' on downwards. */
typedef struct GsLeafFill
{
	GsRowsInPlace rows;			/* none if there are no such tuples */
	int64		position;		/* of the first row in the sort */
	uint16		item;			/* number of its tuple's line pointer, from 0 */
	uint16		upper;			/* offset on the page where its tuple ends */
} GsLeafFill;

/* Form the tuples, and set their line pointers. */
extern void gpusort_page_fill(const GsLeafForm *form, GsLeafFill *fill, Page page);

/* The page that gets tuples now. */
typedef struct GsLeafPage
{
	GsLeafFill	later;
	GsLeafFill	open;			/* further tuples, of which more may come */
	GsRowsInPlace rows;			/* of which those groups are */
	int			ngroups;		/* in it; 0 if there is none */
	GsRowPlace	last;			/* where the last of them begins, and the one
								 * before */
	GsRowPlace	before;
} GsLeafPage;

/*
 * Add the tuples of rows from one on, as long as the page has room and no row after them need
 * be known: they get places and line pointers, and are formed later.  'position' is that of
 * rows->first.  A page has groups of the same 'rows' until it is closed.  Moves *place to the
 * row after them.  Returns whether the page is full.
 */
extern bool gpusort_leaf_page_add(GsLeafPage *leaf, Page page, GsPageRoom *room,
								  const GsLeafForm *form, const GsRowsInPlace *rows,
								  int64 position, GsRowPlace *place);

/*
 * Called before a tuple is added in another way: form at least the last two tuples, and all
 * unless 'defer'.  Those that remain are one stretch of rows.
 */
extern void gpusort_leaf_page_close(GsLeafPage *leaf, Page page, const GsLeafForm *form,
									bool defer);

#endif							/* GPUSORT_LEAF_TUPLES_H */
