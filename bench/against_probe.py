"""Usage: against_probe.py DIRECTORY OTHER. Compares two clusters; prints findings, CPU seconds and peak of memory."""

import json
import sys
from time import process_time

import auditing
from anonymous_memory import PeakMemory

with PeakMemory() as peak:
    start = process_time()
    count = auditing.compare(*sys.argv[1:3])
    seconds = process_time() - start
print(json.dumps({"findings": count, "cpu_seconds": seconds, "peak_memory": peak.bytes}))
