"""Topics whose records a committed transaction replaces.

The segments before the transaction may be deleted only after its decision, and must be deleted before its markers make
the new records visible. So the transaction begins new segments, and a file in the folder of the write, the manifest,
lists them. It is on disk before PrepareCommit. A store that opens with the transaction prepared deletes the old
segments before it writes the missing markers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.layout.names import STORE_FOLDER
from kraftlog.log_store.errors import UnknownTopicOrPartitionError
from kraftlog.log_store.partition import Partition
from kraftlog.log_store.transaction_state import EPOCH_BUMP_VERSION, PREPARE_COMMIT, TopicPartition, TransactionState

MANIFEST = "overwrite.json"


@dataclass(frozen=True)
class Overwrite:
    """The records that a transaction replaces.

    Attributes
    ----------
    producer_id, producer_epoch : int
        Producer of the transaction's records.
    starts : mapping of (str, int) to int
        Base offset of the first kept segment, by partition.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    starts: Mapping[TopicPartition, int]

    def write(self, folder: Path) -> None:
        """Write the manifest into the folder of the write."""
        starts = [[*key, offset] for key, offset in sorted(self.starts.items())]
        rows = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "starts": starts,
        }
        write_file(folder / MANIFEST, json.dumps(rows).encode())

    def is_decided(self, state: TransactionState | None) -> bool:
        """Whether a state is that of this transaction, prepared to commit, with markers that may be missing."""
        if state is None or state.status != PREPARE_COMMIT:
            return False
        raised = state.transaction_version >= EPOCH_BUMP_VERSION
        return (state.producer_id, state.producer_epoch) == (self.producer_id, self.producer_epoch + raised)

    def finish(self, partition_of: Callable[[TopicPartition], Partition]) -> None:
        """Delete the records that the transaction replaces; it can be repeated."""
        for key, offset in self.starts.items():
            with suppress(UnknownTopicOrPartitionError):  # the topic was deleted
                partition_of(key).delete_before(offset, self.producer_id)


def has_manifest(folder: Path) -> bool:
    """Whether the write of a folder may be decided."""
    return disk().entry(folder / MANIFEST) is not None


def decided_overwrites(log_directory: Path, states: Iterable[TransactionState]) -> Iterator[Overwrite]:
    """Return the overwriting transactions of a log directory that are decided and may be unfinished.

    Raises
    ------
    ValueError
        When a manifest is damaged.
    """
    store = log_directory / STORE_FOLDER
    if disk().entry(store) is None:
        return
    by_id = {state.transactional_id: state for state in states}
    for entry in disk().entries(store):
        if has_manifest(store / entry.name):
            overwrite = _read(store / entry.name / MANIFEST)
            if overwrite.is_decided(by_id.get(overwrite.transactional_id)):
                yield overwrite


def _read(path: Path) -> Overwrite:
    try:
        rows = json.loads(disk().read_bytes(path))
        starts = {(topic, partition): offset for topic, partition, offset in rows["starts"]}
        return Overwrite(rows["transactional_id"], rows["producer_id"], rows["producer_epoch"], starts)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not the manifest of an overwriting write: {error}") from error
