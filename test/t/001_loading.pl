# The library in servers that preload it and ones that do not: sorts, parallel
# workers, statistics, and life without the extension.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $parallel = parallel_plans(2, 'enable_hashagg = off') . ';';
my $grouped = 'SELECT k, t, count(*) FROM big GROUP BY k, t, id';
my $ours = 'SET pg_gpusort.min_rows = 0; SET pg_gpusort.debug_require = cpu;';
my $status = "SELECT value FROM gpusort_status() WHERE name = 'loaded_for'";

# ---- Not preloaded ----

my $node = start_node('main');
make_table($node, 20000);
is($node->safe_psql('postgres', $status), 'functions of this session', 'not preloaded');
is($node->safe_psql('postgres', "LOAD 'pg_gpusort'; $status"), 'this session only', 'loaded with LOAD');
sorts_like_stock($node, 'loaded with LOAD', '');
unlike($node->safe_psql('postgres', 'EXPLAIN SELECT * FROM big ORDER BY k'),
	qr/GpuSort/, 'no GpuSort in a session that has not loaded the library');

# The call of a function loads the library, and changes no plan and no index build, until LOAD.
my $call = q{DO $$ BEGIN PERFORM gpu_sort('{2,1}'::int[]); END $$;};
my $show = 'EXPLAIN (COSTS OFF) SELECT * FROM big ORDER BY k';
my $build = q{CREATE INDEX big_k ON big (k); DROP INDEX big_k; SELECT sum(index_builds) FROM pg_stat_gpusort};
my $set = 'SET pg_gpusort.min_rows = 0; SET pg_gpusort.min_index_rows = 0; SET max_parallel_maintenance_workers = 0;';

foreach my $case (
	[ 'loaded by the first call of a function', $call, 0 ],
	[ 'by CREATE FUNCTION', q{CREATE FUNCTION pg_temp.sorted(anyarray) RETURNS anyarray LANGUAGE c AS 'pg_gpusort', 'gpusort_array_sort';}, 0 ],
	[ 'by a view', 'SELECT FROM pg_stat_gpusort;', 0 ],
	[ 'and then by LOAD', "$call LOAD 'pg_gpusort';", 1 ],
	[ 'by LOAD of a path', q{LOAD '$libdir/pg_gpusort.so';}, 1 ],
	[ 'and of a path then', "$call " . q{LOAD '$libdir/pg_gpusort.so';}, 1 ],
	[ 'by LOAD before a function', "LOAD 'pg_gpusort'; $call", 1 ],
	[ 'by LOAD in a function', q{DO $$ BEGIN LOAD 'pg_gpusort'; PERFORM gpu_sort('{2,1}'::int[]); END $$;}, 1 ],
	[ 'by LOAD before a prepared statement', "PREPARE p AS SELECT gpu_sort('{2,1}'::int[]); LOAD 'pg_gpusort'; EXECUTE p;", 1 ],
	[ 'by LOAD that fails after a function', "$call \\set ON_ERROR_STOP off\nLOAD 'pg_gpusort_other';\n", 0 ])
{
	my ($name, $statements, $wanted) = @$case;
	my $plan = $node->safe_psql('postgres', "$statements $set $show", on_error_stop => 0);
	my $built = (split /\n/, $node->safe_psql('postgres', "$statements $set $build", on_error_stop => 0))[-1];

	like($plan, $wanted ? qr/GpuSort/ : qr/Sort\n/, "$name: plan");
	unlike($plan, qr/GpuSort/, "$name: no GpuSort") unless $wanted;
	is($built, $wanted, "$name: index builds");
}

# Workers load what their leader has loaded.  There are so many that it does not pay to sort above them.
my $plan = $node->safe_psql(
	'postgres', qq{
	LOAD 'pg_gpusort'; $parallel
	SET pg_gpusort.min_rows = 0;
	SET parallel_leader_participation = off;
	ALTER TABLE big SET (parallel_workers = 4);
	SET max_parallel_workers_per_gather = 4;
	EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
	SELECT k > 100, count(*) FROM big GROUP BY k > 100;
	ALTER TABLE big RESET (parallel_workers)});
like($plan, qr/Gather Merge.*\(GpuSort\).*Parallel Seq Scan/s,
	'a GpuSort in parallel workers');
like($plan, qr/Worker 0:  Sort Method: cpu radix/, 'a worker has sorted');
my $parallel_query = q{
	SELECT md5(string_agg(s::text, ',')) FROM
		(SELECT k, id, count(*) FROM big GROUP BY k, id ORDER BY k, id) s};
is( $node->safe_psql('postgres', "LOAD 'pg_gpusort'; $parallel $ours $parallel_query"),
	$node->safe_psql('postgres', $parallel_query),
	'and gives the right rows');

# The statistics are the session's own.
is( $node->safe_psql(
		'postgres', qq{
		LOAD 'pg_gpusort'; $ours
		CREATE TEMP TABLE sorted AS SELECT * FROM big ORDER BY k;
		SELECT sum(sorts) FROM pg_stat_gpusort WHERE backend <> 'gpu'}),
	'1',
	'statistics of the session');
is($node->safe_psql('postgres', 'SELECT sum(sorts) FROM pg_stat_gpusort'),
	'0', 'which another session does not see');

