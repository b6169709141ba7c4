# Sorts of more rows than fit in the memory of GPUs, which the emulator plays, and in that of
# processes; whether this is known before they begin or not.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

# The server inherits it.
$ENV{GPUSORT_EMU_DEVICES} = 2;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, 'pg_gpusort.max_sessions_per_backend = 8', q{pg_gpusort.work_mem = '512kB'},
	'max_worker_processes = 16', 'max_parallel_workers = 8', 'restart_after_crash = on');
make_table($node, 60000);
make_halves($node);
make_plain($node, 150000);
$node->safe_psql(
	'postgres', q{
	-- A crash of the server must not empty it.
	ALTER TABLE big SET LOGGED;
	ALTER TABLE plain SET (parallel_workers = 3);
	ALTER TABLE big SET (parallel_workers = 3);
	ALTER TABLE halves SET (parallel_workers = 3);
	ANALYZE;
	-- The planner takes each condition to be true of a third of the rows.
	CREATE VIEW more AS SELECT * FROM plain WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0 AND id + 4 > 0;
	CREATE VIEW more_big AS SELECT * FROM big WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0;
	CREATE VIEW more_halves AS SELECT * FROM halves WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0;
});
add_stops($node, 140000);

my $parallel = parallel_plans(3, 'enable_gathermerge = off');
# All of the rows do not fit, and those of a process do not either.
my $small = q{SET pg_gpusort.device_memory = '2400kB'};
my $reasons = "$REASONS WHERE reason <> 'pg_gpusort.backend is cpu'";
my $plain = 'SELECT * FROM plain ORDER BY k DESC';
my $session = Session($node, $parallel, $small);
my $expected_plain = $session->run("$STOCK; " . digest($plain));

# ---- Too many rows for the GPUs ----

{
	my $once = digest('SELECT * FROM (SELECT *, random() < 2 AS r FROM plain OFFSET 0) p ORDER BY k DESC, id');

	foreach my $workers (0, 3)
	{
		$session->run("SET max_parallel_workers_per_gather = $workers; SET pg_gpusort.device_memory = '600kB'");
		like($session->run("$OURS; $EXPLAIN $plain"),
			qr/Sort Method: external merge(, shared)?  Disk: \d+kB\n.*Sort Fallback: rows exceeded pg_gpusort.work_mem\n\s+GPU Not Used: not enough device memory/s,
			"$workers workers: EXPLAIN");
		is($session->run("$OURS; " . digest($plain)), $expected_plain, "$workers workers: rows");
	}
	same_as_stock($session, $once, 'rows that come once: rows');
	$session->run("SET max_parallel_workers_per_gather = 3; $small");
	$session->quit;
}

# ---- More rows than expected ----

# All processes put rows into one session, until its GPU has no room.
my %more = (
	'fixed rows' => 'SELECT k, id FROM more_big ORDER BY k, id',
	'variable rows' => 'SELECT * FROM more_big ORDER BY k, id',
	'nulls first' => 'SELECT * FROM more_halves ORDER BY k NULLS FIRST, id',
	'null keys alone' => 'SELECT * FROM more_halves ORDER BY NULLIF(k, k), id',
	'text' => 'SELECT * FROM more_halves ORDER BY t COLLATE "C", id',
	'whole rows' => 'SELECT h.*, h.* FROM more_halves h ORDER BY n, id',
	'few rows' => 'SELECT * FROM more_big ORDER BY k, id LIMIT 20000',
	'plain' => 'SELECT * FROM more ORDER BY k DESC');
my $more = $more{'plain'};

