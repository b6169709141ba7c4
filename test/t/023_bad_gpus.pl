# GPUs that are lost at any time, that cannot sort, or that are lost whenever they
# are used: sorts go to the CPU or to another GPU, and it is said why.  The emulator
# plays the GPUs, with faults that the test writes to a file.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

# The servers inherit it.
my $faults = PostgreSQL::Test::Utils::tempdir() . '/faults';
$ENV{GPUSORT_EMU_FAULTS} = $faults;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'});
my $on_gpu = 'SET pg_gpusort.debug_require = gpu';
my $anywhere = 'SET pg_gpusort.debug_require = node';
my $query = q{SELECT count(*), md5(string_agg(s::text, ',')) FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s};
my $expected;

make_table($node, 20000);
$expected = $node->safe_psql('postgres', "SET pg_gpusort.enable = off; $query");

# set_faults LINE...: all faults from now on; see cuda/emu/emu_runtime.cpp.
sub set_faults
{
	my $new = "$faults.new";

	append_to_file($new, join('', map { "$_\n" } @_));
	rename($new, $faults) or die "could not rename $new: $!";
}

# sorts NAME, SETTINGS: a sort comes out right, and returns what was counted.
sub sorts
{
	my ($name, $settings) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	value_of($node, 'SELECT pg_stat_gpusort_reset()');
	is($node->safe_psql('postgres', "$settings; $query"), $expected, "$name: rows");
	return value_of($node, $REASONS);
}

sub wait_for_restarts
{
	my ($restarts) = @_;

	becomes_true($node, "SELECT value::int >= $restarts FROM gpusort_status() WHERE name = 'device_process_restarts'")
	  or die 'the end of the device process is not seen';
}

# ---- Lost while it is idle, or when a session is closed ----

foreach my $fault ('lost', 'gone')
{
	my $pid = status_of($node, 'device_process_pid');
	my $restarts = status_of($node, 'device_process_restarts');
	my $before = -s $node->logfile;
	my $name = "$fault while idle";

	is(sorts("before $name", $on_gpu), '', "before $name: on the GPU");
	holds_nothing($node, "before $name");
	set_faults("0 $fault $pid");
	is(sorts($name, $anywhere), 'the GPU service was lost 1', "$name: reason");
	wait_for_restarts($restarts + 1);
	wait_for_service($node);
	is(sorts("after $name", $on_gpu), '', "after $name: on the GPU");
	is(logged($node, qr/WARNING:  pg_gpusort lost GPU 0: could not/, $before, 1), 1, "$name: one warning");
	is(status_of($node, 'device_process_restarts'), $restarts + 1, "$name: one process ended");
	holds_nothing($node, $name);
}

foreach my $fault ('lost', 'gone')
{
	my $pid = status_of($node, 'device_process_pid');
	my $restarts = status_of($node, 'device_process_restarts');
	my $before = -s $node->logfile;
	my $name = "$fault before a cancelled sort is closed";
	my $cancelled = Session($node, $on_gpu, 'BEGIN',
		'DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k', 'FETCH 1 FROM c');

	$cancelled->begin('SELECT pg_sleep(60)');
	set_faults("0 $fault $pid");
	becomes_true($node, 'SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = $$PgSleep$$');
	like($cancelled->finish, qr/57014: canceling statement due to user request/, "$name: cancelled");
	$cancelled->run('ROLLBACK');
	$cancelled->quit;
	wait_for_restarts($restarts + 1);
	wait_for_service($node);
	is(sorts("after $name", $on_gpu), '', "after $name: on the GPU");
	is(logged($node, qr/WARNING:  pg_gpusort lost GPU 0: could not/, $before, 1), 1, "$name: one warning");
	holds_nothing($node, $name);
}

# ---- GPUs that cannot be used ----

# devices: of each, its number, state and failures in a row.
sub devices
{
	return value_of($node, q{
		SELECT string_agg(ordinal || ' ' || state || ' ' || failures, ', ' ORDER BY ordinal, random())
		FROM gpusort_devices()});
}

# becomes NAME, WANTED: a test that devices() is that after some moments.
sub becomes
{
	my ($name, $wanted) = @_;
	my $found;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $try (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$found = devices();
		last if $found eq $wanted;
		usleep(100_000);
	}
	is($found, $wanted, "$name: devices");
}

