# Aggregates of all rows that ask the sort below them instead of reading its rows: counts of
# different keys, and keys by their positions.  Which of them do; that they return what stock
# PostgreSQL does, in memory and on disk, from one process or several, whoever comes late.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'}, 'pg_gpusort.min_rows = 0',
	q{pg_gpusort.backend = 'cpu'}, q{work_mem = '64MB'}, 'max_worker_processes = 16', 'max_parallel_workers = 8', 'jit = off');
my $parallel = parallel_plans(3, q{statement_timeout = '60s'});

$node->safe_psql('postgres', q{CREATE TABLE readings AS
	SELECT g AS id, (hashint4(g)::bigint << 20) + g AS different, hashint4(g) % 50 AS few,
		   CASE WHEN g % 10 = 0 THEN NULL ELSE (hashint4(g * 3) % 4000) / 8.0::float8 END AS level,
		   CASE WHEN g % 2 = 0 THEN 7 ELSE g END AS skewed, 'http://www.example.org/a/long/prefix/' || hashint4(g) % 300 AS url,
		   ((hashint4(g * 7) % 500) / 10.0)::numeric AS price, NULL::integer AS nothing,
		   CASE WHEN g % 3 = 0 THEN '-0'::float8 WHEN g % 3 = 1 THEN 0 ELSE 'NaN' END AS zero, g * interval '1 minute' AS ago
	FROM generate_series(1, 30000) g;
	CREATE TABLE nobody (LIKE readings);
	CREATE FUNCTION rows_of_sort(query text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		plan json;
	BEGIN
		EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
		RETURN plan->0->'Plan'->'Plans'->0->>'Custom Plan Provider' || ' ' || (plan->0->'Plan'->'Plans'->0->>'Actual Rows')::float8;
	END $$;
	ANALYZE});

# ---- In how many processes ----

# Part of the scan of an index in the order of the table is charged as the whole scan is.
$node->safe_psql('postgres', q{CREATE TABLE numbered AS SELECT g AS id, hashint4(g) AS k, repeat('x', 100) AS pad
	FROM generate_series(1, 200000) AS g; CREATE INDEX ON numbered (id, k)});
$node->safe_psql('postgres', 'VACUUM ANALYZE numbered');
like($node->safe_psql('postgres', 'SET max_parallel_workers_per_gather = 2; SET min_parallel_index_scan_size = 0;
	SET parallel_setup_cost = 2000; EXPLAIN SELECT count(DISTINCT k) FROM numbered'),
	qr/Gather.*Parallel Index Only Scan/s, 'all processes scan the index');

# ---- Which of them ask the sort ----

# asks NAME, QUERY, ROWS, SETTING...: tests how many rows the sort below the aggregates returns.
sub asks
{
	my ($name, $query, $rows, @settings) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', join('; ', $parallel, @settings, "SELECT rows_of_sort(\$\$ $query \$\$)")), "GpuSort $rows", $name);
}

my @disk = (q{SET pg_gpusort.work_mem = '256kB'});

asks('different keys', 'SELECT count(DISTINCT different) FROM readings', 1);
asks('different keys on disk', 'SELECT count(DISTINCT different) FROM readings', 1, @disk);
asks('different keys of one process', 'SELECT count(*), count(DISTINCT url) FROM readings', 1, 'SET max_parallel_workers_per_gather = 0');
asks('a percentile', 'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY level) FROM readings', 1);
asks('percentiles', 'SELECT percentile_disc(array[0.1, 0.9]) WITHIN GROUP (ORDER BY few), percentile_disc(0.3) WITHIN GROUP (ORDER BY few) FROM readings', 1);
asks('the mode besides', 'SELECT percentile_disc(0.1) WITHIN GROUP (ORDER BY few), mode() WITHIN GROUP (ORDER BY few) FROM readings', 30000);
asks('the mode', 'SELECT mode() WITHIN GROUP (ORDER BY few), count(*), count(DISTINCT few) FROM readings', 1);
asks('the mode on disk', 'SELECT mode() WITHIN GROUP (ORDER BY skewed) FROM readings', 1, @disk);
asks('the mode of texts', 'SELECT mode() WITHIN GROUP (ORDER BY url) FROM readings', 30000);
asks('a percentile on disk', 'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY level) FROM readings', 30000, @disk);
asks('no rows', 'SELECT count(DISTINCT few) FROM nobody', 0);
asks('a sum besides', 'SELECT count(DISTINCT different), sum(few) FROM readings', 30000);
asks('groups', 'SELECT skewed, count(DISTINCT few) FROM readings GROUP BY skewed', 30000, 'SET enable_hashagg = off');
asks('a percentile of some rows', 'SELECT count(DISTINCT few), percentile_cont(0.5) WITHIN GROUP (ORDER BY level) FILTER (WHERE id > 9) FROM readings', 30000);

# Workers compute what aggregates sort by, and leave out what only that needs.
like($node->safe_psql('postgres', "$parallel; EXPLAIN (VERBOSE, COSTS OFF) SELECT count(DISTINCT upper(url)) FROM readings"),
	qr/Parallel Seq Scan on public.readings\n\s+Output: upper\(url\)$/, 'an expression');

# ---- What they return ----

my @queries = (
	'SELECT count(DISTINCT different) FROM %s',
	# A tenth of the keys twice, and they differ in more than 32 bits.
	'SELECT count(DISTINCT (hashint4(id - (id %% 10 = 0)::int)::int8 << 20) + id - (id %% 10 = 0)::int),
		mode() WITHIN GROUP (ORDER BY (hashint4(id - (id %% 10 = 0)::int)::int8 << 20) + id - (id %% 10 = 0)::int) FROM %s',
	'SELECT count(*), count(DISTINCT few), count(DISTINCT few) + 1 FROM %s',
	'SELECT count(DISTINCT url) FROM %s HAVING count(DISTINCT url) > 1',
	'SELECT count(DISTINCT level), count(*) FROM %s',
	'SELECT count(DISTINCT price::text::numeric) FROM %s',
	'SELECT count(DISTINCT skewed) FROM %s',
	'SELECT count(DISTINCT nothing), count(*) FROM %s',
	'SELECT count(DISTINCT zero) FROM %s',
	'SELECT count(DISTINCT 1), count(DISTINCT few) FROM %s',
	'SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY level), percentile_disc(0.25) WITHIN GROUP (ORDER BY level) FROM %s',
	'SELECT percentile_cont(array[0, NULL, 0.999, 1]) WITHIN GROUP (ORDER BY level) FROM %s',
	'SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY level DESC), percentile_disc(0.01) WITHIN GROUP (ORDER BY level DESC) FROM %s',
	'SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY ago) FROM %s',
	'SELECT percentile_disc(0.7) WITHIN GROUP (ORDER BY url) FROM %s',
	'SELECT mode() WITHIN GROUP (ORDER BY price), percentile_disc(0) WITHIN GROUP (ORDER BY price) FROM %s',
	'SELECT mode() WITHIN GROUP (ORDER BY skewed DESC) FROM %s',
	'SELECT mode() WITHIN GROUP (ORDER BY few), count(DISTINCT few), mode() WITHIN GROUP (ORDER BY few) FROM %s',
	'SELECT mode() WITHIN GROUP (ORDER BY different DESC) FROM %s',
	'SELECT mode() WITHIN GROUP (ORDER BY different %% 15000), count(*) FROM %s',
	'SELECT mode() WITHIN GROUP (ORDER BY level NULLS FIRST) FROM %s',
	'SELECT mode() WITHIN GROUP (ORDER BY nothing), count(*) FROM %s',
	'SELECT mode() WITHIN GROUP (ORDER BY url) FROM %s',
	'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY nothing) FROM %s',
	'SELECT percentile_disc(NULL) WITHIN GROUP (ORDER BY few) FROM %s',
	'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY few), percentile_disc(0.5) WITHIN GROUP (ORDER BY few DESC) FROM %s',
	'SELECT o, (SELECT count(DISTINCT few + o) FROM %s WHERE id %% 3 = o), (SELECT count(DISTINCT url) FROM %s),
		(SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY url) FROM %s) FROM generate_series(0, 2) o');

foreach my $table ('readings', 'nobody', '(SELECT * FROM readings WHERE id = 8) one', '(SELECT * FROM readings WHERE id % 10 = 0) s')
{
	my @filled = map { s/%s/$table/gr =~ s/%%/%/gr } @queries;
	my $all = join('; ', @filled);
	my $stock = $node->safe_psql('postgres', "SET pg_gpusort.enable = off; $all");

	foreach my $settings ('', @disk, q{SET pg_gpusort.work_mem = '64kB'}, 'SET parallel_leader_participation = off',
		q{SET parallel_leader_participation = off; SET pg_gpusort.work_mem = '100kB'}, 'SET max_parallel_workers = 0',
		'SET max_parallel_workers = 1', 'SET max_parallel_workers_per_gather = 0', 'SET pg_gpusort.debug_whole_tuples = on',
		q{SET pg_gpusort.verify = 'all'; SET pg_gpusort.debug_fault = 'host:late:20'},
		q{SET pg_gpusort.work_mem = '64kB'; SET pg_gpusort.debug_fault = 'host:late:60'})
	{
		my ($code, $output, $error) = $node->psql('postgres', "$parallel; $settings; $all");

		is("$output$error", $stock, "$table: $settings");
	}
}

# A sort whose keys are counted is counted once itself.
foreach my $settings ('', @disk, 'SET parallel_leader_participation = off', 'SET max_parallel_workers = 0')
{
	my $counts = 'SELECT sum(sorts), sum(rows) FROM pg_stat_gpusort';
	my @before = split /\|/, $node->safe_psql('postgres', $counts);

	$node->safe_psql('postgres', "$parallel; $settings; SELECT count(DISTINCT different) FROM readings");
	my @after = split /\|/, $node->safe_psql('postgres', $counts);

	is(join(' ', map { $after[$_] - $before[$_] } 0 .. 1), '1 30000', "counted: $settings");
}

# An error in one process ends all of them.
my ($code, $output, $error) = $node->psql('postgres', "$parallel; SELECT count(DISTINCT 1 / (id - 15000)) FROM readings");

like($error, qr/division by zero/, 'an error below the sort');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_ls_tmpdir()}), '0', 'no files are left');
done_testing();
