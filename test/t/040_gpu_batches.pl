# Sorts of more rows than fit in the memory of GPUs and in that of processes, which the GPU, played
# by the emulator, sorts in batches.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

# The server inherits it.
$ENV{GPUSORT_EMU_DEVICES} = 2;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{pg_gpusort.work_mem = '512kB'},
	'max_worker_processes = 16', 'max_parallel_workers = 8', 'restart_after_crash = on');
make_table($node, 60000);
make_halves($node);
$node->safe_psql(
	'postgres', q{
	-- A crash of the server must not empty it.
	ALTER TABLE big SET LOGGED;
	CREATE TABLE plain AS SELECT (g * 7919::int8) % 150001 AS k, g::int8 AS id FROM generate_series(1, 150000) g;
	ALTER TABLE plain SET (parallel_workers = 3);
	ALTER TABLE big SET (parallel_workers = 3);
	ALTER TABLE halves SET (parallel_workers = 3);
	ANALYZE;
});
add_stops($node, 140000);

my $parallel = parallel_plans(3, 'enable_gathermerge = off');
# All of the rows do not fit, and those of a process do not either.
my $small = q{SET pg_gpusort.device_memory = '2400kB'};
my $ours = 'SET pg_gpusort.enable = on; SET pg_gpusort.debug_require = node';
my $stock = 'SET pg_gpusort.debug_require = off; SET pg_gpusort.enable = off';
my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';
my $reasons = q{SELECT string_agg(reason || ' ' || sorts, ', ' ORDER BY reason, random())
	FROM pg_stat_gpusort_fallbacks WHERE reason <> 'pg_gpusort.backend is cpu'};
my $plain = 'SELECT * FROM plain ORDER BY k DESC';
my $session = Session($node, $parallel, $small);
my $expected_plain = $session->run("$stock; " . digest($plain));

# A query whose processes wait at a row near the end.
my $stopping = 'SELECT * FROM plain WHERE stopping(id) > 0 ORDER BY k DESC';

# ---- Rows ----

my %queries = (
	'fixed rows' => 'SELECT k, id FROM big ORDER BY k, id',
	'variable rows' => 'SELECT * FROM big ORDER BY k, id',
	'descending' => 'SELECT * FROM big ORDER BY k DESC, id',
	'nulls first' => 'SELECT * FROM halves ORDER BY k NULLS FIRST, id',
	'half of the keys null' => 'SELECT * FROM halves ORDER BY k, id',
	'null keys alone' => 'SELECT * FROM halves ORDER BY NULLIF(k, k), id',
	'text' => 'SELECT * FROM halves ORDER BY t COLLATE "C", id',
	'whole rows' => 'SELECT h.*, h.* FROM halves h ORDER BY n, id',
	'few rows' => 'SELECT * FROM big ORDER BY k, id LIMIT 20000',
	'plain' => $plain);
my %batches;

foreach my $workers (0, 1, 3)
{
	$session->run("SET max_parallel_workers_per_gather = $workers");
	foreach my $memory ('600kB', '1200kB', '2400kB')
	{
		$session->run("SET pg_gpusort.device_memory = '$memory'");
		foreach my $name (sort keys %queries)
		{
			my $query = digest($queries{$name});

			is($session->run("$ours; $query"), $session->run("$stock; $query"), "$workers workers, $memory, $name: rows");
			$batches{$workers} = 1 if $session->run("$ours; $explain $queries{$name}") =~ /GPU Batches: \d/;
		}
	}
	ok($batches{$workers}, "$workers workers: batches on a GPU");
}
holds_nothing($node, 'rows');
leaves_nothing($node, 'rows');

# ---- What is shown ----

$session->run("SET max_parallel_workers_per_gather = 3; $small; SELECT pg_stat_gpusort_reset()");
like($session->run("$ours; $explain $plain"),
	qr/Sort Method: external merge, shared  Disk: \d+kB\n.*Sort Fallback: rows exceeded pg_gpusort.work_mem\n.*Worker \d:.*GPU Batches: \d.*Sort Method/s, 'EXPLAIN');
