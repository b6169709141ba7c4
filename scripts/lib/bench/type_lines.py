"""The lines that sort by one key of each type, and by several keys: rows with an id in random
order, a tenth of the rows.  scripts/bench types puts the results into docs/types.md."""

from measuring import discarded
from sort_lines import in_parallel
from tables import HEX_12, HEX_20, NAME, make_collations, make_table

TIME = "timestamptz 'epoch' + hashint8(i) * interval '1 second'"

# Keys, by the ends of the names of lines: the type, which docs/types.md calls what is after the comma,
# and the expression.
TYPES = {
    'boolean': ('boolean', 'hashint8(i) > 0'),
    'char': ('"char"', '(hashint8(i) % 128)::"char"'),
    'int2': ('smallint', '(hashint8(i) >> 16)::int2'),
    'int4': ('integer', 'hashint8(i)'),
    'int8': ('bigint', 'hashint8extended(i, 42)'),
    'oid': ('oid', 'hashint8(i)::oid'),
    'float4': ('real', '(hashint8(i) / 7.0::float8)::float4'),
    'float8': ('double precision', 'hashint8(i) / 7.0::float8'),
    'money': ('money', 'hashint8(i)::money'),
    'date': ('date', "date '2000-01-01' + hashint8(i) % 100000"),
    'timestamptz': ('timestamptz', TIME),
    'time': ('time', "time '00:00' + hashint8(i) * interval '1 ms'"),
    'timetz': ('timetz', "timetz '00:00+02' + hashint8(i) * interval '1 ms'"),
    'interval': ('interval', "hashint8(i) * interval '1 second'"),
    'enum': ('ENUM', "('label ' || (hashint8(i) & 255))::label"),
    'uuid': ('uuid', 'md5(i::text)::uuid'),
    'pg_lsn': ('pg_lsn', "format('%s/%s', to_hex(hashint8(i)), to_hex(hashint8(i + 1)))::pg_lsn"),
    'tid': ('tid', "format('(%s,%s)', hashint8(i) & 1048575, 1 + (hashint8(i + 1) & 127))::tid"),
    'macaddr': ('macaddr', f'{HEX_12}::macaddr'),
    'text': ('text, C', f'({NAME}) COLLATE "C"'),
    'text_libc': ('text, en_US.utf8', f'({NAME}) COLLATE english'),
    'text_icu': ('text, en-x-icu', f'({NAME}) COLLATE "en-x-icu"'),
    'bpchar': ('character(n)', f'({NAME})::character(40) COLLATE "C"'),
    'bytea': ('bytea', "decode(md5(i::text), 'hex')"),
    'numeric': ('numeric', '(hashint8extended(i, 42) % 1000000000000 / 1000.0)::numeric(20, 3)'),
    'inet': ('inet', "inet '128.0.0.0' + hashint8(i)"),
    'varbit': ('bit varying', '(hashint8extended(i, 42)::bit(64) || hashint8(i)::bit(32))'),
    'int_array': ('int[]', """ARRAY[hashint8(i) & 7, hashint8(i + 1) & 7, hashint8(i + 2),
        hashint8(i + 3), hashint8(i + 4)]"""),
    'text_array': ('text[]', f"""ARRAY['tag ' || (hashint8(i) & 63), 'part ' || (hashint8(i + 1) & 63),
        {HEX_12}] COLLATE "C\""""),
    'record': ('record', f'(hashint8(i) & 1023, {HEX_12})::pair'),
    'range': ('tstzrange', f"tstzrange({TIME}, {TIME} + interval '1 day')"),
    'multirange': ('int4multirange', """int4multirange(int4range(hashint8(i) >> 8, (hashint8(i) >> 8) + 9),
        int4range(10000000, 10000000 + (hashint8(i + 1) & 1023)))"""),
    'jsonb': ('jsonb', f"""jsonb_build_object('city', 'city ' || (hashint8(i) & 63), 'code', {HEX_12},
        'items', hashint8(i + 1) & 15, 'paid', hashint8(i + 2) > 0, 'price', (hashint8(i + 3) & 1023) / 4.0)"""),
    'tsvector': ('tsvector', f"""to_tsvector('simple', concat_ws(' ', 'word' || (hashint8(i) & 1023),
        'term' || (hashint8(i + 1) & 255), {HEX_12}))"""),
}

