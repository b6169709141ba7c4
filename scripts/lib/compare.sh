# shellcheck shell=bash disable=SC2034
#
# compare.sh
#	Stock PostgreSQL and ours side by side: sessions without the extension, or in
#	which it is disabled, and sessions with it run the same queries in turn.  There
#	are two long-lived sessions, and new ones for the times of first sorts.
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

# Further settings of sessions, as long as with_settings runs its command.
declare -A MORE_SETTINGS=([stock]="" [ours]="")


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
		stock*) echo "$STOCK_SETTINGS ${MORE_SETTINGS[stock]}" ;;
		ours*) echo "$OUR_SETTINGS ${MORE_SETTINGS[ours]}" ;;
	esac
}

# with_settings STOCK OURS COMMAND...: runs the command with these further settings for
# sessions of stock PostgreSQL and of ours.
with_settings()
{
	local stock=${MORE_SETTINGS[stock]} ours=${MORE_SETTINGS[ours]} session

	MORE_SETTINGS[stock]+="$1;"
	MORE_SETTINGS[ours]+="$2;"
	for session in stock ours; do
		ask "$session" "${MORE_SETTINGS[$session]}"
	done
	"${@:3}"
	MORE_SETTINGS[stock]=$stock
	MORE_SETTINGS[ours]=$ours
	for session in stock ours; do
		ask "$session" "RESET ALL; $(settings_of "$session")"
	done
}

close_session()
{
	local in=${SESSION_IN[$1]} out=${SESSION_OUT[$1]}

	exec {in}>&- {out}<&-
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

# How often a new session runs what is timed: once for the first time, and then again.
RUNS_OF_SESSION=3

# times_of_session NAME SQL [BETWEEN]: runs the SQL several times in a new session,
# BETWEEN after each time, and prints the times.
times_of_session()
{
	local run

	{
		settings_of "$1"
		for ((run = 0; run < RUNS_OF_SESSION; run++)); do
			printf '\\timing on\n%s;\n\\timing off\n%s;\n' "$2" "${3-}"
		done
	} | sql | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'
}

# time_sessions RUNS STOCK OURS [BETWEEN]: runs the SQL of both in as many new sessions of
# each, in turn; sets the arrays STOCK_FIRST, STOCK_LATER, OURS_FIRST and OURS_LATER.
time_sessions()
{
	local run times

	STOCK_FIRST=() STOCK_LATER=() OURS_FIRST=() OURS_LATER=()
	for ((run = 0; run < $1; run++)); do
		readarray -t times < <(times_of_session stock "$2" "${4-}")
		[ ${#times[@]} -eq "$RUNS_OF_SESSION" ] || die "a session has failed: $2"
		STOCK_FIRST+=("${times[0]}")
		STOCK_LATER+=("${times[@]:1}")
		readarray -t times < <(times_of_session ours "$3" "${4-}")
		[ ${#times[@]} -eq "$RUNS_OF_SESSION" ] || die "a session has failed: $3"
		OURS_FIRST+=("${times[0]}")
		OURS_LATER+=("${times[@]:1}")
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

# Prints the ratios of the first and of the later times of sessions.
session_ratios()
{
	ratio "$(median "${STOCK_FIRST[@]}")" "$(median "${OURS_FIRST[@]}")"
	echo
	ratio "$(median "${STOCK_LATER[@]}")" "$(median "${OURS_LATER[@]}")"
}


# ---- Lines on which ours is slower ----

# Ours is slower if it takes more than this many times as long as stock.
SLOWER=1.05
SLOW_LINES=()

# note_ratios LINE RATIO...: notes the line if ours is slower by one of the ratios.
note_ratios()
{
	local line=$1

	shift
	if printf '%s\n' "$@" | awk -v slower="$SLOWER" '
		$1 * slower < 1 { found = 1 }
		END { exit !found }'; then
		SLOW_LINES+=("$line ($(join ', ' "$@"))")
	fi
}

show_slow_lines()
{
	printf '\nSlower than stock PostgreSQL by more than a twentieth: %s\n' \
		"$(join '; ' "${SLOW_LINES[@]-none}")"
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

# sorts_with NAME SQL: prints the node that sorts in the query's plan, or none.
sorts_with()
{
	case $(ask "$1" "EXPLAIN (COSTS OFF) $2") in
		*GpuSort*) echo GpuSort ;;
		*Sort*) echo Sort ;;
		*) echo none ;;
	esac
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
