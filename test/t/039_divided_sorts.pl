# Sorts that are divided among the processes below a Gather: each computes windows and groups of
# some of the rows.  Which queries have such plans; that their rows are those of stock PostgreSQL,
# in memory and on disk, whoever comes late, fails or stops reading.
#
#	GPUSORT_ALLOCATION_STEP	of how many allocations one fails (default 4)
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'}, 'pg_gpusort.min_rows = 0',
	q{pg_gpusort.backend = 'cpu'}, q{work_mem = '64MB'}, 'max_worker_processes = 16', 'max_parallel_workers = 8',
	'enable_incremental_sort = off', 'jit = off');
my $parallel = parallel_plans(3, 'pg_gpusort.debug_divide = on', q{statement_timeout = '60s'});
my $step = $ENV{GPUSORT_ALLOCATION_STEP} // 4;

$node->safe_psql('postgres', q{CREATE TABLE visits AS
	SELECT g AS id, hashint4(g) % 500 AS who, CASE WHEN g % 10 = 0 THEN NULL ELSE hashint4(g * 3) % 40 END AS page,
		   CASE WHEN g % 2 = 0 THEN 7 ELSE g END AS skewed, 'http://www.example.org/a/long/prefix/' || hashint4(g) % 300 AS url,
		   (hashint4(g * 7) % 500) / 10.0 AS price, md5(g::text) AS note
	FROM generate_series(1, 30000) g;
	CREATE TABLE nobody (LIKE visits);
	CREATE TABLE robots AS SELECT g AS id, CASE WHEN g % 10 > 0 THEN 7 ELSE g END AS who FROM generate_series(1, 30000) g;
	CREATE FUNCTION restricted(integer) RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED AS 'BEGIN RETURN $1; END';
	ANALYZE});

# ---- Plans ----

sub plan_of
{
	my ($query, @settings) = @_;

	return $node->safe_psql('postgres', join('; ', $parallel, @settings, "EXPLAIN (COSTS OFF) $query"));
}

# divided NAME, QUERY, EXPECTED: tests by which keys the sorts of a query are divided.
sub divided
{
	my ($name, $query, $expected, @settings) = @_;
	my $plan = plan_of($query, @settings);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(join('; ', $plan =~ /Divided By: (.*)/g), $expected, "plan: $name") or note($plan);
}

my $window = 'SELECT *, row_number() OVER (PARTITION BY who ORDER BY price, id) FROM visits';

like(plan_of($window), qr/^Custom Scan \(GpuSortUnpack\)\n +->  Gather\n.*Workers Planned: 3\n +->  Custom Scan \(GpuSortPack\)\n +->  WindowAgg\n(.*Window: .*\n)? +->  Parallel Custom Scan \(GpuSort\)\n/, 'plan: a window');
like(plan_of("SELECT * FROM ($window) s WHERE row_number <= 2"), qr/Divided By: visits.who\n +Rows Of Each Partition: 2\n/, 'plan: the first two of each partition');
# It would take the planner long to finish a Gather of more.
foreach my $windows (100, 101)
{
	divided("$windows windows", 'SELECT ' . join(', ', map { "sum(id + $_) OVER w" } 1 .. $windows) .
		' FROM visits WINDOW w AS (PARTITION BY who)', $windows == 100 ? 'who' : '');
}
# Nor are there paths for windows in many orders.
foreach my $orders (32, 40)
{
	divided("windows in $orders orders", 'SELECT ' . join(', ', map { "sum(id) OVER (PARTITION BY who ORDER BY id % $_)" } 2 .. $orders + 1) .
		' FROM visits', $orders == 32 ? 'who' : '');
}
divided('windows with a column in common',
	'SELECT sum(page) OVER (PARTITION BY who, page ORDER BY id), lag(id) OVER (PARTITION BY page ORDER BY note) FROM visits', 'page');
