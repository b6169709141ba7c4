# The queries of docs/decide.md run on a server without the extension, and gpusort_advice()
# names statements of pg_stat_statements, shows what its caller may see.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('main', q{shared_preload_libraries = 'pg_stat_statements'}, 'pg_stat_statements.track_utility = on');
my $text = slurp_file("$FindBin::RealBin/../../docs/decide.md");
my @queries = $text =~ /^```sql\n(.*?)^```$/gms;
my $sort = 'SELECT count(*) FROM (SELECT name FROM items ORDER BY name OFFSET 0) s';
my $statements = q{SELECT count(*) FROM gpusort_advice() WHERE subject = 'statement'};

$node->safe_psql('postgres', q{
	DROP EXTENSION pg_gpusort;
	CREATE SCHEMA "of Statements";
	CREATE EXTENSION pg_stat_statements SCHEMA "of Statements";
	CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
	CREATE ROLE stranger LOGIN;
	GRANT USAGE ON SCHEMA "of Statements" TO stranger, watcher;
	CREATE TABLE items AS SELECT g AS id, md5(g::text) AS name FROM generate_series(1, 20000) g;
	CREATE INDEX items_id ON items (id);
	CREATE INDEX items_name ON items (name COLLATE "en-x-icu");
	ANALYZE items});
$node->safe_psql('postgres', "SET work_mem = '64kB'; $sort");

# ---- Before the installation ----

cmp_ok(scalar(@queries), '>', 3, 'there are queries');
my %output;
foreach my $query (@queries)
{
	my ($code, $output, $error) = $node->psql('postgres', qq{SET search_path = public, "of Statements"; $query},
		extra_params => [ '-U', 'watcher' ]);

	is($code, 0, 'runs: ' . (split(/\n/, $query))[0]) or diag($error);
	$output{$query} = $output;
}

# output(PATTERN): the result of the query that has it.
sub output
{
	my ($pattern) = @_;
	my ($query) = grep { /$pattern/ } @queries;

	return $output{$query};
}

like(output('AS temporary'), qr/\|1\|\d+\|\d+ \w+\|SELECT count/, 'a statement with temporary files');
like(output('stock_s'), qr/^btree\|integer\|numbers\|1\|20000\|/m, 'an index');
like(output('stock_s'), qr/^btree\|text\|ICU\|1\|20000\|.*\|0\.1\|0\.0$/m, 'an index by text of ICU');
like(output('datallowconn'), qr/^postgres\|c\|C$/m, 'a database');
like(output('COPY'), qr/^CREATE INDEX \|2\|/m, 'index builds');

# ---- Statements ----

$node->safe_psql('postgres', 'CREATE EXTENSION pg_gpusort');
like($node->safe_psql('postgres', q{SELECT detail, stock_s >= 0, advice FROM gpusort_advice() WHERE subject = 'statement'}),
	qr/^1 calls, \d+ \w+ of temporary files: SELECT count\(\*\) FROM \(SELECT name FROM items.*\|t\|gains if/, 'a statement is named');
is($node->safe_psql('postgres', q{SELECT advice FROM gpusort_advice() WHERE name = 'shared_preload_libraries'}),
	'no sorts are taken over: add pg_gpusort and restart the server', 'the library is not preloaded');
is($node->safe_psql('postgres', $statements, extra_params => [ '-U', 'stranger' ]), '0', 'not those of other roles');
is($node->safe_psql('postgres', $statements, extra_params => [ '-U', 'watcher' ]), '1', 'but for monitors');
is($node->safe_psql('postgres', q{SELECT count(*) FROM gpusort_advice(0) WHERE subject = 'statement'}), '0', 'as many as are wanted');
is($node->safe_psql('postgres', q{SELECT count(*) FROM gpusort_advice(NULL) WHERE subject = 'statement'}), '1', 'or all');

# ---- Many relations ----

# Their statistics claim that they are large.  The time is only printed: it must be far below a second.
$node->safe_psql('postgres', q{
	DO $$ BEGIN
		FOR i IN 1 .. 2000 LOOP
			EXECUTE format('CREATE TABLE many%s (id int8 PRIMARY KEY, t text)', i);
			COMMIT;
		END LOOP;
	END $$;
	UPDATE pg_class SET reltuples = 1000000, relpages = 3000 WHERE relname LIKE 'many%';
	ANALYZE pg_class, pg_index, pg_attribute});
my ($count, $ms) = split(/\|/, $node->safe_psql('postgres', q{
	CREATE TEMP TABLE begun AS SELECT clock_timestamp() AS at;
	SELECT count(*), extract(epoch FROM clock_timestamp() - (SELECT at FROM begun)) * 1000
	FROM gpusort_advice() WHERE subject = 'index' AND stock_s = 0.78 AND gpusort_s = 0.11}));
is($count, '10', 'the largest of many indexes');
note("$ms ms");

# ---- A library that is not preloaded, and its settings in the file ----

$node->append_conf('postgresql.conf', q{shared_preload_libraries = 'pg_gpusort'});
$node->append_conf('postgresql.conf', q{pg_stat_statements.max = 1000});
$node->restart;
is($node->safe_psql('postgres', $statements), '0', 'statements are not counted');
is($node->safe_psql('postgres', q{SELECT count(*) FROM gpusort_advice() WHERE name = 'shared_preload_libraries' AND advice IS NULL}),
	'1', 'pg_gpusort is preloaded');
$node->safe_psql('postgres', "SET pg_gpusort.work_mem = '1GB'; SET pg_gpusort.min_rows = 0; $sort");
is($node->safe_psql('postgres', q{SELECT detail, stock_s >= 0, gpusort_s >= 0 FROM gpusort_advice() WHERE subject = 'done so far'}),
	'1 sorts of 20,000 rows|t|t', 'what was sorted so far');

done_testing();
