"""A metadata image as one JSON document, in pieces: of its text only a piece is in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata.image import Image
from kraftlog.metadata.readable import readable
from kraftlog.metadata.record_types import named
from kraftlog.metadata.secrets import REDACTED, is_password
from kraftlog.metadata.tree.json_columns import column_texts
from kraftlog.metadata.uuids import uuid_text

Tree = dict[str, Any]

INDENT = "  "
ROWS_AT_ONCE = 4096
_TOPIC, _PARTITION, _CONFIG = "TopicRecord", "PartitionRecord", "ConfigRecord"


def json_texts(
    image: Image,
    offset: int | None = None,
    epoch: int | None = None,
    timestamp: int | None = None,
    *,
    show_secrets: bool = False,
) -> Iterator[str]:
    """Return an image as the pieces of a JSON document.

    Parameters
    ----------
    image : Image
    offset, epoch, timestamp : int, optional
        Of the last record in it; the offset is the image's own unless it is given, the timestamp in milliseconds.
    show_secrets : bool
        Whether salt and keys of SCRAM credentials, and passwords in configs, are shown.

    Examples
    --------
    >>> json.loads("".join(json_texts(Image.empty(), epoch=3)))["epoch"]
    3
    """
    tables = image.tables()

    def rows(name: str) -> list[Tree]:
        return [readable(name, row, show_secrets=show_secrets) for row in tables[name].to_pylist()]

    first = {
        "offset": image.offset if offset is None else offset,
        "epoch": epoch,
        "timestamp": timestamp,
        "features": {row["name"]: row["featureLevel"] for row in rows("FeatureLevelRecord")},
        "cluster": {
            "brokers": {str(row["brokerId"]): row for row in rows("RegisterBrokerRecord")},
            "controllers": {str(row["controllerId"]): row for row in rows("RegisterControllerRecord")},
        },
    }
    last = {
        "client_quotas": _quotas(rows("ClientQuotaRecord")),
        "producer_ids": next(({"nextProducerId": row["nextProducerId"]} for row in rows("ProducerIdsRecord")), {}),
        "acls": rows("AccessControlEntryRecord"),
        "scram": _scram(rows("UserScramCredentialRecord")),
        "delegation_tokens": {row["tokenId"]: row for row in rows("DelegationTokenRecord")},
    }
    yield _text(first)[: -len("\n}")]
    yield f',\n{INDENT}"topics": '
    yield from _object(_topics(tables[_TOPIC], tables[_PARTITION]), 1)
    yield f',\n{INDENT}"configs": '
    yield from _configs(tables[_CONFIG], show_secrets=show_secrets)
    yield f",{_text(last)[len('{') :]}"


def _text(value: object, depth: int = 0) -> str:
    return json.dumps(value, indent=len(INDENT), ensure_ascii=False).replace("\n", "\n" + depth * INDENT)


def _object(members: Iterator[str], depth: int) -> Iterator[str]:
    """Return an object of members, each of which begins with its line end."""
    before = "{"
    for member in members:
        yield before + member
        before = ","
    yield "{}" if before == "{" else f"\n{depth * INDENT}}}"


def _topics(topics: pa.Table, partitions: pa.Table) -> Iterator[str]:
    ids = [uuid_text(topic_id) for topic_id in topics.column("topic_id").to_pylist()]
    shown: dict[str, int] = {}
    for topic, (name, topic_id) in enumerate(zip(topics.column("name").to_pylist(), ids, strict=True)):
        shown[name if name not in shown else f"{name} {topic_id}"] = topic  # two of one name are a fault of the log
    of_topic = pc.index_in(partitions.column("topic_id"), value_set=topics.column("topic_id")).to_numpy()
    order = np.argsort(of_topic, kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        partitions = partitions.take(pa.array(order))
    counts = np.bincount(of_topic, minlength=len(ids)).tolist()
    texts = _partitions(partitions)
    after = [list[str]() for _ in ids] if list(shown.values()) != list(range(len(ids))) else None
    if after is not None:
        for topic, count in enumerate(counts):
            after[topic] = list(islice(texts, count))
    for name, topic in shown.items():
        own = iter(after[topic]) if after is not None else islice(texts, counts[topic])
        yield "".join(
            (
                f'\n{2 * INDENT}{encode_basestring(name)}: {{\n{3 * INDENT}"id": "{ids[topic]}",',
                f'\n{3 * INDENT}"partitions": ',
                *_object(own, 3),
                f"\n{2 * INDENT}}}",
            )
        )


def _partitions(partitions: pa.Table) -> Iterator[str]:
    """Return partitions as members of their topics."""
    fields = [one for one in BUILT_IN.messages[_PARTITION].fields if one.column not in ("partition_id", "topic_id")]
    form = ",".join(f'\n{5 * INDENT}"{field.name}": %s' for field in fields)
    form = f'\n{4 * INDENT}"%s": {{{form}\n{4 * INDENT}}}'
    for batch in partitions.to_batches(max_chunksize=ROWS_AT_ONCE):
        texts = [column_texts(_PARTITION, field, batch.column(field.column), 5) for field in fields]
        for row in zip(batch.column("partition_id").to_pylist(), *texts, strict=True):
            yield form % row


def _configs(configs: pa.Table, *, show_secrets: bool) -> Iterator[str]:
    tree: dict[int, dict[str, dict[str, str | None]]] = {}
    columns = [configs.column(name).to_pylist() for name in ("resource_type", "resource_name", "name", "value")]
    for kind, resource, name, value in zip(*columns, strict=True):
        shown = value if show_secrets or not is_password(name) else REDACTED
        tree.setdefault(kind, {}).setdefault(resource, {})[name] = shown
    before = "{"
    for kind, resources in tree.items():
        yield f'{before}\n{2 * INDENT}"{named(_CONFIG, "resource_type", kind)}": '
        yield from _object(map(_resource, resources.items()), 2)
        before = ","
    yield f"\n{INDENT}}}" if tree else "{}"


def _resource(item: tuple[str, dict[str, str | None]]) -> str:
    name, configs = item
    return f"\n{3 * INDENT}{encode_basestring(name)}: {{{','.join(map(_config, configs.items()))}\n{3 * INDENT}}}"


def _config(item: tuple[str, str | None]) -> str:
    name, value = item
    text = "null" if value is None else encode_basestring(value)
    return f"\n{4 * INDENT}{encode_basestring(name)}: {text}"


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
