"""Options that several programs have."""

import argparse
import fnmatch

import servers
from servers import Failure


def parser_of(program, documentation, kind, **others):
    """Returns a parser of -c, -l and names of this kind.  The first paragraph of the documentation
    is for readers of the program."""
    parser = argparse.ArgumentParser(
        prog=f'scripts/{program}', description=documentation.partition('\n\n')[2],
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **others)
    parser.add_argument('-c', dest='csv', metavar='FILE', help='also write the results as CSV')
    parser.add_argument('-l', dest='list', action='store_true', help=f'list what {kind.upper()} can be')
    parser.add_argument('names', nargs='*', metavar=kind.upper(), help="may be a pattern, such as 'a*'")
    return parser


def chosen(options, kind, known):
    """Returns the names that were given, of patterns those that match, or all that are known.  Prints
    all for -l, and returns none."""
    if options.list:
        print('\n'.join(known))
        return []
    names = []
    for name in options.names:
        found = fnmatch.filter(known, name)
        if not found:
            raise Failure(f'no {kind} {name}; there are {" ".join(known)}')
        names += found
    return names or list(known)


def add_device(parser):
    parser.add_argument('-d', dest='device_library', metavar='LIBRARY',
                        help='device library, like pg_gpusort_cuda; built if there is a GPU')


def device_of(options):
    """Returns the settings, the options of serve and the GPU that this library takes, and who of
    the results sorts then."""
    if not options.device_library:
        return [], [], '', 'cpu'
    return ([f"pg_gpusort.device_library = '{options.device_library}'"], ['-g'], servers.gpus(), 'gpu')