divided('windows without', 'SELECT sum(page) OVER (PARTITION BY who), lag(id) OVER (PARTITION BY page ORDER BY note) FROM visits', 'who; page');
divided('some windows with', 'SELECT count(*) OVER (PARTITION BY page, who), rank() OVER (PARTITION BY page ORDER BY id),
	sum(id) OVER (PARTITION BY url) FROM visits', 'page; url');
divided('a window of all rows above another', 'SELECT count(*) OVER (), rank() OVER (PARTITION BY who ORDER BY id) FROM visits', 'who');
divided('a window that workers must not compute above another',
	'SELECT sum(restricted(page)) OVER (PARTITION BY who), rank() OVER (PARTITION BY page) FROM visits', 'page');
divided('a window of all rows', 'SELECT count(*) OVER (ORDER BY id) FROM visits', '');
divided('an argument that workers must not compute', 'SELECT sum(restricted(page)) OVER (PARTITION BY who) FROM visits', '');
divided('another column', 'SELECT restricted(page) + sum(page) OVER (PARTITION BY who) FROM visits', '');
divided('the bound of a frame', 'SELECT sum(page) OVER (PARTITION BY who ORDER BY id ROWS restricted(2) PRECEDING) FROM visits', '');
divided('a filter', 'SELECT sum(page) FILTER (WHERE restricted(page) > 3) OVER (PARTITION BY who) FROM visits', '');
divided('a set-returning function', 'SELECT generate_series(1, 2), sum(page) OVER (PARTITION BY who) FROM visits', '');
divided('an aggregate above', "SELECT max(row_number) FROM ($window) s", 'visits.who');
divided('groups', q{SELECT who, string_agg(note, ',' ORDER BY id) FROM visits GROUP BY who}, 'who');
divided('groups of two columns', 'SELECT who, page, count(DISTINCT url) FROM visits GROUP BY page, who', 'page, who', 'SET enable_hashagg = off');
divided('DISTINCT ON', 'SELECT DISTINCT ON (page) page, id FROM visits ORDER BY page, note', 'page');
divided('all rows as one group', 'SELECT count(DISTINCT who) FROM visits', '');
divided('grouping sets', 'SELECT who, count(DISTINCT page) FROM visits GROUP BY ROLLUP (who)', '');
like(plan_of('SELECT who, count(DISTINCT page) FROM visits GROUP BY ROLLUP (who)'),
	qr/^GroupAggregate\n.*Group Key: who\n.*Group Key: \(\)\n +->  Custom Scan \(GpuSort\)\n.*\n +->  Gather\n.*\n +->  Parallel Custom Scan \(GpuSortSink\)\n/,
	'plan: grouping sets over a sort of all processes');
divided('grouping sets with a column in common', 'SELECT who, page, count(*) FROM visits GROUP BY who, ROLLUP (page, url)', 'who');
divided('grouping sets with two', 'SELECT sum(id) FROM visits GROUP BY GROUPING SETS ((who, page, url), (page, who), (page, who))', 'page, who');
divided('grouping sets that are no rollup', 'SELECT sum(id) FROM visits GROUP BY url, CUBE (page, who)', 'url', 'SET enable_hashagg = off');
divided('grouping sets by a constant', 'SELECT sum(id) FROM visits WHERE who = 3 GROUP BY who, ROLLUP (page)', '');
divided('distinct rows', 'SELECT DISTINCT who, page FROM visits', 'who, page');
divided('windows over groups', 'SELECT who, n, rank() OVER (PARTITION BY who ORDER BY n)
	FROM (SELECT who, page, count(*) AS n FROM visits GROUP BY who, page) s', 's.who; visits.who, visits.page');
divided('windows over groups of the same columns', 'SELECT rank() OVER (PARTITION BY page, who ORDER BY n)
	FROM (SELECT who, page, count(*) AS n FROM visits GROUP BY who, page) s', 'visits.who, visits.page');
divided('windows by columns that lead the groups', 'SELECT who, rank() OVER (PARTITION BY who ORDER BY sum(id)) FROM visits GROUP BY who, page',
	'who');
divided('windows by other columns of the groups', 'SELECT who, rank() OVER (PARTITION BY page ORDER BY sum(id)) FROM visits GROUP BY who, page',
	'page; who, page');
divided('windows by a column that has frequent values', 'SELECT rank() OVER (PARTITION BY skewed ORDER BY sum(id)) FROM visits
	GROUP BY skewed, page', 'skewed; skewed, page');
divided('a column of which half of the rows are equal', 'SELECT DISTINCT skewed FROM visits', '', 'RESET pg_gpusort.debug_divide');

# Rows pass the Gather many at a time.  There are as many as the catalog says, and a tenth of them are different in the second table.
$node->safe_psql('postgres', q{CREATE TABLE different AS SELECT g AS id FROM generate_series(1, 20000) g;
	CREATE TABLE alike AS SELECT g::int8 AS id, 'page ' || g % 1000 AS page, g % 5 AS kind FROM generate_series(1, 20000) g;
	ALTER TABLE alike ALTER id SET (n_distinct = -0.1);
	ALTER TABLE alike SET (parallel_workers = 8);
	ANALYZE different, alike;
	UPDATE pg_class SET reltuples = 1000000, relpages = pg_relation_size(oid) / current_setting('block_size')::int
		WHERE relname IN ('different', 'alike')});
my @large = ('RESET pg_gpusort.debug_divide', 'RESET parallel_setup_cost', 'RESET parallel_tuple_cost', 'SET pg_gpusort.min_rows = -1');
divided('distinct rows that all differ', 'SELECT DISTINCT id FROM different', 'id', @large, 'SET max_parallel_workers_per_gather = 8');
divided('distinct rows that would be preferred to a hash table', 'SELECT DISTINCT id, page, kind FROM alike', 'id, page, kind', @large);
divided('a UNION', 'SELECT who FROM visits UNION SELECT page FROM visits', '');
divided('an INTERSECT', 'SELECT who, page FROM visits INTERSECT SELECT page, who FROM visits', '');

like(plan_of('SELECT page, id FROM visits EXCEPT SELECT page, who FROM visits', 'SET max_parallel_workers_per_gather = 0'),
	qr/^ *(SetOp|->  SetOp) Except\n.*GpuSort/ms, 'plan: an EXCEPT in one process');
divided('an order of a window above, in a Gather Merge', 'SELECT * FROM (SELECT id, rank() OVER (PARTITION BY who ORDER BY id) AS r FROM visits WHERE id % 3 = 0) s
	ORDER BY r, id', 'visits.who');
my @planned = ('SET pg_gpusort.debug_divide = auto', 'SET enable_hashagg = off');
my %ordered = (
	'a window' => 'SELECT id, sum(page) OVER (PARTITION BY who ORDER BY id) FROM visits ORDER BY who, id',
	'groups' => 'SELECT who, sum(price * id) FROM visits GROUP BY who, page ORDER BY who, page',
	'DISTINCT' => 'SELECT DISTINCT who, page FROM visits ORDER BY who, page',
);
for my $what (sort keys %ordered)
{
	divided("$what in the order of the query", $ordered{$what}, $what eq 'a window' ? 'who' : 'who, page', @planned);
	divided("$what in that order, the first rows", "$ordered{$what} LIMIT 10", '', @planned);
}
divided('DISTINCT of a window and its columns', 'SELECT DISTINCT who, page, count(*) OVER (PARTITION BY who) FROM visits', 'who');
divided('groups of a window and its columns', 'SELECT who, r % 2, count(DISTINCT page) FROM
	(SELECT who, page, rank() OVER (PARTITION BY who ORDER BY id) AS r FROM visits) s GROUP BY 1, 2', 'visits.who');
divided('with debug_stock_ties', $window, '', 'SET pg_gpusort.debug_stock_ties = on');
divided('off', $window, '', 'SET pg_gpusort.debug_divide = off');
divided('small partitions', 'SELECT id, sum(page) OVER (PARTITION BY who ORDER BY id) FROM visits', 'who', 'RESET pg_gpusort.debug_divide');
divided('a partition of half of the rows', 'SELECT id, sum(page) OVER (PARTITION BY skewed ORDER BY id) FROM visits', 'skewed',
	'RESET pg_gpusort.debug_divide');
divided('a partition of most rows', 'SELECT id, sum(id) OVER (PARTITION BY who ORDER BY id) FROM robots', '',
	'RESET pg_gpusort.debug_divide');
unlike(plan_of("$window WHERE id < 500", 'SET pg_gpusort.debug_divide = auto'), qr/Pack/, 'plan: few rows pass the Gather one by one');
like(plan_of("SELECT * FROM ($window) s WHERE row_number = 1", 'SET pg_gpusort.debug_divide = auto', 'SET max_parallel_workers_per_gather = 1'),
	qr/Unpack.*Pack/s, 'plan: the first of each partition, of which there may be many');
unlike(plan_of("SELECT * FROM ($window) s ORDER BY note", 'SET enable_sort = on'), qr/Unpack/, 'plan: rows that a sort takes pass no Gather');
divided('few rows', "$window WHERE id < 500", '', 'RESET pg_gpusort.debug_divide', 'RESET parallel_setup_cost', 'RESET parallel_tuple_cost');
unlike($node->safe_psql('postgres', "$parallel; BEGIN; DECLARE c CURSOR FOR $window; EXPLAIN DECLARE c CURSOR FOR $window"),
	qr/Divided By/, 'plan: no cursor');

my $explained = $node->safe_psql('postgres', "$parallel; SET parallel_leader_participation = off; EXPLAIN (ANALYZE, VERBOSE) $window");

like($explained, qr/Worker 0: +Sort Method: cpu radix, shared  Memory: \d+kB\n/, 'EXPLAIN: workers');
is(eval { my $rows = 0; $rows += $_ for $explained =~ /Ranges Read: [1-9]\d*  Rows Returned: (\d+)\n/g; $rows }, 30000,
	'EXPLAIN: what each process returned');
like($explained, qr/Parallel Custom Scan \(GpuSort\).*actual.* rows=10000(\.00)? loops=3\)/, 'EXPLAIN: rows');

# ---- Rows ----

my %queries = (
	'a window' => 'SELECT id, row_number() OVER (PARTITION BY who ORDER BY price DESC, id) FROM visits',
	'the first of each partition' => 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY page ORDER BY note) AS n FROM visits) s WHERE n <= 3',
	'as many of each partition as a subquery says' => 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY page ORDER BY note) AS n FROM visits) s
		WHERE n <= (SELECT count(*) + 3 FROM nobody)',
	'as many as the row above says' => 'SELECT o, (SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY who ORDER BY id) AS n FROM visits) s
		WHERE n < (SELECT o + 2)) FROM generate_series(0, 2) o',
	'a frame as long as a subquery says' => 'SELECT id, sum(id) OVER (PARTITION BY who ORDER BY id ROWS (SELECT count(*) + 2 FROM nobody) PRECEDING) FROM visits',
	'windows of strings that begin alike' => 'SELECT id, sum(price) OVER (PARTITION BY url, who ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW),
		max(note) OVER (PARTITION BY url ORDER BY price, id) FROM visits',
	'partitions of short values' => 'SELECT id, row_number() OVER (PARTITION BY price ORDER BY id) FROM visits',
	'partitions of strings that begin alike, on disk with a pivot' => q{SELECT id, row_number() OVER (PARTITION BY t ORDER BY id) FROM (SELECT id,
		'aaaaaaaa' || chr(65 + id % 26) || repeat('x', 33) || lpad((id * 7919 % 4000)::text, 5, '0') AS t FROM visits) s},
	'a partition of half of the rows' => 'SELECT id, count(*) OVER (PARTITION BY skewed) FROM visits',
	'partitions by other columns in another order' => 'SELECT id, ntile(4) OVER (PARTITION BY page, skewed ORDER BY url, id),
		lag(id, 2) OVER (PARTITION BY skewed, page ORDER BY note) FROM visits',
	'descending partitions, NULLs first' => 'SELECT id, rank() OVER (PARTITION BY page ORDER BY id) FROM (SELECT * FROM visits WHERE id % 3 > 0) s',
	'aggregates that sort' => 'SELECT page, count(DISTINCT who), array_agg(note ORDER BY id DESC),
		percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM visits GROUP BY page',
	'groups' => 'SELECT url, min(id), sum(price) FROM visits GROUP BY url HAVING count(*) > 60',
	'grouping sets' => 'SELECT who, page, count(*), GROUPING(who, page, skewed) FROM visits GROUP BY who, ROLLUP (page, skewed)',
	'grouping sets that are no rollup' => 'SELECT url, page, who, count(DISTINCT price), sum(id) FROM visits GROUP BY url, CUBE (page, who) HAVING count(*) > 2',
	'distinct rows' => 'SELECT DISTINCT skewed, page FROM visits',
	'the first rows of DISTINCT ON' => 'SELECT DISTINCT ON (page, skewed) page, skewed, id, note FROM visits ORDER BY page, skewed, price DESC, id',
	'distinct numbers' => 'SELECT DISTINCT price::text::numeric FROM visits',
	'a UNION' => 'SELECT page, url FROM visits UNION SELECT who, note FROM visits WHERE id < 900 UNION SELECT NULL, url FROM visits',
	'a UNION of varchar' => 'SELECT note::varchar FROM visits UNION SELECT url::varchar(20) FROM visits',
	'an INTERSECT' => 'SELECT who FROM visits INTERSECT SELECT page FROM visits',
	'an INTERSECT ALL' => 'SELECT page, price FROM visits INTERSECT ALL SELECT page, price FROM visits WHERE id % 3 > 0',
	'an EXCEPT' => 'SELECT skewed, price::text::numeric FROM visits EXCEPT SELECT skewed, price + 0.00 FROM visits WHERE id > 3000',
	'an INTERSECT of a language' => 'SELECT note COLLATE "und-x-icu" AS n, page FROM visits INTERSECT SELECT note, page FROM visits WHERE id % 3 > 0',
	'an INTERSECT ALL of strings that begin alike' => 'SELECT url FROM visits WHERE id % 4 > 0 INTERSECT ALL SELECT url FROM visits WHERE id % 3 > 0',
	'an INTERSECT of different types' => 'SELECT trim_scale(price) FROM (SELECT price FROM visits INTERSECT SELECT who FROM visits) s',
	'an INTERSECT of few with many' => 'SELECT skewed, note FROM visits WHERE id < 100 INTERSECT SELECT skewed, note FROM visits',
	'an INTERSECT with nobody' => 'SELECT who FROM visits INTERSECT ALL SELECT who FROM nobody',
	'an EXCEPT of nobody' => 'SELECT who, url FROM visits EXCEPT ALL SELECT who, url FROM nobody',
	'an EXCEPT from nobody' => 'SELECT who FROM nobody EXCEPT SELECT who FROM visits',
	'an EXCEPT ALL of half of the rows' => 'SELECT skewed FROM visits EXCEPT ALL SELECT skewed FROM visits WHERE id % 3 = 0',
	'an EXCEPT ALL of an INTERSECT' => 'SELECT who, page FROM visits EXCEPT ALL (SELECT who, page FROM visits WHERE id % 3 > 0 INTERSECT SELECT who, page FROM visits)',
	'an EXCEPT of NULLs' => 'SELECT page FROM visits EXCEPT SELECT page FROM visits WHERE page < 30',
	'an INTERSECT in a UNION' => 'SELECT id, who FROM visits INTERSECT SELECT who, id FROM visits UNION ALL SELECT page, who FROM visits',
	'groups over an EXCEPT ALL' => 'SELECT who, count(*) FROM (SELECT who, page FROM visits EXCEPT ALL SELECT who, page FROM visits WHERE id % 3 = 0) s GROUP BY who',
	'set operations again and again' => 'SELECT o, (SELECT sum(who) FROM (SELECT who FROM visits EXCEPT ALL SELECT who FROM visits WHERE id % 3 = 0 OFFSET 0) s
		WHERE who % 3 = o) FROM generate_series(0, 2) o',
	'set operations as the row above says' => 'SELECT o, s.* FROM generate_series(0, 2) o, LATERAL (SELECT who FROM visits WHERE id % 3 = o
		INTERSECT SELECT page FROM visits LIMIT 100) s WHERE who < 0',
	'an EXCEPT ALL of a UNION' => 'SELECT page FROM visits EXCEPT ALL (SELECT page + 3 FROM visits UNION SELECT who FROM visits)',
	'DISTINCT of windows and a column' => 'SELECT DISTINCT who, url, count(*) OVER (PARTITION BY who), max(page) OVER (PARTITION BY who, skewed) FROM visits',
	'groups of windows and a column' => 'SELECT page, n % 5, count(*), min(id) FROM (SELECT id, page, row_number() OVER (PARTITION BY page ORDER BY note) AS n
		FROM visits) s GROUP BY 1, 2',
	'aggregates that sort windows by a column' => 'SELECT page, n % 5, count(DISTINCT who), array_agg(note ORDER BY id) FROM
		(SELECT *, row_number() OVER (PARTITION BY page ORDER BY note) AS n FROM visits) s GROUP BY 1, 2',
	'windows over groups' => 'SELECT who, n, dense_rank() OVER (PARTITION BY who ORDER BY n)
		FROM (SELECT who, page, count(*) AS n FROM visits GROUP BY who, page) s',
	'windows over the largest groups' => 'SELECT who, page, rank() OVER (PARTITION BY who ORDER BY sum(id), page), count(*) OVER (PARTITION BY page)
		FROM visits GROUP BY who, page',
	'windows by other columns' => 'SELECT id, row_number() OVER (PARTITION BY who ORDER BY id), sum(price) OVER (PARTITION BY url, page),
		rank() OVER (PARTITION BY url ORDER BY note), lag(id) OVER (PARTITION BY skewed ORDER BY id) FROM visits',
	'a window of all rows above another' => 'SELECT id, count(*) OVER (), sum(id) OVER (ORDER BY id), rank() OVER (PARTITION BY who ORDER BY id) FROM visits',
	'a join above' => 'SELECT id, s.n FROM visits JOIN (SELECT id, rank() OVER (PARTITION BY who ORDER BY url) AS n FROM visits) s USING (id)',
	'long rows, which are a message each' => q{SELECT id, repeat(note, 600 + id % 90) || id, rank() OVER (PARTITION BY who ORDER BY id), NULL::text
		FROM visits WHERE id % 60 = 0},
	'rows of all kinds' => q{SELECT CASE WHEN id % 3 > 0 THEN note END, id % 7 = 0, (who, page), ARRAY[id, page], max(price) OVER (PARTITION BY who), s
		FROM visits s},
	'rows without columns' => 'SELECT FROM visits GROUP BY who, page',
	'no rows' => 'SELECT id, first_value(id) OVER (PARTITION BY who ORDER BY id) FROM nobody',
	'again and again' => 'SELECT o, (SELECT sum(n) FROM (SELECT rank() OVER (PARTITION BY who ORDER BY page) AS n
		FROM visits WHERE id % 3 = o) s) FROM generate_series(0, 2) o');