# Types that are made for lines: an enum, by the first statement's result, and a composite type.
MAKE_LABEL = """
    SELECT format('CREATE TYPE label AS ENUM (%s)', string_agg(quote_literal('label ' || i), ', ' ORDER BY i))
    FROM generate_series(0, 255) AS i"""
MAKE_PAIR = 'CREATE TYPE pair AS (n int4, t text COLLATE "C")'

# Of types without an encoding, the sort is divided among the leader and one worker.
WITH_WORKER = ('type_tsvector',)

# Keys of several types.  In the second table those before h have twelve values together.
H = '(hashint8(i) & 131071)'
KEY_COLUMNS = {
    'keys_random': f"""i AS id, date '2000-01-01' + hashint8(i) % 10000 AS a, {HEX_20} COLLATE "C" AS b,
        hashint8(i + 1) AS c, (hashint8(i + 2) / 100.0)::numeric(12, 2) AS d, hashint8(i + 3) > 0 AS e,
        {TIME} AS f, md5(i::text)::uuid AS g, hashint8extended(i, 42) AS h""",
    'keys_equal': f"""i AS id, date '2026-01-01' + ({H} & 1) AS a,
        ('department of region ' || {H} / 2 % 3) COLLATE "C" AS b, {H} / 6 % 2 AS c,
        12.34::numeric(12, 2) AS d, true AS e, timestamptz '2026-01-01' AS f,
        uuid '12345678-1234-1234-1234-123456789012' AS g, {H}::int8 AS h""",
}


def rows_of(bench):
    return bench.rows // 10


def key_of(line):
    """Returns the type and the expression of the line's key."""
    return TYPES[line.removeprefix('type_')]


def name_of(line):
    """Returns the name of the line's type in docs/types.md."""
    return key_of(line)[0].rpartition(', ')[2]


def make_types(server):
    make_collations(server)
    if server.sql("SELECT to_regtype('pair') IS NULL") == 't':
        server.sql(server.sql(MAKE_LABEL), MAKE_PAIR)


def measure_type(bench, line, what):
    query = f'SELECT * FROM {line} ORDER BY k'
    make_types(bench.server)
    make_table(bench.server, line, rows_of(bench), f'i AS id, {key_of(line)[1]} AS k')
    # Some types cannot be hashed, so results are compared as text.
    bench.table.measure(line, rows_of(bench), what,
                        f'SELECT id, k::text AS k FROM ({query} OFFSET 0) AS s', discarded(query), keys='(r).k')
    bench.server.sql(f'DROP TABLE {line}')


def type_line(bench, line):
    what = f'id, {key_of(line)[0]}'
    if line in WITH_WORKER:
        with in_parallel(bench, 1):
            measure_type(bench, line, f'{what}, up to 1 worker')
    else:
        measure_type(bench, line, what)


def keys_line(bench, line):
    """Sorts by the first keys and the last one, or groups by them and sorts the groups."""
    kind, number, *_ = line.split('_')
    table = 'keys_equal' if kind == 'group' or line.endswith('equal') else 'keys_random'
    keys = [*'abcdefg'[:int(number) - 1], 'h']
    grouped = ', '.join(keys)
    order = grouped.replace('b,', 'b DESC,')
    make_table(bench.server, table, rows_of(bench), KEY_COLUMNS[table])
    if kind == 'group':
        what = f'GROUP BY, ORDER BY {number} keys'
        query = f'SELECT {grouped}, count(*), sum(id) FROM {table} GROUP BY {grouped} ORDER BY {order}'
    else:
        what = f'{number} keys of {number} types, id'
        query = f'SELECT * FROM {table} ORDER BY {order}'
    bench.table.measure(line, rows_of(bench), what, query, keys=', '.join(f'(r).{key}' for key in keys))


LINES = {
    **{f'type_{name}': type_line for name in TYPES},
    **dict.fromkeys(('keys_3', 'keys_5', 'keys_8', 'keys_3_equal', 'keys_5_equal', 'keys_8_equal',
                     'group_5', 'group_8'), keys_line),
}
