# Indexes built CONCURRENTLY while others write: what the validation adds to them, as
# stock PostgreSQL does, and how it ends.
#
# Writers go on for GPUSORT_CONCURRENT_SECONDS, or for two rounds.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{GPUSORT_CONCURRENT_SECONDS} // 0;
my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'}, 'pg_gpusort.min_rows = 0',
	'autovacuum = off', 'max_parallel_maintenance_workers = 0', 'log_statement = none');

add_index_tools($node);
add_stops($node, 1000);

my $builds = 'SELECT sum(index_builds) FROM pg_stat_gpusort';

# validations: returns how many validations were ours.
sub validations
{
	return value_of($node, 'SELECT max(index_validations) FROM pg_stat_gpusort');
}

# fill_table: makes a table of rows of all kinds: with and without HOT chains, deleted and
# aborted ones.  The build of an index that calls stopping(k) stops at its last row.
sub fill_table
{
	$node->safe_psql('postgres', q{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id int, k int8, v int, w text COLLATE "C") WITH (fillfactor = 60);
		INSERT INTO t SELECT g, 2000 + g * 7919 % 1009, g % 10, 'text ' || g FROM generate_series(1, 3000) g;
		UPDATE t SET w = w || ' again' WHERE id % 5 = 0;
		UPDATE t SET w = w || ' and again' WHERE id % 15 = 0;
		DELETE FROM t WHERE id % 11 = 0;
		UPDATE t SET k = k + 1 WHERE id % 13 = 0;
		BEGIN; INSERT INTO t SELECT -id, k, v, 'aborted' FROM t WHERE id % 7 = 0; ROLLBACK;
		BEGIN; UPDATE t SET w = 'aborted' WHERE id % 17 = 0; ROLLBACK;
		INSERT INTO t VALUES (5000, 1000, 1, 'last')});
}

# What others do during a build: rows that are new, in old and new chains, gone, and aborted.
my $changes = q{
	INSERT INTO t SELECT id + 10000, k + 1, v, 'inserted' FROM t WHERE id BETWEEN 100 AND 400;
	UPDATE t SET w = 'inserted and updated' WHERE id BETWEEN 10200 AND 10300;
	UPDATE t SET w = 'updated in a chain' WHERE id % 4 = 0;
	UPDATE t SET k = k + 2, w = 'key changed' WHERE id % 9 = 0 AND k > 1000;
	UPDATE t SET w = 'and updated in a chain' WHERE id % 18 = 0;
	DELETE FROM t WHERE id % 19 = 0 OR id BETWEEN 10250 AND 10260;
	SELECT count(*) FROM t;
	BEGIN; INSERT INTO t SELECT id + 20000, k, v, 'aborted' FROM t WHERE id % 3 = 0; ROLLBACK;
	BEGIN; UPDATE t SET w = 'aborted', k = 5 WHERE id % 6 = 0; ROLLBACK;
	INSERT INTO t SELECT id + 30000, k, v, 'last' FROM t WHERE id < 50};

# build_and_change SETTING, STATEMENT, CHANGES: returns the output of a statement that builds
# an index, and in whose build others change rows.
sub build_and_change
{
	my ($setting, $statement, $changes) = @_;
	my $stops = hold_stops($node);
	my $session = Session($node, "SET $setting", q{SET stop.phase = 'building'}, 'SET client_min_messages = debug2');

	$session->begin($statement);
	wait_for_stop($node, $session);
	$node->safe_psql('postgres', $changes);
	$stops->quit;
	my $output = $session->finish;
	$session->quit;
	return $output;
}

# index_is_complete NAME, INDEX: tests that amcheck finds nothing wrong with an index, and all
# rows in it, and that it is valid.
sub index_is_complete
{
	my ($name, $index) = @_;

	my ($ret, $out, $err) = $node->psql('postgres',
		"SELECT bt_index_parent_check('$index', true, true), indisvalid FROM pg_index WHERE indexrelid = '$index'::regclass");

	is($out . $err, '|t', "$name: amcheck");
}

# ---- Rows that others change during the build ----

my @ways = (
	'INDEX CONCURRENTLY i ON t (stopping(k))',
	'INDEX CONCURRENTLY i ON t (w, v DESC) INCLUDE (id) WHERE stopping(k) > 0',
	'INDEX CONCURRENTLY i ON t (k) WHERE v % 3 = 1 AND stopping(k) > 0',
	'INDEX CONCURRENTLY i ON t ((v + id), stopping(k)) WITH (deduplicate_items = off)',
	'UNIQUE INDEX CONCURRENTLY i ON t (id) WHERE stopping(k) > 0');