my %stock = map { $_ => $node->safe_psql('postgres', 'SET pg_gpusort.enable = off; ' . digest_of($queries{$_})) } keys %queries;

foreach my $settings ('', q{SET pg_gpusort.work_mem = '64kB'}, q{SET pg_gpusort.work_mem = '256kB'}, 'SET parallel_leader_participation = off',
	q{SET parallel_leader_participation = off; SET pg_gpusort.work_mem = '100kB'}, 'SET max_parallel_workers = 0',
	'SET max_parallel_workers = 1; SET pg_gpusort.debug_whole_tuples = on', q{SET pg_gpusort.verify = 'all'; SET pg_gpusort.debug_fault = 'host:late:20'},
	q{SET pg_gpusort.work_mem = '64kB'; SET pg_gpusort.debug_fault = 'host:late:60'})
{
	foreach my $name (sort keys %queries)
	{
		my ($code, $output, $error) = $node->psql('postgres', "$parallel; $settings; " . digest_of($queries{$name}));

		is("$output$error", $stock{$name}, "$name: $settings");
	}
}
leaves_nothing($node, 'rows');

# A sort is counted once, whether or not the leader takes part.
foreach my $settings ('', 'SET parallel_leader_participation = off', q{SET pg_gpusort.work_mem = '64kB'},
	q{SET parallel_leader_participation = off; SET pg_gpusort.work_mem = '64kB'})
{
	my $counts = q{SELECT sum(sorts), sum(rows), sum(parallel_sorts), (SELECT sum(sorts) FROM pg_stat_gpusort_fallbacks WHERE reason LIKE 'rows exceeded%')
		FROM pg_stat_gpusort};
	my @before = split /\|/, $node->safe_psql('postgres', $counts);

	$node->safe_psql('postgres', "$parallel; $settings; CREATE TEMP TABLE kept AS $queries{'a window'}");
	my @after = split /\|/, $node->safe_psql('postgres', $counts);
	my @counted = map { $after[$_] - $before[$_] } 0 .. $#after;

	is("@counted", '1 30000 1 ' . ($settings =~ /work_mem/ ? 1 : 0), "counted: $settings");
}

