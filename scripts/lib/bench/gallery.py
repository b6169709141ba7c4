"""scripts/bench pictures: draws the pictures of docs/pictures, and says which results are in them.

Needs matplotlib (Debian's python3-matplotlib)."""

import argparse
import os

from pictures import (bar_picture, best_items, curve_picture, gigabytes, items_of, load,
                      nanoseconds_per_row, phase_picture, scale_picture, select, time_of)
from servers import REPO

EPYC = '2026-11-21-two-cores-epyc'
XEON_INDEXES = 'before-2026-11-23-two-cores-xeon-indexes'
NAMES = '2026-11-24-two-cores-epyc-names'
VERSIONS = '2026-11-23-versions-epyc'
H200 = '2026-11-21-h200'
SIXTEEN = '2026-11-23-sixteen-cores'
ROWS_SIXTEEN = '2026-11-23-rows-sixteen-cores'
H100 = '2026-11-24-h100'
QUERIES = '2026-11-25-h100-queries-gin'
DEFAULTS = '2026-11-23-defaults'
TPCH = '2026-11-21-tpch'
CHOICE = '2026-11-29-h200-choice'
TPCH_DEFAULTS = '2026-11-25-tpch'
DUCKDB = '2026-11-24-duckdb'
SCALE = '2026-11-25-two-cores-epyc-scale'
SERVERS = '2026-11-25-two-cores-epyc-servers'
LARGE_SCALE = '2026-11-25-h100-scale'

SORTS = {
    'narrow': '10 M rows of two int8',
    'wide': '10 M rows of six columns',
    'text': '10 M texts of 20 characters',
    'text_prefix': '10 M texts, 12 characters alike',
    'numeric': '10 M numeric(20, 3)',
    'uuid': '10 M uuid',
    'columns': '10 M rows by three keys',
    'work_mem_64': '10 M rows of two int8, on disk',
    'array': 'an array of 10 M int8',
    'rows_1m': '1 M rows of two int8',
    'rows_100k': '100,000 rows',
    'rows_10k': '10,000 rows (stays stock)',
    'rows_1k': '1000 rows (stays stock)',
    'limit_10': 'LIMIT 10 (stays stock)',
}
INDEXES = {
    'index_int8': 'random int8', 'index_int4': 'int4, 65536 different', 'index_float8': 'random float8',
    'index_timestamptz': 'random timestamptz', 'index_text': 'texts of 20 characters',
    'index_sorted': 'int8, in order', 'index_100k': 'int8, 100,000 rows', 'index_64mb': 'int8, 64 MB',
}
LANGUAGE = {
    'names': '3 M names, en_US.utf8', 'names_few': '3 M names, 10,000 distinct',
    'names_icu': '3 M names, en-x-icu', 'names_icu_few': '10,000 distinct, en-x-icu',
    'names_urls': '1 M URLs, en_US.utf8', 'index_names': 'index on names, en_US.utf8',
    'index_names_icu': 'index on names, en-x-icu',
}
ORDINARY = {
    'rows': 'by int8, 2 GB', 'rows_16': 'by int8, 16 MB', 'rows_4': 'by int8, 4 MB',
    'sorted': 'in order, 2 GB', 'sorted_16': 'in order, 16 MB', 'reversed': 'reversed, 2 GB',
    'reversed_16': 'reversed, 16 MB', 'few': 'by 100 values, 2 GB', 'few_16': 'by 100 values, 16 MB',
    'string': 'by text, 2 GB', 'string_16': 'by text, 16 MB', 'ties_16': '1000 texts, int8, 16 MB',
    'two_columns': 'sums of two, 2 GB', 'workers': '2 workers, 2 GB', 'workers_16': '2 workers, 16 MB',
    'six': 'six columns, 2 GB', 'six_16': 'six columns, 16 MB', 'long': 'long values, 2 GB',
    'long_16': 'long values, 16 MB',
}
LARGE = {'narrow': '50 M rows of two int8', 'wide': '50 M rows of six columns',
         'text': '50 M texts of 20 characters', 'index': 'index on 50 M int8',
         'names': '20 M names, en_US.utf8', 'names_c': '20 M names, C',
         'ordinary': '20 M rows of 15 columns', 'array': 'an array of 25 M int8'}
GINS = {'gin_path': '2 M jsonb, jsonb_path_ops', 'gin_jsonb': '2 M jsonb', 'gin_array': '5 M int[]',
        'gin_tsvector': '1 M tsvector', 'gin_trigram': '1 M texts, trigrams'}
DEFAULT = {'default_int8': 'by a random int8', 'default_text': 'by a text, C.UTF-8',
           'default_index': 'index on the int8'}


