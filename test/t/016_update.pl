# Versions of the extension: each one that can be installed is updated to the
# current one, and is then what CREATE EXTENSION makes of that.  An update to a
# version that only this test has (test/upgrade/next.sql) keeps what depends on the
# extension, while other sessions sort.
#
# A release has its script sql/pg_gpusort--V.sql, which never changes again, and a
# script sql/pg_gpusort--U--V.sql from the release before it.
#
# needs: nothing

use strict;
use warnings;

use File::Basename 'dirname';
use File::Copy 'copy';
use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use PostgreSQL::Test::Utils;
use Test::More;
use version;

my $node = start_node('main');
my $current = $node->safe_psql('postgres',
	q{SELECT default_version FROM pg_available_extensions WHERE name = 'pg_gpusort'});

# The files of the tree: what is not installed is not tested.
my $tree = "$FindBin::RealBin/../..";
my %installed = map { $_ => 1 } split(/\n/, $node->safe_psql('postgres',
		q{SELECT version FROM pg_available_extension_versions WHERE name = 'pg_gpusort'}));
my (%scripts, @updates);
foreach my $script (map { /([^\/]+)$/ } glob("$tree/sql/pg_gpusort--*.sql"))
{
	my ($from, $to) = $script =~ /^pg_gpusort--([^-]+)(?:--([^-]+))?\.sql$/ or fail("$script has a right name");
	push @updates, "$from--$to" if defined $to;
	$scripts{$from} = 1 unless defined $to;
	ok($installed{$_}, "$script: version $_ can be installed") foreach grep { defined } $from, $to;
}
ok($scripts{$current}, "version $current, the current one, has a script of its own");
my $library = $node->safe_psql('postgres', q{SELECT value FROM gpusort_status() WHERE name = 'version'});
like($library, qr/^\Q$current\E\.\d+$/, 'the library has its version, and a third number');
like($node->safe_psql('postgres', 'SELECT gpusort_version()'), qr/^\Q$library\E \(commit \S+, built \S+\)$/, 'gpusort_version()');
like(slurp_file("$tree/META.json"), qr/"version": "\Q$library\E"/, 'META.json has it');
like(slurp_file("$tree/META.json"), qr/"file": "sql\/pg_gpusort--\Q$current\E\.sql"/, 'and names the script');
my $newest = (sort { version->parse($a) <=> version->parse($b) } keys %scripts)[-1];
is($newest, $current, 'and is the newest one');

# All that belongs to the extension, as its definitions say.
my $contents = q{
	SELECT string_agg(what, E'\n' ORDER BY what COLLATE "C") FROM (SELECT pg_describe_object(classid, objid, 0) || E'\n' || CASE classid
		WHEN 'pg_proc'::regclass THEN (
			SELECT concat_ws(E'\n', CASE WHEN prokind <> 'a' THEN pg_get_functiondef(p.oid) END, (SELECT a::text FROM pg_aggregate a WHERE aggfnoid = p.oid),
				proparallel, array(SELECT a::text FROM unnest(proacl) a ORDER BY 1))
			FROM pg_proc p WHERE oid = objid)
		WHEN 'pg_class'::regclass THEN (
			SELECT concat_ws(E'\n', relkind, reloptions, pg_get_viewdef(oid),
				array(SELECT a::text FROM unnest(relacl) a ORDER BY 1),
				(SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attacl, col_description(attrelid, attnum)), ', ' ORDER BY attnum)
				 FROM pg_attribute WHERE attrelid = c.oid AND NOT attisdropped))
			FROM pg_class c WHERE oid = objid)
		ELSE '' END || E'\nComment: ' || coalesce(obj_description(objid, (SELECT relname FROM pg_class WHERE oid = classid)), '')
		|| E'\nInitial privileges: ' || coalesce((
			SELECT array(SELECT a::text FROM unnest(initprivs) a ORDER BY 1)::text
			FROM pg_init_privs i WHERE i.objoid = d.objid AND i.classoid = d.classid), '') AS what
	FROM pg_depend d
	WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND
		refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_gpusort')) s};
