# Index builds on a GPU, which the emulator plays: the pages are those of stock
# PostgreSQL, also if the GPU is lost, or its memory or the build's is used up.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{maintenance_work_mem = '64MB'},
	'wal_level = replica');
add_index_tools($node);
make_items($node, 40000);
my $lost = 'the GPU service was lost';
my $full = 'not enough device memory';
my $failed = 'the device reported an error';
my $builds = q{SELECT string_agg(backend || ' ' || index_builds, ', ' ORDER BY backend, random())
	FROM pg_stat_gpusort WHERE index_builds > 0};

my $session = Session($node);

# as_stock NAME, KEYS, REQUIRE, UNIQUE: compare an index with that of stock PostgreSQL.
sub as_stock
{
	my ($name, $keys, $require, $unique) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$unique //= '';
	$session->run('SELECT pg_stat_gpusort_reset()');
	like($session->run("SELECT check_build('CREATE $unique INDEX built ON items $keys', '$require')"),
		qr/^same, level [12]$/, "$name: $keys");
}

# ---- Pages ----

my @keys = (
	'(k)', '(k DESC NULLS LAST, t)', '(t)', '(t COLLATE "C" DESC) INCLUDE (n)', '(n)', '(u)', '(d, few)', '(few)',
	'(few, t, n DESC)', '((k % 1000), (lower(t)))', '(t) WHERE id % 3 = 0', '(k) WHERE false OR id < 0',
	'(t) WITH (fillfactor = 50, deduplicate_items = off)');

foreach my $keys (grep { !/false/ } @keys)
{
	as_stock('pages', $keys, 'gpu');
	is($session->run($builds), 'gpu 1', "pages: $keys: counted");
}
like($session->run(q{SELECT check_build('CREATE INDEX built ON items (k) WHERE id < 0', 'gpu')}),
	qr/^same, level 0$/, 'no rows');
