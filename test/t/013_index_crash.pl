# Index builds that end early: the server is killed during and after them, or they
# are cancelled or run into an error; and what a standby gets of them.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

my @settings = (
	q{shared_preload_libraries = 'pg_gpusort'},
	'pg_gpusort.min_rows = 0',
	'pg_gpusort.debug_require = node',
	'jit = off',
	'autovacuum = off',
	'restart_after_crash = on',
	'max_parallel_maintenance_workers = 0');

# new_node NAME, SETTINGS, PARAMETERS of init.
sub new_node
{
	my ($name, $more, %parameters) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%parameters, extra => ['--data-checksums']);
	$node->append_conf('postgresql.conf', join("\n", @settings, @$more, ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_gpusort');
	add_index_tools($node);
	return $node;
}

sub checksums_are_right
{
	my ($node, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->stop;
	command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], "$name: checksums");
}

# Tables with some rows; and one with many.
my $tables = q{
	CREATE TABLE few (id int PRIMARY KEY, k int8, t text COLLATE "C", f float8);
	INSERT INTO few SELECT g, g * 7919 % 1009, md5(g::text), sin(g) FROM generate_series(1, 5000) g;
	UPDATE few SET k = k + 1 WHERE id % 10 = 0;
	CREATE TABLE many (id int8, k int8);
	INSERT INTO many SELECT g, g * 7919::int8 % 1000003 FROM generate_series(1, 300000) g;
	CREATE UNLOGGED TABLE unlogged AS SELECT g * 7919 % 1009 AS k FROM generate_series(1, 2000) g};
# A build that stops in any phase: the function is called in the scan, and the operator
# class compares equal keys while rows are sorted, and again when pages are written.
my $middle = 150000;
my $stopping = "CREATE UNIQUE INDEX many_stopping ON many
	((CASE WHEN id BETWEEN $middle AND $middle + 5 THEN $middle ELSE id END), stopping(id) stopping)";

# phases MEMORY: in which it stops; if there is little memory, runs are sorted in the scan.
sub phases
{
	my ($memory) = @_;

	return map { [ $memory, $_ ] } 'scanning', ($memory eq '1MB' ? () : 'sorting'), 'loading';
}

my @few = (
	'CREATE INDEX few_k ON few (k)',
	'CREATE INDEX few_kt ON few (k DESC, t) INCLUDE (f) WITH (fillfactor = 60)',
	'CREATE UNIQUE INDEX few_t ON few (t)',
	'CREATE INDEX few_f ON few (f) WHERE k > 50',
	'CREATE INDEX few_dup ON few ((k % 10)) WITH (deduplicate_items = off)',
	'CREATE INDEX CONCURRENTLY few_conc ON few (f DESC, k)');

# ---- A standby ----

my $node = new_node('primary', [ q{wal_consistency_checking = 'all'}, 'max_wal_size = 1GB', 'wal_keep_size = 4GB' ], allows_streaming => 1);
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
my $same_as_standby = sub {
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->wait_for_catchup($standby);
	indexes_are_sound($standby, "$name, standby");
	is(index_digests($standby), index_digests($node), "$name: the same pages on the standby");
};

$node->safe_psql('postgres', $tables);
$node->safe_psql('postgres', $_) foreach @few, 'CREATE INDEX many_k ON many (k)', 'CREATE INDEX unlogged_k ON unlogged (k)';
$same_as_standby->('built');
my $query = 'SELECT count(*), sum(id) FROM few WHERE k BETWEEN 100 AND 200';
is($standby->safe_psql('postgres', "SET enable_seqscan = off; $query"), $node->safe_psql('postgres', $query),
	'rows by an index of the standby');
$node->safe_psql('postgres', q{
	REINDEX TABLE few; VACUUM FULL many; ALTER TABLE few ALTER f TYPE numeric;
	ALTER TABLE unlogged SET LOGGED;
	INSERT INTO few SELECT id + 10000, k, t || 'x', f FROM few; UPDATE few SET k = k + 1; DELETE FROM few WHERE id % 3 = 0; VACUUM few});
$node->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY many');
$same_as_standby->('built again and changed');
$node->safe_psql('postgres', q{
	ALTER TABLE many SET (parallel_workers = 3); SET max_parallel_maintenance_workers = 3; SET maintenance_work_mem = '256MB';
	CREATE INDEX many_by_workers ON many (k, id)});
$same_as_standby->('built by workers');
$node->safe_psql('postgres', 'ALTER TABLE unlogged SET UNLOGGED');

