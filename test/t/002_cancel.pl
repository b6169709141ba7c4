# Sorts that are cancelled, by statement_timeout or another session, in each of
# their phases: nothing is left behind, and the session goes on.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;
use Time::HiRes 'usleep';

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'},
	'max_parallel_workers_per_gather = 0');
make_table($node, 300000);

my @settings = (
	'SET pg_gpusort.min_rows = 0',
	'SET pg_gpusort.debug_require = node');
my $small = 'SELECT string_agg(k::text, $$ $$) FROM (SELECT k FROM big WHERE id <= 5 ORDER BY k DESC OFFSET 0) s';
my $contexts = q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'pg_gpusort%'};

sub goes_on
{
	my ($session, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($session->run('ROLLBACK') =~ /ERROR/ ? 'error' : '', '', "$name: rollback");
	is($session->run($contexts), '0', "$name: no memory of sorts is left");
	is($session->run($small), '39595 31676 23757 15838 7919', "$name: the next query works");
	leaves_nothing($node, $name);
}

# What waits in a phase by itself, and so is sure to be cancelled in it.
my %waiting = (
	'drain' => 'SELECT * FROM (SELECT k, pg_sleep(0.0005) FROM big OFFSET 0) s ORDER BY k',
	'emit' => 'SELECT id, pg_sleep(0.0005) FROM (SELECT * FROM big ORDER BY k OFFSET 0) s',
	'drain after an overflow' =>
	  'SELECT * FROM (SELECT k, t, CASE WHEN id > 50000 THEN pg_sleep(0.005) END FROM big OFFSET 0) s ORDER BY k',
	'emit after an overflow' =>
	  'SELECT id, pg_sleep(0.005) FROM (SELECT * FROM big ORDER BY k OFFSET 0) s');

foreach my $phase (sort keys %waiting)
{
	my $session = Session($node, @settings);

	$session->run('SET pg_gpusort.work_mem = ' . ($phase =~ /overflow/ ? "'64kB'" : "'256MB'"));
	like($session->run("EXPLAIN $waiting{$phase}"), qr/\(GpuSort\)/, "$phase: GpuSort");
	$session->run(q{SET statement_timeout = '700ms'});
	like($session->run("$waiting{$phase} LIMIT 299999"),
		qr/ERROR:  57014: canceling statement due to statement timeout/,
		"$phase: statement_timeout");
	1 while $session->run('RESET statement_timeout') =~ /57014/;
	goes_on($session, "$phase, statement_timeout");

	$session->begin("$waiting{$phase} LIMIT 299999");
	becomes_true($node, "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = " . $session->pid);
	# Overflown sorts have files by now.
	$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $session->pid . ')');
	like($session->finish, qr/ERROR:  57014: canceling statement due to user request/,
		"$phase: pg_cancel_backend");
	goes_on($session, "$phase, pg_cancel_backend");

	# An error, from the input or of what reads the output.
	(my $failing = $waiting{$phase}) =~ s/pg_sleep\([^)]*\)/1 \/ (id - 250000)/;
	$failing =~ s/END FROM/END::text FROM/;
	like($session->run("SELECT count(*) FROM ($failing LIMIT 299999) s; $failing LIMIT 299999"),
		qr/ERROR:  22012: division by zero/, "$phase: an error");
	goes_on($session, "$phase, error");
	$session->quit;
}

# Delays that end in any phase, also within the sort of the keys.
my $plain = 'SELECT count(*) FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s';
foreach my $work_mem ('64kB', '256MB')
{
	my $session = Session($node, @settings, "SET pg_gpusort.work_mem = '$work_mem'");
	my ($cancelled, $done, $other) = (0, 0, '');

	foreach my $delay (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 100, 120, 140, 160, 200, 300, 400)
	{
		my $output = $session->run("SET statement_timeout = $delay; $plain; RESET statement_timeout");

		if ($output =~ /57014/) { $cancelled++; }
		elsif ($output eq '300000') { $done++; }
		else { $other .= $output; }
		1 while $session->run('RESET statement_timeout') =~ /57014/;
		$other .= $session->run($contexts) eq '0' ? '' : "memory is left after $delay ms";
	}
	is($other, '', "$work_mem: cancelled or done after any delay");
	note("$work_mem: $cancelled were cancelled, $done done");
	goes_on($session, "$work_mem, any delay");
	$session->quit;
}

