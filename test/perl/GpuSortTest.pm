# What the TAP tests share.

package GpuSortTest;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

our @EXPORT = qw(value_of becomes_true logged start_node start_gpu_node gpu_settings gpu_library_file parallel_plans
  wait_for_service status_of service_pid ends crash_server wait_for_restart holds_nothing make_table make_halves make_items make_distributions
  ordered_keys sorts_like_stock digest digest_of bears_failing_allocations bears_stops leaves_nothing add_stops hold_stops wait_for_stop stopped add_long_values
  build_while_values_go add_index_tools indexes_are_sound index_digests files_belong Session @ENDS $WORKERS %SORTS_BELOW %LATE_LIMITS %GPU_QUERIES %PARALLEL_QUERIES
  end_session error_of_end wait_for_end ends_well loops_like_sql make_plain same_as_stock crash_device kill_hung $OURS $ON_GPU $STOCK $EXPLAIN $REASONS);

# Settings under which our node must hold the rows of a sort, or a GPU must, or the sort fails;
# and those under which stock PostgreSQL sorts.
our $OURS = 'SET pg_gpusort.enable = on; SET pg_gpusort.debug_require = node';
our $ON_GPU = 'SET pg_gpusort.enable = on; SET pg_gpusort.debug_require = gpu';
our $STOCK = 'SET pg_gpusort.debug_require = off; SET pg_gpusort.enable = off';

# Runs a query, and shows how its sorts were done, without times.
our $EXPLAIN = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';

# A query for the reasons that have been counted; a condition can follow.
our $REASONS = q{SELECT string_agg(reason || ' ' || sorts, ', ' ORDER BY reason, random()) FROM pg_stat_gpusort_fallbacks};

# Queries of the tables of make_table() and make_halves(), for sorts that may not fit on a GPU.
our %GPU_QUERIES = (
	'fixed rows' => 'SELECT k, id FROM big ORDER BY k, id',
	'variable rows' => 'SELECT * FROM big ORDER BY k, id',
	'descending' => 'SELECT * FROM big ORDER BY k DESC, id',
	'nulls first' => 'SELECT * FROM halves ORDER BY k NULLS FIRST, id',
	'half of the keys null' => 'SELECT * FROM halves ORDER BY k, id',
	'null keys alone' => 'SELECT * FROM halves ORDER BY NULLIF(k, k), id',
	'text' => 'SELECT * FROM halves ORDER BY t COLLATE "C", id');

# Queries of the same tables, for sorts of rows that parallel processes have read.
our %PARALLEL_QUERIES = (
	%GPU_QUERIES,
	'descending, nulls last' => 'SELECT * FROM big ORDER BY k DESC NULLS LAST, id DESC',
	'several columns' => 'SELECT * FROM halves ORDER BY b, f DESC, k, id',
	'an expression as key' => 'SELECT k, id FROM big ORDER BY k % 10, id',
	'no rows' => 'SELECT * FROM big WHERE id < 0 ORDER BY k, id',
	'one row' => 'SELECT * FROM big WHERE id = 7 ORDER BY k, id',
	'a condition' => 'SELECT * FROM big WHERE id % 3 = 0 ORDER BY k, id',
	'a subplan\'s value' => 'SELECT k, id FROM big WHERE id > (SELECT min(id) + 5 FROM halves) ORDER BY k, id',
	'constants' => q{SELECT 1 AS one, k, id, 'text'::text AS t, NULL::int8 AS n FROM big ORDER BY k, id},
	'columns that are not used' => q{SELECT s.id, s.k FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s},
	'columns that are not used, a condition' => q{SELECT s.t, s.b FROM (SELECT * FROM halves WHERE id % 3 > 0 ORDER BY k, id OFFSET 0) s},
	'one key, no columns' => q{SELECT count(*) FROM (SELECT * FROM halves ORDER BY t, id OFFSET 0) s},
	'a hash join' => 'SELECT a.k, b.t, a.id FROM big a JOIN halves b USING (id) ORDER BY b.k, a.k, a.id',
	'whole rows' => 'SELECT h, id FROM halves h ORDER BY k, id',
	'arrays' => 'SELECT ARRAY[k, id] AS a, id FROM halves ORDER BY k, id');

# How often a test looks whether something has come, and the microseconds in between.
my $interval = 20_000;
my $tries = $PostgreSQL::Test::Utils::timeout_default * 1_000_000 / $interval;

# The session of each server in which value_of() asks.
my %asking;

# What psql says when it has lost the server; it may go on for a statement.
my $ended = qr/^(?:WARNING|FATAL):  57P0|server closed the connection|no connection to the server/m;

# value_of NODE, QUERY: returns what the query returns, as safe_psql() does, but without a
# process and a connection of its own.  The query leaves the session as it was, and
# does not depend on settings.
sub value_of
{
	my ($node, $query) = @_;

	# The server may have been started anew since the last call.
	foreach my $attempt (1, 2)
	{
		my $output = eval {
			$asking{$node} //= GpuSortTest::Session->new($node);
			$asking{$node}->run($query);
		};

		if (defined $output && $asking{$node}->connected && $output !~ $ended)
		{
			die "$query: $output" if $output =~ /^ERROR:/m;
			return $output;
		}
		my $lost = delete $asking{$node};
		$lost->quit if defined $lost;
	}
	die "no connection for $query";
}

