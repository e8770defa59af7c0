"""``DeclaredCluster``: what people have declared of a cluster, without what it makes up itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kraftlog.metadata.image import Image
from kraftlog.metadata.kafka_names import (
    BROKER_RESOURCE,
    CONFIG_RESOURCE_TYPES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSION_TYPES,
    RESOURCE_TYPES,
    SCRAM_MECHANISMS,
    TOPIC_RESOURCE,
)
from kraftlog.metadata.secrets import is_password
from kraftlog.topics import INTERNAL_TOPICS

Configs = Mapping[str, str]


@dataclass(frozen=True)
class DeclaredTopic:
    """A topic.

    Attributes
    ----------
    name : str
    partitions : int
    replication_factor : int
        The largest of its partitions.
    has_equal_replication : bool
        Whether all partitions have as many replicas.
    configs : mapping of str to str
    """

    name: str
    partitions: int
    replication_factor: int
    has_equal_replication: bool
    configs: Configs


@dataclass(frozen=True)
class ConfiguredResource:
    """The configs of what is not a topic.

    Attributes
    ----------
    resource_type : str
        ``BROKER``, ``CLIENT_METRICS`` or ``GROUP``.
    name : str
        Empty for the default of all brokers.
    configs : mapping of str to str
    """

    resource_type: str
    name: str
    configs: Configs

    def __str__(self) -> str:
        name = self.name or "default of all"
        return (
            f"{self.resource_type.lower()} {name}: {', '.join(f'{key}={value}' for key, value in self.configs.items())}"
        )


@dataclass(frozen=True, order=True)
class Acl:
    """An entry of an access control list, with Kafka's names (``TRANSACTIONAL_ID``, ``PREFIXED``, ``ALLOW``)."""

    principal: str
    resource_type: str
    resource_name: str
    pattern_type: str
    operation: str
    permission_type: str
    host: str

    def __str__(self) -> str:
        resource = f"{self.resource_type} {self.resource_name} ({self.pattern_type})"
        return f"{self.permission_type} {self.principal} {self.operation} on {resource} from {self.host}"


@dataclass(frozen=True)
class Quota:
    """The client quotas of an entity.

    Attributes
    ----------
    entity : mapping of str to str or None
        Names by type (``user``, ``client-id``, ``ip``); None is the default of that type.
    values : mapping of str to float
    """

    entity: Mapping[str, str | None]
    values: Mapping[str, float]

    def __str__(self) -> str:
        entity = ", ".join(f"{kind} {name or 'default'}" for kind, name in self.entity.items())
        return f"{entity}: {', '.join(f'{key}={shown_number(value)}' for key, value in self.values.items())}"


@dataclass(frozen=True)
class ScramCredential:
    """A SCRAM credential, without its salt and keys, from which no password can be computed."""

    name: str
    mechanism: str
    iterations: int


@dataclass(frozen=True)
class DeclaredCluster:
    """What people have declared of a cluster.

    Attributes
    ----------
    features : mapping of str to int
    topics : tuple of DeclaredTopic
        Without those that brokers create by their own settings.
    resources : tuple of ConfiguredResource
    acls : tuple of Acl
    quotas : tuple of Quota
    credentials : tuple of ScramCredential
    notes : tuple of str
        What is left out, and why.

    Examples
    --------
    >>> from kraftlog.metadata.declared.cluster import DeclaredCluster
    >>> from kraftlog.metadata_log.files import MetadataLog
    >>> from kraftlog.metadata_log.image import image_at
    >>> image = image_at(MetadataLog.open("tests/golden/metadata/log/__cluster_metadata-0"), None, []).image
    >>> DeclaredCluster.of(image).topics[0].name
    'meta-0'
    """

    features: Mapping[str, int]
    topics: tuple[DeclaredTopic, ...]
    resources: tuple[ConfiguredResource, ...]
    acls: tuple[Acl, ...]
    quotas: tuple[Quota, ...]
    credentials: tuple[ScramCredential, ...]
    notes: tuple[str, ...]

    def of_features(self) -> str:
        """Return the feature levels as text."""
        return "feature levels: " + ", ".join(f"{name}={level}" for name, level in self.features.items())

    @classmethod
    def of(cls, image: Image, *, show_secrets: bool = False) -> DeclaredCluster:
        """Return what an image declares.

        Parameters
        ----------
        image : Image
        show_secrets : bool
            Whether configs that are passwords are in it; else they are left out and noted.
        """
        rows = {name: table.to_pylist() for name, table in image.tables().items()}
        notes: list[str] = []
        configs = _configs(rows["ConfigRecord"], notes, show_secrets=show_secrets)
        tokens = len(rows["DelegationTokenRecord"])
        if tokens:
            notes.append(f"{tokens} delegation tokens are left out: clients have to ask for new ones")
        return cls(
            {row["name"]: row["feature_level"] for row in rows["FeatureLevelRecord"]},
            tuple(_topics(rows["TopicRecord"], rows["PartitionRecord"], configs, notes)),
            tuple(
                ConfiguredResource(CONFIG_RESOURCE_TYPES.get(kind, str(kind)), name, values)
                for (kind, name), values in sorted(configs.items())
                if kind != TOPIC_RESOURCE
            ),
            tuple(sorted(map(_acl, rows["AccessControlEntryRecord"]))),
            tuple(_quotas(rows["ClientQuotaRecord"])),
            tuple(
                ScramCredential(row["name"], SCRAM_MECHANISMS.get(row["mechanism"], "UNKNOWN"), row["iterations"])
                for row in sorted(rows["UserScramCredentialRecord"], key=lambda row: (row["name"], row["mechanism"]))
            ),
            tuple(notes),
        )