def draw_gains(rows, directory):
    """The picture of README: a few lines of each kind."""
    few = {line: SORTS[line] for line in ('narrow', 'wide', 'text', 'work_mem_64')}
    names = {'names': LANGUAGE['names'], 'index_names': LANGUAGE['index_names']}
    index = {'index_int8': 'index on 10 M int8 (Intel Xeon)'}
    large = {line: LARGE[line] for line in ('narrow', 'wide', 'text')}
    bar_picture(directory, 'gains', [
        ('2 cores, one process',
         items_of(rows, few, file=EPYC) + items_of(rows, names, file=NAMES, session='first')
         + items_of(rows, index, file=XEON_INDEXES)),
        ('16 cores and an NVIDIA H200: the best of one process and nine',
         best_items(rows, large, file=SIXTEEN, session='warm')),
    ])


def draw_bars(rows, directory):
    bar_picture(directory, 'sorts', [('2 cores, AMD EPYC, one process', items_of(rows, SORTS, file=EPYC))])
    bar_picture(directory, 'indexes', [
        ('CREATE INDEX on 10 M rows, 2 cores, Intel Xeon, one process',
         items_of(rows, INDEXES, file=XEON_INDEXES))])
    bar_picture(directory, 'names', [
        ('In the order of a language, 2 cores, AMD EPYC, first sorts',
         items_of(rows, LANGUAGE, file=NAMES, session='first'))])
    bar_picture(directory, 'large', [
        ('16 cores and an NVIDIA H200, one process', items_of(rows, LARGE, file=H200, workers='0')),
        ('16 cores and an NVIDIA H200, the best of one process and nine',
         best_items(rows, LARGE, file=SIXTEEN, session='warm')),
        ('16 cores and an NVIDIA H100, the best of one process and nine',
         best_items(rows, LARGE, file=H100, session='warm'))])
    bar_picture(directory, 'gin', [
        ('GIN indexes, 16 cores: PostgreSQL 15, one process and ours with 8 workers',
         items_of(rows, GINS, file=QUERIES, version='15.20')),
        ('The same, PostgreSQL 18, both with 8 workers', items_of(rows, GINS, file=QUERIES, version='18.6'))])
    bar_picture(directory, 'rows', [
        ('2 M rows of 15 columns, first sorts, 2 cores, AMD EPYC',
         items_of(rows, ORDINARY, file=VERSIONS, session='first', version='15.18')),
        ('The same, 16 cores, Intel Xeon, which other machines shared',
         items_of(rows, ORDINARY, file=ROWS_SIXTEEN, session='first'))])
    few = {**{line: SORTS[line] for line in ('narrow', 'text')}, 'index_int8': 'index on 10 M int8',
           **{line: f'15 columns {ORDINARY[line]}' for line in ('rows', 'rows_16', 'few_16', 'string_16')}}
    bar_picture(directory, 'versions', [
        (f'PostgreSQL {version}, first sorts, 2 cores, AMD EPYC',
         items_of(rows, few, file=VERSIONS, session='first', version=version))
        for version in ('15.18', '18.6', '19rc1')])
    bar_picture(directory, 'defaults', [
        (f'5 M rows of 7 columns at default settings, first sorts, PostgreSQL {version}',
         items_of(rows, DEFAULT, file=DEFAULTS, session='first', version=version))
        for version in ('15.18', '19rc1')])
    questions = {row['line']: row['line'].replace('tpch_', '') for row in select(rows, file=TPCH)}
    bar_picture(directory, 'tpch', [
        ('Questions like those of TPC-H, scale 0.25, work_mem 256 MB',
         items_of(rows, questions, file=TPCH, settings='work_mem=256MB')),
        ('The same at 4 MB, with two workers', items_of(rows, questions, file=TPCH_DEFAULTS))])
    what = {'narrow': 'two int8', 'text': 'texts', 'four_columns': 'four columns'}
    bar_picture(directory, 'duckdb', [
        (title, items_of([row for row in rows if row['who'] == 'duckdb' or row['session'] == 'first'],
                         what, 'duckdb', file=DUCKDB, **wanted))
        for title, wanted in (
            ('5 M rows, one thread or process, AMD EPYC', {'cpu': 'AMD EPYC', 'workers': '0'}),
            ('5 M rows, two threads or processes, Intel Xeon', {'workers': '1', 'rows': '5000000'}),
            ('50 M rows, nine of 16 cores, Intel Xeon', {'workers': '8', 'rows': '50000000'}))],
                'DuckDB')


