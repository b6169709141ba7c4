"""What planning takes: the queries of scripts/bench corpus and some large ones, which are planned by
stock PostgreSQL and by ours in turn, in a session that stays."""

import re

from families import in_databases
from measuring import times_in_turn
from queries import Query
from results import median
from servers import Session

HEADING = '{:<28} {:>10} {:>10} {:>8} {:>8}  {}'

# Ours may take so much longer, in parts of one or in milliseconds, whichever is more.
MORE_PART = 0.02
MORE_MS = 0.2

# A query that takes longer is planned again in so many times as many rounds, since other work on
# the machine may be why.
AGAIN = 3

LEAST_ROUNDS = 15


def is_longer(times):
    stock, ours = median(times['stock']), median(times['ours'])
    return ours - stock > max(MORE_MS, MORE_PART * stock)


def large_queries():
    """Returns queries with much of something, by their names, of the family large."""
    def many(number, expression, separator=', ', first=1):
        return separator.join(expression.format(i=i, before=i - 1, j=1 + i % 200, k=1 + i // 5 % 200)
                              for i in range(first, number + 1))

    def join(number, condition, rest):
        return (f'SELECT l1.id, l2.two FROM {many(number, "link_{i} AS l{i}")} '
                f'WHERE {many(number, condition, " AND ", 2)} {rest}')

    texts = {
        'aggregates': f'SELECT c1, {many(1000, "sum(c{j} + {i})")} FROM wide GROUP BY c1 ORDER BY c1',
        'aggregates_in_order': f'SELECT {many(250, "array_agg(c{j} ORDER BY c{j} + {i})")} FROM wide',
        'different_numbers': f'SELECT c1, {many(250, "count(DISTINCT c{j} + {i})")} FROM wide GROUP BY c1',
        'windows': f'SELECT {many(100, "sum(c1) OVER (PARTITION BY c{j} ORDER BY c{k})")} FROM wide',
        'windows_alike': f'SELECT {many(1000, "sum(c{j} + {i}) OVER (PARTITION BY c1 ORDER BY id)")} FROM wide',
        'order_of_columns': f'SELECT * FROM wide ORDER BY {many(200, "c{i}")}',
        'cube': f'SELECT {many(8, "c{i}")}, count(*) FROM wide GROUP BY CUBE ({many(8, "c{i}")})',
        'union': many(300, 'SELECT c{j}, id + {i} FROM wide', ' UNION '),
        'partitions': 'SELECT * FROM parts ORDER BY note, id',
        'groups_of_partitions': 'SELECT kind, count(*), count(DISTINCT note) FROM parts GROUP BY kind ORDER BY kind',
        'first_of_partitions': 'SELECT DISTINCT ON (kind) * FROM parts ORDER BY kind, note, id',
        'join_of_partitions': 'SELECT a.id, b.note FROM parts AS a JOIN parts AS b USING (id) ORDER BY b.note, a.id',
        'ranks_of_partitions': 'SELECT id, rank() OVER (PARTITION BY part ORDER BY note) FROM parts',
        'chain_of_joins': join(12, 'l{i}.id = l{before}.one', 'ORDER BY l2.two, l1.id'),
        'star_of_joins': join(12, 'l{i}.id = l1.one + {i}', 'ORDER BY l2.two, l1.id'),
        # Below geqo_threshold, PostgreSQL considers all orders of joins.
        'all_orders_of_joins': join(10, 'l{i}.id = l1.one + {i}', 'ORDER BY l2.two, l1.id'),
        'groups_of_joins': join(12, 'l{i}.one = l{before}.two', 'GROUP BY l1.id, l2.two ORDER BY l1.id'),
    }
    queries = {name: Query(name, '', text) for name, text in texts.items()}
    for query in queries.values():
        query.family = 'large'
    return queries


class Planning:
    """Plans queries.  One session does so for both, so that nothing else of the process differs."""

    def __init__(self, options, server, results, who):
        self.options = options
        self.server = server
        self.results = results
        self.who = who
        self.longer = []

    def time(self, session, enable, query):
        session.ask(f'SET pg_gpusort.enable = {enable}')
        plan = session.ask(f'EXPLAIN (COSTS OFF, SUMMARY) {query.text}')
        return float(re.search(r'^Planning Time: ([0-9.]+)', plan, re.MULTILINE).group(1))

    def times(self, session, query, rounds):
        return times_in_turn(rounds, {'stock': lambda: self.time(session, 'off', query),
                                      'ours': lambda: self.time(session, 'on', query)})

    def measure(self, session, query):
        rounds = max(self.options.runs, LEAST_ROUNDS)
        times = self.times(session, query, rounds)
        if is_longer(times):
            times = self.times(session, query, AGAIN * rounds)
        stock, ours = median(times['stock']), median(times['ours'])
        if is_longer(times):
            self.longer.append(f'{query.name} ({stock:.3f}, {ours:.3f})')
        print(HEADING.format(query.name, f'{stock:.3f}', f'{ours:.3f}', f'{ours - stock:.3f}',
                             f'{100 * (ours / stock - 1):.1f}%', 'longer' if is_longer(times) else ''), flush=True)
        for who, taken in times.items():
            self.results.add(f'corpus_{query.name}', 0, 'stock' if who == 'stock' else self.who, taken,
                             session='warm', phase='planning')

    def run(self, queries):
        print(HEADING.format('query', 'stock', 'ours', 'more', 'more', ''))
        for _, queries_of_family in in_databases(self.server, self.options, queries):
            session = Session(self.server, 'planning', 'SET pg_gpusort.enable_index_build = on')
            for query in queries_of_family:
                self.measure(session, query)
            session.close()
        print(f'\nMore than {MORE_PART:.0%} and {MORE_MS} ms longer:', '; '.join(self.longer) or 'none')
