# Indexes that are built by us: how the library comes into play, what programs do
# that build many, snapshots of other sessions, and life without the extension afterwards.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $ours = 'SET pg_gpusort.min_rows = 0; SET pg_gpusort.debug_require = cpu;';
my $builds = 'SELECT sum(index_builds) FROM pg_stat_gpusort';

# ---- How the library is loaded ----

my $node = start_node('main', 'shared_buffers = 2MB', 'max_prepared_transactions = 2');
$node->safe_psql('postgres', q{
	CREATE TABLE numbers AS SELECT g * 7919 % 10007 AS k, g AS id FROM generate_series(1, 5000) g;
	CREATE INDEX stocks ON numbers (k)});
is($node->safe_psql('postgres', "LOAD 'pg_gpusort'; $builds"), '0', 'not loaded: stock builds');
is($node->safe_psql('postgres', "LOAD 'pg_gpusort'; $ours CREATE INDEX loaded ON numbers (k); $builds"),
	'1', 'loaded with LOAD');
is($node->safe_psql('postgres', "LOAD 'pg_gpusort'; $builds"), '0', 'counted in its session');
is($node->safe_psql('postgres', "LOAD 'pg_gpusort'; REINDEX INDEX loaded; $builds"), '0',
	'a small table is left to stock');
$node->append_conf('postgresql.conf', q{session_preload_libraries = 'pg_gpusort'});
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('session_preload_libraries') = 'pg_gpusort'});
is($node->safe_psql('postgres', "$ours CREATE INDEX preloaded ON numbers (k); $builds"),
	'1', 'in session_preload_libraries');
add_index_tools($node);
is($node->safe_psql('postgres', q{
		SELECT pages_difference(index_pages('loaded'), index_pages('stocks')) IS NULL,
			   pages_difference(index_pages('preloaded'), index_pages('stocks')) IS NULL}),
	't|t', 'all as stock builds them');
$node->append_conf('postgresql.conf', join("\n", q{session_preload_libraries = ''},
	q{shared_preload_libraries = 'pg_gpusort'}, 'pg_gpusort.min_rows = 0', 'pg_gpusort.debug_require = cpu'));
$node->restart;
$node->safe_psql('postgres', 'CREATE INDEX shared ON numbers (k DESC)');
is($node->safe_psql('postgres', $builds), '1', 'in shared_preload_libraries: all sessions are counted');
indexes_are_sound($node, 'loaded in several ways');
value_of($node, 'SELECT pg_stat_gpusort_reset()');
is($node->safe_psql('postgres', $builds), '0', 'reset');

# ---- Scans that begin in the middle of the table ----

# Larger than a quarter of shared_buffers.
$node->safe_psql('postgres', q{
	CREATE TABLE large AS SELECT g * 7919 % 1009 AS k, g AS id, repeat('x', 100) AS t FROM generate_series(1, 20000) g});
{
	my $reader = Session($node, 'BEGIN', 'DECLARE c CURSOR FOR SELECT id FROM large', 'FETCH 9000 FROM c', 'MOVE 1000 FROM c');
	my $starts_at = $reader->run('DECLARE d CURSOR FOR SELECT id FROM large; FETCH 1 FROM d');

	cmp_ok($starts_at, '>', 1000, 'scans of other sessions are joined');
	$node->safe_psql('postgres', 'CREATE INDEX in_the_middle ON large (k)');
	is($node->safe_psql('postgres', q{SELECT check_indexes('large')}), 'in_the_middle: same', 'a synchronized scan');
	$reader->quit;
}

# ---- Dead rows that another session still sees ----

