# shellcheck shell=bash disable=SC2034
#
# row_lines.sh
#	The lines of scripts/bench that sort ordinary rows as users meet them: of many
#	columns or with long values, in any order, with little memory and with much.
#
# To be sourced after compare.sh.  Uses ROWS, make_table and measure of scripts/bench.
# The table of 15 columns has a fifth of ROWS.

ROW_LINES=(rows rows_64 rows_16 rows_4 sorted sorted_16 reversed reversed_16 few few_16
	string string_16 ties ties_16 computed computed_16 two_columns workers workers_16 workers_4
	six six_16 long long_16)

# 15 columns, of which one in seven is NULL.
ORDINARY_COLUMNS="i AS id, hashint8extended(i, 7) AS k8, i % 100 AS a, i % 1000 AS b,
	hashint8(i) / 7.0::float8 AS f, timestamptz 'epoch' + i * interval '1 second' AS ts,
	'customer ' || i AS c1, 'street ' || (i % 1000) AS c2, NULL::text AS c3,
	'some comment text of forty characters ...' AS c4, (i % 10000)::numeric(12, 2) AS n,
	i % 2 = 0 AS bo, 'x' || i % 7 AS c5, NULL::int4 AS e,
	date '2020-01-01' + (i % 1000)::int AS d"
SIX_COLUMNS="i AS id, hashint8(i) AS i4, hashint8(i) / 7.0::float8 AS f,
	substr(md5(i::text), 1, 20) COLLATE \"C\" AS x, (i % 100000)::numeric(12, 2) AS n,
	i % 1000 AS few"
LONG_COLUMNS="i AS id, md5((i * 7)::text)::uuid AS u, repeat(md5(i::text), 6) AS long"

# make_ordinary NAME PART COLUMNS: makes the table of ROWS / PART rows.
make_ordinary()
{
	LINE_ROWS=$((ROWS / $2))
	make_table "$1" "$LINE_ROWS" "$3"
}

# sort_rows LINE WORKERS MEMORY WHAT KEYS QUERY: KEYS as in same_rows.
sort_rows()
{
	local settings="SET work_mem = '$3'; SET max_parallel_workers_per_gather = $2"

	with_settings "$settings" "$settings; SET pg_gpusort.work_mem = -1" \
		measure "$1" "$LINE_ROWS" "$4, $3" "$6" "$(discarded "$6")" 1 "$5"
}

row_line()
{
	local line=$1 memory=2GB workers=0

	case $line in
		*_64) memory=64MB ;;
		*_16) memory=16MB ;;
		*_4) memory=4MB ;;
	esac
	case $line in
		six*) make_ordinary six 5 "$SIX_COLUMNS" ;;
		long*) make_ordinary long 20 "$LONG_COLUMNS" ;;
		*) make_ordinary ordinary 5 "$ORDINARY_COLUMNS" ;;
	esac
	case $line in workers*) workers=2 ;; esac
	set -- "$line" "$workers" "$memory"
	case $line in
		rows*) sort_rows "$@" '15 columns by int8' '(r).k8' 'SELECT * FROM ordinary ORDER BY k8' ;;
		sorted*) sort_rows "$@" '15, in order' '(r).id' 'SELECT * FROM ordinary ORDER BY id' ;;
		reversed*) sort_rows "$@" '15, reversed' '(r).ts' 'SELECT * FROM ordinary ORDER BY ts DESC' ;;
		few*) sort_rows "$@" '15, by 100 values' '(r).a' 'SELECT * FROM ordinary ORDER BY a' ;;
		string*) sort_rows "$@" '15, by text' '(r).c1' 'SELECT * FROM ordinary ORDER BY c1' ;;
		ties*) sort_rows "$@" '15, 1000 texts, int8' '(r).c2, (r).k8' 'SELECT * FROM ordinary ORDER BY c2, k8' ;;
		computed*) sort_rows "$@" '15 and id + 1' '(r).k8' 'SELECT *, id + 1 AS next FROM ordinary ORDER BY k8' ;;
		two_columns) sort_rows "$@" '15, sums of two' '(r).a' 'SELECT sum(a) AS a, sum(f) AS f
			FROM (SELECT * FROM ordinary ORDER BY k8 OFFSET 0) AS s' ;;
		workers*) sort_rows "$@" '15, up to 2 workers' '(r).k8' 'SELECT * FROM ordinary ORDER BY k8' ;;
		six*) sort_rows "$@" '6 columns by float8' '(r).f' 'SELECT * FROM six ORDER BY f' ;;
		long*) sort_rows "$@" 'id, uuid, 192 bytes' '(r).u' 'SELECT * FROM long ORDER BY u' ;;
	esac
}
