"""What Admin says of the metadata, and what an image says of the same: see ClusterState.java for the form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jvm import Line

from kraftlog.metadata.uuids import uuid_text
from kraftlog.metadata_log.image_at import ImageAt

CONFIG_TYPES = {2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"}
_ACL = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")


def of_image(at: ImageAt) -> Line:
    """Return what an image says, in the order of ``in_order``."""
    rows = {name: table.to_pylist() for name, table in at.image.tables().items()}
    replicas: dict[bytes, list[list[int]]] = {}
    for row in sorted(rows["PartitionRecord"], key=lambda row: row["partition_id"]):
        replicas.setdefault(row["topic_id"], []).append(row["replicas"])
    quotas: dict[str, tuple[Line, Line]] = {}
    for row in rows["ClientQuotaRecord"]:
        entity = {part["entity_type"]: part["entity_name"] for part in row["entity"]}
        quotas.setdefault(repr(entity), (entity, {}))[1][row["key"]] = row["value"]
    return in_order(
        {
            "topics": {
                row["name"]: {"topic_id": uuid_text(row["topic_id"]), "replicas": replicas[row["topic_id"]]}
                for row in rows["TopicRecord"]
            },
            "configs": [
                [CONFIG_TYPES[row["resource_type"]], row["resource_name"], row["name"], row["value"]]
                for row in rows["ConfigRecord"]
            ],
            "features": {row["name"]: row["feature_level"] for row in rows["FeatureLevelRecord"]},
            "scram": [[row["name"], row["mechanism"], row["iterations"]] for row in rows["UserScramCredentialRecord"]],
            "quotas": [[entity, limits] for entity, limits in quotas.values()],
            "acls": [[row[name] for name in _ACL] for row in rows["AccessControlEntryRecord"]],
        }
    )


def in_order(state: Line) -> Line:
    """Return what Admin says with its lists in order: Kafka's own comes from maps."""
    return {name: _sorted(value) if isinstance(value, list) else value for name, value in state.items()}


def _sorted(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=lambda item: repr([sorted(x.items()) if isinstance(x, dict) else x for x in item]))
