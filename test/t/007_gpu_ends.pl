# Backends and processes of the GPU service that end, in any state of a sort; and
# more sorts at a time than the service has sessions.
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

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'},
	'max_connections = 100', 'restart_after_crash = on');
my $query = q{SELECT count(*), md5(string_agg(s::text, ',')) FROM (SELECT * FROM big ORDER BY k OFFSET 0) s};
my $on_gpu = 'SET pg_gpusort.debug_require = gpu';
my $anywhere = 'SET pg_gpusort.debug_require = node';
# A sort that has returned rows cannot begin again.
my $lost = qr/^ERROR:  58000: could not read the remaining rows of a sort/m;
my $started;
my $expected;
my $restarts;

sub make_data
{
	make_table($node, 20000);
	$expected = $node->safe_psql('postgres', "SET pg_gpusort.backend = cpu; $query");
	$started = value_of($node, 'SELECT pg_postmaster_start_time()');
}

# sorts_on_gpu NAME: it does, and nothing is left of other sorts.
sub sorts_on_gpu
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	wait_for_service($node);
	holds_nothing($node, $name);
	is($node->safe_psql('postgres', "$on_gpu; $query"), $expected, "$name: a sort on the GPU");
	is(value_of($node, 'SELECT pg_postmaster_start_time()'), $started,
		"$name: the server has not restarted");
}

make_data();
# Of the row with id = 700.
add_stops($node, 700 * 7919 % 1000003);
sorts_on_gpu('at the start');

# ---- A device that hangs ----

# It does so until the sort is given up.
my %waits = (
	'open' => 'GpuSortOpen', 'put:2' => 'GpuSort(Sort|Pool)',
	'sort' => 'GpuSortSort', 'get:2' => 'GpuSortRows');
my %ends = ('open' => 'timeout terminate', 'put:2' => 'cancel terminate',
	'sort' => 'timeout cancel terminate', 'get:2' => 'timeout cancel');

foreach my $point (sort keys %waits)
{
	(my $fault = $point) =~ s/(:|$)/:hang$1/;

	foreach my $end (split(/ /, $ends{$point}))
	{
		my $session = Session($node, $on_gpu, "SET pg_gpusort.debug_fault = '$fault'");
		my $name = "$point hangs, $end";
		my $output;

		$session->run(q{SET statement_timeout = '500ms'}) if $end eq 'timeout';
		$session->begin($query);
		if ($end ne 'timeout')
		{
			# A wait event of an extension has no name of its own before PostgreSQL 17.
			ok( becomes_true($node, q{
					SELECT wait_event ~ 'Extension|} . $waits{$point} . q{' FROM pg_stat_activity WHERE pid = }
					. $session->pid), "$name: it waits");
			$node->safe_psql('postgres', "SELECT pg_${end}_backend(" . $session->pid . ')');
		}
		$output = $session->finish;
		like($output, $end eq 'timeout' ? qr/57014: canceling statement due to statement timeout/ :
			  $end eq 'cancel' ? qr/57014: canceling statement due to user request/ :
			  qr/FATAL:  57P01: terminating connection/, "$name: error");
		# It has a slot of its own meanwhile.
		is($session->run("SET statement_timeout = 0; RESET pg_gpusort.debug_fault; $query"), $expected,
			"$name: the session goes on")
		  if $end ne 'terminate';
		$session->quit;
		sorts_on_gpu($name);
	}
}

# Nobody is kept by a device that hangs when the rows are no longer needed, which it
# does here for as long as there is the session.
{
	my $session = Session($node, $on_gpu, q{SET pg_gpusort.debug_fault = 'close:hang'});

	is($session->run($query), $expected, 'close hangs: rows');
	$session->quit;
	sorts_on_gpu('close hangs');
}

