"""Usage: memory_probe.py SEGMENT ... Reads all records; prints their number, seconds and peak of memory."""

import json
import sys
from time import perf_counter

import kraftlog
from anonymous_memory import anonymous_memory

COLUMNS = ["key", "value", "offset", "timestamp"]

peak = 0
for _ in range(2):  # the second time the files are in the page cache, if they fit
    rows, start = 0, perf_counter()
    for batch in kraftlog.open(sys.argv[1:]).records(columns=COLUMNS).batches():
        rows += batch.num_rows
        peak = max(peak, anonymous_memory())
    seconds = perf_counter() - start
    assert rows == batch["offset"][-1].as_py() + 1  # offsets start at 0 and have no gaps
print(json.dumps({"seconds": seconds, "records": rows, "peak_memory": peak}))
