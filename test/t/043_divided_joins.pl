# Merge joins of two sorts that are divided alike: each process below a Gather joins the rows of
# the ranges that it takes.  Which joins have such plans; that their rows are those of stock
# PostgreSQL, in memory and on disk, whoever comes late, fails or stops reading.
#
#	GPUSORT_ALLOCATION_STEP	of how many allocations one fails (default 8)
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
my $parallel = parallel_plans(3, 'pg_gpusort.debug_divide = on', q{statement_timeout = '60s'}, 'enable_nestloop = off');
my $step = $ENV{GPUSORT_ALLOCATION_STEP} // 8;

# Orders of visitors, on both sides several with the same keys, some without a partner, and NULLs.
$node->safe_psql('postgres', q{CREATE TABLE visits AS
	SELECT g AS id, hashint4(g) % 3000 AS who, CASE WHEN g % 10 = 0 THEN NULL ELSE hashint4(g * 3) % 40 END AS page,
		   'http://www.example.org/a/long/prefix/' || hashint4(g) % 4000 AS url,
		   (hashint4(g * 7) % 5000) / 10.0 AS price, md5((hashint4(g) % 5000)::text) AS note
	FROM generate_series(1, 20000) g;
	CREATE TABLE orders AS
	SELECT g AS id, hashint4(g + 50000) % 4000 AS who, CASE WHEN g % 7 = 0 THEN NULL ELSE hashint4(g * 5) % 50 END AS page,
		   'http://www.example.org/a/long/prefix/' || hashint4(g + 50000) % 5000 AS url,
		   ((hashint4(g * 11) % 6000) / 10.0)::numeric(10, 3) AS price, md5((hashint4(g + 50000) % 6000)::text) AS note
	FROM generate_series(1, 12000) g;
	CREATE TABLE buyers AS SELECT who, count(*)::bigint AS n FROM orders GROUP BY who;
	ALTER TABLE buyers ADD PRIMARY KEY (who);
	CREATE TABLE nobody (LIKE visits);
	CREATE FUNCTION restricted(integer) RETURNS integer LANGUAGE plpgsql PARALLEL RESTRICTED AS 'BEGIN RETURN $1; END';
	ANALYZE});

# ---- Plans ----

sub plan_of
{
	my ($query, @settings) = @_;

	return $node->safe_psql('postgres', join('; ', $parallel, @settings, "EXPLAIN (COSTS OFF) $query"));
}

# divided NAME, QUERY, EXPECTED: tests by which keys the sorts of a query are divided, and with which others.
sub divided
{
	my ($name, $query, $expected, @settings) = @_;
	my $plan = plan_of($query, @settings);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(join('; ', $plan =~ /Divided (?:By|With): (.*)/g), $expected, "plan: $name") or note($plan);
}

my $join = 'SELECT visits.id, orders.id FROM visits JOIN orders USING (who)';

like(
	plan_of($join),
	qr/^Custom Scan \(GpuSortUnpack\)\n +->  Gather\n +Workers Planned: 3\n +->  Custom Scan \(GpuSortPack\)\n +->  Merge Join\n.*\n +->  Parallel Custom Scan \(GpuSort\)\n +Sort Key: visits.who
 +Divided By: visits.who\n +Divided With: orders.who\n +->  Parallel Seq Scan on visits\n +->  Materialize
 +->  Parallel Custom Scan \(GpuSort\)\n +Sort Key: orders.who\n +Divided By: orders.who\n +Divided With: visits.who/,
	'plan: a join');
unlike(plan_of('SELECT * FROM visits JOIN buyers USING (who)'), qr/Materialize/, 'plan: unique rows are not read again');
my $both = 'visits.who; orders.who; orders.who; visits.who';
divided('groups by the key of the join', 'SELECT who, count(*) FROM visits JOIN orders USING (who) GROUP BY who', $both);
divided('groups by more', 'SELECT who, visits.page, count(*) FROM visits JOIN orders USING (who) GROUP BY who, visits.page', $both,
	'SET enable_hashagg = off');
divided('distinct keys', 'SELECT DISTINCT who FROM visits JOIN orders USING (who)', $both);
divided('a window', 'SELECT count(*) OVER (PARTITION BY who) FROM visits JOIN orders USING (who)', $both);
divided('a window over groups', 'SELECT who, rank() OVER (PARTITION BY who ORDER BY count(*)) FROM visits JOIN orders USING (who) GROUP BY who',
	$both);
divided('keys of a left join', 'SELECT visits.who, count(orders.id) FROM visits LEFT JOIN orders USING (who) GROUP BY visits.who', $both);
divided('types that differ', 'SELECT count(*) FROM visits JOIN buyers ON visits.who = buyers.n', '');
divided('a condition that workers must not check',
	'SELECT count(*) FROM visits JOIN orders ON visits.who = orders.who AND restricted(visits.id) < orders.id', '');
