"""Does time grow with bytes, and no faster: a log at once against a tenth of it at a time, read and written.

Both take in the same bytes, so that caches help neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import corpus
import kraftlog
import scanning
from material import Material
from rounds import Contender

AT_ONCE, IN_TENTHS = "all at once", "a tenth at a time"
ZEROS = "a batch and zeros"
PARTS = 10
LENGTH_AT = 8


def paths(megabytes: float) -> dict[str, list[Contender]]:
    """Return the two contenders of each path."""
    m = Material(corpus.Workload(100, 64), megabytes)
    headers, lz4 = (Material(w, megabytes) for w in (corpus.WITH_HEADERS, corpus.COMPRESSED[0]))
    tables = [m.table.slice(first, -(-m.records // PARTS)) for first in range(0, m.records, -(-m.records // PARTS))]
    chunked = [pa.Table.from_batches(table.to_batches(max_chunksize=1 << 12)) for table in (m.table, *tables)]
    columns = [*m.columns]
    return {
        "decode, streamed": _logs(m, lambda log: _drain(kraftlog.decode(log, columns=columns).batches())),
        "decode, to_table": _logs(m, lambda log: kraftlog.decode(log, columns=columns).to_table()),
        "decode, headers": _logs(headers, lambda log: _drain(kraftlog.decode(log, columns=headers.columns).batches())),
        "decode, lz4": _logs(lz4, lambda log: _drain(kraftlog.decode(log, columns=columns).batches())),
        "header scan": _logs(m, scanning.count_batches),
        "encode, one chunk": _pair(m.size, kraftlog.encode, m.table, tables),
        "encode, many chunks": _pair(m.size, kraftlog.encode, chunked[0], chunked[1:]),
        "encode, lz4": _pair(m.size, lambda table: kraftlog.encode(table, compression="lz4"), m.table, tables),
        "a partial batch": _partial(m, lambda log: _drain(kraftlog.decode(log, columns=columns).batches())),
        ZEROS: _zeros(m, lambda log: _drain(kraftlog.decode(log, columns=columns).batches())),
    }


def _drain(batches: Iterable[pa.RecordBatch]) -> None:
    for _ in batches:
        pass


def _pair(size: int, run: Callable[[Any], object], whole: object, parts: Sequence[object]) -> list[Contender]:
    """Return both contenders; what they count are bytes."""

    def at_once() -> None:
        run(whole)

    def in_parts() -> None:
        for part in parts:
            run(part)

    return [Contender(AT_ONCE, at_once, size, size), Contender(IN_TENTHS, in_parts, size, size)]


def _logs(m: Material, run: Callable[[np.ndarray], object]) -> list[Contender]:
    return _pair(m.size, run, m.log, _tenths(m))


def _partial(m: Material, run: Callable[[np.ndarray], object]) -> list[Contender]:
    """Give ``run`` a batch that claims one byte more than there is, with whole batches where its records should be."""

    def claiming(log: np.ndarray) -> np.ndarray:
        cut = np.array(log)
        cut[LENGTH_AT : LENGTH_AT + 4] = np.frombuffer((log.nbytes - LENGTH_AT - 4 + 1).to_bytes(4, "big"), np.uint8)
        return cut

    return _pair(m.size, run, claiming(m.log), [claiming(part) for part in _tenths(m)])


def _zeros(m: Material, run: Callable[[np.ndarray], object]) -> list[Contender]:
    """Give ``run`` a batch and zeros behind it, as a file that was preallocated has them."""
    first = m.log[: int(m.headers["position"][1])]

    def preallocated(size: int) -> np.ndarray:
        return np.concatenate([first, np.full(size - first.nbytes, 0, np.uint8)])

    return _pair(m.size, run, preallocated(m.size), [preallocated(m.size // PARTS) for _ in range(PARTS)])


def _tenths(m: Material) -> list[np.ndarray]:
    starts = m.headers["position"][:: -(-len(m.headers) // PARTS)].tolist()
    return [m.log[a:b] for a, b in zip(starts, [*starts[1:], m.log.nbytes], strict=True)]
