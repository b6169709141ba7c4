# Divided sorts (039_divided_sorts.pl) on a GPU, which the emulator plays: all processes add rows to
# one session, and each reads some of the sorted rows.  Their rows are those of stock PostgreSQL,
# whatever the device refuses, and whoever comes late, fails or stops reading.  If the device is lost,
# there is an error with a hint.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

# Chunks of 64 kB, of which the rows below take many.
my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'}, 'max_worker_processes = 16',
	'max_parallel_workers = 8', 'enable_incremental_sort = off');
my $parallel = parallel_plans(3, 'pg_gpusort.debug_divide = on', 'cpu_tuple_cost = 1', q{statement_timeout = '60s'});

$node->safe_psql('postgres', q{CREATE TABLE visits AS
	SELECT g AS id, hashint4(g) % 200 AS who, CASE WHEN g % 10 = 0 THEN NULL ELSE hashint4(g * 3) % 40 END AS page,
		   CASE WHEN g % 2 = 0 THEN 7 ELSE g END AS skewed, 'http://www.example.org/a/long/prefix/' || hashint4(g) % 300 AS url,
		   left(md5((g % 50)::text), 2) || ' and more than the words of a key ' || hashint4(g) % 20 AS name,
		   (hashint4(g * 7) % 500) / 10.0 AS price, md5(g::text) AS note, repeat('z', g % 300) AS pad
	FROM generate_series(1, 9000) g;
	ANALYZE});

# ---- Rows ----

my %queries = (
	'a window' => 'SELECT id, row_number() OVER (PARTITION BY who ORDER BY price DESC, id) FROM visits',
	'a window over long rows' => 'SELECT *, row_number() OVER (PARTITION BY who ORDER BY price DESC, id) FROM visits',
	'the first of each partition' => 'SELECT * FROM (SELECT id, pad, row_number() OVER (PARTITION BY page ORDER BY note) AS n FROM visits) s WHERE n <= 3',
	'two windows' => 'SELECT pad, sum(id) OVER (PARTITION BY who ORDER BY id), lag(note) OVER (PARTITION BY who ORDER BY price, id) FROM visits',
	'partitions that differ after the words of a key' => 'SELECT id, pad, sum(price) OVER (PARTITION BY name ORDER BY id) FROM visits',
	'partitions of which no words differ' => 'SELECT id, pad, max(note) OVER (PARTITION BY url, who ORDER BY price, id) FROM visits',
	'numbers in partitions that differ after words' => 'SELECT id, rank() OVER (PARTITION BY who, name ORDER BY id) FROM visits',
	'ties after the keys of a partition' => 'SELECT id, pad, row_number() OVER (PARTITION BY page ORDER BY name, id) FROM visits',
	'partitions of short values' => 'SELECT id, pad, row_number() OVER (PARTITION BY price ORDER BY id) FROM visits',
	'partitions of short strings' => q{SELECT id, row_number() OVER (PARTITION BY t, page ORDER BY id) FROM (SELECT *, left(name, 2) AS t FROM visits) s},
	'a partition of half of the rows' => 'SELECT id, pad, count(*) OVER (PARTITION BY skewed) FROM visits',
	'one partition' => 'SELECT id, pad, count(*) OVER (PARTITION BY who * 0) FROM visits',
	'a partition for each row' => 'SELECT id, pad, lag(id) OVER (PARTITION BY note ORDER BY id) FROM visits',
	'no keys' => 'SELECT id, pad, sum(id) OVER (PARTITION BY NULLIF(who, who) ORDER BY id) FROM visits',
	'NULLs first' => 'SELECT id, pad, rank() OVER (PARTITION BY page ORDER BY id) FROM (SELECT * FROM visits WHERE id % 3 > 0) s',
	'a row longer than a chunk' => 'SELECT id, length(w), row_number() OVER (PARTITION BY who ORDER BY w, id)
		FROM (SELECT id, who, repeat(note, CASE WHEN id % 4000 = 77 THEN 2500 ELSE 1 END) AS w FROM visits) s',
	'aggregates that sort' => 'SELECT page, count(DISTINCT who), array_agg(note ORDER BY id DESC) FROM visits GROUP BY page',
	'groups' => 'SELECT url, min(id), sum(price) FROM visits GROUP BY url HAVING count(*) > 20',
	'distinct rows' => 'SELECT DISTINCT skewed, page FROM visits',
	'windows over groups' => 'SELECT who, n, dense_rank() OVER (PARTITION BY who ORDER BY n)
		FROM (SELECT who, page, count(*) AS n FROM visits GROUP BY who, page) s',
	'counted keys' => 'SELECT count(DISTINCT note), count(*) FROM visits',
	'counted keys that differ after words' => 'SELECT count(DISTINCT name) FROM visits',
	'no rows' => 'SELECT id, first_value(id) OVER (PARTITION BY who ORDER BY id) FROM visits WHERE id + 0 < 0',
	'again and again' => 'SELECT o, (SELECT sum(n) FROM (SELECT rank() OVER (PARTITION BY who ORDER BY page) AS n
		FROM visits WHERE id % 3 = o) s) FROM generate_series(0, 2) o');

