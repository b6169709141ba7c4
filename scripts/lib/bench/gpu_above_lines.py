"""The lines of scripts/bench -g about what is above a sort: windows, groups and DISTINCT.  The way leader
computes them in the leader, and divided in all processes, among which the sort is divided, on the CPU, and
gpudiv likewise on a GPU; cpu and gpu do what is expected to be faster."""

import re

from gpu_query_lines import FACTS_COLUMNS
from measuring import discarded

PARTITION = 'PARTITION BY k4 % 100000 ORDER BY ts, id'
ROWS = f'SELECT id, row_number() OVER ({PARTITION}) FROM facts'

# Of each line a query, and whether it returns one row, which is compared; else none is sent.
QUERIES = {
    'top3': (f'SELECT count(*), sum(id) FROM ({ROWS}) AS s WHERE row_number <= 3', True),
    'window': (f'SELECT sum(s), max(s) FROM (SELECT sum(k4) OVER ({PARTITION}) AS s FROM facts) AS s', True),
    'two': ("""SELECT sum(s), max(l) FROM (SELECT sum(k4) OVER (PARTITION BY k4 % 100000 ORDER BY ts) AS s,
        lag(ts) OVER (PARTITION BY k4 % 100000 ORDER BY id) AS l FROM facts) AS s""", True),
    'rows': (ROWS, False),
    'having': ('SELECT k8, count(*), sum(id) FROM facts GROUP BY k8 HAVING count(*) > 1', False),
    'groups': ('SELECT k8, count(*), sum(id) FROM facts GROUP BY k8', False),
    'distinct': ('SELECT count(*) FROM (SELECT DISTINCT k4 FROM facts) AS s', True),
    'distinct_rows': ('SELECT DISTINCT k4 FROM facts', False),
    'distinct_of_groups': ('SELECT count(*), sum(n) FROM (SELECT k8 % 1000, count(DISTINCT k4) AS n FROM facts GROUP BY 1) AS s', True),
    'texts': ("""SELECT count(*) FROM (SELECT id, row_number() OVER (PARTITION BY 'name ' || k4 % 10000 ORDER BY id) AS n
        FROM facts) AS s WHERE n <= 3""", True),
    'join_groups': ("""SELECT count(*), sum(n) FROM (SELECT a.k8, count(*) AS n, sum(b.id) FROM facts AS a JOIN facts AS b USING (k8)
        GROUP BY a.k8) AS s""", True),
    'join_count': ('SELECT count(*), sum(a.id + b.id) FROM facts AS a JOIN facts AS b USING (k8)', True),
    'count_distinct': ('SELECT count(DISTINCT k8) FROM facts', True),
    'percentile': ('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f8) FROM facts', True),
}
# Of each way where it sorts, and pg_gpusort.debug_divide.
SETTINGS_OF = {'leader': ('cpu', 'off'), 'divided': ('cpu', 'on'), 'gpudiv': ('gpu', 'on')}
WAYS = ('stock', 'stock_8', 'leader_2', 'leader_8', 'divided_8', 'gpudiv_8', 'cpu_2', 'cpu_8', 'gpu_8')


def measure(lines, name):
    query, one_row = QUERIES[name.removeprefix('above_')]
    for way, (backend, divide) in SETTINGS_OF.items():
        if way not in lines.sessions:
            lines.sessions[way] = lines.open(backend)
            lines.sessions[way].ask(f'SET pg_gpusort.debug_divide = {divide}')
    lines.load('facts', FACTS_COLUMNS)
    lines.methods = {}
    ways = lines.chosen(WAYS)
    for way in ways:
        plan = lines.run_way(way, lambda session: session.ask(f'EXPLAIN (COSTS OFF) {query}'))
        lines.methods[way] = ' / '.join(re.findall(r'Gather Merge|Gather|\w*Agg\w*|Unique|GpuSort\w*|Divided|Hash\w*|Sort\b(?! Key)',
                                                   re.sub(r'(?m)^ +(?:Output|.* Key|Filter|Run Condition):.*$', '', plan)))
    answers = {}
    if one_row:
        for way in ways:
            answers[way] = lines.run_way(way, lambda session: session.ask(query))
    lines.time_in_turn(ways, lambda way: lines.run_way(
        way, lambda session: session.time(query if one_row else discarded(query))))
    for way in ways:
        lines.print_way(name, way, 'stock', '-')
        if answers.get(way) != answers.get(ways[0]):
            lines.differs(name, f'{way}: {answers[way]} instead of {answers[ways[0]]}')


LINES = {f'above_{name}': measure for name in QUERIES}
