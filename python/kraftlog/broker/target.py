"""The target topics of a replay: they must exist, have enough partitions, and be empty."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from kraftlog.broker.client import BATCH_BYTES, Client, NewTopic, Place
from kraftlog.broker.errors import ReplayError


def check_topics(
    client: Client, partitions: Mapping[str, int], counts: Callable[[], Mapping[str, int]], *, creates: bool
) -> None:
    """Raise for a target that lacks topics or partitions.

    Parameters
    ----------
    client : Client
    partitions : mapping of str to int
        Required partition counts by topic.
    counts : callable
        Returns the partition counts of the topics in the log; called if some are missing.
    creates : bool
        Whether missing topics are created.
    """
    there = client.topics()
    missing = {name for name in partitions if name not in there}
    new = [NewTopic(name, count) for name, count in counts().items() if name in missing] if missing else []
    if missing and not creates:
        names = ", ".join(f"{one.name} ({one.partitions_count} partitions)" for one in new)
        raise ReplayError(f"{client.to} does not have the topics {names}: create them, or pass --create-topics")
    for name, count in partitions.items():
        if there.get(name, count) < count:
            raise ReplayError(f"{client.to}: {name} has {there[name]} partitions; expected at least {count}")
    if new:
        client.create_topics(new)


def check_empty(client: Client, places: Iterable[Place]) -> None:
    """Raise for partitions that hold records."""
    for (topic, partition), (begin, end) in client.ends(places).items():
        if begin < end:
            raise ReplayError(
                f"{client.to}: {topic}-{partition} holds offsets {begin} to {end - 1}: pass --append to add after"
                " them, or --mapping with the file of the replay to resume"
            )


def batch_bytes(configs: Mapping[str, Mapping[str, str]]) -> int:
    """Return the maximum batch size that all topics accept."""
    limits = (int(found.get("max.message.bytes", BATCH_BYTES)) for found in configs.values())
    return min([BATCH_BYTES, *limits])


def notes_of(topic: str, config: Mapping[str, str], earliest_ms: int) -> Iterable[str]:
    """Return notes on settings of a topic that affect records with earlier timestamps."""
    if config.get("message.timestamp.type") == "LogAppendTime":
        yield f"{topic}: the target has message.timestamp.type=LogAppendTime, so records get the time of the replay"
    retention = int(config.get("retention.ms", -1))
    if "delete" in config.get("cleanup.policy", "") and 0 <= retention < time.time() * 1000 - earliest_ms:
        yield f"{topic}: the target deletes records that are older than retention.ms={retention}, and some are"
