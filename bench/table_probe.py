"""Usage: table_probe.py TABLE SEGMENT ... Reads a table; prints its rows, seconds and peak of memory."""

import json
import sys
from time import perf_counter

import kraftlog
from anonymous_memory import PeakMemory

with PeakMemory() as peak:
    start = perf_counter()
    stream = kraftlog.open(sys.argv[2:]).scan(sys.argv[1])
    rows = sum(batch.num_rows for batch in stream.batches())
    seconds = perf_counter() - start
assert not stream.faults
print(json.dumps({"seconds": seconds, "rows": rows, "peak_memory": peak.bytes}))
