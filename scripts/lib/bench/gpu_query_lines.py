"""The lines of scripts/bench -g that time queries in which something else needs a sort, at the default
settings of the server and of the extension, with up to two workers, each in a new session."""

import re

from measuring import discarded
from servers import Session

FACTS_COLUMNS = """i AS id, hashint8extended(i, 42) AS k8, hashint8(i) AS k4,
    hashint8extended(i, 7) / 7.0::float8 AS f8,
    timestamptz 'epoch' + hashint8(i + 2) * interval '1 second' AS ts"""

QUERIES = {
    'count_distinct': 'SELECT count(DISTINCT k8) FROM facts',
    'percentile': 'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f8) FROM facts',
    'groups': 'SELECT k8, count(*) FROM facts GROUP BY k8',
    'distinct': 'SELECT DISTINCT k4 FROM facts',
    'window': 'SELECT id, row_number() OVER (PARTITION BY k4 % 100000 ORDER BY ts) FROM facts',
    'join': 'SELECT a.id, b.id FROM facts AS a JOIN others AS b USING (k8)',
}

# Queries that return one row, so that their results are compared.
ONE_ROW = ('count_distinct', 'percentile')

SETTINGS_OF = {
    'stock': 'SET pg_gpusort.enable = off',
    'cpu': 'SET pg_gpusort.backend = cpu',
    'gpu': '',
    'leader': 'SET pg_gpusort.debug_divide = off',
}


def plan_of(session, query):
    """Returns the nodes of ours, the other sorts and hashes, and the workers planned."""
    plan = session.ask(f'EXPLAIN (COSTS OFF) {query}')
    nodes = re.findall(r'Custom Scan \((\w+)\)|(?:->  |^ *)([\w ]*(?:Sort|Hash\w*|Merge))$', plan,
                       re.MULTILINE)
    planned = re.findall(r'Workers Planned: (\d+)', plan)
    return ', '.join([ours or other for ours, other in nodes] + [f'workers: {number}' for number in planned[:1]])


def time_query(lines, line, way, answers):
    query = QUERIES[line]
    session = Session(lines.server, way, SETTINGS_OF[way])
    lines.methods[way] = plan_of(session, query)
    session.ask('SELECT pg_stat_gpusort_reset()')
    milliseconds = session.time(query if line in ONE_ROW else discarded(query))
    used = session.ask("""SELECT string_agg(backend || ' ' || sorts, ', ' ORDER BY backend)
        FROM pg_stat_gpusort WHERE sorts > 0""")
    lines.methods[way] = '; '.join(filter(None, [lines.methods[way], f'sorts: {used or "stock"}']))
    if line in ONE_ROW and way not in answers:
        answers[way] = session.ask(query)
    session.close()
    return milliseconds


def measure(lines, line):
    lines.load('facts', FACTS_COLUMNS)
    if line == 'join':
        # The same keys in another order: the factor has no divisor in common with the rows.
        lines.load('others', f'i AS id, hashint8extended(i * 7919 % {lines.rows} + 1, 42) AS k8')
    lines.methods = {}
    answers = {}
    ways = lines.chosen(SETTINGS_OF)
    lines.time_in_turn(ways, lambda way: time_query(lines, line, way, answers))
    for way in ways:
        lines.print_way(line, way, 'stock', '-', session='first', settings='', workers=2)
        if answers.get(way) != answers.get('stock'):
            lines.differs(line, f'{way}: {answers[way]} instead of {answers["stock"]}')


LINES = dict.fromkeys(QUERIES, measure)