loops_like_sql($node, $parallel, 'SELECT id, row_number() OVER (PARTITION BY who ORDER BY id) AS n FROM visits', 'r.n * (r.id % 7)');

# Since 18, an input of such an operation has a sort of its own, which would have no sort key here.
is($node->safe_psql('postgres', "$parallel; SET enable_hashagg = off;
	SELECT count(*) FROM (SELECT 1, NULL FROM visits INTERSECT ALL SELECT 1, page FROM visits) s"), '3000', 'a set of constants');

# A plan that was made while sorts were divided remains one.
is( $node->safe_psql('postgres', "$parallel; SET plan_cache_mode = force_generic_plan; PREPARE kept AS SELECT sum(row_number) FROM ($window) s;
	EXECUTE kept; SET pg_gpusort.enable = off; EXECUTE kept; DEALLOCATE kept; SELECT sum(row_number) FROM ($window) s") =~ s/^(\d+)\n\1\n\1$/same/r,
	'same', 'a prepared statement');

# ---- Ends ----

foreach my $settings ('', q{SET pg_gpusort.work_mem = '64kB'})
{
	is($node->safe_psql('postgres', "$parallel; $settings; SELECT count(*) FROM ($_ LIMIT 5) s"), '5', "a LIMIT: $settings")
	  foreach $window, $queries{'distinct rows'};
	is($node->safe_psql('postgres', "$parallel; $settings; SELECT sum((SELECT count(*) FROM ($window LIMIT 3000 * (o % 2) + 1) s)) FROM generate_series(1, 4) o"),
		'6004', "a LIMIT again and again: $settings");
	my ($code, $output, $error) = $node->psql('postgres',
		"$parallel; $settings; SELECT count(*) FROM (SELECT sum(1 / (id - 15000)) OVER (PARTITION BY who ORDER BY id) AS x FROM visits) s WHERE x > 0");

	like($error, qr/division by zero/, "an error above the sort: $settings");
	($code, $output, $error) = $node->psql('postgres',
		"$parallel; $settings; SELECT count(*) FROM (SELECT sum(id) OVER (PARTITION BY who ORDER BY 1 / (id - 15000)) AS x FROM visits) s");
	like($error, qr/division by zero/, "an error below the sort: $settings");
}
leaves_nothing($node, 'ends');

# Memory that ends at any allocation: all rows go to disk, or one process sorts them, or there is an error that says so.
bears_failing_allocations($node, "$parallel; SET pg_gpusort.work_mem = '$_'", digest_of($queries{'a partition of half of the rows'}),
	$stock{'a partition of half of the rows'}, map { 1 + $step * $_ } 0 .. 80 / $step)
	foreach '64MB', '256kB';
bears_failing_allocations($node, "$parallel; SET pg_gpusort.work_mem = '$_'", digest_of($queries{'distinct numbers'}),
	$stock{'distinct numbers'}, map { 1 + 2 * $step * $_ } 0 .. 80 / $step)
	foreach '64MB', '256kB';
leaves_nothing($node, 'memory that ends');

# Processes that are stopped and ended while they add, sort and return rows.
bears_stops($node, $parallel, digest_of($queries{$_}), $stock{$_}, 0.01, map { "SET pg_gpusort.work_mem = '$_'" } '64MB', '64kB')
	foreach 'windows of strings that begin alike', 'groups';

$node->stop;
done_testing();
