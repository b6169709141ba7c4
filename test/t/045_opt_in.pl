# Ways to use the library for some roles or databases only, to try it without preloading it, and
# to stop it in sessions that are connected, as docs/install.md describes them.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

# At default settings, and without a table that a role would have to be granted.
my $query = 'SELECT g FROM generate_series(1, 100000) g ORDER BY -g';
my $explain = "EXPLAIN (COSTS OFF) $query";

# As that role in that database: is the sort ours, and is an index build?
sub ours
{
	my ($node, $role, $database, @before) = @_;
	my $output = $node->safe_psql($database // 'postgres', join("\n", map { "$_;" } @before, $explain,
		"SELECT 'before ' || sum(index_builds) FROM pg_stat_gpusort",
		'CREATE TEMP TABLE t AS SELECT -g AS k FROM generate_series(1, 20000) g',
		'CREATE INDEX ON t (k)',
		"SELECT 'after ' || sum(index_builds) FROM pg_stat_gpusort"), extra_params => [ '-U', $role ]);
	my ($before, $after) = $output =~ /^before (\d+).*^after (\d+)/ms;

	return ($output =~ /GpuSort/ ? 'sorts' : 'stock') . ($after > $before ? ', builds' : '');
}

# Is the sort of a prepared statement ours, and that of a function's statement?  Both keep their plans;
# auto_explain shows the second one in the log.
sub kept_plans
{
	my ($node, $session) = @_;
	my $offset = -s $node->logfile;
	my $prepared = $session->run('EXPLAIN (COSTS OFF) EXECUTE kept');

	$session->run('SELECT kept()');
	logged($node, qr/Query Text: SELECT kept\(\)/, $offset, 1);
	my ($logged) = slurp_file($node->logfile, $offset) =~ /Query Text: SELECT count\(\*\)(.*?)Query Text: SELECT kept/s;

	return join ', ', map { /GpuSort/ ? 'ours' : /Sort Key/ ? 'stock' : 'none' } $prepared, $logged // '';
}

# Waits until a session has seen the value of a setting that a reload has brought.
sub reload
{
	my ($node, $session, $setting, $value) = @_;

	$node->reload;
	foreach my $try (1 .. 20 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $session->run("SHOW $setting") eq $value;
		usleep(50_000);
	}
	die "$setting does not become $value";
}

# ---- For all, or for some ----

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'},
	'pg_gpusort.enable = off', 'pg_gpusort.enable_index_build = off');

$node->safe_psql('postgres', q{
	CREATE DATABASE reports;
	CREATE ROLE analyst LOGIN;
	CREATE ROLE clerk LOGIN;
	CREATE ROLE builder LOGIN});
$node->safe_psql('reports', 'CREATE EXTENSION pg_gpusort');
is(ours($node, 'clerk'), 'stock', 'off for all');
is(ours($node, 'clerk', 'postgres', 'SELECT gpu_sort(ARRAY[2, 1])'), 'stock', 'also after the call of a function');
is(ours($node, 'clerk', 'postgres', 'SET pg_gpusort.enable = on'), 'sorts', 'on for a session');

$node->safe_psql('postgres', q{
	ALTER ROLE analyst SET pg_gpusort.enable = on;
	ALTER ROLE builder SET pg_gpusort.enable_index_build = on});
is(ours($node, 'analyst'), 'sorts', 'on for a role');
is(ours($node, 'builder'), 'stock, builds', 'index builds on for a role');
is(ours($node, 'clerk'), 'stock', 'off for another role');

$node->safe_psql('postgres', q{
	ALTER DATABASE reports SET pg_gpusort.enable = on;
	ALTER DATABASE reports SET pg_gpusort.enable_index_build = on;
	ALTER ROLE builder SET pg_gpusort.enable = off;
	ALTER ROLE builder IN DATABASE postgres SET pg_gpusort.enable = on});
