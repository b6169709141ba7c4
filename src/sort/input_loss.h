/*-------------------------------------------------------------------------
 *
 * input_loss.h
 *		Recovers an input sort from the loss of a GPU with its rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_LOSS_H
#define GPUSORT_INPUT_LOSS_H

#include "sort/input_state.h"

/*
 * After rows were lost with the GPU session: return the reason, and prepare to read
 * the input again, which must be possible.
 */
extern GsFallback gpusort_input_loss_reason(const GsInputSort *sort);
extern bool gpusort_input_loss_can_restart(const GsInputSort *sort);
extern void gpusort_input_loss_restart(GsInputSort *sort);

/*
 * A batch is lost with the GPU, but the rows before it are in runs.  Take the rows of the
 * batch from their copy, and make runs of them and of those that follow.  Returns false if
 * there is no copy.
 */
extern bool gpusort_input_loss_recover_batch(GsInputSort *sort);

#endif							/* GPUSORT_INPUT_LOSS_H */
