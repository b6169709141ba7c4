# Faults of the host, at each point: allocations that fail, disks that are full,
# processes that cannot be forked, comparisons that raise errors, backends that are
# killed while they sort, lack of shared memory.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '2MB'}, q{work_mem = '64MB'},
	q{maintenance_work_mem = '64MB'}, 'restart_after_crash = on', 'max_worker_processes = 16',
	'log_statement = none');
my $prlimit = system('prlimit --version >/dev/null 2>&1') == 0;
my $contexts = q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'pg_gpusort%'};
my $query = q{SELECT count(*), md5(string_agg(s::text, ',')) FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s};
my $anywhere = 'SET pg_gpusort.debug_require = node';
my $on_cpu = "SET pg_gpusort.backend = cpu; $anywhere";
my $on_gpu = 'SET pg_gpusort.backend = gpu; SET pg_gpusort.debug_require = gpu';
my ($expected, $check_index);

# A type whose comparison raises an error of one value, and sleeps at another.
sub make_data
{
	make_table($node, 8000);
	$node->safe_psql(
		'postgres', q{
		CREATE EXTENSION IF NOT EXISTS amcheck;
		DROP TYPE IF EXISTS moody CASCADE;
		CREATE TYPE moody AS (v int);
		CREATE FUNCTION moody_cmp(a moody, b moody) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
		BEGIN
			IF a.v = 13 OR b.v = 13 THEN
				RAISE EXCEPTION 'not in the mood';
			ELSIF a.v = 14 OR b.v = 14 THEN
				PERFORM pg_sleep(60);
			END IF;
			RETURN btint4cmp(a.v, b.v);
		END $$;
		CREATE FUNCTION moody_lt(moody, moody) RETURNS bool LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT moody_cmp($1, $2) < 0';
		CREATE FUNCTION moody_gt(moody, moody) RETURNS bool LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT moody_cmp($1, $2) > 0';
		CREATE FUNCTION moody_le(moody, moody) RETURNS bool LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT moody_cmp($1, $2) <= 0';
		CREATE FUNCTION moody_ge(moody, moody) RETURNS bool LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT moody_cmp($1, $2) >= 0';
		CREATE FUNCTION moody_eq(moody, moody) RETURNS bool LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT moody_cmp($1, $2) = 0';
		CREATE OPERATOR #< (LEFTARG = moody, RIGHTARG = moody, FUNCTION = moody_lt);
		CREATE OPERATOR #> (LEFTARG = moody, RIGHTARG = moody, FUNCTION = moody_gt);
		CREATE OPERATOR #<= (LEFTARG = moody, RIGHTARG = moody, FUNCTION = moody_le);
		CREATE OPERATOR #>= (LEFTARG = moody, RIGHTARG = moody, FUNCTION = moody_ge);
		CREATE OPERATOR #= (LEFTARG = moody, RIGHTARG = moody, FUNCTION = moody_eq);
		CREATE OPERATOR CLASS moody_ops DEFAULT FOR TYPE moody USING btree AS
			OPERATOR 1 #<, OPERATOR 2 #<=, OPERATOR 3 #=, OPERATOR 4 #>=, OPERATOR 5 #>, FUNCTION 1 moody_cmp(moody, moody);
		CREATE TABLE IF NOT EXISTS moods AS SELECT g % 50 AS k, g AS v FROM generate_series(1, 3000) g;
		ANALYZE moods});
	$expected = $node->safe_psql('postgres', "SET pg_gpusort.enable = off; $query");
}