# ... or it is ended for that.  Then sorts go on, on the CPU.
foreach my $point (sort keys %waits, 'close')
{
	(my $fault = $point) =~ s/(:|$)/:hang$1/;
	my $session = Session($node, $anywhere, "SET pg_gpusort.debug_fault = '$fault'");
	my $name = "$point hangs for too long";

	$session->begin($query);
	becomes_true($node, q{SELECT wait_event ~ 'Extension|} . $waits{$point} . q{' FROM pg_stat_activity WHERE pid = }
		. $session->pid) if $point ne 'close';
	is($session->finish, $expected, "$name: rows") if $point eq 'close';
	kill_hung($node);
	like($session->finish, $point eq 'get:2' ? $lost : qr/^\Q$expected\E$/, "$name: rows") if $point ne 'close';
	like(value_of($node, $REASONS), qr/the GPU service was lost/, "$name: reason") if $point ne 'close';
	$session->quit;
	sorts_on_gpu($name);
}

# stop_process PID: stops it, and waits until it has stopped.
sub stop_process
{
	my ($pid) = @_;

	kill('STOP', $pid) == 1 or die 'no device process';
	foreach my $try (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if slurp_file("/proc/$pid/stat") =~ /\) [TtZ] /;
		usleep(100_000);
	}
	die "process $pid does not stop";
}

# A process that is stopped while nobody needs it is nothing to worry about, until
# somebody does.  One that is continued goes on.
foreach my $state ('idle', 'rows go out', 'continued')
{
	my $session = Session($node, $anywhere);
	my $device = status_of($node, 'device_process_pid');
	my $name = "stopped, $state";

	$session->run('BEGIN; DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k; FETCH 500 FROM c') if $state eq 'rows go out';
	kill('STOP', $device) == 1 or die 'no device process';
	$session->begin($state eq 'rows go out' ? 'MOVE 19000 IN c; FETCH ALL FROM c' : $query);
	becomes_true($node, q{SELECT wait_event ~ 'Extension|GpuSort(Open|Rows)' FROM pg_stat_activity WHERE pid = } . $session->pid);
	if ($state eq 'continued')
	{
		kill('CONT', $device);
	}
	else
	{
		kill_hung($node);
	}
	my $rows = $session->finish;
	like($rows, $state eq 'rows go out' ? $lost : qr/^\Q$expected\E$/, "$name: rows");
	$session->quit;
	sorts_on_gpu($name);
	is(status_of($node, 'device_process_pid') eq $device, $state eq 'continued', "$name: the process");
}
$restarts = status_of($node, 'device_process_restarts');

# ---- The device process is killed while idle ----

foreach my $time (1 .. 2)
{
	my $pid = status_of($node, 'device_process_pid');

	kill('KILL', $pid) == 1 or die 'no device process';
	is($node->safe_psql('postgres', "$anywhere; $query"), $expected, "killed while idle: rows");
	becomes_true($node, "SELECT value NOT IN ('0', '$pid') FROM gpusort_status() WHERE name = 'device_process_pid'");
	sorts_on_gpu('killed while idle');
	is(status_of($node, 'device_process_restarts'), $restarts + $time, 'killed while idle: counted');
}

# ... and while rows come in.
{
	my $session = Session($node, $anywhere);
	my $stops = hold_stops($node);
	my $pid = status_of($node, 'device_process_pid');

	$session->begin('SELECT count(*), sum(k) FROM (SELECT k, id FROM big WHERE id < 800 AND stopping(k) IS NOT NULL ORDER BY k OFFSET 0) s');
	wait_for_stop($node, $session);
	is(status_of($node, 'sessions'), '1', 'killed while rows come in: a session');
	kill('KILL', $pid) == 1 or die 'no device process';
	becomes_true($node, "SELECT value <> '$pid' FROM gpusort_status() WHERE name = 'device_process_pid'");
	$stops->quit;
	is($session->finish, $node->safe_psql('postgres', 'SELECT count(*), sum(k) FROM big WHERE id < 800 AND k IS NOT NULL'),
		'killed while rows come in: rows');
	$session->quit;
	sorts_on_gpu('killed while rows come in');
}

# ---- The worker is terminated ----

