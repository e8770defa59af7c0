"""Directories that brokers of other releases wrote (tests/golden/releases), and what they said of them.

``clean`` was stopped in order, ``killed`` with -9; ``killed/recovered`` has the files that the restarted broker made of
those, without the log files that it left as they were. ``tests/interop/releases/make.py`` makes all of it.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from golden_files import GOLDEN, lines

RELEASES = ["0.10.2.2", "1.1.1", "2.8.2", "3.3.2", "3.7.2", "3.9.1"]
STATES = ["clean", "killed"]
LOGS = [(release, state) for release in RELEASES for state in STATES]


def folder_of(release: str, state: str) -> Path:
    """Return the folder with ``log`` and ``answers``."""
    return GOLDEN / "releases" / release / state


def interval_of(partition: str) -> int:
    """Return index.interval.bytes of a partition, by the name of its folder."""
    return 512 if partition.startswith("orders-") else 4096


def answers(release: str, state: str, kind: str) -> list[dict[str, Any]]:
    """Return the answers of one kind that the running broker gave."""
    return [line for line in lines(folder_of(release, state) / "answers" / "answers.jsonl") if line["answer"] == kind]


def dumps(release: str, state: str) -> dict[str, list[str]]:
    """Return the lines of kafka-dump-log 4.3 by the file."""
    data = (folder_of(release, state) / "answers" / "dump.txt.gz").read_bytes()
    return by_file(gzip.decompress(data).decode().partition("stderr: ")[0])


def by_file(text: str) -> dict[str, list[str]]:
    """Return the lines of a dump by the file that they are of."""
    found: dict[str, list[str]] = {}
    for line in text.split("\n"):
        if line.startswith("Dumping "):
            lines_of_file = found.setdefault(line.removeprefix("Dumping "), [])
        elif found:
            lines_of_file.append(line)
    return {name: "\n".join(some).rstrip("\n").split("\n") for name, some in found.items()}
