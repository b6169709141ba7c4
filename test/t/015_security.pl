# What users who are no superusers can do, and what they can see of others: through
# settings of before the library is loaded, messages, and memory that is used again.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use List::Util qw(min);
use Test::More;

# as USER, NODE, STATEMENTS: output and errors.
sub as
{
	my ($user, $node, $statements) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $statements, extra_params => [ '-U', $user ]);

	return join("\n", grep { $_ ne '' } $out, $err);
}

# ---- A server that does not preload the library ----

my $node = start_node('plain', 'max_parallel_workers_per_gather = 0');
$node->safe_psql('postgres', 'CREATE ROLE someone LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_monitor');
like(as('someone', $node, q{LOAD '/tmp/theirs.so'}), qr/access to library "\/tmp\/theirs.so" is not allowed/,
	'a library of their own');

# Before it is loaded, anyone can give names like its settings' a value.
my $before = join('; ',
	q{SET pg_gpusort.device_library = '/tmp/theirs.so'},
	q{SET pg_gpusort.pool_size = '64GB'},
	q{SET pg_gpusort.devices = '1'},
	q{SET pg_gpusort.debug_fault = 'sort:crash'},
	q{SET pg_gpusort.min_rows = 7});
my $shown = join(' ', map { "current_setting('pg_gpusort.$_') || ' ' ||" } 'pool_size', 'devices', 'debug_fault', 'min_rows')
  . ' gpu_sort(ARRAY[2, 1])::text';
my $output = as('someone', $node, "$before; SELECT gpu_sort(ARRAY[2, 1]); SELECT $shown");
like($output, qr/^256MB all  7 \{1,2\}$/m, 'the values of before do not count, but for their own settings');
like($output, qr/permission denied to set parameter "pg_gpusort.debug_fault"/, 'which is said');
like(as('someone', $node, q{SELECT gpu_sort(ARRAY[2, 1]); SHOW pg_gpusort.device_library}),
	qr/must be (superuser|a member|able)|permission denied to examine/, 'the library is not shown to everyone');
like(as('watcher', $node, q{SELECT gpu_sort(ARRAY[2, 1]); SHOW pg_gpusort.device_library}), qr/^pg_gpusort_cuda$/m,
	'but to those who may see all settings');
$node->stop;

# ---- A service that fails says why ----

my $file = PostgreSQL::Test::Utils::tempdir() . '/no_library.so';
append_to_file($file, 'This is no library.');
$node = start_node('failing', gpu_settings(), "pg_gpusort.device_library = '$file'");
wait_for_service($node, 'failed');
$node->safe_psql('postgres', 'CREATE ROLE someone LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_monitor');
my $message = q{SELECT value FROM gpusort_status() WHERE name = 'service_message'};
like($node->safe_psql('postgres', $message), qr/\Q$file\E/, 'its message can name a file');
like(as('watcher', $node, $message), qr/\Q$file\E/, 'also to those who watch');
is(as('someone', $node, $message), '<insufficient privilege>', 'but not to everyone');
unlike(as('someone', $node, 'TABLE pg_stat_gpusort; TABLE pg_stat_gpusort_fallbacks; SELECT * FROM gpusort_devices()'),
	qr/\Q$file\E|ERROR/, 'nor do the statistics, which everyone can see');
$node->stop;

# ---- Memory that others have used ----

# A user's sorts fill the pool with a pattern; then another's go through it.
my $pattern = "\xA7\xE3\x9C\xF1";
my $hex = unpack('H*', $pattern);
my $on_gpu = 'SET pg_gpusort.debug_require = gpu';

$node = start_gpu_node('memory', q{pg_gpusort.pool_size = '1MB'}, q{work_mem = '64MB'}, 'full_page_writes = off',
	q{shared_buffers = '16MB'});
$node->safe_psql('postgres', 'CREATE ROLE someone LOGIN; CREATE ROLE other LOGIN; GRANT CREATE ON SCHEMA public TO someone, other');

# How often a pattern is in the pages of all processes that the postmaster shares.  Behind the pool, which
# begins in the first 64 MB, memory is only reserved for rows: to read gigabytes of it takes minutes.
sub in_shared_memory
{
	my ($found, $bytes) = (0, '');
	my ($pid) = split(/\n/, slurp_file($node->data_dir . '/postmaster.pid'));

	open(my $memory, '<:raw', "/proc/$pid/mem") or return undef;
	foreach my $line (split(/\n/, slurp_file("/proc/$pid/maps")))
	{
		my ($start, $end) = $line =~ /^([0-9a-f]+)-([0-9a-f]+) rw-s .*(?:zero|SYSV|PostgreSQL)/ or next;
		no warnings 'portable';
		sysseek($memory, hex($start), 0) or return undef;
		sysread($memory, $bytes, min(hex($end) - hex($start), 64 << 20)) or return undef;
		$found += () = $bytes =~ /\Q$pattern\E/g;
	}
	return $found;
}

