# Sorts on a GPU of rows that cannot be read a second time: a copy of them is kept, in memory
# or in a file, and takes their place if the GPU is lost.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_gpu_node('main', 'pg_gpusort.on_gpu_loss = copy', q{pg_gpusort.pool_size = '4MB'}, q{work_mem = '64MB'});
my ($host, $port) = ($node->host, $node->port);

make_table($node, 20000);
add_stops($node, 15000);
$node->safe_psql(
	'postgres', qq{
	CREATE FUNCTION volatile_id(id int8) RETURNS int8 LANGUAGE plpgsql VOLATILE
		AS 'BEGIN RETURN id; END';
	CREATE SEQUENCE calls;
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres');
	CREATE USER MAPPING FOR CURRENT_USER SERVER self;
	CREATE FOREIGN TABLE far (k int8, id int8, t text) SERVER self OPTIONS (table_name 'big', use_remote_estimate 'false');
	CREATE TABLE wide AS
	SELECT g AS id, g * 7919 % 10007 AS k, md5(g::text) AS a, NULLIF(g % 7, 3)::text AS b, g / 8.0::float8 AS c, g % 2 = 0 AS d,
		   g::int2 AS e, (g % 50)::numeric / 7 AS f, repeat('x', g % 100) AS h, NULL::int4 AS i, g AS j, 'l'::text AS l
	FROM generate_series(1, 20000) g;
	ANALYZE big, wide, far;
});

my $on_gpu = 'SET pg_gpusort.debug_require = gpu';
my $anywhere = 'SET pg_gpusort.debug_require = node';
my $on_cpu = 'SET pg_gpusort.backend = cpu; SET pg_gpusort.debug_require = cpu';
my $reasons = "$REASONS WHERE reason !~ '^(pg_gpusort.backend is cpu|rows exceeded)'";
my $lost = 'the GPU service was lost';

# Inputs; each has a query of its rows, and keys that leave no ties.
my $once = '(SELECT k, volatile_id(id) AS id, t FROM big OFFSET 0) s';
my %inputs = (
	'a volatile function' => [ $once, 'k, id' ],
	'numbers of a sequence' => [ q{(SELECT nextval('calls') AS n, id * 7919 % 10007 AS k, t FROM big OFFSET 0) s}, 'k, n' ],
	'TABLESAMPLE' => [ 'big TABLESAMPLE BERNOULLI (70) REPEATABLE (3)', 'k, id' ],
	'FOR UPDATE' => [ '(SELECT * FROM big FOR UPDATE) s', 'k, id' ],
	'a recursive query' => [ '(WITH RECURSIVE r(id, k) AS (SELECT 1, 1 UNION ALL SELECT id + 1, id * 7919 % 10007 FROM r WHERE id < 20000)
		SELECT *, repeat($$x$$, id % 50) AS t FROM r) s', 'k, id' ],
	'a foreign table' => [ '(SELECT * FROM far OFFSET 0) s', 'k, id' ],
	'a hash join' => [ '(SELECT a.* FROM big a JOIN wide b USING (id) OFFSET 0) s', 'k, id' ],
	'whole tuples' => [ 'wide TABLESAMPLE BERNOULLI (100) REPEATABLE (1)', 'k, id' ],
	'half of the keys null' => [ '(SELECT NULLIF(k % 2, 0) + k AS k, volatile_id(id) AS id FROM big OFFSET 0) s', 'k, id' ]);
my $joins = 'SET enable_mergejoin = off; SET enable_nestloop = off';

# The settings with which a copy is in memory, in both, and in a file alone.
my %places = (
	'in memory' => [ "'64MB'", qr/Sort Copy: Memory: \d+kB\n/ ],
	'in both' => [ "'128kB'", qr/Sort Copy: Memory: [1-9]\d*kB  Disk: \d+kB\n/ ],
	'mostly in a file' => [ "'64kB'", qr/Sort Copy: Memory: \d+kB  Disk: \d+kB\n/ ]);

my $session;

# New device processes come later and later, unless the server is new.
sub new_server
{
	$session->quit if defined $session;
	$node->restart;
	wait_for_service($node);
	$session = Session($node, $joins, $anywhere);
}

