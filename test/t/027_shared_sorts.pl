# Sorts that parallel processes do together, in shared memory or by merging their runs: any
# distribution of keys, any share of the rows, little memory, and memory that ends.
#
#	GPUSORT_ALLOCATION_STEP	of how many allocations one fails (default 4)
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'},
	q{pg_gpusort.backend = 'cpu'}, 'pg_gpusort.min_rows = 0', q{work_mem = '64MB'},
	'max_worker_processes = 16', 'max_parallel_workers = 8');
my $parallel = parallel_plans(3, 'enable_gathermerge = off');

my $step = $ENV{GPUSORT_ALLOCATION_STEP} // 4;

# allocations NUMBER: those of the first so many of which memory ends at one in turn.
sub allocations { return map { 1 + $step * $_ } 0 .. ($_[0] - 1) / $step }

# Of each way to sort together: what EXPLAIN shows, and settings with which rows are sorted so.
my $shared = qr/Sort Method: cpu radix, shared  Memory: \d+kB\n/;
my $merged = qr/Sort Method: external merge(, shared)?  Disk: \d+kB\n/;
my @in_memory = ($shared, 'SET pg_gpusort.debug_require = cpu');

# A leader that has written its runs before any worker has started merges alone.
my $together = 0;
my @on_disk = ($merged, q{SET pg_gpusort.work_mem = '128kB'}, 'SET pg_gpusort.debug_require = node');

make_distributions($node);

sub answers
{
	my ($query, @settings) = @_;
	my $stock = $node->safe_psql('postgres', "SET pg_gpusort.enable = off; $query");
	my $ours = $node->safe_psql('postgres', join('; ', $parallel, @settings, $query));

	return ($ours, $stock);
}

# together_like_stock NAME, QUERY, SETTINGS: the rows of stock PostgreSQL, in its order,
# whether they are sorted in memory or on disk.
sub together_like_stock
{
	my ($name, $query, @settings) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $way (\@in_memory, \@on_disk)
	{
		my ($method, @more) = @$way;
		my ($ours, $stock) = answers(digest($query), @more, @settings);

		is($ours, $stock, "$name: rows");
		my $plan = $node->safe_psql('postgres', join('; ', $parallel, @more, @settings, "EXPLAIN (ANALYZE) $query"));
		like($plan, $method, "$name: method");
		$together++ if $plan =~ /external merge, shared/;
	}
}

# ---- Distributions of keys ----

foreach my $key ('random', 'ascending', 'descending', 'same', 'two', 'few', 'nothing', 'almost_nothing',
	'outliers', 'two_windows', 'text COLLATE "C"', 'same_text COLLATE "C"', 'long_text COLLATE "C"', 'wide COLLATE "C"')
{
	my $column = $key =~ s/ .*//r;

	together_like_stock($key, "SELECT id, $column FROM keys ORDER BY $key, id");
	together_like_stock("$key, whole tuples", "SELECT * FROM keys ORDER BY $key DESC NULLS LAST, id DESC",
		'SET pg_gpusort.debug_whole_tuples = on');
}
together_like_stock('many keys', 'SELECT * FROM keys ORDER BY two, few, same, text COLLATE "C" DESC, outliers, id');
together_like_stock('one process has nearly all rows', 'SELECT * FROM uneven ORDER BY id DESC');
together_like_stock('a process for each core and more', 'SELECT * FROM keys ORDER BY random',
	'SET max_parallel_workers_per_gather = 8; ALTER TABLE keys SET (parallel_workers = 8)');
cmp_ok($together, '>', 20, 'mostly, processes merge together');

# Also below a Gather that computes columns.
$together = 0;
foreach my $attempt (1 .. 20)
{
	together_like_stock('computed columns', 'SELECT id, random, 1 AS one, two + 1 AS more FROM keys ORDER BY random, id');
	last if $together > 0;
}
cmp_ok($together, '>', 0, 'computed columns: processes merge together');
leaves_nothing($node, 'distributions');

