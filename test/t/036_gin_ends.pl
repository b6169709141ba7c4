# Builds of GIN indexes that end in each phase: each of their processes is killed, terminated or
# cancelled, or the disk is full for one of them.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'}, 'pg_gpusort.min_rows = 0', 'max_worker_processes = 16',
	'max_parallel_workers = 8', 'max_parallel_maintenance_workers = 2', q{maintenance_work_mem = '96MB'}, 'restart_after_crash = on',
	'wal_level = minimal', 'max_wal_senders = 0');
add_index_tools($node);

# Each row has one key, so that keys are compared only when they are sorted and merged.  Half of the
# rows have a long key of their own, others share short ones.
#
# The functions wait while another session has their lock: at_row() at each row, comparing() at each
# comparison, if stop.merge is on only in the leader while it reads the sorted keys, which is when it knows the number
# of entries.  Both are in C, since workers call no others before PostgreSQL 18, and have bodies in PL/pgSQL.
$node->safe_psql('postgres', q{
	CREATE TABLE items (id int, a text[]) WITH (parallel_workers = 2);
	INSERT INTO items
	SELECT g, CASE WHEN g % 2 = 0 THEN ARRAY[(SELECT string_agg(md5((g * k)::text), '') FROM generate_series(1, 38) k)]
		ELSE ARRAY['shared ' || g % 40] END
	FROM generate_series(1, 8000) g;
	CREATE FUNCTION wait_for_lock(lock int) RETURNS void PARALLEL SAFE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_advisory_lock_shared(lock);
		PERFORM pg_advisory_unlock_shared(lock);
	END $$;
	CREATE FUNCTION at_row_body(a text[]) RETURNS text[] IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
		$$ BEGIN PERFORM public.wait_for_lock(1000); RETURN a; END $$;
	CREATE FUNCTION at_row(a text[]) RETURNS text[] IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'pg_gpusort', 'gpusort_test_call';
	CREATE FUNCTION comparing_body(a text, b text) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
	BEGIN
		IF current_setting('stop.merge', true) = 'off' THEN
			PERFORM public.wait_for_lock(1001);
		ELSIF current_setting('stop.merge', true) = 'on' THEN
			PERFORM pg_stat_clear_snapshot();
			IF EXISTS (SELECT FROM pg_stat_progress_create_index WHERE pid = pg_backend_pid() AND tuples_total > 0) THEN
				PERFORM public.wait_for_lock(1001);
			END IF;
		END IF;
		RETURN bttextcmp(a, b);
	END $$;
	CREATE FUNCTION comparing(a text, b text) RETURNS int IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'pg_gpusort', 'gpusort_test_call';
	CREATE OPERATOR CLASS comparing FOR TYPE text[] USING gin AS
		OPERATOR 1 && (anyarray, anyarray), OPERATOR 2 @> (anyarray, anyarray),
		FUNCTION 1 comparing(text, text), FUNCTION 2 ginarrayextract(anyarray, internal, internal),
		FUNCTION 3 ginqueryarrayextract(anyarray, internal, int2, internal, internal, internal, internal),
		FUNCTION 4 ginarrayconsistent(internal, int2, anyarray, int4, internal, internal, internal, internal),
		STORAGE text});

my $create = 'CREATE INDEX built ON items USING gin (at_row(a) comparing)';

# A session that has a lock.
sub hold
{
	my ($lock) = @_;

	return Session($node, "SELECT pg_advisory_lock($lock)");
}

# wait_for_lock SESSION, LOCK, COUNT: waits until so many processes of a session wait for the lock.
sub wait_for_lock
{
	my ($session, $lock, $count) = @_;

	becomes_true($node, stopped($session) =~ s/objid = 1000/objid = $lock/r =~ s/pid/count(*) = $count/r)
	  or die "there are not $count processes that wait";
}