# rows_of QUERY, SETTINGS: returns what the query returns with them.
sub rows_of
{
	my ($query, $settings) = @_;

	return $session->run(
		"ALTER SEQUENCE calls RESTART; $settings; $query; RESET ALL; $joins; $anywhere");
}

# ---- A fault at every point, for every input ----

new_server();
foreach my $name (sort keys %inputs)
{
	my ($input, $keys) = @{ $inputs{$name} };
	my $query = "SELECT * FROM $input ORDER BY $keys";
	my $expected = rows_of($query, $STOCK);
	# Of ties, those that came first are first.
	my $ties = "SELECT * FROM $input ORDER BY k % 5";
	my $expected_ties = rows_of($ties, $on_cpu);

	unlike($expected, qr/ERROR/, "$name: stock");
	unlike($expected_ties, qr/ERROR/, "$name: ties on the CPU");
	foreach my $place (sort keys %places)
	{
		my ($memory, $copy) = @{ $places{$place} };
		my $settings = "SET pg_gpusort.work_mem = $memory";

		$session->run($settings);
		like($session->run("$on_gpu; $EXPLAIN $query"), qr/GpuSort.*Sort Method: gpu onesweep.*$copy/s,
			"$name, $place: on the GPU");
		ok(rows_of($query, "$settings; $on_gpu") eq $expected, "$name, $place: rows");
		foreach my $fault ('put:error:1', 'put:error:2', 'put:error:7', 'sort:error', 'sort:memory', 'get:error:1', 'get:error:2', 'get:error:5')
		{
			my $faulty = "$settings; SET pg_gpusort.debug_fault = '$fault'";

			$session->run('SELECT pg_stat_gpusort_reset()');
			ok(rows_of($query, $faulty) eq $expected, "$name, $place, $fault: rows");
			is($session->run($reasons),
				$fault =~ /memory/ ? 'not enough device memory 1' : 'the device reported an error 1',
				"$name, $place, $fault: counted");
			ok(rows_of($ties, $faulty) eq $expected_ties, "$name, $place, $fault: ties");
		}
		holds_nothing($node, "$name, $place");
		leaves_nothing($node, "$name, $place");
	}
}

