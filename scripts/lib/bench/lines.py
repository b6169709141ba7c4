"""scripts/bench: measures sorts and index builds by stock PostgreSQL and by the extension, in
turn.

Prints the times of the first sort of a new session and those of the same sort again: medians,
with the least and the greatest in parentheses, and at the end the lines on which ours is slower.
-g, -k and -s measure long-lived sessions, after one run for warming up.  Nothing is sent to the
client: the queries end in an OFFSET beyond their last row.

The server preloads the library.  In sessions of stock PostgreSQL it is disabled."""

import sys

import cost_lines
import gpu_lines
import index_lines
import random_lines
import row_lines
import scale_lines
import servers
import sort_lines
import type_lines
from measuring import Comparison, Table
from options import chosen, parser_of
from results import Results
from servers import Server
from tables import KEYS

# All lines that are measured without -g, -k, -q and -s, in their order.
LINES = {**sort_lines.LINES, **row_lines.LINES, **sort_lines.LATER_LINES, **index_lines.DEFAULT_LINES,
         **index_lines.LINES, **index_lines.GIN_LINES, **row_lines.LOCALE_LINES, **type_lines.LINES}

OTHERS = """other programs, of which -h lists the options:
  scripts/bench corpus     runs what analysts ask, and says where ours is slower
  scripts/bench matrix     runs scripts/bench with the PostgreSQL of other releases of Debian
  scripts/bench pictures   draws pictures of the results in docs/results
  scripts/bench restore    restores dumps with pg_restore and several jobs
  scripts/bench scale-out  sorts on several servers, by Citus and by postgres_fdw
  scripts/bench sessions   lets many sessions sort at the same time
  scripts/bench tpch       runs queries like those of TPC-H
  scripts/bench types      writes results of the lines type_* into docs/types.md"""


class Bench:
    """What lines use."""

    def __init__(self, options, server, results, lines):
        self.server = server
        self.results = results
        self.lines = lines
        self.rows = options.rows
        self.runs = options.runs
        self.key = KEYS[options.keys]
        self.logged = options.logged
        self.ways = options.ways
        self.seed = options.seed
        self.duckdb = options.duckdb
        self.both = self.table = None

    def compare(self, phases=False):
        """Opens the two sessions that most lines need."""
        self.both = Comparison(self.server, self.runs)
        self.table = Table(self.both, self.results, phases)


def parse_options(arguments):
    parser = parser_of('bench', __doc__, 'line', epilog=OTHERS)
    parser.add_argument('-n', dest='runs', type=int, metavar='RUNS', help="""new sessions of each in
        which a query is timed (default 5; 3 with -g, -k, -q and -s)""")
    parser.add_argument('-r', dest='rows', type=int, metavar='ROWS', help="""rows of the large tables
        (default 10000000; 50000000 with -g, 3000000 with -k and -q)""")
    parser.add_argument('-d', dest='keys', choices=KEYS, default='uniform', help="""distribution of the
        keys; few are 1000 distinct ones (default uniform)""")
    parser.add_argument('-b', dest='buffers', type=int, metavar='MB',
                        help='shared_buffers, instead of enough for the tables')
    parser.add_argument('-p', dest='phases', action='store_true',
                        help='also print EXPLAIN (ANALYZE) of ours, with the time of each phase')
    parser.add_argument('-o', dest='settings', metavar='SETTING', action='append', default=[],
                        help='a line for postgresql.conf; may be repeated')
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument('-g', dest='gpu', action='store_true',
                       help='large tables on a machine with a GPU')
    modes.add_argument('-e', dest='emulator', action='store_true',
                       help='the same with the emulator instead of a GPU: for trying the program')
    modes.add_argument('-k', dest='costs', action='store_true',
                       help="what sorts and hash tables cost in the planner's units")
    modes.add_argument('-q', dest='seed', metavar='SEED',
                       help='random queries on random tables of up to so many rows as -r says')
    modes.add_argument('-s', dest='scale', action='store_true',
                       help='times over rows, up to -r, and over workers, and the phases of sorts')
    parser.add_argument('-w', dest='logged', action='store_true', help='tables are logged, with -g')
    parser.add_argument('--ways', metavar='WAY,...', type=lambda text: text.split(','), help="""only these
        ways of the lines, with -g, such as stock_8,gpu_8""")
    parser.add_argument('--duckdb', metavar='DIRECTORY', help="""also measure DuckDB, with -s: the
        directory below which npm has installed @duckdb/node-api""")
    parser.add_argument('--note', default='', help='what else one has to know, for the CSV file')
    options = parser.parse_args(arguments)
    if options.seed is not None and not options.seed.isdigit():
        parser.error('-q takes a number, the seed')
    return options


