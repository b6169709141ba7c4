# Warm memory: sorts take it and return it, however they end; it is given back to the
# system, and sorts do without it.
#
# needs: nothing

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $MB = 1024 * 1024;

my $node = start_node('main', q{shared_preload_libraries = 'pg_gpusort'},
	q{pg_gpusort.warm_memory = '32MB'}, q{pg_gpusort.work_mem = '64MB'},
	'pg_gpusort.backend = cpu', 'restart_after_crash = on');

my $reason = status_of($node, 'warm_memory_reason');
plan skip_all => $reason if $reason =~ /kernel cannot/;

# 90000 rows: two mappings at least, of keys and of rows.
make_table($node, 90000);
my $settings = 'SET pg_gpusort.min_rows = 0; SET pg_gpusort.debug_require = cpu';
my $cursor = 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k; FETCH 1 FROM c';

sub in_use { return status_of($node, 'warm_memory_in_use'); }
sub present { return status_of($node, 'warm_memory_present'); }

# returned NAME: tests that in the end no process has any.
sub returned
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok( becomes_true(
			$node, q{SELECT value = '0' FROM gpusort_status() WHERE name = 'warm_memory_in_use'}),
		"$name: all is returned");
}

# ---- Taken and returned ----

is(status_of($node, 'warm_memory'), 32 * $MB, 'its limit');
is(present(), 0, 'none is there at first');
sorts_like_stock($node, 'in a first session', $settings, ', id');
returned('a sort that has ended');
my $present = present();
cmp_ok($present, '>', 0, 'and stays');
sorts_like_stock($node, 'in another session', $settings, ', id');
is(present(), $present, 'another session takes the same');

my $session = Session($node, $settings);
$session->run($cursor);
cmp_ok(in_use(), '>', 0, 'an open cursor has some');
$session->run('COMMIT');
returned('a closed cursor');

$session->run($cursor);
$session->run('SELECT 1 / 0');
returned('an error');

$session->run('ROLLBACK');
$session->run($cursor);
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $session->pid . ')');
returned('a session that was terminated');
$session->quit;

# Rows that do not fit go to disk: no sort takes more than it may.
my $little = Session($node, $settings, 'SET pg_gpusort.debug_require = node', q{SET pg_gpusort.work_mem = '4MB'});
$little->run($cursor);
cmp_ok(in_use(), '<=', 4 * $MB, 'no more than pg_gpusort.work_mem');
$little->quit;
returned('a session with little memory');

# ---- More sessions than memory ----

my @sessions = map { Session($node, $settings) } 1 .. 12;
my @rows = map { $_->run($cursor) } @sessions;
is(scalar(grep { $_ ne $rows[0] } @rows), 0, 'many sessions at a time: the same row');
cmp_ok(in_use(), '>', 16 * $MB, 'they have most of what there is');
my @rest = map { $_->run('FETCH ALL FROM c') } @sessions;
is(scalar(grep { $_ ne $rest[0] } @rest), 0, 'and the same further rows');
$_->quit foreach @sessions;
returned('many sessions');

# Parallel workers and runs on disk.
my $parallel = parallel_plans(2, 'enable_hashagg = off');
foreach my $more ($parallel, q{SET pg_gpusort.work_mem = '4MB'}, "$parallel; SET pg_gpusort.work_mem = '4MB'")
{
	sorts_like_stock($node, $more, "$settings; SET pg_gpusort.debug_require = node; $more", ', id');
	returned($more);
}

# ---- Back to the system ----

$node->safe_psql('postgres', 'ALTER SYSTEM SET pg_gpusort.warm_memory_timeout = 0');
$node->reload;
ok( becomes_true(
		$node, q{SELECT value = '0' FROM gpusort_status() WHERE name = 'warm_memory_present'}),
	'what nobody uses is given back');
$session = Session($node, $settings, q{SET pg_gpusort.debug_fault = 'host:slow'});
$session->run($cursor);
cmp_ok(present(), '>', 0, 'what a session uses is not');

# ---- Ordinary pages, after a huge one took long ----

cmp_ok(status_of($node, 'warm_memory_huge'), '<', present(), 'some of it is in ordinary pages');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET pg_gpusort.warm_memory_timeout');
$node->reload;
$session->run('COMMIT');
ok( becomes_true(
		$node, q{SELECT count(DISTINCT value) = 1 AND min(value) <> '0' FROM gpusort_status()
			WHERE name IN ('warm_memory_present', 'warm_memory_huge')}),
	'they become huge pages');
sorts_like_stock($node, 'in them', $settings, ', id');
$session->run($cursor);
my $pid = $session->pid;

# ---- The end of a process ----

my $before = -s $node->logfile;
kill 'KILL', $pid;
ok(ends($pid), 'a session is killed');
$session->quit;
wait_for_restart($node, $before);
is(in_use(), 0, 'no process has any');
sorts_like_stock($node, 'after a crash', $settings, ', id');

my $worker = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_gpusort memory'};
ok(becomes_true($node, "SELECT count(*) = 1 FROM ($worker) s"), 'there is a background worker');
my $first_worker = value_of($node, $worker);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($first_worker)");
ok(becomes_true($node, "SELECT count(*) = 1 FROM ($worker) s WHERE pid <> $first_worker"),
	'another one, after it was terminated');

# ---- None ----

foreach my $without ('pg_gpusort.warm_memory = 0', 'huge_pages = off')
{
	$node->append_conf('postgresql.conf', $without);
	$node->restart;
	is(status_of($node, 'warm_memory'), 0, "$without: none");
	isnt(status_of($node, 'warm_memory_reason'), '', 'and why');
	is(value_of($node, $worker), '', 'no background worker');
	sorts_like_stock($node, $without, $settings, ', id');
}

done_testing();