# ---- In session_preload_libraries ----

$node->append_conf('postgresql.conf',
	q{session_preload_libraries = 'pg_gpusort'});
$node->reload;
$node->poll_query_until('postgres',
	q{SELECT current_setting('session_preload_libraries') = 'pg_gpusort'});
like($node->safe_psql('postgres', "$ours EXPLAIN SELECT * FROM big ORDER BY k"),
	qr/GpuSort/, 'in session_preload_libraries');
is($node->safe_psql('postgres', $status), 'sessions with session_preload_libraries',
	'and gpusort_status() says so');
$node->safe_psql('postgres',
	q{ALTER ROLE CURRENT_USER SET session_preload_libraries = auto_explain, '$libdir/pg_gpusort.so'});
is($node->safe_psql('postgres', $status), 'sessions with session_preload_libraries',
	'also of a file in a list');
$node->safe_psql('postgres', 'ALTER ROLE CURRENT_USER RESET session_preload_libraries');
$node->append_conf('postgresql.conf', q{session_preload_libraries = ''});

# ---- Preloaded ----

$node->append_conf('postgresql.conf',
	qq{shared_preload_libraries = 'pg_gpusort'\npg_gpusort.min_rows = 0});
$node->restart;
is($node->safe_psql('postgres', $status), 'all sessions', 'preloaded');
my $version = $node->safe_psql('postgres', 'SELECT gpusort_version()');
is(() = slurp_file($node->logfile) =~ /LOG:  pg_gpusort \Q$version\E: no GPUs: there is no library ".*"; \S/g, 1,
	'with one line in the log, which names the build and what it has');
like($node->safe_psql('postgres', 'EXPLAIN SELECT * FROM big ORDER BY k'),
	qr/GpuSort/, 'sorts in every session');
sorts_like_stock($node, 'preloaded', '', 'DESC');
is( $node->safe_psql('postgres', "$parallel $ours $parallel_query"),
	$node->safe_psql('postgres', "SET pg_gpusort.enable = off; $parallel_query"),
	'parallel plans of a preloaded server');

# The statistics are the server's.
my $counts = q{SELECT sum(sorts), sum(rows) FROM pg_stat_gpusort};
$node->safe_psql('postgres', 'SELECT pg_stat_gpusort_reset()');
is($node->safe_psql('postgres', $counts), '0|0', 'statistics reset');
$node->safe_psql('postgres', "$ours SELECT * FROM big ORDER BY k");
$node->safe_psql('postgres', "$ours SELECT * FROM big WHERE id <= 5 ORDER BY k");
is($node->safe_psql('postgres', $counts), '2|20005', 'statistics of all sessions');
$node->safe_psql('postgres', 'CREATE ROLE someone LOGIN');
my ($ret, $out, $err) = $node->psql('postgres', 'SELECT pg_stat_gpusort_reset()',
	extra_params => [ '-U', 'someone' ]);
like($err, qr/permission denied/, 'not everyone may reset them');
$node->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION pg_stat_gpusort_reset() TO someone');
($ret, $out, $err) = $node->psql('postgres', 'SELECT pg_stat_gpusort_reset()',
	extra_params => [ '-U', 'someone' ]);
is($err, '', 'but those who were granted it');
is($node->safe_psql('postgres', $counts), '0|0', 'which works');
$node->safe_psql('postgres', "$ours SELECT * FROM big ORDER BY k");
$node->restart;
is($node->safe_psql('postgres', $counts), '0|0', 'a restart sets them to zero');

# ---- pg_dump, DROP EXTENSION, and a server without the library ----

$node->safe_psql('postgres', q{
	CREATE VIEW sorted AS SELECT gpu_sort(array_agg(id)) AS ids FROM big WHERE id < 4});
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-d', $node->connstr('postgres'), '-f', $dump ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', $dump ],
	'the dump can be restored');
is($node->safe_psql('restored', 'TABLE sorted'), '{1,2,3}', 'and works');
unlike(slurp_file($dump), qr/CREATE FUNCTION/, 'the extension is dumped as one');

($ret, $out, $err) = $node->psql('restored', 'DROP EXTENSION pg_gpusort');
like($err, qr/view sorted depends on function gpu_sort/, 'dependent objects hold the extension');
$node->safe_psql('restored', 'DROP EXTENSION pg_gpusort CASCADE');
like($node->safe_psql('restored', "$ours EXPLAIN SELECT * FROM big ORDER BY k"),
	qr/GpuSort/, 'a preloaded library sorts without the extension');
$node->safe_psql('restored', 'CREATE EXTENSION pg_gpusort; DROP EXTENSION pg_gpusort');

$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', q{''});
$node->restart;
is($node->safe_psql('restored', 'SHOW pg_gpusort.min_rows'), '0',
	'a setting that is left over is harmless');
unlike($node->safe_psql('restored', 'EXPLAIN SELECT * FROM big ORDER BY k'),
	qr/GpuSort/, 'no GpuSort without the library');
is($node->safe_psql('restored', 'SELECT count(*) FROM (SELECT * FROM big ORDER BY k OFFSET 0) s'),
	'20000', 'and queries work');

$node->stop;
done_testing();
