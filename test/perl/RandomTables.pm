# Random tables: columns of random types, with random distributions and NULLs.

package RandomTables;

use strict;
use warnings;

use Exporter 'import';
use RandomCases;

our @EXPORT = qw(one_of chance number some_of key_types random_table random_locale
  random_value with_nulls);

# ---- Choosing ----

sub one_of { return $_[ rand @_ ]; }
sub chance { return rand() < $_[0]; }
sub number { my ($low, $high) = @_; return $low + int rand($high - $low + 1); }

# Returns some elements of a list, at least one, in random order.
sub some_of
{
	my ($most, @list) = @_;
	my @chosen;

	$most = @list if $most > @list;
	push @chosen, splice(@list, int rand @list, 1) for 1 .. number(1, $most);
	return @chosen;
}

# ---- Columns ----

# Types that can be the first key, some of them from test/random/types.sql, and how to
# make their values from an int8 expression.
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
	'tid' => sub { "('(' || abs($_[0] % 4294967296) || ',' || abs($_[0] % 65536) || ')')::tid" },
	'timetz' => sub { "((time '00:00' + ($_[0] % 86400) * interval '1 s')::text || '+' || abs($_[0] % 15))::timetz" },
	'pg_lsn' => sub { "(pg_lsn '0/0' + abs($_[0] / 2)::numeric)" },
	'enum' => sub { "(ARRAY['low', 'middle', 'high', 'highest']::a_level[])[1 + abs($_[0] % 4)]" },
	'enum of many labels' => sub { "('rank ' || abs($_[0] % 62))::a_rank" },
	'text of C' => sub { "substr(md5(($_[0])::text), 1, abs($_[0] % 33)::int) COLLATE \"C\"" },
	'text of C, alike' => sub { "(repeat('so much in common ', abs($_[0] % 4)::int) || $_[0] % 1000) COLLATE \"C\"" },
	'text of C, alike for long' => sub { "(repeat('a/path/', abs($_[0] % 5)::int * 30) || $_[0] % 40 || repeat('/more', abs($_[0] % 3)::int)) COLLATE \"C\"" },
	'text of C, compressed' => sub { "(repeat('so much in common ', 300) || $_[0] % 1000) COLLATE \"C\"" },
	'text of ICU' => sub { "(CASE WHEN $_[0] % 2 = 0 THEN 'Ünïcode ' ELSE 'unicode ' END || $_[0] % 1000) COLLATE \"en-x-icu\"" },
	'text of a locale' => sub { "locale_text($_[0]) COLLATE " . random_locale() },
	'text of a locale, alike' => sub { "(repeat('so much in common ', abs($_[0] % 4)::int) || locale_text($_[0] % 1000)) COLLATE " . random_locale() },
	'text of ICU, of all scripts' => sub { "locale_text($_[0]) COLLATE " . one_of(qw("en-x-icu" "de-x-icu" "cs-x-icu" "ja-x-icu" "th-x-icu" "und-x-icu")) },
	'text of C with zero bytes' => sub { "zero_text($_[0]) COLLATE \"C\"" },
	'character of C with zero bytes' => sub { "zero_text($_[0])::bpchar COLLATE \"C\"" },
	'character of a locale' => sub { "rpad(locale_text($_[0]), 20)::char(30) COLLATE " . random_locale() },
	'citext of C' => sub { "(CASE WHEN $_[0] % 3 = 0 THEN upper(md5(($_[0])::text)) ELSE substr(md5(($_[0])::text), 1, abs($_[0] % 12)::int) END)::citext COLLATE \"C\"" },
	'citext of a locale' => sub { "(CASE WHEN $_[0] % 2 = 0 THEN upper(locale_text($_[0] / 2)) ELSE locale_text($_[0] / 2) END)::citext COLLATE " . random_locale() },
	'name of a locale' => sub { "left(locale_text($_[0]), 15)::name COLLATE " . random_locale() },
	'character' => sub { "(left(md5(($_[0])::text), abs($_[0] % 12)::int) || '  ')::char(20) COLLATE \"C\"" },
	'name' => sub { "('n' || $_[0])::name" },
	'bytea' => sub { "substr(decode(repeat(to_hex($_[0] & 65535 | 65536), 2) || '0000', 'hex'), 1, abs($_[0] % 8)::int)" },
	'bytea, alike for long' => sub { "decode(repeat('00ff', abs($_[0] % 90)::int) || repeat('00', abs($_[0] % 4)::int), 'hex')" },
	'numeric' => sub { "(($_[0])::numeric / 977)" },
	'numeric of all sizes' => sub { "numeric_of_all_sizes($_[0])" },
	'numeric of some scales' => sub { "(CASE WHEN $_[0] % 2 = 0 THEN ($_[0] % 100)::numeric ELSE ($_[0] % 100)::numeric(10, 4) END)" },
	'float8 of zeros' => sub { "(ARRAY['-0', '0', 'nan', '1', '-1']::float8[])[1 + abs($_[0] % 5)]" },
	'inet' => sub { "(inet '0.0.0.0' + abs($_[0] % 4294967296))" },
	'inet with masks' => sub { "set_masklen(inet '10.0.0.0' + abs($_[0] % 65536), abs($_[0] % 33)::int)" },
	'cidr' => sub { "network(set_masklen(inet '2001:db8::' + abs($_[0] % 65536), abs($_[0] % 129)::int))" },
	'bit' => sub { "($_[0] % 1000000)::bit(70)" },
	'varbit' => sub { "substring(($_[0])::bit(64)::varbit, 1, abs($_[0] % 70)::int)" },
);

