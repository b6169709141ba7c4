"""scripts/bench corpus: runs what analysts ask, by stock PostgreSQL and by ours in turn, with several
settings, and says where ours is slower.

There are families of tables and queries, which are in corpus/:
  analysts  40 queries of a shop: events of its web site, sessions, customers, orders and their lines,
            with skew, NULLs, NaN, jsonb.  Funnels, the best of each group, retention, rollups,
            distinct counts, percentiles, running totals, joins, set operations, exports
  hits      22 as in ClickBench, of a table of 105 columns, whose texts are mostly empty or have few
            values: groups of urls and phrases, distinct users, whole rows in order
  groups    23 as in the H2O benchmark, of nine columns with few and many groups: sums, medians and
            deviations, the two best, joins
  movies    19 as in the Join Order Benchmark, of skewed tables that depend on each other: joins of 4
            to 12 tables, with min(), groups or an order on top

Each query is run in new sessions, first and a second time, with each work_mem and each maximum of
workers; everything else is as the server has it.  Prints milliseconds, medians; whether the plans
differ in more than who sorts; and how many of all sorts are GpuSorts.  Rows are compared.  The
end has geometric means, of the queries with a GpuSort and of all, and all losers: queries that take
stock PostgreSQL %d ms or more, and ours more than a twentieth longer.  With --than cpu, ours without
a GPU is what stock PostgreSQL is otherwise."""

import math
import re

from families import FAMILIES, in_databases, queries_of
from measuring import SETTINGS_OF, same_rows
from options import add_device, parser_of
from planning import Planning, large_queries
from queries import measure_queries, ours_of_all, plan_of, shape
from results import is_slower, median, ratio
from servers import Failure, Session

# What ours is compared with, and its settings.
OTHERS = {
    'stock': SETTINGS_OF['stock'],
    'cpu': 'SET pg_gpusort.backend = cpu;',
}

HEADING = '{:<28} {:>6} {:>7} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6}  {:<5} {:<5} {}'

# Below that, a query is no loser.
LEAST_MS = 200

__doc__ %= LEAST_MS


def mean(ratios):
    """The geometric mean, to be printed."""
    return f'{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}' if ratios else 'none'


