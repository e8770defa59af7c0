"""The committed offsets of groups: a partition of ``__consumer_offsets``, folded as the group coordinator loads it.

A commit in a transaction is pending until the marker of its producer. A COMMIT makes it count, unless the coordinator
has a commit of a later record by then; an ABORT drops it. A tombstone removes the committed and the pending offsets of
its key. So the offset of a key is the last commit behind its last tombstone that was not aborted, whatever the order in
which rows and markers are compared.

A commit is transactional if its batch has a producer id, as for Kafka's coordinator since 4.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kraftlog.coordinator.transaction_ends import ends_of
from kraftlog.last_by_key import NOWHERE, Codes, Fold, Mask, Rows, codes_of, last_of, numbers
from kraftlog.transactions.producer import COMMITTED, OPEN

KEYS = ("group", "key_topic", "key_partition")
COLUMNS = (
    *KEYS,
    "offset",
    "producer_id",
    "value_offset",
    "leader_epoch",
    "metadata",
    "commit_timestamp",
    "expire_timestamp",
    "topic_id",
    "is_tombstone",
)
NO_PRODUCER_ID = -1


class OffsetFold(Fold):
    """The offsets that groups have committed in one partition of the topic, and those that are pending.

    Examples
    --------
    >>> fold = OffsetFold()
    >>> fold.rows() is None
    True
    """

    def __init__(self) -> None:
        super().__init__(COLUMNS)
        self._markers: tuple[pa.RecordBatch, ...] = ()

    def add(self, rows: pa.RecordBatch | None, markers: pa.RecordBatch | None = None) -> None:
        """Take the next records, in the order of their offsets.

        Parameters
        ----------
        rows : pyarrow.RecordBatch, optional
            Of the type OffsetCommit: its fields, ``offset`` and ``producer_id`` of the record and ``is_tombstone``.
        markers : pyarrow.RecordBatch, optional
            The transaction markers of the same stretch of the log: ``offset``, ``producer_id`` and ``control_type``.
        """
        if markers is not None and markers.num_rows:  # they come first: rows must not be compared without them
            self._markers = (*self._markers, markers.select(["offset", "producer_id", "control_type"]))
            self._news += markers.num_rows
        super().add(rows)
        self._grown(0, 0)

    def _compact(self) -> None:
        super()._compact()
        self._markers = ()

    def _remaining(self, table: pa.Table) -> pa.Table:
        codes = codes_of([table.column(key) for key in KEYS], table.num_rows)
        offsets, producers = numbers(table, "offset"), numbers(table, "producer_id")
        is_tombstone = numbers(table, "is_tombstone").astype(bool)
        ends = np.full(table.num_rows, COMMITTED, np.int8)
        in_transaction = np.flatnonzero((producers != NO_PRODUCER_ID) & ~is_tombstone)
        if len(in_transaction):
            ends[in_transaction] = ends_of(offsets[in_transaction], producers[in_transaction], self._markers)
        stays = np.zeros(table.num_rows, bool)
        stays[_latest(np.flatnonzero(ends == COMMITTED), codes, offsets)] = True
        stays &= ~is_tombstone
        pending = np.flatnonzero(ends == OPEN)
        if len(pending):
            stays[_latest_pending(pending, codes, offsets, producers, is_tombstone)] = True
        if len(in_transaction):
            table = _with_producers(table, np.where(ends == OPEN, producers, NO_PRODUCER_ID))
        return table.filter(pa.array(stays))


def _latest(rows: Rows, codes: Codes, offsets: Rows) -> Rows:
    """Return of these rows the one with the highest offset for each key."""
    ordered: Rows = rows[np.argsort(offsets[rows], kind="stable")]
    last = last_of(Codes(codes.rows[ordered], codes.end))
    return np.asarray(ordered[last[last != NOWHERE]])


def _latest_pending(pending: Rows, codes: Codes, offsets: Rows, producers: Rows, is_tombstone: Mask) -> Rows:
    """Return the last pending commit of each producer for each key, of those behind the key's last tombstone."""
    tombstones = _latest(np.flatnonzero(is_tombstone), codes, offsets)
    deleted_at = np.full(codes.end, np.iinfo(np.int64).min, np.int64)
    deleted_at[codes.rows[tombstones]] = offsets[tombstones]
    pending = pending[offsets[pending] > deleted_at[codes.rows[pending]]]
    if not len(pending):
        return pending
    of_producer = codes_of([pa.array(part[pending]) for part in (codes.rows, producers)], len(pending))
    return pending[_latest(np.arange(len(pending)), of_producer, offsets[pending])]


def _with_producers(table: pa.Table, producers: Rows) -> pa.Table:
    at = table.schema.get_field_index("producer_id")
    return table.set_column(at, table.schema.field(at), pa.array(producers))
