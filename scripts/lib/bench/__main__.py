"""What scripts/bench and scripts/demo run: the program that the first argument names, or the one
that measures lines."""

import importlib
import signal
import sys

from servers import Failure

# Modules by the names of their programs.
PROGRAMS = {'corpus': 'corpus', 'demo': 'demo', 'pictures': 'gallery', 'restore': 'restore',
            'scale-out': 'scale_out', 'sessions': 'sessions', 'tpch': 'tpch',
            'types': 'type_table'}


def main(arguments):
    """A signal ends the program as an exception does, so that its server ends first.  nohup has
    set SIGHUP to be ignored."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    name = 'lines'
    if arguments and arguments[0] in PROGRAMS:
        name, *arguments = arguments
    try:
        importlib.import_module(PROGRAMS.get(name, name)).main(arguments)
    except ModuleNotFoundError as error:
        sys.exit(f'{name}: {error}; install python3-{error.name}')
    except Failure as failure:
        sys.exit(f'{"bench" if name == "lines" else name}: {failure}')
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == '__main__':
    main(sys.argv[1:])
