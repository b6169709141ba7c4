# The queries of docs/monitoring.md run, and show what happens to sorts.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.min_rows = 0}, q{pg_gpusort.work_mem = '2MB'});
my $text = slurp_file("$FindBin::RealBin/../../docs/monitoring.md");
my @queries = $text =~ /^```sql\n(.*?)^```$/gms;

cmp_ok(scalar(@queries), '>', 10, 'there are queries');
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN IN ROLE pg_monitor; GRANT CREATE ON SCHEMA public TO watcher');
$node->safe_psql('postgres', 'CREATE TABLE items AS SELECT g AS id, hashint4(g) AS k FROM generate_series(1, 100000) g; ANALYZE items');
my $sort = 'SELECT count(*) FROM (SELECT k FROM items ORDER BY k OFFSET 0) s';

# One sort on disk.  The other samples need a time between them.
$node->safe_psql('postgres', "SET pg_gpusort.backend = cpu; $sort");
my %output;
foreach my $query (@queries)
{
	my ($code, $output, $error) = $node->psql('postgres', $query, extra_params => [ '-U', 'watcher' ]);

	is($code, 0, 'runs: ' . (split(/\n/, $query))[0]) or diag($error);
	$output{$query} = $output;
	next if $query !~ /^INSERT/;
	$node->safe_psql('postgres', "SET pg_gpusort.backend = cpu; SET pg_gpusort.work_mem = '64MB'; $sort");
	$node->safe_psql('postgres', 'SELECT pg_stat_gpusort_reset()');
	$node->safe_psql('postgres', "SET pg_gpusort.backend = cpu; $sort");
	is(($node->psql('postgres', $query, extra_params => [ '-U', 'watcher' ]))[0], 0, 'a sample after a reset');
	$node->safe_psql('postgres', "SET pg_gpusort.backend = cpu; $sort");
	is(($node->psql('postgres', $query, extra_params => [ '-U', 'watcher' ]))[0], 0, 'one more');
}

# output(PATTERN): the result of the query that has it.
sub output
{
	my ($pattern) = @_;
	my ($query) = grep { /$pattern/ } @queries;

	return $output{$query};
}

is(output('statistics_of'), 'server', 'counters of the server');
like(output('rows_each'), qr/^external\|1\|0\|100000\|100000\|/m, 'a sort at a glance');
like(output('ORDER BY sorts DESC'), qr/^rows exceeded pg_gpusort.work_mem\|1$/m, 'why it went to disk');
is(output('AS alert'), 'sorts go to disk|rows exceeded pg_gpusort.work_mem: 1', 'the only alert');
like(output('FROM gpusort_devices\(\);'), qr/\|used\|/, 'a GPU');

# Of the samples, the first has none before it, and the third follows a reset.
my @shares = split(/\n/, output(q{'on disk'}));
is(scalar(@shares), 4, 'four samples');
like($shares[2], qr/\|$/, 'no share across a reset');
like($shares[3], qr/\|1\.0/, 'all sorts since then went to disk');
my @rates = grep { /\|external\|/ } split(/\n/, output('AS seconds,\s+CASE WHEN stats_reset = lag\(stats_reset\) OVER w THEN rows'));
is(scalar(@rates), 3, 'rates between samples');
like($rates[1], qr/\|$/, 'no rate across a reset');
cmp_ok((split(/\|/, $rates[2]))[2], '>', 0, 'rows since then');

done_testing();
