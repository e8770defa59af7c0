"""Usage: table_probe.py TABLE SEGMENT ... Reads a table; prints its rows, seconds and peak of memory."""

import json
import sys
from threading import Event, Thread
from time import perf_counter

import kraftlog
from anonymous_memory import anonymous_memory

SECONDS_BETWEEN_LOOKS = 0.001

peak = 0
done = Event()


def watch() -> None:
    """Look again and again."""
    global peak
    while not done.wait(SECONDS_BETWEEN_LOOKS):
        peak = max(peak, anonymous_memory())


watcher = Thread(target=watch)
watcher.start()
start = perf_counter()
stream = kraftlog.open(sys.argv[2:]).scan(sys.argv[1])
rows = sum(batch.num_rows for batch in stream.batches())
seconds = perf_counter() - start
done.set()
watcher.join()
assert not stream.faults
print(json.dumps({"seconds": seconds, "rows": rows, "peak_memory": peak}))
