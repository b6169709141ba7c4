"""Random queries that sort, in the first run of a session and in later ones.  Each line is a
query; the script random-queries makes as many."""

import math
import os
import subprocess

from measuring import discarded
from results import median
from servers import HERE, Failure

NUMBER = 60
LINES = {f'q{number}': number for number in range(1, NUMBER + 1)}

# Ratios count as slower only if stock takes at least so many milliseconds.
LEAST_MS = 200

HEADING = '{:<5} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6}  {:<7} {:<4}  {}'


def make_queries(bench, seed):
    """Makes the tables, and returns the fields of each query."""
    made = subprocess.run(
        [os.path.join(HERE, 'random-queries'), seed, str(bench.rows), str(NUMBER)],
        capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise Failure(f'random-queries: {made.stderr}')
    tables, queries = made.stdout.split('\nqueries\n')
    bench.server.sql(text=tables)
    return [query.split('\t') for query in queries.splitlines()]


def measure(bench, line, fields):
    """Prints a line, and returns who has sorted and the ratios."""
    memory, our_memory, workers, query, compared, keys = fields
    settings = f"SET work_mem = '{memory}'; SET max_parallel_workers_per_gather = {workers}"
    with bench.both.settings(settings, f"{settings}; SET pg_gpusort.work_mem = '{our_memory}'"):
        same = bench.both.same_rows(compared, keys)
        node = bench.both.node_of(query)
        times = bench.both.time_sessions(discarded(query), discarded(query))
        bench.table.write(f'seed_{bench.seed}_{line}', bench.rows, times, node, workers)
    first, later = times.ratios()
    print(HEADING.format(
        line, f'{median(times.stock_first):.0f}', f'{median(times.ours_first):.0f}', f'{first:.2f}',
        f'{median(times.stock_later):.0f}', f'{median(times.ours_later):.0f}', f'{later:.2f}',
        node, 'yes' if same else 'no', f'{memory}, {our_memory}, {workers}: {query}'), flush=True)
    if not same:
        bench.table.different.append(line)
    if median(times.stock_first) >= LEAST_MS:
        bench.table.note_ratios(f'{line} by {node}', [first, later])
    return node, first, later


def mean(ratios):
    """The geometric mean, to be printed."""
    return f'{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}' if ratios else '-'


def run(bench, lines):
    queries = make_queries(bench, bench.seed)
    print(HEADING.format('line', 'stock, 1st', 'ours, 1st', 'ratio', 'later', 'later', 'ratio',
                         'sorts', 'same', 'work_mem, pg_gpusort.work_mem, workers: query'))
    measured = [measure(bench, line, queries[LINES[line] - 1]) for line in lines]
    ours = [ratios for node, *ratios in measured if node == 'GpuSort']
    others = [ratios for node, *ratios in measured if node != 'GpuSort']
    print(f'\n{len(ours)} queries with a sort of ours: geometric mean of the ratios '
          f'{mean([first for first, _ in ours])} first, {mean([later for _, later in ours])} later')
    print(f'{len(others)} without: {mean([first for first, _ in others])} first, '
          f'{mean([later for _, later in others])} later')
    bench.table.finish()
