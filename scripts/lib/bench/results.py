"""Statistics of times, and results as CSV."""

import csv
import datetime
import os
import statistics

# A row is what one of stock PostgreSQL, ours and others took for a line:
#
# date              of the measurement, like 2026-11-25
# commit            abbreviated; with a + if the tree had changes
# cpu cores memory_mb gpu   of the machine; gpu is empty if none is used or there is none
# version           of PostgreSQL, or of DuckDB if who says so
# line rows         what was measured: the name of a line of scripts/bench, and its rows
# who               stock, cpu, gpu (ours on either), duckdb, pgstrom, or scan (no sort)
# workers           up to so many beside the leader
# settings          of the session, NAME=VALUE
# session           first (the first time in a new connection), later, or warm (a
#                   connection that stays, after one run)
# phase             of the sort, if this is its time alone; processor for the processor time
#                   of all servers, instead of the time that has passed
# median_ms min_ms max_ms   the median may be empty where it is not known
# runs
# host_mb           the most memory of the host that processes took, beside shared buffers; may be empty
# method            the node or the method that has sorted
# note              what else one has to know, such as other work on the machine
COLUMNS = ('date', 'commit', 'cpu', 'cores', 'memory_mb', 'gpu', 'version', 'line', 'rows', 'who',
           'workers', 'settings', 'session', 'phase', 'median_ms', 'min_ms', 'max_ms', 'runs',
           'host_mb', 'method', 'note')

# Ours is slower if it takes more than this many times as long as stock.
SLOWER = 1.05

median = statistics.median


def ratio(stock, ours):
    """How many times as fast ours is."""
    return stock / ours if ours else float('inf')


def spread(times, digits=None):
    """Returns "median (least..greatest)", with fractions if they matter."""
    middle = median(times)
    if digits is None:
        digits = 3 if middle < 10 else 0
    return f'{middle:.{digits}f} ({min(times):.{digits}f}..{max(times):.{digits}f})'


def is_slower(ratios):
    return any(ratio * SLOWER < 1 for ratio in ratios)


def rounded(milliseconds):
    """To microseconds, or nanoseconds of times that were measured in a loop."""
    return f'{milliseconds:.{3 if milliseconds >= 1 else 6}f}'.rstrip('0').rstrip('.')


class Results:
    """A file of results, or none if the path is None."""

    def __init__(self, path, machine, note=''):
        """machine has the first columns, up to version."""
        self.machine = dict(machine, date=datetime.date.today().isoformat())
        self.note = note
        self.file = None
        if path:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            self.file = open(path, 'w', encoding='utf-8', newline='')
            self.writer = csv.DictWriter(self.file, COLUMNS, restval='', lineterminator='\n')
            self.writer.writeheader()

    def add(self, line, rows, who, times, **others):
        """Writes a row.  times are milliseconds; others are further columns."""
        if not self.file:
            return
        self.writer.writerow({
            **self.machine, 'line': line, 'rows': rows, 'who': who,
            'median_ms': rounded(median(times)), 'min_ms': rounded(min(times)),
            'max_ms': rounded(max(times)), 'runs': len(times), 'note': self.note, **others})
        self.file.flush()


def read(path):
    """Returns the rows of a file as dictionaries.  Fails if its columns are others.  The median
    may be unknown where the least and the greatest are not."""
    with open(path, encoding='utf-8', newline='') as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f'{path}: the columns are not those of scripts/lib/bench/results.py')
        rows = list(reader)
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise ValueError(f'{path}:{number}: wrong number of columns')
        if not all(float(row[name]) > 0
                   for name in (['median_ms'] if row['median_ms'] else ['min_ms', 'max_ms'])):
            raise ValueError(f'{path}:{number}: a time is not positive')
        int(row['rows'])
    return rows
