"""Usage: image_probe.py DIRECTORY. Replays a metadata log; prints partitions, seconds and peak of memory."""

import json
import sys
from threading import Event, Thread
from time import perf_counter

from anonymous_memory import anonymous_memory
from kraftlog.layout.discover import discover
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at

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
image = image_at(MetadataLog(discover(sys.argv[1]).segments), None, [], use_snapshots=False).image
seconds = perf_counter() - start
done.set()
watcher.join()
print(json.dumps({"seconds": seconds, "partitions": image.partitions_count, "peak_memory": peak}))
