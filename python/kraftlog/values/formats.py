"""The formats of keys and values, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kraftlog.values.bad_value import BadValue
from kraftlog.values.first_values import Sample
from kraftlog.values.format import Format
from kraftlog.values.framing import FRAMINGS, Side
from kraftlog.values.scalars import SCALARS, Converted
from kraftlog.values.schema_folder import schema_in_file
from kraftlog.values.schema_store import AVRO, JSON, PROTOBUF, Schema, SchemaStore

JSON_FORMAT = "json"
WITH_SCHEMA = {"avro": AVRO, "protobuf": PROTOBUF, JSON_FORMAT: JSON}
FORMATS = (*WITH_SCHEMA, *SCALARS)


@dataclass(frozen=True)
class FormatOptions:
    """How keys or values are to be read, as a user says it.

    Attributes
    ----------
    format : str
        One of ``FORMATS``.
    framing : {"confluent", "apicurio", "none"}
        What stands before values that have a schema.
    schema : str, optional
        The reader's: an id, a subject, a subject and a version with a colon between them, or a file. By default the
        newest of the topic's subject, such as ``orders-value``; of JSON the type that a sample has.
    json_sample : int, "all" or None
        How many values of each partition say the type of JSON.
    """

    format: str
    framing: str = "confluent"
    schema: str | None = None
    json_sample: Sample | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"format {self.format!r} is not one of {', '.join(FORMATS)}")
        if self.framing not in FRAMINGS:
            raise ValueError(f"framing {self.framing!r} is not one of {', '.join(FRAMINGS)}")

    @property
    def needs_schemas(self) -> bool:
        """Whether values are of a schema of the log or of a folder."""
        if self.schema is not None and schema_in_file(self.schema) is not None:
            return False
        return self.format in WITH_SCHEMA and (self.format != JSON_FORMAT or self.schema is not None)


class _Scalar:
    reads_headers = False

    def __init__(self, arrow_type: pa.DataType, function: Callable[[pa.Array], Converted]) -> None:
        self.arrow_type = arrow_type
        self._convert = function

    def convert(self, values: pa.Array, _: pa.Array | None) -> tuple[pa.Array, list[BadValue]]:
        return self._convert(values)


@dataclass(frozen=True)
class ChosenFormat:
    """A format with what its values are read by: plain values, which another process can be sent.

    Attributes
    ----------
    reader : Schema or None
        Of a format that has schemas.
    json_type : pyarrow.DataType or None
        Of JSON.
    message : str or None
        Of Protocol Buffers, by its full name; None is the first one of the reader's schema.
    """

    options: FormatOptions
    reader: Schema | None = None
    json_type: pa.DataType | None = None
    message: str | None = None

    def made(self, side: Side, store: SchemaStore) -> Format:
        """Return what converts values; ValueError when their schema cannot be read."""
        if self.json_type is not None:
            from kraftlog.values.json_format import JsonFormat

            return JsonFormat(self.json_type)
        if self.reader is None:
            return _Scalar(*SCALARS[self.options.format])
        if self.reader.type == PROTOBUF:
            from kraftlog.values.protobuf_format import ProtobufFormat

            return ProtobufFormat(self.reader, store, self.options.framing, side, self.message)
        from kraftlog.values.avro_format import AvroFormat

        return AvroFormat(self.reader, store, self.options.framing, side)


def choose(
    options: FormatOptions,
    side: Side,
    topics: Sequence[str],
    store: SchemaStore,
    samples: Callable[[Side, Sample | None], Iterable[pa.Array]],
) -> ChosenFormat:
    """Return what the keys or the values of some topics are read by.

    Parameters
    ----------
    options : FormatOptions
    side : {"key", "value"}
    topics : sequence of str
    store : SchemaStore
    samples : callable
        Returns some of the keys or values, which say the type of JSON, and which message is meant.

    Raises
    ------
    ValueError
        When there is no schema to read them by, or the topics have different ones.
    """
    if options.format not in WITH_SCHEMA:
        return ChosenFormat(options)
    if options.format == JSON_FORMAT and options.schema is None:
        from kraftlog.values.json_format import json_type

        return ChosenFormat(options, json_type=json_type(samples(side, options.json_sample)))
    reader = _reader_schema(options, side, topics, store)
    expected = WITH_SCHEMA[options.format]
    if reader.type != expected:
        raise ValueError(f"{reader} is of type {reader.type}, and {side}s are to be read as {expected}")
    if reader.type == JSON:
        from kraftlog.values.json_schema import type_of_json_schema

        return ChosenFormat(options, json_type=type_of_json_schema(reader.schema))
    if reader.type == PROTOBUF:
        from kraftlog.values.protobuf_format import message_of_first

        found = message_of_first(samples(side, None), reader, store, options.framing, side)
        return ChosenFormat(options, reader, message=found)
    return ChosenFormat(options, reader)


def _reader_schema(options: FormatOptions, side: Side, topics: Sequence[str], store: SchemaStore) -> Schema:
    if options.schema is not None:
        return schema_in_file(options.schema) or store.named(options.schema)
    found = {topic: store.newest(f"{topic}-{side}") for topic in topics}
    there = {one.schema: one for one in found.values() if one is not None}
    absent = [topic for topic, one in found.items() if one is None]
    if len(there) == 1 and not absent:
        return next(iter(there.values()))
    schemas = list(store.schemas)
    if not there and len(schemas) == 1:
        return schemas[0]
    if absent:
        raise ValueError(f"no schema {absent[0]}-{side} in {store.source}: name one with {side}_schema")
    names = ", ".join(f"{one.subject} of {topic}" for topic, one in found.items() if one is not None)
    raise ValueError(f"topics have different schemas ({names}): read one topic, or name a schema with {side}_schema")