def lines_of(options):
    """Sets what depends on the kind of lines, and returns all of them."""
    options.gpu = options.gpu or options.emulator
    special = options.gpu or options.costs or options.seed or options.scale
    options.runs = options.runs or (3 if special else 5)
    if options.gpu:
        options.rows = options.rows or 50000000
        return gpu_lines.LINES
    options.rows = options.rows or (3000000 if options.costs or options.seed else 10000000)
    if options.costs:
        return cost_lines.LINES
    if options.seed:
        return random_lines.LINES
    return scale_lines.LINES if options.scale else LINES


def start_server(options, lines):
    """Scans of a table stay in memory only if shared_buffers is larger than four times its
    size; but use at most a quarter of the machine's memory, or half with -g."""
    buffers = options.buffers or min(options.rows // 2500 + 512,
                                     servers.memory_mb() // (2 if options.gpu else 4))
    settings = ["shared_preload_libraries = 'pg_gpusort'", f'shared_buffers = {buffers}MB',
                'autovacuum = off', 'checkpoint_timeout = 1h']
    if options.gpu:
        library = 'pg_gpusort_emu' if options.emulator else 'pg_gpusort_cuda'
        settings += ['max_wal_size = 32GB', 'max_worker_processes = 32',
                     f"pg_gpusort.device_library = '{library}'"]
        disk_mb = gpu_lines.disk_mb(lines, options.rows)
    else:
        settings += ['max_wal_size = 8GB', 'max_worker_processes = 20']
        disk_mb = 4000
    flags = ['-e'] if options.emulator else ['-g'] if options.gpu else ['-q'] if options.seed else []
    if not options.gpu and any(line in row_lines.LOCALE_LINES or line in type_lines.LINES for line in lines):
        flags.append('-l')
    server = Server(disk_mb, settings + options.settings, flags)
    server.sql('CREATE EXTENSION pg_gpusort')
    return server


def describe(options, server, machine, sort_mb):
    """Prints the machine, and what the times are."""
    servers.describe_machine(server)
    if options.gpu:
        print(f'GPU:        {machine["gpu"] or "none"}')
        print(f'Settings:   jit off, work_mem and pg_gpusort.work_mem {sort_mb} MB, serial but for '
              'stock_N, cpu_N and gpu_N')
        print(f'Keys:       {options.keys}; milliseconds: median (least..greatest)')
        print('            x stock: times as fast as the way stock, or stock_8 without it; x scan: '
              'times as long as the scan\n')
    elif options.costs:
        print('Settings:   serial, jit off, work_mem and pg_gpusort.work_mem 2GB unless said otherwise')
        print(f'Times:      {options.rows} rows; medians of {options.runs} runs after one to warm up')
    elif options.scale:
        print('Settings:   jit off, work_mem and pg_gpusort.work_mem 2GB')
        print(f'Times:      milliseconds: median (least..greatest) of {options.runs} runs in turn, '
              'after one to warm up\n')
    elif options.seed:
        print('Settings:   jit off; work_mem, pg_gpusort.work_mem and the most workers are before '
              'each query')
        print(f'Sessions:   seed {options.seed}, at most {options.rows} rows; {options.runs} new '
              'sessions of each, in turn, with three runs each')
        print('Times:      milliseconds, medians\n')
    else:
        print('Settings:   serial but for the lines parallel_*, workers* and type_tsvector, jit off, '
              'work_mem and pg_gpusort.work_mem 2GB unless said otherwise')
        print(f'Sessions:   {options.runs} new ones of each, in turn, with three runs each; keys: '
              f'{options.keys}')
        print('Times:      milliseconds: median (least..greatest)\n')
    sys.stdout.flush()


def run_lines(options, bench, sort_mb):
    if options.gpu:
        gpu_lines.run(bench, bench.lines, sort_mb)
        return
    bench.compare(options.phases)
    if options.costs:
        cost_lines.run(bench, bench.lines)
    elif options.seed:
        random_lines.run(bench, bench.lines)
    elif options.scale:
        scale_lines.run(bench, bench.lines)
    else:
        bench.table.print_heading()
        for line in bench.lines:
            LINES[line](bench, line)
        bench.table.finish()


def main(arguments):
    options = parse_options(arguments)
    lines = chosen(options, 'line', lines_of(options))
    if not lines:
        return
    # A quicksort of rows of 15 columns in memory takes about 300 bytes per row.
    sort_mb = options.rows // 3000 + 64
    with start_server(options, lines) as server:
        machine = servers.machine(server, servers.gpus() if options.gpu else '')
        results = Results(options.csv, machine, options.note)
        describe(options, server, machine, sort_mb)
        run_lines(options, Bench(options, server, results, lines), sort_mb)