my %stock = map { $_ => $node->safe_psql('postgres', 'SET pg_gpusort.enable = off; ' . digest_of($queries{$_})) } keys %queries;

# rows_of SETTINGS, NAME...: tests the rows of these queries, or of all.
sub rows_of
{
	my ($settings, @names) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $name (@names ? @names : sort keys %queries)
	{
		my ($code, $output, $error) = $node->psql('postgres', "$parallel; $settings; " . digest_of($queries{$name}));

		is("$output$error", $stock{$name}, "$name: $settings");
	}
}

# All rows of these are on the GPU.
my $on_gpu = 'SET pg_gpusort.debug_require = gpu';
my @fit = grep { $_ ne 'a row longer than a chunk' } sort keys %queries;

like($node->safe_psql('postgres', "$parallel; EXPLAIN (ANALYZE) $queries{$_}"), qr/Divided By:.*Sort Method: gpu onesweep/s, "$_: EXPLAIN")
  foreach grep { !/again|counted/ } @fit;
like($node->safe_psql('postgres', "$parallel; EXPLAIN (ANALYZE) $queries{$_}"), qr/Sort Method: gpu onesweep.*Workers Launched: 3.*Rows Sent: 9000$/ms,
	"$_: EXPLAIN")
  foreach grep { /counted/ } @fit;
rows_of($on_gpu, @fit);
rows_of("$on_gpu; SET parallel_leader_participation = off; SET pg_gpusort.verify = 'all'", @fit);
rows_of("SET max_parallel_workers = 1; SET pg_gpusort.debug_whole_tuples = on");
rows_of('SET max_parallel_workers = 0', 'a window', 'a row longer than a chunk', 'again and again');
# Groups of ties are sorted on disk, and processes copy chunks one by one.
rows_of(q{SET pg_gpusort.work_mem = '64kB'});
rows_of(q{SET pg_gpusort.debug_fault = 'host:late:300'}, 'a window', 'two windows', 'again and again');
# Ties are left to the CPU unless a GPU is demanded.
like($node->safe_psql('postgres', "$parallel; SET pg_gpusort.backend = auto; SET pg_gpusort.gpu_min_rows = 0; EXPLAIN (ANALYZE) $queries{'a window'}"),
	qr/Sort Method: gpu onesweep/, 'auto: EXPLAIN');
like($node->safe_psql('postgres', "$parallel; SET pg_gpusort.backend = auto; SET pg_gpusort.gpu_min_rows = 0; EXPLAIN (ANALYZE) $queries{'partitions that differ after the words of a key'}"),
	qr/Sort Method: cpu radix, shared.*GPU Not Used: a GPU would leave too many ties to the CPU/s, 'auto and ties: EXPLAIN');
