# shellcheck shell=bash
#
# gpu_lines.sh
#	The lines of scripts/bench -g.  They sort large tables by stock PostgreSQL,
#	by its parallel plans, by the extension on the CPU, on the GPU, and on the
#	GPU in parallel plans; and they scan the same tables without sorting.
#
# To be sourced after row_lines.sh.  Uses RUNS, ROWS, CSV, LOGGED, SORT_MB, HEX_20,
# WIDE_COLUMNS, key_expression and discarded of scripts/bench.
#
# Each of these is called a way; its times are in TIMES[way].  If a way ends in a
# number, this is its number of parallel workers; other ways have none.  All ways of a
# line run in turn, the slow ones in half of the rounds.

GPU_LINES=(narrow wide text ordinary names names_c first array check index)

GPU_HEADING='%-8s %-9s %10s %-30s %7s %7s %5s  %s\n'

# Maximum of sessions for loading tables; more do not help.
MOST_LOADERS=10

declare -A TIMES=() METHOD=()


# ---- Tables ----

# loaders: prints the number of sessions: one for each core, up to the maximum.
loaders()
{
	local cores

	cores=$(nproc)
	echo $((cores < MOST_LOADERS ? cores : MOST_LOADERS))
}

# load_table NAME COLUMNS: creates the table unless it exists.  COLUMNS are expressions
# of i.
load_table()
{
	local name=$1 columns=$2 parts part session
	local -a sessions=()

	[ "$(sql -c "SELECT to_regclass('$name') IS NULL")" = t ] || return 0
	parts=$(loaders)
	say "Loading $name, $ROWS rows, by $parts sessions" >&2
	sql -c "CREATE ${LOGGED:-UNLOGGED} TABLE $name AS SELECT $columns
				FROM (SELECT 0::int8 AS i) AS s WITH NO DATA" \
		-c "ALTER TABLE $name SET (parallel_workers = 15)"
	for ((part = 0; part < parts; part++)); do
		sql -c "INSERT INTO $name SELECT $columns
				FROM (SELECT generate_series($ROWS::int8 * $part / $parts + 1,
						$ROWS::int8 * ($part + 1) / $parts) AS i) AS s" &
		sessions+=($!)
	done
	for session in "${sessions[@]}"; do
		wait "$session" || die "loading $name failed"
	done
	sql -c "VACUUM (FREEZE, ANALYZE) $name"
}

load_gpu_table()
{
	case $1 in
		narrow) load_table narrow "i AS id, $(key_expression) AS k8" ;;
		wide) load_table wide "i AS id, $(key_expression) AS k8, $WIDE_COLUMNS" ;;
		text) load_table text "i AS id, $HEX_20 COLLATE \"C\" AS t" ;;
		ordinary) load_table ordinary "$ORDINARY_COLUMNS" ;;
		names)
			make_collations
			load_table names "i AS id, ($NAME) COLLATE english AS k"
			;;
		names_c) load_table names_c "i AS id, ($NAME) COLLATE \"C\" AS k" ;;
	esac
}

# Four arrays of ROWS / 2 elements each, since an array of 100 million elements exceeds
# 1 GB.
load_arrays()
{
	local array session
	local -a sessions=()

	say "Loading 4 arrays of $((ROWS / 2)) int8" >&2
	sql -c 'CREATE UNLOGGED TABLE arrays (a int8[])' \
		-c 'ALTER TABLE arrays ALTER a SET STORAGE EXTERNAL'
	for array in 1 2 3 4; do
		sql -c "INSERT INTO arrays SELECT array_agg(hashint8extended(i, $array))
				FROM (SELECT generate_series(1, $((ROWS / 2))::int8) AS i) AS s" &
		sessions+=($!)
	done
	for session in "${sessions[@]}"; do
		wait "$session" || die "loading the arrays failed"
	done
	sql -c 'VACUUM (FREEZE, ANALYZE) arrays'
}


# ---- Ways ----

# open_gpu_session NAME: NAME is stock, or ours_cpu... or ours_gpu..., which sort there.
open_gpu_session()
{
	open_session "$1"
	ask "$1" "SET work_mem = '${SORT_MB}MB'; SET max_parallel_workers = 16"
	case $1 in
		stock) ask "$1" 'SET pg_gpusort.enable = off; SET pg_gpusort.enable_index_build = off' ;;
		ours_cpu*) ask "$1" 'SET pg_gpusort.backend = cpu' ;;
		ours_gpu*) ask "$1" 'SET pg_gpusort.backend = gpu' ;;
	esac
	case $1 in
		ours*) ask "$1" "SET pg_gpusort.work_mem = '${SORT_MB}MB';
				SET pg_gpusort.min_rows = 0" ;;
	esac
}

