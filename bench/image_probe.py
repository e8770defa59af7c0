"""Usage: image_probe.py DIRECTORY. Replays a metadata log; prints partitions, seconds and peak of memory."""

import json
import sys
from time import perf_counter

from anonymous_memory import PeakMemory
from kraftlog.layout.discover import discover
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at

with PeakMemory() as peak:
    start = perf_counter()
    image = image_at(MetadataLog(discover(sys.argv[1]).segments), None, [], use_snapshots=False).image
    seconds = perf_counter() - start
print(json.dumps({"seconds": seconds, "partitions": image.partitions_count, "peak_memory": peak.bytes}))
