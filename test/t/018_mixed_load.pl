# Writes, sorts whose rows are compared with those of stock PostgreSQL, and index builds that amcheck
# looks at, all at a time, while backends and the device process are killed, or that is stopped for a while.
#
# GPUSORT_LOAD_SECONDS says how long, GPUSORT_LOAD_SEED what is random.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $seconds = $ENV{GPUSORT_LOAD_SECONDS} // 30;
my $seed = $ENV{GPUSORT_LOAD_SEED} // 1;

# Seconds of one run of pgbench; and between backends that are killed, after each of
# which the server starts anew.
my $run_seconds = 5;
my $crash_seconds = 20;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '2MB'}, 'pg_gpusort.max_sessions_per_backend = 8', q{work_mem = '16MB'},
	'restart_after_crash = on', 'max_connections = 60', 'max_worker_processes = 20',
	'max_parallel_workers = 6', q{deadlock_timeout = '100ms'}, 'autovacuum = on',
	q{log_line_prefix = '%m %p %a '}, 'log_statement = none');
srand($seed);
note("seed $seed, $seconds seconds");

$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION amcheck;
	CREATE TABLE items AS
	SELECT g AS id, CASE WHEN g % 19 > 0 THEN (g * 7919::int8) % 20011 END AS k, md5((g % 3000)::text) AS t,
		   sin(g) AS f, g * 3.7 AS n, repeat('x', g % 60) AS filler
	FROM generate_series(1, 20000) g;
	ALTER TABLE items ADD PRIMARY KEY (id);
	CREATE TABLE done (what text);
	ANALYZE items;

	-- Rows and their order, once by the extension and once by PostgreSQL.
	CREATE FUNCTION check_sort(ordering text, variant int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		query text := format('SELECT md5(string_agg(s::text, %L)), count(*) FROM (SELECT id, k, t, f, n, filler FROM items ORDER BY %s OFFSET 0) s',
			',', ordering);
		ours record;
		stocks record;
	BEGIN
		PERFORM set_config('pg_gpusort.enable', 'off', true);
		PERFORM set_config('max_parallel_workers_per_gather', '0', true);
		EXECUTE query INTO stocks;
		PERFORM set_config('pg_gpusort.enable', 'on', true);
		PERFORM set_config('pg_gpusort.debug_require', 'node', true);
		PERFORM set_config('pg_gpusort.backend', CASE WHEN variant % 5 = 0 THEN 'cpu' ELSE 'gpu' END, true);
		PERFORM set_config('pg_gpusort.work_mem', CASE WHEN variant % 3 = 0 THEN '256kB' ELSE '-1' END, true);
		PERFORM set_config('pg_gpusort.device_memory', CASE WHEN variant % 7 = 0 THEN '1MB' ELSE '0' END, true);
		IF variant % 2 = 0 THEN
			PERFORM set_config('max_parallel_workers_per_gather', '2', true);
			PERFORM set_config('min_parallel_table_scan_size', '0', true);
			PERFORM set_config('parallel_setup_cost', '0', true);
			PERFORM set_config('parallel_tuple_cost', '0', true);
		END IF;
		EXECUTE query INTO ours;
		PERFORM set_config('pg_gpusort.debug_require', 'off', true);
		IF ours IS DISTINCT FROM stocks THEN
			RAISE EXCEPTION 'WRONG RESULT: ORDER BY %, variant %: % instead of %', ordering, variant, ours, stocks;
		END IF;
		INSERT INTO done VALUES ('sort');
	END $$;

	-- Rows that a cursor returns while others write and devices end.
	CREATE FUNCTION check_cursor(variant int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		c CURSOR FOR SELECT k, id FROM items ORDER BY k, id;
		this record;
		last record;
		n int8 := 0;
		expected int8;
	BEGIN
		SELECT count(*) INTO expected FROM items;
		PERFORM set_config('pg_gpusort.debug_require', 'node', true);
		FOR this IN c LOOP
			IF n > 0 THEN
				IF this.k < last.k OR this.k = last.k AND this.id <= last.id OR this.k IS NOT NULL AND last.k IS NULL THEN
					RAISE EXCEPTION 'WRONG RESULT: row % of a cursor', n;
				END IF;
			END IF;
			last := this;
			n := n + 1;
		END LOOP;
		IF n <> expected THEN
			RAISE EXCEPTION 'WRONG RESULT: % rows of a cursor instead of %', n, expected;
		END IF;
		INSERT INTO done VALUES ('cursor');
	END $$;

	CREATE FUNCTION check_index(columns text, number int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		name text := 'items_' || number;
		built int8;
	BEGIN
		PERFORM set_config('max_parallel_maintenance_workers', (number % 3)::text, true);
		PERFORM set_config('min_parallel_table_scan_size', '0', true);
		PERFORM set_config('pg_gpusort.debug_require', 'node', true);
		EXECUTE format('CREATE INDEX %I ON items (%s)', name, columns);
		PERFORM set_config('pg_gpusort.debug_require', 'off', true);
		BEGIN
			PERFORM bt_index_parent_check(name::regclass, true, true);
		EXCEPTION WHEN index_corrupted THEN
			RAISE EXCEPTION 'WRONG RESULT: index on %, %: %', columns, number, SQLERRM;
		END;
		EXECUTE format('DROP INDEX %I', name);
		INSERT INTO done VALUES ('index');
	END $$;
});

my %scripts = (
	'write' => q{
		\set id random(1, 20000)
		\set k random(1, 20011)
		BEGIN;
		UPDATE items SET k = nullif(:k, 77), f = f + 1 WHERE id = :id;
		DELETE FROM items WHERE id = 20001 + :id % 500;
		INSERT INTO items VALUES (20001 + :id % 500, :k, md5(:k::text), :k / 3.0, :id, 'new') ON CONFLICT DO NOTHING;
		INSERT INTO done SELECT 'write' WHERE :id % 10 = 0;
		COMMIT;},
	'sort' => q{
		\set variant random(1, 1000)
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SELECT check_sort((ARRAY['k, id', 't COLLATE "C", id', 'f DESC, id', 'n, id', 'k DESC NULLS LAST, t COLLATE "C", id', 'id'])[1 + :variant % 6], :variant);
		COMMIT;},
	'cursor' => q{
		\set variant random(1, 1000)
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SELECT check_cursor(:variant);
		COMMIT;},
	'index' => q{
		\set variant random(1, 1000)
		SELECT check_index((ARRAY['k', 't COLLATE "C"', 'f DESC, k', 'n', 'id, t COLLATE "C"', 'k) INCLUDE (f'])[1 + :variant % 6], :variant);
		\sleep 300 ms});
my %clients = ('write' => 3, 'sort' => 4, 'cursor' => 1, 'index' => 1);
my %runs;

# ---- pgbench, again and again, since kills end its connections ----

foreach my $name (keys %scripts)
{
	append_to_file($node->basedir . "/$name.sql", $scripts{$name} =~ s/^\s+//mgr);
}

sub start_run
{
	my ($name) = @_;
	my $run = { out => '', start => time(), timer => IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default) };

	$run->{handle} = IPC::Run::start(
		[
			$node->installed_command('pgbench'), '-n', '-h', $node->host, '-p', $node->port, '-c', $clients{$name},
			'-T', $run_seconds, '--max-tries', 5, '-f', $node->basedir . "/$name.sql",
			'dbname=postgres application_name=load'
		],
		'<', \undef, '>', \$run->{out}, '2>&1', $run->{timer});
	$runs{$name} = $run;
}

# finish_runs FINALLY: start again what has ended; at the end, wait for it.
my $wrong = 0;
my $stuck = 0;
sub look_at_runs
{
	my ($finally) = @_;

	foreach my $name (keys %runs)
	{
		my $run = $runs{$name};

		eval { $run->{handle}->pump_nb if $run->{handle}->pumpable; 1 } or $stuck++;
		next if $run->{handle}->pumpable && !$finally;
		eval { $run->{handle}->finish; 1 } or do
		{
			$stuck++;
			$run->{handle}->kill_kill;
			diag("$name does not end: $run->{out}");
		};
		$wrong++, diag($run->{out}) if $run->{out} =~ /WRONG RESULT|assert/i;
		delete $runs{$name};
		start_run($name) if !$finally;
	}
}

# ---- Kills ----

my %kills = map { $_ => 0 } 'device process', 'stop', 'worker', 'cancel', 'terminate', 'backend';

# The device process that is stopped, or 0.
my $stopped = 0;

# ask QUERY: '' if the server is not there.
sub ask
{
	my ($ret, $out) = $node->psql('postgres', $_[0], timeout => 60);

	return $ret == 0 ? $out : '';
}

# continue_stopped: unless it has ended meanwhile.
sub continue_stopped
{
	kill('CONT', $stopped) if $stopped > 0;
	$stopped = 0;
}

sub kill_something
{
	my ($may_crash) = @_;
	my @kinds = ('device process', 'device process', 'stop', 'cancel', 'terminate', $may_crash ? 'backend' : 'worker');
	my $kind = $kinds[ rand @kinds ];
	my $somebody = q{pid = (SELECT pid FROM pg_stat_activity WHERE application_name = 'load'
		AND backend_type IN ('client backend', 'parallel worker') AND state = 'active' ORDER BY random() LIMIT 1)};
	my $done = '';

	# Other things happen meanwhile, too.
	continue_stopped() if rand() < 0.7;
	if ($kind eq 'device process' || $kind eq 'stop')
	{
		my $pid = ask(q{SELECT value FROM gpusort_status() WHERE name = 'device_process_pid'});

		$done = 't' if ($pid || 0) > 0 && kill($kind eq 'stop' ? 'STOP' : 'KILL', $pid);
		$stopped = $pid if $kind eq 'stop' && $done ne '';
	}
	elsif ($kind eq 'backend')
	{
		my $pid = ask("SELECT pid FROM pg_stat_activity WHERE $somebody");
		$done = 't' if ($pid || 0) > 0 && kill('KILL', $pid);
	}
	elsif ($kind eq 'worker')
	{
		$done = ask(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_gpusort service'});
	}
	else
	{
		$done = ask("SELECT pg_${kind}_backend(pid) FROM pg_stat_activity WHERE $somebody");
	}
	$kills{$kind}++ if $done =~ /t/;
	return $kind eq 'backend' && $done ne '';
}

my $start = time();
my $last_crash = $start;
my $next_kill = $start + 2;

# has_done_all: has each script come to its end, and the device process been killed?  That
# takes longer on a busy machine, and is waited for.
sub has_done_all
{
	my $done = ask('SELECT count(DISTINCT what) FROM done');

	return $kills{'device process'} > 0 && $done eq scalar(keys %scripts);
}

start_run($_) foreach keys %scripts;
while (time() - $start < $seconds ||
	(time() - $start < $seconds + $PostgreSQL::Test::Utils::timeout_default && !has_done_all()))
{
	look_at_runs(0);
	if (time() > $next_kill)
	{
		$last_crash = time() if kill_something(time() - $last_crash > $crash_seconds);
		$next_kill = time() + 0.3 + rand(2.5);
	}
	usleep(50_000);
}
continue_stopped();
look_at_runs(1);

# ---- What is left ----

is($wrong, 0, 'no wrong result');
is($stuck, 0, 'no session is stuck');
unlike(slurp_file($node->logfile), qr/ERROR:  .*WRONG RESULT|PANIC:|TRAP:|terminated by signal (11|6|7)\b/, 'nor does the log tell of one');
becomes_true($node, 'SELECT true') or die 'the server does not restart';
ok(becomes_true($node, q{SELECT count(*) = 0 FROM pg_stat_activity
			WHERE application_name = 'load' OR backend_type = 'parallel worker'}), 'nobody is left');
wait_for_service($node);
holds_nothing($node, 'at the end');
leaves_nothing($node, 'at the end');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_prepared_xacts, pg_locks WHERE relation::regclass::text LIKE 'items%'}),
	'0', 'no lock is left');
is($node->safe_psql('postgres', q{SELECT bt_index_parent_check('items_pkey', true, true)}), '', 'the primary key is right');
$node->safe_psql('postgres', q{SET pg_gpusort.debug_require = gpu; SELECT * FROM items ORDER BY k, id});
pass('a sort on the GPU');
foreach my $what (sort keys %scripts)
{
	my $count = $node->safe_psql('postgres', "SELECT count(*) FROM done WHERE what = '$what'");

	cmp_ok($count, '>', 0, "done: $what ($count)");
}
cmp_ok($kills{'device process'}, '>', 0, 'killed: ' . join(', ', map { "$_ $kills{$_}" } sort keys %kills));

$node->stop;
done_testing();
