"""scripts/bench scale-out: sorts and builds indexes on several servers of this machine, with stock
PostgreSQL and with ours, and compares rows, times and processor time.

citus builds Citus, makes a coordinator and two workers, and distributes a table to them.  fdw
has a partitioned table on 1, 2 and 4 other servers, by postgres_fdw.  Both also check what
docs/scale-out.md says about settings.  Two roles have the settings of stock and of ours on all
servers, since what a session sets does not reach the other ones.

Prints milliseconds, and the processor time of all servers together, which other programs on the
machine affect less: medians, with the least and the greatest in parentheses."""

import glob
import hashlib
import os
import subprocess

import servers
from measuring import discarded
from options import chosen, parser_of
from results import Results, median, ratio, spread
from servers import Failure, Server, Session

HEADING = '{:<18} {:<10} {:<22} {:<22} {:>6}  {:<22} {:<22} {:>6}  {}'

# Both have the same memory and sort in one process of each server or shard.
COMMON = {'jit': 'off', 'max_parallel_workers_per_gather': '0', 'max_parallel_maintenance_workers': '0',
          'work_mem': '512MB', 'maintenance_work_mem': '512MB'}
SETTINGS = {'stock': {**COMMON, 'pg_gpusort.enable': 'off', 'pg_gpusort.enable_index_build': 'off'},
            'ours': COMMON}

# With fewer rows those of a shard are fewer than pg_gpusort.min_rows.
LEAST_ROWS = 1000000

# 20 rows of each customer, a random key, and few groups.
COLUMNS = ('i AS id, i / 20 AS customer, hashint8extended(i, 0) AS k8, '
           "md5(i::text) AS t, (i % 1000)::int AS g")

SHARDS = 8
FDW_SERVERS = (1, 2, 4)


def processor_seconds(work):
    """Returns the processor time that all servers below the directory have used so far: that of
    the postmasters, of their children that have ended, and of those that run."""
    ticks = 0
    parents = set()
    for path in glob.glob(os.path.join(work, 'data*', 'postmaster.pid')):
        with open(path, encoding='ascii') as file:
            parents.add(file.readline().strip())
    for path in glob.glob('/proc/[0-9]*/stat'):
        try:
            with open(path, encoding='utf-8', errors='replace') as file:
                pid = path.split('/')[2]
                fields = file.read().rpartition(')')[2].split()
        except OSError:
            continue
        if pid in parents:
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] in parents:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf('SC_CLK_TCK')


def make_roles(nodes, settings):
    """Makes the roles on each node.  The statements do not depend on what Citus propagates."""
    for node in nodes:
        if node.sql("SELECT count(*) FROM pg_roles WHERE rolname IN ('stock', 'ours')") == '0':
            node.sql('CREATE ROLE stock SUPERUSER LOGIN', 'CREATE ROLE ours SUPERUSER LOGIN')
        node.sql(*(f"ALTER ROLE {role} SET {name} = '{value}'"
                   for role, values in settings.items() for name, value in values.items()))


