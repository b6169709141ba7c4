# Sorts on a GPU, which the emulator plays: the rows and their order are those
# of the memory sort, and what no GPU can do is done without one.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'});
make_table($node, 20000);
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION volatile_id(id int) RETURNS int LANGUAGE plpgsql VOLATILE
		AS $$ BEGIN RETURN id; END $$;
	CREATE TABLE mixed AS
	SELECT g AS id, CASE WHEN g % 5 > 0 THEN g * 7919 % 1009 END::int4 AS i4,
		   CASE WHEN g % 7 > 0 THEN (g * 104729 % 4001 - 2000) / 8.0 END::float8 AS f8,
		   DATE '2020-01-01' + g * 31 % 977 AS d, g % 3 = 0 AS b,
		   CASE WHEN g % 11 > 0 THEN repeat(chr(97 + g % 26), g % 300) END AS t,
		   CASE WHEN g % 2 = 0 THEN g::numeric / 7 END AS n
	FROM generate_series(1, 5000) g;
	INSERT INTO mixed SELECT -g, g, f, NULL, g = 1, NULL, NULL
	FROM generate_series(1, 3) g, unnest('{NaN,Infinity,-Infinity,-0,0,NULL}'::float8[]) f;
	-- runs of equal first words: of one row, of some, and over several chunks
	CREATE TABLE runs AS
	SELECT g AS id, CASE WHEN g % 61 = 0 THEN NULL WHEN g < 9000 THEN 'all of these begin alike ' || g * 7919 % 1009
		   WHEN g < 14000 THEN md5((g % 900)::text) ELSE md5(g::text) END COLLATE "C" AS t,
		   (g % 700)::numeric / 7 AS n, g % 5 AS k
	FROM generate_series(1, 20000) g;
	CREATE TABLE few AS SELECT g AS id, g % 40 AS k FROM generate_series(1, 1000) g;
	ANALYZE mixed, runs, few;
});

my $on_gpu = 'SET pg_gpusort.backend = gpu; SET pg_gpusort.debug_require = gpu';
my $on_cpu = 'SET pg_gpusort.backend = cpu; SET pg_gpusort.debug_require = cpu';
my $anywhere = 'SET pg_gpusort.backend = gpu; SET pg_gpusort.debug_require = node';

my $session = Session($node);

# The same rows in the same order as from a memory sort.
sub as_on_cpu
{
	my ($name, $query, $settings) = @_;
	my $expected;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->run("$on_cpu; $settings") if defined $settings;
	$session->run($on_cpu);
	$expected = $session->run($query);
	unlike($expected, qr/ERROR/, "$name: on the CPU");
	$session->run($on_gpu);
	is($session->run($query), $expected, "$name: on the GPU");
	$session->run('RESET ALL') if defined $settings;
}

# ---- Rows and keys ----

