"""What tells a record of an image from the others of its type, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_COLUMNS = {
    "RegisterBrokerRecord": ("broker_id",),
    "RegisterControllerRecord": ("controller_id",),
    "FeatureLevelRecord": ("name",),
    "TopicRecord": ("name",),
    "UserScramCredentialRecord": ("name", "mechanism"),
    "DelegationTokenRecord": ("token_id",),
}
_SCRAM_MECHANISMS = ["UNKNOWN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def record_keys(name: str, rows: pa.Table, tables: Mapping[str, pa.Table]) -> pa.Array:
    """Return a text for each record: ``orders-0`` of a partition, ``alice SCRAM-SHA-256`` of a credential.

    Parameters
    ----------
    name : str
        Of the type.
    rows : pyarrow.Table
    tables : Mapping of str to pyarrow.Table
        The image that the rows are of.
    """
    if name == "PartitionRecord":
        return _joined([_topic_names(rows, tables), pc.cast(rows.column("partition_id"), pa.string())], "-")
    columns = [_text(rows, column) for column in _COLUMNS.get(name, ())]
    return _joined(columns, " ") if columns else pa.nulls(rows.num_rows, pa.string())


def _joined(columns: Sequence[pa.ChunkedArray], separator: str) -> pa.Array:
    joined = pc.binary_join_element_wise(*columns, separator)
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _text(rows: pa.Table, column: str) -> pa.ChunkedArray:
    found = rows.column(column)
    if column != "mechanism":
        return pc.cast(found, pa.string())
    is_known = pc.and_(pc.greater(found, 0), pc.less(found, len(_SCRAM_MECHANISMS)))
    return pc.take(pa.array(_SCRAM_MECHANISMS), pc.if_else(is_known, found, pa.scalar(0, found.type)))


def _topic_names(rows: pa.Table, tables: Mapping[str, pa.Table]) -> pa.ChunkedArray:
    topics = tables.get("TopicRecord")
    hexadecimal = pa.chunked_array(
        [[topic.hex() for topic in rows.column("topic_id").unique().to_pylist()]], pa.string()
    )
    ids, names = rows.column("topic_id").unique(), hexadecimal.combine_chunks()
    if topics is not None and topics.num_rows:
        places = pc.index_in(ids, value_set=topics.column("topic_id").combine_chunks())
        names = pc.coalesce(topics.column("name").combine_chunks().take(places), names)
    return pc.take(names, pc.index_in(rows.column("topic_id"), value_set=ids))
