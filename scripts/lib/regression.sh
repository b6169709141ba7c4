# shellcheck shell=bash disable=SC2034
#
# regression.sh
#	The names of tests, and what those of sql/ need that run on a GPU.  To be sourced after
#	server.sh.

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
