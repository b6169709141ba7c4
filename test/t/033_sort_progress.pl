# What pg_stat_progress_gpusort shows in each phase of a sort, and to whom.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

# The server inherits it.  GPUs are shown by their numbers in the machine.
$ENV{GPUSORT_EMU_DEVICES} = 4;

my $node = start_gpu_node('main', q{pg_gpusort.devices = '1,3'}, q{pg_gpusort.pool_size = '16MB'}, 'max_worker_processes = 16', 'max_parallel_workers = 8');
my $nrows = 60000;
my $stop_at = 17000;

# Functions and comparisons that meet this value wait, if the sort of their process is in the
# phase of the setting.
add_stops($node, $stop_at);
$node->safe_psql(
	'postgres', qq{
	CREATE OR REPLACE FUNCTION stop() RETURNS void PARALLEL SAFE LANGUAGE plpgsql AS \$\$
	BEGIN
		IF EXISTS (SELECT FROM public.pg_stat_progress_gpusort
				   WHERE pid = pg_backend_pid() AND phase = current_setting('stop.phase'))
		THEN
			PERFORM pg_advisory_lock_shared(1000);
			PERFORM pg_advisory_unlock_shared(1000);
		END IF;
	END \$\$;
	CREATE TABLE items AS SELECT g::int8 AS id, 7 AS same, repeat('x', 100) AS filler FROM generate_series(1, $nrows) g;
	ANALYZE items;
	CREATE ROLE other LOGIN;
	CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
});

# The row of the view for a process.
sub progress
{
	my ($pid) = @_;
	my @names = qw(phase rows_expected rows_read rows_sorted rows_returned memory_bytes device_bytes file_bytes
	  devices workers_planned leader_pid datname node);
	my @values = split(/\|/, value_of($node, 'SELECT ' . join(', ', @names) .
		" FROM pg_stat_progress_gpusort WHERE pid = $pid"), -1);
	my %progress;

	@progress{@names} = @values;
	return \%progress;
}

# check_phase NAME, PHASE, QUERY, SETTINGS, TEST: looks while the query waits in that phase.
sub check_phase
{
	my ($name, $phase, $query, $settings, $test) = @_;
	my $session = Session($node, 'SET pg_gpusort.debug_require = node', "SET stop.phase = '$phase'", @$settings);
	my $stops = hold_stops($node);
	my $shown;

	$session->begin($query);
	wait_for_stop($node, $session);
	$shown = progress($session->pid);
	is($shown->{phase}, $phase, "$name: the phase");
	is($shown->{rows_expected}, $nrows, "$name: rows expected");
	is("$shown->{datname}, $shown->{workers_planned} workers, $shown->{leader_pid}", 'postgres, 0 workers, ', "$name: whose it is");
	$test->($name, $shown);
	$stops->quit;
	$session->finish;
	is(value_of($node, 'SELECT count(*) FROM pg_stat_progress_gpusort'), 0, "$name: nothing is left");
	$session->quit;
}

my @cpu = ('SET pg_gpusort.backend = cpu', q{SET pg_gpusort.work_mem = '64MB'});
my @disk = ('SET pg_gpusort.backend = cpu', q{SET pg_gpusort.work_mem = '1536kB'});
my $by_function = 'SELECT count(*) FROM (SELECT stopping(id) FROM items ORDER BY stopping(id) OFFSET 0) s';
my $by_operator = 'SELECT count(*) FROM (SELECT same, id, filler FROM items ORDER BY same, id USING <# OFFSET 0) s';

