# Sorts without a GPU, whose rows parallel processes sort together, or each its own, which
# workers then leave as runs to the leader: rows, plans, and ends.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'},
	q{pg_gpusort.backend = 'cpu'}, 'pg_gpusort.min_rows = 0', q{work_mem = '64MB'},
	'max_worker_processes = 16', 'max_parallel_workers = 8', 'log_temp_files = 0');
make_table($node, 20000);
make_halves($node);
$node->safe_psql('postgres', 'ANALYZE halves');
add_stops($node, 7);

# All sorts over a Gather that can be.
my $parallel = parallel_plans(3, 'enable_gathermerge = off');
my $in_memory = 'SET pg_gpusort.enable = on; SET pg_gpusort.debug_require = cpu';
my $sink = qr/Custom Scan \(GpuSort\).*Gather.*Custom Scan \(GpuSortSink\)/s;
my $counts = q{SELECT string_agg(concat_ws(' ', backend, sorts, rows, parallel_sorts), ', ' ORDER BY backend, random())
	FROM pg_stat_gpusort WHERE sorts > 0};
# Where every process waits with its first row until all are there.
my $together = 'WHERE halting(id) IS NOT NULL';
my $leaderless = 'SET parallel_leader_participation = off';
my $shared = qr/Sort Method: cpu radix, shared  Memory: \d+kB\n/;

my $session = Session($node, $parallel);

