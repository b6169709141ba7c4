# Queries with many aggregates, windows or sorts: how much is done to plan them, in steps that
# a build for tests counts, and how much between two looks for interrupts.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

# More than what takes some milliseconds.
my $most_bytes = 128 * 1024;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'}, 'pg_gpusort.min_rows = 0', q{work_mem = '64MB'});
my $parallel = parallel_plans(2, 'enable_gathermerge = off');

$node->safe_psql(
	'postgres', q{
	CREATE UNLOGGED TABLE data AS
	SELECT g AS id, hashint8(g)::int8 AS k, CASE WHEN g % 2 = 0 THEN hashint8(g + 1) END AS n, g % 5 AS few
	FROM generate_series(1, 20000) g;
	CREATE UNLOGGED TABLE long AS SELECT g AS id FROM generate_series(1, 400) g;
	VACUUM ANALYZE data, long});

# Queries that have something many times, with the separator.
my %many = (
	'aggregates' => [ 'SELECT %s FROM data', 'count(DISTINCT k + %d)', ', ' ],
	'aggregates with one order' => [ 'SELECT %s FROM data', 'percentile_disc(%d / 1000.0) WITHIN GROUP (ORDER BY k)', ', ' ],
	'windows' => [ 'SELECT %s FROM data', 'sum(k) OVER (ORDER BY k + %d)', ', ' ],
	'sorts with subplans' => [ '%s', '(SELECT id, ARRAY(SELECT n FROM long WHERE id = d.few) FROM data d ORDER BY k + %d)', ' UNION ALL ' ],
	'parallel sorts' => [ "$parallel; EXPLAIN %s", '(SELECT id FROM data d ORDER BY k + %d)', ' UNION ALL ' ]);

foreach my $kind (sort keys %many)
{
	my ($query, $part, $separator) = @{ $many{$kind} };
	my $session = Session($node, 'SET max_parallel_workers_per_gather = 0');
	my @totals;

	foreach my $number (30, 120)
	{
		my $statement = sprintf($query =~ /EXPLAIN/ ? $query : "EXPLAIN $query", join($separator, map { sprintf($part, $_) } 1 .. $number));
		my ($bytes, $total);

		$session->run("SET pg_gpusort.debug_work = ''");
		like($session->run($statement), $kind eq 'aggregates' ? qr/Aggregate/ : qr/GpuSort/, "$number $kind: planned");
		($bytes, $total) = $session->run('SHOW pg_gpusort.debug_work') =~ /^(\d+) of ([1-9]\d*)/;
		cmp_ok($bytes, '<=', $most_bytes, "$number $kind: $bytes bytes at most between two looks for interrupts");
		push @totals, $total;
	}
	cmp_ok($totals[1], '<=', 6 * $totals[0], "$kind: planning four times as many takes about four times as long (@totals)");
	$session->quit;
}

# Joins of keys that both inputs have many times cost more by a merge than by a hash table, which
# is known before a path is made.  Each path counts as 1024 bytes; 140 were made for these joins.
my $session = Session($node, 'SET max_parallel_workers_per_gather = 0; SET geqo = off');
my $joins = join(' AND ', map { "d$_.one = d" . ($_ - 1) . '.two' } 2 .. 9);
my $total;

$node->safe_psql(
	'postgres', q{
	CREATE UNLOGGED TABLE link AS SELECT g % 200 AS one, g * 7 % 300 AS two FROM generate_series(1, 20000) g;
	VACUUM ANALYZE link});
$session->run("SET pg_gpusort.debug_work = ''");
$session->run('EXPLAIN SELECT count(*) FROM ' . join(', ', map { "link d$_" } 1 .. 9) . " WHERE $joins");
($total) = $session->run('SHOW pg_gpusort.debug_work') =~ /^\d+ of ([1-9]\d*)/;
cmp_ok($total, '<=', 64 * 1024, "9 joins of frequent keys: few merges are considered ($total)");
$session->quit;

$node->stop;
done_testing();
