"""Committed offsets record by record, as Kafka's OffsetMetadataManager keeps them."""

from __future__ import annotations

Key = tuple[str, str, int]


class PlainFold:
    """The coordinator's own way: a store of offsets, and one of each open transaction."""

    def __init__(self) -> None:
        self.offsets: dict[Key, int] = {}
        self.pending: dict[int, dict[Key, int]] = {}

    def replay(self, at: int, kind: str, key: Key | None, producer: int) -> None:
        if kind in ("COMMIT", "ABORT"):
            for each, record_offset in self.pending.pop(producer, {}).items():
                if kind == "COMMIT" and record_offset > self.offsets.get(each, -1):
                    self.offsets[each] = record_offset
            return
        assert key is not None
        if kind == "tombstone":
            self.offsets.pop(key, None)
            for open_transaction in self.pending.values():
                open_transaction.pop(key, None)
        elif producer == -1:
            self.offsets[key] = at
        else:
            self.pending.setdefault(producer, {})[key] = at

    def rows(self) -> set[tuple[Key, str, int, int | None]]:
        committed = {(key, "committed", at, None) for key, at in self.offsets.items()}
        opened = ((producer, each) for producer, each in self.pending.items())
        return committed | {(key, "pending", at, producer) for producer, each in opened for key, at in each.items()}
