"""Plain-Python twin of the rules of metadata transactions where offsets may be missing, a record at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Batch:
    """A batch of a metadata log: kinds of records are data, begin, end, abort, and change for a leader's first one."""

    base_offset: int
    epoch: int
    kinds: tuple[str, ...]

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.kinds)

    @property
    def is_control(self) -> bool:
        return self.kinds == ("change",)


@dataclass
class Doubt:
    """Offsets are missing: a transaction may be open."""

    begin: int | None
    held: list[int]
    epoch: int
    tail: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)


class MetadataTwin:
    """What becomes of the records of a log, of which ``batches`` are those that can be read.

    ``visible_at`` has the visible records, ``transactions`` rows of the table, ``errors`` codes of faults.
    """

    def __init__(self, start_offset: int, batches: list[Batch], end_offset: int = 0) -> None:
        self.visible_at: dict[int, int] = {}
        self.transactions: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self.doubt: Doubt | None = None
        self.open: int | None = None
        self.inside: list[int] = []
        self.may_be_inside = start_offset > 0
        self.data_epoch = -1
        expected = start_offset
        for batch in batches:
            if batch.base_offset > expected:
                self.miss()
            expected = batch.next_offset
            self.take(batch)
        if end_offset > expected:
            self.miss()
        self.finish()

    def miss(self) -> None:
        """Offsets are missing behind what was taken."""
        self.errors.append("missing_offsets")
        if self.doubt is None:
            self.doubt = Doubt(self.open, self.inside, self.data_epoch)
            self.open, self.inside, self.may_be_inside = None, [], False
        else:
            self.doubt.held += self.doubt.tail
            self.doubt.tail = []
        self.doubt.epochs, self.doubt.changes = [], []

    def take(self, batch: Batch) -> None:
        """Take a batch that follows the one before."""
        doubt = self.doubt
        if not batch.is_control:
            if doubt is not None and batch.epoch > doubt.epoch and batch.kinds[0] not in ("end", "abort"):
                is_known = any(epoch < batch.epoch for epoch in doubt.epochs) or batch.epoch in doubt.changes
                self.settle()
                if not is_known:
                    self.doubt = Doubt(None, [], batch.epoch)
            self.data_epoch = batch.epoch
        if self.doubt is not None:
            self.doubt.epochs.append(batch.epoch)
            self.doubt.changes += [batch.epoch] if batch.is_control else []
        for at, kind in enumerate(batch.kinds):
            if kind != "change":
                getattr(self, f"take_{kind}")(batch.base_offset + at)

    def settle(self) -> None:
        """Nothing is open: what was open before the gaps ended in them."""
        doubt = self.doubt
        assert doubt is not None
        if doubt.begin is None:
            self.show(doubt.held)
        else:
            self.end(doubt.begin, None, "unknown", doubt.held)
        self.show(doubt.tail)
        self.doubt = None

    def show(self, offsets: list[int]) -> None:
        self.visible_at |= {offset: offset for offset in offsets}

    def end(self, begin: int | None, end: int | None, state: str, records: list[int]) -> None:
        row = {"begin_offset": begin, "end_offset": end, "state": state, "records_count": len(records)}
        self.transactions.append(row)
        if state == "committed":
            assert end is not None
            self.visible_at |= dict.fromkeys(records, end)
        if state == "unknown":
            self.errors.append("damaged_transaction")

    def take_data(self, offset: int) -> None:
        if self.doubt is not None:
            self.doubt.tail.append(offset)
        elif self.open is not None or self.may_be_inside:
            self.inside.append(offset)
        else:
            self.show([offset])

    def take_begin(self, offset: int) -> None:
        if self.doubt is not None:
            self.settle()
        if self.open is not None:
            self.errors.append("begin_inside_transaction")
            return
        self.show(self.inside)
        self.open, self.inside, self.may_be_inside = offset, [], False

    def take_end(self, offset: int) -> None:
        self.take_last(offset, "committed")

    def take_abort(self, offset: int) -> None:
        self.take_last(offset, "aborted")

    def take_last(self, offset: int, state: str) -> None:
        if self.doubt is not None:
            self.end(self.doubt.begin, offset, "unknown", self.doubt.held + self.doubt.tail)
            self.doubt = None
        elif self.open is None and not self.may_be_inside:
            self.errors.append("end_outside_transaction")
        else:
            self.errors += ["begun_before_log"] if self.open is None else []
            self.end(self.open, offset, state, self.inside)
            self.open, self.inside, self.may_be_inside = None, [], False

    def finish(self) -> None:
        """End the log."""
        doubt = self.doubt
        if doubt is not None and doubt.begin is not None:
            self.end(doubt.begin, None, "open", doubt.held + doubt.tail)
            self.errors.append("damaged_transaction")
        elif doubt is not None:
            self.show(doubt.held + doubt.tail)
        elif self.open is not None:
            self.end(self.open, None, "open", self.inside)
        else:
            self.show(self.inside)
