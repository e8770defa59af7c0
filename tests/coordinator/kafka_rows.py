"""Rows of typed tables from the JSON that Kafka's own serdes wrote: no decoder of ours has a part in them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from golden_files import lines
from kraftlog.messages import definition as kinds
from kraftlog.messages.arrow_types import arrow_type
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Field
from kraftlog.messages.last_records import Markers
from kraftlog.messages.record_type import RecordType

Line = dict[str, Any]


def readable(folder: Path, name: str, partition: int | None = None) -> list[Line]:
    """Return the lines of a topic that Kafka could read, of one partition or of all."""
    found = [line for line in lines(folder / "expected" / f"{name}.jsonl") if "error_class" not in line]
    return [line for line in found if partition is None or line["file"].split("/")[0].endswith(f"-{partition}")]


def partitions(folder: Path, name: str) -> list[int]:
    """Return the partitions of a topic that have records."""
    return sorted({int(line["file"].split("/")[0].rpartition("-")[2]) for line in readable(folder, name)})


def typed(found: list[Line], format_name: str) -> dict[str, pa.RecordBatch]:
    """Return the rows of each type of record, in the order of the log."""
    types = {record_type.name: record_type for record_type in BUILT_IN.formats[format_name].types.values()}
    by_type: dict[str, list[Line]] = {}
    for line in found:
        if "key" in line:
            name = line["key"]["name"].removesuffix("Key").removeprefix("Legacy")
            by_type.setdefault(name, []).append(line)
    return {name: _rows(types[name], each) for name, each in by_type.items()}


def markers(found: list[Line]) -> Markers:
    """Return the transaction markers among lines."""
    ends = [line for line in found if line.get("control_type")]
    return Markers(
        np.array([line["offset"] for line in ends], np.int64),
        np.array([line["producer_id"] for line in ends], np.int64),
        np.array([line["control_type"] == "COMMIT" for line in ends], bool),
    )


def _rows(record_type: RecordType, found: list[Line]) -> pa.RecordBatch:
    columns = {
        "offset": pa.array([line["offset"] for line in found], pa.int64()),
        "producer_id": pa.array([line["producer_id"] for line in found], pa.int64()),
        "is_tombstone": pa.array([line["value"] is None for line in found], pa.bool_()),
        "value_version": pa.array([(line["value"] or {}).get("version", -1) for line in found], pa.int32()),
    }
    for column, field, side in record_type.columns:
        data = [None if line[side] is None else line[side]["data"] for line in found]
        columns[column] = pa.array([_value(field, each) for each in data], arrow_type(field))
    return pa.record_batch(columns)


def _value(field: Field, data: Line | None) -> Any:
    if data is None:
        return None
    if field.name not in data:
        return [] if field.is_array and field.default is not None else field.default
    value = data[field.name]
    if field.is_array and value is not None:
        return [_item(field, item) for item in value]
    return _item(field, value)


def _item(field: Field, value: Any) -> Any:
    if value is None:
        return None
    if field.kind == kinds.STRUCT:
        return {each.column: _value(each, value) for each in field.fields} | {"unknown_tagged_fields": []}
    return base64.b64decode(value) if field.kind == kinds.BYTES else value
