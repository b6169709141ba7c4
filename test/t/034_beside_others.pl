# Sorts in prepared statements, cursors, functions and statements that write, with the JIT
# compiler and beside modules that have hooks of their own: rows are those of stock
# PostgreSQL, and these modules see the nodes and count the rows.
#
# needs: nothing

use strict;
use warnings;

use Digest::MD5 'md5_hex';
use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my @hooks = qw(auto_explain pg_stat_statements);
my $jit = 'SET jit = on; SET jit_above_cost = 0; SET jit_inline_above_cost = 0; SET jit_optimize_above_cost = 0';
my $sorted = digest('SELECT k, id, t FROM halves ORDER BY k, id DESC');

# Statements that sort, with what comes before and after them.  What they return has an order.
my %statements = (
	'a custom plan' => [ 'PREPARE p (int) AS SELECT k, id FROM halves WHERE id > $1 ORDER BY k, id OFFSET 3', 'EXECUTE p (200)', 'DEALLOCATE p' ],
	'a generic plan' => [ 'SET plan_cache_mode = force_generic_plan; PREPARE p (int, text) AS
		SELECT k, id FROM halves WHERE id > $1 ORDER BY t || $2, id', q{EXECUTE p (200, 'x'); EXECUTE p (10000, 'y')}, 'DEALLOCATE p' ],
	'a bound that is a parameter' => [ 'SET plan_cache_mode = force_generic_plan; PREPARE p (int, int) AS
		SELECT k, id FROM halves ORDER BY k, id LIMIT $1 OFFSET $2', 'EXECUTE p (19000, 10); EXECUTE p (NULL, 5)', 'DEALLOCATE p' ],
	'a plan that is made again' => [ 'SET plan_cache_mode = force_generic_plan; PREPARE p AS SELECT id FROM changing ORDER BY k, id',
		'EXECUTE p; ALTER TABLE changing ALTER k TYPE text; EXECUTE p', 'DEALLOCATE p' ],
	'a cursor' => [ 'BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT k, id FROM halves ORDER BY k DESC, id',
		'FETCH 5 FROM c; FETCH ABSOLUTE 20000 FROM c; FETCH BACKWARD 3 FROM c; MOVE FIRST IN c; COMMIT; FETCH 2 FROM c', 'CLOSE c' ],
	'a cursor that locks rows' => [ 'BEGIN; DECLARE c CURSOR FOR SELECT id FROM changing ORDER BY k, id FOR UPDATE',
		'FETCH 2 FROM c; MOVE 100 IN c; FETCH 2 FROM c', 'ROLLBACK' ],
	'a loop' => [ '', 'SELECT looping()', '' ],
	'a function in SQL' => [ '', 'SELECT count(*), sum(id) FROM listing(7000)', '' ],
	'a subplan for each row' => [ 'SET enable_memoize = off',
		'SELECT g, (SELECT count(DISTINCT k) FROM halves WHERE id > g) FROM generate_series(1, 3) g', '' ],
	'CREATE TABLE AS' => [ 'BEGIN', 'CREATE TABLE copied AS SELECT * FROM halves ORDER BY k, id; SELECT md5(string_agg(c::text, $$,$$ ORDER BY ctid)) FROM copied c', 'ROLLBACK' ],
	'INSERT' => [ 'BEGIN; CREATE TEMP TABLE copied (place serial, id int)',
		'INSERT INTO copied (id) SELECT id FROM halves ORDER BY t DESC, id; SELECT md5(string_agg(c::text, $$,$$)) FROM copied c', 'ROLLBACK' ],
	'UPDATE' => [ 'BEGIN; SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off',
		'UPDATE changing c SET t = h.t FROM halves h WHERE h.id = c.id AND h.id % 3 = 0; SELECT sum(length(t)) FROM changing', 'ROLLBACK' ],
	'MERGE' => [ 'BEGIN; SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off',
		'MERGE INTO changing c USING halves h ON h.id = c.id WHEN MATCHED THEN DELETE
		WHEN NOT MATCHED THEN INSERT (k, id) VALUES (h.k, h.id); SELECT count(*), sum(id) FROM changing', 'ROLLBACK' ],
	'a scan of another module' => [ 'SELECT test_custom_scan()', 'SELECT id, t FROM custom WHERE id > 7 ORDER BY t, id;
		SELECT id, lag(id) OVER (PARTITION BY k % 10 ORDER BY id) FROM custom ORDER BY 1;
		SELECT count(*), sum(c.id) FROM custom c JOIN (SELECT DISTINCT k FROM custom) d USING (k)', '' ],
	'COPY' => [ '', 'COPY (SELECT k, id FROM halves ORDER BY n DESC, id) TO STDOUT', '' ]);

# Each of these is loaded before us, which means that its hooks are called by ours, and after us.
foreach my $loaded (join(', ', @hooks, 'pg_gpusort'), join(', ', 'pg_gpusort', @hooks))
{
	my $node = start_node((split /,/, $loaded)[0], "shared_preload_libraries = '$loaded'", 'pg_gpusort.min_rows = 0',
		q{work_mem = '64MB'}, 'auto_explain.log_min_duration = 0', 'auto_explain.log_analyze = on',
		'auto_explain.log_verbose = on', 'auto_explain.log_nested_statements = on', 'auto_explain.log_buffers = on',
		'pg_stat_statements.track = all', 'pg_stat_statements.track_planning = on');
	my $offset;

	make_halves($node);
	$node->safe_psql('postgres', q{
		ANALYZE halves;
		CREATE EXTENSION pg_stat_statements;
		CREATE TABLE template AS SELECT k, id, t FROM halves WHERE id % 2 = 0;
		CREATE TABLE changing AS SELECT * FROM template;
		CREATE TABLE custom AS SELECT * FROM template;
		CREATE FUNCTION test_custom_scan() RETURNS void LANGUAGE c AS 'pg_gpusort', 'gpusort_test_custom_scan';
		CREATE FUNCTION looping() RETURNS text LANGUAGE plpgsql AS $$
			DECLARE r record; result text := '';
			BEGIN
				FOR r IN SELECT id FROM halves ORDER BY t, id LOOP result := md5(result || r.id); END LOOP;
				RETURN result;
			END $$;
		CREATE FUNCTION listing(above int) RETURNS SETOF halves VOLATILE LANGUAGE sql AS
			$$ SELECT * FROM halves WHERE id > above ORDER BY k, id OFFSET 100 $$});

	# The same in a new session each, since plans are cached.
	foreach my $name (sort keys %statements)
	{
		my ($before, $statement, $after) = @{ $statements{$name} };
		my @results;

		foreach my $settings ($STOCK, $OURS, "$OURS; $jit", "$OURS; SET max_parallel_workers_per_gather = 2;
			SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0")
		{
			my $session = Session($node, 'SET client_min_messages = warning');

			$session->run("DROP TABLE changing; CREATE TABLE changing AS SELECT * FROM template; ANALYZE changing");
			$session->run("$settings; $before");
			my $result = $session->run($statement);

			push @results, length($result) > 500 && $result !~ /ERROR/ ? md5_hex($result) : $result;
			$session->run($after);
			$session->quit;
		}
		unlike($results[0], qr/ERROR/, "$loaded, $name: stock");
		is($results[$_], $results[0], "$loaded, $name: rows, " . (qw(stock ours JIT parallel))[$_]) foreach 1 .. 3;
	}

	like($node->safe_psql('postgres', "$OURS; SELECT test_custom_scan(); EXPLAIN (COSTS OFF) SELECT * FROM custom ORDER BY t"),
		qr/Custom Scan \(GpuSort\).*-> +Custom Scan \(TestScan\) on custom/s, "$loaded: a sort over a scan of another module");

	# ---- What the others see ----

	my $session = Session($node, $OURS, 'SELECT pg_stat_statements_reset()');

	$offset = -s $node->logfile;
	$session->run($sorted);
	$session->run('SELECT looping()');
	# What EXPLAIN shows is in the log, with the rows, also for the statement in the function.
	cmp_ok(logged($node, qr/Custom Scan \(GpuSort\).*actual time=.* rows=20000/, $offset, 2), '>=', 2, "$loaded: auto_explain");
	cmp_ok(logged($node, qr/Sort Method: cpu radix  Memory: \d+kB/, $offset, 2), '>=', 2, "$loaded: auto_explain, details");
	$session->run("$STOCK; $sorted");
	is($session->run(q{SELECT calls, rows FROM pg_stat_statements WHERE query LIKE 'SELECT count(*), md5%'}), '2|2',
		"$loaded: one statement, with us and without");
	my @seen;

	# Since 18 a function in SQL is analyzed once in a session, or since 19 again after the plans that the
	# session keeps were dropped, and pg_stat_statements puts $2 in the place of a constant only then.
	$session->run('SELECT count(*) FROM listing(7000)');
	foreach my $settings ($STOCK, $OURS)
	{
		$session->run("$settings; SELECT pg_stat_statements_reset()");
		$session->run('SELECT count(*) FROM listing(7000)');
		$session->run('SELECT looping()');
		push @seen, $session->run(q{SELECT replace(query, 'OFFSET $2', 'OFFSET 100'), calls, rows, plans, toplevel FROM pg_stat_statements
			WHERE query LIKE '%halves%' OR query LIKE '%listing%' ORDER BY query COLLATE "C"});
	}
	is($seen[1], $seen[0], "$loaded: statements in functions");
	like($seen[1], qr/FROM halves WHERE .*\|1\|12900\|1\|f$/m, "$loaded: rows of a function in SQL");
	$session->run("$OURS; CREATE INDEX halves_k ON halves (k); DROP INDEX halves_k");
	is($session->run(q{SELECT calls FROM pg_stat_statements WHERE query LIKE 'CREATE INDEX halves_k%'}), '1', "$loaded: an index");
	is($session->run('SELECT index_builds FROM pg_stat_gpusort WHERE backend = $$cpu$$'), '1', "$loaded: built by us");

	# ---- JIT ----

	# The expressions of the nodes below and above are compiled, and the node works with them.  Some
	# packages of PostgreSQL leave the compiler to another package.
	my $has_jit = $session->run("$jit; SELECT pg_jit_available()") eq 't';
	like($session->run("$jit; EXPLAIN (ANALYZE) SELECT k % 7 + id FROM halves WHERE id % 3 = 1 ORDER BY k % 7, id + 1"),
		$has_jit ? qr/Custom Scan \(GpuSort\).*JIT:\s+Functions: [1-9]/s : qr/Custom Scan \(GpuSort\)/, "$loaded: JIT");
	foreach my $name (sort keys %SORTS_BELOW)
	{
		my ($query, $settings) = @{ $SORTS_BELOW{$name} };
		my $expected = $session->run(join('; ', $STOCK, 'SET jit = off', $settings // (), digest($query)));

		is($session->run(join('; ', $OURS, 'SET jit = on', digest($query))), $expected, "$loaded: JIT, $name");
		$session->run("RESET ALL; $jit");
	}
	$session->quit;
	$node->stop;
}

done_testing();
