/*-------------------------------------------------------------------------
 *
 * result_rows.h
 *		The rows that a SQL function returns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RESULT_ROWS_H
#define GPUSORT_RESULT_ROWS_H

#include "fmgr.h"

/*
 * Prepare to return rows as InitMaterializedSRF() does.  Raises an error unless the SQL
 * function has exactly these columns: values are stored by their positions, but the
 * function may have been created by the script of another build.
 */
extern void gpusort_result_rows_begin(FunctionCallInfo fcinfo, const Oid *types,
									  int count);

#endif							/* GPUSORT_RESULT_ROWS_H */