# becomes_true NODE, QUERY: waits until the query returns true.  Returns whether it does.
# The server may be starting meanwhile.
sub becomes_true
{
	my ($node, $query) = @_;

	foreach my $try (1 .. $tries)
	{
		return 1 if (eval { value_of($node, $query) } // '') eq 't';
		usleep($interval);
	}
	diag("never true: $query");
	return 0;
}

# start_node NAME, SETTING...: starts a new server with these lines of settings, and
# creates the extension in it.
sub start_node
{
	my ($name, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	# Collations of ICU need an encoding, whatever the locale of the environment is.
	$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf',
		join("\n", 'jit = off', 'autovacuum = off', @settings, ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_gpusort');
	return $node;
}

# The emulator, or the library that the environment names.
sub gpu_library
{
	return $ENV{GPUSORT_DEVICE_LIBRARY} // 'pg_gpusort_emu';
}

# gpu_library_file NODE: returns the file of that library.
sub gpu_library_file
{
	my ($node) = @_;
	my $directory = $node->config_data('--pkglibdir');

	return "$directory/" . gpu_library() . '.so';
}

# Settings of a server whose GPU is the emulator, or what the environment says, and
# which does all sorts there.  On a busy machine the emulator can take any time.
sub gpu_settings
{
	my $library = gpu_library();

	return (
		q{shared_preload_libraries = 'pg_gpusort'},
		"pg_gpusort.device_library = '$library'",
		'pg_gpusort.backend = gpu',
		'pg_gpusort.min_rows = 0',
		'pg_gpusort.device_timeout = 0',
		'max_parallel_workers_per_gather = 0');
}

# parallel_plans WORKERS, SETTING...: returns statements that make plans parallel where
# possible, with that many workers, followed by these settings.  Sorts are not divided, which
# 039_divided_sorts.pl tests.
sub parallel_plans
{
	my ($workers, @settings) = @_;

	return join('; ', map { "SET $_" } "max_parallel_workers_per_gather = $workers",
		'min_parallel_table_scan_size = 0', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
		'pg_gpusort.debug_divide = off', @settings);
}

# Queries whose nodes need sorted rows of the table "halves", with the settings that leave
# the planner no other way than to sort.  Rows of a join come in any order from a Gather.
# PostgreSQL 19 marks pages as visible to all when queries read them, so that scans of indexes
# alone become cheap.
our %SORTS_BELOW = (
	'groups' => [ 'SELECT k, count(*), sum(id), max(t) FROM halves GROUP BY k', 'SET enable_hashagg = off' ],
	'groups without aggregates' => [ 'SELECT k, t FROM halves GROUP BY k, t', 'SET enable_hashagg = off' ],
	'groups by an expression' => [ 'SELECT id % 1000 AS e, count(*) FROM halves GROUP BY e', 'SET enable_hashagg = off' ],
	'few groups' => [ 'SELECT b, count(*), min(id), max(f) FROM halves GROUP BY b HAVING count(*) > 0', 'SET enable_hashagg = off' ],
	'distinct' => [ 'SELECT DISTINCT t, b FROM halves', 'SET enable_hashagg = off' ],
	'distinct on' => [ 'SELECT DISTINCT ON (k) k, id, t FROM halves ORDER BY k, id DESC' ],
	'windows' => [ 'SELECT id, row_number() OVER w, lag(t) OVER w FROM halves WINDOW w AS (PARTITION BY id % 100 ORDER BY k, id)' ],
	'windows in two orders' => [ 'SELECT id, rank() OVER (ORDER BY t, id) AS r, sum(f) OVER (PARTITION BY b ORDER BY k, id) FROM halves' ],
	'windows above groups' => [ 'SELECT k, rank() OVER (ORDER BY k DESC), count(*) FROM halves GROUP BY k', 'SET enable_hashagg = off' ],
	'a join' => [ 'SELECT count(*), sum(id * hashtext(t)::int8), count(k) FROM (SELECT a.id, b.t, a.k FROM halves a JOIN halves b USING (id) OFFSET 0) s',
		'SET enable_hashjoin = off; SET enable_nestloop = off' ],
	'a join of equal keys' => [ 'SELECT count(*), sum(a::numeric * b) FROM (SELECT a.id AS a, b.id AS b FROM halves a JOIN halves b USING (k) OFFSET 0) s',
		'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off' ],
	'a full join' => [ 'SELECT count(*), sum(a), sum(b), sum(a * b) FROM (SELECT a.id AS a, b.id AS b FROM halves a FULL JOIN halves b ON a.id = b.id + 500 OFFSET 0) s',
		'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_indexonlyscan = off' ],
	'an anti join' => [ 'SELECT count(*), sum(hashtext(t)::int8 * id)
		FROM (SELECT a.id, a.t FROM halves a WHERE NOT EXISTS (SELECT FROM halves b WHERE b.id = a.id AND b.id % 7 > 0) OFFSET 0) s',
		'SET enable_hashjoin = off; SET enable_nestloop = off' ],
	'an array' => [ 'SELECT k, array_agg(t ORDER BY id DESC), count(DISTINCT f) FROM halves GROUP BY k', 'SET enable_hashagg = off' ],
	'a union' => [ 'SELECT k, t FROM halves UNION SELECT id % 900, t FROM halves WHERE id % 3 > 0', 'SET enable_hashagg = off' ],
	'a union of three' => [ 'SELECT k, id FROM halves UNION SELECT id, k FROM halves UNION SELECT 7, 8 FROM halves', 'SET enable_hashagg = off' ],
	'an intersection' => [ 'SELECT k, t FROM halves WHERE id > 50 INTERSECT SELECT k, t FROM halves WHERE id % 3 > 0', 'SET enable_hashagg = off' ],
	'an intersection of all rows' => [ 'SELECT b, f FROM halves INTERSECT ALL SELECT b, f FROM halves WHERE id % 3 > 0', 'SET enable_hashagg = off' ],
	'a difference' => [ 'SELECT t, k FROM halves EXCEPT SELECT t, k FROM halves WHERE id % 3 > 0', 'SET enable_hashagg = off' ],
	'a difference of all rows' => [ 'SELECT k FROM halves EXCEPT ALL SELECT id FROM halves WHERE id % 3 > 0', 'SET enable_hashagg = off' ],
	'a union within a difference' => [ '(SELECT id, k FROM halves UNION SELECT k, id FROM halves) EXCEPT SELECT id::int8, 7 FROM halves', 'SET enable_hashagg = off' ],
	'an intersection within a union' => [ '(SELECT id, k FROM halves INTERSECT SELECT id, k FROM halves WHERE b) UNION SELECT k::int8, id FROM halves WHERE id < 900',
		'SET enable_hashagg = off' ]);

# Sorts of that table with a LIMIT whose value is known only when they begin.
our %LATE_LIMITS = (
	'a few rows' => 'SELECT * FROM (SELECT k, id, t FROM halves ORDER BY k, id LIMIT (SELECT 10)) s',
	'a few rows behind others' => 'SELECT * FROM (SELECT id, t FROM halves ORDER BY k DESC, id LIMIT (SELECT 30) OFFSET (SELECT 300)) s',
	'nearly all rows' => 'SELECT * FROM (SELECT k, id, t FROM halves ORDER BY k, id LIMIT (SELECT 19000)) s',
	'more rows than there are' => 'SELECT * FROM (SELECT k, id FROM halves ORDER BY k, id LIMIT (SELECT 50000)) s',
	'all rows but the first' => 'SELECT * FROM (SELECT k, id, t FROM halves ORDER BY k, id LIMIT (SELECT NULL::int8) OFFSET (SELECT 1)) s',
	'another number each time' => 'SELECT g, s.id FROM (VALUES (1, 7), (2, 19000), (3, 2), (4, NULL), (5, 90)) v (g, n)
		CROSS JOIN LATERAL (SELECT id FROM halves ORDER BY k, id LIMIT v.n) s');

# start_gpu_node NAME, SETTING...: starts such a server, and waits until the service is
# ready.
sub start_gpu_node
{
	my ($name, @settings) = @_;
	my $node = start_node($name, gpu_settings(), @settings);

	wait_for_service($node);
	return $node;
}

# logged NODE, PATTERN, FROM, LEAST: returns how often the pattern is in the server's log
# from a place on, once it is there LEAST times.  A process may show its state a moment
# before it logs it.
sub logged
{
	my ($node, $pattern, $from, $least) = @_;
	my @found;

	foreach my $try (1 .. $tries)
	{
		@found = slurp_file($node->logfile, $from) =~ /$pattern/g;
		last if @found >= ($least // 0);
		usleep($interval);
	}
	return scalar(@found);
}

# wait_for_service NODE, STATE: waits for this state, or for "ready".
sub wait_for_service
{
	my ($node, $state) = @_;

	$state //= 'ready';
	becomes_true($node,
		"SELECT value = '$state' FROM gpusort_status() WHERE name = 'service'")
	  or die "the GPU service does not become $state";
}

# status_of NODE, NAME: returns a value of gpusort_status().
sub status_of
{
	my ($node, $name) = @_;

	return value_of($node, "SELECT value FROM gpusort_status() WHERE name = '$name'");
}

# Returns the process ID of the service's background worker, or ''.
sub service_pid
{
	my ($node) = @_;

	return value_of($node,
		q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_gpusort service'});
}

# crash_device NODE: kills the device process, and waits until its sessions are known to be lost.
sub crash_device
{
	my ($node) = @_;
	my $restarts = status_of($node, 'device_process_restarts');

	kill('KILL', status_of($node, 'device_process_pid')) == 1 or die 'no device process';
	becomes_true($node, "SELECT value::int > $restarts FROM gpusort_status() WHERE name = 'device_process_restarts'")
	  or die 'the end of the device process is not seen';
}

# kill_hung NODE: limits the time of a device process that hangs, until it has been killed.
# Others could need more time.
sub kill_hung
{
	my ($node) = @_;
	my $pid = status_of($node, 'device_process_pid');
	my $before = -s $node->logfile;

	value_of($node, q{ALTER SYSTEM SET pg_gpusort.device_timeout = '1s'});
	$node->reload;
	logged($node, qr/WARNING:  the device process of pg_gpusort has not responded for \d+ seconds, and is killed/, $before, 1)
	  or die 'nobody notices that the device process hangs';
	value_of($node, 'ALTER SYSTEM RESET pg_gpusort.device_timeout');
	$node->reload;
	ends($pid) or die 'it does not end';
}

# ends PID: waits for the process to end.  Returns whether it does.
sub ends
{
	my ($pid) = @_;

	foreach my $try (1 .. $tries)
	{
		return 1 if !kill(0, $pid);
		usleep($interval);
	}
	return 0;
}

# crash_server NODE: kills the postmaster and all of its processes, which would finish what
# they do, and starts the server again.
sub crash_server
{
	my ($node) = @_;
	my $postmaster = PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postmaster.pid');
	my ($pid) = $postmaster =~ /^(\d+)/;
	my @children;

	# Stopped, it starts no process that is not in the list.
	kill 'STOP', $pid;
	usleep($interval) until `ps -o state= -p $pid` =~ /^[TZ]|^$/;
	@children = split ' ', `ps -o pid= --ppid $pid`;
	$node->kill9;
	kill 'KILL', @children;
	ends($_) foreach $pid, @children;
	$node->start;
}

# wait_for_restart NODE, FROM: waits until the server has noticed that a process was killed,
# in its log from a place on, and accepts connections again.
sub wait_for_restart
{
	my ($node, $from) = @_;

	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $from);
	becomes_true($node, 'SELECT true') or die 'the server does not restart';
}

# holds_nothing NODE, NAME: tests that in the end no session or chunk is in use, and no
# more device memory than a device keeps for itself.
sub holds_nothing
{
	my ($node, $name) = @_;
	my $held;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $try (1 .. $tries)
	{
		$held = value_of(
			$node, q{
			SELECT name, value FROM gpusort_status()
			WHERE name IN ('sessions', 'pool_chunks_in_use') AND value <> '0' OR
				  name = 'device_memory_in_use' AND value::int8 > 262144});
		last if $held eq '';
		usleep($interval);
	}
	is($held, '', "$name: no session, chunk or device memory is in use");
}

# make_table NODE, ROWS: makes a table "big" with an unsorted key and some NULLs.
sub make_table
{
	my ($node, $rows) = @_;

	$node->safe_psql(
		'postgres', qq{
		CREATE UNLOGGED TABLE big AS
		SELECT CASE WHEN g % 97 > 0 THEN g * 7919::int8 % 1000003 END AS k,
			   g AS id, 'row number ' || g AS t
		FROM generate_series(1, $rows) g;
		ANALYZE big;
	});
}

# make_halves NODE: makes a table "halves" of 20000 rows, with columns of several types and a
# key of which half is NULL.
sub make_halves
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q{
		CREATE TABLE halves AS
		SELECT CASE WHEN g % 2 = 0 THEN g * 7919 % 10007 END::int4 AS k, g AS id,
			   repeat(chr(97 + g % 26), g % 40) AS t, g % 5 = 0 AS b, g / 8.0::float8 AS f,
			   (g * 7919 % 10007)::numeric / 7 AS n
		FROM generate_series(1, 20000) g;
	});
}

# make_plain NODE, ROWS: makes a table "plain" of two numbers.
sub make_plain
{
	my ($node, $rows) = @_;

	$node->safe_psql('postgres',
		"CREATE TABLE plain AS SELECT (g * 7919::int8) % ($rows + 1) AS k, g::int8 AS id FROM generate_series(1, $rows) g");
}

# make_items NODE, ROWS: makes a table "items" with columns of several types, HOT chains and dead
# rows, for indexes.
sub make_items
{
	my ($node, $rows) = @_;

	$node->safe_psql(
		'postgres', qq{
		CREATE TABLE items (id int, k int8, t text, n numeric, u uuid, few int, d date, same int)
			WITH (fillfactor = 80);
		INSERT INTO items
		SELECT g, CASE WHEN g % 97 > 0 THEN g * 7919::int8 % 1000003 END,
			   CASE WHEN g % 7 > 0 THEN md5((g % 9000)::text) END,
			   CASE WHEN g % 11 > 0 THEN (g * 7919 % 10007)::numeric / 7 END,
			   md5(g::text)::uuid, g % 50, date '2020-01-01' + g % 900, 7
		FROM generate_series(1, $rows) g;
		UPDATE items SET few = few + 1 WHERE id % 10 = 0;
		BEGIN; DELETE FROM items WHERE id % 19 = 0; UPDATE items SET few = 0; ROLLBACK;
		DELETE FROM items WHERE id % 13 = 0;
		ANALYZE items;
	});
}

# make_distributions NODE: makes a table "keys" of 60000 rows, enough for several ranges
# of a sort by several processes, with columns of many distributions; and a table "uneven",
# whose rows are in few pages at its end, so that one process has nearly all of them.
sub make_distributions
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q{
		CREATE TABLE keys AS
		SELECT g AS id, hashint8extended(g, 1) AS random, g AS ascending, -g AS descending,
			   7 AS same, g % 2 AS two, (hashint4(g) & 1023)::int2 AS few, NULL::int4 AS nothing,
			   CASE WHEN g = 77 THEN 1 END AS almost_nothing,
			   CASE WHEN g % 1000 = 0 THEN (-2)::float8 ^ (g % 900) ELSE 1.5 END AS outliers,
			   (g::int8 << 32) + (hashint4(g) & 3) AS two_windows,
			   'a long common beginning ' || (hashint4(g) % 500) AS text,
			   'a long common beginning' AS same_text, md5(g::text) AS long_text,
			   CASE WHEN g % 100 = 1 THEN repeat('y', g % 4000) END AS wide
		FROM generate_series(1, 60000) g;
		CREATE TABLE uneven AS SELECT g AS id, repeat('x', 500) AS filler FROM generate_series(1, 20000) g;
		DELETE FROM uneven;
		INSERT INTO uneven SELECT g, 'y' FROM generate_series(1, 20000) g;
		ANALYZE;
	});
}

# Returns a query for a digest of the keys in their order and of the rows.  Without the
# volatile key, PostgreSQL 16 would sort below the aggregate a second time.
sub ordered_keys
{
	my ($clause) = @_;

	return qq{
		SELECT md5(string_agg(coalesce(k::text, 'NULL'), ',' ORDER BY place, random())), sum(hashtext(whole)), count(*)
		FROM (SELECT k, row_number() OVER () AS place, s::text AS whole
			  FROM (SELECT * FROM big ORDER BY k $clause) s) s};
}

# Returns the digest of a query's rows in their order.
sub digest
{
	my ($query) = @_;

	return "SELECT count(*), md5(string_agg(s::text, ',')) FROM ($query OFFSET 0) s";
}

# sorts_like_stock NODE, NAME, SETTINGS, CLAUSE: tests that a sort of the table has the
# result of stock PostgreSQL, and that EXPLAIN names the node.
sub sorts_like_stock
{
	my ($node, $name, $settings, $clause) = @_;
	my $query = ordered_keys($clause // '');
	my $load = q{LOAD 'pg_gpusort'};
	my $ours = "$load; $OURS; SET pg_gpusort.min_rows = 0";

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$settings //= '';
	like($node->safe_psql('postgres', "$ours; $settings; EXPLAIN $query"),
		qr/\(GpuSort\)/, "$name: by the node");
	is($node->safe_psql('postgres', "$ours; $settings; $query"),
		$node->safe_psql('postgres', "$load; $STOCK; $query"),
		"$name: as stock sorts");
}

# same_as_stock SESSION, QUERY, NAME: tests that a query has the result of stock PostgreSQL.
sub same_as_stock
{
	my ($session, $query, $name) = @_;
	my $result = $session->run("$OURS; $query");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($result, $session->run("$STOCK; $query"), $name);
}

# Returns a query for a digest of the rows of another one, in any order, which may be in a parallel
# plan.  It makes a table "kept".
sub digest_of
{
	my ($query) = @_;

	return "CREATE TEMP TABLE kept AS SELECT s::text AS r FROM ($query) s; SET pg_gpusort.debug_require = off;
		SELECT count(*), md5(string_agg(r, ',' ORDER BY r COLLATE \"C\")) FROM kept";
}

# bears_failing_allocations NODE, SETTINGS, QUERY, EXPECTED, ALLOCATION...: tests that the query
# returns what is expected, or that there is no memory, while each of the allocations fails.
sub bears_failing_allocations
{
	my ($node, $settings, $query, $expected, @allocations) = @_;
	my @wrong;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $allocation (@allocations)
	{
		my ($code, $output, $error) =
			$node->psql('postgres', "$settings; SET pg_gpusort.debug_fault = 'host:alloc:$allocation'; $query");

		push @wrong, "$allocation: $output$error" if $code == 0 ? $output ne $expected : $error !~ /out of memory/;
	}
	is("@wrong", '', "memory that ends: $settings");
}

# bears_stops NODE, SETTINGS, QUERY, EXPECTED, SECONDS, STATEMENTS...: tests that the query, which
# makes a table "kept", returns what is expected, or is cancelled or terminated, while its workers
# are stopped after so many more seconds each time.  Before, it runs these statements by turns.
sub bears_stops
{
	my ($node, $settings, $query, $expected, $seconds, @statements) = @_;
	my $leader = Session($node, $settings);
	my $workers = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND leader_pid = } . $leader->pid;
	my $end = qr/canceling statement|terminating (connection|background worker)/;
	my ($ended, @wrong) = (0);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $round (1 .. 20)
	{
		$leader->run("DROP TABLE IF EXISTS kept; $statements[$round % @statements]");
		$leader->begin($query);
		PostgreSQL::Test::Utils::system_log('sleep', $seconds * $round);
		my @pids = split /\n/, $node->safe_psql('postgres', $workers);

		kill 'STOP', @pids if @pids;
		$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $leader->pid . ')') if $round % 4 == 3;
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pids[0])") if $round % 4 == 1 && @pids;
		PostgreSQL::Test::Utils::system_log('sleep', 0.1);
		kill 'CONT', @pids if @pids;
		my $output = $leader->finish;

		$ended++ if $output =~ $end;
		push @wrong, "$round: $output" if $output !~ $end && $output !~ /\Q$expected\E/;
	}
	is("@wrong", '', 'processes that are stopped');
	note("$ended ended");
	$leader->quit;
	leaves_nothing($node, 'processes that are stopped');
}

# leaves_nothing NODE, NAME: tests that there are no temporary files, and that no process
# has shared memory for rows.
sub leaves_nothing
{
	my ($node, $name) = @_;
	my @files = glob($node->data_dir . '/base/pgsql_tmp/*');

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("@files", '', "$name: no temporary files are left");
	ok( becomes_true(
			$node, q{SELECT value = '0' FROM gpusort_status() WHERE name = 'warm_memory_in_use'}),
		"$name: no shared memory is left");
}

# add_index_tools NODE, DATABASE: creates the functions of sql/index_setup.sql, which
# take indexes apart and compare them, and two extensions that they need.
sub add_index_tools
{
	my ($node, $database) = @_;

	$node->command_ok(
		[
			'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($database // 'postgres'),
			'-c', 'SET pg_gpusort.backend = cpu', '-f', "$FindBin::RealBin/../../sql/index_setup.sql"
		],
		'functions for tests of indexes');
}

# add_stops NODE, VALUE: creates functions that wait while a session of hold_stops()
# exists.  halting(k) waits at each row.  stopping(k), which returns k as well, and the
# comparisons of the operator class "stopping" wait when they meet the value.  The
# setting stop.phase is a pattern of the phases in which index builds wait; if it is
# empty, they wait in all phases.
sub add_stops
{
	my ($node, $value) = @_;

	$node->safe_psql('postgres', q{
		CREATE FUNCTION stop() RETURNS void PARALLEL SAFE LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_stat_clear_snapshot();
			IF (SELECT coalesce(bool_and(phase ~ coalesce(current_setting('stop.phase', true), '')), true)
				FROM pg_stat_progress_create_index WHERE pid = pg_backend_pid())
			THEN
				PERFORM pg_advisory_lock_shared(1000);
				PERFORM pg_advisory_unlock_shared(1000);
			END IF;
		END $$;
		CREATE FUNCTION halting(k int8) RETURNS int8 STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_lock_shared(1000);
			PERFORM pg_advisory_unlock_shared(1000);
			RETURN k;
		END $$;
		CREATE FUNCTION stopping(k int8) RETURNS int8 IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
			$$ BEGIN IF k = VALUE THEN PERFORM public.stop(); END IF; RETURN k; END $$;
		CREATE FUNCTION compare_stopping(a int8, b int8) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
			$$ BEGIN PERFORM public.stopping(least(a, b)); RETURN btint8cmp(a, b); END $$;
		DO $$
		DECLARE
			operator text;
		BEGIN
			FOREACH operator IN ARRAY '{<, <=, =, >=, >}'::text[] LOOP
				EXECUTE format('CREATE FUNCTION %I(int8, int8) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE sql AS
								$f$ SELECT public.compare_stopping($1, $2) %s 0 $f$', 'stopping' || operator, operator);
				EXECUTE format('CREATE OPERATOR %s# (FUNCTION = %I, LEFTARG = int8, RIGHTARG = int8)',
							   operator, 'stopping' || operator);
			END LOOP;
		END $$;
		CREATE OPERATOR CLASS stopping FOR TYPE int8 USING btree AS
			OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#,
			FUNCTION 1 compare_stopping(int8, int8)} =~ s/VALUE/$value/r);
}

# hold_stops NODE: returns a session; others wait in these functions until it quits.
sub hold_stops
{
	my ($node) = @_;

	return GpuSortTest::Session->new($node, 'SELECT pg_advisory_lock(1000)');
}

# wait_for_stop NODE, SESSION, COUNT: waits until COUNT processes of the session or more wait
# there, which are the session itself and its parallel workers.  The default is one.
sub wait_for_stop
{
	my ($node, $session, $count) = @_;

	$count //= 1;
	becomes_true($node, stopped($session) =~ s/pid/count(*) >= $count/r)
	  or die "there are not $count processes that wait";
}

# stopped SESSION: returns a query for these processes.
sub stopped
{
	my ($session) = @_;

	return q{SELECT pid FROM pg_locks JOIN pg_stat_activity a USING (pid)
		WHERE locktype = 'advisory' AND objid = 1000 AND NOT granted AND } .
	  $session->pid . ' IN (pid, leader_pid)';
}

# Ends of a session with parallel workers; after the last one the server starts again.
our @ENDS = ('workers terminated', 'leader cancelled', 'leader terminated', 'timeout', 'worker killed');

# The parallel workers of all sessions.
our $WORKERS = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker'};

# end_session NODE, SESSION, END: makes a session end so.  A timeout comes by itself.
sub end_session
{
	my ($node, $session, $end) = @_;
	my $pid = $session->pid;

	kill 'KILL', value_of($node, "SELECT max(pid) FROM ($WORKERS) w") if $end eq 'worker killed';
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM ($WORKERS) w") if $end eq 'workers terminated';
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)") if $end eq 'leader cancelled';
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)") if $end eq 'leader terminated';
}

