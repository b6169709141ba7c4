# Sessions whose sorted rows nobody reads for a while: the rows go to a file, and the device memory
# is free.  Whoever reads on gets the same rows, whatever happens meanwhile; if the file cannot be
# written, they stay on the device.
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

# Chunks of 64 kB.
my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'}, 'max_worker_processes = 16',
	'max_parallel_workers = 8', 'enable_incremental_sort = off');
make_table($node, 20000);
make_halves($node);
my $timeout = q{SET pg_gpusort.idle_session_timeout = '20ms'};
my $lost = qr/58000: could not read the remaining rows of a sort/;

# is_parked NAME: tests that sessions give their device memory back.
sub is_parked
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(becomes_true($node, q{SELECT value::int8 <= 262144 FROM gpusort_status() WHERE name = 'device_memory_in_use'}),
		"$name: the device memory is free");
	isnt(status_of($node, 'sessions'), '0', "$name: the sessions are open");
}

# read_in_two QUERY, SETTINGS, NAME: returns the rows of a cursor, which is idle after some.
sub read_in_two
{
	my ($query, $settings, $name) = @_;
	my $session = Session($node, $settings, "BEGIN; DECLARE c CURSOR FOR $query");
	my $rows = $session->run('FETCH 10 FROM c') . "\n";

	is_parked($name) if defined $name;
	$rows .= $session->run('FETCH 9000 FROM c') . "\n" . $session->run('FETCH ALL FROM c');
	$session->quit;
	return $rows;
}

# ---- Rows ----

foreach my $name (sort keys %GPU_QUERIES)
{
	my $query = $GPU_QUERIES{$name};

	is(read_in_two($query, "$ON_GPU; $timeout", $name) eq read_in_two($query, $STOCK), 1, "$name: rows");
}

# Any chunk can be asked for again, from the file as well.
my @moves = ('FETCH 3 FROM c', 'FETCH LAST FROM c', 'FETCH BACKWARD 5000 FROM c', 'FETCH ABSOLUTE 9999 FROM c',
	'FETCH BACKWARD 3 FROM c', 'FETCH FIRST FROM c', 'MOVE ALL IN c', 'FETCH BACKWARD ALL FROM c');
my $scroll = 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM halves ORDER BY k, id';
my $stock = Session($node, $STOCK, $scroll);
my $session = Session($node, $ON_GPU, $timeout, $scroll);
foreach my $move (@moves)
{
	is($session->run($move) eq $stock->run($move), 1, "scroll: $move");
	is_parked("scroll: $move");
}
$_->quit foreach $session, $stock;

# Both inputs of a merge join, one of which goes back to marks.
my $join = 'SELECT a.id, b.id FROM halves a JOIN halves b USING (k) WHERE a.id % 3 = 0';
my $merge = 'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off';
like($node->safe_psql('postgres', "$ON_GPU; $merge; EXPLAIN DECLARE c CURSOR FOR $join"), qr/Merge Join.*GpuSort.*GpuSort/s, 'marks: plan');
is(join("\n", sort split(/\n/, read_in_two($join, "$ON_GPU; $timeout; $merge", 'marks'))) eq
	  join("\n", sort split(/\n/, read_in_two($join, "$STOCK; $merge"))), 1, 'marks: rows');
holds_nothing($node, 'rows');
leaves_nothing($node, 'rows');

# Several processes that read one session.
add_stops($node, 5);
my $parallel = parallel_plans(3, 'pg_gpusort.debug_divide = on', 'cpu_tuple_cost = 1');
my $divided = 'SELECT count(*), sum(hashtext(concat(id, n, t))::int8) FROM
	(SELECT id, t, stopping(n) AS n FROM (SELECT id, t, row_number() OVER (PARTITION BY id % 400 ORDER BY k, id) AS n FROM halves) r OFFSET 0) s';
my $expected = $node->safe_psql('postgres', "$STOCK; $divided");
my $stops = hold_stops($node);
$session = Session($node, $ON_GPU, $timeout, $parallel);
like($session->run("EXPLAIN $divided"), qr/Divided By/, 'several readers: plan');
$session->begin($divided);
wait_for_stop($node, $session, 2);
is_parked('several readers');
$stops->quit;
is($session->finish, $expected, 'several readers: rows');
$session->quit;

# A part of the rows did not fit, and is on disk anyway.
$session = Session($node, $ON_GPU =~ s/gpu$/node/r, $timeout);
$session->run(q{SET pg_gpusort.device_memory = '1MB'; SET pg_gpusort.work_mem = '64kB'; BEGIN;
	DECLARE c CURSOR FOR SELECT * FROM big WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0 ORDER BY k, id});
my $overflow = $session->run('FETCH 10 FROM c');
usleep(100_000);
$overflow .= "\n" . $session->run('FETCH ALL FROM c');
is($overflow eq $node->safe_psql('postgres', "$STOCK; SELECT * FROM big ORDER BY k, id"), 1, 'an overflow: rows');
$session->quit;
holds_nothing($node, 'readers');
leaves_nothing($node, 'readers');

# ---- Interruptions ----