my $expected = $node->safe_psql('postgres', $contents);
like($expected, qr/gpusort_array_sort.*Initial privileges.*view pg_stat_gpusort\n/s, 'what there is to compare');

# With any script, the current library works: servers get it before they are updated.
my $use = q{
	SELECT gpu_sort(ARRAY[3, 1, 2]), gpu_argsort(ARRAY[3, 1, 2]), gpu_sort_pairs(ARRAY[2, 1], ARRAY['b', 'a']), gpu_sort_agg(x), gpu_argsort_agg(x) FROM (VALUES (2), (1)) AS v (x);
	SELECT count(*) FROM gpusort_devices();
	SELECT count(*) > 0 FROM gpusort_status();
	SELECT count(*) > 0 FROM pg_stat_gpusort;
	SELECT count(*) FROM pg_stat_gpusort_fallbacks;
	SELECT pg_stat_gpusort_reset()};
my $used = "{1,2,3}|{2,3,1}|(\"{1,2}\",\"{a,b}\")|{1,2}|{2,1}\n0\nt\nt\n0\n";

foreach my $version (sort keys %scripts)
{
	my $database = "version_$version";
	my ($ret, $out, $err);

	$node->safe_psql('postgres', "CREATE DATABASE \"$database\"");
	$node->safe_psql($database, "CREATE EXTENSION pg_gpusort VERSION '$version'");
	is($node->safe_psql($database, $use), $used, "version $version: works with the current library");
	($ret, $out, $err) = $node->psql($database, 'ALTER EXTENSION pg_gpusort UPDATE');
	is($ret, 0, "version $version: can be updated") or diag($err);
	is($node->safe_psql($database, q{SELECT extversion FROM pg_extension WHERE extname = 'pg_gpusort'}), $current,
		"version $version: to $current");
	is($node->safe_psql($database, $contents), $expected, "version $version: and then has the same contents");
	is($node->safe_psql($database, $use), $used, "version $version: and works");
	$node->safe_psql($database, 'DROP EXTENSION pg_gpusort');
	is($node->safe_psql($database, q{SELECT count(*) FROM pg_proc WHERE proname LIKE '%gpu%'}), '0',
		"version $version: and leaves nothing");
}

# ---- An update under way ----

# A private server has its files to itself.
my $next = $node->config_data('--sharedir') . "/extension/pg_gpusort--$current--next.sql";
my $copied = 0;
END { unlink $next if $copied; }

