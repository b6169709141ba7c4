# shellcheck shell=bash
#
# progress.sh
#	How long suites will take, from how long they took before, and how far they are.
#	To be sourced after server.sh and results.sh, by a script that sets JOBS and START_ORDER.
#
# Times are lines "SUITE SECONDS", and "build SECONDS" for the extension.  They are in
# build/suite-times, which each run of this tree updates with the suites that passed, and
# in suite-times beside this file, which says where and when they were measured.  Those
# are for machines that have run nothing yet: they are multiplied by the time of the
# build here, divided by that of the build there.

TIMES_HERE=$REPO/build/suite-times
TIMES_ELSEWHERE=$LIB/test/suite-times

# Seconds between two lines that say how far the suites are.
PROGRESS_INTERVAL=60

# Expected seconds of each suite, and when those that run have started.
declare -A EXPECTED=() STARTED=()

# In the directory details of a suite, the output of pg_regress as long as it runs.  Its
# results are not in the suite's log yet.
RUNNING_OUTPUT=output.running

# Where the expected seconds come from.
EXPECTED_FROM=

# seconds_of SUITE FILE: prints its seconds, if the file has them.
seconds_of()
{
	[ ! -f "$2" ] || sed -nE "s/^$1 ([0-9]+)$/\1/p" "$2"
}

# expect_suites BUILD_SECONDS SUITE...: sets EXPECTED.  A suite without a time is taken for
# one that needs none.
expect_suites()
{
	local build=$1 suite seconds reference measured=0

	shift
	reference=$(seconds_of build "$TIMES_ELSEWHERE")
	for suite; do
		seconds=$(seconds_of "$suite" "$TIMES_HERE")
		if [ -n "$seconds" ]; then
			measured=$((measured + 1))
		else
			seconds=$(seconds_of "$suite" "$TIMES_ELSEWHERE")
			seconds=$((${seconds:-0} * build / ${reference:-1}))
		fi
		EXPECTED[$suite]=$seconds
	done
	if [ "$measured" -eq $# ]; then
		EXPECTED_FROM="by the last runs here"
	else
		EXPECTED_FROM="by the time of the build, for $(($# - measured)) of $# suites"
	fi
}

# remaining_seconds SUITE...: prints how long the suites that run and these, which wait, will
# take together.  A suite starts when another one ends, in the order of START_ORDER.
remaining_seconds()
{
	local suite lane first i left
	local -a lanes=()

	for suite in "${!RUNNING[@]}"; do
		left=$((EXPECTED[$suite] - SECONDS + STARTED[$suite]))
		# Late: nothing is known but that it still runs.
		[ "$left" -gt 10 ] || left=10
		lanes+=("$left")
	done
	while [ ${#lanes[@]} -lt "$JOBS" ]; do
		lanes+=(0)
	done
	for suite in "${START_ORDER[@]}"; do
		[[ " $* " = *" $suite "* ]] || continue
		first=0
		for i in "${!lanes[@]}"; do
			[ "${lanes[i]}" -ge "${lanes[first]}" ] || first=$i
		done
		lanes[first]=$((lanes[first] + EXPECTED[$suite]))
	done
	left=0
	for lane in "${lanes[@]}"; do
		[ "$lane" -le "$left" ] || left=$lane
	done
	echo "$left"
}

# duration SECONDS: prints it for people.
duration()
{
	if [ "$1" -lt 90 ]; then
		echo "$1 seconds"
	else
		echo "$((($1 + 30) / 60)) minutes"
	fi
}

# say_estimate SUITE...: how long they will take, before any has started.
say_estimate()
{
	say "$# suites, $JOBS at a time: about $(duration "$(remaining_seconds "$@")") ($EXPECTED_FROM)"
}

# passed_so_far SUITE: prints how many tests of a suite that runs have passed.
passed_so_far()
{
	local output=$WORK/$1/details/$RUNNING_OUTPUT

	{
		cat "$WORK/$1/log/$1.log"
		[ ! -f "$output" ] || pg_regress_results "$output"
	} | grep -cE '^ok [^ ]+$' || true
}

# say_progress SUITE...: how far those that run are, while these wait.
say_progress()
{
	local suite passed text=

	for suite in "${!RUNNING[@]}"; do
		passed=$(passed_so_far "$suite")
		text+=", $suite ($passed passed)"
	done
	say "About $(duration "$(remaining_seconds "$@")") left; running: ${text#, }; waiting: $#"
}

# keep_time SUITE SECONDS: for the next run.  Not if build/ cannot be written.
keep_time()
{
	mkdir -p "$REPO/build" 2>/dev/null && [ -w "$REPO/build" ] || return 0
	touch "$TIMES_HERE"
	sed -i -e "/^$1 /d" -e "\$a $1 $2" "$TIMES_HERE"
	[ -s "$TIMES_HERE" ] || echo "$1 $2" >"$TIMES_HERE"
}
