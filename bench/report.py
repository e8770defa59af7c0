"""What was measured, as one table, and as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

import folds
import typed_records
import works
from compare import contenders as others
from rounds import Contender

FLOORS = {"scan": works.C_LOOP}  # memcpy for everything else
PEERS = {
    "decode": others.AIOKAFKA_ARROW,
    "encode": others.AIOKAFKA_BUILDER,
    "small": others.AIOKAFKA_ARROW,
    "typed": typed_records.KAFKA_FROM_LOG,
    "replay": folds.KAFKA,
}


@dataclass
class Block:
    """The contenders of one piece of work on one workload."""

    work: str
    workload: str
    contenders: list[Contender]

    def __getitem__(self, name: str) -> Contender:
        return next(c for c in self.contenders if c.name == name)

    def __contains__(self, name: str) -> bool:
        return any(c.name == name for c in self.contenders)

    def ratio(self, name: str, base: str | None) -> float | None:
        """Return how much faster ``name`` is than ``base``, or None when ``base`` did not take part."""
        if base is None or base not in self:
            return None
        return self[name].speed_against(self[base])

    def rows(self) -> Iterable[tuple[Contender, float | None, float | None]]:
        """Yield each contender, how it compares with the floor, and how with the peer."""
        for c in self.contenders:
            floor = self.ratio(c.name, FLOORS.get(self.work, works.MEMCPY))
            yield c, floor, self.ratio(c.name, PEERS.get(self.work))


def table(blocks: Iterable[Block]) -> Table:
    """Return all blocks as one table."""
    out = Table(title="single thread, medians of interleaved rounds", title_justify="left")
    for heading in ("work", "log", "contender"):
        out.add_column(heading, no_wrap=True)
    for heading in ("M records/s", "MB/s", "x memcpy\n(scan: x C loop)", "x peer\n(aiokafka, Kafka)"):
        out.add_column(heading, justify="right", no_wrap=True)
    for block in blocks:
        for i, (contender, floor, peer) in enumerate(block.rows()):
            names = (block.work, block.workload) if i == 0 else ("", "")
            speeds = (contender.records_per_second / 1e6, contender.bytes_per_second / 1e6, floor, peer)
            out.add_row(*names, contender.name, *map(short, speeds), end_section=i == len(block.contenders) - 1)
    return out


def short(number: float | None) -> str:
    """Return a number with three digits that count."""
    if number is None:
        return ""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def as_json(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Return all blocks as plain objects."""
    return [
        {
            "work": block.work,
            "log": block.workload,
            "contender": contender.name,
            "records_per_second": contender.records_per_second,
            "bytes_per_second": contender.bytes_per_second,
            "against_floor": floor,
            "against_peer": peer,
            "seconds": contender.seconds,
        }
        for block in blocks
        for contender, floor, peer in block.rows()
    ]


def machine() -> dict[str, str]:
    """Return what the figures depend on."""
    packages = {name: version(name) for name in ("kraftlog", "pyarrow", "numpy", "aiokafka", "kafka-python")}
    return {
        "processor": _processor(),
        "cpus": str(os.cpu_count()),
        "system": platform.platform(),
        "python": platform.python_version(),
        **packages,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
