"""The options of ``df.write.format("kraftlog")`` and of ``writeStream``. No Spark is needed to import this."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kraftlog.codec.compression import COMPRESSION_TYPES
from kraftlog.store import BatchOptions
from kraftlog.store.rows import Routing, existing_topics
from kraftlog.store.staging import check_topic

OPTIONS = (
    "path",
    "topic",
    "partitions",
    "compression",
    "compressionLevel",
    "batchSize",
    "segmentBytes",
    "transactionalId",
    "batchId",
    "checkpointLocation",
)
_SET_BY_SPARK = ("queryname",)
_LARGEST_SIZE = 2**31 - 1


@dataclass(frozen=True)
class SinkOptions:
    """What a job writes where; plain values, so that it can be sent to executors.

    Attributes
    ----------
    log_directory : Path
        That the driver and the executors share.
    routing : Routing
    batch : BatchOptions
    transactional_id : str or None
    batch_id : int or None
        Of a job that is no stream.
    """

    log_directory: Path
    routing: Routing
    batch: BatchOptions
    transactional_id: str | None
    batch_id: int | None


def parse_sink_options(options: Mapping[str, str], *, is_streaming: bool) -> SinkOptions:
    """Read the options of a writer; names are taken without regard to case.

    Raises
    ------
    ValueError
        For an unknown option, a value that cannot be read, or a stream without anything to know its batches by.
    """
    given = {key.lower(): value for key, value in options.items()}
    known = {name.lower() for name in OPTIONS}
    unknown = sorted(name for name in given if name not in known and name not in _SET_BY_SPARK)
    if unknown:
        raise ValueError(f"unknown option {', '.join(unknown)}; there are {', '.join(sorted(OPTIONS))}")
    if "path" not in given:
        raise ValueError('no path: use .save("...") or .start("...") with a log directory')
    topic = given.get("topic")
    if topic is not None:
        check_topic(topic)
    log_directory = _local(given["path"])
    if log_directory is None:
        raise ValueError(f"path {given['path']!r} is not on a file system that the machines share as a folder")
    transactional_id = given.get("transactionalid")
    batch_id = _number(given, "batchId", 0, None)
    if is_streaming:
        transactional_id = transactional_id or _id_of_checkpoint(given.get("checkpointlocation"))
        if batch_id is not None:
            raise ValueError("option batchId is not for streams: Spark numbers their batches")
        if transactional_id is None:
            raise ValueError("a stream needs the option checkpointLocation or transactionalId to know its batches by")
    elif (transactional_id is None) != (batch_id is None):
        raise ValueError("options transactionalId and batchId go together: they name a write that happens once")
    existing = existing_topics(log_directory)
    if topic is not None:
        existing = {name: count for name, count in existing.items() if name == topic}
    return SinkOptions(
        log_directory,
        Routing(topic, existing, _partitions(given)),
        _batch_options(given),
        transactional_id,
        batch_id,
    )


def _local(path: str) -> Path | None:
    """Return a path of a file system of this machine; None for others."""
    parts = urlsplit(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if "://" in path else Path(path).absolute()


def _id_of_checkpoint(location: str | None) -> str | None:
    """Return a location, with the id of the query where it can be read: a new query there counts its batches anew."""
    folder = _local(location) if location is not None else None
    if folder is None or not (folder / "metadata").is_file():
        return location
    return f"{location} {json.loads((folder / 'metadata').read_text())['id']}"


def _batch_options(given: Mapping[str, str]) -> BatchOptions:
    compression = given.get("compression", "none").lower()
    if compression not in COMPRESSION_TYPES:
        raise ValueError(f"option compression is {compression!r}, not one of {', '.join(COMPRESSION_TYPES)}")
    return BatchOptions(
        compression,
        _number(given, "compressionLevel", -_LARGEST_SIZE, None),
        _number(given, "batchSize", 1, BatchOptions.max_batch_bytes) or 0,
        _number(given, "segmentBytes", 1, BatchOptions.segment_bytes) or 0,
    )


def _partitions(given: Mapping[str, str]) -> int | dict[str, int] | None:
    text = given.get("partitions")
    try:
        partitions = None if text is None else json.loads(text)
    except ValueError:
        partitions = text
    counts = partitions.values() if isinstance(partitions, dict) else [partitions]
    if text is not None and not all(type(count) is int and 0 < count <= _LARGEST_SIZE for count in counts):
        raise ValueError(f'option partitions is {text!r}, neither a number above 0 nor JSON such as {{"orders": 6}}')
    return partitions


def _number(given: Mapping[str, str], name: str, least: int, default: int | None) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"option {name} is {text!r}, not a number") from None
    if number < least:
        raise ValueError(f"option {name} is {number}, less than {least}")
    return number
