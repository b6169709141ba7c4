# Shares of the GPUs: how many sessions the sorts of a role may have, and how much device memory,
# whichever backends they are of.  Further sorts run on the CPU, for that reason.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '8MB'}, q{pg_gpusort.work_mem = '64MB'});
make_table($node, 20000);
$node->safe_psql(
	'postgres', q{
	CREATE ROLE analyst LOGIN;
	CREATE ROLE reporter LOGIN IN ROLE analyst;
	GRANT SELECT ON big TO PUBLIC;
	ALTER ROLE analyst SET pg_gpusort.max_sessions_per_role = 3;
});
my $cursor = 'SELECT * FROM big ORDER BY k, id';
my $of_sessions = 'pg_gpusort.max_sessions_per_role is reached';
my $of_memory = 'pg_gpusort.max_device_memory_per_role is reached';

# session_of ROLE, SETTING...: a session that has logged in as the role.
sub session_of
{
	my ($role, @settings) = @_;

	local $ENV{PGUSER} = $role;
	return Session($node, @settings);
}

# open_cursor SESSION, NAME: a cursor that holds what its sort has got.
sub open_cursor
{
	my ($session, $name) = @_;

	return $session->run("DECLARE $name CURSOR FOR $cursor; MOVE 10 IN $name");
}

# sort_of SESSION: how its sort is done now.
sub sort_of
{
	my ($session) = @_;
	my ($how) = $session->run("$EXPLAIN $cursor") =~ /(gpu onesweep|GPU Not Used: .*)/;

	return $how;
}

# has_sessions NUMBER: waits until so many are in use.
sub has_sessions
{
	my ($number) = @_;

	return becomes_true($node, "SELECT value = '$number' FROM gpusort_status() WHERE name = 'sessions'");
}

sub counted
{
	my ($reason) = @_;

	return value_of($node, "SELECT coalesce(sum(sorts), 0) FROM pg_stat_gpusort_fallbacks WHERE reason = '$reason'");
}

# ---- Sessions ----

# Clients that ask at the same moment: as many as are allowed get a session, and no more.
foreach my $round (1 .. 5)
{
	my @clients = map { session_of('analyst', 'BEGIN') } 1 .. 8;

	value_of($node, 'SELECT pg_stat_gpusort_reset()');
	$_->begin("DECLARE c CURSOR FOR $cursor; MOVE 10 IN c") foreach @clients;
	$_->finish foreach @clients;
	ok(has_sessions(3), "round $round: three of eight clients have a session");
	is(counted($of_sessions), '5', "round $round: the others are counted");
	is($_->run('MOVE 19000 IN c; FETCH ALL FROM c') =~ tr/\n// + 1, 990, "round $round: a client has its rows") foreach @clients;
	$_->quit foreach @clients;
	ok(has_sessions(0), "round $round: all end");
}

# One role's share takes nothing from another's, even if that is a member of it.
my $holder = session_of('analyst', 'BEGIN');
my $other = session_of('analyst');
my $member = session_of('reporter');
open_cursor($holder, "c$_") foreach 1 .. 3;
is(sort_of($other), "GPU Not Used: $of_sessions", 'EXPLAIN says why');
is(sort_of($member), 'gpu onesweep', 'another role has a share of its own');
is($member->run('SET ROLE analyst') . sort_of($member), 'gpu onesweep', 'who has logged in counts');
$other->run('SET ROLE NONE');
is(sort_of($other), "GPU Not Used: $of_sessions", 'for both');
like($other->run('SET pg_gpusort.max_sessions_per_role = 8'), qr/42501: permission denied to set parameter/, 'nobody raises the own limit');
$holder->run('CLOSE c2');
is(sort_of($other), 'gpu onesweep', 'a session is free again');
$holder->run('COMMIT');
ok(has_sessions(0), 'all sessions are closed');
$_->quit foreach $other, $member, $holder;
$node->safe_psql('postgres', 'ALTER ROLE analyst SET pg_gpusort.max_sessions_per_role = 0');
$holder = session_of('analyst');
is(sort_of($holder), "GPU Not Used: $of_sessions", 'no session at all');
$holder->quit;
$node->safe_psql('postgres', 'ALTER ROLE analyst RESET pg_gpusort.max_sessions_per_role');

# ---- Device memory ----

# As much as some of the sorts may come to hold.
$holder = Session($node, 'BEGIN');
$node->safe_psql('postgres', q{ALTER ROLE analyst SET pg_gpusort.max_device_memory_per_role = '10MB'});
my @holders = map { session_of('analyst', 'BEGIN') } 1 .. 8;
value_of($node, 'SELECT pg_stat_gpusort_reset()');
$_->begin("DECLARE c CURSOR FOR $cursor; MOVE 10 IN c") foreach @holders;
$_->finish foreach @holders;
my $with = status_of($node, 'sessions');
cmp_ok($with, '>', 1, 'some have device memory');
is(counted($of_memory), 8 - $with, 'the others are counted');
my $held = status_of($node, 'device_memory_in_use');
cmp_ok($held, '<', 10 << 20, 'all of them have no more than their share');

# A share that they have already taken.
$node->safe_psql('postgres', "ALTER ROLE analyst SET pg_gpusort.max_device_memory_per_role = '" . ($held >> 10) . "kB'");
$other = session_of('analyst');
is(sort_of($other), "GPU Not Used: $of_memory", 'EXPLAIN says why');
$other->quit;
open_cursor($holder, 'c');
ok(has_sessions($with + 1), 'another role has memory');
is($_->run('MOVE 19000 IN c; FETCH ALL FROM c') =~ tr/\n// + 1, 990, 'a client has its rows') foreach @holders;
$_->quit foreach @holders, $holder;
ok(has_sessions(0), 'all memory is free');

# A sort that turns out to need more than is left keeps what it has, and goes on on the CPU.
$node->safe_psql(
	'postgres', q{
	CREATE VIEW more AS SELECT * FROM big WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0;
	GRANT SELECT ON more TO PUBLIC;
	ALTER ROLE analyst SET pg_gpusort.max_device_memory_per_role = '2MB';
});
my $growing = session_of('analyst');
my $digest = digest('SELECT * FROM more ORDER BY k, id');
my $expected = $growing->run("$STOCK; $digest");
is($growing->run("$OURS; $digest"), $expected, 'a sort that grows has the right rows');
like($growing->run("$EXPLAIN SELECT * FROM more ORDER BY k, id"), qr/Sort Fallback: not enough device memory|GPU Not Used: not enough device memory/,
	'and EXPLAIN says that it overflowed');
$growing->quit;
holds_nothing($node, 'the end');
leaves_nothing($node, 'the end');
$node->stop;
done_testing();
