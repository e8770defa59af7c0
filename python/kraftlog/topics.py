"""A topic's partition, names, and those of Kafka's internal topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, overload

CLUSTER_METADATA = "__cluster_metadata"
CONSUMER_OFFSETS, TRANSACTION_STATE = "__consumer_offsets", "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
REMOTE_LOG_METADATA = "__remote_log_metadata"
SCHEMAS = "_schemas"  # of a schema registry

COORDINATOR_TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
INTERNAL_TOPICS = frozenset({*COORDINATOR_TOPICS, CLUSTER_METADATA})  # that no consumer subscribes to by a pattern
REPLAY_GROUP = "kraftlog-replay-"  # how groups begin in which ``replay`` commits offsets of the log that it reads


@overload
def names(given: str | Iterable[str]) -> list[str]: ...


@overload
def names(given: str | Iterable[str] | None) -> list[str] | None: ...


def names(given: str | Iterable[str] | None) -> list[str] | None:
    """Return names of topics, groups or columns as a list; one that is given alone is a list of one.

    Examples
    --------
    >>> from kraftlog.topics import names
    >>> names("orders"), names(("orders", "payments")), names(None)
    (['orders'], ['orders', 'payments'], None)
    """
    if given is None:
        return None
    return [given] if isinstance(given, str) else list(given)


class TopicPartition(NamedTuple):
    """One partition of a topic.

    Examples
    --------
    >>> from kraftlog.topics import TopicPartition
    >>> print(TopicPartition("orders", 0))
    orders-0
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
