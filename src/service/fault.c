/*-------------------------------------------------------------------------
 *
 * fault.c
 *		Injects faults into the GPU service and backends, in builds for tests.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "service/fault.h"
#include "settings.h"

#ifdef GPUSORT_FAULTS

static const char *const point_names[] = {
	[GS_FAULT_NOWHERE] = "",
	[GS_FAULT_OPEN] = "open",
	[GS_FAULT_PUT] = "put",
	[GS_FAULT_SORT] = "sort",
	[GS_FAULT_GET] = "get",
	[GS_FAULT_CLOSE] = "close",
	[GS_FAULT_HOST] = "host",
};

static const char *const action_names[] = {
	[GS_FAULT_NOTHING] = "",
	[GS_FAULT_CRASH] = "crash",
	[GS_FAULT_LOST] = "lost",
	[GS_FAULT_MEMORY] = "memory",
	[GS_FAULT_ERROR] = "error",
	[GS_FAULT_HANG] = "hang",
	[GS_FAULT_ROWS] = "rows",
	[GS_FAULT_LATE] = "late",
	[GS_FAULT_SWAP] = "swap",
	[GS_FAULT_ALLOC] = "alloc",
	[GS_FAULT_ALLOC_ONCE] = "alloc_once",
};

static int
find_name(const char *const *names, int count, const char *text, Size length)
{
	for (int i = 1; i < count; i++)
		if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
			return i;
	return 0;
}

/* Some actions are only possible in backends, and some only in the service. */
static bool
can_happen(const GsFault *fault)
{
	if (fault->point == GS_FAULT_NOWHERE || fault->action == GS_FAULT_NOTHING)
		return false;
	if (fault->point == GS_FAULT_HOST)
		return fault->action == GS_FAULT_ALLOC ||
			fault->action == GS_FAULT_ALLOC_ONCE ||
			fault->action == GS_FAULT_ROWS ||
			fault->action == GS_FAULT_LATE;
	if (fault->action == GS_FAULT_SWAP)
		return fault->point == GS_FAULT_GET;
	return fault->action != GS_FAULT_ROWS &&
		fault->action != GS_FAULT_LATE &&
		fault->action != GS_FAULT_ALLOC_ONCE;
}

/*
 * Read ":number" from *text, if it is there.  Sets *text to what follows, and *valid to
 * false if the number is not positive.
 */
static uint32
parse_number(const char **text, uint32 otherwise, bool *valid)
{
	uint32		number;
	char	   *end;

	if (**text != ':')
		return otherwise;
	number = strtoul(*text + 1, &end, 10);
	*valid &= number > 0;
	*text = end;
	return number;
}

static GsFault
parse_fault(const char *text)
{
	GsFault		fault = {0};
	Size		length = strcspn(text, ":");
	bool		valid = true;

	if (*text == '\0')
		return fault;
	fault.point = find_name(point_names, lengthof(point_names), text, length);
	text += length;
	if (*text == ':')
	{
		text++;
		length = strcspn(text, ":");
		fault.action = find_name(action_names, lengthof(action_names), text,
								 length);
		text += length;
	}
	fault.number = parse_number(&text, 1, &valid);
	if (*text != '\0' || !valid || !can_happen(&fault))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for parameter \"pg_gpusort.debug_fault\": \"%s\"",
						gpusort_debug_fault),
				 errdetail("The value must be \"point:action[:number]\".")));
	return fault;
}

GsFault
gpusort_fault_of_service(void)
{
	GsFault		fault = parse_fault(gpusort_debug_fault);

	return fault.point == GS_FAULT_HOST ? (GsFault)
	{
		0
	} : fault;
}

GsFaultAction
gpusort_fault_strikes(const GsFault *fault, GsFaultPoint point, uint32 *times)
{
	if (fault->point != point || ++*times != fault->number)
		return GS_FAULT_NOTHING;
	return (GsFaultAction) fault->action;
}

uint32
gpusort_fault_device_alloc(const GsFault *fault)
{
	return fault->action == GS_FAULT_ALLOC ? fault->number : 0;
}

/*
 * Returns the number of an action at GS_FAULT_HOST, or 0 without that fault.
 */
static uint32
number_of_host(GsFaultAction action)
{
	GsFault		fault;

	if (likely(gpusort_debug_fault[0] == '\0'))
		return 0;
	fault = parse_fault(gpusort_debug_fault);
	if (fault.point != GS_FAULT_HOST || fault.action != action)
		return 0;
	return fault.number;
}

bool
gpusort_fault_host_alloc(uint32 *allocations)
{
	static uint32 once = 0;		/* which allocation should fail */
	static uint32 all = 0;		/* allocations since it was set */
	uint32		number = number_of_host(GS_FAULT_ALLOC);

	if (number > 0)
		return ++* allocations == number;
	number = number_of_host(GS_FAULT_ALLOC_ONCE);
	if (number != once)
	{
		once = number;
		all = 0;
	}
	return number > 0 && ++all == number;
}

uint32
gpusort_fault_host_rows(uint32 most)
{
	uint32		number = number_of_host(GS_FAULT_ROWS);

	return number > 0 ? number : most;
}

void
gpusort_fault_host_late(void)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  number_of_host(GS_FAULT_LATE));

	/* In short sleeps, since a signal would end a long one. */
	while (GetCurrentTimestamp() < end)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
}

#endif							/* GPUSORT_FAULTS */