# begin_build PHASE, SETTING...: returns a session whose build has come to a phase, and the session for
# which it waits, if any:
#	reading		each process extracts the keys of its first row
#	sorting		each process sorts keys of all, or merges their runs
#	merging		the leader reads the keys in order, and the workers wait for pages
#	writing		the same, but the leader continues, and the only worker waits with the pages that it has;
#				the fault would have further workers wait before they read rows
sub begin_build
{
	my ($phase, @settings) = @_;
	my $builder = Session($node, 'SET pg_gpusort.debug_require = node', @settings);
	my $rows = hold(1000);
	my $comparisons = $phase eq 'reading' ? undef : hold(1001);
	my $count = $phase eq 'writing' ? 2 : 3;

	$builder->run('SET stop.merge = ' . ($phase eq 'sorting' ? 'off' : 'on')) if $phase ne 'reading';
	$builder->run(q{SET pg_gpusort.debug_fault = 'host:late:600000'; SET max_parallel_maintenance_workers = 1}) if $phase eq 'writing';
	$builder->begin($create);
	wait_for_lock($builder, 1000, $count);
	return ($builder, $rows) if $phase eq 'reading';
	$rows->quit;
	wait_for_lock($builder, 1001, $phase eq 'sorting' ? 3 : 1);
	return ($builder, $comparisons) if $phase ne 'writing';
	$comparisons->quit;

	# The leader waits for them, unless it has written all pages before they were awake.
	becomes_true($node, q{SELECT state = 'idle' OR wait_event = 'Extension' OR wait_event = 'GpuSortShared'
		FROM pg_stat_activity WHERE pid = } . $builder->pid) or die 'the leader does not wait';
	return ($builder, undef);
}

# No index is there, or all of it.
sub is_there_or_not
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($node->safe_psql('postgres', q{SELECT coalesce((SELECT coalesce(gin_fault(oid), (SELECT count(*) FROM gin_entries(oid))::text)
			FROM pg_class WHERE relname = 'built'), 'no index')}),
		qr/^(no index|4020)$/, "$name: an index or none");
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS built');
}

# ---- No room ----

# Nothing is logged here, since a file of WAL is larger than the limit, and then the server would end.
SKIP:
{
	skip 'needs prlimit', 1 if system('prlimit --version >/dev/null 2>&1') != 0;
	foreach my $phase ('reading', 'merging')
	{
		foreach my $who ('leader', 'workers')
		{
			my $name = "no room for the $who, $phase";
			my ($builder, $stops) = begin_build($phase, q{SET maintenance_work_mem = '1MB'});

			foreach my $pid ($who eq 'leader' ? $builder->pid : split /\n/, value_of($node, $WORKERS))
			{
				system('prlimit', '--pid', $pid, '--fsize=8192:') == 0 or die 'could not limit the size of files';
			}
			$stops->quit;
			my $output = $builder->finish;
			$builder->quit;
			ends($builder->pid);

			# Each worker writes a run.  All pages may be written by the leader, if it is fast.
			like($output, $phase eq 'merging' && $who eq 'workers' ? qr/^$|ERROR:  \w+: could not write/ : qr/ERROR:  \w+: could not (write|extend)/,
				"$name: error");
			wait_for_end($node);
			is_there_or_not($name);
			files_belong($node, $name);
		}
	}
}
{
	my $builder = Session($node, q{SET maintenance_work_mem = '1MB'}, q{SET temp_file_limit = '64kB'});

	like($builder->run($create), qr/53400: temporary file size exceeds "?temp_file_limit/, 'temp_file_limit');
	$builder->quit;
	wait_for_end($node);
	is_there_or_not('temp_file_limit');
	files_belong($node, 'temp_file_limit');
}

# ---- Ends in each phase ----

$node->append_conf('postgresql.conf', 'wal_level = replica');
$node->restart;

# A crash of the server leaves the file of the index behind, as in stock PostgreSQL.
foreach my $end ((grep { $_ ne 'timeout' } @ENDS), 'leader killed')
{
	foreach my $phase ('reading', 'sorting', 'merging', 'writing')
	{
		my ($builder, $stops) = begin_build($phase);
		my $from = -s $node->logfile;

		if ($end eq 'leader killed') { kill 'KILL', $builder->pid; }
		else { end_session($node, $builder, $end); }
		my $output = $builder->finish;
		$_->quit foreach grep { defined $_ } $stops, $builder;
		if ($phase eq 'writing' && $output eq '') { note("$phase, $end: was done before"); }
		else
		{
			like($output, error_of_end($end =~ /killed/ ? 'worker killed' : $end), "$phase, $end: error");
			wait_for_restart($node, $from) if $end =~ /killed/;
		}
		wait_for_end($node);
		is_there_or_not("$phase, $end");
		leaves_nothing($node, "$phase, $end");
		files_belong($node, "$phase, $end") if $end !~ /killed/;
	}
}
crash_server($node);
foreach my $memory ('96MB', '1MB')
{
	is($node->safe_psql('postgres', qq{SET maintenance_work_mem = '$memory'; SELECT check_gin('CREATE INDEX built ON items USING gin (a comparing)', 'node')}),
		'same, 4020 keys', "after all that, $memory: the keys of stock PostgreSQL");
}

$node->stop;
done_testing();
