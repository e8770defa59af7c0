"""Maven, for one process at a time: two that fetch the same files would spoil each other's."""

from __future__ import annotations

import fcntl
import subprocess
import tempfile
from pathlib import Path

LIMIT = 900


def run_maven(pom: Path, target: Path, phase: str) -> None:
    """Run a phase of a build, with its output below ``target``."""
    command = ["mvn", "-q", "-B", "-f", str(pom), f"-Dtarget={target}", phase]
    with (Path(tempfile.gettempdir()) / "kraftlog-interop-maven.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, f"Maven failed:\n{done.stdout}{done.stderr}"