# run_together STATEMENT, PROCESSES: run it with so many processes, each of which gets
# some of the rows, if it has that condition.
sub run_together
{
	my ($statement, $processes) = @_;
	my $stops = hold_stops($node);

	$session->begin($statement);
	wait_for_stop($node, $session, $processes // 4) if $statement =~ /halting/;
	$stops->quit;
	return $session->finish;
}

# as_stock NAME, QUERY, SETTINGS, REQUIRE: a plan with a sink, and the rows of
# stock PostgreSQL in their order; the keys must leave no ties.
sub as_stock
{
	my ($name, $query, $settings, $require) = @_;
	my $expected;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->run($settings) if defined $settings;
	$expected = $session->run("$STOCK; $query");
	unlike($expected, qr/ERROR/, "$name: stock");
	$require //= $in_memory;
	like($session->run("$require; EXPLAIN (VERBOSE) $query"), $sink, "$name: plan");
	is(run_together($query, $name =~ /participation = off/ ? 3 : 4), $expected, "$name: rows");
	leaves_nothing($node, $name);
	$session->run("RESET ALL; $parallel") if defined $settings;
}

# ---- Rows and keys ----

my %sorts = (
	%PARALLEL_QUERIES,
	'more columns than fit a key' => 'SELECT * FROM big ORDER BY id % 3, id % 5, id % 7, k, id % 11, k DESC, id',
	'text' => 'SELECT * FROM big ORDER BY t',
	'text with long ties' => q{SELECT repeat('same', 10) || t AS tt, id FROM big ORDER BY tt DESC},
	'text and numbers' => 'SELECT * FROM halves ORDER BY t, n DESC, id',
	'numeric' => 'SELECT n, id, t FROM halves ORDER BY n, id',
	'rows longer than a block' => q{SELECT id, k, repeat(t, 1 + id % 2000) AS r FROM big WHERE id < 2000 ORDER BY k, id},
	'arrays as key' => 'SELECT ARRAY[k % 3, NULL, k, id] AS a, id FROM halves ORDER BY a',
	'documents' => q{SELECT jsonb_build_object('k', k % 50, 't', t) AS j, id FROM halves ORDER BY j DESC, id},
	'records' => 'SELECT id, t FROM halves ORDER BY ROW(k % 5, t), id',
	'a type without an encoding' => q{SELECT to_tsvector('simple', t || ' ' || k) AS v, id FROM halves ORDER BY v, id});

# Left to themselves, or with the leader, which mostly has all rows before workers
# have started; in memory, and with so little of it that each process has runs.
foreach my $name (sort keys %sorts)
{
	as_stock("$name, leader", digest($sorts{$name}));
	as_stock($name, digest($sorts{$name}), $leaderless);
	as_stock("$name, 256kB", digest($sorts{$name}), qq{$leaderless; SET pg_gpusort.work_mem = '256kB'}, $OURS);
	as_stock("$name, leader, 256kB", digest($sorts{$name}), q{SET pg_gpusort.work_mem = '256kB'}, $OURS);
}
foreach my $memory ('64MB', '1MB', '256kB', '64kB')
{
	my $require = $memory eq '64MB' ? $in_memory : $OURS;

	foreach my $query ("SELECT * FROM big $together ORDER BY k, id", "SELECT k, id, f FROM halves $together ORDER BY k DESC, id",
		"SELECT * FROM halves $together ORDER BY t, n DESC, id", "SELECT id, repeat(t, 1 + id % 2000) FROM big $together AND id < 3000 ORDER BY t, id")
	{
		as_stock("leader and workers, $memory, $query", digest($query), "SET pg_gpusort.work_mem = '$memory'", $require);
	}
}
like(run_together("$in_memory; EXPLAIN (ANALYZE) SELECT * FROM big $together ORDER BY k, id"),
	qr/$shared.*Rows Sent: 20000\n.* Worker \d:  Rows Sent: [1-9]\d* /s, 'leader and workers: both have rows');
like($session->run("$OURS; EXPLAIN (ANALYZE) SELECT to_tsvector('simple', t) AS v FROM halves ORDER BY v"),
	qr/Sort Method: cpu radix, shared/, 'a type without an encoding: sorted together');
unlike($session->run("SET max_parallel_workers_per_gather = 0; EXPLAIN SELECT to_tsvector('simple', t) AS v FROM halves ORDER BY v"),
	qr/GpuSort/, 'a type without an encoding: left to PostgreSQL in one process');
# A comparison function that workers must not call.
foreach my $word ('RESTRICTED', 'SAFE')
{
	my ($name, $sign) = $word eq 'SAFE' ? ('safe', '') : ('limited', '<');

	$node->safe_psql('postgres', qq{CREATE FUNCTION ${name}_cmp(tsvector, tsvector) RETURNS int4 LANGUAGE sql IMMUTABLE PARALLEL $word
			AS 'SELECT tsvector_cmp(\$1, \$2)';
		CREATE FUNCTION ${name}_lt(tsvector, tsvector) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT \$1 < \$2';
		CREATE FUNCTION ${name}_gt(tsvector, tsvector) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT \$1 > \$2';
		CREATE OPERATOR <<<<$sign (FUNCTION = ${name}_lt, LEFTARG = tsvector, RIGHTARG = tsvector);
		CREATE OPERATOR >>>>$sign (FUNCTION = ${name}_gt, LEFTARG = tsvector, RIGHTARG = tsvector);
		CREATE OPERATOR CLASS ${name}_ops FOR TYPE tsvector USING btree AS OPERATOR 1 <<<<$sign, OPERATOR 3 =, OPERATOR 5 >>>>$sign,
			FUNCTION 1 ${name}_cmp(tsvector, tsvector)});
}
$session->run("RESET ALL; $parallel");
as_stock('a comparison function in SQL', digest(q{SELECT to_tsvector('simple', t) AS v, id FROM halves WHERE id < 3000 ORDER BY v USING <<<<, id}));
unlike($session->run("$OURS; EXPLAIN SELECT to_tsvector('simple', t) AS v FROM halves ORDER BY v USING <<<<<"),
	qr/GpuSort/, 'a comparison function that workers must not call');
$session->run("RESET ALL; $parallel");
as_stock('64kB', digest($sorts{'variable rows'}), q{SET pg_gpusort.work_mem = '64kB'}, $OURS);
as_stock('a query', $sorts{'variable rows'});

# ---- Plans ----

as_stock('a subquery', 'SELECT count(*), sum(place * id) FROM (SELECT id, row_number() OVER () AS place
	FROM (SELECT id FROM big ORDER BY k, id OFFSET 0) s) s');
as_stock('a window', digest('SELECT id, row_number() OVER (ORDER BY k, id) FROM big'));
foreach my $name (sort keys %SORTS_BELOW)
{
	my ($query, $settings) = @{ $SORTS_BELOW{$name} };

	as_stock($name, digest($query), $settings);
	as_stock("$name, 256kB", digest($query), join('; ', q{SET pg_gpusort.work_mem = '256kB'}, $settings // ()), $OURS);
}
as_stock('sorts side by side', digest('SELECT * FROM (SELECT k, id FROM big ORDER BY k, id OFFSET 0) a
	UNION ALL SELECT * FROM (SELECT k, id FROM halves ORDER BY k DESC, id OFFSET 0) b'));
foreach my $memory ('64MB', '256kB')
{
	my $require = $memory eq '64MB' ? $in_memory : $OURS;

	foreach my $leader ('on', 'off')
	{
		my $settings = "SET pg_gpusort.work_mem = '$memory'; SET parallel_leader_participation = $leader";

		# A merge join marks and restores rows of its inner input; a full one is
		# above both Gathers.
		as_stock("merge joins, $settings", digest("SELECT a.n, a.id, b.id AS other FROM (SELECT * FROM halves WHERE id > 7000) a
			FULL JOIN (SELECT n, id FROM halves $together) b ON b.n = a.n ORDER BY a.n, a.id, b.id"),
			"$settings; SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off", $require);
		foreach my $nodes ('enable_seqscan = on', 'enable_material = off; SET enable_memoize = off')
		{
			as_stock("rescans, $nodes, $settings", digest("SELECT g, s.id FROM generate_series(1, 4) g
				CROSS JOIN LATERAL (SELECT id FROM halves $together AND id < 15000 ORDER BY k, id OFFSET 0) s"), "$settings; SET $nodes", $require);
			as_stock("rescans of parts, $nodes, $settings", digest('SELECT g, s.id FROM generate_series(1, 4) g
				LEFT JOIN LATERAL (SELECT id FROM halves ORDER BY k, id LIMIT 19000) s ON true'), "$settings; SET $nodes", $require);
		}
	}
}
like($session->run("$in_memory; SET enable_material = off; EXPLAIN (ANALYZE) SELECT g, s.id FROM generate_series(1, 4) g
	LEFT JOIN LATERAL (SELECT id FROM halves ORDER BY k, id LIMIT 19000) s ON true"),
	qr/Limit .* loops=4.*GpuSortSink.*Rows Sent: 20000\n/s, 'a Limit that is started again');
foreach my $name (sort keys %LATE_LIMITS)
{
	my $settings = 'SET enable_material = off';

	as_stock("LIMIT: $name", digest($LATE_LIMITS{$name}), $settings, $OURS);
	as_stock("LIMIT: $name, 256kB", digest($LATE_LIMITS{$name}), "$settings; $leaderless; SET pg_gpusort.work_mem = '256kB'", $OURS);
}

# Each process has more than ten rows, and keeps no more.
$session->run($parallel);
like(run_together("$OURS; EXPLAIN (ANALYZE) SELECT k, id FROM halves $together ORDER BY k, id LIMIT (SELECT 10)"),
	qr/GpuSort\) .*rows=10(\.00)? .*Sort Method: cpu radix, shared  Memory: \d+kB\n.*Gather .*rows=0(\.00)? .*loops=4\)/s, 'a LIMIT of a few rows: EXPLAIN');
is(run_together("SELECT id FROM halves $together ORDER BY k, id LIMIT (SELECT 10)"),
	$session->run("$STOCK; SELECT id FROM halves ORDER BY k, id LIMIT 10"), 'a LIMIT of a few rows of each process');
$session->run("RESET ALL; $parallel; $in_memory");
is($session->run(join('; ', 'BEGIN', "DECLARE c SCROLL CURSOR FOR $sorts{'fixed rows'}", 'FETCH 300 FROM c',
	'MOVE 19000 IN c', 'FETCH BACKWARD 5 FROM c', 'FETCH ALL FROM c', 'COMMIT')),
	$session->run(join('; ', $STOCK, 'BEGIN', "DECLARE c SCROLL CURSOR FOR $sorts{'fixed rows'}", 'FETCH 300 FROM c',
	'MOVE 19000 IN c', 'FETCH BACKWARD 5 FROM c', 'FETCH ALL FROM c', 'COMMIT', $in_memory)), 'a cursor');
$session->run('CREATE TEMP TABLE made AS SELECT row_number() OVER () AS place, s.*
	FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s');
is($session->run('SELECT count(*) FROM (SELECT place, row_number() OVER (ORDER BY k, id) AS p FROM made) s WHERE p <> place'),
	'0', 'CREATE TABLE AS');

# Plans made at one time and executed at another.
$session->run('SET plan_cache_mode = force_generic_plan;
	PREPARE p(int) AS ' . digest('SELECT * FROM big WHERE id <= $1 ORDER BY k, id'));
like($session->run('EXPLAIN EXECUTE p(9)'), $sink, 'prepared: plan');
foreach my $rows (20000, 10, 0, 15000)
{
	is($session->run("$in_memory; EXECUTE p($rows)"),
		$session->run("$STOCK; " . digest("SELECT * FROM big WHERE id <= $rows ORDER BY k, id") . "; $in_memory"),
		"prepared, $rows rows");
}
$session->run("DEALLOCATE p; RESET ALL; $parallel");
leaves_nothing($node, 'plans');

# ---- EXPLAIN and statistics ----

foreach my $leader ('on', 'off')
{
	my $explain = "SET parallel_leader_participation = $leader; $in_memory;
		EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT %s) SELECT k, id FROM big $together ORDER BY k, id";
	my $processes = $leader eq 'on' ? 4 : 3;
	my $text = run_together(sprintf($explain, 'TEXT'), $processes);
	my $json = run_together(sprintf($explain, 'JSON'), $processes);
	my $sum = 0;

	like($text, qr/$shared.*Gather .*rows=0(\.00)? .*Workers Launched: 3.*GpuSortSink\).*rows=0(\.00)? .*\n *Rows Sent: 20000\n( *Worker \d:  Rows Sent: \d+(  Rows Sorted: \d+)?  Sort Method: cpu radix, shared  Memory: \d+kB\n){3} *->/s,
		"EXPLAIN, leader $leader: text");
	$sum += $_ foreach $text =~ /Worker \d:  Rows Sent: (\d+)/g;
	cmp_ok($sum, $leader eq 'on' ? '<=' : '==', 20000, "EXPLAIN, leader $leader: workers");
	is($node->safe_psql('postgres', "SELECT sink->'Rows Sent', jsonb_array_length(sink->'Sink Workers'), sink->'Sink Workers'->0->>'Sort Method',
			sink->'Sink Workers'->0->>'Sort Space Type', (SELECT sum((worker->>'Rows Sent')::int) FROM jsonb_array_elements(sink->'Sink Workers') worker) <= 20000
		FROM jsonb_path_query(\$json\$$json\$json\$, 'strict \$.**.\"Plans\"[*] ? (\@.\"Custom Plan Provider\" == \"GpuSortSink\")') sink"),
		'20000|3|cpu radix, shared|Memory|t', "EXPLAIN, leader $leader: JSON");
	is($node->safe_psql('postgres', "SELECT json->0->'Plan'->'Sort Method', json->0->'Plan'->'Sort Space Type' FROM (SELECT \$json\$$json\$json\$::jsonb AS json) j"),
		'"cpu radix, shared"|"Memory"', "EXPLAIN, leader $leader: JSON, method");
	like(run_together(sprintf($explain, 'YAML'), $processes), qr/^ +Sink Workers: *\n +- Worker Number: 0\n +Rows Sent: \d+\n( +Rows Sorted: \d+\n)? +Sort Method: "cpu radix, shared"\n/m,
		"EXPLAIN, leader $leader: YAML");
	like(run_together(sprintf($explain, 'XML'), $processes), qr/<Sink-Worker>\s*<Worker-Number>0<.*<Sort-Method>cpu radix, shared<.*<\/Sink-Workers>/s,
		"EXPLAIN, leader $leader: XML");
}
like(run_together("$OURS; $leaderless; SET pg_gpusort.work_mem = '64kB'; EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM big $together ORDER BY k, id", 3),
	qr/Sort Method: external merge, shared  Disk: \d+kB\n *Sort Fallback: rows exceeded pg_gpusort.work_mem\n.*Rows Sent: 20000\n.* Worker \d:  Rows Sent: \d+(  Rows Sorted: \d+)?  Sort Method: external merge, shared  Disk: \d+kB\n/s,
	'EXPLAIN: overflow');
like($session->run("RESET ALL; $parallel; $in_memory; SET max_parallel_workers = 0; EXPLAIN (ANALYZE, BUFFERS OFF, TIMING OFF) $sorts{'fixed rows'}"),
	qr/$shared.*Rows Sent: 20000\n *->/s, 'EXPLAIN: no workers');
$session->run("RESET ALL; $parallel");

# One sort each, whatever its processes did.
$session->run("$in_memory; $leaderless; SELECT pg_stat_gpusort_reset(); $sorts{'fixed rows'}");
is($session->run($counts), 'cpu 1 20000 1', 'counted');
cmp_ok($session->run(q{SELECT page_scans FROM pg_stat_gpusort WHERE backend = 'cpu'}), '>=', 1, 'counted: page scans');
$session->run("$OURS; SET parallel_leader_participation = off; SET pg_gpusort.work_mem = '64kB'; SELECT pg_stat_gpusort_reset(); $sorts{'variable rows'}");
is($session->run($counts), 'external 1 20000 1', 'an overflow of workers, counted');
is($session->run(q{SELECT sorts FROM pg_stat_gpusort_fallbacks WHERE reason = 'rows exceeded pg_gpusort.work_mem'}), '1',
	'an overflow of workers: the reason');
$session->run("SET max_parallel_workers = 0; SELECT pg_stat_gpusort_reset(); $sorts{'variable rows'}");
is($session->run($counts), 'external 1 20000 0', 'an overflow without workers, counted');
$session->run("RESET ALL; $parallel");

# ---- Workers that are not there ----

foreach my $settings (
	'SET max_parallel_workers = 0',
	'SET max_parallel_workers = 1',
	'SET parallel_leader_participation = off',
	'SET parallel_leader_participation = off; SET max_parallel_workers = 0',
	'SET max_parallel_workers_per_gather = 1',
	'SET max_parallel_workers_per_gather = 8; ALTER TABLE big SET (parallel_workers = 8)')
{
	as_stock("$settings, variable rows", digest($sorts{'variable rows'}), $settings);
	as_stock("$settings, a join", digest($sorts{'a hash join'}), $settings);
	as_stock("$settings, rescans", digest('SELECT g, s.id FROM generate_series(1, 3) g
		CROSS JOIN LATERAL (SELECT id FROM halves ORDER BY k, id LIMIT 19000) s'), "$settings; SET enable_material = off");
}
$session->run('ALTER TABLE big RESET (parallel_workers)');

# Stock ties are left to a single process.
my $ties = 'SELECT k % 3 AS k, id FROM big ORDER BY k';
$session->run('SET pg_gpusort.debug_stock_ties = on');
like($session->run("$in_memory; EXPLAIN (ANALYZE) $sorts{'variable rows'}"), qr/Gather.*rows=20000(\.00)? .*GpuSortSink/s,
	'stock\'s ties: the rows are passed on');
$session->run("SET max_parallel_workers = 1; $leaderless");
is($session->run("$in_memory; " . digest($ties)), $session->run("$STOCK; " . digest($ties)), 'stock\'s ties, one worker: rows');
$session->run("RESET ALL; $parallel");

# ---- Temporary files ----

# The planner does without them if it knows that they will not do, and needs none for rows
# that fit in memory.
$session->run(q{SET temp_file_limit = '500kB'});
like($session->run("$in_memory; EXPLAIN (ANALYZE) $sorts{'variable rows'}"), $shared, 'temp_file_limit: no files');
is($session->run(digest($sorts{'variable rows'})), $session->run("$STOCK; " . digest($sorts{'variable rows'}) . "; $in_memory"),
	'temp_file_limit: rows without files');
$session->run(q{SET pg_gpusort.work_mem = '256kB'});
unlike($session->run("$OURS; EXPLAIN (ANALYZE) $sorts{'variable rows'}"), qr/Rows Sent/, 'temp_file_limit: no sinks');

# A condition of which it takes a third for true.
$session->run(q{SET parallel_leader_participation = off; SET max_parallel_workers = 1;
	SET pg_gpusort.debug_require = node; SET pg_gpusort.work_mem = '256kB'});
like($session->run('SELECT * FROM big WHERE id + 0 > 0 ORDER BY k, id'), qr/ERROR:  53400: temporary file size exceeds "?temp_file_limit/,
	'temp_file_limit: an error');
leaves_nothing($node, 'temp_file_limit');
$session->run("RESET ALL; $parallel; $in_memory");
{
	my $position = -s $node->logfile;

	$session->run("$leaderless; $OURS; SET pg_gpusort.work_mem = '64kB'; $sorts{'fixed rows'}");
	like(slurp_file($node->logfile, $position), qr/LOG:  temporary file: path "[^"]*\.fileset\/\d\.0", size \d{5,}/, 'log_temp_files');
}

# ---- Ends ----

my $variable = digest($sorts{'variable rows'});
my $expected = $session->run("RESET ALL; $parallel; $STOCK; $variable; $in_memory");
my $early = "SELECT count(*), sum(id) FROM (SELECT id, k FROM big $together ORDER BY k, id OFFSET 0) s";
my $late = 'SELECT count(*) FROM (SELECT id, k, t FROM big WHERE stopping(id) IS NOT NULL ORDER BY k, id OFFSET 0) s';

like($session->run(digest('SELECT id, 1 / (id - 12345) AS d FROM big ORDER BY d, id')), qr/ERROR:  22012: division by zero/,
	'an error below the sink');
leaves_nothing($node, 'an error below the sink');
is($session->run(q{DO $$
	DECLARE n int := 0;
	BEGIN
		FOR i IN 1 .. 3 LOOP
			BEGIN
				SELECT count(*) INTO n FROM (SELECT id, 1 / (id - 19999) AS d, t FROM big ORDER BY t, id OFFSET 0) s WHERE d IS NULL;
			EXCEPTION WHEN division_by_zero THEN
				n := -1;
			END;
		END LOOP;
	END $$}), '', 'errors in subtransactions');
leaves_nothing($node, 'errors in subtransactions');
like($session->run("EXPLAIN $early"), $sink, 'waiting processes: plan');
foreach my $memory ('64MB', '64kB')
{
	foreach my $end (grep { $_ ne 'worker killed' } @ENDS)
	{
		my $ending = Session($node, $parallel, $OURS, "SET pg_gpusort.work_mem = '$memory'");
		my $stops = hold_stops($node);

		# All wait; or one does, and the other two may have written their runs.
		$ending->run($leaderless) if $memory eq '64kB';
		$ending->run(q{SET statement_timeout = '1s'}) if $end eq 'timeout';
		$ending->begin($memory eq '64MB' ? $early : $late);
		wait_for_stop($node, $ending, $memory eq '64MB' ? 4 : 1) if $end ne 'timeout';
		ends_well($node, $ending, $stops, $end, "$memory, $end");
		is($session->run($variable), $expected, "$memory, $end: the next sort");
	}
}

# A process that is killed takes all others with it, and files go with them.
{
	my $ending = Session($node, $parallel, $OURS);
	my $stops = hold_stops($node);
	my $position = -s $node->logfile;
	my $halves = $session->run(digest($sorts{'half of the keys null'}));

	$node->append_conf('postgresql.conf', 'restart_after_crash = on');
	$node->reload;
	$ending->begin($early);
	wait_for_stop($node, $ending, 4);
	kill('KILL', $node->safe_psql('postgres', 'SELECT max(pid) FROM (' . stopped($ending) . ') w WHERE pid <> ' . $ending->pid)) == 1
	  or die 'no worker';
	like($ending->finish, qr/terminating connection because of crash of another server process|server closed the connection/,
		'a worker killed: error');
	$_->quit foreach $ending, $stops, $session;
	becomes_true($node, 'SELECT true') or die 'the server does not come back';
	leaves_nothing($node, 'a worker killed');
	like(slurp_file($node->logfile, $position), qr/was terminated by signal 9/, 'a worker killed');
	$session = Session($node, $parallel, $in_memory);
	is($session->run(digest($sorts{'half of the keys null'})), $halves, 'a worker killed: the next sort');
}
$session->quit;

$node->stop;
done_testing();
