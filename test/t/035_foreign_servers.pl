# Sorts of rows that come from several foreign servers: they are asked at the same time,
# instead of one after the other for rows that they have sorted.  Aggregates that a server
# computes are left to it.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'}, 'pg_gpusort.min_rows = 1000');
my ($host, $port) = ($node->host, $node->port);

make_halves($node);
$node->safe_psql('postgres', join(";\n", 'CREATE EXTENSION postgres_fdw',
	map({ (qq{CREATE SERVER $_ FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', async_capable 'true')},
			"CREATE USER MAPPING FOR CURRENT_USER SERVER $_") } qw(one two)),
	'CREATE TABLE far (LIKE halves) PARTITION BY RANGE (id)',
	'CREATE TABLE near (LIKE halves) PARTITION BY RANGE (id)',
	map({
		my ($name, $server, $from, $to) = @$_;

		("CREATE TABLE rows_$name AS SELECT * FROM halves WHERE id >= $from AND id < $to",
			"CREATE FOREIGN TABLE far_$name PARTITION OF far FOR VALUES FROM ($from) TO ($to) SERVER $server OPTIONS (table_name 'rows_$name')",
			"CREATE FOREIGN TABLE near_$name PARTITION OF near FOR VALUES FROM ($from) TO ($to) SERVER one OPTIONS (table_name 'rows_$name')")
	} [ 'a', 'one', 1, 5000 ], [ 'b', 'two', 5000, 12000 ], [ 'c', 'one', 12000, 20001 ]),
	'ANALYZE far', 'ANALYZE near'));

my $session = Session($node, 'SET enable_partitionwise_aggregate = on');
my $sort_here = qr/Custom Scan \(GpuSort\)\n.*->  Append\n.*Async Foreign Scan.*Async Foreign Scan/s;

# plan_of QUERY, SETTINGS: returns its plan with pg_gpusort.
sub plan_of
{
	my ($query, $settings) = @_;

	return $session->run(join('; ', 'SET pg_gpusort.debug_require = off', 'SET pg_gpusort.enable = on',
			$settings // (), "EXPLAIN (COSTS off) $query", 'RESET enable_async_append'));
}

foreach my $order ('k, id', 'k DESC, id', 't, n DESC, id', 'id % 100, f', 'n NULLS FIRST, id DESC')
{
	my $query = "SELECT * FROM far ORDER BY $order";
	my $expected = $session->run("$STOCK; " . digest("SELECT * FROM halves ORDER BY $order"));

	like(plan_of($query), $sort_here, "by $order: sorted here");
	is($session->run("$OURS; " . digest($query)), $expected, "by $order: rows");
	is($session->run("$STOCK; " . digest($query)), $expected, "by $order: stock rows");
}

# Where nothing is gained, the servers sort.
my $query = 'SELECT * FROM far ORDER BY k, id';
like(plan_of("$query LIMIT 10"), qr/Merge Append/, 'the first rows');
like(plan_of('SELECT * FROM near ORDER BY k, id'), qr/Merge Append/, 'tables of one server');
like(plan_of($query, 'SET enable_async_append = off'), qr/Merge Append/, 'no asynchronous scans');
like(plan_of("$query LIMIT (SELECT 10)"), qr/Merge Append/, 'a bound that is not known yet');
unlike(plan_of('SELECT * FROM far WHERE id < 5000 ORDER BY k, id'), qr/GpuSort/, 'a single table');
$session->run("ALTER SERVER two OPTIONS (SET async_capable 'false')");
like(plan_of($query), qr/Merge Append/, 'a server that is not asked asynchronously');
$session->run("ALTER SERVER two OPTIONS (SET async_capable 'true')");

# A cursor reads the first rows soon, and a sort that is on the way to another node is as before.
is($session->run("$OURS; BEGIN; DECLARE c CURSOR FOR SELECT id FROM far ORDER BY k, id; FETCH 2 FROM c; COMMIT"),
	$session->run("$STOCK; SELECT id FROM halves ORDER BY k, id LIMIT 2"), 'a cursor');
is($session->run("$OURS; UPDATE far SET t = t || '.' WHERE id % 7 = 0; " . digest($query)),
	$session->run("$STOCK; UPDATE halves SET t = t || '.' WHERE id % 7 = 0; " . digest('SELECT * FROM halves ORDER BY k, id')),
	'rows that were changed');

# Aggregates that sort are computed where they would be without us, unless that is here.
my $partitions = 'SET enable_partitionwise_aggregate = on';
foreach my $case (
	[ 'count(DISTINCT t) FROM far_b', qr/Foreign Scan\n.*Relations: Aggregate on/s ],
	[ 'count(DISTINCT k), array_agg(id ORDER BY t, id) FROM far_b GROUP BY k % 2', qr/Foreign Scan\n.*Relations: Aggregate on/s ],
	[ 'count(DISTINCT t) FROM near GROUP BY id', qr/Append.*Relations: Aggregate on/s ])
{
	my ($query, $plan) = @$case;

	$query = "SELECT $query";
	like($session->run("$STOCK; $partitions; EXPLAIN (VERBOSE, COSTS off) $query"), $plan, "$query: stock plan");
	like($session->run("$OURS; $partitions; EXPLAIN (VERBOSE, COSTS off) $query"), $plan, "$query: our plan");
}
like(plan_of('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY t) FROM far_b WHERE random() >= 0'), qr/GpuSort/, 'an aggregate that is computed here');

# Columns of what a server computes are those of no table.
$query = 'SELECT k, rank() OVER (ORDER BY count(*), k) AS rank FROM far_b GROUP BY k';
like(plan_of($query, 'SET pg_gpusort.min_rows = 0'), qr/GpuSort.*Foreign Scan\n.*Relations: Aggregate on/s, 'a window of groups');
is($session->run("$OURS; " . digest($query)), $session->run("$STOCK; " . digest($query)), 'a window of groups: rows');
$session->quit;

done_testing();
