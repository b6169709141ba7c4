"""scripts/demo: shows what the extension does: it sorts and indexes names and numbers by stock
PostgreSQL and by the extension, and compares the results and times."""

import argparse
import os
import re

import servers
from index_lines import BTREE_DIGEST
from measuring import SETTINGS, SETTINGS_OF, discarded, same_rows
from results import median, ratio
from servers import Failure, Server, Session
from tables import NAME, make_table

RUNS = 3                    # timed runs of each query and index build
ROWS_FOR_NAME = 5           # rows of numbers for each name

ROW = '{:<42} {:>9} {:>9} {:>8}  {}'

NUMBERS = """hashint8extended(i, 1) AS id, hashint8(i) / 1000.0::float8 AS value,
    timestamptz '2020-01-01' + (hashint8extended(i, 2) & 134217727) * interval '1 second' AS happened,
    to_hex(hashint8extended(i, 3)) AS note"""

FUNCTIONS = (
    'SELECT gpu_sort(ARRAY[3, 1, 2])',
    "SELECT gpu_sort(ARRAY[2.5, NULL, 'NaN', -1]::float8[], descending => true)",
    'SELECT gpu_argsort(ARRAY[30, 10, 20])',
    "SELECT * FROM gpu_sort_pairs(ARRAY[3, 1, 2], ARRAY['c', 'a', 'b'])",
    'SELECT (gpu_sort(array_agg(id)))[1:3] FROM events')


def say(text):
    print(text, flush=True)


def load(server, name, rows, columns, what):
    say(f'Loading {name}: {rows} rows of {what}')
    make_table(server, name, rows, columns)


def show_functions(server):
    say('\nFunctions that sort arrays:')
    for statement in FUNCTIONS:
        say(f'  {statement}')
        say(re.sub('^', '      ', server.sql(statement), flags=re.MULTILINE))


class Demo:
    """Compares, prints a line for each comparison, and gathers the ratios."""

    def __init__(self, server):
        self.server = server
        self.stock = Session(server, 'stock', SETTINGS + SETTINGS_OF['stock'])
        self.ours = Session(server, 'ours', SETTINGS + SETTINGS_OF['ours'])
        self.ratios = []
        self.different = False

    def setting(self, name):
        return self.stock.ask(f'SHOW {name}')

    def set(self, settings):
        for session in self.stock, self.ours:
            session.ask(settings)

    def add(self, what, same, time):
        """Prints a line with the times of both in turn, which time() takes of a session."""
        times = [(time(self.stock), time(self.ours)) for _ in range(RUNS)]
        stock, ours = (median(taken) for taken in zip(*times))
        self.ratios.append(ratio(stock, ours))
        self.different = self.different or not same
        say(ROW.format(what, f'{stock:.0f}', f'{ours:.0f}', f'{self.ratios[-1]:.1f}', 'yes' if same else 'NO'))

    def compare_sorts(self, table, order, keys):
        query = f'SELECT * FROM {table} ORDER BY {order}'
        self.add(f'{table} ORDER BY {order}', same_rows(self.stock, self.ours, query, keys),
                 lambda session: session.time(discarded(query)))

    def build(self, session, column):
        """Returns milliseconds.  The checkpoint writes the previous build first."""
        self.server.sql('CHECKPOINT')
        milliseconds = session.time(f'CREATE INDEX built ON {column}')
        digest = self.server.sql(BTREE_DIGEST)
        self.server.sql('DROP INDEX built')
        return milliseconds, digest

    def compare_builds(self, column):
        same = self.build(self.stock, column)[1] == self.build(self.ours, column)[1]
        self.add(f'CREATE INDEX ON {column}', same, lambda session: self.build(session, column)[0])

    def compare(self, rows):
        names = max(rows // ROWS_FOR_NAME, 1)
        load(self.server, 'people', names, f'i AS id, {NAME} AS name', 'names')
        self.set("SET max_parallel_maintenance_workers = 0; SET maintenance_work_mem = '1GB'")
        say(f'\nOne process, without jit, work_mem {self.setting("work_mem")}, '
            f'maintenance_work_mem {self.setting("maintenance_work_mem")}:')
        say(ROW.format('', 'stock ms', 'ours ms', 'times as', 'same'))
        say(ROW.format('', '', '', 'fast', 'result'))
        self.compare_sorts('people', 'name', '(r).name')
        self.compare_builds('people (name)')

        say('')
        load(self.server, 'events', rows, NUMBERS, 'int8, float8, timestamptz and text')
        self.compare_sorts('events', 'id', '(r).id')
        self.compare_builds('events (id)')
        self.compare_sorts('events', 'value DESC', '(r).value')
        self.compare_sorts('events', 'happened, id', '(r).happened, (r).id')

        self.set('RESET ALL')
        self.stock.ask(SETTINGS_OF['stock'])
        say(f'\nSessions at default settings: {self.setting("max_parallel_workers_per_gather")} '
            f'parallel workers, jit {self.setting("jit")}, work_mem {self.setting("work_mem")}:')
        self.compare_sorts('people', 'name', '(r).name')
        self.compare_sorts('events', 'id', '(r).id')

    def summarize(self):
        sort, index, *others = self.ratios
        say(f'\nIn memory and on the CPU, pg_gpusort sorted names {sort:.1f} times as fast as stock PostgreSQL, and built\n'
            f'the index on names {index:.1f} times as fast.  The other lines were {min(others):.1f} to {max(others):.1f} '
            'times as fast.  All results\nwere the same.')

    def show_next(self):
        """pg_config is that of the server of which this one is a copy."""
        programs = self.server.programs.removeprefix(os.path.join(self.server.work, 'server'))
        pg_config = f'PG_CONFIG={programs}/pg_config'
        sudo = '' if os.geteuid() == 0 else 'sudo '
        say('\nNext: install it.  docs/install.md says how, also as a package.  From here:\n\n'
            f'    make {pg_config}\n'
            f'    {sudo}make {pg_config} install\n\n'
            "Then set shared_preload_libraries = 'pg_gpusort' in postgresql.conf, and restart the server.")


def main(arguments):
    parser = argparse.ArgumentParser(prog='scripts/demo', description=__doc__.partition(': ')[2],
                                     allow_abbrev=False)
    parser.add_argument('-r', dest='rows', type=int, default=10000000, metavar='ROWS',
                        help='rows of numbers (default 10000000), with a fifth as many names')
    rows = parser.parse_args(arguments).rows
    # scripts/demo has looked for disk space.
    with Server(0, [f'shared_buffers = {servers.memory_mb() // 8}MB', 'autovacuum = off',
                    'max_wal_size = 8GB'], ['-l']) as server:
        server.sql("CREATE DATABASE demo LOCALE 'en_US.utf8' TEMPLATE template0")
        server.environment['PGDATABASE'] = 'demo'
        server.sql('CREATE EXTENSION pg_gpusort', 'CREATE EXTENSION pageinspect')
        servers.describe_machine(server)
        demo = Demo(server)
        say(f'Database:   en_US.utf8, shared_buffers {demo.setting("shared_buffers")}')
        say(f'Times are medians of {RUNS} runs.  Stock and ours have the same settings.\n')
        demo.compare(rows)
        if demo.different:
            raise Failure('the results differ: this is a bug, please report it')
        show_functions(server)
        say('\nRemoving the server and its data')
    demo.summarize()
    demo.show_next()
