# shellcheck shell=bash
#
# results.sh
#	Results of tests as lines "ok NAME" and "not ok NAME", and the table of
#	suites with which scripts end.
#
# Names have no spaces.  This distinguishes the lines from those of a test's parts,
# which a test may print: "ok 1 - what was checked".

# pg_regress_results LOG [PREFIX]: prints the results in the output of pg_regress or
# pg_isolation_regress, which has the format of PostgreSQL 15 or that of 16 and later.
pg_regress_results()
{
	local prefix=${2-}

	sed -nE \
		-e "s,^(test +| +)?([^ ]+) +\.\.\. ok.*,ok $prefix\2,p" \
		-e "s,^(test +| +)?([^ ]+) +\.\.\. FAILED.*,not ok $prefix\2,p" \
		-e "s,^(ok|not ok) [0-9]+ +[-+] ([^ ]+).*,\1 $prefix\2,p" \
		"$1"
}

# report NAME COMMAND...: runs the command and prints its result.
report()
{
	local name=$1

	shift
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name"
		return 1
	fi
}

# count_results OUTCOME FILE: counts the lines with "ok" or "not ok".
count_results()
{
	grep -cE "^$1 [^ ]+$" "$2" || true
}


# ---- The table ----

RESULTS=()
PASSED=0
FAILED=0

# add_result SUITE VERSION PASSED FAILED SECONDS
add_result()
{
	RESULTS+=("$(printf '%-10s %-8s %7d %7d %8d' "$@")")
	PASSED=$((PASSED + $3))
	FAILED=$((FAILED + $4))
}

# take_results LOG SUITE SECONDS: adds the results of the table in that log.  If it has
# no table, the suite has failed.
take_results()
{
	local row found=no

	while read -r -a row; do
		found=yes
		add_result "${row[@]}"
	done < <(sed -n '/^suite  *version  *passed/,/^$/p' "$1" |
		grep -E '^[a-z_]+ +[^ ]+( +[0-9]+){3}$')
	[ "$found" = yes ] || add_result "$2" "$(version_in "$1")" 0 1 "$3"
}

# version_in LOG: prints the version of PostgreSQL that the log's script has built for,
# or "-".
version_in()
{
	sed -n 's/.*Building for PostgreSQL \([^ ]*\).*/\1/p' "$1" | grep . || echo -
}

# Prints the table and the closing line.  Returns false if something has failed or
# nothing has passed.
show_results()
{
	printf '\n%-10s %-8s %7s %7s %8s\n' suite version passed failed seconds
	printf '%s\n' "${RESULTS[@]}"
	echo
	echo "$PASSED passed, $FAILED failed"
	[ "$FAILED" -eq 0 ] && [ "$PASSED" -gt 0 ]
}
