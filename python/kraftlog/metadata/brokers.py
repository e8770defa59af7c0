"""Brokers of an image: their registrations, as Kafka's ``ClusterDelta`` changes them.

There are only a few records for each start and stop of a broker, so they are applied one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from kraftlog.errors import Fault
from kraftlog.metadata import schemas
from kraftlog.metadata.changed import Record
from kraftlog.metadata.record_types import BROKERS
from kraftlog.metadata.registrations import by_name
from kraftlog.metadata.uuids import uuid_order

REGISTER, UNREGISTER = BROKERS.name, BROKERS.remover
FENCE, UNFENCE, CHANGE = "FenceBrokerRecord", "UnfenceBrokerRecord", "BrokerRegistrationChangeRecord"
TYPES = (REGISTER, UNREGISTER, FENCE, UNFENCE, CHANGE)

_FENCED = {1: True, 0: None, -1: False}
_IN_CONTROLLED_SHUTDOWN = {1: True, 0: None}

Registration = dict[str, Any]
Brokers = dict[int, Registration]
Note = Callable[[int, int, Registration | None], None]


def apply(
    brokers: Brokers,
    batches: Mapping[str, pa.RecordBatch],
    faults: list[Fault],
    note: Note | None = None,
) -> Brokers:
    """Return the brokers after the records of a chunk; the mapping that is given does not change.

    Parameters
    ----------
    brokers : dict
    batches : Mapping of str to pyarrow.RecordBatch
    faults : list of Fault
    note : callable, optional
        Is called before each record with its offset, the broker and the broker's registration, None without one.
    """
    records = [record for name in TYPES if name in batches for record in _records(name, batches[name])]
    if not records:
        return brokers
    brokers = dict(brokers)
    for offset, name, record in sorted(records, key=lambda record: record[0]):
        if note:
            broker = record["broker_id"] if "broker_id" in record else record["id"]
            note(offset, broker, brokers.get(broker))
        if name == REGISTER:
            brokers[record["broker_id"]] = _registration(record)
        elif name == UNREGISTER:
            brokers.pop(record["broker_id"], None)
        else:
            fault = _change(brokers, name, record)
            if fault:
                faults.append(Fault(fault[0], f"offset {offset}: {name} of {fault[1]}", base_offset=offset))
    return brokers


def fields(registration: Registration | None) -> Record | None:
    """Return a registration in the order of its columns."""
    return None if registration is None else tuple(registration[column] for column in schemas.schema_of(REGISTER).names)


def table(brokers: Brokers) -> pa.Table:
    """Return RegisterBrokerRecord, by broker."""
    rows = [brokers[broker] for broker in sorted(brokers)]
    return pa.Table.from_pylist(rows, schema=schemas.schema_of(REGISTER))


def _records(name: str, batch: pa.RecordBatch) -> Iterator[tuple[int, str, dict[str, Any]]]:
    rows = schemas.rows_of_type(batch, name).to_pylist()
    for offset, row in zip(schemas.offsets_of(batch).tolist(), rows, strict=True):
        yield offset, name, row


def _registration(record: dict[str, Any]) -> Registration:
    return by_name(record) | {"log_dirs": sorted(record["log_dirs"] or [], key=uuid_order)}


def _change(brokers: Brokers, name: str, record: dict[str, Any]) -> tuple[str, str] | None:
    """Apply a record to the registration that it changes; return code and words of a fault."""
    broker, epoch = (record["broker_id"], record["broker_epoch"]) if name == CHANGE else (record["id"], record["epoch"])
    registration = brokers.get(broker)
    if registration is None:
        return "unknown_broker", f"broker {broker}: there is no such broker"
    if registration["broker_epoch"] != epoch:
        return (
            "broker_epoch_mismatch",
            f"broker {broker}: its epoch is {registration['broker_epoch']}, that of the record is {epoch}",
        )
    changed: Registration = {}
    if name == CHANGE:
        fenced, shutdown = record["fenced"], record["in_controlled_shutdown"]
        if fenced not in _FENCED or shutdown not in _IN_CONTROLLED_SHUTDOWN:
            words = f"broker {broker}: fenced {fenced}, inControlledShutdown {shutdown} are not known to Kafka"
            return "bad_broker_change", words
        changed["fenced"] = _FENCED[fenced]
        changed["in_controlled_shutdown"] = _IN_CONTROLLED_SHUTDOWN[shutdown]
        changed["log_dirs"] = sorted(record["log_dirs"] or [], key=uuid_order) or None
        changed["cordoned_log_dirs"] = record["cordoned_log_dirs"]
    else:
        changed["fenced"] = name == FENCE
    brokers[broker] = registration | {field: value for field, value in changed.items() if value is not None}
    return None
