# Several GPUs, which the emulator plays: sorts go to the one with more memory to
# spare or fewer sessions, and sessions of all of them are lost with one.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

# The servers inherit it.
$ENV{GPUSORT_EMU_DEVICES} = 2;
$ENV{GPUSORT_EMU_HEALTH} = '71 2';

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '8MB'}, q{work_mem = '64MB'});
my $on_gpu = 'SET pg_gpusort.debug_require = gpu';
my $anywhere = 'SET pg_gpusort.debug_require = node';
my $query = q{SELECT count(*), md5(string_agg(s::text, ',')) FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s};
my $cursor = 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k, id; FETCH 3000 FROM c';
my $rest = 'MOVE 10000 IN c; FETCH ALL FROM c; COMMIT';
my $expected;
my $expected_rest;
my %sessions;

make_table($node, 20000);
$expected = $node->safe_psql('postgres', "SET pg_gpusort.enable = off; $query");
$expected_rest = Session($node, 'SET pg_gpusort.enable = off')->run("$cursor; $rest");

# Of a column of gpusort_devices(), by number.
sub devices
{
	my ($column) = @_;

	return $node->safe_psql('postgres', "SELECT string_agg(($column)::text, ' ' ORDER BY ordinal, random()) FROM gpusort_devices()");
}

# A cursor on a connection of its own.
sub open_cursor
{
	my ($name) = @_;

	$sessions{$name} = Session($node, $on_gpu);
	return $sessions{$name}->run($cursor);
}

sub close_cursor
{
	my ($name) = @_;
	my $output = $sessions{$name}->run($rest);

	$sessions{$name}->quit;
	delete $sessions{$name};
	return $output;
}

# becomes NAME, SESSIONS: a test of the sessions that the devices have after some
# moments.
sub becomes
{
	my ($name, $wanted) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	becomes_true($node, "SELECT string_agg(sessions::text, ' ' ORDER BY ordinal, random()) = '$wanted' FROM gpusort_devices()");
	is(devices('sessions'), $wanted, "$name: sessions");
}

# ---- Both are used ----

is(devices('ordinal'), '0 1', 'two devices');
is(devices('sessions'), '0 0', 'no sessions');
ok(becomes_true($node, 'SELECT bool_and(temperature = 71 AND memory_errors = 2) FROM gpusort_devices()'), 'what the driver says of them');
is($node->safe_psql('postgres', "$on_gpu; $query"), $expected, 'a sort');
my %first;
foreach my $n (1 .. 6)
{
	$first{$n} = open_cursor("c$n");
	becomes("$n cursors", join(' ', int(($n + 1) / 2), int($n / 2)));
}
is(devices('free_memory < total_memory'), 'true true', 'both have rows');
is($node->safe_psql('postgres', "$on_gpu; $query"), $expected, 'a sort beside cursors');

# The device with fewer sessions is next.
foreach my $n (1, 3)
{
	is($first{$n} . "\n" . close_cursor("c$n"), $expected_rest, "cursor $n, on the first device: rows");
}
becomes('two cursors less', '1 3');
open_cursor('c7');
becomes('a cursor more', '2 3');
open_cursor('c8');
becomes('two cursors more', '3 3');
foreach my $n (2, 4, 6)
{
	is($first{$n} . "\n" . close_cursor("c$n"), $expected_rest, "cursor $n, on the second device: rows");
}
becomes('the first device alone', '3 0');
$first{9} = open_cursor('c9');
becomes('a cursor on the other one', '3 1');
foreach my $n (5, 7, 8, 9)
{
	close_cursor("c$n");
}
becomes('all closed', '0 0');
holds_nothing($node, 'all closed');

# A device with much less memory is not taken though it has fewer sessions: the
# planner's estimate of the rows is what speaks for memory.
{
	my $large = Session($node, $on_gpu);
	my $small;

	$node->safe_psql('postgres', q{
		CREATE TABLE guessed AS SELECT g AS k, g AS id FROM generate_series(1, 1000) g;
		CREATE FUNCTION many() RETURNS SETOF int8 LANGUAGE plpgsql STABLE ROWS 130000000
			AS $$ BEGIN
				RETURN NEXT 1;
				PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1);
				RETURN NEXT 2;
			END $$});
	# The large sort waits for its input until this ends.
	my $holding = Session($node, 'SELECT pg_advisory_lock(1)');

	open_cursor('d1');
	becomes('before a large sort', '1 0');
	$large->begin('SELECT count(*) FROM (SELECT * FROM many() m ORDER BY m OFFSET 0) s');
	becomes('a large sort, on the second device', '1 1');
	open_cursor('d2');
	becomes('memory counts', '2 1');
	open_cursor('d3');
	becomes('memory counts still', '3 1');
	$holding->quit;
	is($large->finish, '2', 'a large sort: rows');
	$large->quit;
	becomes('after a large sort', '3 0');
	open_cursor('d4');
	becomes('the second device is next', '3 1');
	close_cursor("d$_") foreach 1 .. 4;
	holds_nothing($node, 'memory');
}

# ---- One is lost ----

foreach my $way ('lost', 'crash')
{
	my $restarts = status_of($node, 'device_process_restarts');
	my $failing;

	$first{$_} = open_cursor("e$_") foreach 1 .. 4;
	becomes("$way: before", '2 2');
	$failing = Session($node, $anywhere, "SET pg_gpusort.debug_fault = 'sort:$way'");
	is($failing->run($query), $expected, "$way: the sort that meets it");
	$failing->quit;
	becomes_true($node, "SELECT value::int = $restarts + 1 FROM gpusort_status() WHERE name = 'device_process_restarts'");
	foreach my $n (1 .. 4)
	{
		like(close_cursor("e$n"), qr/ERROR:  58000: could not read the remaining rows of a sort/, "$way: cursor $n ends with an error");
	}
	wait_for_service($node);
	holds_nothing($node, $way);
	is(devices('ordinal'), '0 1', "$way: two devices again");
	is($node->safe_psql('postgres', "$on_gpu; $query"), $expected, "$way: the next sort");
	$node->restart;
	wait_for_service($node);
}

# ---- The setting ----

foreach my $devices ('1', '0', '0,1', 'all')
{
	my @numbers = $devices eq 'all' ? (0, 1) : split(/,/, $devices);

	$node->append_conf('postgresql.conf', "pg_gpusort.devices = '$devices'");
	$node->restart;
	wait_for_service($node);
	is(devices('ordinal'), "@numbers", "devices = '$devices'");
	open_cursor("f$_") foreach 1 .. 4;
	becomes("devices = '$devices'", @numbers == 1 ? '4' : '2 2');
	is($node->safe_psql('postgres', "$on_gpu; $query"), $expected, "devices = '$devices': a sort");
	close_cursor("f$_") foreach 1 .. 4;
	holds_nothing($node, "devices = '$devices'");
}

$node->stop;
done_testing();
