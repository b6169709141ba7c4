# Sorts on a GPU, which the emulator plays, whose rows parallel workers put into
# the session: rows, faults, and ends.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'},
	'max_worker_processes = 16', 'max_parallel_workers = 8');
make_table($node, 20000);
make_halves($node);
$node->safe_psql(
	'postgres', q{
	CREATE TABLE parts (k int4, id int, t text) PARTITION BY RANGE (id);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (3000);
	CREATE TABLE parts_2 (t text, dropped int, id int NOT NULL, k int4);
	ALTER TABLE parts_2 DROP dropped;
	ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (3000) TO (15000);
	CREATE TABLE parts_3 PARTITION OF parts DEFAULT;
	INSERT INTO parts SELECT k, id, t FROM halves;
	CREATE FUNCTION sum_in_order() RETURNS numeric LANGUAGE plpgsql AS $$
	DECLARE
		r record;
		n numeric := 0;
	BEGIN
		FOR r IN SELECT k, id FROM big ORDER BY k, id LOOP
			n := (n * 31 + r.id) % 1000000007;
		END LOOP;
		RETURN n;
	END $$;
	ANALYZE halves, parts;
});

# All sorts over a Gather that can be.
my $parallel = parallel_plans(3, 'enable_gathermerge = off');
my $on_gpu = 'SET pg_gpusort.debug_require = gpu';
my $anywhere = 'SET pg_gpusort.debug_require = node';
my $ours = 'SET pg_gpusort.enable = on';
my $reasons = "$REASONS WHERE reason <> 'pg_gpusort.backend is cpu'";
my $sink = qr/Custom Scan \(GpuSort\).*Gather.*Custom Scan \(GpuSortSink\)/s;
my $lost = 'the GPU service was lost';

my $session = Session($node, $parallel);

# as_stock NAME, QUERY, SETTINGS, REQUIRE: a plan with a sink, and the rows of
# stock PostgreSQL in their order; the keys must leave no ties.
sub as_stock
{
	my ($name, $query, $settings, $require) = @_;
	my $expected;

	$require //= $on_gpu;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->run($settings) if defined $settings;
	$expected = $session->run("$STOCK; $query");
	unlike($expected, qr/ERROR/, "$name: stock");
	like($session->run("$ours; $require; EXPLAIN (VERBOSE) $query"), $sink, "$name: plan");
	is($session->run($query), $expected, "$name: rows");
	$session->run("RESET ALL; $parallel") if defined $settings;
}

# ---- Rows and keys ----

my %sorts = (
	%PARALLEL_QUERIES,
	'half of the keys null, fixed rows' => 'SELECT k, id, b, f FROM halves ORDER BY k, id',
	'expressions in the list' => q{SELECT k * 2 AS kk, t || '!' AS tt, id FROM big ORDER BY kk, id},
	'keys alone' => 'SELECT k FROM big ORDER BY k',
	'columns in another order' => 'SELECT t, id, k FROM big ORDER BY k, id',
	'a column twice' => 'SELECT id, id AS again, k FROM big ORDER BY k, again',
	'key columns twice' => 'SELECT id, k, k AS again, id AS other FROM big ORDER BY k, id',
	'a left join' => 'SELECT a.id, b.k, b.t FROM big a LEFT JOIN (SELECT * FROM halves WHERE b) b USING (id) ORDER BY b.k, a.id',
	'partitions' => 'SELECT * FROM parts ORDER BY k, id',
	'partitions, fewer columns' => 'SELECT t, k, id FROM parts WHERE id > 100 ORDER BY k DESC, id',
	'rows of a type of their own' => 'SELECT ROW(k, t) AS r, id FROM halves ORDER BY k, id');

foreach my $name (sort keys %sorts)
{
	as_stock($name, digest($sorts{$name}));
}
as_stock('a query', $sorts{'variable rows'});
$session->run('CREATE INDEX halves_id ON halves (id)');
as_stock('a nested loop', digest('SELECT a.k, a.id, b.t FROM big a JOIN halves b ON b.id = a.id ORDER BY a.k, a.id'),
	'SET enable_hashjoin = off; SET enable_mergejoin = off');
