"""An image by plain Python, one record after another: the oracle for ``Image.apply``."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

Fields = dict[str, Any]
MIGRATING = bytes(16)


class RefusedError(Exception):
    """A record that Kafka would refuse; the argument is the code of the fault."""


class ImageTwin:
    def __init__(self) -> None:
        self.state: dict[str, dict[Any, Fields]] = {
            name: {}
            for name in (
                "FeatureLevelRecord",
                "RegisterBrokerRecord",
                "RegisterControllerRecord",
                "TopicRecord",
                "PartitionRecord",
                "ConfigRecord",
                "ClientQuotaRecord",
                "ProducerIdsRecord",
                "AccessControlEntryRecord",
                "UserScramCredentialRecord",
                "DelegationTokenRecord",
            )
        }
        self.faults: list[tuple[str, int]] = []

    def apply(self, offset: int, name: str, fields: Fields) -> None:
        replay: Callable[[Fields], None] | None = getattr(self, name, None)
        if replay is None:
            return
        try:
            replay(dict(fields))
        except RefusedError as refused:
            self.faults.append((str(refused), offset))

    def contents(self) -> dict[str, list[Fields]]:
        state = self.state
        topics = sorted(state["TopicRecord"].values(), key=lambda topic: (topic["name"], topic["topic_id"]))
        ranks = {topic["topic_id"]: rank for rank, topic in enumerate(topics)}
        found = {name: [rows[key] for key in sorted(rows)] for name, rows in state.items() if name != "PartitionRecord"}
        found["FeatureLevelRecord"].sort(key=lambda row: row["name"] != "metadata.version")
        found["TopicRecord"] = topics
        found["PartitionRecord"] = sorted(
            state["PartitionRecord"].values(), key=lambda row: (ranks[row["topic_id"]], row["partition_id"])
        )
        return found

    def FeatureLevelRecord(self, fields: Fields) -> None:  # noqa: N802
        if fields["name"] == "metadata.version" and fields["feature_level"] < 1:
            raise RefusedError("bad_feature_level")
        if fields["name"] != "kraft.version":
            self._put("FeatureLevelRecord", fields["name"], fields if fields["feature_level"] else None)

    def RegisterControllerRecord(self, fields: Fields) -> None:  # noqa: N802
        self._put("RegisterControllerRecord", fields["controller_id"], _by_name(fields))

    def UnregisterControllerRecord(self, fields: Fields) -> None:  # noqa: N802
        self._put("RegisterControllerRecord", fields["controller_id"], None)

    def ConfigRecord(self, fields: Fields) -> None:  # noqa: N802
        key = (fields["resource_type"], fields["resource_name"], fields["name"])
        self._put("ConfigRecord", key, fields if fields["value"] is not None else None)

    def ClientQuotaRecord(self, fields: Fields) -> None:  # noqa: N802
        fields["entity"] = sorted(fields["entity"], key=_entity_text)
        key = ("".join(map(_entity_text, fields["entity"])), fields["key"])
        self._put("ClientQuotaRecord", key, None if fields["remove"] else fields)

    def ProducerIdsRecord(self, fields: Fields) -> None:  # noqa: N802
        known = fields | {"broker_id": -1, "broker_epoch": -1}
        self._put("ProducerIdsRecord", 0, known if fields["next_producer_id"] >= 0 else None)

    def AccessControlEntryRecord(self, fields: Fields) -> None:  # noqa: N802
        self._put("AccessControlEntryRecord", fields["id"], fields)

    def RemoveAccessControlEntryRecord(self, fields: Fields) -> None:  # noqa: N802
        self._require("AccessControlEntryRecord", fields["id"], "unknown_acl")
        self._put("AccessControlEntryRecord", fields["id"], None)

    def UserScramCredentialRecord(self, fields: Fields) -> None:  # noqa: N802
        self._put("UserScramCredentialRecord", (fields["name"], fields["mechanism"]), fields)

    def RemoveUserScramCredentialRecord(self, fields: Fields) -> None:  # noqa: N802
        self._put("UserScramCredentialRecord", (fields["name"], fields["mechanism"]), None)

    def DelegationTokenRecord(self, fields: Fields) -> None:  # noqa: N802
        self._put("DelegationTokenRecord", fields["token_id"], fields)

    def RemoveDelegationTokenRecord(self, fields: Fields) -> None:  # noqa: N802
        self._put("DelegationTokenRecord", fields["token_id"], None)

    def RegisterBrokerRecord(self, fields: Fields) -> None:  # noqa: N802
        registration = _by_name(fields) | {"log_dirs": _sorted_uuids(fields["log_dirs"])}
        self._put("RegisterBrokerRecord", fields["broker_id"], registration)

    def UnregisterBrokerRecord(self, fields: Fields) -> None:  # noqa: N802
        self._put("RegisterBrokerRecord", fields["broker_id"], None)

    def FenceBrokerRecord(self, fields: Fields) -> None:  # noqa: N802
        self._broker(fields["id"], fields["epoch"])["fenced"] = True

    def UnfenceBrokerRecord(self, fields: Fields) -> None:  # noqa: N802
        self._broker(fields["id"], fields["epoch"])["fenced"] = False

    def BrokerRegistrationChangeRecord(self, fields: Fields) -> None:  # noqa: N802
        broker = self._broker(fields["broker_id"], fields["broker_epoch"])
        if fields["fenced"] not in (-1, 0, 1) or fields["in_controlled_shutdown"] not in (0, 1):
            raise RefusedError("bad_broker_change")
        if fields["fenced"]:
            broker["fenced"] = fields["fenced"] == 1
        if fields["in_controlled_shutdown"]:
            broker["in_controlled_shutdown"] = True
        if fields["log_dirs"]:
            broker["log_dirs"] = _sorted_uuids(fields["log_dirs"])
        if fields["cordoned_log_dirs"] is not None:
            broker["cordoned_log_dirs"] = fields["cordoned_log_dirs"]

    def TopicRecord(self, fields: Fields) -> None:  # noqa: N802
        self._drop_partitions(fields["topic_id"])
        self._put("TopicRecord", fields["topic_id"], fields)

    def RemoveTopicRecord(self, fields: Fields) -> None:  # noqa: N802
        topic = self._require("TopicRecord", fields["topic_id"], "unknown_topic")
        self._drop_partitions(fields["topic_id"])
        self._put("TopicRecord", fields["topic_id"], None)
        for key in [key for key in self.state["ConfigRecord"] if key[:2] == (2, topic["name"])]:
            self._put("ConfigRecord", key, None)

    def PartitionRecord(self, fields: Fields) -> None:  # noqa: N802
        self._require("TopicRecord", fields["topic_id"], "unknown_topic")
        if fields["directories"] and len(fields["directories"]) != len(fields["replicas"]):
            raise RefusedError("bad_directories")
        if fields["leader_recovery_state"] not in (0, 1):
            raise RefusedError("bad_leader_recovery_state")
        self._put_partition(fields)

    def PartitionChangeRecord(self, fields: Fields) -> None:  # noqa: N802
        key = (fields["topic_id"], fields["partition_id"])
        changed = dict(self._require("PartitionRecord", key, "unknown_partition"))
        recovery = fields["leader_recovery_state"]
        if recovery not in (-1, 0, 1):
            raise RefusedError("bad_leader_recovery_state")
        for name, value in fields.items():
            if isinstance(value, list):
                changed[name] = value
        replicas, directories = changed["replicas"], changed["directories"]
        is_known = bool(set(directories) - {MIGRATING})
        are_given = fields["directories"] is not None and fields["replicas"] is not None
        if directories and len(directories) != len(replicas) and (is_known or are_given):
            raise RefusedError("bad_directories")
        if not is_known:
            changed["directories"] = []
        if fields["leader"] != -2:
            changed["leader"] = fields["leader"]
            changed["leader_epoch"] += 1
        if recovery != -1:
            changed["leader_recovery_state"] = recovery
        changed["partition_epoch"] += 1
        self._put_partition(changed)

    def ClearElrRecord(self, fields: Fields) -> None:  # noqa: N802
        topics = self.state["TopicRecord"].values()
        if fields["topic_name"]:
            topics = [topic for topic in topics if topic["name"] == fields["topic_name"]]
            if not topics:
                raise RefusedError("unknown_topic")
        ids = {topic["topic_id"] for topic in topics}
        for (topic_id, _), partition in self.state["PartitionRecord"].items():
            if topic_id in ids and (partition["eligible_leader_replicas"] or partition["last_known_elr"]):
                partition["eligible_leader_replicas"] = partition["last_known_elr"] = None
                partition["partition_epoch"] += 1

    def _put(self, name: str, key: Any, fields: Fields | None) -> None:
        self.state[name].pop(key, None)
        if fields is not None:
            self.state[name][key] = fields

    def _require(self, name: str, key: Any, error: str) -> Fields:
        if key not in self.state[name]:
            raise RefusedError(error)
        return self.state[name][key]

    def _broker(self, broker: int, epoch: int) -> Fields:
        registration = self._require("RegisterBrokerRecord", broker, "unknown_broker")
        if registration["broker_epoch"] != epoch:
            raise RefusedError("broker_epoch_mismatch")
        return registration

    def _drop_partitions(self, topic_id: bytes) -> None:
        for key in [key for key in self.state["PartitionRecord"] if key[0] == topic_id]:
            self._put("PartitionRecord", key, None)

    def _put_partition(self, fields: Fields) -> None:
        fields["directories"] = fields["directories"] or [MIGRATING] * len(fields["replicas"])
        for name in ("eligible_leader_replicas", "last_known_elr"):
            fields[name] = fields[name] or None
        self._put("PartitionRecord", (fields["topic_id"], fields["partition_id"]), fields)


def _sorted_uuids(uuids: list[bytes]) -> list[bytes]:
    return sorted(uuids, key=lambda uuid: struct.unpack(">qq", uuid))


def _entity_text(entity: Fields) -> str:
    kind, name = entity["entity_type"], entity["entity_name"]
    return f"{len(kind)}:{kind}" + ("-" if name is None else f"{len(name)}:{name}")


def _by_name(fields: Fields) -> Fields:
    maps = {column: {item["name"]: item for item in fields[column]} for column in ("end_points", "features")}
    return fields | {column: [items[name] for name in sorted(items)] for column, items in maps.items()}
