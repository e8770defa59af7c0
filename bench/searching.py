"""A text that is in one record of a log, from its file: what the contenders count are bytes."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.compute as pc

import floors
import kraftlog
from compare.processes import Peers
from material import Material
from rounds import Contender

GREP, FILTERED, MEMCPY = "kraftlog, grep", "kraftlog, records and a filter", "memcpy"


def grep(m: Material, peers: Peers) -> list[Contender]:
    """Find a record by a piece of its value, with checksums compared."""
    log = kraftlog.open(m.path)
    row = m.records // 2
    value = m.table["value"][row].as_py()
    text = value[-12:] if m.workload.compression == "none" else value
    at = m.table["offset"][row].as_py()

    def searched() -> list[int]:
        return log.grep(["offset"], value=text).to_table()["offset"].to_pylist()

    def filtered() -> list[int]:
        rows = log.records(["offset", "value"]).batches()
        return [at for batch in rows for at in _matching(batch, text)["offset"].to_pylist()]

    return [
        _contender(m, GREP, lambda: _drop(searched()), lambda: _check(at, searched())),
        _contender(m, FILTERED, lambda: _drop(filtered()), lambda: _check(at, filtered())),
        _contender(m, MEMCPY, lambda: _drop(floors.memcpy(m.target, m.plain))),
    ]


def _matching(batch: object, text: bytes) -> object:
    return batch.filter(pc.match_substring(batch["value"], text))  # type: ignore[attr-defined]


def _contender(m: Material, name: str, run: Callable[[], None], check: Callable[[], None] = lambda: None) -> Contender:
    return Contender(name, run, m.size, m.size, check)


def _check(expected: int, found: list[int]) -> None:
    assert expected in found, found


def _drop(_: object) -> None:
    """Drop what a contender found: no records to count."""