# Rescans, each with a fault of its own.
foreach my $fault ('put:error:1', 'sort:error', 'get:error:1', 'get:error:2')
{
	my $query = digest('SELECT g, s.* FROM generate_series(1, 4) g CROSS JOIN LATERAL
		(SELECT k, volatile_id(id) AS id, t FROM big WHERE id <= 2000 * g ORDER BY k, id OFFSET 0) s');
	my $expected = rows_of($query, $STOCK);

	is(rows_of($query, "SET pg_gpusort.debug_fault = '$fault'"), $expected, "rescans, $fault: rows");
	is(rows_of($query, "SET pg_gpusort.work_mem = '64kB'; SET pg_gpusort.debug_fault = '$fault'"),
		$expected, "rescans, copies in files, $fault: rows");
}

# A LIMIT that is not known before, and many more rows than expected.
my $many = "$once WHERE id + 0 > 0 AND id + 1 > 0 AND id + 2 > 0 AND id + 3 > 0";
foreach my $fault ('', 'put:error:9', 'sort:error', 'get:error:1', 'put:memory:4', 'put:memory:15')
{
	my $query = digest("SELECT * FROM $many ORDER BY k, id LIMIT (SELECT 1500)");
	my $faulty = "SET pg_gpusort.debug_fault = '$fault'";
	my $expected = rows_of($query, $STOCK);

	is(rows_of($query, $faulty), $expected, "a LIMIT, \"$fault\": rows");
	is(rows_of($query, "$faulty; SET pg_gpusort.work_mem = '512kB'"), $expected,
		"a LIMIT, \"$fault\", little memory: rows");
}

# Ties that the GPU cannot break: a group that is large, and is sorted beside the copy.
foreach my $fault ('', 'get:error:1', 'get:error:7')
{
	my $query = digest(q{SELECT * FROM (SELECT 'rows that begin alike ' || k AS b, volatile_id(id) AS id FROM big OFFSET 0) s
		ORDER BY b COLLATE "C", id});
	my $expected = rows_of($query, $STOCK);

	foreach my $memory (64, 1000, 64000)
	{
		is(rows_of($query, "SET pg_gpusort.work_mem = '${memory}kB'; SET pg_gpusort.debug_fault = '$fault'"),
			$expected, "a large group, \"$fault\", ${memory}kB: rows");
	}
}
holds_nothing($node, 'rescans and limits');
leaves_nothing($node, 'rescans and limits');

# ---- The device's memory is used up ----

# The GPU takes one batch after the other, and is lost in each of them, or with the device
# process while rows come in.
{
	my $query = "SELECT * FROM $once ORDER BY k, id";
	my $expected = rows_of($query, $STOCK);

	foreach my $memory ('64MB', '256kB')
	{
		my $settings = "SET pg_gpusort.work_mem = '$memory'";

		foreach my $fault ('put:memory:2', 'put:memory:7')
		{
			ok(rows_of($query, "$settings; SET pg_gpusort.debug_fault = '$fault'") eq $expected,
				"batches, $memory, $fault: rows");
		}
		foreach my $fault ('put:memory:2', 'put:memory:4', 'put:memory:9')
		{
			my $stopping = $query =~ s/volatile_id\(id\)/volatile_id(stopping(id))/r;
			my $stops;

			new_server();
			$stops = hold_stops($node);
			$session->run("SELECT pg_stat_gpusort_reset(); $settings; SET pg_gpusort.debug_fault = '$fault'");
			$session->begin($stopping);
			wait_for_stop($node, $session);
			crash_device($node);
			$stops->quit;
			ok($session->finish eq $expected, "the device process ends in a batch, $memory, $fault: rows");
			like($session->run($reasons), qr/$lost 1/, "the device process ends in a batch, $memory, $fault: counted");
			holds_nothing($node, "a batch, $memory, $fault");
			leaves_nothing($node, "a batch, $memory, $fault");
		}
	}
}

# ---- Cursors ----

# The rows of a cursor that moves, and whose GPU is lost after some rows.  The settings may
# change meanwhile, since the input is not read again.
my $moves = join('; ', 'FETCH 3000 FROM c', 'FETCH BACKWARD 6000 FROM c', 'FETCH ABSOLUTE 13000 FROM c',
	'FETCH ALL FROM c', 'FETCH BACKWARD 3 FROM c');
foreach my $name ('a volatile function', 'numbers of a sequence', 'TABLESAMPLE', 'a hash join', 'whole tuples')
{
	my $query = "SELECT * FROM $inputs{$name}[0] ORDER BY k % 5";

	foreach my $memory ('64MB', '256kB')
	{
		my $declare = "ALTER SEQUENCE calls RESTART; BEGIN; DECLARE c SCROLL CURSOR FOR $query; FETCH 5000 FROM c";
		my $first;
		my $rest;

		new_server();
		$session->run($on_cpu);
		$first = $session->run($declare);
		$rest = $session->run("$moves; ROLLBACK; RESET ALL; $joins; $on_gpu; SET pg_gpusort.work_mem = '$memory'");
		ok($session->run($declare) eq $first, "cursor over $name, $memory: before the loss");
		crash_device($node);
		ok($session->run("SET work_mem = '63MB'; $moves; ROLLBACK") eq $rest, "cursor over $name, $memory: the rest of the rows");
		wait_for_service($node);
		holds_nothing($node, "cursor over $name, $memory");
		leaves_nothing($node, "cursor over $name, $memory");
	}
}

# One that is left in the middle, and one that is held, leave no file behind.
$session->run("$anywhere; SET pg_gpusort.work_mem = '64kB'; BEGIN; DECLARE c CURSOR FOR SELECT * FROM $once ORDER BY k, id; FETCH 5 FROM c");
cmp_ok(scalar(glob($node->data_dir . '/base/pgsql_tmp/*') // ''), 'ne', '', 'a cursor in the middle: a file');
is($session->run('ROLLBACK'), '', 'a cursor that is left: no warning');
leaves_nothing($node, 'a cursor that is left');
$session->run("BEGIN; DECLARE c CURSOR FOR SELECT * FROM $once ORDER BY k, id; FETCH 5 FROM c");
like($session->run('SELECT 1 / 0; ROLLBACK'), qr/division by zero/, 'a cursor and an error');
leaves_nothing($node, 'a cursor and an error');
$session->run('RESET pg_gpusort.work_mem');

# ---- Settings ----

# Without a copy, the query ends in an error, unless its input can be read again.
$session->run("SET pg_gpusort.on_gpu_loss = error; $joins");
unlike($session->run("$on_gpu; $EXPLAIN SELECT * FROM $once ORDER BY k, id"), qr/Sort Copy/, 'no copy');
$session->run($anywhere);
foreach my $fault ('put:error:1', 'put:error:7', 'sort:error', 'sort:memory', 'get:error:1')
{
	my $reason = $fault =~ /memory/ ? 'not enough device memory' : 'the device reported an error';

	$session->run("SELECT pg_stat_gpusort_reset(); SET pg_gpusort.debug_fault = '$fault'");
	like($session->run("SELECT * FROM $once ORDER BY k, id"),
		qr/^ERROR:  58000: could not sort rows that cannot be read a second time\nDETAIL:  The reason is "$reason"\.\nHINT:  Set pg_gpusort.on_gpu_loss to "copy"/m,
		"no copy, $fault: an error");
	is($session->run($reasons), "$reason 1", "no copy, $fault: counted");
	is($session->run('SELECT max(errors) FROM pg_stat_gpusort'), '1', "no copy, $fault: an error is counted");
	is(rows_of(digest("SELECT * FROM $inputs{'a hash join'}[0] ORDER BY k, id"),
			"SET pg_gpusort.on_gpu_loss = error; SET pg_gpusort.debug_fault = '$fault'"),
		rows_of(digest("SELECT * FROM $inputs{'a hash join'}[0] ORDER BY k, id"), $STOCK), "no copy, $fault: a hash join is read again");
	$session->run('SET pg_gpusort.on_gpu_loss = error');
}
$session->run("SET pg_gpusort.debug_fault = 'get:error:7'");
like($session->run("SELECT * FROM $once ORDER BY k, id"), qr/ERROR:  58000: could not read the remaining rows of a sort/,
	'no copy, after rows were returned: an error');
$session->run('SET pg_gpusort.on_gpu_loss = copy; RESET pg_gpusort.debug_fault');
holds_nothing($node, 'no copy');

# By default, a copy is kept only of rows that cannot be read a second time.
foreach my $name (sort keys %inputs)
{
	my ($input, $keys) = @{ $inputs{$name} };
	my $plan = $session->run("SET pg_gpusort.on_gpu_loss = auto; $on_gpu; $EXPLAIN SELECT * FROM $input ORDER BY $keys");

	is($plan =~ /Sort Copy/, $name ne 'a hash join', "auto, $name: a copy or none");
}
$session->run("SET pg_gpusort.on_gpu_loss = copy; $anywhere");

# A file that temp_file_limit does not allow: no GPU is used if that is expected, and otherwise
# the query ends as any other does that needs such a file.
$session->run("SET pg_gpusort.work_mem = '400kB'; SET temp_file_limit = '300kB'");
like($session->run("EXPLAIN (ANALYZE) SELECT * FROM $once ORDER BY k, id LIMIT (SELECT 800)"),
	qr/GPU Not Used: input cannot be read a second time/, 'temp_file_limit: not on a GPU');
like($session->run("SELECT * FROM $many ORDER BY k, id"), qr/ERROR:  53400: temporary file size exceeds temp_file_limit/,
	'temp_file_limit, more rows than expected: an error');
$session->run('RESET temp_file_limit');
like($session->run("$EXPLAIN SELECT * FROM $many ORDER BY k, id"), qr/Sort Copy/, 'no limit: a copy');

# The form of other formats, and what a sort that is not finished shows.
like($session->run("EXPLAIN (ANALYZE, FORMAT YAML) SELECT * FROM $once ORDER BY k, id"),
	qr/Sort Space Type: "Device Memory".*Sort Copy Memory: \d+\n *Sort Copy Disk: [1-9]\d*\n/s, 'YAML');
like($session->run("EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM $once ORDER BY k, id"), qr/temp written=[1-9]/, 'BUFFERS');
unlike($session->run("$EXPLAIN SELECT * FROM big ORDER BY k, id"), qr/Sort Copy/, 'input that can be read again: no copy');
$session->quit;
holds_nothing($node, 'at the end');
leaves_nothing($node, 'at the end');

$node->stop;
done_testing();
