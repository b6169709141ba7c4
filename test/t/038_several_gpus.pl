# Sorts whose rows are spread over the memory of several GPUs, which the emulator plays: the
# rows and their order are those of stock PostgreSQL, however the cursor moves, also if
# a GPU is lost or all of them are full.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

# The server inherits it.
$ENV{GPUSORT_EMU_DEVICES} = 3;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'},
	'pg_gpusort.max_sessions_per_backend = 8',
	q{maintenance_work_mem = '64MB'}, 'wal_level = replica');
add_index_tools($node);
make_table($node, 30000);
make_halves($node);
# Three GPUs are needed, with a good margin, if each has 2400 kB.
make_plain($node, 90000);
$node->safe_psql(
	'postgres', q{
	ALTER TABLE big ALTER t TYPE text COLLATE "C";
	-- Many columns: rows are kept as whole tuples.
	CREATE TABLE wide AS SELECT k, id, t, id + 1 AS a, id + 2 AS b, id + 3 AS c, id + 4 AS d,
		id + 5 AS e, id + 6 AS f, id + 7 AS g, t || 'x' AS h, id + 8 AS i, id + 9 AS j FROM big;
	CREATE VIEW alike AS SELECT k, id, (repeat('alike ', 10) || k % 500) COLLATE "C" AS t FROM big;
	-- The planner takes each condition to be true of a third of the rows.
	CREATE VIEW more AS SELECT * FROM big WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0;
	-- Half of the rows are NULL keys, at the end.
	CREATE VIEW late AS SELECT CASE WHEN id < 15000 THEN k END AS k, id FROM big;
	ANALYZE;
});

my $session = Session($node);

# Queries, and the same without ties: rows with equal keys are to come in the order of the
# table.
my %queries = (
	'a number' => [ 'SELECT * FROM big ORDER BY k', 'SELECT * FROM big ORDER BY k, id' ],
	'fixed rows' => [ 'SELECT k, id FROM big ORDER BY k DESC', 'SELECT k, id FROM big ORDER BY k DESC, id' ],
	'backwards' => [ 'SELECT * FROM big ORDER BY id DESC', 'SELECT * FROM big ORDER BY id DESC' ],
	'in order' => [ 'SELECT * FROM big ORDER BY id', 'SELECT * FROM big ORDER BY id' ],
	'ties' => [ 'SELECT * FROM big ORDER BY k % 3', 'SELECT * FROM big ORDER BY k % 3, id' ],
	'ties alone' => [ 'SELECT * FROM big ORDER BY id * 0', 'SELECT * FROM big ORDER BY id' ],
	'null keys first' => [ 'SELECT * FROM big ORDER BY k NULLS FIRST', 'SELECT * FROM big ORDER BY k NULLS FIRST, id' ],
	'null keys alone' => [ 'SELECT * FROM big ORDER BY NULLIF(k, k)', 'SELECT * FROM big ORDER BY id' ],
	'null keys late' => [ 'SELECT * FROM late ORDER BY k DESC', 'SELECT * FROM late ORDER BY k DESC, id' ],
	'two keys' => [ 'SELECT * FROM big ORDER BY k % 7, t DESC', 'SELECT * FROM big ORDER BY k % 7, t DESC' ],
	'text' => [ 'SELECT * FROM big ORDER BY t DESC', 'SELECT * FROM big ORDER BY t DESC, id' ],
	'text with long ties' => [ 'SELECT * FROM alike ORDER BY t', 'SELECT * FROM alike ORDER BY t, id' ],
	'whole tuples' => [ 'SELECT * FROM wide ORDER BY k, h', 'SELECT * FROM wide ORDER BY k, h, id' ],
	'more than expected' => [ 'SELECT * FROM more ORDER BY k', 'SELECT * FROM more ORDER BY k, id' ]);
my %expected = map { $_ => $session->run("$STOCK; " . digest($queries{$_}[1])) } keys %queries;

# For this one, three GPUs are needed and have enough memory, with a good margin.
my $three = q{SET pg_gpusort.device_memory = '2400kB'};
my $plain = 'SELECT * FROM plain ORDER BY k DESC';
my $expected_plain = $session->run("$STOCK; " . digest($plain));

# gpus QUERY: how many GPUs have the rows of the sort, or its method if none has.
sub gpus
{
	my ($query) = @_;
	my $plan = $session->run("$OURS; $EXPLAIN $query");

	return $1 if $plan =~ /GPUs Used: (\d+)/;
	return 1 if $plan =~ /Sort Method: gpu onesweep/;
	return $plan =~ /Sort Method: ([a-z ]+[a-z])/ ? $1 : $plan;
}