unlike($session->run("$ours; $explain $plain"), qr/GPU Not Used/, 'EXPLAIN: a GPU is used');
like($session->run("$ours; EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) $plain"), qr/"GPU Batches": \d/, 'EXPLAIN as JSON');
is($session->run($reasons), 'not enough device memory 3, rows exceeded pg_gpusort.work_mem 3', 'counted');
# Each process has a part of the memory.
{
	my $stops = hold_stops($node);

	$session->begin("$ours; " . digest($stopping));
	wait_for_stop($node, $session, 1);
	cmp_ok(status_of($node, 'device_memory_in_use'), '<=', 2 * 2400 * 1024, 'device memory');
	$stops->quit;
	is($session->finish, $expected_plain, 'device memory: rows');
}
# Other sorts have no room.
like($session->run("SET pg_gpusort.device_memory = '64kB'; $ours; $explain $plain"), qr/external merge, shared.*GPU Not Used: not enough device memory/s, 'no room');
$session->run($small);
unlike($session->run("SET pg_gpusort.work_mem = '64MB'; $ours; $explain $plain"), qr/GPU Batches/, 'enough memory');
$session->run('RESET pg_gpusort.work_mem');
holds_nothing($node, 'what is shown');

# Rows are read again, backward, and from a mark.
foreach my $workers (0, 3)
{
	my $cursor = qq{SET max_parallel_workers_per_gather = $workers;
		BEGIN; DECLARE c SCROLL CURSOR FOR $plain; MOVE 140000 FROM c; FETCH BACKWARD 3 FROM c; MOVE BACKWARD 100000 FROM c;
		FETCH 3 FROM c; FETCH LAST FROM c; COMMIT};
	my $join = 'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off;
		SELECT count(*), sum(a.id * b.id) FROM plain a JOIN plain b USING (k)';

	is($session->run("$ours; $cursor"), $session->run("$stock; $cursor"), "$workers workers, a cursor");
	is($session->run("$ours; $join"), $session->run("$stock; $join"), "$workers workers, a join");
}
$session->quit;

# ---- Ends ----

foreach my $end (grep { $_ ne 'timeout' } @ENDS)
{
	# So it is a worker that waits.
	my $ending = Session($node, $parallel, $small, $ours, 'SET parallel_leader_participation = off');
	my $stops = hold_stops($node);

	$ending->begin(digest($stopping));
	wait_for_stop($node, $ending, 1);
	end_session($node, $ending, $end);
	like($ending->finish, error_of_end($end), "$end: error");
	$_->quit foreach $ending, $stops;
	wait_for_end($node);
	wait_for_service($node);
	holds_nothing($node, $end);
	leaves_nothing($node, $end);
}

# ---- Faults ----

foreach my $fault ('open:error', 'put:error:2', 'put:lost:1', 'put:memory:2', 'sort:error', 'sort:memory', 'sort:crash', 'get:error', 'get:lost', 'get:error:2')
{
	foreach my $workers (0, 3)
	{
		foreach my $loss ('auto', 'copy', 'error')
		{
			my $name = "$fault, $workers workers, on_gpu_loss = $loss";
			my $failing;

			$node->restart if $fault =~ /lost|crash/;
			wait_for_service($node);
			$failing = Session($node, $parallel, $small, $ours, "SET max_parallel_workers_per_gather = $workers",
				"SET pg_gpusort.on_gpu_loss = $loss", "SET pg_gpusort.debug_fault = '$fault'");
			is($failing->run(digest($plain)), $expected_plain, "$name: rows");
			$failing->quit;
			wait_for_service($node);
			holds_nothing($node, $name);
			leaves_nothing($node, $name);
		}
	}
}

# Rows that cannot be read a second time.
foreach my $loss ('auto', 'error')
{
	my $failing = Session($node, $ours, $small, "SET pg_gpusort.on_gpu_loss = $loss");
	my $once = digest('SELECT * FROM (SELECT *, random() < 2 AS r FROM plain OFFSET 0) p ORDER BY k DESC, id');
	my $expected = $failing->run("$stock; $once");
	my $outcome = $loss eq 'auto' ? qr/^\Q$expected\E$/ : qr/could not sort rows that cannot be read a second time/;

	is($failing->run("$ours; $once"), $expected, "rows that come once, on_gpu_loss = $loss: rows");
	like($failing->run("SET pg_gpusort.debug_fault = 'put:error:2'; $ours; $once"), $outcome, "rows that come once, lost, on_gpu_loss = $loss");
	$failing->quit;
	holds_nothing($node, "rows that come once, $loss");
	leaves_nothing($node, "rows that come once, $loss");
}

$node->stop;
done_testing();