is(ours($node, 'clerk', 'reports'), 'sorts, builds', 'on for a database');
is(ours($node, 'clerk'), 'stock', 'off in another one');
is(ours($node, 'builder', 'reports'), 'stock, builds', 'a role comes before a database');
is(ours($node, 'builder'), 'sorts, builds', 'a role in a database comes before both');
like($node->safe_psql('postgres', '\drds'), qr/analyst.*pg_gpusort.enable=on/s, '\drds shows who has values');
$node->safe_psql('postgres', 'ALTER ROLE analyst RESET pg_gpusort.enable');
is(ours($node, 'analyst'), 'stock', 'reset for a role');

# ---- An emergency stop ----

$node->append_conf('postgresql.conf', "pg_gpusort.enable = on\npg_gpusort.enable_index_build = on");
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('pg_gpusort.enable') = 'on'});
$node->safe_psql('postgres', qq{
	CREATE FUNCTION kept() RETURNS void LANGUAGE plpgsql AS
		\$\$ BEGIN PERFORM count(*) FROM ($query OFFSET 0) s; END \$\$});

$node->safe_psql('postgres', 'ALTER ROLE analyst SET pg_gpusort.enable = on');
my $session = Session($node, "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on",
	"SET plan_cache_mode = force_generic_plan; PREPARE kept AS $query");
my $cursor = Session($node, 'BEGIN', "DECLARE c CURSOR FOR $query");

is(kept_plans($node, $session), 'ours, ours', 'a prepared statement and a function');
is($cursor->run('FETCH 2 FROM c'), "100000\n99999", 'a cursor');
$node->append_conf('postgresql.conf', "pg_gpusort.enable = off\npg_gpusort.enable_index_build = off");
reload($node, $session, 'pg_gpusort.enable', 'off');
is(kept_plans($node, $session), 'stock, stock', 'both after a reload');
unlike($session->run($explain), qr/GpuSort/, 'another query after a reload');
is($cursor->run('FETCH 2 FROM c'), "99998\n99997", 'a cursor that was open returns its rows');
is(ours($node, 'clerk'), 'stock', 'a new session after a reload');
is(ours($node, 'analyst'), 'sorts', 'but a role keeps its value');

# This stops that role as well.
$node->append_conf('postgresql.conf', 'pg_gpusort.enable = on');
reload($node, $session, 'pg_gpusort.enable', 'on');
is(kept_plans($node, $session), 'ours, ours', 'on again after a reload');
$session->run('SET pg_gpusort.enable = on');
$node->append_conf('postgresql.conf', "pg_gpusort.enable = off\npg_gpusort.min_rows = 2147483647\npg_gpusort.min_index_rows = 2147483647");
reload($node, $session, 'pg_gpusort.min_rows', '2147483647');
is(kept_plans($node, $session), 'stock, stock', 'min_rows stops a session that has set "enable"');
is(ours($node, 'analyst'), 'stock', 'and a role that has');
is(ours($node, 'builder', 'reports'), 'stock', 'and its index builds');
$_->quit foreach $session, $cursor;

# ---- A list of libraries that has others ----

# A list of names, each with its own quotes.
$node->safe_psql('postgres', q{ALTER SYSTEM SET shared_preload_libraries = auto_explain, 'pg_gpusort'});
$node->restart;
is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'), 'auto_explain, pg_gpusort', 'one of two libraries');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name IN ('auto_explain.log_analyze', 'pg_gpusort.enable')}),
	'2', 'both are loaded');
$node->stop;

# ---- A trial without preloading ----

$node = start_node('trial', q{session_preload_libraries = 'auto_explain'});
$node->safe_psql('postgres', q{CREATE ROLE analyst LOGIN; CREATE ROLE clerk LOGIN});
my $loaded = q{SELECT string_agg(DISTINCT split_part(name, '.', 1), ' ' ORDER BY split_part(name, '.', 1))
	FROM pg_settings WHERE name ~ '^(auto_explain|pg_gpusort)\.'};

