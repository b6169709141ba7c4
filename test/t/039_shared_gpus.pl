# Sorts into which several processes put rows, and index builds, whose rows are spread over
# the memory of several GPUs, which the emulator plays.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

# The server inherits it.
$ENV{GPUSORT_EMU_DEVICES} = 3;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, 'pg_gpusort.max_sessions_per_backend = 8', q{work_mem = '64MB'},
	q{maintenance_work_mem = '64MB'}, 'wal_level = replica', 'max_worker_processes = 16', 'max_parallel_workers = 8', 'restart_after_crash = on');
add_index_tools($node);
make_table($node, 30000);
make_halves($node);
# Three GPUs are needed, with a good margin, if each has 2400 kB.
make_plain($node, 90000);
$node->safe_psql(
	'postgres', q{
	-- A crash of the server must not empty it.
	ALTER TABLE big SET LOGGED;
	ALTER TABLE plain SET (parallel_workers = 3);
	ANALYZE;
});
add_stops($node, 45000);

my $parallel = parallel_plans(3, 'enable_gathermerge = off');
my $three = q{SET pg_gpusort.device_memory = '2400kB'};
my $reasons = "$REASONS WHERE reason <> 'pg_gpusort.backend is cpu'";
my $plain = 'SELECT * FROM plain ORDER BY k DESC';
my $session = Session($node, $parallel);
my $expected_plain = $session->run("$STOCK; " . digest($plain));

# A query whose processes wait at the row in the middle.
my $stopping = 'SELECT * FROM plain WHERE stopping(id) > 0 ORDER BY k DESC';

# ---- Rows ----

my %queries = (
	%GPU_QUERIES,
	'plain' => $plain);
my %methods;

foreach my $workers (1, 3)
{
	$session->run("SET max_parallel_workers_per_gather = $workers");
	foreach my $memory ('900kB', '1600kB', '2MB', '2400kB', '3MB')
	{
		$session->run("SET pg_gpusort.device_memory = '$memory'");
		foreach my $name (sort keys %queries)
		{
			my $query = digest($queries{$name});

			same_as_stock($session, $query, "$workers workers, $memory, $name: rows");
			$methods{$1} = 1 if $session->run("$OURS; $EXPLAIN $queries{$name}") =~ /(GPUs Used: \d)/;
		}
	}
}
ok($methods{"GPUs Used: $_"}, "on $_ GPUs") foreach 2, 3;
holds_nothing($node, 'rows');

# With a single producer, rows keep the order in which they are read.
$session->run('SET pg_gpusort.debug_stock_ties = on; SET parallel_leader_participation = off; SET max_parallel_workers_per_gather = 1');
foreach my $memory ('1200kB', '1600kB', '2MB', '2400kB', '3MB')
{
	$session->run("SET pg_gpusort.device_memory = '$memory'");
	foreach my $query ('SELECT * FROM big ORDER BY k % 10', 'SELECT * FROM halves ORDER BY k', 'SELECT * FROM halves ORDER BY t COLLATE "C" DESC', $plain)
	{
		my $digest = digest($query);

		same_as_stock($session, $digest, "a single producer, $memory: $query");
	}
}
is($session->run("$three; $ON_GPU; " . digest($plain)), $expected_plain, 'a single producer, enough memory');
$session->run("RESET ALL; $parallel; $three");

# ---- What is shown ----

$session->run('SELECT pg_stat_gpusort_reset()');
like($session->run("$ON_GPU; $EXPLAIN $plain"),
	qr/Sort Method: gpu onesweep  Device Memory: \d+kB\n\s+GPUs Used: 3\n\s+->  Gather.*GpuSortSink\).*Rows Sent: 90000\n/s, 'EXPLAIN');
is($session->run('SELECT backend, sorts, rows, parallel_sorts FROM pg_stat_gpusort WHERE sorts > 0'), 'gpu|1|90000|1', 'counted');
is($session->run($reasons), '', 'no reason is counted');
# Only one GPU is worth it, unless one asks for more.
$session->run("SET pg_gpusort.debug_require = node; SET pg_gpusort.backend = auto; SET pg_gpusort.gpu_min_rows = 0");
like($session->run("$EXPLAIN $plain"), qr/Sort Method: cpu radix.*\n.*GPU Not Used: not enough device memory/, 'backend auto');
is($session->run(digest($plain)), $expected_plain, 'backend auto: rows');
$session->run("SET pg_gpusort.device_memory = 0");
like($session->run("$EXPLAIN $plain"), qr/Sort Method: gpu onesweep/, 'backend auto, one GPU is enough');
$session->run("RESET ALL; $parallel; $three");
holds_nothing($node, 'what is shown');

