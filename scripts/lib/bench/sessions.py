"""scripts/bench sessions: lets many sessions sort at the same time, and compares how long each of them
has to wait.

Each session runs the same statements again and again, from another one on, until the time is
over.  A round is one run of each statement.  Prints, for stock PostgreSQL and for ours, how many
rounds all sessions finish in an hour, and how long a round and each statement take: the median of
the sessions and the slowest one.  A session that has to wait longer than the others shows in the
ratio of the two.  At the end the rows of each statement are compared with those of stock
PostgreSQL."""

import os
import threading
import time

import servers
from options import add_device, chosen, device_of, parser_of
from results import Results, median
from servers import Failure, Server, Session

# Sorts of queries, aggregates and arrays, small and large, and an index build.  Each returns one
# row, which depends on all sorted rows and their order.
STATEMENTS = {
    'numbers': 'SELECT sum(n * (k % 1000)) FROM (SELECT k, row_number() OVER () AS n'
               ' FROM (SELECT k FROM items ORDER BY k) s) r',
    'rows': 'SELECT sum(n * length(t)) FROM (SELECT t, row_number() OVER () AS n'
            ' FROM (SELECT * FROM items ORDER BY happened DESC, id) s) r',
    'text': 'SELECT sum(n * (id % 1000)) FROM (SELECT id, row_number() OVER () AS n'
            ' FROM (SELECT id FROM items ORDER BY t, id) s) r',
    'window': 'SELECT sum(n * (id % 1000)) FROM (SELECT id, row_number() OVER'
              ' (PARTITION BY k % 1000 ORDER BY happened, id) AS n FROM items) r',
    'distinct': 'SELECT count(DISTINCT k % 1000003) FROM items',
    'few': 'SELECT sum(n * (id % 1000)) FROM (SELECT id, row_number() OVER () AS n'
           ' FROM (SELECT id FROM items WHERE id <= 150000 ORDER BY k, id) s) r',
    'index': 'CREATE INDEX ON {table} (k)'}

STOCK = 'SET pg_gpusort.enable = off; SET pg_gpusort.enable_index_build = off'

HEADING = '{:<10} {:>12} {:>12} {:>6}   {:>12} {:>12} {:>6}   {:>6}'


class Worker(threading.Thread):
    """A session that runs statements until the time is over."""

    def __init__(self, number, server, settings, statements, until):
        super().__init__()
        self.number = number
        self.table = f'items_{number}'
        self.session = Session(server, f'session {number}', settings)
        self.statements = statements
        self.until = until
        self.times = {name: [] for name in statements}
        self.answers = {}
        self.failure = None

    def run_statement(self, name):
        if name == 'index':
            # The index is dropped by the end of the transaction.
            self.session.ask('BEGIN')
            self.times[name].append(self.session.time(STATEMENTS[name].format(table=self.table)))
            self.session.ask('ROLLBACK')
            return
        start = time.monotonic()
        answer = self.session.ask(STATEMENTS[name])
        self.times[name].append((time.monotonic() - start) * 1000)
        if self.answers.setdefault(name, answer) != answer:
            raise Failure(f'session {self.number}: {name} returned {answer} after {self.answers[name]}')

    def run(self):
        try:
            turn = self.number
            while time.monotonic() < self.until or not all(self.times.values()):
                self.run_statement(self.statements[turn % len(self.statements)])
                turn += 1
            self.session.close()
        except Failure as failure:
            self.failure = failure

    def mean(self, name):
        return sum(self.times[name]) / len(self.times[name])

    def round(self):
        """Milliseconds of one run of each statement."""
        return sum(self.mean(name) for name in self.times)