{
	my $reading = Session($node, $on_gpu);
	my $writing = Session($node, $anywhere);
	my $cursor = 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM big ORDER BY k';
	my $moves = 'FETCH 7000 FROM c; FETCH BACKWARD ALL FROM c; FETCH ALL FROM c; ROLLBACK';
	my $worker = service_pid($node);
	my $device = status_of($node, 'device_process_pid');
	my $stops = hold_stops($node);

	$reading->run("$cursor; FETCH 3000 FROM c");
	$writing->begin('SELECT count(*) FROM (SELECT k, id FROM big WHERE id < 800 AND stopping(k) IS NOT NULL ORDER BY k OFFSET 0) s');
	wait_for_stop($node, $writing);
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
	becomes_true($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $worker");
	$stops->quit;
	is($writing->finish, $node->safe_psql('postgres', 'SELECT count(*) FROM big WHERE id < 800 AND k IS NOT NULL'),
		'worker terminated: a sort that reads');
	like($reading->run($moves), $lost, 'worker terminated: a sort that returns rows');
	is($node->safe_psql('postgres', "$anywhere; $query"), $expected, 'worker terminated: a new sort');
	$reading->quit;
	$writing->quit;
	ok(ends($device), 'worker terminated: its device process has ended');
	becomes_true($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_gpusort service'});
	isnt(service_pid($node), $worker, 'worker terminated: there is another');
	sorts_on_gpu('worker terminated');
}

# ---- A backend is killed, and with it the server ----

foreach my $state ('rows come in', 'rows go out', 'the device process is stopped')
{
	my $device = status_of($node, 'device_process_pid');
	my $session = Session($node, $on_gpu);
	my $name = "backend killed while $state";

	my $stops = hold_stops($node);

	if ($state eq 'rows come in')
	{
		$session->begin('SELECT * FROM big WHERE stopping(k) > 0 ORDER BY k');
		wait_for_stop($node, $session);
	}
	else
	{
		$session->run('BEGIN; DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k; FETCH 5000 FROM c');
		$session->begin('SELECT pg_sleep(60)');
	}
	is(status_of($node, 'sessions'), '1', "$name: a session");
	stop_process($device) if $state =~ /stopped/;
	my $before = -s $node->logfile;
	kill('KILL', $session->pid);
	like($session->finish, qr/server closed the connection|terminating connection|connection to server was lost/i,
		"$name: its end");
	$_->quit foreach $session, $stops;
	wait_for_restart($node, $before);
	wait_for_service($node);
	ok(ends($device), "$name: the device process has ended");
	$node->safe_psql('postgres', 'DROP TABLE big');
	make_data();
	sorts_on_gpu($name);
}

# ---- More sorts than sessions ----

# crowd NAME: 50 sessions that sort at the same time.
sub crowd
{
	my ($name) = @_;
	my @sessions = map { Session($node, $anywhere) } 1 .. 50;
	my @outputs;

	value_of($node, 'SELECT pg_stat_gpusort_reset()');
	$_->begin("$query; $query") foreach @sessions;
	@outputs = map { $_->finish } @sessions;
	is(scalar(grep { $_ ne "$expected\n$expected" } @outputs), 0, "$name: all have the right rows");
	is($node->safe_psql('postgres', 'SELECT sum(sorts) FROM pg_stat_gpusort'), '100',
		"$name: all are counted");
	cmp_ok($node->safe_psql('postgres', q{SELECT sorts FROM pg_stat_gpusort WHERE backend = 'gpu'}),
		'>', 0, "$name: some were on the GPU");
	$_->quit foreach @sessions;
	sorts_on_gpu($name);
}

# has_sessions NUMBER: waits until so many are in use.  The device process ends one a moment after its client.
sub has_sessions
{
	my ($number) = @_;

	return becomes_true($node, "SELECT value = '$number' FROM gpusort_status() WHERE name = 'sessions'");
}

# paused NAME, SLOTS: as many cursors as there are sessions, which hold chunks.
sub paused
{
	my ($name, $slots) = @_;
	my $half = Session($node, $anywhere, 'BEGIN');
	my $holder = Session($node, $on_gpu, "SET pg_gpusort.max_sessions_per_backend = $slots", 'BEGIN');
	my $cursor = 'SELECT * FROM big ORDER BY k';
	my $reached = 'SELECT sorts FROM pg_stat_gpusort_fallbacks WHERE reason = $$pg_gpusort.max_sessions_per_backend is reached$$';
	my $others = 'SELECT sorts FROM pg_stat_gpusort_fallbacks WHERE reason = $$all sessions of the GPU service are in use$$';

	# A backend must not have more than half of them.
	value_of($node, 'SELECT pg_stat_gpusort_reset()');
	foreach my $c (1 .. $slots)
	{
		$half->run("DECLARE c$c CURSOR FOR $cursor; FETCH 10 FROM c$c");
	}
	ok(has_sessions($slots / 2), "$name: half are in use");
	is($node->safe_psql('postgres', "$on_gpu; $query"), $expected, "$name: others sort on the GPU");
	is($half->run($reached), $slots / 2, "$name: the other cursors are counted");
	$half->run('CLOSE c1');
	like($half->run("$EXPLAIN $cursor"), qr/gpu onesweep/, "$name: one less");
	is($half->run("MOVE 19000 IN c$slots; FETCH ALL FROM c$slots") =~ tr/\n// + 1, 990,
		"$name: a cursor on the CPU goes on");
	$half->quit;
	ok(has_sessions(0), "$name: all end");

	foreach my $c (1 .. $slots - 1)
	{
		$holder->run("DECLARE c$c CURSOR FOR $cursor; FETCH 10 FROM c$c");
	}
	is($node->safe_psql('postgres', "$on_gpu; $query"), $expected, "$name: one session is left");
	ok(has_sessions($slots - 1), "$name: it ends");
	$holder->run("DECLARE c$slots CURSOR FOR $cursor; FETCH 10 FROM c$slots");
	ok(has_sessions($slots), "$name: all are in use");
	value_of($node, 'SELECT pg_stat_gpusort_reset()');
	is($node->safe_psql('postgres', "$anywhere; $query"), $expected, "$name: others sort");
	is($node->safe_psql('postgres', $others), '1', "$name: on the CPU, which is counted");
	$holder->run('CLOSE c1');
	ok(has_sessions($slots - 1), "$name: one ends");
	is($node->safe_psql('postgres', "$on_gpu; $query"), $expected, "$name: when one ends, on the GPU");
	foreach my $c (2 .. $slots)
	{
		is($holder->run("MOVE 19000 IN c$c; FETCH ALL FROM c$c") =~ tr/\n// + 1, 990,
			"$name: cursor $c goes on");
	}
	$holder->run('COMMIT');
	$holder->quit;

	# What an administrator sets against cursors that nobody reads from ends their sessions.
	$holder = Session($node, $on_gpu, "SET pg_gpusort.max_sessions_per_backend = $slots", 'BEGIN');
	foreach my $c (1 .. $slots)
	{
		$holder->run("DECLARE c$c CURSOR FOR $cursor; FETCH 10 FROM c$c");
	}
	ok(has_sessions($slots), "$name: all are in use again");
	$holder->begin(q{SET idle_in_transaction_session_timeout = '10ms'});
	ok(has_sessions(0), "$name: they end with an idle transaction");
	$holder->quit;
	sorts_on_gpu($name);
}

crowd('8 sessions');
paused('8 sessions', 8);
$node->append_conf('postgresql.conf', q{pg_gpusort.pool_size = '1MB'});
$node->restart;
$started = value_of($node, 'SELECT pg_postmaster_start_time()');
wait_for_service($node);
is(status_of($node, 'session_slots'), '2', 'the smallest pool');
crowd('2 sessions');
paused('2 sessions', 2);

# ... of which some end in the middle, and so does the device process.
{
	my @sessions = map { Session($node, $anywhere) } 1 .. 20;
	my $failed = 0;

	$_->begin("$query; $query") foreach @sessions;
	foreach my $n (0 .. 4)
	{
		usleep(50_000);
		$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $sessions[ 4 * $n ]->pid . ')');
		kill('KILL', status_of($node, 'device_process_pid')) if $n == 2 && status_of($node, 'device_process_pid') > 0;
	}
	foreach my $session (@sessions)
	{
		foreach my $line (split(/\n/, $session->finish))
		{
			$failed++ unless $line =~ /^(\Q$expected\E|ERROR:  57014: canceling .*|ERROR:  58000: could not read the remaining rows of a sort|(LOCATION|DETAIL|HINT): .*)$/;
		}
		$session->quit;
	}
	is($failed, 0, 'a crowd, with cancels and a crash: the right rows, or an error that says why not');
	sorts_on_gpu('a crowd, with cancels and a crash');
}

# A server shuts down even if the device process cannot be asked to end.
{
	my $device = status_of($node, 'device_process_pid');

	kill('STOP', $device) == 1 or die 'no device process';
	$node->stop;
	ok(ends($device), 'stopped at a shutdown: the device process has ended');
}

# ---- The postmaster is process 1 ----

# As in a container, it inherits the device process when the supervisor is gone, and
# takes the deaths of its children for crashes.
my @unshare = qw(unshare --user --map-current-user --pid --fork --kill-child);

# outside PID: the process here that has that ID in a namespace.
sub outside
{
	my ($pid) = @_;

	foreach my $file (glob '/proc/[0-9]*/status')
	{
		open(my $status, '<', $file) or next;
		my ($here) = map { /^NSpid:.*\s(\d+)\s+$pid$/ } <$status>;
		return $here if defined $here;
	}
	die "there is no process $pid";
}

SKIP:
{
	skip 'unshare cannot make a user and a process namespace here', 1
	  if system("@unshare true 2>/dev/null") != 0;

	my $contained = PostgreSQL::Test::Cluster->new('contained');
	my $anything = q{COPY (SELECT 1) TO PROGRAM};
	my $restarts = 0;
	my $server;

	$contained->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
	$contained->append_conf('postgresql.conf', join("\n", gpu_settings(), 'autovacuum = off',
			q{pg_gpusort.pool_size = '4MB'}, 'restart_after_crash = on', ''));
	$server = IPC::Run::start([ @unshare, $contained->installed_command('postgres'), '-D', $contained->data_dir ],
		'<', \undef, '>>', $contained->logfile, '2>&1');
	$contained->poll_query_until('postgres', 'SELECT 1', '1') or die 'the server does not start';
	is(slurp_file($contained->data_dir . '/postmaster.pid') =~ /^(\d+)/ ? $1 : '', '1', 'in a container: process 1');
	$contained->safe_psql('postgres', 'CREATE EXTENSION pg_gpusort');
	foreach my $state ('idle', 'in a sort', 'stopped')
	{
		my $name = "in a container, device process $state";

		wait_for_service($contained);
		make_table($contained, 2000);
		my $device = status_of($contained, 'device_process_pid');
		my $session = Session($contained, $on_gpu);
		my $before = -s $contained->logfile;

		$session->run('BEGIN; DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k; FETCH 500 FROM c') if $state ne 'idle';
		if ($state eq 'in a sort')
		{
			$session->run('COMMIT');
			$session->run(q{SET pg_gpusort.debug_fault = 'sort:hang'});
			$session->begin('SELECT * FROM big ORDER BY k');
			becomes_true($contained, q{SELECT wait_event ~ 'Extension|GpuSort(Sort|Pool)' FROM pg_stat_activity WHERE pid = }
				. $session->pid);
		}
		# From here: a program of the server could die with it, which would count as another crash.  If the
		# process stopped only after its parent's end, nobody would continue it.
		stop_process(outside($device)) if $state eq 'stopped';
		kill('KILL', outside($session->pid));
		$session->quit;
		wait_for_restart($contained, $before);
		$restarts++;
		# The server has seen its end when nothing is left of it.
		ok(becomes_true($contained, q{SELECT value <> '0' FROM gpusort_status() WHERE name = 'device_process_pid'}),
			"$name: there is a new one");
		# It reads the row first: COPY fails also if its program ends too early.
		my $is_there = "$anything 'cat >/dev/null; kill -0 $device 2>/dev/null'";
		foreach my $try (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
		{
			last if $contained->psql('postgres', $is_there) != 0;
			usleep(100_000);
		}
		isnt($contained->psql('postgres', $is_there), 0, "$name: it has ended");
		is(logged($contained, qr/all server processes terminated; reinitializing/, 0, $restarts), $restarts,
			"$name: the server restarts once");
		$contained->safe_psql('postgres', 'DROP TABLE big');
	}
	$contained->psql('postgres', "$anything 'kill -INT 1'");
	$server->finish;
	like(slurp_file($contained->logfile), qr/database system is shut down/, 'in a container: shut down');
}

done_testing();