check_phase('input', 'reading rows', $by_function, \@cpu, sub {
	my ($name, $shown) = @_;

	is($shown->{rows_read}, $stop_at - 1, "$name: rows read");
	is("$shown->{rows_sorted}, $shown->{rows_returned}", '0, 0', "$name: nothing is sorted or returned");
	cmp_ok($shown->{memory_bytes}, '>', 100000, "$name: memory");
	is("$shown->{device_bytes}, $shown->{file_bytes}, $shown->{devices}", '0, 0, ', "$name: nothing else");
});
check_phase('input on a GPU', 'reading rows', $by_function, ['SET pg_gpusort.debug_require = gpu'], sub {
	my ($name, $shown) = @_;

	is($shown->{rows_read}, $stop_at - 1, "$name: rows read");
	is("$shown->{rows_sorted}, $shown->{file_bytes}", '0, 0', "$name: nothing is sorted or written");
	like($shown->{devices}, qr/^\{[13]\}$/, "$name: the GPU");
});
check_phase('ties', 'sorting', $by_operator, \@cpu, sub {
	my ($name, $shown) = @_;

	is($shown->{rows_read}, $nrows, "$name: rows read");
	is("$shown->{rows_sorted}, $shown->{rows_returned}", '0, 0', "$name: nothing is sorted or returned");
	cmp_ok($shown->{memory_bytes}, '>', $nrows * 16, "$name: memory");
});
check_phase('run', 'writing a run', $by_operator, \@disk, sub {
	my ($name, $shown) = @_;

	cmp_ok($shown->{rows_read}, '<=', $nrows, "$name: not all rows are read");
});
# If rows may be read backward, runs are merged before the first row is returned.  The first
# comparisons are of the first rows of all runs.
check_phase('merge', 'merging runs', "BEGIN; DECLARE c SCROLL CURSOR FOR
	SELECT * FROM items ORDER BY same, id + @{[$stop_at - 1]} USING <#; FETCH 1 FROM c; COMMIT", \@disk, sub {
	my ($name, $shown) = @_;

	is("$shown->{rows_read}, $shown->{rows_sorted}, $shown->{rows_returned}", "$nrows, 0, 0", "$name: all rows are read, none returned");
	cmp_ok($shown->{file_bytes}, '>', $nrows * 100, "$name: files");
	is("$shown->{device_bytes}, $shown->{devices}", '0, ', "$name: no GPU");
});
# Few rows are wanted, which the planner does not know.
my $ten = 'LIMIT (SELECT 10)';
check_phase('few rows', 'reading rows', "SELECT count(*) FROM (SELECT stopping(id) FROM items ORDER BY stopping(id) DESC $ten) s", [], sub {
	my ($name, $shown) = @_;

	is($shown->{rows_read}, $stop_at - 1, "$name: rows read");
	is("$shown->{rows_sorted}, $shown->{rows_returned}", '0, 0', "$name: nothing is sorted or returned");
	cmp_ok($shown->{memory_bytes}, '>', 0, "$name: memory");
	cmp_ok($shown->{memory_bytes}, '<', $stop_at * 8, "$name: not of all rows");
	is("$shown->{device_bytes}, $shown->{file_bytes}, $shown->{devices}", '0, 0, ', "$name: nothing else");
});
# Index builds have no node.
foreach my $index ('((stopping(id)))', 'USING gin ((ARRAY[stopping(id)]))')
{
	check_phase("index $index", 'reading rows', "CREATE INDEX built ON items $index; DROP INDEX built",
		['SET max_parallel_maintenance_workers = 0'], sub {
		my ($name, $shown) = @_;

		is("$shown->{rows_read}, $shown->{rows_sorted}, $shown->{rows_returned}, $shown->{node}", ($stop_at - 1) . ', 0, 0, ', "$name: rows");
		cmp_ok($shown->{memory_bytes} + $shown->{device_bytes}, '>', 100000, "$name: memory");
	});
}
{
	my $session = Session($node, 'SET max_parallel_maintenance_workers = 2', 'SET min_parallel_table_scan_size = 0',
		q{SET maintenance_work_mem = '96MB'}, q{SET stop.phase = 'reading rows'});
	my $stops;

	# Only functions in C are called by workers.
	$node->safe_psql('postgres', q{
		CREATE FUNCTION halting_array_body(id int8) RETURNS int8[] IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
			$$ BEGIN PERFORM public.halting(0); RETURN ARRAY[id]; END $$;
		CREATE FUNCTION halting_array(id int8) RETURNS int8[] IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'pg_gpusort', 'gpusort_test_call'});
	$stops = hold_stops($node);
	$session->begin('CREATE INDEX built ON items USING gin (halting_array(id)); DROP INDEX built');
	wait_for_stop($node, $session, 3);
	is(value_of($node, 'SELECT count(*) FROM pg_stat_progress_gpusort WHERE leader_pid = ' . $session->pid), 2, 'GIN index: workers');
	is(progress($session->pid)->{workers_planned}, 2, 'GIN index: the leader says so');
	$stops->quit;
	is($session->finish, '', 'GIN index: built');
	is(value_of($node, 'SELECT count(*) FROM pg_stat_progress_gpusort'), 0, 'GIN index: nothing is left');
	$session->quit;
}
# A cursor waits by itself.
foreach my $way ([ 'cpu', 'memory_bytes', @cpu ], [ 'gpu', 'device_bytes' ], [ 'disk', 'file_bytes', @disk ])
{
	my ($name, $bytes, @settings) = @$way;
	my $session = Session($node, 'SET pg_gpusort.debug_require = node', @settings);
	my $shown;

	$session->run('BEGIN; DECLARE c CURSOR FOR SELECT * FROM items ORDER BY id DESC; FETCH 10 FROM c');
	$shown = progress($session->pid);
	is($shown->{phase}, 'returning rows', "cursor, $name: the phase");
	is("$shown->{rows_read}, $shown->{rows_sorted}, $shown->{rows_returned}, $shown->{node}", "$nrows, $nrows, 10, 0",
		"cursor, $name: rows, and the node");
	cmp_ok($shown->{$bytes}, '>', $nrows * 8, "cursor, $name: $bytes");

	# Who may see what.
	my $columns = 'pid IS NOT NULL, datname, phase IS NULL, rows_read IS NULL, workers_planned IS NULL';
	my $query = "SELECT $columns FROM pg_stat_progress_gpusort";
	is($node->safe_psql('postgres', $query, extra_params => [ '-U', 'other' ]), 't|postgres|t|t|t', "cursor, $name: another role");
	is($node->safe_psql('postgres', $query, extra_params => [ '-U', 'watcher' ]), 't|postgres|f|f|f', "cursor, $name: pg_monitor");

	# More than there are slots for, and an error that ends all of them.
	$session->run("DECLARE c$_ CURSOR FOR SELECT * FROM items ORDER BY id; FETCH 1 FROM c$_") foreach (1 .. 9);
	is(value_of($node, 'SELECT count(*) FROM pg_stat_progress_gpusort WHERE pid = ' . $session->pid), 8, "cursor, $name: several sorts");
	$session->run('ROLLBACK');
	is(value_of($node, 'SELECT count(*) FROM pg_stat_progress_gpusort'), 0, "cursor, $name: nothing is left");
	$session->quit;
}

