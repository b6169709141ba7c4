# shellcheck shell=bash disable=SC2034
#
# compare.sh
#	Stock PostgreSQL and ours side by side: two long-lived sessions, in one of which
#	the extension is disabled, run the same queries in turn.  scripts/bench, which
#	measures more, has this in Python (benchmarks/measuring.py).
#
# To be sourced after cluster.sh.

declare -A SESSION_IN=() SESSION_OUT=()

# Both sessions sort in one process and in memory, so that the sorts are compared and
# not how well they use several cores.
SESSION_SETTINGS="
	SET jit = off;
	SET max_parallel_workers_per_gather = 0;
	SET work_mem = '2GB';"
STOCK_SETTINGS="
	SET pg_gpusort.enable = off;
	SET pg_gpusort.enable_index_build = off;"
OUR_SETTINGS="
	LOAD 'pg_gpusort';
	SET pg_gpusort.work_mem = '2GB';"


# ---- Sessions ----

# open_session NAME: starts a psql session for ask().
open_session()
{
	local name=$1 in=$WORK/tmp/$1.in out=$WORK/tmp/$1.out fd

	mkfifo "$in" "$out"
	sql <"$in" >"$out" 2>&1 &
	exec {fd}>"$in"
	SESSION_IN[$name]=$fd
	exec {fd}<"$out"
	SESSION_OUT[$name]=$fd
	rm "$in" "$out"
	ask "$name" "$(settings_of "$name")"
}

# settings_of NAME: prints what a session begins with.
settings_of()
{
	echo "$SESSION_SETTINGS"
	case $1 in
		stock) echo "$STOCK_SETTINGS" ;;
		ours) echo "$OUR_SETTINGS" ;;
	esac
}

# ask NAME SQL: prints the answer.
ask()
{
	local line last=end-of-answer

	printf '%s\n;\n\\echo %s\n' "$2" "$last" >&"${SESSION_IN[$1]}"
	while IFS= read -r -u "${SESSION_OUT[$1]}" line; do
		[ "$line" != "$last" ] || return 0
		printf '%s\n' "$line"
		[[ $line != *ERROR:* ]] || die "$1: $2: $line"
	done
	die "$1: the session ended during: $2"
}


# ---- Times ----

# time_of NAME SQL: prints milliseconds.
time_of()
{
	ask "$1" "\\timing on
$2;
\\timing off" | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'
}

# time_both RUNS SQL: runs it in turn; sets the arrays STOCK_MS and OURS_MS.
time_both()
{
	local run

	STOCK_MS=()
	OURS_MS=()
	for ((run = 0; run < $1; run++)); do
		STOCK_MS+=("$(time_of stock "$2")")
		OURS_MS+=("$(time_of ours "$2")")
	done
}

# median NUMBER...
median()
{
	printf '%s\n' "$@" | sort -g | awk '
		{ v[NR] = $1 }
		END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# ratio STOCK OURS: prints how many times as fast ours is.
ratio()
{
	awk -v stock="$1" -v ours="$2" 'BEGIN { printf "%.2f", stock / ours }'
}


# ---- Results ----

# The query in the form that is timed: all rows are computed, none is sent.
discarded()
{
	echo "$1 OFFSET 1000000000"
}

# checksum_of NAME QUERY KEY: prints checksums of the rows as a set, and of the keys in
# their order.  Ties may come in any order, so the first sum does not depend on
# positions, and the second depends only on keys.
checksum_of()
{
	ask "$1" "
		SELECT count(*), sum(hash_record_extended(r, 0)),
			sum((hash_record_extended(ROW($3), 0) & 1048575) * position)
		FROM (SELECT r, row_number() OVER () AS position FROM ($2 OFFSET 0) AS r) AS s"
}

# same_rows QUERY KEYS: prints yes or no.  KEYS are columns of the result r, as in
# (r).k8.
same_rows()
{
	local stock ours

	stock=$(checksum_of stock "$1" "$2")
	ours=$(checksum_of ours "$1" "$2")
	if [ "$stock" = "$ours" ]; then
		echo yes
	else
		echo no
	fi
}


# ---- The machine ----

describe_machine()
{
	local cpu

	cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
	printf 'Machine:    %s, %s cores, %s MB memory\n' "${cpu:-$(uname -m)}" \
		"$(nproc)" "$(memory_mb)"
	printf 'PostgreSQL: %s\n' "$PG_VERSION"
}

memory_mb()
{
	awk '/^MemTotal:/ { printf "%d", $2 / 1024 }' /proc/meminfo
}