# The standby takes over, in the middle of a build of the primary.
add_stops($node, $middle);
my $stops = hold_stops($node);
my $session = Session($node);
$session->begin($stopping);
wait_for_stop($node, $session);
$node->wait_for_catchup($standby);
$standby->promote;
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'many_stopping'}), '0', 'promoted: not there');
is($standby->safe_psql('postgres', 'TRUNCATE unlogged; REINDEX TABLE unlogged; INSERT INTO unlogged VALUES (7);
	SET enable_seqscan = off; SELECT count(*) FROM unlogged WHERE k = 7'), '1', 'promoted: an unlogged table');
$standby->safe_psql('postgres', "$stopping; REINDEX TABLE few");
indexes_are_sound($standby, 'promoted');
checksums_are_right($standby, 'standby');

# ---- The server is killed during a build ----

crash_server($node);
$_->quit foreach $session, $stops;
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'many_stopping'}), '0', 'killed in the scan: not there');
indexes_are_sound($node, 'killed in the scan');
leaves_nothing($node, 'killed in the scan');
is($node->safe_psql('postgres', 'SELECT count(*) FROM unlogged'), '0', 'killed: an unlogged table is empty');
is($node->safe_psql('postgres', 'INSERT INTO unlogged SELECT generate_series(1, 1000);
	SET enable_seqscan = off; SELECT count(*) FROM unlogged WHERE k = 7'), '1', 'and its index works');

# In each phase, with little memory and with enough.
foreach my $case (phases('1MB'), phases('64MB'), [ '1MB', 'done' ], [ '64MB', 'done' ])
{
	my ($memory, $phase) = @$case;
	my $name = "killed, $memory, $phase";

	$stops = hold_stops($node);
	my $writer = Session($node, "SET maintenance_work_mem = '$memory'", "SET stop.phase = '$phase'");
	$writer->begin($stopping);
	$phase eq 'done' ? is($writer->finish, '', "$name: built") : wait_for_stop($node, $writer);
	$node->safe_psql('postgres', 'CHECKPOINT') if $memory eq '1MB';
	crash_server($node);
	$_->quit foreach $writer, $stops;
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'many_stopping'}), $phase eq 'done' ? '1' : '0',
		"$name: is it there?");
	indexes_are_sound($node, $name);
	leaves_nothing($node, $name);
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS many_stopping');
}

# At any time, wherever that is.
foreach my $delay (20, 100, 300)
{
	my $writer = Session($node, q{SET maintenance_work_mem = '1MB'});

	$writer->begin('CREATE INDEX many_killed ON many (k, id)');
	usleep($delay * 1000);
	crash_server($node);
	$writer->quit;
	indexes_are_sound($node, "killed after $delay ms");
	leaves_nothing($node, "killed after $delay ms");
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS many_killed');
}

# Right after the build, before anything else writes the pages.
$node->safe_psql('postgres', 'DROP INDEX few_k, few_kt, few_t, few_f, few_dup, few_conc');
$node->safe_psql('postgres', $_) foreach @few;
$node->safe_psql('postgres', 'CREATE TABLE copied (LIKE few INCLUDING ALL); INSERT INTO copied SELECT * FROM few; REINDEX TABLE copied');
my $digests = index_digests($node);
crash_server($node);
is(index_digests($node), $digests, 'killed after builds: all pages are there');
indexes_are_sound($node, 'killed after builds');
is($node->safe_psql('postgres', q{SET pg_gpusort.debug_require = off; SELECT * FROM check_indexes('copied') c WHERE c !~ ': same$'}),
	'', 'as stock builds them');
checksums_are_right($node, 'primary');

# ---- Without WAL of new files ----

$node = new_node('minimal', [ 'wal_level = minimal', 'max_wal_senders = 0', 'wal_skip_threshold = 0' ]);
my $new = q{
	BEGIN;
	CREATE TABLE fresh (id int PRIMARY KEY, k int8);
	INSERT INTO fresh SELECT g, g * 7919 % 1009 FROM generate_series(1, 20000) g;
	CREATE INDEX fresh_k ON fresh (k);
	CREATE INDEX fresh_desc ON fresh (k DESC, id) WITH (deduplicate_items = off);
	REINDEX TABLE fresh;
	COMMIT};
