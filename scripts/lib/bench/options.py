"""Options that several programs have."""

import argparse

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
    parser.add_argument('names', nargs='*', metavar=kind.upper())
    return parser


def chosen(options, kind, known):
    """Returns the names, or all that are known.  Prints those for -l, and returns none."""
    if options.list:
        print('\n'.join(known))
        return []
    for name in options.names:
        if name not in known:
            raise Failure(f'no {kind} {name}; there are {" ".join(known)}')
    return options.names or list(known)


def add_device(parser):
    parser.add_argument('-d', dest='device_library', metavar='LIBRARY',
                        help='device library, like pg_gpusort_cuda; built if there is a GPU')


def device_of(options):
    """Returns the settings, the options of serve and the GPU that this library takes, and who of
    the results sorts then."""
    if not options.device_library:
        return [], [], '', 'cpu'
    return ([f"pg_gpusort.device_library = '{options.device_library}'"], ['-g'], servers.gpus(), 'gpu')
