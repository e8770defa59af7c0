"""A declared cluster as resources of Terraform's provider ``Mongey/kafka``, with blocks that import them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from kraftlog.metadata.declared.cluster import Acl, DeclaredCluster, Quota, comment, shown_number
from kraftlog.metadata.declared.commands import camel_case
from kraftlog.metadata.declared.labels import terraform_label

PROVIDER = "Mongey/kafka"
_RESOURCES = {"TRANSACTIONAL_ID": "TransactionalID"}
_NOT_KNOWN = {"UNKNOWN", "USER", "TWO_PHASE_COMMIT", "CREATE_TOKENS", "DESCRIBE_TOKENS"}  # that the provider lacks

Block = Sequence[tuple[str, object]]


def terraform(cluster: DeclaredCluster) -> Iterator[str]:
    """Return resources of Terraform, with comments about what they cannot express.

    Resources of a cluster that exists are imported by ``terraform apply``; topics are not destroyed.

    Parameters
    ----------
    cluster : DeclaredCluster
    """
    yield f'terraform {{\n  required_providers {{\n    kafka = {{\n      source = "{PROVIDER}"\n    }}\n  }}\n}}\n'
    yield from map(comment, cluster.notes)
    yield comment(cluster.of_features())
    for resource in cluster.resources:
        yield comment(f"no resource has the configs of {resource}")
    for topic in cluster.topics:
        yield _resource(
            *("kafka_topic", terraform_label(topic.name), topic.name),
            [
                ("name", topic.name),
                ("partitions", topic.partitions),
                ("replication_factor", topic.replication_factor),
                ("config", topic.configs),
                ("lifecycle", [("prevent_destroy", True)]),
            ],
        )
    for acl in cluster.acls:
        yield _acl(acl)
    for quota in cluster.quotas:
        yield _quota(quota)
    for credential in cluster.credentials:
        yield comment(f"user {credential.name}: the password of its {credential.mechanism} is not in the log")


def _acl(acl: Acl) -> str:
    if {acl.resource_type, acl.operation} & _NOT_KNOWN:
        return comment(f"no resource has the ACL: {acl}")
    fields = {
        "acl_principal": acl.principal,
        "acl_host": acl.host,
        "acl_operation": camel_case(acl.operation),
        "acl_permission_type": camel_case(acl.permission_type),
        "resource_type": _RESOURCES.get(acl.resource_type, camel_case(acl.resource_type)),
        "resource_name": acl.resource_name,
        "resource_pattern_type_filter": camel_case(acl.pattern_type),
    }
    identity = "|".join(fields.values())
    label = f"{terraform_label(acl.principal)}-{sha256(identity.encode()).hexdigest()[:8]}"
    return _resource("kafka_acl", label, identity, list(fields.items()))


def _quota(quota: Quota) -> str:
    if len(quota.entity) > 1 or None in quota.entity.values():
        return comment(f"no resource has the quotas of {quota}: use kafka-configs.sh")
    ((kind, name),) = quota.entity.items()
    values = {key: _Number(value) for key, value in quota.values.items()}
    fields = [("entity_name", name), ("entity_type", kind), ("config", values)]
    return _resource("kafka_quota", terraform_label(f"{kind}-{name}"), None, fields)


class _Number(float):
    """A number, which is written without quotes."""


def _resource(kind: str, label: str, identity: str | None, fields: Block) -> str:
    imported = [] if identity is None else [f"\nimport {{\n  to = {kind}.{label}\n  id = {_text(identity)}\n}}\n"]
    return "".join([*imported, f'\nresource "{kind}" "{label}" {{\n', *_lines(fields, 1), "}\n"])


def _lines(fields: Block, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for name, value in fields:
        if isinstance(value, list):
            yield f"{indent}{name} {{\n"
            yield from _lines(value, depth + 1)
            yield f"{indent}}}\n"
        elif isinstance(value, Mapping):
            if value:
                entries = [f"{indent}  {_text(key)} = {_value(each)}\n" for key, each in value.items()]
                yield "".join([f"{indent}{name} = {{\n", *entries, f"{indent}}}\n"])
        else:
            yield f"{indent}{name} = {_value(value)}\n"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    return shown_number(value) if isinstance(value, float) else _text(str(value))


def _text(text: str) -> str:
    """Return a text of HCL; ``${`` and ``%{`` would begin a template."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    escaped = "".join(escapes.get(character, character) for character in text)
    return '"' + escaped.replace("${", "$${").replace("%{", "%%{") + '"'
