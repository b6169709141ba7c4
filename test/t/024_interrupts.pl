# Sorts of all kinds: how much they do between two looks for interrupts, which a
# build for tests counts, and what comes of cancels at random times.
#
#	GPUSORT_CANCELS		cancels of each kind (default 2)
#	GPUSORT_CANCEL_SEED	seed of the times (default: another one each time)
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;
use Time::HiRes qw(time usleep);

# More than what takes some milliseconds, and less than the rows below have.
my $most_bytes = 128 * 1024;

my $cancels = $ENV{GPUSORT_CANCELS} // 2;
my $seed = $ENV{GPUSORT_CANCEL_SEED} // int(rand(1 << 30));
srand($seed);
note("seed of the times: $seed");

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '2MB'}, q{work_mem = '64MB'},
	q{maintenance_work_mem = '64MB'}, 'max_worker_processes = 16');
my $contexts = q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'pg_gpusort%'};

$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION amcheck;
	CREATE EXTENSION btree_gin;
	CREATE UNLOGGED TABLE data AS
	SELECT g AS id, hashint8(g)::int8 AS k, CASE WHEN g % 2 = 0 THEN hashint8(g + 1) END AS n, g % 5 AS few,
		   repeat('https://www.example.com/default/', 3) || hashint8(g) % 2000 || md5(g::text) COLLATE "C" AS url,
		   repeat('ab', abs(hashint8(g)) % 200) COLLATE "C" AS nested, 'the same for all' COLLATE "C" AS same,
		   ('a common prefix ' || md5(g::text)) COLLATE "en-x-icu" AS icu, to_jsonb(hashint8(g)) AS json
	FROM generate_series(1, 20000) g;
	CREATE UNLOGGED TABLE long AS
	SELECT g AS id, repeat('compressed by much ', 1500) || md5(g::text) COLLATE "C" AS t, ''::text COLLATE "C" AS e
	FROM generate_series(1, 400) g;
	ALTER TABLE long ALTER e SET STORAGE EXTERNAL;
	UPDATE long SET e = t WHERE id <= 200;
	CREATE UNLOGGED TABLE arrays AS
	SELECT (SELECT array_agg(k ORDER BY id) FROM data) AS k, (SELECT array_agg(url ORDER BY id) FROM data) AS url,
		   (SELECT array_agg(md5(url)::uuid ORDER BY id) FROM data) AS uuids, (SELECT array_agg(n ORDER BY id) FROM data) AS nulls;
	VACUUM ANALYZE data, long, arrays});

# The order of rows, by keys that leave no ties.
sub order_of
{
	my ($table, $keys) = @_;

	return "SELECT count(*), md5(string_agg(id::text, ',')) FROM (SELECT * FROM $table ORDER BY $keys OFFSET 0) s";
}

