"""Plain-Python twins: transactions as a state machine that takes one batch, or one record, after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import kraftlog
from kraftlog.codec.metadata_markers import abort_transaction, begin_transaction, end_transaction

DATA = b"\x01\x03\x00record"


@dataclass
class ProducerModel:
    """What becomes of the batches of producers, one after the other."""

    open: dict[int, int] = field(default_factory=dict)  # first offset by producer
    of_producer: dict[int, list[int]] = field(default_factory=dict)  # offsets of its open transaction
    state: dict[int, str | None] = field(default_factory=dict)  # by offset
    log: bytes = b""
    next_offset: int = 0
    visible_at: dict[int, int] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=list)

    def data(self, producer_id: int, records: int, *, transactional: bool, timestamp_ms: int = 0) -> None:
        """Append a batch of a producer; -1 for none."""
        offsets = list(range(self.next_offset, self.next_offset + records))
        rows = pa.table({"value": [b"v%d" % offset for offset in offsets], "timestamp_ms": [timestamp_ms] * records})
        self._append(
            kraftlog.encode(
                rows,
                base_offset=self.next_offset,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=0 if producer_id >= 0 else -1,
                is_transactional=transactional,
            )
        )
        for offset in offsets:
            self.state[offset] = "open" if transactional else None
        if transactional:
            self.open.setdefault(producer_id, offsets[0])
            self.of_producer.setdefault(producer_id, []).extend(offsets)
        self.waiting += offsets
        self._move(offsets[0], offsets[-1])

    def marker(self, producer_id: int, control_type: str) -> None:
        """Append a marker of a producer."""
        at = self.next_offset
        self._append(kraftlog.encode_marker(control_type, producer_id=producer_id, producer_epoch=1, base_offset=at))
        first = self.open.pop(producer_id, None)
        for offset in self.of_producer.pop(producer_id, []):
            self.state[offset] = "committed" if control_type == "COMMIT" else "aborted"
        if first is not None and control_type == "ABORT":
            self.aborted.append((producer_id, first, at, min(self.open.values(), default=at + 1)))
        self._move(at, at)

    def _append(self, batch: pa.Buffer) -> None:
        self.boundaries.append(len(self.log))
        self.log += batch.to_pybytes()

    def _move(self, first: int, last: int) -> None:
        self.next_offset = last + 1
        stable = min(self.open.values(), default=self.next_offset)
        for offset in [offset for offset in self.waiting if offset < stable]:
            self.waiting.remove(offset)
            if self.state[offset] != "aborted":
                self.visible_at[offset] = max(offset, first)

    @property
    def last_stable_offset(self) -> int:
        return min(self.open.values(), default=self.next_offset)

    @property
    def visible(self) -> list[int]:
        return sorted(self.visible_at)


@dataclass
class MetadataModel:
    """What becomes of metadata records, one after the other."""

    is_open: bool = False
    inside: list[int] = field(default_factory=list)
    visible_at: dict[int, int] = field(default_factory=dict)
    state: dict[int, str | None] = field(default_factory=dict)
    illegal: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    transactions: list[dict[str, Any]] = field(default_factory=list)

    def add(self, kind: str) -> None:
        """Append a record: data, begin, end or abort."""
        offset = len(self.values)
        self.state[offset] = None
        if kind == "data":
            self.values.append(DATA)
            self.inside.append(offset)
            if not self.is_open:
                self.visible_at[offset] = offset
        elif kind == "begin":
            self.values.append(begin_transaction("t"))
            if self.is_open:
                self.illegal.append(offset)
            else:
                self.is_open, self.inside = True, []
                self.transactions.append({"begin_offset": offset, "end_offset": None, "state": "open"})
        else:
            self.values.append(end_transaction() if kind == "end" else abort_transaction("r"))
            if not self.is_open:
                self.illegal.append(offset)
                return
            self.is_open = False
            state = "committed" if kind == "end" else "aborted"
            self.transactions[-1] |= {"end_offset": offset, "state": state, "records_count": len(self.inside)}
            if kind == "end":
                self.visible_at |= dict.fromkeys(self.inside, offset)

    def finish(self) -> None:
        """Say how many records an open transaction has."""
        if self.is_open:
            self.transactions[-1]["records_count"] = len(self.inside)
