"""The lines that sort ordinary rows as users meet them: of many columns or with long values,
in any order, with little memory and with much; and names in the order of a language.

The table of 15 columns has a fifth of the rows, those of names three tenths."""

from index_lines import index_of_rows
from tables import (FEW_NAMES, LONG_COLUMNS, NAME, ORDINARY_COLUMNS, SIX_COLUMNS, make_collations,
                    make_table)

# The memory of lines whose names end like this; others have 2GB.
MEMORY = {'64': '64MB', '16': '16MB', '4': '4MB'}

# What is sorted, its keys, and the query; by the beginning of a line's name.
SORTS = {
    'rows': ('15 columns by int8', '(r).k8', 'SELECT * FROM ordinary ORDER BY k8'),
    'sorted': ('15, in order', '(r).id', 'SELECT * FROM ordinary ORDER BY id'),
    'reversed': ('15, reversed', '(r).ts', 'SELECT * FROM ordinary ORDER BY ts DESC'),
    'few': ('15, by 100 values', '(r).a', 'SELECT * FROM ordinary ORDER BY a'),
    'string': ('15, by text', '(r).c1', 'SELECT * FROM ordinary ORDER BY c1'),
    'ties': ('15, 1000 texts, int8', '(r).c2, (r).k8', 'SELECT * FROM ordinary ORDER BY c2, k8'),
    'computed': ('15 and id + 1', '(r).k8', 'SELECT *, id + 1 AS next FROM ordinary ORDER BY k8'),
    'two_columns': ('15, sums of two', '(r).a', """SELECT sum(a) AS a, sum(f) AS f
        FROM (SELECT * FROM ordinary ORDER BY k8 OFFSET 0) AS s"""),
    'workers': ('15, up to 2 workers', '(r).k8', 'SELECT * FROM ordinary ORDER BY k8'),
    'six': ('6 columns by float8', '(r).f', 'SELECT * FROM six ORDER BY f'),
    'long': ('id, uuid, 192 bytes', '(r).u', 'SELECT * FROM long ORDER BY u'),
}

# The tables of some lines, with the part of the rows that they have.
TABLES = {'six': ('six', 5, SIX_COLUMNS), 'long': ('long', 20, LONG_COLUMNS)}
ORDINARY = ('ordinary', 5, ORDINARY_COLUMNS)


def memory_of(line):
    return MEMORY.get(line.rpartition('_')[2], '2GB')


def sort_rows(bench, line, rows, workers, what, keys, query):
    settings = f"""SET work_mem = '{memory_of(line)}';
        SET max_parallel_workers_per_gather = {workers}"""
    with bench.both.settings(settings, f'{settings}; SET pg_gpusort.work_mem = -1'):
        bench.table.measure(line, rows, f'{what}, {memory_of(line)}', query, keys=keys)


def row_line(bench, line):
    start = line if line in SORTS else line.rpartition('_')[0]
    name, part, columns = TABLES.get(start, ORDINARY)
    what, keys, query = SORTS[start]
    make_table(bench.server, name, bench.rows // part, columns)
    sort_rows(bench, line, bench.rows // part, 2 if start == 'workers' else 0, what, keys, query)


# ---- In the order of a language ----

def strings_of(line):
    """Returns the expression that makes the line's strings."""
    for part, strings in (
            ('few', FEW_NAMES),
            ('md5', 'substr(md5(i::text), 1, 24)'),
            ('urls_end', 'substr(md5(i::text), 1, 20)'),
            ('urls', """'https://www.example.com/articles/archive/2024/section/page/'
                || substr(md5(i::text), 1, 20)"""),
            ('sorted', "lpad(i::text, 24, 'in order ')")):
        if part in line:
            return strings
    return NAME


def locale_line(bench, line):
    """Sorts texts by the C library's locale en_US.utf8, or by ICU."""
    collation = '"en-x-icu"' if 'icu' in line else 'english'
    what = f'id, name, {collation}'.replace('"', '')
    rows = bench.rows // 10 if 'urls' in line else bench.rows * 3 // 10
    make_collations(bench.server)
    if line.startswith('index_'):
        index_of_rows(bench, line, rows, f'index of {what}',
                      f'{strings_of(line)} COLLATE {collation}')
        return
    make_table(bench.server, line, rows, f'i AS id, ({strings_of(line)}) COLLATE {collation} AS k')
    sort_rows(bench, line, rows, 2 if line.endswith('_2') else 0, what, '(r).k',
              f'SELECT * FROM {line} ORDER BY k')
    bench.server.sql(f'DROP TABLE {line}')


LINES = dict.fromkeys((
    'rows', 'rows_64', 'rows_16', 'rows_4', 'sorted', 'sorted_16', 'reversed', 'reversed_16', 'few',
    'few_16', 'string', 'string_16', 'ties', 'ties_16', 'computed', 'computed_16', 'two_columns',
    'workers', 'workers_16', 'workers_4', 'six', 'six_16', 'long', 'long_16'), row_line)
LOCALE_LINES = dict.fromkeys((
    'names', 'names_16', 'names_few', 'names_few_16', 'names_sorted', 'names_md5', 'names_urls',
    'names_urls_end', 'names_2', 'names_icu', 'names_icu_few', 'index_names', 'index_names_few',
    'index_names_icu'), locale_line)
