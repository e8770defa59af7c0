"""How long the program takes to start: CPU seconds of a process, of the fastest of a few."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

SMALL_DIRECTORY = Path(__file__).resolve().parents[1] / "tests" / "golden" / "transactions" / "log"
COMMANDS = {
    "version": ("--version",),
    "help": ("--help",),
    "segments": ("segments", str(SMALL_DIRECTORY)),
    "records": ("records", str(SMALL_DIRECTORY), "--limit", "5"),
}
STARTS = 7


def cpu_seconds(command: str) -> float:
    """Return the CPU time that a command takes, from the start of the interpreter to its end."""
    return min(_run(COMMANDS[command]) for _ in range(STARTS))


def _run(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "kraftlog", *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
