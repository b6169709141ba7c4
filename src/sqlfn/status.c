/*-------------------------------------------------------------------------
 *
 * status.c
 *		SQL functions that tell the state of pg_gpusort.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "settings.h"
#include "sort/sort_stats.h"

GPUSORT_SQL_FUNCTION(gpusort_devices);
GPUSORT_SQL_FUNCTION(gpusort_status);
GPUSORT_SQL_FUNCTION(gpusort_stat);
GPUSORT_SQL_FUNCTION(gpusort_stat_fallbacks);
GPUSORT_SQL_FUNCTION(gpusort_stat_reset);

/*
 * gpusort_devices(): one row per usable GPU.  There is no GPU service, so
 * there are none.
 */
Datum
gpusort_devices(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	return (Datum) 0;
}

static void
put_status(ReturnSetInfo *result, const char *name, const char *value)
{
	Datum		values[2] = {CStringGetTextDatum(name)};
	bool		nulls[2] = {false, value == NULL};

	if (value != NULL)
		values[1] = CStringGetTextDatum(value);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* gpusort_status(): (name, value) pairs about the library in this server. */
Datum
gpusort_status(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	put_status(result, "version", GPUSORT_VERSION);
	put_status(result, "backend", "cpu");
	put_status(result, "backend_reason",
			   gpusort_backend == GS_BACKEND_CPU ? "pg_gpusort.backend is cpu" :
			   gpusort_fallback_text(GS_FALLBACK_NO_GPU));
	put_status(result, "preloaded",
			   gpusort_stats_are_shared() ? "yes" : "no");
	put_status(result, "statistics_of",
			   gpusort_stats_are_shared() ? "server" : "session");
	return (Datum) 0;
}

/* gpusort_stat(): the rows of the view pg_stat_gpusort. */
Datum
gpusort_stat(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GsStatsSnapshot stats;

	InitMaterializedSRF(fcinfo, 0);
	gpusort_stats_read(&stats);
	for (int k = 0; k < GS_SESSION_KINDS; k++)
	{
		const GsSortCounts *counts = &stats.kinds[k];
		Datum		values[] = {
			CStringGetTextDatum(gpusort_stats_kind_name(k)),
			Int64GetDatum((int64) counts->sorts),
			Int64GetDatum((int64) counts->rows),
			Int64GetDatum((int64) counts->bytes),
			Float8GetDatum(counts->drain_us / 1000.0),
			Float8GetDatum(counts->sort_us / 1000.0),
			Int64GetDatum((int64) stats.errors),
			TimestampTzGetDatum(stats.reset_time)
		};
		bool		nulls[lengthof(values)] = {false};

		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}

/* gpusort_stat_fallbacks(): the rows of the view pg_stat_gpusort_fallbacks. */
Datum
gpusort_stat_fallbacks(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GsStatsSnapshot stats;

	InitMaterializedSRF(fcinfo, 0);
	gpusort_stats_read(&stats);
	for (int r = GS_FALLBACK_NONE + 1; r < GS_FALLBACK_COUNT; r++)
	{
		Datum		values[] = {
			CStringGetTextDatum(gpusort_fallback_text(r)),
			Int64GetDatum((int64) stats.fallbacks[r])
		};
		bool		nulls[lengthof(values)] = {false};

		if (stats.fallbacks[r] > 0)
			tuplestore_putvalues(result->setResult, result->setDesc, values,
								 nulls);
	}
	return (Datum) 0;
}

/* pg_stat_gpusort_reset(): privileges are the SQL script's to grant. */
Datum
gpusort_stat_reset(PG_FUNCTION_ARGS)
{
	gpusort_stats_reset();
	PG_RETURN_VOID();
}
