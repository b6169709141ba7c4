# shellcheck shell=bash disable=SC2034,SC2154
#
# cost_lines.sh
#	Costs of sorts and hash tables per row, as measured and as planned.
#
# To be sourced after compare.sh.  Uses RUNS and ROWS of scripts/bench.  Costs are in
# units of cpu_operator_cost; the length of a unit is measured by a sequential scan.

COST_LINES=(bytes_16 bytes_48 bytes_112 bytes_272 words_2 words_4 ties disk
	columns_4 columns_7 columns_9 columns_12 columns_12_disk sorted sorted_disk sorted_12_disk
	groups_1k groups_10k groups_100k groups_1m
	join_1k join_10k join_100k join_1m)

NINE_COLUMNS='id, k1, k2, k3, k4, g1k, g10k, g100k, g1m'

COST_HEADING='%-15s %8s %8s %8s %8s %8s %9s %9s %9s  %s\n'

# Columns in random order: numbers below a thousand to a million, and 64-bit numbers.
make_cost_tables()
{
	sql <<-END
		CREATE UNLOGGED TABLE costs AS
			SELECT i AS id, hashint8extended(i, 1) AS k1, hashint8extended(i, 2) AS k2,
				hashint8extended(i, 3) AS k3, hashint8extended(i, 4) & 255 AS k4,
				(hashint8extended(i, 5) & 1073741823) % 1000 AS g1k,
				(hashint8extended(i, 5) & 1073741823) % 10000 AS g10k,
				(hashint8extended(i, 5) & 1073741823) % 100000 AS g100k,
				(hashint8extended(i, 5) & 1073741823) % 1000000 AS g1m,
				'text ' || (hashint8extended(i, 6) & 65535) AS t,
				repeat('x', 30) AS t32, repeat('x', 94) AS t96, repeat('x', 252) AS t256
			FROM generate_series(1, $ROWS::int8) AS i;
		CREATE UNLOGGED TABLE others AS
			SELECT i AS id, hashint8extended(i, 7) AS v
			FROM generate_series(0, 999999) AS i;
		CREATE TABLE nothing (LIKE costs);
		VACUUM (FREEZE, ANALYZE) costs, others, nothing;
	END
}

# Rows as the input of a sort.  The input is not a plain scan, because GpuSort reads
# those faster than the planner assumes.
input_of()
{
	echo "SELECT * FROM (SELECT $1 FROM costs UNION ALL SELECT $1 FROM nothing) AS s"
}

# planned_cost NAME SQL
planned_cost()
{
	ask "$1" "EXPLAIN $2" | sed -nE '1s/.*\.\.([0-9.]+) rows=.*/\1/p'
}

# per_row TOTAL BASE UNIT: prints TOTAL - BASE per row, in units.
per_row()
{
	awk -v total="$1" -v base="$2" -v rows="$ROWS" -v unit="$3" \
		'BEGIN { printf "%.1f", (total - base) / rows / unit }'
}

# measure_cost LINE BASE QUERY: QUERY processes the rows that BASE only returns.
measure_cost()
{
	local line=$1 base=$2 query=$3 run base_cost node stock ours
	local -a base_ms=() stock_ms=() ours_ms=()

	for ((run = 0; run <= RUNS; run++)); do
		base_ms+=("$(time_of stock "$(discarded "$base")")")
		stock_ms+=("$(time_of stock "$(discarded "$query")")")
		ours_ms+=("$(time_of ours "$(discarded "$query")")")
	done
	# The first runs were only for warming up.
	base=$(median "${base_ms[@]:1}")
	stock=$(median "${stock_ms[@]:1}")
	ours=$(median "${ours_ms[@]:1}")
	base_cost=$(planned_cost stock "$2")
	node=$(ask ours "EXPLAIN (COSTS OFF) $query" | sed -n '1s/ *$//p')
	# shellcheck disable=SC2059
	printf "$COST_HEADING" "$line" "$base" "$stock" "$ours" \
		"$(per_row "$stock" "$base" "$UNIT_MS")" \
		"$(per_row "$ours" "$base" "$UNIT_MS")" \
		"$(per_row "$(planned_cost stock "$query")" "$base_cost" 0.0025)" \
		"$(per_row "$(planned_cost ours "$query")" "$base_cost" 0.0025)" \
		"$(ratio "$stock" "$ours")" "$node"
}

