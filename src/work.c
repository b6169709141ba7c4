/*-------------------------------------------------------------------------
 *
 * work.c
 *		Checks for interrupts, and measures the work between them.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "work.h"

/* Bytes that are copied between two checks for interrupts. */
#define COPY_BYTES	((Size) 32768)

void
gpusort_work_copy(void *to, const void *from, Size bytes)
{
	char	   *dest = to;
	const char *source = from;

	while (bytes > COPY_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(COPY_BYTES);
		memcpy(dest, source, COPY_BYTES);
		dest += COPY_BYTES;
		source += COPY_BYTES;
		bytes -= COPY_BYTES;
	}
	gpusort_work_add(bytes);
	memcpy(dest, source, bytes);
}

#ifdef GPUSORT_FAULTS

GsWork		gpusort_work;

const char *
gpusort_work_show(void)
{
	static char text[64];

	gpusort_work_check();
	snprintf(text, sizeof(text), UINT64_FORMAT " of " UINT64_FORMAT,
			 gpusort_work.longest, gpusort_work.total);
	return text;
}

void
gpusort_work_reset(const char *newval, void *extra)
{
	memset(&gpusort_work, 0, sizeof(gpusort_work));
}

#endif							/* GPUSORT_FAULTS */