$node->safe_psql('postgres', q{
	CREATE TABLE versions (id int, k int, v int) WITH (fillfactor = 50);
	INSERT INTO versions SELECT g, g * 7919 % 1009, g % 10 FROM generate_series(1, 5000) g});
{
	# It has a snapshot, but no lock on the table.
	my $reader = Session($node, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
	my $session = Session($node, 'SET max_parallel_maintenance_workers = 0', 'RESET pg_gpusort.debug_require');
	my $ways = q{'(k); (v, k DESC); (k) WITH (deduplicate_items = off); (v) WHERE k > 500; ((k + v)) INCLUDE (id)'};
	my $query = 'SELECT count(*), sum(k), sum(id) FROM versions WHERE k BETWEEN 100 AND 200';
	my $before = $session->run($query);
	my $as_stock = sub {
		my ($name) = @_;

		unlike($session->run(qq{
				SELECT * FROM check_builds('CREATE INDEX built ON versions', $ways);
				SELECT * FROM check_builds('CREATE UNIQUE INDEX built ON versions', '(id); (id DESC) INCLUDE (v)')}),
			qr/\|(?!same, level [12])/, "$name: as stock builds");
	};

	$as_stock->('no dead rows');
	$session->run('UPDATE versions SET v = v + 1 WHERE id % 3 = 0');
	$as_stock->('chains');
	$session->run('UPDATE versions SET k = k + 1, v = v + 1 WHERE id % 5 = 0');
	$as_stock->('broken chains');
	$session->run(q{
		DELETE FROM versions WHERE id % 7 = 0;
		INSERT INTO versions SELECT id, -k, v FROM generate_series(7, 5000, 7) id, LATERAL (SELECT id * 3 AS k, 5 AS v) s;
		UPDATE versions SET id = -id WHERE id % 11 = 0});
	$as_stock->('dead rows with keys of live ones');
	$session->run('BEGIN; UPDATE versions SET k = 0; ROLLBACK; BEGIN; DELETE FROM versions WHERE k < 300; COMMIT');
	$as_stock->('aborted and deleted');
	$session->run("$ours CREATE INDEX versions_k ON versions (k)");
	is($session->run(q{SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'versions_k'::regclass}), 't',
		'pg_index says that the index is not for old snapshots');
	is($reader->run("SET enable_seqscan = off; $query"), $before, 'and these do not use it');
	is($reader->run("SET enable_seqscan = on; $query"), $before, 'which would be seen');
	$reader->run('COMMIT');
	$session->run('REINDEX TABLE versions');
	is($reader->run("SET enable_seqscan = off; $query"), $reader->run("SET enable_seqscan = on; $query"),
		'new snapshots do');
	like($reader->run("SET enable_seqscan = off; EXPLAIN $query"), qr/versions_k/, 'in a plan');
	$reader->quit;
	$session->quit;
	indexes_are_sound($node, 'old snapshots');
}

# ---- Dead rows whose long values are vacuumed away during the build ----

add_long_values($node);
{
	my %ways = (
		'a function' => '(t, stopping(k))',
		'a function, other columns' => '(stopping(k), u) INCLUDE (t)',
		'the values of a function' => '((t || u), stopping(k))',
		'a comparison' => '(id, k stopping, t, u)',
		'a condition' => '(u, t) WHERE stopping(k) > 0',
		'a unique index' => '(stopping(id), t)');

	foreach my $name (sort keys %ways)
	{
		my $statement = 'CREATE ' . ($name =~ /unique/ ? 'UNIQUE' : '') . " INDEX long_index ON long_values $ways{$name}";

		foreach my $settings ([ 'enable_index_build = off', 'debug_require = off' ], ['debug_require = cpu'])
		{
			is(build_while_values_go($node, $statement, map { "SET pg_gpusort.$_" } @$settings), '', "$name, @$settings: no error");
			indexes_are_sound($node, "$name, @$settings");
		}
	}
}

# ---- Progress ----

$node->safe_psql('postgres', q{CREATE TABLE slowly AS SELECT g AS k, repeat('y', 200) AS t FROM generate_series(1, 4000) g});
{
	my $session = Session($node);
	my $stops = hold_stops($node);

	$session->begin('CREATE INDEX slowly_k ON slowly (stopping(k))');
	wait_for_stop($node, $session);
	is( $node->safe_psql(
			'postgres', q{
			SELECT phase, blocks_total = pg_relation_size('slowly') / current_setting('block_size')::int8,
				   blocks_done BETWEEN 5 AND blocks_total
			FROM pg_stat_progress_create_index WHERE relid = 'slowly'::regclass}),
		'building index: scanning table|t|t',
		'pg_stat_progress_create_index: the scan');
	$stops->quit;
	is($session->finish, '', 'and it ends');
	$session->quit;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_progress_create_index'), '0', 'and nothing is left');
}

# ---- Tables that are not heaps ----

# They are left to stock PostgreSQL before they are asked for anything.
$node->safe_psql('postgres', q{
	CREATE FUNCTION test_table_am(internal) RETURNS table_am_handler LANGUAGE c AS 'pg_gpusort', 'gpusort_test_table_am';
	CREATE ACCESS METHOD test_table_am TYPE TABLE HANDLER test_table_am;
	CREATE TABLE no_heap (k int) USING test_table_am;
	SELECT pg_stat_gpusort_reset()});
foreach my $workers (0, 2)
{
	my %notices;

	foreach my $enable ('off', 'on')
	{
		my ($ret, $out, $err) = $node->psql('postgres', qq{
			SET pg_gpusort.debug_require = off;
			SET pg_gpusort.enable_index_build = $enable;
			SET max_parallel_maintenance_workers = $workers;
			CREATE INDEX no_heap_k ON no_heap (k);
			REINDEX INDEX no_heap_k;
			DROP INDEX no_heap_k});

		is($ret, 0, "not a heap, $workers workers, $enable");
		$notices{$enable} = $err;
	}
	is($notices{on}, $notices{off}, "not a heap, $workers workers: as many estimates as in stock PostgreSQL");
	like($notices{on}, qr/estimating the size of "no_heap"/, 'which it says') if $workers > 0;
}
is($node->safe_psql('postgres', q{SELECT sorts FROM pg_stat_gpusort_fallbacks WHERE reason = 'the table is not a heap'}),
	'4', 'not a heap: counted');
$node->safe_psql('postgres', 'DROP TABLE no_heap; DROP ACCESS METHOD test_table_am; DROP FUNCTION test_table_am');

# ---- VACUUM has the workers that the setting allows, whoever builds indexes ----

$node->safe_psql('postgres', q{
	CREATE TABLE vacuumed AS SELECT g AS k, -g AS v FROM generate_series(1, 1000) g;
	CREATE INDEX ON vacuumed (k);
	CREATE INDEX ON vacuumed (v)});
foreach my $workers (0, 1)
{
	my ($ret, $out, $err) = $node->psql('postgres', qq{
		SET min_parallel_index_scan_size = 0;
		SET max_parallel_maintenance_workers = $workers;
		DELETE FROM vacuumed WHERE k % 10 = $workers;
		VACUUM (VERBOSE) vacuumed});

	like($err, qr/vacuuming .*vacuumed/, "VACUUM with $workers workers");
	if ($workers > 0) { like($err, qr/parallel vacuum worker/, 'which it plans for'); }
	else { unlike($err, qr/parallel vacuum worker/, 'which it does not plan for'); }
}

# ---- Many indexes: pg_dump, pg_restore with jobs, programs ----

my @tables = map { "many_$_" } 1 .. 6;
foreach my $table (@tables)
{
	$node->safe_psql('postgres', qq{
		CREATE TABLE $table (id int PRIMARY KEY, a int4, b int8 UNIQUE, c float8, d text COLLATE "C", e timestamptz, f uuid, g numeric, h bool);
		INSERT INTO $table SELECT g, g * 7919 % 1009, g * 7919 % 100003, sin(g), md5(g::text), '2020-01-01'::timestamptz + g * interval '1 minute',
			md5(g::text)::uuid, g / 7.0, g % 3 = 0 FROM generate_series(1, 3000) g;
		CREATE INDEX ON $table (a); CREATE INDEX ON $table (a DESC, b) INCLUDE (c); CREATE INDEX ON $table (c) WITH (fillfactor = 60);
		CREATE INDEX ON $table (d); CREATE INDEX ON $table (e DESC NULLS LAST); CREATE UNIQUE INDEX ON $table (f); CREATE INDEX ON $table (g);
		CREATE INDEX ON $table (h, a); CREATE INDEX ON $table ((a % 10)) WHERE h; CREATE INDEX ON $table (h) WITH (deduplicate_items = off)});
}
{
	my $dump = $node->basedir . '/dump';
	my $before;
	my %digests;

	$node->safe_psql('postgres', 'DROP TABLE large, slowly');
	$node->command_ok([ 'pg_dump', '-Fd', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
	foreach my $database ('by_stock', 'by_us')
	{
		$node->safe_psql('postgres', "CREATE DATABASE $database");
		$node->safe_psql('postgres', "ALTER DATABASE $database SET pg_gpusort.enable_index_build = off;
			ALTER DATABASE $database SET pg_gpusort.debug_require = off") if $database eq 'by_stock';
		$before = $node->safe_psql('postgres', $builds);
		$node->command_ok([ 'pg_restore', '-j', '2', '-d', $node->connstr($database), $dump ], "pg_restore -j, $database");
		my $count = $node->safe_psql('postgres', $builds) - $before;
		my $indexes = $node->safe_psql($database, q{SELECT count(*) FROM pg_index WHERE indrelid::regclass::text ~ '^many_'});
		is($indexes, 12 * @tables, "$database: indexes");
		$database eq 'by_us' ? cmp_ok($count, '>=', $indexes, "$database: all of them counted")
		  : is($count, 0, "$database: none is counted");
		indexes_are_sound($node, $database, $database);
		$digests{$database} = index_digests($node, $database);
	}
	is($digests{'by_us'}, $digests{'by_stock'}, 'the same pages');
	like($digests{'by_us'}, qr/many_6_h_idx\|\d+\|/, 'of all indexes');

	foreach my $program ([ 'reindexdb', '-j', '2' ], [ 'reindexdb', '--concurrently' ], [ 'vacuumdb', '--full', '-j', '2' ], ['clusterdb'])
	{
		$node->safe_psql('by_us', 'ALTER TABLE many_1 CLUSTER ON many_1_pkey; ALTER TABLE many_2 CLUSTER ON many_2_a_idx')
		  if $program->[0] eq 'clusterdb';
		$before = $node->safe_psql('postgres', $builds);
		$node->command_ok([ @$program, '-q', (map { ('-t', $_) } @tables[ 0 .. 1 ]), $node->connstr('by_us') ], "@$program");
		cmp_ok($node->safe_psql('postgres', $builds), '>=', $before + 24, "@$program: by us");
		indexes_are_sound($node, "@$program", 'by_us');
	}
}

# ---- Other places: tablespaces, prepared transactions ----

{
	my $session = Session($node, 'SET allow_in_place_tablespaces = on');

	is($session->run(q{CREATE TABLESPACE elsewhere LOCATION ''}), '', 'a tablespace');
	$session->run('CREATE INDEX numbers_elsewhere ON numbers (k, id) TABLESPACE elsewhere');
	like($session->run(q{SELECT pg_relation_filepath('numbers_elsewhere')}), qr/^pg_tblspc/, 'an index there');
	is($session->run('REINDEX (TABLESPACE elsewhere) INDEX stocks'), '', 'REINDEX into it');
	is($session->run('REINDEX (TABLESPACE pg_default, CONCURRENTLY) INDEX numbers_elsewhere'), '', 'and out of it');
	is($session->run(q{SELECT string_agg(c, '; ') FROM check_indexes('numbers') c}),
		'loaded: same; numbers_elsewhere: same; preloaded: same; shared: same; stocks: same', 'as stock builds');
	$session->run(q{BEGIN; CREATE TABLE prepared AS SELECT g * 7919 % 1009 AS k FROM generate_series(1, 2000) g;
		CREATE INDEX prepared_k ON prepared (k); PREPARE TRANSACTION 'built'});
	$node->restart;
	is($node->safe_psql('postgres', q{COMMIT PREPARED 'built'}), '', 'a prepared transaction');
	is($node->safe_psql('postgres', q{SELECT check_indexes('prepared')}), 'prepared_k: same', 'and its index');
}

# ---- The library removed ----

{
	my $counts = q{
		SELECT count(*), sum(a), count(DISTINCT b) FROM many_1 WHERE a BETWEEN 10 AND 600;
		SELECT count(*), min(id), max(id) FROM many_2 WHERE d > '8';
		SELECT c FROM many_3 WHERE c > 0.99 ORDER BY c DESC LIMIT 5;
		SELECT e FROM many_3 ORDER BY e DESC NULLS LAST LIMIT 3;
		SELECT count(*) FROM many_4 WHERE h AND a % 10 = 3};
	my $by_scan = 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;';
	my $by_index = 'SET enable_seqscan = off; SET enable_sort = off;';
	my $before = $node->safe_psql('postgres', "SET pg_gpusort.debug_require = off; $by_scan $counts");

	$node->safe_psql('postgres', 'REINDEX DATABASE postgres');
	$node->safe_psql('postgres', 'DROP EXTENSION pg_gpusort CASCADE');
	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', q{''});
	$node->restart;
	is($node->safe_psql('postgres', "$by_index $counts"), $before, 'without the library: scans');
	$node->safe_psql('postgres', qq{
		INSERT INTO $_ SELECT id + 10000, a + 1, b + 200000, -c, md5(d), e, md5(f::text)::uuid, g + 0.5, NOT h FROM $_;
		UPDATE $_ SET a = a + 1, d = md5(d) WHERE id % 3 = 0;
		DELETE FROM $_ WHERE id % 5 = 0 OR id BETWEEN 500 AND 1500;
		VACUUM $_}) foreach @tables;
	indexes_are_sound($node, 'written, vacuumed');
	is($node->safe_psql('postgres', "$by_index $counts"), $node->safe_psql('postgres', "$by_scan $counts"),
		'scans after that');
	$node->safe_psql('postgres', qq{
		INSERT INTO $_ SELECT id + 20000, a % 50, b + 500000, c, d, e, md5('again' || id)::uuid, g, h FROM $_;
		VACUUM (FREEZE) $_; REINDEX INDEX ${_}_a_idx; ALTER INDEX ${_}_c_idx SET (fillfactor = 90)}) foreach @tables;
	indexes_are_sound($node, 'and again');
	my ($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO many_1 (id) SELECT id FROM many_1 LIMIT 1');
	like($err, qr/duplicate key value violates unique constraint "many_1_pkey"/, 'unique indexes are');
}

$node->stop;
done_testing();
