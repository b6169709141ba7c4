# Wrong orders are found: by encodings, comparisons, merges and the kernels of a GPU, whose faults
# are planted here.  A query ends with an error, an index is built by PostgreSQL, and all sessions
# leave the encoding alone until the server restarts.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'},
	q{maintenance_work_mem = '64MB'}, 'max_parallel_workers_per_gather = 0',
	'max_parallel_maintenance_workers = 0', 'pg_gpusort.min_rows = 0', 'pg_gpusort.backend = cpu');
my $reason = 'an encoding has sorted rows into a wrong order';
my $rows = 20000;
my $none = q{SELECT count(*) FROM gpusort_status()
	WHERE name = 'wrong_orders' AND value = '0' OR name = 'distrusted_encodings' AND value IS NULL};

# Few strings differ in their first level only, so that those of one letter need comparisons.
$node->safe_psql(
	'postgres', qq{
	CREATE EXTENSION amcheck;
	CREATE TABLE items AS
	SELECT g * 7919::int8 % 100003 AS int8, g * 7919 % 100003 AS int4, (g * 7919 % 30011)::int2 AS int2,
		   date '2000-01-01' + g * 7919 % 100003 AS date, (g * 7919 % 100003)::float8 AS float8,
		   (g * 7919 % 100003)::oid AS oid, time '00:00' + g * 7919 % 80021 * interval '1 s' AS time,
		   timestamp '2000-01-01' + g * 7919 % 100003 * interval '1 s' AS timestamp,
		   md5(g::text)::uuid AS uuid, decode(md5(g::text), 'hex') AS bytea,
		   (g * 7919 % 100003)::numeric / 7 AS numeric, md5(g::text) AS c,
		   g % 2 = 0 AS few,
		   (g * 7919 % 100003)::money AS money,
		   ARRAY[timestamptz '2000-01-01' + g * 7919 % 100003 * interval '1 s'] AS stamps,
		   CASE WHEN g % 2 = 0 THEN 'word' ELSE 'Word' END || g / 4 AS word, 'x' AS filler
	FROM generate_series(1, $rows) g;
	ANALYZE items});

# Sessions for the faults and for the same queries without them.
my $wrong = Session($node);
my $right = Session($node);

sub sorted { return "SELECT count(*) FROM (SELECT $_[0] FROM items ORDER BY $_[1] OFFSET 0) s" }

# status: the value of a row of gpusort_status().
sub status { return value_of($node, "SELECT value FROM gpusort_status() WHERE name = '$_[0]'") }

# finds NAME, SETTINGS, QUERY, ENCODING: the query with a fault ends with the right error, which is
# counted and logged; then both sessions leave the sort to PostgreSQL.
sub finds
{
	my ($name, $settings, $query, $encoding) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $before = status('wrong_orders');
	my $log = -s $node->logfile;

	is($right->run("$OURS; $query"), $rows, "$name: in order without a fault");
	my $error = $wrong->run("RESET ALL; $settings; $query");
	like($error, qr/ERROR:  XX000: sorted rows are not in order/, "$name: found");
	like($error, qr/DETAIL:  They were sorted by type \Q$encoding\E\./, "$name: the encoding");
	like($error, qr/HINT:  Run the query again\. PostgreSQL itself sorts by this type until the server restarts\./,
		"$name: what to do");
	is(status('wrong_orders'), $before + 1, "$name: counted");
	like(status('distrusted_encodings'), qr/(^|; )\Q$encoding\E(;|$)/, "$name: in the status");
	is(logged($node, qr/LOG:  sorts by type \Q$encoding\E are left to PostgreSQL until the server restarts/, $log, 1),
		1, "$name: logged");
	is($wrong->run("SET pg_gpusort.debug_require = off; $query"), $rows, "$name: again");
	like($right->run("RESET ALL; SET pg_gpusort.debug_require = node; $query"), qr/DETAIL:  The reason is "$reason"/,
		"$name: another session leaves it alone");
}

is($right->run($none), 2, 'no order is wrong at first');

my $encoding = q{SET pg_gpusort.debug_wrong = 'encoding'};
my $merge = q{SET pg_gpusort.debug_wrong = 'merge'; SET pg_gpusort.work_mem = '64kB'};
my $gpu = q{SET pg_gpusort.backend = gpu; SET pg_gpusort.debug_require = gpu; SET pg_gpusort.debug_fault = 'get:swap:2'};

# ---- Index builds ----

# What amcheck says of a btree, and how many keys of rows a GIN index does not find.
my $btree = q{SELECT bt_index_parent_check('built', true)};
my $gin = q{SET enable_seqscan = off; SELECT NULLIF(count(*), 0) FROM (SELECT * FROM items LIMIT 1000) a
	WHERE NOT EXISTS (SELECT FROM items b WHERE b.stamps @> a.stamps)};