as_stock('a merge join of sorts', digest('SELECT a.k, a.id, b.t FROM big a JOIN halves b ON b.id = a.id ORDER BY a.k, a.id'),
	'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_indexscan = off', $anywhere);
as_stock('a parallel append',
	digest('SELECT * FROM (SELECT k, id FROM big UNION ALL SELECT k, -id FROM halves) u ORDER BY k, id'));
as_stock('an append by turns', digest($sorts{'partitions'}), 'SET enable_parallel_append = off');
foreach my $settings ('', 'SET enable_hashagg = off', 'SET enable_partitionwise_aggregate = on')
{
	foreach my $query ('SELECT k, count(*), sum(id) FROM big GROUP BY k ORDER BY sum(id), k',
		'SELECT id, count(*) AS n, max(t) FROM parts GROUP BY id ORDER BY n, id',
		'SELECT DISTINCT k, id % 7 AS m FROM halves ORDER BY m, k')
	{
		my $expected = $session->run("$settings; $STOCK; " . digest($query));

		is($session->run("$ours; $anywhere; " . digest($query)), $expected, "aggregates, $settings: $query");
	}
	$session->run("RESET ALL; $parallel");
}
holds_nothing($node, 'rows');

# ---- Plans ----

as_stock('a subquery', 'SELECT count(*), sum(place * id) FROM (SELECT id, row_number() OVER () AS place
	FROM (SELECT id FROM big ORDER BY k, id OFFSET 0) s) s');
