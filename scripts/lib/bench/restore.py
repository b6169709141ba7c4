"""scripts/bench restore: restores dumps with pg_restore and several jobs, and compares the times that
their indexes and foreign keys take in stock PostgreSQL and with the extension.

pgbench has the tables of pgbench with their primary and foreign keys; mixed has 20 tables with
60 indexes of many types (restore_tables.sql).  The part of a dump of each that follows the data is
restored into it again and again, by stock PostgreSQL and by ours in turn, after what it makes has been
dropped: first the indexes, including those of constraints, and then the foreign keys, which
PostgreSQL checks by joins.  Prints milliseconds: medians, with the least and the greatest in
parentheses.  At the end amcheck compares all indexes with their tables."""

import os
import re
import subprocess
import time

import servers
from options import add_device, chosen, device_of, parser_of
from results import Results, median, ratio, spread
from servers import HERE, Failure, Server

DATABASES = ('pgbench', 'mixed')

# What is timed: the kinds of entries in a dump's table of contents.
ENTRIES = {'indexes': re.compile(r' (CONSTRAINT|INDEX) '), 'keys': re.compile(' FK CONSTRAINT ')}
PARTS = {'indexes': 'indexes', 'keys': 'foreign keys'}

HEADING = '{:<10} {:<14} {:>8} {:<24} {:<24} {:>6}  {}'

# The indexes of tables of users, except those of TOAST tables.
INDEXES = "pg_index WHERE indrelid >= 16384 AND indrelid::regclass::text !~ '^pg_toast'"

# Statements that drop what the restore of a dump makes after the data, foreign keys first.
DROPS = (
    """SELECT format('ALTER TABLE %s DROP CONSTRAINT %I;', conrelid::regclass, conname)
        FROM pg_constraint WHERE contype = 'f'""",
    """SELECT format('ALTER TABLE %s DROP CONSTRAINT %I;', conrelid::regclass, conname)
        FROM pg_constraint WHERE contype IN ('p', 'u') AND conrelid >= 16384""",
    f"SELECT format('DROP INDEX %s;', indexrelid::regclass) FROM {INDEXES}")


def parts_of(contents):
    """Returns the lines of a table of contents, as pg_restore -l prints it, for each part."""
    entries = [line for line in contents.splitlines() if re.match('[0-9]', line)]
    keys = [line for line in entries if ENTRIES['keys'].search(line)]
    return {'indexes': [line for line in entries if ENTRIES['indexes'].search(line) and line not in keys],
            'keys': keys}


def builds_in_log(lines):
    """Returns (milliseconds, statement) of the builds and constraints in a server's log, the
    longest first."""
    builds = []
    for number, line in enumerate(lines):
        found = re.search(r'LOG:  duration: ([0-9.]+) ms[^:]*: *(.*)', line)
        if not found:
            continue
        statement = found.group(2)
        # pg_dump writes a constraint in two lines.
        if statement.startswith('ALTER TABLE') and number + 1 < len(lines):
            statement += ' ' + lines[number + 1].strip()
        if re.search('CREATE (UNIQUE )?INDEX|ADD CONSTRAINT', statement):
            builds.append((float(found.group(1)), statement))
    return sorted(builds, reverse=True)


