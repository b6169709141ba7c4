# Builds of GIN indexes: what a standby gets of them, the server is killed during and after
# them, they are cancelled or do not fit the disk, and other sessions write meanwhile.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1, extra => ['--data-checksums']);
$node->append_conf('postgresql.conf', join("\n",
	q{shared_preload_libraries = 'pg_gpusort'}, 'pg_gpusort.min_rows = 0', 'pg_gpusort.debug_require = node', 'jit = off',
	'autovacuum = off', 'restart_after_crash = on', q{wal_consistency_checking = 'all'}, 'max_wal_size = 1GB', 'wal_keep_size = 4GB', ''));
$node->start;
add_index_tools($node);
$node->safe_psql('postgres', 'CREATE EXTENSION pg_trgm');
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

my $gins = q{FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am ON pg_am.oid = relam AND amname = 'gin'};

# The faults of all logged indexes.  An unlogged one has no statistics after a crash.
sub gins_are_sound
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', qq{SET pg_gpusort.debug_require = off;
			SELECT string_agg(c.oid::regclass || ': ' || gin_fault(c.oid), ', ') $gins WHERE indisvalid AND relpersistence = 'p'}),
		'', "$name: no faults");
}

# The number of rows that each of some searches finds, by an index and without it.
sub searches_are_right
{
	my ($server, $name) = @_;
	my $searches = q{SELECT string_agg((SELECT count(*) FROM items WHERE a @> ARRAY[k])::text, ' ') FROM
		(SELECT generate_series(0, 40) UNION ALL SELECT generate_series(1000, 60000, 997)) k (k)};

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $found = $server->safe_psql('postgres', "SET enable_seqscan = off; $searches");
	is($found, $server->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; $searches"), "$name: searches");
}

my $digests = sub {
	my ($server) = @_;

	return $server->safe_psql('postgres', qq{SET pg_gpusort.debug_require = off;
		SELECT c.oid::regclass, md5(index_pages(c.oid)::text) $gins WHERE relpersistence = 'p' ORDER BY 1});
};

# ---- A standby ----

$node->safe_psql('postgres', q{
	CREATE TABLE items (id int, a int[], t text);
	INSERT INTO items SELECT g, ARRAY[g % 2, g % 40, 1000 + g], 'word ' || g % 1000 FROM generate_series(1, 40000) g;
	CREATE UNLOGGED TABLE unlogged AS SELECT a FROM items LIMIT 2000});
$node->safe_psql('postgres', $_) foreach 'CREATE INDEX items_a ON items USING gin (a)',
	q{CREATE INDEX items_t ON items USING gin (string_to_array(t, ' '))},
	'CREATE INDEX unlogged_a ON unlogged USING gin (a) WITH (fastupdate = off)',
	q{SET maintenance_work_mem = '1MB'; CREATE INDEX CONCURRENTLY items_runs ON items USING gin (a) WITH (fastupdate = off)},
	'ALTER TABLE items SET (parallel_workers = 2)',
	'CREATE INDEX items_workers ON items USING gin (a)', 'CREATE INDEX CONCURRENTLY items_both ON items USING gin (a) WITH (fastupdate = off)';
is($node->safe_psql('postgres', q{SELECT count(DISTINCT md5(index_pages(i)::text)) FROM unnest('{items_a,items_runs,items_workers,items_both}'::regclass[]) i}),
	'1', 'from memory, from runs and by workers: the same pages');
$node->wait_for_catchup($standby);
is($digests->($standby), $digests->($node), 'built: the same pages on the standby');
gins_are_sound('built');
searches_are_right($standby, 'standby');
$node->safe_psql('postgres', q{
	INSERT INTO items SELECT id + 40000, ARRAY[id % 2, id % 40, 3 * id], t FROM items WHERE id % 5 = 0;
	DELETE FROM items WHERE id % 3 = 0});
$node->safe_psql('postgres', $_) foreach 'VACUUM items', 'REINDEX TABLE CONCURRENTLY items', 'DELETE FROM items WHERE id % 7 = 0', 'VACUUM items';
$node->wait_for_catchup($standby);
is($digests->($standby), $digests->($node), 'changed: the same pages on the standby');
searches_are_right($standby, 'changed, standby');
searches_are_right($node, 'changed');
$standby->stop;

# ---- Workers ----

# The leader and both workers wait in the expression of the index, so each of them extracts keys.
{
	my $builder = Session($node, 'SET max_parallel_maintenance_workers = 2', q{SET maintenance_work_mem = '96MB'});
	my $stops;

	add_stops($node, 0);
	$node->safe_psql('postgres', q{
		CREATE FUNCTION halting_array_body(a int[]) RETURNS int[] IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
			$$ BEGIN PERFORM public.halting(0); RETURN a; END $$;
		CREATE FUNCTION halting_array(a int[]) RETURNS int[] IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'pg_gpusort', 'gpusort_test_call'});
	foreach my $index ('(halting_array(a))', '((ARRAY[id])) WHERE halting_array(a) IS NOT NULL',
		q{(halting_array(a), (('"' || t || '"')::jsonb) jsonb_path_ops, to_tsvector('simple', t), t gin_trgm_ops)})
	{
		$stops = hold_stops($node);
		$builder->begin("CREATE INDEX items_halting ON items USING gin $index");
		wait_for_stop($node, $builder, 3);
		$stops->quit;
		is($builder->finish, '', "three processes extract keys of $index");
		$builder->run('DROP INDEX items_halting');
	}
	$builder->quit;
}

# ---- Builds that end early ----

my $contexts = q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'pg_gpusort%'};
foreach my $way ([ '1MB', 0 ], [ '64MB', 0 ], [ '96MB', 2 ])
{
	my ($memory, $nworkers) = @$way;
	my $writer = Session($node, "SET maintenance_work_mem = '$memory'", "SET max_parallel_maintenance_workers = $nworkers");
	my ($cancelled, $other) = (0, '');

	foreach my $delay (1, 5, 10, 20, 30, 50, 80, 120)
	{
		my $output = $writer->run("SET statement_timeout = $delay; CREATE INDEX items_timed ON items USING gin (a, string_to_array(t, NULL))");

		if ($output =~ /57014/) { $cancelled++; }
		else { $other .= $output; }
		1 while $writer->run('RESET statement_timeout') =~ /57014/;
		$other .= $writer->run('SET client_min_messages = error; DROP INDEX IF EXISTS items_timed');
		$other .= $writer->run($contexts) eq '0' ? '' : "memory is left after $delay ms";
	}
	is($other, '', "$memory: cancelled or done after any delay");
	cmp_ok($cancelled, '>', 0, "$memory: cancelled");
	files_belong($node, "$memory, cancelled");
	like($writer->run('CREATE INDEX items_failing ON items USING gin ((ARRAY[1 / (id - 20003)]))'), qr/22012: division by zero/, "$memory: an error");
	is($writer->run($contexts), '0', "$memory, error: no memory of builds is left");
	files_belong($node, "$memory, error");
	if ($memory eq '1MB')
	{
		like($writer->run(q{SET temp_file_limit = '64kB'; CREATE INDEX items_limit ON items USING gin (a, string_to_array(t, NULL))}),
			qr/temporary file size exceeds "?temp_file_limit/, 'temp_file_limit');
		files_belong($node, 'temp_file_limit');
	}
	$writer->quit;
}

# ---- Other sessions write meanwhile ----

{
	my $writer = Session($node);

	$writer->begin(q{DO $$ BEGIN FOR i IN 1 .. 400 LOOP
		INSERT INTO items SELECT g, ARRAY[g % 2, g % 40, g], 'word' FROM generate_series(i * 50, i * 50 + 20) g;
		UPDATE items SET id = -id WHERE id % 400 = i; DELETE FROM items WHERE id = i; COMMIT; END LOOP; END $$});
	foreach (1 .. 3)
	{
		$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY items_meanwhile ON items USING gin (a)');
		$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY items_meanwhile');
		$node->safe_psql('postgres', 'DROP INDEX items_a; ALTER INDEX items_meanwhile RENAME TO items_a');
	}
	is($writer->finish, '', 'a session writes meanwhile');
	$writer->quit;
	searches_are_right($node, 'writes meanwhile');
	$node->safe_psql('postgres', 'VACUUM items');
	searches_are_right($node, 'writes meanwhile, vacuumed');
}

# ---- The server is killed ----

$node->safe_psql('postgres', 'VACUUM FULL items');
my $before = $digests->($node);
crash_server($node);
is($digests->($node), $before, 'killed after builds: all pages are there');
is($node->safe_psql('postgres', 'SELECT count(*) FROM unlogged'), '0', 'killed: an unlogged table is empty');
is($node->safe_psql('postgres', q{INSERT INTO unlogged VALUES ('{7}'); SET enable_seqscan = off;
	SELECT count(*) FROM unlogged WHERE a @> '{7}'}), '1', 'and its index works');
foreach my $delay (40, 150)
{
	my $writer = Session($node, q{SET maintenance_work_mem = '1MB'});

	$writer->begin('CREATE INDEX items_killed ON items USING gin (a, string_to_array(t, NULL))');
	usleep($delay * 1000);
	crash_server($node);
	$writer->quit;
	gins_are_sound("killed after $delay ms");
	leaves_nothing($node, "killed after $delay ms");
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS items_killed');
}

$node->stop;
command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'checksums');

done_testing();
