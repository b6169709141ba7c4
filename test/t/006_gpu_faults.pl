# Faults of the GPU service at every point of a sort: the rows are right all the
# same, the reason is counted, nothing is left behind, and the server goes on.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

my $node = start_gpu_node('main', 'pg_gpusort.on_gpu_loss = copy', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'});
make_table($node, 20000);
my $lost = 'the GPU service was lost';
my $query = q{SELECT count(*), md5(string_agg(s::text, ',')) FROM (SELECT * FROM big ORDER BY k OFFSET 0) s};
my $keys = q{SELECT count(*), md5(string_agg(s::text, ',')) FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s};
my @on_gpu = ('SET pg_gpusort.debug_require = gpu');
my @anywhere = ('SET pg_gpusort.debug_require = node');
my @on_cpu = ('SET pg_gpusort.backend = cpu', 'SET pg_gpusort.debug_require = cpu');
my $reasons = "$REASONS WHERE reason <> 'pg_gpusort.backend is cpu'";
my $postmaster = q{SELECT pg_postmaster_start_time()};

my $cpu = Session($node, @on_cpu);
my $expected = $cpu->run($query);
my $expected_keys = $cpu->run($keys);
$cpu->quit;
is($node->safe_psql('postgres', "SET pg_gpusort.enable = off; $keys"), $expected_keys,
	'a memory sort sorts like stock');

# ---- A session of its own for each fault ----

# New device processes come later and later, unless the server is new.
sub new_server
{
	$node->restart;
	wait_for_service($node);
}

# faulty NAME, FAULT, QUERY, EXPECTED: run it, and return what was counted.
sub faulty
{
	my ($name, $fault, $faulty_query, $rows) = @_;
	my $session;
	my $counted;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	value_of($node, 'SELECT pg_stat_gpusort_reset()');
	my $restarts = status_of($node, 'device_process_restarts');
	$session = Session($node, @anywhere, "SET pg_gpusort.debug_fault = '$fault'");
	is($session->run($faulty_query), $rows, "$name: rows");
	$counted = $session->run($reasons);
	# Then the query does not wait for the fault.
	becomes_true($node, "SELECT value::int8 > $restarts FROM gpusort_status() WHERE name = 'device_process_restarts'")
	  if $fault =~ /^close:crash/;
	$session->run('RESET pg_gpusort.debug_fault');
	wait_for_service($node);
	holds_nothing($node, $name);
	is($session->run("$on_gpu[0]; $faulty_query"), $rows, "$name: the next sort is on the GPU");
	$session->quit;
	return $counted;
}

my %counts = (
	'crash' => "$lost 1",
	'lost' => "$lost 1",
	'error' => 'the device reported an error 1',
	'memory' => 'not enough device memory 1');
my %numbers = ('open' => [1], 'put' => [ 1, 2, 7 ], 'sort' => [1], 'get' => [ 1, 2, 7 ], 'close' => [1]);

foreach my $action ('error', 'memory', 'crash', 'lost')
{
	foreach my $point ('open', 'put', 'sort', 'get', 'close')
	{
		foreach my $number (@{ $numbers{$point} })
		{
			my $fault = "$point:$action:$number";
			my $ends = $action eq 'crash' || $action eq 'lost' && $point ne 'close';

			new_server() if $ends;
			my $pid = status_of($node, 'device_process_pid');
			my $started = value_of($node, $postmaster);
			my $restarts = status_of($node, 'device_process_restarts');
			my $before = -s $node->logfile;

			is(faulty($fault, $fault, $query, $expected),
				$point eq 'close' ? '' : $counts{$action}, "$fault: counted");
			is(status_of($node, 'device_process_restarts') - $restarts, $ends ? 1 : 0,
				"$fault: device processes that ended");
			is(value_of($node, $postmaster), $started, "$fault: the same server");
			is( logged($node,
					$action eq 'lost' ? qr/WARNING:  pg_gpusort lost GPU \d+: / :
					  qr/WARNING:  the device process of pg_gpusort was terminated by signal 9/, $before, 1),
				1, "$fault: a warning") if $ends;
			unlike(slurp_file($node->logfile, $before),
				qr/terminating any other active|all server processes terminated/, "$fault: nobody else ended");
		}
	}
}

# With keys that have no ties, against stock, and rows of one length.
foreach my $fault ('put:memory:4', 'put:error:5', 'get:error:3', 'sort:memory')
{
	my $fixed = $keys =~ s/SELECT \*/SELECT k, id/r;

	faulty("$fault, two keys", $fault, $keys, $expected_keys);
	faulty("$fault, fixed rows", $fault, $fixed,
		$node->safe_psql('postgres', "SET pg_gpusort.enable = off; $fixed"));
}

# Rows with equal keys keep their order on disk.
{
	my $ties = $query =~ s/ORDER BY k/ORDER BY k % 5/r;
	my $session = Session($node, @on_cpu);
	my $rows = $session->run($ties);

	$session->quit;
	faulty("$_, ties", $_, $ties, $rows) foreach 'put:memory:2', 'put:memory:7';
}

# Lost while runs of equal first words are put into order: of one row, and of all.
foreach my $column ("md5(id::text)", "'rows that begin alike ' || k")
{
	my $runs = $query =~ s/SELECT \*/SELECT *, $column COLLATE "C" AS r/r =~ s/ORDER BY k/ORDER BY r/r;
	my $session = Session($node, @on_cpu);
	my $rows = $session->run($runs);

	$session->quit;
	faulty("$_, $column", $_, $runs, $rows)
	  foreach 'get:error:1', 'get:error:2', 'get:error:7', 'sort:error';
}

# A fault and then too little memory for a memory sort.
foreach my $fault ('put:error:9', 'sort:error', 'get:error:1', 'get:error:7')
{
	my $session = Session($node, @anywhere, "SET pg_gpusort.debug_fault = '$fault'",
		q{SET pg_gpusort.work_mem = '256kB'});

	is($session->run($keys), $expected_keys, "$fault, then an overflow: rows");
	$session->quit;
	holds_nothing($node, "$fault, then an overflow");
	leaves_nothing($node, "$fault, then an overflow");
}

# ---- Every allocation of the device ----

my ($failed, $number) = (0, 0);
while (++$number <= 500)
{
	my $session;
	my $counted;
	my $rows;

	value_of($node, 'SELECT pg_stat_gpusort_reset()');
	$session = Session($node, @anywhere, "SET pg_gpusort.debug_fault = 'open:alloc:$number'");
	$rows = $session->run($keys);
	$counted = $session->run($reasons);
	$session->quit;
	fail("allocation $number: rows") if $rows ne $expected_keys;
	last if $counted eq '';
	$failed++;
	fail("allocation $number: $counted")
	  if $counted !~ /^(not enough device memory|the device reported an error) 1$/;
}
cmp_ok($failed, '>', 3, "allocations that failed ($failed)");
cmp_ok($number, '<', 500, 'all of them were tried');
holds_nothing($node, 'allocations');
is(status_of($node, 'device_process_pid') ne '0', 1, 'the device process is there');

# ---- Stopped at any time ----

# The device process is continued, or killed while it is stopped.  A delay of the test itself
# only changes when that happens.
{
	my ($wrong, $killed) = (0, 0);
	my $session;

	new_server();
	$session = Session($node, @anywhere);
	foreach my $time (1 .. 20)
	{
		my $pid = status_of($node, 'device_process_pid');
		my $end = $time % 7 == 0 ? 'KILL' : 'CONT';

		$session->begin($query);
		usleep(rand(60_000));
		kill('STOP', $pid);
		usleep(rand(30_000));
		kill($end, $pid) == 1 or die 'no device process';
		$wrong++ if $session->finish ne $expected;
		$killed++ if $end eq 'KILL';
		becomes_true($node, "SELECT value = '$killed' FROM gpusort_status() WHERE name = 'device_process_restarts'");
		wait_for_service($node);
	}
	$session->quit;
	is($wrong, 0, 'stopped at any time: rows');
	is(status_of($node, 'device_process_restarts'), $killed, 'stopped at any time: those killed are counted');
	holds_nothing($node, 'stopped at any time');
}

# ---- A cursor in the middle ----

# cursor NAME, QUERY, BETWEEN, SETTINGS: the rows of a cursor whose GPU is lost
# after some of them.
my $after = join('; ', 'FETCH 3000 FROM c', 'FETCH BACKWARD 6000 FROM c', 'FETCH ABSOLUTE 19000 FROM c',
	'FETCH ALL FROM c', 'FETCH BACKWARD 3 FROM c');
sub cursor
{
	my ($name, $sorted, $between, @settings) = @_;
	my $declare = "BEGIN; DECLARE c SCROLL CURSOR FOR $sorted; FETCH 5000 FROM c";
	my $session = Session($node, @on_cpu, @settings);
	my $first = $session->run($declare);
	my $rest = $session->run("$after; ROLLBACK");
	my $output;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->quit;
	new_server();
	$session = Session($node, @on_gpu, @settings);
	ok($session->run($declare) eq $first, "$name: before the loss");
	$session->run($between) if defined $between;
	crash_device($node);
	$output = $session->run("$after; ROLLBACK");
	$session->quit;
	wait_for_service($node);
	holds_nothing($node, $name);
	leaves_nothing($node, $name);
	return $output eq $rest ? 'the same rows' : join("\n", grep { !/\|/ } split(/\n/, $output));
}

my $sorted = 'SELECT * FROM big ORDER BY k';
my $rest_lost = qr/^ERROR:  58000: could not read the remaining rows of a sort\nDETAIL:  The reason is "$lost"\./m;

is(cursor('cursor', $sorted), 'the same rows', 'cursor: the rest of the rows');
is(cursor('cursor of fixed rows', 'SELECT k, id FROM big ORDER BY k DESC'),
	'the same rows', 'cursor of fixed rows: the rest of the rows');
is(cursor('cursor with ties', 'SELECT * FROM big ORDER BY k % 5'),
	'the same rows', 'cursor with ties: the rest of the rows');
is(cursor('cursor over a merge join',
		'SELECT a.* FROM big a JOIN big b ON b.id = a.id ORDER BY a.k % 5', undef,
		'CREATE INDEX IF NOT EXISTS big_id ON big (id)', 'SET enable_hashjoin = off',
		'SET enable_nestloop = off', 'SET enable_seqscan = off'),
	'the same rows', 'cursor over a merge join: the rest of the rows');
like(cursor('cursor, other settings', $sorted, q{SET work_mem = '63MB'}), $rest_lost,
	'cursor, other settings: an error');
like(cursor('cursor over a hash join', 'SELECT a.* FROM big a JOIN big b ON b.id = a.id ORDER BY a.k % 5', undef,
		'SET enable_mergejoin = off', 'SET enable_nestloop = off', 'SET pg_gpusort.on_gpu_loss = error'),
	$rest_lost, 'cursor over a hash join, no copy: an error');

# Too little memory for all rows on the CPU.
{
	my $session;
	my $first;
	my $rest;

	new_server();
	$session = Session($node, @on_cpu);
	$first = $session->run("BEGIN; DECLARE c SCROLL CURSOR FOR $sorted; FETCH 5000 FROM c");
	$rest = $session->run("$after; ROLLBACK");
	$session->run(q{SET pg_gpusort.backend = gpu; SET pg_gpusort.debug_require = gpu;
		SET pg_gpusort.work_mem = '256kB'});
	ok($session->run("BEGIN; DECLARE c SCROLL CURSOR FOR $sorted; FETCH 5000 FROM c") eq $first,
		'cursor, then an overflow: before the loss');
	crash_device($node);
	ok($session->run("$after; ROLLBACK") eq $rest, 'cursor, then an overflow: the rest of the rows');
	leaves_nothing($node, 'cursor, then an overflow');
	$session->quit;
}

# Rows have been returned, and their input comes in another order the next time.
{
	my $session = Session($node, @anywhere, parallel_plans(2, 'enable_gathermerge = off'));
	my $ordered = 'SELECT * FROM big ORDER BY k, id';
	my $rows;

	wait_for_service($node);
	like($session->run("EXPLAIN $ordered"), qr/GpuSort.*Gather /s, 'Gather below: plan');
	$rows = $session->run("SET pg_gpusort.backend = cpu; $ordered; RESET pg_gpusort.backend");
	foreach my $loss ('copy', 'error')
	{
		foreach my $fault ('put:error:2', 'sort:error', 'get:error:1')
		{
			$session->run("SET pg_gpusort.debug_fault = '$fault'; SET pg_gpusort.on_gpu_loss = $loss");
			ok($session->run($ordered) eq $rows, "Gather below, $fault, $loss: rows");
		}
	}
	$session->run(q{SET pg_gpusort.debug_fault = 'get:error:9'; SET pg_gpusort.on_gpu_loss = copy});
	ok($session->run($ordered) eq $rows, 'Gather below, after rows were returned: the rest of the rows');
	$session->run('SET pg_gpusort.on_gpu_loss = error');
	like($session->run($ordered), qr/ERROR:  58000: could not read the remaining rows of a sort/,
		'Gather below: an error after rows were returned');
	$session->run('RESET pg_gpusort.debug_fault; RESET pg_gpusort.on_gpu_loss');
	ok($session->run("$on_gpu[0]; $ordered") eq $rows, 'Gather below: and the next time, all rows');
	$session->quit;
	holds_nothing($node, 'Gather below');
}

# ---- The setting ----

foreach my $wrong ('here:crash', 'open', 'open:', 'open:nothing', 'open:crash:0', ':', 'open:crash:x', 'host:crash')
{
	my ($ret, $out, $err) = $node->psql('postgres', "SET pg_gpusort.debug_fault = '$wrong'; $query");

	like($err, qr/debug_fault/, "\"$wrong\" is no fault");
}
$node->safe_psql('postgres', 'CREATE ROLE someone LOGIN');
my ($ret, $out, $err) = $node->psql('postgres', q{SET pg_gpusort.debug_fault = 'sort:crash'},
	extra_params => [ '-U', 'someone' ]);
like($err, qr/permission denied/, 'faults are for superusers');

$node->stop;
done_testing();
