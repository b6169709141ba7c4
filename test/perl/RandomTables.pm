# Random tables, of columns with random types, distributions and NULLs.

package RandomTables;

use strict;
use warnings;

use Exporter 'import';
use RandomCases;

our @EXPORT = qw(one_of chance number some_of random_table random_key with_nulls);

# ---- Choosing ----

sub one_of { return $_[ rand @_ ]; }
sub chance { return rand() < $_[0]; }
sub number { my ($low, $high) = @_; return $low + int rand($high - $low + 1); }

# Some of a list, at least one, in random order.
sub some_of
{
	my ($most, @list) = @_;
	my @chosen;

	$most = @list if $most > @list;
	push @chosen, splice(@list, int rand @list, 1) for 1 .. number(1, $most);
	return @chosen;
}

# ---- Columns ----

# Types that can be the first key, some of them of test/random/types.sql: how they are made from an int8 expression.
my %key_types = (
	'bool' => sub { "($_[0] % 2 = 0)" },
	'"char"' => sub { "($_[0] % 128)::int::\"char\"" },
	'int2' => sub { "($_[0] % 32768)::int2" },
	'int4' => sub { "($_[0] % 2147483648)::int4" },
	'int8' => sub { $_[0] },
	'oid' => sub { "abs($_[0] % 4294967296)::oid" },
	'float4' => sub { "float4_of_bits(($_[0] % 2147483648)::int4)" },
	'float8' => sub { "float8_of_bits($_[0])" },
	'float8 ' => sub { "($_[0] / 7.0::float8)" },
	'date' => sub { "(CASE WHEN $_[0] % 50 = 7 THEN 'infinity' ELSE date '2000-01-01' + ($_[0] % 200000)::int END)" },
	'time' => sub { "(time '00:00' + ($_[0] % 86400000) * interval '1 ms')" },
	'timestamp' => sub { "(CASE WHEN $_[0] % 50 = 7 THEN '-infinity' ELSE timestamp '2000-01-01' + ($_[0] % 100000000000000) * interval '1 us' END)" },
	'timestamptz' => sub { "(timestamptz '2000-01-01 00:00+00' + ($_[0] % 100000000) * interval '1 s')" },
	'money' => sub { "($_[0] / 1000)::money" },
	'xid8' => sub { "lpad(trim(leading '-' from ($_[0])::text), 1, '0')::xid8" },
	'macaddr' => sub { "right(lpad(to_hex($_[0]), 12, '0'), 12)::macaddr" },
	'macaddr8' => sub { "lpad(to_hex($_[0]), 16, '0')::macaddr8" },
	'a_domain' => sub { "($_[0] % 1000)::int4::a_domain" },
	'uuid' => sub { "md5(($_[0])::text)::uuid" },
	'interval' => sub { "make_interval(months => ($_[0] % 50)::int, days => ($_[0] % 1000)::int, secs => $_[0] % 100000)" },
	'timetz' => sub { "((time '00:00' + ($_[0] % 86400) * interval '1 s')::text || '+' || abs($_[0] % 15))::timetz" },
	'pg_lsn' => sub { "(pg_lsn '0/0' + abs($_[0] / 2)::numeric)" },
	'enum' => sub { "(ARRAY['low', 'middle', 'high', 'highest']::a_level[])[1 + abs($_[0] % 4)]" },
	'text of C' => sub { "substr(md5(($_[0])::text), 1, abs($_[0] % 33)::int) COLLATE \"C\"" },
	'text of C, alike' => sub { "(repeat('so much in common ', abs($_[0] % 4)::int) || $_[0] % 1000) COLLATE \"C\"" },
	'text of ICU' => sub { "(CASE WHEN $_[0] % 2 = 0 THEN 'Ünïcode ' ELSE 'unicode ' END || $_[0] % 1000) COLLATE \"en-x-icu\"" },
	'character' => sub { "(left(md5(($_[0])::text), abs($_[0] % 12)::int) || '  ')::char(20) COLLATE \"C\"" },
	'name' => sub { "('n' || $_[0])::name" },
	'bytea' => sub { "substr(decode(repeat(to_hex($_[0] & 65535 | 65536), 2) || '0000', 'hex'), 1, abs($_[0] % 8)::int)" },
	'numeric' => sub { "(($_[0])::numeric / 977)" },
	'numeric of all sizes' => sub { "(CASE abs($_[0] % 9) WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN 0 ELSE ($_[0] % 1000) * 10::numeric ^ ($_[0] % 300)::int END)" },
	'numeric of some scales' => sub { "(CASE WHEN $_[0] % 2 = 0 THEN ($_[0] % 100)::numeric ELSE ($_[0] % 100)::numeric(10, 4) END)" },
	'float8 of zeros' => sub { "(ARRAY['-0', '0', 'nan', '1', '-1']::float8[])[1 + abs($_[0] % 5)]" },
	'inet' => sub { "(inet '0.0.0.0' + abs($_[0] % 4294967296))" },
	'inet with masks' => sub { "set_masklen(inet '10.0.0.0' + abs($_[0] % 65536), abs($_[0] % 33)::int)" },
	'varbit' => sub { "substring(($_[0])::bit(64)::varbit, 1, abs($_[0] % 70)::int)" },
);