class Restore:
    """Measures databases."""

    def __init__(self, options, server, results, who):
        self.options = options
        self.server = server
        self.results = results
        self.who = who
        self.log = os.path.join(server.work, 'log', 'server.log')
        self.parts = {}

    def run(self, program, *arguments, who=None):
        """Runs a program of PostgreSQL and returns its output, with the settings of stock or
        ours for its sessions."""
        environment = dict(self.server.environment)
        if who:
            environment['PGOPTIONS'] = ' '.join(f'-c {setting}' for setting in self.settings_of(who))
        done = subprocess.run([os.path.join(self.server.programs, program), *arguments],
                              env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f'{program} {" ".join(arguments)}: {done.stderr}')
        return done.stdout

    def settings_of(self, who):
        common = [f'maintenance_work_mem={self.options.memory}', 'log_min_duration_statement=0',
                  f'max_parallel_maintenance_workers={self.options.workers}']
        if who == 'stock':
            return common + ['pg_gpusort.enable=off', 'pg_gpusort.enable_index_build=off']
        return common + self.options.settings

    def sql(self, database, *statements, text=None):
        return self.server.sql(*statements, text=text, database=database)

    # ---- Databases ----

    def dump_of(self, database):
        return os.path.join(self.server.work, f'dump-{database}')

    def fill(self, database):
        if database == 'pgbench':
            self.run('pgbench', '-i', '-I', 'dtgpf', '-q', '-s', str(self.options.scale), 'pgbench')
        else:
            with open(os.path.join(HERE, 'restore_tables.sql'), encoding='utf-8') as file:
                self.sql('mixed', text=f'\\set rows {self.options.rows}\n{file.read()}')

    def make_dump(self, database):
        """Makes the database and the dump of its schema, which has all that is restored."""
        dump = self.dump_of(database)
        print(f'Making the database {database}', flush=True)
        self.sql('postgres', f'CREATE DATABASE {database}')
        self.fill(database)
        self.run('pg_dump', '--schema-only', f'-F{self.options.format}', '-f', dump, database)
        self.sql(database, 'CREATE EXTENSION amcheck', 'VACUUM (ANALYZE)')
        self.parts[database] = parts_of(self.run('pg_restore', '-l', dump))
        for part, entries in self.parts[database].items():
            with open(f'{dump}-{part}', 'w', encoding='utf-8') as file:
                file.write(''.join(f'{entry}\n' for entry in entries))

    # ---- Times ----

    def lines_of_log(self):
        with open(self.log, encoding='utf-8', errors='replace') as file:
            return file.read().splitlines()

    def restore_rest(self, database, who):
        """Restores what follows the data; returns the milliseconds of each part, and what the
        server has logged.  The checkpoint writes what the last restore has left."""
        for query in DROPS:
            self.sql(database, text=self.sql(database, query))
        self.sql('postgres', 'CHECKPOINT')
        before = len(self.lines_of_log())
        times = {}
        for part, entries in self.parts[database].items():
            if entries:
                start = time.monotonic()
                self.run('pg_restore', '-j', str(self.options.jobs), '--section=post-data', '-L',
                         f'{self.dump_of(database)}-{part}', '-d', database, self.dump_of(database),
                         who=who)
                times[part] = (time.monotonic() - start) * 1000
        return times, self.lines_of_log()[before:]

    def builds(self):
        return int(self.sql('postgres', 'SELECT sum(index_builds) FROM pg_stat_gpusort'))

    def check_indexes(self, database):
        """Returns what amcheck finds wrong in any index of the database."""
        try:
            self.sql(database, f'SELECT bt_index_parent_check(indexrelid, true, true) FROM {INDEXES}')
        except Failure as failure:
            return f'amcheck: {failure}'
        return 'amcheck: sound'

    def measure(self, database):
        times = {part: {'stock': [], 'ours': []} for part in PARTS}
        logs = {}
        by_us = 0
        # The first restores are for warming up.
        for run in range(self.options.runs + 1):
            for who in 'stock', 'ours':
                before = self.builds()
                taken, logs[who] = self.restore_rest(database, who)
                by_us = self.builds() - before
                for part, milliseconds in taken.items() if run > 0 else ():
                    times[part][who].append(milliseconds)
        checked = self.check_indexes(database)
        self.report(database, times, f'{by_us} by us; {checked}')
        if self.options.statements:
            for who in 'stock', 'ours':
                for milliseconds, statement in builds_in_log(logs[who]):
                    print(f'    {who:<5} {milliseconds:8.0f} {statement}')
        self.sql('postgres', f'DROP DATABASE {database}')
        if checked != 'amcheck: sound':
            raise Failure(f'{database}: {checked}')

    def report(self, database, times, remark):
        for part, name in PARTS.items():
            stock, ours = times[part]['stock'], times[part]['ours']
            if not stock:
                continue
            number = len(self.parts[database][part])
            print(HEADING.format(database, name, number, spread(stock, 0), spread(ours, 0),
                                 f'{ratio(median(stock), median(ours)):.2f}',
                                 remark if part == 'indexes' else ''), flush=True)
            for who, taken in ('stock', stock), (self.who, ours):
                self.results.add(f'restore_{database}_{part}',
                                 self.options.scale * 100000 if database == 'pgbench' else self.options.rows,
                                 who, taken, workers=self.options.workers, session='first',
                                 settings=f'jobs={self.options.jobs} maintenance_work_mem={self.options.memory}')