# ---- A process is late ----

# stop_late SESSION: one process waits while the others put their rows into sessions of several GPUs.  Then it
# comes with rows for the first one.  Returns what it waits for.
sub stop_late
{
	my ($running) = @_;
	my $stops = hold_stops($node);

	$running->begin("$ON_GPU; " . digest($stopping));
	wait_for_stop($node, $running, 1);
	# Chunks that the second GPU has refused may wait until the sort itself.
	becomes_true($node, q{SELECT sum(sessions) >= 2 FROM gpusort_devices()}) or die 'the GPUs do not have sessions';
	return $stops;
}

{
	my $stops = stop_late($session);

	$stops->quit;
	is($session->finish, $expected_plain, 'a process is late: rows');
	holds_nothing($node, 'a process is late');
}
foreach my $end (grep { $_ ne 'timeout' } @ENDS)
{
	# So it is a worker that waits.
	my $ending = Session($node, $parallel, $three, 'SET parallel_leader_participation = off');
	my $stops = stop_late($ending);

	end_session($node, $ending, $end);
	like($ending->finish, error_of_end($end), "$end: error");
	$_->quit foreach $ending, $stops;
	wait_for_end($node);
	wait_for_service($node);
	holds_nothing($node, $end);
}
$session->quit;
$session = Session($node, $parallel, $three);
is($session->run("$ON_GPU; " . digest($plain)), $expected_plain, 'after ends: rows');

# ---- Faults ----

foreach my $fault ('open:error:1', 'put:error:2', 'put:lost:2', 'sort:error:1', 'sort:memory:1', 'sort:crash:1', 'get:error:1', 'get:lost:1')
{
	foreach my $number (1 .. 3)
	{
		my $name = "$fault in session $number";
		my ($action) = $fault =~ /:(\w+):/;
		my $failing;

		$node->restart if $action =~ /lost|crash/;
		wait_for_service($node);
		$failing = Session($node, $parallel, $OURS, $three, "SET pg_gpusort.debug_fault = '$fault:$number'");
		is($failing->run(digest($plain)), $expected_plain, "$name: rows");
		$failing->quit;
		wait_for_service($node);
		holds_nothing($node, $name);
	}
}
$session->quit;
$session = Session($node, $parallel, $three);

# Full sessions while rows come in; and no device is left, so that the input is read again.
foreach my $fault ('put:memory:1:1', 'put:memory:4:1', 'put:memory:1:2', 'put:memory:2:3', 'open:memory:1:2', 'open:memory:1:3')
{
	$session->run("SET pg_gpusort.debug_fault = '$fault'");
	foreach my $name (sort keys %queries)
	{
		my $query = digest($queries{$name});

		same_as_stock($session, $query, "$fault, $name: rows");
	}
	$session->run('RESET pg_gpusort.debug_fault');
	holds_nothing($node, $fault);
}
$session->run(q{SET pg_gpusort.debug_fault = 'open:memory:1:2'; SELECT pg_stat_gpusort_reset()});
# It is written to disk instead if that is noticed when all processes have put their rows.
like($session->run("$OURS; $EXPLAIN $plain"), qr/(GPU Not Used|Sort Fallback): not enough device memory/, 'no device is left: EXPLAIN');
is($session->run($reasons), 'not enough device memory 1', 'no device is left: counted');
$session->run('RESET pg_gpusort.debug_fault');

# ---- Index builds ----

$session->run(q{SET max_parallel_maintenance_workers = 3; SET min_parallel_table_scan_size = 0});
foreach my $memory ('1200kB', '1600kB', '2400kB')
{
	$session->run("SET pg_gpusort.device_memory = '$memory'");
	foreach my $build ('big (k)', 'big (t, k DESC)', 'plain (k)')
	{
		like($session->run("SELECT check_build('CREATE INDEX built ON $build', 'node')"), qr/^same, level [12]$/, "$memory, index on $build");
	}
}
holds_nothing($node, 'index builds');
leaves_nothing($node, 'index builds');

$node->stop;
done_testing();