sub loaded_by
{
	my ($role) = @_;

	return $node->safe_psql('postgres', $loaded, extra_params => [ '-U', $role ]);
}

$session = Session($node, 'SET ROLE analyst');
is(loaded_by('analyst'), 'auto_explain', 'the library of the server');
$node->safe_psql('postgres', q{ALTER ROLE analyst SET session_preload_libraries = 'pg_gpusort'});
is(loaded_by('analyst'), 'pg_gpusort', 'the list of a role replaces that of the server');
$node->safe_psql('postgres', q{ALTER ROLE analyst SET session_preload_libraries = auto_explain, pg_gpusort});
is(loaded_by('analyst'), 'auto_explain pg_gpusort', 'so it needs both');
is(loaded_by('clerk'), 'auto_explain', 'and other roles have that of the server');
is(ours($node, 'analyst'), 'sorts, builds', 'a trial by role');
is(ours($node, 'clerk'), 'stock', 'not for others');
unlike($session->run($explain), qr/GpuSort/, 'not in a session that is connected');
$session->quit;

# The role can turn it off and on.
is(ours($node, 'analyst', 'postgres', 'SET pg_gpusort.enable = off'), 'stock, builds', 'a trial that is turned off');
$session = Session($node, "LOAD 'pg_gpusort'");
like($session->run($explain), qr/GpuSort/, 'a session of a trial');
$node->append_conf('postgresql.conf', "pg_gpusort.enable = off\npg_gpusort.enable_index_build = off");
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('pg_gpusort.enable', true) = 'off'});
reload($node, $session, 'pg_gpusort.enable', 'off');
unlike($session->run($explain), qr/GpuSort/, 'which a reload has stopped');
$session->quit;
is(ours($node, 'analyst'), 'stock', 'a trial that a reload has stopped');
$node->append_conf('postgresql.conf', "pg_gpusort.enable = on\npg_gpusort.enable_index_build = on");
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('pg_gpusort.enable', true) = 'on'});

# Limits of a trial: no GPU, no warm memory, no shared sorts, counters of the session.
my %status = $node->safe_psql('postgres', q{SELECT name, value FROM gpusort_status()}, extra_params => [ '-U', 'analyst' ])
	=~ /^(\w+)\|(.*)$/mg;
is($status{loaded_for}, 'sessions with session_preload_libraries', 'status of a trial');
is($status{warm_memory_reason}, 'pg_gpusort is not in shared_preload_libraries', 'no warm memory');
$node->safe_psql('postgres', 'CREATE TABLE numbers AS SELECT hashint4(g) AS k FROM generate_series(1, 100000) g; ANALYZE numbers; GRANT SELECT ON numbers TO PUBLIC');
my $parallel = parallel_plans(2);
my $plan = $node->safe_psql('postgres', "$parallel; $EXPLAIN SELECT * FROM numbers ORDER BY k", extra_params => [ '-U', 'analyst' ]);
like($plan, qr/GpuSort/, 'a parallel query of a trial');
unlike($plan, qr/GpuSortSink|, shared/, 'without a shared sort');
is($node->safe_psql('postgres', 'SELECT sum(sorts) FROM pg_stat_gpusort', extra_params => [ '-U', 'analyst' ]), '0', 'counters are those of the session');

# LOAD is for superusers, and ends with the session.
my ($ret, $out, $err) = $node->psql('postgres', "LOAD 'pg_gpusort'", extra_params => [ '-U', 'clerk' ]);
like($err, qr/access to library "pg_gpusort" is not allowed/, 'LOAD by a user');
like($node->safe_psql('postgres', "LOAD 'pg_gpusort'; $explain"), qr/GpuSort/, 'LOAD by a superuser');
unlike($node->safe_psql('postgres', $explain), qr/GpuSort/, 'which lasts for the session');

$node->safe_psql('postgres', 'ALTER ROLE analyst RESET session_preload_libraries');
is(loaded_by('analyst'), 'auto_explain', 'the end of a trial');

$node->stop;
done_testing();
