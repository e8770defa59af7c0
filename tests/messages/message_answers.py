"""What is expected of typed messages: the twin's messages in the form that the reader gives them in."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import twin
from twin_records import Record, decode_framed, decode_keyed

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.messages.arrow_types import message_schema
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Definition, Field
from kraftlog.messages.reader import FRAMED
from kraftlog.messages.record_type import KEY, VALUE, RecordFormat, RecordType

FORMAT_OF_ANSWERS = {
    "metadata_records": "metadata",
    "remote_log_metadata": "remote_log_metadata",
    "consumer_offsets": "consumer_offsets",
    "transaction_state": "transaction_state",
    "share_group_state": "share_group_state",
}


# Messages as Arrow has them


def arrow_value(field: Field, value: Any, uuid: str) -> Any:
    """Return a field's value as ``to_pylist`` gives it."""
    if value is None:
        return None
    if field.is_array:
        return [arrow_item(field, one, uuid) for one in value]
    return arrow_item(field, value, uuid)


def arrow_item(field: Field, value: Any, uuid: str) -> Any:
    if field.kind == "struct" and value is not None:
        return arrow_message(field.fields, value, uuid)
    if field.kind == "uuid" and uuid == "binary" and value is not None:
        return twin.uuid_bytes(value)
    return value


def arrow_message(fields: tuple[Field, ...], message: twin.Message, uuid: str = "text") -> dict[str, Any]:
    """Return a message of the twin's as a row."""
    row = {field.column: arrow_value(field, message[field.column], uuid) for field in fields}
    return row | {twin.UNKNOWN: [{"tag": tag, "data": data} for tag, data in message[twin.UNKNOWN]]}


def message_batch(definition: Definition, messages: list[twin.Message], uuid: str = "text") -> pa.RecordBatch:
    """Return messages as columns for the writer."""
    rows = [arrow_message(definition.fields, message, uuid) for message in messages]
    return pa.RecordBatch.from_pylist(rows, schema=message_schema(definition, uuid))


def typed_row(record: Record, uuid: str = "text") -> dict[str, Any]:
    """Return a record as a row of its type's table; a tombstone's value is null."""
    row = {}
    sides = {KEY: record.key, VALUE: record.value}
    for name, field, side in record.record_type.columns:
        message = sides[side]
        row[name] = None if message is None else arrow_value(field, message[field.column], uuid)
    unknown = None if record.value is None else record.value[twin.UNKNOWN]
    return row | {twin.UNKNOWN: unknown and [{"tag": tag, "data": data} for tag, data in unknown]}


def side_columns(record_type: RecordType, side: str, fields: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of one side of a typed table, under the names that the writer knows them by."""
    names = {name: field.column for name, field, of in record_type.columns if of == side}
    if side == VALUE:
        names[twin.UNKNOWN] = twin.UNKNOWN
    return pa.RecordBatch.from_arrays([fields.column(name) for name in names], list(names.values()))


def comparable(value: Any) -> Any:
    """Return values in a form in which not-a-number is equal to itself."""
    if isinstance(value, dict):
        return {name: comparable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [comparable(one) for one in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


# Messages as JSON


def expected_json(fields: tuple[Field, ...], version: int, message: twin.Message) -> dict[str, Any]:
    """Return the twin's JSON of a message, with the tagged fields that a struct does not know behind those it does."""
    shown = twin.struct_json(fields, version, message)
    for field in fields:
        value = message[field.column]
        if field.kind == "struct" and field.name in shown and value is not None:
            if field.is_array:
                shown[field.name] = [expected_json(field.fields, version, one) for one in value]
            else:
                shown[field.name] = expected_json(field.fields, version, value)
    if message[twin.UNKNOWN]:
        unknown = message[twin.UNKNOWN]
        shown["unknownTaggedFields"] = [{"tag": tag, "data": base64.b64encode(data).decode()} for tag, data in unknown]
    return shown


def without_unknown(shown: Any) -> Any:
    """Return JSON without the key that Kafka's has not."""
    if isinstance(shown, list):
        return [without_unknown(one) for one in shown]
    if isinstance(shown, dict):
        return {name: without_unknown(one) for name, one in shown.items() if name != "unknownTaggedFields"}
    return shown


def in_order(shown: Any) -> str:
    """Return JSON as text that tells the order of names as well."""
    return json.dumps(shown)


# Records


def decode_record(record_format: RecordFormat, key: bytes | None, value: bytes | None) -> Record:
    """Return a record as the twin decodes it."""
    if record_format.name not in FRAMED:
        return decode_keyed(record_format, key, value)
    if value is None:
        raise twin.MalformedError("a null value")
    return decode_framed(record_format, value)


@dataclass
class Golden:
    """The data records of a golden file, and Kafka's answer to each."""

    record_format: RecordFormat
    offsets: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    answers: list[dict[str, Any]]

    def keys_array(self) -> pa.BinaryArray | None:
        return None if self.record_format.name in FRAMED else pa.array(self.keys, pa.binary())

    def values_array(self) -> pa.BinaryArray:
        return pa.array(self.values, pa.binary())


def golden_names() -> list[str]:
    """Return every list of answers about typed messages: its scenario, and its file without the suffix."""
    found = []
    for folder in sorted(GOLDEN.glob("**/expected")):
        names = {file.name.split(".")[0] for file in folder.glob("*.jsonl*")}
        found += [f"{folder.parent.relative_to(GOLDEN)}:{name}" for name in FORMAT_OF_ANSWERS if name in names]
    return found


def golden(name: str) -> Iterator[Golden]:
    """Yield the golden files of a list of answers; every record that is not a control record must have its answer."""
    scenario, answers_name = name.split(":")
    record_format = BUILT_IN.formats[FORMAT_OF_ANSWERS[answers_name]]
    topic = "__cluster_metadata" if record_format.name == "metadata" else f"__{record_format.name}"
    by_file: dict[str | None, dict[int, dict[str, Any]]] = {}
    for answer in lines(GOLDEN / scenario / "expected" / f"{answers_name}.jsonl"):
        by_file.setdefault(answer.get("file"), {})[answer["offset"]] = answer
    assert by_file
    for file, answers in by_file.items():
        (path,) = (GOLDEN / scenario / "log").glob(file or f"{topic}-0/*.log")  # there is but one where none is named
        rows = kraftlog.open(path).records(columns=["offset", "key", "value"], strict=True).to_table().to_pylist()
        offsets = [row["offset"] for row in rows]
        assert offsets == [offset for offset, answer in answers.items() if "control_type" not in answer]
        yield Golden(
            record_format,
            offsets,
            [row["key"] for row in rows],
            [row["value"] for row in rows],
            [answers[offset] for offset in offsets],
        )


def answered(answer: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return Kafka's JSON of a key and of a value; null for what there is not."""
    if "error_class" in answer:
        return None, None
    if "data" in answer:
        return None, answer["data"]
    return answer["key"]["data"], answer["value"] and answer["value"]["data"]
