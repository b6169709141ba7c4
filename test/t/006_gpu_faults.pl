# Faults of the GPU service at every point of a sort: the rows are right all the
# same, the reason is counted, nothing is left behind, and the server goes on.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'});
make_table($node, 20000);
my $lost = 'the GPU service was lost';
my $query = q{SELECT count(*), md5(string_agg(s::text, ',')) FROM (SELECT * FROM big ORDER BY k OFFSET 0) s};
my $keys = q{SELECT count(*), md5(string_agg(s::text, ',')) FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s};
my @on_gpu = ('SET pg_gpusort.debug_require = gpu');
my @anywhere = ('SET pg_gpusort.debug_require = node');
my @on_cpu = ('SET pg_gpusort.backend = cpu', 'SET pg_gpusort.debug_require = cpu');
my $reasons = "$REASONS WHERE reason <> 'pg_gpusort.backend is cpu'";
my $postmaster = q{SELECT pg_postmaster_start_time()};
my $rest_lost = qr/^ERROR:  58000: could not read the remaining rows of a sort\nDETAIL:  The reason is ".*"\.\nHINT:  The query might succeed if retried\./m;

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

# faulty NAME, FAULT, QUERY, EXPECTED: run it, and return what was counted.  EXPECTED is rows
# or an error.
sub faulty
{
	my ($name, $fault, $faulty_query, $rows) = @_;
	my $session;
	my $counted;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	value_of($node, 'SELECT pg_stat_gpusort_reset()');
	my $restarts = status_of($node, 'device_process_restarts');
	$session = Session($node, @anywhere, "SET pg_gpusort.debug_fault = '$fault'");
	like($session->run($faulty_query), ref $rows ? $rows : qr/^\Q$rows\E$/, "$name: rows");
	$counted = $session->run($reasons);
	# Then the query does not wait for the fault.
	becomes_true($node, "SELECT value::int8 > $restarts FROM gpusort_status() WHERE name = 'device_process_restarts'")
	  if $fault =~ /^close:crash/;
	$session->run('RESET pg_gpusort.debug_fault');
	wait_for_service($node);
	holds_nothing($node, $name);
	like($session->run("$on_gpu[0]; $faulty_query"), ref $rows ? qr/^\d+\|/ : qr/^\Q$rows\E$/, "$name: the next sort is on the GPU");
	$session->quit;
	return $counted;
}

my %counts = (
	'crash' => "$lost 1",
	'lost' => "$lost 1",
	'error' => 'the device reported an error 1',
	'memory' => 'not enough device memory 1');
# The seventh chunk is requested after the first row was returned.
my %numbers = ('open' => [1], 'put' => [ 1, 2, 7 ], 'sort' => [1], 'get' => [ 1, 7 ], 'close' => [1]);

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

			is(faulty($fault, $fault, $query, $point eq 'get' && $number > 1 ? $rest_lost : $expected),
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
foreach my $fault ('put:memory:4', 'put:error:5', 'get:error:1', 'sort:memory')
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
	faulty("$_, $column", $_, $runs, $rows) foreach 'get:error:1', 'sort:error';
	# All rows are read before the first one is returned.
	faulty("get:error:7, $column", 'get:error:7', $runs, $rows) if $column =~ /alike/;
}

# A fault and then too little memory for a memory sort.
foreach my $fault ('put:error:9', 'sort:error', 'get:error:1')
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
	my ($session, $rows);

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
		$rows = $session->finish;
		$wrong++ unless $rows eq $expected || $end eq 'KILL' && $rows =~ $rest_lost;
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

# A cursor whose GPU is lost after some rows: no row is returned twice or left out, so it ends.
foreach my $sorted ('SELECT * FROM big ORDER BY k', 'SELECT k, id FROM big ORDER BY k DESC', 'SELECT * FROM big ORDER BY k % 5')
{
	my $declare = "BEGIN; DECLARE c SCROLL CURSOR FOR $sorted; FETCH 10 FROM c";
	my $session = Session($node, @on_cpu);
	my $first = $session->run($declare);

	$session->quit;
	new_server();
	$session = Session($node, @on_gpu);
	ok($session->run($declare) eq $first, "cursor, $sorted: before the loss");
	crash_device($node);
	like($session->run('FETCH ALL FROM c'), $rest_lost, "cursor, $sorted: an error after the loss");
	is($session->run('ROLLBACK'), '', "cursor, $sorted: rolled back");
	$session->quit;
	wait_for_service($node);
	holds_nothing($node, "cursor, $sorted");
	leaves_nothing($node, "cursor, $sorted");
}

# ---- Input that cannot be read a second time ----

