"""The options of ``df.write.format("kraftlog")`` and of ``writeStream``. Importing this does not need Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kraftlog._native.scanner import RECORD_BATCH_OVERHEAD
from kraftlog.codec.compression import COMPRESSION_TYPES
from kraftlog.log_store.directory import existing_topics
from kraftlog.log_store.rows import Routing
from kraftlog.log_store.staging import MARKER_BYTES, StagingOptions, check_topic
from kraftlog.log_store.staging_location import StagingLocation
from kraftlog.log_store.topics import MOST_PARTITIONS
from kraftlog.spark.option_tables import SINK
from kraftlog.spark.options import flag, storage_options
from kraftlog.spark.paths import local_folder

OPTIONS = tuple(option.name for option in SINK)
_SET_BY_SPARK = ("queryname",)
_LARGEST_SIZE = 2**31 - 1
_LEVELS = {"gzip": range(1, 10), "lz4": range(1, 18), "zstd": range(-131072, 23)}  # Kafka's ranges


@dataclass(frozen=True)
class SinkOptions:
    """What a job writes where; plain values, so that it can be sent to executors.

    Attributes
    ----------
    log_directory : Path
        A directory that the driver and the executors share.
    routing : Routing
    staging : StagingOptions
    transactional_id : str or None
        As set by the user.
    batch_id : int or None
        For a batch job.
    checkpoint : str or None
        For a stream.
    location : StagingLocation or None
        Where tasks send their files if they do not share the log directory.
    """

    log_directory: Path
    routing: Routing
    staging: StagingOptions
    transactional_id: str | None
    batch_id: int | None
    checkpoint: str | None
    location: StagingLocation | None = None

    def with_existing_topics(self) -> SinkOptions:
        """Return the same options with the partition counts of existing topics.

        Raises
        ------
        ValueError
            When the option partitions contradicts a topic's partition count.
        """
        topic, new = self.routing.topic, self.routing.new
        existing = existing_topics(self.log_directory)
        if topic is not None:
            existing = {name: count for name, count in existing.items() if name == topic}
        for name, count in existing.items():
            given = new.get(name) if isinstance(new, Mapping) else new if topic is not None else None
            if given is not None and given != count:
                raise ValueError(f"option partitions says {given} for topic {name}, which has {count}")
        return replace(self, routing=replace(self.routing, existing=existing))


def parse_sink_options(options: Mapping[str, str], *, is_streaming: bool, overwrite: bool) -> SinkOptions:
    """Parse the options of a writer; names are case-insensitive.

    Parameters
    ----------
    options : mapping of str to str
    is_streaming : bool
    overwrite : bool
        Whether the mode is overwrite, or complete for a stream.

    Raises
    ------
    ValueError
        For an unknown option or an invalid value; for a mode that removes records without the option overwriteTopics,
        and for that option without such a mode.
    """
    given = {key.lower(): value for key, value in options.items()}
    known = {name.lower() for name in OPTIONS}
    unknown = sorted(name for name in given if name not in known and name not in _SET_BY_SPARK)
    if unknown:
        raise ValueError(f"unknown option {', '.join(unknown)}; there are {', '.join(sorted(OPTIONS))}")
    if "path" not in given:
        raise ValueError(
            'no path: use .save("...") or .start("...") with a log directory; Spark passes no options of CREATE'
            " TABLE and writeTo to a Python data source"
        )
    _check_overwrite(given, is_streaming=is_streaming, overwrite=overwrite)
    topic = given.get("topic")
    if topic is not None:
        check_topic(topic)
    transactional_id = given.get("transactionalid")
    batch_id = _number(given, "batchId", 0, None)
    if is_streaming and batch_id is not None:
        raise ValueError("option batchId does not apply to streams: Spark numbers their batches")
    if not is_streaming and (transactional_id is None) != (batch_id is None):
        raise ValueError("options transactionalId and batchId require each other: they identify a write that runs once")
    return SinkOptions(
        local_folder("path", given["path"]).absolute(),
        Routing(topic, {}, _partitions(given)),
        _staging_options(given),
        transactional_id,
        batch_id,
        given.get("checkpointlocation"),
        _staging_location(given),
    )


def _staging_location(given: Mapping[str, str]) -> StagingLocation | None:
    if "staginglocation" not in given:
        if "storageoptions" in given:
            raise ValueError("option storageOptions requires stagingLocation: the log directory is a local folder")
        return None
    try:
        return StagingLocation.of(given["staginglocation"], storage_options(given.get("storageoptions")))
    except ValueError as error:
        raise ValueError(f"option stagingLocation: {error}") from None


def _check_overwrite(given: Mapping[str, str], *, is_streaming: bool, overwrite: bool) -> None:
    """Raise unless the user has allowed the removal of records."""
    mode = "output mode complete" if is_streaming else "mode overwrite"
    is_wanted = flag(given, "overwriteTopics", default=False)
    if overwrite and not is_wanted:
        raise ValueError(
            f"{mode} removes all records of the topics that are written; use mode append, or set option "
            "overwriteTopics to true"
        )
    if is_wanted and not overwrite:
        raise ValueError(f"option overwriteTopics requires {mode}; the mode is append, which keeps existing records")


def _staging_options(given: Mapping[str, str]) -> StagingOptions:
    compression = given.get("compression", "none").lower()
    if compression not in COMPRESSION_TYPES:
        raise ValueError(f"option compression is {compression!r}, not one of {', '.join(COMPRESSION_TYPES)}")
    level = _number(given, "compressionLevel", -_LARGEST_SIZE, None)
    if level is not None and compression not in _LEVELS:
        raise ValueError(f"option compressionLevel is {level}, but compression {compression} has no levels")
    if level is not None and level not in _LEVELS[compression]:
        levels = _LEVELS[compression]
        raise ValueError(
            f"option compressionLevel is {level}, not in {compression}'s range of {levels[0]} to {levels[-1]}"
        )
    batch_size = _number(given, "batchSize", RECORD_BATCH_OVERHEAD + 1, StagingOptions.max_batch_bytes) or 0
    segment_bytes = _number(given, "segmentBytes", 1, StagingOptions.segment_bytes) or 0
    if segment_bytes > _LARGEST_SIZE:
        raise ValueError(f"option segmentBytes is {segment_bytes}, more than 2^31 - 1")
    if batch_size + MARKER_BYTES > segment_bytes:
        raise ValueError(
            f"option batchSize is {batch_size}; a batch and a marker of {MARKER_BYTES} bytes do not fit segmentBytes, "
            f"which is {segment_bytes}"
        )
    return StagingOptions(compression, level, batch_size, segment_bytes)


def _partitions(given: Mapping[str, str]) -> int | dict[str, int] | None:
    text = given.get("partitions")
    try:
        partitions = None if text is None else json.loads(text)
    except ValueError:
        partitions = text
    counts = partitions.values() if isinstance(partitions, dict) else [partitions]
    if text is not None and not all(type(count) is int and 0 < count <= MOST_PARTITIONS for count in counts):
        raise ValueError(
            f"option partitions is {text!r}, neither a number from 1 to {MOST_PARTITIONS} nor JSON such as "
            '{"orders": 6}'
        )
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
