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

/* Is a word in a list, which has a space before and after each word? */
static bool
is_in(const char *word, const char *list)
{
	char		spaced[16];

	snprintf(spaced, sizeof(spaced), " %s ", word);
	return strstr(list, spaced) != NULL;
}

/* Some actions are only possible in backends, and some only in the service. */
static bool
can_happen(const GsFault *fault)
{
	if (strcmp(fault->point, "host") == 0)
		return is_in(fault->action, " alloc alloc_once rows late slow ");
	if (strcmp(fault->action, "swap") == 0)
		return strcmp(fault->point, "get") == 0;
	return is_in(fault->point, " open put sort get park close ") &&
		is_in(fault->action, " crash lost memory error hang alloc ");
}

static GsFault
parse_fault(const char *text)
{
	GsFault		fault = {.number = 1};
	int			end = 0;

	if (*text == '\0')
		return fault;
	if (sscanf(text, "%7[a-z]:%11[a-z_]%n:%u%n", fault.point, fault.action, &end,
			   &fault.number, &end) < 2 ||
		text[end] != '\0' || fault.number == 0 || !can_happen(&fault))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for parameter \"pg_gpusort.debug_fault\": \"%s\"",
						text),
				 errdetail("The value must be \"point:action[:number]\".")));
	return fault;
}

GsFault
gpusort_fault_of_service(void)
{
	GsFault		fault = parse_fault(gpusort_debug_fault);

	if (strcmp(fault.point, "host") == 0)
		memset(&fault, 0, sizeof(fault));
	return fault;
}

bool
gpusort_fault_strikes(const GsFault *fault, const char *point, uint32 *times)
{
	return strcmp(fault->point, point) == 0 && ++*times == fault->number;
}

uint32
gpusort_fault_device_alloc(const GsFault *fault)
{
	return strcmp(fault->action, "alloc") == 0 ? fault->number : 0;
}

uint32
gpusort_fault_host(const char *action)
{
	GsFault		fault;

	if (likely(gpusort_debug_fault[0] == '\0'))
		return 0;
	fault = parse_fault(gpusort_debug_fault);
	return strcmp(fault.point, "host") == 0 && strcmp(fault.action, action) == 0 ?
		fault.number : 0;
}

bool
gpusort_fault_host_alloc(uint32 *allocations)
{
	static uint32 once = 0;		/* which allocation should fail */
	static uint32 all = 0;		/* allocations since it was set */
	uint32		number = gpusort_fault_host("alloc");

	if (number > 0)
		return ++* allocations == number;
	number = gpusort_fault_host("alloc_once");
	if (number != once)
	{
		once = number;
		all = 0;
	}
	return number > 0 && ++all == number;
}

void
gpusort_fault_host_late(void)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  gpusort_fault_host("late"));

	/* In short sleeps, since a signal would end a long one. */
	while (GetCurrentTimestamp() < end)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
}

#endif							/* GPUSORT_FAULTS */
