# An index build that waits when its rows take most of maintenance_work_mem has no more memory
# from the server than that, although it is given out in large pieces.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'}, 'pg_gpusort.min_rows = 0',
	q{maintenance_work_mem = '64MB'}, 'max_parallel_maintenance_workers = 0');
my $session = Session($node, 'SET pg_gpusort.debug_require = node');
my $nrows = 690000;
my $stops;

add_stops($node, $nrows);
$node->safe_psql(
	'postgres', qq{
	CREATE TABLE texts AS SELECT g AS id, md5(g::text) AS t FROM generate_series(1, $nrows) g;
	ANALYZE texts});

$stops = hold_stops($node);
$session->begin('CREATE INDEX built ON texts (t) WHERE stopping(id) > 0');
wait_for_stop($node, $session);
SKIP:
{
	skip 'no huge pages on demand', 2 if status_of($node, 'warm_memory_reason') ne '';
	cmp_ok(status_of($node, 'warm_memory_in_use'), '>', 32 << 20, 'memory of rows that are read');
	cmp_ok(status_of($node, 'warm_memory_in_use'), '<=', 64 << 20, 'within maintenance_work_mem');
}
$stops->quit;
is($session->finish, '', 'an index');
$session->quit;

$node->stop;
done_testing();
