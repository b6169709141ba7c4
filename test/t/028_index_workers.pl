# Index builds by parallel workers without a GPU, which sort their rows together and write
# pages: these are those of stock PostgreSQL, in memory and on disk, whoever ends in whatever
# phase, and after a crash.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'}, q{pg_gpusort.backend = 'cpu'},
	q{maintenance_work_mem = '64MB'}, 'pg_gpusort.min_rows = 0', 'max_worker_processes = 16', 'max_parallel_workers = 8',
	'max_parallel_maintenance_workers = 8', 'wal_level = replica', 'restart_after_crash = on');
add_index_tools($node);
make_items($node, 60000);

my $session = Session($node);

# as_stock NAME, KEYS, UNIQUE, TABLE: compare an index with that of stock PostgreSQL.
sub as_stock
{
	my ($name, $keys, $unique, $table) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$unique //= '';
	$table //= 'items';
	$session->run('SELECT pg_stat_gpusort_reset()');
	like($session->run("SELECT check_build('CREATE $unique INDEX built ON $table $keys', 'node')"),
		qr/^same, level [12]$/, "$name: $keys");
	return $session->run('SELECT sum(parallel_sorts) FROM pg_stat_gpusort');
}

# by_several NAME, KEYS, UNIQUE, TABLE: the same, and the processes must have sorted together.
sub by_several
{
	my ($name, $keys) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(as_stock(@_), '1', "$name: $keys: by several processes");
}

# ---- Pages ----

my @keys = (
	'(k)', '(k DESC NULLS LAST, t)', '(t)', '(t COLLATE "C" DESC) INCLUDE (n)', '(n)', '(u)', '(d, few)', '(few)', '(same)',
	'(few, t, n DESC)', '((k % 1000), (lower(t)))', '(t) WHERE id % 3 = 0',
	'(t) WITH (fillfactor = 50, deduplicate_items = off)');

foreach my $workers (1, 3, 8)
{
	$session->run("ALTER TABLE items SET (parallel_workers = $workers)");
	by_several("$workers workers", $_) foreach $workers == 3 ? @keys : @keys[0 .. 3, 8];
	by_several("$workers workers, unique", $_, 'UNIQUE') foreach '(u)', '(id DESC) INCLUDE (t)', '(t, id)';
}
$session->run('ALTER TABLE items SET (parallel_workers = 3)');
like($session->run(q{SELECT check_build('CREATE INDEX built ON items (k) WHERE id < 0', 'node')}),
	qr/^same, level 0$/, 'no rows');