key_of_table()
{
	case $1 in
		text) echo t ;;
		names*) echo k ;;
		*) echo k8 ;;
	esac
}

sorted_rows()
{
	echo "SELECT * FROM $1 ORDER BY $(key_of_table "$1")"
}

session_of()
{
	case $1 in
		scan | stock*) echo stock ;;
		*) echo "ours_${1%%_*}" ;;
	esac
}

workers_of()
{
	case $1 in
		*_*) echo "${1##*_}" ;;
		*) echo 0 ;;
	esac
}

# with_workers_of WAY COMMAND...: stock uses these workers regardless of their cost.
with_workers_of()
{
	local session

	session=$(session_of "$1")
	ask "$session" "SET max_parallel_workers_per_gather = $(workers_of "$1")"
	[ "$session" != stock ] ||
		ask "$session" 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0'
	"${@:2}"
	ask "$session" 'SET max_parallel_workers_per_gather = 0'
}

# time_way WAY TABLE: prints milliseconds.
time_way()
{
	local query

	query=$(sorted_rows "$2")
	[ "$1" != scan ] || query="SELECT * FROM $2"
	with_workers_of "$1" time_of "$(session_of "$1")" "$(discarded "$query")"
}

# Prints in how many of RUNS rounds a way takes part.
rounds_of()
{
	case $1 in
		scan | cpu_8 | gpu | gpu_8 | copy) echo "$RUNS" ;;
		stock) echo $((RUNS > 1 ? RUNS / 2 : 1)) ;;
		*) echo $(((RUNS + 1) / 2)) ;;
	esac
}

# time_in_turn TABLE WAY...
time_in_turn()
{
	local table=$1 round way

	shift
	TIMES=()
	for way; do
		TIMES[$way]=
	done
	for ((round = 0; round < RUNS; round++)); do
		for way; do
			[ "$round" -ge "$(rounds_of "$way")" ] ||
				TIMES[$way]+=" $(time_way "$way" "$table")"
		done
	done
}

# median_of WAY
median_of()
{
	# shellcheck disable=SC2086
	median ${TIMES[$1]}
}

# explain_way WAY TABLE: sets METHOD and prints the times of its phases.  This is also
# the run for warming up.
explain_way()
{
	local plan way=$1 shape

	shape=$(shape_of_way "$way" "$2")
	plan=$(with_workers_of "$way" ask "$(session_of "$way")" \
		"EXPLAIN (ANALYZE, FORMAT JSON) $(sorted_rows "$2")")
	METHOD[$way]=${shape:+$shape; }$(
		in_plan '(Sort Method|Sort Fallback|GPU Not Used)' <<<"$plan" |
			sed 's/^Sort Method: //' | sort -u | paste -sd ';' | sed 's/;/; /g'
	)
	in_plan '(Sort [^"]*Time|Sort Time|Execution Time)' <<<"$plan" |
		while IFS= read -r phase; do
			printf '%-7s %-9s     %-28s %12s ms\n' "$2" "$way" "${phase%: *}" "${phase##*: }"
			csv "$2" "$way: ${phase%: *}" 1 "${phase##*: }" "${phase##*: }" "${phase##*: }"
		done
}

# in_plan NAMES: prints "name: value" for properties of a plan in JSON, of any node.
in_plan()
{
	sed -nE "s/^[[:space:]]*\"$1\": \"?([^\"]*[^\",])\"?,?\$/\1: \2/p"
}

# shape_of_way WAY TABLE: prints the top node and the workers of a parallel plan.
shape_of_way()
{
	local plan

	[ "$(workers_of "$1")" -gt 0 ] || return 0
	plan=$(with_workers_of "$1" ask "$(session_of "$1")" \
		"EXPLAIN (COSTS OFF) $(sorted_rows "$2")")
	awk '
		NR == 1 { sub(/^ */, ""); shape = $0 }
		sub(/.*Workers Planned: /, "") { workers = $0 }
		END { print shape ", workers planned: " workers + 0 }' <<<"$plan"
}


# ---- Results ----

# csv LINE WAY RUNS MEDIAN LEAST GREATEST [METHOD]
csv()
{
	[ -z "$CSV" ] ||
		printf '%s,%s,%s,%s,%s,%s,%s,"%s"\n' "$1" "$2" "$ROWS" "${@:3:4}" \
			"${7-}" >>"$CSV"
}

# times_as_fast THAN WAY: prints a number, or - if there is nothing to compare with.
times_as_fast()
{
	if [ -n "${TIMES[$1]-}" ] && [ -n "${TIMES[$2]-}" ]; then
		ratio "$(median_of "$1")" "$(median_of "$2")"
	else
		echo -
	fi
}

