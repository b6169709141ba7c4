# shellcheck shell=bash disable=SC2034
#
# row_lines.sh
#	Sorts of ordinary rows as users meet them: in the first sort of a session and in
#	later ones, with little memory and with much.
#
# To be sourced after compare.sh.  Uses RUNS and ROWS of scripts/bench.

ROW_LINES=(memory memory_64 memory_16 memory_4 sorted sorted_16 reversed reversed_16
	few few_16 text text_16 ties_16 computed computed_16 two_columns workers workers_16
	workers_4 six six_16 long long_16 narrow narrow_16)

ROW_HEADING='%-12s %-44s %-27s %-27s %6s  %-27s %-27s %6s  %-7s %s\n'

# 15 columns, of which one in seven is NULL; 6 columns; 3 columns, one of them long; 2.
make_row_tables()
{
	sql <<-END
		CREATE UNLOGGED TABLE ordinary AS
			SELECT i AS id, hashint8extended(i, 7) AS k8, i % 100 AS a, i % 1000 AS b,
				hashint8(i) / 7.0::float8 AS f, timestamptz 'epoch' + i * interval '1 second' AS ts,
				'customer ' || i AS c1, 'street ' || (i % 1000) AS c2, NULL::text AS c3,
				'some comment text of forty characters ...' AS c4,
				(i % 10000)::numeric(12, 2) AS n, i % 2 = 0 AS bo, 'x' || i % 7 AS c5,
				NULL::int4 AS e, date '2020-01-01' + (i % 1000)::int AS d
			FROM generate_series(1, $ROWS::int8) AS i;
		CREATE UNLOGGED TABLE six AS
			SELECT i AS id, hashint8(i) AS i4, hashint8(i) / 7.0::float8 AS f,
				substr(md5(i::text), 1, 20) COLLATE "C" AS x,
				(i % 100000)::numeric(12, 2) AS n, i % 1000 AS few
			FROM generate_series(1, $ROWS::int8) AS i;
		CREATE UNLOGGED TABLE long AS
			SELECT i AS id, md5((i * 7)::text)::uuid AS u, repeat(md5(i::text), 6) AS long
			FROM generate_series(1, $ROWS::int8 / 4) AS i;
		CREATE UNLOGGED TABLE narrow AS
			SELECT i AS id, hashint8extended(i, 7) AS k8
			FROM generate_series(1, $ROWS::int8) AS i;
		VACUUM (FREEZE, ANALYZE) ordinary, six, long, narrow;
	END
}

# times_of_session NAME SETTINGS QUERY: runs the query three times in a new session, and
# prints the times.
times_of_session()
{
	local load=

	[ "$1" != ours ] || load="LOAD 'pg_gpusort';"
	printf '%s\n' "$load" "$2;" '\timing on' "$3;" "$3;" "$3;" | sql |
		sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'
}

# time_sessions SETTINGS QUERY: in RUNS new sessions of stock PostgreSQL and of ours, in
# turn; sets the arrays STOCK_FIRST, STOCK_LATER, OURS_FIRST and OURS_LATER.
time_sessions()
{
	local run times

	STOCK_FIRST=() STOCK_LATER=() OURS_FIRST=() OURS_LATER=()
	for ((run = 0; run < RUNS; run++)); do
		readarray -t times < <(times_of_session stock "$1" "$2")
		STOCK_FIRST+=("${times[0]}")
		STOCK_LATER+=("${times[@]:1}")
		readarray -t times < <(times_of_session ours "$1" "$2")
		OURS_FIRST+=("${times[0]}")
		OURS_LATER+=("${times[@]:1}")
	done
}

# whole_spread MS...: prints median (least..greatest), without fractions.
whole_spread()
{
	printf '%s\n' "$@" | sort -g |
		awk -v median="$(median "$@")" '
			NR == 1 { least = $1 }
			END { printf "%.0f (%.0f..%.0f)", median, least, $1 }'
}