$session = Session($node, $parallel);
foreach my $leader ('off', 'on')
{
	$session->run("SET parallel_leader_participation = $leader");
	foreach my $workers ($leader eq 'on' ? (1, 3) : (3))
	{
		$session->run("SET max_parallel_workers_per_gather = $workers");
		foreach my $memory ('900kB', '2400kB')
		{
			$session->run("SET pg_gpusort.device_memory = '$memory'");
			foreach my $name (sort keys %more)
			{
				my $query = digest($more{$name});

				same_as_stock($session, $query, "more rows, $workers workers, leader $leader, $memory, $name: rows");
			}
		}
	}
	$session->run('SELECT pg_stat_gpusort_reset()');
	like($session->run("$small; $OURS; $EXPLAIN $more"), qr/Sort Method: external merge, shared/,
		"more rows, leader $leader: EXPLAIN");
	like($session->run("$OURS; $EXPLAIN $more"), qr/Sort Fallback: not enough device memory\n(\s+Buffers: [^\n]*\n)?\s+->  Gather.*Rows Sent: 150000\n.*Seq Scan on plain \(actual rows=\S+ loops=[34]\)/s,
		"more rows, leader $leader: the input is read once");
	is($session->run($reasons), 'not enough device memory 2', "more rows, leader $leader: counted");
	is($session->run('SELECT sum(parallel_sorts) FROM pg_stat_gpusort'), '2', "more rows, leader $leader: parallel sorts");
}
holds_nothing($node, 'more rows');
leaves_nothing($node, 'more rows');

# Rows are read again and backward; a temp_file_limit; a query that ends early.
$session->run('RESET parallel_leader_participation');
{
	my $cursor = "BEGIN; DECLARE c SCROLL CURSOR FOR $more; MOVE 140000 FROM c; FETCH BACKWARD 3 FROM c; MOVE BACKWARD 100000 FROM c;
		FETCH 3 FROM c; FETCH LAST FROM c; COMMIT";
	my $lateral = "SELECT g, s.* FROM generate_series(1, 3) g, LATERAL (SELECT count(*), sum(id * n) FROM
		(SELECT id, row_number() OVER (ORDER BY k) AS n FROM more) w WHERE n % 2 = g % 2) s";
	my $early = "BEGIN; DECLARE c CURSOR FOR $more; FETCH 5 FROM c; CLOSE c; COMMIT";

	same_as_stock($session, $_, "more rows: $_") foreach $cursor, $lateral, $early;
	# GPUs are full, but rows fit in memory.  In one process, the last chunk may be the first one that is refused.
	$session->run("SET temp_file_limit = 0; SET work_mem = '64MB'; SET pg_gpusort.work_mem = '64MB'");
	is($session->run("$OURS; " . digest($more)), $expected_plain, 'more rows, no files allowed');
	$session->run('SET max_parallel_workers_per_gather = 0; SELECT pg_stat_gpusort_reset()');
	foreach my $last (82000, 90000, 150000)
	{
		my $first_rows = "SELECT * FROM more WHERE id <= $last ORDER BY k DESC";

		same_as_stock($session, digest($first_rows), "more rows in one process, no files allowed, $last");
	}
	is($session->run($reasons), 'not enough device memory 3', 'more rows, no files allowed: counted');
	$session->run('RESET temp_file_limit; RESET work_mem; RESET pg_gpusort.work_mem; SET max_parallel_workers_per_gather = 3');
}
holds_nothing($node, 'more rows are read again');
leaves_nothing($node, 'more rows are read again');

# A process is late: it comes to the session when the others have gone on to runs, and it has rows in chunks.
foreach my $leader ('on', 'off')
{
	foreach my $stop (140000, 149990)
	{
		my $late = "SELECT * FROM more WHERE stopping(CASE WHEN id = $stop THEN 140000 ELSE id + 140000 END) > 0 ORDER BY k DESC";
		my $stops = hold_stops($node);

		$session->run("SET parallel_leader_participation = $leader");
		$session->begin("$OURS; " . digest($late));
		wait_for_stop($node, $session, 1);
		$stops->quit;
		is($session->finish, $expected_plain, "a process is late at $stop, leader $leader: rows");
	}
}
# A worker has sorted all rows by itself when the other processes come.
$session->run(q{RESET parallel_leader_participation; SET pg_gpusort.work_mem = '64MB'; SET pg_gpusort.debug_fault = 'host:late:1000'});
is($session->run("$OURS; " . digest('SELECT * FROM more ORDER BY k DESC')), $expected_plain, 'all but one are late: rows');
like($session->run("$OURS; $EXPLAIN SELECT * FROM more ORDER BY k DESC"), qr/rows=150000.*Sort Fallback: not enough device memory/s,
	'all but one are late: EXPLAIN');
