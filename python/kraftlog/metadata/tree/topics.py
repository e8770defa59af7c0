"""``image/topics``: a directory for each topic, by name and by id, with a file for each partition."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog.metadata.tree.nodes import Directory, File, Node, directory_of, text_file
from kraftlog.metadata.tree.text import partition_text
from kraftlog.metadata.uuids import uuid_text


def topics_directory(topics: pa.Table | None, partitions: pa.Table | None) -> Directory:
    """Return the directory of a table of TopicRecords and one of PartitionRecords."""
    tree = _Topics(topics, partitions)
    return directory_of({"byId": Directory(lambda: tree.by_id), "byName": Directory(lambda: tree.by_name)})


class _Topics:
    """The topics, and where the rows of their partitions are: put in order once, when the first is looked into."""

    def __init__(self, topics: pa.Table | None, partitions: pa.Table | None) -> None:
        self._topics = topics
        self._partitions = partitions

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        if self._topics is None:
            return {}
        names, ids = (self._topics[column].to_pylist() for column in ("name", "topic_id"))
        return {name: Directory(partial(self._topic, name, id_)) for name, id_ in zip(names, ids, strict=True)}

    @cached_property
    def by_id(self) -> Mapping[str, Node]:
        if self._topics is None:
            return {}
        names, ids = (self._topics[column].to_pylist() for column in ("name", "topic_id"))
        return {uuid_text(id_): self.by_name[name] for name, id_ in zip(names, ids, strict=True)}

    @cached_property
    def _ordered(self) -> tuple[pa.Table, dict[bytes, tuple[int, int]]]:
        """Partitions in the order of topic and partition, and each topic's first row and the one behind its last."""
        if self._partitions is None or not self._partitions.num_rows:
            return pa.table({}), {}
        table = self._partitions.combine_chunks()
        topics = table["topic_id"].combine_chunks().dictionary_encode()
        codes = topics.indices.to_numpy(zero_copy_only=False)
        order = np.lexsort((table["partition_id"].to_numpy(), codes))
        bounds = np.searchsorted(codes[order], np.arange(len(topics.dictionary) + 1)).tolist()
        ranges = pairwise(bounds)
        return table.take(pa.array(order)).combine_chunks(), dict(
            zip(topics.dictionary.to_pylist(), ranges, strict=True)
        )

    def _topic(self, name: str, id_: bytes) -> Mapping[str, Node]:
        table, ranges = self._ordered
        children: dict[str, Node] = {"name": text_file(name), "id": text_file(uuid_text(id_))}
        first, end = ranges.get(id_, (0, 0))
        if first < end:
            rows = _Rows(table.slice(first, end - first))
            ids = table["partition_id"].slice(first, end - first).to_pylist()
            children |= {str(id_): File(partial(rows.text, index)) for index, id_ in enumerate(ids)}
        return children


class _Rows:
    """The rows of a topic's partitions, made Python objects together when the first is read."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._table.to_pylist()
        return rows

    def text(self, index: int) -> str:
        return partition_text(self._rows[index])
