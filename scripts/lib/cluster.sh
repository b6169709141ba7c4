# shellcheck shell=bash disable=SC2034
#
# cluster.sh
#	A throw-away cluster, with a unix socket in a directory that only its owner
#	can enter, and tests that run on clusters.  To be sourced after server.sh.
#
# start_cluster exports PGHOST, PGPORT, PGUSER and PGDATABASE.

# make_cluster DIRECTORY [SETTING...]: SETTINGs are lines of postgresql.conf.
make_cluster()
{
	local data=$1

	shift
	must initdb "$PG_BIN/initdb" -D "$data" -U postgres -A trust -N \
		--no-locale --encoding=UTF8
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$WORK/tmp'"
		echo "fsync = off"
		[ $# -eq 0 ] || printf '%s\n' "$@"
	} >>"$data/postgresql.conf"
}

# start_cluster [SETTING...]: makes the cluster WORK/data and starts its server.
start_cluster()
{
	make_cluster "$WORK/data" "$@"
	start_server
	export PGHOST=$WORK/tmp PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

# start_more_clusters NUMBER [SETTING...]: makes and starts clusters WORK/data1 and so on.
# Their servers have sockets in the same directory, with the ports from 5433.
start_more_clusters()
{
	local number

	for ((number = 1; number <= $1; number++)); do
		make_cluster "$WORK/data$number" "${@:2}" "port = $((5432 + number))"
		must "start$number" "$PG_BIN/pg_ctl" -D "$WORK/data$number" \
			-l "$WORK/log/server$number.log" -w -t 600 start
	done
}

start_server()
{
	must start "$PG_BIN/pg_ctl" -D "$WORK/data" -l "$WORK/log/server.log" \
		-w -t 600 start
}

stop_server()
{
	must stop "$PG_BIN/pg_ctl" -D "$WORK/data" -m fast -w -t 600 stop
}

# sql [PSQL OPTION...]: runs SQL from the options or standard input; prints values only.
sql()
{
	"$PG_BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$@"
}


# ---- Tests ----

# tests KIND [NEED | -NEED]...: prints the names of tests, one per line: see test/list.
tests()
{
	"$REPO/test/list" "$@"
}

# The settings of a server for regression tests with an emulated GPU.
EMULATED_GPU=("shared_preload_libraries = 'pg_gpusort'"
	"pg_gpusort.device_library = 'pg_gpusort_emu'"
	"pg_gpusort.backend = gpu"
	"pg_gpusort.device_timeout = 0"
	"pg_gpusort.pool_size = '16MB'")

# require_any_node TREE: where tests require sorts on the CPU, replaces that by sorts of
# ours.  The few whose input cannot be read again never run on a GPU.
require_any_node()
{
	sed -i '/require/s/\<cpu\>/node/' "$1"/sql/*.sql "$1"/expected/*.out
}

# The directory of PostgreSQL's programs and modules for tests.
drivers()
{
	echo "$(dirname "$("$PG_CONFIG" --pgxs)")/../test"
}

# tap_test NAME DIRECTORY [VARIABLE=VALUE...]: runs a test, with its servers and logs in
# that directory.  It needs no cluster.
tap_test()
{
	local name=$1 directory=$2 drivers

	drivers=$(drivers)
	mkdir -p "$directory"
	own "$(dirname "$directory")"
	# PostgreSQL 15 uses TESTDIR, later versions use the other two.
	run_child env -C "$WORK/tree/test" PATH="$PG_BIN:$PATH" \
		PG_REGRESS="$drivers/regress/pg_regress" TESTDIR="$directory" \
		TESTDATADIR="$directory" TESTLOGDIR="$directory/log" "${@:3}" \
		prove -I "$drivers/perl" "t/$name.pl"
}
