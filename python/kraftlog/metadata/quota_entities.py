"""Entities of client quotas as one text, the same for lists in another order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def comparable(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return a column of a key as one to compare: a list of entities is one text."""
    if not pa.types.is_list(column.type):
        return column
    return entity_texts(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)


def entity_texts(entities: pa.ListArray) -> pa.Array:
    """Return a text for each list of entities (``ClientQuotaRecord.entity``), the same for the same set.

    Examples
    --------
    >>> entity = {"entity_type": "user", "entity_name": "alice"}
    >>> default = {"entity_type": "client-id", "entity_name": None}
    >>> entity_texts(pa.array([[entity, default], [default, entity]])).to_pylist()
    ['4:user5:alice9:client-id-', '4:user5:alice9:client-id-']
    """
    texts, order, offsets = _in_order(entities)
    return pc.binary_join(pa.ListArray.from_arrays(offsets, texts.take(order)), "")


def sorted_entities(entities: pa.ListArray) -> pa.ListArray:
    """Return the lists in the order of their texts."""
    _, order, offsets = _in_order(entities)
    return pa.ListArray.from_arrays(offsets, entities.flatten().take(order), type=entities.type)


def _in_order(entities: pa.ListArray) -> tuple[pa.Array, pa.Array, pa.Array]:
    structs = entities.flatten()
    kinds, names = structs.field("entity_type"), structs.field("entity_name")
    texts = pc.binary_join_element_wise(_sized(kinds), pc.fill_null(_sized(names), "-"), "")
    rows = pa.table({"parent": pc.list_parent_indices(entities), "text": texts})
    order = pc.sort_indices(rows, [("parent", "ascending"), ("text", "ascending")])
    lengths = pc.fill_null(pc.list_value_length(entities), 0).to_numpy(zero_copy_only=False)
    return texts, order, pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())


def _sized(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pc.cast(pc.binary_length(texts), pa.string()), texts, ":")
