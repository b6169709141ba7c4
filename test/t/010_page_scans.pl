# Sorts that read sequential scans page by page: parallel ones of all kinds of
# tables, and synchronized ones of tables larger than a part of shared_buffers.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'},
	q{shared_buffers = '2MB'}, 'max_worker_processes = 16', 'max_parallel_workers = 8',
	'autovacuum = off');
make_table($node, 40000);
$node->safe_psql(
	'postgres', q{
	CREATE TABLE grown AS SELECT g * 7919 % 1009 AS k, g AS id, repeat('x', g % 9) AS t FROM generate_series(1, 3000) g;
	ALTER TABLE grown ADD fixed int8 DEFAULT 42, ADD text text DEFAULT 'a text', ADD nothing int4;
	INSERT INTO grown SELECT g % 100, g, NULL, g, md5(g::text), g FROM generate_series(3001, 6000) g;
	ALTER TABLE grown ADD last float8 DEFAULT 2.5;
	CREATE TABLE dropped AS SELECT g AS a, g % 99 AS k, g::int2 AS b, g AS id, 'text'::text AS t FROM generate_series(1, 5000) g;
	ALTER TABLE dropped DROP a;
	INSERT INTO dropped SELECT g % 77, NULL, g, 'later' FROM generate_series(5001, 6000) g;
	ALTER TABLE dropped DROP b, ADD c int4 DEFAULT 6;
	CREATE TABLE holes AS
	SELECT CASE WHEN n & 1 = 0 THEN n END AS a, CASE WHEN n & 2 = 0 THEN n::int8 END AS b,
		   CASE WHEN n & 4 = 0 THEN n::int2 END AS c, CASE WHEN n & 8 = 0 THEN repeat('t', n % 7) END AS t,
		   CASE WHEN n & 16 = 0 THEN n / 4.0::float8 END AS k, CASE WHEN n & 32 = 0 THEN n % 3 = 0 END AS h, n AS id
	FROM generate_series(0, 6000) n;
	CREATE TABLE changed (id int PRIMARY KEY, k int, v int, t text) WITH (fillfactor = 60);
	INSERT INTO changed SELECT g, g * 7919 % 1009, g % 10, repeat('u', g % 30) FROM generate_series(1, 8000) g;
	UPDATE changed SET v = v + 1 WHERE id % 3 = 0;
	UPDATE changed SET v = v + 1, t = NULL WHERE id % 6 = 0;
	DELETE FROM changed WHERE id % 7 = 0 OR id BETWEEN 2000 AND 4000;
	UPDATE changed SET id = id + 10000 WHERE id % 11 = 0;
	CREATE TABLE toasted (k int4, a text, b text, id int4);
	ALTER TABLE toasted ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE MAIN;
	INSERT INTO toasted SELECT CASE WHEN g % 5 > 0 THEN g % 17 END, repeat(md5(g::text), g * 3), repeat('b', g * 100), g
	FROM generate_series(1, 300) g;
	CREATE TABLE few (k int, id int);
	INSERT INTO few VALUES (2, 1), (1, 2), (NULL, 3);
	CREATE TABLE no_rows (k int, id int);
	CREATE TABLE no_columns ();
	INSERT INTO no_columns SELECT FROM generate_series(1, 1000);
	ANALYZE;
});
$node->safe_psql('postgres',
	'CREATE TABLE wide (id int, k int, ' . join(', ', map { "c$_ " . ('int8', 'int2', 'text', 'bool', 'int4')[ $_ % 5 ] } 1 .. 300) . ')');
$node->safe_psql('postgres',
	'INSERT INTO wide SELECT g, g * 7919 % 101, ' .
	join(', ', map { ('g', 'g', 'CASE WHEN g % 5 = 0 THEN chr(97 + g % 26) END', 'g % 3 = 0', "CASE WHEN g % 3 = 0 THEN g * $_ END")[ $_ % 5 ] } 1 .. 300) .
	' FROM generate_series(1, 500) g; ANALYZE wide');