# restarts_with NAME, LINE...: a new server, with these faults.
sub restarts_with
{
	set_faults(@_);
	$node->restart;
}

my %messages = (
	'no-code' => qr/no kernel image is available/,
	'wrong' => qr/^it sorted test rows incorrectly$/,
	'lost' => qr/unspecified launch failure/,
	'gone' => qr/no CUDA-capable device/,
	'crash' => qr/terminated by signal 6 while it opened the GPU/,
	'exit' => qr/exited with exit code 1 while it opened the GPU/);

foreach my $fault (sort keys %messages)
{
	my $before = -s $node->logfile;

	restarts_with("0 $fault");
	wait_for_service($node, 'failed');
	is(sorts($fault, $anywhere), 'the GPU service has no device 1', "$fault: reason");
	becomes($fault, '0 failed 1');
	like($node->safe_psql('postgres', 'SELECT message FROM gpusort_devices()'), $messages{$fault},
		"$fault: gpusort_devices()");
	like(status_of($node, 'service_message'), $messages{$fault}, "$fault: gpusort_status()");
	foreach my $try (2, 3, 4)
	{
		$node->reload;
		becomes("$fault, try $try", $try < 3 ? "0 failed $try" : "0 left out $try");
	}
	# Of the end of the process the log tells as such.
	my $ends = $fault =~ /crash|exit/;
	my $warnings = $ends ? 0 : 1;
	is(logged($node, qr/WARNING:  could not use GPU 0: /, $before, $warnings), $warnings,
		"$fault: one warning");
	is(logged($node, qr/WARNING:  the device process of pg_gpusort (was terminated by signal 6|exited with exit code 1)/, $before, $ends ? 4 : 0),
		$ends ? 4 : 0, "$fault: a warning for each process");
	is(logged($node, qr/LOG:  pg_gpusort sorts on the CPU: /, $before, 1), 1, "$fault: one line of the service");
	set_faults();
	$node->reload;
	wait_for_service($node);
	is(sorts("$fault, mended", $on_gpu), '', "$fault, mended: on the GPU");
	becomes("$fault, mended", '0 used 0');
}

# A driver that does not return is not waited for.
{
	restarts_with('0 hang');
	becomes('hang', '0 opening 0');
	is(sorts('hang', $anywhere), 'the GPU service is starting 1', 'hang: reason');
	kill_hung($node);
	# The reload that ends the limit has the GPU tried again.
	ok(becomes_true($node, q{SELECT state = 'opening' AND failures > 0 AND
				message = 'the device process did not respond while it opened the GPU' FROM gpusort_devices()}),
		'hang, killed: a failure of the GPU');
	set_faults();
	wait_for_service($node);
	is(sorts('hang, mended', $on_gpu), '', 'hang, mended: on the GPU');
}

# What was logged is logged again when it is something else, or had been well.
{
	my $before = -s $node->logfile;
	my @told = (
		[ 'no-code', 1 ], [ 'no-code', 1 ], [ 'wrong', 2 ], [ 'wrong', 2 ], [ 'no-code', 3 ],
		[ '', 3 ], [ 'no-code', 4 ], [ 'no-code', 4 ]);
	my $tries = 0;

	foreach my $step (@told)
	{
		my ($fault, $lines) = @$step;

		set_faults($fault eq '' ? () : "0 $fault");
		# A device process that serves does not look whether it still could.
		if ($fault ne '' && status_of($node, 'service') eq 'ready')
		{
			kill('KILL', status_of($node, 'device_process_pid'));
		}
		else
		{
			$node->reload;
		}
		if ($fault eq '')
		{
			wait_for_service($node);
			sorts('told again', $on_gpu);
			$tries = 0;
		}
		else
		{
			$tries++;
			becomes("$fault, told $lines", $tries < 3 ? "0 failed $tries" : "0 left out $tries");
		}
		is(logged($node, qr/WARNING:  could not use GPU 0: /, $before, $lines), $lines, "told $lines: of the GPU");
		is(logged($node, qr/LOG:  pg_gpusort sorts on the CPU: /, $before, $lines), $lines, "told $lines: of the service");
	}
	set_faults();
}

# It says nothing of a GPU that others use it, or its memory, however often.
foreach my $fault ('no-memory', 'busy')
{
	restarts_with("0 $fault");
	foreach my $try (1 .. 4)
	{
		wait_for_service($node, 'failed');
		becomes("$fault, try $try", '0 failed 0');
		$node->reload;
	}
	set_faults();
	$node->reload;
	wait_for_service($node);
	is(sorts("no longer $fault", $on_gpu), '', "no longer $fault: on the GPU");
}

