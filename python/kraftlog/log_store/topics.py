"""Topics: their names, their configurations, and what a store knows of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kraftlog.log_store.errors import InvalidConfigError, InvalidPartitionsError, InvalidTopicError
from kraftlog.topics import CONSUMER_OFFSETS, INTERNAL_TOPICS, TRANSACTION_STATE
from kraftlog.write.log_options import LARGEST_SEGMENT_BYTES

LONGEST_NAME = 249
DEFAULT_SEGMENT_BYTES = 1 << 30
DEFAULT_RETENTION_MS = 7 * 86_400_000
DEFAULT_DELETE_RETENTION_MS = 86_400_000
DEFAULT_MAX_MESSAGE_BYTES = (1 << 20) + 12
INTERNAL = (CONSUMER_OFFSETS, TRANSACTION_STATE)  # that a store makes when they are needed

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
_POLICIES = {"delete", "compact", "compact,delete", "delete,compact"}


@dataclass(frozen=True)
class Topic:
    """A topic.

    Attributes
    ----------
    topic_id : bytes
        A uuid, 16 bytes.
    leader_epochs : tuple of int
        Of each partition, as the metadata have it.
    configs : mapping of str to str
        Those that differ from Kafka's defaults.
    """

    name: str
    topic_id: bytes
    leader_epochs: tuple[int, ...]
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def partitions(self) -> int:
        """How many partitions it has."""
        return len(self.leader_epochs)

    @property
    def max_message_bytes(self) -> int:
        """Bytes that a batch may have."""
        return int(self.configs.get("max.message.bytes", DEFAULT_MAX_MESSAGE_BYTES))

    @property
    def cleanup_policy(self) -> set[str]:
        """``delete``, ``compact`` or both."""
        return {policy.strip() for policy in self.configs.get("cleanup.policy", "delete").split(",")}

    @property
    def retention_ms(self) -> int:
        """How old records may be; -1: any."""
        return int(self.configs.get("retention.ms", DEFAULT_RETENTION_MS))

    @property
    def retention_bytes(self) -> int:
        """How large a partition may be; -1: any."""
        return int(self.configs.get("retention.bytes", -1))

    @property
    def delete_retention_ms(self) -> int:
        """How long tombstones and markers stay behind the first cleaning that could drop them."""
        return int(self.configs.get("delete.retention.ms", DEFAULT_DELETE_RETENTION_MS))

    @property
    def min_compaction_lag_ms(self) -> int:
        """How old records have to be to be cleaned."""
        return int(self.configs.get("min.compaction.lag.ms", 0))

    @property
    def segment_bytes(self) -> int:
        """Bytes at which a segment is closed."""
        configs = self.configs
        return int(configs.get("internal.segment.bytes", configs.get("segment.bytes", DEFAULT_SEGMENT_BYTES)))


def check_name(name: str, existing: Iterable[str]) -> None:
    """Raise when no topic can have a name, as Kafka refuses it.

    Raises
    ------
    InvalidTopicError
        For other characters than ``a-zA-Z0-9._-``, a name that is too long, or one whose metrics would collide with
        those of an existing topic: Kafka's metrics write a period as an underscore.
    """
    if name in (".", "..") or not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise InvalidTopicError(
            f"topic {name!r}: 1 to {LONGEST_NAME} characters of a-z, A-Z, 0-9, '.', '_' and '-' expected"
        )
    for other in existing:
        if other != name and other.replace(".", "_") == name.replace(".", "_"):
            raise InvalidTopicError(f"topic {name!r} collides with {other!r}: they differ in '.' and '_' alone")


def check_not_internal(name: str) -> None:
    """Raise an InvalidTopicError for the topics of Kafka itself, which no client writes, creates or deletes."""
    if name in INTERNAL_TOPICS:
        raise InvalidTopicError(f"topic {name!r} is Kafka's own")


def check_partitions(name: str, partitions: int) -> None:
    """Raise an InvalidPartitionsError for less than one partition."""
    if partitions < 1:
        raise InvalidPartitionsError(f"topic {name!r}: {partitions} partitions, at least 1 expected")


def checked_configs(name: str, configs: Mapping[str, object]) -> dict[str, str]:
    """Return configurations as Kafka keeps them.

    Raises
    ------
    InvalidConfigError
        For a name that a store does not know, or a value that it cannot have.

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
        elif key not in _NUMBERS:
            known = ", ".join(["cleanup.policy", *_NUMBERS])
            raise InvalidConfigError(f"topic {name!r}: unknown configuration {key!r}; a store knows {known}")
        else:
            least = -1 if key in _WITHOUT_LIMIT else _LEAST.get(key, 0)
            if not re.fullmatch(r"-?[0-9]+", text) or not least <= int(text) <= _NUMBERS[key]:
                raise InvalidConfigError(
                    f"topic {name!r}: {key} {text!r} is not a number between {least} and {_NUMBERS[key]}"
                )
    return texts