foreach my $threshold ('0', '1GB')
{
	$node->safe_psql('postgres', "SET wal_skip_threshold = '$threshold'; $new");
	$node->safe_psql('postgres', q{
		CREATE TABLE truncated (k int8); CREATE INDEX truncated_k ON truncated (k);
		INSERT INTO truncated SELECT generate_series(1, 1000);
		BEGIN; TRUNCATE truncated; INSERT INTO truncated SELECT g * 7919 % 1009 FROM generate_series(1, 5000) g;
		CREATE INDEX truncated_desc ON truncated (k DESC); COMMIT});
	$node->safe_psql('postgres', q{INSERT INTO fresh SELECT g, -g FROM generate_series(20001, 20100) g});
	crash_server($node);
	indexes_are_sound($node, "wal_level minimal, $threshold");
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*), (SELECT count(*) FROM truncated WHERE k < 0) FROM fresh WHERE k > -20050'),
		'20049|0', "wal_level minimal, $threshold: all rows");
	$node->safe_psql('postgres', 'DROP TABLE fresh, truncated');
}

# ---- Builds that are cancelled ----

$node->safe_psql('postgres', "$tables; ALTER TABLE many SET (parallel_workers = 2)");
add_stops($node, $middle);
$node->safe_psql('postgres', q{
	CREATE FUNCTION failing(k int8) RETURNS int8 IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
		$$ BEGIN RETURN k / (k - 7919); END $$});
my $contexts = q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'pg_gpusort%'};
my $goes_on = sub {
	my ($writer, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($writer->run($contexts), '0', "$name: no memory of builds is left");
	files_belong($node, $name);
	is($writer->run('CREATE INDEX few_next ON few (k); DROP INDEX few_next; SHOW pg_gpusort.debug_require'),
		'node', "$name: the next build");
};

foreach my $way ([ '1MB', 0 ], [ '64MB', 0 ], [ '128MB', 2 ])
{
	my ($memory, $workers) = @$way;
	my @way = ("SET maintenance_work_mem = '$memory'", "SET max_parallel_maintenance_workers = $workers");
	my $writer = Session($node, @way);

	foreach my $case (phases($memory))
	{
		my $phase = $case->[1];
		my $name = "$memory, $phase";
		my $stops = hold_stops($node);
		# A leader that has read the rows may sort them while it writes, and a worker stops in any phase.
		my $stop = "SET stop.phase = '" . ($workers > 0 && $phase eq 'sorting' ? 'sorting|loading' : $phase) . "'";

		$writer->run($stop);
		$writer->begin($stopping);
		wait_for_stop($node, $writer);
		$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $writer->pid . ')');
		like($writer->finish, qr/57014: canceling statement due to user request/, "$name: pg_cancel_backend");
		$goes_on->($writer, "$name, cancelled");

		my $ended = Session($node, @way, $stop);
		$ended->begin($stopping);
		wait_for_stop($node, $ended);
		$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $ended->pid . ')');
		like($ended->finish, qr/57P01: terminating connection/, "$name: pg_terminate_backend");
		$ended->quit;
		becomes_true($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker'})
		  or fail("$name: workers end");
		files_belong($node, "$name, terminated");

		# It waits for longer than that, however long it takes to come there.
		$writer->run(q{SET statement_timeout = '100ms'});
		like($writer->run($stopping), qr/57014: canceling statement due to statement timeout/, "$name: statement_timeout");
		1 while $writer->run('RESET statement_timeout') =~ /57014/;
		$goes_on->($writer, "$name, statement_timeout");
		$stops->quit;
	}
	is($writer->run("$stopping; DROP INDEX many_stopping"), '', "$memory: in the end it is built");
	like($writer->run('CREATE INDEX many_failing ON many (failing(k))'), qr/22012: division by zero/, "$memory: an error");
	$goes_on->($writer, "$memory, error");
	$writer->run('BEGIN; CREATE INDEX many_rolled ON many (k); ROLLBACK');
	$goes_on->($writer, "$memory, rolled back");
	$writer->run('BEGIN; SAVEPOINT s; REINDEX TABLE few; ROLLBACK TO s; REINDEX TABLE few; COMMIT');
	$goes_on->($writer, "$memory, a savepoint");

	# after any time, wherever that is
	my ($cancelled, $other) = (0, '');
	foreach my $delay (1, 30, 70, 140, 250)
	{
		my $output = $writer->run("SET statement_timeout = $delay; CREATE INDEX many_timed ON many (k, id)");

		if ($output =~ /57014/) { $cancelled++; }
		else { $other .= $output; }
		# A short timeout holds for the end of itself, too.
		1 while $writer->run('RESET statement_timeout') =~ /57014/;
		$other .= $writer->run('SET client_min_messages = error; DROP INDEX IF EXISTS many_timed');
		$other .= $writer->run($contexts) eq '0' ? '' : "memory is left after $delay ms";
	}
	is($other, '', "$memory: cancelled or done after any delay");
	note("$memory: cancelled $cancelled times");
	$goes_on->($writer, "$memory, any delay");

	# backends that are terminated in any phase
	foreach my $delay (20, 100, 180, 300)
	{
		my $ended = Session($node, @way);

		$ended->begin('CREATE INDEX many_ended ON many (k, id)');
		usleep($delay * 1000);
		$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $ended->pid . ')');
		$ended->finish;
		$ended->quit;
		ends($ended->pid);
		$node->safe_psql('postgres', 'DROP INDEX IF EXISTS many_ended');
	}
	becomes_true($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker'})
	  or fail("$memory: workers end");
	files_belong($node, "$memory, terminated in any phase");
	$writer->quit;
}
indexes_are_sound($node, 'after all that was cancelled');