# measure_rows LINE MEMORY WORKERS QUERY KEYS: KEYS as in same_rows.
measure_rows()
{
	local line=$1 query=$4 same sorts first later settings
	settings="SET work_mem = '$2'; SET max_parallel_workers_per_gather = $3; SET jit = off"

	ask stock "$settings"
	ask ours "$settings; SET pg_gpusort.work_mem = -1"
	same=$(same_rows "$query" "$5")
	sorts=$(sorts_with ours "$query")
	time_sessions "$settings" "$(discarded "$query")"
	first=$(ratio "$(median "${STOCK_FIRST[@]}")" "$(median "${OURS_FIRST[@]}")")
	later=$(ratio "$(median "${STOCK_LATER[@]}")" "$(median "${OURS_LATER[@]}")")
	# shellcheck disable=SC2059
	printf "$ROW_HEADING" "$line" "$6" "$(whole_spread "${STOCK_FIRST[@]}")" \
		"$(whole_spread "${OURS_FIRST[@]}")" "$first" \
		"$(whole_spread "${STOCK_LATER[@]}")" "$(whole_spread "${OURS_LATER[@]}")" \
		"$later" "$sorts" "$same"
	note_ratios "$line" "$first" "$later"
}

# row_line LINE: its memory, workers, query, keys, and words for it.
row_line()
{
	local line=$1 memory=2GB workers=0

	case $line in
		*_64) memory=64MB ;;
		*_16) memory=16MB ;;
		*_4) memory=4MB ;;
	esac
	case $line in workers*) workers=2 ;; esac
	set -- "$line" "$memory" "$workers"
	case $line in
		memory*) measure_rows "$@" 'SELECT * FROM ordinary ORDER BY k8' '(r).k8' "15 columns by int8, $memory" ;;
		sorted*) measure_rows "$@" 'SELECT * FROM ordinary ORDER BY id' '(r).id' "the same, in order already, $memory" ;;
		reversed*) measure_rows "$@" 'SELECT * FROM ordinary ORDER BY ts DESC' '(r).ts' "by timestamptz, in reversed order, $memory" ;;
		few*) measure_rows "$@" 'SELECT * FROM ordinary ORDER BY a' '(r).a' "by an int with 100 values, $memory" ;;
		ties*) measure_rows "$@" 'SELECT * FROM ordinary ORDER BY c2, k8' '(r).c2, (r).k8' "by a text with 1000 values and int8, $memory" ;;
		text*) measure_rows "$@" 'SELECT * FROM ordinary ORDER BY c1' '(r).c1' "by text, $memory" ;;
		computed*) measure_rows "$@" 'SELECT *, id + 1 AS next FROM ordinary ORDER BY k8' '(r).k8' "with a computed column, $memory" ;;
		two_columns) measure_rows "$@" 'SELECT sum(a) AS a, sum(f) AS f FROM (SELECT * FROM ordinary ORDER BY k8 OFFSET 0) s' '(r).a' "sums of two columns of the sorted rows, $memory" ;;
		workers*) measure_rows "$@" 'SELECT * FROM ordinary ORDER BY k8' '(r).k8' "15 columns, up to 2 workers, $memory" ;;
		six*) measure_rows "$@" 'SELECT * FROM six ORDER BY f' '(r).f' "6 columns by float8, $memory" ;;
		long*) measure_rows "$@" 'SELECT * FROM long ORDER BY u' '(r).u' "id, uuid, text of 192 characters, $memory" ;;
		narrow*) measure_rows "$@" 'SELECT * FROM narrow ORDER BY k8' '(r).k8' "2 int8, $memory" ;;
	esac
}

# run_row_lines LINE...
run_row_lines()
{
	local line

	make_row_tables
	# shellcheck disable=SC2059
	printf "$ROW_HEADING" line row 'stock, first' 'ours, first' ratio 'stock, later' \
		'ours, later' ratio sorts same
	for line; do
		row_line "$line"
	done
	show_slow_lines
}
