"""Usage: image_json_probe.py DIRECTORY. Runs ``kraftlog image``; prints CPU seconds and the peak of all memory."""

import json
import os
import sys
import time
from pathlib import Path

import kraftlog.cli

HIGH_WATER = "VmHWM:"

sys.argv = ["kraftlog", "image", "--no-cache", sys.argv[1], "--output", os.devnull]
try:
    kraftlog.cli.main()
except SystemExit as done:
    if done.code:
        raise
seconds = time.process_time()  # since the process began
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) << 10 for line in lines if line.startswith(HIGH_WATER))
print(json.dumps({"seconds": seconds, "peak_memory": peak}))
