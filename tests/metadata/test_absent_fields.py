"""Images of logs of older levels are written in the versions of those levels."""

from __future__ import annotations

import pytest
from image_rows import applied, record

from kraftlog.codec.metadata_version import LEVELS
from kraftlog.errors import InvalidRecordError
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata.image import Image

TOPIC = bytes(range(16))
DIRECTORY = bytes(range(16, 32))


def image(directories: list[bytes]) -> Image:
    """Return an image with a partition of two replicas."""
    partition = record("PartitionRecord", partition_id=0, topic_id=TOPIC, replicas=[1, 2], isr=[1], leader=1)
    topic = record("TopicRecord", name="orders", topic_id=TOPIC)
    return applied([(0, "TopicRecord", topic), (1, "PartitionRecord", partition | {"directories": directories})])


def written(image: Image, level: int) -> list[bytes]:
    """Return the PartitionRecords of a snapshot."""
    found = []
    for name, version, rows in image.snapshot_records(level):
        if name == "PartitionRecord":
            found += encode_messages(BUILT_IN.messages[name], version, rows, prefix=frame(3, version)).to_pylist()
    return found


def test_directories_that_nobody_knows_need_no_place():
    """Replicas of a level before 3.7 have DirectoryId.MIGRATING each, which Kafka does not write there."""
    (data,) = written(image([]), LEVELS["3.3-IV3"])
    assert data[:3] == b"\x01\x03\x00"
    assert bytes(16) not in data
    (data,) = written(image([]), LEVELS["3.7-IV2"])
    assert data[:3] == b"\x01\x03\x01"
    assert bytes(32) in data


def test_directories_that_are_known_are_not_lost():
    with pytest.raises(InvalidRecordError, match="directories: version 0 has no place for its value"):
        written(image([DIRECTORY, bytes(16)]), LEVELS["3.3-IV3"])