def draw_scale(rows, directory):
    titles = {'narrow': 'two int8', 'ordinary': '15 columns'}
    measured = select(rows, phase='')
    scale = select(measured, file=SCALE)
    curve_picture(directory, 'over-rows', [
        (f'{titles[kind]}, 2 cores', select(scale, line=f'rows_{kind}')) for kind in titles],
                  'rows', 'rows', log=True)
    keys = {'narrow': 'two int8', 'ordinary': '15 columns by int8', 'reports': '15 columns by one of 1000 texts and int8'}
    curve_picture(directory, 'gpu-or-cpu', [
        (f'{keys[kind]}, {workers} workers', select(measured, file=CHOICE, line=f'choice_{kind}', workers=workers))
        for kind in keys for workers in ('2', '8')], 'rows', 'rows', log=True)
    curve_picture(directory, 'over-workers', [
        (f'{titles[kind]}, {row["cores"]} cores, {int(row["rows"]) / 1e6:g} M rows',
         select(scale, line=f'workers_{kind}')) for kind in titles
        for row in select(scale, line=f'workers_{kind}')[:1]]
                  + [(f'two int8, 16 cores, 50 M rows, {day}',
                      select(measured, file=file, line='narrow', who=('stock', 'cpu', 'gpu')))
                     for file, day in ((H200, 'H200'), (SIXTEEN, 'another hour'))],
                  'workers', 'workers beside the leader')
    sorts, indexes = (select(rows, file=LARGE_SCALE, line=line) for line in ('rows_sort', 'rows_index'))
    scale_picture(directory, 'large-scale', [
        ('ORDER BY', sorts, nanoseconds_per_row, 'ns per row'),
        ('CREATE INDEX', indexes, nanoseconds_per_row, 'ns per row'),
        ('memory of ORDER BY', sorts, gigabytes, 'GB of the host')])


def draw_phases(rows, directory):
    """Phases by the memory of a sort, and of sorts of 50 M rows by the number of workers."""
    items = []
    for kind, title in ('narrow', 'two int8'), ('ordinary', '15 columns'):
        for memory in '2GB', '16MB':
            found = [row for row in select(rows, file=SCALE, line=f'phases_{kind}')
                     if f' work_mem={memory}' in row['settings']]
            if found:
                items.append((f'{int(found[0]["rows"]) / 1e6:g} M rows of {title}, {memory}', found))
    phase_picture(directory, 'phases', items, ('read', 'sort', 'return'))
    items = [(f'{workers} workers', select(rows, file=SIXTEEN, line='narrow', workers=workers))
             for workers in ('1', '2', '4', '8', '15')]
    items = [(label, [row for row in found if row['phase']]) for label, found in items]
    phase_picture(directory, 'phases-workers', [item for item in items if item[1]],
                  ('read', 'sort', 'place', 'wait for ranges', 'return'))


def draw_servers(rows, directory):
    """An ORDER BY over foreign tables: what moving the rows takes, and what is added to that."""
    sides = [(f'{who}{", tuned" if how == "tuned" else ""}', how, column)
             for who, column in (('stock', 'stock'), ('pg_gpusort', 'cpu')) for how in ('plain', 'tuned')]
    items = []
    for servers in 1, 2, 4:
        found = select(rows, file=SERVERS, phase='', settings=f'servers={servers}')
        for label, how, who in sides:
            moved, ordered = (select(found, line=f'fdw_{line}_{how}', who=one)
                              for line, one in (('scan', 'scan'), ('order', who)))
            if moved and ordered:
                moving = min(time_of(moved[0]), time_of(ordered[0]))
                items.append((f'{servers} server{"s" if servers > 1 else ""}: {label}', [
                    {'phase': phase, 'median_ms': milliseconds} for phase, milliseconds in (
                        ('moving the rows', moving), ('sorting them', time_of(ordered[0]) - moving))]))
    phase_picture(directory, 'servers', items, ('moving the rows', 'sorting them'))


def draw(results, directory):
    """Draws all pictures from the files of one directory into another one."""
    rows = load(results)
    for picture in draw_gains, draw_bars, draw_scale, draw_phases, draw_servers:
        picture(rows, directory)


def main(arguments):
    parser = argparse.ArgumentParser(
        prog='scripts/bench pictures', description='Draw the pictures of docs/pictures.', allow_abbrev=False)
    for name in 'results', 'pictures':
        parser.add_argument(name, nargs='?', default=os.path.join(REPO, 'docs', name),
                            help=f'directory (default docs/{name})')
    options = parser.parse_args(arguments)
    os.makedirs(options.pictures, exist_ok=True)
    draw(options.results, options.pictures)
