"""Records of the metadata log between Kafka's JSON, Python values and the batches that an image takes."""

from __future__ import annotations

import json
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from golden_files import GOLDEN, lines
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Field
from kraftlog.metadata.image import Image
from kraftlog.metadata.schemas import schema_of

Fields = dict[str, Any]
Record = tuple[int, str, Fields]  # offset, type, fields
TYPES = BUILT_IN.formats["metadata"].types
SCENARIOS = [GOLDEN / "metadata", GOLDEN / "metadata_dynamic"]


def record(name: str, /, **given: Any) -> dict[str, Any]:
    """Return a record's fields, by column: those that are not given have Kafka's default."""
    fields = {field.column: field for field in BUILT_IN.messages[name].fields}
    assert given.keys() <= fields.keys(), given
    return {column: given.get(column, default_of(field)) for column, field in fields.items()} | _NO_TAGS


_NO_TAGS = {"unknown_tagged_fields": None}


def default_of(field: Field) -> Any:
    if field.default is None:
        return None
    if field.is_array:
        return []
    return {"bytes": b"", "uuid": bytes(16)}.get(field.kind, field.default)


def from_json(fields: tuple[Field, ...], data: dict[str, Any]) -> dict[str, Any]:
    """Return Kafka's JSON of a record as Python values, by column."""
    known = {field.name: field for field in fields}
    assert data.keys() <= known.keys(), data
    return {
        field.column: _value(field, data[field.name]) if field.name in data else default_of(field) for field in fields
    } | _NO_TAGS


def _value(field: Field, value: Any) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_item(field, item) for item in value]
    return _item(field, value)


def _item(field: Field, value: Any) -> Any:
    if field.kind == "uuid":
        return urlsafe_b64decode(value + "==")
    if field.kind == "bytes":
        return b64decode(value)
    return from_json(field.fields, value) if field.fields else value


def batches(records: Iterable[Record]) -> dict[str, pa.RecordBatch]:
    """Return records as an image takes them."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for offset, name, fields in records:
        rows.setdefault(name, []).append({"offset": offset, **fields})
    return {
        name: pa.RecordBatch.from_pylist(some, schema=schema_of(name).insert(0, pa.field("offset", pa.int64())))
        for name, some in rows.items()
    }


def applied(records: list[Record], size: int | None = None, image: Image | None = None) -> Image:
    """Return an image after records that are applied so many at a time."""
    image = image or Image.empty()
    size = size or max(len(records), 1)
    for at in range(0, len(records), size):
        image.apply(batches(records[at : at + size]))
    return image


def contents(image: Image) -> dict[str, list[dict[str, Any]]]:
    """Return what an image has, as Python values."""
    return {name: table.to_pylist() for name, table in image.tables().items()}


def canonical(records: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return records in a form to compare as sets, whatever the order of what Kafka keeps in maps."""
    return sorted(f"{name} {_ordered(fields)}" for name, fields in records)


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(item) for key, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sorted((_ordered(item) for item in value), key=repr)
    return value


def of_image(image: Image) -> list[str]:
    """Return what an image has, in the form for comparison."""
    return canonical((name, row) for name, rows in contents(image).items() for row in rows)


def typed(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return type and fields of a record in Kafka's JSON."""
    kind = TYPES[row["type_id"]]
    assert kind.value is not None
    return kind.name, from_json(kind.value.fields, row["data"])


def log_records(folder: Path) -> list[Record]:
    """Return the records of a scenario's log, control records left out."""
    rows = [row for row in lines(folder / "expected" / "metadata_records.jsonl") if row["file"].endswith(".log")]
    return [(row["offset"], *typed(row)) for row in rows if "control_type" not in row]


def snapshot_records(folder: Path) -> dict[str, list[Record]]:
    """Return the records of each snapshot of a scenario, by file name."""
    found: dict[str, list[Record]] = {}
    for row in lines(folder / "expected" / "metadata_records.jsonl"):
        name = Path(row["file"]).name
        if name.endswith(".checkpoint") and name != "bootstrap.checkpoint" and "control_type" not in row:
            found.setdefault(name, []).append((row["offset"], *typed(row)))
    return found


def kafka_images(folder: Path) -> list[tuple[int, list[tuple[str, dict[str, Any]]], list[tuple[str, int]]]]:
    """Return Kafka's images of a scenario: offset, records, and the versions in which a snapshot has each type."""
    found = []
    for file in sorted((folder / "expected").glob("image_*.json")):
        image = json.loads(file.read_text())
        if isinstance(image, dict) and "records" in image:
            rows = image["records"]
            versions = sorted({(TYPES[row["type_id"]].name, row["version"]) for row in rows})
            found.append((image["offset"], [typed(row) for row in rows], versions))
    return sorted(found, key=lambda image: image[0])