# On disk, with less and less memory.  A worker that starts late may find no rows left, and then
# writes no run.  So at the last index each process waits at its first row for another one.
add_stops($node, 7);
$node->safe_psql('postgres', 'CREATE FUNCTION halting_key(id int) RETURNS int8 IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
	$$ BEGIN RETURN public.halting(id); END $$');
foreach my $memory ('8MB', '2MB', '1MB')
{
	my $stops;

	$session->run("SET maintenance_work_mem = '$memory'");
	as_stock($memory, $_) foreach @keys[0 .. 3, 8 .. 10];
	as_stock("$memory, unique", '(u, t)', 'UNIQUE');
	$stops = hold_stops($node);
	$session->begin(q{SELECT pg_stat_gpusort_reset(); SELECT check_build('CREATE INDEX built ON items ((halting_key(id)), t)', 'node');
		SELECT sum(parallel_sorts) FROM pg_stat_gpusort});
	becomes_true($node, stopped($session) =~ s/pid/count(*) > 1/r) or die 'no two processes wait';
	$stops->quit;
	like($session->finish, qr/^\s*same, level [12]\s+1$/, "$memory: by several processes");
	leaves_nothing($node, $memory);
}
$session->run('RESET maintenance_work_mem');

# They divide the rows alike, whatever memory other settings would give to the keys of ICU.
SKIP:
{
	skip 'no ICU', 1 if value_of($node, q{SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'}) eq '0';
	$session->run(q{SET maintenance_work_mem = '1MB'; ALTER TABLE items SET (parallel_workers = 1)});
	foreach my $memory ('64kB', '64MB')
	{
		$session->run("SET pg_gpusort.work_mem = '$memory'");
		as_stock("keys of ICU, $memory for sorts", '(((u::text || md5(id::text)) COLLATE "en-x-icu"))');
	}
	$session->run('RESET ALL; ALTER TABLE items SET (parallel_workers = 3)');
}

# The leader finds rows that are there twice, and says what stock PostgreSQL says.
{
	my $create = 'CREATE UNIQUE INDEX built ON items (t, (CASE WHEN id = 5001 THEN 5000 ELSE id END), k)';
	my $error;

	$session->run(q{UPDATE items SET (t, k) = ('twice', 1) WHERE id IN (5000, 5001)});
	foreach my $memory ('64MB', '1MB')
	{
		$session->run("SET maintenance_work_mem = '$memory'");
		$error = $session->run("SET pg_gpusort.debug_require = node; $create; RESET pg_gpusort.debug_require");
		like($error, qr/23505: .*\(twice, 5000, 1\) is duplicated/s, "unique, $memory: an error");
		# A worker of stock PostgreSQL's that finds it first would say that it is one.
		$session->run('SET pg_gpusort.enable_index_build = off; SET max_parallel_maintenance_workers = 0');
		is($error =~ s/LOCATION.*//r, $session->run($create) =~ s/LOCATION.*//r, "unique, $memory: that of stock");
		$session->run('RESET ALL');
	}
	leaves_nothing($node, 'unique');
}

# Processes agree on words that statistics ask for.
$session->run(q{
	CREATE TABLE clients (client text COLLATE "C", id int) WITH (parallel_workers = 3);
	INSERT INTO clients SELECT 'client of ' || md5((g % 40000)::text), g FROM generate_series(1, 60000) g;
	ANALYZE clients});
foreach my $memory ('64MB', '2MB')
{
	$session->run("SET maintenance_work_mem = '$memory'");
	by_several("two words of a string, $memory", $_, '', 'clients') foreach '(client)', '(client DESC, id)', '(lower(client), client)';
}
by_several('two words, unique', '(client, id)', 'UNIQUE', 'clients');
$session->run('RESET maintenance_work_mem');

# Columns passed by value, of which many rows become tuples at once: as long as no key is there
# twice, no column is NULL, and no row is dead.
$session->run(q{
	CREATE TABLE words (id int, b bool, c "char", s int2, i int, o oid, f float4, e float8, ts timestamptz, pairs int, runs int, gaps int)
		WITH (parallel_workers = 3);
	INSERT INTO words
	SELECT g, g % 3 = 0, chr(65 + g % 26)::"char", (g % 60000 - 30000)::int2, hashint4(g), g, sin(g), cos(g), timestamptz '2020-01-01' + g * interval '1 s',
		   g / 2, CASE WHEN g % 5000 < 300 THEN g / 5000 ELSE 100000 + g END, CASE WHEN g % 777 > 0 THEN g END
	FROM generate_series(1, 60000) g;
	INSERT INTO words SELECT 60001, false, 'x', 1, 1, 1, '-0', '-0', '-infinity', 1, 1, 1;
	INSERT INTO words SELECT 60002, false, 'x', 1, 1, 1, '0', '0', 'infinity', 1, 1, 1;
	DELETE FROM words WHERE id % 1009 = 0});
by_several('words', $_, '', 'words') foreach '(id)', '(b, id)', '(c, s)', '(s DESC)', '(i) WITH (fillfactor = 100)', '(i) WITH (fillfactor = 10)', '(o)',
  '(f)', '(e DESC)', '(ts, i) INCLUDE (s)', '(pairs)', '(runs)', '(runs) WITH (deduplicate_items = off)', '(gaps)', '(gaps, id)', '((id % 32771))';
by_several('words, unique', $_, 'UNIQUE', 'words') foreach '(id)', '(id DESC) INCLUDE (s)', '(f, id)', '(b, ts)', '(gaps, id)';
{
	my @wrong;

	foreach my $twice (1, 2, 100, 407, 408, map { $_ * 5003 } 1 .. 11)
	{
		my $create = "CREATE UNIQUE INDEX built ON words (b, (CASE WHEN id = $twice THEN $twice + 3 ELSE id END))";
		my $ours = $session->run("SET pg_gpusort.debug_require = node; $create; RESET pg_gpusort.debug_require");

		$session->run('SET pg_gpusort.enable_index_build = off; SET max_parallel_maintenance_workers = 0');
		push @wrong, $twice if $ours !~ /23505: / || $ours =~ s/LOCATION.*//r ne $session->run($create) =~ s/LOCATION.*//r;
		$session->run('RESET ALL');
	}
	is("@wrong", '', 'words: errors of keys that are there twice');
}

# Rows that another session still sees; and rows whose fate it decides, for which the build is
# left to PostgreSQL, which waits.
{
	my $reader = Session($node, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');

	$session->run('DELETE FROM items WHERE id % 17 = 0; UPDATE items SET few = -few, u = u WHERE id % 23 = 0');
	as_stock('dead rows', $_) foreach '(k)', '(t)', '(few)';
	as_stock('dead rows', '(u)', 'UNIQUE');
	$reader->quit;
}
$session->quit;

# Concurrently, and again.
foreach my $statement ('CREATE INDEX CONCURRENTLY i ON items (k, t)', 'REINDEX INDEX i', 'REINDEX INDEX CONCURRENTLY i')
{
	$node->safe_psql('postgres', "SET pg_gpusort.debug_require = node; $statement");
	indexes_are_sound($node, $statement);
}
is( $node->safe_psql('postgres', q{CREATE TABLE others AS SELECT index_pages('i') AS pages; SET pg_gpusort.enable_index_build = off;
		REINDEX INDEX i; SELECT pages_difference((SELECT pages FROM others), index_pages('i')) IS NULL}),
	't', 'concurrently: the pages of stock PostgreSQL');

# ---- After a crash ----

# Pages that workers have written are there, from WAL or without it.
foreach my $level ('replica', 'minimal')
{
	$node->append_conf('postgresql.conf', "wal_level = $level\nmax_wal_senders = 0");
	$node->restart;
	$node->safe_psql('postgres', q{
		CHECKPOINT;
		SET pg_gpusort.debug_require = node;
		DROP TABLE IF EXISTS others;
		CREATE UNLOGGED TABLE unlogged AS TABLE items;
		CREATE INDEX unlogged_k ON unlogged (k, t);
		REINDEX INDEX i;
		BEGIN;
		CREATE TABLE fresh (id int, k int8, t text);
		INSERT INTO fresh SELECT id, k, t FROM items;
		CREATE INDEX fresh_k ON fresh (k, t);
		COMMIT;
		CREATE TABLE others AS SELECT index_pages('fresh_k') AS pages});
	$node->stop('immediate');
	$node->start;
	indexes_are_sound($node, "wal_level = $level, after a crash");
	foreach my $index ('fresh_k', 'i')
	{
		is( $node->safe_psql('postgres', qq{
				CREATE TEMP TABLE here AS SELECT index_pages('$index') AS pages;
				SET pg_gpusort.enable_index_build = off; REINDEX INDEX $index;
				SELECT pages_difference((SELECT pages FROM here), index_pages('$index')) IS NULL}),
			't', "wal_level = $level, after a crash: the pages of stock PostgreSQL in $index");
	}
	is($node->safe_psql('postgres', 'SELECT count(*) FROM unlogged'), '0', "wal_level = $level, after a crash: the unlogged table");
	$node->safe_psql('postgres', 'DROP TABLE unlogged, fresh, others');
}

# ---- Memory that ends ----

{
	my ($wrong, $errors) = (0, 0);

	foreach my $allocation (1 .. 50)
	{
		my ($code, $output, $error) = $node->psql('postgres', "SET pg_gpusort.debug_fault = 'host:alloc_once:$allocation'; REINDEX INDEX i");

		$errors++ if $code != 0;
		$wrong++ if $code != 0 && $error !~ /out of memory/;
	}
	is($wrong, 0, 'memory that ends: an index, or the right error');
	cmp_ok($errors, '<', 25, 'memory that ends: mostly an index');
	indexes_are_sound($node, 'memory that ends');
	leaves_nothing($node, 'memory that ends');
}

# ---- Processors that are busy ----

# A build that finds a sort for each processor has no workers, unless the table says how many.
{
	my $processors = `getconf _NPROCESSORS_ONLN` + 0;
	my $holder = Session($node, 'SELECT pg_advisory_lock(77)');
	my $planned = q{SET min_parallel_table_scan_size = 0; SET maintenance_work_mem = '256MB'; ALTER TABLE items RESET (parallel_workers)};

	$session->run($planned);
	by_several('idle processors', '(k, t)');
	my @sorts = map { Session($node, 'SET pg_gpusort.debug_require = node') } 1 .. $processors;
	$_->begin('SELECT g FROM generate_series(1, 3) g, pg_advisory_lock_shared(77) ORDER BY g') foreach @sorts;
	becomes_true($node, "SELECT count(*) = $processors FROM pg_stat_progress_gpusort WHERE phase = 'reading rows'");
	is(as_stock('busy processors', '(k, t)'), '0', 'busy processors: by one process');
	$session->run('ALTER TABLE items SET (parallel_workers = 3)');
	by_several('busy processors, parallel_workers', '(k, t)');
	$holder->quit;
	$_->finish foreach @sorts;
	$_->quit foreach @sorts;
	$session->run('RESET ALL');
}

# ---- Ends in each phase ----

# A worker that sorts stops whatever phase the leader is in.
my %phases = (
	'reading' => [ 'CREATE INDEX ended ON items ((stopping(id)))', '' ],
	'sorting' => [ 'CREATE INDEX ended ON items (same, (id::int8) stopping)', 'sorting' ],
	'writing' => [ 'CREATE UNIQUE INDEX ended ON items (same, (id::int8) stopping)', 'loading' ]);

# A crash of the server leaves the file of the index behind, as in stock PostgreSQL, so it comes last.
foreach my $end (@ENDS)
{
	foreach my $phase (sort keys %phases)
	{
		my ($statement, $stop) = @{ $phases{$phase} };
		my $ending = Session($node, 'SET pg_gpusort.debug_require = node', "SET stop.phase = '$stop'");
		my $stops = hold_stops($node);

		$ending->run(q{SET statement_timeout = '1s'}) if $end eq 'timeout';
		$ending->begin($statement);
		becomes_true($node, 'SELECT EXISTS (' . stopped($ending) . ')') or die 'no process waits' if $end ne 'timeout';
		if ($end =~ /^worker/ && !value_of($node, "SELECT max(pid) FROM ($WORKERS) w"))
		{
			# They have ended while the leader writes.
			$stops->quit;
			$ending->finish;
			$ending->run('DROP INDEX ended');
			$ending->quit;
			next;
		}
		ends_well($node, $ending, $stops, $end, "$phase, $end");
		files_belong($node, "$phase, $end") if $end ne 'worker killed';
	}
}
$session = Session($node);
as_stock('after all that', '(k, t)');
$session->quit;

# ---- Without shared memory ----

$node->stop;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', q{''});
$node->append_conf('postgresql.conf', q{session_preload_libraries = 'pg_gpusort'});
$node->start;
like($node->safe_psql('postgres', q{SELECT check_build('CREATE INDEX built ON items (k)', 'node')}),
	qr/^same/, 'not preloaded: by one process');

$node->stop;
done_testing();