def run_sessions(server, options, who):
    """Returns the workers after their time, and the seconds that this took."""
    settings = STOCK if who == 'stock' else '; '.join(f'SET {setting}' for setting in options.settings)
    start = time.monotonic()
    workers = [Worker(number, server, settings, options.statements, start + options.minutes * 60)
               for number in range(options.sessions)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for worker in workers:
        if worker.failure:
            raise worker.failure
    return workers, time.monotonic() - start


def slowest(values):
    return max(values) / median(values)


def report(results, options, runs, backend):
    """Prints and writes what the sessions took."""
    print('\n' + HEADING.format('', 'stock', '', '', 'ours', '', '', ''))
    print(HEADING.format('ms', 'median', 'slowest', 'ratio', 'median', 'slowest', 'ratio', 'faster'))
    lines = {'round': lambda worker: worker.round()}
    lines.update({name: lambda worker, name=name: worker.mean(name) for name in options.statements})
    for name, value in lines.items():
        cells = []
        for who, (workers, _) in runs.items():
            taken = [value(worker) for worker in workers]
            cells += [f'{median(taken):.0f}', f'{max(taken):.0f}', f'{slowest(taken):.2f}']
            results.add(f'sessions_{name}', options.rows, backend if who == 'ours' else who, taken, session='warm',
                        settings=f'sessions={options.sessions} minutes={options.minutes}')
        print(HEADING.format(name, *cells, f'{float(cells[0]) / max(float(cells[3]), 1):.2f}'))
    for who, (workers, seconds) in runs.items():
        statements = sum(len(times) for worker in workers for times in worker.times.values())
        fewest = min(sum(len(times) for times in worker.times.values()) for worker in workers)
        print(f'{who}: {statements} statements in {seconds:.0f} s, '
              f'{statements / len(options.statements) / seconds * 3600:.0f} rounds an hour; '
              f'the session with the fewest had {fewest}')


def check(server, options, runs):
    """All sessions have seen the same rows, by us and by stock PostgreSQL."""
    for name in options.statements:
        if name == 'index':
            continue
        right = server.sql(f'{STOCK}; {STATEMENTS[name]}').split('\n')[-1]
        for who, (workers, _) in runs.items():
            for worker in workers:
                if worker.answers[name] != right:
                    raise Failure(f'{name}: {who} returned {worker.answers[name]} instead of {right}')
    print('Rows: the same as those of stock PostgreSQL, in all sessions')


def fill(server, options):
    print(f'Making a table of {options.rows} rows, and a smaller one for each session', flush=True)
    server.sql(
        'CREATE EXTENSION pg_gpusort',
        f'''CREATE TABLE items AS SELECT i AS id, hashint8extended(i, 1) AS k,
            'item ' || md5((i % 200000)::text) AS t, i % 3 = 0 AS b, (i % 977)::numeric / 7 AS n,
            timestamptz '2026-01-01' + (hashint8(i) & 1048575) * interval '1 second' AS happened
            FROM generate_series(1, {options.rows}) i''')
    for number in range(options.sessions):
        server.sql(f'CREATE TABLE items_{number} AS SELECT * FROM items WHERE id <= {options.rows // 4}')
    server.sql('VACUUM (ANALYZE)', 'CHECKPOINT')


def parse_options(arguments):
    parser = parser_of('bench sessions', __doc__, 'statement')
    parser.add_argument('-s', dest='sessions', type=int, default=32, metavar='SESSIONS',
                        help='number of sessions (default 32)')
    parser.add_argument('-t', dest='minutes', type=float, default=10, metavar='MINUTES',
                        help='for stock PostgreSQL, and again for ours (default 10)')
    parser.add_argument('-r', dest='rows', type=int, default=1000000, metavar='ROWS',
                        help='rows that are sorted (default 1000000; of an index a quarter)')
    parser.add_argument('-w', dest='workers', type=int, default=2, metavar='WORKERS',
                        help="parallel workers of a query (default 2, as the server's)")
    parser.add_argument('-o', dest='settings', action='append', default=[], metavar='SETTING',
                        help='a setting of our sessions, like pg_gpusort.backend=cpu; may be repeated')
    add_device(parser)
    return parser.parse_args(arguments)


def main(arguments):
    options = parse_options(arguments)
    options.statements = chosen(options, 'statement', STATEMENTS)
    if not options.statements:
        return
    device_settings, flags, gpu, who = device_of(options)
    settings = ["shared_preload_libraries = 'pg_gpusort'", f'max_connections = {options.sessions + 20}',
                f'shared_buffers = {servers.memory_mb() // 4}MB', 'max_wal_size = 16GB',
                f'max_parallel_workers_per_gather = {options.workers}', *device_settings]
    disk = 4000 + options.rows // 2000 * (4 + options.sessions)
    with Server(disk, settings, flags) as server:
        fill(server, options)
        servers.describe_machine(server)
        print(f'Sessions:   {options.sessions}, {options.minutes:g} minutes each for stock and ours; '
              f'{options.rows} rows; {options.workers} parallel workers', *options.settings)
        print(f'Load:       {os.getloadavg()[1]:.1f} before', flush=True)
        runs = {who: run_sessions(server, options, who) for who in ('stock', 'ours')}
        results = Results(options.csv, servers.machine(server, gpu))
        report(results, options, runs, who)
        print(server.sql("SELECT string_agg(format('%s: %s sorts, %s index builds', backend, sorts, index_builds), '; ')"
                         ' FROM pg_stat_gpusort'))
        check(server, options, runs)