# Another server may take the memory of a GPU that is in use, and free it again.
restarts_with();
wait_for_service($node);
set_faults('0 others 8180');
is(sorts('others have most of the memory', $anywhere), 'not enough device memory 1', 'others have most of the memory: on the CPU');
set_faults('0 others 4000');
is(sorts('others have half of the memory', $on_gpu), '', 'others have half of the memory: on the GPU');
set_faults();

# ---- One of two cannot be used ----

$ENV{GPUSORT_EMU_DEVICES} = 2;
foreach my $fault (sort keys %messages)
{
	my $pid;

	restarts_with("1 $fault");
	wait_for_service($node);
	becomes("second $fault", '0 used 0, 1 failed 1');
	is(sorts("second $fault", $on_gpu), '', "second $fault: on the first");
	next if $fault ne 'wrong';

	# The process goes on all the time, and leaves sessions alone.
	$pid = status_of($node, 'device_process_pid');
	foreach my $try (2, 3)
	{
		$node->reload;
		becomes("second $fault, try $try",
			$try < 3 ? "0 used 0, 1 failed $try" : "0 used 0, 1 left out $try");
	}
	my $cursor = Session($node, $on_gpu, 'BEGIN', 'DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k',
		'FETCH 1 FROM c');
	set_faults();
	$node->reload;
	is(sorts("second $fault, mended", $on_gpu), '', "second $fault, mended: on the first");
	becomes("second $fault, mended, a session is open", '0 used 0, 1 left out 3');
	$cursor->quit;
	becomes("second $fault, mended", '0 used 0, 1 used 3');
	is(status_of($node, 'device_process_pid'), $pid, "second $fault, mended: by the same process");
}

# ---- One of two is lost whenever it is used ----

# loses NAME: a sort meets the loss of the first GPU.
sub loses
{
	my ($name) = @_;
	my $restarts = status_of($node, 'device_process_restarts');

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(sorts($name, $anywhere), 'the GPU service was lost 1', "$name: reason");
	wait_for_restarts($restarts + 1);
	wait_for_service($node);
}

# Once the GPUs are open: what is measured then may be as large as a sort.
restarts_with();
becomes('two', '0 used 0, 1 used 0');
set_faults('0 large');
{
	my $before = -s $node->logfile;
	my $left_out = qr/WARNING:  pg_gpusort lost GPU 0: .*\n.*DETAIL:  Sorts in progress continue on the CPU\. The GPU has failed/;

	foreach my $time (1, 2)
	{
		loses("lost in use, $time");
		becomes("lost in use, $time", "0 used $time, 1 used 0");
	}
	is(logged($node, $left_out, $before), 0, 'lost in use: no word of leaving it out');
	loses('lost in use, 3');
	becomes('lost in use, 3', '0 left out 3, 1 used 0');
	is(sorts('left out', $on_gpu), '', 'left out: on the second');
	is(logged($node, qr/WARNING:  pg_gpusort lost GPU 0/, $before, 3), 3, 'left out: warnings');
	is(logged($node, $left_out, $before, 1), 1, 'left out: the last one says so');
	is(status_of($node, 'device_process_restarts'), 3, 'left out: processes that ended');
	holds_nothing($node, 'left out');

	# One more try.
	$node->reload;
	becomes('tried again', '0 used 3, 1 used 0');
	loses('tried again');
	becomes('tried again', '0 left out 4, 1 used 0');
	set_faults();
	$node->reload;
	becomes('mended', '0 used 4, 1 used 0');
	is(sorts('mended', $on_gpu), '', 'mended: on the first');
	becomes('mended, after a sort', '0 used 0, 1 used 0');

	# Failures count in a row only.
	$node->restart;
	wait_for_service($node);
	foreach my $time (1, 2)
	{
		set_faults('0 large');
		loses("now and then, $time, 1");
		loses("now and then, $time, 2");
		set_faults();
		becomes("now and then, $time", '0 used 2, 1 used 0');
		is(sorts("now and then, $time", $on_gpu), '', "now and then, $time: on the first");
		becomes("now and then, $time, after a sort", '0 used 0, 1 used 0');
	}
}

$node->stop;
done_testing();