def checksum(node, query):
    """Returns the checksum of all rows in their order."""
    psql = node.psql('-c', f'COPY ({query}) TO STDOUT', stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    sums = hashlib.md5()
    while block := psql.stdout.buffer.read(1 << 20):
        sums.update(block)
    errors = psql.stderr.read()
    if psql.wait() != 0:
        raise Failure(f'{query}: {errors.strip()}')
    return sums.hexdigest()


class Scale:
    """What both parts share: nodes, sessions of both roles on the first one, and the table of
    results."""

    def __init__(self, options, server, nodes, results):
        self.options = options
        self.server = server
        self.nodes = nodes
        self.results = results
        self.failed = []

    def run(self):
        """The parts have set_up(), settings(), which checks what settings do, and lines()."""
        self.set_up()
        self.open()
        self.settings()
        self.lines()
        self.close()

    def open(self):
        self.sessions = {role: Session(self.server.node(0, role), role, '') for role in SETTINGS}

    def close(self):
        for session in self.sessions.values():
            session.close()

    def counts(self):
        """Returns the sorts and the index builds of ours on all nodes."""
        pairs = [node.sql('SELECT sum(sorts), sum(index_builds) FROM pg_stat_gpusort').split('|')
                 for node in self.nodes]
        return [sum(map(int, column)) for column in zip(*pairs)]

    def check(self, what, holds):
        print(f'    {"yes" if holds else "NO":<4} {what}', flush=True)
        if not holds:
            self.failed.append(what)

    def print_heading(self):
        print(HEADING.format('line', 'servers', 'stock', 'ours', 'ratio', 'stock, processor',
                             'ours, processor', 'ratio', 'sorts, builds'), flush=True)

    def compare(self, line, timed, number, query=None, between=None, wants=0):
        """Measures a statement by both roles in turn, and runs between after each.  query has all
        its rows in an order without ties, and is compared.  wants is 0 if sorts of ours are
        expected, 1 if builds are, and None if neither is."""
        times = {role: [] for role in self.sessions}
        used = {role: [] for role in self.sessions}
        done = {role: [0, 0] for role in self.sessions}
        for run in range(self.options.runs + 1):
            for role, session in self.sessions.items():
                before, counted = processor_seconds(self.server.work), self.counts()
                milliseconds = session.time(timed)
                processor = 1000 * (processor_seconds(self.server.work) - before)
                done[role] = [new - old for new, old in zip(self.counts(), counted)]
                if between:
                    session.ask(between)
                if run > 0:
                    times[role].append(milliseconds)
                    used[role].append(max(processor, 1))
        ratios = [ratio(median(one['stock']), median(one['ours'])) for one in (times, used)]
        print(HEADING.format(line, number, spread(times['stock'], 0), spread(times['ours'], 0),
                             f'{ratios[0]:.2f}', spread(used['stock'], 0), spread(used['ours'], 0),
                             f'{ratios[1]:.2f}', '{}, {}'.format(*done['ours'])), flush=True)
        for role, who in ('stock', 'stock'), ('ours', 'scan' if wants is None else 'cpu'):
            for phase, values in ('', times[role]), ('processor', used[role]):
                if wants is not None or role == 'ours':
                    self.results.add(line, self.options.rows, who, values, workers=0, session='warm',
                                     phase=phase, settings=f'servers={number}')
        if wants is not None:
            self.check(f'{line}: ours is used by ours alone', done['ours'][wants] > 0 and not any(done['stock']))
        if query:
            sums = {checksum(self.server.node(0, role), query) for role in SETTINGS}
            self.check(f'{line}: same rows', len(sums) == 1)

    def explain(self, statement, *before, role='ours'):
        """Returns the plan after other statements, in one transaction."""
        return self.server.node(0, role).sql(text='\n;'.join(
            ['BEGIN', *before, f'EXPLAIN (COSTS OFF) {statement}', 'COMMIT;']))

    def temporary_bytes(self, role, query, *settings):
        """Returns what the query writes to temporary files of the first node."""
        node = self.server.node(0, role)
        node.sql('SELECT pg_stat_reset()')
        node.sql(text=';\n'.join([*settings, f'{query};']))
        return int(node.sql('SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()'))


# ---- Citus ----

class Citus(Scale):
    """A coordinator and two workers."""

    def set_up(self):
        host = os.path.join(self.server.work, 'tmp')
        for node in self.nodes:
            node.sql(*(f'CREATE EXTENSION {name}' for name in ('citus', 'citus_columnar', 'pg_gpusort', 'amcheck')))
        self.nodes[0].sql(f"SELECT citus_set_coordinator_host('{host}', 5432)",
                          *(f"SELECT citus_add_node('{host}', {5432 + number})"
                            for number in range(1, len(self.nodes))))
        make_roles(self.nodes, SETTINGS)
        self.nodes[0].sql(
            text=f"""
            SET citus.shard_count = {SHARDS};
            CREATE TABLE source AS SELECT {COLUMNS} FROM generate_series(1, {self.options.rows}::int8) AS i;
            CREATE TABLE far (LIKE source);
            SELECT create_distributed_table('far', 'customer');
            INSERT INTO far SELECT * FROM source;
            DROP TABLE source;
            VACUUM ANALYZE far;""")

    def lines(self):
        number = len(self.nodes) - 1
        self.print_heading()
        self.compare('citus_scan', discarded('SELECT * FROM far'), number, wants=None)
        self.compare('citus_order', discarded('SELECT * FROM far ORDER BY k8'), number,
                     'SELECT * FROM far ORDER BY k8, id')
        windows = 'SELECT id, rank() OVER (PARTITION BY customer ORDER BY k8) AS r FROM far'
        self.compare('citus_window', f'SELECT sum(r) FROM ({windows}) AS s', number,
                     f'SELECT * FROM ({windows}) AS s ORDER BY id')
        groups = 'SELECT customer, count(DISTINCT k8) AS d FROM far GROUP BY customer'
        self.compare('citus_distinct', f'SELECT sum(d) FROM ({groups}) AS s', number,
                     f'{groups} ORDER BY customer')
        create = 'CREATE INDEX far_k8 ON far (k8)'
        self.compare('citus_index', create, number, between='DROP INDEX far_k8', wants=1)
        self.sessions['ours'].ask(create)
        self.check_indexes()
        self.compare('citus_reindex', 'REINDEX INDEX far_k8', number, wants=1)
        self.check_indexes()
        self.sessions['ours'].ask('DROP INDEX far_k8')

    def check_indexes(self):
        """amcheck compares the indexes of all shards with their tables."""
        checked = [node.sql("""
            SELECT count(bt_index_check(indexrelid, true))
            FROM pg_index WHERE indexrelid::regclass::text LIKE 'far_k8_%'""") for node in self.nodes[1:]]
        self.check(f'amcheck finds the indexes of {" + ".join(checked)} shards right',
                   sum(map(int, checked)) == SHARDS)

    def settings(self):
        """What docs/scale-out.md says."""
        shard = 'SELECT customer, rank() OVER (PARTITION BY customer ORDER BY k8) FROM far'
        local = "SET LOCAL citus.propagate_set_commands = 'local'"
        rows = self.options.rows // SHARDS
        self.check('shards are sorted by ours', 'GpuSort' in self.explain(shard))
        self.check('SET does not reach the workers',
                   'GpuSort' in self.explain(shard, 'SET pg_gpusort.enable = off'))
        self.check('SET LOCAL does, with citus.propagate_set_commands = local',
                   'GpuSort' not in self.explain(shard, local, 'SET LOCAL pg_gpusort.enable = off'))
        self.check('min_rows above the rows of a shard leaves it to PostgreSQL',
                   'GpuSort' not in self.explain(shard, local, f'SET LOCAL pg_gpusort.min_rows = {2 * rows}'))
        self.check('min_rows below the rows of a shard does not',
                   'GpuSort' in self.explain(shard, local, f'SET LOCAL pg_gpusort.min_rows = {rows // 2}'))
        order = 'SELECT * FROM far ORDER BY k8'
        self.check('rows are sorted by ours on the coordinator',
                   'GpuSort' in self.explain(order).partition('Citus')[0])
        small, large = (self.temporary_bytes(
            'ours', f'{order} OFFSET 1000000000', "SET pg_gpusort.work_mem = '2GB'", f"SET work_mem = '{memory}'")
            for memory in ('4MB', '2GB'))
        print(f'    temporary files of the coordinator: {small >> 20} MB at work_mem 4MB, {large >> 20} MB at 2GB')
        self.check("the coordinator's tuplestore needs work_mem", small > large == 0)
        self.columnar()

    def columnar(self):
        node = self.server.node(0, 'ours')
        node.sql(text=f"""
            CREATE TABLE columns (id int8, k8 int8) USING columnar;
            INSERT INTO columns SELECT i, hashint8extended(i, 0) FROM generate_series(1, {self.options.rows}::int8) AS i;
            ANALYZE columns;""")
        self.check('a columnar table is sorted by ours', 'GpuSort' in self.explain('SELECT * FROM columns ORDER BY k8'))
        before = self.counts()[1]
        node.sql('CREATE INDEX ON columns (k8)')
        self.check("an index of a columnar table is built by PostgreSQL", self.counts()[1] == before)
        node.sql('DROP TABLE columns')


# ---- postgres_fdw ----

class Fdw(Scale):
    """A server with a table whose partitions are on others.  Row numbers are distributed to them
    by ranges."""

    def set_up(self):
        here = self.nodes[0]
        host = os.path.join(self.server.work, 'tmp')
        for node in self.nodes:
            node.sql('CREATE EXTENSION pg_gpusort')
        make_roles(self.nodes, SETTINGS)
        here.sql('CREATE EXTENSION postgres_fdw')
        for number in range(1, len(self.nodes)):
            for kind, options in ('plain', ''), ('tuned', ", async_capable 'true', fetch_size '10000'"):
                here.sql(f"""CREATE SERVER {kind}{number} FOREIGN DATA WRAPPER postgres_fdw
                    OPTIONS (host '{host}', port '{5432 + number}', dbname 'postgres'{options})""")
                # ANALYZE runs as the owner.
                for role in [*SETTINGS, 'postgres']:
                    here.sql(f"CREATE USER MAPPING FOR {role} SERVER {kind}{number} OPTIONS (user '{role}')")
        for number in FDW_SERVERS:
            for kind in 'plain', 'tuned':
                self.distribute(here, kind, number)

    def distribute(self, here, kind, number):
        """Makes a table with partitions on so many servers, and fills them once."""
        rows = self.options.rows
        here.sql(f"""CREATE TABLE {kind}_{number} (id int8, customer int8, k8 int8, t text, g int)
            PARTITION BY RANGE (id)""")
        for part in range(number):
            first, end = 1 + part * rows // number, 1 + (part + 1) * rows // number
            if kind == 'plain':
                self.nodes[part + 1].sql(
                    f"""CREATE TABLE rows_{number} AS
                        SELECT {COLUMNS} FROM generate_series({first}::int8, {end - 1}) AS i""",
                    f'VACUUM ANALYZE rows_{number}')
            here.sql(f"""CREATE FOREIGN TABLE {kind}_{number}_{part} PARTITION OF {kind}_{number}
                FOR VALUES FROM ({first}) TO ({end}) SERVER {kind}{part + 1} OPTIONS (table_name 'rows_{number}')""")
        here.sql(f'ANALYZE {kind}_{number}')

    def lines(self):
        self.print_heading()
        for number in FDW_SERVERS:
            for kind in 'plain', 'tuned':
                table = f'{kind}_{number}'
                self.compare(f'fdw_scan_{kind}', discarded(f'SELECT * FROM {table}'), number, wants=None)
                self.compare(f'fdw_order_{kind}', discarded(f'SELECT * FROM {table} ORDER BY k8'), number,
                             f'SELECT * FROM {table} ORDER BY k8, id')

    def settings(self):
        """What docs/scale-out.md says."""
        query = 'SELECT * FROM {}_2 ORDER BY k8'
        self.check('asynchronous servers: sorted here',
                   'GpuSort' in self.explain(query.format('tuned')))
        self.check('others: sorted there, and merged', 'Merge Append' in self.explain(query.format('plain')))
        self.check('stock merges in either case', 'Merge Append' in self.explain(query.format('tuned'), role='stock'))


# ---- The program ----

PARTS = {'citus': (Citus, 2, 'citus,pg_gpusort'), 'fdw': (Fdw, max(FDW_SERVERS), 'pg_gpusort')}


def parse_options(arguments):
    parser = parser_of('bench scale-out', __doc__, 'part')
    parser.add_argument('-s', dest='source', default='', metavar='DIRECTORY',
                        help='source of Citus 13.2, which is fetched otherwise')
    parser.add_argument('-r', dest='rows', type=int, default=4000000, metavar='ROWS',
                        help='rows of the table (default 4000000)')
    parser.add_argument('-n', dest='runs', type=int, default=3, metavar='RUNS',
                        help='timed runs of each line (default 3), after one for warming up')
    parser.add_argument('-N', dest='note', default='', metavar='NOTE', help='note in the CSV, such as the load')
    return parser.parse_args(arguments)


def main(arguments):
    options = parse_options(arguments)
    parts = chosen(options, 'part', PARTS)
    if options.rows < LEAST_ROWS:
        raise Failure(f'-r: at least {LEAST_ROWS} rows are needed')
    results = None
    failed = []
    for part in parts:
        kind, others, libraries = PARTS[part]
        settings = [f"shared_preload_libraries = '{libraries}'", 'autovacuum = off', 'shared_buffers = 1GB',
                    'max_wal_size = 8GB', 'checkpoint_timeout = 1h']
        more = ['-n', str(others)]
        if part == 'citus':
            settings.append("citus.node_conninfo = 'sslmode=prefer'")
            more += ['-c', options.source]
        with Server(2000 + options.rows // 500, settings, more) as server:
            if results is None:
                servers.describe_machine(server)
                print(f'Rows:       {options.rows}; {options.runs} runs after one to warm up; milliseconds\n')
                results = Results(options.csv, servers.machine(server), options.note)
            scale = kind(options, server, [server.node(number) for number in range(others + 1)], results)
            scale.run()
            failed += [f'{part}: {what}' for what in scale.failed]
    if failed:
        raise Failure('; '.join(failed))