# A cursor that goes back and forth over the rows that a LIMIT wants.
{
	my $session = Session($node, 'SET pg_gpusort.debug_require = node');
	my $moved;

	$session->run("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM items ORDER BY id DESC $ten");
	foreach my $move ([ 'FETCH 3', 3 ], [ 'FETCH BACKWARD 1', 2 ], [ 'MOVE 20', 10 ], [ 'FETCH 1', 10 ], [ 'FETCH PRIOR', 10 ],
		[ 'FETCH PRIOR', 9 ], [ 'MOVE BACKWARD ALL', 9 ], [ 'FETCH PRIOR', 9 ], [ 'FETCH 2', 2 ])
	{
		my ($command, $position) = @$move;

		$moved .= ", $command";
		$session->run("$command FROM c");
		my $shown = progress($session->pid);
		is("$shown->{phase}, $shown->{rows_read}, $shown->{rows_sorted}, $shown->{rows_returned}",
			"returning rows, $nrows, $nrows, $position", "cursor below a LIMIT$moved");
	}
	$session->run('ROLLBACK');
	is(value_of($node, 'SELECT count(*) FROM pg_stat_progress_gpusort'), 0, 'cursor below a LIMIT: nothing is left');

	# The sort begins again for each row, and is shown once.
	$session->run("BEGIN; DECLARE c CURSOR FOR SELECT g, s.id FROM generate_series(1, 20) g
		CROSS JOIN LATERAL (SELECT id FROM items WHERE id > g ORDER BY same, id DESC $ten) s; FETCH 155 FROM c");
	is(value_of($node, q{SELECT string_agg(concat_ws(', ', rows_read, rows_sorted, rows_returned), '; ')
		FROM pg_stat_progress_gpusort WHERE pid = } . $session->pid), join(', ', ($nrows - 16) x 2, 5), 'sorts one after the other');
	$session->run('ROLLBACK');
	$session->quit;
}
# Below a LIMIT, each process of a parallel plan has a sort of its own rows.
{
	my $session = Session($node, split(/; /, parallel_plans(2)), 'SET pg_gpusort.debug_require = node', @cpu);
	my $stops = hold_stops($node);

	$session->begin("SELECT count(*) FROM (SELECT halting(id) FROM items ORDER BY halting(id) $ten) s");
	wait_for_stop($node, $session, 3);
	is(value_of($node, q{SELECT string_agg(concat_ws(', ', phase, rows_read, workers_planned, leader_pid IS NULL), '; '
			ORDER BY leader_pid IS NOT NULL, node, random()) FROM pg_stat_progress_gpusort}),
		'reading rows, 0, 2, t; reading rows, 0, 0, f; reading rows, 0, 0, f', 'a LIMIT in a parallel plan');
	$stops->quit;
	$session->finish;
	is(value_of($node, 'SELECT count(*) FROM pg_stat_progress_gpusort'), 0, 'a LIMIT in a parallel plan: nothing is left');
	$session->quit;
}
# Workers have rows of their own.  All processes wait at their first row.
my $session = Session($node, split(/; /, parallel_plans(2)), 'SET pg_gpusort.debug_require = node', @cpu);
my $stops = hold_stops($node);
$session->begin('SELECT count(*) FROM (SELECT halting(id) FROM items ORDER BY halting(id) OFFSET 0) s');
wait_for_stop($node, $session, 3);
is(value_of($node, 'SELECT count(*) FROM pg_stat_progress_gpusort WHERE leader_pid = ' . $session->pid . " AND phase = 'reading rows'"),
	2, 'two workers read rows');
is(progress($session->pid)->{workers_planned}, 2, 'the leader says so');
$session->connected;

# An end of the session in the middle of it leaves nothing.
value_of($node, 'SELECT pg_terminate_backend(' . $session->pid . ')');
ok(becomes_true($node, 'SELECT count(*) = 0 FROM pg_stat_progress_gpusort'), 'nothing is left of a session that ends');
$stops->quit;

done_testing();
