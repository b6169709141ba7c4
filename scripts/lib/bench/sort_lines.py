"""The lines that sort narrow and wide rows: by keys of many types, of few rows, with little
memory, in parallel; and arrays, and the memory that a sort takes."""

import re

from measuring import discarded
from results import ratio
from tables import HEX_12, HEX_20, WIDE_COLUMNS, make_table


def make_narrow(bench, name, rows):
    make_table(bench.server, name, rows, f'i AS id, {bench.key} AS k8')


def by_k8(table):
    return f'SELECT * FROM {table} ORDER BY k8'


def narrow(bench, line):
    make_narrow(bench, 'narrow', bench.rows)
    bench.table.measure(line, bench.rows, 'id, k8 int8', by_k8('narrow'))


def wide(bench, line):
    make_table(bench.server, 'wide', bench.rows, f'i AS id, {bench.key} AS k8, {WIDE_COLUMNS}')
    bench.table.measure(line, bench.rows, 'int8 x 2, int4, float8, tstz, text', by_k8('wide'))


def other_keys(bench, line, what, columns, order_by='k', keys='(r).k', part=1):
    """Sorts a table of id and these columns, with a part of the rows."""
    rows = bench.rows // part
    make_table(bench.server, line, rows, f'i AS id, {columns}')
    bench.table.measure(line, rows, what, f'SELECT * FROM {line} ORDER BY {order_by}', keys=keys)
    bench.server.sql(f'DROP TABLE {line}')


def text(bench, line):
    other_keys(bench, line, 'id, text of 20 characters, C', f'{HEX_20} COLLATE "C" AS k')


def text_prefix(bench, line):
    other_keys(bench, line, 'the same, 12 of them in common',
               f"'common/path/' || {HEX_12} COLLATE \"C\" AS k")


def text_paths(bench, line):
    other_keys(bench, line, 'id, paths, C', """
        format('/home/user%s/projects/module%s/include/component-%s/file%s.txt',
            abs(hashint8(i)) % 7, abs(hashint8(i + 1)) % 11, abs(hashint8(i + 2)) % 101,
            abs(hashint8(i + 3)) % 1009) COLLATE "C" AS k""", part=10)


def text_alike(bench, line):
    other_keys(bench, line, 'id, 4 URLs of 641 characters, C', f"""
        repeat('https://www.example.com/default/', 20)
            || (i * 4 / ({bench.rows} / 25 + 1))::text COLLATE "C" AS k""", part=25)


def text_toasted(bench, line):
    with bench.both.settings('', 'SET pg_gpusort.min_rows = 0'):
        other_keys(bench, line, 'id, text of 22 kB, compressed, C', """
            repeat('https://www.example.com/default/', 700) || md5(i::text) COLLATE "C" AS k""",
                   part=500)


def numeric(bench, line):
    other_keys(bench, line, 'id, numeric(20, 3)',
               '(hashint8extended(i, 42) % 1000000000000 / 1000.0)::numeric(20, 3) AS k')


def uuid(bench, line):
    other_keys(bench, line, 'id, uuid', 'md5(i::text)::uuid AS k')


def columns(bench, line):
    other_keys(bench, line, 'int4, int4 DESC, timestamptz', """
        hashint8(i) % 10000 AS a, hashint8(i + 1) AS b,
        timestamptz 'epoch' + hashint8(i + 2) * interval '1 second' AS c""",
               'a, b DESC, c', '(r).a, (r).b, (r).c')


def few_rows(rows, loops):
    def measure(bench, line):
        make_narrow(bench, line, rows)
        bench.table.measure(line, rows, 'id, k8 int8', by_k8(line), loops=loops)
    return measure


def limit_10(bench, line):
    make_narrow(bench, 'narrow', bench.rows)
    query = f'{by_k8("narrow")} LIMIT 10'
    bench.table.measure(line, bench.rows, 'id, k8 int8, LIMIT 10', query, query)


# ---- Little memory ----

def with_memory(bench, memory):
    stock = f"SET work_mem = '{memory}'"
    return bench.both.settings(stock, f"{stock}; SET pg_gpusort.work_mem = '{memory}'")


def little_memory(memory):
    def measure(bench, line):
        make_narrow(bench, 'narrow', bench.rows)
        with with_memory(bench, memory):
            bench.table.measure(line, bench.rows, f'id, k8 int8, work_mem {memory}', by_k8('narrow'))
    return measure


def work_mem_urls(bench, line):
    with with_memory(bench, '4MB'):
        other_keys(bench, line, 'id, URLs of 650 characters, C, 4MB', """
            repeat('https://www.example.com/default/', 20)
                || abs(hashint8(i))::text COLLATE "C" AS k""", part=25)


# ---- Sessions at the settings of the server ----

def make_seven(bench):
    """Makes half of the rows, of seven columns, and returns their number."""
    rows = bench.rows // 2
    bench.server.sql("CREATE COLLATION IF NOT EXISTS c_utf8 (PROVIDER = libc, LOCALE = 'C.UTF-8')")
    make_table(bench.server, 'seven', rows, f"""
        i AS id, {bench.key} AS k8, hashint8(i) / 7.0::float8 AS f8,
        timestamptz 'epoch' + i * interval '1 second' AS ts, (i % 10000)::numeric(12, 2) AS n,
        i % 100 AS a, 'order ' || md5(i::text) COLLATE c_utf8 AS t""", logged=True)
    return rows


