"""The families of tables and queries of scripts/bench corpus, each in a database of its name.  Their
files are in corpus/."""

import itertools
import operator
import os

from queries import read_queries
from servers import HERE

FAMILIES = ('analysts', 'hits', 'groups', 'movies')


def queries_of(families):
    """Returns the queries of all these families by their names.  Each knows its family."""
    queries = {}
    for family in families:
        for name, query in read_queries(f'corpus/{family}_queries.sql').items():
            query.family = family
            queries[name] = query
    return queries


def in_databases(server, options, queries):
    """Returns pairs of a family and those of the queries that are of it.  Its tables have been
    made then, and new sessions are in its database."""
    family_of = operator.attrgetter('family')
    for family, group in itertools.groupby(sorted(queries, key=family_of), family_of):
        print(f'Making the tables of {family}', flush=True)
        server.sql(f"CREATE DATABASE {family} TEMPLATE template0 LOCALE '{options.locale}'", database='postgres')
        server.environment['PGDATABASE'] = family
        server.sql(text=f'\\set scale {options.scale}\n\\set seed {options.seed}\n' + ''.join(
            read(file) for file in ('functions.sql', f'{family}_tables.sql')))
        yield family, group


def read(file):
    with open(os.path.join(HERE, 'corpus', file), encoding='utf-8') as opened:
        return opened.read()
