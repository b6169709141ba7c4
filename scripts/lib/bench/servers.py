"""The server of a benchmark, sessions on it, and the machine on which it runs.

The server is set up by the script serve.  Sessions are processes of psql, since times are
those of its \\timing: from sending a query to receiving its last row.
"""

import copy
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))

# A line that no query returns.
END_OF_ANSWER = 'end-of-answer'


class Failure(Exception):
    """What ends the program with a message."""


class Server:
    """A throw-away server with the extension installed, as long as this object is open."""

    def __init__(self, disk_mb, settings, options=()):
        """disk_mb and settings are arguments of serve, and so are options, such as -g."""
        self.serve = subprocess.Popen(
            [os.path.join(HERE, 'serve'), *options, str(disk_mb), *settings],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for text in self.serve.stdout:
            if text.startswith('ready\t'):
                break
            print(text, end='', flush=True)
        else:
            self.serve.wait()
            raise Failure('could not start a server')
        self.work, self.programs, self.version = text.rstrip('\n').split('\t')[1:]
        # The caller's environment must not affect our sessions.
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith('PG')}
        self.environment.update(PGHOST=os.path.join(self.work, 'tmp'), PGPORT='5432',
                                PGUSER='postgres', PGDATABASE='postgres')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.serve.stdin.close()
        self.serve.wait()

    def node(self, number, user='postgres'):
        """Returns the server with this number, from 0, for connections of this user.  It lives
        as long as this object does."""
        node = copy.copy(self)
        node.environment = {**self.environment, 'PGPORT': str(5432 + number), 'PGUSER': user}
        return node

    def psql(self, *arguments, **keywords):
        """Starts psql.  It prints values only, and ends at the first error."""
        return subprocess.Popen(
            [os.path.join(self.programs, 'psql'), '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1',
             *arguments],
            env=self.environment, text=True, **keywords)

    def sql(self, *statements, text=None, rows_of=None, database=None):
        """Runs statements in a connection of their own, each as a transaction, and returns
        what they print.  Their standard input is text, or the output of the process rows_of."""
        arguments = [argument for statement in statements for argument in ('-c', statement)]
        if database:
            arguments += ['-d', database]
        source = rows_of.stdout if rows_of else subprocess.PIPE
        psql = self.psql(*arguments, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        answer, errors = psql.communicate(None if rows_of else text)
        if psql.returncode != 0:
            raise Failure(f'{statements or "a script"}: {errors.strip()}')
        return answer.rstrip('\n')

    def has_table(self, name):
        return self.sql(f"SELECT to_regclass('{name}') IS NOT NULL") == 't'


class Session:
    """A connection that stays."""

    def __init__(self, server, name, settings):
        self.name = name
        self.process = server.psql(stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.ask(settings)

    def ask(self, sql):
        """Returns the answer, without its last newline."""
        lines = []
        try:
            self.process.stdin.write(f'{sql}\n;\n\\echo {END_OF_ANSWER}\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failure(f'{self.name}: the session ended before: {sql}') from None
        for line in self.process.stdout:
            line = line.rstrip('\n')
            if line == END_OF_ANSWER:
                return '\n'.join(lines)
            if 'ERROR:' in line:
                raise Failure(f'{self.name}: {sql}: {line}')
            lines.append(line)
        raise Failure(f'{self.name}: the session ended during: {sql}')

    def time(self, sql):
        """Returns milliseconds."""
        answer = self.ask(f'\\timing on\n{sql};\n\\timing off')
        times = re.findall(r'^Time: ([0-9.]+) ms', answer, re.MULTILINE)
        if len(times) != 1:
            raise Failure(f'{self.name}: no time of: {sql}')
        return float(times[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- The machine ----

def memory_mb():
    with open('/proc/meminfo', encoding='ascii') as info:
        return int(re.search(r'^MemTotal: +(\d+)', info.read(), re.MULTILINE).group(1)) // 1024


def cpu_name():
    with open('/proc/cpuinfo', encoding='utf-8') as info:
        found = re.search(r'^model name[^:]*: *(.*)', info.read(), re.MULTILINE)
    return found.group(1).strip() if found else os.uname().machine


def cores():
    return len(os.sched_getaffinity(0))


def gpus():
    """Returns the names of the GPUs, separated by "; ", or an empty string."""
    try:
        found = subprocess.run(['nvidia-smi', '--query-gpu=name', '--format=csv,noheader'],
                               capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ''
    return '; '.join(found.stdout.split('\n')).strip('; ')


def commit_of_tree():
    """Returns the abbreviated commit, with a + if files differ from it, or an empty string if
    that cannot be found out.  Where the tree is not one of git, `bench matrix` has written it down."""
    try:
        with open(f'{REPO}/build/commit', encoding='ascii') as written:
            return written.read().strip()
    except OSError:
        pass
    try:
        found = subprocess.run(['git', '-C', REPO, '-c', 'safe.directory=*', 'describe', '--always',
                                '--exclude=*', '--dirty=+'],
                               capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ''
    return found.stdout.strip()


def machine(server, gpu=''):
    """Returns the columns of results that say where they are from."""
    return {'commit': commit_of_tree(), 'cpu': cpu_name(), 'cores': cores(),
            'memory_mb': memory_mb(), 'gpu': gpu, 'version': server.version}


def describe_machine(server):
    print(f'\nMachine:    {cpu_name()}, {cores()} cores, {memory_mb()} MB memory')
    print(f'PostgreSQL: {server.version}')