def shown_number(value: float) -> str:
    """Return a number, without a fraction that is zero."""
    return str(int(value)) if value.is_integer() else repr(value)


def comment(text: str) -> str:
    """Return a line that is a comment in shell, YAML and HCL."""
    return f"# {' '.join(text.split())}\n"


Row = Mapping[str, Any]


def _configs(rows: Iterable[Row], notes: list[str], *, show_secrets: bool) -> dict[tuple[int, str], dict[str, str]]:
    configs: dict[tuple[int, str], dict[str, str]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: row["name"]):
        key = row["resource_type"], row["resource_name"]
        if is_password(row["name"]) and not show_secrets:
            kind = CONFIG_RESOURCE_TYPES.get(key[0], str(key[0])).lower()
            of_all = f"{kind} {key[1]}" if key[1] or key[0] != BROKER_RESOURCE else "all brokers"
            notes.append(f"{of_all}: {row['name']} is a password and left out; --show-secrets shows it")
        else:
            configs[key][row["name"]] = row["value"]
    return configs


def _topics(
    topics: Iterable[Row], partitions: Iterable[Row], configs: Mapping[tuple[int, str], Configs], notes: list[str]
) -> Iterable[DeclaredTopic]:
    factors: dict[bytes, list[int]] = defaultdict(list)
    for row in partitions:
        adding, removing = set(row["adding_replicas"] or ()), set(row["removing_replicas"] or ())
        leaving = removing if adding or removing else set()
        factors[row["topic_id"]].append(len([each for each in row["replicas"] if each not in leaving]))
    internal = []
    for row in sorted(topics, key=lambda row: row["name"]):
        if row["name"] in INTERNAL_TOPICS:
            internal.append(row["name"])
            continue
        of_topic = factors[row["topic_id"]]
        if not of_topic:
            notes.append(f"topic {row['name']} has no partitions at this offset")
            continue
        of_name = configs.get((TOPIC_RESOURCE, row["name"]), {})
        yield DeclaredTopic(row["name"], len(of_topic), max(of_topic), len(set(of_topic)) == 1, of_name)
    if internal:
        notes.append(f"{', '.join(internal)}: left out, since brokers create these by their own settings")


def _acl(row: Row) -> Acl:
    return Acl(
        row["principal"],
        RESOURCE_TYPES.get(row["resource_type"], "UNKNOWN"),
        row["resource_name"],
        PATTERN_TYPES.get(row["pattern_type"], "UNKNOWN"),
        OPERATIONS.get(row["operation"], "UNKNOWN"),
        PERMISSION_TYPES.get(row["permission_type"], "UNKNOWN"),
        row["host"],
    )


def _quotas(rows: Iterable[Row]) -> Iterable[Quota]:
    values: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = defaultdict(dict)
    for row in rows:
        entity = sorted((each["entity_type"], each["entity_name"]) for each in row["entity"])
        values[tuple(entity)][row["key"]] = row["value"]
    for of, each in sorted(values.items(), key=str):
        yield Quota(dict(of), dict(sorted(each.items())))