# error_of_end END: returns what the error of the session is like.
sub error_of_end
{
	my ($end) = @_;

	return
	  $end eq 'timeout' ? qr/57014: canceling statement due to statement timeout/ :
	  $end eq 'leader cancelled' ? qr/57014: canceling statement due to user request/ :
	  $end eq 'worker killed' ? qr/crash of another server process|server closed the connection/ :
	  qr/57P01: terminating (connection|background worker)/;
}

# wait_for_end NODE: waits until the server is there and has no parallel workers.
sub wait_for_end
{
	my ($node) = @_;

	becomes_true($node, 'SELECT true') or die 'the server does not come back';
	becomes_true($node, "SELECT count(*) = 0 FROM ($WORKERS) w") or die 'workers stay';
}

# ends_well NODE, SESSION, STOPS, END, NAME: makes a session end so that may wait for that of
# hold_stops(), and tests its error, and that it leaves nothing.
sub ends_well
{
	my ($node, $session, $stops, $end, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	end_session($node, $session, $end);
	like($session->finish, error_of_end($end), "$name: error");
	$_->quit foreach $session, $stops;
	wait_for_end($node);
	leaves_nothing($node, $name);
}

# loops_like_sql NODE, SETTINGS, QUERY, VALUE: tests that a loop in PL/pgSQL gets the rows of the
# query, by adding up a value of each row r.  It executes a Gather without parallel mode, in one
# process.
sub loops_like_sql
{
	my ($node, $settings, $query, $value) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', "$settings; CREATE FUNCTION one_by_one() RETURNS bigint LANGUAGE plpgsql AS \$\$
		DECLARE
			r record;
			total bigint := 0;
		BEGIN
			FOR r IN EXECUTE '$query' LOOP
				total := total + $value;
			END LOOP;
			RETURN total;
		END \$\$;
		SELECT one_by_one() = (SELECT sum($value) FROM ($query) r)"), 't', 'a loop in PL/pgSQL');
}

# add_long_values NODE: creates what build_while_values_go() needs.
sub add_long_values
{
	my ($node) = @_;

	add_stops($node, 1000);
	$node->safe_psql('postgres', q{
		CREATE TABLE long_values (id int, k int8, t text COLLATE "C", u text COLLATE "C");
		ALTER TABLE long_values ALTER t SET STORAGE EXTERNAL, ALTER u SET STORAGE EXTERNAL;
		-- Values that are in the file of its TOAST table, whoever sees them.
		CREATE FUNCTION chunks() RETURNS int8 LANGUAGE sql AS $$
			SELECT count(*)
			FROM pg_class t, generate_series(0, pg_relation_size(reltoastrelid) / current_setting('block_size')::int8 - 1) block,
				heap_page_items(get_raw_page(reltoastrelid::regclass::text, block))
			WHERE t.oid = 'long_values'::regclass AND lp_flags = 1
		$$});
}

# build_while_values_go NODE, STATEMENT, SETTING...: returns the output of a statement
# that builds long_index and stops at k = 1000, which is in the last rows.  Some rows
# are dead but visible to another session.  While the statement waits, that session
# ends, and the values of these rows are removed.
sub build_while_values_go
{
	my ($node, $statement, @settings) = @_;
	my $toast = $node->safe_psql('postgres', q{
		DROP INDEX IF EXISTS long_index;
		TRUNCATE long_values;
		INSERT INTO long_values
		SELECT g, 1, repeat(md5(g::text), 60), repeat(md5((-g)::text), 20) FROM generate_series(1, 60) g;
		INSERT INTO long_values VALUES (1000, 1000, '', ''), (1000, 1000, 'last', '');
		SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'long_values'::regclass});
	my $reader = GpuSortTest::Session->new($node, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
	my $stops = hold_stops($node);
	my $builder = GpuSortTest::Session->new($node, @settings);

	$node->safe_psql('postgres', q{
		DELETE FROM long_values WHERE id % 2 = 0 AND k = 1;
		UPDATE long_values SET t = '', u = '' WHERE id % 3 = 0});
	my $before = $node->safe_psql('postgres', 'SELECT chunks()');
	$builder->begin($statement);
	wait_for_stop($node, $builder);
	$reader->run('COMMIT');
	$node->safe_psql('postgres', "VACUUM $toast");
	$node->safe_psql('postgres', 'SELECT chunks()') < $before or die 'all values are there';
	$stops->quit;
	my $output = $builder->finish;
	$_->quit foreach $reader, $builder;
	return $output;
}

# A query for all btree indexes of tables other than the system's.
my $indexes = q{
	FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_class t ON t.oid = indrelid
	WHERE c.relkind = 'i' AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'btree') AND
		  t.relnamespace <> 'pg_catalog'::regnamespace AND indrelid >= 16384};

# indexes_are_sound NODE, NAME, DATABASE: tests that amcheck finds nothing wrong with
# any index, and that all rows are in the indexes.
sub indexes_are_sound
{
	my ($node, $name, $database) = @_;
	my $call = 'bt_index_parent_check(c.oid, true, true)';

	# A standby does not grant the lock that this call takes.  The other call skips
	# indexes there that are not logged, which some versions report.
	$call = 'bt_index_check(c.oid, true)'
	  if $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($ret, $out, $err) = $node->psql($database // 'postgres',
		"SET client_min_messages = warning;
		 SELECT count(*) FROM (SELECT $call $indexes AND indisvalid OFFSET 0) s");
	is($err, '', "$name: amcheck");
	cmp_ok($out || 0, '>', 0, "$name: there are indexes");
}

# index_digests NODE, DATABASE: returns the name of each logged index and a digest of
# its pages, made by the functions above.
sub index_digests
{
	my ($node, $database) = @_;

	return $node->safe_psql($database // 'postgres', qq{
		SELECT c.oid::regclass, cardinality(pages), md5(pages::text)
		FROM (SELECT c.oid, index_pages(c.oid) AS pages $indexes AND
				  c.relpersistence = 'p' AND t.relkind <> 't' OFFSET 0) c
		ORDER BY c.oid::regclass::text COLLATE "C"});
}

# files_belong NODE, NAME: tests that each file of the database belongs to a relation,
# and that there are no temporary files.
sub files_belong
{
	my ($node, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	# A checkpoint removes the files of dropped relations.
	$node->safe_psql('postgres', 'CHECKPOINT');
	is( $node->safe_psql(
			'postgres', q{
			SELECT file FROM pg_database d,
				pg_ls_dir('base/' || d.oid) file
			WHERE datname = current_database() AND file ~ '^t?[0-9]' AND
				  substring(file from '^(?:t\d+_)?(\d+)')::oid NOT IN
				  (SELECT coalesce(pg_relation_filenode(oid), 0) FROM pg_class)}),
		'',
		"$name: no files are left");
	leaves_nothing($node, $name);
}

# A psql that stays connected:
#	my $session = Session($node);
#	my $output = $session->run($statements);
#	$session->begin($statements); ...; my $output = $session->finish;
# Errors are in the output, with their SQLSTATE.
sub Session
{
	return GpuSortTest::Session->new(@_);
}

package GpuSortTest::Session;

use IPC::Run;
use PostgreSQL::Test::Utils;

sub new
{
	my ($class, $node, @settings) = @_;
	my $self = bless { in => '', out => '', count => 0 }, $class;

	$self->{timer} = IPC::Run::timer($PostgreSQL::Test::Utils::timeout_default);
	$self->{psql} = IPC::Run::start(
		[
			$node->installed_command('psql'), '-X', '-q', '-A', '-t',
			'-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres')
		],
		'<', \$self->{in}, '>', \$self->{out}, '2>&1', $self->{timer});
	($self->{pid}) = $self->run('SELECT pg_backend_pid()') =~ /^(\d+)$/;
	$self->run($_) foreach @settings;
	return $self;
}

sub pid { return $_[0]->{pid}; }

sub begin
{
	my ($self, $statements) = @_;

	$self->{end} = 'end of ' . ++$self->{count};
	$self->{out} = '';
	$self->{in} .= "$statements;\n\\echo '$self->{end}'\n";
	$self->{timer}->start($PostgreSQL::Test::Utils::timeout_default);
	$self->{psql}->pump_nb;
}

# Returns the output since begin(), or what there is of it if the connection was lost.
sub finish
{
	my ($self) = @_;

	$self->{psql}->pump
	  until $self->{out} =~ /^\Q$self->{end}\E$/m || !$self->{psql}->pumpable;
	my $output = $self->{out};
	$output =~ s/^\Q$self->{end}\E\n//m;
	chomp $output;
	return $output;
}

# Has the session come to the end of what it was to run?
sub connected
{
	my ($self) = @_;

	return $self->{out} =~ /^\Q$self->{end}\E$/m;
}

sub run
{
	my ($self, $statements) = @_;

	$self->begin($statements);
	return $self->finish;
}

sub quit
{
	my ($self) = @_;

	$self->{in} .= "\\q\n";
	eval { $self->{psql}->finish };
}

1;
