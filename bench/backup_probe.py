"""Usage: backup_probe.py STEP DIRECTORY REPOSITORY. Runs a step of backups; prints seconds and the peak of memory.

The repository is a folder that is used as an object store is: through a file system of pyarrow, without renames and
locks. A store in this process would take memory, and one in another process a minute for the requests.
"""

import json
import sys
from time import perf_counter

import kraftlog
from anonymous_memory import PeakMemory
from kraftlog.cli.backup import command
from kraftlog.disk.remote_path import RemotePath


def run(step: str, directory: str, folder: str) -> int:
    """Do one step, and return with how many segments or rows."""
    repository = kraftlog.Repository(RemotePath.parse(f"file://{folder}"))
    if step in ("first", "later"):
        return repository.backup(directory).segments
    if step == "verify":
        assert repository.verify() == []
        return len(repository.names())
    if step == "plan":
        return len(kraftlog.restore(folder, f"{folder}-restored", dry_run=True).partitions)
    names = repository.names() if step == "diff" else []
    arguments = [step, folder, *names, "--output", "/dev/null"]
    try:
        command.main(arguments, standalone_mode=False)
    except SystemExit as done:
        if done.code:
            raise
    return len(repository.names())


with PeakMemory() as peak:
    start = perf_counter()
    count = run(*sys.argv[1:4])
    seconds = perf_counter() - start
print(json.dumps({"count": count, "seconds": seconds, "peak_memory": peak.bytes}))
