"""Usage: against_probe.py DIRECTORY OTHER. Compares two clusters; prints findings, CPU seconds and peak of memory."""

import json
import sys
from threading import Event, Thread
from time import process_time

import auditing
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
start = process_time()
count = auditing.compare(*sys.argv[1:3])
seconds = process_time() - start
done.set()
watcher.join()
print(json.dumps({"findings": count, "cpu_seconds": seconds, "peak_memory": peak}))
