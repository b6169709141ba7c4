# Parallel sorts and index builds by an enum on a GPU, which the emulator plays, while
# another session adds labels, so that all labels get new numbers in pg_enum: the words
# of all processes have to be in one order.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'},
	q{maintenance_work_mem = '128MB'}, 'max_worker_processes = 16', 'max_parallel_workers = 8',
	'max_parallel_maintenance_workers = 2');
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION amcheck;
	DO $$ BEGIN
		EXECUTE (SELECT 'CREATE TYPE level AS ENUM (' || string_agg(quote_literal('label ' || g), ', ' ORDER BY g) || ')'
				 FROM generate_series(1, 1000) g);
	END $$;
	CREATE TABLE items AS
	SELECT g AS id, ('label ' || 1 + g * 7919 % 1000)::level AS l, repeat('x', 100) AS filler
	FROM generate_series(1, 8000) g;
	ALTER TABLE items SET (parallel_workers = 2);
	ANALYZE items;

	-- Wait for a file, after some other rows.
	CREATE FUNCTION wait_for(file text, n int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
	BEGIN
		WHILE n % 25 = 0 AND (pg_stat_file(file, true)).size IS NULL LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
		RETURN n;
	END $$;
	CREATE PROCEDURE add_labels(name text) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. 60 LOOP
			EXECUTE format('ALTER TYPE level ADD VALUE %L BEFORE %L', name || ' ' || i, 'label 2');
		END LOOP;
	END $$;
});
my $reasons = "$REASONS WHERE reason <> 'pg_gpusort.backend is cpu'";
my $added = 'labels were added to an enum during the sort';
my $session = Session($node, parallel_plans(2, 'enable_gathermerge = off'), 'SET client_min_messages = warning');

# Have two workers and the leader wait for the file at their first blocks; add
# labels; let them go on.  Returns what the statement of $session prints.
sub add_labels_during
{
	my ($name, $statement) = @_;

	$session->run('SELECT pg_stat_gpusort_reset()');
	$session->begin($statement);
	becomes_true($node, q{SELECT count(*) = 3 FROM pg_stat_activity WHERE wait_event = 'PgSleep'})
	  or die 'the processes do not wait';
	$node->safe_psql('postgres', "CALL add_labels('$name')");
	append_to_file($node->data_dir . "/$name", 'added');
	return $session->finish;
}

# in_order NAME, QUERY, REQUIRE, REASONS: the rows have to be those of stock
# PostgreSQL, and the reasons these.
sub in_order
{
	my ($name, $query, $require, $expected) = @_;
	my $rows;

	like($session->run("SET pg_gpusort.debug_require = $require; EXPLAIN (VERBOSE) $query"),
		qr/Custom Scan \(GpuSort\).*Gather.*Custom Scan \(GpuSortSink\)/s, "$name: plan");
	$rows = add_labels_during($name, digest($query));
	is($session->run($reasons), $expected, "$name: reasons");
	$session->run('SET pg_gpusort.debug_require = off; SET pg_gpusort.enable = off');
	is($rows, $session->run(digest($query)), "$name: rows");
	$session->run('SET pg_gpusort.enable = on');
}

# ---- Queries ----

in_order('query', q{SELECT l, id FROM items WHERE wait_for('query', id) > 0 ORDER BY l, id}, 'gpu', '');
in_order('descending', q{SELECT id, l FROM items WHERE wait_for('descending', id) > 0 ORDER BY id % 3, l DESC, id}, 'gpu', '');

# Labels that are not there when the query begins.
in_order('casts',
	q{SELECT CASE WHEN wait_for('casts', id) % 25 > 0 THEN l ELSE ('casts ' || 1 + id % 60)::level END AS l, id
		FROM items ORDER BY l, id}, 'node', "$added 1");
in_order('arrays',
	q{SELECT ARRAY[CASE WHEN wait_for('arrays', id) % 25 > 0 THEN l ELSE ('arrays ' || 1 + id % 60)::level END] AS l, id
		FROM items ORDER BY l, id}, 'node', "$added 1");

# The same in a divided sort, whose processes all read the session, or else merge runs.
foreach my $way ('divided', 'divided casts')
{
	my ($name) = $way =~ s/ /_/r;
	my $label = $way eq 'divided' ? 'l' : "CASE WHEN id % 25 > 0 THEN l ELSE ('$name ' || 1 + id % 60)::level END";
	my $query = "SELECT md5(string_agg(s::text, ',' ORDER BY id)) FROM (SELECT l, id, row_number() OVER (PARTITION BY l ORDER BY id)
		FROM (SELECT $label AS l, id FROM items WHERE wait_for('$name', id) > 0) i) s";
	my $rows;

	$session->run('SET pg_gpusort.debug_divide = on; SET cpu_tuple_cost = 1');
	like($session->run("EXPLAIN $query"), qr/Divided By/, "$way: plan");
	$rows = add_labels_during($name, $query);
	is($session->run($reasons), $way eq 'divided' ? '' : "$added 1", "$way: reasons");
	is($rows, $session->run("SET pg_gpusort.enable = off; $query"), "$way: rows");
	$session->run('SET pg_gpusort.enable = on; SET pg_gpusort.debug_divide = off; RESET cpu_tuple_cost');
}
holds_nothing($node, 'queries');

# ---- Index builds ----

sub is_sound
{
	my ($name, $output, $expected) = @_;

	is($output, '', "$name: no error");
	is($session->run($reasons), $expected, "$name: reasons");
	is($session->run("RESET pg_gpusort.debug_require; SELECT bt_index_check('built', true); DROP INDEX built"),
		'', "$name: sound");
}

is_sound('index', add_labels_during('index',
		q{SET pg_gpusort.debug_require = gpu; CREATE INDEX built ON items (l, wait_for('index', id))}), '');

# Labels of rows from a transaction that the build waits for.
{
	my $inserting = Session($node, 'BEGIN', 'LOCK TABLE items IN ROW EXCLUSIVE MODE');

	$session->run('SELECT pg_stat_gpusort_reset()');
	$session->begin('SET pg_gpusort.debug_require = node; CREATE INDEX built ON items (l, id)');
	becomes_true($node, 'SELECT count(*) = 1 FROM pg_locks WHERE NOT granted')
	  or die 'the build does not wait';
	$node->safe_psql('postgres', "CALL add_labels('insert')");
	is($inserting->run(q{INSERT INTO items SELECT g, ('insert ' || 1 + g % 60)::level FROM generate_series(8001, 9000) g; COMMIT}),
		'', 'rows that the build waits for');
	is_sound('insert', $session->finish, "$added 1");
	$inserting->quit;
}
holds_nothing($node, 'index builds');

$session->quit;
$node->stop;
done_testing();
