"""Columns of typed records: their fields as a struct, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages.api import message_columns, read_messages
from kraftlog.messages.frames import NO_VERSION
from kraftlog.messages.reader import Messages
from kraftlog.spark.udf_arguments import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_NOTHING = "null"


def decode_message(type: str, key: Column | str | None, value: Column | str) -> Column:
    """Decode records of an internal topic or of the metadata log to structs of their fields.

    In SQL, where the type of a result cannot depend on a text, ``decode_message(type, key, value)`` returns JSON text
    instead: an object with type, key_version, value_version, key, value, is_tombstone and error as in the table
    messages, and Kafka's field names in the key and the value.

    Parameters
    ----------
    type : str
        Type of the records, such as ``PartitionRecord`` or ``OffsetCommit``; or of a message that is not a record, such
        as ``ConsumerProtocolSubscription``.
    key : Column or str, optional
        Binary; records of the metadata log have none.
    value : Column or str
        Binary. Null for a tombstone, whose value fields are null.

    Returns
    -------
    Column
        Struct of key_version, value_version, the fields as ``kraftlog.decode_messages`` names them,
        unknown_tagged_fields and error. A value that cannot be read, or has another type, has an error and null fields.
        The struct is null if key and value are null.

    Raises
    ------
    ValueError
        For an unknown type, or when the type has keys and ``key`` is None.

    Examples
    --------
    >>> from kraftlog.spark import decode_message
    >>> df.select(decode_message("PartitionRecord", None, "value").alias("record")).select("record.*")  # doctest: +SKIP
    >>> spark.sql("SELECT decode_message('OffsetCommit', key, value) FROM offsets")  # doctest: +SKIP
    """
    from pyspark.sql.functions import arrow_udf, lit

    function, returned = decode_function(type, has_keys=key is not None)
    keys = lit(None).cast("binary") if key is None else key
    return arrow_udf(function, spark_type(returned))(keys, value)


def decode_function(type: str, *, has_keys: bool) -> tuple[Callable[[pa.Array, pa.Array], pa.Array], pa.DataType]:
    """Return a function of Arrow arrays that decodes records of this type, and its type."""
    nothing = pa.array([], pa.binary())
    returned = _structs(type, read_messages(type, nothing, nothing if has_keys else None)).type

    def decode_column(keys: pa.Array, values: pa.Array) -> pa.Array:
        keys, values = keys.cast(pa.binary()), values.cast(pa.binary())
        return _structs(type, read_messages(type, values, keys), pc.and_(keys.is_null(), values.is_null()))

    return decode_column, returned


def _structs(type: str, messages: Messages, is_null: pa.Array | None = None) -> pa.StructArray:
    fields = message_columns(messages, type)
    columns = [_versions(messages.key_versions), _versions(messages.value_versions), *fields.columns]
    return pa.StructArray.from_arrays(columns, ["key_version", "value_version", *fields.schema.names], mask=is_null)


def _versions(versions: npt.NDArray[np.int32]) -> pa.Array:
    return pa.array(versions.astype(np.int16), mask=versions == NO_VERSION)


def json_column(types: pa.Array, keys: pa.Array, values: pa.Array) -> pa.Array:
    """Return records as JSON, each read by its own type; null if the type is null, or both key and value are."""
    texts = pa.nulls(len(types), pa.string())
    is_there = pc.invert(pc.and_(keys.is_null(), values.is_null()))
    for type in pc.unique(types).drop_null().to_pylist():
        is_of_type = pc.and_(is_there, pc.fill_null(pc.equal(types, type), fill_value=False))
        of_type = [column.filter(is_of_type).cast(pa.binary()) for column in (values, keys)]
        texts = pc.replace_with_mask(texts, is_of_type, _objects(type, read_messages(type, *of_type)))
    return texts


def _objects(type: str, messages: Messages) -> pa.StringArray:
    """Return a JSON object for each record."""
    names = messages.type_names
    keys, values = messages.json()
    members = {
        "type": _quoted(names),
        "key_version": _versions(messages.key_versions).cast(pa.string()),
        "value_version": _versions(messages.value_versions).cast(pa.string()),
        "key": keys,
        "value": values,
        "is_tombstone": pa.array(messages.is_tombstone).cast(pa.string()),
        "error": _quoted(messages.errors),
    }
    parts: list[pa.Array | str] = []
    for name, texts in members.items():
        parts += [f'{"," if parts else "{"}"{name}":', pc.fill_null(texts, _NOTHING)]
    return pc.binary_join_element_wise(*parts, "}", "")


def _quoted(texts: pa.StringArray) -> pa.StringArray:
    """Return texts as JSON; each distinct text is converted once."""
    found = texts.dictionary_encode()
    quoted = [json.dumps(text, ensure_ascii=False) for text in found.dictionary.to_pylist()]
    return pa.array(quoted, pa.string()).take(found.indices)