# ---- Rows ----

# When a full GPU is noticed depends on the time, and so does on how many GPUs rows are,
# if the memory is scarce.  Whether all of these were seen:
my %seen;

# Of each query, the most memory of a GPU with which it has needed several.
my %memory_of;

foreach my $memory ('900kB', '1600kB', '1800kB', '2MB', '2500kB', '3MB', '4MB', '6MB', '20MB')
{
	$session->run("SET pg_gpusort.device_memory = '$memory'");
	foreach my $name (sort keys %queries)
	{
		is($session->run("$OURS; " . digest($queries{$name}[0])), $expected{$name}, "$memory, $name: rows");
		my $gpus = gpus($queries{$name}[0]);
		$seen{$gpus} = 1;
		$memory_of{$name} = $memory if $gpus =~ /^[23]$/ || !defined $memory_of{$name};
	}
}
is(join(', ', sort grep { !/cpu/ } keys %seen), '1, 2, 3, external merge', 'on one, two or three GPUs, or in runs');
holds_nothing($node, 'rows');

# Sorts on several GPUs are stable, so that ties come in the order of stock PostgreSQL.
$session->run('SET pg_gpusort.debug_stock_ties = on');
foreach my $name (sort keys %queries)
{
	my $query = digest($queries{$name}[0]);
	my $wanted = $session->run("$STOCK; $query");

	foreach my $memory ('1600kB', $memory_of{$name})
	{
		$session->run("SET pg_gpusort.device_memory = '$memory'");
		is($session->run("$OURS; $query"), $wanted, "stock ties, $memory, $name: rows");
	}
}
is($session->run("$three; $ON_GPU; " . digest($plain)), $expected_plain, 'stock ties, with enough memory: rows');
$session->run(q{RESET pg_gpusort.debug_stock_ties});

# ---- What is shown ----

$session->run("$three; SELECT pg_stat_gpusort_reset()");
like($session->run("$ON_GPU; $EXPLAIN $plain"),
	qr/Sort Method: gpu onesweep  Device Memory: \d+kB\n\s+GPUs Used: 3\n\s+->/, 'EXPLAIN');
like($session->run("$ON_GPU; EXPLAIN (ANALYZE, FORMAT JSON) $plain"), qr/"GPUs Used": 3,/, 'EXPLAIN in JSON');
is($session->run('SELECT backend, sorts, rows FROM pg_stat_gpusort WHERE sorts > 0'), 'gpu|2|180000', 'one sort each is counted');
is($session->run($REASONS), '', 'no reason is counted');
$session->run(q{SET pg_gpusort.device_memory = '20MB'});
is(gpus($plain), 1, 'one GPU if it has enough memory');

# ---- Cursors ----

my $moves = join('; ', map { /^-?\d+$/ ? 'FETCH ' . ($_ < 0 ? 'BACKWARD ' . -$_ : $_) . ' FROM c' : "$_ c" }
	  5, 300, -7, 9, 4000, -1500, 3, -3, 'MOVE ABSOLUTE 17 FROM', 5, 'FETCH ABSOLUTE 29990 FROM', 20, -20, 'FETCH LAST FROM', -2,
	'FETCH FIRST FROM', 4, 'MOVE BACKWARD ALL IN', 3, 'MOVE ALL IN', -5000, 'MOVE ABSOLUTE 12000 FROM', 2, -4, 'FETCH RELATIVE 0 FROM', 'FETCH RELATIVE -3000 FROM', 6);

foreach my $name (sort keys %queries)
{
	my $scroll = 'BEGIN; DECLARE c SCROLL CURSOR FOR';
	my $expected_moves = $session->run("$STOCK; $scroll $queries{$name}[1]; $moves; COMMIT");

	$session->run("SET pg_gpusort.device_memory = '$memory_of{$name}'");
	is($session->run("$OURS; $scroll $queries{$name}[0]; $moves; COMMIT"), $expected_moves, "cursor, $name: rows");
}
{
	my $scroll = "BEGIN; DECLARE c SCROLL CURSOR FOR $plain; $moves; MOVE ABSOLUTE 89000 IN c; FETCH 3 FROM c; FETCH BACKWARD 7000 FROM c; COMMIT";
	my $wanted = $session->run("$STOCK; $scroll");

	is($session->run("$three; $ON_GPU; $scroll"), $wanted, 'cursor, with enough memory: rows');
}

