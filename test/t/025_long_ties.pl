# Strings that begin alike for long, and duplicates: each byte of them is read a
# bounded number of times, which a build for tests counts, and rows come as in stock
# PostgreSQL.  Without the counter no test could tell this from reading them again
# and again but by how long it takes.
#
# needs: emulator

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use GpuSortTest;
use Test::More;

my $node = start_gpu_node('main', q{pg_gpusort.pool_size = '2MB'}, q{work_mem = '64MB'});

# What a row counts for besides its bytes: some looks at it, of 64 bytes each.
my $bytes_per_row = 1024;

my $url = "'https://www.example.com/default/'";
my $path = q{'/home/user' || g * 31 % 7 || '/projects/module' || g * 37 % 11 || '/include/component-' || g * 41 % 101 || '/file' || g * 43 % 1009};
my $random = 'md5(g::text)';

# For each shape: the rows, and an expression of the number g of each.
my %shapes = (
	'few values in order' => [ 4000, "repeat($url, 20) || g / 1000" ],
	'few values' => [ 4000, "repeat($url, 20) || g * 7919 % 4" ],
	'one value' => [ 4000, "repeat($url, 20)" ],
	'random ends' => [ 4000, "repeat($url, 20) || $random" ],
	'paths' => [ 10000, $path ],
	'two levels' => [ 4000, "repeat($url, 10) || g * 7919 % 13 || repeat($url, 10) || $random" ],
	'compressed' => [ 400, "repeat($url, 600) || $random" ],
	'compressed, in order' => [ 400, "repeat($url, 600) || lpad(g::text, 8, '0')" ],
	'compressed, in reverse' => [ 400, "repeat($url, 600) || lpad((10000 - g)::text, 8, '0')" ],
	'compressed, few values' => [ 400, "repeat($url, 600) || g * 7919 % 5" ],
	'compressed, that differ early' => [ 400, "$random || repeat($url, 600)" ],
	'numbers' => [ 4000, "repeat('1234567890', 20) || '.' || g * 7919 % 7" ],
	'each the beginning of others' => [ 2000, "repeat('ab', g * 7919 % 1999)" ]);

# Other types that have these values, and clauses.
my %types = (
	'text' => [ '(%s) COLLATE "C"', '' ],
	'descending' => [ '(%s) COLLATE "C"', 'DESC' ],
	'numeric' => [ '(%s)::numeric', '' ],
	'of ICU' => [ '(%s) COLLATE "en-x-icu"', '' ],
	'bytea' => [ '(%s)::bytea', '' ],
	'character' => [ q{(%s || '  ')::bpchar COLLATE "C"}, '' ]);

# The settings of each way to sort.
my %ways = (
	'memory' => 'SET pg_gpusort.backend = cpu; SET pg_gpusort.debug_require = cpu',
	'disk' => q{SET pg_gpusort.backend = cpu; SET pg_gpusort.debug_require = node; SET pg_gpusort.work_mem = '400kB'},
	'GPU' => 'SET pg_gpusort.debug_require = gpu');

# check_work SESSION, STOCK, NAME, MOST: sorts the table "alike" by both, and no more than
# so many times the bytes of its rows are read.
sub check_work
{
	my ($session, $stock, $name, $clause, $most) = @_;
	my $query = "SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM alike ORDER BY k $clause, id OFFSET 0) s";
	my $bytes = $stock->run("SELECT sum(octet_length(k::text)) + count(*) * $bytes_per_row FROM alike");
	my ($done, $times);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->run(q{SET pg_gpusort.debug_work = ''});
	is($session->run($query), $stock->run($query), "$name: rows");
	($done) = $session->run('SHOW pg_gpusort.debug_work') =~ /^\d+ of (\d+)$/;
	$times = ($done // 0) / $bytes;
	ok($times > 0 && $times <= $most, sprintf('%s: bytes are read %.1f times, of %s', $name, $times, $most));
}

my $stock = Session($node, 'SET pg_gpusort.enable = off');
my %sessions = map { $_ => Session($node, $ways{$_}) } keys %ways;

foreach my $shape (sort keys %shapes)
{
	my ($rows, $value) = @{ $shapes{$shape} };

	foreach my $type (sort keys %types)
	{
		next if ($type eq 'numeric') ne ($shape eq 'numbers') or $type eq 'of ICU' && $shape !~ /few|one value|in order/;
		my ($form, $clause) = @{ $types{$type} };
		my $made = sprintf($form, $value);

		$node->safe_psql('postgres',
			"DROP TABLE IF EXISTS alike; CREATE UNLOGGED TABLE alike AS
				SELECT g AS id, $made AS k FROM generate_series(0, $rows - 1) g; ANALYZE alike");
		foreach my $way ($type eq 'text' ? sort keys %ways : 'memory')
		{
			# Comparisons read both values, and so does the merge of runs.
			check_work($sessions{$way}, $stock, "$shape, $type, $way", $clause,
				$way eq 'disk' || $type eq 'of ICU' ? 16 : 6);
		}
	}
}

$node->stop;
done_testing();
