# Sorts in one process whose batches the GPU, played by the emulator, merges one range after another.
#
#	GPUSORT_RANGES_SEED	seed of what is random (default: another one each time)

use strict;
use warnings;

use Digest::MD5 'md5_hex';
use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{GPUSORT_RANGES_SEED} // int(rand(1 << 30));
srand($seed);
note("seed: $seed");

# The server inherits it.
$ENV{GPUSORT_EMU_DEVICES} = 2;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'}, 'pg_gpusort.max_sessions_per_backend = 8', q{pg_gpusort.work_mem = '512kB'});
my $rows = 60000;

# Columns of many distributions, without and with NULLs; the place of a row is its number.
$node->safe_psql(
	'postgres', qq{
	CREATE TABLE source AS
	SELECT g::int8 AS place, hashint8extended(g, $seed) AS random, g::int8 AS ascending, -g::int8 AS descending, 7::int8 AS same,
		   hashint8extended(g, $seed) & 1 AS two, (hashint8extended(g, $seed + 1) & 1023)::int2 AS few,
		   CASE WHEN hashint8extended(g, $seed + 2) % 3 = 0 THEN g::int8 END AS mostly_null, NULL::int8 AS nothing,
		   CASE WHEN hashint8extended(g, $seed + 3) % 9000 <> 0 THEN g * 3::int8 END AS hardly_null,
		   CASE g % 5 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775808 ELSE g END AS extreme,
		   CASE WHEN g % 1000 = 0 THEN 'Infinity' WHEN g % 999 = 0 THEN 'NaN' ELSE (hashint8(g) / 1000)::float8 END AS float,
		   'a long common beginning ' || (hashint8(g) & 511) AS text, md5(g::text) AS long_text,
		   CASE WHEN g % 500 = 1 THEN repeat('y', g % 3000) END AS wide,
		   hashint8(g)::numeric / 7 AS number, make_interval(days => hashint8(g) % 1000) AS padded
	FROM generate_series(1, $rows) g;
	-- A crash of the server must not empty them, and the emulator is slow.
	CREATE TABLE plain AS SELECT place, random FROM source;
	ANALYZE;
});

my @columns = qw(random ascending descending same two few mostly_null nothing hardly_null extreme float text long_text wide number padded);
my @words = qw(random ascending descending same two mostly_null nothing hardly_null extreme);
my $session = Session($node);

sub element { return $_[ rand @_ ]; }

# Returns from one to so many of the columns, in a random order.
sub some
{
	my ($most, @all) = @_;
	my @some;

	push @some, splice(@all, rand @all, 1) foreach 0 .. int(rand($most < @all ? $most : @all));
	return @some;
}

# range_count QUERY: returns how many ranges a GPU sorts of the query's rows.
sub range_count
{
	my ($query) = @_;

	return $session->run("$OURS; $EXPLAIN $query") =~ /GPU Ranges: (\d+)/ ? $1 : 0;
}

# ---- Random rows and keys ----

# In the order of stock PostgreSQL, with ties in the order in which they come.
my $with_ranges = 0;
foreach my $case (1 .. 60)
{
	my $narrow = $case % 2 > 0;
	my @shown = some(5, $narrow ? @words : @columns);
	my @keys = map { $_ . element('', ' DESC') . element('', ' NULLS FIRST', ' NULLS LAST') } some(3, @shown);
	# A system attribute: the rows are whole tuples and their place.
	my $list = join(', ', 'place', @shown, rand() < 0.2 ? 'ctid' : ());
	my $memory = element(700, 1000, 1400, 2000);
	my $limit = rand() < 0.1 ? 'LIMIT ' . ($rows - int(rand(100))) : '';
	my $from = "SELECT $list FROM source ORDER BY " . join(', ', @keys);

	$session->run("SET pg_gpusort.device_memory = '${memory}kB'; SET pg_gpusort.work_mem = '" . element(256, 512) . "kB'");
	is($session->run("$OURS; " . digest("$from $limit")),
		$session->run("$STOCK; " . digest("$from, place $limit")), "$memory kB: $from $limit");
	$with_ranges++ if range_count($from) > 1;
}
cmp_ok($with_ranges, '>', 15, 'many of these queries have several ranges');
holds_nothing($node, 'random rows');
leaves_nothing($node, 'random rows');

