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
extern void gpusort_input_loss_restart(GsInputSort *sort);

#endif							/* GPUSORT_INPUT_LOSS_H */
