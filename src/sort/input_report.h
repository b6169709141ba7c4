/*-------------------------------------------------------------------------
 *
 * input_report.h
 *		Reports how the rows of an input were sorted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_REPORT_H
#define GPUSORT_INPUT_REPORT_H

#include "sort/input_sort.h"

/*
 * After finishing: report how the sort was done, except for the times of the host.
 * For a GPU session, sort_ms is the time of the device itself.
 */
extern void gpusort_input_report_fill(const GsInputSort *sort,
									  GsSortReport *report);

#endif							/* GPUSORT_INPUT_REPORT_H */