# Clients that ask and close while rows are on their way to the file, or just before or after.
{
	my $query = $GPU_QUERIES{'half of the keys null'};
	my @expected = split(/\n/, $node->safe_psql('postgres', "$STOCK; $query"));
	my $wrong = 0;

	$session = Session($node, $ON_GPU, q{SET pg_gpusort.idle_session_timeout = '1ms'}, 'BEGIN');
	foreach my $round (1 .. 20)
	{
		my @got;

		$session->run("DECLARE c CURSOR FOR $query");
		while (@got < 1000 * $round)
		{
			push @got, split(/\n/, $session->run('FETCH 1000 FROM c'));
			usleep(500 * ($round % 7));
		}
		$wrong++ if "@got" ne "@expected[0 .. $#got]";
		$session->run('CLOSE c');
	}
	is($wrong, 0, 'rows are read and cursors closed at any time');
	$session->quit;
}
holds_nothing($node, 'interruptions');

# Who waits for nobody is not parked; who is parked has a file of the size of the rows.
{
	my $stays = Session($node, $ON_GPU, 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM halves ORDER BY k, id; FETCH 10 FROM c');
	my $goes = Session($node, $ON_GPU, $timeout, 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM halves ORDER BY k, id; FETCH 10 FROM c');
	my ($stay, $go) = map { $_->pid } $stays, $goes;

	ok( becomes_true($node, qq{
			SELECT bool_or(pid = $stay AND state = 'sorted' AND device_memory > 0 AND file_bytes = 0) AND
				   bool_or(pid = $go AND state = 'parked' AND device_memory = 0 AND file_bytes > 20000 * 8)
			FROM gpusort_sessions()}),
		'only a session with a timeout is parked');
	$_->quit foreach $stays, $goes;
}

# Nobody but the kernel knows the file.
my $held = 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM halves ORDER BY k, id; FETCH 10 FROM c';
$session = Session($node, $ON_GPU, $timeout, $held);
is_parked('a session');
leaves_nothing($node, 'a session that is parked');
crash_device($node);
like($session->run('FETCH ALL FROM c'), $lost, 'the device process is killed: an error');
$session->quit;
wait_for_service($node);
foreach my $stop ('fast', 'immediate')
{
	$session = Session($node, $ON_GPU, $timeout, $held);
	is_parked("a $stop stop");
	$node->stop($stop);
	eval { $session->quit };
	$node->start;
	wait_for_service($node);
	holds_nothing($node, "a $stop stop");
	leaves_nothing($node, "a $stop stop");
}

# A file that has lost its rows.
SKIP:
{
	skip 'no files of processes can be seen', 2 unless -d '/proc/self/fd';
	my $directory = '/proc/' . status_of($node, 'device_process_pid') . '/fd';

	$session = Session($node, $ON_GPU, $timeout, $held);
	is_parked('a file that is cut off');
	my @files = grep { (readlink($_) // '') =~ /pgsql_tmp.*deleted/ } glob("$directory/*");
	is(scalar(@files), 1, 'there is a file');
	truncate($_, 0) or die "could not truncate: $!" foreach @files;
	my $before = -s $node->logfile;
	like($session->run('FETCH ALL FROM c'), $lost, 'a file that is cut off: an error');
	is(logged($node, qr/GPU 0 could not sort: could not read rows of an idle session from a file/, $before, 1), 1,
		'a file that is cut off: the log says it');
	$session->quit;
}

# ---- No file ----

# stays NAME, SETTING: tests that rows that cannot be written stay, and that the log says so once.
sub stays
{
	my ($name, $setting) = @_;
	my $before = -s $node->logfile;
	my $message = qr/LOG:  .*could not write rows of an idle session of GPU 0 to a temporary file: /;
	my $cursor = 'SELECT * FROM halves ORDER BY k, id';
	my $holder = Session($node, $ON_GPU, $timeout, $setting, "BEGIN; DECLARE c CURSOR FOR $cursor");
	my $rows = $holder->run('FETCH 10 FROM c') . "\n";

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(logged($node, $message, $before, 1), 1, "$name: the log says that it cannot be written");
	cmp_ok(status_of($node, 'device_memory_in_use'), '>', 262144, "$name: the rows are on the device");
	$rows .= $holder->run('FETCH 100 FROM c') . "\n" . $holder->run('FETCH ALL FROM c');
	is($rows eq $node->safe_psql('postgres', "$STOCK; $cursor"), 1, "$name: rows");
	$holder->quit;
	holds_nothing($node, $name);
}

my $directory = $node->data_dir . '/base/pgsql_tmp';
rmdir($directory);
append_to_file($directory, 'This is no directory.');
stays('no directory', 'SELECT 1');
unlink($directory);
stays("park:error:$_", "SET pg_gpusort.debug_fault = 'park:error:$_'") foreach 1, 2, 7;
ok(!-e "$directory/x" && !glob("$directory/*"), 'no file is left');

# The process dies or hangs in the middle.
foreach my $fault ('park:crash:3', 'park:hang:3')
{
	my $restarts = status_of($node, 'device_process_restarts');

	$session = Session($node, $ON_GPU, $timeout, "SET pg_gpusort.debug_fault = '$fault'",
		$held);
	kill_hung($node) if $fault =~ /hang/;
	becomes_true($node, "SELECT value::int > $restarts FROM gpusort_status() WHERE name = 'device_process_restarts'")
	  or die 'the device process does not end';
	like($session->run('FETCH ALL FROM c'), $lost, "$fault: an error");
	$session->quit;
	wait_for_service($node);
	holds_nothing($node, $fault);
	leaves_nothing($node, $fault);
}

$node->stop;
done_testing();