# An index that is looked at and does not stay.
sub index_of
{
	my ($columns, $unique) = @_;

	return "BEGIN; CREATE " . ($unique // '') . " INDEX made ON data ($columns); "
	  . "SELECT bt_index_check('made', true); SELECT count(*) FROM data WHERE k > 0; ROLLBACK";
}

# A GIN index, likewise.
sub gin_of
{
	my ($column) = @_;

	return "BEGIN; CREATE INDEX made ON data USING gin ($column); SET LOCAL enable_seqscan = off; "
	  . "SELECT count(*) FROM data WHERE string_to_array(url, '/') @> '{default}'; ROLLBACK";
}

# Aggregates that sort the rows of each group.
sub aggregates_of
{
	my ($groups) = @_;

	return 'SELECT count(*), sum(hashtextextended(s::text, 0)) FROM (SELECT few, count(DISTINCT k), '
	  . 'array_agg(id ORDER BY url, id), percentile_disc(0.3) WITHIN GROUP (ORDER BY n), count(DISTINCT id), '
	  . "array_agg(few ORDER BY few) FROM data GROUP BY $groups) s";
}

# Both ends of a cursor, in both directions.
sub cursor_of
{
	my ($keys) = @_;

	return "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM data ORDER BY $keys; MOVE FORWARD ALL IN c; "
	  . 'MOVE BACKWARD ALL IN c; FETCH ABSOLUTE 15000 FROM c; FETCH RELATIVE -10000 FROM c; COMMIT';
}

my $on_cpu = 'SET pg_gpusort.backend = cpu; SET pg_gpusort.debug_require = node';
my $in_memory = 'SET pg_gpusort.backend = cpu; SET pg_gpusort.debug_require = cpu';
my $on_gpu = 'SET pg_gpusort.debug_require = gpu';
my $on_disk = "$on_cpu; SET pg_gpusort.work_mem = '256kB'";
my $parallel = parallel_plans(2, 'enable_gathermerge = off');
my $arrays = sub { "SELECT md5($_[0]::text) FROM arrays" };

# For each kind: settings, and statements.
my %kinds = (
	'words' => [ $in_memory, order_of('data', 'k, id') ],
	'few values' => [ $in_memory, order_of('data', 'few, id') ],
	'NULLs' => [ $in_memory, order_of('data', 'n, id') ],
	'runs on disk' => [ $on_disk, order_of('data', 'k, id') ],
	'strings' => [ $in_memory, order_of('data', 'url, id') ],
	'strings of one value' => [ $in_memory, order_of('data', 'same, id DESC') ],
	'strings that begin others' => [ $in_memory, order_of('data', 'nested DESC, id') ],
	'strings on disk' => [ $on_disk, order_of('data', 'url, nested, id') ],
	'compressed strings' => [ $in_memory, order_of('long', 't, id') ],
	'strings stored elsewhere' => [ $in_memory, order_of('long', 'e, id') ],
	'compressed strings on disk' => [ $on_disk, order_of('long', 't, id') ],
	'comparisons' => [ $in_memory, order_of('data', 'icu, id') ],
	'comparisons on disk' => [ $on_disk, order_of('data', 'icu, id') ],
	'comparisons of few values' => [ $in_memory, order_of('data', 'few, json, id') ],
	'comparisons of one value' => [ $in_memory, order_of('data', 'few, to_jsonb(same), id') ],
	'many columns' => [ $in_memory, order_of('data', 'few, k, n, k, n, few DESC, url, nested, json, id') ],
	'cursor' => [ $in_memory, cursor_of('k, id') ],
	'cursor on disk' => [ $on_disk, cursor_of('url, id') ],
	"stock ties" => [ "$in_memory; SET pg_gpusort.debug_stock_ties = on", order_of('data', 'k, id') ],
	'index' => [ $on_cpu, index_of('k, id') ],
	'index of strings' => [ $on_cpu, index_of('url, few') ],
	'index on disk' => [ "$on_cpu; SET maintenance_work_mem = '1MB'", index_of('k, url') ],
	'unique index' => [ $on_cpu, index_of('url, id', 'UNIQUE') ],
	'GIN index' => [ $in_memory, gin_of(q{string_to_array(url, '/')}) ],
	'GIN index of few keys' => [ $in_memory, gin_of(q{string_to_array(same, ' '), few}) ],
	'GIN index on disk' => [ "$on_cpu; SET maintenance_work_mem = '1MB'", gin_of(q{string_to_array(url, '/'), id}) ],
	'array' => [ $in_memory, $arrays->('gpu_sort(k)') ],
	'array of strings' => [ $in_memory, $arrays->('gpu_sort(url)') ],
	'array with NULLs' => [ $in_memory, $arrays->('gpu_sort(nulls, descending => true)') ],
	'positions' => [ $in_memory, $arrays->('gpu_argsort(k)') ],
	'positions of strings' => [ $in_memory, $arrays->('gpu_argsort(url)') ],
	'array of long elements' => [ $in_memory, $arrays->('gpu_sort(uuids)') ],
	'pairs' => [ $in_memory, $arrays->('gpu_sort_pairs(k, url)') ],
	'aggregates' => [ $in_memory, 'SELECT md5(gpu_sort_agg(k)::text), md5(gpu_argsort_agg(n)::text) FROM data' ],
	'aggregate of long strings' => [ $in_memory, 'SELECT md5(gpu_sort_agg(t)::text), md5(gpu_sort_agg(e)::text) FROM long' ],
	'groups of aggregates' => [ $in_memory, aggregates_of('ROLLUP (few)') ],
	'groups of aggregates on disk' => [ "$on_cpu; SET work_mem = '256kB'; SET pg_gpusort.work_mem = '256kB'", aggregates_of('ROLLUP (few)') ],
	'GPU: words' => [ $on_gpu, order_of('data', 'k, id') ],
	'GPU: NULLs' => [ $on_gpu, order_of('data', 'n, id') ],
	'GPU: strings' => [ $on_gpu, order_of('data', 'url, id') ],
	'GPU: strings of one value' => [ $on_gpu, order_of('data', 'same, id DESC') ],
	'GPU: comparisons' => [ $on_gpu, order_of('data', 'icu, id') ],
	'GPU: compressed strings' => [ $on_gpu, order_of('long', 't, id') ],
	'GPU: cursor' => [ $on_gpu, cursor_of('url, id') ],
	'GPU: cursor over runs' => [ $on_gpu, cursor_of('few::text COLLATE "C", id') ],
	'GPU: no room' => [ "SET pg_gpusort.debug_require = node; SET pg_gpusort.device_memory = '1MB'", order_of('data', 'url, id') ],
	"GPU: stock ties" => [ 'SET pg_gpusort.debug_require = node; SET pg_gpusort.debug_stock_ties = on', order_of('data', 'k, id') ],
	'GPU: index' => [ $on_gpu, index_of('k, id') ],
	'GPU: array' => [ '', $arrays->('gpu_sort(k)') ],
	'GPU: positions' => [ '', $arrays->('gpu_argsort(k)') ],
	'GPU: aggregates' => [ '', 'SELECT md5(gpu_sort_agg(k)::text), md5(gpu_argsort_agg(n)::text) FROM data' ],
	'aggregates of all processes' => [ "$in_memory; $parallel", 'SELECT md5(gpu_sort_agg(k)::text), md5(gpu_sort_agg(n)::text), md5(gpu_sort_agg(url)::text) FROM data' ],
	'parallel: runs' => [ "$on_cpu; $parallel", order_of('data', 'k, id') ],
	'parallel: strings' => [ "$on_cpu; $parallel", order_of('data', 'url, id') ],
	'parallel: GPU' => [ "SET pg_gpusort.debug_require = node; $parallel", order_of('data', 'k, id') ],
	'parallel: GPU and strings' => [ "SET pg_gpusort.debug_require = node; $parallel", order_of('data', 'url, id') ]);

my $canceller = Session($node);
my $stock = Session($node, 'SET pg_gpusort.enable = off', 'SET pg_gpusort.enable_index_build = off');
my $cancelled = 0;

# cancel SESSION, STATEMENTS, SECONDS: what comes of a cancel after that time.  When
# the signal has been sent, the next statement cannot get it.
sub cancel
{
	my ($session, $statements, $seconds) = @_;

	$session->begin($statements);
	usleep($seconds * 1e6);
	$canceller->run('SELECT pg_cancel_backend(' . $session->pid . ')');
	return $session->finish;
}

# A session of the GPU service ends some time after the sort that had it.
sub await_free_sessions
{
	foreach my $try (1 .. 1000)
	{
		return if $canceller->run(q{SELECT value FROM gpusort_status() WHERE name = 'sessions'}) eq '0';
		usleep(10_000);
	}
}

foreach my $kind (sort keys %kinds)
{
	my ($settings, $statements) = @{ $kinds{$kind} };
	my $session = Session($node, $settings);
	my ($right, $wrong, $start, $took, $bytes);

	# The functions are not in stock PostgreSQL.
	$right = ($statements =~ /gpu_/ ? $session : $stock)->run($statements);
	unlike($right, qr/ERROR/, "$kind: without a cancel");
	like($session->run("EXPLAIN $statements"), qr/GpuSortSink/, "$kind: plan") if $kind =~ /^parallel/;

	$session->run("SET pg_gpusort.debug_work = ''");
	$start = time;
	is($session->run($statements), $right, "$kind: as in stock PostgreSQL");
	$took = time - $start;
	($bytes) = $session->run('SHOW pg_gpusort.debug_work') =~ /^(\d+) of [1-9]/;
	$bytes //= "unknown";
	ok($bytes ne 'unknown' && $bytes <= $most_bytes, "$kind: $bytes bytes at most between two looks for interrupts");

	foreach my $number (1 .. $cancels)
	{
		my $seconds = rand($took);
		my $output = cancel($session, $statements, $seconds);

		await_free_sessions();
		if ($output =~ /ERROR:  57014: canceling statement due to user request/) { $cancelled++; }
		elsif ($output ne $right) { $wrong .= "cancelled after $seconds s: $output\n"; }
		$session->run('ROLLBACK') if $statements =~ /BEGIN/;
		$output = $session->run($contexts);
		$wrong .= "after $seconds s: $output contexts are left\n" if $output ne '0';
		if ($number == $cancels)
		{
			$output = $session->run($statements);
			$wrong .= "the next time: $output\n" if $output ne $right;
		}
	}
	is($wrong, undef, "$kind: cancelled or right, and right the next time");
	leaves_nothing($node, $kind);
	holds_nothing($node, $kind);
	$session->quit;
}
cmp_ok($cancelled, '>', 0, "some were cancelled ($cancelled)") if $cancels > 0;

$node->stop;
done_testing();
