/*-------------------------------------------------------------------------
 *
 * packed_rows.c
 *		The GpuSortPack and GpuSortUnpack executor nodes: many rows pass a Gather as one.
 *
 * The leader takes 80 to 100 ns for each row that it reads through a Gather, and most of that is
 * the queue's.  The processes of a divided sort return rows faster than that.  So in
 *
 *		GpuSortUnpack -> Gather -> GpuSortPack -> partial plan
 *
 * GpuSortPack returns a message instead of its rows: a row with the same columns, all of them NULL,
 * and one more, whose value has the rows as minimal tuples, one after the other.  GpuSortUnpack
 * returns these where they are.  The first message has one row, and each further one twice as many,
 * so that a LIMIT does not wait for rows that it does not want.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"

#include "exec/gpusort_node.h"
#include "exec/row_source.h"

/* A message ends with the row that exceeds this size, and has at most this many rows. */
#define MESSAGE_BYTES	(16 * 1024)
#define MOST_ROWS		1024

/* Where the first row is in the value: it has to be aligned, as the value is. */
#define ROWS_OFFSET		MAXALIGN(VARHDRSZ)

typedef struct GsPackState
{
	CustomScanState css;		/* must be first */
	MinimalTuple message;
	Size		size;			/* of the memory of it */
	Size		value_offset;	/* of the value in it */
	int			most_rows;		/* that the next message may have */
	bool		ended;			/* has the input returned its last row? */
} GsPackState;

typedef struct GsUnpackState
{
	CustomScanState css;		/* must be first */
	const char *next;			/* row of the message */
	const char *end;
} GsUnpackState;

/* ----------------------------------------------------------------
 *		packing
 * ----------------------------------------------------------------
 */

/* Make a message without rows. */
static void
create_message(GsPackState *pack)
{
	int			natts = pack->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor->natts;
	Size		hoff = MAXALIGN(offsetof(HeapTupleHeaderData, t_bits) + BITMAPLEN(natts));

	pack->value_offset = hoff - MINIMAL_TUPLE_OFFSET;
	pack->size = pack->value_offset + ROWS_OFFSET + MESSAGE_BYTES;
	pack->message = palloc0(pack->size);
	pack->message->t_infomask2 = natts;
	pack->message->t_infomask = HEAP_HASNULL | HEAP_HASVARWIDTH;
	pack->message->t_hoff = hoff;
	pack->message->t_bits[(natts - 1) / 8] = 1 << ((natts - 1) % 8);
}

static TupleTableSlot *pack_rows(PlanState *state);
static TupleTableSlot *unpack_row(PlanState *state);

static void
pack_begin(CustomScanState *css, EState *estate, int eflags)
{
	GsPackState *pack = (GsPackState *) css;

	outerPlanState(css) = ExecInitNode(outerPlan(css->ss.ps.plan), estate, eflags);
	gpusort_row_source_return_tuples(css);
	create_message(pack);
	pack->most_rows = 1;
	css->ss.ps.ExecProcNode = pack_rows;
}

/* Add a row to the message, which takes 'used' bytes.  Returns how many it takes then. */
static Size
put_row(GsPackState *pack, TupleTableSlot *slot, Size used)
{
	bool		is_copy;
	MinimalTuple row = ExecFetchSlotMinimalTuple(slot, &is_copy);
	Size		after = used + MAXALIGN(row->t_len);

	if (after > pack->size)
	{
		pack->message = repalloc(pack->message, after);
		pack->size = after;
	}
	memcpy((char *) pack->message + used, row, row->t_len);
	if (is_copy)
		pfree(row);
	return after;
}

