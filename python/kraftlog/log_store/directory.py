"""The topics of a log directory that no store has opened, and a check that it is a log directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.names import KNOWN_FILES, KNOWN_FOLDERS, parse_partition_folder, transition_of
from kraftlog.log_store.partition_folders import topic_id_of
from kraftlog.log_store.topics import INTERNAL, Topic
from kraftlog.topics import CLUSTER_METADATA
from kraftlog.write.log_end import LogEnd, find_log_end
from kraftlog.write.recovery_points import read_recovery_points

_NOT_GIVEN_OUT = 1 << 62  # tools without a controller make up producer ids from here on
OF_FILE_SYSTEMS = frozenset({"lost+found"})  # an empty file system has it in its root


def partition_folders(log_directory: Path) -> dict[str, list[int]]:
    """Return the partitions of each topic that have a folder; an empty dict if there is no log directory."""
    numbers: dict[str, list[int]] = {}
    for entry in disk().entries(log_directory) if disk().entry(log_directory) else ():
        parsed = parse_partition_folder(entry.name)
        if parsed is not None and transition_of(entry.name) is None and entry.is_dir:
            numbers.setdefault(parsed[0], []).append(parsed[1])
    return {topic: sorted(partitions) for topic, partitions in sorted(numbers.items())}


def existing_topics(log_directory: Path) -> dict[str, int]:
    """Return the partition counts of the topics of a log directory, except Kafka's internal topics.

    The metadata log takes precedence: a partition without records may have no folder.
    """
    folders = partition_folders(log_directory)
    counts = {topic: partitions[-1] + 1 for topic, partitions in folders.items()}
    if CLUSTER_METADATA in folders and disk().matches(log_directory / f"{CLUSTER_METADATA}-0", "*.log"):
        counts.update(_topics_of_metadata(log_directory / f"{CLUSTER_METADATA}-0"))
    return {topic: count for topic, count in counts.items() if topic not in (*INTERNAL, CLUSTER_METADATA)}


def _topics_of_metadata(folder: Path) -> dict[str, int]:
    from kraftlog.metadata_log.files import MetadataLog
    from kraftlog.metadata_log.image import image_at

    faults: list[Fault] = []
    tables = image_at(MetadataLog.open(folder), None, faults).image.tables()
    names = dict(zip(*(tables["TopicRecord"][each].to_pylist() for each in ("topic_id", "name")), strict=True))
    counts: dict[str, int] = {}
    for topic_id in tables["PartitionRecord"]["topic_id"].to_pylist():
        counts[names[topic_id]] = counts.get(names[topic_id], 0) + 1
    return counts


@dataclass(frozen=True)
class Found:
    """The state that partitions of a log directory show without a metadata log.

    Attributes
    ----------
    topics : list of Topic
    next_producer_id : int
        Greater than all ids that a broker has allocated.
    """

    topics: list[Topic] = field(default_factory=list)
    next_producer_id: int = 0


def found_partitions(log_directory: Path, new_uuid: Callable[[], bytes]) -> Found:
    """Return the topics whose partitions a log directory has, without reading a metadata log.

    Parameters
    ----------
    log_directory : Path
    new_uuid : callable
        Returns an id for a topic without one in its folders.

    Raises
    ------
    ValueError
        When folders of a topic have different ids.
    RecordError
        When a log is damaged before its recovery point.
    """
    topics, next_producer_id = [], 0
    for name, partitions in partition_folders(log_directory).items():
        if name == CLUSTER_METADATA:
            continue
        ids = {topic_id_of(log_directory / f"{name}-{partition}") for partition in partitions} - {None}
        if len(ids) > 1:
            raise ValueError(f"{log_directory}: {name} has different topic ids in its partition.metadata files")
        epochs = [0] * (partitions[-1] + 1)
        for at in partitions:
            end = _end_of(log_directory, name, at)
            epochs[at] = max(end.epochs.last, 0)
            producer_ids = [state.producer_id for state in end.producers.states()]
            next_producer_id = max([next_producer_id, *(each + 1 for each in producer_ids if each < _NOT_GIVEN_OUT)])
        topics.append(Topic(name, next(iter(ids), None) or new_uuid(), tuple(epochs)))
    return Found(topics, next_producer_id)


def with_found_epochs(topic: Topic, log_directory: Path) -> Topic:
    """Return a new topic with the leader epochs of folders that have its name and no topic id: it adopts them."""
    epochs = list(topic.leader_epochs)
    for partition in partition_folders(log_directory).get(topic.name, ()):
        if partition < len(epochs) and topic_id_of(log_directory / f"{topic.name}-{partition}") is None:
            epochs[partition] = max(_end_of(log_directory, topic.name, partition).epochs.last, 0)
    return replace(topic, leader_epochs=tuple(epochs))


def _end_of(log_directory: Path, name: str, partition: int) -> LogEnd:
    point = read_recovery_points(log_directory).get((name, partition))
    return find_log_end(log_directory / f"{name}-{partition}", recovery_point=point)


def check_log_directory(folder: Path) -> None:
    """Raise for a folder that only has other files, so that no log directory is made of it.

    Raises
    ------
    FileExistsError
        When the folder is not empty, and nothing in it belongs to a log directory.
    """
    if disk().entry(folder) is None:
        return
    entries = [entry for entry in disk().entries(folder) if entry.name not in OF_FILE_SYSTEMS]
    names = KNOWN_FILES.keys() | KNOWN_FOLDERS
    if entries and not any(entry.name in names or parse_partition_folder(entry.name) for entry in entries):
        content = f"{entries[0].name} and nothing of a log directory"
        raise FileExistsError(f"{folder}: expected a log directory or an empty folder, found {content}")