as_stock('a common table', 'WITH s AS MATERIALIZED (SELECT * FROM big ORDER BY k, id)
	SELECT md5(string_agg(a.id::text, $$ $$)), (SELECT count(*) FROM s) FROM s a');
as_stock('a window', digest('SELECT id, row_number() OVER (ORDER BY k, id) FROM big'));
as_stock('different keys', 'SELECT count(*), count(DISTINCT k) FROM halves');
as_stock("percentiles by $_", "SELECT percentile_disc(array[0.7, 0, 0.31, 1, 0.999, 0.5]) WITHIN GROUP (ORDER BY $_) FROM halves")
	foreach 'k', 'n', 't', 't DESC', '-f', q{'a long prefix of a text ' || id};
as_stock($_, digest($SORTS_BELOW{$_}[0]), $SORTS_BELOW{$_}[1], $anywhere) foreach sort keys %SORTS_BELOW;
as_stock('sorts side by side', digest('SELECT * FROM (SELECT k, id FROM big ORDER BY k, id OFFSET 0) a
	UNION ALL SELECT * FROM (SELECT k, id FROM halves ORDER BY k DESC, id OFFSET 0) b'));
foreach my $nodes ('SET enable_indexscan = off', 'SET enable_indexscan = off; SET enable_material = off; SET enable_memoize = off')
{
	as_stock("rescans, $nodes", digest('SELECT g, s.id FROM generate_series(1, 4) g
		CROSS JOIN LATERAL (SELECT id FROM halves WHERE id < 5000 ORDER BY k, id OFFSET 0) s'), $nodes);
	as_stock("rescans of parts, $nodes", digest('SELECT g, s.id FROM generate_series(1, 4) g
		CROSS JOIN LATERAL (SELECT id FROM halves ORDER BY k, id LIMIT 19000) s'), $nodes);
}
as_stock("LIMIT: $_", digest($LATE_LIMITS{$_}), 'SET enable_material = off', $anywhere) foreach sort keys %LATE_LIMITS;
like($session->run("EXPLAIN (ANALYZE, BUFFERS OFF) $sorts{'fixed rows'}"),
	qr/Sort Method: gpu onesweep.*Sort Phases.*Gather .*rows=0(\.00)? .*Workers Launched: 3.*GpuSortSink.*rows=0(\.00)? .*loops=4.*\n *Rows Sent: 20000\n *->.*Seq Scan on big.*rows=\d+(\.00)? .*loops=[1-4]/s,
	'EXPLAIN ANALYZE');
like($session->run("EXPLAIN (ANALYZE, VERBOSE, BUFFERS) $sorts{'a hash join'}"),
	qr/Sort Key: b\.k, a\.k, a\.id.*GpuSortSink.*Output: a\.k, b\.t, a\.id, b\.k.*Worker 0:/s,
	'EXPLAIN ANALYZE, VERBOSE');
{
	my $json = $session->run("EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) $sorts{'partitions'}");

	like($json, qr/"Custom Plan Provider": "GpuSortSink"/, 'EXPLAIN ANALYZE, JSON');
	is($node->safe_psql('postgres', "SELECT json_typeof(\$json\$$json\$json\$)"), 'array',
		'EXPLAIN ANALYZE, JSON: a document');
}

# What the sinks have sent: all together, and by worker.  One that comes late has sent no rows.
foreach my $leader ('on', 'off')
{
	my $explain = "SET parallel_leader_participation = $leader;
		EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT %s) $sorts{'fixed rows'}";
	my $text = $session->run(sprintf($explain, 'TEXT'));
	my $json = $session->run(sprintf($explain, 'JSON'));
	my $sum = 0;

	like($text, qr/GpuSortSink\).*\n *Output: .*\n *Rows Sent: 20000\n( *Worker \d:  Rows Sent: \d+\n){3}/,
		"rows sent, leader $leader: text");
	$sum += $_ foreach $text =~ /Worker \d:  Rows Sent: (\d+)/g;
	cmp_ok($sum, $leader eq 'on' ? '<=' : '==', 20000, "rows sent, leader $leader: workers");
	is($node->safe_psql('postgres', "SELECT sink->'Rows Sent', jsonb_array_length(sink->'Sink Workers'),
			(SELECT sum((worker->>'Rows Sent')::int) FROM jsonb_array_elements(sink->'Sink Workers') worker) <= 20000
		FROM jsonb_path_query(\$json\$$json\$json\$, 'strict \$.**.\"Plans\"[*] ? (\@.\"Custom Plan Provider\" == \"GpuSortSink\")') sink"),
		'20000|3|t', "rows sent, leader $leader: JSON");
	like($session->run(sprintf($explain, 'YAML')), qr/^ +Rows Sent: 20000\n +Sink Workers: *\n +- Worker Number: 0\n +Rows Sent: \d+\n/m,
		"rows sent, leader $leader: YAML");
	like($session->run(sprintf($explain, 'XML')), qr/<Sink-Worker>\s*<Worker-Number>0<.*<Rows-Sent>\d+<.*<\/Sink-Workers>/s,
		"rows sent, leader $leader: XML");
}
$session->run('SET max_parallel_workers = 0');
like($session->run("EXPLAIN (ANALYZE, VERBOSE, BUFFERS OFF) $sorts{'fixed rows'}"), qr/Rows Sent: 20000\n *->/, 'rows sent: no workers');
$session->run("RESET ALL; $parallel");
is($session->run("$ours; SELECT sum_in_order()"), $session->run("$STOCK; SELECT sum_in_order()"),
	'a loop in a function');
$session->run("$ours; $on_gpu");
is($session->run(join('; ', 'BEGIN', "DECLARE c CURSOR FOR $sorts{'fixed rows'}", 'FETCH 300 FROM c',
	'MOVE 19000 IN c', 'FETCH ALL FROM c', 'COMMIT')),
	$session->run(join('; ', $STOCK, 'BEGIN', "DECLARE c CURSOR FOR $sorts{'fixed rows'}", 'FETCH 300 FROM c',
	'MOVE 19000 IN c', 'FETCH ALL FROM c', 'COMMIT', $ours, $on_gpu)), 'a cursor');
$session->run('CREATE TEMP TABLE made AS SELECT row_number() OVER () AS place, s.*
	FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s');
is($session->run('SELECT count(*) FROM (SELECT place, row_number() OVER (ORDER BY k, id) AS p FROM made) s WHERE p <> place'),
	'0', 'CREATE TABLE AS');

# Sorts with parameters, and plans that are executed with another backend.
$session->run('SET plan_cache_mode = force_generic_plan;
	PREPARE p(int) AS ' . digest('SELECT * FROM big WHERE id <= $1 ORDER BY k, id'));
like($session->run('EXPLAIN EXECUTE p(9)'), $sink, 'prepared: plan');
foreach my $rows (20000, 10, 0, 15000)
{
	my $expected = $session->run("$STOCK; " . digest("SELECT * FROM big WHERE id <= $rows ORDER BY k, id") . "; $ours");

	is($session->run("$on_gpu; EXECUTE p($rows)"), $expected, "prepared, $rows rows");
	is($session->run("SET pg_gpusort.backend = cpu; SET pg_gpusort.debug_require = cpu; EXECUTE p($rows);
		SET pg_gpusort.backend = gpu"), $expected, "prepared, executed on the CPU, $rows rows");
}
$session->run('DEALLOCATE p; RESET plan_cache_mode');
holds_nothing($node, 'plans');

# ---- Workers that are not there ----

my $variable = digest($sorts{'variable rows'});
my $fixed = digest($sorts{'half of the keys null, fixed rows'});
foreach my $settings (
	'SET max_parallel_workers = 0',
	'SET max_parallel_workers = 1',
	'SET parallel_leader_participation = off',
	'SET parallel_leader_participation = off; SET max_parallel_workers = 0',
	'SET max_parallel_workers_per_gather = 1',
	'SET max_parallel_workers_per_gather = 8')
{
	as_stock("$settings, variable rows", $variable, $settings);
	as_stock("$settings, fixed rows", $fixed, $settings);
	as_stock("$settings, a join", digest($sorts{'a hash join'}), $settings);
	$session->run("$ours; $settings; SET enable_material = off");
	as_stock("$settings, rescans", digest('SELECT g, s.id FROM generate_series(1, 3) g
		CROSS JOIN LATERAL (SELECT id FROM halves ORDER BY k, id LIMIT 19000) s'), $settings);
}
foreach my $mode ('on', 'regress')
{
	my $setting = $node->pg_version->major < 16 ? 'force_parallel_mode' : 'debug_parallel_query';
	my $expected = $session->run("$STOCK; $variable; $ours");

	is($session->run("SET $setting = $mode; $anywhere; SET max_parallel_workers_per_gather = 2"), '',
		"$setting = $mode");
	is($session->run($variable), $expected, "$setting = $mode: rows");
	is($session->run("SET max_parallel_workers_per_gather = 0; $variable"), $expected,
		"$setting = $mode, no other workers: rows");
	$session->run("RESET ALL; $parallel");
}
$session->run("$ours; $anywhere; SET pg_gpusort.debug_stock_ties = on");
like($session->run("EXPLAIN (ANALYZE) $sorts{'variable rows'}"), qr/Gather.*rows=20000(\.00)? .*GpuSortSink/s,
	'stock\'s ties: the rows are passed on');
unlike($session->run("EXPLAIN (ANALYZE) $variable"), qr/Rows Sent/, 'stock\'s ties: no row is sent');
is($session->run($variable), $session->run("$STOCK; $variable"), 'stock\'s ties: rows');
my $counts_of_sinks = q{SELECT sorts, parallel_sorts, page_scans FROM pg_stat_gpusort WHERE backend = 'gpu'};
my $ties = 'SELECT k % 3 AS k, id FROM big ORDER BY k';
$session->run("$ours; $on_gpu; SELECT pg_stat_gpusort_reset()");
$session->run($variable);
is($session->run($counts_of_sinks), '1|0|0', 'stock\'s ties: not from the workers');

# Nor from a single one.
foreach my $query ($ties, $sorts{'half of the keys null'})
{
	$session->run('SET max_parallel_workers_per_gather = 1; SET parallel_leader_participation = off');
	$session->run("$ours; $on_gpu; SELECT pg_stat_gpusort_reset()");
	is($session->run(digest($query)), $session->run("$STOCK; " . digest($query)), "stock ties, one worker: rows of $query");
	is($session->run($counts_of_sinks), '1|0|0', "stock ties, one worker: counts of $query");
}
$session->run("RESET ALL; $parallel");
$session->run("$ours; $on_gpu; SET max_parallel_workers_per_gather = 3; SELECT pg_stat_gpusort_reset()");
$session->run($variable);
like($session->run($counts_of_sinks), qr/^1\|1\|[1234]$/, 'counts of sinks');
$session->run("RESET ALL; $parallel");
holds_nothing($node, 'without workers');

# ---- Faults ----

# New device processes come later and later, unless the server is new.
sub new_server
{
	$session->quit if defined $session;
	$node->restart;
	wait_for_service($node);
	$session = Session($node, $parallel, $anywhere);
}

my %expected = map { $_ => $session->run("$STOCK; " . digest($sorts{$_})) }
  ('variable rows', 'half of the keys null, fixed rows', 'a hash join');
my $all_rows = $session->run("$STOCK; $sorts{'variable rows'}");
my %counts = ('crash' => "$lost 1", 'lost' => "$lost 1",
	'error' => 'the device reported an error 1', 'memory' => 'not enough device memory 1');

new_server();
foreach my $action ('error', 'memory', 'crash', 'lost')
{
	foreach my $point ('open:1', 'put:1', 'put:3', 'put:8', 'sort:1', 'get:1')
	{
		(my $fault = $point) =~ s/:/:$action:/;

		foreach my $name (sort keys %expected)
		{
			next if $point eq 'put:8' && $name ne 'variable rows';
			next if $action =~ /crash|lost/ && $name ne 'variable rows' && $point ne 'put:3';
			new_server() if $action =~ /crash|lost/;
			$session->run("SELECT pg_stat_gpusort_reset(); SET pg_gpusort.debug_fault = '$fault'");
			is($session->run(digest($sorts{$name})), $expected{$name}, "$fault, $name: rows");
			is($session->run($reasons), $counts{$action}, "$fault, $name: counted");
			$session->run('RESET pg_gpusort.debug_fault');
			wait_for_service($node);
			holds_nothing($node, "$fault, $name");
			is($session->run("$on_gpu; " . digest($sorts{$name}) . "; $anywhere"), $expected{$name},
				"$fault, $name: the next sort is on the GPU");
		}
	}
	leaves_nothing($node, $action);

	# Gather returns other rows first the next time.
	new_server() if $action =~ /crash|lost/;
	$session->run("SELECT pg_stat_gpusort_reset(); SET pg_gpusort.debug_fault = 'get:$action:7'");
	like($session->run($sorts{'variable rows'}), qr/ERROR:  58000: could not read the remaining rows of a sort/,
		"get:$action:7: an error after rows were returned");
	is($session->run($reasons), $counts{$action}, "get:$action:7: counted");
	$session->run('RESET pg_gpusort.debug_fault');
	wait_for_service($node);
	holds_nothing($node, "get:$action:7");
}

# Input that cannot be read a second time: what is lost is an error.
{
	my $query = 'SELECT volatile_id(id) AS id, k, t FROM big ORDER BY k, id';
	my $rows = $session->run("CREATE FUNCTION volatile_id(id int8) RETURNS int8 VOLATILE PARALLEL SAFE LANGUAGE plpgsql AS
		'BEGIN RETURN id; END'; $STOCK; $query");

	like($session->run("$ours; $on_gpu; EXPLAIN (ANALYZE) $query"),
		qr/gpu onesweep.*Rows Sent: 20000$/ms, 'a volatile function: all processes put rows');
	ok($session->run($query) eq $rows, 'a volatile function: rows');
	$session->run($anywhere);
	foreach my $fault ('put:error:1', 'put:error:3', 'put:crash:4', 'sort:error', 'get:error:1')
	{
		new_server() if $fault =~ /crash/;
		$session->run("SELECT pg_stat_gpusort_reset(); SET pg_gpusort.debug_fault = '$fault'");
		like($session->run($query), qr/ERROR:  58000: could not sort rows that cannot be read a second time/, "a volatile function, $fault: an error");
		is($session->run($reasons), $counts{ ($fault =~ /:(\w+)/)[0] }, "a volatile function, $fault: counted");
		$session->run('RESET pg_gpusort.debug_fault');
		wait_for_service($node);
		holds_nothing($node, "a volatile function, $fault");
		leaves_nothing($node, "a volatile function, $fault");
	}
	# A device that is full has lost nothing.
	$session->run("SET pg_gpusort.debug_fault = 'put:memory:3'");
	ok($session->run($query) eq $rows, 'a volatile function, put:memory:3: rows');
	$session->run('RESET pg_gpusort.debug_fault');

	# Nor has one that cannot take a row: one that is longer than a chunk, or than a sorted one.
	foreach my $wide ([15000, 70000, ''], [2, 60000, '::varchar(70000)'])
	{
		my ($id, $bytes, $type) = @$wide;
		my $long = digest(qq{SELECT volatile_id(id) AS id, k, repeat('x', CASE WHEN id = $id THEN $bytes ELSE 10 END)$type FROM big ORDER BY k, id});

		is($session->run($long), $session->run("$STOCK; $long; $ours; $anywhere"), "a volatile function, a row of $bytes bytes: rows");
	}
}

# A fault and then too little memory for a memory sort.
foreach my $fault ('put:error:3', 'sort:error', 'get:error:1')
{
	$session->run("SET pg_gpusort.debug_fault = '$fault'; SET pg_gpusort.work_mem = '256kB'");
	is($session->run($variable), $expected{'variable rows'}, "$fault, then an overflow: rows");
	$session->run('RESET pg_gpusort.debug_fault; RESET pg_gpusort.work_mem');
	holds_nothing($node, "$fault, then an overflow");
	leaves_nothing($node, "$fault, then an overflow");
}

# The device is full, and a row is longer than a chunk.
foreach my $limit ('800kB', '1500kB')
{
	$session->run("$ours; SELECT pg_stat_gpusort_reset(); SET pg_gpusort.device_memory = '$limit'");
	is($session->run($variable), $expected{'variable rows'}, "$limit of device memory: rows");
	is($session->run($reasons), $counts{'memory'}, "$limit of device memory: counted");
	$session->run('RESET pg_gpusort.device_memory');
	holds_nothing($node, "$limit of device memory");
}
foreach my $leader ('on', 'off')
{
	my $long = digest(q{SELECT id, k, repeat('x', CASE WHEN id = 15000 THEN 70000 ELSE 10 END) FROM big ORDER BY k, id});

	$session->run("SELECT pg_stat_gpusort_reset(); SET parallel_leader_participation = $leader");
	like($session->run("EXPLAIN $long"), $sink, "a row longer than a chunk, leader $leader: plan");
	is($session->run($long), $session->run("$STOCK; $long; $ours; $anywhere"), "a row longer than a chunk, leader $leader: rows");
	is($session->run($reasons), 'a row is too long for pg_gpusort.pool_size 1', "a row longer than a chunk, leader $leader: counted");
	$session->run('RESET parallel_leader_participation');
	holds_nothing($node, "a row longer than a chunk, leader $leader");
}

# A worker's own error.
like($session->run(digest('SELECT id, 1 / (id - 12345) AS d FROM big ORDER BY d, id')), qr/ERROR:  22012: division by zero/,
	'an error below the sink');
holds_nothing($node, 'an error below the sink');

# ---- Ends ----

# All processes wait at their first rows.
add_stops($node, 0);
my $halting = 'SELECT count(*), sum(id) FROM (SELECT id, k FROM big WHERE halting(k) IS NOT NULL ORDER BY k, id OFFSET 0) s';

like($session->run("$on_gpu; EXPLAIN $halting"), $sink, 'halting rows: plan');
foreach my $end ('worker terminated', 'leader cancelled', 'leader terminated')
{
	my $ending = Session($node, $parallel, $on_gpu);
	my $stops = hold_stops($node);
	my $worker = 'SELECT max(pid) FROM (' . stopped($ending) . ') w WHERE pid <> ' . $ending->pid;

	$ending->begin($halting);
	wait_for_stop($node, $ending, 4);
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(($worker))") if $end eq 'worker terminated';
	ends_well($node, $ending, $stops, $end, $end);
	holds_nothing($node, $end);
	is($session->run("$on_gpu; $variable"), $expected{'variable rows'}, "$end: the next sort");
}

# ... while the device hangs at put.
foreach my $end ('cancel', 'terminate', 'timeout')
{
	my $ending = Session($node, $parallel, $on_gpu, q{SET pg_gpusort.debug_fault = 'put:hang:2'});
	my $output;

	$ending->run(q{SET statement_timeout = '700ms'}) if $end eq 'timeout';
	$ending->begin($variable);
	if ($end ne 'timeout')
	{
		# A wait event of an extension has no name of its own before PostgreSQL 17.
		ok( becomes_true($node, q{
				SELECT count(*) > 0 FROM pg_stat_activity
				WHERE wait_event ~ 'Extension|GpuSort' AND } . $ending->pid . ' IN (pid, leader_pid)'),
			"put hangs, $end: a process waits");
		$node->safe_psql('postgres', "SELECT pg_${end}_backend(" . $ending->pid . ')');
	}
	$output = $ending->finish;
	like($output, $end eq 'timeout' ? qr/57014: canceling statement due to statement timeout/ :
		  $end eq 'cancel' ? qr/57014: canceling statement due to user request/ :
		  qr/FATAL:  57P01: terminating connection/, "put hangs, $end: error");
	$ending->quit;
	holds_nothing($node, "put hangs, $end");
	is($session->run("$on_gpu; $variable"), $expected{'variable rows'}, "put hangs, $end: the next sort");
}

# The device process is killed while workers wait for rows, and in a crowd.
{
	my $sum = $session->run("$STOCK; $halting; $ours; $anywhere");
	my $restarts;
	my $stops;

	new_server();
	$restarts = status_of($node, 'device_process_restarts');
	$stops = hold_stops($node);
	$session->begin($halting);
	wait_for_stop($node, $session, 4);
	crash_device($node);
	$stops->quit;
	is($session->finish, $sum, 'killed while workers put: rows');
	wait_for_service($node);
	is(status_of($node, 'device_process_restarts') - $restarts, 1, 'killed while workers put: counted');
	holds_nothing($node, 'killed while workers put');
}

# ---- More processes than chunks ----

$node->append_conf('postgresql.conf', q{pg_gpusort.pool_size = '1MB'});
new_server();
is(status_of($node, 'session_slots'), '2', 'the smallest pool');
$session->run('SET max_parallel_workers_per_gather = 8; ALTER TABLE halves SET (parallel_workers = 8)');
like($session->run("EXPLAIN (ANALYZE) $sorts{'half of the keys null'}"), qr/Workers Launched: 8/, 'the smallest pool: workers');
{
	my $halves = digest(q{SELECT a.*, g, repeat(chr(97 + g), 100) FROM halves a, generate_series(1, 5) g ORDER BY k, id, g});
	my $sum = $session->run("$STOCK; $halves; $ours; $on_gpu");
	my @crowd = map { Session($node, $parallel, $anywhere, 'SET max_parallel_workers_per_gather = 4') } 1 .. 4;

	like($session->run("EXPLAIN $halves"), $sink, 'the smallest pool: plan');
	foreach my $time (1 .. 3)
	{
		is($session->run($halves), $sum, "the smallest pool, both parts, $time: rows");
	}
	$_->begin("$halves; $halves") foreach @crowd;
	foreach my $other (@crowd)
	{
		is($other->finish, "$sum\n$sum", 'the smallest pool, a crowd: rows');
		$other->quit;
	}
	holds_nothing($node, 'the smallest pool');

	# Nor are chunks there that the sort of a cursor keeps.
	my $holder = Session($node, $on_gpu, 'SET max_parallel_workers_per_gather = 0');
	$holder->run("BEGIN; DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k; FETCH 5 FROM c");
	is($session->run($halves), $sum, 'the smallest pool, beside a cursor: rows');
	$holder->quit;
	holds_nothing($node, 'the smallest pool, beside a cursor');
}
$session->quit;

$node->stop;
done_testing();
