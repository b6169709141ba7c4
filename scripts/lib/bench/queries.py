"""Queries in files, and the shapes of their plans."""

import os
import re

from measuring import discarded
from servers import HERE


# ---- Queries ----

class Query:
    """A query of the file: "-- NAME (KEYS)" and what follows."""

    def __init__(self, name, keys, text):
        self.name = name
        self.text = text.strip().rstrip(';')
        # Columns of the rows r, or a constant.
        self.keys = re.sub('([a-z_]+)', r'(r).\1', keys) or '1'

    def timed(self):
        """The form that is timed.  A query with LIMIT returns few rows and is not changed, since
        an OFFSET would change what it asks."""
        return self.text if 'LIMIT' in self.text else discarded(self.text)


def read_queries(name):
    """Returns the queries of a file by their names."""
    with open(os.path.join(HERE, name), encoding='utf-8') as file:
        parts = re.split(r'^-- ([a-z_]+) \(([^)]*)\).*\n', file.read(), flags=re.MULTILINE)
    return {name: Query(name, keys, text)
            for name, keys, text in zip(parts[1::3], parts[2::3], parts[3::3])}


# ---- Plans ----

def plan_of(session, query):
    return session.ask(f'EXPLAIN (COSTS OFF) {query}')


def shape(plan):
    """The plan with each GpuSort replaced by Sort."""
    return plan.replace('Custom Scan (GpuSort)', 'Sort')


def ours_of_all(plan):
    """Returns the number of GpuSorts of all sorts, such as 1/2."""
    ours = plan.count('Custom Scan (GpuSort)')
    stock = len(re.findall(r'(?:^|-> +)(?:Incremental )?Sort *$', plan, re.MULTILINE))
    return f'{ours}/{ours + stock}'