$session->quit;
holds_nothing($node, 'a process is late');

foreach my $end (grep { $_ ne 'timeout' } @ENDS)
{
	my $ending = Session($node, $parallel, $small, $OURS, 'SET parallel_leader_participation = off');
	my $stops = hold_stops($node);

	$ending->begin(digest('SELECT * FROM more WHERE stopping(id) > 0 ORDER BY k DESC'));
	wait_for_stop($node, $ending, 1);
	ends_well($node, $ending, $stops, $end, "more rows, $end");
	wait_for_service($node);
	holds_nothing($node, "more rows, $end");
}

foreach my $fault ('put:error:2', 'put:lost:3', 'put:memory:2', 'sort:error', 'sort:crash', 'get:lost', 'get:error:2')
{
	foreach my $leader ('on', 'off')
	{
		{
			my $name = "more rows, $fault, leader $leader";
			my $failing;

			$node->restart if $fault =~ /lost|crash/;
			wait_for_service($node);
			$failing = Session($node, $parallel, $small, $OURS, "SET parallel_leader_participation = $leader",
				"SET pg_gpusort.debug_fault = '$fault'");
			is($failing->run(digest($more)), $expected_plain, "$name: rows");
			$failing->quit;
			wait_for_service($node);
			holds_nothing($node, $name);
			leaves_nothing($node, $name);
		}
	}
}

# The device process ends while a worker with rows in a chunk is late, and the leader has written its runs.
{
	my $failing = Session($node, $parallel, $small, 'SET max_parallel_workers_per_gather = 1',
		"SET statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'");
	my $leader = $failing->pid;
	my $others = "FROM pg_stat_activity WHERE leader_pid = $leader";
	# The third row of each page has the number 3, and so on.
	my $late = "SELECT k, id FROM plain WHERE " . join(' AND ', map { "id + $_ > 0" } 0 .. 4) .
		' AND halting_apart((ctid::text::point)[1]) > 0 ORDER BY k DESC';
	my ($stop_leader, $stop_worker, $device);

	# The leader waits for lock 1000 and the worker for lock 1001, when they have put some rows of a page.
	$node->safe_psql('postgres', qq{
		CREATE FUNCTION halting_apart(row_of_page float8) RETURNS float8 STABLE PARALLEL SAFE LANGUAGE plpgsql AS \$\$
		DECLARE
			lock int := CASE pg_backend_pid() WHEN $leader THEN 1000 ELSE 1001 END;
		BEGIN
			IF row_of_page = 20 THEN
				PERFORM pg_advisory_lock_shared(lock);
				PERFORM pg_advisory_unlock_shared(lock);
			END IF;
			RETURN row_of_page;
		END \$\$});
	$stop_leader = hold_stops($node);
	$stop_worker = Session($node, 'SELECT pg_advisory_lock(1001)');
	$failing->begin("SELECT pg_stat_gpusort_reset(); $OURS; " . digest($late));
	ok(becomes_true($node, "SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event = 'advisory' AND $leader IN (pid, leader_pid)"),
		'lost while a worker is late: both read rows');
	$stop_leader->quit;
	ok(becomes_true($node, "SELECT phase = 'merging runs' FROM pg_stat_progress_gpusort WHERE pid = $leader"),
		'lost while a worker is late: the leader has written runs');
	$device = status_of($node, 'device_process_pid');
	kill 'STOP', $device;
	$stop_worker->quit;
	ok(becomes_true($node, "SELECT wait_event IN ('Extension', 'GpuSortPool') $others"), 'lost while a worker is late: it waits');
	crash_device($node);
	is($failing->finish =~ s/^\n//r, $expected_plain, 'lost while a worker is late: rows');
	like($failing->run($reasons), qr/the GPU service was lost 1/, 'lost while a worker is late: counted');
	$failing->quit;
	wait_for_service($node);
	holds_nothing($node, 'lost while a worker is late');
	leaves_nothing($node, 'lost while a worker is late');
}

$node->stop;
done_testing();