# Types that can be keys behind others.
my @other_types = (
	sub { "to_jsonb($_[0] % 100)" },
	sub { "ARRAY[$_[0] % 10, NULL, $_[0] % 3]" },
	sub { "ROW($_[0] % 20, 'text')::a_pair" },
	sub { "int8range(least($_[0] % 100, 50), 60)" });

# Types that rows carry along.
my @payload_types = (
	sub { "md5(($_[0])::text)" },
	sub { "repeat('x', abs($_[0] % 300)::int)" },
	sub { "repeat(md5(($_[0])::text), abs($_[0] % 20)::int)" },
	sub { "decode(md5(($_[0])::text), 'hex')" },
	sub { "($_[0])::numeric / 977" },
	sub { "ARRAY[$_[0], NULL, 3]" },
	sub { "ROW($_[0], 'text')::a_pair" },
	sub { "('n' || $_[0])::name" },
	sub { "make_interval(secs => $_[0] % 1000000)" },
	sub { "md5(($_[0])::text)::uuid" },
	sub { "jsonb_build_object('h', $_[0])" },
	sub { "point($_[0], 1)" },
	sub { "int8range($_[0], NULL)" },
	sub { "timetz '12:00+03'" },
	sub { "NULL::text" });

# Types whose equal values may look different.
my %alike = map { $_ => 1 } 'float4', 'float8', 'float8 ', 'numeric',
  'numeric of all sizes', 'numeric of some scales', 'float8 of zeros', 'interval';

sub random_hash { return 'hashint8extended(g, ' . number(0, 1 << 30) . ' + :seed)'; }

# An int8 expression over the row number g, of a random distribution.
sub random_number
{
	my $hash = random_hash();
	my $other = random_hash();

	return one_of(
		$hash, $hash,
		"($hash % " . one_of(1, 2, 3, 10, 100, 5000) . ')',
		'g::int8', '(-g)::int8', "(g / " . number(2, 50) . ')::int8',
		"($hash & " . (1 << number(0, 40)) . ')',
		"(($hash & 255) << " . number(0, 55) . ')',
		"($hash % (1 + abs($other % 50)))",
		"(CASE WHEN g % 100 = 0 THEN $hash ELSE g END)",
		"(CASE g % 7 WHEN 0 THEN -9223372036854775808 WHEN 1 THEN 9223372036854775807 WHEN 2 THEN 0 ELSE $hash END)",
		'42::int8');
}

sub with_nulls
{
	my ($value) = @_;
	my $part = one_of(0, 0, 0, 10, 50, 100);

	return $value if $part == 0;
	return 'CASE WHEN abs(' . random_hash() . " % 100) >= $part THEN $value END";
}

# random_table NUMBER, PARAMETERS: a table with :rowsNUMBER rows, as a hash:
#	name
#	columns		hashes of name, type, value (an expression of the row number g),
#				exact, which says whether equal values are identical, and its
#				element in the list of columns
#	keys		those that can be the first key, without id
#	pieces		that make the table
# Besides, each table has the columns id, which is unique, and o1.
sub random_table
{
	my ($number, $parameters) = @_;
	my @keys = map { random_key("k$_") } 1 .. number(1, 7);
	my @columns = (@keys, map { random_payload("p$_") } 1 .. number(0, 4));
	my @list;

	push @columns, { name => 'o1', type => 'other',
		value => with_nulls(one_of(@other_types)->(random_number())) };
	$_->{element} = element("$_->{value} AS $_->{name}") foreach @columns;
	@list = map { $_->{element} } @columns;
	splice @list, int rand(@list + 1), 0, 'g AS id';
	return {
		name => "t$number",
		columns => \@columns,
		keys => \@keys,
		pieces => [
			"CREATE TABLE t$number" . ($parameters // '') . ' AS SELECT ' . list_of(@list)
			  . "\n\tFROM generate_series(1, :rows$number) g;\n",
			chance(0.7) ? ("ANALYZE t$number;\n") : () ],
	};
}

sub random_key
{
	my ($name) = @_;
	my $type = one_of(sort keys %key_types);

	return { name => $name, type => $type, exact => !$alike{$type},
		value => with_nulls($key_types{$type}->(random_number())) };
}

sub random_payload
{
	my ($name) = @_;

	return { name => $name, type => 'payload',
		value => with_nulls(one_of(@payload_types)->(random_number())) };
}

1;