def parse_options(arguments):
    parser = parser_of('bench restore', __doc__, 'database')
    parser.add_argument('-s', dest='scale', type=int, default=10, metavar='SCALE',
                        help='scale of the database pgbench (default 10)')
    parser.add_argument('-r', dest='rows', type=int, default=1000000, metavar='ROWS',
                        help='rows of the largest table of the database mixed (default 1000000)')
    parser.add_argument('-n', dest='runs', type=int, default=3, metavar='RUNS',
                        help='timed restores by each (default 3)')
    parser.add_argument('-j', dest='jobs', type=int, default=4, metavar='JOBS',
                        help='of pg_restore (default 4)')
    parser.add_argument('-m', dest='memory', default='64MB', metavar='MEMORY',
                        help="maintenance_work_mem (default 64MB, as the server's)")
    parser.add_argument('-w', dest='workers', type=int, default=2, metavar='WORKERS',
                        help="max_parallel_maintenance_workers (default 2, as the server's)")
    parser.add_argument('-b', dest='buffers', type=int, metavar='MB',
                        help="shared_buffers, instead of a quarter of the machine's memory")
    parser.add_argument('-f', dest='format', choices=('c', 'd'), default='c',
                        help='of the dumps (default c)')
    parser.add_argument('-o', dest='settings', action='append', default=[], metavar='SETTING',
                        help='a setting of our sessions, like pg_gpusort.backend=cpu; may be repeated')
    add_device(parser)
    parser.add_argument('-p', dest='statements', action='store_true',
                        help='also print the time of each statement of the last restore by each')
    return parser.parse_args(arguments)


def main(arguments):
    options = parse_options(arguments)
    databases = chosen(options, 'database', DATABASES)
    if not databases:
        return
    device_settings, flags, gpu, who = device_of(options)
    settings = ["shared_preload_libraries = 'pg_gpusort'", 'autovacuum = off',
                f'shared_buffers = {options.buffers or servers.memory_mb() // 4}MB',
                'max_worker_processes = 32', 'max_parallel_workers = 32', 'max_wal_size = 16GB',
                'checkpoint_timeout = 1h', *device_settings]
    with Server(2000 + 50 * options.scale + options.rows // 100, settings, flags) as server:
        server.sql('CREATE EXTENSION pg_gpusort')
        results = Results(options.csv, servers.machine(server, gpu))
        restore = Restore(options, server, results, who)
        for database in databases:
            restore.make_dump(database)
        servers.describe_machine(server)
        print(f'Databases:  pgbench with scale {options.scale}; mixed with up to {options.rows} rows in a table')
        print(f'Settings:   pg_restore -j {options.jobs}, maintenance_work_mem {options.memory}, '
              f'{options.workers} parallel workers', *options.settings)
        print(f'Times:      {options.runs} restores after one to warm up; milliseconds: median '
              '(least..greatest)\n')
        print(HEADING.format('database', 'part', 'number', 'stock', 'ours', 'ratio', ''))
        for database in databases:
            restore.measure(database)
