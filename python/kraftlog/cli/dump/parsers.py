"""What is printed of the keys and values of records, for each decoder that kafka-dump-log has."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from kraftlog.cli.dump.java_text import string
from kraftlog.cli.dump.texts import Parser, Texts

Decoder = Callable[[bytes], str]


def _number(layout: str) -> Decoder:
    size = struct.calcsize(layout)

    def decode(data: bytes) -> str:
        if len(data) < size:
            raise ValueError(f"a number of {size} bytes, but {len(data)} bytes left")
        return str(struct.unpack_from(layout, data)[0])

    return decode


DECODERS: dict[str, Decoder] = {
    "org.apache.kafka.tools.api.StringDecoder": string,
    "org.apache.kafka.tools.api.IntegerDecoder": _number(">i"),
    "org.apache.kafka.tools.api.LongDecoder": _number(">q"),
}
STRING_DECODER = next(iter(DECODERS))


def parser_of_classes(key_decoder: str, value_decoder: str) -> Parser:
    """Return the parser of users' records: one of ``DECODERS`` for keys, and one for values."""

    def parse(records: pa.RecordBatch) -> Texts:
        texts = Texts([], [])
        sides = (("key", DECODERS[key_decoder], texts.keys), ("value", DECODERS[value_decoder], texts.payloads))
        for name, decode, found in sides:
            for row, data in enumerate(records.column(name).to_pylist()):
                try:
                    found.append(None if data is None else decode(data))
                except ValueError as error:
                    texts.faults.setdefault(row, f"{name}: {error}")
                    found.append(None)
        return texts

    return parse


def parser_of_topic(decoder: str, *, show_secrets: bool = False) -> Parser:
    """Return the parser of an internal topic, by the name of the option that asks for it."""
    if decoder == "cluster_metadata":
        from kraftlog.cli.dump.framed_texts import metadata_texts

        return partial(metadata_texts, show_secrets=show_secrets)
    if decoder == "remote_log_metadata":
        from kraftlog.cli.dump.framed_texts import remote_log_texts

        return remote_log_texts
    from kraftlog.cli.dump.coordinator_texts import coordinator_texts

    return coordinator_texts(decoder)