# How many blocks of the relations that a user owns have it.
sub in_relations
{
	my ($user) = @_;
	my $found = 0;

	$node->safe_psql('postgres', 'CHECKPOINT');
	foreach my $path (split(/\n/, $node->safe_psql('postgres', qq{
				SELECT pg_relation_filepath(oid) FROM pg_class
				WHERE relowner = '$user'::regrole AND relkind IN ('r', 'i', 't')})))
	{
		my $bytes = slurp_file($node->data_dir . "/$path");
		$found += () = $bytes =~ /\Q$pattern\E/g;
	}
	return $found;
}

my $fill = qq{
	$on_gpu;
	CREATE TEMP TABLE filling AS
	SELECT decode(repeat('$hex', 3 + g % 100), 'hex') AS b, x'$hex'::bit(32)::int4 AS i, x'$hex$hex'::bit(64)::int8 AS k
	FROM generate_series(1, 20000) g;
	SELECT count(*) FROM (SELECT * FROM filling ORDER BY b OFFSET 0) s;
	SELECT count(*) FROM (SELECT * FROM filling ORDER BY i OFFSET 0) s;
	SELECT count(*) FROM (SELECT k, k AS l, i FROM filling ORDER BY k OFFSET 0) s;
	SELECT cardinality(gpu_sort(array_agg(k))) FROM filling;
	DROP TABLE filling};

# Values of all lengths and alignments, and NULLs among them, in relations that stay.
my $columns = q{
	CASE WHEN g % 2 > 0 THEN g * 7919::int8 % 1009 END AS k, (g % 100)::int2 AS a, CASE WHEN g % 3 > 0 THEN 'x'::"char" END AS b,
	CASE WHEN g % 5 > 0 THEN repeat('y', g % 40) END AS c, CASE WHEN g % 7 > 0 THEN macaddr '08:00:2b:01:02:03' END AS d,
	g AS e, CASE WHEN g % 11 > 0 THEN g / 10.0 END AS f, CASE WHEN g % 4 > 0 THEN ARRAY[g, NULL, 1] END AS h,
	CASE WHEN g % 6 > 0 THEN interval '1 day' * g END AS i};
my @others = (
	"CREATE TABLE source AS SELECT $columns FROM generate_series(1, 5000) g",
	'CREATE TABLE by_k AS SELECT * FROM source ORDER BY k OFFSET 0',
	'CREATE TABLE by_c AS SELECT c, b, d FROM source ORDER BY c COLLATE "C", k, a OFFSET 0',
	'CREATE TABLE by_i AS SELECT b, i, d, a FROM source ORDER BY i DESC, f OFFSET 0',
	'CREATE TABLE by_b AS SELECT b, a, e FROM source ORDER BY b OFFSET 0',
	'CREATE TABLE of_arrays AS SELECT gpu_sort(array_agg(k)) AS k, gpu_argsort(array_agg(e)) AS e FROM source',
	'CREATE INDEX ON source (c COLLATE "C", b, a)',
	'CREATE INDEX ON source (i, b) INCLUDE (d)',
	'CREATE INDEX ON source (k)');

is(as('someone', $node, $fill), "20000\n20000\n20000\n20000", 'the pool is filled');
SKIP:
{
	my $found = in_shared_memory();

	skip 'the server\'s memory cannot be read', 1 unless defined $found;
	cmp_ok($found, '>', 1000, 'in which the pattern is then');
}
foreach my $statement (@others)
{
	is(as('other', $node, "$on_gpu; $statement"), '', $statement);
	as('someone', $node, $fill);
}
is(in_relations('other'), 0, 'of which no byte is in what another user makes');
is(as('other', $node, q{
		SELECT string_agg(s::text, '') FROM (SELECT k, a, b, c, d, e, f, h, i FROM source ORDER BY k, e OFFSET 0) s}),
	as('other', $node, q{SET pg_gpusort.enable = off;
		SELECT string_agg(s::text, '') FROM (SELECT k, a, b, c, d, e, f, h, i FROM source ORDER BY k, e OFFSET 0) s}),
	'nor among the rows that are returned');
as('someone', $node, "CREATE TABLE theirs AS SELECT decode('$hex', 'hex') AS b");
cmp_ok(in_relations('someone'), '>', 0, 'where it would be found');

$node->stop;
done_testing();