# Types that consist of others.  Their parts have few values, so that many have the first ones in common.
my @part_types = ('bool', 'int4', 'int8', 'float8 of zeros', 'timestamp', 'interval', 'uuid', 'enum', 'text of C', 'text of ICU',
	'text of a locale', 'text of C with zero bytes', 'character', 'citext of a locale', 'name', 'bytea', 'numeric',
	'numeric of all sizes', 'numeric of some scales', 'inet', 'varbit');

# random_part NUMBER, PLACE: an expression for the part of a value with this number.
sub random_part
{
	my ($number, $place, @types) = @_;
	my $type = one_of(@types ? @types : @part_types);
	my $part = $key_types{$type}->("(hashint8extended($number, $place) % " . one_of(2, 3, 3, 10, 1000) . ')');

	return chance(0.7) ? $part : "(CASE WHEN abs(hashint8extended($number, 9$place) % 4) > 0 THEN $part END)";
}

sub random_array
{
	my ($number, @types) = @_;
	my @type = (one_of(@types ? @types : @part_types));
	my $array = 'ARRAY[' . join(', ', map { random_part($number, $_, @type) } 1 .. 4) . ']';

	return chance(0.8) ? "(($array)[1:abs($number % 5)::int])" :
		"(CASE abs($number % 4) WHEN 0 THEN ($array)[1:2] WHEN 1 THEN ARRAY[($array)[1:2], ($array)[2:3]] WHEN 2 THEN array_fill(($array)[1], '{2}', '{0}') ELSE $array END)";
}

