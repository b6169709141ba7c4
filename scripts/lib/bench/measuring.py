"""Stock PostgreSQL and ours side by side.

Sessions in which the extension is disabled, and sessions with it, run the same queries in
turn.  There are two long-lived sessions, and new ones for the times of first sorts.
"""

import contextlib
import dataclasses
import re

from results import is_slower, median, ratio, spread
from servers import Failure, Session

# Both sort in one process and in memory, so that the sorts are compared and not how well
# they use several cores.
SETTINGS = "SET jit = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '2GB';"
SETTINGS_OF = {
    'stock': 'SET pg_gpusort.enable = off; SET pg_gpusort.enable_index_build = off;',
    'ours': "LOAD 'pg_gpusort'; SET pg_gpusort.work_mem = '2GB';",
}

# How often a new session runs what is timed: once for the first time, and then again.
RUNS_OF_SESSION = 3

HEADING = '{:<15} {:>9} {:<35} {:<21} {:<21} {:>6}  {:<21} {:<21} {:>6}  {:<8} {}'


def discarded(query):
    """The query in the form that is timed: all rows are computed, none is sent."""
    return f'{query} OFFSET 1000000000'


def decades(first, most):
    """Numbers of rows: the first one, ten times as many and so on, and the most."""
    numbers = []
    while first < most:
        numbers.append(first)
        first *= 10
    return [*numbers, most]


def workers_of(way):
    """Returns the number of parallel workers in the name of a way of gpu_lines.py."""
    end = way.rpartition('_')[2]
    return int(end) if end.isdigit() else 0


def same_rows(stock, ours, query, keys):
    """Returns whether both sessions return the same rows, and keys in the same order.  keys are
    columns of the result r, as in (r).k8.  Ties may come in any order, so the first sum does not
    depend on positions, and the second one only on keys."""
    sums = f"""
        SELECT count(*), sum(hash_record_extended(r, 0)),
            sum((hash_record_extended(ROW({keys}), 0) & 1048575) * position)
        FROM (SELECT r, row_number() OVER () AS position FROM ({query} OFFSET 0) AS r) AS s"""
    return stock.ask(sums) == ours.ask(sums)


def times_in_turn(runs, sides):
    """sides has functions by their names, which return milliseconds.  Calls them in turn, so many
    times after one run for warming up, and returns the times of each."""
    times = {name: [] for name in sides}
    for run in range(runs + 1):
        for name, time in sides.items():
            milliseconds = time()
            if run > 0:
                times[name].append(milliseconds)
    return times


@dataclasses.dataclass
class Times:
    """Milliseconds of the first run in each session, and of later ones."""
    stock_first: list = dataclasses.field(default_factory=list)
    stock_later: list = dataclasses.field(default_factory=list)
    ours_first: list = dataclasses.field(default_factory=list)
    ours_later: list = dataclasses.field(default_factory=list)

    def add(self, who, times):
        getattr(self, f'{who}_first').append(times[0])
        getattr(self, f'{who}_later').extend(times[1:])

    def divided_by(self, loops):
        return Times(**{name: [time / loops for time in times]
                        for name, times in vars(self).items()})

    def ratios(self):
        return [ratio(median(self.stock_first), median(self.ours_first)),
                ratio(median(self.stock_later), median(self.ours_later))]


