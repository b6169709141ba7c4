/*-------------------------------------------------------------------------
 *
 * advice.c
 *		What gpusort_advice() needs that SQL cannot find out.
 *
 * Both functions run with the rights of the caller.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "key/key_encoding.h"
#include "loading.h"

GPUSORT_SQL_FUNCTION(gpusort_key_encoding);
GPUSORT_SQL_FUNCTION(gpusort_statements_on_disk);

/*
 * gpusort_key_encoding(): what the words of a sort key are made from, as EXPLAIN (VERBOSE)
 * names it.  NULL if sorts by this key first are left to PostgreSQL.
 */
Datum
gpusort_key_encoding(PG_FUNCTION_ARGS)
{
	GsKeyEncoding encoding = gpusort_key_encoding_find(PG_GETARG_OID(0), PG_GETARG_OID(1), NULL);

	if (encoding.kind == GS_ENCODE_NONE)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(gpusort_key_encoding_name(encoding.kind)));
}

/*
 * Does this server count statements?  The view of pg_stat_statements raises an error if its
 * library is not preloaded.  The library's own settings exist only if it is; a line in
 * postgresql.conf alone makes a placeholder.
 */
static bool
statements_are_counted(void)
{
	const char *setting = "pg_stat_statements.max";

	return GetConfigOption(setting, true, false) != NULL &&
		(GetConfigOptionFlags(setting, true) & GUC_CUSTOM_PLACEHOLDER) == 0;
}

/* Returns the schema of the extension pg_stat_statements, or NULL if it is not installed. */
static char *
schema_of_statements(void)
{
	int			result = SPI_execute("SELECT n.nspname FROM pg_catalog.pg_extension e"
									 " JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace"
									 " WHERE e.extname = 'pg_stat_statements'", true, 1);

	if (result != SPI_OK_SELECT)
		elog(ERROR, "could not look for pg_stat_statements: %s", SPI_result_code_string(result));
	if (SPI_processed == 0)
		return NULL;
	return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

/*
 * Get an array of the rows of pg_stat_statements that have written most temporary blocks.
 * Returns false if there are none.  Rows are JSON because columns differ between versions of
 * that extension, which need not be that of the server.
 */
static bool
read_statements(const char *schema, Datum most, bool all, Datum *statements)
{
	char	   *query = psprintf("SELECT pg_catalog.jsonb_agg(pg_catalog.to_jsonb(s))"
								 " FROM (SELECT * FROM %s.pg_stat_statements"
								 " WHERE temp_blks_written > 0 AND queryid IS NOT NULL AND dbid ="
								 " (SELECT oid FROM pg_catalog.pg_database"
								 " WHERE datname = pg_catalog.current_database())"
								 " ORDER BY temp_blks_written DESC, queryid LIMIT $1) s",
								 quote_identifier(schema));
	Oid			types[] = {INT4OID};
	int			result = SPI_execute_with_args(query, 1, types, &most, all ? "n" : " ",
											   true, 1);
	bool		isnull;
	Datum		value;

	if (result != SPI_OK_SELECT)
		elog(ERROR, "could not read pg_stat_statements: %s", SPI_result_code_string(result));
	value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	if (!isnull)
		*statements = SPI_datumTransfer(value, false, -1);
	return !isnull;
}

/*
 * gpusort_statements_on_disk(): the statements of this database that have written most
 * temporary blocks; NULL if there are none, or if pg_stat_statements does not count them.  The
 * SQL script gives this function a search_path that is safe for the queries above.
 */
Datum
gpusort_statements_on_disk(PG_FUNCTION_ARGS)
{
	bool		all = PG_ARGISNULL(0);
	Datum		most = all ? (Datum) 0 : PG_GETARG_DATUM(0);
	Datum		statements = (Datum) 0;
	bool		found = false;
	char	   *schema;

	if (!statements_are_counted())
		PG_RETURN_NULL();
	SPI_connect();
	schema = schema_of_statements();
	if (schema != NULL)
		found = read_statements(schema, most, all, &statements);
	SPI_finish();
	if (!found)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(statements);
}