my $parallel = parallel_plans(3, 'enable_gathermerge = off');
my $serial = 'SET max_parallel_workers_per_gather = 0';
my $on_gpu = 'SET pg_gpusort.enable = on; SET pg_gpusort.backend = gpu; SET pg_gpusort.debug_require = gpu';
my $on_cpu = 'SET pg_gpusort.enable = on; SET pg_gpusort.backend = cpu; SET pg_gpusort.debug_require = cpu';
my $paths = 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off';
my $sink = qr/GpuSort\).*Gather.*GpuSortSink.*Parallel Seq Scan/s;

my $session = Session($node, $paths, $parallel);

# as_stock NAME, QUERY: by parallel workers, and by one process on the GPU and on
# the CPU; the keys must leave no ties.
sub as_stock
{
	my ($name, $query) = @_;
	my $digest = digest($query);
	my $expected = $session->run("$STOCK; $serial; $digest");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	unlike($expected, qr/ERROR/, "$name: stock");
	is($session->run("$on_gpu; $digest"), $expected, "$name: on the GPU");
	is($session->run("$on_cpu; $digest"), $expected, "$name: on the CPU");
	$session->run("$parallel; $on_gpu");
	# A plan for no rows costs nothing, whatever it is.
	like($session->run("EXPLAIN $digest"), $sink, "$name: parallel plan")
	  if $query !~ /temporary|no_rows/;
	is($session->run($digest), $expected, "$name: parallel");
}

# ---- Tables ----

my @queries = (
	'SELECT * FROM grown ORDER BY k, id',
	'SELECT last, fixed, id FROM grown ORDER BY fixed, id',
	'SELECT nothing, text, id FROM grown ORDER BY nothing DESC, id',
	'SELECT * FROM dropped ORDER BY k, id',
	'SELECT c, id FROM dropped ORDER BY c, id',
	'SELECT * FROM holes ORDER BY id',
	'SELECT * FROM holes ORDER BY k, id',
	'SELECT h, k, c, b, a, id FROM holes ORDER BY b DESC, id',
	'SELECT id, a, a AS again FROM holes ORDER BY a, id',
	'SELECT ctid, id FROM holes ORDER BY id',
	'SELECT * FROM wide ORDER BY k, id',
	'SELECT c300, c299, c1, k, id FROM wide ORDER BY k DESC, id',
	'SELECT * FROM changed ORDER BY k, id',
	'SELECT v, id FROM changed ORDER BY v, id',
	'SELECT * FROM toasted ORDER BY k, id',
	'SELECT id, a, k FROM toasted ORDER BY k DESC, id',
	'SELECT * FROM few ORDER BY k, id',
	'SELECT * FROM no_rows ORDER BY k, id',
	'SELECT * FROM big ORDER BY k, id');
as_stock($_, $_) foreach @queries;
$session->run("$on_gpu; CREATE TEMP TABLE temporary AS SELECT * FROM changed");
as_stock('a temporary table', 'SELECT * FROM temporary ORDER BY k, id');
is($session->run('SELECT count(*) FROM (SELECT 1 FROM no_columns OFFSET 0) s'), '1000', 'a table without columns');
$node->safe_psql('postgres', 'VACUUM changed');
as_stock('after VACUUM', 'SELECT * FROM changed ORDER BY k, id');
holds_nothing($node, 'tables');

# ---- Transactions ----

foreach my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	$session->run("BEGIN ISOLATION LEVEL $level; SELECT 1");
	$session->run(q{
		INSERT INTO changed SELECT g, g % 7, 0, 'own' FROM generate_series(50001, 50300) g;
		UPDATE changed SET k = -k WHERE id % 4 = 0;
		SAVEPOINT s;
		DELETE FROM changed WHERE id % 2 = 0});
	as_stock("$level, own changes", 'SELECT * FROM changed ORDER BY k, id');
	$session->run('ROLLBACK TO s');
	as_stock("$level, own changes, a part undone", 'SELECT * FROM changed ORDER BY k, id');
	is($session->run("SELECT count(*) > 0 FROM pg_locks WHERE relation = 'changed'::regclass AND mode = 'SIReadLock'"),
		$level eq 'SERIALIZABLE' ? 't' : 'f', "$level: predicate locks");
	$session->run('ROLLBACK');
}