my %sorts = (
	'fixed rows' => 'SELECT k, id FROM big ORDER BY k',
	'fixed rows, descending' => 'SELECT id, k FROM big ORDER BY k DESC',
	'variable rows' => 'SELECT * FROM big ORDER BY k',
	'variable rows, nulls first' => 'SELECT * FROM big ORDER BY k NULLS FIRST',
	'descending, nulls last' => 'SELECT * FROM big ORDER BY k DESC NULLS LAST',
	'two keys' => 'SELECT * FROM big ORDER BY k % 10, id DESC',
	'ties' => 'SELECT * FROM big ORDER BY k % 3',
	'ties, descending' => 'SELECT * FROM big ORDER BY k % 3 DESC',
	'ties alone' => 'SELECT * FROM big ORDER BY id * 0',
	'null keys alone' => 'SELECT * FROM big ORDER BY NULLIF(k, k)',
	'sorted already' => 'SELECT * FROM big ORDER BY id',
	'no rows' => 'SELECT * FROM big WHERE id < 0 ORDER BY k',
	'one row' => 'SELECT * FROM big WHERE id = 7 ORDER BY k',
	'keys alone' => 'SELECT k FROM big ORDER BY k',
	'int4' => 'SELECT * FROM mixed ORDER BY i4',
	'float8' => 'SELECT * FROM mixed ORDER BY f8',
	'float8, descending' => 'SELECT * FROM mixed ORDER BY f8 DESC',
	'date' => 'SELECT * FROM mixed ORDER BY d, b',
	'bool' => 'SELECT * FROM mixed ORDER BY b, i4 DESC, id',
	'long rows' => 'SELECT id, repeat(t, 100) FROM mixed WHERE id < 300 ORDER BY i4',
	'rows of all lengths' => 'SELECT id, repeat(t, id % 150) FROM mixed WHERE id < 2000 ORDER BY i4',
	'runs' => 'SELECT * FROM runs ORDER BY t',
	'runs, descending' => 'SELECT * FROM runs ORDER BY t DESC, n DESC, id',
	'runs behind another key' => 'SELECT t, id FROM runs ORDER BY k, t, n DESC',
	'runs of numeric' => 'SELECT id, n FROM runs ORDER BY n, t DESC NULLS LAST',
	'runs of rows of fixed width' => 'SELECT n IS NULL, id FROM runs ORDER BY k, ARRAY[id % 3], id',
	'more rows than expected' => 'SELECT * FROM big WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0 ORDER BY k');

foreach my $name (sort keys %sorts)
{
	as_on_cpu($name, digest($sorts{$name}));
}
foreach my $clause ('', 'DESC', 'NULLS FIRST')
{
	sorts_like_stock($node, "with $clause", 'SET pg_gpusort.debug_require = gpu', $clause);
}
holds_nothing($node, 'after sorts');

# ---- Plans ----

# An incremental sort above a merge join would never be done on a GPU.
my $merge = 'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off; SET enable_incremental_sort = off';
my $join = digest('SELECT a.id, b.id AS other FROM few a JOIN few b ON a.k = b.k ORDER BY a.k, a.id, b.id');
as_on_cpu('mark and restore', $join, $merge);
as_on_cpu('mark and restore within runs',
	digest(q{SELECT a.id, b.id AS other FROM runs a JOIN runs b ON a.t = b.t WHERE a.id % 3 = 0 ORDER BY a.t, a.id, b.id}),
	$merge);

# A group of the inner input that crosses a chunk, or has many ties, is fetched and sorted a few times, not for each
# row of the outer input; also if only a part of its rows can be kept.
$node->safe_psql(
	'postgres', q{
	CREATE TABLE groups AS
	SELECT g AS id, g % 1000 AS some, ('all of these begin alike ' || g % 1000) COLLATE "C" AS some_text,
		   ('all of these begin alike ' || g % 500) COLLATE "C" AS more_text, g % 2 AS half,
		   CASE WHEN g % 4000 < 2 THEN g % 2 END AS few, repeat('x', g % 20) AS filler
	FROM generate_series(1, 20000) g;
	ANALYZE groups;
});
foreach my $memory ('64MB', '64kB')
{
	foreach my $pair ([ 'some', 'some' ], [ 'some_text', 'some_text' ], [ 'more_text', 'more_text' ], [ 'few', 'half' ])
	{
		my ($outer, $inner) = @$pair;
		my $query = "SELECT count(*), sum(a.id::int8 * b.id), sum(length(b.filler)) FROM groups a JOIN groups b ON a.$outer = b.$inner";
		my $name = "groups that cross chunks, $memory, $inner";

		$session->run("$merge; SET pg_gpusort.work_mem = '$memory'");
		is($session->run("$ON_GPU; $query"), $session->run("$STOCK; $query"), "$name: rows");
		$session->run($ON_GPU);
		like($session->run("EXPLAIN $query"), qr/Merge Join.*GpuSort.*GpuSort/s, "$name: plan");
		if ($memory eq '64MB')
		{
			# Each session has far fewer chunks, and such a fault would be counted.
			$session->run(q{SELECT pg_stat_gpusort_reset(); SET pg_gpusort.debug_fault = 'get:error:100'});
			$session->run("$OURS; $query");
			is($session->run($REASONS), '', "$name: chunks are fetched a few times");
		}
		$session->run('RESET ALL');
	}
}
holds_nothing($node, 'groups that cross chunks');