# Inputs, each with keys that leave no ties.
my %once = (
	'a volatile function' => [ '(SELECT k, volatile_id(id) AS id, t FROM big OFFSET 0) s', 'k, id' ],
	'numbers of a sequence' => [ q{(SELECT nextval('calls') AS n, id * 7919 % 10007 AS k, t FROM big OFFSET 0) s}, 'k, n' ],
	'TABLESAMPLE' => [ 'big TABLESAMPLE BERNOULLI (70) REPEATABLE (3)', 'k, id' ],
	'FOR UPDATE' => [ '(SELECT * FROM big FOR UPDATE) s', 'k, id' ],
	'a recursive query' => [ '(WITH RECURSIVE r(id, k) AS (SELECT 1, 1 UNION ALL SELECT id + 1, id * 7919 % 10007 FROM r WHERE id < 20000)
		SELECT *, repeat($$x$$, id % 50) AS t FROM r) s', 'k, id' ],
	'a foreign table' => [ '(SELECT * FROM far OFFSET 0) s', 'k, id' ]);
{
	my $once_lost = qr/^ERROR:  58000: could not sort rows that cannot be read a second time\nDETAIL:  The reason is ".*"\.\nHINT:  The query might succeed if retried\./m;
	my ($host, $port) = ($node->host, $node->port);
	my $session = Session($node, @anywhere);
	my $volatile = "SELECT * FROM $once{'a volatile function'}[0] ORDER BY k, id";

	$node->safe_psql(
		'postgres', qq{
		CREATE FUNCTION volatile_id(id int8) RETURNS int8 LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN id; END';
		CREATE SEQUENCE calls;
		CREATE EXTENSION postgres_fdw;
		CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE USER MAPPING FOR CURRENT_USER SERVER self;
		CREATE FOREIGN TABLE far (k int8, id int8, t text) SERVER self OPTIONS (table_name 'big', use_remote_estimate 'false')});
	foreach my $name (sort keys %once)
	{
		my $rows = "ALTER SEQUENCE calls RESTART; " . digest("SELECT * FROM $once{$name}[0] ORDER BY $once{$name}[1]");
		my $stock = $session->run("$STOCK; $rows");

		is($session->run("$OURS; $on_gpu[0]; $rows"), $stock, "$name: rows");
		$session->run("$anywhere[0]; SET pg_gpusort.debug_fault = 'sort:error'");
		like($session->run($rows), $once_lost, "$name, lost: an error");
		# A device that is full has lost nothing.
		foreach my $fault ('put:memory:2', 'put:memory:7')
		{
			$session->run("SET pg_gpusort.debug_fault = '$fault'");
			is($session->run($rows), $stock, "$name, $fault: rows");
		}
		$session->run('RESET pg_gpusort.debug_fault');
		holds_nothing($node, $name);
		leaves_nothing($node, $name);
	}
	foreach my $fault ('put:error:1', 'put:error:7', 'sort:error', 'sort:memory', 'get:error:1')
	{
		my $reason = $fault =~ /memory/ ? 'not enough device memory' : 'the device reported an error';

		$session->run("SELECT pg_stat_gpusort_reset(); SET pg_gpusort.debug_fault = '$fault'");
		like($session->run($volatile), $once_lost, "$fault: an error");
		is($session->run($reasons), "$reason 1", "$fault: counted");
		is($session->run('SELECT max(errors) FROM pg_stat_gpusort'), '1', "$fault: an error is counted");
		holds_nothing($node, $fault);
	}
	$session->run('RESET pg_gpusort.debug_fault');
	# Nor has one that cannot take a row.
	foreach my $limit ('', 'LIMIT (SELECT 5000)')
	{
		my $long = digest("SELECT * FROM (SELECT k, volatile_id(id) AS id, repeat('x', CASE WHEN id % 9000 = 7000 THEN 70000 ELSE 10 END) AS t
			FROM big OFFSET 0) s ORDER BY k, id $limit");

		is($session->run($long), $session->run("$STOCK; $long; $OURS; $anywhere[0]"), "a row longer than a chunk, \"$limit\": rows");
	}
	$session->quit;
	holds_nothing($node, 'a row longer than a chunk');
	leaves_nothing($node, 'a row longer than a chunk');
}

# ---- Below a Gather ----

{
	my $session = Session($node, @anywhere, parallel_plans(2, 'enable_gathermerge = off'));
	my $ordered = 'SELECT * FROM big ORDER BY k, id';
	my $rows;

	wait_for_service($node);
	like($session->run("EXPLAIN $ordered"), qr/GpuSort.*Gather /s, 'Gather below: plan');
	$rows = $session->run("SET pg_gpusort.backend = cpu; $ordered; RESET pg_gpusort.backend");
	foreach my $fault ('put:error:2', 'sort:error', 'get:error:1')
	{
		$session->run("SET pg_gpusort.debug_fault = '$fault'");
		ok($session->run($ordered) eq $rows, "Gather below, $fault: rows");
	}
	$session->run(q{SET pg_gpusort.debug_fault = 'get:error:9'});
	like($session->run($ordered), $rest_lost, 'Gather below: an error after rows were returned');
	$session->run('RESET pg_gpusort.debug_fault');
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
