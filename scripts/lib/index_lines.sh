# shellcheck shell=bash disable=SC2034
#
# index_lines.sh
#	The lines of scripts/bench that build indexes of logged tables, by stock
#	PostgreSQL and by the extension.
#
# To be sourced after gpu_lines.sh, which declares TIMES and METHOD.  Uses RUNS, ROWS,
# HEX_20, key_expression, make_table and print_sessions of scripts/bench.  scripts/demo
# uses the functions that build BUILD and compare results, which need only RUNS.

INDEX_LINES=(index_int8 index_int4 index_float8 index_timestamptz index_text index_sorted index_100k index_64mb)

# Declared by gpu_lines.sh.
declare -A TIMES METHOD

BUILD='CREATE INDEX built ON indexed (k)'

# index_memory MEMORY: prints settings that build indexes in one process with this memory.
index_memory()
{
	echo "SET max_parallel_maintenance_workers = 0; SET maintenance_work_mem = '$1'"
}


# ---- Results ----

# Prints a digest of everything that matters on the pages of the index.
digest_of_index()
{
	sql -c "SELECT count(*), sum(('x' || substr(md5(block || ' ' ||
					substr(page, 11, lower - 10)::text || substr(page, upper + 1)::text), 1, 15))::bit(60)::int8)
			FROM (SELECT block, get_raw_page('built', 'main', block) AS page
				FROM generate_series(0, pg_relation_size('built') / current_setting('block_size')::int8 - 1) AS block
				OFFSET 0) AS pages, page_header(page)"
}

# builds_of SESSION: prints how many indexes the extension has built.
builds_of()
{
	ask "$1" 'SELECT sum(index_builds) FROM pg_stat_gpusort'
}

# same_index SESSION_OF_STOCK SESSION: prints yes or no.
same_index()
{
	local session
	local -a digests=()

	for session; do
		ask "$session" "$BUILD"
		digests+=("$(digest_of_index)")
		sql -c 'DROP INDEX built'
	done
	if [ "${digests[0]}" = "${digests[1]}" ]; then
		echo yes
	else
		echo no
	fi
}


# ---- Times ----

# time_build SESSION: prints milliseconds.  The checkpoint writes the previous build
# first.
time_build()
{
	sql -c 'CHECKPOINT'
	time_of "$1" "$BUILD"
	sql -c 'DROP INDEX built'
}

# RUNS builds in turn; sets the arrays STOCK_MS and OURS_MS.
time_both_builds()
{
	local run

	STOCK_MS=()
	OURS_MS=()
	for ((run = 0; run < RUNS; run++)); do
		STOCK_MS+=("$(time_build stock)")
		OURS_MS+=("$(time_build ours)")
	done
}

# index_of_rows LINE ROWS WHAT COLUMN [MEMORY]
index_of_rows()
{
	local memory

	memory=$(index_memory "${5-1GB}")
	sql -c 'CREATE EXTENSION IF NOT EXISTS pageinspect' 2>/dev/null
	make_table indexed "$2" "i AS id, $4 AS k" LOGGED
	with_settings "$memory" "$memory" measure_builds "$1" "$2" "$3"
	sql -c 'DROP TABLE indexed'
}

# measure_builds LINE ROWS WHAT: the checkpoint writes the previous build first.
measure_builds()
{
	local same before builder=stock

	before=$(builds_of ours)
	# This is also the run for warming up.
	same=$(same_index stock ours)
	[ "$(builds_of ours)" -eq "$before" ] || builder=ours
	time_sessions "$RUNS" "$BUILD" "$BUILD" 'DROP INDEX built; CHECKPOINT'
	print_sessions "$1" "$2" "$3" "$builder" "$same"
}

line_index_int8()
{
	index_of_rows index_int8 "$ROWS" 'index of int8' "$(key_expression)"
}

line_index_int4()
{
	index_of_rows index_int4 "$ROWS" 'index of int4, 65536 different' '(hashint8(i) & 65535)'
}

line_index_float8()
{
	index_of_rows index_float8 "$ROWS" 'index of float8' 'hashint8extended(i, 42) / 7.0::float8'
}

line_index_timestamptz()
{
	index_of_rows index_timestamptz "$ROWS" 'index of timestamptz' \
		"timestamptz 'epoch' + hashint8(i) * interval '1 second'"
}

line_index_text()
{
	index_of_rows index_text "$ROWS" 'index of text of 20 characters, C' "$HEX_20 COLLATE \"C\""
}

line_index_sorted()
{
	index_of_rows index_sorted "$ROWS" 'index of int8, sorted' i
}

line_index_100k()
{
	index_of_rows index_100k 100000 'index of int8' "$(key_expression)"
}

line_index_64mb()
{
	index_of_rows index_64mb "$ROWS" 'index of int8, 64MB' "$(key_expression)" 64MB
}


# ---- On a GPU ----

# build_way WAY COMMAND...: runs the command with the way's workers and all memory.
build_way()
{
	local session

	session=$(session_of "$1")
	ask "$session" "SET max_parallel_maintenance_workers = $(workers_of "$1");
		SET maintenance_work_mem = '${SORT_MB}MB'"
	"${@:2}" "$session"
}

# Prints who has built the index, and the times of the sort.
method_of_build()
{
	[[ $1 = ours* ]] || return 0
	ask "$1" "SELECT string_agg(format('%s%s: drain %s ms, sort %s ms', backend,
				CASE WHEN parallel_sorts > 0 THEN ', parallel' END,
				round(drain_time::numeric), round(sort_time::numeric)), '; ')
			FROM pg_stat_gpusort WHERE index_builds > 0"
}

# warm_up SESSION: sets METHOD[way] for the caller's way, and adds to DIGESTS.
warm_up()
{
	ask "$1" 'SELECT pg_stat_gpusort_reset()' >/dev/null
	ask "$1" "$BUILD"
	DIGESTS+=("$(digest_of_index)")
	METHOD[$way]=$(method_of_build "$1")
	sql -c 'DROP INDEX built'
}

# Indexes of a logged table with int8 keys, like those of the table narrow.
gpu_line_index()
{
	local way round digest
	local -a ways=(stock stock_8 cpu cpu_8 gpu gpu_8) DIGESTS=()

	sql -c 'CREATE EXTENSION IF NOT EXISTS pageinspect' 2>/dev/null
	LOGGED=' ' load_table indexed "i AS id, $(key_expression) AS k"
	for way in "${ways[@]}"; do
		TIMES[$way]=
		build_way "$way" warm_up
	done
	for ((round = 0; round < RUNS; round++)); do
		for way in "${ways[@]}"; do
			[ "$round" -ge "$(rounds_of "$way")" ] ||
				TIMES[$way]+=" $(build_way "$way" time_build)"
		done
	done
	for way in "${ways[@]}"; do
		print_way index "$way" stock -
	done
	for digest in "${DIGESTS[@]}"; do
		if [ "$digest" != "${DIGESTS[0]}" ]; then
			DIFFERENT=yes
			echo "index   DIFFERENT: $digest instead of ${DIGESTS[0]}"
		fi
	done
	sql -c 'DROP TABLE indexed'
}