my $loop = 'SELECT g, s.id FROM generate_series(1, 4) g, LATERAL (SELECT id FROM big WHERE id <= 2000 %s ORDER BY k OFFSET 0) s';
as_on_cpu('rescans with other rows', digest(sprintf($loop, '* g')));
as_on_cpu('rescans', digest(sprintf($loop, '')),
	'SET enable_material = off; SET enable_memoize = off');
as_on_cpu('several sorts', digest(q{
	SELECT * FROM (SELECT * FROM big WHERE id < 9000 ORDER BY k OFFSET 0) a
	UNION ALL SELECT * FROM (SELECT * FROM big ORDER BY id % 77 OFFSET 0) b}));
as_on_cpu('window functions',
	digest('SELECT id, row_number() OVER w, sum(id) OVER w FROM big WINDOW w AS (PARTITION BY id % 10 ORDER BY k, id)'));
as_on_cpu('an array of a subplan',
	'SELECT md5(array_to_string(ARRAY(SELECT id FROM big ORDER BY k), $$ $$))');
my $arrays_sorted = q{SELECT array_sorts FROM pg_stat_gpusort WHERE backend = 'gpu'};
my $arrays_before = value_of($node, $arrays_sorted);
as_on_cpu('arrays', 'SELECT md5(gpu_sort(array_agg(k))::text), md5(gpu_argsort(array_agg(k), true)::text), md5(gpu_sort(array_agg(id))::text) FROM big');
as_on_cpu('aggregates that return arrays', 'SELECT md5(gpu_sort_agg(k)::text), md5(gpu_argsort_agg(k, true)::text), md5(gpu_sort_agg(id)::text) FROM big');
is(value_of($node, $arrays_sorted), $arrays_before + 6, 'each is counted');