foreach my $way (@ways)
{
	my %found;

	foreach my $enable ('off', 'on')
	{
		fill_table();
		my $before = validations();
		my $output = build_and_change("pg_gpusort.enable_index_build = $enable", "CREATE $way", $changes);

		($found{$enable}) = $output =~ /(validate_index found .*)/;
		unlike($output, qr/ERROR/, "$way, $enable: no error");
		is(validations() - $before, $enable eq 'on' ? 1 : 0, "$way, $enable: whose validation");
		index_is_complete("$way, $enable", 'i');
	}
	is($found{on}, $found{off}, "$way: as many rows");
	like($found{on} // '', qr/inserted [1-9]\d\d+ missing/, "$way: some of them were missing");
}

# A row has been inserted twice.
{
	my %errors;

	foreach my $enable ('off', 'on')
	{
		fill_table();
		my $before = validations();
		my $output = build_and_change("pg_gpusort.enable_index_build = $enable", "CREATE $ways[-1]",
			q{INSERT INTO t SELECT id, k, v, 'twice' FROM t WHERE id IN (1000, 700, 2000)});

		($errors{$enable}) = join(' ', $output =~ /^((?:ERROR|DETAIL): .*)/mg);
		is($node->safe_psql('postgres', q{SELECT indisvalid FROM pg_index WHERE indexrelid = 'i'::regclass}), 'f', "duplicates, $enable: not valid");
		is(validations(), $before, "duplicates, $enable: not counted");
	}
	like($errors{on}, qr/duplicate key value/, 'duplicates: an error');
	is($errors{on}, $errors{off}, 'duplicates: the same');
}

# ---- Stops in the validation ----

# begin_validation SESSION, STATEMENT: has a statement stop at a row that was missing.
# Returns the session that holds it there.
sub begin_validation
{
	my ($session, $statement) = @_;
	my $stops = hold_stops($node);
	my $next = Session($node);

	fill_table();
	$session->begin($statement);
	wait_for_stop($node, $session);
	$node->safe_psql('postgres', qq{$changes; INSERT INTO t VALUES (40000, 1000, 1, 'stops')});
	# The next session waits behind the build, and so has the lock when that continues.
	$next->begin('SELECT pg_advisory_lock(1000)');
	wait_for_stop($node, $next);
	$stops->quit;
	$next->finish;
	wait_for_stop($node, $session);
	return $next;
}

{
	my $session = Session($node);
	my $before = validations();
	my $stops = begin_validation($session, "CREATE $ways[0]");

	is( $node->safe_psql(
			'postgres', q{
			SELECT phase, blocks_total = pg_relation_size('t') / current_setting('block_size')::int8,
				   blocks_done BETWEEN 5 AND blocks_total
			FROM pg_stat_progress_create_index WHERE relid = 't'::regclass}),
		'index validation: scanning table|t|t',
		'pg_stat_progress_create_index: the validation');
	$node->safe_psql('postgres', $changes =~ s/\+ ([123]0000)/+ 5$1/gr);
	$stops->quit;
	is($session->finish, '', 'changes during the validation');
	is(validations(), $before + 1, 'which is ours');
	index_is_complete('changes during the validation', 'i');

	# This session still has our functions for the index.
	my $items = q{SELECT sum(live_items) FROM generate_series(1, pg_relation_size('i') / current_setting('block_size')::int8 - 1) b,
		bt_page_stats('i', b) WHERE type = 'l'};
	my $all = $session->run($items);
	$session->run('SET pg_gpusort.debug_require = off; DELETE FROM t WHERE id % 2 = 0; VACUUM t');
	cmp_ok($session->run($items), '<', $all * 0.7, 'VACUUM in the same session deletes index tuples');
	$session->run('INSERT INTO t SELECT id + 100000, k, v, w FROM t');
	index_is_complete('and others get their TIDs', 'i');
	$session->quit;
}

foreach my $way (@ways[ 0, 4 ])
{
	foreach my $ending ('cancel', 'terminate')
	{
		my $session = Session($node);
		my $before = validations();
		my $name = "$ending in $way";
		my $stops = begin_validation($session, "CREATE $way");

		value_of($node, "SELECT pg_${ending}_backend(" . $session->pid . ')');
		like($session->finish, $ending eq 'cancel' ? qr/canceling statement/ : qr/terminating connection/, "$name: an error");
		$stops->quit;
		is(validations(), $before, "$name: not counted");
		# The same session, if it is there, reads the table and builds the index again.
		$session = Session($node) if $ending ne 'cancel';
		is($session->run('SELECT count(*) > 1000 FROM t'), 't', "$name: the table can be read");
		is($session->run("DROP INDEX i; CREATE $way"), '', "$name: again");
		is(validations(), $before + 1, "$name: validated");
		index_is_complete($name, 'i');
		$session->quit;
	}
}

# ---- Which validations are ours ----

# validated NAME, SETTINGS, STATEMENT, COUNT
sub validated
{
	my ($name, $settings, $statement, $count) = @_;
	my $session = Session($node, map { "SET $_" } @$settings);
	my $before = validations();

	is($session->run($statement), '', "$name: no error");
	is(validations() - $before, $count, "$name: $count validations");
	$session->quit;
	indexes_are_sound($node, $name);
}

fill_table();
$node->safe_psql('postgres', q{
	CREATE INDEX t_k ON t (k); CREATE INDEX t_v ON t (v, id); CREATE UNIQUE INDEX t_id ON t (id) INCLUDE (w);
	CREATE INDEX t_w ON t (w) WHERE v > 5; CREATE INDEX t_hash ON t USING hash (k);
	CREATE TABLE p (k int, v int) PARTITION BY RANGE (k);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (500);
	CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (500) TO (2000);
	INSERT INTO p SELECT g * 7919 % 1009, g FROM generate_series(1, 2000) g;
	CREATE INDEX p_k ON p (k);
	CREATE TABLE empty (k int)});
validated('all indexes of a table', [], 'REINDEX TABLE CONCURRENTLY t', 4);
validated('and with workers', ['max_parallel_maintenance_workers = 2', 'min_parallel_table_scan_size = 0'], 'REINDEX TABLE CONCURRENTLY t', 4);
validated('partitions', [], 'REINDEX TABLE CONCURRENTLY p', 2);
validated('an empty table', [], 'CREATE INDEX CONCURRENTLY ON empty (k)', 1);
validated('a hash index', [], 'REINDEX INDEX CONCURRENTLY t_hash', 0);
validated('not CONCURRENTLY', [], 'REINDEX TABLE t', 0);
validated('switched off', ['pg_gpusort.enable_index_build = off'], 'REINDEX TABLE CONCURRENTLY t', 0);
validated('few rows', [ 'pg_gpusort.min_rows = 100000', 'pg_gpusort.min_index_rows = 100000' ], 'REINDEX TABLE CONCURRENTLY t', 0);
validated('a snapshot of a serializable transaction', [q{default_transaction_isolation = 'serializable'}], 'REINDEX TABLE CONCURRENTLY t', 4);

# The set of TIDs of a table of so many pages takes more than 1 MB.
$node->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE pages (k int, t text);
	ALTER TABLE pages ALTER t SET STORAGE PLAIN;
	INSERT INTO pages SELECT g * 7919 % 100003, repeat('x', 8000) FROM generate_series(1, 26300) g});
{
	my $beyond = q{SELECT coalesce(sum(sorts), 0) FROM pg_stat_gpusort_fallbacks WHERE reason = 'rows exceeded maintenance_work_mem'};
	my $before = value_of($node, $beyond);

	validated('enough memory', [q{maintenance_work_mem = '2MB'}], 'CREATE INDEX CONCURRENTLY pages_k ON pages (k)', 1);
	is(value_of($node, $beyond), $before, 'enough memory: counted as such');
	validated('too little memory', [q{maintenance_work_mem = '1MB'}], 'REINDEX INDEX CONCURRENTLY pages_k', 0);
	cmp_ok(value_of($node, $beyond), '>', $before, 'too little memory: counted');
	$node->safe_psql('postgres', 'DROP TABLE pages');
}

