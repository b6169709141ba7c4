"""Queries in files, the shapes of their plans, and the programs that measure them."""

import os
import re

import servers
from measuring import discarded
from options import chosen, device_of
from results import Results
from servers import HERE, Server


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


# ---- Programs ----

def measure_queries(options, queries, measure, buffers_mb, preload=False):
    """Starts a server with buffers_mb of shared_buffers for each unit of scale, and measures those of
    the queries that the options name.  A GPU takes a preloaded library."""
    names = chosen(options, 'query', queries)
    if not names:
        return
    device_settings, flags, gpu, who = device_of(options)
    if getattr(options, 'locale', '').startswith('en_US'):
        flags.append('-l')
    buffers = min(int(512 + buffers_mb * options.scale), servers.memory_mb() // 4)
    settings = [f'shared_buffers = {buffers}MB', 'autovacuum = off', 'max_wal_size = 8GB',
                'checkpoint_timeout = 1h']
    if preload or options.device_library:
        settings += ["shared_preload_libraries = 'pg_gpusort'", *device_settings]
    with Server(int(1000 + 4000 * options.scale), settings, flags) as server:
        servers.describe_machine(server)
        if gpu:
            print(f'GPU:        {gpu}')
        results = Results(options.csv, servers.machine(server, gpu))
        measure(options, server, results, who).run([queries[name] for name in names])
