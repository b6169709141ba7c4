# Many sorts and index builds of all kinds in one backend: what it, the device process
# and the service hold does not grow.
#
# GPUSORT_SOAK_ROUNDS says how often; each round is of some 25 sorts and builds.
#
# needs: gpu

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use List::Util 'min';
use PostgreSQL::Test::Utils;
use Test::More;

my $rounds = $ENV{GPUSORT_SOAK_ROUNDS} // 12;

# Rounds until caches are filled.
my $warm_up = 6;

plan skip_all => 'needs /proc' unless -r '/proc/self/status';

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '8MB'},
	q{maintenance_work_mem = '8MB'}, 'max_worker_processes = 16', 'log_statement = none',
	# In the server's directory, apart from those of other servers.
	'dynamic_shared_memory_type = mmap');
make_table($node, 10000);
$node->safe_psql('postgres', q{CREATE TABLE other AS SELECT k % 100 AS k, id, repeat(t, 3) AS t, id * 1.5 AS n FROM big; ANALYZE other});

my $parallel = parallel_plans(2, 'enable_gathermerge = off') =~ s/SET /SET LOCAL /gr;
my $cpu = 'SET LOCAL pg_gpusort.backend = cpu';
my $small = q{SET LOCAL pg_gpusort.work_mem = '128kB'; SET LOCAL maintenance_work_mem = '1MB'};
my @sorts = (
	digest('SELECT * FROM big ORDER BY k, id'),
	digest('SELECT * FROM big ORDER BY t COLLATE "C" DESC'),
	digest('SELECT k, id FROM big ORDER BY k DESC NULLS LAST, id'),
	digest('SELECT * FROM other ORDER BY k, n, id'));
my @statements = (
	(map { ($_, "$cpu; $_", "$cpu; $small; $_", "$parallel; $_") } @sorts),
	'SELECT md5(gpu_sort(array_agg(k))::text), md5(gpu_argsort(array_agg(n))::text) FROM other',
	'CREATE INDEX soaked ON big (k); DROP INDEX soaked',
	"$cpu; $small; CREATE INDEX soaked ON big (t COLLATE \"C\", k); DROP INDEX soaked",
	'SET LOCAL max_parallel_maintenance_workers = 2; SET LOCAL min_parallel_table_scan_size = 0; CREATE INDEX soaked ON other (n, k); DROP INDEX soaked',
	'DECLARE c SCROLL CURSOR FOR SELECT * FROM big ORDER BY k, id; MOVE 5000 IN c; MOVE BACKWARD 3000 IN c; FETCH 1 FROM c; CLOSE c',
	'DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k, id; FETCH 1 FROM c',
	"$cpu; $small; DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k, id; FETCH 1 FROM c",
	'SELECT 1 / (id - 9000) FROM (SELECT * FROM big ORDER BY id DESC OFFSET 0) s',
	"$cpu; SELECT 1 / (k - 50) FROM (SELECT * FROM other ORDER BY k OFFSET 0) s",
	q{SET LOCAL pg_gpusort.debug_fault = 'get:error:1'; } . $sorts[0],
	q{SET LOCAL pg_gpusort.debug_fault = 'put:memory:2'; } . $sorts[1],
	q{SET LOCAL pg_gpusort.debug_fault = 'host:alloc:2'; } . $sorts[2]);

# What a process has to itself: kB, files, mappings.
sub process
{
	my ($name, $pid) = @_;
	my ($anonymous) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m;
	my @files = map { readlink($_) // '' } glob("/proc/$pid/fd/*");
	my $relations = grep { /\/(base|global|pg_wal)\/(\d+\/)?[0-9A-F]/ } @files;
	my $maps = () = slurp_file("/proc/$pid/maps") =~ /\n/g;

	return ("$name, kB" => $anonymous, "$name, files" => @files - $relations,
		"$name, files of relations" => $relations, "$name, mappings" => $maps);
}

sub held
{
	my ($session) = @_;
	my @shared = glob($node->data_dir . '/pg_dynshmem/*');
	my @temporary = glob($node->data_dir . '/base/pgsql_tmp/*');
	my ($contexts, $bytes) = split(/\|/, $session->run('SELECT count(*), sum(total_bytes) / 1024 FROM pg_backend_memory_contexts'));

	holds_nothing($node, 'between rounds');
	return (
		process('backend', $session->pid), process('device process', status_of($node, 'device_process_pid')),
		process('service', service_pid($node)),
		'memory contexts' => $contexts, 'memory contexts, kB' => int($bytes),
		'device memory, kB' => int(status_of($node, 'device_memory_in_use') / 1024),
		'segments of shared memory' => scalar @shared, 'temporary files' => scalar @temporary);
}

my $session = Session($node, 'SET pg_gpusort.debug_require = node');
my (%held, %outputs);
my $different = '';

foreach my $round (1 .. $rounds + $warm_up)
{
	foreach my $statement (@statements)
	{
		my $output = $session->run("BEGIN; $statement; ROLLBACK");

		$outputs{$statement} //= $output;
		$different .= "$statement\n$output\n" if $output ne $outputs{$statement};
	}
	if ($round >= $warm_up)
	{
		my %now = held($session);

		push @{ $held{$_} }, $now{$_} foreach keys %now;
	}
}

# What there was at first and in the end.  Allocators give memory back when it
# suits them, up and down by megabytes: of kB, the least in each half counts.
sub first_and_last
{
	my ($what) = @_;
	my @all = @{ $held{$what} };
	my $half = int(@all / 2);

	return @all[ 0, -1 ] if $what !~ /kB/;
	return (min(@all[ 0 .. $half - 1 ]), min(@all[ $half .. $#all ]));
}

is($different, '', 'each time the same rows or errors');
unlike(join('', map { $outputs{$_} } @sorts), qr/ERROR/, 'which are rows');
foreach my $what (sort keys %held)
{
	my ($first, $last) = first_and_last($what);
	# PostgreSQL keeps files of relations open.  The heap of the emulator is from 28 to 31 MB.
	my $tolerance = $what =~ /device process, kB/ ? 4096 : $what =~ /kB/ ? 1024 : $what =~ /relations/ ? 20 : $what =~ /mappings|contexts/ ? 4 : 0;

	cmp_ok($last, '<=', $first + $tolerance, "$what: $first, in $rounds more rounds $last");
}
note(scalar(@statements) * $rounds . ' transactions of sorts and builds in one backend');
$node->safe_psql('postgres', 'SELECT 1');
$session->quit;
$node->stop;
done_testing();