# ---- While others write ----

# cancelled SESSION, STATEMENT: has the session execute a statement that ends early or not, and
# removes what it has left.  Returns how many validations were done.
sub cancelled
{
	my ($session, $statement) = @_;
	my $before = validations();

	$session->run('SET statement_timeout = ' . (1 + int(rand(500))) . "; $statement");
	# The timeout can end this statement, too.
	$session->run('RESET statement_timeout') until $session->run('SHOW statement_timeout') eq '0';
	$session->run($_) foreach split(/\n/, value_of($node, q{
		SELECT 'DROP INDEX CONCURRENTLY ' || indexrelid::regclass FROM pg_index WHERE NOT indisvalid}));
	return validations() - $before;
}

$node->safe_psql('postgres', q{
	CREATE TABLE written (id int PRIMARY KEY, k int8, v int, w text) WITH (fillfactor = 80);
	INSERT INTO written SELECT g, g * 7919 % 10007, g % 10, 'text ' || g FROM generate_series(1, 30000) g;
	CREATE SEQUENCE written_id START 30001});
{
	my $script = $node->basedir . '/writes.sql';
	my $log = '';
	my $session = Session($node);
	my @statements = (
		'CREATE INDEX CONCURRENTLY written_k ON written (k)',
		'CREATE UNIQUE INDEX CONCURRENTLY written_unique ON written (id) INCLUDE (v)',
		'CREATE INDEX CONCURRENTLY written_w ON written (w COLLATE "C", v) WHERE v > 3',
		'CREATE INDEX CONCURRENTLY written_e ON written ((k + v), id DESC)',
		'CREATE INDEX CONCURRENTLY written_v ON written (v)',
		'REINDEX INDEX CONCURRENTLY written_v',
		'REINDEX TABLE CONCURRENTLY written',
		# With a lock on the table, in the midst of writers who wait for it.
		'CREATE INDEX written_locked ON written (v DESC)');
	my $load;
	my $round = 0;
	my $until = time() + $seconds;
	my ($wrong, $statements, $others) = ('', 0, 0);
	my $before = validations();
	my $built_before = value_of($node, $builds);

	append_to_file($script, q{
		\set id random(1, 30000)
		\set v random(1, 1000)
		UPDATE written SET w = 'text ' || :v WHERE id = :id;
		UPDATE written SET k = :v WHERE id = :id + 1;
		UPDATE written SET v = :v % 10, w = NULL WHERE id BETWEEN :id + 2 AND :id + 4;
		INSERT INTO written SELECT nextval('written_id'), :v, 1, 'new';
		DELETE FROM written WHERE id = :id + 5;
		DELETE FROM written WHERE id > 30000 AND id < (SELECT last_value - 5000 FROM written_id) AND id % 100 = :v % 100;
		BEGIN;
		INSERT INTO written SELECT nextval('written_id'), :v, 1, 'aborted';
		UPDATE written SET k = -1 WHERE id = :id + 6;
		ROLLBACK;
		INSERT INTO written SELECT :id + 5, :v, 1, 'again' ON CONFLICT DO NOTHING;
	});
	$load = IPC::Run::start(
		[
			$node->installed_command('pgbench'), '-n', '-c', '3', '-T', '86400', '-f', $script,
			$node->connstr('postgres')
		],
		'<', \undef, '>', \$log, '2>', \$log);
	becomes_true($node, 'SELECT last_value > 30100 FROM written_id') or die 'nobody writes';
	while ($round < 2 || time() < $until)
	{
		$round++;
		$session->run(q{SET maintenance_work_mem = '} . (1, 64)[ $round % 2 ] . q{MB'});
		foreach my $statement (@statements)
		{
			my $output = $session->run($statement);

			# amcheck examines what the index says of the table now.
			$output .= $session->run(q{SELECT bt_index_check(indexrelid, true) FROM pg_index WHERE indrelid = 'written'::regclass AND indisvalid});
			$wrong .= "round $round, $statement: $output\n" if $output =~ /\S/;
			$statements++;
		}
		# Some statements are cancelled, at any point, and leave an index that is not valid.
		$others += cancelled($session, 'REINDEX TABLE CONCURRENTLY written');
		$wrong .= $session->run(q{DROP INDEX written_k, written_unique, written_w, written_e, written_v, written_locked; VACUUM written});
	}
	is($wrong, '', "in $round rounds: no errors, and amcheck finds nothing wrong");
	# REINDEX TABLE has six indexes, and the last statement needs no validation.
	is(validations() - $before - $others, $round * (@statements + 4), 'all validations were ours');
	cmp_ok(value_of($node, $builds) - $built_before, '>=', $round * (@statements + 5), 'and all builds');
	$load->kill_kill;
	becomes_true($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'});
	note("$statements statements, " . value_of($node, 'SELECT last_value FROM written_id') . ' rows written');
	$session->run($_) foreach @statements;
	indexes_are_sound($node, 'after the load');
	foreach my $condition ('k BETWEEN 100 AND 200', 'v = 5', 'id < 500', 'k + v < 300')
	{
		my $query = "SELECT count(*), sum(hashtext(w::text)) FROM written w WHERE $condition";

		is($node->safe_psql('postgres', "SET enable_seqscan = off; $query"),
			$node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; $query"),
			"rows by an index: $condition");
	}
	$session->quit;
}
$node->stop;
done_testing();
