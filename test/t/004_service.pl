# The GPU service: how it starts and what it shows of itself; servers where it
# is not available, which sort on the CPU and say why.
#
# needs: emulator

use strict;
use warnings;

use File::Copy qw(copy);
use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $on_gpu = 'SET pg_gpusort.debug_require = gpu;';
my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM big ORDER BY k';
my $gpu_sorts = q{SELECT sorts, rows FROM pg_stat_gpusort WHERE backend = 'gpu'};

# ---- A service with a device ----

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '4MB'});
make_table($node, 20000);
like(slurp_file($node->logfile),
	qr/^(?:\S+ )*LOG:  pg_gpusort \d+\.\d+\.\d+ \(commit \S+, built \S+\): GPUs by library ".*"; (?:up to \d+ MB of|no) warm memory/m,
	'a line at start');
like(slurp_file($node->logfile),
	qr/LOG:  pg_gpusort uses GPU 0: .*compute capability \d+\.\d+, \d+ MB, through a pool of 4 MB/,
	'a line in the log');
is( $node->safe_psql('postgres', q{
		SELECT ordinal, name <> '', compute_capability ~ '^\d+\.\d+$',
			   total_memory >= free_memory, free_memory > 0, sessions
		FROM gpusort_devices()}),
	'0|t|t|t|t|0', 'gpusort_devices()');
is(status_of($node, 'backend'), 'gpu', 'gpusort_status(): backend');
is(status_of($node, 'backend_reason'), '', 'gpusort_status(): reason');
is(status_of($node, 'device_library'), 'emulator', 'gpusort_status(): library');
is(status_of($node, 'service_message'), '', 'gpusort_status(): message');
is(status_of($node, 'session_slots'), '8', 'gpusort_status(): slots');
is(status_of($node, 'pool_chunks'), '64', 'gpusort_status(): chunks');
is(status_of($node, 'pool_chunk_bytes'), '65536', 'gpusort_status(): their size');
is(status_of($node, 'device_process_restarts'), '0', 'gpusort_status(): restarts');
my $device_pid = status_of($node, 'device_process_pid');
ok(kill(0, $device_pid), 'gpusort_status(): the device process');
is($node->safe_psql('postgres', q{SET pg_gpusort.backend = cpu;
		SELECT value FROM gpusort_status() WHERE name = 'backend_reason'}),
	'pg_gpusort.backend is cpu', 'gpusort_status() of a session that uses the CPU');
ok( $node->poll_query_until('postgres', q{
		SELECT concat_ws('|', query, application_name, state, wait_event_type) FROM pg_stat_activity
		WHERE backend_type = 'pg_gpusort service'},
		'GPUs: 1, sessions: 0|pg_gpusort service|idle|Extension'),
	'pg_stat_activity');

is($node->safe_psql('postgres', $gpu_sorts), '0|0', 'no sorts yet');
my $plan = $node->safe_psql('postgres', "$on_gpu $explain");
like($plan, qr/\(GpuSort\).*Sort Method: gpu onesweep  Device Memory: \d+kB/s, 'EXPLAIN');
unlike($plan, qr/GPU Not Used|Sort Fallback/, 'EXPLAIN, without excuses');
like($node->safe_psql('postgres', "$on_gpu " . $explain =~ s/TIMING OFF/TIMING ON/r),
	qr/Sort Phases: drain=\S+ ms  wait=\S+ ms  sort=\S+ ms  fetch=\S+ ms/,
	'EXPLAIN, phases');