# print_way LINE WAY [THAN [SCAN]]: compares with the ways THAN and SCAN.
print_way()
{
	local line=$1 way=$2 than=${3-stock} scan=${4-scan}
	local -a times

	read -ra times <<<"${TIMES[$way]}"
	# shellcheck disable=SC2059
	printf "$GPU_HEADING" "$line" "$way" "$ROWS" "$(spread "${times[@]}")" \
		"$(times_as_fast "$than" "$way")" "$(times_as_fast "$way" "$scan")" \
		"${#times[@]}" "${METHOD[$way]-}"
	csv "$line" "$way" "${#times[@]}" "$(median_of "$way")" \
		"$(printf '%s\n' "${times[@]}" | sort -g | head -n 1)" \
		"$(printf '%s\n' "${times[@]}" | sort -g | tail -n 1)" "${METHOD[$way]-}"
}

# measure_ways TABLE WAY...: compares with the way stock, or else with stock_8.
measure_ways()
{
	local table=$1 way than=stock

	shift
	[[ " $* " = *' stock '* ]] || than=stock_8
	load_gpu_table "$table"
	for way; do
		case $way in
			cpu* | gpu*) explain_way "$way" "$table" ;;
			*) METHOD[$way]=$(shape_of_way "$way" "$table") ;;
		esac
	done
	time_in_turn "$table" "$@"
	for way; do
		print_way "$table" "$way" "$than"
	done
}

gpu_line_narrow()
{
	measure_ways narrow scan stock stock_2 stock_4 stock_8 cpu cpu_1 cpu_2 cpu_4 cpu_8 cpu_15 \
		gpu gpu_2 gpu_4 gpu_8
}

gpu_line_wide()
{
	measure_ways wide scan stock stock_8 cpu cpu_8 gpu gpu_8
}

gpu_line_text()
{
	measure_ways text scan stock stock_8 cpu cpu_8 gpu gpu_8
}

gpu_line_ordinary()
{
	measure_ways ordinary scan stock stock_8 cpu cpu_8 gpu gpu_8
}

# Two fifths of the rows.  One process of stock PostgreSQL would take minutes.
gpu_line_names()
{
	ROWS=$((ROWS * 2 / 5)) measure_ways names scan stock_8 cpu cpu_8 gpu gpu_8
}

gpu_line_names_c()
{
	ROWS=$((ROWS * 2 / 5)) measure_ways names_c scan stock_8 cpu cpu_8 gpu gpu_8
}

gpu_line_first()
{
	first_queries narrow 0
	first_queries ordinary 8
}

# first_queries TABLE WORKERS: times the first query of a connection and the second.
first_queries()
{
	local round session query

	load_gpu_table "$1"
	query=$(discarded "$(sorted_rows "$1")")
	TIMES[first]=
	TIMES[second]=
	METHOD[first]="fresh connection, $1, gpu, up to $2 workers"
	METHOD[second]='the same connection'
	for ((round = 1; round <= RUNS; round++)); do
		session=ours_gpu_$1_$round
		open_gpu_session "$session"
		ask "$session" "SET max_parallel_workers_per_gather = $2"
		TIMES[first]+=" $(time_of "$session" "$query")"
		TIMES[second]+=" $(time_of "$session" "$query")"
		close_session "$session"
	done
	print_way first first second -
	print_way first second second -
}

# Times in milliseconds per array.  The way "copy" only reads the array.
gpu_line_array()
{
	local round
	local all='SELECT sum(cardinality(%s)) FROM arrays'
	local some='SELECT sum(cardinality(%s)) FROM (SELECT a FROM arrays LIMIT 1) AS s'

	load_arrays
	TIMES[copy]=
	TIMES[stock]=
	TIMES[cpu]=
	TIMES[gpu]=
	METHOD[copy]="a call of cardinality() for $((ROWS / 2)) elements"
	METHOD[stock]='a call of array_agg(x ORDER BY x)'
	METHOD[cpu]='a call of gpu_sort()'
	METHOD[gpu]='a call of gpu_sort()'
	ask ours_gpu 'SELECT pg_stat_gpusort_reset()' >/dev/null
	for ((round = 0; round < RUNS; round++)); do
		time_array copy stock "$all" a 4 "$round"
		time_array stock stock "$some" \
			'(SELECT array_agg(x ORDER BY x) FROM unnest(a) AS x)' 1 "$round"
		time_array cpu ours_cpu "$all" 'gpu_sort(a)' 4 "$round"
		time_array gpu ours_gpu "$all" 'gpu_sort(a)' 4 "$round"
	done
	print_way array copy stock -
	print_way array stock stock -
	print_way array cpu stock -
	print_way array gpu stock -
	ask ours_gpu 'SELECT row_to_json(s) FROM pg_stat_gpusort AS s' |
		sed 's/^/array   statistics of cpu and gpu: /'
}

