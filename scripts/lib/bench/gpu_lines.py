"""The lines of scripts/bench -g.  They sort large tables by stock PostgreSQL, by its parallel
plans, by the extension on the CPU, on the GPU, and on the GPU in parallel plans; and they scan
the same tables without sorting.

Each of these is called a way.  If a way ends in a number, this is its number of parallel
workers; other ways have none.  All ways of a line run in turn, the slow ones in half of the
rounds."""

import json
import re

import gpu_above_lines
import gpu_choice_lines
import gpu_index_lines
import gpu_query_lines
import gpu_scale_lines
from measuring import SETTINGS, SETTINGS_OF, discarded, workers_of
from results import median, ratio, spread
from servers import Failure, Session, cores
from tables import HEX_20, NAME, ORDINARY_COLUMNS, WIDE_COLUMNS, make_collations

HEADING = '{:<8} {:<9} {:>10} {:<30} {:>7} {:>7} {:>5}  {}'

# Maximum of sessions for loading tables; more do not help.
MOST_LOADERS = 10

# The properties of a plan that say how a sort was done, and its times.
METHOD = re.compile('Sort Method|Sort Fallback|GPU Not Used')
PHASE = re.compile('Sort .*Time|Sort Time|Execution Time')

TABLES = {
    'narrow': lambda bench: f'i AS id, {bench.key} AS k8',
    'wide': lambda bench: f'i AS id, {bench.key} AS k8, {WIDE_COLUMNS}',
    'text': lambda bench: f'i AS id, {HEX_20} COLLATE "C" AS t',
    'ordinary': lambda bench: ORDINARY_COLUMNS,
    'names': lambda bench: f'i AS id, ({NAME}) COLLATE english AS k',
    'names_c': lambda bench: f'i AS id, ({NAME}) COLLATE "C" AS k',
}
KEY_OF_TABLE = {'text': 't', 'names': 'k', 'names_c': 'k'}

# Hashes of rows, whose exclusive or does not depend on their order.
HASH_OF_ROW = {
    'narrow': 'hashint8extended(id, k8)',
    'text': 'hashtextextended(t, id)',
    'names': 'hashtextextended(k COLLATE "C", id)',
    'wide': """hashint8extended(id, k8) # hashtextextended(t, hashint4extended(i4,
        hashfloat8extended(f8, timestamp_hash_extended(ts::timestamp, id))))""",
}


def sorted_rows(table):
    return f'SELECT * FROM {table} ORDER BY {KEY_OF_TABLE.get(table, "k8")}'