my @one_collation = grep { $_ !~ /locale/ } @part_types;
$key_types{'array'} = sub { random_array($_[0], @one_collation) };
$key_types{'array of a locale'} = sub {
	my $collation = random_locale();

	return '(ARRAY[' . join(', ', map { "locale_text(hashint8extended($_[0], $_) % 5)" } 1 .. 3) . "] COLLATE $collation)";
};
$key_types{'row'} = sub { my $n = $_[0]; 'ROW(' . join(', ', map { random_part($n, $_) } 1 .. number(1, 4)) . ", $n % 5)" };
$key_types{'record'} = sub { "ROW($_[0] % 4, zero_text($_[0] % 5), CASE WHEN $_[0] % 3 > 0 THEN ARRAY[$_[0] % 7, NULL]::numeric[] END, locale_text($_[0] % 9), ROW($_[0] % 2, 'b'))::a_record" };
$key_types{'range'} = sub {
	my ($lower, $upper) = map { "abs(hashint8extended($_[0], $_) % 9) " } 1, 2;
	my $type = one_of('numrange', 'int8range');
	my $bounds = "one_of('{[],(),[),(]}'::text[], $_[0])";

	return "(CASE abs($_[0] % 6) WHEN 0 THEN 'empty' WHEN 1 THEN $type(NULL, $upper, $bounds) WHEN 2 THEN $type($lower, NULL, $bounds) ELSE $type($lower, 8 + $upper, $bounds) END)";
};
# An update can give each part another number.
$key_types{'range of texts'} = sub {
	my ($lower, $upper) = ("one_of('{a,A,b}'::text[], hashint8extended($_[0], 1))", "one_of('{B,é,zz}'::text[], hashint8extended($_[0], 2))");

	return "a_range(CASE WHEN $_[0] % 7 <> 0 THEN $lower END, $upper, one_of('{[],(),[),(]}'::text[], $_[0]))";
};
$key_types{'multirange'} = sub { "(SELECT range_agg(int8range(abs($_[0] % 4), 4 + abs(h % 20)) ORDER BY h) FROM hashint8extended($_[0], 1) h, generate_series(1, 1 + abs($_[0] % 3)))" };
$key_types{'document'} = sub { "a_document($_[0], 3)" };

# Extreme values of these types, and others at which an encoding changes: the SQL type,
# the elements of an array, and an expression that is appended to the array.
my $texts = '"",a,b,B,~,"a ",é,ÿ,𝄞,aaaaaaa,aaaaaaaa,aaaaaaab,aaaaaaaaa,aaaaaaaab';
my $long_texts = join ',', map { ('x' x 600) . $_ } '', 'y', 'z';
my @magnitudes = qw(1e131071 9.99999999999999999e131071 1e-16383 9e-16383 1e244 1.00000000000000001e244
  9.99999999999999999e243 1e240 1e-240 9.99999999999999999e-241 1.00000000000000001e-241 1e-244 1e19 1e-19);
my @long_numbers = map { ("1.$_", "1.${_}1", "1.${_}2") } '0' x 11, '9' x 15, '0' x 400;
my $numbers = join ',', 'NaN', 'Infinity', '-Infinity', '0', '0.00', '1', '-1', '-1.000', '0.0001', '0.00010', '9999', '10000',
  map { ($_, "-$_") } @magnitudes, @long_numbers;