# builds NAME, SETTINGS, KEYS, ENCODING, CHECK: an index is built by PostgreSQL, after a warning.
sub builds
{
	my ($name, $settings, $keys, $encoding, $check) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$right->run('SELECT pg_stat_gpusort_reset()');
	my $warning = $wrong->run("RESET ALL; $settings; CREATE INDEX built ON items $keys");
	like($warning, qr/WARNING:  01000: rows of index "built" were not sorted into the right order, so PostgreSQL builds it/,
		"$name: found");
	like($warning, qr/DETAIL:  They were sorted by type \Q$encoding\E\./, "$name: the encoding");
	is($right->run($check // $btree), '', "$name: the index is right");
	is(value_of($node, $REASONS), "$reason 1", "$name: counted");
	$wrong->run('DROP INDEX built; SET client_min_messages = warning');
	is($wrong->run("CREATE INDEX built ON items $keys"), '', "$name: no more warnings");
	is(value_of($node, $REASONS), "$reason 2", "$name: left to PostgreSQL");
	$wrong->run('DROP INDEX built');
}

my $workers = 'SET max_parallel_maintenance_workers = 2; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0';

# Of 20,000 such rows, 200 of them wrong, a sample finds none in one build of 25.
my $all = q{SET pg_gpusort.verify = 'all'};

builds('index', "$encoding; $all", '(uuid)', 'uuid (values)');
builds('index by workers', "$encoding; $all; $workers", '(bytea)', 'bytea (values)');
builds('index on a GPU', "SET pg_gpusort.backend = gpu; SET pg_gpusort.debug_fault = 'get:swap:2'; $all",
	'(int2)', 'smallint (values)');
builds('GIN index', $encoding, 'USING gin (stamps)', 'timestamp with time zone (values)', $gin);

# ---- Arrays ----

# They are there to be sorted again.
my $arrays = q{SELECT gpu_sort(array_agg(money)) = array_agg(money ORDER BY money) FROM items};
$right->run('SELECT pg_stat_gpusort_reset()');
is($wrong->run("RESET ALL; $encoding; SET pg_gpusort.enable = off; $arrays"), 't', 'array');
is(value_of($node, $REASONS), "$reason 1", 'array: counted');
like(status('distrusted_encodings'), qr/money \(values\)/, 'array: its encoding is not trusted');

# ---- Queries ----

finds('encoding of a number', $encoding, sorted('int8', 'int8'), 'bigint (values)');
finds('encoding of a string', "$encoding; $all", sorted('c', 'c'), 'text (values)');
finds('merge', $merge, sorted('int4', 'int4'), 'integer (values)');
finds('kernel', $gpu, sorted('date', 'date'), 'date (values)');

# The first key compares as equal, but its encoding tells values apart, so that the second one is
# not in order.
finds('comparison of all keys', "$encoding; SET pg_gpusort.verify = 'all'", sorted('oid', 'few, oid'), 'oid (values)');

# Values of a whole tuple, descending.
finds('whole tuples', "$encoding; SET pg_gpusort.debug_whole_tuples = on; SET pg_gpusort.verify = 'all'",
	sorted('*', 'float8 DESC'), 'double precision (values)');

# The sort of a plan that was made before compares the keys.
$right->run('RESET ALL; PREPARE stamps AS ' . sorted('timestamp', 'timestamp'));
$right->run("PREPARE marks AS SELECT count(*) FROM (SELECT * FROM items OFFSET 0) a JOIN (SELECT * FROM items OFFSET 0) b USING (timestamp)");
$right->run('SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off; SET enable_nestloop = off');
is($right->run("EXECUTE $_"), $rows, "$_: a plan that is kept") foreach qw(stamps marks);
like($wrong->run("RESET ALL; $encoding; " . sorted('timestamp', 'timestamp')), qr/ERROR:  XX000/, 'its encoding is wrong');
is($right->run("EXECUTE $_"), $rows, "$_: its encoding is not used") foreach qw(stamps marks);
like($right->run("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE stamps"),
	qr/GpuSort.*Sort Method: cpu comparisons.*Sort Fallback: $reason/s, 'it says so');
$right->run('RESET ALL');

# With pg_gpusort.verify = off, nobody looks.
is($wrong->run("RESET ALL; SET pg_gpusort.verify = off; $encoding; " . sorted('time', 'time')),
	$rows, 'without the check, nothing is found');
finds('and with it', $encoding, sorted('time', 'time'), 'time without time zone (values)');

SKIP:
{
	my $locale = value_of($node, q{SELECT collname FROM pg_collation
		WHERE collname IN ('de_DE.utf8', 'en_US.utf8') AND collencoding = pg_char_to_encoding('UTF8')
		ORDER BY collname LIMIT 1});

	skip 'no collation of a language', 1 unless $locale;
	my $words = sorted('word', qq{word COLLATE "$locale"});
	my $comparison = q{SET pg_gpusort.debug_wrong = 'comparison'};
	$wrong->run("RESET ALL; PREPARE words AS $words; SET plan_cache_mode = force_generic_plan");
	is($wrong->run('EXECUTE words'), $rows, 'words: a plan that is kept');
	finds('comparison', $comparison, $words, "text (weights of the C library in $locale of libc)");
	is($wrong->run("SET pg_gpusort.verify = 'all'; $comparison; EXECUTE words"), $rows, 'words: their weights are not used');
}

# ---- After a restart ----

$wrong->quit;
$right->quit;
$node->restart;
wait_for_service($node);
is($node->safe_psql('postgres', $none), 2, 'no order is wrong after a restart');
is($node->safe_psql('postgres', "$OURS; " . sorted('int8', 'int8')), $rows, 'sorts are ours again');

$node->stop;
done_testing();
