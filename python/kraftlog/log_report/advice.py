"""Explanations and next steps for each error of ``kraftlog verify``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kraftlog.errors import Fault
from kraftlog.tables.commands import kraftlog, of_partition

Command = Callable[[Sequence[str], Fault], list[str]]


@dataclass(frozen=True)
class Advice:
    """The explanation of an error.

    Attributes
    ----------
    one, many : str
        Name of the error, singular and plural.
    text : str
        Meaning, and what to do next.
    commands : callable
        Returns commands for the paths and the first fault.
    """

    one: str
    many: str
    text: str
    commands: Command


def _errors(paths: Sequence[str], fault: Fault) -> list[str]:
    return [kraftlog("verify", paths, *of_partition(fault.topic, fault.partition))]


def _rescue(paths: Sequence[str], fault: Fault) -> list[str]:
    chosen = of_partition(fault.topic, fault.partition)
    return [*_errors(paths, fault), kraftlog("extract", paths, _file("rescued", fault), *chosen)]


def _file(name: str, fault: Fault) -> str:
    return name if fault.topic is None else f"{name}-{fault.topic}-{fault.partition}"


def _salvage(paths: Sequence[str], fault: Fault) -> list[str]:
    chosen, file = of_partition(fault.topic, fault.partition), f"{_file('salvaged', fault)}.parquet"
    return [*_rescue(paths, fault), kraftlog("records", paths, *chosen, "--salvage", "--output", file)]


def _rebuild(paths: Sequence[str], fault: Fault) -> list[str]:
    chosen = of_partition(fault.topic, fault.partition)
    return [
        kraftlog("recover", paths, *chosen, "--rebuild"),
        kraftlog("recover", paths, *chosen, "--rebuild", "--write"),
    ]


def _batches(*columns: str) -> Command:
    def commands(paths: Sequence[str], fault: Fault) -> list[str]:
        start = [] if fault.base_offset is None else ["--start-offset", max(fault.base_offset, 0)]
        chosen = of_partition(fault.topic, fault.partition)
        return [kraftlog("batches", paths, *chosen, *start, "-c", 5, "--columns", ",".join(columns))]

    return commands


def _metadata(paths: Sequence[str], fault: Fault) -> list[str]:
    return [kraftlog("metadata-transactions", paths), *_errors(paths, fault)]


def _transactions(paths: Sequence[str], fault: Fault) -> list[str]:
    columns = "transactional_id,producer_id,producer_epoch,state,ended_by,contradiction"
    markers = _batches("base_offset", "producer_id", "producer_epoch", "control_type")
    return [kraftlog("transactions", paths, "--columns", columns), *markers(paths, fault)]


def _messages(paths: Sequence[str], fault: Fault) -> list[str]:
    return [kraftlog("messages", paths, *of_partition(fault.topic, fault.partition)), *_errors(paths, fault)]


_REPLICA = (
    "Take the whole folder of the partition from a sound replica while both brokers are stopped. Without one, copy what"
    " can be read."
)
_LOST = f"The records of such a batch are left out here, and a broker does not serve them. {_REPLICA}"
_LOST_REST = (
    f"No header follows that can be trusted, so the rest of the file is not read. {_REPLICA} --salvage searches the"
    " rest for batches whose checksum matches."
)
_INDEX = (
    "The log is read without these files, but a broker trusts them: it may look in wrong places, or wait for"
    " transactions that have ended. Rebuild them from the log while the broker is stopped; the first command only shows"
    " what would be done."
)
_ORDER = "Consumers may skip records here, or read some twice. Compare with another replica before the log is used."
_PRODUCER = (
    "A broker would have refused such a batch. Either records before it are missing, or another program wrote it."
    " Compare with another replica."
)
_METADATA = (
    "Records of such a transaction may be missing from the image, or appear too early. Compare with the metadata log of"
    " another controller."
)

_CRC = Advice("batch with a wrong checksum", "batches with a wrong checksum", _LOST, _rescue)
_RECORDS = Advice("batch with records that cannot be read", "batches with records that cannot be read", _LOST, _rescue)
_LENGTH = Advice("place where no batch can be read", "places where no batch can be read", _LOST_REST, _salvage)
_INDEX_FILES = Advice(
    "difference between index files and log", "differences between index files and log", _INDEX, _rebuild
)
_SNAPSHOTS = Advice(
    "difference between producer snapshots and log", "differences between producer snapshots and log", _INDEX, _rebuild
)
_OFFSETS = Advice(
    "batch whose offsets do not follow",
    "batches whose offsets do not follow",
    _ORDER,
    _batches("position", "base_offset", "last_offset", "records_count"),
)
_PRODUCERS = Advice(
    "batch with an impossible producer epoch or sequence",
    "batches with an impossible producer epoch or sequence",
    _PRODUCER,
    _batches("base_offset", "producer_id", "producer_epoch", "base_sequence", "is_transactional"),
)
_OF_METADATA = Advice(
    "misplaced marker or gap in transactions of the metadata log",
    "misplaced markers or gaps in transactions of the metadata log",
    _METADATA,
    _metadata,
)
_IMAGE = Advice(
    "record that does not fit the metadata image",
    "records that do not fit the metadata image",
    "The image, health and timeline below may lack something. Compare with the metadata log of another controller.",
    _metadata,
)
_MESSAGES = Advice(
    "record of an internal topic that cannot be read",
    "records of internal topics that cannot be read",
    "Their contents are missing below. A newer release of Kafka than this program knows may have written them.",
    _messages,
)

_BY_ERROR = {
    "bad_crc": _CRC,
    "bad_batch_length": _LENGTH,
    "bad_magic": _LENGTH,
    "too_much_damage": _LENGTH,
    "batch_cut_off": Advice(
        "segment that ends within a batch",
        "segments that end within a batch",
        f"More segments follow, so this is not a torn tail: records are missing. {_REPLICA}",
        _rescue,
    ),
    "missing_batches": Advice(
        "segment without its last batches",
        "segments without their last batches",
        f"Its index files, or the next segment, show that they were there: records are missing. {_REPLICA}",
        _rescue,
    ),
    "unreadable_file": Advice(
        "file that cannot be read",
        "files that cannot be read",
        "Check the permissions of the file, and the kernel's log for errors of the device. Files that a broker deletes"
        " or truncates during the pass appear here, too: read a copy instead.",
        _errors,
    ),
    "stops_broker": Advice(
        "folder that stops a broker",
        "folders that stop a broker",
        "A broker takes every folder in a log directory for a partition, and does not start where its name is not"
        " topic-partition. Move it elsewhere.",
        _errors,
    ),
    **dict.fromkeys(("bad_index", "index_mismatch", "txnindex_mismatch"), _INDEX_FILES),
    **dict.fromkeys(("bad_snapshot", "snapshot_mismatch"), _SNAPSHOTS),
    **dict.fromkeys(("offset_goes_back", "bad_last_offset_delta", "offset_overflow"), _OFFSETS),
    **dict.fromkeys(("sequence_gap", "bad_producer_epoch", "not_transactional", "bad_coordinator_epoch"), _PRODUCERS),
    "torn_transaction": Advice(
        "transaction that is torn",
        "transactions that are torn",
        "read_committed consumers see a part of such a transaction, and another part is aborted or waits for its end. A"
        " marker that was written by hand (kafka-transactions.sh abort) may be the cause, or a replica that was lost."
        " The first command names the expected decision, the second one shows the marker.",
        _transactions,
    ),
    **dict.fromkeys(
        (
            "begin_inside_transaction",
            "end_outside_transaction",
            "begun_before_log",
            "marker_in_snapshot",
            "unsupported_marker",
            "bad_marker",
            "missing_offsets",
            "damaged_transaction",
        ),
        _OF_METADATA,
    ),
    **dict.fromkeys(
        (
            "incomplete_image",
            "incomplete_snapshot",
            "unknown_topic",
            "unknown_partition",
            "unknown_broker",
            "broker_epoch_mismatch",
            "bad_broker_change",
            "unknown_acl",
            "bad_directories",
            "bad_leader_recovery_state",
            "bad_feature_level",
        ),
        _IMAGE,
    ),
    **dict.fromkeys(("bad_message", "null_key", "null_value", "bad_frame_version"), _MESSAGES),
}


def advice(error: str) -> Advice:
    """Return the explanation of an error; for an unnamed one that of records that cannot be read."""
    return _BY_ERROR.get(error, _RECORDS)