my %extremes = (
	'"char"' => [ '"char"', '"",a,"\\001","\\177","\\200","\\377"' ],
	'int2' => [ 'int2', '-32768,-32767,-1,0,1,32766,32767' ],
	'int4' => [ 'int4', '-2147483648,-2147483647,-1,0,1,2147483646,2147483647' ],
	'int8' => [ 'int8', '-9223372036854775808,-9223372036854775807,-1,0,1,9223372036854775806,9223372036854775807' ],
	'a_domain' => [ 'a_domain', '-2147483648,0,2147483647' ],
	'oid' => [ 'oid', '0,1,2147483647,2147483648,4294967294,4294967295' ],
	'float4' => [ 'float4', '-inf,-3.4028235e38,-1.1754944e-38,-1.1754942e-38,-1e-45,-0,0,1e-45,1.1754942e-38,1.1754944e-38,1,3.4028235e38,inf,nan' ],
	'float8' => [ 'float8', '-inf,-1.7976931348623157e308,-2.2250738585072014e-308,-2.225073858507201e-308,-5e-324,-0,0,5e-324,2.225073858507201e-308,2.2250738585072014e-308,1,1.7976931348623157e308,inf,nan' ],
	'date' => [ 'date', '-infinity,4714-11-24 BC,0001-12-31 BC,0001-01-01,1999-12-31,2000-01-01,5874897-12-31,infinity' ],
	'time' => [ 'time', '00:00,00:00:00.000001,23:59:59.999999,24:00' ],
	'timetz' => [ 'timetz', '00:00+15:59:59,00:00-15:59:59,24:00+15:59:59,24:00-15:59:59,12:00+00,13:00+01,11:00-01,12:00:00.000001+00' ],
	'timestamp' => [ 'timestamp', '-infinity,4714-11-24 00:00 BC,4714-11-24 00:00:00.000001 BC,1999-12-31 23:59:59.999999,2000-01-01 00:00,294276-12-31 23:59:59.999999,infinity' ],
	'timestamptz' => [ 'timestamptz', '-infinity,4714-11-24 00:00+00 BC,1999-12-31 23:59:59.999999+00,2000-01-01 00:00+00,294276-12-31 23:59:59.999999+00,infinity' ],
	'interval' => [ 'interval', '-178956970 years -7 mons -2147483648 days -2562047788:00:54.775807,178956970 years 6 mons 2147483647 days 2562047788:00:54.775807,'
		. '178956970 years,-178956970 years,2147483647 days,-2147483648 days,2562047788:00:54.775807,-2562047788:00:54.775807,'
		. '0,00:00:00.000001,-00:00:00.000001,24:00,1 day,-1 day 24:00,1 mon,30 days,720:00,28 days 23:59:59.999999,29 days,29 days 00:00:01,29 days 23:59:59.999999', ' || infinite_intervals()' ],
	'money' => [ 'money', '-92233720368547758.08,-0.01,0,0.01,92233720368547758.07' ],
	'xid8' => [ 'xid8', '0,1,9223372036854775807,9223372036854775808,18446744073709551615' ],
	'pg_lsn' => [ 'pg_lsn', '0/0,0/1,0/FFFFFFFF,1/0,7FFFFFFF/FFFFFFFF,80000000/0,FFFFFFFF/FFFFFFFF' ],
	'tid' => [ 'tid', '"(0,0)","(0,1)","(0,65535)","(1,0)","(2147483648,1)","(4294967295,65535)"' ],
	'uuid' => [ 'uuid', join ',', '0' x 32, 'f' x 32, '00000000-0000-0000-ffff-ffffffffffff', '00000000-0000-0001-0000-000000000000' ],
	'macaddr' => [ 'macaddr', '00:00:00:00:00:00,00:00:00:00:00:01,80:00:00:00:00:00,ff:ff:ff:ff:ff:ff' ],
	'macaddr8' => [ 'macaddr8', '00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,80:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff' ],
	'text of C' => [ 'text', "$texts,$long_texts" ],
	'text of ICU' => [ 'text', "$texts,$long_texts" ],
	'text of a locale' => [ 'text', "$texts,$long_texts" ],
	'character' => [ 'bpchar', "$texts," . 'x' x 20 . ',' . 'x' x 19 . 'y' ],
	'name' => [ 'name', "$texts," . 'x' x 63 . ',' . 'x' x 62 . 'y' ],
	'bytea' => [ 'bytea', join ',', map { "\"\\\\x$_\"" } '', '00', '0000', '61', '6100', '61626364656667', '6162636465666700',
		'616263646566670000', '61626364656768', 'ff', 'ff' x 300, 'ff' x 299 ],
	'numeric' => [ 'numeric', $numbers ],
	'numeric of all sizes' => [ 'numeric', $numbers ],
	'inet' => [ 'inet', '0.0.0.0/0,0.0.0.0,255.255.255.255,255.255.255.255/0,::/0,::,::1,::1/64,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/0' ],
	'inet with masks' => [ 'inet', '10.0.0.0/8,10.0.0.1/8,10.255.255.255/8,10.0.0.0/9,10.128.0.0/9,10.0.0.0,10.0.0.0/31' ],
	'cidr' => [ 'cidr', '0.0.0.0/0,10.0.0.0/8,10.0.0.0/9,10.0.0.0/32,255.255.255.255/32,::/0,::/128,2001:db8::/32,2001:db8::/33,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128' ],
	'varbit' => [ 'varbit', '"",0,00,1,10,10000000,100000000,' . join ',', '1' x 64, '1' x 65, '1' x 64 . '0', '0' x 65, '1' x 700 ]
);

