/*-------------------------------------------------------------------------
 *
 * tap.h
 *		Output of the unit tests in the Test Anything Protocol.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TAP_H
#define GPUSORT_TAP_H

#include <stdbool.h>

/* Reports a test.  Its name is a format with arguments. */
extern void tap_ok(bool passed, const char *name,...)
			__attribute__((format(printf, 2, 3)));

/* Adds details about a failure, before its test is reported. */
extern void tap_note(const char *text,...)
			__attribute__((format(printf, 1, 2)));

/* Ends the tests.  Returns the exit status of the program. */
extern int	tap_done(void);

#endif							/* GPUSORT_TAP_H */
