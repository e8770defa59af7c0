"""A metadata image as one JSON document."""

from __future__ import annotations

from typing import Any

from kraftlog.metadata.image import Image
from kraftlog.metadata.readable import readable

Tree = dict[str, Any]


def json_tree(
    image: Image,
    offset: int | None = None,
    epoch: int | None = None,
    timestamp: int | None = None,
    *,
    show_secrets: bool = False,
) -> Tree:
    """Return an image as dicts and lists for JSON.

    Parameters
    ----------
    image : Image
    offset, epoch, timestamp : int, optional
        Of the last record in it; the offset is the image's own unless it is given, the timestamp in milliseconds.
    show_secrets : bool
        Whether salt and keys of SCRAM credentials, and passwords in configs, are shown.
    """
    tables = image.tables()

    def rows(name: str) -> list[Tree]:
        return [readable(name, row, show_secrets=show_secrets) for row in tables[name].to_pylist()]

    return {
        "offset": image.offset if offset is None else offset,
        "epoch": epoch,
        "timestamp": timestamp,
        "features": {row["name"]: row["featureLevel"] for row in rows("FeatureLevelRecord")},
        "cluster": {
            "brokers": {str(row["brokerId"]): row for row in rows("RegisterBrokerRecord")},
            "controllers": {str(row["controllerId"]): row for row in rows("RegisterControllerRecord")},
        },
        "topics": _topics(rows("TopicRecord"), rows("PartitionRecord")),
        "configs": _configs(rows("ConfigRecord")),
        "client_quotas": _quotas(rows("ClientQuotaRecord")),
        "producer_ids": next(({"nextProducerId": row["nextProducerId"]} for row in rows("ProducerIdsRecord")), {}),
        "acls": rows("AccessControlEntryRecord"),
        "scram": _scram(rows("UserScramCredentialRecord")),
        "delegation_tokens": {row["tokenId"]: row for row in rows("DelegationTokenRecord")},
    }


def _topics(topics: list[Tree], partitions: list[Tree]) -> Tree:
    by_id: Tree = {topic["topicId"]: {"id": topic["topicId"], "partitions": {}} for topic in topics}
    for partition in partitions:
        found = by_id[partition.pop("topicId")]
        found["partitions"][str(partition.pop("partitionId"))] = partition
    tree: Tree = {}
    for topic in topics:  # two of one name are a fault of the log, and both are there
        name = topic["name"] if topic["name"] not in tree else f"{topic['name']} {topic['topicId']}"
        tree[name] = by_id[topic["topicId"]]
    return tree


def _configs(configs: list[Tree]) -> Tree:
    tree: Tree = {}
    for config in configs:
        resources = tree.setdefault(str(config["resourceType"]), {})
        resources.setdefault(config["resourceName"], {})[config["name"]] = config["value"]
    return tree


def _quotas(quotas: list[Tree]) -> list[Tree]:
    found: list[Tree] = []
    for quota in quotas:
        entity = {one["entityType"]: one["entityName"] for one in quota["entity"]}
        if not found or found[-1]["entity"] != entity:
            found.append({"entity": entity, "quotas": {}})
        found[-1]["quotas"][quota["key"]] = quota["value"]
    return found


def _scram(credentials: list[Tree]) -> Tree:
    tree: Tree = {}
    for credential in credentials:
        users = tree.setdefault(str(credential.pop("mechanism")), {})
        users[credential.pop("name")] = credential
    return tree