class Corpus:
    """Measures queries with some settings."""

    def __init__(self, options, server, results, who):
        self.options = options
        self.server = server
        self.results = results
        self.who = who
        self.other = options.than
        self.ratios = {True: [], False: []}  # pairs, by whether there is a GpuSort
        self.losers = []
        self.different = []

    def open(self, who, settings):
        return Session(self.server, who, settings + OTHERS.get(who, ''))

    def times(self, who, settings, text):
        """Returns the time of the first run in a new session, and that of the second."""
        session = self.open(who, settings)
        times = session.time(text), session.time(text)
        session.close()
        return times

    def compare(self, settings, query):
        """Returns whether both have the same rows, and their plans."""
        other, ours = self.open(self.other, settings), self.open('ours', settings)
        same = same_rows(other, ours, query.text, query.keys)
        plans = [plan_of(session, query.timed()) for session in (other, ours)]
        other.close()
        ours.close()
        return same, plans

    def explain(self, settings, query):
        """Prints the plans of both with their times, in a second run."""
        for who in (self.other, 'ours'):
            session = self.open(who, settings)
            session.time(query.timed())
            print(re.sub('^', f'    {who + ":":<7}', session.ask(f'EXPLAIN (ANALYZE) {query.timed()}'),
                         flags=re.MULTILINE), flush=True)
            session.close()

    def measure(self, query, memory, workers):
        settings = f"SET work_mem = '{memory}'; SET max_parallel_workers_per_gather = {workers};"
        same, plans = self.compare(settings, query)
        plan = 'same' if shape(plans[0]) == shape(plans[1]) else 'other'
        taken = {self.other: [], 'ours': []}
        for _ in range(self.options.runs):
            for who, times in taken.items():
                times.append(self.times(who, settings, query.timed()))
        medians = {who: [median(column) for column in zip(*times)] for who, times in taken.items()}
        other = medians[self.other]
        ratios = [ratio(*pair) for pair in zip(other, medians['ours'])]
        print(HEADING.format(
            query.name, memory, workers, f'{other[0]:.0f}', f'{medians["ours"][0]:.0f}', f'{ratios[0]:.2f}',
            f'{other[1]:.0f}', f'{medians["ours"][1]:.0f}', f'{ratios[1]:.2f}', plan, ours_of_all(plans[1]),
            'yes' if same else 'no'), flush=True)
        if self.options.plans:
            self.explain(settings, query)
        self.note(f'{query.name}, {memory}, {workers} workers', other[0], ratios, plans[1], same)
        for who, times in taken.items():
            for session, column in zip(('first', 'later'), zip(*times)):
                self.results.add(
                    f'corpus_{query.name}', self.rows, self.who if who == 'ours' else who, column,
                    workers=workers, session=session, settings=f'work_mem={memory}',
                    method=f'{plan} {ours_of_all(plans[1])}' if who == 'ours' else '')

    def note(self, what, other_ms, ratios, plan, same):
        self.ratios['GpuSort' in plan].append(ratios)
        if other_ms >= LEAST_MS and is_slower(ratios):
            self.losers.append(f'{what} ({", ".join(f"{ratio:.2f}" for ratio in ratios)})')
        if not same:
            self.different.append(what)

    def measure_family(self, queries):
        """Measures the queries with all settings.  Results have the rows of all tables together."""
        self.rows = self.server.sql("""
            SELECT sum(reltuples)::int8 FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace""")
        for query in queries:
            for memory in self.options.memory.split(','):
                for workers in self.options.workers.split(','):
                    self.measure(query, memory, workers)

    def run(self, queries):
        print(f'Tables:     scale {self.options.scale}, seed {self.options.seed}; texts in {self.options.locale}')
        print(f'Times:      {self.options.runs} new sessions each, of two runs; milliseconds, medians\n')
        print(HEADING.format('query', 'memory', 'workers', f'{self.other} 1st', 'ours 1st', 'ratio', f'{self.other} 2nd',
                             'ours 2nd', 'ratio', 'plan', 'sorts', 'same'))
        for _, queries_of_family in in_databases(self.server, self.options, queries):
            self.measure_family(queries_of_family)
        for name, ratios in (('with a GpuSort', self.ratios[True]),
                             ('all', self.ratios[True] + self.ratios[False])):
            firsts, laters = zip(*ratios) if ratios else ((), ())
            print(f'\nGeometric means of {len(ratios)}, {name}: {mean(firsts)} first, {mean(laters)} second', end='')
        print(f'\nSlower than {self.other} by more than a twentieth:', '; '.join(self.losers) or 'none')
        if self.different:
            raise Failure(f'different results: {"; ".join(self.different)}')


def parse_options(arguments):
    parser = parser_of('bench corpus', __doc__, 'query')
    parser.add_argument('-f', dest='families', default=','.join(FAMILIES), metavar='FAMILY,...',
                        help='families of queries (default all)')
    parser.add_argument('--planning', action='store_true',
                        help='only plan the queries, and some large ones, and say which take longer to plan')
    parser.add_argument('-s', dest='scale', type=float, default=0.5, metavar='SCALE',
                        help='scale of the tables (default 0.5); 1 has 3 million events, a million hits')
    parser.add_argument('-q', dest='seed', type=int, default=1, metavar='SEED',
                        help='seed of the tables (default 1)')
    parser.add_argument('-n', dest='runs', type=int, default=3, metavar='RUNS',
                        help='new sessions for each query, of both (default 3); with --planning, rounds (at least 15)')
    parser.add_argument('-w', dest='memory', default='4MB,64MB,256MB', metavar='MEMORY,...',
                        help='each work_mem (default 4MB,64MB,256MB)')
    parser.add_argument('-j', dest='workers', default='0,2,8', metavar='WORKERS,...',
                        help='each maximum of parallel workers (default 0,2,8)')
    parser.add_argument('--than', choices=OTHERS, default='stock', metavar='OTHER',
                        help='what ours is compared with: stock PostgreSQL (default), or cpu')
    parser.add_argument('--locale', default='en_US.UTF-8', metavar='LOCALE',
                        help='of the texts, by the C library (default en_US.UTF-8)')
    parser.add_argument('-p', dest='plans', action='store_true', help='also print EXPLAIN (ANALYZE) of both')
    add_device(parser)
    return parser.parse_args(arguments)


def main(arguments):
    options = parse_options(arguments)
    families = options.families.split(',')
    for family in families:
        if family not in FAMILIES:
            raise Failure(f'no family {family}; there are {" ".join(FAMILIES)}')
    queries = queries_of(families)
    if options.planning:
        queries.update(large_queries())
    measure_queries(options, queries, Planning if options.planning else Corpus, 1500, preload=True)
