"""How long the program takes to start: CPU seconds of a process, of the fastest of a few."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
SMALL_DIRECTORY, METADATA, GROUPS = (str(GOLDEN / name / "log") for name in ("transactions", "metadata", "groups"))
TO_TABLE = "records().to_table()"
COMMANDS = {
    "version": ("-m", "kraftlog", "--version"),
    "help": ("-m", "kraftlog", "--help"),
    "segments": ("-m", "kraftlog", "segments", SMALL_DIRECTORY),
    "records": ("-m", "kraftlog", "records", SMALL_DIRECTORY, "--limit", "5"),
    "messages": ("-m", "kraftlog", "messages", METADATA),
    "image": ("-m", "kraftlog", "image", METADATA),
    "offsets": ("-m", "kraftlog", "offsets", GROUPS),
    TO_TABLE: ("-c", f"import kraftlog; kraftlog.open({SMALL_DIRECTORY!r}).{TO_TABLE}"),
}
STARTS = 7


def cpu_seconds(command: str, starts: int = STARTS) -> float:
    """Return the CPU time that a command takes, from the start of the interpreter to its end."""
    return min(_run(COMMANDS[command]) for _ in range(starts))


def _run(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
