"""The lines of scripts/bench -s: times over the number of rows and over the number of workers,
and what each phase of a sort takes, of the narrow table and of the one with 15 columns.

Stock PostgreSQL, ours and, if asked for, DuckDB sort the same rows in turn, in sessions that
stay, after one run for warming up.  DuckDB sorts all rows and returns the last one, with as
many threads as there are processes."""

import duckdb
from measuring import discarded, times_in_turn
from results import median, ratio, spread
from servers import Failure, cores
from tables import ORDINARY_COLUMNS, make_table

HEADING = '{:<17} {:>10} {:<8} {:>7} {:<26} {:>7}  {:<8} {}'

# The first number of rows over which times are measured.
FIRST_ROWS = 100000

WORKERS = (0, 1, 2, 4, 8, 15)

# Memory of a sort whose phases are shown: all rows in memory, and on disk.
MEMORIES = ('2GB', '16MB')


def numbers_of_rows(most):
    """100000, 300000, 1000000 and so on, up to the most."""
    numbers = []
    decade = FIRST_ROWS
    while decade <= most:
        numbers += [decade * factor for factor in (1, 3) if decade * factor <= most]
        decade *= 10
    return numbers


def numbers_of_workers():
    return [number for number in WORKERS if number <= max(cores() - 1, 2)]


class ScaleLines:
    """Measures lines."""

    def __init__(self, bench):
        self.bench = bench
        self.both = bench.both

    def make(self, kind, rows):
        columns = {'narrow': f'i AS id, {self.bench.key} AS k8', 'ordinary': ORDINARY_COLUMNS}[kind]
        name = f'{kind}_{rows}'
        make_table(self.bench.server, name, rows, columns)
        return name

    def drop(self, name):
        self.bench.server.sql(f'DROP TABLE {name}')

    def report(self, line, rows, times, methods, workers):
        """Prints and writes the times of each."""
        settings = self.both.session_settings()
        for who, taken in times.items():
            faster = f'{ratio(median(times["stock"]), median(taken)):.2f}'
            print(HEADING.format(line, rows, who, workers, spread(taken), faster, len(taken),
                                 methods[who]), flush=True)
            others = {'version': self.bench.duckdb_version} if who == 'duckdb' else {}
            self.bench.results.add(
                line, rows, who, taken, workers=workers, session='warm', method=methods[who],
                settings=f'threads={workers + 1}' if who == 'duckdb' else settings, **others)

    def compare(self, line, table, rows, workers, other=None):
        """Measures one query by all of them."""
        query = f'SELECT * FROM {table} ORDER BY k8'
        sides = {'stock': lambda: self.both.stock.time(discarded(query)),
                 'cpu': lambda: self.both.ours.time(discarded(query))}
        methods = {'stock': '', 'cpu': self.both.node_of(query), 'duckdb': ''}
        if not self.both.same_rows(query, '(r).k8'):
            self.bench.table.different.append(f'{line} with {rows} rows')
        if other:
            other.set_threads(workers + 1)
            sides['duckdb'] = lambda: other.time_sort(table, rows)
        self.report(line, rows, times_in_turn(self.bench.runs, sides), methods, workers)

    def with_duckdb(self, table, measure):
        """Calls measure with a DuckDB that has the rows of the table, or with None."""
        if not self.bench.duckdb:
            measure(None)
            return
        with duckdb.DuckDB(self.bench.duckdb) as other:
            self.bench.duckdb_version = other.version
            other.load(self.bench.server, table)
            if not other.has_same_rows(self.both.stock, table):
                self.bench.table.different.append(f'{table} in DuckDB')
            measure(other)

    def over_rows(self, line, kind):
        for rows in numbers_of_rows(self.bench.rows // (1 if kind == 'narrow' else 5)):
            table = self.make(kind, rows)
            self.with_duckdb(table, lambda other, table=table, rows=rows: self.compare(
                line, table, rows, 0, other))
            self.drop(table)

    def over_workers(self, line, kind):
        rows = self.bench.rows // (1 if kind == 'narrow' else 5)
        table = self.make(kind, rows)

        def measure(other):
            for workers in numbers_of_workers():
                self.bench.server.sql(f'ALTER TABLE {table} SET (parallel_workers = {workers})')
                # Stock uses them regardless of their cost.
                settings = f"""SET max_parallel_workers = 16;
                    SET max_parallel_workers_per_gather = {workers};"""
                with self.both.settings(
                        f'{settings} SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0', settings):
                    self.compare(line, table, rows, workers, other)

        self.with_duckdb(table, measure)
        self.drop(table)

    def phases_of_run(self, query):
        """Runs the query, and returns the milliseconds of its phases, which pg_stat_gpusort
        counts.  What it does not count is the return of rows, with the merge of runs."""
        session = self.both.ours
        session.ask('SELECT pg_stat_gpusort_reset()')
        total = session.time(discarded(query))
        read, sort = map(float, session.ask(
            'SELECT sum(drain_time), sum(sort_time) FROM pg_stat_gpusort').split('|'))
        return {'read': read, 'sort': sort, 'return': total - read - sort}

    def phases(self, line, kind):
        rows = self.bench.rows // (1 if kind == 'narrow' else 5)
        table = self.make(kind, rows)
        query = f'SELECT * FROM {table} ORDER BY k8'
        for memory in MEMORIES:
            settings = f"SET work_mem = '{memory}'; SET pg_gpusort.work_mem = '{memory}'"
            with self.both.settings(settings):
                if self.both.node_of(query) != 'GpuSort':
                    raise Failure(f'{line}: {rows} rows are too few for a sort of ours')
                runs = [self.phases_of_run(query) for _ in range(self.bench.runs + 1)][1:]
                for phase in runs[0]:
                    taken = [run[phase] for run in runs]
                    print(HEADING.format(line, rows, 'cpu', 0, spread(taken), '-', len(taken),
                                         f'{phase}, {memory}'), flush=True)
                    self.bench.results.add(line, rows, 'cpu', taken, workers=0, session='warm',
                                           phase=phase, settings=self.both.session_settings())
        self.drop(table)


LINES = {
    'rows_narrow': (ScaleLines.over_rows, 'narrow'),
    'rows_ordinary': (ScaleLines.over_rows, 'ordinary'),
    'workers_narrow': (ScaleLines.over_workers, 'narrow'),
    'workers_ordinary': (ScaleLines.over_workers, 'ordinary'),
    'phases_narrow': (ScaleLines.phases, 'narrow'),
    'phases_ordinary': (ScaleLines.phases, 'ordinary'),
}


def run(bench, lines):
    measured = ScaleLines(bench)
    print(HEADING.format('line', 'rows', 'who', 'workers', 'ms', 'x stock', 'runs', 'method'))
    for line in lines:
        method, kind = LINES[line]
        method(measured, line, kind)
    bench.table.finish()