is($node->safe_psql('postgres', $gpu_sorts), '2|40000', 'pg_stat_gpusort');
sorts_like_stock($node, 'on the GPU', $on_gpu);
# What was measured, and what "auto" makes of it.
{
	my $auto = q{SET pg_gpusort.backend = auto; SET pg_gpusort.gpu_min_rows};
	my $few = qr/GPU Not Used: too few rows to gain from a GPU/;
	my $measured = status_of($node, 'gpu_min_rows');
	my %ns = map { $_ => status_of($node, $_) } qw(cpu_row_ns gpu_row_ns gpu_session_us);

	like($ns{$_}, qr/^\d+(\.\d)?$/, "gpusort_status(): $_") foreach sort keys %ns;
	cmp_ok($ns{cpu_row_ns}, '>', 0, 'gpusort_status(): the CPU takes some time');
	# On the borders the numbers that are shown do not tell.
	is($measured eq '', $ns{gpu_row_ns} > $ns{cpu_row_ns}, 'gpusort_status(): whether a GPU gains')
	  if $ns{gpu_row_ns} != $ns{cpu_row_ns};
	cmp_ok($measured, '>=', 1e6 / $ns{cpu_row_ns}, 'gpusort_status(): more rows than what the service takes') if $measured ne '';
	like($node->safe_psql('postgres', "$auto = 20001; $explain"), $few, 'gpu_min_rows: too few');
	unlike($node->safe_psql('postgres', "$auto = 20000; $on_gpu $explain"), $few, 'gpu_min_rows: enough');
	my $default = $node->safe_psql('postgres', "$auto = -1; $explain");
	ok($measured ne '' && $measured <= 20000 ? $default !~ $few : $default =~ $few, 'gpu_min_rows: as measured');
}
# "auto" looks at the statistics of strings, in which a GPU compares 24 bytes, and what follows shorter ones.
$node->safe_psql('postgres', q{
	CREATE TABLE strings AS SELECT i AS id, 'word ' || i % 100 AS few, substr(md5(i::text), 1, 20) AS many,
		'https://www.example.org/item/' || md5(i::text) AS far, CASE WHEN i % 2 = 0 THEN '' ELSE md5(i::text) END AS half,
		md5((i * 3 / 4)::text) AS most, i % 1000 AS n, 'b' || i % 50 AS b, 'c' || i % 3 AS c,
		i % 100 || ' is the beginning of a longer string' AS long, (ARRAY['Café ', 'Place '])[1 + i % 2] || i % 50 AS places
	FROM generate_series(1, 20000) AS i;
	VACUUM ANALYZE strings});
my $language = $node->safe_psql('postgres', q{SELECT quote_ident(collname) FROM pg_collation
	WHERE collprovider = 'c' AND collname ~ '^en_US.*utf-?8' ORDER BY 1 LIMIT 1});