# ---- What is shown ----

my $plain = 'SELECT place, random FROM plain ORDER BY random';
my $small = q{SET pg_gpusort.device_memory = '1400kB'; SET pg_gpusort.work_mem = '512kB'};
$session->run($small);
my $expected = $session->run("$STOCK; " . digest("$plain, place"));
my ($batches) = $session->run("$OURS; $EXPLAIN $plain") =~ /GPU Batches: (\d+)/;
my $ranges = range_count($plain);

# How many there are depends on how soon a process learns that the device is full.
cmp_ok($batches, '>', 0, 'EXPLAIN: batches');
cmp_ok($ranges, '>', 2, 'EXPLAIN: ranges');
like($session->run("$OURS; EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) $plain"), qr/"GPU Ranges": $ranges/, 'EXPLAIN as JSON');
# Rows whose keys the device cannot tell apart are merged on the CPU.
is(range_count('SELECT place, text FROM source ORDER BY text COLLATE "C"'), 0, 'EXPLAIN: no ranges of long ties');
like($session->run("$OURS; $EXPLAIN SELECT place, text FROM source ORDER BY text COLLATE \"C\""), qr/GPU Batches/, 'EXPLAIN: but batches');
cmp_ok(range_count('SELECT place, long_text FROM source ORDER BY long_text COLLATE "C"'), '>', 1, 'EXPLAIN: ranges of texts that differ early');
# Rows that are read backward are merged on the CPU.
same_as_stock($session, "BEGIN; DECLARE c SCROLL CURSOR FOR $plain; MOVE 50000 FROM c; FETCH BACKWARD 3 FROM c; FETCH LAST FROM c; COMMIT", 'a scrollable cursor');
same_as_stock($session, "BEGIN; DECLARE c NO SCROLL CURSOR FOR $plain; MOVE 30000 FROM c; FETCH 3 FROM c; CLOSE c; COMMIT", 'a cursor that ends early');
holds_nothing($node, 'cursors');
leaves_nothing($node, 'cursors');

# ---- Random memory of the device ----

# However much there is: what the rows take leaves enough for sorting them.
{
	my $from = -s $node->logfile;
	my %orders = (
		'rows of fixed width' => 'SELECT g AS place, hashint8extended(g, 1) AS key FROM many ORDER BY key',
		'texts' => 'SELECT g AS place, md5(g::text) AS key FROM many WHERE g % 2 = 0 ORDER BY key COLLATE "C"',
		'NULL keys' => 'SELECT g AS place, CASE WHEN g & 1 = 0 THEN hashint8extended(g, 2) END AS key FROM many ORDER BY key, place',
		'two keys' => 'SELECT g AS place, g % 1000 AS key, -g AS other FROM many ORDER BY key, other');

	$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE many AS SELECT g::int8 FROM generate_series(1, 330000) g; ANALYZE many');
	foreach my $name (sort keys %orders)
	{
		my $rows = $session->run("$STOCK; " . digest("$orders{$name}"));

		foreach my $try (1 .. 8)
		{
			my $memory = 9000 + int(rand(7000));

			$session->run("SET pg_gpusort.device_memory = '${memory}kB'");
			is($session->run("$OURS; " . digest($orders{$name})), $rows, "$memory kB: $name");
		}
	}
	is(logged($node, 'could not sort', $from), 0, 'random memory: each batch and range is sorted');
	$session->run($small);
	holds_nothing($node, 'random memory');
	leaves_nothing($node, 'random memory');
}

# ---- Index builds ----

$session->run(q{CREATE EXTENSION IF NOT EXISTS amcheck; SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 0;
	SET pg_gpusort.min_index_rows = 0});
foreach my $keys ('random', 'few, text', 'mostly_null DESC')
{
	like($session->run("$OURS; CREATE INDEX built ON source ($keys); SELECT bt_index_check('built', true); DROP INDEX built"),
		qr/^$/m, "an index on $keys is sound");
}
holds_nothing($node, 'index builds');

# ---- The GPU fails ----

