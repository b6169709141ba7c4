"""The lines of scripts/bench -g about where a sort runs: over the number of rows and of workers, on the
CPU, on the GPU, and where pg_gpusort.backend = auto has it run."""

from measuring import decades, discarded
from tables import ORDINARY_COLUMNS

# Tables and what they are sorted by.  The first string of a report has a thousand values.
KINDS = {
    'narrow': ('narrow', 'k8'),
    'ordinary': ('ordinary', 'k8'),
    'reports': ('ordinary', 'c2, k8'),
    'few': ('ordinary', 'c5, d, c2, k8'),
    'texts': ('ordinary', 'c1'),
}
WORKERS = (0, 2, 8)
FIRST_ROWS = 10_000


class GpuChoiceLines:
    """Measures lines, with the sessions and the output of lines, a GpuLines."""

    def __init__(self, lines):
        self.lines = lines
        if 'auto' not in lines.sessions:
            lines.sessions['auto'] = lines.open('auto')

    def load(self, table, rows):
        columns = f'i AS id, {self.lines.bench.key} AS k8' if table == 'narrow' else ORDINARY_COLUMNS
        name = f'{table}_{rows}'
        self.lines.rows = rows
        self.lines.load(name, columns)
        return name

    def compare(self, kind, table, query, workers):
        """Compares what is done on the CPU with the rest.  The plans are those of a run for warming up."""
        suffix = f'_{workers}' if workers else ''
        ways = self.lines.chosen([f'{where}{suffix}' for where in ('cpu', 'gpu', 'auto')])
        for way in ways:
            plan = self.lines.run_way(way, lambda session: self.lines.analyze(session, query, 'OFF'))
            self.lines.note_plan(way, f'choice_{kind}', plan, self.lines.shape(way, table))
        self.lines.time_in_turn(ways, lambda way: self.lines.run_way(
            way, lambda session: session.time(discarded(query))))
        for way in ways:
            self.lines.print_way(f'choice_{kind}', way, ways[0], '-')

    def measure(self, kind):
        table, keys = KINDS[kind]
        for rows in decades(FIRST_ROWS, self.lines.bench.rows // (1 if table == 'narrow' else 2)):
            name = self.load(table, rows)
            for workers in WORKERS:
                self.compare(kind, name, f'SELECT * FROM {name} ORDER BY {keys}', workers)


# Each takes the GpuLines and its own name.
LINES = {f'choice_{kind}': lambda lines, name: GpuChoiceLines(lines).measure(name.removeprefix('choice_'))
         for kind in KINDS}
