"""A metadata image as a tree of directories and files, with the paths and the text of Kafka's kafka-metadata-shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from kraftlog.codec.metadata_version import LEVELS
from kraftlog.metadata.kafka_names import SCRAM_MECHANISMS
from kraftlog.metadata.tree.configs import config_directories, feature_files, quota_directories
from kraftlog.metadata.tree.nodes import Directory, File, Node, directory_of, text_file
from kraftlog.metadata.tree.text import (
    Row,
    acl_text,
    broker_text,
    controller_text,
    delegation_token_text,
    provenance_text,
    scram_text,
)
from kraftlog.metadata.tree.topics import topics_directory
from kraftlog.metadata.uuids import uuid_text

_METADATA_VERSIONS = {level: name for name, level in LEVELS.items()}
_NO_PRODUCER_ID = -1


def image_tree(
    tables: Mapping[str, pa.Table],
    offset: int,
    epoch: int,
    timestamp: int,
    *,
    local: Mapping[str, str],
    show_secrets: bool = False,
) -> Directory:
    """Return the root of a metadata image's tree, with the directories ``image`` and ``local``.

    Nothing is read from the tables before the directory is looked into that shows it.

    Parameters
    ----------
    tables : mapping
        The records of the image, a table for each type (``TopicRecord``, ``PartitionRecord`` ...): columns in
        snake_case, uuids as 16 bytes. A type that is left out has no records.
    offset, epoch, timestamp : int
        Of the last record in the image; the timestamp in milliseconds.
    local : mapping
        The files of ``local``, by name: ``commitId`` and ``version`` of the software.
    show_secrets : bool
        Show SCRAM credentials, delegation tokens and passwords in configs, as Kafka's shell does. Else ``[redacted]``
        stands there, which is what Kafka has where it redacts.
    """
    image = _Image(tables, show_secrets=show_secrets)
    return directory_of(
        {
            "image": directory_of(
                {
                    "acls": directory_of({"byId": Directory(image.acls)}),
                    "clientQuotas": Directory(lambda: quota_directories(image.rows("ClientQuotaRecord"))),
                    "cluster": directory_of(
                        {"brokers": Directory(image.brokers), "controllers": Directory(image.controllers)}
                    ),
                    "configs": Directory(image.configs),
                    "delegationToken": Directory(image.delegation_tokens),
                    "features": Directory(image.features),
                    "producerIds": directory_of({"nextProducerId": File(image.next_producer_id)}),
                    "provenance": File(lambda: provenance_text(offset, epoch, timestamp)),
                    "scram": directory_of(
                        {name: Directory(image.scram(number)) for number, name in SCRAM_MECHANISMS.items()}
                    ),
                    "topics": topics_directory(tables.get("TopicRecord"), tables.get("PartitionRecord")),
                }
            ),
            "local": directory_of({name: text_file(text) for name, text in local.items()}),
        }
    )


class _Image:
    """What the smaller directories show of the tables."""

    def __init__(self, tables: Mapping[str, pa.Table], *, show_secrets: bool) -> None:
        self._tables = tables
        self._show_secrets = show_secrets

    def rows(self, record_type: str) -> Iterable[Row]:
        table = self._tables.get(record_type)
        return [] if table is None else table.to_pylist()

    def acls(self) -> Mapping[str, Node]:
        return {uuid_text(row["id"]): text_file(acl_text(row)) for row in self.rows("AccessControlEntryRecord")}

    def brokers(self) -> Mapping[str, Node]:
        return {str(row["broker_id"]): text_file(broker_text(row)) for row in self.rows("RegisterBrokerRecord")}

    def controllers(self) -> Mapping[str, Node]:
        rows = self.rows("RegisterControllerRecord")
        return {str(row["controller_id"]): text_file(controller_text(row)) for row in rows}

    def configs(self) -> Mapping[str, Node]:
        return config_directories(self.rows("ConfigRecord"), show_secrets=self._show_secrets)

    def delegation_tokens(self) -> Mapping[str, Node]:
        rows = self.rows("DelegationTokenRecord")
        return {row["token_id"]: text_file(delegation_token_text(row, show_secrets=self._show_secrets)) for row in rows}

    def features(self) -> Mapping[str, Node]:
        levels = {row["name"]: row["feature_level"] for row in self.rows("FeatureLevelRecord")}
        return feature_files(levels, _METADATA_VERSIONS)

    def next_producer_id(self) -> str:
        return str(next((row["next_producer_id"] for row in self.rows("ProducerIdsRecord")), _NO_PRODUCER_ID))

    def scram(self, mechanism: int) -> Callable[[], Mapping[str, Node]]:
        def users() -> Mapping[str, Node]:
            rows = [row for row in self.rows("UserScramCredentialRecord") if row["mechanism"] == mechanism]
            return {row["name"]: text_file(scram_text(row, show_secrets=self._show_secrets)) for row in rows}

        return users