def rounds_of(way, runs):
    """In how many of the rounds a way takes part."""
    if way in ('scan', 'cpu_8', 'gpu', 'gpu_8', 'copy', 'first', 'second'):
        return runs
    return max(runs // 2, 1) if way == 'stock' else (runs + 1) // 2


def in_plan(plan, pattern):
    """Returns (name, value) of the properties of all nodes of a plan in JSON, in their order."""
    found = []
    if isinstance(plan, dict):
        for name, value in plan.items():
            if isinstance(value, (dict, list)):
                found += in_plan(value, pattern)
            elif pattern.fullmatch(name):
                found.append((name, value))
    elif isinstance(plan, list):
        for part in plan:
            found += in_plan(part, pattern)
    return found


class GpuLines:
    """Measures lines.  sort_mb is the memory of a sort, enough for all rows."""

    def __init__(self, bench, sort_mb):
        self.bench = bench
        self.server = bench.server
        self.sort_mb = sort_mb
        self.rows = bench.rows
        self.different = False
        self.times = {}
        self.methods = {}
        self.sessions = {who: self.open(who) for who in ('stock', 'cpu', 'gpu')}

    def open(self, who):
        """who is stock, or where ours sorts."""
        session = Session(self.server, who, SETTINGS)
        session.ask(f"SET work_mem = '{self.sort_mb}MB'; SET max_parallel_workers = 16")
        if who == 'stock':
            session.ask(SETTINGS_OF['stock'])
        else:
            session.ask(f"""{SETTINGS_OF['ours']} SET pg_gpusort.work_mem = '{self.sort_mb}MB';
                SET pg_gpusort.min_rows = 0; SET pg_gpusort.backend = {who}""")
        return session

    def session_of(self, way):
        return self.sessions['stock' if way == 'scan' else way.partition('_')[0]]

    # ---- Tables ----

    def load(self, name, columns=None, logged=None):
        """Creates the table unless it exists, by one session for each core, up to the maximum."""
        if self.server.has_table(name):
            return
        if name == 'names':
            make_collations(self.server)
        columns = columns or TABLES[name](self.bench)
        kind = '' if self.bench.logged or logged else 'UNLOGGED'
        self.server.sql(f"""CREATE {kind} TABLE {name} AS SELECT {columns}
                            FROM (SELECT 0::int8 AS i) AS s WITH NO DATA""",
                        f'ALTER TABLE {name} SET (parallel_workers = 15)')
        self.add_rows(name, columns, 0)

    def add_rows(self, name, columns, present):
        """Adds rows to a table, by several sessions, so that it has all."""
        parts = min(cores(), MOST_LOADERS)
        number = self.rows - present
        print(f'Loading {name}, {number} rows, by {parts} sessions', flush=True)
        self.at_once(f"""INSERT INTO {name} SELECT {columns}
            FROM (SELECT generate_series({present}::int8 + {number}::int8 * {part} / {parts} + 1,
                {present}::int8 + {number}::int8 * ({part} + 1) / {parts}) AS i) AS s"""
                     for part in range(parts))
        self.server.sql(f'VACUUM (FREEZE, ANALYZE) {name}')

    def at_once(self, statements):
        self.wait_for([self.server.psql('-c', statement) for statement in statements])

    def wait_for(self, loaders):
        for loader in loaders:
            if loader.wait() != 0:
                raise Failure('loading a table failed')

    # ---- Ways ----

    def run_way(self, way, run):
        """Calls run with the session, which has the way's workers.  Stock uses them regardless
        of their cost."""
        session = self.session_of(way)
        session.ask(f'SET max_parallel_workers_per_gather = {workers_of(way)}')
        if session.name == 'stock':
            session.ask('SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0')
        result = run(session)
        session.ask('SET max_parallel_workers_per_gather = 0')
        return result

    def shape(self, way, table):
        """Returns the top node and the workers of a parallel plan."""
        if workers_of(way) == 0:
            return ''
        plan = self.run_way(way, lambda session: session.ask(f'EXPLAIN (COSTS OFF) {sorted_rows(table)}'))
        planned = re.findall(r'Workers Planned: (\d+)', plan)
        return f'{plan.splitlines()[0].strip()}, workers planned: {planned[-1] if planned else 0}'

    def explain(self, way, table, line):
        """Notes the method, and prints the times of the phases.  This is also the run for
        warming up."""
        plan = self.run_way(way, lambda session: self.analyze(session, sorted_rows(table)))
        self.note_plan(way, line, plan, self.shape(way, table))

    def analyze(self, session, query, timing='ON'):
        """Runs the query and returns its plan."""
        return json.loads(session.ask(f'EXPLAIN (ANALYZE, TIMING {timing}, FORMAT JSON) {query}'))

    def note_plan(self, way, line, plan, shape):
        """Notes the shape and the method of a way, and prints the times of its phases."""
        methods = sorted({value if name == 'Sort Method' else f'{name}: {value}'
                          for name, value in in_plan(plan, METHOD)})
        self.methods[way] = '; '.join(filter(None, [shape, *methods]))
        for phase, milliseconds in in_plan(plan, PHASE):
            print(f'{line:<7} {way:<9}     {phase:<28} {milliseconds:>12} ms', flush=True)
            self.write(line, way, [milliseconds], phase=phase)

    def execution_time(self, plan):
        """Returns milliseconds."""
        return dict(in_plan(plan, PHASE))['Execution Time']

    def chosen(self, ways):
        """Returns those of the ways that the option --ways names."""
        return [way for way in ways if not self.bench.ways or way in self.bench.ways]

    def time_in_turn(self, ways, time):
        self.times = {way: [] for way in ways}
        for number in range(self.bench.runs):
            for way in ways:
                if number < rounds_of(way, self.bench.runs):
                    self.times[way].append(time(way))

    # ---- Results ----

    def write(self, line, way, times, **others):
        start = way.partition('_')[0]
        who = {'copy': 'scan', **dict.fromkeys(('first', 'second'), 'gpu')}.get(start, start)
        self.bench.results.add(
            line, self.rows, who, times, **{
                'workers': workers_of(way),
                'session': {'first': 'first', 'second': 'later'}.get(way, 'warm'),
                'settings': f'work_mem={self.sort_mb}MB pg_gpusort.work_mem={self.sort_mb}MB', **others})

    def times_as_fast(self, than, way):
        """Returns a number, or - if there is nothing to compare with."""
        if self.times.get(than) and self.times.get(way):
            return f'{ratio(self.median_of(than), self.median_of(way)):.2f}'
        return '-'

    def median_of(self, way):
        return median(self.times[way])

    def differs(self, line, what):
        self.different = True
        print(f'{line:<7} DIFFERENT: {what}', flush=True)

    def print_way(self, line, way, than='stock', scan='scan', **others):
        """Compares with the ways than and scan.  others are further columns of the CSV file."""
        times = self.times[way]
        print(HEADING.format(
            line, way, self.rows, spread(times), self.times_as_fast(than, way),
            self.times_as_fast(way, scan), len(times), self.methods.get(way, '')), flush=True)
        self.write(line, way, times, **{'method': self.methods.get(way, ''), **others})

    def measure(self, table, *ways, line=None):
        """Compares with the way stock, or else with stock_8."""
        line = line or table
        self.load(table)
        self.methods = {}
        ways = self.chosen(ways)
        for way in ways:
            if way.startswith(('cpu', 'gpu')):
                self.explain(way, table, line)
            else:
                self.methods[way] = self.shape(way, table)
        scan = f'SELECT * FROM {table}'
        self.time_in_turn(ways, lambda way: self.run_way(way, lambda session: session.time(
            discarded(scan if way == 'scan' else sorted_rows(table)))))
        for way in ways:
            self.print_way(line, way, 'stock' if 'stock' in ways else 'stock_8')

    # ---- Lines ----

    def line_narrow(self):
        self.measure('narrow', 'scan', 'stock', 'stock_2', 'stock_4', 'stock_8', 'cpu', 'cpu_1', 'cpu_2',
                     'cpu_4', 'cpu_8', 'cpu_15', 'gpu', 'gpu_2', 'gpu_4', 'gpu_8')

    def line_wide(self):
        self.measure('wide', 'scan', 'stock', 'stock_8', 'cpu', 'cpu_8', 'gpu', 'gpu_8')

    def line_text(self):
        self.measure('text', 'scan', 'stock', 'stock_8', 'cpu', 'cpu_8', 'gpu', 'gpu_8')

    def line_ordinary(self):
        self.measure('ordinary', 'scan', 'stock', 'stock_8', 'cpu', 'cpu_8', 'gpu', 'gpu_8')

    def fewer_rows(self, table):
        """Two fifths of the rows.  One process of stock PostgreSQL would take minutes."""
        self.rows = self.bench.rows * 2 // 5
        self.measure(table, 'scan', 'stock_8', 'cpu', 'cpu_8', 'gpu', 'gpu_8')
        self.rows = self.bench.rows

    def line_names(self):
        self.fewer_rows('names')

    def line_names_c(self):
        self.fewer_rows('names_c')

    def line_first(self):
        """The first query of a connection and the second."""
        for table, workers in ('narrow', 0), ('ordinary', 8):
            self.load(table)
            query = discarded(sorted_rows(table))
            self.times = {'first': [], 'second': []}
            self.methods = {'first': f'fresh connection, {table}, gpu, up to {workers} workers',
                            'second': 'the same connection'}
            for _ in range(self.bench.runs):
                session = self.open('gpu')
                session.ask(f'SET max_parallel_workers_per_gather = {workers}')
                for way in 'first', 'second':
                    self.times[way].append(session.time(query))
                session.close()
            for way in 'first', 'second':
                self.print_way('first', way, 'second', '-')

    def line_array(self):
        """Times per array.  The way copy only reads the array."""
        elements = self.bench.rows // 2
        print(f'Loading 4 arrays of {elements} int8', flush=True)
        self.server.sql('CREATE UNLOGGED TABLE arrays (a int8[])',
                        'ALTER TABLE arrays ALTER a SET STORAGE EXTERNAL')
        # An array of 100 million elements exceeds 1 GB.
        self.at_once(f"""INSERT INTO arrays SELECT array_agg(hashint8extended(i, {array}))
            FROM (SELECT generate_series(1, {elements}::int8) AS i) AS s""" for array in range(1, 5))
        self.server.sql('VACUUM (FREEZE, ANALYZE) arrays')
        self.methods = {'copy': f'a call of cardinality() for {elements} elements',
                        'stock': 'a call of array_agg(x ORDER BY x)',
                        'cpu': 'a call of gpu_sort()', 'gpu': 'a call of gpu_sort()'}
        everything = 'SELECT sum(cardinality({})) FROM arrays'
        queries = {
            'copy': ('stock', 4, everything.format('a')),
            'stock': ('stock', 1, """
                SELECT sum(cardinality((SELECT array_agg(x ORDER BY x) FROM unnest(a) AS x)))
                FROM (SELECT a FROM arrays LIMIT 1) AS s"""),
            'cpu': ('cpu', 4, everything.format('gpu_sort(a)')),
            'gpu': ('gpu', 4, everything.format('gpu_sort(a)'))}
        self.sessions['gpu'].ask('SELECT pg_stat_gpusort_reset()')

        def time(way):
            who, arrays, query = queries[way]
            if way != 'stock' and not self.times[way]:
                self.sessions[who].time(query)
            return self.sessions[who].time(query) / arrays

        self.time_in_turn(list(queries), time)
        for way in queries:
            self.print_way('array', way, 'stock', '-')
        statistics = self.sessions['gpu'].ask('SELECT row_to_json(s) FROM pg_stat_gpusort AS s')
        print(re.sub('^', 'array   statistics of cpu and gpu: ', statistics, flags=re.MULTILINE))

    def line_check(self):
        """Checks that all rows are returned once, whole and in order.  This is much cheaper
        than Comparison.same_rows()."""
        for table, row_hash in HASH_OF_ROW.items():
            self.load(table)
            wanted = self.run_way('stock_8', lambda session, table=table, row_hash=row_hash: session.ask(
                f'SELECT count(*), bit_xor({row_hash}), 0 FROM {table}'))
            for way in 'cpu', 'gpu', 'gpu_8':
                self.check_rows(table, way, row_hash, wanted)

    def check_rows(self, table, way, row_hash, wanted):
        key = KEY_OF_TABLE.get(table, 'k8')
        given = self.run_way(way, lambda session: session.ask(f"""
            SELECT count(*), bit_xor({row_hash}), count(*) FILTER (WHERE {key} < before)
            FROM (SELECT *, lag({key}) OVER () AS before
                FROM ({sorted_rows(table)} OFFSET 0) AS s) AS w"""))
        result = 'same' if given == wanted else f'DIFFERENT: {given} instead of {wanted}'
        self.different = self.different or given != wanted
        print(f'{"check":<7} {way:<9} {self.rows:>10} {table}: {result}', flush=True)


NAMES = ('narrow', 'wide', 'text', 'ordinary', 'names', 'names_c', 'first', 'array', 'check')
LINES = {
    **{name: lambda lines, name: getattr(lines, f'line_{name}')() for name in NAMES},
    **gpu_scale_lines.LINES,
    **gpu_above_lines.LINES,
    **gpu_choice_lines.LINES,
    **gpu_query_lines.LINES,
    **gpu_index_lines.LINES,
}


def disk_mb(lines, rows):
    """The disk space of the tables of lines, with their indexes."""
    bytes_of_row = 80 if set(lines) <= set(gpu_scale_lines.LINES) else 400
    return rows * bytes_of_row // 1000000 + 2000


def run(bench, lines, sort_mb):
    measured = GpuLines(bench, sort_mb)
    print(HEADING.format('line', 'way', 'rows', 'ms', 'x stock', 'x scan', 'runs', 'method'))
    for line in lines:
        LINES[line](measured, line)
    if measured.different:
        raise Failure('the results differ: this is a bug, please report it')
