# shellcheck shell=bash disable=SC2034
#
# common.sh
#	What the scripts share: the option -h, progress lines, a work directory that is
#	always removed, and running programs as an unprivileged user.
#
# To be sourced, after `set -euo pipefail`.  Sets:
#	REPO	the source tree that contains the scripts
#	LIB		the directory of this file
#	WORK	a temporary directory; everything that a script starts lives below
#			it, and ends with it

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
LIB=$REPO/scripts/lib
WORK=

# Root cannot run a PostgreSQL server.  This user owns nothing and exists
# everywhere.
UNPRIVILEGED_USER=nobody

# The process group that run_child() waits for, or empty.
CHILD=

# Commands to run when the script ends, the last one first.
AT_EXIT=()

# The process that the traps are for.  A signal that reaches a child before the child has
# dropped its parent's traps runs them there, and it must not clean up what is in use.
TRAPS_OF=$BASHPID

# The caller's environment must not affect our servers or make.  TAP tests wait for at most
# PG_TEST_TIMEOUT_DEFAULT seconds, and isolation tests for PGISOLATIONTIMEOUT.
for name in "${!PG@}" MAKEFLAGS MAKELEVEL MFLAGS; do
	[[ $name =~ ^(PG_CONFIG|PG_TEST_TIMEOUT_DEFAULT|PGISOLATIONTIMEOUT)$ ]] || unset "$name"
done
unset name

say()
{
	printf '[%3d s] %s\n' "$SECONDS" "$*"
}

die()
{
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# Prints the comment at the head of the script that runs.
show_help()
{
	sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
}

# at_exit COMMAND: evaluates the command when the script ends, for whatever reason.
at_exit()
{
	AT_EXIT=("$1" ${AT_EXIT[@]+"${AT_EXIT[@]}"})
}

clean_up()
{
	local command

	[ "$BASHPID" = "$TRAPS_OF" ] || return
	trap '' INT TERM HUP
	set +e
	end_child
	for command in ${AT_EXIT[@]+"${AT_EXIT[@]}"}; do
		eval "$command"
	done
	end_servers
	[ -z "$WORK" ] || rm -rf "$WORK"
}

trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Creates WORK.  It is in /var/tmp by default, because /tmp may be in memory and the
# tables of the demo and the benchmark are large.
make_work_dir()
{
	WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/pg_gpusort.XXXXXX")
	WORK=$(cd "$WORK" && pwd -P)
	mkdir "$WORK/tmp" "$WORK/log"
	own "$WORK"
}

# require_disk MEGABYTES: fails now instead of much later.
require_disk()
{
	local free

	free=$(df -Pm "$WORK" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$1" ] ||
		die "needs $1 MB below $(dirname "$WORK"), $free MB are free; set TMPDIR to use another directory"
}

am_root()
{
	[ "$(id -u)" -eq 0 ]
}

as_root()
{
	if am_root; then
		"$@"
	else
		sudo "$@"
	fi
}

# own PATH...: gives files to the user that the tests run as.
own()
{
	if am_root; then
		chown -R "$UNPRIVILEGED_USER" "$@"
	fi
}

# as_user COMMAND...: replaces this (sub)shell with the command, run by the unprivileged
# user, with all its files below WORK.
as_user()
{
	local -a drop=()

	if am_root; then
		drop=(setpriv "--reuid=$UNPRIVILEGED_USER"
			"--regid=$(id -g "$UNPRIVILEGED_USER")" --clear-groups)
	fi
	exec ${drop[@]+"${drop[@]}"} env HOME="$WORK" TMPDIR="$WORK/tmp" \
		LC_ALL=C "$@"
}

# run_child COMMAND...: runs the command as the unprivileged user in its own process
# group, and waits for it.  Only then can the script react to a signal at once, and pass
# it to everything that the command has started.
run_child()
{
	local status=0

	as_user setsid "$@" &
	CHILD=$!
	wait "$CHILD" || status=$?
	CHILD=
	return "$status"
}

end_child()
{
	local tries=10

	[ -n "$CHILD" ] || return 0
	kill -TERM -- "-$CHILD" 2>/dev/null
	while kill -0 -- "-$CHILD" 2>/dev/null; do
		sleep 0.2
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || kill -KILL -- "-$CHILD" 2>/dev/null
	done
}

# The processes of parts of a script that run beside each other, by their names.
declare -A RUNNING=()

# Ends these processes.
end_running()
{
	[ ${#RUNNING[@]} -eq 0 ] || {
		kill -TERM "${RUNNING[@]}"
		wait "${RUNNING[@]}"
	} 2>/dev/null
}

# Ends every server whose data directory is below WORK, no matter who started it.
end_servers()
{
	local pid_file pid

	[ -n "$WORK" ] || return 0
	find "$WORK" -name postmaster.pid 2>/dev/null | while read -r pid_file; do
		pid=$(head -n 1 "$pid_file" 2>/dev/null)
		[ -n "$pid" ] || continue
		# If the file is stale, the process may belong to somebody else.
		[ "$(readlink "/proc/$pid/cwd")" = "$(dirname "$pid_file")" ] || continue
		kill -QUIT "$pid"
		# It remains as a zombie if the first process of a container does not wait for it,
		# but a zombie has no working directory.
		while [ -e "/proc/$pid/cwd" ]; do
			sleep 0.1
		done
	done
}

# logged NAME COMMAND...: runs the command with all output in WORK/log/NAME.log.
logged()
{
	local log=$WORK/log/$1.log

	shift
	run_child "$@" >"$log" 2>&1
}

# must NAME COMMAND...: as logged, but a failure ends the script and shows the log.
must()
{
	logged "$@" || {
		tail -n 40 "$WORK/log/$1.log" >&2
		die "$1 failed (the end of its output is above)"
	}
}

case ${1-} in
	-h | --help)
		show_help
		exit
		;;
esac