/* ExecProcNode */
static TupleTableSlot *
pack_rows(PlanState *state)
{
	GsPackState *pack = (GsPackState *) state;
	TupleTableSlot *slot = pack->css.ss.ss_ScanTupleSlot;
	Size		start = pack->value_offset + ROWS_OFFSET;
	Size		used = start;

	ExecClearTuple(slot);
	for (int n = 0; n < pack->most_rows && used < start + MESSAGE_BYTES && !pack->ended; n++)
	{
		TupleTableSlot *row = ExecProcNode(outerPlanState(state));

		CHECK_FOR_INTERRUPTS();
		pack->ended = TupIsNull(row);
		if (!pack->ended)
			used = put_row(pack, row, used);
	}
	if (used == start)
		return slot;
	pack->most_rows = Min(pack->most_rows * 2, MOST_ROWS);
	pack->message->t_len = used;
	SET_VARSIZE((char *) pack->message + pack->value_offset, used - pack->value_offset);
	return ExecStoreMinimalTuple(pack->message, slot, false);
}

static void
pack_rescan(CustomScanState *css)
{
	GsPackState *pack = (GsPackState *) css;

	ExecClearTuple(css->ss.ss_ScanTupleSlot);
	pack->most_rows = 1;
	pack->ended = false;
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

/* ----------------------------------------------------------------
 *		unpacking
 * ----------------------------------------------------------------
 */

static void
unpack_begin(CustomScanState *css, EState *estate, int eflags)
{
	outerPlanState(css) = ExecInitNode(outerPlan(css->ss.ps.plan), estate, eflags);
	gpusort_row_source_return_tuples(css);
	css->ss.ps.ExecProcNode = unpack_row;
}

/* Get the next message.  Returns false if there is none. */
static bool
get_message(GsUnpackState *unpack)
{
	TupleTableSlot *message = ExecProcNode(outerPlanState(unpack));
	const char *value;
	bool		isnull;

	if (TupIsNull(message))
		return false;
	value = DatumGetPointer(slot_getattr(message, message->tts_tupleDescriptor->natts, &isnull));
	unpack->next = value + ROWS_OFFSET;
	unpack->end = value + VARSIZE(value);
	return true;
}

/* ExecProcNode */
static TupleTableSlot *
unpack_row(PlanState *state)
{
	GsUnpackState *unpack = (GsUnpackState *) state;
	TupleTableSlot *slot = unpack->css.ss.ss_ScanTupleSlot;
	MinimalTuple row;

	if (unpack->next == unpack->end)
	{
		ExecClearTuple(slot);
		if (!get_message(unpack))
			return slot;
	}
	row = (MinimalTuple) unpack->next;
	unpack->next += MAXALIGN(row->t_len);
	return ExecStoreMinimalTuple(row, slot, false);
}

static void
unpack_rescan(CustomScanState *css)
{
	GsUnpackState *unpack = (GsUnpackState *) css;

	ExecClearTuple(css->ss.ss_ScanTupleSlot);
	unpack->next = unpack->end = NULL;
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

/* ----------------------------------------------------------------
 *		both
 * ----------------------------------------------------------------
 */

static void
end_node(CustomScanState *css)
{
	ExecClearTuple(css->ss.ss_ScanTupleSlot);
	ExecEndNode(outerPlanState(css));
}

/* Neither has ExecCustomScan, since their ExecProcNode takes its place. */
static const CustomExecMethods pack_methods = {
	.CustomName = "GpuSortPack",
	.BeginCustomScan = pack_begin,
	.EndCustomScan = end_node,
	.ReScanCustomScan = pack_rescan,
};

static const CustomExecMethods unpack_methods = {
	.CustomName = "GpuSortUnpack",
	.BeginCustomScan = unpack_begin,
	.EndCustomScan = end_node,
	.ReScanCustomScan = unpack_rescan,
};

Node *
gpusort_pack_create_state(CustomScan *plan)
{
	return gpusort_make_node_state(sizeof(GsPackState), &pack_methods);
}

Node *
gpusort_unpack_create_state(CustomScan *plan)
{
	return gpusort_make_node_state(sizeof(GsUnpackState), &unpack_methods);
}
