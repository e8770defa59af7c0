"""A metadata image as one JSON document, in pieces: of its text only a piece is in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby, repeat
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.metadata.column_texts import json_texts as partition_texts
from kraftlog.metadata.image import Image
from kraftlog.metadata.readable import readable
from kraftlog.metadata.record_types import named
from kraftlog.metadata.secrets import REDACTED, is_password
from kraftlog.metadata.uuids import uuid_text

Tree = dict[str, Any]
Config = tuple[int, str, str, str | None]

INDENT = "  "
ROWS_AT_ONCE = 4096
PARTITIONS_AT_ONCE = 1024
_PARTITION, _CONFIG = "PartitionRecord", "ConfigRecord"


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
    tables = image.small_tables()

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
    yield from _object(_topics(image), 1)
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


def _topics(image: Image) -> Iterator[str]:
    """Return the members of the object of topics, some of them at a time."""
    topics, partitions = image.counts
    at_once = max(1, PARTITIONS_AT_ONCE * topics // max(1, partitions))
    topic_names: set[str] = set()
    for some, of_them in image.topics(at_once):
        if not some.num_rows:
            continue
        ids = [uuid_text(topic_id) for topic_id in some.column("topic_id").to_pylist()]
        names = []
        for name, topic_id in zip(some.column("name").to_pylist(), ids, strict=True):
            names.append(
                name if name not in topic_names else f"{name} {topic_id}"
            )  # two of one name are a fault of the log
            topic_names.add(names[-1])
        heads = [
            f'\n{2 * INDENT}{encode_basestring(name)}: {{\n{3 * INDENT}"id": "{topic_id}",\n{3 * INDENT}"partitions": '
            for name, topic_id in zip(names, ids, strict=True)
        ]
        yield from map("".join, zip(heads, _partitions(some, of_them), repeat(f"\n{2 * INDENT}}}")))


def _partitions(topics: pa.Table, partitions: pa.Table) -> list[str]:
    """Return an object of its partitions for each topic."""
    numbers = pc.cast(partitions.column("partition_id").combine_chunks(), pa.string())
    fields = partition_texts(_PARTITION, partitions, without=("partition_id", "topic_id"), line=f"\n{5 * INDENT}")
    members = pc.binary_join_element_wise(f'\n{4 * INDENT}"', numbers, '": ', fields, "")
    of_topic = pc.index_in(partitions.column("topic_id"), value_set=topics.column("topic_id")).to_numpy()
    counts = np.bincount(of_topic, minlength=topics.num_rows)
    ends = pa.array(np.append(0, np.cumsum(counts)), pa.int64())
    joined = pc.binary_join(pa.LargeListArray.from_arrays(ends, members), ",").to_pylist()
    return [f"{{{members}\n{3 * INDENT}}}" if members else "{}" for members in joined]


def _configs(configs: pa.Table, *, show_secrets: bool) -> Iterator[str]:
    """Return the object of configs, which are sorted by resource."""
    before = "{"
    for kind, of_kind in groupby(_rows(configs), itemgetter(0)):
        yield f'{before}\n{2 * INDENT}"{named(_CONFIG, "resource_type", kind)}": '
        resources = groupby(of_kind, itemgetter(1))
        yield from _object((_resource(name, rows, show_secrets=show_secrets) for name, rows in resources), 2)
        before = ","
    yield "{}" if before == "{" else f"\n{INDENT}}}"


def _rows(configs: pa.Table) -> Iterator[Config]:
    for batch in configs.to_batches(max_chunksize=ROWS_AT_ONCE):
        columns = (batch.column(name).to_pylist() for name in ("resource_type", "resource_name", "name", "value"))
        yield from zip(*columns, strict=True)


def _resource(name: str, rows: Iterator[Config], *, show_secrets: bool) -> str:
    shown = ((config, value if show_secrets or not is_password(config) else REDACTED) for _, _, config, value in rows)
    return f"\n{3 * INDENT}{encode_basestring(name)}: {{{','.join(map(_config, shown))}\n{3 * INDENT}}}"


def _config(item: tuple[str, str | None]) -> str:
    name, value = item
    text = "null" if value is None else encode_basestring(value)
    return f"\n{4 * INDENT}{encode_basestring(name)}: {text}"


def _quotas(quotas: list[Tree]) -> list[Tree]:
    trees: list[Tree] = []
    for quota in quotas:
        entity = {one["entityType"]: one["entityName"] for one in quota["entity"]}
        if not trees or trees[-1]["entity"] != entity:
            trees.append({"entity": entity, "quotas": {}})
        trees[-1]["quotas"][quota["key"]] = quota["value"]
    return trees


def _scram(credentials: list[Tree]) -> Tree:
    tree: Tree = {}
    for credential in credentials:
        users = tree.setdefault(str(credential.pop("mechanism")), {})
        users[credential.pop("name")] = credential
    return tree
