/*-------------------------------------------------------------------------
 *
 * tap.h
 *		What the unit tests print: the Test Anything Protocol.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TAP_H
#define GPUSORT_TAP_H

#include <stdbool.h>

/* Report one test; its name is a format with its arguments. */
extern void tap_ok(bool passed, const char *name,...)
			__attribute__((format(printf, 2, 3)));

/* Tell more about a failure, before its test is reported. */
extern void tap_note(const char *text,...)
			__attribute__((format(printf, 1, 2)));

/* All tests are through: returns the exit status. */
extern int	tap_done(void);

#endif							/* GPUSORT_TAP_H */
