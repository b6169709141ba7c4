"""DuckDB, as a process of duckdb.mjs that answers queries."""

import json
import os
import subprocess

from servers import HERE, Failure

# DuckDB's names of types, where they are not those of PostgreSQL.
TYPES = {'timestamp with time zone': 'TIMESTAMPTZ', 'double precision': 'DOUBLE'}

# At so many positions, results are compared with those of PostgreSQL.
POSITIONS = 100


class DuckDB:
    """A database in memory."""

    def __init__(self, directory):
        """directory has node_modules with @duckdb/node-api."""
        self.process = subprocess.Popen(
            ['node', os.path.join(HERE, 'duckdb.mjs'), os.path.abspath(directory)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.ask('SELECT version()')[0][0].lstrip('v')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def query(self, sql):
        """Returns the rows, as lists of strings, and milliseconds."""
        self.process.stdin.write(json.dumps(sql) + '\n')
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "it has ended"}')
        if 'error' in answer:
            raise Failure(f'DuckDB: {sql}: {answer["error"]}')
        return answer['rows'], answer['ms']

    def ask(self, sql):
        return self.query(sql)[0]

    def set_threads(self, number):
        self.ask(f'SET threads = {number}')

    def load(self, server, table):
        """Copies the table, by a file."""
        path = os.path.join(server.work, 'tmp', f'{table}.csv')
        columns = [column.split('|') for column in server.sql(f"""
            SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
            WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum""").splitlines()]
        server.sql(f"COPY {table} TO '{path}' (FORMAT csv)")
        types = ', '.join(f"'{name}': '{TYPES.get(kind, kind)}'" for name, kind in columns)
        self.ask(f"""CREATE TABLE {table} AS
            SELECT * FROM read_csv('{path}', header = false, columns = {{{types}}})""")
        os.remove(path)

    def has_same_rows(self, session, table):
        """Compares numbers of rows, sums of id, and keys at some positions of the sorted rows
        with those that the session returns."""
        query = f"""
            SELECT count(*), sum(id), CAST(sum(CASE WHEN mod(place, GREATEST(total / {POSITIONS}, 1)) = 0
                    THEN CAST(mod(k8, 1000000007) AS numeric(38)) * place ELSE 0 END) AS numeric(38))
            FROM (SELECT id, k8, row_number() OVER (ORDER BY k8) AS place,
                    count(*) OVER () AS total FROM {table}) AS s"""
        return '|'.join(self.ask(query)[0]) == session.ask(query)

    def time_sort(self, table, rows):
        """All rows are sorted, and the last one is returned."""
        answer, milliseconds = self.query(f'SELECT * FROM {table} ORDER BY k8 OFFSET {rows - 1}')
        if len(answer) != 1:
            raise Failure(f'DuckDB returned {len(answer)} rows of {table} instead of 1')
        return milliseconds
