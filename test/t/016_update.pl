# Versions of the extension: each one that can be installed is updated to the
# current one, and is then what CREATE EXTENSION makes of that.
#
# A release has its script sql/pg_gpusort--V.sql, which never changes again, and a
# script sql/pg_gpusort--U--V.sql from the release before it.
#
# needs: nothing

use strict;
use warnings;

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
				(SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attacl), ', ' ORDER BY attnum)
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

$node->stop;
done_testing();