class Comparison:
    """The two long-lived sessions, and settings that new ones get as well."""

    def __init__(self, server, runs):
        self.server = server
        self.runs = runs
        self.more = {'stock': '', 'ours': ''}
        self.stock = self.open('stock')
        self.ours = self.open('ours')

    def open(self, who):
        return Session(self.server, who, self.settings_of(who))

    def settings_of(self, who):
        """What a session begins with."""
        return f'{SETTINGS}{SETTINGS_OF[who]}{self.more[who]}'

    @contextlib.contextmanager
    def settings(self, stock, ours=None):
        """Further settings, which are the same if there is one argument."""
        before = dict(self.more)
        self.more['stock'] += f'{stock};'
        self.more['ours'] += f'{stock if ours is None else ours};'
        for session in self.stock, self.ours:
            session.ask(self.more[session.name])
        yield
        self.more = before
        for session in self.stock, self.ours:
            session.ask(f'RESET ALL; {self.settings_of(session.name)}')

    def session_settings(self):
        """Returns what is set in sessions of ours, as NAME=VALUE."""
        return self.ours.ask("""
            SELECT string_agg(name || '=' || current_setting(name), ' ' ORDER BY name)
            FROM pg_settings WHERE source = 'session'""")

    def workers(self, setting='max_parallel_workers_per_gather'):
        return int(self.ours.ask(f'SHOW {setting}'))

    # ---- Times ----

    def times_of_session(self, who, sql, between):
        session = self.open(who)
        times = []
        for _ in range(RUNS_OF_SESSION):
            times.append(session.time(sql))
            session.ask(between)
        session.close()
        return times

    def time_sessions(self, stock, ours, between=''):
        """Runs the SQL of both in new sessions of each, in turn, and between after each time."""
        times = Times()
        for _ in range(self.runs):
            times.add('stock', self.times_of_session('stock', stock, between))
            times.add('ours', self.times_of_session('ours', ours, between))
        return times

    def same_rows(self, query, keys):
        return same_rows(self.stock, self.ours, query, keys)

    def node_of(self, query):
        """Returns the node that sorts in our plan, or none."""
        plan = self.ours.ask(f'EXPLAIN (COSTS OFF) {query}')
        return next((node for node in ('GpuSort', 'Sort') if node in plan), 'none')


class Table:
    """The table of results that is printed, and the rows that go to the CSV file."""

    def __init__(self, comparison, results, phases=False):
        self.comparison = comparison
        self.results = results
        self.phases = phases
        self.slow = []
        self.different = []

    def print_row(self, *columns):
        print(HEADING.format(*columns), flush=True)

    def print_heading(self):
        self.print_row('line', 'rows', 'row', 'stock, first', 'ours, first', 'ratio',
                       'stock, later', 'ours, later', 'ratio', 'sorts', 'same')

    def note_ratios(self, line, ratios):
        if is_slower(ratios):
            self.slow.append(f'{line} ({", ".join(f"{r:.2f}" for r in ratios)})')

    def write(self, line, rows, times, method, workers):
        """Writes the times to the CSV file."""
        settings = self.comparison.session_settings()
        for who, first, later in (('stock', times.stock_first, times.stock_later),
                                  ('cpu', times.ours_first, times.ours_later)):
            for session, values in ('first', first), ('later', later):
                self.results.add(line, rows, who, values, session=session, workers=workers,
                                 settings=settings, method=method if who == 'cpu' else '')

    def add(self, line, rows, what, times, method, same, workers=0):
        """Prints a line, and writes it.  same is whether both had the same result."""
        ratios = times.ratios()
        self.print_row(line, rows, what, spread(times.stock_first), spread(times.ours_first),
                       f'{ratios[0]:.2f}', spread(times.stock_later), spread(times.ours_later),
                       f'{ratios[1]:.2f}', method, 'yes' if same else 'no')
        self.note_ratios(line, ratios)
        if not same:
            self.different.append(line)
        self.write(line, rows, times, method, workers)

    def measure(self, line, rows, what, query, timed=None, loops=1, keys='(r).k8'):
        """Measures a query.  timed is the form that is timed, loops times if once takes too
        little time; keys are as in same_rows."""
        both = self.comparison
        same = both.same_rows(query, keys)
        method = both.node_of(query)
        timed = timed or discarded(query)
        if loops > 1:
            timed = f"DO $$BEGIN FOR i IN 1..{loops} LOOP EXECUTE '{timed}'; END LOOP; END$$"
        times = both.time_sessions(timed, timed).divided_by(loops)
        self.add(line, rows, what, times, method, same, both.workers())
        if self.phases:
            plan = both.ours.ask(f'EXPLAIN (ANALYZE, COSTS OFF) {query}')
            print(re.sub('^', '    ', plan, flags=re.MULTILINE))

    def finish(self):
        print('\nSlower than stock PostgreSQL by more than a twentieth:',
              '; '.join(self.slow) or 'none')
        if self.different:
            raise Failure(f'different results: {", ".join(self.different)}')