as_stock('unique', $_, 'gpu', 'UNIQUE') foreach '(u)', '(id DESC) INCLUDE (t)', '(t, id)';
{
	my $create = 'CREATE UNIQUE INDEX built ON items (t, (CASE WHEN id = 5001 THEN 5000 ELSE id END), k)';
	my $error;

	$session->run(q{UPDATE items SET (t, k) = ('twice', 1) WHERE id IN (5000, 5001)});
	$error = $session->run("SET pg_gpusort.debug_require = gpu; $create; RESET pg_gpusort.debug_require");
	like($error, qr/23505: .*\(twice, 5000, 1\) is duplicated/s, 'unique: an error');
	# A worker that finds it first would say that it is one.
	$session->run('SET pg_gpusort.enable_index_build = off; SET max_parallel_maintenance_workers = 0');
	is($error =~ s/LOCATION.*//r, $session->run($create) =~ s/LOCATION.*//r, 'unique: that of stock');
	$session->run('RESET ALL');
}
{
	# Rows that another session still sees.
	my $reader = Session($node, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');

	$session->run('DELETE FROM items WHERE id % 17 = 0; UPDATE items SET few = -few, u = u WHERE id % 23 = 0');
	as_stock('dead rows', $_, 'gpu') foreach '(k)', '(t)', '(few)';
	as_stock('dead rows', '(u)', 'gpu', 'UNIQUE');
	$session->run(q{SET pg_gpusort.debug_fault = 'get:error:9'});
	as_stock('dead rows, lost', $_, 'node') foreach '(k)', '(t)', '(few)';
	$session->run('RESET pg_gpusort.debug_fault');
	$reader->quit;
}

# ... until the build waits, with long values, which are vacuumed away; when the table is
# read again, such rows are dead for all.
add_long_values($node);
foreach my $fault ('', 'sort:error')
{
	foreach my $keys ('(t, stopping(k))', '(id, k stopping, t, u)')
	{
		my $name = "long values, $fault: $keys";

		is( build_while_values_go($node, "CREATE INDEX long_index ON long_values $keys", "SET pg_gpusort.debug_fault = '$fault'",
				'SET pg_gpusort.debug_require = ' . ($fault eq '' ? 'gpu' : 'node')),
			'', "$name: no error");
		is($node->safe_psql('postgres', q{SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'long_index'::regclass}),
			$fault ne '' && $keys =~ /stopping\(/ ? 'f' : 't', "$name: old snapshots");
		indexes_are_sound($node, $name);
	}
}
holds_nothing($node, 'pages');

# ---- Faults ----

# faulty NAME, FAULT, REASON, KEYS...: what is counted, and that nothing is left.
sub faulty
{
	my ($fault, $reason, @with) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $keys (@with)
	{
		$session->run("SET pg_gpusort.debug_fault = '$fault'");
		as_stock($fault, $keys, 'node');
		is($session->run($REASONS), $reason, "$fault: $keys: the reason is counted");
		is($session->run($builds) =~ s/external|cpu/cpu/r, $reason eq '' ? 'gpu 1' : 'cpu 1',
			"$fault: $keys: the build is counted once");
		$session->run('RESET pg_gpusort.debug_fault');
	}
	wait_for_service($node);
	holds_nothing($node, $fault);
	files_belong($node, $fault);
}

my @few = ('(k)', '(t)');
faulty("$_:error", "$failed 1", @few) foreach 'open', 'put', 'sort', 'get';
faulty("put:error:$_", "$failed 1", @few) foreach 2, 7;
faulty("get:error:$_", "$failed 1", @few) foreach 2, 9;
faulty("put:memory:$_", "$full 1", @few, '(few)') foreach 1, 2, 7;
faulty('put:memory:5', "$full 1", '(few, t, n DESC)');
faulty($_, "$full 1", @few) foreach 'sort:memory', 'get:memory:9';
foreach my $fault ('put:crash:3', 'sort:lost', 'get:crash:1', 'get:lost:9')
{
	my $warning = $fault =~ /crash/ ? qr/the device process of pg_gpusort was terminated/ : qr/pg_gpusort lost GPU \d+/;
	my $before = -s $node->logfile;

	# New device processes come later and later, unless the server is new.
	$session->quit;
	$node->restart;
	wait_for_service($node);
	$session = Session($node);
	faulty($fault, "$lost 1", '(t)');
	cmp_ok(logged($node, $warning, $before, 1), '>', 0, "$fault: a warning");
}

# ---- Parallel workers ----

$session->run('ALTER TABLE items SET (parallel_workers = 3)');
foreach my $keys (@few, '(few)')
{
	as_stock('workers', $keys, 'gpu');
	is($session->run(q{SELECT parallel_sorts FROM pg_stat_gpusort WHERE backend = 'gpu'}), '1',
		"workers: $keys: they add rows");
}
like($session->run('SET pg_gpusort.debug_require = gpu; CREATE UNIQUE INDEX built ON items (few)'),
	qr/could not create unique index/, 'workers: duplicates');
$session->run('RESET ALL');
as_stock('workers', '(u, t)', 'gpu', 'UNIQUE');

# The leader must not give memory back to the device whose rows workers still need.
$session->run("SET pg_gpusort.debug_fault = 'host:late:100'");
as_stock('workers that form tuples late', $_, 'gpu') foreach @few, '(few)';
$session->run('RESET ALL');
foreach my $point ('put:memory', 'put:error')
{
	faulty("$point:$_", $point =~ /memory/ ? "$full 1" : "$failed 1", $point =~ /memory/ ? @few : "(t)") foreach 1, 2, 5, 20;
}
faulty('get:error:9', "$failed 1", @few);
foreach my $limit ('4MB', '6MB', '8MB')
{
	$session->run("SET pg_gpusort.device_memory = '$limit'");
	as_stock("workers, $limit of device memory", $_, 'node') foreach '((t || t || t || t))', @few;
	$session->run('RESET ALL');
	holds_nothing($node, "workers, $limit of device memory");
}
$session->run('ALTER TABLE items RESET (parallel_workers)');

# ---- Pages that were written already ----

# truncations CODE: how often it has the server truncate a file.
sub truncations
{
	my ($code) = @_;
	my $start = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	my $wal;

	$code->();
	my $end = $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn() FROM pg_switch_wal()');
	run_log(
		[
			$node->installed_command('pg_waldump'), '--rmgr=Storage', '-p', $node->data_dir . '/pg_wal', '-s', $start,
			'-e', $end
		],
		'>', \$wal) or die 'pg_waldump failed';
	return scalar(() = $wal =~ /TRUNCATE/g);
}

my $late = q{SET pg_gpusort.debug_fault = 'get:error:15'; SET pg_gpusort.debug_require = node};
my $compare = q{SELECT pages_difference(index_pages('rebuilt'), index_pages('stocks'))};
my $create = sub {
	my ($concurrently, $table) = @_;

	$session->run("SET pg_gpusort.enable_index_build = off; CREATE INDEX $concurrently stocks ON $table (t, n);
		RESET ALL; $late");
	is($session->run("CREATE INDEX $concurrently rebuilt ON $table (t, n)"), '', "$table: no error $concurrently");
	$session->run('RESET ALL');
};
my $drop = 'DROP INDEX rebuilt, stocks';

is(truncations(sub { $create->('', 'items') }), 1, 'pages are taken back');
is($session->run($compare), '', 'pages are taken back: as stock builds');
is($session->run($drop), '', 'drop');
is(truncations(sub { $session->run("$late; CREATE INDEX short ON items (k) WHERE id < 2000") }),
	0, 'there are no pages to take back');
$session->run('RESET ALL; DROP INDEX short');
$create->('CONCURRENTLY', 'items');
is($session->run($compare), '', 'CONCURRENTLY: as stock builds');
indexes_are_sound($node, 'CONCURRENTLY');
$session->run("$late; REINDEX INDEX CONCURRENTLY stocks; REINDEX INDEX stocks; RESET ALL");
is($session->run($compare), '', 'REINDEX: as stock builds');
$session->run($drop);

# Errors that come after the loss are those of the statement.
$session->run("$late; SET statement_timeout = 0");
like($session->run('CREATE UNIQUE INDEX rebuilt ON items (t, few)'), qr/could not create unique index/, 'duplicates');
is($session->run('CREATE UNIQUE INDEX rebuilt ON items (u, t)'), '', 'unique');
like($session->run('BEGIN; CREATE INDEX stocks ON items (t); ROLLBACK'), qr/^$/, 'rolled back');
$session->run('RESET ALL; DROP INDEX rebuilt');
files_belong($node, 'after errors');

# In a table that another way of building takes no WAL for.
$session->run('CREATE UNLOGGED TABLE unlogged AS TABLE items; CREATE TEMP TABLE temporary AS TABLE items');
foreach my $table ('unlogged', 'temporary')
{
	$create->('', $table);
	is($session->run($compare), '', "$table: as stock builds");
	is($session->run("SELECT bt_index_parent_check('rebuilt', true, true); $drop"), '', "$table: amcheck");
}

# The same after a crash: from WAL, and without.
foreach my $level ('replica', 'minimal')
{
	$session->quit;
	$node->append_conf('postgresql.conf', "wal_level = $level\nmax_wal_senders = 0");
	$node->restart;
	wait_for_service($node);
	$session = Session($node);
	$session->run('CHECKPOINT');
	is(truncations(sub { $create->('', 'items') }), $level eq 'minimal' ? 0 : 1, "wal_level = $level: WAL of it");
	$session->run('CREATE TABLE flushed ()');
	$session->quit;
	$node->stop('immediate');
	$node->start;
	wait_for_service($node);
	$session = Session($node);
	is($session->run($compare), '', "wal_level = $level: after a crash");
	indexes_are_sound($node, "wal_level = $level");
	$session->run("$drop; DROP TABLE flushed");
	files_belong($node, "wal_level = $level");
}

# ---- Memory ----

foreach my $memory ('1MB', '2MB')
{
	$session->run("SET maintenance_work_mem = '$memory'");
	as_stock("GPU, $memory", $_, 'gpu') foreach '(t)', '(few, t, n DESC)';
	$session->run('SET pg_gpusort.backend = cpu');
	foreach my $keys (@keys[ 1, 3, 8 ])
	{
		as_stock("CPU, $memory", $keys, 'node');
		is($session->run($builds), 'external 1', "CPU, $memory: $keys: on disk");
	}
	$session->run('RESET pg_gpusort.backend');
	faulty("get:error:9", "$failed 1", '(u)') if $memory eq '2MB';
	foreach my $fault ('put:memory:3', 'put:memory:7')
	{
		faulty($fault, "$full 1", @few);
	}
	$session->run('RESET ALL');
}

# Longer rows than can be known, so that the device's memory is used up on the way.
foreach my $limit ('2MB', '3MB', '4MB')
{
	$session->run("SET pg_gpusort.device_memory = '$limit'");
	as_stock("$limit of device memory", $_, 'node') foreach '((t || t || t || t))', '((t || t), k)';
	is($session->run($REASONS), "$full 1", "$limit of device memory: counted");
	$session->run('RESET ALL');
	holds_nothing($node, "$limit of device memory");
}

# Both.
$session->run(q{SET pg_gpusort.device_memory = '3MB'; SET maintenance_work_mem = '1MB'});
as_stock('little memory of both', $_, 'node') foreach '((t || t || t || t))', '(few, t, n DESC)';
$session->run('RESET ALL');

# Limits of temporary files are those of stock.
{
	my $limited = q{SET maintenance_work_mem = '1MB'; SET temp_file_limit = '100kB'; SET pg_gpusort.debug_fault = 'put:memory:3'};
	my $error = $session->run("$limited; CREATE INDEX built ON items (t, n)");

	like($error, qr/53400: temporary file size exceeds "?temp_file_limit/, 'temp_file_limit');
	is($error, $session->run('SET pg_gpusort.enable_index_build = off; CREATE INDEX built ON items (t, n)'),
		'temp_file_limit: the error of stock');
	$session->run('RESET ALL');
}
$session->quit;
holds_nothing($node, 'memory');
leaves_nothing($node, 'memory');
files_belong($node, 'memory');

$node->stop;
done_testing();
