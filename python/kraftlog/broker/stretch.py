"""Records of a partition that are sent in one transaction, and their offsets at the target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.broker.client import Client, Place
from kraftlog.broker.errors import NotDeliveredError, ReplayError

COLUMNS = ("offset", "timestamp_ms", "key", "value", "headers")
EARLIEST_MS = 1  # the client takes 0 for the current time

Offsets = npt.NDArray[np.int64]

_PURGED = (-151, -152)  # KafkaError._PURGE_INFLIGHT and _PURGE_QUEUE


class Stretch:
    """Records that are committed together.

    The first and the last record of each call of ``send`` report their offset. A producer's records keep their order,
    so this determines all offsets unless another producer has written in between.

    Parameters
    ----------
    client : Client
        A client with an open transaction.
    place : tuple of str and int
        Topic and partition of the target.
    is_exact : bool
        Whether every record reports its offset.
    """

    def __init__(self, client: Client, place: Place, *, is_exact: bool) -> None:
        self._client, self._place, self._is_exact = client, place, is_exact
        self._source: list[Offsets] = []
        self._count = 0
        self._put: list[tuple[int, int]] = []  # index of a record, and its offset at the target
        self._refused: list[tuple[int, Any]] = []
        self.size_in_bytes = 0

    def __len__(self) -> int:
        return self._count

    def send(self, rows: pa.RecordBatch, sizes: Offsets) -> None:
        """Produce records."""
        offsets, timestamps, keys, values, headers = (rows[name] for name in COLUMNS)
        count, first = rows.num_rows, self._count
        numbers = range(first, first + count) if self._is_exact else {first, first + count - 1}
        marks: list[Any] = [None] * count
        for number in numbers:
            marks[number - first] = partial(self._delivered, number)
        self._source.append(offsets.to_numpy().copy())  # otherwise all columns of the chunk would stay in memory
        self._count += count
        self.size_in_bytes += int(sizes.sum())
        times = np.where(timestamps.to_numpy() == 0, EARLIEST_MS, timestamps.to_numpy()).tolist()
        pairs = _pairs(headers)
        columns = keys.to_pylist(), values.to_pylist(), times, pairs, marks
        with self._named():
            self._client.produce(self._place, zip(*columns, strict=False))

    def _delivered(self, number: int, error: Any, message: Any) -> None:
        if error is None:
            self._put.append((number, message.offset()))
        else:
            self._refused.append((number, error))

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the first record that was not delivered, if known; those that were purged after it tell no reason."""
        try:
            yield
        except NotDeliveredError:
            if not self._refused:
                raise
            number, error = min(self._refused, key=lambda one: (one[1].code() in _PURGED, one[0]))
            topic, partition = self._place
            offset = np.concatenate(self._source)[number]
            raise NotDeliveredError(
                f"{self._client.to}: {topic}-{partition} did not accept the record of offset {offset}: {error.str()}"
            ) from None

    def delivered(self) -> tuple[Offsets, Offsets]:
        """Wait for the delivery; return offsets of the log, and of the target.

        Raises
        ------
        NotDeliveredError
            When records were not delivered, or when finding their offsets requires ``is_exact``.
        """
        with self._named():
            self._client.deliver()
            if self._refused:
                raise NotDeliveredError(f"{self._client.to}: records were not delivered")
        source = np.concatenate(self._source)
        number, target = np.array(self._put, np.int64).T
        if (target < 0).any() or (np.diff(target) <= 0).any():
            raise NotDeliveredError(f"{self._client.to}: the broker did not report the offsets of the records")
        if self._is_exact:
            return source, target
        if not np.array_equal(target - target[0], number):
            raise NotDeliveredError(f"{self._client.to}: other producers write to the same partition")
        return source, target[0] + np.arange(len(source))


def _pairs(headers: pa.ListArray) -> Iterator[list[tuple[str, bytes | None]] | None]:
    """Return the headers of each record in the client's form."""
    ends = headers.offsets.to_numpy()
    flat = headers.flatten()
    if not len(flat):
        return repeat(None)
    keys, values = (flat.field(name).to_pylist() for name in ("key", "value"))
    every = list(zip(keys, values, strict=True))
    bounds = (ends - ends[0]).tolist()
    return (every[begin:end] or None for begin, end in pairwise(bounds))


def check_headers(rows: pa.RecordBatch, where: str) -> None:
    """Raise for header keys that the client would change: it ends them at a zero byte."""
    keys = rows["headers"].flatten().field("key")
    if any("\0" in key for key in keys.unique().to_pylist()):
        at = next(
            row["offset"]
            for row in rows.select(["offset", "headers"]).to_pylist()
            if any("\0" in header["key"] for header in row["headers"])
        )
        raise ReplayError(
            f"{where}: the record of offset {at} has a header key with a zero byte, at which the client would end it"
        )


def sizes_of(rows: pa.RecordBatch) -> Offsets:
    """Return the size of key and value of each record."""
    lengths = [pc.fill_null(pc.binary_length(rows[name]), 0).to_numpy() for name in ("key", "value")]
    return np.asarray(np.add(*lengths), np.int64)