# time_array WAY SESSION QUERY EXPRESSION ARRAYS ROUND
time_array()
{
	local query ms

	[ "$6" -lt "$(rounds_of "$1")" ] || return 0
	# shellcheck disable=SC2059
	query=$(printf "$3" "$4")
	[ "$6" -gt 0 ] || [ "$1" = stock ] || time_of "$2" "$query" >/dev/null
	ms=$(time_of "$2" "$query")
	TIMES[$1]+=" $(awk -v ms="$ms" -v arrays="$5" 'BEGIN { printf "%.3f", ms / arrays }')"
}

# Checks that all rows are returned once, whole and in order.  This is much cheaper than
# same_rows.
gpu_line_check()
{
	local table hash way wanted

	for table in narrow wide text names; do
		load_gpu_table "$table"
		hash=$(hash_of_row "$table")
		wanted=$(with_workers_of stock_8 ask stock \
			"SELECT count(*), bit_xor($hash), 0 FROM $table")
		for way in cpu gpu gpu_8; do
			check_rows "$table" "$way" "$hash" "$wanted"
		done
	done
}

hash_of_row()
{
	case $1 in
		narrow) echo 'hashint8extended(id, k8)' ;;
		text) echo 'hashtextextended(t, id)' ;;
		names) echo 'hashtextextended(k COLLATE "C", id)' ;;
		wide) echo 'hashint8extended(id, k8) # hashtextextended(t, hashint4extended(i4, hashfloat8extended(f8, timestamp_hash_extended(ts::timestamp, id))))' ;;
	esac
}

# check_rows TABLE WAY HASH WANTED
check_rows()
{
	local key given result=same

	key=$(key_of_table "$1")
	given=$(with_workers_of "$2" ask "$(session_of "$2")" \
		"SELECT count(*), bit_xor($3), count(*) FILTER (WHERE $key < before)
		FROM (SELECT *, lag($key) OVER () AS before
			FROM ($(sorted_rows "$1") OFFSET 0) AS s) AS w")
	if [ "$4" != "$given" ]; then
		result="DIFFERENT: $given instead of $4"
		DIFFERENT=yes
	fi
	printf '%-7s %-9s %10s %s\n' check "$2" "$ROWS" "$1: $result"
}


# ---- The table ----

start_gpu_server()
{
	local buffers=$BUFFERS_MB

	require_disk $((ROWS / 2500 + 2000))
	# Scans of a table stay in memory only if shared_buffers is larger than four times
	# its size.
	if [ -z "$buffers" ]; then
		buffers=$((ROWS / 2500 + 512))
		[ "$buffers" -lt $(($(memory_mb) / 2)) ] || buffers=$(($(memory_mb) / 2))
	fi
	# A quicksort of rows of 15 columns in memory takes about 300 bytes per row.
	SORT_MB=$((ROWS / 3000 + 64))
	start_cluster "shared_buffers = ${buffers}MB" 'autovacuum = off' \
		'max_wal_size = 32GB' 'checkpoint_timeout = 1h' \
		'max_worker_processes = 32' \
		"shared_preload_libraries = 'pg_gpusort'" \
		"pg_gpusort.device_library = '$DEVICE_LIBRARY'" \
		${SETTINGS[@]+"${SETTINGS[@]}"}
	sql -c 'CREATE EXTENSION pg_gpusort'
	open_gpu_session stock
	open_gpu_session ours_cpu
	open_gpu_session ours_gpu
}

describe_gpus()
{
	local gpus

	gpus=$(nvidia-smi --query-gpu=name,driver_version,memory.total \
		--format=csv,noheader 2>/dev/null | paste -sd ';') || true
	printf 'GPU:        %s; %s\n' "${gpus:-none}" "$DEVICE_LIBRARY"
	printf 'Settings:   jit off, work_mem and pg_gpusort.work_mem %s MB, serial but for stock_N, cpu_N and gpu_N\n' \
		"$SORT_MB"
}

# run_gpu_lines LINE...
run_gpu_lines()
{
	local line

	DIFFERENT=no
	start_gpu_server
	[ -z "$CSV" ] || echo 'line,way,rows,runs,median_ms,least_ms,greatest_ms,method' >"$CSV"
	echo
	describe_machine
	describe_gpus
	printf 'Keys:       %s; milliseconds: median (least..greatest)\n' "$KEYS"
	printf '            x stock: times as fast as the way stock, or stock_8 without it; x scan: times as long as the scan\n\n'
	# shellcheck disable=SC2059
	printf "$GPU_HEADING" line way rows ms 'x stock' 'x scan' runs method
	for line; do
		"gpu_line_$line"
	done
	[ "$DIFFERENT" = no ] || die 'the rows differ: this is a bug, please report it'
}
