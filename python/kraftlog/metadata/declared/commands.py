"""A declared cluster as commands of Kafka's own tools."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from kraftlog.metadata.declared.cluster import Acl, Configs, DeclaredCluster, Quota, comment, shown_number

BROKER = '--bootstrap-server "$BOOTSTRAP_SERVER"'
_ENTITIES = {"user": "users", "client-id": "clients", "ip": "ips"}
_CONFIGURED = {"BROKER": "brokers", "CLIENT_METRICS": "client-metrics", "GROUP": "groups"}
_RESOURCES = {
    "TOPIC": "--topic",
    "GROUP": "--group",
    "TRANSACTIONAL_ID": "--transactional-id",
    "DELEGATION_TOKEN": "--delegation-token",
    "USER": "--user-principal",
}


def commands(cluster: DeclaredCluster) -> Iterator[str]:
    """Return the lines of a shell script that makes a new cluster as another was declared.

    Parameters
    ----------
    cluster : DeclaredCluster

    Returns
    -------
    iterator of str
        Lines with their ends. All names and values are quoted for a POSIX shell.
    """
    yield "#!/bin/sh\nset -e\n"
    yield ': "${BOOTSTRAP_SERVER:?is the address of a broker of the new cluster}"\n'
    for line in cluster.notes:
        yield comment(line)
    yield comment(cluster.of_features())
    for topic in cluster.topics:
        if not topic.has_equal_replication:
            yield comment(f"{topic.name}: some of its partitions had fewer replicas than {topic.replication_factor}")
        words = ["--create", "--if-not-exists", "--topic", topic.name, "--partitions", topic.partitions]
        configs = [word for key, value in topic.configs.items() for word in ("--config", f"{key}={value}")]
        yield _command("kafka-topics.sh", *words, "--replication-factor", topic.replication_factor, *configs)
    for resource in cluster.resources:
        kind = _CONFIGURED.get(resource.resource_type)
        if kind is None:
            yield comment(f"no tool sets the configs of {resource}")
            continue
        name = ["--entity-name", resource.name] if resource.name else ["--entity-default"]
        yield _configs(["--entity-type", kind, *name], resource.configs)
    for acl in cluster.acls:
        is_known = acl.resource_type in (*_RESOURCES, "CLUSTER") and acl.pattern_type in ("LITERAL", "PREFIXED")
        yield _acl(acl) if is_known else comment(f"no tool adds the ACL: {acl}")
    for quota in cluster.quotas:
        yield _configs(_entity(quota), {key: shown_number(value) for key, value in quota.values.items()})
    for credential in cluster.credentials:
        yield comment(
            f"user {credential.name} had a {credential.mechanism} credential with {credential.iterations} iterations; "
            "its password is not in the log"
        )


def _command(script: str, *words: object) -> str:
    return " ".join([script, BROKER, *(quote(str(word)) for word in words)]) + "\n"


def _configs(entity: list[str], values: Configs) -> str:
    """Set configs; brackets hold commas, by which the tool would divide."""
    texts = [f"{key}=[{value}]" if "," in value else f"{key}={value}" for key, value in values.items()]
    return _command("kafka-configs.sh", "--alter", *entity, "--add-config", ",".join(texts))


def _entity(quota: Quota) -> list[str]:
    words = []
    for kind, name in quota.entity.items():
        words += ["--entity-type", _ENTITIES.get(kind, kind)]
        words += ["--entity-default"] if name is None else ["--entity-name", name]
    return words


def _acl(acl: Acl) -> str:
    who = "allow" if acl.permission_type == "ALLOW" else "deny"
    resource = ["--cluster"] if acl.resource_type == "CLUSTER" else [_RESOURCES[acl.resource_type], acl.resource_name]
    words = [f"--{who}-principal", acl.principal, f"--{who}-host", acl.host, "--operation", camel_case(acl.operation)]
    pattern = [] if acl.pattern_type == "LITERAL" else ["--resource-pattern-type", acl.pattern_type.lower()]
    return _command("kafka-acls.sh", "--add", *words, *resource, *pattern)


def camel_case(name: str) -> str:
    """Return one of Kafka's names in capital letters as its tools take it.

    Examples
    --------
    >>> camel_case("DESCRIBE_CONFIGS")
    'DescribeConfigs'
    """
    return "".join(word.capitalize() for word in name.split("_"))