# Runs of the same size and distribution: the ranges into which they are divided have similar lengths.
# A leader may merge alone, as above; then nothing is said about ranges.
{
	my $settings = join('; ', $parallel, 'SET max_parallel_workers_per_gather = 2', q{SET pg_gpusort.work_mem = '1400kB'},
		'SET pg_gpusort.debug_require = node', 'SET client_min_messages = debug1');
	my ($mean, $longest);

	$node->safe_psql('postgres', q{CREATE TABLE even AS
		SELECT md5(g::text) || md5((-g)::text) AS t FROM generate_series(1, 500000) g});
	foreach my $attempt (1 .. 20)
	{
		my (undef, $output, $messages) = $node->psql('postgres',
			"$settings; SELECT count(*) FROM (SELECT t FROM even ORDER BY t COLLATE \"C\" OFFSET 0) s");

		is($output, '500000', 'ranges: rows');
		last if ($mean, $longest) = $messages =~ /merged \d+ runs in \d+ ranges of (\d+) rows, the longest of (\d+)/;
	}
	cmp_ok($longest // 'inf', '<', 2.2 * ($mean // 0), 'ranges: similar lengths');
	note("$mean rows, and $longest");
	$node->safe_psql('postgres', 'DROP TABLE even');
}

# Ties come in the order of processes and of arrival: with one process, as they are.
is( $node->safe_psql('postgres', "$parallel; SET max_parallel_workers = 0;
		SELECT count(*) FROM (SELECT id, lag(id) OVER () AS previous FROM
			(SELECT * FROM keys ORDER BY same OFFSET 0) s) s WHERE previous > id"),
	'0', 'ties keep their order');

# ---- Cursors ----

my $cursor = 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM (SELECT * FROM keys ORDER BY random OFFSET 0) s;
	FETCH 3 FROM c; MOVE 40000 IN c; FETCH BACKWARD 3 FROM c; MOVE ABSOLUTE 0 IN c; FETCH 2 FROM c;
	MOVE ABSOLUTE 59999 IN c; FETCH ALL FROM c; FETCH BACKWARD 2 FROM c; COMMIT';
is((answers($cursor))[0], (answers($cursor))[1], 'a cursor forward and backward');

# One that moves back reads its own merge, and has all rows on disk.
is((answers($cursor, @on_disk[1, 2]))[0], (answers($cursor))[1], 'a cursor forward and backward, on disk');

# A query that ends early does so while processes are still sorting.
foreach my $round (1 .. 20)
{
	my $memory = $round % 2 == 0 ? '64MB' : '64kB';

	$node->safe_psql('postgres', "$parallel; SET pg_gpusort.work_mem = '$memory'; DO \$\$
		DECLARE r record;
		BEGIN
			FOR r IN SELECT id FROM keys ORDER BY random LOOP
				EXIT WHEN r.id > 1000 * $round;
			END LOOP;
		END \$\$");
}
foreach my $way (\@in_memory, \@on_disk)
{
	my ($method, @settings) = @$way;
	my $where = $method eq $merged ? 'on disk' : 'in memory';
	my $query = 'SELECT id FROM (SELECT id FROM keys ORDER BY random OFFSET 0) s WHERE id % 3 > 0 LIMIT 10';
	my ($ours, $stock) = answers("SELECT array_agg(id) FROM ($query) s", @settings);

	is($ours, $stock, "a Limit above, $where");
	# An input of a join that is read again, and not to its end.
	($ours, $stock) = answers('SELECT g, ids FROM generate_series(1, 5) g,
		LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM (SELECT id FROM keys ORDER BY random OFFSET 0) s
			WHERE id % 3 > 0 LIMIT g * 1000) t) u', @settings);
	is($ours, $stock, "again and again, $where");
}
leaves_nothing($node, 'queries that end early');

# Each row counts once, also one that its process has kept and the leader has not.
foreach my $limit ('ALL', 2000)
{
	my $counted = $node->safe_psql('postgres', join('; ', 'SELECT pg_stat_gpusort_reset()', $parallel, $in_memory[1],
		"SELECT count(*) FROM (SELECT id FROM keys ORDER BY random LIMIT $limit) s",
		'SELECT sum(rows) - (SELECT count(*) FROM keys) FROM pg_stat_gpusort'));

	like($counted, qr/(^|\n)0$/, "rows counted with LIMIT $limit");
}

# A leader that reads nothing merges with the others nevertheless.
{
	my @workers = (@on_disk[1, 2], 'SET parallel_leader_participation = off');
	my ($ours, $stock) = answers(digest('SELECT * FROM keys ORDER BY random'), @workers);

	is($ours, $stock, 'without the leader: rows');
	like($node->safe_psql('postgres', join('; ', $parallel, @workers, 'EXPLAIN (ANALYZE) SELECT * FROM keys ORDER BY random')),
		qr/Sort Method: external merge, shared  Disk/, 'without the leader: method');
}

# Rows that are read again are written once more by the leader.
foreach my $leader ('on', 'off')
{
	my $query = 'SELECT count(*), sum(a.id::numeric * b.id) FROM keys a JOIN keys b ON a.id / 7 = b.id / 7';
	my @settings = (@on_disk[1, 2], 'SET enable_hashjoin = off', 'SET enable_nestloop = off', 'SET enable_material = off',
		"SET parallel_leader_participation = $leader");
	my ($ours, $stock) = answers($query, @settings);

	is($ours, $stock, "marks, leader $leader: rows");
	like($node->safe_psql('postgres', join('; ', $parallel, @settings, "EXPLAIN (ANALYZE) $query")),
		qr/Merge Join.*Sort Method: external (merge, shared|sort) .*Sort Method: external (merge, shared|sort) .*/s, "marks, leader $leader: method");
}
leaves_nothing($node, 'marks');

# Rows of very different lengths, some of which take all of the memory.
together_like_stock('long rows', "SELECT id, repeat(long_text, CASE WHEN id % 1000 = 7 THEN 4000 ELSE id % 7 END) AS l
	FROM keys WHERE id % 5 < 2 ORDER BY random");

# Rows that take ten times as much memory as in files; and rows so long that there are few of them
# to choose splitters from, so that ranges do not fit in memory.
my %rows = (
	'rows of NULLs' => [ 'SELECT id, ' . join(', ', map { "nullif(id, id)::int8 AS n$_" } 1 .. 40) . ' FROM keys ORDER BY random', $merged ],
	'very long rows' => [ 'SELECT id, repeat(long_text, 600) AS l FROM keys WHERE id <= 500 ORDER BY random', $merged ]);
foreach my $name (sort keys %rows)
{
	my ($query, $method) = @{ $rows{$name} };
	my ($ours, $stock) = answers(digest($query), @on_disk[1, 2]);

	is($ours, $stock, "$name: rows");
	like($node->safe_psql('postgres', join('; ', $parallel, @on_disk[1, 2], "EXPLAIN (ANALYZE) $query")), $method, "$name: method");
}

# ---- Memory ----

# Processes that have written their rows wait for those that still have all of the memory in use.
$node->safe_psql('postgres', 'CREATE TABLE many AS SELECT hashint8extended(g, 0) AS k FROM generate_series(1, 300000) g;
	ALTER TABLE many SET (parallel_workers = 5); ANALYZE many');
{
	my $explain = join('; ', parallel_plans(5, 'enable_gathermerge = off'), q{SET pg_gpusort.work_mem = '512kB'},
		'EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM many ORDER BY k');
	my @alone = grep { /external merge  Disk/ && (() = /Worker \d: .*Rows Sent: [1-9]/g) > 1 }
	  map { $node->safe_psql('postgres', $explain) } 1 .. 30;

	is(join("\n", @alone), '', 'all processes merge, whoever is the last to write its rows');
}

# From all rows on disk to none: at each step the same rows.
foreach my $memory ('64kB', '256kB', '512kB', '1MB', '2MB', '4MB', '8MB')
{
	foreach my $query ('SELECT id, random FROM keys ORDER BY random', 'SELECT * FROM keys ORDER BY text COLLATE "C", id',
		'SELECT * FROM uneven ORDER BY id')
	{
		my ($ours, $stock) = answers(digest($query), "SET pg_gpusort.work_mem = '$memory'");

		is($ours, $stock, "$memory, $query");
	}
}
leaves_nothing($node, 'little memory');

# Memory that ends at any allocation: a process leaves ranges to the leader, or all go to
# disk, or there is an error that says so.
{
	my $query = digest('SELECT * FROM keys ORDER BY few, long_text COLLATE "C"');
	my $stock = $node->safe_psql('postgres', "SET pg_gpusort.enable = off; $query");

	foreach my $memory ('64MB', '256kB')
	{
		my ($failed, $errors) = (0, 0);
		my @allocations = allocations(60);

		foreach my $allocation (@allocations)
		{
			my ($code, $output, $error) = $node->psql('postgres', "$parallel; SET pg_gpusort.work_mem = '$memory';
				SET pg_gpusort.debug_fault = 'host:alloc:$allocation'; $query");

			$errors++ if $code != 0;
			$failed++ if $code == 0 ? $output ne $stock : $error !~ /out of memory/;
		}
		is($failed, 0, "memory that ends, $memory: the same rows, or the right error");
		cmp_ok($errors, '<', @allocations / 2, "memory that ends, $memory: mostly rows");
	}
	leaves_nothing($node, 'memory that ends');
}

# Memory that ends when a range has been sorted.  Some strings begin alike, so that sorting has changed
# the keys of their rows.
{
	my $query = digest('SELECT id, t FROM alike ORDER BY t COLLATE "C"');
	my ($stock, $alone, @wrong);
	my $rows = 0;

	$node->safe_psql('postgres', q{CREATE TABLE alike AS
		SELECT g AS id, CASE WHEN g % 500 = 7 THEN repeat('M', 8)
							 WHEN g % 1000 = 13 THEN repeat('M', 4) || chr(33 + g / 1000 * 7 % 90)
							 WHEN g % 800 = 8 THEN repeat('q', 8)
							 WHEN g % 1600 = 14 THEN repeat('q', 4) || chr(33 + g / 1600 * 7 % 90)
							 ELSE (SELECT string_agg(chr(33 + (hashint4(g * 4 + i) & 1023) % 94), '') FROM generate_series(0, 3) i)
						END || md5(g::text) AS t
		FROM generate_series(1, 20000) g;
		ALTER TABLE alike SET (parallel_workers = 2); ANALYZE alike});
	$stock = $node->safe_psql('postgres', "SET pg_gpusort.enable = off; $query");
	# Without workers, the same allocations always fail.
	$alone = Session($node, $parallel, $OURS, 'SET max_parallel_workers = 0');
	like($alone->run("EXPLAIN (ANALYZE) $query"), $shared, 'memory that ends after sorting: method');
	foreach my $allocation (1 .. 120)
	{
		my $output = $alone->run("SET pg_gpusort.debug_fault = 'host:alloc:$allocation'; $query");

		$rows++ if $output eq $stock;
		push @wrong, "$allocation: $output" if $output ne $stock && $output !~ /ERROR:  53200: out of memory/;
	}
	is("@wrong", '', 'memory that ends after sorting: the same rows, or the right error');
	cmp_ok($rows, '>', 60, 'memory that ends after sorting: mostly rows');
	$alone->quit;

	# Each row counts once, whoever has memory for it; those that the leader sorts are not shown.
	my $workers = Session($node, $parallel, $OURS, 'SET parallel_leader_participation = off');
	my $together = 0;
	my @counts;
	foreach my $allocation (map { 50 + 2 * $_ } 0 .. 30)
	{
		my $output = $workers->run("SELECT pg_stat_gpusort_reset(); SET pg_gpusort.debug_fault = 'host:alloc:$allocation';
			EXPLAIN (ANALYZE) SELECT id, t FROM alike ORDER BY t COLLATE \"C\"; SELECT sum(sorts), sum(rows) FROM pg_stat_gpusort");
		my $sorted = 0;

		next if $output =~ /ERROR:  53200: out of memory/;
		$sorted += $_ foreach $output =~ /Rows Sorted: (\d+)/g;
		push @counts, "$allocation: $output" if $output !~ /^ *Rows Sent: 20000\n.*\n1\|20000$/ms;
		next if $output !~ $shared;
		push @counts, "$allocation: $output" if $sorted > 20000;
		$together++;
	}
	is("@counts", '', 'memory that ends after sorting: each row is counted once');
	cmp_ok($together, '>', 0, 'memory that ends after sorting: processes sort together');
	$workers->quit;
	$node->safe_psql('postgres', 'DROP TABLE alike');
}

# Workers that start when the leader has gone on without them, with or without such a fault:
# the server starts none while its main process is stopped.
{
	my $query = digest('SELECT id, random FROM keys WHERE id <= 600 ORDER BY random');
	my $stock = $node->safe_psql('postgres', "SET pg_gpusort.enable = off; $query");
	my $leader = Session($node, $parallel, q{SET statement_timeout = '20s'});
	my $waits = q{SELECT state = 'idle' OR wait_event IN ('ParallelFinish', 'BgWorkerShutdown', 'BgworkerShutdown')
		FROM pg_stat_activity WHERE pid = } . $leader->pid;
	my @wrong;

	foreach my $memory ('64MB', '128kB')
	{
		foreach my $allocation (0, allocations(30))
		{
			my $server = $node->{_pid};
			my $output;

			$leader->run("SET pg_gpusort.work_mem = '$memory'");
			$leader->run($allocation == 0 ? 'RESET pg_gpusort.debug_fault' : "SET pg_gpusort.debug_fault = 'host:alloc_once:$allocation'");
			value_of($node, 'SELECT 1');
			kill 'STOP', $server;
			$leader->begin($query);
			my $waited = becomes_true($node, $waits);
			kill 'CONT', $server;
			$output = $leader->finish;
			push @wrong, "$memory, $allocation: $output"
			  if !$waited || ($output ne $stock && ($allocation == 0 || $output !~ /ERROR:  53200: out of memory/));
		}
	}
	is("@wrong", '', 'late workers: the same rows, or the right error');
	$leader->quit;
	leaves_nothing($node, 'late workers');
}

# ---- Ends in each phase ----

# workers_wait: returns whether any worker waits, for the stop or for other processes, once
# that is so or there are none.
sub workers_wait
{
	my $waiting = q{count(*) FILTER (WHERE wait_event_type IN ('Lock', 'Extension')) > 0};
	my $from = q{FROM pg_stat_activity WHERE backend_type = 'parallel worker'};

	becomes_true($node, "SELECT $waiting OR count(*) = 0 $from") or die 'workers neither wait nor end';
	return value_of($node, "SELECT $waiting $from") eq 't';
}

# wait_for_any_stop SESSION: waits until any process of the session waits at the stop.
sub wait_for_any_stop
{
	my ($session) = @_;

	becomes_true($node, 'SELECT EXISTS (' . stopped($session) . ')') or die 'no process waits';
}

# A comparison stops at id 7: where it is compared with splitters, or in its range.  Runs
# have few rows, so that 7 and 30007 are in different ones and only meet when these are merged.
add_stops($node, 7);
my %phases = (
	'placing' => [ 'SELECT * FROM (SELECT id::int8, same FROM keys WHERE id <= 8000) k ORDER BY same, id USING <#', @in_memory ],
	'sorting' => [ 'SELECT * FROM (SELECT id::int8, few FROM keys WHERE id <= 8000) k ORDER BY few, id USING <#', @in_memory ],
	'writing' => [ 'SELECT * FROM (SELECT id::int8, few FROM keys) k ORDER BY few, id USING <#', @on_disk ],
	'merging' => [ 'SELECT * FROM (SELECT id::int8, id % 30000 AS twice FROM keys) k ORDER BY twice, id USING <#', @on_disk ]);
foreach my $phase (sort keys %phases)
{
	my ($query, $method, @settings) = @{ $phases{$phase} };
	my ($ours, $stock) = answers(digest($query), @settings);

	is($ours, $stock, "$phase: rows");
	like($node->safe_psql('postgres', join('; ', $parallel, @settings, "EXPLAIN (ANALYZE) $query")), $method, "$phase: method");
	foreach my $end (@ENDS)
	{
		my $ending = Session($node, $parallel, @settings, 'SET parallel_leader_participation = off');
		my $stops = hold_stops($node);

		$ending->run(q{SET statement_timeout = '1s'}) if $end eq 'timeout';
		$ending->begin($query);
		wait_for_any_stop($ending) if $end ne 'timeout';

		# The leader may have begun to merge alone, before any worker was there.
		while ($end ne 'timeout' && !workers_wait())
		{
			$stops->quit;
			$ending->finish;
			$stops = hold_stops($node);
			$ending->begin($query);
			wait_for_any_stop($ending);
		}
		if ($end eq 'worker killed')
		{
			$node->append_conf('postgresql.conf', 'restart_after_crash = on');
			$node->reload;
		}
		ends_well($node, $ending, $stops, $end, "$phase, $end");
		is((answers(digest($query)))[0], $stock, "$phase, $end: the next sort");
	}
}

$node->stop;

# ---- Without shared memory ----

$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', q{''});
$node->append_conf('postgresql.conf', q{session_preload_libraries = 'pg_gpusort'});
$node->start;
like($node->safe_psql('postgres', "$parallel; EXPLAIN (ANALYZE) SELECT * FROM keys ORDER BY random"),
	qr/Sort Method: cpu radix(, merged)? /, 'not preloaded: each process sorts its own rows');

$node->stop;
done_testing();
