# The file of the device library comes or goes while the server runs, and a backend
# is killed: PostgreSQL starts all over, in shared memory of the size of before.
#
# needs: emulator

use strict;
use warnings;

use File::Copy 'copy';
use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

# The memory of pg_stat_statements is next to ours, and queries write to it.
my $node = start_gpu_node('main', q{shared_preload_libraries = 'pg_gpusort, pg_stat_statements'},
	q{pg_gpusort.pool_size = '1MB'}, 'restart_after_crash = on');
my $on_gpu = 'SET pg_gpusort.debug_require = gpu';
my $on_cpu = 'SET pg_gpusort.debug_require = cpu';
my $installed = gpu_library_file($node);
my $file = $node->basedir . '/copy.so';
my $memory = q{SELECT string_agg(name || ' ' || size, ', ' ORDER BY name, random())
	FROM pg_shmem_allocations WHERE name LIKE 'pg_gpusort%'};

sub library_comes
{
	copy($installed, $file) or die "could not copy $installed: $!";
}

sub library_goes
{
	unlink($file) or die "could not remove $file: $!";
}

# crashes NAME: a backend is killed, and the server comes back as it was.
sub crashes
{
	my ($name) = @_;
	my $allocations = $node->safe_psql('postgres', $memory);
	my $before = -s $node->logfile;
	my $victim = Session($node);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	kill('KILL', $victim->pid);
	wait_for_restart($node, $before);
	$victim->quit;
	is($node->safe_psql('postgres', $memory), $allocations, "$name: the same shared memory");
	# An unlogged table is empty after a crash.
	$node->safe_psql('postgres', 'DROP TABLE big');
	make_table($node, 20000);
	unlike(slurp_file($node->logfile, $before), qr/terminated by signal (?!9:)/,
		"$name: nobody else crashes");
}

make_table($node, 20000);
$node->append_conf('postgresql.conf', "pg_gpusort.device_library = '$file'");

# ---- It goes ----

library_comes();
$node->restart;
wait_for_service($node);
sorts_like_stock($node, 'there at the start', $on_gpu);
library_goes();
foreach my $time ('first', 'second')
{
	crashes("gone, $time crash");
	wait_for_service($node, 'failed');
	like(status_of($node, 'service_message'), qr/could not open ".*copy\.so": /,
		"gone, $time crash: message");
	sorts_like_stock($node, "gone, $time crash", $on_cpu);
}
library_comes();
crashes('back again');
wait_for_service($node);
sorts_like_stock($node, 'back again', $on_gpu);

# ---- It comes ----

library_goes();
$node->restart;
is(status_of($node, 'service'), '', 'gone at the start: no service');
library_comes();
crashes('come');
is(status_of($node, 'service'), '', 'come: no service before the next start');
is(status_of($node, 'backend_reason'), 'no GPU service', 'come: reason');
sorts_like_stock($node, 'come', $on_cpu);
$node->restart;
wait_for_service($node);
sorts_like_stock($node, 'come, after a restart', $on_gpu);

$node->stop;
done_testing();
