/*-------------------------------------------------------------------------
 *
 * tap.c
 *		Output of the unit tests in the Test Anything Protocol.
 *
 *-------------------------------------------------------------------------
 */
#include "tap.h"

#include <stdarg.h>
#include <stdio.h>

static int	tests = 0;
static int	failures = 0;

void
tap_ok(bool passed, const char *name,...)
{
	va_list		args;

	tests++;
	if (!passed)
		failures++;
	printf("%s %d - ", passed ? "ok" : "not ok", tests);
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

void
tap_note(const char *text,...)
{
	va_list		args;

	printf("# ");
	va_start(args, text);
	vprintf(text, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

int
tap_done(void)
{
	printf("1..%d\n", tests);
	if (failures > 0)
		tap_note("%d of %d tests failed", failures, tests);
	return failures > 0 || tests == 0 ? 1 : 0;
}