SKIP:
{
	my $in_order = 'SELECT array_agg(k) = (SELECT array_agg(k ORDER BY n) FROM expected) FROM (SELECT k FROM numbers ORDER BY k OFFSET 0) s';
	my $by_index = q{SELECT array_agg(id ORDER BY id) FROM lists WHERE gpu_sort(list) = '{-7,0,7}'};
	my ($ids, $position) = ('{7,77}', 1);

	skip 'the directory of extensions cannot be written', 1 unless -w dirname($next);
	copy("$tree/test/upgrade/next.sql", $next) or die "could not write $next: $!";
	$copied = 1;

	$node->safe_psql('postgres', q{
		CREATE TABLE numbers AS SELECT hashint4(g) AS k FROM generate_series(1, 20000) g;
		CREATE TABLE expected AS SELECT k, row_number() OVER (ORDER BY k) AS n FROM numbers;
		CREATE TABLE lists AS SELECT g AS id, ARRAY[g % 70, g % 7, -(g % 70)] AS list FROM generate_series(1, 100) g;
		CREATE INDEX lists_sorted ON lists (gpu_sort(list));
		CREATE VIEW my_stats AS SELECT backend, sorts FROM pg_stat_gpusort;
		CREATE VIEW my_devices AS SELECT ordinal FROM gpusort_devices();
		CREATE FUNCTION gpu_sort_ascending(anyarray) RETURNS text LANGUAGE sql AS 'SELECT $$mine$$';
		CREATE ROLE analyst LOGIN;
		ANALYZE});
	my @ours = (q{LOAD 'pg_gpusort'}, 'SET pg_gpusort.min_rows = 0', $OURS, 'SET enable_seqscan = off');
	my $session = Session($node, @ours, "PREPARE kept AS $in_order", "PREPARE found AS $by_index", 'EXECUTE kept', 'EXECUTE found');
	my $cursor = Session($node, @ours, 'BEGIN', 'DECLARE c CURSOR FOR SELECT k FROM numbers ORDER BY k');

	# In a session that goes on and in a new one.
	my $sorts_go_on = sub {
		my ($when) = @_;
		my $new = Session($node, @ours);

		is($session->run('EXECUTE kept'), 't', "$when: a prepared sort");
		is($session->run('EXECUTE found'), $ids, "$when: a prepared search in an index by gpu_sort()");
		is($new->run($in_order), 't', "$when: a sort");
		like($new->run("EXPLAIN $by_index"), qr/lists_sorted/, "$when: the index is used");
		is($new->run($by_index), $ids, "$when: a search in it");
		is($new->run('SELECT gpu_sort(ARRAY[2, 1]), gpu_sort_agg(v) FROM (VALUES (4), (3)) AS t (v)'), '{1,2}|{3,4}', "$when: functions");
		is($cursor->run('FETCH c'), $node->safe_psql('postgres', "SELECT k FROM expected WHERE n = $position"), "$when: a cursor");
		$position++;
		$new->quit;
	};

	$sorts_go_on->('before');

	# What is in the way, in turn.  Then nothing has changed.
	foreach my $obstacle (
		[ qr/function "gpu_sort_ascending" already exists/, 'DROP FUNCTION gpu_sort_ascending' ],
		[ qr/cannot drop function gpusort_devices\(\) because other objects depend on it.*view my_devices/s, 'DROP VIEW my_devices' ])
	{
		my ($message, $removal) = @$obstacle;
		my ($ret, $out, $err) = $node->psql('postgres', q{ALTER EXTENSION pg_gpusort UPDATE TO 'next'});

		like($err, $message, 'what users have made is neither taken over nor dropped');
		is($node->safe_psql('postgres', $contents), $expected, 'and the extension is as before');
		$node->safe_psql('postgres', $removal);
	}

	my $updating = Session($node, 'BEGIN');
	unlike($updating->run(q{ALTER EXTENSION pg_gpusort UPDATE TO 'next'}), qr/ERROR/, 'an update');
	$sorts_go_on->('during');
	$node->safe_psql('postgres', 'INSERT INTO lists VALUES (101, ARRAY[7, -7, 0]); CREATE INDEX ON numbers (k)');
	$ids = '{7,77,101}';
	is($updating->run('COMMIT'), '', 'which commits');
	$updating->quit;
	$sorts_go_on->('after');

	is($node->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'pg_gpusort'}), 'next', 'updated');
	is($node->safe_psql('postgres', 'SELECT gpu_sort_ascending(ARRAY[2, 1])'), '{1,2}', 'a new function');
	is($node->safe_psql('postgres', 'SELECT backend FROM my_stats ORDER BY 1'), "cpu\nexternal\ngpu", 'a view that depends on a view');
	is($session->run(q{SELECT rows_per_ms > 0 FROM pg_stat_gpusort WHERE backend = 'cpu'}), 't', 'a new column of that');
	is($node->safe_psql('postgres', 'SELECT count(device) FROM gpusort_devices()'), '0', 'a function with another column');
	is($node->safe_psql('postgres', q{SELECT provolatile, procost FROM pg_proc WHERE proname = 'gpu_sort'}), 'i|10', 'another cost of a function');
	my ($ret, $out, $err) = $node->psql('postgres', 'SELECT gpusort_version()', extra_params => [ '-U', 'analyst' ]);
	like($err, qr/permission denied/, 'a privilege less');
	($ret, $out, $err) = $node->psql('postgres', 'DROP EXTENSION pg_gpusort');
	like($err, qr/(?=.*view my_stats depends on view pg_stat_gpusort)(?=.*index lists_sorted depends on function gpu_sort)/s,
		'what depends on the extension still does');
	$node->safe_psql('postgres', 'REINDEX INDEX lists_sorted');
	$sorts_go_on->('after REINDEX');
	$_->quit foreach $session, $cursor;
}

$node->stop;
done_testing();