def at_defaults(bench):
    return bench.both.settings(
        'RESET ALL; SET pg_gpusort.enable = off; SET pg_gpusort.enable_index_build = off',
        'RESET ALL')


def default_int8(bench, line):
    rows = make_seven(bench)
    with at_defaults(bench):
        bench.table.measure(line, rows, '7 columns by int8, defaults', by_k8('seven'))


def default_text(bench, line):
    rows = make_seven(bench)
    with at_defaults(bench):
        bench.table.measure(line, rows, '7, by text of C.UTF-8, defaults',
                            'SELECT * FROM seven ORDER BY t', keys='(r).t')


# ---- In parallel ----

def in_parallel(bench, workers):
    """Stock uses these workers regardless of their cost; our planner may not."""
    settings = f"""SET max_parallel_workers = 16;
        SET max_parallel_workers_per_gather = {workers};"""
    return bench.both.settings(
        f'{settings} SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0', settings)


def parallel_narrow(workers):
    def measure(bench, line):
        make_narrow(bench, 'narrow', bench.rows)
        bench.server.sql(f'ALTER TABLE narrow SET (parallel_workers = {workers})')
        with in_parallel(bench, workers):
            bench.table.measure(line, bench.rows, f'id, k8 int8, up to {workers} workers',
                                by_k8('narrow'))
    return measure


def parallel_disk(workers):
    """4 bytes of memory for each row and process, where a row takes 65, so that all write
    runs."""
    def measure(bench, line):
        with with_memory(bench, f'{max(bench.rows // 250000, 1)}MB'):
            parallel_narrow(workers)(bench, line)
    return measure


def parallel_text_8(bench, line):
    make_table(bench.server, line, bench.rows, f'i AS id, {HEX_20} COLLATE "C" AS k')
    bench.server.sql(f'ALTER TABLE {line} SET (parallel_workers = 8)')
    with in_parallel(bench, 8):
        bench.table.measure(line, bench.rows, 'id, text as above, up to 8 workers',
                            f'SELECT * FROM {line} ORDER BY k', keys='(r).k')
    bench.server.sql(f'DROP TABLE {line}')


# ---- Arrays and memory ----

def array(bench, line):
    stock = 'SELECT array_agg(x ORDER BY x) FROM unnest(a) AS x'
    ours = 'gpu_sort(a)'

    make_narrow(bench, 'narrow', bench.rows)
    bench.server.sql('CREATE UNLOGGED TABLE arrays (a int8[])',
                     'ALTER TABLE arrays ALTER a SET STORAGE EXTERNAL',
                     'INSERT INTO arrays SELECT array_agg(k8) FROM narrow')
    same = bench.both.ours.ask(f'SELECT ({stock}) = {ours} FROM arrays') == 't'
    times = bench.both.time_sessions(f'SELECT cardinality(({stock})) FROM arrays',
                                     f'SELECT cardinality({ours}) FROM arrays')
    bench.table.add(line, bench.rows, 'int8[]: array_agg and gpu_sort', times, 'function', same)
    bench.server.sql('DROP TABLE arrays')


def peak_memory_kb(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as status:
        return int(re.search(r'^VmHWM:\s*(\d+)', status.read(), re.MULTILINE).group(1))


def growth_mb(bench, who, query):
    """Returns by how many MB the memory of a new backend grows at most.  The scan before maps
    all of the table's shared buffers, which also count."""
    session = bench.both.open(who)
    session.ask('SELECT count(k8) FROM narrow')
    pid = session.ask('SELECT pg_backend_pid()')
    before = peak_memory_kb(pid)
    session.ask(query)
    after = peak_memory_kb(pid)
    session.close()
    return (after - before) // 1024


def memory(bench, line):
    make_narrow(bench, 'narrow', bench.rows)
    query = discarded(by_k8('narrow'))
    stock, ours = (growth_mb(bench, who, query) for who in ('stock', 'ours'))
    bench.table.print_row(line, bench.rows, 'id, k8 int8: memory of the sort', f'{stock} MB',
                          f'{ours} MB', f'{ratio(stock, ours):.2f}', '-', '-', '-',
                          bench.both.node_of(query), '-')


LINES = {
    'narrow': narrow, 'wide': wide, 'text': text, 'text_prefix': text_prefix,
    'text_paths': text_paths, 'text_alike': text_alike, 'text_toasted': text_toasted,
    'numeric': numeric, 'uuid': uuid, 'columns': columns,
    'rows_1m': few_rows(1000000, 1), 'rows_100k': few_rows(100000, 20),
    'rows_10k': few_rows(10000, 200), 'rows_1k': few_rows(1000, 2000), 'rows_10': few_rows(10, 20000),
    'limit_10': limit_10,
}
LATER_LINES = {
    'default_int8': default_int8, 'default_text': default_text,
    'work_mem': little_memory('4MB'), 'work_mem_64': little_memory('64MB'),
    'work_mem_urls': work_mem_urls,
    'parallel_2': parallel_narrow(2), 'parallel_4': parallel_narrow(4),
    'parallel_8': parallel_narrow(8), 'parallel_text_8': parallel_text_8,
    'parallel_disk_2': parallel_disk(2), 'parallel_disk_8': parallel_disk(8),
    'array': array, 'memory': memory,
}
