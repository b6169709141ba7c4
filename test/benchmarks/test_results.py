"""Tests of the statistics of scripts/bench and of its CSV files."""

import glob
import os
import sys
import tempfile
import types
import unittest

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPO, 'scripts', 'lib', 'bench'))

# pylint: disable=wrong-import-position
import families
import gpu_lines
import measuring
import options
import planning
import queries
import restore
import results
import row_lines
import scale_lines
import servers
import type_lines
import type_table

MACHINE = {'commit': 'abc', 'cpu': 'a "fast", one', 'cores': 2, 'memory_mb': 1000, 'gpu': '',
           'version': '15.20'}


class Statistics(unittest.TestCase):
    def test_median_of_odd_and_even_numbers(self):
        self.assertEqual(results.median([30, 10, 20]), 20)
        self.assertEqual(results.median([40, 10, 20, 30]), 25)

    def test_spread_has_fractions_of_short_times_only(self):
        self.assertEqual(results.spread([300.4, 100, 200]), '200 (100..300)')
        self.assertEqual(results.spread([0.3, 0.1, 12]), '0.300 (0.100..12.000)')

    def test_slower_by_more_than_a_twentieth(self):
        self.assertTrue(results.is_slower([2, 0.94]))
        self.assertFalse(results.is_slower([2, 0.96]))

    def test_rounding(self):
        self.assertEqual(results.rounded(1234.56789), '1234.568')
        self.assertEqual(results.rounded(100.0), '100')
        self.assertEqual(results.rounded(0.0097654321), '0.009765')


class Times(unittest.TestCase):
    def test_first_and_later_times_are_apart(self):
        times = measuring.Times()
        times.add('stock', [100, 60, 40])
        times.add('ours', [50, 10, 10])
        times.add('ours', [25, 10, 40])
        self.assertEqual(times.stock_later, [60, 40])
        self.assertEqual(times.ours_first, [50, 25])
        self.assertEqual(times.ratios(), [100 / 37.5, 5])
        self.assertEqual(times.divided_by(10).ours_later, [1, 1, 1, 4])


class Lines(unittest.TestCase):
    def test_memory_is_the_end_of_a_name(self):
        self.assertEqual([row_lines.memory_of(line) for line in ('rows', 'rows_4', 'long_16', 'two_columns')],
                         ['2GB', '4MB', '16MB', '2GB'])

    def test_numbers_of_rows(self):
        self.assertEqual(scale_lines.numbers_of_rows(99999), [])
        self.assertEqual(scale_lines.numbers_of_rows(2000000), [100000, 300000, 1000000])

    def test_workers_of_ways(self):
        self.assertEqual([gpu_lines.workers_of(way) for way in ('scan', 'stock_8', 'gpu', 'cpu_15')],
                         [0, 8, 0, 15])

    def test_rounds_of_ways(self):
        self.assertEqual([gpu_lines.rounds_of(way, 5) for way in ('gpu_8', 'stock', 'stock_8', 'cpu')],
                         [5, 2, 3, 3])
        self.assertEqual(gpu_lines.rounds_of('stock', 1), 1)

    def test_properties_of_all_nodes_of_a_plan(self):
        plan = [{'Execution Time': 7.5, 'Plan': {
            'Sort Method': 'gpu', 'Plans': [{'Sort Drain Time': 1.5, 'Actual Rows': 3}]}}]
        self.assertEqual(gpu_lines.in_plan(plan, gpu_lines.PHASE),
                         [('Execution Time', 7.5), ('Sort Drain Time', 1.5)])
        self.assertEqual(gpu_lines.in_plan(plan, gpu_lines.METHOD), [('Sort Method', 'gpu')])


    def test_names_and_patterns(self):
        def chosen(*names):
            return options.chosen(types.SimpleNamespace(list=False, names=names), 'line', ['a', 'b_1', 'b_2'])
        self.assertEqual(chosen('b_*', 'a'), ['b_1', 'b_2', 'a'])
        self.assertEqual(chosen(), ['a', 'b_1', 'b_2'])
        with self.assertRaises(servers.Failure):
            chosen('a', 'c*')


class Types(unittest.TestCase):
    def test_factors_of_a_table(self):
        rows = [{'line': line, 'who': who, 'session': session, 'median_ms': ms} for line, who, session, ms in (
            ('type_int4', 'stock', 'first', '50'), ('type_int4', 'cpu', 'first', '20'),
            ('type_int4', 'cpu', 'later', '10'), ('keys_3', 'stock', 'first', '1'),
            ('type_text', 'stock', 'first', '9'), ('type_text', 'cpu', 'first', '9'))]
        factors = type_table.factors_of(rows)
        self.assertEqual(factors, {'integer': '2.5', 'C': '1.0'})
        text = """| type | times as fast |
|---|---|
| `C`, not `D`, `integer` | %s |
| `money` | 3 |

| type | other |
|---|---|
| `integer` | 7 |
"""
        self.assertEqual(type_table.filled(text % '', factors), text % '1.0, 2.5')

    def test_table_of_types_has_the_newest_results(self):
        with open(type_table.DOCUMENT, encoding='utf-8') as file:
            text = file.read()
        factors = type_table.factors_of(results.read(type_table.newest()))
        self.assertEqual(type_table.filled(text, factors), text)
        self.assertEqual(set(factors), {type_lines.name_of(f'type_{name}') for name in type_lines.TYPES})
        for name in factors:
            self.assertIn(f'`{name}`', text)


