# shellcheck shell=bash
#
# gin_lines.sh
#	The lines of scripts/bench that build GIN indexes of logged tables, by stock
#	PostgreSQL and by the extension.  Of ROWS rows there are a fifth in documents, a
#	tenth in texts and half in arrays (lib/gin-rows).
#
# To be sourced after index_lines.sh.  Uses RUNS, ROWS, with_settings, time_sessions and
# print_sessions of scripts/bench.

# shellcheck disable=SC2034
GIN_LINES=(gin_path gin_jsonb gin_array gin_tsvector gin_trigram)

# gin_table NAME KIND ROWS COLUMN: creates the table unless it exists.
gin_table()
{
	[ "$(sql -c "SELECT to_regclass('$1') IS NULL")" = t ] || return 0
	sql -c "CREATE TABLE $1 ($4)"
	"$scripts/lib/gin-rows" "$2" "$3" | sql -c "COPY $1 FROM STDIN"
	sql -c "VACUUM (FREEZE, ANALYZE) $1"
}

# Prints the numbers of keys and of pairs of key and TID of the index.
digest_of_gin()
{
	sql -c "SELECT n_entries, (SELECT reltuples FROM pg_class WHERE oid = 'built'::regclass)
			FROM gin_metapage_info(get_raw_page('built', 0))"
}

# measure_gins LINE ROWS WHAT: as measure_builds.
measure_gins()
{
	local session before builder=stock same=no
	local -a digests=()

	before=$(builds_of ours)
	for session in stock ours; do
		ask "$session" "$BUILD"
		digests+=("$(digest_of_gin)")
		sql -c 'DROP INDEX built'
	done
	[ "${digests[0]}" != "${digests[1]}" ] || same=yes
	[ "$(builds_of ours)" -eq "$before" ] || builder=ours
	time_sessions "$RUNS" "$BUILD" "$BUILD" 'DROP INDEX built; CHECKPOINT'
	print_sessions "$1" "$2" "$3" "$builder" "$same"
}

# gin_of_rows LINE ROWS WHAT TABLE COLUMN
gin_of_rows()
{
	local BUILD="CREATE INDEX built ON $4 USING gin ($5)" memory

	memory=$(index_memory 1GB)
	sql -c 'CREATE EXTENSION IF NOT EXISTS pageinspect' \
		-c 'CREATE EXTENSION IF NOT EXISTS pg_trgm' 2>/dev/null
	with_settings "$memory" "$memory" measure_gins "$1" "$2" "$3"
}

line_gin_path()
{
	gin_table documents documents "$((ROWS / 5))" 'j jsonb'
	gin_of_rows gin_path "$((ROWS / 5))" 'GIN index of jsonb, jsonb_path_ops' documents 'j jsonb_path_ops'
}

line_gin_jsonb()
{
	gin_table documents documents "$((ROWS / 5))" 'j jsonb'
	gin_of_rows gin_jsonb "$((ROWS / 5))" 'GIN index of jsonb' documents j
}

line_gin_array()
{
	gin_table int_arrays arrays "$((ROWS / 2))" 'a int[]'
	gin_of_rows gin_array "$((ROWS / 2))" 'GIN index of int[]' int_arrays a
}

line_gin_tsvector()
{
	gin_table texts texts "$((ROWS / 10))" 't text'
	if [ "$(sql -c "SELECT to_regclass('vectors') IS NULL")" = t ]; then
		sql -c "CREATE TABLE vectors AS SELECT to_tsvector('simple', t) AS v FROM texts" \
			-c 'VACUUM (FREEZE, ANALYZE) vectors'
	fi
	gin_of_rows gin_tsvector "$((ROWS / 10))" 'GIN index of tsvector' vectors v
}

line_gin_trigram()
{
	gin_table texts texts "$((ROWS / 10))" 't text'
	gin_of_rows gin_trigram "$((ROWS / 10))" 'GIN index of text, gin_trgm_ops' texts 't gin_trgm_ops'
}
