"""A declared cluster as resources of the Strimzi operator: ``KafkaTopic`` and ``KafkaUser``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kraftlog.metadata.declared.cluster import Acl, DeclaredCluster, Quota, comment
from kraftlog.metadata.declared.commands import camel_case
from kraftlog.metadata.declared.labels import is_kubernetes_name, kubernetes_name
from kraftlog.stream import optional_package

API_VERSION = "kafka.strimzi.io/v1"
CLUSTER_LABEL = "strimzi.io/cluster"
_RESOURCES = {"TOPIC": "topic", "GROUP": "group", "CLUSTER": "cluster", "TRANSACTIONAL_ID": "transactionalId"}
_PATTERNS = {"LITERAL": "literal", "PREFIXED": "prefix"}
_NOT_KNOWN = {"CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"}  # operations that KafkaUser lacks
_QUOTAS = {
    "producer_byte_rate": "producerByteRate",
    "consumer_byte_rate": "consumerByteRate",
    "request_percentage": "requestPercentage",
    "controller_mutation_rate": "controllerMutationRate",
}
_UNMANAGED = {"*", "ANONYMOUS"}  # users whose ACLs the operator leaves alone
_USER, _OF_CERTIFICATE = "User:", "CN="
_SCRAM = "SCRAM-SHA-512"

Resource = dict[str, Any]


def strimzi(cluster: DeclaredCluster, name: str) -> Iterator[str]:
    """Return resources of Strimzi as YAML, with comments about what they cannot express.

    Parameters
    ----------
    cluster : DeclaredCluster
    name : str
        Of the ``Kafka`` resource to which they belong.

    Raises
    ------
    ImportError
        When PyYAML is not installed.
    """
    yaml = optional_package("yaml", "--as strimzi", "'kraftlog[strimzi]'")
    notes = list(cluster.notes)
    resources = strimzi_resources(cluster, name, notes)
    yield from map(comment, notes)
    for resource in resources:
        yield "---\n" + yaml.safe_dump(resource, sort_keys=False, allow_unicode=True)


def strimzi_resources(cluster: DeclaredCluster, name: str, notes: list[str]) -> list[Resource]:
    """Return resources of Strimzi.

    Parameters
    ----------
    cluster : DeclaredCluster
    name : str
        Of the ``Kafka`` resource to which they belong.
    notes : list of str
        Receives what no resource can express.

    Returns
    -------
    list of dict
    """
    notes += [cluster.of_features(), *(f"belongs to Kafka/{name}: {each}" for each in cluster.resources)]
    topics = [_topic(topic.name, topic.partitions, topic.replication_factor, topic.configs) for topic in cluster.topics]
    resources = [*topics, *_users(cluster, notes)]
    for resource in resources:
        resource["metadata"]["labels"] = {CLUSTER_LABEL: name}
    return resources


def _topic(name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> Resource:
    spec: Resource = {} if is_kubernetes_name(name) else {"topicName": name}
    spec |= {"partitions": partitions, "replicas": replicas}
    if configs:
        spec["config"] = {key: _scalar(value) for key, value in configs.items()}
    return _resource("KafkaTopic", kubernetes_name(name), spec)


def _resource(kind: str, name: str, spec: Resource) -> Resource:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _scalar(value: str) -> str | int | bool:
    """Return the value of a config as one of YAML, where it means the same."""
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.lstrip("-").isascii() and value.lstrip("-").isdigit() else value


def _users(cluster: DeclaredCluster, notes: list[str]) -> Iterator[Resource]:
    specs: dict[str, Resource] = defaultdict(dict)
    for credential in cluster.credentials:
        if credential.mechanism == _SCRAM:
            specs[credential.name]["authentication"] = {
                "type": _SCRAM.lower(),
                "password": {"valueFrom": {"secretKeyRef": {"name": f"{credential.name}-password", "key": "password"}}},
            }
        else:
            notes.append(f"user {credential.name}: the operator has no {credential.mechanism} credentials")
    acls: dict[str, list[Acl]] = defaultdict(list)
    for acl in cluster.acls:
        acls[acl.principal].append(acl)
    for principal, of_user in acls.items():
        user = principal.removeprefix(_USER)
        if not principal.startswith(_USER) or user in _UNMANAGED:
            notes.append(f"ACLs of {principal} are not managed by the operator: use kafka-acls.sh")
        elif rules := list(_rules(of_user, notes)):
            specs[user]["authorization"] = {"type": "simple", "acls": rules}
    for quota in cluster.quotas:
        user_of_quota = quota.entity.get("user")
        values = _quotas(quota) if set(quota.entity) == {"user"} else {}
        if user_of_quota is None or not values:
            notes.append(f"no resource has the quotas of {quota}: use kafka-configs.sh")
        else:
            specs[user_of_quota]["quotas"] = values
    for user, spec in sorted(specs.items()):
        name = user.removeprefix(_OF_CERTIFICATE)
        if not is_kubernetes_name(name):
            notes.append(f"user {user} is no name of Kubernetes, and the operator cannot have it: use kafka-acls.sh")
            continue
        if name != user:
            spec["authentication"] = {"type": "tls-external"}  # its certificate stays as it is
        elif "authentication" in spec:
            notes.append(f"user {name}: put its password into the Secret {name}-password, or clients lose access")
        yield _resource("KafkaUser", name, dict(sorted(spec.items())))


def _rules(acls: Iterable[Acl], notes: list[str]) -> Iterator[Resource]:
    operations: dict[tuple[str, str, str, str, str], list[str]] = defaultdict(list)
    for acl in acls:
        if acl.resource_type not in _RESOURCES or acl.operation in _NOT_KNOWN or acl.pattern_type not in _PATTERNS:
            notes.append(f"no resource has the ACL: {acl}")
            continue
        key = acl.resource_type, acl.resource_name, acl.pattern_type, acl.permission_type, acl.host
        operations[key].append(camel_case(acl.operation))
    for (kind, name, pattern, permission, host), allowed in operations.items():
        resource: Resource = {"type": _RESOURCES[kind]}
        if kind != "CLUSTER":
            resource |= {"name": name, "patternType": _PATTERNS[pattern]}
        yield {"type": permission.lower(), "resource": resource, "operations": allowed, "host": host}


def _quotas(quota: Quota) -> Resource:
    """Return quotas of a user, or nothing when one of them cannot be expressed."""
    values: Resource = {}
    for key, value in quota.values.items():
        is_whole = value.is_integer()
        if key not in _QUOTAS or not (is_whole or key == "controller_mutation_rate"):
            return {}
        values[_QUOTAS[key]] = int(value) if is_whole else value
    return values