class Queries(unittest.TestCase):
    def test_queries_of_the_files(self):
        tpch = queries.read_queries('tpch_queries.sql')
        self.assertEqual(len(tpch), 24)
        corpus = [families.queries_of([family]) for family in families.FAMILIES] + [planning.large_queries()]
        self.assertEqual([len(found) for found in corpus], [40, 22, 23, 19, 17])
        # No name is in two families.
        together = {**families.queries_of(families.FAMILIES), **planning.large_queries()}
        self.assertEqual(len(together), sum(map(len, corpus)))
        for name, query in {**tpch, **together}.items():
            self.assertTrue(query.text.startswith(('SELECT', 'WITH')), name)
            self.assertFalse(query.text.endswith(';'), name)
        self.assertEqual(queries.Query('q', 'a, b_c', 'SELECT 1;\n').keys, '(r).a, (r).b_c')
        self.assertEqual(queries.Query('q', '', 'SELECT 1').keys, '1')
        self.assertNotIn('OFFSET', queries.Query('q', '', 'SELECT 1 LIMIT 3').timed())

    def test_longer_planning(self):
        for stock, ours, longer in ((1, 1.15, False), (1, 1.25, True), (100, 101.9, False), (100, 102.1, True)):
            self.assertEqual(planning.is_longer({'stock': [stock], 'ours': [ours]}), longer)

    def test_sorts_of_a_plan(self):
        plan = """Limit
  ->  Custom Scan (GpuSort)
        Sort Key: a
        ->  Sort
              Sort Key: b
              ->  Incremental Sort
                    Sort Key: c"""
        self.assertEqual(queries.ours_of_all(plan), '1/3')
        self.assertEqual(queries.ours_of_all('Sort\n  Sort Key: a'), '0/1')
        self.assertEqual(queries.shape('->  Custom Scan (GpuSort)'), '->  Sort')


class Restore(unittest.TestCase):
    def test_foreign_keys_are_no_indexes(self):
        contents = """;
; Archive created
3290; 2606 16400 CONSTRAINT public a a_pkey postgres
3291; 1259 16401 INDEX public a_b_idx postgres
3292; 2606 16402 FK CONSTRAINT public c c_a_fkey postgres
3293; 0 16390 TABLE DATA public a postgres
"""
        parts = restore.parts_of(contents)
        self.assertEqual([line[:4] for line in parts['indexes']], ['3290', '3291'])
        self.assertEqual([line[:4] for line in parts['keys']], ['3292'])

    def test_statements_of_a_log(self):
        lines = ['2026-11-25 UTC [1] LOG:  duration: 2.500 ms  statement: CREATE INDEX b ON t (b);',
                 '2026-11-25 UTC [1] LOG:  duration: 9.000 ms  statement: SELECT 1;',
                 '2026-11-25 UTC [1] LOG:  duration: 70.125 ms  statement: ALTER TABLE ONLY public.a',
                 '\t    ADD CONSTRAINT a_pkey PRIMARY KEY (id);',
                 '2026-11-25 UTC [1] LOG:  duration: 1.000 ms  statement: ALTER TABLE ONLY public.a']
        self.assertEqual(restore.builds_in_log(lines), [
            (70.125, 'ALTER TABLE ONLY public.a ADD CONSTRAINT a_pkey PRIMARY KEY (id);'),
            (2.5, 'CREATE INDEX b ON t (b);')])


class Files(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, 'some.csv')

    def tearDown(self):
        self.directory.cleanup()

    def write(self, times, **others):
        written = results.Results(self.path, MACHINE, 'quiet, mostly')
        with written.file:
            written.add('narrow', 1000, 'cpu', times, **others)

    def test_what_is_written_is_read(self):
        self.write([3, 1, 2.5], session='first', workers=2, method='radix, "cpu"')
        row, = results.read(self.path)
        self.assertEqual((row['median_ms'], row['min_ms'], row['max_ms'], row['runs']), ('2.5', '1', '3', '3'))
        self.assertEqual((row['cpu'], row['method'], row['note']),
                         ('a "fast", one', 'radix, "cpu"', 'quiet, mostly'))
        self.assertEqual((row['line'], row['rows'], row['session'], row['workers'], row['phase']),
                         ('narrow', '1000', 'first', '2', ''))

    def test_a_column_that_there_is_not(self):
        with self.assertRaises(ValueError):
            self.write([1], speed=3)

    def test_other_columns_are_refused(self):
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write('line,ms\nnarrow,3\n')
        with self.assertRaises(ValueError):
            results.read(self.path)

    def test_rows_without_a_time_are_refused(self):
        self.write([5])
        with open(self.path, encoding='utf-8') as file:
            text = file.read()
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write(text.replace(',5,5,5,1,', ',,5,,1,'))
        with self.assertRaises(ValueError):
            results.read(self.path)

    def test_committed_results_can_be_read(self):
        paths = glob.glob(os.path.join(REPO, 'docs', 'results', '*.csv'))
        self.assertTrue(paths)
        for path in paths:
            self.assertTrue(results.read(path), path)


if __name__ == '__main__':
    unittest.main()