# A comparison that does not end, in a sort in memory and in one that has runs; and
# debug_stock_ties, which has PostgreSQL sort before, wherever it is by then.
add_stops($node, 1000);
foreach my $work_mem ('64kB', '256MB')
{
	my $session = Session($node, @settings, "SET pg_gpusort.work_mem = '$work_mem'");
	my $stops = hold_stops($node);

	$session->begin('SELECT count(*) FROM (SELECT * FROM big WHERE id < 4000 ORDER BY id / 10, id::int8 USING <# OFFSET 0) s');
	wait_for_stop($node, $session);
	$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $session->pid . ')');
	like($session->finish, qr/ERROR:  57014: canceling statement due to user request/, "$work_mem, comparing: cancelled");
	$stops->quit;
	goes_on($session, "$work_mem, comparing");
	$session->quit;
}
{
	my $session = Session($node, @settings, q{SET pg_gpusort.work_mem = '256MB'},
		'SET pg_gpusort.debug_stock_ties = on');

	foreach my $delay (5, 20, 40, 60, 80, 100, 200, 300)
	{
		like($session->run("SET statement_timeout = $delay; $plain"), qr/^300000$|57014/, "stock ties, $delay ms: the rows, or cancelled");
		1 while $session->run('RESET statement_timeout') =~ /57014/;
	}
	goes_on($session, "stock ties");
	$session->quit;
}

# In parallel workers, each of which sorts: the leader or a worker is ended while
# they read their input, or while the leader returns rows and they wait for it.  With
# enable_sort = off no path lets workers put their rows into a sort of the leader.
$node->safe_psql('postgres', q{
	CREATE FUNCTION slow(k int8) RETURNS int8 LANGUAGE plpgsql PARALLEL SAFE
		AS $$ BEGIN PERFORM pg_sleep(0.001); RETURN k; END $$});
my %in_workers = (
	'drain' => [ 'SELECT k, id FROM big WHERE slow(k) IS NOT NULL ORDER BY 1, 2 LIMIT 300000', 'parallel worker', 'PgSleep' ],
	'emit' => [ 'SELECT k, id, pg_sleep(0.001) FROM (SELECT k, id FROM big ORDER BY 1, 2 LIMIT 300000) s',
		'parallel worker', 'MessageQueueSend' ]);
my %ends = (
	'timeout' => qr/57014: canceling statement due to statement timeout/,
	'leader cancelled' => qr/57014: canceling statement due to user request/,
	'leader terminated' => qr/57P01: terminating connection/,
	'worker terminated' => qr/57P01: terminating (connection|background worker)/);

foreach my $phase (sort keys %in_workers)
{
	my ($query, $who, $event) = @{ $in_workers{$phase} };
	my $waiting = "backend_type = '$who' AND wait_event = '$event'";

	foreach my $end (sort keys %ends)
	{
		my $session = Session($node, @settings, parallel_plans(2, 'enable_sort = off'));
		my $name = "workers, $phase, $end";

		like($session->run("EXPLAIN $query"), qr/Gather Merge.*GpuSort/s, "$name: GpuSort");
		$session->run(q{SET statement_timeout = '700ms'}) if $end eq 'timeout';
		$session->begin($query);
		if ($end ne 'timeout')
		{
			becomes_true($node, "SELECT count(*) > 0 FROM pg_stat_activity WHERE $waiting")
			  or die 'no worker waits';
			$node->safe_psql('postgres',
				$end eq 'worker terminated' ? "SELECT pg_terminate_backend((SELECT min(pid) FROM pg_stat_activity WHERE $waiting))" :
				$end eq 'leader cancelled' ? 'SELECT pg_cancel_backend(' . $session->pid . ')' :
				'SELECT pg_terminate_backend(' . $session->pid . ')');
		}
		like($session->finish, $ends{$end}, "$name: error");
		if ($end ne 'leader terminated')
		{
			1 while $session->run('RESET statement_timeout; SET max_parallel_workers_per_gather = 0') =~ /57014/;
			goes_on($session, $name);
		}
		$session->quit;
		becomes_true($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker'})
		  or fail("$name: workers end");
		leaves_nothing($node, $name);
	}
}

# Cursors that are left in the middle, in transactions that fail.
{
	my $session = Session($node, @settings);

	$session->run('BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM big ORDER BY k');
	like($session->run('FETCH 1 FROM c'), qr/row number/, 'cursor');
	is($session->run($contexts), '3', 'cursor: its sort, the plan of its keys, and the check of their order are there');
	like($session->run('SELECT 1 / 0'), qr/22012/, 'cursor: an error');
	goes_on($session, 'cursor');
	$session->run(q{SET pg_gpusort.work_mem = '64kB'; BEGIN; DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k});
	$session->run('FETCH 1 FROM c');
	my @files = glob($node->data_dir . '/base/pgsql_tmp/*');
	cmp_ok(scalar @files, '>', 0, 'cursor: an overflown sort has files');
	$session->run('CLOSE c; COMMIT');
	goes_on($session, 'cursor after an overflow');
	$session->quit;
}

is($node->safe_psql('postgres', 'SELECT sum(errors) > 10 FROM pg_stat_gpusort'), 't',
	'errors are counted');
$node->stop;
done_testing();
