"""The types of records that an image consists of: the one definition of their keys, removal, texts and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.arrow_arrays import scalar_of
from kraftlog.metadata import kafka_names as names

Numbers = Mapping[int, str]


@dataclass(frozen=True, eq=False)
class ImageType:
    """A type of record that an image holds one of for each key.

    Attributes
    ----------
    name : str
        Of the type.
    kind : str
        What a record describes, as ``diff`` shows it.
    keys : tuple of str
        Columns of the key; none where an image has one record at most.
    remover : str
        The type whose records, with the same key columns, remove a record; empty where there is none.
    is_removed : callable or None
        Returns which records of the type itself remove the record of their key.
    shown : tuple of str
        Columns that ``diff`` shows of a record that was added or removed.
    part : str or None
        The column that names a part of what the key describes, such as a config's name; ``shown`` is its value.
    secrets : tuple of str
        Columns that are hidden unless they are asked for.
    numbers : mapping
        Kafka's names of numbers, by column, also of columns in nested structs.
    """

    name: str
    kind: str
    keys: tuple[str, ...]
    remover: str = ""
    is_removed: Callable[[pa.RecordBatch], pa.Array] | None = None
    shown: tuple[str, ...] = ()
    part: str | None = None
    secrets: tuple[str, ...] = ()
    numbers: Mapping[str, Numbers] = field(default_factory=dict)


_SECURITY_PROTOCOL = {"security_protocol": names.SECURITY_PROTOCOLS}

FEATURES = ImageType(
    "FeatureLevelRecord",
    "feature",
    ("name",),
    is_removed=lambda rows: pc.equal(rows.column("feature_level"), scalar_of(0, pa.int16())),
    shown=("feature_level",),
)
BROKERS = ImageType(
    "RegisterBrokerRecord",
    "broker",
    ("broker_id",),
    remover="UnregisterBrokerRecord",
    shown=("broker_epoch", "rack", "fenced"),
    numbers=_SECURITY_PROTOCOL,
)
CONTROLLERS = ImageType(
    "RegisterControllerRecord",
    "controller",
    ("controller_id",),
    remover="UnregisterControllerRecord",
    shown=("incarnation_id",),
    numbers=_SECURITY_PROTOCOL,
)
TOPICS = ImageType("TopicRecord", "topic", ("topic_id",), remover="RemoveTopicRecord", shown=("topic_id",))
PARTITIONS = ImageType(
    "PartitionRecord",
    "partition",
    ("topic_id", "partition_id"),
    shown=("replicas", "isr", "leader", "leader_epoch", "partition_epoch"),
    numbers={"leader_recovery_state": names.RECOVERY_STATES},
)
CONFIGS = ImageType(
    "ConfigRecord",
    "config",
    ("resource_type", "resource_name", "name"),
    is_removed=lambda rows: pc.is_null(rows.column("value")),
    shown=("value",),
    part="name",
    numbers={"resource_type": names.CONFIG_RESOURCE_TYPES},
)
QUOTAS = ImageType(
    "ClientQuotaRecord",
    "client_quota",
    ("entity", "key"),
    is_removed=lambda rows: rows.column("remove"),
    shown=("value",),
    part="key",
)
PRODUCER_IDS = ImageType(
    "ProducerIdsRecord",
    "producer_ids",
    (),
    is_removed=lambda rows: pc.less(rows.column("next_producer_id"), scalar_of(0, pa.int64())),
    shown=("next_producer_id",),
)
ACLS = ImageType(
    "AccessControlEntryRecord",
    "acl",
    ("id",),
    remover="RemoveAccessControlEntryRecord",
    shown=("resource_type", "pattern_type", "resource_name", "principal", "host", "operation", "permission_type"),
    numbers={
        "resource_type": names.RESOURCE_TYPES,
        "pattern_type": names.PATTERN_TYPES,
        "operation": names.OPERATIONS,
        "permission_type": names.PERMISSION_TYPES,
    },
)
SCRAM_CREDENTIALS = ImageType(
    "UserScramCredentialRecord",
    "scram_credential",
    ("name", "mechanism"),
    remover="RemoveUserScramCredentialRecord",
    shown=("iterations",),
    secrets=("salt", "stored_key", "server_key"),
    numbers={"mechanism": names.SCRAM_MECHANISMS},
)
DELEGATION_TOKENS = ImageType(
    "DelegationTokenRecord",
    "delegation_token",
    ("token_id",),
    remover="RemoveDelegationTokenRecord",
    shown=("owner", "requester", "renewers"),
)

# in the order in which Kafka writes a snapshot; a partition after its topic
IMAGE_TYPES = {
    one.name: one
    for one in (
        *(FEATURES, BROKERS, CONTROLLERS, TOPICS, PARTITIONS, CONFIGS),
        *(QUOTAS, PRODUCER_IDS, ACLS, SCRAM_CREDENTIALS, DELEGATION_TOKENS),
    )
}


def named(name: str, column: str, number: int) -> int | str:
    """Return Kafka's name for a number in a field of a type of record; the number where it has none.

    Examples
    --------
    >>> named("ConfigRecord", "resource_type", 2), named("PartitionRecord", "leader", 2)
    ('TOPIC', 2)
    """
    image_type = IMAGE_TYPES.get(name)
    return number if image_type is None else image_type.numbers.get(column, {}).get(number, number)
