"""The lines that build btree and GIN indexes of logged tables.  The index is dropped and a
checkpoint made between two builds, so that no build writes what the previous one has left.

Of the rows, a fifth is in documents, a tenth in texts and half in arrays (gin-rows)."""

import os
import subprocess

from servers import HERE
from sort_lines import at_defaults, make_seven
from tables import HEX_20, make_table

AFTER_BUILD = 'DROP INDEX built; CHECKPOINT'

# A digest of everything that matters on the pages of a btree.
BTREE_DIGEST = """
    SELECT count(*), sum(('x' || substr(md5(block || ' ' ||
            substr(page, 11, lower - 10)::text || substr(page, upper + 1)::text), 1, 15))::bit(60)::int8)
        FROM (SELECT block, get_raw_page('built', 'main', block) AS page
            FROM generate_series(0, pg_relation_size('built')
                / current_setting('block_size')::int8 - 1) AS block
            OFFSET 0) AS pages, page_header(page)"""

# The numbers of keys, and of pairs of a key and a TID, of a GIN index.
GIN_DIGEST = """
    SELECT n_entries, (SELECT reltuples FROM pg_class WHERE oid = 'built'::regclass)
        FROM gin_metapage_info(get_raw_page('built', 0))"""


def builds_of(session):
    """Returns how many indexes the extension has built."""
    return int(session.ask('SELECT coalesce(sum(index_builds), 0) FROM pg_stat_gpusort'))


def measure_builds(bench, line, rows, what, build, digest=BTREE_DIGEST):
    """Measures a statement that builds the index "built"."""
    digests = set()
    before = builds_of(bench.both.ours)
    for session in bench.both.stock, bench.both.ours:
        session.ask(build)
        digests.add(bench.server.sql(digest))
        bench.server.sql('DROP INDEX built')
    builder = 'ours' if builds_of(bench.both.ours) > before else 'stock'
    times = bench.both.time_sessions(build, build, AFTER_BUILD)
    bench.table.add(line, rows, what, times, builder, len(digests) == 1,
                    bench.both.workers('max_parallel_maintenance_workers'))


def one_process(bench, memory):
    return bench.both.settings(f"""SET max_parallel_maintenance_workers = 0;
        SET maintenance_work_mem = '{memory}'""")


def index_of_rows(bench, line, rows, what, key, memory='1GB'):
    bench.server.sql('CREATE EXTENSION IF NOT EXISTS pageinspect')
    make_table(bench.server, 'indexed', rows, f'i AS id, {key} AS k', logged=True)
    with one_process(bench, memory):
        measure_builds(bench, line, rows, what, 'CREATE INDEX built ON indexed (k)')
    bench.server.sql('DROP TABLE indexed')


def index_line(what, key=None, rows=None, memory='1GB'):
    """The key is that of the option -d, if there is none."""
    def measure(bench, line):
        index_of_rows(bench, line, rows or bench.rows, what, key or bench.key, memory)
    return measure


def default_index(bench, line):
    bench.server.sql('CREATE EXTENSION IF NOT EXISTS pageinspect')
    rows = make_seven(bench)
    with at_defaults(bench):
        measure_builds(bench, line, rows, 'index of int8, defaults',
                       'CREATE INDEX built ON seven (k8)')


# ---- GIN ----

# Tables, the rows of gin-rows that they have, and their columns.
GIN_TABLES = {'documents': ('documents', 'j jsonb'), 'texts': ('texts', 't text'),
              'int_arrays': ('arrays', 'a int[]')}
MAKE_VECTORS = "CREATE TABLE vectors AS SELECT to_tsvector('simple', t) AS v FROM texts"

# How many of all rows are one row of these tables.
GIN_PARTS = {'documents': 5, 'texts': 10, 'vectors': 10, 'int_arrays': 2}

# Of a line: the table, the key, and what the index is of.
GINS = {
    'gin_path': ('documents', 'j jsonb_path_ops', 'jsonb, jsonb_path_ops'),
    'gin_jsonb': ('documents', 'j', 'jsonb'),
    'gin_array': ('int_arrays', 'a', 'int[]'),
    'gin_tsvector': ('vectors', 'v', 'tsvector'),
    'gin_trigram': ('texts', 't gin_trgm_ops', 'text, gin_trgm_ops'),
}


def gin_rows(table, rows):
    """Returns a process whose output is for COPY."""
    return subprocess.Popen([os.path.join(HERE, 'gin-rows'), GIN_TABLES[table][0], str(rows)],
                            stdout=subprocess.PIPE)


def gin_table(bench, table):
    """Creates the table unless it exists, and returns its number of rows."""
    rows = bench.rows // GIN_PARTS[table]
    if bench.server.has_table(table):
        return rows
    if table == 'vectors':
        gin_table(bench, 'texts')
        bench.server.sql(MAKE_VECTORS)
    else:
        bench.server.sql(f'CREATE TABLE {table} ({GIN_TABLES[table][1]})')
        with gin_rows(table, rows) as source:
            bench.server.sql(f'COPY {table} FROM STDIN', rows_of=source)
    bench.server.sql(f'VACUUM (FREEZE, ANALYZE) {table}')
    return rows


def gin_line(bench, line):
    table, key, what = GINS[line]
    rows = gin_table(bench, table)
    bench.server.sql('CREATE EXTENSION IF NOT EXISTS pageinspect',
                     'CREATE EXTENSION IF NOT EXISTS pg_trgm')
    with one_process(bench, '1GB'):
        measure_builds(bench, line, rows, f'GIN index of {what}',
                       f'CREATE INDEX built ON {table} USING gin ({key})', GIN_DIGEST)


DEFAULT_LINES = {'default_index': default_index}
LINES = {
    'index_int8': index_line('index of int8'),
    'index_int4': index_line('index of int4, 65536 different', '(hashint8(i) & 65535)'),
    'index_float8': index_line('index of float8', 'hashint8extended(i, 42) / 7.0::float8'),
    'index_timestamptz': index_line('index of timestamptz',
                                    "timestamptz 'epoch' + hashint8(i) * interval '1 second'"),
    'index_text': index_line('index of text of 20 characters, C', f'{HEX_20} COLLATE "C"'),
    'index_sorted': index_line('index of int8, sorted', 'i'),
    'index_100k': index_line('index of int8', rows=100000),
    'index_64mb': index_line('index of int8, 64MB', memory='64MB'),
}
GIN_LINES = dict.fromkeys(GINS, gin_line)
