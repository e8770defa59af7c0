"""The topics of a metadata image that a restore takes, their new names, and their segments among the files."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from kraftlog.codec.options import ReadOptions
from kraftlog.layout.segment import Segment
from kraftlog.log_store.errors import InvalidTopicError
from kraftlog.log_store.topics import check_name
from kraftlog.metadata.uuids import uuid_text
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.tables.log import Log
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition

COORDINATORS = (CONSUMER_OFFSETS, TRANSACTION_STATE)


def chosen_topics(topics: list[str], patterns: list[str] | None) -> set[str]:
    """Return the topics that match one of the patterns, by default all, and those of the coordinators.

    Raises
    ------
    ValueError
        When a pattern matches no topic.
    """
    if patterns is None:
        return set(topics)
    chosen = {topic for topic in topics if topic in COORDINATORS}
    for pattern in patterns:
        matches = [topic for topic in topics if fnmatchcase(topic, pattern)]
        if not matches:
            raise ValueError(f"no topic of the metadata matches {pattern!r}, only {', '.join(topics)}")
        chosen.update(matches)
    return chosen


def check_new_names(new_names: Mapping[str, str], rename: Mapping[str, str]) -> None:
    """Raise ValueError for topics that cannot get their new names.

    Parameters
    ----------
    new_names : mapping of str to str
        Of all chosen topics.
    rename : mapping of str to str
        Those that were asked for.
    """
    for old, new in rename.items():
        if old not in new_names:
            raise ValueError(f"rename: there is no topic {old!r}, only {', '.join(sorted(new_names))}")
        if old in COORDINATORS:
            raise ValueError(f"rename {old}={new}: a coordinator does not find its topic by another name")
        if list(new_names.values()).count(new) > 1:
            raise ValueError(f"rename {old}={new}: there would be two topics {new!r}")
        try:
            check_name(new, [name for other, name in new_names.items() if other != old])
        except InvalidTopicError as error:
            raise ValueError(f"rename {old}={new}: {error}") from None


def source_partitions(
    log: Log, topics: Mapping[bytes, str], options: ReadOptions, notes: list[str]
) -> dict[TopicPartition, list[Segment]]:
    """Return the segments of partitions whose topics are in an image; those of others are noted.

    Parameters
    ----------
    log : Log
    topics : mapping of bytes to str
        Names of the topics of the image, by topic id.
    options : ReadOptions
    notes : list of str
    """
    ids = {name: uuid_text(topic_id) for topic_id, name in topics.items()}
    files = log.healed(log.lines.found, options, notes)
    live = [one for one in files.segments if not one.state and one.base_offset is not None]
    lines = {(one.topic, one.partition): one.line for one in log.lines.partitions}
    partitions: dict[TopicPartition, list[Segment]] = {}
    for group in by_partition(live):
        of = group[0].topic_partition
        if of is None or is_metadata(group[0]):
            continue
        topic_id = lines[of].topic_id
        if of.topic not in ids:
            notes.append(f"{of}: left out, since the metadata has no such topic")
        elif topic_id is not None and topic_id != ids[of.topic]:
            notes.append(f"{of}: left out, since it is of the topic {topic_id}, not {ids[of.topic]}")
        else:
            partitions[of] = group
    return partitions