# measure_sort LINE COLUMNS KEYS
measure_sort()
{
	measure_cost "$1" "$(input_of "$2")" "$(input_of "$2") ORDER BY $3"
}

measure_on_disk()
{
	with_settings "SET work_mem = '4MB'" \
		"SET work_mem = '4MB'; SET pg_gpusort.work_mem = '4MB'" measure_sort "$@"
}

measure_groups()
{
	measure_cost "$1" "SELECT g$2 FROM costs" \
		"SELECT g$2, count(*) FROM costs GROUP BY g$2"
}

# measure_join LINE NAME NUMBER: joins with NUMBER rows of another table.
measure_join()
{
	measure_cost "$1" "SELECT id, k1, g$2 FROM costs" \
		"SELECT costs.id, k1, v FROM costs JOIN others ON others.id = g$2 WHERE others.id < $3"
}

cost_line()
{
	case $1 in
		bytes_16) measure_sort "$1" 'id, k1' k1 ;;
		bytes_48) measure_sort "$1" 'id, k1, t32' k1 ;;
		bytes_112) measure_sort "$1" 'id, k1, t96' k1 ;;
		bytes_272) measure_sort "$1" 'id, k1, t256' k1 ;;
		words_2) measure_sort "$1" 'k1, k4' 'k4, k1' ;;
		words_4) measure_sort "$1" 'k1, k2, k3, k4' 'k4, k1, k2' ;;
		ties) measure_sort "$1" 'id, t' t ;;
		disk) measure_on_disk "$1" 'id, k1' k1 ;;
		columns_4) measure_sort "$1" 'id, k1, k2, k3' k1 ;;
		columns_7) measure_sort "$1" 'id, k1, k2, k3, k4, g1k, g10k' k1 ;;
		columns_9) measure_sort "$1" "$NINE_COLUMNS" k1 ;;
		columns_12) measure_sort "$1" "$NINE_COLUMNS, t, t32, t96" k1 ;;
		columns_12_disk) measure_on_disk "$1" "$NINE_COLUMNS, t, t32, t96" k1 ;;
		sorted) measure_sort "$1" 'id, k1' id ;;
		sorted_disk) measure_on_disk "$1" 'id, k1' id ;;
		sorted_12_disk) measure_on_disk "$1" "$NINE_COLUMNS, t, t32, t96" id ;;
		groups_*) measure_groups "$1" "${1#groups_}" ;;
		join_1k) measure_join "$1" 1k 1000 ;;
		join_10k) measure_join "$1" 10k 10000 ;;
		join_100k) measure_join "$1" 100k 100000 ;;
		join_1m) measure_join "$1" 1m 1000000 ;;
	esac
}

# Prints the milliseconds of one unit.
measure_unit()
{
	local query='SELECT id, k1 FROM costs' run
	local -a ms=()

	for ((run = 0; run <= RUNS; run++)); do
		ms+=("$(time_of stock "$(discarded "$query")")")
	done
	awk -v ms="$(median "${ms[@]:1}")" -v cost="$(planned_cost stock "$query")" \
		'BEGIN { print ms / cost * 0.0025 }'
}

run_cost_lines()
{
	local line

	make_cost_tables
	UNIT_MS=$(measure_unit)
	printf 'Unit:       cpu_operator_cost is %s ns\n\n' \
		"$(awk -v ms="$UNIT_MS" 'BEGIN { printf "%.1f", ms * 1000000 }')"
	# shellcheck disable=SC2059
	printf "$COST_HEADING" line 'input ms' 'stock ms' 'ours ms' stock ours \
		planned planned ratio node
	for line; do
		cost_line "$line"
	done
}