# goes_on SESSION, NAME: nothing is held, and the session's next sort is right.
sub goes_on
{
	my ($session, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($session->run($contexts), '0', "$name: no memory is left");
	leaves_nothing($node, $name);
	is($session->run($query), $expected, "$name: the next sort");
	holds_nothing($node, $name);
}

# limit PID, RESOURCE, LIMIT: set the soft limit, and return what lifts it again.
sub limit
{
	my ($pid, $resource, $limit) = @_;
	my ($before) = run_command([ 'prlimit', '--pid', $pid, "--$resource", '--output=SOFT', '--noheadings' ]);

	system('prlimit', '--pid', $pid, "--$resource=$limit:") == 0 or die "could not limit $resource";
	$before =~ s/\s//g;
	return sub { system('prlimit', '--pid', $pid, "--$resource=$before:") == 0 or die "could not lift the limit of $resource"; };
}

make_data();

# ---- Each allocation of a sort fails ----

# In sorts, in what each of their forms begins with, and in index builds; in this or
# in all processes of a parallel one.
my $parallel = parallel_plans(2, 'enable_gathermerge = off');
my $build = q{CREATE INDEX broken ON big (t COLLATE "C", k); SELECT bt_index_parent_check('broken', true, true);
	SELECT count(*) FROM big WHERE t COLLATE "C" > ''; DROP INDEX broken};
my $gin = q{CREATE INDEX broken ON big USING gin (string_to_array(t || ' ' || k, ' ')); SET enable_seqscan = off;
	SELECT count(*) FROM big WHERE string_to_array(t || ' ' || k, ' ') @> '{row}'; RESET enable_seqscan; DROP INDEX broken};
my %phases = (
	'sort in memory' => [ $on_cpu, $query ],
	'sort of runs' => [ "$on_cpu; SET pg_gpusort.work_mem = '256kB'", $query ],
	'sort of long ties' => [ $on_cpu, $query =~ s/ORDER BY k, id/ORDER BY t COLLATE "C"/r ],
	'sort below a LIMIT' => [ $on_cpu, $query =~ s/OFFSET 0/LIMIT 600/r ],
	'sort of long ties below a LIMIT' => [ $on_cpu, $query =~ s/ORDER BY k, id OFFSET 0/ORDER BY t COLLATE "C" LIMIT 600/r ],
	'sort of null keys' => [ $on_cpu, $query =~ s/ORDER BY k, id/ORDER BY NULLIF(k, k), id/r ],
	'sort of runs below a LIMIT' => [ "$on_cpu; SET pg_gpusort.work_mem = '256kB'", $query =~ s/OFFSET 0/LIMIT 600/r ],
	'sort on a GPU' => [ $anywhere, $query ],
	'sort on a GPU that has no room' => [ "$anywhere; SET pg_gpusort.device_memory = '1MB'", $query ],
	'parallel sort on a GPU' => [ "$anywhere; $parallel", $query ],
	'parallel sort on the CPU' => [ "$on_cpu; $parallel", $query ],
	'parallel sort of runs' => [ "$on_cpu; $parallel; SET pg_gpusort.work_mem = '128kB'", $query ],
	'index build on the CPU' => [ $on_cpu, $build ],
	'index build of runs' => [ "$on_cpu; SET maintenance_work_mem = '1MB'", $build ],
	'index build on a GPU' => [ $anywhere, $build ],
	'GIN index' => [ $on_cpu, $gin ],
	'GIN index of runs' => [ "$on_cpu; SET maintenance_work_mem = '1MB'", $gin ],
	'array' => [ $on_cpu, 'SELECT md5(gpu_sort(array_agg(k))::text), md5(gpu_argsort(array_agg(id))::text), md5(gpu_sort_agg(k)::text) FROM big' ]);

foreach my $phase (sort keys %phases)
{
	my ($settings, $statements) = @{ $phases{$phase} };
	my $session = Session($node, $settings);
	my $right = $session->run($statements);

	unlike($right, qr/ERROR/, "allocations, $phase: without a fault");
	like($session->run("EXPLAIN $statements"), qr/GpuSortSink/, "allocations, $phase: plan") if $phase =~ /^parallel/;
	$session->run('SELECT pg_stat_gpusort_reset()');

	# That of a number in each session's memory; or in one alone, which others can do without.
	foreach my $fault ('alloc', 'alloc_once')
	{
		my ($answers, $errors, $other, $number, $missed) = (0, 0, '', 0, 0);

		# There is no such allocation any more when nothing has come of several faults.
		while (++$number <= 300 && $missed < 3)
		{
			my $counts = q{SELECT coalesce(sum(sorts), 0) FROM pg_stat_gpusort_fallbacks WHERE reason = 'out of memory'};
			my $before = $session->run($counts);
			my $output = $session->run("SET pg_gpusort.debug_fault = 'host:$fault:$number'; $statements; RESET pg_gpusort.debug_fault");

			if ($output eq $right)
			{
				$session->run($counts) eq $before ? $missed++ : $answers++;
			}
			elsif ($output =~ /ERROR:  53200: out of memory/ && ($fault eq 'alloc' || $phase eq 'array'))
			{
				$errors++;
				$missed = 0;
				$session->run('RESET pg_gpusort.debug_fault; DROP INDEX IF EXISTS broken');
			}
			else
			{
				$other .= "allocation $number: $output\n";
				$session->run('ROLLBACK; RESET pg_gpusort.debug_fault; DROP INDEX IF EXISTS broken');
			}
		}
		is($other, '', "$fault, $phase: $answers answers, $errors errors, nothing else");
		cmp_ok($answers + $errors, '>', 0, "$fault, $phase: some fail");
	}
	goes_on($session, "allocations, $phase");
	$session->quit;
}

# ---- Too many rows for a sort in memory ----

foreach my $phase (sort grep { /CPU$|memory$/ } keys %phases)
{
	my ($settings, $statements) = @{ $phases{$phase} };
	my $session = Session($node, $settings);
	my $right = $session->run($statements);
	my $counts = q{SELECT coalesce(sum(sorts), 0) FROM pg_stat_gpusort_fallbacks
		WHERE reason = 'too many rows for a sort in memory'};

	foreach my $rows (1, 5000)
	{
		my $before = $session->run($counts);

		is($session->run("SET pg_gpusort.debug_fault = 'host:rows:$rows'; $statements; RESET pg_gpusort.debug_fault"),
			$right, "$phase, sessions of $rows rows");
		cmp_ok($session->run($counts), '>', $before, "$phase, sessions of $rows rows: reason");
	}
	goes_on($session, "$phase, sessions of few rows");
	$session->quit;
}

# ---- Faults that there are not ----

# A point without an action, an action at the wrong point, no time at all, sessions where there are none.
foreach my $fault ('host', 'host:crash:1', 'put:rows:1', 'host:rows:0', 'host:rows:1:2', 'put:error:1:0', 'put:error:1:2:3')
{
	my $session = Session($node, "$on_cpu; SET pg_gpusort.debug_fault = '$fault'");

	like($session->run($query), qr/22023: invalid value for parameter "pg_gpusort.debug_fault"/, "the fault $fault");
	$session->run('RESET pg_gpusort.debug_fault');
	goes_on($session, "the fault $fault");
	$session->quit;
}

# ---- An index that does not fit the disk ----

SKIP:
{
	skip 'needs prlimit', 1 unless $prlimit;
	$node->safe_psql('postgres', 'CREATE TABLE wide AS SELECT g AS id, (g * 7919::int8) % 1000003 AS k FROM generate_series(1, 900000) g');
	foreach my $settings ($on_cpu, $on_gpu, "$on_cpu; SET max_parallel_maintenance_workers = 2")
	{
		my $session = Session($node, $settings);
		my $files = "SELECT count(*) FROM pg_ls_dir('base/' || (SELECT oid FROM pg_database WHERE datname = 'postgres'))";
		my $before = $session->run("CHECKPOINT; $files");

		# More than a segment of WAL, which must not fail, and less than the index.
		limit($session->pid, 'fsize', 17 * 1024 * 1024);
		like($session->run('CREATE INDEX wide_k ON wide (k)'), qr/ERROR:  .*could not (extend|write)/, "disk full, $settings: an error");
		is($session->run(q{SELECT count(*) FROM pg_class WHERE relname = 'wide_k'}), '0', "disk full, $settings: no index");
		$session->run('CHECKPOINT');
		is($session->run($files), $before, "disk full, $settings: and no file");
		goes_on($session, "disk full, $settings");
		$session->quit;
		is($node->safe_psql('postgres', q{CREATE INDEX wide_k ON wide (k); SELECT bt_index_check('wide_k', true); DROP INDEX wide_k}),
			'', "disk full, $settings: the next build");
	}
	$node->safe_psql('postgres', 'DROP TABLE wide');
}

# ---- Processes that cannot be forked ----

SKIP:
{
	skip 'needs prlimit', 1 unless $prlimit && $> != 0;
	my ($postmaster) = split(/\n/, slurp_file($node->data_dir . '/postmaster.pid'));
	my $session = Session($node, $parallel, 'SET parallel_leader_participation = on');
	my %errors;

	my $lift = limit($postmaster, 'nproc', 1);
	foreach my $enable ('off', 'on')
	{
		($errors{$enable} = $session->run("SET pg_gpusort.enable = $enable; SET pg_gpusort.enable_index_build = $enable;
			SET max_parallel_maintenance_workers = 2; $query; CREATE INDEX unforked ON big (k); DROP INDEX IF EXISTS unforked")) =~ s/(NOTICE|LOCATION).*//g;
	}
	like($errors{off}, qr/parallel worker failed to initialize/, 'no fork of workers: an error in PostgreSQL');
	like($errors{on}, qr/^(?:\Q$expected\E|ERROR:  55000: parallel worker failed to initialize)/, 'no fork of workers: no other one in ours');
	$lift->();
	$session->run('RESET pg_gpusort.enable; RESET pg_gpusort.enable_index_build; DROP INDEX IF EXISTS unforked');
	goes_on($session, 'no fork of workers');

	# The device process.
	my $worker = service_pid($node);
	my $before = -s $node->logfile;
	$lift = limit($worker, 'nproc', 1);
	kill('KILL', status_of($node, 'device_process_pid')) == 1 or die 'no device process';
	$node->wait_for_log(qr/could not fork the device process/, $before);
	is($session->run("$anywhere; $query"), $expected, 'no fork of the device process: sorts go on');
	is(status_of($node, 'backend_reason'), 'the GPU service is starting', 'no fork of the device process: the reason');
	$lift->();
	wait_for_service($node);
	is($session->run("$on_gpu; $query"), $expected, 'no fork of the device process: and then it is there');
	$session->quit;
}

# ---- Comparisons that raise an error ----

# Among rows whose first keys are equal, when the rows are in memory, in runs, or
# are returned from a GPU.
my $ties = 'SELECT count(*) FROM (SELECT * FROM moods ORDER BY k, ROW(v)::moody OFFSET 0) s';
my %locations = ('memory' => $on_cpu, 'runs' => "$on_cpu; SET pg_gpusort.work_mem = '64kB'", 'GPU' => $on_gpu,
	'parallel GPU' => "$on_gpu; $parallel");
foreach my $location (sort keys %locations)
{
	my $session = Session($node, $locations{$location});

	like($session->run($ties), qr/ERROR:  P0001: not in the mood/, "comparison, $location: its error");
	goes_on($session, "comparison, $location");
	like($session->run(q{CREATE INDEX broken ON moods (k, (ROW(v)::moody))}), qr/ERROR:  P0001: not in the mood/,
		"comparison, $location: of an index build");
	is($session->run(q{SELECT count(*) FROM pg_class WHERE relname = 'broken'}), '0', "comparison, $location: no index");
	goes_on($session, "comparison, $location, index");
	$session->quit;
}

# ---- Lack of shared memory ----

SKIP:
{
	skip 'needs prlimit', 1 unless $prlimit;
	my %errors;

	foreach my $enable ('off', 'on')
	{
		my $session = Session($node, $parallel, "SET pg_gpusort.enable = $enable");

		my $lift = limit($session->pid, 'fsize', 8192);
		($errors{$enable} = $session->run($query)) =~ s/"[^"]*"|LOCATION.*|\d+ bytes//g;
		$lift->();
		goes_on($session, "no shared memory, $enable");
		$session->quit;
	}
	like($errors{off}, qr/could not (resize|write to|create) shared memory segment|\Q$expected\E/, 'no shared memory: PostgreSQL\'s error');
	is($errors{on}, $errors{off}, 'no shared memory: is ours');
}

# ---- A backend is killed while it sorts ----

$node->safe_psql('postgres', 'DELETE FROM moods WHERE v = 13');
foreach my $where ('GPU', 'CPU')
{
	my $session = Session($node, $where eq 'GPU' ? "$on_gpu; SET pg_gpusort.debug_fault = 'sort:hang'" : $on_cpu);
	my $device = status_of($node, 'device_process_pid');
	my $event = $where eq 'GPU' ? 'Extension|GpuSortSort' : 'PgSleep';

	$session->begin($where eq 'GPU' ? $query : $ties);
	ok(becomes_true($node, "SELECT wait_event ~ '$event' FROM pg_stat_activity WHERE pid = " . $session->pid),
		"killed while it sorts, $where: it does");
	my $before = -s $node->logfile;
	kill('KILL', $session->pid);
	like($session->finish, qr/server closed the connection|terminating connection|connection to server was lost/i,
		"killed while it sorts, $where: its end");
	$session->quit;
	wait_for_restart($node, $before);
	wait_for_service($node);
	ok(ends($device), "killed while it sorts, $where: the device process has ended");
	$node->safe_psql('postgres', 'DROP TABLE big');
	make_data();
	$session = Session($node, $on_gpu);
	goes_on($session, "killed while it sorts, $where");
	$session->quit;
}

$node->stop;
done_testing();
