"""An image that one thread changes refuses the others, and is as that thread left it."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
from image_rows import batches, contents, record

from kraftlog.metadata.image import Image

TOPIC = bytes(15) + b"\x01"
REFUSED = "TopicSlots is in use by another thread"
CHANGES = 400_000  # some milliseconds of work
ROUNDS = 10


def image_of_one_partition() -> Image:
    image = Image.empty()
    partition = record("PartitionRecord", partition_id=0, topic_id=TOPIC, replicas=[1, 2], isr=[1, 2], leader=1)
    topic = record("TopicRecord", name="a", topic_id=TOPIC)
    image.apply(batches([(0, "TopicRecord", topic), (1, "PartitionRecord", partition)]))
    return image


def changes(begin: int) -> dict[str, pa.RecordBatch]:
    """Return many changes of the leader, which alternates; the last one is 2."""
    name = "PartitionChangeRecord"
    leaders = [record(name, partition_id=0, topic_id=TOPIC, leader=leader) for leader in (1, 2)]
    some = batches((number, name, leaders[number % 2]) for number in range(1_000))[name]
    many = pa.concat_batches([some] * (CHANGES // 1_000))
    return {name: many.set_column(0, "offset", pa.array(np.arange(begin, begin + CHANGES)))}


def test_other_threads_are_refused_while_records_are_applied():
    image = image_of_one_partition()
    expected = image_of_one_partition()
    chunks = [changes(2 + number * CHANGES) for number in range(ROUNDS)]
    outcomes: set[str] = set()
    has_ended = threading.Event()

    def look() -> None:
        while not has_ended.is_set():
            try:
                outcomes.add(str(image.tables(["PartitionRecord"])["PartitionRecord"]["leader"].to_pylist()))
            except RuntimeError as error:
                outcomes.add(str(error))

    reader = threading.Thread(target=look)
    reader.start()
    for chunk in chunks:
        image.apply(chunk)
    has_ended.set()
    reader.join()
    for chunk in chunks:
        expected.apply(chunk)
    assert not image.faults
    assert contents(image) == contents(expected)
    assert outcomes <= {"[1]", "[2]", REFUSED}
    assert outcomes
