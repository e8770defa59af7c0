"""The commands of Kafka's own metadata shell on a file of record batches, a snapshot or a log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from jvm import Jvm, Line

import kraftlog


def run(java: Jvm, file: Path, commands: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return the lines that each command prints."""
    return _run(java, file, [{"command": list(command)} for command in commands])


def redacted(java: Jvm, file: Path, paths: Iterable[str]) -> list[str]:
    """Return the line in each file, as Kafka redacts it."""
    return ["\n".join(printed) for printed in _run(java, file, [{"redacted": path.split("/")[1:]} for path in paths])]


def _run(java: Jvm, file: Path, lines: list[Line]) -> list[list[str]]:
    return [json.loads(line)["output"].splitlines() for line in java.run("Shell", str(file), lines=lines)]


def cut_log(folder: Path, offset: int, target: Path) -> None:
    """Write the batches of a log up to an offset into one file."""
    with target.open("wb") as file:
        for path in sorted(folder.glob("*.log")):
            columns = ["base_offset", "position", "size_in_bytes"]
            for batch in kraftlog.open(path).batches(columns).to_pylist():
                if batch["base_offset"] <= offset:
                    file.write(path.read_bytes()[batch["position"] :][: batch["size_in_bytes"]])
