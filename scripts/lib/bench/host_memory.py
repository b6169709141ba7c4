"""How much memory of the host the processes of a server take, beside its shared buffers."""

import os
import re
import threading
import time

from servers import Session

INTERVAL = 0.05

# Memory that a server preloading the extension has in advance for all sorts.
WARM_MEMORY = "SELECT value FROM gpusort_status() WHERE name = 'warm_memory_in_use'"


def children_of(parent):
    """Returns the process IDs."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
                if int(file.read().rpartition(')')[2].split()[1]) == parent:
                    found.append(int(pid))
        except OSError:
            pass                # it has ended
    return found


def private_bytes(pid):
    """Returns the anonymous memory of a process."""
    try:
        with open(f'/proc/{pid}/status', encoding='utf-8') as file:
            found = re.search(r'^RssAnon:\s+(\d+) kB', file.read(), re.MULTILINE)
    except OSError:
        return 0
    return int(found.group(1)) * 1024 if found else 0


class PeakMemory:
    """Samples the memory from start() to stop(), which returns the most that was seen, in bytes, less
    what was in use at the start."""

    def __init__(self, server):
        self.session = Session(server, 'memory', '')
        with open(os.path.join(self.session.ask('SHOW data_directory'), 'postmaster.pid'),
                  encoding='utf-8') as file:
            self.postmaster = int(file.readline())
        self.running = None
        self.ended = threading.Event()
        self.before = self.peak = 0

    def in_use(self):
        return int(self.session.ask(WARM_MEMORY)) + sum(map(private_bytes, children_of(self.postmaster)))

    def sample(self):
        while not self.ended.is_set():
            self.peak = max(self.peak, self.in_use())
            time.sleep(INTERVAL)

    def start(self):
        self.ended.clear()
        self.before = self.peak = self.in_use()
        self.running = threading.Thread(target=self.sample)
        self.running.start()

    def stop(self):
        self.ended.set()
        self.running.join()
        return self.peak - self.before