divided('with debug_stock_ties', $join, '', 'SET pg_gpusort.debug_stock_ties = on');
divided('off', $join, '', 'SET pg_gpusort.debug_divide = off');
divided('few rows', "$join", '', 'RESET pg_gpusort.debug_divide', 'RESET parallel_setup_cost', 'RESET parallel_tuple_cost',
	'SET pg_gpusort.min_rows = 100000');

# A merge join that is preferred to a hash join, below a partial aggregate.
my ($startup, $total, $outer, $inner) =
	$node->safe_psql('postgres', "$parallel; EXPLAIN SELECT visits.page, count(*) FROM visits JOIN orders USING (who) GROUP BY visits.page") =~
	/Merge Join  \(cost=([\d.]+)\.\.([\d.]+).*?\(GpuSort\)  \(cost=[\d.]+\.\.([\d.]+).*?Materialize  \(cost=[\d.]+\.\.([\d.]+)/s;
cmp_ok($total, '>', $outer + $inner, 'a merge join costs more than its inputs');
cmp_ok($total, '>', $startup, 'and takes some time to return its rows');

# A hash table that processes share has the rows of all of them, and is slow if it is large, as these are by the catalog.
$node->safe_psql('postgres', q{CREATE TABLE ones AS SELECT g AS id, hashint4(g) % 1000 AS v, repeat('x', 30) AS note FROM generate_series(1, 20000) g;
	CREATE TABLE twos AS TABLE ones;
	ANALYZE ones, twos;
	UPDATE pg_class SET reltuples = 900000, relpages = pg_relation_size(oid) / current_setting('block_size')::int WHERE relname IN ('ones', 'twos')});
my @large = ('RESET pg_gpusort.debug_divide', 'RESET parallel_setup_cost', 'RESET parallel_tuple_cost', 'RESET enable_nestloop',
	'SET pg_gpusort.min_rows = -1', 'SET max_parallel_workers_per_gather = 2');
divided('rows of a join in an order', 'SELECT ones.*, twos.* FROM ones JOIN twos USING (id) ORDER BY ones.v, twos.note',
	'ones.id; twos.id; twos.id; ones.id', @large);
divided('groups of the key of a join on disk', 'SELECT id, count(*), max(twos.note) FROM ones JOIN twos USING (id) GROUP BY id',
	'ones.id; twos.id; twos.id; ones.id', @large, q{SET work_mem = '4MB'});

# ---- Rows ----

my %queries;

foreach my $kind ('', 'LEFT', 'RIGHT', 'FULL')
{
	$queries{"$kind join"} = "SELECT v.id AS v, o.id AS o FROM visits v $kind JOIN orders o ON v.who = o.who";
	$queries{"$kind join by NULLs"} = "SELECT v.id AS v, o.id AS o FROM visits v $kind JOIN orders o ON v.page = o.page AND v.who = o.who";
	$queries{"$kind join without outer rows"} = "SELECT v.id AS v, o.id AS o FROM nobody v $kind JOIN orders o ON v.who = o.who";
	$queries{"$kind join without inner rows"} = "SELECT v.id AS v, o.id AS o FROM visits v $kind JOIN nobody o ON v.who = o.who";
	$queries{"$kind join of few with many"} =
		"SELECT v.id AS v, o.id AS o FROM (SELECT * FROM visits WHERE who > 2990) v $kind JOIN orders o ON v.who = o.who";
}
foreach my $not ('', 'NOT')
{
	$queries{"$not in"} = "SELECT id, note FROM visits v WHERE $not EXISTS (SELECT FROM orders o WHERE o.url = v.url)";
	$queries{"$not in, by more"} =
		"SELECT id FROM visits v WHERE $not EXISTS (SELECT FROM orders o WHERE o.who = v.who AND o.page = v.page AND o.id <> v.id)";
}
%queries = (
	%queries,
	'strings that begin alike' => 'SELECT v.id AS v, o.id AS o FROM visits v JOIN orders o USING (url)',
	'numbers of different scale' => 'SELECT v.id AS v, o.id AS o, v.price, o.price AS p FROM visits v JOIN orders o USING (price)
		WHERE v.id % 5 = 0',
	'three keys' => 'SELECT v.id AS v, o.id AS o FROM visits v LEFT JOIN orders o ON v.note = o.note AND v.who = o.who AND v.page = o.page',
	'a language' => 'SELECT v.id AS v, o.id AS o FROM visits v FULL JOIN orders o ON v.note COLLATE "und-x-icu" = o.note COLLATE "und-x-icu"',
	'unique rows' => 'SELECT v.id, n FROM visits v LEFT JOIN buyers USING (who)',
	'groups' => 'SELECT who, count(*), sum(v.price * o.price), string_agg(o.note, \',\' ORDER BY o.id, v.id)
		FROM visits v JOIN orders o USING (who) GROUP BY who',
	'groups of a left join' => 'SELECT v.url, count(o.id), min(o.note) FROM visits v LEFT JOIN orders o USING (url) GROUP BY v.url HAVING count(*) > 3',
	'groups of a full join' => 'SELECT v.who, o.who AS w, count(*) FROM visits v FULL JOIN orders o ON v.who = o.who GROUP BY v.who, o.who',
	'a window' => 'SELECT v.id AS v, o.id AS o, row_number() OVER (PARTITION BY who ORDER BY v.id, o.id) FROM visits v JOIN orders o USING (who)',
	'a window over groups' => 'SELECT who, count(*), rank() OVER (PARTITION BY who ORDER BY count(*)) FROM visits v JOIN orders o USING (who) GROUP BY who',
	'distinct keys' => 'SELECT DISTINCT url FROM visits JOIN orders USING (url)',
	'all of one key' => 'SELECT count(*), sum(v.id) FROM visits v JOIN orders o ON v.who / 5000 = o.who / 5000 WHERE v.id < 200 AND o.id < 300',
	'a join of a join' => 'SELECT v.id AS v, o.id AS o, b.n FROM visits v JOIN orders o USING (url) LEFT JOIN buyers b ON b.who = o.who',
	'again and again' => 'SELECT o, (SELECT count(*) FROM (SELECT v.id FROM visits v LEFT JOIN orders USING (who) OFFSET 0) s WHERE s.id % 3 = o)
		FROM generate_series(0, 2) o',
	'again, with unique rows' => 'SELECT o, (SELECT count(*) FROM (SELECT v.id FROM visits v JOIN buyers USING (who) OFFSET 0) s WHERE s.id % 3 = o)
		FROM generate_series(0, 2) o');

my %stock = map { $_ => $node->safe_psql('postgres', 'SET pg_gpusort.enable = off; ' . digest_of($queries{$_})) } keys %queries;

foreach my $name (sort keys %queries)
{
	like(plan_of($queries{$name}), qr/Divided With/, "plan: $name");
}
foreach my $settings ('', q{SET pg_gpusort.work_mem = '64kB'}, q{SET pg_gpusort.work_mem = '300kB'}, 'SET parallel_leader_participation = off',
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

# Both sorts are counted once.
{
	my $counts = 'SELECT sum(sorts), sum(rows), sum(parallel_sorts) FROM pg_stat_gpusort';
	my @before = split /\|/, $node->safe_psql('postgres', $counts);

	$node->safe_psql('postgres', "$parallel; CREATE TEMP TABLE kept AS SELECT visits.id FROM visits LEFT JOIN orders USING (who)");
	my @after = split /\|/, $node->safe_psql('postgres', $counts);
	my @counted = map { $after[$_] - $before[$_] } 0 .. $#after;

	is("@counted", '2 32000 2', 'counted');
}

loops_like_sql($node, $parallel, 'SELECT v.id, o.id AS o FROM visits v JOIN orders o USING (who)', 'r.id * (r.o % 7)');

# A plan that was made while sorts were divided remains one.
is( $node->safe_psql('postgres', "$parallel; SET plan_cache_mode = force_generic_plan; PREPARE kept AS SELECT count(*) FROM ($join) s(v, o);
	EXECUTE kept; SET pg_gpusort.enable = off; EXECUTE kept; DEALLOCATE kept; SELECT count(*) FROM ($join) s(v, o)") =~ s/^(\d+)\n\1\n\1$/same/r,
	'same', 'a prepared statement');

# ---- Ends ----

foreach my $settings ('', q{SET pg_gpusort.work_mem = '64kB'})
{
	is($node->safe_psql('postgres', "$parallel; $settings; SELECT count(*) FROM ($join LIMIT 5) s(v, o)"), '5', "a LIMIT: $settings");
	foreach my $where ('1 / (visits.id + orders.id - 20000) = 0', '1 / (visits.id - 15000) = 0', '1 / (orders.id - 7000) = 0')
	{
		my ($code, $output, $error) = $node->psql('postgres', "$parallel; $settings; SELECT count(*) FROM ($join WHERE $where) s(v, o)");

		like($error, qr/division by zero/, "an error, $where: $settings");
	}
}
leaves_nothing($node, 'ends');

# Memory that ends at any allocation: all rows go to disk, or one process sorts them, or there is an error that says so.
bears_failing_allocations($node, "$parallel; SET pg_gpusort.work_mem = '$_'", digest_of($queries{'FULL join by NULLs'}),
	$stock{'FULL join by NULLs'}, map { 1 + $step * $_ } 0 .. 160 / $step)
	foreach '64MB', '256kB';
leaves_nothing($node, 'memory that ends');

# Processes that are stopped and ended while they add, sort and return rows.
bears_stops($node, $parallel, digest_of($queries{'strings that begin alike'}), $stock{'strings that begin alike'}, 0.01,
	map { "SET pg_gpusort.work_mem = '$_'" } '64MB', '64kB');

$node->stop;
done_testing();
