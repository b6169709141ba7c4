# GPUs that are lost at any time, that cannot sort, or that are lost whenever they
# are used: sorts go to the CPU or to another GPU, and it is said why.  The emulator
# plays the GPUs, with faults that the test writes to a file.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

# The servers inherit it.
my $faults = PostgreSQL::Test::Utils::tempdir() . '/faults';
$ENV{GPUSORT_EMU_FAULTS} = $faults;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'});
my $on_gpu = 'SET pg_gpusort.debug_require = gpu';
my $anywhere = 'SET pg_gpusort.debug_require = node';
my $query = q{SELECT count(*), md5(string_agg(s::text, ',')) FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s};
my $reasons = q{SELECT string_agg(reason || ' ' || sorts, ', ' ORDER BY reason, random()) FROM pg_stat_gpusort_fallbacks};
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

# How often a pattern is in the server's log from a place on.
sub logged
{
	my ($pattern, $from) = @_;
	my @found = slurp_file($node->logfile, $from) =~ /$pattern/g;

	return scalar(@found);
}

# sorts NAME, SETTINGS: a sort comes out right, and returns what was counted.
sub sorts
{
	my ($name, $settings) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql('postgres', 'SELECT pg_stat_gpusort_reset()');
	is($node->safe_psql('postgres', "$settings; $query"), $expected, "$name: rows");
	return $node->safe_psql('postgres', $reasons);
}

sub wait_for_restarts
{
	my ($restarts) = @_;

	$node->poll_query_until('postgres',
		"SELECT value::int >= $restarts FROM gpusort_status() WHERE name = 'device_process_restarts'")
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
	set_faults("0 $fault $pid");
	is(sorts($name, $anywhere), 'the GPU service was lost 1', "$name: reason");
	wait_for_restarts($restarts + 1);
	wait_for_service($node);
	is(sorts("after $name", $on_gpu), '', "after $name: on the GPU");
	is(logged(qr/WARNING:  pg_gpusort lost a GPU: could not/, $before), 1, "$name: one warning");
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
	$node->poll_query_until('postgres',
		'SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = $$PgSleep$$');
	like($cancelled->finish, qr/57014: canceling statement due to user request/, "$name: cancelled");
	$cancelled->run('ROLLBACK');
	$cancelled->quit;
	wait_for_restarts($restarts + 1);
	wait_for_service($node);
	is(sorts("after $name", $on_gpu), '', "after $name: on the GPU");
	is(logged(qr/WARNING:  pg_gpusort lost a GPU: could not/, $before), 1, "$name: one warning");
	holds_nothing($node, $name);
}

$node->stop;
done_testing();
