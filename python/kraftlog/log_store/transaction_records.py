"""Records of ``__transaction_state``: from the state of a transactional id to key and value, and back."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.log_store.transaction_state import NONE, TransactionState
from kraftlog.messages.frames import int16_prefix
from kraftlog.messages.one_message import encode_message
from kraftlog.read.log_pass import Pass

_FLEXIBLE_VERSION = 1  # from transaction.version 1 on; older releases read only version 0 (KIP-915)


def transaction_record(state: TransactionState, transaction_version: int) -> KeyAndValue:
    """Return key and value of the record of a state.

    Parameters
    ----------
    state : TransactionState
    transaction_version : int
        The level of the feature ``transaction.version``, which sets the version of the value.
    """
    fields: dict[str, object] = {
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "transaction_timeout_ms": state.timeout_ms,
        "transaction_status": state.status,
        "transaction_partitions": _partitions(state),
        "transaction_last_update_timestamp_ms": state.last_update_timestamp,
        "transaction_start_timestamp_ms": state.start_timestamp,
    }
    version = 0
    if transaction_version >= 1:
        version = _FLEXIBLE_VERSION
        fields["previous_producer_id"] = state.previous_producer_id
        fields["next_producer_id"] = state.next_producer_id
        fields["client_transaction_version"] = state.transaction_version
    value = int16_prefix(version) + encode_message("TransactionLogValue", version, fields)
    return KeyAndValue(transaction_key(state.transactional_id), value)


def transaction_key(transactional_id: str) -> bytes:
    """Return the key of the records of a transactional id."""
    return int16_prefix(0) + encode_message("TransactionLogKey", 0, {"transactional_id": transactional_id})


def _partitions(state: TransactionState) -> list[dict[str, object]] | None:
    """Return the partitions by topic; null for an id without a transaction yet, as in Kafka."""
    if state.start_timestamp == NONE:
        return None
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(state.partitions):
        topics.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partition_ids": numbers} for topic, numbers in topics.items()]


def transaction_states(segments: list[Segment], faults: list[Fault] | None = None) -> Iterator[TransactionState]:
    """Return the last state of each transactional id of one partition of ``__transaction_state``.

    Parameters
    ----------
    segments : list of Segment
    faults : list of Fault, optional
        Receives what cannot be read; without it, the first fault raises.

    Raises
    ------
    RecordError
        Without ``faults``, when a record cannot be read: its decision would be lost.
    """
    from kraftlog.tables.coordinator_tables import last_transactional_ids

    read = Pass(ReadOptions(strict=faults is None), [] if faults is None else faults)
    rows = last_transactional_ids(segments, read)
    for fault in read.faults if faults is None else ():
        raise error_from_fault(fault)
    for row in rows.to_pylist():
        yield TransactionState(
            transactional_id=row["transactional_id"],
            producer_id=row["producer_id"],
            producer_epoch=row["producer_epoch"],
            timeout_ms=row["transaction_timeout_ms"],
            status=row["transaction_status"],
            partitions=frozenset(
                (topic["topic"], number)
                for topic in row["transaction_partitions"] or ()
                for number in topic["partition_ids"]
            ),
            start_timestamp=row["transaction_start_timestamp_ms"],
            last_update_timestamp=row["transaction_last_update_timestamp_ms"],
            previous_producer_id=row["previous_producer_id"],
            next_producer_id=row["next_producer_id"],
            transaction_version=row["client_transaction_version"],
        )
