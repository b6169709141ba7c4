# shellcheck shell=bash disable=SC2034
#
# regression.sh
#	The regression tests of sql/, for scripts that do not run them by
#	make installcheck alone.  To be sourced after server.sh.

# Tests of ORDER BY, aggregates and index builds whose output does not depend on where the rows
# were sorted.
GPU_TESTS=(sort_setup sort_types sort_collations sort_locales sort_keys sort_ties sort_rows
	sort_tuples sort_scans sort_plans sort_aggregates
	index_setup index_types index_pages index_unique index_tuples)

# The settings of a server for these tests with an emulated GPU.
EMULATED_GPU=("shared_preload_libraries = 'pg_gpusort'"
	"pg_gpusort.device_library = 'pg_gpusort_emu'"
	"pg_gpusort.backend = gpu"
	"pg_gpusort.device_timeout = 0"
	"pg_gpusort.pool_size = '16MB'")

# Prints all tests in the Makefile's order, one per line.
regression_tests()
{
	# shellcheck disable=SC2016
	make -s -C "$WORK/tree" "PG_CONFIG=$PG_CONFIG" \
		--eval='print-tests: ; @printf "%s\n" $(REGRESS)' print-tests
}

# require_any_node TREE: where tests require sorts on the CPU, replaces that by sorts of
# ours.  The few whose input cannot be read again never run on a GPU.
require_any_node()
{
	sed -i '/require/s/\<cpu\>/node/' "$1"/sql/*.sql "$1"/expected/*.out
}
