"""scripts/bench tpch: runs queries like those of TPC-H, by stock PostgreSQL and by ours in turn, and
compares plans and times.

Prints medians, with the least and the greatest in parentheses.  The column plan says "same" if
the plans differ only in that some Sorts are GpuSorts, and otherwise "other".  The column sorts
says how many of all sorts are GpuSorts.  Tables and queries are in tpch_tables.sql and
tpch_queries.sql."""

import argparse
import os
import re

from measuring import SETTINGS_OF, same_rows, times_in_turn
from options import add_device, parser_of
from queries import measure_queries, ours_of_all, plan_of, read_queries, shape
from results import median, ratio, spread
from servers import HERE, Failure, Session

HEADING = '{:<15} {:<30} {:<30} {:>6} {:<5} {:<6} {}'


# ---- The table ----

class Tpch:
    """Measures queries in two long-lived sessions."""

    def __init__(self, options, server, results, who):
        settings = f"""SET jit = off; SET max_parallel_workers_per_gather = {options.workers};
            SET work_mem = '{options.memory}';"""
        ours = ''.join(f"SET {name} = '{value}';" for name, value in options.settings)
        make_database(server, options)
        self.options = options
        self.results = results
        self.stock = Session(server, 'stock', settings + SETTINGS_OF['stock'])
        self.ours = Session(server, 'ours', f"{settings} LOAD 'pg_gpusort'; {ours}")
        self.who = who
        self.different = []

    def measure(self, query):
        text = query.timed()
        plans = [plan_of(session, text) for session in (self.stock, self.ours)]
        plan = 'same' if shape(plans[0]) == shape(plans[1]) else 'other'
        same = same_rows(self.stock, self.ours, query.text, query.keys)
        times = times_in_turn(self.options.runs, {
            'stock': lambda: self.stock.time(text), self.who: lambda: self.ours.time(text)})
        print(HEADING.format(query.name, spread(times['stock'], 1), spread(times[self.who], 1),
                             f'{ratio(median(times["stock"]), median(times[self.who])):.2f}',
                             plan, ours_of_all(plans[1]), 'yes' if same else 'no'), flush=True)
        if not same:
            self.different.append(query.name)
        for who, taken in times.items():
            self.results.add(
                f'tpch_{query.name}', self.items, who, taken, workers=self.options.workers,
                session='warm', settings=f'work_mem={self.options.memory}',
                method='' if who == 'stock' else f'{plan} {ours_of_all(plans[1])}')
        if self.options.plans and plan == 'other':
            for name, one in ('stock', plans[0]), ('ours', plans[1]):
                print(re.sub('^', f'    {name + ":":<7}', one, flags=re.MULTILINE))

    def run(self, queries):
        self.items = self.stock.ask('SELECT count(*) FROM lineitem')
        print(f'Tables:     scale {self.options.scale}, {self.items} items; {self.options.collation} '
              'collation')
        print(f'Settings:   work_mem {self.options.memory}, {self.options.workers} parallel workers, '
              'jit off', *(f'{name}={value}' for name, value in self.options.settings))
        print(f'Times:      {self.options.runs} runs after one to warm up; milliseconds: median '
              '(least..greatest)\n')
        print(HEADING.format('query', 'stock', 'ours', 'ratio', 'plan', 'sorts', 'same'))
        for query in queries:
            self.measure(query)
        if self.different:
            raise Failure(f'different results: {", ".join(self.different)}')


# ---- The server ----

def make_database(server, options):
    provider = "LOCALE 'C'"
    if options.collation == 'ICU':
        provider += " LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
    server.sql(f'CREATE DATABASE tpch TEMPLATE template0 {provider}')
    server.environment['PGDATABASE'] = 'tpch'
    print('Making the tables', flush=True)
    with open(os.path.join(HERE, 'tpch_tables.sql'), encoding='utf-8') as file:
        server.sql(text=f'\\set scale {options.scale}\n{file.read()}')


def parse_options(arguments):
    def setting(text):
        name, equals, value = text.partition('=')
        if not equals:
            raise argparse.ArgumentTypeError('not NAME=VALUE')
        return name, value

    parser = parser_of('bench tpch', __doc__, 'query')
    parser.add_argument('-s', dest='scale', type=float, default=0.25, metavar='SCALE',
                        help='scale of the tables (default 0.25); 1 has 6 million items')
    parser.add_argument('-n', dest='runs', type=int, default=5, metavar='RUNS',
                        help='timed runs of each query (default 5), after one for warming up')
    parser.add_argument('-w', dest='memory', default='4MB', metavar='MEMORY',
                        help="work_mem (default 4MB, as the server's)")
    parser.add_argument('-j', dest='workers', type=int, default=0, metavar='WORKERS',
                        help='maximum of parallel workers of a query (default 0)')
    parser.add_argument('-o', dest='settings', type=setting, action='append', default=[],
                        metavar='SETTING',
                        help='a setting of our session, like pg_gpusort.min_rows=0; may be repeated')
    add_device(parser)
    parser.add_argument('-i', dest='collation', action='store_const', const='ICU', default='C',
                        help='texts are compared as in English, by ICU, and not byte by byte')
    parser.add_argument('-p', dest='plans', action='store_true',
                        help='also print both plans of queries where their shapes differ')
    return parser.parse_args(arguments)


def main(arguments):
    measure_queries(parse_options(arguments), read_queries('tpch_queries.sql'), Tpch, 2500)
