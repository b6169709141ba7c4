# shellcheck shell=bash disable=SC2034
#
# random_queries.sh
#	Random queries that sort, in the first run of a session and in later ones.
#
# To be sourced after compare.sh.  Uses SEED, RUNS and ROWS of scripts/bench.

# Each line is a query; random-queries makes as many.
RANDOM_LINES=()
for number in {1..60}; do
	RANDOM_LINES+=("q$number")
done
unset number

RANDOM_HEADING='%-5s %9s %9s %6s %9s %9s %6s  %-7s %-4s  %s\n'

# Ratios count as slower only if stock takes at least so many milliseconds.
LEAST_MS=200

RANDOM_QUERIES=()
DIFFERENT=()

# Makes the tables, and sets RANDOM_QUERIES.
make_random_queries()
{
	local script=$WORK/tmp/random-queries.sql

	"$scripts/lib/random-queries" "$SEED" "$ROWS" ${#RANDOM_LINES[@]} >"$script"
	sed '/^queries$/,$d' "$script" | sql
	readarray -t RANDOM_QUERIES < <(sed '1,/^queries$/d' "$script")
}

# measure_random LINE: prints the line, and appends its ratios to $WORK/tmp/ratios.
measure_random()
{
	local line=$1 memory ours_memory workers query compared keys settings

	IFS=$'\t' read -r memory ours_memory workers query compared keys \
		<<<"${RANDOM_QUERIES[${line#q} - 1]}"
	settings="SET work_mem = '$memory'; SET max_parallel_workers_per_gather = $workers"
	with_settings "$settings" "$settings; SET pg_gpusort.work_mem = '$ours_memory'" \
		compare_random "$line" "$query" "$compared" "$keys" \
		"$memory, $ours_memory, $workers: $query"
}

# compare_random LINE QUERY COMPARED KEYS WHAT: COMPARED is the form of the query whose
# results are compared by same_rows.
compare_random()
{
	local line=$1 query=$2 compared=$3 keys=$4 what=$5 same sorts stock_first
	local -a ratios

	same=$(same_rows "$compared" "$keys")
	[ "$same" = yes ] || DIFFERENT+=("$line")
	sorts=$(sorts_with ours "$query")
	time_sessions "$RUNS" "$(discarded "$query")" "$(discarded "$query")"
	stock_first=$(median "${STOCK_FIRST[@]}")
	readarray -t ratios < <(session_ratios)
	# shellcheck disable=SC2059
	printf "$RANDOM_HEADING" "$line" "$(printf %.0f "$stock_first")" \
		"$(printf %.0f "$(median "${OURS_FIRST[@]}")")" "${ratios[0]}" \
		"$(printf %.0f "$(median "${STOCK_LATER[@]}")")" \
		"$(printf %.0f "$(median "${OURS_LATER[@]}")")" "${ratios[1]}" "$sorts" "$same" "$what"
	echo "$sorts ${ratios[*]}" >>"$WORK/tmp/ratios"
	if awk -v ms="$stock_first" -v least="$LEAST_MS" 'BEGIN { exit !(ms >= least) }'; then
		note_ratios "$line by $sorts" "${ratios[@]}"
	fi
}

# Prints the geometric means of the queries with a sort of ours, and of the others.
show_means()
{
	awk '
		function mean(sum, n) { return n ? sprintf("%.2f", exp(sum / n)) : "-" }
		$1 == "GpuSort" { ours++; ours_first += log($2); ours_later += log($3); next }
		{ others++; first += log($2); later += log($3) }
		END {
			printf "\n%d queries with a sort of ours: geometric mean of the ratios %s first, %s later\n",
				ours, mean(ours_first, ours), mean(ours_later, ours)
			printf "%d without: %s first, %s later\n", others, mean(first, others), mean(later, others)
		}' "$WORK/tmp/ratios"
}

# run_random_queries LINE...: returns whether all results were the same.
run_random_queries()
{
	local line

	make_random_queries
	# shellcheck disable=SC2059
	printf "$RANDOM_HEADING" line 'stock, 1st' 'ours, 1st' ratio 'later' 'later' ratio \
		sorts same 'work_mem, pg_gpusort.work_mem, workers: query'
	for line; do
		measure_random "$line"
	done
	show_means
	show_slow_lines
	[ ${#DIFFERENT[@]} -eq 0 ] || die "different results: ${DIFFERENT[*]}"
}
