"""Topics: their names, their configurations, and their state in a store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kraftlog.log_store.errors import InvalidConfigError, InvalidPartitionsError, InvalidTopicError
from kraftlog.topics import CONSUMER_OFFSETS, INTERNAL_TOPICS, TRANSACTION_STATE
from kraftlog.write.log_options import LARGEST_SEGMENT_BYTES

LONGEST_NAME = 249
MOST_PARTITIONS = 10_000  # that a controller of Kafka creates for one request
DEFAULT_SEGMENT_BYTES = 1 << 30
DEFAULT_RETENTION_MS = 7 * 86_400_000
DEFAULT_DELETE_RETENTION_MS = 86_400_000
DEFAULT_MAX_MESSAGE_BYTES = (1 << 20) + 12
LISTS = ("cleanup.policy",)  # configurations whose values are several, separated by commas
INTERNAL = (CONSUMER_OFFSETS, TRANSACTION_STATE)  # a store makes them on demand

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_LEAST = {"segment.bytes": 1 << 20, "internal.segment.bytes": 1 << 10}
_NUMBERS = {
    "segment.bytes": LARGEST_SEGMENT_BYTES,
    "internal.segment.bytes": LARGEST_SEGMENT_BYTES,
    "retention.ms": 2**63 - 1,
    "retention.bytes": 2**63 - 1,
    "delete.retention.ms": 2**63 - 1,
    "min.compaction.lag.ms": 2**63 - 1,
    "max.message.bytes": 2**31 - 1,
}
_WITHOUT_LIMIT = ("retention.ms", "retention.bytes")  # -1 means none
_FIXED = {  # which clients set to what a store does anyhow
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
    "min.insync.replicas": "1",
    "remote.storage.enable": "false",
}
_POLICIES = {"delete", "compact", "compact,delete", "delete,compact"}


@dataclass(frozen=True)
class Topic:
    """A topic.

    Attributes
    ----------
    topic_id : bytes
        A UUID, 16 bytes.
    leader_epochs : tuple of int
        Leader epoch of each partition, from the metadata.
    configs : mapping of str to str
        Configurations that differ from Kafka's defaults.
    """

    name: str
    topic_id: bytes
    leader_epochs: tuple[int, ...]
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self.leader_epochs)

    @property
    def max_message_bytes(self) -> int:
        """Maximum bytes of a batch."""
        return int(self.configs.get("max.message.bytes", DEFAULT_MAX_MESSAGE_BYTES))

    @property
    def cleanup_policy(self) -> set[str]:
        """``delete``, ``compact`` or both."""
        return {policy.strip() for policy in self.configs.get("cleanup.policy", "delete").split(",")}

    @property
    def retention_ms(self) -> int:
        """Maximum age of records; -1: unlimited."""
        return int(self.configs.get("retention.ms", DEFAULT_RETENTION_MS))

    @property
    def retention_bytes(self) -> int:
        """Maximum size of a partition; -1: unlimited."""
        return int(self.configs.get("retention.bytes", -1))

    @property
    def delete_retention_ms(self) -> int:
        """How long tombstones and markers stay after the first cleaning that could drop them."""
        return int(self.configs.get("delete.retention.ms", DEFAULT_DELETE_RETENTION_MS))

    @property
    def min_compaction_lag_ms(self) -> int:
        """Minimum age of records to be cleaned."""
        return int(self.configs.get("min.compaction.lag.ms", 0))

    @property
    def segment_bytes(self) -> int:
        """Bytes at which a segment is closed."""
        configs = self.configs
        return int(configs.get("internal.segment.bytes", configs.get("segment.bytes", DEFAULT_SEGMENT_BYTES)))


def topic_configs(topic: Topic) -> dict[str, str]:
    """Return the configurations of a topic, also those with Kafka's defaults."""
    defaults = {
        "cleanup.policy": "delete",
        "segment.bytes": DEFAULT_SEGMENT_BYTES,
        "retention.ms": DEFAULT_RETENTION_MS,
        "retention.bytes": -1,
        "delete.retention.ms": DEFAULT_DELETE_RETENTION_MS,
        "min.compaction.lag.ms": 0,
        "max.message.bytes": DEFAULT_MAX_MESSAGE_BYTES,
        **_FIXED,
    }
    return {name: str(value) for name, value in {**defaults, **topic.configs}.items()}


def check_name(name: str, existing: Iterable[str]) -> None:
    """Raise for a name that Kafka does not allow for a topic.

    Raises
    ------
    InvalidTopicError
        For characters other than ``a-zA-Z0-9._-``, a name that is too long, or one whose metrics would collide with
        those of an existing topic: Kafka's metrics replace a period by an underscore.
    """
    if name in (".", "..") or not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise InvalidTopicError(
            f"topic {name!r}: expected 1 to {LONGEST_NAME} characters of a-z, A-Z, 0-9, '.', '_' and '-'"
        )
    for other in existing:
        if other != name and other.replace(".", "_") == name.replace(".", "_"):
            raise InvalidTopicError(f"topic {name!r} collides with {other!r}: they differ only in '.' and '_'")


def check_not_internal(name: str) -> None:
    """Raise an InvalidTopicError for Kafka's internal topics, which no client writes, creates or deletes."""
    if name in INTERNAL_TOPICS:
        raise InvalidTopicError(f"topic {name!r} is internal to Kafka")


def check_partitions(name: str, partitions: int) -> None:
    """Raise an InvalidPartitionsError for less than one partition, or more than Kafka creates at once."""
    if partitions < 1:
        raise InvalidPartitionsError(f"topic {name!r}: expected at least 1 partition, found {partitions}")
    if partitions > MOST_PARTITIONS:
        raise InvalidPartitionsError(
            f"topic {name!r}: expected at most {MOST_PARTITIONS} partitions, as Kafka's controller does, "
            f"found {partitions}"
        )


def checked_configs(name: str, configs: Mapping[str, object]) -> dict[str, str]:
    """Return configurations as texts, as Kafka stores them.

    Raises
    ------
    InvalidConfigError
        For an unknown name or an invalid value.

    Examples
    --------
    >>> checked_configs("orders", {"retention.ms": 1000})
    {'retention.ms': '1000'}
    """
    texts = {key: str(value) for key, value in configs.items()}
    for key, text in texts.items():
        if key == "cleanup.policy":
            if text.replace(" ", "") not in _POLICIES:
                raise InvalidConfigError(f"topic {name!r}: {key} {text!r} is not delete, compact or both")
        elif key in _FIXED:
            if text != _FIXED[key]:
                raise InvalidConfigError(f"topic {name!r}: {key} is {_FIXED[key]!r} in a store, found {text!r}")
        elif key not in _NUMBERS:
            config_names = ", ".join(["cleanup.policy", *_NUMBERS, *_FIXED])
            raise InvalidConfigError(f"topic {name!r}: unknown configuration {key!r}; a store knows {config_names}")
        else:
            least = -1 if key in _WITHOUT_LIMIT else _LEAST.get(key, 0)
            if not re.fullmatch(r"-?[0-9]+", text) or not least <= int(text) <= _NUMBERS[key]:
                raise InvalidConfigError(
                    f"topic {name!r}: {key} {text!r} is not a number between {least} and {_NUMBERS[key]}"
                )
    return texts