# What aggregates sort themselves is charged, also beside groups that have the order of the ORDER BY already.
$node->safe_psql('postgres', 'CREATE TABLE measured AS SELECT g % 100 AS a, g % 70 AS b, hashint4(g) AS v FROM generate_series(1, 100000) g; ANALYZE measured');
like($node->safe_psql('postgres', 'SET max_parallel_workers_per_gather = 3; SET min_parallel_table_scan_size = 0;
	EXPLAIN SELECT a, b, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM measured GROUP BY a, b ORDER BY a, b'),
	qr/Divided By: a, b/, 'medians in order: EXPLAIN');
# Each process looks for the first of its groups: a LIMIT leaves nothing for a GPU to sort.
like($node->safe_psql('postgres', 'SET max_parallel_workers_per_gather = 2; SET min_parallel_table_scan_size = 0; SET jit = off;
	EXPLAIN SELECT v, count(*), sum(a), avg(b) FROM measured GROUP BY v ORDER BY 2 DESC, v LIMIT 10'),
	qr/Gather Merge.*Sort.*GroupAggregate.*Divided By: v/s, 'the first groups: EXPLAIN');
holds_nothing($node, 'rows');
leaves_nothing($node, 'rows');

# A sort is counted once, whether or not the leader takes part.
foreach my $settings ('', 'SET parallel_leader_participation = off', q{SET pg_gpusort.debug_fault = 'put:memory:3'},
	q{SET parallel_leader_participation = off; SET pg_gpusort.debug_fault = 'put:memory:3'})
{
	$node->safe_psql('postgres', 'SELECT pg_stat_gpusort_reset()');
	$node->safe_psql('postgres', "$parallel; $settings; CREATE TEMP TABLE kept AS $queries{'a window'}");
	is( $node->safe_psql('postgres', q{SELECT backend, sorts, rows, parallel_sorts FROM pg_stat_gpusort WHERE sorts > 0}),
		$settings =~ /memory/ ? 'external|1|9000|1' : 'gpu|1|9000|1', "counted: $settings");
	is($node->safe_psql('postgres', $REASONS), $settings =~ /memory/ ? 'not enough device memory 1' : '', "reasons: $settings");
}

# ---- A device that is full ----

foreach my $chunk (1, 2, 7, 30)
{
	rows_of("SET pg_gpusort.debug_fault = 'put:memory:$chunk'; SET parallel_leader_participation = " . ($chunk == 2 ? 'off' : 'on'),
		'a window over long rows', 'partitions that differ after the words of a key', 'no keys', 'windows over groups', 'counted keys',
		'again and again');
}
rows_of("SET pg_gpusort.work_mem = '64kB'; SET pg_gpusort.debug_fault = 'put:memory:5'", 'a window over long rows', 'one partition', 'two windows');
rows_of("SET pg_gpusort.device_memory = '1MB'", 'a window over long rows', 'groups');
# Only the last chunks are refused, after the last row.
rows_of("SET pg_gpusort.debug_fault = 'put:memory:$_'", 'a window') foreach 3 .. 8;
like($node->safe_psql('postgres', "$parallel; SET pg_gpusort.debug_fault = 'put:memory:5'; EXPLAIN (ANALYZE) $queries{'a window over long rows'}"),
	qr/Sort Method: external merge, shared  Disk: .*Sort Fallback: not enough device memory/s, 'a full device: EXPLAIN');
holds_nothing($node, 'a full device');
leaves_nothing($node, 'a full device');

# ---- A device that is lost ----

foreach my $fault ('open:lost', 'put:lost:1', 'put:lost:9', 'put:error:3', 'put:crash:5', 'sort:error', 'sort:memory', 'sort:crash',
	'get:error:1', 'get:lost:3', 'get:crash:12', 'get:error:25', 'close:crash')
{
	foreach my $leader ('on', 'off')
	{
		next if $leader eq 'off' && $fault =~ /open|close/;
		my ($code, $output, $error) = $node->psql('postgres', "$parallel; SET parallel_leader_participation = $leader; SET pg_gpusort.debug_fault = '$fault'; "
			  . digest_of($queries{'a window over long rows'}));

		if ($fault =~ /open|close/)
		{
			is("$output$error", $stock{'a window over long rows'}, "$fault: rows");
		}
		else
		{
			like($error, qr/ERROR:  could not (sort rows|read the remaining rows).*DETAIL:  The reason is "(the|not).*HINT:  The query might succeed if retried/s,
				"$fault, leader $leader: error");
		}
		holds_nothing($node, "$fault, leader $leader") if $fault !~ /close/;
		# After some failures, a device is not tried again for a while.
		$node->restart;
		wait_for_service($node);
	}
}
foreach my $fault ('put:lost:1', 'put:error:2', 'sort:error', 'sort:crash', 'get:error:1')
{
	my ($code, $output, $error) = $node->psql('postgres', "$parallel; SET pg_gpusort.debug_fault = '$fault'; " . digest_of($queries{'counted keys'}));

	like($error, qr/ERROR:  could not (sort rows|read the remaining rows).*HINT:  The query might succeed if retried/s, "counted keys, $fault: error");
	holds_nothing($node, "counted keys, $fault");
	$node->restart;
	wait_for_service($node);
}
leaves_nothing($node, 'a lost device');
rows_of($on_gpu, 'a window');

# ---- Ends ----

foreach my $fault ('put:hang:4', 'sort:hang', 'get:hang:2')
{
	my ($code, $output, $error) = $node->psql('postgres', "$parallel; SET pg_gpusort.debug_fault = '$fault'; SET statement_timeout = '2s'; " . digest_of($queries{'a window'}));

	like($error, qr/canceling statement due to statement timeout/, "$fault: cancelled");
}
{
	my ($code, $output, $error);

	is($node->safe_psql('postgres', "$parallel; SELECT count(*) FROM ($queries{'a window over long rows'} LIMIT 5) s"), '5', 'a LIMIT');
	($code, $output, $error) = $node->psql('postgres',
		"$parallel; SELECT count(*) FROM (SELECT sum(1 / (id - 4500)) OVER (PARTITION BY who ORDER BY id) AS x FROM visits) s WHERE x > 0");
	like($error, qr/division by zero/, 'an error above the sort');
	($code, $output, $error) = $node->psql('postgres',
		"$parallel; SELECT count(*) FROM (SELECT sum(id) OVER (PARTITION BY who ORDER BY 1 / (id - 4500)) AS x FROM visits) s");
	like($error, qr/division by zero/, 'an error below the sort');
}
loops_like_sql($node, $parallel, 'SELECT id, row_number() OVER (PARTITION BY who ORDER BY id) AS n FROM visits', 'r.n * (r.id % 7)');

# Idle cursors hold chunks of the pool, and processes wait while they have read some of theirs.
{
	my $idle = Session($node, 'SET pg_gpusort.max_sessions_per_backend = 8');

	$idle->run('BEGIN; ' . join('; ', map { "DECLARE c$_ CURSOR FOR SELECT * FROM visits ORDER BY note; FETCH 1 FROM c$_" } 1 .. 6));
	rows_of($on_gpu, 'a window over long rows', 'one partition');
	$idle->quit;
}
holds_nothing($node, 'ends');
leaves_nothing($node, 'ends');

# Processes that are stopped and ended while they add, sort and return rows.
bears_stops($node, $parallel, digest_of($queries{'a window over long rows'}), $stock{'a window over long rows'}, 0.03,
	map { "SET pg_gpusort.debug_fault = '$_'" } 'put:memory:9', '', '');
holds_nothing($node, 'processes that are stopped');

$node->stop;
done_testing();
