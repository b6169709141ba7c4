# shellcheck shell=bash
#
# results.sh
#	The outcome of tests as lines "ok NAME" and "not ok NAME".  Names have no
#	spaces, which tells these lines from those of the parts of a test, where a
#	test prints such: "ok 1 - what was checked".

# pg_regress_results LOG [PREFIX]: what pg_regress or pg_isolation_regress has
# printed, in the format of PostgreSQL 15 or in that of 16 and later.
pg_regress_results()
{
	local prefix=${2-}

	sed -nE \
		-e "s,^(test +| +)?([^ ]+) +\.\.\. ok.*,ok $prefix\2,p" \
		-e "s,^(test +| +)?([^ ]+) +\.\.\. FAILED.*,not ok $prefix\2,p" \
		-e "s,^(ok|not ok) [0-9]+ +[-+] ([^ ]+).*,\1 $prefix\2,p" \
		"$1"
}

# report NAME COMMAND...: run the command and print how it ended.
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

# count_results OUTCOME FILE: how many of its lines say "ok" or "not ok".
count_results()
{
	grep -cE "^$1 [^ ]+$" "$2" || true
}