# CONCURRENTLY leaves an index that is not valid, whoever builds it.
{
	my $writer = Session($node);
	my $stops = hold_stops($node);

	$writer->begin($stopping =~ s/INDEX/INDEX CONCURRENTLY/r);
	wait_for_stop($node, $writer);
	$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $writer->pid . ')');
	like($writer->finish, qr/57014/, 'CONCURRENTLY: cancelled');
	is($writer->run(q{SELECT indisvalid FROM pg_index WHERE indexrelid = 'many_stopping'::regclass}), 'f', 'CONCURRENTLY: not valid');
	is($writer->run('DROP INDEX many_stopping'), '', 'CONCURRENTLY: dropped');
	$stops->quit;
	$goes_on->($writer, 'CONCURRENTLY');
	$writer->quit;
}

# ---- No room ----

{
	my $writer = Session($node, q{SET maintenance_work_mem = '1MB'}, q{SET temp_file_limit = '1MB'});

	like($writer->run('CREATE INDEX many_limited ON many (k, id)'), qr/53400: temporary file size exceeds "?temp_file_limit/,
		'temp_file_limit');
	leaves_nothing($node, 'temp_file_limit');
	$writer->run('RESET temp_file_limit');
	is($writer->run($contexts), '0', 'temp_file_limit: no memory is left');
	$writer->quit;
}

SKIP:
{
	skip 'needs prlimit', 1 if system('prlimit --version >/dev/null 2>&1') != 0;

	# The system refuses to make the index's file longer, or a temporary one.
	foreach my $memory ('1MB', '64MB')
	{
		foreach my $kilobytes (100, 1000, 6000)
		{
			my @errors;

			foreach my $enable ('on', 'off')
			{
				my $writer = Session($node, "SET maintenance_work_mem = '$memory'", 'SET pg_gpusort.debug_require = off',
					"SET pg_gpusort.enable_index_build = $enable");

				system('prlimit', '--pid', $writer->pid, '--fsize=' . $kilobytes * 1024 . ':') == 0
				  or die 'could not limit the size of files';
				my $output = $writer->run('CREATE INDEX many_full ON many (k, id)');
				push @errors, $output =~ /ERROR:  (\w+): could not (extend|write)/ ? "$1 $2" : $output;
				is($writer->run($contexts), '0', "$memory, $kilobytes kB, $enable: no memory is left");
				$writer->quit;
				ends($writer->pid);
				files_belong($node, "$memory, $kilobytes kB, $enable");
			}
			like($errors[0], qr/^\w{5} (extend|write)/, "$memory, $kilobytes kB: an error");
			note("$memory, $kilobytes kB: ours $errors[0], stock $errors[1]");
		}
	}
	indexes_are_sound($node, 'no room');
}

# ---- Backends that are killed ----

# This leaves files, whoever builds, as any crash does.
foreach my $phase ('scanning', 'loading')
{
	my $writer = Session($node, q{SET maintenance_work_mem = '1MB'}, "SET stop.phase = '$phase'");

	$stops = hold_stops($node);
	$writer->begin($stopping);
	wait_for_stop($node, $writer);
	my $before = -s $node->logfile;
	kill 'KILL', $writer->pid;
	$_->quit foreach $writer, $stops;
	wait_for_restart($node, $before);
	becomes_true($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = " . $writer->pid);
	leaves_nothing($node, "backend killed, $phase");
	indexes_are_sound($node, "backend killed, $phase");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'many_stopping'}), '0', "backend killed, $phase: not there");
}

checksums_are_right($node, 'minimal');
done_testing();
