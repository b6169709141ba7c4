"""scripts/bench types: writes how many times as fast as stock PostgreSQL types are sorted into docs/types.md.

Takes the first sorts of connections, of the lines type_*.  A row of the table gets the results of the
types that its first cell names, in their order."""

import argparse
import glob
import os
import re

from results import ratio, read
from servers import REPO
from type_lines import name_of

DOCUMENT = os.path.join(REPO, 'docs', 'types.md')
HEADER_END = '| times as fast |'
ROW = re.compile(r'(\| (.*?) \|(?:.* \|)?)[^|]*\|')


def factors_of(rows):
    """Returns what the table says of each type that is in these rows of results."""
    times = {(row['line'], row['who']): float(row['median_ms'])
             for row in rows if row['line'].startswith('type_') and row['session'] == 'first'}
    return {name_of(line): f'{ratio(stock, times[line, "cpu"]):.1f}'
            for (line, who), stock in times.items() if who == 'stock'}


def filled(text, factors):
    """Returns the document with these factors in the last column of its table."""
    lines = text.split('\n')
    in_table = False
    for number, line in enumerate(lines):
        in_table = line.startswith('|') and (in_table or line.endswith(HEADER_END))
        row = ROW.fullmatch(line)
        if in_table and row:
            found = [factors[name] for name in re.findall('`([^`]*)`', row[2]) if name in factors]
            if found:
                lines[number] = f'{row[1]} {", ".join(found)} |'
    return '\n'.join(lines)


def newest():
    """Returns the path of the newest results of types."""
    return max(glob.glob(os.path.join(REPO, 'docs', 'results', '*-types.csv')))


def main(arguments):
    parser = argparse.ArgumentParser(prog='scripts/bench types', description=__doc__.partition('\n\n')[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument('results', nargs='?', help='CSV file (default: the newest docs/results/*-types.csv)')
    options = parser.parse_args(arguments)
    with open(DOCUMENT, encoding='utf-8') as file:
        text = file.read()
    text = filled(text, factors_of(read(options.results or newest())))
    with open(DOCUMENT, 'w', encoding='utf-8') as file:
        file.write(text)
