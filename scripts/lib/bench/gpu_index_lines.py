"""The lines of scripts/bench -g that build indexes of logged tables, each in a new session.

Ours builds them by up to 8 workers, on the CPU and on the GPU, but GIN indexes on the CPU only.  Stock
PostgreSQL builds with 2 and 8 workers, and the faster one counts; GIN indexes with none, and since version
18 also with 8 workers.  There is a checkpoint before each build.

Of the rows, a 25th is in documents, a 50th in texts and a tenth in arrays (gin-rows)."""

from index_lines import BTREE_DIGEST, GIN_PARTS, GIN_TABLES, GINS, MAKE_VECTORS, gin_rows
from measuring import workers_of

# 16 characters, as of a product's number.
TEXT_16 = """substr(md5(i::text), 1, 16) COLLATE "C" """

KEYED_COLUMNS = f"""i AS id, hashint8extended(i, 42) AS k8, hashint8(i) & 1023 AS k4,
    timestamptz 'epoch' + hashint8(i + 2) * interval '1 second' AS ts, {TEXT_16} AS t"""

BTREES = {
    'index': 'k8',
    'index_unique': 'id',
    'index_text': 't',
    'index_pair': 'k4, ts',
}

# The tables of GIN lines have a fifth of the rows that they have without -g.
GIN_PART = 5

# The number of keys.  Not reltuples: for that, parallel builds of PostgreSQL 18 count a key and all TIDs
# that a worker has for it as one.
KEYS_OF_GIN = "SELECT n_entries FROM gin_metapage_info(get_raw_page('built', 0))"


class IndexLines:
    """Measures builds, with the sessions, the ways and the output of lines, a GpuLines."""

    def __init__(self, lines):
        self.lines = lines
        self.server = lines.server
        self.digests = {}

    # ---- Tables ----

    def rows_of(self, table):
        return self.lines.bench.rows // GIN_PARTS[table] // GIN_PART

    def load_gin_tables(self):
        """Loads all tables of GIN lines at once, since it takes one process long to make rows."""
        if self.server.has_table('vectors'):
            return
        print('Loading documents, texts and arrays', flush=True)
        loaders = []
        for table, (_, column) in GIN_TABLES.items():
            self.server.sql(f'CREATE TABLE {table} ({column})',
                            f'ALTER TABLE {table} SET (parallel_workers = 15)')
            rows = gin_rows(table, self.rows_of(table))
            loaders.append(self.server.psql('-c', f'COPY {table} FROM STDIN', stdin=rows.stdout))
            rows.stdout.close()
        self.lines.wait_for(loaders)
        self.server.sql(MAKE_VECTORS, 'ALTER TABLE vectors SET (parallel_workers = 15)',
                        'VACUUM (FREEZE, ANALYZE) documents, texts, int_arrays, vectors',
                        'CREATE EXTENSION pg_trgm')

    # ---- Builds ----

    def build(self, way, create, statement, digest):
        """Times the statement in a new session, where create has made the index before if it is not
        the statement itself."""
        if statement != create:
            self.server.sql(create)
        self.server.sql('CHECKPOINT')
        milliseconds = time_build(self.lines, way, statement)
        if way not in self.digests:
            self.digests[way] = self.server.sql(digest)
        self.server.sql('DROP INDEX built')
        return milliseconds

    def measure(self, line, ways, create, digest, statement=None):
        self.server.sql('CREATE EXTENSION IF NOT EXISTS pageinspect')
        self.lines.methods = {}
        self.digests = {}
        ways = self.lines.chosen(ways)
        self.lines.time_in_turn(
            ways, lambda way: self.build(way, create, statement or create, digest))
        best = min((way for way in ways if 'stock' in way), key=self.lines.median_of, default='stock')
        for way in ways:
            self.lines.print_way(line, way, best, '-', session='first',
                                 settings=f'maintenance_work_mem={self.lines.sort_mb}MB')
            if self.digests[way] != self.digests[ways[0]]:
                self.lines.differs(line, f'{way}: {self.digests[way]} instead of {self.digests[ways[0]]}')

    # ---- Lines ----

    def btree(self, line, statement=None):
        self.lines.load('keyed', KEYED_COLUMNS, logged=True)
        unique = 'UNIQUE' if line == 'index_unique' else ''
        self.measure(line, ['stock_2', 'stock_8', 'cpu_8', 'gpu_8'],
                     f'CREATE {unique} INDEX built ON keyed ({BTREES.get(line, "k8")})', BTREE_DIGEST,
                     statement)

    def reindex(self, line):
        self.btree(line, 'REINDEX INDEX CONCURRENTLY built')

    def gin(self, line):
        self.load_gin_tables()
        table, column, _ = GINS[line]
        self.lines.rows = self.rows_of(table)
        stock = ['stock', 'stock_8'] if version_of(self.server) >= 18 else ['stock']
        self.measure(line, [*stock, 'cpu_8'], f'CREATE INDEX built ON {table} USING gin ({column})',
                     KEYS_OF_GIN)
        self.lines.rows = self.lines.bench.rows


def version_of(server):
    return int(server.version.partition('.')[0])


def time_build(lines, way, statement):
    """Times a statement that builds an index, in a new session, and notes the way's method."""
    session = lines.open(way.partition('_')[0])
    session.ask(f"""SET max_parallel_maintenance_workers = {workers_of(way)};
        SET maintenance_work_mem = '{lines.sort_mb}MB'""")
    if 'stock' not in way:
        session.ask('SELECT pg_stat_gpusort_reset()')
    milliseconds = session.time(statement)
    if 'stock' not in way:
        lines.methods[way] = method_of_build(session)
    session.close()
    return milliseconds


def method_of_build(session):
    """Returns who has built the index, and the times of the sort."""
    return session.ask("""
        SELECT string_agg(format('%s%s: drain %s ms, sort %s ms', backend,
                CASE WHEN parallel_sorts > 0 THEN ', parallel' END,
                round(drain_time::numeric), round(sort_time::numeric)), '; ')
            FROM pg_stat_gpusort WHERE index_builds > 0""")


# Each takes the GpuLines and its own name.
LINES = {
    **{line: lambda lines, line: IndexLines(lines).btree(line) for line in BTREES},
    'reindex': lambda lines, line: IndexLines(lines).reindex(line),
    **{line: lambda lines, line: IndexLines(lines).gin(line) for line in GINS},
}