# Types that can be later keys.
my @other_types = (
	sub { "to_jsonb($_[0] % 100)" },
	sub { "ARRAY[$_[0] % 10, NULL, $_[0] % 3]" },
	sub { "ROW($_[0] % 20, 'text')::a_pair" },
	sub { "int8range(least($_[0] % 100, 50), 60)" });

# Types of columns that are not keys.
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
  'numeric of all sizes', 'numeric of some scales', 'float8 of zeros', 'interval', 'character', 'character of a locale',
  'citext of C', 'citext of a locale', 'array', 'array of a locale', 'row', 'record', 'range', 'range of texts', 'multirange', 'document';

# Returns one of the collations of test/random/types.sql.
sub random_locale { return chance(0.6) ? 'locale_' . number(1, 24) : 'icu_' . number(1, 16); }

sub random_hash { return 'hashint8extended(g, ' . number(0, 1 << 30) . ' + :seed)'; }

# Returns an int8 expression of the row number g, with a random distribution.
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

# Returns a piece after which the planner expects any number of rows of a table.
sub misjudge
{
	my ($table) = @_;
	my $rows = one_of(1, 300, 1e6, 1e9, 1e19, 1e30, 3e38);

	return "UPDATE pg_class SET reltuples = $rows, relpages = pg_relation_size(oid) / 8192 WHERE oid = '$table'::regclass;\n";
}

# random_table NUMBER, PARAMETERS: a table with :rowsNUMBER rows, as a hash:
#	name
#	columns		hashes of name, type, value (an expression of the row number g),
#				exact, which says whether equal values are identical, and its
#				element in the list of columns
#	keys		those that can be the first key, without id
#	misjudged	whether the planner expects any number of rows
#	pieces		that make the table
# Besides, each table has the columns id, which is unique, and o1.
sub random_table
{
	my ($number, $parameters) = @_;
	my @keys = map { random_key("k$_") } 1 .. number(1, 7);
	my @columns = (@keys, map { random_payload("p$_") } 1 .. number(0, 4));
	my (@list, @judged, $misjudged);

	push @columns, { name => 'o1', type => 'other',
		value => with_nulls(one_of(@other_types)->(random_number())) };
	$_->{element} = element("$_->{value} AS $_->{name}") foreach @columns;
	@list = map { $_->{element} } @columns;
	splice @list, int rand(@list + 1), 0, 'g AS id';
	push @judged, "ANALYZE t$number;\n" if chance(0.7);
	$misjudged = chance(0.1);
	push @judged, misjudge("t$number") if $misjudged;
	return {
		name => "t$number",
		columns => \@columns,
		keys => \@keys,
		misjudged => $misjudged,
		pieces => [
			"CREATE TABLE t$number" . ($parameters // '') . ' AS SELECT ' . list_of(@list)
			  . "\n\tFROM generate_series(1, :rows$number) g;\n",
			@judged ],
	};
}

sub key_types { return sort keys %key_types; }

# Returns an expression for a random value of one of the key types.
sub random_value
{
	my ($type) = @_;
	my $value = $key_types{$type}->(random_number());

	if (exists $extremes{$type} && chance(0.7))
	{
		my ($sql_type, $list, $more) = @{ $extremes{$type} };

		$value = 'CASE WHEN ' . random_hash() . ' % ' . one_of(1, 3, 20, 200)
		  . " = 0 THEN one_of('{$list}'::${sql_type}[]" . ($more // '') . ', '
		  . random_hash() . ") ELSE $value END";
	}
	return with_nulls($value);
}

sub random_key
{
	my ($name) = @_;
	# A column has no type record.
	my $type = one_of(grep { $_ ne 'row' } sort keys %key_types);

	return { name => $name, type => $type, exact => !$alike{$type}, value => random_value($type) };
}

sub random_payload
{
	my ($name) = @_;

	return { name => $name, type => 'payload',
		value => with_nulls(one_of(@payload_types)->(random_number())) };
}

1;
