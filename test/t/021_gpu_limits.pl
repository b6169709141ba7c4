# LIMITs of which a GPU, which the emulator plays, could sort the rows: on the CPU if many rows are to be
# dropped, else on the GPU, also if there are more rows than were expected; faults on the way.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'},
	'max_worker_processes = 16', 'max_parallel_workers = 8');
make_table($node, 20000);
$node->safe_psql(
	'postgres', q{
	-- The planner takes each condition to be true of a third of the rows.
	ALTER TABLE big ALTER t TYPE text COLLATE "C";
	CREATE VIEW more AS SELECT * FROM big WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0;
	CREATE VIEW alike AS SELECT k, id, (repeat('alike ', 10) || k % 500) COLLATE "C" AS t FROM more;
});

my $gpu = 'SET pg_gpusort.backend = gpu; SET pg_gpusort.debug_require = node';
my $reasons = "$REASONS WHERE reason <> 'pg_gpusort.backend is cpu'";
my $few = 'GPU Not Used: LIMIT needs only some of the rows';
my $session = Session($node, $gpu);

# Queries of which some rows are wanted, and the same without ties: rows with equal keys
# are to come in the order of the table.
my %queries = (
	'a number' => [ 'SELECT * FROM more ORDER BY k', 'SELECT * FROM more ORDER BY k, id' ],
	'fixed rows' => [ 'SELECT k, id FROM more ORDER BY k DESC', 'SELECT k, id FROM more ORDER BY k DESC, id' ],
	'backwards' => [ 'SELECT * FROM more ORDER BY id DESC', 'SELECT * FROM more ORDER BY id DESC' ],
	'ties' => [ 'SELECT * FROM more ORDER BY k % 3', 'SELECT * FROM more ORDER BY k % 3, id' ],
	'ties alone' => [ 'SELECT * FROM more ORDER BY id * 0', 'SELECT * FROM more ORDER BY id' ],
	'null keys first' => [ 'SELECT * FROM more ORDER BY k NULLS FIRST', 'SELECT * FROM more ORDER BY k NULLS FIRST, id' ],
	'null keys alone' => [ 'SELECT * FROM more ORDER BY NULLIF(k, k)', 'SELECT * FROM more ORDER BY id' ],
	'text' => [ 'SELECT * FROM more ORDER BY t DESC', 'SELECT * FROM more ORDER BY t DESC, id' ],
	'text with long ties' => [ 'SELECT * FROM alike ORDER BY t', 'SELECT * FROM alike ORDER BY t, id' ]);

# first_rows QUERY, LIMIT: a query of a digest of the first rows.
sub first_rows
{
	my ($query, $limit) = @_;

	return digest("$query LIMIT $limit");
}

# as_stock NAME, QUERIES, LIMIT: the same rows in the same order.
sub as_stock
{
	my ($name, $queries, $limit) = @_;
	my $expected;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$expected = $session->run("$STOCK; " . first_rows($queries->[1], $limit));
	is($session->run("$OURS; " . first_rows($queries->[0], $limit)), $expected, "$name, LIMIT $limit: rows");
}

# ---- On the CPU or the GPU ----

foreach my $name (sort keys %queries)
{
	as_stock($name, $queries{$name}, $_) foreach 7, 600, 4000;
}
$session->run('SELECT pg_stat_gpusort_reset()');
like($session->run("$EXPLAIN SELECT * FROM big ORDER BY k LIMIT 600"), qr/Sort Method: cpu radix, top-N  Memory: \d+kB\n.*$few/s,
	'few rows are wanted: EXPLAIN');
is($session->run($reasons), '', 'few rows are wanted: no reason is counted');
is($session->run("SELECT backend, sorts, rows FROM pg_stat_gpusort WHERE sorts > 0"), 'cpu|1|20000', 'few rows are wanted: all rows are counted');
like($session->run("$EXPLAIN SELECT * FROM big ORDER BY k LIMIT 9000"), qr/Sort Method: gpu onesweep/, 'many rows are wanted: on the GPU');
like($session->run("$EXPLAIN $queries{'a number'}[0] LIMIT 600"), qr/Sort Method: gpu onesweep/, 'more rows than expected: on the GPU');
$session->run("SET pg_gpusort.work_mem = '64kB'");
like($session->run("$EXPLAIN SELECT * FROM big ORDER BY k LIMIT 2000"), qr/Sort Method: gpu onesweep/, 'too little memory for the rows: on the GPU');
$session->run('RESET pg_gpusort.work_mem');
holds_nothing($node, 'on the CPU or the GPU');

