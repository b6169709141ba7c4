# What pg_stat_progress_create_index shows in each phase of an index build.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_gpu_node('main', q{maintenance_work_mem = '64MB'}, 'max_worker_processes = 16', 'max_parallel_workers = 8',
	'max_parallel_maintenance_workers = 8', q{pg_gpusort.pool_size = '4MB'});
my $nrows = 60000;
my $third = $nrows / 3;

# Functions and comparisons wait at two thirds of the rows, one function from there on.
add_stops($node, 2 * $third);
$node->safe_psql(
	'postgres', qq{
	CREATE FUNCTION stopping_late(k int8) RETURNS int8 IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
		\$\$ BEGIN IF k >= 2 * $third THEN PERFORM public.stop(); END IF; RETURN k; END \$\$;
	CREATE TABLE items AS SELECT g AS id, 7 AS same, repeat('x', 100) AS filler FROM generate_series(1, $nrows) g;
	ANALYZE items;
});

# The row of the view for a session.
sub progress
{
	my ($session) = @_;
	my @values = split(/\|/, value_of($node, q{SELECT phase, blocks_done, blocks_total, tuples_done, tuples_total
		FROM pg_stat_progress_create_index WHERE pid = } . $session->pid));

	return {
		phase => $values[0] =~ s/^building index: //r,
		blocks_done => $values[1], blocks_total => $values[2],
		tuples_done => $values[3], tuples_total => $values[4] };
}

my $blocks = $node->safe_psql('postgres', q{SELECT pg_relation_size('items') / current_setting('block_size')::int8});
my $before_stop = int(0.6 * $blocks);
my $kept = "SET pg_gpusort.backend = cpu";
my %ways = (
	'CPU' => [ $kept, 0 ],
	'CPU, on disk' => [ "$kept; SET maintenance_work_mem = '1MB'", 0 ],
	'CPU, workers' => [ $kept, 2 ],
	'CPU, workers, on disk' => [ "$kept; SET maintenance_work_mem = '1MB'", 2 ],
	'GPU' => [ 'SET pg_gpusort.debug_require = gpu', 0 ],
	'GPU, workers' => [ 'SET pg_gpusort.debug_require = gpu', 2 ]);

foreach my $name (sort keys %ways)
{
	my ($settings, $workers) = @{ $ways{$name} };
	my $session = Session($node, 'SET pg_gpusort.debug_require = node', $settings, "ALTER TABLE items SET (parallel_workers = $workers)");
	my $stops;
	my $shown;

	# All processes wait after two thirds of the table, so at least so many blocks have been read by them together.
	$stops = hold_stops($node);
	$session->begin('CREATE INDEX built ON items (stopping_late(id))');
	wait_for_stop($node, $session, 1 + $workers);
	$shown = progress($session);
	is($shown->{phase}, 'scanning table', "$name: the scan");
	is($shown->{blocks_total}, $blocks, "$name: the scan: blocks of the table");
	cmp_ok($shown->{blocks_done}, '>=', $before_stop, "$name: the scan: blocks that all processes have read");
	cmp_ok($shown->{blocks_done}, '<=', $blocks, "$name: the scan: no more than there are");
	is("$shown->{tuples_done} of $shown->{tuples_total}", '0 of 0', "$name: the scan: no rows yet");
	$stops->quit;
	is($session->finish, '', "$name: an index");
	$session->run('DROP INDEX built');

	# Ties are compared while rows are sorted in memory.
	if ($name eq 'CPU')
	{
		$stops = hold_stops($node);
		$session->run(q{SET stop.phase = 'sorting'});
		$session->begin('CREATE INDEX built ON items (same, (id::int8) stopping)');
		wait_for_stop($node, $session);
		$shown = progress($session);
		is($shown->{phase}, 'sorting live tuples', "$name: the sort");
		is("$shown->{tuples_done} of $shown->{tuples_total}", "0 of $nrows", "$name: the sort: rows of the table");
		is("$shown->{blocks_done} of $shown->{blocks_total}", '0 of 0', "$name: the sort: no blocks any more");
		$stops->quit;
		is($session->finish, '', "$name: another index");
		$session->run('DROP INDEX built');
	}

	# Each row of a unique index is compared with the one before it while the index is written.  Without a GPU, workers
	# compare ties at that time too, and would wait whatever the leader does.
	if ($workers == 0 || $name =~ /GPU/)
	{
		$stops = hold_stops($node);
		$session->run(q{SET stop.phase = 'loading'});
		$session->begin('CREATE UNIQUE INDEX built ON items ((id / 10), (id::int8) stopping)');
		wait_for_stop($node, $session);
		$shown = progress($session);
		is($shown->{phase}, 'loading tuples in tree', "$name: the load");
		is($shown->{tuples_total}, $nrows, "$name: the load: rows of the table");
		# The ties of a chunk of a GPU are compared before its first row is written.
		cmp_ok($shown->{tuples_done}, '>', $name =~ /GPU/ ? 0 : $third, "$name: the load: rows that are written");
		cmp_ok($shown->{tuples_done}, '<', $nrows, "$name: the load: not all of them");
		is("$shown->{blocks_done} of $shown->{blocks_total}", '0 of 0', "$name: the load: no blocks any more");
		$stops->quit;
		is($session->finish, '', "$name: a unique index");
		$session->run('DROP INDEX built');
	}
	$session->quit;
}
is(value_of($node, 'SELECT count(*) FROM pg_stat_progress_create_index'), '0', 'nothing is left in the view');

$node->stop;
done_testing();
