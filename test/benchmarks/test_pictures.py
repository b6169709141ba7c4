"""Tests of the pictures of results, which need matplotlib."""

import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPO, 'scripts', 'lib', 'bench'))

try:
    import gallery
    import pictures
except ModuleNotFoundError:
    pictures = None


def row(line, who, median='', least='', greatest='', **others):
    return dict({'line': line, 'who': who, 'median_ms': median, 'min_ms': least, 'max_ms': greatest,
                 'phase': '', 'workers': '0', 'rows': '1000'}, **others)


@unittest.skipIf(pictures is None, 'without matplotlib')
class Selection(unittest.TestCase):
    def test_items_have_whom_to_compare_with_first(self):
        rows = [row('a', 'cpu', '1'), row('a', 'stock', '4'), row('b', 'cpu', '1'),
                row('a', 'duckdb', '2'), row('a', 'cpu', '9', phase='read')]
        (label, found), = pictures.items_of(rows, {'a': 'A', 'b': 'B'})
        self.assertEqual(label, 'A')
        self.assertEqual([one['who'] for one in found], ['stock', 'cpu', 'duckdb'])
        (label, found), = pictures.items_of(rows, {'a': 'A'}, 'duckdb')
        self.assertEqual([one['who'] for one in found], ['duckdb', 'stock', 'cpu'])

    def test_the_best_of_several(self):
        rows = [row('a', 'stock', '40'), row('a', 'stock', '30', workers='8'), row('a', 'cpu', '5'),
                row('a', 'cpu', '7', workers='8')]
        (_, found), = pictures.best_items(rows, {'a': 'A'})
        self.assertEqual([one['median_ms'] for one in found], ['30', '5'])

    def test_a_range_without_a_median(self):
        self.assertEqual(pictures.time_of(row('a', 'cpu', '', '10', '30')), 20)
        self.assertEqual(pictures.range_of(row('a', 'cpu', '5')), (5, 5))

    def test_texts(self):
        self.assertEqual([pictures.text_of(ms) for ms in (1234, 123.4, 0.123)],
                         ['1.23 s', '123 ms', '0.12 ms'])
        self.assertEqual([pictures.text_of_rows(number) for number in (1e5, 3e6, 1e9)],
                         ['100 k', '3 M', '1 G'])


@unittest.skipIf(pictures is None, 'without matplotlib')
class Drawing(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.directory.cleanup()

    def texts(self, name):
        """Returns the SVG and its texts."""
        with open(os.path.join(self.directory.name, f'{name}.svg'), encoding='utf-8') as file:
            svg = file.read()
        root = xml.etree.ElementTree.fromstring(svg)
        return svg, [text for one in root.iter('{http://www.w3.org/2000/svg}text') if (text := one.text)]

    def test_bars_show_gains_and_losses(self):
        items = [('gain', [row('a', 'stock', '4000'), row('a', 'cpu', '1000')]),
                 ('loss', [row('b', 'stock', '100', '90', '110'), row('b', 'cpu', '200')])]
        pictures.bar_picture(self.directory.name, 'bars', [('title', items)])
        svg, texts = self.texts('bars')
        for text in 'gain', 'loss', 'title', '4.00 s', '1.00 s, 4.0 ×', '200 ms, 0.50 ×', 'stock PostgreSQL':
            self.assertIn(text, texts)
        self.assertEqual(svg.count(f'fill: {pictures.LOSS}'), 1)

    def test_text_has_the_colour_of_the_reader(self):
        pictures.curve_picture(self.directory.name, 'curves', [
            ('title', [row('a', 'cpu', '10', rows=number) for number in ('100', '1000')])],
                               'rows', 'rows', log=True)
        svg, _ = self.texts('curves')
        self.assertNotIn(pictures.INK, svg)
        self.assertIn('fill: currentColor', svg)
        self.assertIn('prefers-color-scheme: dark', svg)
        # The whole has no background.
        self.assertFalse(re.search(r'<rect[^>]*fill="(white|#fff)', svg))

    def test_no_picture_of_nothing(self):
        pictures.bar_picture(self.directory.name, 'nothing', [('title', [])])
        pictures.curve_picture(self.directory.name, 'nothing', [('title', [])], 'rows', 'rows')
        pictures.phase_picture(self.directory.name, 'nothing', [], ())
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_all_pictures_of_the_committed_results(self):
        gallery.draw(os.path.join(REPO, 'docs', 'results'), self.directory.name)
        committed = os.path.join(REPO, 'docs', 'pictures')
        self.assertEqual(sorted(os.listdir(self.directory.name)), sorted(os.listdir(committed)))
        for name in os.listdir(self.directory.name):
            _, texts = self.texts(name[:-len('.svg')])
            self.assertTrue(texts, name)


if __name__ == '__main__':
    unittest.main()
