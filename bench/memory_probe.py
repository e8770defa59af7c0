"""Usage: memory_probe.py DIRECTORY. Reads all records; prints their number, seconds and peak of memory."""

import json
import sys
from pathlib import Path
from time import perf_counter

import kraftlog

COLUMNS = ["key", "value", "offset", "timestamp"]


def anonymous_memory() -> int:
    """Return bytes of this process that no file stands behind."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise OSError("no RssAnon in /proc/self/status")


peak = 0
for _ in range(2):  # the second time the files are in the page cache, if they fit
    rows, start = 0, perf_counter()
    for batch in kraftlog.open(sys.argv[1]).records(columns=COLUMNS).batches():
        rows += batch.num_rows
        peak = max(peak, anonymous_memory())
    seconds = perf_counter() - start
    assert rows == batch["offset"][-1].as_py() + 1  # offsets start at 0 and have no gaps
print(json.dumps({"seconds": seconds, "records": rows, "peak_memory": peak}))
