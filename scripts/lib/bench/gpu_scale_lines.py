"""The lines of scripts/bench -g about how much one machine can sort: over the number of rows, with
the memory of the host."""

from gpu_index_lines import time_build
from host_memory import INTERVAL, PeakMemory
from measuring import decades, discarded

# Milliseconds.  Memory is sampled, so that of shorter runs is not known.
SHORTEST_SAMPLED = 10 * INTERVAL * 1000

# Stock PostgreSQL would take minutes for more rows.  For these there is no run to warm up either.
MOST_ROWS_OF_STOCK = 100_000_000

WAYS = ('stock_8', 'cpu_8', 'gpu', 'gpu_8')
QUERY = discarded('SELECT * FROM growing ORDER BY k8')


class GpuScaleLines:
    """Measures lines, with the sessions and the output of lines, a GpuLines.  The table growing has
    the columns of narrow."""

    def __init__(self, lines):
        self.lines = lines
        self.server = lines.server
        self.memory = PeakMemory(lines.server)
        self.present = 0

    def grow(self, rows):
        """Adds rows up to so many."""
        self.lines.rows = rows
        columns = f'i AS id, {self.lines.bench.key} AS k8'
        if self.present == 0:
            self.lines.load('growing', columns)
        elif self.present < rows:
            self.lines.add_rows('growing', columns, self.present)
        self.present = rows

    # ---- Over the number of rows ----

    def sort(self, way):
        return self.lines.run_way(way, lambda session: session.time(QUERY))

    def build(self, way):
        milliseconds = time_build(self.lines, way, 'CREATE INDEX built ON growing (k8)')
        self.server.sql('DROP INDEX built')
        return milliseconds

    def measure(self, line, ways, run, warm, **columns):
        """Calls run for the ways in turn.  The host's memory of each is the most of all runs."""
        megabytes = dict.fromkeys(ways, 0)

        def time(way):
            self.memory.start()
            milliseconds = run(way)
            megabytes[way] = max(megabytes[way], self.memory.stop() / 1e6)
            return milliseconds

        if warm:
            for way in ways:
                time(way)
        self.lines.time_in_turn(ways, time)
        for way in ways:
            if self.lines.median_of(way) >= SHORTEST_SAMPLED:
                columns['host_mb'] = round(megabytes[way])
                print(f'{line} {way}: at most {megabytes[way]:.0f} MB of the host', flush=True)
            else:
                columns['host_mb'] = ''
            self.lines.print_way(line, way, 'stock_8', '-', **columns)

    def measure_rows(self, rows):
        self.grow(rows)
        few = rows <= MOST_ROWS_OF_STOCK
        ways = self.lines.chosen(WAYS if few else WAYS[1:])
        self.lines.methods = {way: self.lines.shape(way, 'growing') for way in ways}
        self.measure('rows_sort', ways, self.sort, few)
        self.lines.methods = {}
        self.measure('rows_index', ways, self.build, False, session='first',
                     settings=f'maintenance_work_mem={self.lines.sort_mb}MB')

    def rows(self):
        self.server.sql('DROP TABLE IF EXISTS growing')
        for rows in decades(1_000_000, self.lines.bench.rows):
            self.measure_rows(rows)


# Each takes the GpuLines and its own name.
LINES = {
    'rows': lambda lines, _: GpuScaleLines(lines).rows(),
}
