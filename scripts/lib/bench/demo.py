"""scripts/demo: shows what the extension does: it makes a table, sorts it and builds an index on
it by stock PostgreSQL and by the extension, and compares the results and times."""

import argparse
import re

import servers
from index_lines import BTREE_DIGEST
from measuring import SETTINGS, SETTINGS_OF, discarded, same_rows
from results import median, ratio
from servers import Failure, Server, Session

RUNS = 3                    # timed runs of each query and index build
BUILD = 'CREATE INDEX built ON events (id)'

ROW = '{:<40} {:>9} {:>9} {:>6}  {}'

FUNCTIONS = (
    'SELECT gpu_sort(ARRAY[3, 1, 2])',
    "SELECT gpu_sort(ARRAY[2.5, NULL, 'NaN', -1]::float8[], descending => true)",
    'SELECT gpu_argsort(ARRAY[30, 10, 20])',
    "SELECT * FROM gpu_sort_pairs(ARRAY[3, 1, 2], ARRAY['c', 'a', 'b'])",
    'SELECT (gpu_sort(array_agg(id)))[1:3] FROM events')


def say(text):
    print(text, flush=True)


def load(server, rows):
    say(f'Loading events, {rows} rows of random int8, float8, timestamptz and text')
    server.sql(f"""
        CREATE UNLOGGED TABLE events AS
        SELECT hashint8extended(i, 1) AS id,
            hashint8(i) / 1000.0::float8 AS value,
            timestamptz '2020-01-01' +
                (hashint8extended(i, 2) & 134217727) * interval '1 second' AS happened,
            to_hex(hashint8extended(i, 3)) AS note
        FROM generate_series(1, {rows}) AS i""",
               'VACUUM (FREEZE, ANALYZE) events')


def show_functions(server):
    print('\nFunctions that sort arrays:')
    for statement in FUNCTIONS:
        print(f'  {statement}')
        print(re.sub('^', '      ', server.sql(statement), flags=re.MULTILINE))
    print(flush=True)


class Demo:
    """Compares, and gathers the lines of the table."""

    def __init__(self, server):
        self.server = server
        self.stock = Session(server, 'stock', SETTINGS + SETTINGS_OF['stock'])
        self.ours = Session(server, 'ours', SETTINGS + SETTINGS_OF['ours'])
        self.table = []
        self.different = False

    def setting(self, name):
        return self.stock.ask(f'SHOW {name}')

    def set(self, settings):
        for session in self.stock, self.ours:
            session.ask(settings)

    def heading(self, text):
        self.table += ['', text]

    def add(self, what, same, time):
        """Adds a line with the times of both in turn, which time() takes of a session."""
        times = [(time(self.stock), time(self.ours)) for _ in range(RUNS)]
        stock, ours = (median(taken) for taken in zip(*times))
        self.table.append(ROW.format(what, f'{stock:.0f}', f'{ours:.0f}', f'{ratio(stock, ours):.2f}',
                                     'yes' if same else 'no'))
        self.different = self.different or not same

    def compare_sorts(self, order, keys):
        query = f'SELECT * FROM events ORDER BY {order}'
        say(query)
        self.add(f'ORDER BY {order}', same_rows(self.stock, self.ours, query, keys),
                 lambda session: session.time(discarded(query)))

    def build(self, session):
        """Returns milliseconds.  The checkpoint writes the previous build first."""
        self.server.sql('CHECKPOINT')
        milliseconds = session.time(BUILD)
        digest = self.server.sql(BTREE_DIGEST)
        self.server.sql('DROP INDEX built')
        return milliseconds, digest

    def compare_builds(self):
        say(BUILD)
        same = self.build(self.stock)[1] == self.build(self.ours)[1]
        self.add('CREATE INDEX ON events (id)', same, lambda session: self.build(session)[0])

    def compare(self):
        self.heading(f'One process, without jit, work_mem {self.setting("work_mem")}:')
        self.compare_sorts('id', '(r).id')
        self.compare_sorts('value DESC', '(r).value')
        self.compare_sorts('happened, id', '(r).happened, (r).id')
        self.compare_sorts('note', '(r).note')

        self.set("SET max_parallel_maintenance_workers = 0; SET maintenance_work_mem = '1GB'")
        self.heading(f'One process, maintenance_work_mem {self.setting("maintenance_work_mem")}:')
        self.compare_builds()

        self.set('RESET ALL')
        self.stock.ask(SETTINGS_OF['stock'])
        self.heading(f'Sessions at default settings: {self.setting("max_parallel_workers_per_gather")} '
                     f'parallel workers, jit {self.setting("jit")}, work_mem {self.setting("work_mem")}:')
        self.compare_sorts('id', '(r).id')

    def show(self, rows):
        servers.describe_machine(self.server)
        print(f'Data:       {rows} rows of int8, float8, timestamptz and text; shared_buffers '
              f'{self.setting("shared_buffers")}')
        print(f'Medians of {RUNS} runs. Stock and ours have the same settings.\n')
        print(ROW.format('', 'stock ms', 'ours ms', 'ratio', 'same result'))
        print('\n'.join(self.table), end='\n\n')


def main(arguments):
    parser = argparse.ArgumentParser(prog='scripts/demo', description=__doc__.partition(': ')[2],
                                     allow_abbrev=False)
    parser.add_argument('-r', dest='rows', type=int, default=10000000, metavar='ROWS',
                        help='rows of the table (default 10000000)')
    rows = parser.parse_args(arguments).rows
    with Server(6000, [f'shared_buffers = {servers.memory_mb() // 8}MB', 'autovacuum = off',
                       'max_wal_size = 8GB']) as server:
        server.sql('CREATE EXTENSION pg_gpusort', 'CREATE EXTENSION pageinspect')
        load(server, rows)
        show_functions(server)
        demo = Demo(server)
        demo.compare()
        demo.show(rows)
        say('Done; removing the server and its data')
    if demo.different:
        raise Failure('the results differ: this is a bug, please report it')
