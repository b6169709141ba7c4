"""Tables that lines sort.  Columns are expressions of i, the number of the row."""

# The key of most tables.
KEYS = {
    'uniform': 'hashint8extended(i, 42)',
    'sorted': 'i',
    'reversed': '-i',
    'few': '(hashint8extended(i, 42) & 1023) % 1000',
}

WIDE_COLUMNS = """hashint8(i) AS i4, hashint8(i + 1) / 7.0::float8 AS f8,
    timestamptz 'epoch' + hashint8(i + 2) * interval '1 second' AS ts,
    'text ' || i AS t"""

# Strings of random hexadecimal digits.
HEX_20 = 'substr(md5(i::text) || md5((-i)::text), 1, 20)'
HEX_12 = 'substr(md5(i::text), 1, 12)'

# 15 columns, of which one in seven is NULL.
ORDINARY_COLUMNS = """i AS id, hashint8extended(i, 7) AS k8, i % 100 AS a, i % 1000 AS b,
    hashint8(i) / 7.0::float8 AS f, timestamptz 'epoch' + i * interval '1 second' AS ts,
    'customer ' || i AS c1, 'street ' || (i % 1000) AS c2, NULL::text AS c3,
    'some comment text of forty characters ...' AS c4, (i % 10000)::numeric(12, 2) AS n,
    i % 2 = 0 AS bo, 'x' || i % 7 AS c5, NULL::int4 AS e,
    date '2020-01-01' + (i % 1000)::int AS d"""
SIX_COLUMNS = """i AS id, hashint8(i) AS i4, hashint8(i) / 7.0::float8 AS f,
    substr(md5(i::text), 1, 20) COLLATE "C" AS x, (i % 100000)::numeric(12, 2) AS n,
    i % 1000 AS few"""
LONG_COLUMNS = 'i AS id, md5((i * 7)::text)::uuid AS u, repeat(md5(i::text), 6) AS long'

# Names of about 24 characters, nearly all of them distinct.
NAME = """initcap((ARRAY['smith', 'johnson', 'williams', 'brown', 'jones', 'garcia', 'miller',
        'davis', 'rodriguez', 'martinez', 'o''connor', 'lopez', 'müller', 'wilson', 'anderson',
        'thomas'])[1 + (hashint8(i) & 15)]
    || (ARRAY['', '-', 'son ', 'ova '])[1 + (hashint8(i + 1) & 3)]
    || substr(md5(i::text), 1, 5)) || ', '
    || (ARRAY['James', 'Mary', 'Robert', 'Patricia', 'José', 'Jennifer', 'Zoë',
        'Linda'])[1 + (hashint8(i + 2) & 7)]
    || ' ' || substr(md5((i * 7)::text), 1, 3)"""

# The same with 10000 distinct ones, in random order.
FEW_NAMES = (NAME
             .replace('i::text', '(hashint8extended(i, 5) % 5000)::text')
             .replace('hashint8(i', 'hashint8(hashint8extended(i, 5) % 5000')
             .replace('(i * 7)', '(hashint8extended(i, 5) % 5000 * 7)'))


def make_table(server, name, rows, columns, logged=False):
    """Creates the table unless it exists."""
    if server.has_table(name):
        return
    kind = '' if logged else 'UNLOGGED'
    server.sql(f'CREATE {kind} TABLE {name} AS SELECT {columns} FROM generate_series(1, {rows}::int8) AS i',
               f'VACUUM (FREEZE, ANALYZE) {name}')


def make_collations(server):
    """Creates the collation of the C library that names are sorted by."""
    if server.sql("SELECT to_regcollation('english') IS NULL") == 't':
        server.sql("CREATE COLLATION english (provider = libc, locale = 'en_US.utf8')")