# In each batch and range: sessions are counted.
foreach my $fault ('open:error:1', 'put:error:1', 'put:memory:2', 'sort:memory:1', 'sort:error:1', 'get:error:2', 'get:error:1')
{
	foreach my $number (1 .. $batches + $ranges)
	{
		my $failing = Session($node, $small, "SET pg_gpusort.debug_fault = '$fault:$number'", $OURS);

		is($failing->run(digest($plain)), $expected, "$fault in session $number: rows");
		$failing->quit;
	}
	holds_nothing($node, $fault);
	leaves_nothing($node, $fault);
}
# The device or its process is lost; sessions that follow find none until there is a new one.
foreach my $fault ('put:lost:1', 'sort:crash:1', 'get:crash:2')
{
	foreach my $number ($batches + 1, $batches + 2, $batches + $ranges)
	{
		my $failing;

		$node->restart if $fault =~ /lost/;
		wait_for_service($node);
		$failing = Session($node, $small, "SET pg_gpusort.debug_fault = '$fault:$number'", $OURS);
		is($failing->run(digest($plain)), $expected, "$fault in session $number: rows");
		$failing->quit;
		wait_for_service($node);
		holds_nothing($node, "$fault in session $number");
		leaves_nothing($node, "$fault in session $number");
	}
}

# While a cursor is open: the rows that follow are the same.
$session->quit;
$session = Session($node, $small);
foreach my $place (0, 10, $rows / 2, $rows - 10)
{
	my $cursor = Session($node, $small, $OURS);
	my $rest = $session->run("$STOCK; SELECT md5(string_agg(place::text, ',')) FROM ($plain, place OFFSET $place + 5) s");
	my $fetched;

	$cursor->run("BEGIN; DECLARE c NO SCROLL CURSOR FOR $plain; MOVE $place FROM c; FETCH 5 FROM c");
	crash_device($node);
	$fetched = $cursor->run('FETCH ALL FROM c');
	is(md5_hex(join(',', $fetched =~ /^(\d+)\|/mg)), $rest, "the device process ends behind row $place: the other rows");
	$cursor->quit;
	wait_for_service($node);
	holds_nothing($node, "the device process ends behind row $place");
	leaves_nothing($node, "the device process ends behind row $place");
}

# ---- Other sorts take the memory ----

# Half of it while a cursor reads ranges.
{
	my $cursor = Session($node, $small, $OURS);
	my $other = Session($node, q{SET pg_gpusort.device_memory = '1400kB'; SET pg_gpusort.work_mem = '64MB'}, $OURS);
	my $all = $session->run("$STOCK; SELECT md5(string_agg(place::text, ',')) FROM ($plain, place) s");
	my @fetched;

	$cursor->run("BEGIN; DECLARE c NO SCROLL CURSOR FOR $plain");
	push @fetched, $cursor->run('FETCH 100 FROM c') =~ /^(\d+)\|/mg;
	$other->run('BEGIN; DECLARE c CURSOR FOR SELECT * FROM plain WHERE place <= 14000 ORDER BY place DESC; FETCH 1 FROM c');
	push @fetched, $cursor->run('FETCH ALL FROM c') =~ /^(\d+)\|/mg;
	is(md5_hex(join(',', @fetched)), $all, 'another sort has much of the memory: rows');
	$_->quit foreach $cursor, $other;
	holds_nothing($node, 'another sort');
	leaves_nothing($node, 'another sort');
}

# ---- Ends ----

foreach my $end ('leader cancelled', 'leader terminated')
{
	my $ending = Session($node, $small, $OURS);

	# It waits in the middle of the ranges.
	$ending->begin("SELECT count(pg_sleep(CASE WHEN n = 40000 THEN 100 ELSE 0 END))
		FROM (SELECT place, row_number() OVER () AS n FROM ($plain OFFSET 0) p) s");
	becomes_true($node, "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = " . $ending->pid) or die 'no sleep';
	end_session($node, $ending, $end);
	like($ending->finish, error_of_end($end), "$end: error");
	$ending->quit;
	wait_for_end($node);
	wait_for_service($node);
	holds_nothing($node, $end);
	leaves_nothing($node, $end);
}

$session->quit;
$node->stop;
done_testing();