$session->run("$on_gpu; SET plan_cache_mode = force_generic_plan;
	PREPARE p(int) AS " . digest('SELECT * FROM big WHERE id <= $1 ORDER BY k'));
foreach my $rows (20000, 10, 0, 15000)
{
	my $prepared = $session->run("$on_gpu; EXECUTE p($rows)");
	is($prepared, $session->run("$on_cpu; " . digest("SELECT * FROM big WHERE id <= $rows ORDER BY k")),
		"prepared statement, $rows rows");
}
$session->run('RESET ALL; DEALLOCATE p');
holds_nothing($node, 'after plans');

# ---- Cursors ----

my $moves = join('; ', 'FETCH 3 FROM c', 'FETCH BACKWARD 2 FROM c', 'FETCH ABSOLUTE 15000 FROM c',
	'FETCH RELATIVE -3 FROM c', 'FETCH FORWARD 4000 FROM c', 'FETCH BACKWARD 9000 FROM c',
	'FETCH LAST FROM c', 'FETCH NEXT FROM c', 'FETCH PRIOR FROM c', 'FETCH ABSOLUTE -7 FROM c',
	'FETCH FIRST FROM c', 'FETCH PRIOR FROM c', 'FETCH NEXT FROM c', 'MOVE 12345 IN c',
	'FETCH 5 FROM c', 'FETCH BACKWARD ALL FROM c', 'FETCH ALL FROM c', 'MOVE ABSOLUTE 100 IN c',
	'FETCH BACKWARD 5 FROM c');
foreach my $columns ('*', 'k, id')
{
	as_on_cpu("scroll cursor, $columns", "BEGIN;
		DECLARE c SCROLL CURSOR FOR SELECT $columns FROM big ORDER BY k; $moves; COMMIT");
	as_on_cpu("cursor with hold, $columns", "BEGIN;
		DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT $columns FROM big ORDER BY k;
		FETCH 5000 FROM c; COMMIT; $moves; CLOSE c");
}
foreach my $keys ('t', 't DESC NULLS LAST, id', 'k, n')
{
	as_on_cpu("scroll cursor over runs by $keys", "BEGIN;
		DECLARE c SCROLL CURSOR FOR SELECT id, t FROM runs ORDER BY $keys; $moves; COMMIT");
}
holds_nothing($node, 'after cursors');

# Several at a time, read in turns.
my $turns = join('; ', 'BEGIN',
	(map { "DECLARE c$_ CURSOR FOR SELECT * FROM big WHERE id > $_ * 1000 ORDER BY k" } 1 .. 5),
	(map { "FETCH 1500 FROM c" . ($_ % 5 + 1) } 1 .. 60), 'COMMIT');
as_on_cpu('cursors in turns', $turns, 'SET pg_gpusort.max_sessions_per_backend = 5');
holds_nothing($node, 'after cursors in turns');

{
	# Sorts in workers, since no path lets them put their rows into a sort of the leader.
	my $limited = digest('SELECT * FROM (SELECT k, id FROM big ORDER BY k, id LIMIT 19000) s');

	$session->run(parallel_plans(2, 'parallel_leader_participation = off', 'enable_sort = off'));
	$session->run("$anywhere; SET pg_gpusort.backend = gpu");
	like($session->run("$EXPLAIN $limited"), qr/Gather Merge.*GpuSort.*Worker \d:  Sort Method: gpu onesweep/s,
		'parallel workers: EXPLAIN');
	is($session->run($limited), $session->run("$STOCK; $limited"), 'parallel workers: rows');
	$session->run('RESET ALL');
	holds_nothing($node, 'parallel workers');
}

# ---- What is done on the CPU, and why ----

# not_on_gpu NAME, QUERY, REASON, SETTINGS: the reason as EXPLAIN shows it, and
# the rows of stock PostgreSQL.
sub not_on_gpu
{
	my ($name, $query, $reason, $settings) = @_;
	my $digest = digest($query);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->run($settings) if defined $settings;
	$session->run("$anywhere; SELECT pg_stat_gpusort_reset()");
	like($session->run("$EXPLAIN $query"), $reason, "$name: EXPLAIN");
	my $rows = $session->run($digest);
	is($rows, $session->run("$STOCK; $digest"), "$name: rows");
	$session->run('RESET ALL');
	holds_nothing($node, $name);
}

sub fallbacks
{
	return $session->run('SELECT reason FROM pg_stat_gpusort_fallbacks ORDER BY sorts DESC LIMIT 1');
}

not_on_gpu('a row longer than a chunk',
	q{SELECT id, k, repeat('x', CASE WHEN id = 15000 THEN 70000 ELSE 10 END) FROM big ORDER BY k, id},
	qr/Sort Method: cpu radix.*GPU Not Used: a row is too long for pg_gpusort.pool_size/s);
is(fallbacks(), 'a row is too long for pg_gpusort.pool_size', 'a row longer than a chunk: counted');
not_on_gpu('no device memory from the start', 'SELECT * FROM big ORDER BY k, id',
	qr/Sort Method: cpu radix.*GPU Not Used: not enough device memory/s,
	q{SET pg_gpusort.device_memory = '500kB'});
# The planner expects a fraction of the rows.
my $many = 'SELECT * FROM big WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0 ORDER BY k, id';
foreach my $limit ('800kB', '1MB', '1500kB')
{
	not_on_gpu("$limit of device memory", $many,
		qr/Sort Method: (quicksort|external merge).*Sort Fallback: not enough device memory/s,
		"SET pg_gpusort.device_memory = '$limit'");
	is(fallbacks(), 'not enough device memory', "$limit of device memory: counted");
}
not_on_gpu('many rows, on disk', $many,
	qr/Sort Method: external merge  Disk.*Sort Fallback: not enough device memory/s,
	q{SET pg_gpusort.device_memory = '800kB'; SET work_mem = '256kB'});
leaves_nothing($node, 'many rows, on disk');

# A long run of equal keys goes to disk, and is left in the middle.
$session->run("$on_gpu; SET work_mem = '64kB'; BEGIN;
	DECLARE c CURSOR FOR SELECT repeat('x', 30) || t AS key, id FROM big ORDER BY 1, 2");
like($session->run('FETCH 1 FROM c'), qr/xrow number 1\|1$/, 'a long run: its first row');
{
	my @files = glob($node->data_dir . '/base/pgsql_tmp/*');

	cmp_ok(scalar @files, '>', 0, 'a long run: files');
}
is($session->run('CLOSE c; COMMIT'), '', 'a long run, left in the middle: no warning');
leaves_nothing($node, 'a long run');
$session->run('RESET work_mem');

# Ties in the order of stock PostgreSQL.
$session->run("$anywhere; SET pg_gpusort.debug_stock_ties = on");
foreach my $name ('variable rows', 'ties', 'null keys alone', 'float8', 'more rows than expected')
{
	like($session->run("$EXPLAIN $sorts{$name}"), qr/Sort Method: gpu onesweep/,
		"$name, with stock ties: on the GPU");
	my $ties = $session->run(digest($sorts{$name}));
	is($ties, $session->run('SET pg_gpusort.enable = off; SET pg_gpusort.debug_require = off; ' .
		digest($sorts{$name}) . '; SET pg_gpusort.enable = on'),
		"$name, with stock ties: rows");
}
$session->run('RESET pg_gpusort.debug_stock_ties');

# ---- Wrong estimates ----

# The planner expects any number of rows of a function, and of a table whose statistics are wrong.
foreach my $rows ('1', '1e9', '1e19', '1e30', '3e38')
{
	my $few = $rows eq '1';
	my $where = $few ? qr/Sort Method: gpu onesweep/ : qr/Sort Method: cpu radix.*GPU Not Used: not enough device memory/s;
	my $function = 'guessed_' . ($rows =~ s/e/_/r);
	my %queries = (
		fixed => "SELECT k, id FROM $function() ORDER BY k, id",
		variable => "SELECT * FROM $function() ORDER BY k, id",
		joined => "SELECT a.id AS a, b.id AS b FROM $function() a CROSS JOIN (SELECT * FROM $function() LIMIT 3) b ORDER BY a.k, 1, 2");

	$session->run("CREATE FUNCTION $function() RETURNS SETOF big LANGUAGE plpgsql STABLE ROWS $rows AS
		'BEGIN RETURN QUERY SELECT * FROM big WHERE id % 3 = 0; END'");
	foreach my $name (sort keys %queries)
	{
		my $stock = $session->run("$STOCK; " . digest($queries{$name}));

		$session->run("$OURS; $anywhere");
		is($session->run(digest($queries{$name})), $stock, "$rows rows expected, $name: rows");
		like($session->run("$EXPLAIN $queries{$name}"), $where, "$rows rows expected, $name: EXPLAIN");
		$session->run("SET pg_gpusort.work_mem = '64kB'");
		is($session->run(digest($queries{$name})), $stock, "$rows rows expected, $name, little memory: rows");
		$session->run('RESET pg_gpusort.work_mem');
	}
	$session->run("CREATE TABLE misjudged AS SELECT k, id FROM big;
		UPDATE pg_class SET reltuples = $rows, relpages = pg_relation_size('misjudged') / 8192 WHERE relname = 'misjudged'");
	$session->run('SET pg_gpusort.min_rows = 0; CREATE INDEX ON misjudged (k, id); RESET pg_gpusort.min_rows');
	is($session->run("$STOCK; SET enable_sort = off; SET enable_seqscan = off; " . digest('SELECT k, id FROM misjudged ORDER BY k, id') .
			'; RESET enable_sort; RESET enable_seqscan'),
		$session->run(digest('SELECT k, id FROM big ORDER BY k, id')), "$rows rows expected, an index: rows");
	$session->run('DROP TABLE misjudged');
	holds_nothing($node, "$rows rows expected");
}
$session->quit;
holds_nothing($node, 'at the end');

$node->stop;
done_testing();
