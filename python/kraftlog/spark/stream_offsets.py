"""Offsets of a stream, in the form of Spark's Kafka source, which Spark keeps in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

from kraftlog.spark.offsets import Partition

Offsets = dict[Partition, int]
OffsetsByTopic = dict[str, dict[str, int]]


def as_json(offsets: Mapping[Partition, int]) -> OffsetsByTopic:
    """Return offsets by topic and partition, in order: Spark compares them as text.

    Examples
    --------
    >>> as_json({("orders", 10): 7, ("orders", 2): 23})
    {'orders': {'2': 23, '10': 7}}
    """
    topics: OffsetsByTopic = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def from_json(topics: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Return offsets by partition.

    Examples
    --------
    >>> from_json({"orders": {"0": 23}})
    {('orders', 0): 23}
    """
    return {(topic, int(number)): offset for topic, of in topics.items() for number, offset in of.items()}