# Others' changes do not show in a snapshot, and in READ COMMITTED show after.
{
	my $other = Session($node);
	my $digest = digest('SELECT * FROM changed ORDER BY k, id');
	my ($before, $after);

	$session->run("$parallel; $on_gpu; BEGIN ISOLATION LEVEL REPEATABLE READ");
	$before = $session->run($digest);
	$other->run('BEGIN; UPDATE changed SET k = k + 5 WHERE id % 5 = 0; DELETE FROM changed WHERE id % 5 = 1');
	is($session->run($digest), $before, 'changes that are not committed');
	$other->run('COMMIT');
	is($session->run($digest), $before, 'changes that are committed, in an old snapshot');
	$session->run('COMMIT');
	$after = $session->run($digest);
	isnt($after, $before, 'changes that are committed');
	is($session->run("$STOCK; $serial; $digest"), $after, 'changes that are committed, as stock');
	$other->quit;
}

# A write skew is found, though both have read by scans of pages.
{
	my $other = Session($node, $paths, $serial, $on_cpu);
	my $sum = digest('SELECT k, id FROM few ORDER BY k, id');
	my @errors;

	$session->run("$serial; $on_cpu");
	$_->run("BEGIN ISOLATION LEVEL SERIALIZABLE; $sum") foreach $session, $other;
	$session->run('INSERT INTO few VALUES (5, 100)');
	$other->run('INSERT INTO few VALUES (6, 101)');
	@errors = grep { /40001/ } ($session->run('COMMIT'), $other->run('COMMIT'));
	is(scalar(@errors), 1, 'SERIALIZABLE: a conflict is found');
	$_->run('ROLLBACK') foreach $session, $other;
	$other->quit;
}

# ---- Synchronized scans ----

# The table has more than a quarter of shared_buffers.
is($node->safe_psql('postgres', q{SELECT pg_relation_size('big') > 2 * 1024 * 1024 / 4}), 't', 'a large table');
{
	my $ties = 'SELECT k % 5 AS k, id FROM big ORDER BY k';
	my $plain = 'SELECT k, id, t FROM big ORDER BY k, id';
	my $reader = Session($node, $serial, $STOCK);

	foreach my $rows (1, 7000, 30000)
	{
		my $expected;

		# Another scan is somewhere in the middle, and the next ones begin there.
		$reader->run("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM big; MOVE $rows IN c");
		as_stock("beside a scan at row $rows", $plain);
		$session->run($serial);
		foreach my $settings ($on_gpu, $on_cpu)
		{
			$reader->run('MOVE 1000 IN c');
			$session->run($settings);
			is($session->run("SELECT count(DISTINCT id), sum(id) FROM ($ties OFFSET 0) s"), '40000|800020000',
				"beside a scan at row $rows, with ties");
		}
		$reader->run('COMMIT');
	}

	# Lost before the first row is returned: each row comes once.
	foreach my $fault ('put:error:5', 'get:error:1')
	{
		my $rows;
		my %seen;

		$reader->run('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM big; MOVE 15000 IN c');
		$session->run("$serial; $on_gpu; SET pg_gpusort.debug_require = node; SET pg_gpusort.debug_fault = '$fault';
			SELECT pg_stat_gpusort_reset()");
		$rows = $session->run('SELECT id FROM big ORDER BY k % 5');
		is($session->run(q{SELECT sorts FROM pg_stat_gpusort_fallbacks WHERE reason = 'the device reported an error'}),
			'1', "$fault: counted");
		$seen{$_}++ foreach split(/\n/, $rows);
		is(scalar(keys %seen), 40000, "$fault: each row, beside a scan in the middle");
		$reader->run('COMMIT');
		$session->run('RESET pg_gpusort.debug_fault');
	}
	$reader->quit;
}
holds_nothing($node, 'synchronized scans');
$session->quit;

$node->stop;
done_testing();