# ---- The GPU is full ----

# While rows come in, or when the last ones do, with chunks that it did not take.
foreach my $memory ('700kB', '800kB', '900kB', '1000kB', '1200kB', '1500kB', '2MB')
{
	$session->run("SET pg_gpusort.device_memory = '$memory'");
	foreach my $name ('a number', 'ties', 'null keys first', 'text with long ties')
	{
		as_stock("$memory of device memory, $name", $queries{$name}, $_) foreach 7, 4900, 6000;
	}
}
$session->run(q{SET pg_gpusort.device_memory = '800kB'; SET temp_file_limit = 0});
like($session->run("$EXPLAIN $queries{'a number'}[0] LIMIT 6000"),
	qr/Sort Method: cpu radix(, top-N)?  Memory: \d+kB\n.*GPU Not Used: not enough device memory/s, 'the GPU is full: EXPLAIN');
# The lower of two limits counts.
foreach my $limits ([ 0, '800kB' ], [ '1GB', '800kB' ], [ '800kB', '1GB' ])
{
	$session->run("SET pg_gpusort.device_memory = '$limits->[0]'; SET pg_gpusort.max_device_memory = '$limits->[1]'");
	like($session->run("$EXPLAIN $queries{'a number'}[0] LIMIT 6000"),
		qr/GPU Not Used: not enough device memory/, "limits of @$limits: EXPLAIN");
}
$session->run(q{RESET pg_gpusort.max_device_memory; SET pg_gpusort.device_memory = '800kB'});
# The rows wanted do not fit the host's memory either.
$session->run(q{RESET temp_file_limit; SET pg_gpusort.work_mem = '64kB'});
like($session->run("$EXPLAIN $queries{'a number'}[0] LIMIT 6000"),
	qr/Sort Method: external merge  Disk: .*Sort Fallback: not enough device memory/s, 'the GPU is full, and little memory: EXPLAIN');
as_stock('the GPU is full, and little memory', $queries{'a number'}, $_) foreach 300, 600, 1000, 6000;
$session->run('RESET pg_gpusort.device_memory; RESET pg_gpusort.work_mem');
holds_nothing($node, 'the GPU is full');
leaves_nothing($node, 'the GPU is full');

# ---- Faults ----

# When the rows wanted come back, and before.
foreach my $fault ('put:error:3', 'put:memory:2', 'sort:error', 'sort:memory', 'get:error:1')
{
	$session->run("SET pg_gpusort.debug_fault = '$fault'");
	as_stock("$fault, $_", $queries{$_}, 4000) foreach 'a number', 'ties', 'null keys first', 'text with long ties';
	$session->run('RESET pg_gpusort.debug_fault');
	holds_nothing($node, $fault);
}

# ---- Rows that workers send ----

my $parallel = parallel_plans(2, 'enable_gathermerge = off');
my $sinks = [ $queries{'a number'}[1], $queries{'a number'}[1] ];

$session->run("$parallel; SET temp_file_limit = 0; SELECT pg_stat_gpusort_reset()");
like($session->run("$OURS; EXPLAIN $sinks->[0] LIMIT 600"), qr/GpuSort\).*Gather.*GpuSortSink/s, 'workers: plan');
as_stock('workers', $sinks, $_) foreach 7, 600, 4000, 9000;
is($session->run($reasons), '', 'workers: on the GPU');
foreach my $memory ('700kB', '800kB', '1000kB', '1200kB', '1500kB', '2MB')
{
	$session->run("SET pg_gpusort.device_memory = '$memory'");
	as_stock("workers, $memory of device memory", $sinks, $_) foreach 7, 600, 4900;
}
$session->run('RESET pg_gpusort.device_memory');
foreach my $fault ('put:error:3', 'put:memory:2', 'sort:error', 'get:error:1')
{
	$session->run("SET pg_gpusort.debug_fault = '$fault'");
	as_stock("workers, $fault", $sinks, $_) foreach 600, 4900;
	$session->run('RESET pg_gpusort.debug_fault');
}
holds_nothing($node, 'workers');
leaves_nothing($node, 'workers');
$session->quit;

$node->stop;
done_testing();