# Marks, windows, groups, rescans.
$session->run(q{SET pg_gpusort.device_memory = '1200kB'});
foreach my $name (sort keys %SORTS_BELOW)
{
	my ($query, @settings) = @{ $SORTS_BELOW{$name} };
	my $sorted = "SELECT md5(string_agg(s::text, ',' ORDER BY s::text, random())) FROM ($query) s";
	my $wanted;

	$session->run($_) foreach @settings;
	$wanted = $session->run("$STOCK; $sorted");
	is($session->run("$OURS; $sorted"), $wanted, "$name: rows");
	$session->run($_ =~ s/SET (\w+) = off/RESET $1/gr) foreach @settings;
}
{
	my $join = q{SELECT count(*), sum(a.id * b.id % 1000), sum(a.id) FROM plain a JOIN plain b ON a.k % 30000 = b.k % 30000};
	my $merge = 'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off';
	my $wanted = $session->run("$merge; $STOCK; $join");

	like($session->run("$three; $ON_GPU; $EXPLAIN $join"), qr/GPUs Used: 3.*GPUs Used: 3/s, 'marks: plan');
	is($session->run($join), $wanted, 'marks: rows');
	$session->run('RESET enable_hashjoin; RESET enable_nestloop; RESET enable_material');
}
holds_nothing($node, 'cursors');

# ---- Sessions of devices ----

{
	my $cursor = Session($node, $ON_GPU, $three);

	$cursor->run("BEGIN; DECLARE c CURSOR FOR $plain; FETCH 10 FROM c");
	is(value_of($node, q{SELECT string_agg(sessions::text, ' ' ORDER BY ordinal, random()) FROM gpusort_devices()}),
		'1 1 1', 'a session on each device');
	is(status_of($node, 'sessions'), 3, 'three sessions');
	$cursor->quit;
}
holds_nothing($node, 'sessions');

# ---- Devices that have no memory, or are lost ----

# Of the sessions of a sort, one fails.
my %ends = (
	'put:error:3' => 'the device reported an error 1',
	'sort:error:1' => 'the device reported an error 1',
	'sort:memory:1' => 'not enough device memory 1',
	'put:lost:2' => 'the GPU service was lost 1',
	'sort:crash:1' => 'the GPU service was lost 1',
	'get:lost:1' => 'the GPU service was lost 1');

foreach my $fault (sort keys %ends)
{
	foreach my $number (1 .. 3)
	{
		my $name = "$fault in session $number";
		my $failing;

		$node->restart if $fault =~ /lost|crash/;
		wait_for_service($node);
		$failing = Session($node, $OURS, $three, "SET pg_gpusort.debug_fault = '$fault:$number'");
		value_of($node, 'SELECT pg_stat_gpusort_reset()');
		is($failing->run(digest($plain)), $expected_plain, "$name: rows");
		is(value_of($node, $REASONS), $ends{$fault}, "$name: counted");
		$failing->quit;
		wait_for_service($node);
		holds_nothing($node, $name);
	}
}
$session->quit;
$session = Session($node);

# A session cannot be opened, or is full at once: the rows overflow.
foreach my $fault ('open:memory:1:2', 'open:memory:1:3', 'put:memory:1:2', 'put:memory:1:3', 'put:memory:5:2', 'put:memory:8:1')
{
	$session->run("$three; SET pg_gpusort.debug_fault = '$fault'");
	foreach my $name (sort keys %queries)
	{
		is($session->run("$OURS; " . digest($queries{$name}[0])), $expected{$name}, "$fault, $name: rows");
	}
	$session->run('RESET pg_gpusort.debug_fault');
	holds_nothing($node, $fault);
}
leaves_nothing($node, 'overflow');

# ---- Index builds ----

$session->run(q{SET max_parallel_maintenance_workers = 0});
foreach my $memory ('1200kB', '1800kB', '2MB')
{
	$session->run("SET pg_gpusort.device_memory = '$memory'");
	foreach my $keys ('(k)', '(t, k DESC)', '((k % 3), id)')
	{
		like($session->run("SELECT check_build('CREATE INDEX built ON big $keys', 'node')"), qr/^same, level [12]$/, "$memory, index $keys");
	}
}
holds_nothing($node, 'index builds');

$node->stop;
done_testing();