foreach my $case (
	$language eq '' ? () : ([ "few COLLATE $language, id", 1 ], [ "n % 2, few COLLATE $language DESC, b", 1 ], [ "places COLLATE $language, id", 0 ]),
	[ 'many', 1 ], [ 'many, id', 1 ], [ 'many COLLATE "C" DESC, few', 1 ], [ 'id', 1 ], [ 'id, few', 1 ], [ 'n, id', 1 ],
	[ 'few', 1 ], [ 'few, id', 1 ], [ 'few COLLATE "C", id', 1 ], [ 'far', 0 ], [ 'half', 0 ], [ 'n, b', 1 ],
	[ 'long', 0 ], [ 'long, id', 0 ], [ 'long COLLATE "C", id', 0 ], [ 'few, long', 1 ], [ 'few, long, id', 0 ],
	[ 'most', 1 ], [ 'most, id', 0 ], [ 'n, most, id', 1 ], [ 'c, most, id', 0 ], [ 'id, most, n', 1 ],
	[ 'n % 2, b, id', 1 ], [ 'few, n % 7', 1 ], [ 'n % 2, c', 1 ], [ 'n % 2, long, id', 0 ], [ 'n % 2, many', 1 ], [ 'upper(many)', 1 ], [ 'upper(many), id', 0 ],
	[ 'many', 1, '(SELECT few AS many FROM strings WHERE id < 99 UNION ALL SELECT many FROM strings) AS s' ],
	[ 'long', 0, '(SELECT many AS long FROM strings WHERE id < 99 UNION ALL SELECT long FROM strings) AS s' ])
{
	my ($keys, $gains, $from) = (@$case, 'strings');
	my $sorts = "SET pg_gpusort.gpu_min_rows = 0;
		EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM $from ORDER BY $keys";
	my $ties = qr/GPU Not Used: a GPU would leave too many ties to the CPU/;
	my $auto = $node->safe_psql('postgres', "SET pg_gpusort.backend = auto; $sorts");

	like($auto, $gains ? qr/Sort Method: gpu onesweep/ : $ties, "auto, $from ORDER BY $keys");
	like($node->safe_psql('postgres', "SET pg_gpusort.backend = gpu; $sorts"), qr/Sort Method: gpu onesweep/,
		"a GPU on request, $from ORDER BY $keys");
	next if $from ne 'strings' || $keys !~ /^(id|many|most|few|long)\b/;
	# The planner charges what the executor does, as far as numbers of values tell.
	my %cost = map { $_ => $node->safe_psql('postgres', "SET pg_gpusort.backend = $_; SET pg_gpusort.gpu_min_rows = 0;
		SET pg_gpusort.min_rows = 1; EXPLAIN SELECT id FROM strings ORDER BY $keys") =~ s/.*?\.\.(\S+).*/$1/sr } 'cpu', 'auto';

	is($cost{auto} < $cost{cpu}, $gains == 1, "its cost, ORDER BY $keys");
}
foreach my $case ([ 'many', 1 ], [ 'few', 1 ], [ 'few, id', 1 ], [ 'long', 0 ], [ 'long, id', 0 ], [ 'id, few', 1 ])
{
	my ($keys, $gains) = @$case;

	$node->safe_psql('postgres', "SELECT pg_stat_gpusort_reset();
		SET pg_gpusort.backend = auto; SET pg_gpusort.gpu_min_rows = 0; CREATE INDEX ON strings ($keys)");
	is($node->safe_psql('postgres', $gpu_sorts), $gains ? '1|20000' : '0|0', "auto, index on $keys");
}
holds_nothing($node, 'after sorts');
is(status_of($node, 'device_process_pid'), $device_pid, 'all that with one device process');

# The emulator has no NVML.
is($node->safe_psql('postgres', 'SELECT temperature IS NULL, memory_errors IS NULL FROM gpusort_devices()'), 't|t', 'no health');

# What goes over the bus: keys go one way, and rows both ways.
my $bytes = 'SELECT bytes_in, bytes_out FROM gpusort_devices()';
my ($in, $out) = split(/\|/, value_of($node, $bytes));
$node->safe_psql('postgres', "$on_gpu; SELECT count(*) FROM (SELECT k, id FROM big ORDER BY k, id OFFSET 0) s");
my ($in_then, $out_then) = split(/\|/, value_of($node, $bytes));
cmp_ok($out_then - $out, '>=', 20000 * 12, 'bytes from the device');
is($in_then - $in, $out_then - $out + 20000 * 16, 'bytes to the device: two words of keys more for each row');

# Sessions show in pg_stat_activity and gpusort_devices() while they last.
my $session = Session($node, $on_gpu, 'BEGIN',
	'DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k', 'FETCH 1 FROM c');
is($node->safe_psql('postgres', 'SELECT sessions FROM gpusort_devices()'), '1',
	'a cursor has a session');
is(status_of($node, 'sessions'), '1', 'and a slot');
is( $node->safe_psql('postgres', q{
		SELECT pid, role = current_user::regrole, device, state, rows, device_memory >= 20000 * 8, file_bytes,
			   last_use BETWEEN pg_postmaster_start_time() AND clock_timestamp()
		FROM gpusort_sessions()}),
	$session->pid . '|t|0|sorted|20000|t|0|t', 'gpusort_sessions()');
$node->safe_psql('postgres', 'CREATE ROLE somebody LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_monitor');
foreach my $case ([ 'somebody', '0|sorted|t|t|t|t' ], [ 'watcher', '0|sorted|f|f|f|f' ])
{
	my ($role, $seen) = @$case;
	my ($ret, $output) = $node->psql('postgres',
		'SELECT device, state, rows IS NULL, device_memory IS NULL, file_bytes IS NULL, last_use IS NULL FROM gpusort_sessions()',
		extra_params => [ '-U', $role ]);

	is($output, $seen, "gpusort_sessions(): what $role sees");
}
cmp_ok(status_of($node, 'device_memory_in_use'), '>', 20000 * 8, 'and device memory');
cmp_ok(status_of($node, 'pool_chunks_in_use'), '>', 0, 'and chunks');
ok( becomes_true($node, q{
		SELECT state = 'active' AND query = 'GPUs: 1, sessions: 1' FROM pg_stat_activity
		WHERE backend_type = 'pg_gpusort service'}),
	'pg_stat_activity shows it');
$session->quit;
holds_nothing($node, 'after the session');

# ---- Restarts ----

foreach my $mode ('fast', 'immediate')
{
	$session = Session($node, $on_gpu, 'BEGIN',
		'DECLARE c CURSOR FOR SELECT * FROM big ORDER BY k', 'FETCH 1 FROM c');
	my $pid = status_of($node, 'device_process_pid');
	$node->stop($mode);
	ok(ends($pid), "$mode shutdown: the device process has ended");
	$node->start;
	wait_for_service($node);
	isnt(status_of($node, 'device_process_pid'), $pid, "$mode shutdown: there is another");
	holds_nothing($node, "$mode shutdown");
	if ($mode eq 'immediate')
	{
		$node->safe_psql('postgres', 'DROP TABLE big');
		make_table($node, 20000);
	}
	sorts_like_stock($node, "$mode shutdown", $on_gpu);
	$session->quit;
}

# ---- Without a device, for all reasons there can be ----

# absent NAME, SETTINGS, STATE, REASON, MESSAGE, EXPLAINED: restart with the settings,
# and see that queries are answered on the CPU, and why.  EXPLAIN says so unless the
# last argument is false.
sub absent
{
	my ($name, $settings, $state, $reason, $message, $explained) = @_;
	$explained //= 1;
	my $before = -s $node->logfile;

	$node->append_conf('postgresql.conf',
		join("\n", gpu_settings(), q{pg_gpusort.pool_size = '1MB'},
			q{pg_gpusort.devices = 'all'}, $settings, ''));
	$node->restart;
	wait_for_service($node, $state) if $state ne '';
	is(status_of($node, 'service'), $state, "$name: state of the service");
	is(status_of($node, 'backend'), 'cpu', "$name: backend");
	is(status_of($node, 'backend_reason'), $reason, "$name: reason");
	like(status_of($node, 'service_message'), $message, "$name: message");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM gpusort_devices()'), '0',
		"$name: no devices");
	my $plan = $node->safe_psql('postgres', $explain);
	like($plan, qr/\(GpuSort\).*Sort Method: cpu radix/s, "$name: EXPLAIN");
	is($plan =~ /GPU Not Used: (.*)/ ? $1 : undef, $explained ? $reason : undef,
		"$name: EXPLAIN says why");
	sorts_like_stock($node, $name, 'SET pg_gpusort.debug_require = cpu');
	my $worker = $state ne '' && $settings !~ /max_worker_processes/;
	is(service_pid($node) ne '', $worker, "$name: a worker if there is hope");
	cmp_ok(logged($node, qr/LOG:  pg_gpusort sorts on the CPU: .*$message/, $before, 1), '>', 0, "$name: log")
	  if $worker;
}

my $no_service = 'no GPU service';
my $no_device = 'the GPU service has no device';

absent('pool_size 0', 'pg_gpusort.pool_size = 0', '', $no_service, qr/^$/);
like($node->safe_psql('postgres', $explain =~ s/EXPLAIN \(/EXPLAIN (FORMAT JSON, /r),
	qr/"GPU Not Used": "\Q$no_service\E"/, 'pool_size 0: EXPLAIN in JSON');
absent('library missing', q{pg_gpusort.device_library = 'pg_gpusort_none'},
	'', $no_service, qr/^$/, 0);
absent('library missing, with its path',
	q{pg_gpusort.device_library = '/no/such/library.so'}, '', $no_service, qr/^$/, 0);
absent('no library named', q{pg_gpusort.device_library = ''}, '', $no_service, qr/^$/, 0);

my $directory = $node->basedir;
append_to_file("$directory/text.so", "this is no library\n");
absent('a text file', "pg_gpusort.device_library = '$directory/text.so'",
	'failed', $no_device, qr/could not open ".*text\.so": /);
absent('a directory', "pg_gpusort.device_library = '$directory'",
	'failed', $no_device, qr/could not open ".*": /);
absent('no device of that number', q{pg_gpusort.devices = '5'},
	'failed', $no_device, qr/no GPU is allowed by pg_gpusort.devices/);

# Nor can the service be without a background worker.
absent('no background worker', 'max_worker_processes = 0', 'failed', $no_device, qr/^max_worker_processes allows no background worker for the GPU service$/);
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');

# The emulator plays these, too.
foreach my $variable ('GPUSORT_EMU_NO_DEVICE', 'GPUSORT_EMU_NO_DRIVER')
{
	local $ENV{$variable} = 1;
	absent($variable, '', 'failed', $no_device, qr/\S/);
}

SKIP:
{
	my %sources = (
		'no symbol' => 'int gpusort_other(void) { return 1; }',
		'no table for the version' =>
		  'const void *gpusort_device_api(unsigned version) { (void) version; return 0; }',
		'a table of another version' =>
		  'static unsigned api[1000] = {4711, 4000};' .
		  'const void *gpusort_device_api(unsigned version) { (void) version; return api; }',
		'a table that is too short' =>
		  'static unsigned api[1000] = {1, 16};' .
		  'const void *gpusort_device_api(unsigned version) { (void) version; return api; }');
	skip 'no C compiler', 1 if system('cc --version >/dev/null 2>&1') != 0;
	foreach my $name (sort keys %sources)
	{
		(my $file = "$directory/$name") =~ s/ (?=[^\/]*$)/_/g;
		append_to_file("$file.c", "$sources{$name}\n");
		system('cc', '-shared', '-fPIC', '-o', "$file.so", "$file.c") == 0
		  or die "could not compile $file.c";
		absent($name, "pg_gpusort.device_library = '$file.so'", 'failed', $no_device,
			$name eq 'no symbol' ? qr/is not a device library/ :
			  qr/is of another version of pg_gpusort/);
	}
}

# Both libraries in another directory, in which alone there is a device library of that name.
# The functions of the extension would load the installed library besides, so none is called.
my $elsewhere = "$directory/elsewhere";
my $log_before = -s $node->logfile;
mkdir $elsewhere or die "could not create $elsewhere: $!";
copy($node->config_data('--pkglibdir') . '/pg_gpusort.so', $elsewhere)
  && copy(gpu_library_file($node), "$elsewhere/copied_device.so")
  or die "could not copy to $elsewhere: $!";
$node->append_conf('postgresql.conf',
	join("\n", gpu_settings(), "dynamic_library_path = '$elsewhere:\$libdir'",
		q{pg_gpusort.device_library = 'copied_device'}, ''));
$node->restart;
cmp_ok(logged($node, qr/LOG:  pg_gpusort uses GPU 0: /, $log_before, 1),
	'>', 0, 'the device library is found beside pg_gpusort.so');
like($node->safe_psql('postgres', "$on_gpu $explain"), qr/Sort Method: gpu onesweep/, 'and used');

# And back.
$node->append_conf('postgresql.conf',
	join("\n", gpu_settings(), q{dynamic_library_path = '$libdir'}, ''));
$node->restart;
wait_for_service($node);
sorts_like_stock($node, 'with a device again', $on_gpu);
holds_nothing($node, 'at the end');

$node->stop;
done_testing();
