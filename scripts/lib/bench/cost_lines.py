"""What sorts and hash tables cost per row, as measured and as planned.

Costs are in units of cpu_operator_cost; the length of a unit is measured by a sequential
scan."""

import re

from measuring import discarded, times_in_turn
from results import median, ratio

NINE_COLUMNS = 'id, k1, k2, k3, k4, g1k, g10k, g100k, g1m'
TWELVE_COLUMNS = f'{NINE_COLUMNS}, t, t32, t96'

CPU_OPERATOR_COST = 0.0025

HEADING = '{:<15} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9}  {}'


def make_tables(bench):
    """Columns in random order: numbers below a thousand to a million, and 64-bit numbers."""
    bench.server.sql(f"""
        CREATE UNLOGGED TABLE costs AS
            SELECT i AS id, hashint8extended(i, 1) AS k1, hashint8extended(i, 2) AS k2,
                hashint8extended(i, 3) AS k3, hashint8extended(i, 4) & 255 AS k4,
                (hashint8extended(i, 5) & 1073741823) % 1000 AS g1k,
                (hashint8extended(i, 5) & 1073741823) % 10000 AS g10k,
                (hashint8extended(i, 5) & 1073741823) % 100000 AS g100k,
                (hashint8extended(i, 5) & 1073741823) % 1000000 AS g1m,
                'text ' || (hashint8extended(i, 6) & 65535) AS t,
                repeat('x', 30) AS t32, repeat('x', 94) AS t96, repeat('x', 252) AS t256
            FROM generate_series(1, {bench.rows}::int8) AS i""", """
        CREATE UNLOGGED TABLE others AS
            SELECT i AS id, hashint8extended(i, 7) AS v
            FROM generate_series(0, 999999) AS i""",
                     'CREATE TABLE nothing (LIKE costs)',
                     'VACUUM (FREEZE, ANALYZE) costs, others, nothing')


def planned_cost(session, query):
    return float(re.search(r'\.\.([0-9.]+) rows=', session.ask(f'EXPLAIN {query}')).group(1))


class Costs:
    """Measures lines.  unit_ms is the time of one unit."""

    def __init__(self, bench):
        self.bench = bench
        self.both = bench.both
        query = 'SELECT id, k1 FROM costs'
        self.unit_ms = (median(self.times([(self.both.stock, query)])[0])
                        / planned_cost(self.both.stock, query) * CPU_OPERATOR_COST)

    def times(self, queries):
        """Returns the times of each session and query, which run in turn, after one run for
        warming up."""
        sides = {number: lambda session=session, query=query: session.time(discarded(query))
                 for number, (session, query) in enumerate(queries)}
        return list(times_in_turn(self.bench.runs, sides).values())

    def per_row(self, total, base, unit):
        return f'{(total - base) / self.bench.rows / unit:.1f}'

    def measure(self, line, base, query):
        """query processes the rows that base only returns."""
        stock, ours = self.both.stock, self.both.ours
        times = self.times([(stock, base), (stock, query), (ours, query)])
        base_ms, stock_ms, ours_ms = (median(taken) for taken in times)
        base_cost = planned_cost(stock, base)
        node = ours.ask(f'EXPLAIN (COSTS OFF) {query}').split('\n')[0].strip()
        print(HEADING.format(
            line, f'{base_ms:.0f}', f'{stock_ms:.0f}', f'{ours_ms:.0f}',
            self.per_row(stock_ms, base_ms, self.unit_ms),
            self.per_row(ours_ms, base_ms, self.unit_ms),
            self.per_row(planned_cost(stock, query), base_cost, CPU_OPERATOR_COST),
            self.per_row(planned_cost(ours, query), base_cost, CPU_OPERATOR_COST),
            f'{ratio(stock_ms, ours_ms):.2f}', node), flush=True)
        settings = self.both.session_settings()
        for who, taken in zip(('scan', 'stock', 'cpu'), times):
            self.bench.results.add(f'cost_{line}', self.bench.rows, who, taken, session='warm',
                                   workers=0, settings=settings, method=node if who == 'cpu' else '')


def sort_of(columns, keys, on_disk=False):
    """The input is not a plain scan, because GpuSort reads those faster than the planner
    assumes."""
    source = f"""SELECT * FROM (SELECT {columns} FROM costs
        UNION ALL SELECT {columns} FROM nothing) AS s"""

    def measure(costs, line):
        memory = '4MB' if on_disk else '2GB'
        settings = f"SET work_mem = '{memory}'"
        with costs.both.settings(settings, f"{settings}; SET pg_gpusort.work_mem = '{memory}'"):
            costs.measure(line, source, f'{source} ORDER BY {keys}')
    return measure


def groups(name):
    return lambda costs, line: costs.measure(
        line, f'SELECT g{name} FROM costs', f'SELECT g{name}, count(*) FROM costs GROUP BY g{name}')


def join(name, number):
    """Joins with this number of rows of another table."""
    return lambda costs, line: costs.measure(
        line, f'SELECT id, k1, g{name} FROM costs', f"""
            SELECT costs.id, k1, v FROM costs JOIN others ON others.id = g{name}
            WHERE others.id < {number}""")


LINES = {
    'bytes_16': sort_of('id, k1', 'k1'), 'bytes_48': sort_of('id, k1, t32', 'k1'),
    'bytes_112': sort_of('id, k1, t96', 'k1'), 'bytes_272': sort_of('id, k1, t256', 'k1'),
    'words_2': sort_of('k1, k4', 'k4, k1'), 'words_4': sort_of('k1, k2, k3, k4', 'k4, k1, k2'),
    'ties': sort_of('id, t', 't'), 'disk': sort_of('id, k1', 'k1', on_disk=True),
    'columns_4': sort_of('id, k1, k2, k3', 'k1'),
    'columns_7': sort_of('id, k1, k2, k3, k4, g1k, g10k', 'k1'),
    'columns_9': sort_of(NINE_COLUMNS, 'k1'), 'columns_12': sort_of(TWELVE_COLUMNS, 'k1'),
    'columns_12_disk': sort_of(TWELVE_COLUMNS, 'k1', on_disk=True),
    'sorted': sort_of('id, k1', 'id'), 'sorted_disk': sort_of('id, k1', 'id', on_disk=True),
    'sorted_12_disk': sort_of(TWELVE_COLUMNS, 'id', on_disk=True),
    'groups_1k': groups('1k'), 'groups_10k': groups('10k'), 'groups_100k': groups('100k'),
    'groups_1m': groups('1m'),
    'join_1k': join('1k', 1000), 'join_10k': join('10k', 10000),
    'join_100k': join('100k', 100000), 'join_1m': join('1m', 1000000),
}


def run(bench, lines):
    make_tables(bench)
    costs = Costs(bench)
    print(f'Unit:       cpu_operator_cost is {costs.unit_ms * 1000000:.1f} ns\n')
    print(HEADING.format('line', 'input ms', 'stock ms', 'ours ms', 'stock', 'ours', 'planned',
                         'planned', 'ratio', 'node'))
    for line in lines:
        LINES[line](costs, line)
