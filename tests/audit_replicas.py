"""Replicas of one partition for audits: batches, segments, and files of their log directories."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

import kraftlog
from held_replicas import ORDERS, Held, write

CLEANED = "cleaner-offset-checkpoint"
NOT_CLEANED = {CLEANED: "0\n0\n"}


def batch(base_offset: int, epoch: int, *values: str | None, **options: Any) -> bytes:
    """Return a batch whose keys are its offsets."""
    rows = {
        "key": [b"%d" % (base_offset + number) for number in range(len(values))],
        "value": [None if value is None else value.encode() for value in values],
    }
    given = {"partition_leader_epoch": epoch, "timestamp_ms": 1_700_000_000_000, **options}
    return bytes(kraftlog.encode(pa.table(rows), base_offset=base_offset, **given))


def replica(
    directory: Path,
    *segments: tuple[int, list[bytes]],
    checkpoints: dict[str, str] = NOT_CLEANED,
    node: int | None = None,
) -> Path:
    """Write the segments of orders-0, by their base offsets, and files of the log directory."""
    folder = directory / f"{ORDERS}-0"
    folder.mkdir(parents=True)
    for base_offset, batches in segments:
        (folder / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
    for name, text in checkpoints.items():
        (directory / name).write_text(text)
    if node is not None:
        (directory / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={node}\n")
    return directory


def codes(*paths: Path, **options: Any) -> dict[str, dict[str, Any]]:
    """Return the findings of an audit by code."""
    rows = kraftlog.open(list(paths), **options).findings(faults=[]).to_pylist()
    assert len({row["code"] for row in rows}) == len(rows)
    return {row["code"]: row for row in rows}


@contextmanager
def written(held: Sequence[Held]) -> Iterator[list[Path]]:
    """Write replicas to log directories whose names are their numbers."""
    with tempfile.TemporaryDirectory() as home:
        directories = [Path(home) / str(number) for number in range(len(held))]
        for directory, one in zip(directories, held, strict=True):
            write(directory, one, rolls=3)
            if not one.cleaned:
                (directory / CLEANED).write_text("0\n0\n")
        yield directories
